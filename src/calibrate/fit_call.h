/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Curves through timed calls of attention, so that the simulator makes of each call what it took:
 * what a curve means on a device, tiles on SMs or a rate over the length, is the simulator's own
 * reading of it.
 */
#pragma once

#include "measure/fit.h"
#include "sim/cost/device.h"

/* Of an interval, what a step of a golden-section search leaves. */
#define LH_GOLDEN 0.6180339887498949

/* One timed call. */
typedef struct {
    LhKernelArgs args;
    double seconds;
    bool holdout; /* not fitted, only judged */
} LhCallPoint;

/*
 * The rate and the half length that make the sum of squared relative residuals least. False if
 * fewer than two points are to be fitted.
 */
bool lh_fit_calls(const LhDevice *device, LhKernelId kernel, const LhCallPoint *points,
                  size_t count, LhKernelRate *curve, LhResiduals *residuals);
