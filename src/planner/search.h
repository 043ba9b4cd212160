/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fastest points of a space, without simulating them all. What a point takes at least is known
 * before (estimate.h); points are simulated in the order of that, in rounds of a fixed number, and
 * what takes longer at least than the last of those that are wanted takes in fact is never
 * simulated. So the answer is that of simulating every point, and neither it nor the rounds depend
 * on the number of threads, nor on that of processes.
 */
#pragma once

#include "planner/estimate.h"
#include "planner/plan_outcome.h"
#include "runtime/process/processes.h"

/* How many points are looked at in a round. */
#define LH_PLAN_ROUND 16
#define LH_PLAN_SIMULATED                                                                          \
    4 /* once there are as many as are wanted: each round lowers the cut of the next */

/* What a search tells beside how far it is (LhProgress.more). */
typedef struct {
    const LhPlanSpace *space;
    guint counts[LH_POINT_STATES];
    guint best; /* the fastest point so far; G_MAXUINT: none */
} LhPlanProgress;

/* What searches remember and tell; lines of a file are one use of it. */
typedef struct {
    /* Sets @outcome to what was found of the point before; false: nothing was. Only of estimates
     * that are close, and of what they came to. */
    bool (*recall)(void *data, const LhPlanSpace *space, guint index, LhPlanOutcome *outcome);
    /* Something was found, in an order that does not depend on threads. */
    void (*remember)(void *data, const LhPlanSpace *space, guint index,
                     const LhPlanOutcome *outcome);
    void *data;
} LhPlanMemory;

typedef struct {
    guint top;  /* how many of the fastest are wanted, at least 1 */
    bool front; /* also all that no other one beats in both time and memory */
    /* Jobs, 0: as the cores and the memory allow. Told of the cluster, the points of which
     * something is known of all, the fastest of them, and an
     * LhPlanProgress. */
    LhTask task;
    const LhPlanMemory *memory;   /* NULL: none; of several processes only the first may have one */
    const LhProcesses *processes; /* that search together, each of them here; NULL: this one */
} LhPlanSearchOptions;

typedef struct {
    const LhPlanSpace *space; /* borrowed */
    LhPlanOutcome *outcomes;  /* by point */
    guint counts[LH_POINT_STATES];
    uint64_t limit_bytes; /* what a rank may hold; 0: no limit, or no point got that far */
    GArray *ran;          /* of guint: points that ran, the fastest first */
    GArray *misses;       /* of guint: those unfit that need least, with their exact peaks */
    bool interrupted;
    GError *failure; /* of processes that search together: LH_ERROR_RUNTIME. Nothing else is to be
                        read then */
} LhPlanSearch;

LhPlanSearch *lh_plan_search(const LhPlanSpace *space, const LhPlanSearchOptions *options);
void lh_plan_search_free(LhPlanSearch *search);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhPlanSearch, lh_plan_search_free)

/* Threads for simulations of the space. */
guint lh_plan_threads(guint jobs, const LhPlanSpace *space);
