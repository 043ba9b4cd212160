/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time is inverse to the rate, so the best rate of a given half length has a closed form. The
 * half length is searched on a grid, then by golden section around the best grid point.
 */
#include "calibrate/fit_call.h"

#include "sim/cost/cost.h"

#include <math.h>

#define GRID 40
#define REFINEMENTS 40
#define HALF_LENGTH_MAX 16384.0

typedef struct {
    const LhDevice *device;
    LhKernelId kernel;
    const LhCallPoint *points;
    size_t count;
} CallFit;

/* Time of the call at a rate of 1. */
static double
unit_seconds(const CallFit *f, const LhCallPoint *p, double half_length)
{
    const LhKernelRate curve = { .rate = 1, .half_length = half_length };

    return lh_cost_curve_call(f->device, &curve, f->kernel, &p->args);
}

/* Sum of squares at the best rate, which is stored in *@rate. */
static double
squares(const CallFit *f, double half_length, double *rate)
{
    double u1 = 0, u2 = 0, n = 0;

    for (size_t i = 0; i < f->count; i++) {
        const LhCallPoint *p = &f->points[i];
        const double u = p->holdout ? 0 : unit_seconds(f, p, half_length) / p->seconds;

        u1 += u;
        u2 += u * u;
        n += !p->holdout;
    }
    *rate = u2 / u1;
    return n - u1 * u1 / u2;
}

/* Grid of half lengths, denser at short ones. */
static double
grid_length(int i)
{
    const double share = (double)i / GRID;

    return i <= 0 ? 0 : HALF_LENGTH_MAX * share * share * share;
}

static double
best_half_length(const CallFit *f)
{
    double rate, low, high, least = INFINITY;
    int best = 0;

    for (int i = 0; i <= GRID; i++) {
        const double sum = squares(f, grid_length(i), &rate);

        if (sum < least) {
            least = sum;
            best = i;
        }
    }
    low = grid_length(best - 1);
    high = grid_length(MIN(best + 1, GRID));
    for (int i = 0; i < REFINEMENTS; i++) {
        const double a = high - LH_GOLDEN * (high - low), b = low + LH_GOLDEN * (high - low);

        if (squares(f, a, &rate) <= squares(f, b, &rate))
            high = b;
        else
            low = a;
    }
    return squares(f, low, &rate) <= squares(f, high, &rate) ? low : high;
}

static void
judge(const CallFit *f, const LhKernelRate *curve, LhResiduals *residuals)
{
    g_autofree double *fitted = g_new(double, f->count);
    size_t count = 0;

    *residuals = (LhResiduals){ 0 };
    for (size_t i = 0; i < f->count; i++) {
        const LhCallPoint *p = &f->points[i];
        const double off =
            fabs(lh_cost_curve_call(f->device, curve, f->kernel, &p->args) / p->seconds - 1);

        if (p->holdout) {
            residuals->holdout = fmax(residuals->holdout, off);
            continue;
        }
        fitted[count++] = off;
        residuals->worst = fmax(residuals->worst, off);
    }
    residuals->median = lh_median(fitted, count);
}

bool
lh_fit_calls(const LhDevice *device, LhKernelId kernel, const LhCallPoint *points, size_t count,
             LhKernelRate *curve, LhResiduals *residuals)
{
    const CallFit f = { device, kernel, points, count };
    size_t fitted = 0;

    for (size_t i = 0; i < count; i++) {
        if (!(points[i].seconds > 0))
            return false;
        fitted += !points[i].holdout;
    }
    if (fitted < 2)
        return false;
    curve->half_length = best_half_length(&f);
    (void)squares(&f, curve->half_length, &curve->rate);
    judge(&f, curve, residuals);
    return true;
}
