/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory a case needs, without simulating it: the peak of every pipeline stage by
 * category, and what each change of the case would save.
 */
#pragma once

#include "compare/memory_relief.h"

/* Peak of the rank of a stage that needs most; of an attention module, of all ranks. */
typedef struct {
    uint64_t stage, rank; /* rank: the first of the stage, or the module's with the highest peak */
    uint64_t peak_bytes;
    uint64_t by_category[LH_CATEGORIES];
    uint64_t host_bytes; /* peak of host memory; 0: nothing is offloaded */
} LhStageNeed;

typedef struct {
    GArray *stages;       /* of LhStageNeed */
    guint highest;        /* index of the stage with the highest peak */
    uint64_t limit_bytes; /* available to a rank; 0: no limit */
    LhHostMemory host;    /* of the node that needs most; 0 bytes: nothing is offloaded */
    LhReliefs *reliefs;   /* changes, whether the case fits or not; owned */
} LhMemoryNeed;

/* The need of @setup with its one schedule; with the changes unless @changes is false. NULL with
 * LH_ERROR_NO if the schedule refuses the case, or if @task (may be NULL) is interrupted. Caller
 * frees. */
LhMemoryNeed *lh_memory_need(const LhSetup *setup, bool changes, const LhTask *task,
                             GError **error);
/* Whether it fits, on the device and in host memory. */
bool lh_memory_need_fits(const LhMemoryNeed *need);
void lh_memory_need_free(LhMemoryNeed *need);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhMemoryNeed, lh_memory_need_free)
