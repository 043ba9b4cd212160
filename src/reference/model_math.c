/* SPDX-License-Identifier: Apache-2.0 */
#include "reference/model_math.h"

#include "base/threads.h"

#include <math.h>

/* ---- products ---- */

typedef struct {
    const LhMathProduct *p;
    const double *a, *b;
    double *c;
} MathProduct;

static void
y_row(void *data, guint row)
{
    const MathProduct *of = data;
    const uint64_t k = of->p->k, n = of->p->n;
    double *y = of->c + row * n;

    for (uint64_t j = 0; j < n; j++)
        y[j] = 0;
    for (uint64_t i = 0; i < k; i++) {
        const double x = of->a[row * k + i];

        for (uint64_t j = 0; j < n; j++)
            y[j] += x * of->b[i * n + j];
    }
}

static void
dx_row(void *data, guint row)
{
    const MathProduct *of = data;
    const uint64_t k = of->p->k, n = of->p->n;

    for (uint64_t i = 0; i < k; i++) {
        double sum = 0;

        for (uint64_t j = 0; j < n; j++)
            sum += of->a[row * n + j] * of->b[i * n + j];
        of->c[row * k + i] += sum;
    }
}

/* Row @i of dw; the sum is over the tokens. */
static void
dw_row(void *data, guint i)
{
    const MathProduct *of = data;
    const uint64_t k = of->p->k, n = of->p->n;

    for (uint64_t row = 0; row < of->p->rows; row++) {
        const double x = of->a[row * k + i];

        for (uint64_t j = 0; j < n; j++)
            of->c[i * n + j] += x * of->b[row * n + j];
    }
}

void
lh_math_product(const LhMathProduct *p, const double *x, const double *w, double *y)
{
    lh_on_threads_each("product", p->threads, (guint)p->rows, y_row, &(MathProduct){ p, x, w, y });
}

void
lh_math_product_dx(const LhMathProduct *p, const double *dy, const double *w, double *dx)
{
    lh_on_threads_each("product", p->threads, (guint)p->rows, dx_row,
                       &(MathProduct){ p, dy, w, dx });
}

void
lh_math_product_dw(const LhMathProduct *p, const double *x, const double *dy, double *dw)
{
    lh_on_threads_each("product", p->threads, (guint)p->k, dw_row, &(MathProduct){ p, x, dy, dw });
}

/* ---- norms ---- */

/* Statistics of a slice of a row: weights apply to (x - mean) * scale. */
typedef struct {
    double mean, scale;
} Statistics;

static Statistics
statistics_of(const LhMathNorm *n, const double *x, uint64_t width)
{
    Statistics s = { 0 };
    double squares = 0;

    for (uint64_t i = 0; n->centred && i < width; i++)
        s.mean += x[i] / (double)width;
    for (uint64_t i = 0; i < width; i++)
        squares += (x[i] - s.mean) * (x[i] - s.mean);
    s.scale = 1 / sqrt(squares / (double)width + n->epsilon);
    return s;
}

void
lh_math_norm(const LhMathNorm *n, const double *x, const double *w, double *y)
{
    const uint64_t width = n->width / n->slices;

    for (uint64_t slice = 0; slice < n->rows * n->slices; slice++) {
        const uint64_t at = slice * width, column = slice % n->slices * width;
        const Statistics s = statistics_of(n, x + at, width);

        for (uint64_t i = 0; i < width; i++)
            y[at + i] = (x[at + i] - s.mean) * s.scale * w[column + i] +
                        (n->centred ? w[n->width + column + i] : 0);
    }
}

/*
 * With u = (x - mean) scale and g = dy w: dx = scale (g - mean(g) - u mean(g u)). Without a mean,
 * mean(g) is 0.
 */
typedef struct {
    const double *x, *w, *dy;
    double *dx, *dw;
} NormBack;

static void
norm_back_slice(const LhMathNorm *n, uint64_t slice, const NormBack *b)
{
    const uint64_t width = n->width / n->slices, column = slice % n->slices * width;
    const double *x = b->x + slice * width, *dy = b->dy + slice * width;
    const Statistics s = statistics_of(n, x, width);
    double mean = 0, dot = 0;

    for (uint64_t i = 0; i < width; i++) {
        const double u = (x[i] - s.mean) * s.scale, g = dy[i] * b->w[column + i];

        mean += n->centred ? g / (double)width : 0;
        dot += g * u / (double)width;
        b->dw[column + i] += dy[i] * u;
        if (n->centred)
            b->dw[n->width + column + i] += dy[i];
    }
    for (uint64_t i = 0; i < width; i++) {
        const double u = (x[i] - s.mean) * s.scale;

        b->dx[slice * width + i] += s.scale * (dy[i] * b->w[column + i] - mean - u * dot);
    }
}

void
lh_math_norm_back(const LhMathNorm *n, const double *x, const double *w, const double *dy,
                  double *dx, double *dw)
{
    const NormBack back = { x, w, dy, dx, dw };

    for (uint64_t slice = 0; slice < n->rows * n->slices; slice++)
        norm_back_slice(n, slice, &back);
}

/* ---- elements ---- */

double
lh_math_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

double
lh_math_silu(double x)
{
    return x * lh_math_sigmoid(x);
}

double
lh_math_silu_slope(double x)
{
    const double s = lh_math_sigmoid(x);

    return s + x * s * (1 - s);
}

#define GELU_SCALE 0.79788456080286535588 /* sqrt(2 / pi) */
#define GELU_CUBE 0.044715

double
lh_math_gelu(double x)
{
    return x / 2 * (1 + tanh(GELU_SCALE * (x + GELU_CUBE * x * x * x)));
}

double
lh_math_gelu_slope(double x)
{
    const double t = tanh(GELU_SCALE * (x + GELU_CUBE * x * x * x));

    return (1 + t) / 2 + x / 2 * (1 - t * t) * GELU_SCALE * (1 + 3 * GELU_CUBE * x * x);
}

void
lh_math_rotate(double *head, uint64_t d, double base, uint64_t position, bool back)
{
    for (uint64_t i = 0; i < d / 2; i++) {
        const double angle =
            (back ? -1.0 : 1.0) * (double)position * pow(base, -2 * (double)i / (double)d);
        const double x = head[i], y = head[i + d / 2];

        head[i] = x * cos(angle) - y * sin(angle);
        head[i + d / 2] = x * sin(angle) + y * cos(angle);
    }
}

void
lh_math_activate(uint64_t rows, uint64_t width, bool gated, const double *up, double *p)
{
    for (uint64_t i = 0; i < rows * width; i++) {
        const double *from = up + i / width * width * (gated ? 2 : 1) + i % width;

        p[i] = gated ? lh_math_silu(from[0]) * from[width] : lh_math_gelu(from[0]);
    }
}

void
lh_math_activate_back(uint64_t rows, uint64_t width, bool gated, const double *up, const double *dp,
                      double *dup)
{
    for (uint64_t i = 0; i < rows * width; i++) {
        const uint64_t at = i / width * width * (gated ? 2 : 1) + i % width;

        if (gated) {
            dup[at] = dp[i] * up[at + width] * lh_math_silu_slope(up[at]);
            dup[at + width] = dp[i] * lh_math_silu(up[at]);
        } else {
            dup[at] = dp[i] * lh_math_gelu_slope(up[at]);
        }
    }
}
