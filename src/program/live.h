/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of a rank's slots is there at a time. Verifier, simulator and runtime count by it, so
 * that a peak means the same to all of them: in program order, as the host allocates and frees.
 */
#pragma once

#include "program/program.h"

typedef struct {
    uint64_t bytes, peak_bytes;
    uint64_t by_tensor[LH_TENSOR_KINDS], by_category[LH_CATEGORIES];
    uint64_t peak_by_tensor[LH_TENSOR_KINDS], peak_by_category[LH_CATEGORIES]; /* at the peak */
    uint64_t most_saved; /* the most of LH_CATEGORY_SAVED, at a peak or not */
} LhLive;

/* What is there on @rank before the first op: inputs, outputs and states. */
void lh_live_init(LhLive *live, const LhProgram *program, uint32_t rank);

/* A region comes (@alloc) or goes. True if there has never been as much. */
bool lh_live_change(LhLive *live, const LhProgram *program, LhRegion region, bool alloc);

/* What @rank holds in the course of the whole program, by a walk over its allocs and frees alone.
 */
void lh_live_walk(LhLive *live, const LhProgram *program, uint32_t rank);
