/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Curves through measurements: the two laws that the cost models have. Residuals are relative, so
 * that a point of a microsecond counts as much as one of a second.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* |fitted / measured - 1| over points; 0 where there are none. */
typedef struct {
    double median, worst; /* of the points that were fitted */
    double holdout;       /* worst of those that were not */
} LhResiduals;

/* One timed call: flops of them in a block of @keys by @queries tokens took @seconds. */
typedef struct {
    double keys, queries, flops, seconds;
    bool holdout; /* not fitted, only judged */
} LhRatePoint;

/* R = R_inf / (1 + s0 / keys + s1 / queries). */
typedef struct {
    double rate;              /* R_inf, flop/s */
    double half_length;       /* s0, tokens */
    double query_half_length; /* s1, tokens */
} LhRateFit;

/*
 * By least squares of relative residuals of the time: linear in 1 / R_inf, s0 / R_inf and s1 /
 * R_inf. Of these the last two are 0 where times would ask for less, and s1 also where all points
 * have as many queries as keys. R_inf is at most @rate_max, the peak of what was measured or
 * INFINITY: times of a machine with other load may ask for more. False if fewer than two points are
 * to be fitted, or nothing fits them.
 */
bool lh_fit_rate(const LhRatePoint *points, size_t count, double rate_max, LhRateFit *fit,
                 LhResiduals *residuals);

/* One transfer. */
typedef struct {
    double bytes, seconds;
} LhTransferPoint;

/*
 * Fits seconds = alpha + bytes / bandwidth after Theil and Sen: the slope is the median of the
 * slopes of all pairs, each with the weight of its distance, alpha the median of what is left over
 * in the smaller half of the sizes. A wrong point or two among many do no harm, unless it is the
 * largest. False if fewer than two sizes differ or times do not grow with size.
 */
bool lh_fit_transfer(const LhTransferPoint *points, size_t count, double *alpha_s,
                     double *bytes_per_s, LhResiduals *residuals);

/* The median of @count > 0 values, which are put in order. */
double lh_median(double *values, size_t count);
