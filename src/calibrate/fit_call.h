/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fits curves to timed calls of attention, so that the simulator reproduces the measured times. The
 * simulator's own cost model interprets the curve (tiles on SMs, or a rate that depends on the
 * length).
 */
#pragma once

#include "measure/fit.h"
#include "sim/cost/device.h"

/* Fraction of the interval that a step of a golden-section search keeps. */
#define LH_GOLDEN 0.6180339887498949

/* One timed call. */
typedef struct {
    LhKernelArgs args;
    double seconds;
    bool holdout; /* not fitted, only compared */
} LhCallPoint;

/*
 * Finds the rate and the half length that minimise the sum of squared relative residuals. False if
 * fewer than two points are to be fitted, or if a time is not above 0.
 */
bool lh_fit_calls(const LhDevice *device, LhKernelId kernel, const LhCallPoint *points,
                  size_t count, LhKernelRate *curve, LhResiduals *residuals);
