/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fits of the two laws of the cost models, rates and transfers, to measurements. Residuals are
 * relative, so that a point of a microsecond counts as much as one of a second.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* |fitted / measured - 1| over points; 0 without points. */
typedef struct {
    double median, worst; /* over the points used by the fit */
    double holdout;       /* worst of the held-out points */
} LhResiduals;

/* One timed call: @flops in a block of @keys by @queries tokens took @seconds. */
typedef struct {
    double keys, queries, flops, seconds;
    bool holdout; /* not fitted, only compared */
} LhRatePoint;

/* R = R_inf / (1 + s0 / keys + s1 / queries). */
typedef struct {
    double rate;              /* R_inf, flop/s */
    double half_length;       /* s0, tokens */
    double query_half_length; /* s1, tokens */
} LhRateFit;

/*
 * Fits by least squares of the relative residuals of the time, which is linear in 1 / R_inf, s0 /
 * R_inf and s1 / R_inf. s0 and s1 are 0 where the fit would make them negative; s1 also where all
 * points have as many queries as keys. R_inf is at most @rate_max, the peak of the measured device
 * or INFINITY: times of a machine with other load may suggest more. False if fewer than two points
 * are to be fitted, or if no fit exists.
 */
bool lh_fit_rate(const LhRatePoint *points, size_t count, double rate_max, LhRateFit *fit,
                 LhResiduals *residuals);

/* One transfer. */
typedef struct {
    double bytes, seconds;
} LhTransferPoint;

/*
 * Fits seconds = alpha + bytes / bandwidth by Theil and Sen's method. The slope is the median of
 * the slopes of all pairs, weighted by their distance; alpha is the median remainder of the smaller
 * half of the sizes. One or two outliers among many points do no harm, unless the largest is one.
 * False if fewer than two sizes differ or if times do not grow with size.
 */
bool lh_fit_transfer(const LhTransferPoint *points, size_t count, double *alpha_s,
                     double *bytes_per_s, LhResiduals *residuals);

/* Returns the median of @count > 0 values, which it sorts. */
double lh_median(double *values, size_t count);
