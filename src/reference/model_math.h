/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a transformer consists of in fp64, forward and backward, written down from the definitions:
 * for the reference of training steps. Matrices are row by row; `rows` are tokens.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* y = x w, of x rows x k and w k x n; dx += dy w^T; dw += x^T dy. */
typedef struct {
    uint64_t rows, k, n;
    unsigned threads;
} LhMathProduct;
void lh_math_product(const LhMathProduct *p, const double *x, const double *w, double *y);
void lh_math_product_dx(const LhMathProduct *p, const double *dy, const double *w, double *dx);
void lh_math_product_dw(const LhMathProduct *p, const double *x, const double *dy, double *dw);

/* Norms of rows of `width`, in `slices` slices that each have statistics of their own: x over its
 * root mean square, times w; or (centred) x less its mean over its deviation, times w, plus the
 * bias, which lies behind w. Backward: dx and dw are added to. */
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

/* Turns elements i and i + d/2 of a head at @position by position base^(-2i/d); @back: by the
 * negative angle. */
void lh_math_rotate(double *head, uint64_t d, double base, uint64_t position, bool back);

/* What an MLP does between its matrices, of rows of @width: p = silu(gate) up, of rows that hold
 * gates and then the others, or gelu; and the gradient of what it is given. */
void lh_math_activate(uint64_t rows, uint64_t width, bool gated, const double *up, double *p);
void lh_math_activate_back(uint64_t rows, uint64_t width, bool gated, const double *up,
                           const double *dp, double *dup);
