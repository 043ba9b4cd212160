/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/step_artifacts.h"

#include "base/error.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "compare/totals.h"
#include "proof/run_time_estimate.h"

#define CRITICAL_OPS_MAX 4000000 /* largest run whose critical path is analysed: 100 MB */

static bool
set_frame(const LhArtifacts *look, LhReportRun *run, GError **error)
{
    const LhSimResult *result = look->result;
    const uint32_t shown = result->ranks_count <= LH_HTML_TIMELINE_RANKS_MAX
                               ? result->ranks_count
                               : LH_HTML_TIMELINE_RANKS_MAX - 1;

    if (!lh_time_window_init(&run->frame, look->ranks, NULL, lh_time_window_ranks(look->setup),
                             error))
        return false;
    /* If there are too many ranks, keep room for the last one to finish. */
    for (uint32_t rank = 0; look->ranks == NULL && rank < shown; rank++)
        lh_time_window_add(&run->frame, rank);
    run->last_rank = lh_gantt_last_rank(result, &run->frame);
    lh_time_window_add(&run->frame, run->last_rank);
    return lh_time_window_fit(&run->frame, result->makespan_ps, error);
}

static bool
look_on(void *data, const LhProgress *at)
{
    lh_progress_draw(data, at);
    return !lh_interrupted();
}

/* Replaces the error of an aborted run. Returns false. */
static bool
fail_interrupted(GError **error)
{
    g_clear_error(error);
    g_set_error_literal(error, LH_ERROR, LH_ERROR_INTERRUPTED,
                        "interrupted while the page was generated: no page is written");
    return false;
}

bool
lh_artifacts_write(const LhArtifacts *look, LhReportRun *run, GError **error)
{
    LhProgressLine progress;
    LhHooks hooks = { .task = { .progress = look_on, .data = &progress } };
    LhTotals totals;

    *run = (LhReportRun){ .row = NULL };
    lh_totals(look->result, &totals);
    if (!set_frame(look, run, error))
        return false;
    run->strips = lh_html_timeline_new(look->setup, run->frame.ranks, look->result->makespan_ps);
    run->envelope = lh_memory_envelope_new(totals.peak_rank, look->result->makespan_ps);
    hooks.timeline = lh_html_timeline_add;
    hooks.timeline_data = run->strips;
    hooks.memory = lh_memory_envelope_add;
    hooks.memory_data = run->envelope;
    if (look->critical)
        lh_critical_hooks(&hooks);
    lh_progress_start(&progress, look->seconds);
    run->row = look->schedule != NULL ? lh_compare_run(look->setup, look->schedule, &hooks)
                                      : lh_compare_run_program(look->setup, look->program, &hooks);
    lh_progress_end(&progress);
    lh_memory_envelope_finish(run->envelope);
    if (lh_interrupted())
        return fail_interrupted(error);
    if (run->row->result != NULL)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "%s: %s", run->row->name, run->row->reason);
    return false;
}

bool
lh_artifacts_has_critical(const LhSimResult *result)
{
    return result->ops <= CRITICAL_OPS_MAX;
}

/* Each what-if with a faster resource is a run of its own. */
int
lh_artifacts_plays(bool critical)
{
    return critical ? 1 + 2 * LH_CRITICAL_TOP : 1;
}

LhCritical *
lh_artifacts_critical(const LhSetup *setup, const LhReportRun *run, guint jobs, GError **error)
{
    LhProgressLine progress;
    const LhTask task = { .jobs = jobs, .progress = look_on, .data = &progress };
    LhCritical *critical;

    lh_progress_start(&progress, lh_run_time_simulate(run->row->program) * 2 * LH_CRITICAL_TOP);
    critical = lh_critical_find(setup, run->row, &task, error);
    lh_progress_end(&progress);
    if (lh_interrupted()) {
        g_clear_pointer(&critical, lh_critical_free);
        fail_interrupted(error);
    }
    return critical;
}
