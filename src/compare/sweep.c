/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two passes over the points. The first sets up every point, which gives its inputs and its
 * estimated duration; the second compares the schedules at each. A thread takes the next free
 * point. Lines of the points file are written in the order of the points, so the file always has
 * all points up to some point, whatever the number of threads.
 *
 * A shard has every n-th point. Its file is written the same way. A sweep that merges shards reads
 * the complete lines of their files, and runs what is missing.
 */
#include "compare/sweep.h"

#include "base/error.h"
#include "base/files/append_log.h"
#include "base/threads.h"
#include "compare/compare_pool.h"
#include "compare/sweep_file.h"
#include "compare/sweep_points.h"
#include "config.h"
#include "proof/proven.h"
#include "proof/run_time_estimate.h"
#include "scenario/step/setup_step.h"

#include <pthread.h>
#include <string.h>

/* ---- first pass ---- */

/* Takes over the error if it is a failure of this machine, such as too little memory, rather than a
 * refusal of the point. */
static bool
take_failure(LhSweepRun *run, GError **error)
{
    if (!g_error_matches(*error, LH_ERROR, LH_ERROR_RUNTIME))
        return false;
    pthread_mutex_lock(&run->lock);
    if (run->failure == NULL)
        run->failure = g_steal_pointer(error);
    pthread_mutex_unlock(&run->lock);
    g_clear_error(error);
    return true;
}

/* False if the sweep was interrupted or has failed. */
static bool
sweep_goes_on(LhSweepRun *run)
{
    bool interrupted;

    pthread_mutex_lock(&run->lock);
    if (!run->interrupted && run->failure == NULL)
        run->interrupted =
            !lh_task_tell(&run->query->task,
                          &(LhProgress){ .done = run->done, .total = run->sweep->points->len });
    interrupted = run->interrupted || run->failure != NULL;
    pthread_mutex_unlock(&run->lock);
    return !interrupted;
}

static double
setup_seconds(const LhSetup *setup)
{
    double seconds = setup->program != NULL ? lh_run_time_simulate(setup->program) : 0;

    for (guint i = 0; i < setup->schedules->len; i++) {
        g_autoptr(LhProgram) program =
            lh_setup_program(setup, g_ptr_array_index(setup->schedules, i), NULL);

        seconds += program != NULL ? lh_run_time_simulate(program) : 0;
    }
    return seconds;
}

static char *
inputs_of(const LhSetup *setup)
{
    GString *lines = g_string_new(NULL);

    for (guint i = 0; i < setup->inputs->len; i++) {
        const LhInput *input = g_ptr_array_index(setup->inputs, i);

        g_string_append_printf(lines, "%s %s\n", input->path, input->sha256);
    }
    return g_string_free(lines, FALSE);
}

static void
make_ready(void *data, guint index)
{
    LhSweepRun *run = data;
    LhSweepReady *ready = &run->ready[index];
    g_autoptr(LhScenario) scenario = NULL;
    g_autoptr(LhSetup) setup = NULL;

    if (!sweep_goes_on(run))
        return;
    scenario = lh_sweep_point_scenario(run->sweep, run->query->scenario, index);
    setup = lh_setup_new(scenario, &ready->refusal);
    if (setup == NULL || !lh_prove_setup(setup, LH_PROVE_TO_SIMULATE, &ready->refusal)) {
        (void)take_failure(run, &ready->refusal);
        return;
    }
    ready->seconds = setup_seconds(setup);
    ready->ranks = setup->network.ranks;
    ready->inputs = inputs_of(setup);
}

/* Keeps the setup of the first point that can be compared. If there is none, fails with the reason
 * of the first point. */
static bool
keep_setup(LhSweepRun *run, GError **error)
{
    LhSweep *sweep = run->sweep;
    guint index = 0;

    for (guint i = 0; i < sweep->points->len; i++)
        sweep->refused += run->ready[i].refusal != NULL;
    while (index < sweep->points->len && run->ready[index].refusal != NULL)
        index++;
    if (index == sweep->points->len) {
        g_propagate_prefixed_error(error, g_error_copy(run->ready[0].refusal),
                                   "every point of the sweep is refused; reason of the first: ");
        return false;
    }
    sweep->first = lh_sweep_point_scenario(sweep, run->query->scenario, index);
    sweep->setup = lh_setup_new(sweep->first, error);
    if (sweep->setup == NULL)
        return false;
    sweep->columns = run->query->cells->columns(sweep->setup);
    return true;
}

/* Checksum of everything the rows and their order depend on. */
static char *
sweep_sha256(const LhSweepRun *run)
{
    g_autoptr(GString) text = g_string_new(LH_VERSION "\n");

    lh_scenario_lines(run->query->scenario, text);
    for (guint i = 0; i < run->sweep->axes->len; i++) {
        const LhScenarioAxis *axis = g_ptr_array_index(run->sweep->axes, i);

        for (guint k = 0; k < axis->values->len; k++)
            g_string_append_printf(text, "%s[]=%s\n", axis->field->name,
                                   (const char *)g_ptr_array_index(axis->values, k));
    }
    for (guint i = 0; i < run->sweep->points->len; i++)
        g_string_append_printf(text, "%u\n%s", i,
                               run->ready[i].inputs != NULL ? run->ready[i].inputs
                                                            : run->ready[i].refusal->message);
    return g_compute_checksum_for_string(G_CHECKSUM_SHA256, text->str, (gssize)text->len);
}

/* ---- second pass ---- */

guint
lh_sweep_column(const LhSweep *sweep, const char *key)
{
    guint column = 0;

    while (strcmp(sweep->columns[column], key) != 0)
        column++;
    return column;
}

/* The single row of a refused point. */
static GPtrArray *
refused_rows(const LhSweep *sweep, const char *reason)
{
    GPtrArray *rows = lh_sweep_new_rows();
    const guint columns = g_strv_length(sweep->columns);
    char **cells = g_new0(char *, columns + 1);

    for (guint i = 0; i < columns; i++)
        cells[i] = g_strdup("");
    g_free(cells[lh_sweep_column(sweep, "state")]);
    cells[lh_sweep_column(sweep, "state")] = g_strdup("refused");
    g_free(cells[lh_sweep_column(sweep, "reason")]);
    cells[lh_sweep_column(sweep, "reason")] = g_strdup(reason);
    g_ptr_array_add(rows, cells);
    return rows;
}

static bool
sweep_progress(void *data, const LhProgress *at)
{
    (void)at;
    return sweep_goes_on(data);
}

/* Compares the schedules at a point; NULL if interrupted or failed. */
static GPtrArray *
compare_point(LhSweepRun *run, guint index)
{
    const LhTask task = { .jobs = 1, .progress = sweep_progress, .data = run };
    const LhCompareOptions how = { .task = task, .no_bound = true };
    g_autoptr(LhScenario) scenario =
        lh_sweep_point_scenario(run->sweep, run->query->scenario, index);
    g_autoptr(GError) error = NULL;
    g_autoptr(LhSetup) setup = lh_setup_new(scenario, &error);
    g_autoptr(LhComparison) comparison = NULL;

    /* Files may have changed since the first pass. */
    if (setup != NULL && lh_prove_setup(setup, LH_PROVE_TO_SIMULATE, &error))
        comparison = lh_compare(setup, &how, &error);
    if (comparison == NULL)
        return take_failure(run, &error) ? NULL : refused_rows(run->sweep, error->message);
    return comparison->interrupted ? NULL : run->query->cells->rows(setup, comparison);
}

static void
take_point(void *data, guint number)
{
    LhSweepRun *run = data;
    const guint index = lh_sweep_mine_at(run, run->first + number);
    const GError *refusal = run->ready[index].refusal;
    GPtrArray *rows;

    if (lh_sweep_point(run->sweep, index)->rows != NULL || !sweep_goes_on(run))
        return;
    rows = refusal != NULL ? refused_rows(run->sweep, refusal->message) : compare_point(run, index);
    pthread_mutex_lock(&run->lock);
    lh_sweep_point(run->sweep, index)->rows = rows;
    run->done += rows != NULL;
    lh_sweep_write_done(run);
    pthread_mutex_unlock(&run->lock);
}

/* ---- both passes ---- */

static double
all_work(const LhSweepRun *run)
{
    double seconds = 0;

    for (guint i = run->first; i < run->mine->len; i++) {
        const guint index = lh_sweep_mine_at(run, i);

        seconds += lh_sweep_point(run->sweep, index)->rows == NULL ? run->ready[index].seconds : 0;
    }
    return seconds;
}

static uint32_t
most_ranks(const LhSweepRun *run)
{
    uint32_t most = 1;

    for (guint i = 0; i < run->sweep->points->len; i++)
        most = MAX(most, run->ready[i].ranks);
    return most;
}

static bool
sweep_all(LhSweepRun *run, GError **error)
{
    LhSweep *sweep = run->sweep;
    const guint count = sweep->points->len, jobs = run->query->task.jobs;
    guint threads;

    run->ready = g_new0(LhSweepReady, count);
    lh_on_threads_each("sweep", jobs > 0 ? jobs : g_get_num_processors(), count, make_ready, run);
    if (run->failure != NULL || run->interrupted || !keep_setup(run, error))
        return run->failure == NULL && run->interrupted;
    sweep->query_sha256 = sweep_sha256(run);
    if (!lh_sweep_open_files(run, error) ||
        !lh_run_time_check(all_work(run), run->query->max_work_ps, error))
        return false;
    threads = lh_compare_threads(jobs, count, most_ranks(run));
    lh_on_threads_each("sweep", threads, run->mine->len - run->first, take_point, run);
    lh_sweep_write_done(run); /* for the last points read from shards */
    return run->journal == NULL || lh_append_log_close(g_steal_pointer(&run->journal), error);
}

static void
run_clear(LhSweepRun *run)
{
    for (guint i = 0; run->ready != NULL && i < run->sweep->points->len; i++) {
        g_clear_error(&run->ready[i].refusal);
        g_free(run->ready[i].inputs);
    }
    g_free(run->ready);
    g_array_unref(run->mine);
    lh_append_log_free(run->journal);
    pthread_mutex_destroy(&run->lock);
}

LhSweep *
lh_sweep(const LhSweepQuery *query, GError **error)
{
    g_autoptr(LhSweep) sweep = g_new0(LhSweep, 1);
    LhSweepRun run = { .query = query, .sweep = sweep };
    bool ok;

    sweep->lost = g_ptr_array_new_with_free_func(g_free);
    sweep->axes = lh_scenario_axes(query->scenario);
    sweep->points = g_ptr_array_new_with_free_func(lh_sweep_point_free);
    if (!lh_sweep_add_points(sweep, query->scenario, error))
        return NULL;
    run.mine = g_array_new(FALSE, FALSE, sizeof(guint));
    pthread_mutex_init(&run.lock, NULL);
    ok = sweep_all(&run, error) && run.failure == NULL;
    if (run.failure != NULL) {
        g_clear_error(error);
        g_propagate_error(error, g_steal_pointer(&run.failure));
    }
    sweep->interrupted = run.interrupted;
    run_clear(&run);
    return ok ? g_steal_pointer(&sweep) : NULL;
}

void
lh_sweep_free(LhSweep *sweep)
{
    if (sweep == NULL)
        return;
    g_clear_pointer(&sweep->axes, g_ptr_array_unref);
    g_clear_pointer(&sweep->points, g_ptr_array_unref);
    g_clear_pointer(&sweep->lost, g_ptr_array_unref);
    g_strfreev(sweep->columns);
    g_free(sweep->query_sha256);
    lh_setup_free(sweep->setup);
    lh_scenario_free(sweep->first);
    g_free(sweep);
}
