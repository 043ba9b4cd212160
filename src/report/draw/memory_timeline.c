/* SPDX-License-Identifier: Apache-2.0 */
#include "report/draw/memory_timeline.h"

#include "base/files/output.h"
#include "report/data/memory_fields.h"
#include "report/draw/figure.h"

#define LINES_BYTES 65536 /* written at a time */
#define MEMORY_SCHEMA "longhaul.memory-timeline/1"

struct _LhMemoryTimeline {
    LhOutputStream *stream; /* NULL once complete */
    GString *text;          /* not yet written */
    LhJsonWriter *json;     /* writes to text; NULL: CSV */
};

/* ---- the tables ---- */

/* A record of the document. */
typedef struct {
    uint64_t rank, category_bytes, total_bytes;
    LhTime time_ps;
    LhMemoryOp op;
    int category;
} MemoryRow;

typedef struct {
    LhDocumentHead head;
    char *schedule; /* borrowed */
    LhFieldLater records;
} MemoryDocument;

static const char *const memory_words[] = { MEMORY_SCHEMA, NULL };

/* Of LhMemoryOp.category. */
static const char *const places[] = {
    "attention",     "weights", "gradients", "optimizer", "saved", "working",
    "communication", "logits",  "other",     "kv-cache",  "host",  NULL,
};
G_STATIC_ASSERT(G_N_ELEMENTS(places) == LH_CATEGORIES + 2);

static const LhField record_fields[] = {
    LH_FIELD_ROW(UINT, MemoryRow, rank, "rank", ALWAYS, .description = "The rank."),
    LH_FIELD_SECONDS_ROW(INT, MemoryRow, time_ps, "time_s", ALWAYS,
                         .description = "Time at which the host reaches the op, in seconds."),
    LH_FIELD_ROW(INLINE, MemoryRow, op, "op", ALWAYS, .fields = lh_memory_op_fields),
    LH_FIELD_ROW(CHOICE, MemoryRow, category, "category", ALWAYS, .choices = places,
                 .description = "Category of the memory allocated or freed; host: of a tensor that "
                                "is offloaded, in host memory."),
    LH_FIELD_ROW(UINT, MemoryRow, category_bytes, "category_bytes", ALWAYS,
                 .description = "Bytes of the category after the op."),
    LH_FIELD_ROW(UINT, MemoryRow, total_bytes, "total_bytes", ALWAYS,
                 .description = "Bytes of all categories on the device after the op."),
    { .name = NULL },
};

const LhField lh_memory_timeline_fields[] = {
    LH_DOCUMENT_HEAD(MemoryDocument, head, memory_words),
    LH_FIELD_ROW(STRING, MemoryDocument, schedule, "schedule", ALWAYS,
                 .description = "The schedule."),
    LH_FIELD_ROW(LATER, MemoryDocument, records, "records", ALWAYS, .fields = record_fields,
                 .element_size = sizeof(MemoryRow),
                 .description = "All allocs and frees, in the order of simulation."),
    { .name = NULL },
};

/* ---- writing ---- */

bool
lh_memory_timeline_check_path(const char *path, GError **error)
{
    if (g_str_has_suffix(path, ".csv") || g_str_has_suffix(path, ".json") ||
        lh_figure_has_path(path))
        return true;
    return lh_output_refuse("--memory-timeline", path,
                            "a name that ends in .csv, .json, .svg, .png or .pdf", error);
}

static void
begin_json(LhMemoryTimeline *timeline, const LhMemoryTimelineOf *of)
{
    MemoryDocument document = { .head = lh_document_head(MEMORY_SCHEMA, of->stamp, of->setup),
                                .schedule = (char *)of->schedule };

    timeline->json = lh_jsonw_new(timeline->text, false);
    lh_json_encode_open(timeline->json, NULL, lh_memory_timeline_fields, &document, NULL);
    lh_document_head_clear(&document.head);
}

LhMemoryTimeline *
lh_memory_timeline_new(const char *path, const LhMemoryTimelineOf *of, GError **error)
{
    LhOutputStream *stream = lh_output_open(path, error);
    LhMemoryTimeline *timeline;

    if (stream == NULL)
        return NULL;
    timeline = g_new0(LhMemoryTimeline, 1);
    timeline->stream = stream;
    timeline->text = g_string_sized_new(LINES_BYTES);
    if (!g_str_has_suffix(path, ".json")) {
        g_string_append(timeline->text, "rank,time_s,op,layer,micro_batch,phase,category,"
                                        "category_bytes,total_bytes\n");
        return timeline;
    }
    begin_json(timeline, of);
    return timeline;
}

static void
write_lines(LhMemoryTimeline *timeline)
{
    lh_output_write(timeline->stream, timeline->text->str, timeline->text->len);
    g_string_truncate(timeline->text, 0);
}

/* Memory before the first op belongs to no op: its fields are empty. */
static void
add_csv(GString *out, const LhMemoryRecord *r)
{
    char time[LH_WIDE_TEXT_SIZE];

    g_string_append_printf(out, "%u,%s,", r->rank, lh_wide_seconds(r->time_ps, time));
    if (r->op.op == LH_OP_NONE)
        g_string_append(out, ",,,,");
    else
        g_string_append_printf(out, "%u,%u,%u,%s,", r->op.op, r->op.layer, r->op.micro_batch,
                               lh_phase_names[r->op.phase]);
    g_string_append_printf(out, "%s,%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT "\n",
                           places[r->op.category], r->category_bytes, r->bytes);
}

static void
add_json(LhJsonWriter *w, const LhMemoryRecord *r)
{
    const MemoryRow row = { .rank = r->rank,
                            .category_bytes = r->category_bytes,
                            .total_bytes = r->bytes,
                            .time_ps = r->time_ps,
                            .op = r->op,
                            .category = r->op.category };

    lh_json_encode(w, NULL, record_fields, &row, NULL);
}

void
lh_memory_timeline_add(void *data, const LhMemoryRecord *record)
{
    LhMemoryTimeline *timeline = data;

    if (timeline->json != NULL)
        add_json(timeline->json, record);
    else
        add_csv(timeline->text, record);
    if (timeline->text->len >= LINES_BYTES)
        write_lines(timeline);
}

static void
end_json(LhMemoryTimeline *timeline)
{
    if (timeline->json == NULL)
        return;
    lh_json_encode_close(timeline->json);
    g_clear_pointer(&timeline->json, lh_jsonw_free);
}

bool
lh_memory_timeline_finish(LhMemoryTimeline *timeline, GError **error)
{
    end_json(timeline);
    write_lines(timeline);
    return lh_output_close(g_steal_pointer(&timeline->stream), error);
}

void
lh_memory_timeline_free(LhMemoryTimeline *timeline)
{
    if (timeline == NULL)
        return;
    end_json(timeline); /* an unfinished document cannot be freed */
    lh_output_discard(timeline->stream);
    g_string_free(timeline->text, TRUE);
    g_free(timeline);
}
