/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the threads of a search share.
 */
#pragma once

#include "planner/lookahead_pool.h"
#include "planner/search.h"

#include <pthread.h>
#include <stdatomic.h>

/* What the threads of a search share. */
typedef struct {
    LhPlanSearch *search;
    const LhPlanSearchOptions *options;
    guint threads;
    _Atomic LhTime cut_ps; /* what is not faster than this is not wanted */
    /* Open points in the order of their bounds: those without close estimates, of which the ones
     * before `queue_at` are done with, and those with. */
    GArray *queue, *close;
    guint queue_at;
    const guint *round; /* points */
    LhLookaheadPool *turns;
    pthread_mutex_t lock; /* for what follows */
    LhPlanProgress more;
    LhProgress progress;
    atomic_bool interrupted;
} LhSearchPool;

/* Of point @index. */
LhPlanOutcome *lh_search_outcome(const LhSearchPool *pool, guint index);

/* Tells how far it is; false ends the search. */
bool lh_search_report(LhSearchPool *pool);

/* What this process found at @told, to all, and what they found here. False ends the search. */
bool lh_search_share(LhSearchPool *pool, LhPlanOutcome *outcomes, guint turns, const GArray *told);
