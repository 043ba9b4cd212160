/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What would help where nothing fits in memory: the neighbours of a case, in every dimension that
 * moves what its ranks hold, each with the peak that it has.
 */
#pragma once

#include "scenario/setup.h"
#include "scenario/setup_simulate.h"

typedef enum {
    LH_RELIEF_RECOMPUTE,
    LH_RELIEF_SHARD,
    LH_RELIEF_MICRO_BATCH,
    LH_RELIEF_TENSOR,
    LH_RELIEF_CONTEXT,
    LH_RELIEF_PIPELINE,
    LH_RELIEF_BOTH, /* recompute and shard as much as may be */
    LH_RELIEF_GPUS,
    LH_RELIEF_KINDS
} LhReliefKind;

typedef struct {
    LhReliefKind kind;
    char *options; /* owned: "--tensor-model-parallel-size 2": over those of the case */
    uint64_t peak_bytes;
    bool fits;
} LhRelief;

typedef struct {
    uint64_t peak_bytes, limit_bytes; /* of the case as it is */
    int category;                     /* what most of the peak is */
    uint64_t category_bytes;
    GPtrArray *tried; /* of LhRelief *: those of equal kinds beside each other, the least change
                         first */
    uint64_t fitting_length; /* if none of them fits: a part of the sequence that does; 0: none */
} LhReliefs;

/*
 * Of the scenario of @setup with @schedule, which does not fit: the same sequences in a step, on as
 * many GPUs or more, on this thread. NULL if it has no program, or fits, or @task (may be NULL) is
 * interrupted. Caller frees.
 */
LhReliefs *lh_reliefs(const LhSetup *setup, const LhSchedule *schedule, const LhTask *task);

/* Likewise of @scenario, of which all sizes are given. */
LhReliefs *lh_reliefs_of(const LhScenario *scenario, const LhTask *task);
void lh_reliefs_free(LhReliefs *reliefs);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhReliefs, lh_reliefs_free)

/* The first of each kind that fits, at most @most; if none fits, those that need least. Caller
 * unrefs; of borrowed LhRelief *. */
GPtrArray *lh_reliefs_best(const LhReliefs *reliefs, guint most);
