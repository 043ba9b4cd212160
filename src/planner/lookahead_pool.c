/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A speculative run starts with the current cutoff and receives later ones, but never a tighter one
 * than its own round's. So it runs far enough; a result beyond its round's cutoff is pruned
 * afterwards.
 */
#include "planner/lookahead_pool.h"

#include <pthread.h>
#include <stdatomic.h>

struct _LhLookaheadPool {
    void (*take)(void *data, LhLookahead *turn);
    void *data;
    GPtrArray *threads; /* of GThread *; empty: the caller's thread works */
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    GHashTable *turns; /* of LhLookahead *, owned, by point: of this round and of later ones */
    GQueue own;        /* of LhLookahead *: of this round, waiting */
    const LhLookaheadRound *round; /* NULL: between rounds */
    guint ahead;                   /* index of the round's next speculative point */
    LhTime cut_ps;                 /* cutoff of the last round */
    bool over;
};

static void
turn_free(gpointer data)
{
    LhLookahead *turn = data;

    g_free(turn->outcome.reason);
    g_free(turn);
}

/* ---- cutoffs ---- */

static LhTime
turn_limit(const LhLookahead *turn)
{
    return turn->cut_ps == LH_TIME_NEVER ? LH_TIME_NEVER : turn->cut_ps - turn->overhead_ps;
}

const _Atomic LhTime *
lh_lookahead_limit(LhLookaheadPool *t, LhLookahead *turn, LhTime overhead_ps)
{
    pthread_mutex_lock(&t->lock);
    turn->overhead_ps = overhead_ps;
    atomic_store(&turn->limit_ps, turn_limit(turn));
    pthread_mutex_unlock(&t->lock);
    return &turn->limit_ps;
}

/* Sets the cutoff of all evaluations in progress. */
static void
set_turn_cuts(const LhLookaheadPool *t, LhTime cut_ps)
{
    GHashTableIter iter;
    gpointer turn;

    g_hash_table_iter_init(&iter, t->turns);
    while (g_hash_table_iter_next(&iter, NULL, &turn)) {
        ((LhLookahead *)turn)->cut_ps = cut_ps;
        atomic_store(&((LhLookahead *)turn)->limit_ps, turn_limit(turn));
    }
}

/* ---- assigning work ---- */

static LhLookahead *
add_turn(LhLookaheadPool *t, guint point, const LhPlanOutcome *known)
{
    LhLookahead *turn = g_new0(LhLookahead, 1);

    turn->point = point;
    turn->outcome = *known;
    turn->outcome.reason = g_strdup(known->reason);
    turn->cut_ps = t->cut_ps;
    turn->limit_ps = t->cut_ps;
    g_hash_table_insert(t->turns, GUINT_TO_POINTER(point), turn);
    return turn;
}

static bool
is_known(const LhLookaheadPool *t, guint point)
{
    return g_hash_table_contains(t->turns, GUINT_TO_POINTER(point));
}

/* Starts a speculative evaluation while others finish the round. */
static LhLookahead *
look_ahead(LhLookaheadPool *t)
{
    const LhLookaheadRound *round = t->round;

    while (round != NULL && round->next != NULL && t->ahead < round->next->len) {
        const guint point = g_array_index(round->next, guint, t->ahead++);
        LhLookahead *turn;

        if (is_known(t, point))
            continue;
        turn = add_turn(t, point, &round->known[point]);
        turn->ahead = true;
        return turn;
    }
    return NULL;
}

/* Whether the result is valid under a lower cutoff. A failure is not: it may come before or after
 * the cutoff. */
static bool
outlives_cut(const LhLookahead *turn)
{
    return !turn->ahead || turn->outcome.state == LH_POINT_RAN ||
           turn->outcome.state == LH_POINT_CUT;
}

/* Repeats the evaluation in its own round. */
static void
take_back_turn(LhLookaheadPool *t, LhLookahead *turn)
{
    turn->ahead = false;
    turn->outcome.state = LH_POINT_OPEN;
    g_clear_pointer(&turn->outcome.reason, g_free);
    if (turn->wanted)
        g_queue_push_tail(&t->own, turn);
    else
        g_hash_table_remove(t->turns, GUINT_TO_POINTER(turn->point));
}

/* Called with the lock held; releases it during the evaluation. */
static void
look(LhLookaheadPool *t, LhLookahead *turn)
{
    pthread_mutex_unlock(&t->lock);
    t->take(t->data, turn);
    pthread_mutex_lock(&t->lock);
    turn->done = outlives_cut(turn);
    if (!turn->done)
        take_back_turn(t, turn);
    pthread_cond_signal(&t->done);
}

static gpointer
work_turns(gpointer data)
{
    LhLookaheadPool *t = data;

    pthread_mutex_lock(&t->lock);
    while (!t->over) {
        LhLookahead *turn = g_queue_pop_head(&t->own);

        if (turn == NULL)
            turn = look_ahead(t);
        if (turn != NULL)
            look(t, turn);
        else
            pthread_cond_wait(&t->work, &t->lock);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

LhLookaheadPool *
lh_lookahead_pool_new(guint threads, void (*take)(void *data, LhLookahead *turn), void *data)
{
    LhLookaheadPool *t = g_new0(LhLookaheadPool, 1);

    t->take = take;
    t->data = data;
    t->threads = g_ptr_array_new();
    t->turns = g_hash_table_new_full(NULL, NULL, NULL, turn_free);
    t->cut_ps = LH_TIME_NEVER;
    g_queue_init(&t->own);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->work, NULL);
    pthread_cond_init(&t->done, NULL);
    for (guint i = 0; threads > 1 && i < threads; i++)
        g_ptr_array_add(t->threads, g_thread_new("plan", work_turns, t));
    return t;
}

void
lh_lookahead_pool_free(LhLookaheadPool *t)
{
    pthread_mutex_lock(&t->lock);
    t->over = true;
    set_turn_cuts(t, 0);
    pthread_cond_broadcast(&t->work);
    pthread_mutex_unlock(&t->lock);
    for (guint i = 0; i < t->threads->len; i++)
        g_thread_join(g_ptr_array_index(t->threads, i));
    g_ptr_array_unref(t->threads);
    g_hash_table_unref(t->turns);
    g_queue_clear(&t->own);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->work);
    pthread_cond_destroy(&t->done);
    g_free(t);
}

/* ---- rounds ---- */

static LhLookahead *
turn_of(const LhLookaheadPool *t, const LhLookaheadRound *round, guint index)
{
    const guint place = g_array_index(round->places, guint, index);

    return g_hash_table_lookup(t->turns, GUINT_TO_POINTER(round->points[place]));
}

static void
begin(LhLookaheadPool *t, const LhLookaheadRound *round)
{
    for (guint i = 0; i < round->places->len; i++) {
        const guint place = g_array_index(round->places, guint, i);
        LhLookahead *turn = turn_of(t, round, i);

        if (turn == NULL) {
            turn = add_turn(t, round->points[place], &round->found[place]);
            g_queue_push_tail(&t->own, turn);
        }
        turn->wanted = true;
    }
}

static bool
all_done(const LhLookaheadPool *t, const LhLookaheadRound *round)
{
    for (guint i = 0; i < round->places->len; i++) {
        if (!turn_of(t, round, i)->done)
            return false;
    }
    return true;
}

/* Prunes a speculative result that is beyond its round's cutoff. */
static LhPlanOutcome
outcome_within(LhLookahead *turn, LhTime cut_ps)
{
    LhPlanOutcome outcome = turn->outcome;

    turn->outcome.reason = NULL;
    if (outcome.state == LH_POINT_RAN && outcome.time_ps > cut_ps) {
        outcome = (LhPlanOutcome){ .state = LH_POINT_CUT,
                                   .close = outcome.close,
                                   .peak_bytes = outcome.peak_bytes,
                                   .remedies = outcome.remedies };
    }
    if (outcome.state == LH_POINT_CUT && outcome.close)
        outcome.time_ps = cut_ps;
    return outcome;
}

static void
finish_round(LhLookaheadPool *t, const LhLookaheadRound *round)
{
    for (guint i = 0; i < round->places->len; i++) {
        const guint place = g_array_index(round->places, guint, i);

        g_free(round->found[place].reason);
        round->found[place] = outcome_within(turn_of(t, round, i), round->cut_ps);
        g_hash_table_remove(t->turns, GUINT_TO_POINTER(round->points[place]));
    }
}

void
lh_lookahead_pool_take(LhLookaheadPool *t, const LhLookaheadRound *round)
{
    LhLookahead *turn;

    pthread_mutex_lock(&t->lock);
    t->cut_ps = round->cut_ps;
    set_turn_cuts(t, round->cut_ps);
    begin(t, round);
    t->round = round;
    t->ahead = 0;
    pthread_cond_broadcast(&t->work);
    while (t->threads->len == 0 && (turn = g_queue_pop_head(&t->own)) != NULL)
        look(t, turn);
    while (!all_done(t, round))
        pthread_cond_wait(&t->done, &t->lock);
    t->round = NULL;
    finish_round(t, round);
    pthread_mutex_unlock(&t->lock);
}
