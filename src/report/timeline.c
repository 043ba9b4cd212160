/*
 * Timelines in memory: about 100 bytes an op.
 */
#include "report/timeline.h"

#include "report/text.h"

LhTimeline *
lh_timeline_new(uint32_t ranks_max)
{
    LhTimeline *timeline = g_new0(LhTimeline, 1);

    timeline->records = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord));
    timeline->ranks_max = ranks_max;
    return timeline;
}

void
lh_timeline_free(LhTimeline *timeline)
{
    if (timeline == NULL)
        return;
    g_array_unref(timeline->records);
    g_free(timeline);
}

void
lh_timeline_collect(void *data, const LhTimelineRecord *record)
{
    LhTimeline *timeline = data;

    if (record->rank < timeline->ranks_max)
        g_array_append_vals(timeline->records, record, 1);
}

static int
by_rank_and_op(gconstpointer a, gconstpointer b)
{
    const LhTimelineRecord *x = a;
    const LhTimelineRecord *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

void
lh_timeline_sort(LhTimeline *timeline)
{
    g_array_sort(timeline->records, by_rank_and_op);
}

void
lh_timeline_csv(const LhTimeline *timeline, const LhProgram *program, GString *out)
{
    char issued[LH_WIDE_TEXT_SIZE], start[LH_WIDE_TEXT_SIZE], end[LH_WIDE_TEXT_SIZE];

    g_string_append(out, "rank,op,kind,stream,phase,step,kernel,tier,issued_s,start_s,end_s,"
                         "bytes,flops\n");
    for (guint i = 0; i < timeline->records->len; i++) {
        const LhTimelineRecord *r = &g_array_index(timeline->records, LhTimelineRecord, i);
        const bool streamed =
            r->kind == LH_OP_COMPUTE || r->kind == LH_OP_EXCHANGE || r->kind == LH_OP_COLLECTIVE;

        g_string_append_printf(
            out, "%u,%u,%s,%s,%s,%u,%s,%s,%s,%s,%s,%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT "\n",
            r->rank, r->op, lh_op_kind_names[r->kind],
            streamed ? program->streams[r->stream].name : "host", lh_phase_names[r->phase], r->step,
            r->kind == LH_OP_COMPUTE ? lh_kernels[r->kernel]->name : "",
            r->tier < LH_TIERS ? lh_tier_names[r->tier] : "", lh_wide_seconds(r->issued_ps, issued),
            lh_wide_seconds(r->start_ps, start), lh_wide_seconds(r->end_ps, end), r->bytes,
            r->flops);
    }
}
