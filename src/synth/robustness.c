/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A judge is the setup with another network model, jitter or seeds. Simulations form a list of
 * tasks, each of which writes one time, so the result does not depend on threads. A contender that
 * has lost a run is not simulated further, since it cannot be chosen. The first contender always
 * is: its times are the answer if none is robust.
 */
#include "synth/robustness.h"

#include "base/threads.h"
#include "compare/compare_pool.h"
#include "scenario/setup_cluster.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The judges, in trial order. */
enum {
    OWN_JITTER,
    OTHER_ALONE,
    OTHER_JITTER,
};

/* A program under test. */
typedef struct {
    const char *name;
    const LhProgram *program;
    LhTime own_ps; /* makespan in the scenario */
    LhTime times_ps[LH_SYNTH_JUDGES][LH_SYNTH_SEEDS];
    atomic_bool lost;
} Heard;

/* One simulation. */
typedef struct {
    Heard *heard;
    uint32_t judge, run;
    bool in_full; /* simulate fully, even after the program has lost */
} Task;

typedef struct {
    const LhSynthCourt *court;
    LhSynthTrial judges[LH_SYNTH_JUDGES]; /* their conditions */
    GArray *tasks;                        /* of Task */
    Heard *published, *contenders;
    guint published_count, contenders_count;
    LhTime rivals_ps[LH_SYNTH_JUDGES][LH_SYNTH_SEEDS]; /* fastest published schedule per run */
    atomic_bool stopped;
} Trial;

bool
lh_synth_result_fits(const LhSimResult *result, uint64_t limit_bytes)
{
    uint64_t peak = 0;

    for (uint32_t rank = 0; rank < result->ranks_count; rank++)
        peak = MAX(peak, result->ranks[rank].peak_bytes);
    return result->out_of_memory == NULL && (limit_bytes == 0 || peak <= limit_bytes);
}

/* --- runs ---------------------------------------------------------------------------------------
 */

/* Simulates a task. @limit_ps: abort when slower; NULL: no limit. */
static LhTime
time_of(const Trial *t, const Task *task, const _Atomic LhTime *limit_ps)
{
    const LhSynthTrial *judge = &t->judges[task->judge];
    const LhHooks hooks = { .limit_ps = limit_ps };
    LhScenario scenario = *t->court->setup->scenario;
    LhSetup setup = *t->court->setup; /* borrows everything */
    g_autoptr(LhSimResult) result = NULL;

    scenario.jitter = judge->jitter;
    if (judge->runs > 1)
        scenario.seed = t->court->seed + task->run;
    setup.scenario = &scenario;
    setup.network_model = judge->network_model;
    setup.collectives = lh_setup_collectives(&setup, judge->network_model, setup.network.ranks);
    result = lh_setup_simulate(&setup, task->heard->program, NULL, NULL, &hooks, NULL);
    if (result == NULL || !lh_synth_result_fits(result, t->court->memory_limit_bytes))
        return LH_TIME_NEVER;
    return result->makespan_ps;
}

static void
play_trial(void *data, guint index)
{
    Trial *t = data;
    const Task *task = &g_array_index(t->tasks, Task, index);
    Heard *heard = task->heard;
    const LhTime rival_ps = t->rivals_ps[task->judge][task->run];
    const _Atomic LhTime limit_ps = rival_ps;
    LhTime time_ps;

    if (!task->in_full && atomic_load(&heard->lost))
        return;
    if (!lh_task_tell(&t->court->task, &(LhProgress){ 0 })) {
        atomic_store(&t->stopped, true);
        return;
    }
    time_ps = time_of(t, task, task->in_full ? NULL : &limit_ps);
    heard->times_ps[task->judge][task->run] = time_ps;
    if (time_ps >= rival_ps)
        atomic_store(&heard->lost, true);
}

static void
add_tasks(Trial *t, Heard *heard, uint32_t judge, bool in_full)
{
    for (uint32_t run = 0; run < t->judges[judge].runs; run++) {
        const Task task = { heard, judge, run, in_full };

        g_array_append_val(t->tasks, task);
    }
}

/* Runs the queued tasks. */
static void
play_all(Trial *t)
{
    const LhSynthCourt *court = t->court;
    const guint threads =
        lh_compare_threads(court->task.jobs, t->tasks->len, court->setup->network.ranks);

    lh_on_threads_each("judge", threads, t->tasks->len, play_trial, t);
    g_array_set_size(t->tasks, 0);
}

/* --- programs under test
 * ------------------------------------------------------------------------ */

static void
hear(Heard *heard, const LhCompareRow *row)
{
    heard->name = row->name;
    heard->program = row->program;
    heard->own_ps = row->result->makespan_ps;
    for (uint32_t j = 0; j < LH_SYNTH_JUDGES; j++)
        for (uint32_t run = 0; run < LH_SYNTH_SEEDS; run++)
            heard->times_ps[j][run] = LH_TIME_NEVER;
}

static void
hear_all(Trial *t)
{
    const LhSynthCourt *court = t->court;

    t->published = g_new0(Heard, court->published->len + 1);
    for (guint i = 0; i < court->published->len; i++) {
        const LhCompareRow *row = g_ptr_array_index(court->published, i);

        if (row != NULL && row->result != NULL &&
            lh_synth_result_fits(row->result, court->memory_limit_bytes))
            hear(&t->published[t->published_count++], row);
    }
    t->contenders_count = court->contenders->len;
    t->contenders = g_new0(Heard, t->contenders_count + 1);
    for (guint i = 0; i < t->contenders_count; i++)
        hear(&t->contenders[i], g_ptr_array_index(court->contenders, i));
}

static void
name_judges(Trial *t)
{
    const LhSetup *setup = t->court->setup;
    const double own = setup->scenario->jitter, jitter = MAX(own, LH_SYNTH_JITTER);
    const LhNetworkModel other =
        setup->network_model == LH_NETWORK_FIFO ? LH_NETWORK_FAIR : LH_NETWORK_FIFO;

    t->judges[OWN_JITTER] = (LhSynthTrial){ .network_model = setup->network_model,
                                            .jitter = jitter,
                                            .runs = LH_SYNTH_SEEDS };
    t->judges[OTHER_ALONE] = (LhSynthTrial){ .network_model = other, .jitter = own, .runs = 1 };
    t->judges[OTHER_JITTER] =
        (LhSynthTrial){ .network_model = other, .jitter = jitter, .runs = LH_SYNTH_SEEDS };
    for (uint32_t j = 0; j < LH_SYNTH_JUDGES; j++)
        for (uint32_t run = 0; run < LH_SYNTH_SEEDS; run++)
            t->rivals_ps[j][run] = LH_TIME_NEVER;
}

/* --- the published schedules --------------------------------------------------------------------
 */

/* The time that selects schedules for jitter: in the judge's network model, without added
 * jitter. */
static LhTime
plain_ps(const Heard *heard, uint32_t judge)
{
    return judge == OWN_JITTER ? heard->own_ps : heard->times_ps[OTHER_ALONE][0];
}

/*
 * Queues the fastest published schedules in the network model of @judge (ties in schedule order),
 * and those that jitter may make the fastest: it can reduce their time and increase the fastest
 * one's by that share each.
 */
static void
add_rivals(Trial *t, uint32_t judge)
{
    const double jitter = t->judges[judge].jitter;
    LhTime least_ps = LH_TIME_NEVER;

    for (guint i = 0; i < t->published_count; i++)
        least_ps = MIN(least_ps, plain_ps(&t->published[i], judge));
    for (guint i = 0; i < t->published_count; i++) {
        const LhTime time_ps = plain_ps(&t->published[i], judge);
        guint before = 0;

        for (guint k = 0; k < t->published_count; k++) {
            const LhTime other_ps = plain_ps(&t->published[k], judge);

            before += other_ps < time_ps || (other_ps == time_ps && k < i);
        }
        if (before < LH_SYNTH_RIVALS ||
            (double)time_ps * (1 - jitter) <= (double)least_ps * (1 + jitter))
            add_tasks(t, &t->published[i], judge, true);
    }
}

static void
play_published_trial(Trial *t)
{
    for (guint i = 0; i < t->published_count; i++)
        add_tasks(t, &t->published[i], OTHER_ALONE, true);
    add_rivals(t, OWN_JITTER);
    play_all(t);
    add_rivals(t, OTHER_JITTER);
    play_all(t);
    for (guint i = 0; i < t->published_count; i++)
        for (uint32_t j = 0; j < LH_SYNTH_JUDGES; j++)
            for (uint32_t run = 0; run < t->judges[j].runs; run++)
                t->rivals_ps[j][run] = MIN(t->rivals_ps[j][run], t->published[i].times_ps[j][run]);
}

/* --- the contenders -----------------------------------------------------------------------------
 */

static void
play_contenders(Trial *t)
{
    static const uint32_t order[] = { OTHER_ALONE, OWN_JITTER, OTHER_JITTER };

    for (gsize j = 0; j < G_N_ELEMENTS(order); j++)
        for (guint i = 0; i < t->contenders_count; i++)
            add_tasks(t, &t->contenders[i], order[j], i == 0);
    play_all(t);
}

/* The largest ratio of a program's time to that of the fastest published schedule. */
static double
worst_share(const Trial *t, const Heard *heard)
{
    LhTime least_ps = LH_TIME_NEVER;
    double worst;

    for (guint i = 0; i < t->published_count; i++)
        least_ps = MIN(least_ps, t->published[i].own_ps);
    worst = (double)heard->own_ps / (double)least_ps;
    for (uint32_t j = 0; j < LH_SYNTH_JUDGES; j++)
        for (uint32_t run = 0; run < t->judges[j].runs; run++)
            worst = MAX(worst, (double)heard->times_ps[j][run] / (double)t->rivals_ps[j][run]);
    return worst;
}

static guint
choose(const Trial *t)
{
    guint chosen = 0;
    double least = 0;
    bool any = false;

    for (guint i = 0; i < t->contenders_count; i++) {
        const double share = worst_share(t, &t->contenders[i]);

        if (atomic_load(&t->contenders[i].lost) || (any && share >= least))
            continue;
        any = true;
        least = share;
        chosen = i;
    }
    return chosen;
}

/* --- the answer ---------------------------------------------------------------------------------
 */

static int
by_time(const void *a, const void *b)
{
    const LhTime x = *(const LhTime *)a, y = *(const LhTime *)b;

    return (x > y) - (x < y);
}

static void
sum_up(const Heard *heard, uint32_t judge, uint32_t runs, LhTime *median_ps, LhTime *worst_ps)
{
    LhTime times_ps[LH_SYNTH_SEEDS];

    memcpy(times_ps, heard->times_ps[judge], sizeof(times_ps));
    qsort(times_ps, runs, sizeof(LhTime), by_time);
    *median_ps = times_ps[(runs - 1) / 2];
    *worst_ps = times_ps[runs - 1];
}

static void
tell(const Trial *t, uint32_t judge, const Heard *chosen, LhSynthTrial *told)
{
    *told = t->judges[judge];
    told->published_median_ps = told->published_worst_ps = LH_TIME_NEVER;
    for (guint i = 0; i < t->published_count; i++) {
        LhTime median_ps, worst_ps;

        sum_up(&t->published[i], judge, told->runs, &median_ps, &worst_ps);
        if (median_ps >= told->published_median_ps)
            continue;
        told->published = t->published[i].name;
        told->published_median_ps = median_ps;
        told->published_worst_ps = worst_ps;
    }
    sum_up(chosen, judge, told->runs, &told->median_ps, &told->worst_ps);
    for (uint32_t run = 0; run < told->runs; run++)
        told->wins += chosen->times_ps[judge][run] < t->rivals_ps[judge][run];
}

void
lh_synth_test_robustness(const LhSynthCourt *court, LhSynthRobust *answer)
{
    Trial t = { .court = court, .tasks = g_array_new(FALSE, FALSE, sizeof(Task)) };

    name_judges(&t);
    hear_all(&t);
    play_published_trial(&t);
    play_contenders(&t);
    answer->interrupted = atomic_load(&t.stopped);
    answer->asked = !answer->interrupted;
    if (answer->asked) {
        const Heard *chosen;

        answer->contenders = t.contenders_count;
        answer->fastest_holds = !atomic_load(&t.contenders[0].lost);
        answer->chosen = choose(&t);
        chosen = &t.contenders[answer->chosen];
        answer->holds = !atomic_load(&chosen->lost);
        for (uint32_t j = 0; j < LH_SYNTH_JUDGES; j++)
            tell(&t, j, chosen, &answer->trials[j]);
    }
    g_free(t.published);
    g_free(t.contenders);
    g_array_unref(t.tasks);
}
