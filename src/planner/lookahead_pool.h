/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that take turns at the points of a search, round by round. Who has nothing to do in a
 * round while others are still at it works ahead, at points that are likely to come next. What
 * comes of a point does not depend on whether it was looked at ahead, and when.
 */
#pragma once

#include "planner/search.h"

/* A thread's look at a point. */
typedef struct {
    guint point;
    LhPlanOutcome outcome; /* as it was known before; the thread changes it */
    /* A simulation that takes longer is given up: lh_lookahead_limit(). It may get lower meanwhile.
     */
    _Atomic LhTime limit_ps;
    /* What follows is not the thread's. */
    LhTime cut_ps, overhead_ps; /* of which the limit is made */
    bool ahead, wanted;         /* begun before its round; which has come */
    bool done;
} LhLookahead;

typedef struct _LhLookaheadPool LhLookaheadPool;

/* @take is called from up to @threads threads at once. With one of them, that is the caller's.
 * Caller frees. */
LhLookaheadPool *lh_lookahead_pool_new(guint threads, void (*take)(void *data, LhLookahead *turn),
                                       void *data);

/* Gives up what is still looked at ahead, and waits for the threads. */
void lh_lookahead_pool_free(LhLookaheadPool *turns);

/* A round. */
typedef struct {
    const guint *points;        /* by place */
    const GArray *places;       /* of guint: those to look at */
    LhPlanOutcome *found;       /* by place: what is known, and then what has come of it */
    LhTime cut_ps;              /* a step that takes longer is not wanted */
    const GArray *next;         /* of guint: points to work ahead at, in this order; NULL: none */
    const LhPlanOutcome *known; /* by point */
} LhLookaheadRound;

/* Returns when all of the round have been looked at. */
void lh_lookahead_pool_take(LhLookaheadPool *turns, const LhLookaheadRound *round);

/* Sets the limit of a simulation of the turn's point, whose steps take so much longer than it, and
 * returns it. */
const _Atomic LhTime *lh_lookahead_limit(LhLookaheadPool *turns, LhLookahead *turn,
                                         LhTime overhead_ps);
