/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timelines in memory: about 100 bytes per op.
 */
#include "report/data/timeline.h"

#include "base/escape.h"
#include "base/files/output.h"
#include "program/pairing.h"
#include "report/base/text.h"

#include <string.h>

#define BLOCK_MOTIONS 4096
#define TIMELINE_SCHEMA "longhaul.timeline/1"

LhTimeline *
lh_timeline_new(const GArray *ranks)
{
    LhTimeline *timeline = g_new0(LhTimeline, 1);

    timeline->records = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord));
    timeline->blocks = g_ptr_array_new_with_free_func(g_free);
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
    g_ptr_array_unref(timeline->blocks);
    g_clear_pointer(&timeline->ranks, g_byte_array_unref);
    g_free(timeline);
}

bool
lh_timeline_keeps(const LhTimeline *timeline, uint32_t rank)
{
    return timeline->ranks == NULL ||
           (rank < timeline->ranks->len && timeline->ranks->data[rank] != 0);
}

/* Copies the motions to memory that lives as long as the timeline. */
static const LhMotion *
keep_motions(LhTimeline *timeline, const LhMotion *motions, uint32_t count)
{
    LhMotion *copy;

    if (timeline->room == NULL || timeline->room_count < count) {
        timeline->room_count = MAX(count, BLOCK_MOTIONS);
        timeline->room = g_new(LhMotion, timeline->room_count);
        g_ptr_array_add(timeline->blocks, timeline->room);
    }
    copy = timeline->room;
    memcpy(copy, motions, count * sizeof(*motions));
    timeline->room += count;
    timeline->room_count -= count;
    return copy;
}

void
lh_timeline_collect(void *data, const LhTimelineRecord *record)
{
    LhTimeline *timeline = data;
    LhTimelineRecord kept = *record;

    if (!lh_timeline_keeps(timeline, record->rank))
        return;
    if (record->motions != NULL)
        kept.motions = keep_motions(timeline, record->motions, record->motions_count);
    g_array_append_val(timeline->records, kept);
}

void
lh_timeline_meet(LhTimeline *timeline, const LhProgram *program)
{
    g_autoptr(LhPairing) meetings = lh_pairing_new(program, timeline->records);
    g_autoptr(GArray) motions = g_array_sized_new(FALSE, FALSE, sizeof(LhMotion), 1);

    for (guint i = 0; i < timeline->records->len; i++) {
        LhTimelineRecord *r = &g_array_index(timeline->records, LhTimelineRecord, i);

        lh_pairing_motions(meetings, timeline->records, i, motions);
        if (motions->len == 0)
            continue;
        r->motions_count = motions->len;
        r->motions =
            keep_motions(timeline, (const LhMotion *)(const void *)motions->data, motions->len);
    }
}

bool
lh_timeline_next_piece(const LhTimelineRecord *r, LhTimelinePiece *p)
{
    const bool first = p->motion == 0 && !p->waits;
    const LhMotion *next = p->motion < r->motions_count ? &r->motions[p->motion] : NULL;

    if (!first && p->to_ps == r->end_ps && next == NULL)
        return false;
    p->from_ps = first ? r->start_ps : p->to_ps;
    if (r->motions == NULL || r->start_ps == r->end_ps) {
        *p = (LhTimelinePiece){ false, r->start_ps, r->end_ps, UINT32_MAX };
    } else if (next == NULL || next->from_ps > p->from_ps) {
        p->waits = true;
        p->to_ps = next == NULL ? r->end_ps : next->from_ps;
    } else {
        p->waits = false;
        p->to_ps = next->to_ps;
        p->motion++;
    }
    return true;
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

/* Name of the stream of a record, as a CSV field. */
static const char *
stream_field(const LhTimelineRecord *r, const GPtrArray *names)
{
    if (r->kind == LH_OP_COMPUTE || r->kind == LH_OP_EXCHANGE || r->kind == LH_OP_COLLECTIVE)
        return ((GString *)g_ptr_array_index(names, r->stream))->str;
    return "host";
}

static const char *
kernel_of(const LhTimelineRecord *r)
{
    return r->kind == LH_OP_COMPUTE ? lh_kernels[r->kernel]->name : "";
}

static const char *
tier_of(const LhTimelineRecord *r)
{
    return r->tier < LH_TIERS ? lh_tier_names[r->tier] : "";
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
    char waits[LH_WIDE_TEXT_SIZE];

    for (uint32_t i = 0; i < program->streams_count; i++) {
        GString *name = g_string_new(NULL);

        lh_escape_csv(name, program->streams[i].name, false);
        g_ptr_array_add(names, name);
    }
    g_string_append(out, "rank,op,kind,stream,phase,step,kernel,tier,issued_s,start_s,end_s,"
                         "waits_s,bytes,flops\n");
    for (guint i = 0; i < timeline->records->len; i++) {
        const LhTimelineRecord *r = &g_array_index(timeline->records, LhTimelineRecord, i);

        g_string_append_printf(
            out,
            "%u,%u,%s,%s,%s,%u,%s,%s,%s,%s,%s,%s,%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT "\n",
            r->rank, r->op, lh_op_kind_names[r->kind], stream_field(r, names),
            lh_phase_names[r->phase], r->step, kernel_of(r), tier_of(r),
            lh_wide_seconds(r->issued_ps, issued), lh_wide_seconds(r->start_ps, start),
            lh_wide_seconds(r->end_ps, end),
            r->motions == NULL ? "" : lh_wide_seconds(lh_timeline_waited(r), waits), r->bytes,
            r->flops);
    }
}

/* ---- JSON ---- */

/* An op of the document; its texts are borrowed. */
typedef struct {
    uint64_t rank, op, step, bytes, flops;
    int kind, phase;
    char *stream, *kernel, *tier;
    LhTime issued_ps, start_ps, end_ps, waits_ps;
} TimelineOp;

typedef struct {
    LhDocumentHead head;
    char *schedule; /* borrowed */
    LhFieldLater ops;
} TimelineDocument;

static const char *const schema_words[] = { TIMELINE_SCHEMA, NULL };

#define OP_ROW(kind, member, ...)                                                                  \
    LH_FIELD_ROW(kind, TimelineOp, member, #member, ALWAYS, __VA_ARGS__)
#define TIME_ROW(member, key, ...)                                                                 \
    LH_FIELD_SECONDS_ROW(INT, TimelineOp, member, key, ALWAYS, __VA_ARGS__)

static const LhField op_fields[] = {
    OP_ROW(UINT, rank, .description = "Rank of the op."),
    OP_ROW(UINT, op, .description = "Number of the op within the rank."),
    OP_ROW(CHOICE, kind, .choices = lh_op_kind_names, .description = "Kind of the op."),
    OP_ROW(STRING, stream, .description = "Its stream, or host."),
    OP_ROW(CHOICE, phase, .choices = lh_phase_names, .description = "Phase of the step."),
    OP_ROW(UINT, step, .description = "Step of the schedule."),
    OP_ROW(STRING, kernel, .description = "Kernel of a compute op; else empty."),
    OP_ROW(STRING, tier, .description = "Highest tier of its messages; empty without messages."),
    TIME_ROW(issued_ps, "issued_s", .description = "Time at which the host issued it, in seconds."),
    TIME_ROW(start_ps, "start_s", .description = "Start."),
    TIME_ROW(end_ps, "end_s", .description = "End."),
    { .name = "waits_s",
      .type = LH_FIELD_INT,
      .offset = offsetof(TimelineOp, waits_ps),
      .flags = LH_FIELD_STATED | LH_FIELD_PICOSECONDS,
      .description = "Time that it waited for other ranks between start and end, if known." },
    OP_ROW(UINT, bytes, .description = "Bytes sent."),
    OP_ROW(UINT, flops, .description = "Floating-point operations."),
    { .name = NULL },
};

const LhField lh_timeline_fields[] = {
    LH_DOCUMENT_HEAD(TimelineDocument, head, schema_words),
    LH_FIELD_ROW(STRING, TimelineDocument, schedule, "schedule", ALWAYS,
                 .description = "The schedule."),
    LH_FIELD_ROW(LATER, TimelineDocument, ops, "ops", ALWAYS, .fields = op_fields,
                 .element_size = sizeof(TimelineOp), .description = "The ops, by rank."),
    { .name = NULL },
};

static TimelineOp
timeline_op(const LhTimelineRecord *r, const LhProgram *program)
{
    const bool streamed =
        r->kind == LH_OP_COMPUTE || r->kind == LH_OP_EXCHANGE || r->kind == LH_OP_COLLECTIVE;

    return (TimelineOp){
        .rank = r->rank,
        .op = r->op,
        .step = r->step,
        .bytes = r->bytes,
        .flops = r->flops,
        .kind = r->kind,
        .phase = r->phase,
        .stream = (char *)(streamed ? program->streams[r->stream].name : "host"),
        .kernel = (char *)kernel_of(r),
        .tier = (char *)tier_of(r),
        .issued_ps = r->issued_ps,
        .start_ps = r->start_ps,
        .end_ps = r->end_ps,
        .waits_ps = r->motions == NULL ? LH_FIELD_NO_INT : lh_timeline_waited(r),
    };
}

static void
write_json(const LhTimeline *timeline, const LhTimelineOf *of, GString *out)
{
    g_autoptr(LhJsonWriter) w = lh_jsonw_new(out, false);
    TimelineDocument document = { .head = lh_document_head(TIMELINE_SCHEMA, of->stamp, of->setup),
                                  .schedule = (char *)of->name };

    lh_json_encode_open(w, NULL, lh_timeline_fields, &document, NULL);
    lh_document_head_clear(&document.head);
    for (guint i = 0; i < timeline->records->len; i++) {
        const TimelineOp op =
            timeline_op(&g_array_index(timeline->records, LhTimelineRecord, i), of->program);

        lh_json_encode(w, NULL, op_fields, &op, NULL);
    }
    lh_json_encode_close(w);
}

bool
lh_timeline_check_path(const char *path, GError **error)
{
    if (g_str_has_suffix(path, ".csv") || g_str_has_suffix(path, ".json") ||
        lh_output_is_stream(path))
        return true;
    return lh_output_refuse("--timeline", path,
                            "a name that ends in .csv or .json, a pipe or a device", error);
}

bool
lh_timeline_write(const LhTimeline *timeline, const LhTimelineOf *of, const char *path,
                  GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);

    if (g_str_has_suffix(path, ".json"))
        write_json(timeline, of, text);
    else
        lh_timeline_csv(timeline, of->program, text);
    return lh_output_file(path, text->str, text->len, error);
}
