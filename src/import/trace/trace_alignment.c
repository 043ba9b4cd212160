/* SPDX-License-Identifier: Apache-2.0 */
#include "import/trace/trace_alignment.h"

#include "base/error.h"
#include "import/trace/alignment_private.h"
#include "measure/fit.h"
#include "program/cursor.h"
#include "program/timeline.h"
#include "scenario/setup_simulate.h"
#include "sim/cost/cost.h"

#include <math.h>

static double
duration_s(const LhTimelineRecord *r)
{
    return (double)(r->end_ps - r->start_ps) / (double)LH_PS_PER_S;
}

static void
collect(void *data, const LhTimelineRecord *record)
{
    GArray *records = data;

    g_array_append_vals(records, record, 1);
}

bool
lh_trace_alignment_simulate(const LhSetup *setup, const LhProgram *program,
                            const LhNetwork *network, GArray *records, LhTime *makespan_ps,
                            GError **error)
{
    const LhHooks hooks = { .timeline = collect, .timeline_data = records };
    LhSimResult *result;

    g_array_set_size(records, 0);
    result = lh_setup_simulate(setup, program, network, NULL, &hooks, error);
    if (result == NULL)
        return false;
    *makespan_ps = result->makespan_ps;
    lh_sim_result_free(result);
    g_array_sort(records, lh_timeline_by_rank_and_op);
    return true;
}

double
lh_sample_seconds(const LhTraceAlignment *match, const LhSample *sample, const GArray *records)
{
    double least = INFINITY;

    for (guint i = 0; i < sample->count; i++) {
        const guint member = g_array_index(match->members, guint, sample->first + i);

        least = fmin(least, duration_s(lh_match_record(records, member)));
    }
    return least;
}

/* --- the whole ----------------------------------------------------------------------------------
 */

static void
array_unref(gpointer array)
{
    if (array != NULL)
        g_array_unref(array);
}

/* Index of each rank's first record. Caller frees. */
static uint32_t *
find_ranks(const GArray *records, uint32_t ranks)
{
    uint32_t *first = g_new0(uint32_t, ranks + 1);

    for (guint i = 0; i < records->len; i++)
        first[lh_match_record(records, i)->rank + 1]++;
    for (uint32_t r = 0; r < ranks; r++)
        first[r + 1] += first[r];
    return first;
}

static bool
check_ranks(const LhTraceMatch *job, uint32_t ranks, GError **error)
{
    for (guint i = 0; i < job->run->kernels->len; i++) {
        const uint32_t rank = g_array_index(job->run->kernels, LhGpuTrace, i).rank;

        if (rank < ranks)
            continue;
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%s: a trace of rank %u; the program has ranks 0 to %u",
                    lh_match_path(job->run, rank), rank, ranks - 1);
        return false;
    }
    return true;
}

static bool
match_all(LhTraceMatch *job, GError **error)
{
    const uint32_t ranks = lh_program_ranks(job->program);
    LhTime makespan_ps;

    if (!check_ranks(job, ranks, error) ||
        !lh_trace_alignment_simulate(job->setup, job->program, NULL, job->match->records,
                                     &makespan_ps, error))
        return false;
    g_ptr_array_set_size(job->durations, (gint)job->match->records->len);
    g_array_set_size(job->match->blocks, job->match->records->len);
    job->first = find_ranks(job->match->records, ranks);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        if (!lh_match_rank(job, rank, error))
            return false;
    }
    lh_match_samples(job);
    return true;
}

LhTraceAlignment *
lh_trace_alignment_new(const LhGpuTraceRun *run, const LhSetup *setup, const LhProgram *program,
                       GError **error)
{
    g_autoptr(LhTraceAlignment) match = g_new0(LhTraceAlignment, 1);
    LhTraceMatch job = { .run = run, .setup = setup, .program = program, .match = match };
    bool ok;

    match->records = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord));
    match->samples = g_array_new(FALSE, FALSE, sizeof(LhSample));
    match->members = g_array_new(FALSE, FALSE, sizeof(guint));
    match->blocks = g_array_new(FALSE, TRUE, sizeof(LhTraceBlock));
    match->measured = g_array_new(FALSE, FALSE, sizeof(double));
    match->notes = g_ptr_array_new_with_free_func(g_free);
    job.durations = g_ptr_array_new_with_free_func(array_unref);
    job.meetings = g_hash_table_new_full(lh_meeting_hash, lh_meeting_equal, g_free, array_unref);
    job.turns = g_hash_table_new_full(lh_meeting_hash, lh_meeting_equal, g_free, NULL);
    job.order = g_ptr_array_new();
    ok = match_all(&job, error);
    g_ptr_array_unref(job.order);
    g_hash_table_unref(job.turns);
    g_hash_table_unref(job.meetings);
    g_ptr_array_unref(job.durations);
    g_free(job.first);
    return ok ? g_steal_pointer(&match) : NULL;
}

void
lh_trace_alignment_free(LhTraceAlignment *match)
{
    if (match == NULL)
        return;
    g_array_unref(match->records);
    g_array_unref(match->samples);
    g_array_unref(match->members);
    g_array_unref(match->blocks);
    g_array_unref(match->measured);
    g_ptr_array_unref(match->notes);
    g_free(match);
}
