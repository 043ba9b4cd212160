/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes that make a case fit in memory: the case's neighbours in every dimension that affects
 * memory, each with its peak.
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
    LH_RELIEF_LOSS, /* another loss, or the same in chunks */
    LH_RELIEF_TILES,
    LH_RELIEF_MODULES, /* recomputed */
    LH_RELIEF_OFFLOAD,
    LH_RELIEF_TYPES, /* of the optimizer's states */
    LH_RELIEF_BOTH,  /* maximum recomputation and sharding */
    LH_RELIEF_ALL,   /* and the loss in chunks */
    LH_RELIEF_GPUS,
    LH_RELIEF_KINDS
} LhReliefKind;

typedef struct {
    LhReliefKind kind;
    char *options; /* owned: "--tensor-model-parallel-size 2", in addition to the case's options */
    uint64_t peak_bytes;
    bool fits;
} LhRelief;

typedef struct {
    uint64_t peak_bytes, limit_bytes; /* of the original case */
    int category;                     /* largest category of the peak */
    uint64_t category_bytes;
    GPtrArray *tried;        /* of LhRelief *: grouped by kind, smallest change first */
    uint64_t fitting_length; /* if none of them fits: a fraction of the sequence length that does;
                                0: none */
} LhReliefs;

/*
 * Tries changes to the scenario of @setup with @schedule, which does not fit: same sequences per
 * step, as many GPUs or more. Runs on this thread. NULL if the case has no program or fits, or if
 * @task (may be NULL) is interrupted. Caller frees.
 */
LhReliefs *lh_reliefs(const LhSetup *setup, const LhSchedule *schedule, const LhTask *task);

/* The same of the one schedule of @setup, also if it fits. NULL if the case has no program or no
 * limit, or if interrupted. */
LhReliefs *lh_reliefs_for(const LhSetup *setup, const LhTask *task);

/* As lh_reliefs() for @scenario, which gives all sizes. */
LhReliefs *lh_reliefs_of(const LhScenario *scenario, const LhTask *task);
void lh_reliefs_free(LhReliefs *reliefs);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhReliefs, lh_reliefs_free)

/* The first of each kind that fits, at most @most; if none fits, those with the smallest peaks.
 * Caller unrefs; of borrowed LhRelief *. */
GPtrArray *lh_reliefs_best(const LhReliefs *reliefs, guint most);
