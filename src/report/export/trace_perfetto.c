/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces as Perfetto's protobuf (perfetto.protos.Trace): a sequence of packets, each a message of
 * fields that are numbers, or bytes preceded by their length.
 *
 * Every track has its own packet sequence. Its first packet describes the track and makes it the
 * default of later packets. A name gets a number when it is first used.
 */
#include "base/escape.h"
#include "report/export/protobuf.h"
#include "report/export/trace_format.h"

enum { /* fields of each message */
       TRACE_PACKET = 1,
       PACKET_TIMESTAMP = 8,
       PACKET_SEQUENCE = 10,
       PACKET_EVENT = 11,
       PACKET_NAMES = 12,
       PACKET_FLAGS = 13,
       PACKET_DEFAULTS = 59,
       PACKET_TRACK = 60,
       TRACK_UUID = 1,
       TRACK_NAME = 2,
       TRACK_PROCESS = 3,
       TRACK_PARENT = 5,
       TRACK_COUNTER = 8,
       TRACK_CHILD_ORDER = 11,
       TRACK_ORDER = 12,
       TRACK_MERGE = 15,
       PROCESS_PID = 1,
       PROCESS_NAME = 6,
       COUNTER_UNIT = 3,
       COUNTER_UNIT_NAME = 6,
       DEFAULTS_EVENT = 11,
       EVENT_ANNOTATION = 4,
       EVENT_TYPE = 9,
       EVENT_NAME = 10,
       EVENT_TRACK = 11,
       EVENT_VALUE = 30,
       EVENT_DOUBLE_VALUE = 44,
       EVENT_FLOWS = 47,
       EVENT_FLOWS_END = 48,
       NAMES_OF_EVENTS = 2,
       NAMES_OF_ANNOTATIONS = 3,
       NAME_NUMBER = 1,
       NAME_TEXT = 2,
       ANNOTATION_NAME = 1,
       ANNOTATION_UINT = 3,
       ANNOTATION_TEXT = 6,
};

enum { /* values */
       FLAGS_FIRST = 1,
       FLAGS_LATER = 2,
       TYPE_BEGIN = 1,
       TYPE_END = 2,
       TYPE_INSTANT = 3,
       TYPE_COUNTER = 4,
       ORDER_EXPLICIT = 3,
       MERGE_NONE = 2,
       UNIT_BYTES = 3,
};

/* Tracks of a rank. */
enum {
    OF_RANK,
    OF_STREAMS, /* parent of the streams with slices */
    OF_MEMORY,
    OF_SLICES, /* first stream; the others follow */
    TRACKS_MAX = OF_SLICES + LH_STREAMS_MAX,
};

typedef enum {
    NOTE_OP,
    NOTE_STEP,
    NOTE_PHASE,
    NOTE_LAYER,
    NOTE_MICRO_BATCH,
    NOTE_BYTES,
    NOTE_FLOPS,
    NOTE_START,
    NOTE_DURATION,
    NOTES
} Note;

static const char *const note_names[NOTES] = {
    "op", "step", "phase", "layer", "micro_batch", "bytes", "flops", "start_ps", "duration_ps",
};

/* --- tracks -------------------------------------------------------------------------------------
 */

/* Unique id of a track, above 0. */
static uint64_t
track_uuid(uint32_t rank, uint32_t track)
{
    return ((uint64_t)rank + 1) * TRACKS_MAX + track;
}

/* Begins a packet of a track's sequence. */
static gsize
packet_begin(GString *out, uint32_t rank, uint32_t track, int flags)
{
    const gsize packet = lh_proto_begin(out, TRACE_PACKET);

    lh_proto_uint(out, PACKET_SEQUENCE, track_uuid(rank, track));
    lh_proto_uint(out, PACKET_FLAGS, (uint64_t)flags);
    return packet;
}

static gsize
event_packet_begin(GString *out, uint32_t rank, uint32_t track, uint64_t time_ns)
{
    const gsize packet = packet_begin(out, rank, track, FLAGS_LATER);

    lh_proto_uint(out, PACKET_TIMESTAMP, time_ns);
    return packet;
}

/* Makes the track the default of the sequence's events. */
static void
put_default_track(GString *out, uint64_t uuid)
{
    const gsize defaults = lh_proto_begin(out, PACKET_DEFAULTS);
    const gsize event = lh_proto_begin(out, DEFAULTS_EVENT);

    lh_proto_uint(out, EVENT_TRACK, uuid);
    lh_proto_end(out, event);
    lh_proto_end(out, defaults);
}

static void
put_name(GString *out, uint32_t field, uint32_t number, const char *text)
{
    const gsize name = lh_proto_begin(out, field);

    lh_proto_uint(out, NAME_NUMBER, number);
    lh_proto_text(out, NAME_TEXT, text);
    lh_proto_end(out, name);
}

static void
begin_packets(const LhTraceOf *of, GString *out)
{
    (void)of;
    (void)out;
}

static void
put_process(uint32_t rank, const char *label, GString *out)
{
    const gsize packet = packet_begin(out, rank, OF_RANK, FLAGS_FIRST);
    const gsize track = lh_proto_begin(out, PACKET_TRACK);
    gsize process;

    lh_proto_uint(out, TRACK_UUID, track_uuid(rank, OF_RANK));
    lh_proto_text(out, TRACK_NAME, label);
    process = lh_proto_begin(out, TRACK_PROCESS);
    lh_proto_uint(out, PROCESS_PID, (uint64_t)rank + 1); /* 0 means no process */
    lh_proto_text(out, PROCESS_NAME, label);
    lh_proto_end(out, process);
    lh_proto_end(out, track);
    lh_proto_end(out, packet);
}

/* Groups the streams under a track: tracks directly below a process cannot be ordered, those below
 * another track can. */
static void
put_streams(uint32_t rank, GString *out)
{
    const gsize packet = packet_begin(out, rank, OF_STREAMS, FLAGS_FIRST);
    const gsize track = lh_proto_begin(out, PACKET_TRACK);

    lh_proto_uint(out, TRACK_UUID, track_uuid(rank, OF_STREAMS));
    lh_proto_text(out, TRACK_NAME, "streams");
    lh_proto_uint(out, TRACK_PARENT, track_uuid(rank, OF_RANK));
    lh_proto_uint(out, TRACK_CHILD_ORDER, ORDER_EXPLICIT);
    lh_proto_end(out, track);
    lh_proto_end(out, packet);
}

static void
describe_rank_packets(const LhProgram *program, uint32_t rank, const char *label, GString *out)
{
    (void)program;
    put_process(rank, label, out);
    put_streams(rank, out);
}

static void
describe_track(LhTraceTrack *t, GString *out)
{
    const uint32_t number = OF_SLICES + t->number;
    const gsize packet = packet_begin(out, t->rank, number, FLAGS_FIRST);
    const gsize track = lh_proto_begin(out, PACKET_TRACK);
    g_autofree char *name = lh_escaped_line(t->name);
    gsize names;

    lh_proto_uint(out, TRACK_UUID, track_uuid(t->rank, number));
    lh_proto_text(out, TRACK_NAME, name);
    lh_proto_uint(out, TRACK_PARENT, track_uuid(t->rank, OF_STREAMS));
    lh_proto_uint(out, TRACK_ORDER, t->number);
    lh_proto_uint(out, TRACK_MERGE, MERGE_NONE); /* also if two streams have the same name */
    lh_proto_end(out, track);
    put_default_track(out, track_uuid(t->rank, number));
    names = lh_proto_begin(out, PACKET_NAMES);
    for (uint32_t i = 0; i < NOTES; i++)
        put_name(out, NAMES_OF_ANNOTATIONS, i + 1, note_names[i]);
    lh_proto_end(out, names);
    lh_proto_end(out, packet);
    t->begun = true;
}

/* --- events -------------------------------------------------------------------------------------
 */

/* An event of a track, with its name. */
typedef struct {
    LhTraceTrack *track;
    uint64_t time_ns;
    int type;
    uint32_t name;
} Event;

typedef struct {
    gsize packet, event; /* their starts in the output */
} Open;

static Open
event_begin(const Event *e, GString *out)
{
    LhTraceTrack *t = e->track;
    uint64_t *known = &t->names_known[e->name / 64];
    const uint64_t bit = UINT64_C(1) << (e->name % 64);
    Open open = { .packet = event_packet_begin(out, t->rank, OF_SLICES + t->number, e->time_ns) };

    if ((*known & bit) == 0) {
        const gsize names = lh_proto_begin(out, PACKET_NAMES);

        put_name(out, NAMES_OF_EVENTS, e->name + 1, lh_trace_name(e->name));
        lh_proto_end(out, names);
        *known |= bit;
    }
    open.event = lh_proto_begin(out, PACKET_EVENT);
    lh_proto_uint(out, EVENT_TYPE, (uint64_t)e->type);
    lh_proto_uint(out, EVENT_NAME, (uint64_t)e->name + 1);
    return open;
}

static void
event_end(Open open, GString *out)
{
    lh_proto_end(out, open.event);
    lh_proto_end(out, open.packet);
}

static void
put_note(GString *out, Note note, uint64_t value)
{
    const gsize begin_at = lh_proto_begin(out, EVENT_ANNOTATION);

    lh_proto_uint(out, ANNOTATION_NAME, (uint64_t)note + 1);
    lh_proto_uint(out, ANNOTATION_UINT, value);
    lh_proto_end(out, begin_at);
}

static void
put_notes(const LhTraceSlice *slice, GString *out)
{
    const LhTimelineRecord *r = slice->record;
    gsize phase;

    put_note(out, NOTE_OP, r->op);
    put_note(out, NOTE_STEP, r->step);
    phase = lh_proto_begin(out, EVENT_ANNOTATION);
    lh_proto_uint(out, ANNOTATION_NAME, NOTE_PHASE + 1);
    lh_proto_text(out, ANNOTATION_TEXT, lh_phase_names[r->phase]);
    lh_proto_end(out, phase);
    if (slice->of_step) {
        put_note(out, NOTE_LAYER, r->layer);
        put_note(out, NOTE_MICRO_BATCH, r->micro_batch);
    }
    if (r->bytes > 0)
        put_note(out, NOTE_BYTES, r->bytes);
    if (r->flops > 0)
        put_note(out, NOTE_FLOPS, r->flops);
    put_note(out, NOTE_START, (uint64_t)r->start_ps);
    put_note(out, NOTE_DURATION, (uint64_t)(r->end_ps - r->start_ps));
}

static void
put_flows(const LhTraceMessages *messages, uint32_t field, GString *out)
{
    for (guint i = 0; i < messages->count; i++)
        lh_proto_fixed64(out, field, messages->numbers[i]);
}

/* Appends the start of a slice, or all of it if it is shorter than a nanosecond. */
static void
append_first(const Event *e, const LhTraceSlice *slice, GString *out)
{
    const Open open = event_begin(e, out);

    put_flows(&slice->sent, EVENT_FLOWS, out);
    if (e->type == TYPE_INSTANT)
        put_flows(&slice->received, EVENT_FLOWS_END, out);
    put_notes(slice, out);
    event_end(open, out);
}

/* Appends the end of arrows. An arrow must point to something that begins after it: not to the
 * slice, which may have waited for the message, but to an instant event in it. */
static void
append_arrival(LhTraceTrack *track, const LhTraceSlice *slice, GString *out)
{
    const Event arrival = { track, lh_trace_arrival_ns(slice->record), TYPE_INSTANT,
                            LH_TRACE_ARRIVE };
    Open open;

    if (slice->received.count == 0)
        return;
    open = event_begin(&arrival, out);
    put_flows(&slice->received, EVENT_FLOWS_END, out);
    event_end(open, out);
}

static void
append_last(const LhTraceTrack *t, uint64_t time_ns, GString *out)
{
    const gsize packet = event_packet_begin(out, t->rank, OF_SLICES + t->number, time_ns);
    const gsize event = lh_proto_begin(out, PACKET_EVENT);

    lh_proto_uint(out, EVENT_TYPE, TYPE_END);
    lh_proto_end(out, event);
    lh_proto_end(out, packet);
}

static void
append_slice_packets(LhTraceTrack *track, const LhTraceSlice *slice, GString *out)
{
    const uint64_t start = lh_trace_ns(slice->record->start_ps);
    const uint64_t end = lh_trace_ns(slice->record->end_ps);
    const Event first = { track, start, end > start ? TYPE_BEGIN : TYPE_INSTANT, slice->name };

    if (!track->begun)
        describe_track(track, out);
    append_first(&first, slice, out);
    if (end == start)
        return;
    append_arrival(track, slice, out);
    append_last(track, end, out);
}

static void
describe_memory(uint32_t rank, GString *out)
{
    const gsize packet = packet_begin(out, rank, OF_MEMORY, FLAGS_FIRST);
    const gsize track = lh_proto_begin(out, PACKET_TRACK);
    gsize counter;

    lh_proto_uint(out, TRACK_UUID, track_uuid(rank, OF_MEMORY));
    lh_proto_text(out, TRACK_NAME, "memory");
    lh_proto_uint(out, TRACK_PARENT, track_uuid(rank, OF_RANK));
    counter = lh_proto_begin(out, TRACK_COUNTER);
    lh_proto_uint(out, COUNTER_UNIT, UNIT_BYTES);
    lh_proto_end(out, counter);
    lh_proto_end(out, track);
    put_default_track(out, track_uuid(rank, OF_MEMORY));
    lh_proto_end(out, packet);
}

static void
append_memory_packets(uint32_t rank, uint64_t time_ns, uint64_t bytes, bool first, GString *out)
{
    gsize packet, event;

    if (first)
        describe_memory(rank, out);
    packet = event_packet_begin(out, rank, OF_MEMORY, time_ns);
    event = lh_proto_begin(out, PACKET_EVENT);
    lh_proto_uint(out, EVENT_TYPE, TYPE_COUNTER);
    lh_proto_uint(out, EVENT_VALUE, bytes);
    lh_proto_end(out, event);
    lh_proto_end(out, packet);
}

/* Unique id of a link; above those of all tracks of ranks and of the network. */
static uint64_t
link_uuid(uint32_t link)
{
    return ((uint64_t)LH_RANKS_MAX + 2) * TRACKS_MAX + link;
}

static void
describe_network_packet(uint32_t number, GString *out)
{
    put_process(number, "network", out);
}

/* Begins a packet of the link's own sequence; the first one starts it. */
static gsize
link_packet_begin(uint32_t link, int flags, GString *out)
{
    const gsize packet = lh_proto_begin(out, TRACE_PACKET);

    lh_proto_uint(out, PACKET_SEQUENCE, link_uuid(link));
    lh_proto_uint(out, PACKET_FLAGS, (uint64_t)flags);
    return packet;
}

static void
describe_link(const LhTraceLink *link, GString *out)
{
    const gsize packet = link_packet_begin(link->number, FLAGS_FIRST, out);
    const gsize track = lh_proto_begin(out, PACKET_TRACK);
    gsize counter;

    lh_proto_uint(out, TRACK_UUID, link_uuid(link->number));
    lh_proto_text(out, TRACK_NAME, link->name);
    lh_proto_uint(out, TRACK_PARENT, track_uuid(link->process, OF_RANK));
    counter = lh_proto_begin(out, TRACK_COUNTER);
    lh_proto_text(out, COUNTER_UNIT_NAME, "GB/s");
    lh_proto_end(out, counter);
    lh_proto_end(out, track);
    put_default_track(out, link_uuid(link->number));
    lh_proto_end(out, packet);
}

static void
append_link_packets(const LhTraceLink *link, uint64_t time_ns, double gb_per_s, bool first,
                    GString *out)
{
    gsize packet, event;

    if (first)
        describe_link(link, out);
    packet = link_packet_begin(link->number, FLAGS_LATER, out);
    lh_proto_uint(out, PACKET_TIMESTAMP, time_ns);
    event = lh_proto_begin(out, PACKET_EVENT);
    lh_proto_uint(out, EVENT_TYPE, TYPE_COUNTER);
    lh_proto_double(out, EVENT_DOUBLE_VALUE, gb_per_s);
    lh_proto_end(out, event);
    lh_proto_end(out, packet);
}

static void
end_packets(GString *out)
{
    (void)out;
}

const LhTraceFormat lh_trace_perfetto = {
    .ending = ".pftrace",
    .begin = begin_packets,
    .rank = describe_rank_packets,
    .slice = append_slice_packets,
    .memory = append_memory_packets,
    .network = describe_network_packet,
    .link = append_link_packets,
    .end = end_packets,
};
