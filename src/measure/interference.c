/* SPDX-License-Identifier: Apache-2.0 */
#include "measure/interference.h"

#include "measure/fit.h"
#include "runtime/executor.h"
#include "sched/schedule.h"

#include <math.h>
#include <string.h>

/* Least overlap with messages for a kernel to be counted, as a share of its duration. */
#define OVERLAP_MIN 0.2

static void
collect_all(void *data, const LhTimelineRecord *record)
{
    g_array_append_vals(data, record, 1);
}

static void
load_zeros(void *data, uint32_t rank, uint16_t slot, uint32_t part, unsigned char *into)
{
    const LhProgram *program = data;

    (void)rank;
    (void)part;
    memset(into, 0, program->slots[slot].part_bytes);
}

/* Total overlap of the op with the exchanges of its rank. */
static double
overlap_ps(const GArray *records, const LhTimelineRecord *op)
{
    LhTime sum_ps = 0;

    for (guint i = 0; i < records->len; i++) {
        const LhTimelineRecord *r = &g_array_index(records, LhTimelineRecord, i);

        if (r->rank == op->rank && r->kind == LH_OP_EXCHANGE)
            sum_ps += MAX(MIN(r->end_ps, op->end_ps) - MAX(r->start_ps, op->start_ps), 0);
    }
    return (double)sum_ps;
}

static bool
is_attention(const LhTimelineRecord *r)
{
    return r->kind == LH_OP_COMPUTE && lh_kernels[r->kernel]->effect == LH_EFFECT_ATTEND;
}

double
lh_interference_share(const GArray *records)
{
    g_autofree double *alone = g_new(double, records->len + 1);
    g_autofree double *held = g_new(double, records->len + 1);
    size_t alone_count = 0, held_count = 0;
    double alone_ps;

    for (guint i = 0; i < records->len; i++) {
        const LhTimelineRecord *r = &g_array_index(records, LhTimelineRecord, i);

        if (is_attention(r) && overlap_ps(records, r) == 0)
            alone[alone_count++] = (double)(r->end_ps - r->start_ps);
    }
    if (alone_count == 0)
        return -1;
    alone_ps = lh_median(alone, alone_count);
    for (guint i = 0; i < records->len; i++) {
        const LhTimelineRecord *r = &g_array_index(records, LhTimelineRecord, i);
        const double took_ps = (double)(r->end_ps - r->start_ps);
        const double beside_ps = is_attention(r) ? overlap_ps(records, r) : 0;

        if (beside_ps > OVERLAP_MIN * took_ps)
            held[held_count++] = (took_ps - alone_ps) / beside_ps;
    }
    return held_count == 0 ? -1 : fmin(fmax(lh_median(held, held_count), 0), 1);
}

bool
lh_measure_interference(const LhInterference *probe, double *held, GError **error)
{
    const LhProgramParams params = { .attention = { .batch = 1,
                                                    .heads = probe->heads,
                                                    .groups = probe->heads,
                                                    .head_dim = probe->head_dim,
                                                    .seq_length = probe->tokens * probe->ranks,
                                                    .dtype = probe->dtype },
                                     .ranks = probe->ranks,
                                     .pass = LH_PASS_FWD };
    g_autoptr(LhProgram) program = lh_program_new(lh_schedule_find("ring", NULL), &params, error);
    g_autoptr(GArray) records = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord));
    const LhRunParams run = { .program = program,
                              .backend = probe->backend,
                              .kernel_set = probe->kernel_set,
                              .deadline_us = probe->deadline_us,
                              .unguarded = true,
                              .load = load_zeros,
                              .load_data = program,
                              .timeline = collect_all,
                              .timeline_data = records };
    double shares[LH_INTERFERENCE_TURNS];
    size_t count = 0;

    *held = -1;
    if (program == NULL)
        return false;
    for (uint32_t turn = 0; turn < LH_INTERFERENCE_TURNS; turn++) {
        g_autoptr(LhRunResult) result = NULL;
        double share;

        g_array_set_size(records, 0);
        result = lh_execute(&run, error);
        if (result == NULL)
            return false;
        share = result->whole ? lh_interference_share(records) : -1;
        if (turn > 0 && share >= 0)
            shares[count++] = share;
    }
    if (count > 0)
        *held = lh_median(shares, count);
    return true;
}
