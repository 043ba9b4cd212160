/* SPDX-License-Identifier: Apache-2.0 */
#include "planner/search_rounds.h"

#include "base/threads.h"
#include "planner/distributed_search.h"
#include "planner/lookahead_pool.h"
#include "planner/pareto_front.h"
#include "planner/search.h"

#include <pthread.h>
#include <string.h>

static int
by_bound(gconstpointer a, gconstpointer b, gpointer data)
{
    const LhPlanOutcome *outcomes = data;
    const guint x = *(const guint *)a, y = *(const guint *)b;

    if (outcomes[x].time_ps != outcomes[y].time_ps)
        return outcomes[x].time_ps < outcomes[y].time_ps ? -1 : 1;
    return x < y ? -1 : x > y;
}

static bool
is_wanted(const LhSearchPool *pool, guint index)
{
    const LhPlanOutcome *outcome = lh_search_outcome(pool, index);

    return outcome->time_ps < pool->cut_ps ||
           (pool->options->front && !lh_plan_is_beaten(pool->search, index));
}

void
lh_search_fill_queue(LhSearchPool *pool, bool scouts)
{
    const LhPlanSpace *space = pool->search->space;

    g_array_remove_range(pool->queue, 0, MIN(pool->queue_at, pool->queue->len));
    pool->queue_at = 0;
    for (guint i = 0; i < space->points->len; i++) {
        if (lh_search_outcome(pool, i)->state == LH_POINT_OPEN &&
            lh_plan_is_scout(space, i) == scouts)
            g_array_append_val(pool->queue, i);
    }
    g_array_sort_with_data(pool->queue, by_bound, pool->search->outcomes);
}

static void
forget_unwanted(const LhSearchPool *pool, GArray *points)
{
    guint kept = 0;

    for (guint i = 0; i < points->len; i++) {
        const guint index = g_array_index(points, guint, i);

        if (is_wanted(pool, index))
            g_array_index(points, guint, kept++) = index;
    }
    g_array_set_size(points, kept);
}

/* Inserts after points that are equally fast. */
static void
insert(const LhPlanSearch *search, GArray *points, guint index)
{
    guint low = 0, high = points->len;

    while (low < high) {
        const guint middle = low + (high - low) / 2;

        if (by_bound(&g_array_index(points, guint, middle), &index, search->outcomes) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    g_array_insert_val(points, low, index);
}

/* ---- bounds with exchanges ---- */

/* Points refined at once: enough for all threads, few enough that nearly all are needed. */
#define REFINED_AT_ONCE 64

typedef struct {
    LhSearchPool *pool;
    guint points[REFINED_AT_ONCE], count;
    LhTime times_ps[REFINED_AT_ONCE];
} Refinement;

static void
refine_point(void *data, guint index)
{
    Refinement *r = data;

    if (lh_search_report(r->pool))
        r->times_ps[index] = lh_plan_estimate_table_refine(r->pool->table, r->points[index]);
}

/* Whether a point of the queue comes before the last of the next round. */
static bool
comes_soon(const LhSearchPool *pool, guint index)
{
    return pool->refined->len < LH_PLAN_ROUND ||
           by_bound(&index, &g_array_index(pool->refined, guint, LH_PLAN_ROUND - 1),
                    pool->search->outcomes) < 0;
}

/* Takes the next points of the queue that are wanted and come soon. A point that is not wanted
 * never will be again: cutoffs only fall and bounds only rise. */
static void
take_unrefined(LhSearchPool *pool, Refinement *r)
{
    r->count = 0;
    for (; pool->queue_at < pool->queue->len && r->count < REFINED_AT_ONCE; pool->queue_at++) {
        const guint index = g_array_index(pool->queue, guint, pool->queue_at);

        if (!comes_soon(pool, index))
            break;
        if (is_wanted(pool, index))
            r->points[r->count++] = index;
        else if (!pool->options->front) /* all later ones are not wanted either */
            g_array_set_size(pool->queue, pool->queue_at);
    }
}

/* Refines points until the first of `refined` are the first of all without close estimates; returns
 * how many of these make a round. */
static guint
refine_next(LhSearchPool *pool)
{
    Refinement r = { .pool = pool };

    forget_unwanted(pool, pool->refined);
    for (take_unrefined(pool, &r); r.count > 0 && !pool->interrupted; take_unrefined(pool, &r)) {
        memset(r.times_ps, 0, sizeof(r.times_ps));
        lh_on_threads_each("refine", pool->threads, r.count, refine_point, &r);
        for (guint i = 0; i < r.count; i++) {
            LhPlanOutcome *outcome = lh_search_outcome(pool, r.points[i]);

            outcome->time_ps = MAX(outcome->time_ps, r.times_ps[i]);
            if (is_wanted(pool, r.points[i]))
                insert(pool->search, pool->refined, r.points[i]);
        }
    }
    return MIN(pool->refined->len, LH_PLAN_ROUND);
}

/* Copies the first @count points. */
static GArray *
take_first(const GArray *points, guint count)
{
    GArray *taken = g_array_new(FALSE, FALSE, sizeof(guint));

    if (count > 0)
        g_array_append_vals(taken, points->data, count);
    return taken;
}

/*
 * Chooses the points of the next round. If the first wanted points all have close estimates, they
 * are simulated; else the first without one get theirs. Until `top` points are simulated, points
 * with close estimates are simulated at once, and few at first: there is soon an answer, and the
 * cutoff they give makes estimates cheaper.
 */
static GArray *
choose_round(LhSearchPool *pool)
{
    const guint top = pool->options->top, ran = pool->search->ran->len, others = refine_next(pool);
    GArray *close = pool->close, *round;
    guint first = 0, count;

    forget_unwanted(pool, close);
    while (first < close->len && (others == 0 || by_bound(&g_array_index(close, guint, first),
                                                          &g_array_index(pool->refined, guint, 0),
                                                          pool->search->outcomes) < 0))
        first++;
    if ((ran >= top || close->len == 0) && first < MIN(close->len + others, LH_PLAN_ROUND)) {
        round = take_first(pool->refined, others);
        g_array_remove_range(pool->refined, 0, others);
        return round;
    }
    count =
        ran >= top ? LH_PLAN_SIMULATED : MIN(top - ran, ran == 0 ? LH_PLAN_FIRST : LH_PLAN_ROUND);
    count = MIN(count, close->len);
    round = take_first(close, count);
    if (count > 0)
        g_array_remove_range(close, 0, count);
    return round;
}

static void
take_in(LhSearchPool *pool, guint index, const LhPlanOutcome *found)
{
    LhPlanSearch *search = pool->search;
    const LhPlanMemory *memory = pool->options->memory;
    LhPlanOutcome *outcome = lh_search_outcome(pool, index);

    pool->more.counts[outcome->state]--;
    pool->more.counts[found->state]++;
    *outcome = *found;
    g_array_index(search->space->points, LhPlanPoint, index).remedies = found->remedies;
    if (memory != NULL)
        memory->remember(memory->data, search->space, index, outcome);
    if (outcome->state == LH_POINT_RAN)
        insert(search, search->ran, index);
    else if (outcome->state == LH_POINT_OPEN)
        insert(search, pool->close, index);
}

/* Sets the cutoff to the k-th best time. */
static void
set_cut(LhSearchPool *pool)
{
    const LhPlanSearch *search = pool->search;
    const GArray *ran = search->ran;

    if (ran->len == 0)
        return;
    pool->more.best = g_array_index(ran, guint, 0);
    pool->progress.best_ps = search->outcomes[pool->more.best].time_ps;
    if (ran->len >= pool->options->top)
        pool->cut_ps = search->outcomes[g_array_index(ran, guint, pool->options->top - 1)].time_ps;
}

/* Whether the evaluation finished before the search was interrupted. */
static bool
is_done(const LhPlanOutcome *before, const LhPlanOutcome *found)
{
    return found->state != before->state || found->close != before->close;
}

/* Whether the memory has the point's final outcome. */
static bool
is_remembered(const LhSearchPool *pool, guint index)
{
    const LhPlanMemory *memory = pool->options->memory;
    LhPlanOutcome outcome = { .state = LH_POINT_OPEN, .close = true };

    if (memory == NULL || !memory->recall(memory->data, pool->search->space, index, &outcome))
        return false;
    g_free(outcome.reason);
    return outcome.state != LH_POINT_OPEN;
}

/* Places of the round whose outcome is not in the memory (of the first process). Caller unrefs. */
static GArray *
recall_round(LhSearchPool *pool, LhPlanOutcome *found, guint count)
{
    const LhPlanMemory *memory = pool->options->memory;
    GArray *open = g_array_new(FALSE, FALSE, sizeof(guint));
    g_autoptr(GArray) recalled = g_array_new(FALSE, FALSE, sizeof(guint));

    for (guint i = 0; memory != NULL && i < count; i++) {
        if (memory->recall(memory->data, pool->search->space, pool->round[i], &found[i]))
            g_array_append_val(recalled, i);
    }
    lh_search_share(pool, found, count, recalled);
    for (guint i = 0; i < count; i++) {
        if (!is_done(lh_search_outcome(pool, pool->round[i]), &found[i]))
            g_array_append_val(open, i);
    }
    return open;
}

/* Points with close estimates that are likely to be simulated next, in order; NULL where this is
 * unknown, or where other processes would need the outcomes. Caller unrefs. */
static GArray *
come_next(const LhSearchPool *pool)
{
    GArray *next;

    if (pool->options->processes != NULL || pool->options->front || pool->cut_ps == LH_TIME_NEVER)
        return NULL;
    next = g_array_new(FALSE, FALSE, sizeof(guint));
    for (guint i = 0; i < pool->close->len; i++) {
        const guint index = g_array_index(pool->close, guint, i);

        if (is_wanted(pool, index) && !is_remembered(pool, index))
            g_array_append_val(next, index);
    }
    return next;
}

static void
take_turns(LhSearchPool *pool, LhPlanOutcome *found, guint count)
{
    g_autoptr(GArray) open = recall_round(pool, found, count);
    g_autoptr(GArray) mine = lh_distributed_search(pool->options->processes, open->len);
    g_autoptr(GArray) next = come_next(pool);
    const LhLookaheadRound round = { .points = pool->round,
                                     .places = mine,
                                     .found = found,
                                     .cut_ps = pool->cut_ps,
                                     .next = next,
                                     .known = pool->search->outcomes };

    for (guint i = 0; i < mine->len; i++)
        g_array_index(mine, guint, i) = g_array_index(open, guint, g_array_index(mine, guint, i));
    if (pool->search->failure != NULL)
        return;
    lh_lookahead_pool_take(pool->turns, &round);
    lh_search_share(pool, found, count, mine);
}

static void
play_round(LhSearchPool *pool, const GArray *round)
{
    g_autofree LhPlanOutcome *found = g_new(LhPlanOutcome, round->len);
    bool whole = true; /* no interruption so far */

    pool->round = (const guint *)(void *)round->data;
    for (guint i = 0; i < round->len; i++)
        found[i] = *lh_search_outcome(pool, pool->round[i]);
    take_turns(pool, found, round->len);
    pthread_mutex_lock(&pool->lock);
    for (guint i = 0; i < round->len; i++) {
        whole = whole && is_done(lh_search_outcome(pool, pool->round[i]), &found[i]);
        if (whole)
            take_in(pool, pool->round[i], &found[i]);
        else
            g_free(found[i].reason);
    }
    set_cut(pool);
    pthread_mutex_unlock(&pool->lock);
}

bool
lh_search_next_round(LhSearchPool *pool)
{
    const LhTime cut_ps = pool->cut_ps;
    g_autoptr(GArray) round = NULL;

    round = choose_round(pool);
    if (pool->interrupted || round->len == 0)
        return false;
    if (pool->options->front) /* a slower point may need less memory */
        pool->cut_ps = LH_TIME_NEVER;
    play_round(pool, round);
    if (pool->options->front && pool->cut_ps == LH_TIME_NEVER)
        pool->cut_ps = cut_ps;
    return true;
}
