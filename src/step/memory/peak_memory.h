/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peak memory of a step.
 */
#pragma once

#include "step/step.h"

/* Exact peak memory of the rank of a pipeline stage that needs most, and its split by category. */
typedef struct {
    uint64_t bytes;
    uint64_t by_category[LH_CATEGORIES];
    uint64_t host_bytes; /* peak of host memory, which the others leave out */
} LhStepPeak;

/* Fills in @peaks, one for each stage of @program, which is a step's. */
void lh_step_stage_peaks(const LhProgram *program, LhStepPeak *peaks);

/* The largest of them, in bytes; fills in its split by category. */
uint64_t lh_step_peak(const LhProgram *program, uint64_t by_category[LH_CATEGORIES]);
