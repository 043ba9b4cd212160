/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State shared by the threads of a search.
 */
#pragma once

#include "planner/estimate_all.h"
#include "planner/lookahead_pool.h"
#include "planner/search.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct {
    LhPlanSearch *search;
    const LhPlanSearchOptions *options;
    guint threads;
    _Atomic LhTime cut_ps;      /* the cutoff: only faster points are wanted */
    LhPlanEstimateTable *table; /* parts of all estimates */
    /* Open points in the order of their bounds: `queue` with quick estimates (those before
     * `queue_at` have gone), `refined` with exchanges as well, `close` with close estimates. */
    GArray *queue, *refined, *close;
    guint queue_at;
    const guint *round; /* points of the current round */
    LhLookaheadPool *turns;
    pthread_mutex_t lock; /* guards the members below */
    LhPlanProgress more;
    LhProgress progress;
    atomic_bool interrupted;
} LhSearchPool;

/* The outcome of point @index. */
LhPlanOutcome *lh_search_outcome(const LhSearchPool *pool, guint index);

/* Reports progress; false ends the search. */
bool lh_search_report(LhSearchPool *pool);

/* Sends this process's outcomes at @told to all, and receives theirs. False ends the search. */
bool lh_search_share(LhSearchPool *pool, LhPlanOutcome *outcomes, guint turns, const GArray *told);
