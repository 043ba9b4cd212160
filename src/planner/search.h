/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the fastest points of a space by branch and bound. Lower bounds of all points are computed
 * first (estimate.h); points are simulated in the order of their bounds, in rounds of a fixed size.
 * A point whose lower bound exceeds the k-th best simulated time is never simulated. The answer
 * equals that of simulating every point; neither it nor the rounds depend on the number of threads
 * or processes.
 */
#pragma once

#include "planner/estimate.h"
#include "planner/plan_outcome.h"
#include "runtime/process/processes.h"

/* Points per round, and points simulated per round: at first, so that there is soon an answer; once
 * k have been simulated, when each round tightens the next one's cutoff. */
#define LH_PLAN_ROUND 16
#define LH_PLAN_FIRST 2
#define LH_PLAN_SIMULATED 4

/* Progress of a search (LhProgress.more). */
typedef struct {
    const LhPlanSpace *space;
    guint counts[LH_POINT_STATES];
    guint best; /* the fastest point so far; G_MAXUINT: none */
} LhPlanProgress;

/* Memory of a search, for resuming; a log file is one implementation. */
typedef struct {
    /* Sets @outcome to the recorded outcome of the point; false: none. Only close estimates and
     * simulations are recorded. */
    bool (*recall)(void *data, const LhPlanSpace *space, guint index, LhPlanOutcome *outcome);
    /* Records an outcome; the order of calls does not depend on threads. */
    void (*remember)(void *data, const LhPlanSpace *space, guint index,
                     const LhPlanOutcome *outcome);
    void *data;
} LhPlanMemory;

typedef struct {
    guint top;  /* number of fastest points wanted, at least 1 */
    bool front; /* also the Pareto front of time and memory */
    /* Jobs 0: as cores and memory allow. Progress reports the cluster, the number of evaluated
     * points of all, the fastest one, and an LhPlanProgress. */
    LhTask task;
    /* NULL: none; with several processes only the first may have one. */
    const LhPlanMemory *memory;
    /* Processes that search together, each of which calls this; NULL: a single process. */
    const LhProcesses *processes;
} LhPlanSearchOptions;

typedef struct {
    const LhPlanSpace *space; /* borrowed */
    LhPlanOutcome *outcomes;  /* by point */
    guint counts[LH_POINT_STATES];
    uint64_t limit_bytes; /* memory limit of a rank; 0: no limit, or no point got that far */
    GArray *ran;          /* of guint: simulated points, fastest first */
    /* Of guint: points that do not fit and need least memory, with their exact peaks. */
    GArray *misses;
    bool interrupted;
    /* With several processes: LH_ERROR_RUNTIME; the other members are then invalid. */
    GError *failure;
} LhPlanSearch;

LhPlanSearch *lh_plan_search(const LhPlanSpace *space, const LhPlanSearchOptions *options);
void lh_plan_search_free(LhPlanSearch *search);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhPlanSearch, lh_plan_search_free)

/* Whether nothing fits, but something may with other types of the optimizer's states. */
bool lh_plan_search_needs_types(const LhPlanSearch *search);

/* Threads for simulations in the space. */
guint lh_plan_threads(guint jobs, const LhPlanSpace *space);
