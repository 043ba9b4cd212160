/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces in Chrome's JSON trace event format, which Perfetto, chrome://tracing and tools for
 * PyTorch's profiler read: one event per line, times in microseconds with three decimals.
 */
#include "report/export/trace_format.h"

#define TRACE_SCHEMA "longhaul.trace/1"

#define TID(number) ((number) + 1) /* of a stream; viewers take 0 for no thread */

/* Ends an object on one line, without a newline. */
static void
end_object(LhJsonWriter *w, GString *out)
{
    lh_jsonw_object_end(w);
    lh_jsonw_free(w);
    while (out->len > 0 && out->str[out->len - 1] == '\n')
        g_string_truncate(out, out->len - 1);
}

static void
begin_events(const LhTraceOf *of, GString *out)
{
    LhJsonWriter *w;

    g_string_append(out, "{\"displayTimeUnit\":\"ns\",\"otherData\":");
    w = lh_jsonw_new(out, true);
    lh_document_begin(w, TRACE_SCHEMA, of->stamp, of->setup, false);
    lh_jsonw_string(w, "schedule", of->name);
    end_object(w, out);
    g_string_append(out, ",\"traceEvents\":[");
}

/* Starts the line of the next event. The file's beginning, before the first event, stays in
 * @out. */
static void
next_event(GString *out)
{
    g_string_append(out, g_str_has_suffix(out->str, "[") ? "\n" : ",\n");
}

static void
name_track(const char *kind, uint32_t rank, uint32_t number, const char *name, GString *out)
{
    LhJsonWriter *w;

    next_event(out);
    w = lh_jsonw_new(out, true);
    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "ph", "M");
    lh_jsonw_string(w, "name", kind);
    lh_jsonw_uint(w, "pid", rank);
    lh_jsonw_uint(w, "tid", number);
    lh_jsonw_object_begin(w, "args");
    lh_jsonw_string(w, "name", name);
    lh_jsonw_object_end(w);
    end_object(w, out);
}

static void
describe_rank_events(const LhProgram *program, uint32_t rank, const char *label, GString *out)
{
    name_track("process_name", rank, 0, label, out);
    next_event(out);
    g_string_append_printf(out,
                           "{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%u,"
                           "\"args\":{\"sort_index\":%u}}",
                           rank, rank);
    for (uint32_t i = 0; i < program->streams_count; i++)
        name_track("thread_name", rank, TID(i), program->streams[i].name, out);
}

static void
append_us(GString *out, const char *key, uint64_t ns)
{
    g_string_append_printf(out, ",\"%s\":%" G_GUINT64_FORMAT ".%03u", key, ns / 1000,
                           (unsigned)(ns % 1000));
}

/* Appends an end of each arrow: "s" at its start, "f" at its end, each within a slice open at that
 * time. */
static void
append_flows(const LhTraceTrack *track, const char *end, const LhTraceMessages *messages,
             uint64_t ns, GString *out)
{
    for (guint i = 0; i < messages->count; i++) {
        next_event(out);
        g_string_append_printf(out,
                               "{\"ph\":\"%s\",\"cat\":\"message\",\"name\":\"message\","
                               "\"id\":%" G_GUINT64_FORMAT ",\"pid\":%u,\"tid\":%u",
                               end, messages->numbers[i], track->rank, TID(track->number));
        append_us(out, "ts", ns);
        g_string_append(out, *end == 'f' ? ",\"bp\":\"e\"}" : "}");
    }
}

static void
append_args(const LhTraceSlice *slice, GString *out)
{
    const LhTimelineRecord *r = slice->record;

    g_string_append_printf(out, ",\"args\":{\"op\":%u,\"step\":%u,\"phase\":\"%s\"", r->op, r->step,
                           lh_phase_names[r->phase]);
    if (slice->of_step)
        g_string_append_printf(out, ",\"layer\":%u,\"micro_batch\":%u", r->layer, r->micro_batch);
    if (r->bytes > 0)
        g_string_append_printf(out, ",\"bytes\":%" G_GUINT64_FORMAT, r->bytes);
    if (r->flops > 0)
        g_string_append_printf(out, ",\"flops\":%" G_GUINT64_FORMAT, r->flops);
    g_string_append_printf(
        out, ",\"start_ps\":%" G_GINT64_FORMAT ",\"duration_ps\":%" G_GINT64_FORMAT "}}",
        (gint64)r->start_ps, (gint64)(r->end_ps - r->start_ps));
}

static void
append_slice_events(LhTraceTrack *track, const LhTraceSlice *slice, GString *out)
{
    const LhTimelineRecord *r = slice->record;
    const uint64_t start = lh_trace_ns(r->start_ps);

    next_event(out);
    g_string_append_printf(out,
                           "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u",
                           slice->name == LH_TRACE_WAIT ? "wait" : lh_op_kind_names[r->kind],
                           lh_trace_name(slice->name), track->rank, TID(track->number));
    append_us(out, "ts", start);
    append_us(out, "dur", lh_trace_ns(r->end_ps) - start);
    append_args(slice, out);
    append_flows(track, "s", &slice->sent, start, out);
    append_flows(track, "f", &slice->received, lh_trace_arrival_ns(r), out);
}

static void
append_memory_event(uint32_t rank, uint64_t time_ns, uint64_t bytes, bool first, GString *out)
{
    (void)first;
    next_event(out);
    g_string_append_printf(out, "{\"ph\":\"C\",\"name\":\"memory\",\"pid\":%u", rank);
    append_us(out, "ts", time_ns);
    g_string_append_printf(out, ",\"args\":{\"bytes\":%" G_GUINT64_FORMAT "}}", bytes);
}

static void
describe_network_event(uint32_t number, GString *out)
{
    name_track("process_name", number, 0, "network", out);
}

#define RATE_FORMAT "%.9g" /* exact to a byte/s */

static void
append_link_event(const LhTraceLink *link, uint64_t time_ns, double gb_per_s, bool first,
                  GString *out)
{
    char rate[G_ASCII_DTOSTR_BUF_SIZE];

    (void)first;
    next_event(out);
    g_string_append_printf(out, "{\"ph\":\"C\",\"name\":\"%s\",\"pid\":%u", link->name,
                           link->process);
    append_us(out, "ts", time_ns);
    g_string_append_printf(out, ",\"args\":{\"GB/s\":%s}}",
                           g_ascii_formatd(rate, sizeof(rate), RATE_FORMAT, gb_per_s));
}

static void
end_events(GString *out)
{
    g_string_append(out, "\n]}\n");
}

const LhTraceFormat lh_trace_chrome = {
    .ending = ".json",
    .begin = begin_events,
    .rank = describe_rank_events,
    .slice = append_slice_events,
    .memory = append_memory_event,
    .network = describe_network_event,
    .link = append_link_event,
    .end = end_events,
};
