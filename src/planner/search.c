/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First, the quick estimate of every point, with messages; scouts among them are searched ahead of
 * the others. Then rounds: the points with the lowest bounds get close estimates, which may move
 * them back in the order or show that they do not fit; once all of a round have them, they are
 * simulated. Outcomes are merged at the end of a round, in its order.
 */
#include "planner/search.h"

#include "compare/compare_pool.h"
#include "compare/step_plan.h"
#include "compare/time_range.h"
#include "planner/estimate_all.h"
#include "planner/lookahead_pool.h"
#include "planner/search_pool.h"
#include "planner/search_rounds.h"
#include "remedy/ladder.h"
#include "remedy/remedy_menu.h"
#include "scenario/setup_simulate.h"

#include <pthread.h>
#include <stdatomic.h>

#define MISSES 3

/* ---- quick estimates ---- */

static bool
exceeds(uint64_t peak_bytes, uint64_t limit_bytes)
{
    return limit_bytes > 0 && peak_bytes > limit_bytes;
}

static bool
search_goes_on(void *data, const LhProgress *at)
{
    (void)at;
    return lh_search_report(data);
}

/* Least share of a rank's states that stays with the smallest types of the optimizer's: 6 bytes of
 * 18 for a parameter. */
#define STATES_KEPT 3

/* Whether a point that does not fit may do so with remedies, by what these can lower at most: the
 * estimate has the loss that needs least; all but states may go to the host, be recomputed or be
 * tiled. */
static bool
may_climb(const LhPlanSpace *space, guint index, const LhPlanEstimate *estimate)
{
    uint64_t least_bytes = estimate->peak_bytes;
    bool types = false, loss = false, others = false;
    LhRemedyMenu menu;
    LhPlanCase c;

    if (!space->remedies ||
        estimate->states_bytes / (space->types ? STATES_KEPT : 1) > estimate->limit_bytes ||
        !lh_plan_case_init(&c, space, index, NULL))
        return false;
    lh_remedy_menu(&c.setup, &menu);
    for (guint i = 0; i < menu.count; i++) {
        types = types || (menu.switches[i].types && space->types);
        loss = loss || menu.switches[i].adds.loss != 0;
        others = others || (!menu.switches[i].types && menu.switches[i].adds.loss == 0);
    }
    loss = loss && lh_remedy_fast_loss(&c.setup) == 0; /* of which the estimate knows nothing */
    if (others || loss)
        least_bytes = estimate->states_bytes;
    if (types)
        least_bytes -= estimate->states_bytes - estimate->states_bytes / STATES_KEPT;
    return menu.count > 0 && !exceeds(least_bytes, estimate->limit_bytes);
}

static void
take_estimate(void *data, guint index, const LhPlanEstimate *estimate, const char *reason)
{
    LhSearchPool *pool = data;
    LhPlanOutcome *outcome = lh_search_outcome(pool, index);

    if (estimate == NULL) {
        outcome->state = LH_POINT_REFUSED;
        outcome->reason = g_strdup(reason);
    } else {
        outcome->time_ps = estimate->time_ps;
        outcome->peak_bytes = estimate->peak_bytes;
        if (exceeds(estimate->peak_bytes, estimate->limit_bytes) &&
            !may_climb(pool->search->space, index, estimate))
            outcome->state = LH_POINT_UNFIT;
    }
    pthread_mutex_lock(&pool->lock);
    pool->progress.done++;
    pool->more.counts[outcome->state]++;
    if (estimate != NULL && estimate->limit_bytes > 0) /* the same for all points */
        pool->search->limit_bytes = estimate->limit_bytes;
    pthread_mutex_unlock(&pool->lock);
}

/* Agrees with the other processes; false if one was interrupted: then all stop. */
static bool
agree_to_go_on(LhSearchPool *pool)
{
    g_autoptr(GArray) none = g_array_new(FALSE, FALSE, sizeof(guint));

    lh_search_share(pool, NULL, 0, none);
    return !pool->interrupted;
}

/* Every process estimates all points, since most of them share parts. */
static void
estimate(LhSearchPool *pool, bool scouts)
{
    lh_plan_estimate_table_add(pool->table, scouts);
    if (agree_to_go_on(pool))
        lh_search_fill_queue(pool, scouts);
}

/* Estimates all points. Scouts come first, and the fastest of them are simulated, so that there is
 * soon a good point and a cutoff. */
static void
estimate_all(LhSearchPool *pool)
{
    pool->table = lh_plan_estimate_table_new(&(LhPlanEstimates){
        .space = pool->search->space,
        .task = { .jobs = pool->threads, .progress = search_goes_on, .data = pool },
        .messages = true,
        .found = take_estimate,
        .data = pool });
    estimate(pool, true);
    while (!pool->interrupted && pool->search->ran->len == 0 && lh_search_next_round(pool))
        ;
    estimate(pool, false);
}

/* ---- one evaluation ---- */

static void
estimate_closely(const LhSearchPool *pool, const LhPlanCase *c, const LhProgram *program,
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

/* Looks for remedies of a point that does not fit. */
static void
climb(const LhSearchPool *pool, LhPlanCase *c, LhPlanOutcome *outcome)
{
    const LhLadder ladder = { .setup = &c->setup,
                              .schedule = c->schedule,
                              .limit_bytes = lh_plan_limit_bytes(&c->setup) };
    g_autoptr(LhProgram) program = NULL;
    LhRemedies found;

    outcome->state = LH_POINT_UNFIT;
    if (!lh_ladder_climb(&ladder, pool->search->space->types, &found))
        return;
    lh_remedies_apply(&found, &c->step);
    program = lh_plan_case_program(c, NULL);
    g_assert(program != NULL); /* the ladder had it */
    outcome->state = LH_POINT_OPEN;
    outcome->remedies = found;
    estimate_closely(pool, c, program, outcome);
}

/* Whether the point without remedies takes too long, whatever its loss: they would only add to
 * that. */
static bool
is_too_slow(const LhSearchPool *pool, const LhPlanCase *c)
{
    LhPlanCase floor = *c;
    g_autoptr(LhProgram) program = NULL;

    if (pool->cut_ps == LH_TIME_NEVER)
        return false;
    floor.setup.step = &floor.step;
    lh_plan_case_floor(&floor);
    program = lh_plan_case_program(&floor, NULL);
    return program != NULL && lh_plan_estimate_chain(&floor, program, pool->cut_ps) >= pool->cut_ps;
}

/* The close estimate: of the point, or with remedies if it does not fit. */
static void
look_closely(const LhSearchPool *pool, LhPlanCase *c, LhPlanOutcome *outcome)
{
    if (!exceeds(outcome->peak_bytes, lh_plan_limit_bytes(&c->setup))) {
        g_autoptr(LhProgram) program = lh_plan_case_program(c, NULL);

        g_assert(program != NULL); /* its quick estimate was not rejected */
        estimate_closely(pool, c, program, outcome);
        if (outcome->state != LH_POINT_UNFIT || !pool->search->space->remedies)
            return;
    }
    if (is_too_slow(pool, c))
        outcome->state = LH_POINT_UNFIT;
    else
        climb(pool, c, outcome);
}

static void
simulate(LhSearchPool *pool, const LhPlanCase *c, const LhProgram *program, LhLookahead *turn)
{
    const LhTime overhead_ps = lh_step_overhead_ps(&c->setup), cut_ps = pool->cut_ps;
    const _Atomic LhTime *limit_ps = lh_lookahead_limit(pool->turns, turn, overhead_ps);
    LhPlanOutcome *outcome = &turn->outcome;
    LhTime ended_ps = 0;
    g_autoptr(GArray) tails = cut_ps == LH_TIME_NEVER ? NULL : lh_plan_estimate_tails(c, program);
    const LhHooks hooks = { .task = { .progress = search_goes_on, .data = pool },
                            .limit_ps = limit_ps,
                            .tails = tails,
                            .ended_ps = &ended_ps };
    g_autoptr(GError) error = NULL;
    g_autoptr(LhSimResult) result = lh_time_range_simulate(&c->setup, program, &hooks, &error);

    if (result != NULL && !lh_host_memory_fits(&result->host_memory)) {
        outcome->state = LH_POINT_UNFIT;
    } else if (result != NULL) {
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
    LhSearchPool *pool = data;
    g_autoptr(LhProgram) program = NULL;
    LhPlanCase c;

    if (!lh_search_report(pool) || !lh_plan_case_init(&c, pool->search->space, turn->point, NULL))
        return;
    if (!turn->outcome.close) {
        look_closely(pool, &c, &turn->outcome);
        return;
    }
    program = lh_plan_case_program(&c, NULL);
    g_assert(program != NULL); /* its close estimate was not rejected */
    simulate(pool, &c, program, turn);
}

/* ---- points that do not fit ---- */

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

/* Finds the points that need least memory by their quick estimates, and computes their exact
 * peaks. */
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

/* ---- the search ---- */

static void
count_points(LhSearchPool *pool)
{
    LhPlanSearch *search = pool->search;

    search->interrupted = pool->interrupted;
    for (guint i = 0; i < search->space->points->len; i++) {
        LhPlanOutcome *outcome = &search->outcomes[i];

        if (outcome->state == LH_POINT_OPEN && !search->interrupted)
            outcome->state =
                exceeds(outcome->peak_bytes, search->limit_bytes) ? LH_POINT_UNFIT : LH_POINT_CUT;
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
    LhSearchPool pool = { .search = search,
                          .options = options,
                          .threads = lh_plan_threads(options->task.jobs, space),
                          .cut_ps = LH_TIME_NEVER,
                          .more = { .space = space, .best = G_MAXUINT },
                          .progress = { .what = space->cluster,
                                        .total = space->points->len,
                                        .best_ps = LH_TIME_NEVER } };

    pool.progress.more = &pool.more;
    search->space = space;
    search->outcomes = g_new0(LhPlanOutcome, space->points->len);
    search->ran = g_array_new(FALSE, FALSE, sizeof(guint));
    search->misses = g_array_new(FALSE, FALSE, sizeof(guint));
    pool.queue = g_array_new(FALSE, FALSE, sizeof(guint));
    pool.refined = g_array_new(FALSE, FALSE, sizeof(guint));
    pool.close = g_array_new(FALSE, FALSE, sizeof(guint));
    pthread_mutex_init(&pool.lock, NULL);
    pool.turns = lh_lookahead_pool_new(pool.threads, take_turn, &pool);
    estimate_all(&pool);
    while (!pool.interrupted && lh_search_next_round(&pool))
        ;
    lh_lookahead_pool_free(pool.turns);
    pthread_mutex_destroy(&pool.lock);
    lh_plan_estimate_table_free(pool.table);
    g_array_unref(pool.queue);
    g_array_unref(pool.refined);
    g_array_unref(pool.close);
    count_points(&pool);
    return search;
}

bool
lh_plan_search_needs_types(const LhPlanSearch *search)
{
    return search->space->remedies && !search->space->types && search->failure == NULL &&
           !search->interrupted && search->ran->len == 0 && search->counts[LH_POINT_UNFIT] > 0;
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
