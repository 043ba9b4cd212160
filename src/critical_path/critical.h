/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path of a run, op by op: the time of ops, messages and links on it, by resource,
 * phase, rank and kind of call; the slack of other ops; and the savings of faster calls and ops, as
 * predicted by the path and as simulated. Definitions: docs/reference/model.md, "The critical path,
 * op by op".
 */
#pragma once

#include "compare/bottleneck.h"
#include "compare/compare.h"
#include "scenario/setup_simulate.h"

/* Maximum number of entries of each kind. */
#define LH_CRITICAL_TOP 10

/* Largest relative difference between predicted and simulated saving that needs no explanation. */
#define LH_CRITICAL_AGREES 0.05

/* A group of equal ops: one row. */
typedef struct {
    uint8_t kind;        /* LhOpKind: compute, exchange or collective */
    uint8_t phase;       /* LhPhase */
    uint8_t kernel;      /* compute: LhKernelId; collective: LhCollectiveKind; exchange: 0 */
    uint8_t tier;        /* exchange: the highest tier of its messages, LH_TIERS without messages */
    uint32_t calls;      /* on all ranks */
    LhWide time_ps;      /* sum of their durations */
    LhTime path_ps;      /* time on the critical path: kernels, and messages that they send */
    uint32_t path_calls; /* calls with time on the path */
    uint32_t critical;   /* calls without slack */
    LhTime least_ps, most_ps; /* slack of the others; 0 if there are none */
} LhCallGroup;

/* Comparison of a predicted with a simulated saving. */
typedef enum {
    LH_SAVING_AGREES,
    /* Another chain becomes the longest, as the dependencies predict. */
    LH_SAVING_OTHER_PATH,
    /* Others that share links or SMs with it take a different time. */
    LH_SAVING_CONTENTION,
} LhSavingState;

/* "agrees", "another path takes over", "contention"; NULL-terminated. */
extern const char *const lh_saving_names[];

/* A group of calls, or one op, sped up by LH_WHAT_IF_FACTOR; of a collective all members of one
 * call, of which the first with time on the path is named. */
typedef struct {
    uint32_t group;              /* of LhCritical.groups */
    uint32_t rank, op;           /* of one op; LH_OP_NONE for a group */
    uint16_t layer, micro_batch; /* of one op */
    LhTime path_ps;              /* time on the critical path, of all of them */
    LhTime predicted_ps;         /* predicted saving, unless another path takes over */
    LhTime saved_ps;             /* simulated saving; negative: slower */
    uint8_t state;               /* LhSavingState */
} LhSpeedUp;

typedef struct {
    LhTime makespan_ps;
    bool played;                 /* speed-ups were simulated; else saved_ps and state are not set */
    GArray *resources;           /* of LhPathShare */
    LhTime phases_ps[LH_PHASES]; /* of the path */
    GArray *ranks_ps; /* of LhTime: time on the path by rank; messages count for the sender */
    GArray *groups;   /* of LhCallGroup, those with most time on the path first */
    /* Of LhSpeedUp, at most LH_CRITICAL_TOP each: largest saving first or, without simulation,
     * those with most time on the path first. */
    GArray *by_group, *by_op;
} LhCritical;

/* Critical path of a run. All borrowed. */
typedef struct {
    const LhSetup *setup;
    const LhProgram *program;
    LhTime makespan_ps;
    GArray *path; /* of LhPathStep, contiguous from 0 to the makespan */
    const LhSlackGraph *precedence;
} LhCriticalOf;

/* Sets the hooks that a run needs for lh_critical_find(). */
static inline void
lh_critical_hooks(LhHooks *hooks)
{
    hooks->path = true;
    hooks->precedence = true;
}

/* Analyses a row that ran with these hooks. @task (may be NULL) has the number of threads for the
 * simulations, which the answer does not depend on, and receives their progress. LH_ERROR_RUNTIME
 * if one of them fails or is interrupted. Caller frees. */
LhCritical *lh_critical_find(const LhSetup *setup, const LhCompareRow *row, const LhTask *task,
                             GError **error);

/* The same for a run that cannot be simulated again: without savings. Caller frees. */
LhCritical *lh_critical_sum(const LhCriticalOf *of);
void lh_critical_free(LhCritical *critical);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhCritical, lh_critical_free)

/* "attention_fwd", "all-gather", "message over nic"; caller frees. */
char *lh_call_group_name(const LhCallGroup *group);
