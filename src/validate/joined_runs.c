/* SPDX-License-Identifier: Apache-2.0 */
#include "validate/joined_runs.h"

#include "base/error.h"

#include <math.h>

const LhTimelineRecord *
lh_joined_record(const GArray *records, guint index)
{
    return &g_array_index(records, LhTimelineRecord, index);
}

double
lh_joined_seconds(LhTime time_ps)
{
    return (double)time_ps / (double)LH_PS_PER_S;
}

void
lh_joined_clear(LhJoinedRuns *j)
{
    g_clear_pointer(&j->predicted, g_array_unref);
    g_clear_pointer(&j->meetings, lh_pairing_free);
    g_clear_pointer(&j->replay, lh_replay_free);
    g_clear_pointer(&j->times, g_array_unref);
    g_clear_pointer(&j->makespans, g_array_unref);
    g_clear_pointer(&j->starts, g_array_unref);
}

double
lh_joined_took(const LhJoinedRuns *j, const GArray *records, guint i)
{
    const LhTimelineRecord *r = lh_joined_record(records, i);
    LhTime start_ps = r->start_ps;

    if (j->replay == NULL)
        return fmax(lh_joined_seconds(lh_pairing_took(j->meetings, records, i)), j->tick_s);
    start_ps = MAX(start_ps, lh_replay_op(j->replay, r->op).others_ps);
    return fmax(lh_joined_seconds(r->end_ps - (start_ps < r->end_ps ? start_ps : r->start_ps)),
                j->tick_s);
}

bool
lh_joined_add(LhJoinedRuns *j, uint64_t run, GArray *measured, const LhRunResult *result,
              GError **error)
{
    double makespan = lh_joined_seconds(result->makespan_ps);
    double start = 0, issued = 0;
    LhTime last_ps = 0;

    g_array_sort(measured, lh_timeline_by_rank_and_op);
    if (measured->len != j->predicted->len) {
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "%u ops were executed, but %u simulated",
                    measured->len, j->predicted->len);
        return false;
    }
    for (guint i = 0; i < measured->len; i++) {
        const LhTimelineRecord *m = lh_joined_record(measured, i);
        const LhTimelineRecord *p = lh_joined_record(j->predicted, i);

        if (m->rank != p->rank || m->op != p->op || m->kernel != p->kernel) {
            g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                        "op %u of rank %u was executed, but op %u of rank %u was simulated", m->op,
                        m->rank, p->op, p->rank);
            return false;
        }
        g_array_index(j->times, double, i * j->repeat + run) = lh_joined_took(j, measured, i);
        if (i == 0 || m->rank != lh_joined_record(measured, i - 1)->rank)
            issued = lh_joined_seconds(
                MIN(m->issued_ps, m->start_ps)); /* in virtual time hosts may issue late */
        if (m->end_ps > last_ps) {
            last_ps = m->end_ps;
            start = issued;
        }
    }
    g_array_append_val(j->makespans, makespan);
    g_array_append_val(j->starts, start);
    return true;
}
