/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path of a run, op by op: which ops, messages and links made its time, by resource,
 * phase, rank and kind of call; how much slack the rest has; and what making one of them faster
 * saves, as the path predicts it and as playing the run again finds. Definitions:
 * docs/reference/model.md, "The critical path, op by op".
 */
#pragma once

#include "compare/bottleneck.h"
#include "compare/compare.h"
#include "scenario/setup_simulate.h"

/* How many of each the answer names at most. */
#define LH_CRITICAL_TOP 10

/* How far a prediction may be off before a reason is given, as a share of it. */
#define LH_CRITICAL_AGREES 0.05

/* Ops that do the same: one row of the answer. */
typedef struct {
    uint8_t kind;             /* LhOpKind: compute, exchange or collective */
    uint8_t phase;            /* LhPhase */
    uint8_t kernel;           /* compute: LhKernelId; collective: LhCollectiveKind; exchange: 0 */
    uint8_t tier;             /* exchange: the highest of its messages, LH_TIERS if it has none */
    uint32_t calls;           /* on all ranks */
    LhWide time_ps;           /* from their starts to their ends */
    LhTime path_ps;           /* of the critical path: kernels, messages that they send */
    uint32_t path_calls;      /* that have a part in it */
    uint32_t critical;        /* calls without slack */
    LhTime least_ps, most_ps; /* slack of the others; 0 if there are none */
} LhCallGroup;

/* What a saving that was predicted turned out to be. */
typedef enum {
    LH_SAVING_AGREES,
    /* Another chain is the longest one then: it follows from what waits for what. */
    LH_SAVING_OTHER_PATH,
    /* Others that share links or SMs with it take another time then. */
    LH_SAVING_CONTENTION,
} LhSavingState;

/* "agrees", "another path takes over", "contention"; NULL-terminated. */
extern const char *const lh_saving_names[];

/* A group of calls, or one op, that is LH_WHAT_IF_FACTOR times as fast. */
typedef struct {
    uint32_t group;              /* of LhCritical.groups */
    uint32_t rank, op;           /* of one op; of a group LH_OP_NONE both */
    uint16_t layer, micro_batch; /* of one op */
    LhTime path_ps;              /* of the critical path */
    LhTime predicted_ps;         /* saved, if nothing else takes over */
    LhTime saved_ps;             /* by playing the run again; < 0: it is slower */
    uint8_t state;               /* LhSavingState */
} LhSpeedUp;

typedef struct {
    LhTime makespan_ps;
    bool played;                 /* each speed-up; else saved_ps and state are not set */
    GArray *resources;           /* of LhPathShare */
    LhTime phases_ps[LH_PHASES]; /* of the path */
    GArray *ranks_ps;            /* of LhTime: of the path, by rank; of messages the sender's */
    GArray *groups;              /* of LhCallGroup, those with most of the path first */
    /* Of LhSpeedUp, at most LH_CRITICAL_TOP of each: the greatest saving first, or else those with
     * most of the path. */
    GArray *by_group, *by_op;
} LhCritical;

/* What is known of a run's path. All borrowed. */
typedef struct {
    const LhSetup *setup;
    const LhProgram *program;
    LhTime makespan_ps;
    GArray *path; /* of LhPathStep, end to end from 0 to the makespan */
    const LhSlackGraph *precedence;
} LhCriticalOf;

/* The hooks with which a row has to be played for lh_critical_find. */
static inline void
lh_critical_hooks(LhHooks *hooks)
{
    hooks->path = true;
    hooks->precedence = true;
}

/* Of a row that ran so; @task (may be NULL) is told of the runs that are played again, one after
 * the other. LH_ERROR_RUNTIME if one of them fails or is interrupted. Caller frees. */
LhCritical *lh_critical_find(const LhSetup *setup, const LhCompareRow *row, const LhTask *task,
                             GError **error);

/* The same of a run that cannot be played again: no saving is known. Caller frees. */
LhCritical *lh_critical_sum(const LhCriticalOf *of);
void lh_critical_free(LhCritical *critical);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhCritical, lh_critical_free)

/* "attention_fwd", "all-gather", "message over nic"; caller frees. */
char *lh_call_group_name(const LhCallGroup *group);
