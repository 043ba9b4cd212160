/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error bar of a prediction.
 */
#pragma once

#include "scenario/setup.h"

/* Relative error of predicted memory peaks where the framework is known: four in five of the
 * held-out peaks of docs/results/accuracy.md are within it. */
#define LH_MEMORY_ERROR 0.05

/* The error e of a peak: four of five measured peaks are between peak / (1 + e) and peak * (1 + e).
 * 0 for attention alone, whose buffers are exact. */
double lh_memory_error(const LhSetup *setup);

/* Contributions to the error of a time. Links by tier, kernels (the rank's own, or those of a rank
 * it waits for), hosts: share of the run times x relative error of its constants. Last, how much
 * longer and shorter the run takes at both ends of what is assumed about its messages
 * (time_range.h). */
enum {
    LH_ERROR_KERNELS = LH_TIERS,
    LH_ERROR_HOST,
    LH_ERROR_SLOWER,
    LH_ERROR_FASTER,
    LH_ERROR_PARTS
};

typedef struct {
    double part[LH_ERROR_PARTS];
} LhErrorParts;

/* The error bar of a time: from time / (1 + below) to time (1 + above). */
typedef struct {
    double below, above;
} LhTimeError;

LhErrorParts lh_error_parts(const LhSetup *setup, const LhSimResult *r);

/* Error bar of the difference of two times, as a share of either; @b's time is the longer one. */
double lh_error_between(const LhErrorParts *a, const LhErrorParts *b);

/* The part with the largest contribution, LH_ERROR_SLOWER for both ends; LH_ERROR_PARTS: only the
 * model's own error contributes. */
int lh_error_between_most(const LhErrorParts *a, const LhErrorParts *b);

/*
 * Error bar of the time of run @r, which contains four of five measured times: the errors of the
 * constants of kernels, links and hosts, weighted by their share of the run, and the error of the
 * model itself, added as squares. Errors of constants follow from their provenance, or from the
 * residuals of their fits: sim/cost/provenance.h.
 */
LhTimeError lh_time_error(const LhSetup *setup, const LhSimResult *r);
