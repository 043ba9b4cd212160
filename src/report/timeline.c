/*
 * Timelines in memory: about 100 bytes an op.
 */
#include "report/timeline.h"

#include "base/escape.h"
#include "report/text.h"

#include <string.h>

LhTimeline *
lh_timeline_new(const GArray *ranks)
{
    LhTimeline *timeline = g_new0(LhTimeline, 1);

    timeline->records = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord));
    if (ranks == NULL)
        return timeline;
    timeline->ranks = g_byte_array_new();
    for (guint i = 0; i < ranks->len; i++) {
        const uint32_t rank = g_array_index(ranks, uint32_t, i);
        const guint before = timeline->ranks->len;

        if (rank >= before) {
            g_byte_array_set_size(timeline->ranks, rank + 1);
            memset(timeline->ranks->data + before, 0, rank + 1 - before);
        }
        timeline->ranks->data[rank] = 1;
    }
    return timeline;
}

void
lh_timeline_free(LhTimeline *timeline)
{
    if (timeline == NULL)
        return;
    g_array_unref(timeline->records);
    g_clear_pointer(&timeline->ranks, g_byte_array_unref);
    g_free(timeline);
}

bool
lh_timeline_keeps(const LhTimeline *timeline, uint32_t rank)
{
    return timeline->ranks == NULL ||
           (rank < timeline->ranks->len && timeline->ranks->data[rank] != 0);
}

void
lh_timeline_collect(void *data, const LhTimelineRecord *record)
{
    LhTimeline *timeline = data;

    if (lh_timeline_keeps(timeline, record->rank))
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

/* The name of the stream of a record, as a field of CSV. */
static const char *
stream_field(const LhTimelineRecord *r, const GPtrArray *names)
{
    if (r->kind == LH_OP_COMPUTE || r->kind == LH_OP_EXCHANGE || r->kind == LH_OP_COLLECTIVE)
        return ((GString *)g_ptr_array_index(names, r->stream))->str;
    return "host";
}

static void
string_free(gpointer text)
{
    g_string_free(text, TRUE);
}

void
lh_timeline_csv(const LhTimeline *timeline, const LhProgram *program, GString *out)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(string_free);
    char issued[LH_WIDE_TEXT_SIZE], start[LH_WIDE_TEXT_SIZE], end[LH_WIDE_TEXT_SIZE];

    for (uint32_t i = 0; i < program->streams_count; i++) {
        GString *name = g_string_new(NULL);

        lh_escape_csv(name, program->streams[i].name, false);
        g_ptr_array_add(names, name);
    }
    g_string_append(out, "rank,op,kind,stream,phase,step,kernel,tier,issued_s,start_s,end_s,"
                         "bytes,flops\n");
    for (guint i = 0; i < timeline->records->len; i++) {
        const LhTimelineRecord *r = &g_array_index(timeline->records, LhTimelineRecord, i);

        g_string_append_printf(
            out, "%u,%u,%s,%s,%s,%u,%s,%s,%s,%s,%s,%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT "\n",
            r->rank, r->op, lh_op_kind_names[r->kind], stream_field(r, names),
            lh_phase_names[r->phase], r->step,
            r->kind == LH_OP_COMPUTE ? lh_kernels[r->kernel]->name : "",
            r->tier < LH_TIERS ? lh_tier_names[r->tier] : "", lh_wide_seconds(r->issued_ps, issued),
            lh_wide_seconds(r->start_ps, start), lh_wide_seconds(r->end_ps, end), r->bytes,
            r->flops);
    }
}
