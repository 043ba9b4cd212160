/*
 * Traces as Perfetto's protobuf (perfetto.protos.Trace): a sequence of packets, each a message of
 * fields that are numbers, or bytes with their length in front.
 *
 * Every track is a sequence of packets of its own. Its first packet describes the track and makes
 * it the one that later packets are about; a name is given a number when it is first used.
 */
#include "base/escape.h"
#include "report/trace_format.h"

#include <string.h>

enum { /* fields, by message */
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
       DEFAULTS_EVENT = 11,
       EVENT_ANNOTATION = 4,
       EVENT_TYPE = 9,
       EVENT_NAME = 10,
       EVENT_TRACK = 11,
       EVENT_VALUE = 30,
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
    OF_STREAMS, /* the parent of those that have slices */
    OF_MEMORY,
    OF_SLICES, /* of the first stream; then those of the others */
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

/* --- protobuf -----------------------------------------------------------------------------------
 */

static guint
encode(uint64_t value, char *bytes)
{
    guint length = 0;

    for (; value >= 0x80; value >>= 7)
        bytes[length++] = (char)((value & 0x7f) | 0x80);
    bytes[length++] = (char)value;
    return length;
}

#define VARINT_MAX 10

static void
put_varint(GString *out, uint64_t value)
{
    char bytes[VARINT_MAX];

    g_string_append_len(out, bytes, encode(value, bytes));
}

static void
put_uint(GString *out, uint32_t field, uint64_t value)
{
    put_varint(out, (uint64_t)field << 3);
    put_varint(out, value);
}

static void
put_fixed64(GString *out, uint32_t field, uint64_t value)
{
    put_varint(out, (uint64_t)field << 3 | 1);
    for (int i = 0; i < 8; i++)
        g_string_append_c(out, (char)(value >> (8 * i) & 0xff));
}

static void
put_text(GString *out, uint32_t field, const char *text)
{
    put_varint(out, (uint64_t)field << 3 | 2);
    put_varint(out, strlen(text));
    g_string_append(out, text);
}

/* Begins a message; what is appended until put_end() is in it. Returns where it begins. */
static gsize
put_begin(GString *out, uint32_t field)
{
    put_varint(out, (uint64_t)field << 3 | 2);
    return out->len;
}

/* Only now it is known how long the message is. */
static void
put_end(GString *out, gsize begin)
{
    char bytes[VARINT_MAX];

    g_string_insert_len(out, (gssize)begin, bytes, encode(out->len - begin, bytes));
}

/* --- tracks -------------------------------------------------------------------------------------
 */

/* Numbers above 0 that no other rank has. */
static uint64_t
track_uuid(uint32_t rank, uint32_t track)
{
    return ((uint64_t)rank + 1) * TRACKS_MAX + track;
}

/* A packet of a track's sequence. */
static gsize
packet_begin(GString *out, uint32_t rank, uint32_t track, int flags)
{
    const gsize packet = put_begin(out, TRACE_PACKET);

    put_uint(out, PACKET_SEQUENCE, track_uuid(rank, track));
    put_uint(out, PACKET_FLAGS, (uint64_t)flags);
    return packet;
}

static gsize
event_packet_begin(GString *out, uint32_t rank, uint32_t track, uint64_t time_ns)
{
    const gsize packet = packet_begin(out, rank, track, FLAGS_LATER);

    put_uint(out, PACKET_TIMESTAMP, time_ns);
    return packet;
}

/* Events of the sequence are of this track unless they say otherwise. */
static void
put_default_track(GString *out, uint64_t uuid)
{
    const gsize defaults = put_begin(out, PACKET_DEFAULTS);
    const gsize event = put_begin(out, DEFAULTS_EVENT);

    put_uint(out, EVENT_TRACK, uuid);
    put_end(out, event);
    put_end(out, defaults);
}

static void
put_name(GString *out, uint32_t field, uint32_t number, const char *text)
{
    const gsize name = put_begin(out, field);

    put_uint(out, NAME_NUMBER, number);
    put_text(out, NAME_TEXT, text);
    put_end(out, name);
}

static void
begin(const LhTraceOf *of, GString *out)
{
    (void)of;
    (void)out;
}

static void
put_process(uint32_t rank, const char *label, GString *out)
{
    const gsize packet = packet_begin(out, rank, OF_RANK, FLAGS_FIRST);
    const gsize track = put_begin(out, PACKET_TRACK);
    gsize process;

    put_uint(out, TRACK_UUID, track_uuid(rank, OF_RANK));
    put_text(out, TRACK_NAME, label);
    process = put_begin(out, TRACK_PROCESS);
    put_uint(out, PROCESS_PID, (uint64_t)rank + 1); /* 0 is no process */
    put_text(out, PROCESS_NAME, label);
    put_end(out, process);
    put_end(out, track);
    put_end(out, packet);
}

/* Tracks right below a process cannot be put in order, those of another track can. */
static void
put_streams(uint32_t rank, GString *out)
{
    const gsize packet = packet_begin(out, rank, OF_STREAMS, FLAGS_FIRST);
    const gsize track = put_begin(out, PACKET_TRACK);

    put_uint(out, TRACK_UUID, track_uuid(rank, OF_STREAMS));
    put_text(out, TRACK_NAME, "streams");
    put_uint(out, TRACK_PARENT, track_uuid(rank, OF_RANK));
    put_uint(out, TRACK_CHILD_ORDER, ORDER_EXPLICIT);
    put_end(out, track);
    put_end(out, packet);
}

static void
describe_rank(const LhProgram *program, uint32_t rank, const char *label, GString *out)
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
    const gsize track = put_begin(out, PACKET_TRACK);
    g_autofree char *name = lh_escaped_line(t->name);
    gsize names;

    put_uint(out, TRACK_UUID, track_uuid(t->rank, number));
    put_text(out, TRACK_NAME, name);
    put_uint(out, TRACK_PARENT, track_uuid(t->rank, OF_STREAMS));
    put_uint(out, TRACK_ORDER, t->number);
    put_uint(out, TRACK_MERGE, MERGE_NONE); /* also where two streams have one name */
    put_end(out, track);
    put_default_track(out, track_uuid(t->rank, number));
    names = put_begin(out, PACKET_NAMES);
    for (uint32_t i = 0; i < NOTES; i++)
        put_name(out, NAMES_OF_ANNOTATIONS, i + 1, note_names[i]);
    put_end(out, names);
    put_end(out, packet);
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
    gsize packet, event; /* where they begin */
} Open;

static Open
event_begin(const Event *e, GString *out)
{
    LhTraceTrack *t = e->track;
    uint64_t *known = &t->names_known[e->name / 64];
    const uint64_t bit = UINT64_C(1) << (e->name % 64);
    Open open = { .packet = event_packet_begin(out, t->rank, OF_SLICES + t->number, e->time_ns) };

    if ((*known & bit) == 0) {
        const gsize names = put_begin(out, PACKET_NAMES);

        put_name(out, NAMES_OF_EVENTS, e->name + 1, lh_trace_name(e->name));
        put_end(out, names);
        *known |= bit;
    }
    open.event = put_begin(out, PACKET_EVENT);
    put_uint(out, EVENT_TYPE, (uint64_t)e->type);
    put_uint(out, EVENT_NAME, (uint64_t)e->name + 1);
    return open;
}

static void
event_end(Open open, GString *out)
{
    put_end(out, open.event);
    put_end(out, open.packet);
}

static void
put_note(GString *out, Note note, uint64_t value)
{
    const gsize begin_at = put_begin(out, EVENT_ANNOTATION);

    put_uint(out, ANNOTATION_NAME, (uint64_t)note + 1);
    put_uint(out, ANNOTATION_UINT, value);
    put_end(out, begin_at);
}

static void
put_notes(const LhTraceSlice *slice, GString *out)
{
    const LhTimelineRecord *r = slice->record;
    gsize phase;

    put_note(out, NOTE_OP, r->op);
    put_note(out, NOTE_STEP, r->step);
    phase = put_begin(out, EVENT_ANNOTATION);
    put_uint(out, ANNOTATION_NAME, NOTE_PHASE + 1);
    put_text(out, ANNOTATION_TEXT, lh_phase_names[r->phase]);
    put_end(out, phase);
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
        put_fixed64(out, field, messages->numbers[i]);
}

/* The slice begins, or all of it, if it is shorter than a nanosecond. */
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

/* An arrow points to what begins after the arrow does: not to the slice, which may have waited for
 * the message, but to a point in it. */
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
    const gsize event = put_begin(out, PACKET_EVENT);

    put_uint(out, EVENT_TYPE, TYPE_END);
    put_end(out, event);
    put_end(out, packet);
}

static void
append_slice(LhTraceTrack *track, const LhTraceSlice *slice, GString *out)
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
    const gsize track = put_begin(out, PACKET_TRACK);
    gsize counter;

    put_uint(out, TRACK_UUID, track_uuid(rank, OF_MEMORY));
    put_text(out, TRACK_NAME, "memory");
    put_uint(out, TRACK_PARENT, track_uuid(rank, OF_RANK));
    counter = put_begin(out, TRACK_COUNTER);
    put_uint(out, COUNTER_UNIT, UNIT_BYTES);
    put_end(out, counter);
    put_end(out, track);
    put_default_track(out, track_uuid(rank, OF_MEMORY));
    put_end(out, packet);
}

static void
append_memory(uint32_t rank, uint64_t time_ns, uint64_t bytes, bool first, GString *out)
{
    gsize packet, event;

    if (first)
        describe_memory(rank, out);
    packet = event_packet_begin(out, rank, OF_MEMORY, time_ns);
    event = put_begin(out, PACKET_EVENT);
    put_uint(out, EVENT_TYPE, TYPE_COUNTER);
    put_uint(out, EVENT_VALUE, bytes);
    put_end(out, event);
    put_end(out, packet);
}

static void
end(GString *out)
{
    (void)out;
}

const LhTraceFormat lh_trace_perfetto = {
    .ending = ".pftrace",
    .begin = begin,
    .rank = describe_rank,
    .slice = append_slice,
    .memory = append_memory,
    .end = end,
};
