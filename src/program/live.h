/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live memory of a rank's slots. Verifier, simulator and runtime all count with it, so that peak
 * memory has one meaning: in program order, as the host allocates and frees. Device memory, but for
 * the two members that say otherwise.
 */
#pragma once

#include "program/program.h"

typedef struct {
    uint64_t bytes, peak_bytes;
    uint64_t by_tensor[LH_TENSOR_KINDS], by_category[LH_CATEGORIES];
    uint64_t peak_by_tensor[LH_TENSOR_KINDS], peak_by_category[LH_CATEGORIES]; /* at the peak */
    uint64_t host_bytes, host_peak_bytes; /* of slots in host memory, which the rest leaves out */
    uint64_t most_saved;                  /* peak of LH_CATEGORY_SAVED alone, wherever it occurs */
} LhLive;

/* Starts from the memory live on @rank before the first op: inputs, outputs and states. */
void lh_live_init(LhLive *live, const LhProgram *program, uint32_t rank);

/* Allocates (@alloc) or frees a region. Returns true if device memory reaches a new peak. */
bool lh_live_change(LhLive *live, const LhProgram *program, LhRegion region, bool alloc);

/* Computes the live memory of @rank over the whole program by walking its allocs and frees. */
void lh_live_walk(LhLive *live, const LhProgram *program, uint32_t rank);
