/* SPDX-License-Identifier: Apache-2.0 */
/* Fits. There are few points, so everything is quadratic in them and allocates freely. */
#include "measure/fit.h"

#include <glib.h>
#include <math.h>
#include <string.h>

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

#define TERMS 3
#define SINGULAR 1e-9 /* a pivot below this part of its initial value is rounding error */

/* Terms of the time, each with a factor to be fitted. */
static void
terms_of(const LhRatePoint *p, double terms[TERMS])
{
    terms[0] = p->flops;
    terms[1] = p->flops / p->keys;
    terms[2] = p->flops / p->queries;
}

static double
rate_seconds(const LhRatePoint *p, const double factors[TERMS])
{
    double terms[TERMS], seconds = 0;

    terms_of(p, terms);
    for (unsigned i = 0; i < TERMS; i++)
        seconds += factors[i] * terms[i];
    return seconds;
}

static void
judge_rate(const LhRatePoint *points, size_t count, const double factors[TERMS],
           LhResiduals *residuals)
{
    g_autofree double *fitted = g_new(double, count);
    size_t fitted_count = 0;

    *residuals = (LhResiduals){ 0 };
    for (size_t i = 0; i < count; i++) {
        const double off = fabs(rate_seconds(&points[i], factors) / points[i].seconds - 1);

        if (points[i].holdout) {
            residuals->holdout = fmax(residuals->holdout, off);
            continue;
        }
        fitted[fitted_count++] = off;
        residuals->worst = fmax(residuals->worst, off);
    }
    residuals->median = lh_median(fitted, fitted_count);
}

/* Normal equations of the least squares of (sum of factors x terms / seconds - 1). */
typedef struct {
    double products[TERMS][TERMS], sums[TERMS];
} Normal;

static size_t
add_points(const LhRatePoint *points, size_t count, Normal *normal)
{
    size_t fitted = 0;

    *normal = (Normal){ 0 };
    for (size_t i = 0; i < count; i++) {
        double terms[TERMS];

        if (points[i].holdout)
            continue;
        terms_of(&points[i], terms);
        for (unsigned r = 0; r < TERMS; r++) {
            for (unsigned c = 0; c < TERMS; c++)
                normal->products[r][c] += terms[r] * terms[c] / pow(points[i].seconds, 2);
            normal->sums[r] += terms[r] / points[i].seconds;
        }
        fitted++;
    }
    return fitted;
}

/* Finds the factors of the terms in the bit set @chosen by elimination; other factors are 0. The
 * equations are positive definite unless two terms are proportional, so no pivoting is needed.
 * False if two are proportional, or if a factor is not above 0. */
static bool
solve(Normal n, unsigned chosen, double factors[TERMS])
{
    bool ok = true;

    for (unsigned i = 0; i < TERMS; i++) {
        const double before = n.products[i][i];

        factors[i] = 0;
        for (unsigned k = 0; k < i && (chosen >> i & 1) != 0; k++) {
            const double share = n.products[i][k] / n.products[k][k];

            if ((chosen >> k & 1) == 0)
                continue;
            for (unsigned c = k; c < TERMS; c++)
                n.products[i][c] -= share * n.products[k][c];
            n.sums[i] -= share * n.sums[k];
        }
        ok = ok && ((chosen >> i & 1) == 0 || n.products[i][i] > SINGULAR * before);
    }
    for (unsigned i = TERMS; ok && i-- > 0;) {
        for (unsigned c = i + 1; c < TERMS; c++)
            n.sums[i] -= factors[c] * n.products[i][c];
        factors[i] = (chosen >> i & 1) != 0 ? n.sums[i] / n.products[i][i] : 0;
        ok = (chosen >> i & 1) == 0 || factors[i] > 0;
    }
    return ok;
}

/* solve() with a lower limit @least of factor 0: if it is below, it is set to the limit and the
 * others are fitted again. */
static bool
solve_above(const Normal *n, unsigned chosen, double least, double factors[TERMS])
{
    Normal rest = *n;

    if (solve(*n, chosen, factors) && factors[0] >= least)
        return true;
    for (unsigned i = 0; i < TERMS; i++)
        rest.sums[i] -= least * n->products[i][0];
    if (!(least > 0) || !solve(rest, chosen & ~1U, factors))
        return false;
    factors[0] = least;
    return true;
}

/* Reduction of the sum of squares by these factors. */
static double
explained(const Normal *n, const double factors[TERMS])
{
    double sum = 0;

    for (unsigned i = 0; i < TERMS; i++) {
        sum += 2 * factors[i] * n->sums[i];
        for (unsigned k = 0; k < TERMS; k++)
            sum -= factors[i] * n->products[i][k] * factors[k];
    }
    return sum;
}

bool
lh_fit_rate(const LhRatePoint *points, size_t count, double rate_max, LhRateFit *fit,
            LhResiduals *residuals)
{
    /* The rate alone, with one length, with both: the best one without a negative length is
     * taken. */
    static const unsigned choices[] = { 1, 1 | 2, 1 | 4, 1 | 2 | 4 };
    double best[TERMS] = { 0 }, most = -INFINITY;
    Normal normal;

    if (add_points(points, count, &normal) < 2)
        return false;
    for (unsigned i = 0; i < G_N_ELEMENTS(choices); i++) {
        double factors[TERMS];

        if (!solve_above(&normal, choices[i], 1 / rate_max, factors) ||
            !(explained(&normal, factors) > most))
            continue;
        most = explained(&normal, factors);
        memcpy(best, factors, sizeof(best));
    }
    if (!isfinite(most) || !isfinite(1 / best[0]))
        return false;
    judge_rate(points, count, best, residuals);
    *fit = (LhRateFit){ fmin(1 / best[0], rate_max), best[1] / best[0], best[2] / best[0] };
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

/* Weighted median of the slopes: half of the weight lies below; NAN without pairs. */
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
