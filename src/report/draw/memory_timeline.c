/* SPDX-License-Identifier: Apache-2.0 */
#include "report/draw/memory_timeline.h"

#include "base/files/output.h"
#include "report/data/memory_fields.h"
#include "report/draw/figure.h"

#define LINES_BYTES 65536 /* written at a time */

struct _LhMemoryTimeline {
    LhOutputStream *stream; /* NULL once it is complete */
    GString *text;          /* that is not written yet */
    LhJsonWriter *json;     /* to text; NULL: CSV */
};

bool
lh_memory_timeline_check_path(const char *path, GError **error)
{
    if (g_str_has_suffix(path, ".csv") || g_str_has_suffix(path, ".json") ||
        lh_figure_has_path(path))
        return true;
    return lh_output_refuse("--memory-timeline", path,
                            "a name that ends in .csv, .json, .svg, .png or .pdf", error);
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
    timeline->json = lh_jsonw_new(timeline->text, false);
    lh_document_begin(timeline->json, "longhaul.memory-timeline/1", of->stamp, of->setup, false);
    lh_jsonw_string(timeline->json, "schedule", of->schedule);
    lh_jsonw_array_begin(timeline->json, "records");
    return timeline;
}

static void
write_lines(LhMemoryTimeline *timeline)
{
    lh_output_write(timeline->stream, timeline->text->str, timeline->text->len);
    g_string_truncate(timeline->text, 0);
}

/* What is there before the first op is nobody's: empty fields. */
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
                           lh_category_names[r->op.category], r->category_bytes, r->bytes);
}

static void
add_json(LhJsonWriter *w, const LhMemoryRecord *r)
{
    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_uint(w, "rank", r->rank);
    lh_jsonw_seconds(w, "time_s", r->time_ps);
    lh_json_encode_members(w, lh_memory_op_fields, &r->op, NULL);
    lh_jsonw_string(w, "category", lh_category_names[r->op.category]);
    lh_jsonw_uint(w, "category_bytes", r->category_bytes);
    lh_jsonw_uint(w, "total_bytes", r->bytes);
    lh_jsonw_object_end(w);
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
    lh_jsonw_array_end(timeline->json);
    lh_jsonw_object_end(timeline->json);
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
    end_json(timeline); /* a document that is not at its end cannot be freed */
    lh_output_discard(timeline->stream);
    g_string_free(timeline->text, TRUE);
    g_free(timeline);
}
