/* SPDX-License-Identifier: Apache-2.0 */
#include "critical_path/faster_runs.h"

#include "base/threads.h"
#include "compare/compare_pool.h"

#include <pthread.h>

typedef struct {
    const LhSetup *setup;
    const LhProgram *program;
    const LhTask *task; /* may be NULL */
    LhFasterRun *runs;
    GError **errors;      /* of each run; NULL: it ended */
    pthread_mutex_t lock; /* protects the member below, and the task's progress */
    /* The folding that a run ended with: the others need not find out again that more does not
     * hold. All zeros: not known yet. */
    LhSymmetryGroups fold;
} Plays;

static bool
tell(void *data, const LhProgress *at)
{
    Plays *plays = data;
    bool goes_on;

    pthread_mutex_lock(&plays->lock);
    goes_on = lh_task_tell(plays->task, at);
    pthread_mutex_unlock(&plays->lock);
    return goes_on;
}

static void
play_one(void *data, guint index)
{
    Plays *plays = data;
    LhFasterRun *run = &plays->runs[index];
    LhSymmetryGroups fold;
    const LhHooks hooks = { .task = { .progress = tell, .data = plays },
                            .time_share = run->share,
                            .time_share_data = run->data,
                            .time_share_alike = run->alike,
                            .fold = &fold };
    g_autoptr(LhSimResult) result = NULL;

    pthread_mutex_lock(&plays->lock);
    fold = run->fold != NULL ? *run->fold : plays->fold;
    pthread_mutex_unlock(&plays->lock);
    result =
        lh_setup_simulate(plays->setup, plays->program, NULL, NULL, &hooks, &plays->errors[index]);
    if (result == NULL)
        return;
    run->makespan_ps = result->makespan_ps;
    pthread_mutex_lock(&plays->lock);
    if (run->fold == NULL && lh_symmetry_is_any(&fold))
        plays->fold = fold;
    pthread_mutex_unlock(&plays->lock);
}

bool
lh_faster_runs_play(const LhSetup *setup, const LhProgram *program, const LhTask *task,
                    LhFasterRun *runs, guint count, GError **error)
{
    g_autofree GError **errors = g_new0(GError *, MAX(count, 1));
    const guint threads =
        lh_compare_threads(task != NULL ? task->jobs : 0, count, lh_program_ranks(program));
    Plays plays = {
        .setup = setup, .program = program, .task = task, .runs = runs, .errors = errors
    };
    bool failed = false;

    pthread_mutex_init(&plays.lock, NULL);
    lh_on_threads_each("what-if", threads, count, play_one, &plays);
    pthread_mutex_destroy(&plays.lock);
    for (guint i = 0; i < count; i++) {
        if (errors[i] == NULL)
            continue;
        if (failed)
            g_error_free(errors[i]);
        else
            g_propagate_error(error, errors[i]);
        failed = true;
    }
    return !failed;
}
