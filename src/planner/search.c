/*
 * Every point has its quick estimate first, with messages. Then, in rounds: the points whose bounds
 * are the lowest have their close estimates made, which may send them back in the order or find
 * that they do not fit; if all of them have these, they are simulated. Outcomes are taken in when a
 * round is over, in the order of the round.
 */
#include "planner/search.h"

#include "compare/compare_pool.h"
#include "compare/step_plan.h"
#include "compare/time_range.h"
#include "planner/distributed_search.h"
#include "planner/estimate_all.h"
#include "planner/lookahead_pool.h"
#include "scenario/setup_simulate.h"

#include <pthread.h>
#include <stdatomic.h>

#define MISSES 3

const char *const lh_point_state_names[] = { "open",    "simulated", "cut", "unfit",
                                             "refused", "failed",    NULL };

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
    LhPlanProgress progress;
    atomic_bool interrupted;
} SearchPool;

static LhPlanOutcome *
outcome_of(const SearchPool *pool, guint index)
{
    return &pool->search->outcomes[index];
}

/* Tells how far it is; false ends the search. */
static bool
report_search(SearchPool *pool)
{
    pthread_mutex_lock(&pool->lock);
    if (pool->options->progress != NULL && !pool->interrupted)
        pool->interrupted = !pool->options->progress(pool->options->progress_data, &pool->progress);
    pthread_mutex_unlock(&pool->lock);
    return !pool->interrupted;
}

/* ---- quick estimates ---- */

static bool
exceeds(uint64_t peak_bytes, uint64_t limit_bytes)
{
    return limit_bytes > 0 && peak_bytes > limit_bytes;
}

static bool
reports(void *data)
{
    return report_search(data);
}

static void
take_estimate(void *data, guint index, const LhPlanEstimate *estimate, const char *reason)
{
    SearchPool *pool = data;
    LhPlanOutcome *outcome = outcome_of(pool, index);

    if (estimate == NULL) {
        outcome->state = LH_POINT_REFUSED;
        outcome->reason = g_strdup(reason);
    } else {
        outcome->time_ps = estimate->time_ps;
        outcome->peak_bytes = estimate->peak_bytes;
        if (exceeds(estimate->peak_bytes, estimate->limit_bytes))
            outcome->state = LH_POINT_UNFIT;
    }
    pthread_mutex_lock(&pool->lock);
    pool->progress.estimated++;
    pool->progress.counts[outcome->state]++;
    if (estimate != NULL && estimate->limit_bytes > 0) /* the same for all */
        pool->search->limit_bytes = estimate->limit_bytes;
    pthread_mutex_unlock(&pool->lock);
}

/* What this process found at @told, to all, and what they found here. False ends the search. */
static bool
share_outcomes(SearchPool *pool, LhPlanOutcome *outcomes, guint turns, const GArray *told)
{
    const LhProcesses *processes = pool->options->processes;
    LhPlanSearch *search = pool->search;
    LhDistributedSearch deal = { .interrupted = pool->interrupted,
                                 .limit_bytes = search->limit_bytes };

    if (processes != NULL &&
        !lh_distributed_search_share(processes, outcomes, turns, told, &deal, &search->failure))
        deal.interrupted = true;
    pool->interrupted = deal.interrupted;
    search->limit_bytes = deal.limit_bytes;
    return search->failure == NULL;
}

/* False if one of the processes was interrupted: then all are. */
static bool
agree_to_go_on(SearchPool *pool)
{
    g_autoptr(GArray) none = g_array_new(FALSE, FALSE, sizeof(guint));

    share_outcomes(pool, NULL, 0, none);
    return !pool->interrupted;
}

/* Every process makes all of them, since they have most of their parts in common. */
static void
estimate_all(SearchPool *pool)
{
    lh_plan_estimate_all(&(LhPlanEstimates){ .space = pool->search->space,
                                             .threads = pool->threads,
                                             .messages = true,
                                             .go_on = reports,
                                             .found = take_estimate,
                                             .data = pool });
    agree_to_go_on(pool);
}

/* ---- one turn of a round ---- */

static void
estimate_closely(const SearchPool *pool, const LhPlanCase *c, const LhProgram *program,
                 LhPlanOutcome *outcome)
{
    LhPlanEstimate estimate;

    outcome->close = lh_plan_estimate_close(c, program, pool->cut_ps, &estimate);
    outcome->time_ps = MAX(outcome->time_ps, estimate.time_ps);
    if (!outcome->close) {
        outcome->state = LH_POINT_CUT;
        return;
    }
    outcome->peak_bytes = estimate.peak_bytes;
    if (exceeds(estimate.peak_bytes, estimate.limit_bytes))
        outcome->state = LH_POINT_UNFIT;
}

static bool
search_goes_on(void *data, const char *what, uint64_t events, LhTime now_ps)
{
    (void)what;
    (void)events;
    (void)now_ps;
    return report_search(data);
}

static void
simulate(SearchPool *pool, const LhPlanCase *c, const LhProgram *program, LhLookahead *turn)
{
    const LhTime overhead_ps = lh_step_overhead_ps(&c->setup), cut_ps = pool->cut_ps;
    const _Atomic LhTime *limit_ps = lh_lookahead_limit(pool->turns, turn, overhead_ps);
    LhPlanOutcome *outcome = &turn->outcome;
    LhTime ended_ps = 0;
    g_autoptr(GArray) tails = cut_ps == LH_TIME_NEVER ? NULL : lh_plan_estimate_tails(c, program);
    const LhHooks hooks = { .progress = search_goes_on,
                            .progress_data = pool,
                            .limit_ps = limit_ps,
                            .tails = tails,
                            .ended_ps = &ended_ps };
    g_autoptr(GError) error = NULL;
    g_autoptr(LhSimResult) result = lh_time_range_simulate(&c->setup, program, &hooks, &error);

    if (result != NULL) {
        outcome->state = LH_POINT_RAN;
        outcome->time_ps = result->makespan_ps + overhead_ps;
        outcome->time_error = lh_time_error(&c->setup, result);
        outcome->parts = lh_error_parts(&c->setup, result);
    } else if (ended_ps >= *limit_ps) {
        outcome->state = LH_POINT_CUT;
    } else if (!pool->interrupted) {
        outcome->state = LH_POINT_FAILED;
        outcome->reason = g_strdup(error->message);
    }
}

static void
take_turn(void *data, LhLookahead *turn)
{
    SearchPool *pool = data;
    g_autoptr(LhProgram) program = NULL;
    LhPlanCase c;

    if (!report_search(pool) || !lh_plan_case_init(&c, pool->search->space, turn->point, NULL))
        return;
    program = lh_plan_case_program(&c, NULL);
    g_assert(program != NULL); /* its quick estimate was not refused */
    if (!turn->outcome.close)
        estimate_closely(pool, &c, program, &turn->outcome);
    else
        simulate(pool, &c, program, turn);
}

/* ---- rounds ---- */

static int
by_bound(gconstpointer a, gconstpointer b, gpointer data)
{
    const LhPlanOutcome *outcomes = data;
    const guint x = *(const guint *)a, y = *(const guint *)b;

    if (outcomes[x].time_ps != outcomes[y].time_ps)
        return outcomes[x].time_ps < outcomes[y].time_ps ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Whether another point that ran is as good, and better in time or memory, whatever @index takes
 * beyond what it takes at least. */
static bool
is_beaten(const LhPlanSearch *search, guint index)
{
    const LhPlanOutcome *outcome = &search->outcomes[index];

    for (guint i = 0; i < search->ran->len; i++) {
        const guint other = g_array_index(search->ran, guint, i);
        const LhPlanOutcome *o = &search->outcomes[other];

        if (o->time_ps > outcome->time_ps)
            break;
        if (other != index && o->peak_bytes <= outcome->peak_bytes &&
            (o->peak_bytes < outcome->peak_bytes || o->time_ps < outcome->time_ps || other < index))
            return true;
    }
    return false;
}

bool
lh_plan_on_front(const LhPlanSearch *search, guint index)
{
    return !is_beaten(search, index);
}

static bool
is_wanted(const SearchPool *pool, guint index)
{
    const LhPlanOutcome *outcome = outcome_of(pool, index);

    return outcome->time_ps < pool->cut_ps ||
           (pool->options->front && !is_beaten(pool->search, index));
}

static void
fill_queue(SearchPool *pool)
{
    for (guint i = 0; i < pool->search->space->points->len; i++) {
        if (outcome_of(pool, i)->state == LH_POINT_OPEN)
            g_array_append_val(pool->queue, i);
    }
    g_array_sort_with_data(pool->queue, by_bound, pool->search->outcomes);
}

/* What is not wanted any more never will be: cuts and bounds only go one way. Leaves the first
 * points of the queue that are, as many as make a round, at its head; returns how many. */
static guint
peek(SearchPool *pool)
{
    guint *queue = (guint *)(void *)pool->queue->data;
    guint wanted[LH_PLAN_ROUND] = { 0 };
    guint count = 0, at = pool->queue_at;

    for (; at < pool->queue->len && count < LH_PLAN_ROUND; at++) {
        if (is_wanted(pool, queue[at]))
            wanted[count++] = queue[at];
        else if (!pool->options->front) /* nor are those behind it */
            g_array_set_size(pool->queue, at);
    }
    pool->queue_at = MIN(at, pool->queue->len) - count;
    for (guint i = 0; i < count; i++)
        queue[pool->queue_at + i] = wanted[i];
    return count;
}

static void
forget_unwanted(const SearchPool *pool, GArray *points)
{
    guint kept = 0;

    for (guint i = 0; i < points->len; i++) {
        const guint index = g_array_index(points, guint, i);

        if (is_wanted(pool, index))
            g_array_index(points, guint, kept++) = index;
    }
    g_array_set_size(points, kept);
}

/* Takes the first @count points from @points at @at. */
static GArray *
take_first(const GArray *points, guint at, guint count)
{
    GArray *taken = g_array_new(FALSE, FALSE, sizeof(guint));

    if (count > 0)
        g_array_append_vals(taken, &g_array_index(points, guint, at), count);
    return taken;
}

/*
 * The points of the next round: the first ones that are wanted, if all of them have their close
 * estimates; else the first that do not. Until there are as many as are wanted, those that do are
 * simulated at once: what they take makes estimates shorter.
 */
static GArray *
choose_round(SearchPool *pool)
{
    const guint top = pool->options->top, ran = pool->search->ran->len, others = peek(pool);
    GArray *close = pool->close, *round;
    guint first = 0, count;

    forget_unwanted(pool, close);
    while (first < close->len &&
           (others == 0 || by_bound(&g_array_index(close, guint, first),
                                    &g_array_index(pool->queue, guint, pool->queue_at),
                                    pool->search->outcomes) < 0))
        first++;
    if ((ran >= top || close->len == 0) && first < MIN(close->len + others, LH_PLAN_ROUND)) {
        round = take_first(pool->queue, pool->queue_at, others);
        pool->queue_at += others;
        return round;
    }
    count = MIN(close->len, ran < top ? MIN(top - ran, LH_PLAN_ROUND) : LH_PLAN_SIMULATED);
    round = take_first(close, 0, count);
    if (count > 0)
        g_array_remove_range(close, 0, count);
    return round;
}

/* Behind those of @points that are as fast. */
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

static void
take_in(SearchPool *pool, guint index, const LhPlanOutcome *found)
{
    LhPlanSearch *search = pool->search;
    const LhPlanMemory *memory = pool->options->memory;
    LhPlanOutcome *outcome = outcome_of(pool, index);

    pool->progress.counts[outcome->state]--;
    pool->progress.counts[found->state]++;
    *outcome = *found;
    if (memory != NULL)
        memory->remember(memory->data, search->space, index, outcome);
    if (outcome->state == LH_POINT_RAN)
        insert(search, search->ran, index);
    else if (outcome->state == LH_POINT_OPEN)
        insert(search, pool->close, index);
}

/* The time of the last of those that are wanted. */
static void
set_cut(SearchPool *pool)
{
    const LhPlanSearch *search = pool->search;
    const GArray *ran = search->ran;

    if (ran->len == 0)
        return;
    pool->progress.best = g_array_index(ran, guint, 0);
    pool->progress.best_ps = search->outcomes[pool->progress.best].time_ps;
    if (ran->len >= pool->options->top)
        pool->cut_ps = search->outcomes[g_array_index(ran, guint, pool->options->top - 1)].time_ps;
}

/* Whether the turn came to anything before the search was interrupted. */
static bool
is_done(const LhPlanOutcome *before, const LhPlanOutcome *found)
{
    return found->state != before->state || found->close != before->close;
}

/* Whether what came of the point is known from before. */
static bool
is_remembered(const SearchPool *pool, guint index)
{
    const LhPlanMemory *memory = pool->options->memory;
    LhPlanOutcome outcome = { .state = LH_POINT_OPEN, .close = true };

    if (memory == NULL || !memory->recall(memory->data, pool->search->space, index, &outcome))
        return false;
    g_free(outcome.reason);
    return outcome.state != LH_POINT_OPEN;
}

/* Places of the round that nothing is known of beyond what the search began with, in its memory or
 * in that of the first process. Caller unrefs. */
static GArray *
recall_round(SearchPool *pool, LhPlanOutcome *found, guint count)
{
    const LhPlanMemory *memory = pool->options->memory;
    GArray *open = g_array_new(FALSE, FALSE, sizeof(guint));
    g_autoptr(GArray) recalled = g_array_new(FALSE, FALSE, sizeof(guint));

    for (guint i = 0; memory != NULL && i < count; i++) {
        if (memory->recall(memory->data, pool->search->space, pool->round[i], &found[i]))
            g_array_append_val(recalled, i);
    }
    share_outcomes(pool, found, count, recalled);
    for (guint i = 0; i < count; i++) {
        if (!is_done(outcome_of(pool, pool->round[i]), &found[i]))
            g_array_append_val(open, i);
    }
    return open;
}

/* Points with close estimates that are likely to come next, the first ones first; NULL where that
 * is not known, or others would have to know what came of them. Caller unrefs. */
static GArray *
come_next(const SearchPool *pool)
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
take_turns(SearchPool *pool, LhPlanOutcome *found, guint count)
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
    share_outcomes(pool, found, count, mine);
}

static void
play_round(SearchPool *pool, const GArray *round)
{
    g_autofree LhPlanOutcome *found = g_new(LhPlanOutcome, round->len);
    bool whole = true; /* not interrupted so far */

    pool->round = (const guint *)(void *)round->data;
    for (guint i = 0; i < round->len; i++)
        found[i] = *outcome_of(pool, pool->round[i]);
    take_turns(pool, found, round->len);
    pthread_mutex_lock(&pool->lock);
    for (guint i = 0; i < round->len; i++) {
        whole = whole && is_done(outcome_of(pool, pool->round[i]), &found[i]);
        if (whole)
            take_in(pool, pool->round[i], &found[i]);
        else
            g_free(found[i].reason);
    }
    set_cut(pool);
    pthread_mutex_unlock(&pool->lock);
}

/* False if there is none left. */
static bool
next_round(SearchPool *pool)
{
    const LhTime cut_ps = pool->cut_ps;
    g_autoptr(GArray) round = NULL;

    round = choose_round(pool);
    if (pool->interrupted || round->len == 0)
        return false;
    if (pool->options->front) /* what is slower may need less */
        pool->cut_ps = LH_TIME_NEVER;
    play_round(pool, round);
    if (pool->options->front && pool->cut_ps == LH_TIME_NEVER)
        pool->cut_ps = cut_ps;
    return true;
}

/* ---- what did not fit ---- */

static int
by_peak(gconstpointer a, gconstpointer b, gpointer data)
{
    const LhPlanOutcome *outcomes = data;
    const guint x = *(const guint *)a, y = *(const guint *)b;

    if (outcomes[x].peak_bytes != outcomes[y].peak_bytes)
        return outcomes[x].peak_bytes < outcomes[y].peak_bytes ? -1 : 1;
    return x < y ? -1 : x > y;
}

static void
measure_miss(const LhPlanSearch *search, guint index)
{
    LhPlanOutcome *outcome = &search->outcomes[index];
    g_autoptr(LhProgram) program = NULL;
    LhPlanEstimate estimate = { 0 };
    LhPlanCase c;

    if (outcome->close || !lh_plan_case_init(&c, search->space, index, NULL))
        return;
    program = lh_plan_case_program(&c, NULL);
    lh_plan_estimate_memory(&c, program, &estimate);
    outcome->peak_bytes = estimate.peak_bytes;
    outcome->close = true;
}

/* Those that need least, by their quick estimates; of these the exact peaks. */
static void
find_misses(LhPlanSearch *search)
{
    for (guint i = 0; i < search->space->points->len; i++) {
        if (search->outcomes[i].state == LH_POINT_UNFIT)
            g_array_append_val(search->misses, i);
    }
    g_array_sort_with_data(search->misses, by_peak, search->outcomes);
    g_array_set_size(search->misses, MIN(search->misses->len, MISSES));
    for (guint i = 0; i < search->misses->len; i++)
        measure_miss(search, g_array_index(search->misses, guint, i));
    g_array_sort_with_data(search->misses, by_peak, search->outcomes);
}

/* ---- all of it ---- */

static void
count_points(SearchPool *pool)
{
    LhPlanSearch *search = pool->search;

    search->interrupted = pool->interrupted;
    for (guint i = 0; i < search->space->points->len; i++) {
        LhPlanOutcome *outcome = &search->outcomes[i];

        if (outcome->state == LH_POINT_OPEN && !search->interrupted)
            outcome->state = LH_POINT_CUT;
        search->counts[outcome->state]++;
    }
    if (!search->interrupted)
        find_misses(search);
}

guint
lh_plan_threads(guint jobs, const LhPlanSpace *space)
{
    return lh_compare_threads(jobs, MAX(space->points->len, 1), space->gpus);
}

LhPlanSearch *
lh_plan_search(const LhPlanSpace *space, const LhPlanSearchOptions *options)
{
    LhPlanSearch *search = g_new0(LhPlanSearch, 1);
    SearchPool pool = { .search = search,
                        .options = options,
                        .threads = lh_plan_threads(options->jobs, space),
                        .cut_ps = LH_TIME_NEVER,
                        .progress = { .space = space, .best = G_MAXUINT } };

    search->space = space;
    search->outcomes = g_new0(LhPlanOutcome, space->points->len);
    search->ran = g_array_new(FALSE, FALSE, sizeof(guint));
    search->misses = g_array_new(FALSE, FALSE, sizeof(guint));
    pool.queue = g_array_new(FALSE, FALSE, sizeof(guint));
    pool.close = g_array_new(FALSE, FALSE, sizeof(guint));
    pthread_mutex_init(&pool.lock, NULL);
    estimate_all(&pool);
    fill_queue(&pool);
    pool.turns = lh_lookahead_pool_new(pool.threads, take_turn, &pool);
    while (!pool.interrupted && next_round(&pool))
        ;
    lh_lookahead_pool_free(pool.turns);
    pthread_mutex_destroy(&pool.lock);
    g_array_unref(pool.queue);
    g_array_unref(pool.close);
    count_points(&pool);
    return search;
}

void
lh_plan_search_free(LhPlanSearch *search)
{
    if (search == NULL)
        return;
    for (guint i = 0; i < search->space->points->len; i++)
        g_free(search->outcomes[i].reason);
    g_free(search->outcomes);
    g_array_unref(search->ran);
    g_array_unref(search->misses);
    g_clear_error(&search->failure);
    g_free(search);
}
