/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far off a predicted time may be: the error bar of a prediction.
 */
#pragma once

#include "scenario/setup.h"

/* What peaks of memory are off by where frameworks are known: of the peaks of
 * docs/results/accuracy.md that nothing was fitted to, four in five are within it. */
#define LH_MEMORY_ERROR 0.05

/* The error e of a peak of memory: four measured ones in five are between peak / (1 + e) and peak *
 * (1 + e). 0 where there is none: of attention alone, whose buffers are exact. */
double lh_memory_error(const LhSetup *setup);

/* What the time of a run goes to: links by tier, kernels (its own or those of a rank that it waits
 * for), hosts. Of each its share of the run times what its constants are good to. And how much
 * longer and shorter the run takes at both ends of what is assumed of its messages (time_range.h).
 */
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

/* The error of a time: it is between time / (1 + below) and time (1 + above). */
typedef struct {
    double below, above;
} LhTimeError;

LhErrorParts lh_error_parts(const LhSetup *setup, const LhSimResult *r);

/* What the difference of two times is good to, as a share of either; @b's is the longer one. */
double lh_error_between(const LhErrorParts *a, const LhErrorParts *b);

/* Which part makes most of that, LH_ERROR_SLOWER for both ends; LH_ERROR_PARTS: the model's own
 * error is all that there is. */
int lh_error_between_most(const LhErrorParts *a, const LhErrorParts *b);

/*
 * The error of the time of run @r, such that four measured times in five are within: what the
 * constants of kernels, links and hosts are good to, each weighed by its share of the run, and the
 * error of the model itself, added as squares. Their provenance, or the residuals of their fits,
 * say what they are good to: sim/cost/provenance.h.
 */
LhTimeError lh_time_error(const LhSetup *setup, const LhSimResult *r);
