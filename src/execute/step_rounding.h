/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounding errors of executed steps: as expected by a formula, and as measured by repeating the
 * reference's step with every stored number moved by its rounding error.
 */
#pragma once

#include "execute/step_numerics.h"
#include "reference/tolerance.h"

#include <math.h>

#define LH_FP32_ROUNDOFF 0x1p-24

double lh_step_roundoff(LhDtype dtype);

/*
 * Expected rounding error of a tensor, relative to its size, that has passed @roundings: numbers
 * are rounded to the storage type in sequence, with unit roundoff u, and summed in fp32, where the
 * error of a sum of K terms is at most sqrt(K) / 2 unit roundoffs.
 */
double lh_step_rounding(const LhStepNumerics *numerics, uint32_t roundings);

/*
 * The formula holds where rounding errors of many numbers average out. In a narrow model they do
 * not: a short row may nearly cancel out in a sum, and a norm then enlarges it together with its
 * error; a query that sees one key has a gradient of exactly zero, which is computed as a
 * difference of rounded numbers. In that case the effect of rounding on this very step is measured:
 * the reference repeats the step with noise, LH_DISTURBED_STEPS times. The unit is the larger of
 * formula and measurement.
 */
#define LH_DISTURBED_STEPS 16
LhModelNoise lh_step_rounding_noise(const LhStepNumerics *numerics, uint64_t seed);

/* Effect of rounding on a quantity over the disturbed steps: sums of the squared errors and of
 * their squares. */
typedef struct {
    double error2, error4;
} LhSpread;

void lh_step_spread_add(LhSpread *spread, double error2);
/* The squared error that one step in 10^6 exceeds. */
double lh_step_spread_bound2(const LhSpread *spread);

/* Sum of squared differences. */
double lh_step_distance2(const double *a, const double *b, uint64_t count);

/* Adds a row, and whether it is within the gates. */
void lh_step_add_error(LhErrorReport *report, LhErrorRow row);

/* The larger error; NaN counts as largest. */
static inline double
lh_step_worse(double a, double b)
{
    return isnan(a) || a > b ? a : b;
}

/* Error relative to a size, from their squares. */
static inline double
lh_step_quotient(double error2, double of2)
{
    return error2 > 0 || isnan(error2) ? sqrt(error2 / of2) : 0;
}
