/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread pool that evaluates the points of a search, round by round. Threads that are idle at the
 * end of a round evaluate points that are likely to come next (speculation). The outcome of a point
 * does not depend on whether or when it was evaluated speculatively.
 */
#pragma once

#include "planner/search.h"

/* A thread's evaluation of a point. */
typedef struct {
    guint point;
    LhPlanOutcome outcome; /* initially as known before; the thread updates it */
    /* Cutoff of the simulation, from lh_lookahead_limit(). It may decrease during the run. */
    _Atomic LhTime limit_ps;
    /* Private to the pool. */
    LhTime cut_ps, overhead_ps; /* the limit is cut_ps - overhead_ps */
    bool ahead, wanted;         /* started before its round; its round has come */
    bool done;
} LhLookahead;

typedef struct _LhLookaheadPool LhLookaheadPool;

/* Calls @take from up to @threads threads at once; with 1, from the caller's. Caller frees. */
LhLookaheadPool *lh_lookahead_pool_new(guint threads, void (*take)(void *data, LhLookahead *turn),
                                       void *data);

/* Aborts speculative evaluations, and joins the threads. */
void lh_lookahead_pool_free(LhLookaheadPool *turns);

/* A round. */
typedef struct {
    const guint *points;        /* by place in the round */
    const GArray *places;       /* of guint: places to evaluate */
    LhPlanOutcome *found;       /* by place: first what is known, then the outcomes */
    LhTime cut_ps;              /* cutoff: slower steps are not wanted */
    const GArray *next;         /* of guint: points to speculate on, in this order; NULL: none */
    const LhPlanOutcome *known; /* by point */
} LhLookaheadRound;

/* Evaluates the round; returns when all its places are done. */
void lh_lookahead_pool_take(LhLookaheadPool *turns, const LhLookaheadRound *round);

/* Sets and returns the cutoff for simulating the turn's point; a step takes @overhead_ps longer
 * than its simulation. */
const _Atomic LhTime *lh_lookahead_limit(LhLookaheadPool *turns, LhLookahead *turn,
                                         LhTime overhead_ps);
