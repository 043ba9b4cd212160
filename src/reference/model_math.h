/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations of a transformer in fp64, forward and backward, directly from the definitions, for the
 * reference of training steps. Matrices are row-major; `rows` are tokens.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* y = x w, with x rows x k and w k x n; dx += dy w^T; dw += x^T dy. */
typedef struct {
    uint64_t rows, k, n;
    unsigned threads;
} LhMathProduct;
void lh_math_product(const LhMathProduct *p, const double *x, const double *w, double *y);
void lh_math_product_dx(const LhMathProduct *p, const double *dy, const double *w, double *dx);
void lh_math_product_dw(const LhMathProduct *p, const double *x, const double *dy, double *dw);

/*
 * Norms of rows of `width`, in `slices` slices with separate statistics: x / root mean square,
 * times w; or (centred) (x - mean) / deviation, times w, plus the bias, which follows w. Backward
 * adds to dx and dw.
 */
typedef struct {
    uint64_t rows, width, slices;
    bool centred;
    double epsilon;
} LhMathNorm;
void lh_math_norm(const LhMathNorm *n, const double *x, const double *w, double *y);
void lh_math_norm_back(const LhMathNorm *n, const double *x, const double *w, const double *dy,
                       double *dx, double *dw);

double lh_math_sigmoid(double x);
double lh_math_silu(double x);
double lh_math_silu_slope(double x);
double lh_math_gelu(double x); /* by tanh */
double lh_math_gelu_slope(double x);

/*
 * Rotates elements i and i + d/2 of a head at @position by position base^(-2i/d); @back: by the
 * negative angle.
 */
void lh_math_rotate(double *head, uint64_t d, double base, uint64_t position, bool back);

/*
 * Activation between the matrices of an MLP, rows of @width: p = silu(gate) up, where a row of `up`
 * holds gates, then the others; or gelu. And its gradient.
 */
void lh_math_activate(uint64_t rows, uint64_t width, bool gated, const double *up, double *p);
void lh_math_activate_back(uint64_t rows, uint64_t width, bool gated, const double *up,
                           const double *dp, double *dup);
