/* Fits; see the header. Points are few: everything is quadratic and allocates freely. */
#include "runtime/fit.h"

#include <glib.h>
#include <math.h>

static int
by_value(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return x < y ? -1 : x > y;
}

double
lh_median(double *values, size_t count)
{
    g_assert(count > 0);
    qsort(values, count, sizeof(double), by_value);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* ---- rates ---- */

static double
rate_seconds(const LhRatePoint *p, double a, double b)
{
    return p->flops * (a + b / p->length);
}

static void
judge_rate(const LhRatePoint *points, size_t count, double a, double b, LhResiduals *residuals)
{
    g_autofree double *fitted = g_new(double, count);
    size_t fitted_count = 0;

    *residuals = (LhResiduals){ 0 };
    for (size_t i = 0; i < count; i++) {
        const double off = fabs(rate_seconds(&points[i], a, b) / points[i].seconds - 1);

        if (points[i].holdout) {
            residuals->holdout = fmax(residuals->holdout, off);
            continue;
        }
        fitted[fitted_count++] = off;
        residuals->worst = fmax(residuals->worst, off);
    }
    residuals->median = lh_median(fitted, fitted_count);
}

/* Least squares of (a u + b v - 1), u = flops / seconds, v = u / length; both of a and b at least
 * 0. */
bool
lh_fit_rate(const LhRatePoint *points, size_t count, double *rate, double *half_length,
            LhResiduals *residuals)
{
    double uu = 0, uv = 0, vv = 0, us = 0, vs = 0, a, b;
    size_t fitted = 0;

    for (size_t i = 0; i < count; i++) {
        const double u = points[i].flops / points[i].seconds;
        const double v = u / points[i].length;

        if (points[i].holdout)
            continue;
        uu += u * u;
        uv += u * v;
        vv += v * v;
        us += u;
        vs += v;
        fitted++;
    }
    if (fitted < 2)
        return false;
    b = (uu * vs - uv * us) / (uu * vv - uv * uv);
    a = (us - b * uv) / uu;
    if (!(b > 0) || !(a > 0)) {
        b = 0;
        a = us / uu;
    }
    judge_rate(points, count, a, b, residuals);
    *rate = 1 / a;
    *half_length = b / a;
    return true;
}

/* ---- transfers ---- */

typedef struct {
    double slope, weight;
} Slope;

static int
by_slope(const void *a, const void *b)
{
    return by_value(&((const Slope *)a)->slope, &((const Slope *)b)->slope);
}

/* The slope up to which half of the weight lies; NAN without pairs. */
static double
median_slope(const LhTransferPoint *points, size_t count)
{
    g_autofree Slope *slopes = g_new(Slope, count * count);
    double weight = 0, below = 0;
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        for (size_t k = i + 1; k < count; k++) {
            const double distance = points[k].bytes - points[i].bytes;

            if (distance == 0)
                continue;
            slopes[n++] =
                (Slope){ (points[k].seconds - points[i].seconds) / distance, fabs(distance) };
            weight += fabs(distance);
        }
    }
    qsort(slopes, n, sizeof(Slope), by_slope);
    for (size_t i = 0; i < n; i++) {
        below += slopes[i].weight;
        if (below >= weight / 2)
            return slopes[i].slope;
    }
    return NAN;
}

static double
median_rest(const LhTransferPoint *points, size_t count, double slope)
{
    g_autofree double *sizes = g_new(double, count);
    g_autofree double *rest = g_new(double, count);
    double middle;
    size_t n = 0;

    for (size_t i = 0; i < count; i++)
        sizes[i] = points[i].bytes;
    middle = lh_median(sizes, count);
    for (size_t i = 0; i < count; i++) {
        if (points[i].bytes <= middle)
            rest[n++] = points[i].seconds - slope * points[i].bytes;
    }
    return fmax(lh_median(rest, n), 0);
}

bool
lh_fit_transfer(const LhTransferPoint *points, size_t count, double *alpha_s, double *bytes_per_s,
                LhResiduals *residuals)
{
    const double slope = count < 2 ? NAN : median_slope(points, count);
    g_autofree double *off = g_new(double, MAX(count, 1));
    double alpha;

    if (!(slope > 0))
        return false;
    alpha = median_rest(points, count, slope);
    *residuals = (LhResiduals){ 0 };
    for (size_t i = 0; i < count; i++) {
        off[i] = fabs((alpha + slope * points[i].bytes) / points[i].seconds - 1);
        residuals->worst = fmax(residuals->worst, off[i]);
    }
    residuals->median = lh_median(off, count);
    *alpha_s = alpha;
    *bytes_per_s = 1 / slope;
    return true;
}
