/* SPDX-License-Identifier: Apache-2.0 */
#include "report/export/trace.h"

#include "base/files/output.h"
#include "program/cursor.h"
#include "report/data/timeline.h"
#include "report/export/trace_format.h"

#include <string.h>

#define PIECE_BYTES 65536 /* written at once */
#define BYTES_PER_GB 1e9
#define NUMBER_BITS 24 /* of a message's number within its pair; it wraps around */

/* Messages from one rank to another on one communicator: the k-th sent is the k-th received. */
typedef struct {
    gint64 key;
    uint32_t index;   /* of the pair, in order of appearance */
    uint32_t read[2]; /* [is send]: messages read from the program so far */
} Pair;

/* Name and traffic of a communication op, which the records of a run lack. */
typedef struct {
    uint32_t name;
    GArray *numbers[2]; /* of uint64_t, [is send]: numbers of messages between shown ranks */
} Movement;

/* A rank with ops so far. */
typedef struct {
    LhCursor cursor;
    GHashTable *movements;            /* by op: of Movement, read but not yet ended */
    uint64_t memory_ns, memory_bytes; /* the latest value, not yet written */
    uint64_t memory_most_bytes;       /* largest value within that nanosecond */
    bool memory_known, memory_begun;
    LhTraceTrack tracks[LH_STREAMS_MAX];
} SeenRank;

/* A link with traffic so far. */
typedef struct {
    char *name;
    double bytes_per_s;  /* the latest value */
    double written;      /* bytes/s, the value in the file */
    uint64_t ns;         /* time of the latest value */
    bool pending, begun; /* the value is not yet written; the link has a value in the file */
} Link;

struct _LhTrace {
    LhTraceOf of;
    const LhTraceFormat *format;
    LhOutputStream *stream; /* NULL once complete */
    GString *text;          /* not yet written */
    GByteArray *shown;      /* by rank; ranks beyond it are not shown. NULL: all are */
    GHashTable *ranks;      /* by rank number: of SeenRank */
    GHashTable *pairs;      /* of Pair, which begins with its hash key */
    GHashTable *links;      /* by link number: of Link */
    LhTime end_ps;          /* end of the last op so far, ranks not shown included */
    LhOpBuffer buffer;
};

static const LhTraceFormat *const trace_formats[] = { &lh_trace_perfetto, &lh_trace_chrome };

/* Format of the file name's ending; NULL: unknown ending. */
static const LhTraceFormat *
trace_format_of(const char *path)
{
    for (guint i = 0; i < G_N_ELEMENTS(trace_formats); i++) {
        if (g_str_has_suffix(path, trace_formats[i]->ending))
            return trace_formats[i];
    }
    return lh_output_is_stream(path) ? &lh_trace_chrome : NULL;
}

bool
lh_trace_check_path(const char *path, GError **error)
{
    if (trace_format_of(path) != NULL)
        return true;
    return lh_output_refuse("--trace", path,
                            "a name that ends in .pftrace (for Perfetto) or .json (for Chrome and "
                            "Perfetto), a pipe or a device",
                            error);
}

static void
movement_free(gpointer data)
{
    Movement *m = data;

    for (int send = 0; send < 2; send++) {
        if (m->numbers[send] != NULL)
            g_array_unref(m->numbers[send]);
    }
    g_free(m);
}

static void
rank_free(gpointer data)
{
    SeenRank *rank = data;

    g_hash_table_unref(rank->movements);
    g_free(rank);
}

static void
link_free(gpointer data)
{
    Link *link = data;

    g_free(link->name);
    g_free(link);
}

static GByteArray *
ranks_shown(const GArray *ranks)
{
    GByteArray *shown;

    if (ranks == NULL)
        return NULL;
    shown = g_byte_array_new();
    for (guint i = 0; i < ranks->len; i++) {
        const uint32_t rank = g_array_index(ranks, uint32_t, i);
        const guint had = shown->len;

        if (rank >= had) {
            g_byte_array_set_size(shown, rank + 1);
            memset(shown->data + had, 0, rank + 1 - had);
        }
        shown->data[rank] = 1;
    }
    return shown;
}

LhTrace *
lh_trace_new(const char *path, const LhTraceOf *of, GError **error)
{
    LhOutputStream *stream = lh_output_open(path, error);
    LhTrace *trace;

    if (stream == NULL)
        return NULL;
    trace = g_new0(LhTrace, 1);
    trace->of = *of;
    trace->format = trace_format_of(path);
    trace->stream = stream;
    trace->text = g_string_sized_new(PIECE_BYTES);
    trace->shown = ranks_shown(of->ranks);
    trace->ranks = g_hash_table_new_full(NULL, NULL, NULL, rank_free);
    trace->pairs = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free);
    trace->links = g_hash_table_new_full(NULL, NULL, NULL, link_free);
    trace->format->begin(of, trace->text);
    return trace;
}

static void
write_piece(LhTrace *trace)
{
    lh_output_write(trace->stream, trace->text->str, trace->text->len);
    g_string_truncate(trace->text, 0);
}

static bool
shows(const LhTrace *trace, uint32_t rank)
{
    return trace->shown == NULL || (rank < trace->shown->len && trace->shown->data[rank] != 0);
}

/* "rank 007" of 256, so that names sort like numbers. */
static char *
label_of(const LhTrace *trace, uint32_t rank)
{
    const uint32_t ranks = lh_params_ranks(&trace->of.program->params);
    int digits = 1;

    for (uint32_t last = ranks - 1; last >= 10; last /= 10)
        digits++;
    return g_strdup_printf("rank %0*u", digits, rank);
}

static SeenRank *
rank_of(LhTrace *trace, uint32_t number)
{
    const LhProgram *program = trace->of.program;
    SeenRank *rank = g_hash_table_lookup(trace->ranks, GUINT_TO_POINTER(number));
    g_autofree char *label = NULL;

    if (rank != NULL)
        return rank;
    rank = g_new0(SeenRank, 1);
    lh_cursor_init(&rank->cursor, program, number);
    rank->movements = g_hash_table_new_full(NULL, NULL, NULL, movement_free);
    for (uint32_t i = 0; i < program->streams_count; i++)
        rank->tracks[i] =
            (LhTraceTrack){ .rank = number, .number = i, .name = program->streams[i].name };
    g_hash_table_insert(trace->ranks, GUINT_TO_POINTER(number), rank);
    label = label_of(trace, number);
    trace->format->rank(program, number, label, trace->text);
    return rank;
}

/* --- messages -----------------------------------------------------------------------------------
 */

static Pair *
pair_of(LhTrace *trace, uint8_t communicator, uint32_t source, uint32_t destination)
{
    const gint64 key = (gint64)communicator * LH_RANKS_MAX * LH_RANKS_MAX +
                       (gint64)source * LH_RANKS_MAX + destination;
    Pair *pair = g_hash_table_lookup(trace->pairs, &key);

    if (pair == NULL) {
        pair = g_new0(Pair, 1);
        pair->key = key;
        pair->index = g_hash_table_size(trace->pairs);
        g_hash_table_insert(trace->pairs, &pair->key, pair);
    }
    return pair;
}

static void
add_message(Movement *m, Pair *pair, bool send)
{
    const uint32_t k = pair->read[send]++ % (UINT32_C(1) << NUMBER_BITS);
    const uint64_t number = ((uint64_t)pair->index << NUMBER_BITS) + k + 1;

    if (m->numbers[send] == NULL)
        m->numbers[send] = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    g_array_append_val(m->numbers[send], number);
}

/* Reads the traffic of an op, the next communication op of its rank. */
static Movement *
movement_of(LhTrace *trace, uint32_t rank, const LhOp *op)
{
    Movement *m = g_new0(Movement, 1);
    bool any[2] = { false, false };

    if (op->kind == LH_OP_COLLECTIVE) {
        m->name = LH_TRACE_COLLECTIVES + op->collective.kind;
        return m;
    }
    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        const LhPart *part = &trace->buffer.parts[op->exchange.parts_first + i];
        const uint32_t source = part->send ? rank : part->peer;
        const uint32_t destination = part->send ? part->peer : rank;

        any[part->send] = true;
        if (shows(trace, part->peer))
            add_message(m, pair_of(trace, op->communicator, source, destination), part->send);
    }
    m->name = any[0] && any[1] ? LH_TRACE_EXCHANGE : any[1] ? LH_TRACE_SEND : LH_TRACE_RECEIVE;
    return m;
}

/* Reads the rank's program up to a communication op, which was not read before. */
static const Movement *
read_movement(LhTrace *trace, SeenRank *rank, uint32_t op)
{
    const gpointer key = GUINT_TO_POINTER(op);
    const Movement *m;

    while ((m = g_hash_table_lookup(rank->movements, key)) == NULL) {
        if (!lh_cursor_step(&rank->cursor, &trace->buffer))
            g_error("the program of rank %u has no op %u that communicates", rank->cursor.rank, op);
        for (uint32_t i = 0; i < trace->buffer.ops_count; i++) {
            const LhOp *read = &trace->buffer.ops[i];

            if (read->kind == LH_OP_EXCHANGE || read->kind == LH_OP_COLLECTIVE)
                g_hash_table_insert(rank->movements, GUINT_TO_POINTER(read->id),
                                    movement_of(trace, rank->cursor.rank, read));
        }
    }
    return m;
}

static LhTraceMessages
messages_of(const GArray *numbers)
{
    if (numbers == NULL)
        return (LhTraceMessages){ NULL, 0 };
    return (LhTraceMessages){ &g_array_index(numbers, uint64_t, 0), numbers->len };
}

/* --- ops and memory -----------------------------------------------------------------------------
 */

static void
add_slice(LhTrace *trace, SeenRank *rank, const LhTraceSlice *slice)
{
    const LhTimelineRecord *r = slice->record;
    LhTraceTrack *track = &rank->tracks[r->stream];

    if (r->end_ps < trace->of.from_ps || r->start_ps > trace->of.to_ps)
        return;
    trace->format->slice(track, slice, trace->text);
    if (trace->text->len >= PIECE_BYTES)
        write_piece(trace);
}

/* Adds a piece of waiting, without the sent and received messages. Pieces shorter than a nanosecond
 * are left out. */
static void
add_waiting_slice(LhTrace *trace, SeenRank *rank, const LhTraceSlice *of,
                  const LhTimelinePiece *piece)
{
    LhTimelineRecord part = *of->record;
    const LhTraceSlice slice = { .record = &part, .name = LH_TRACE_WAIT, .of_step = of->of_step };

    part.start_ps = piece->from_ps;
    part.end_ps = piece->to_ps;
    part.bytes = 0;
    if (lh_trace_ns(part.start_ps) < lh_trace_ns(part.end_ps))
        add_slice(trace, rank, &slice);
}

/* Adds a slice per piece of the op's time. Messages leave at the start of the first piece that
 * works and arrive at the end of the last one. */
static void
add_slices(LhTrace *trace, SeenRank *rank, const LhTraceSlice *of)
{
    const LhTimelineRecord *r = of->record;
    LhTimelineRecord part = *r;
    LhTraceSlice slice = *of;
    LhTimelinePiece piece = { .motion = 0 };
    uint32_t motions = 0;

    slice.record = &part;
    while (lh_timeline_next_piece(r, &piece)) {
        const bool last = ++motions >= r->motions_count;

        if (piece.waits) {
            motions--;
            add_waiting_slice(trace, rank, of, &piece);
            continue;
        }
        part.start_ps = piece.from_ps;
        part.end_ps = piece.to_ps;
        slice.received = last ? of->received : (LhTraceMessages){ NULL, 0 };
        add_slice(trace, rank, &slice);
        slice.sent = (LhTraceMessages){ NULL, 0 };
        part.bytes = 0;
    }
}

void
lh_trace_add(void *data, const LhTimelineRecord *record)
{
    LhTrace *trace = data;
    LhTraceSlice slice = { .record = record, .of_step = trace->of.setup->step != NULL };
    SeenRank *rank;

    trace->end_ps = MAX(trace->end_ps, record->end_ps);
    if (!shows(trace, record->rank))
        return;
    rank = rank_of(trace, record->rank);
    if (record->kind == LH_OP_EXCHANGE || record->kind == LH_OP_COLLECTIVE) {
        const Movement *m = read_movement(trace, rank, record->op);

        slice.name = m->name;
        slice.sent = messages_of(m->numbers[true]);
        slice.received = messages_of(m->numbers[false]);
        add_slices(trace, rank, &slice);
        g_hash_table_remove(rank->movements, GUINT_TO_POINTER(record->op));
        return;
    }
    slice.name = record->kernel;
    add_slice(trace, rank, &slice);
}

static void
write_memory(LhTrace *trace, uint32_t number, SeenRank *rank, uint64_t bytes)
{
    trace->format->memory(number, rank->memory_ns, bytes, !rank->memory_begun, trace->text);
    rank->memory_begun = true;
}

/* Writes the memory of a rank within one nanosecond: the largest value, so that no peak is lost,
 * and the last. */
static void
end_memory(LhTrace *trace, uint32_t number, SeenRank *rank)
{
    if (!rank->memory_known)
        return;
    if (rank->memory_most_bytes > rank->memory_bytes)
        write_memory(trace, number, rank, rank->memory_most_bytes);
    write_memory(trace, number, rank, rank->memory_bytes);
    rank->memory_most_bytes = 0;
    rank->memory_known = false;
}

/* Memory before the time window is shown as the value at its start. */
void
lh_trace_add_memory(void *data, const LhMemoryRecord *record)
{
    LhTrace *trace = data;
    const bool before = record->time_ps < trace->of.from_ps;
    const uint64_t ns = lh_trace_ns(before ? trace->of.from_ps : record->time_ps);
    SeenRank *rank;

    if (!shows(trace, record->rank) || record->time_ps > trace->of.to_ps)
        return;
    rank = rank_of(trace, record->rank);
    if (rank->memory_ns != ns)
        end_memory(trace, record->rank, rank);
    rank->memory_ns = ns;
    rank->memory_most_bytes = before ? record->bytes : MAX(rank->memory_most_bytes, record->bytes);
    rank->memory_bytes = record->bytes;
    rank->memory_known = true;
    if (trace->text->len >= PIECE_BYTES)
        write_piece(trace);
}

/* --- links --------------------------------------------------------------------------------------
 */

static Link *
link_of(LhTrace *trace, uint32_t number)
{
    Link *link = g_hash_table_lookup(trace->links, GUINT_TO_POINTER(number));

    if (link != NULL)
        return link;
    if (g_hash_table_size(trace->links) == 0)
        trace->format->network(lh_program_ranks(trace->of.program), trace->text);
    link = g_new0(Link, 1);
    link->name = lh_network_link_name(&trace->of.setup->network, number);
    g_hash_table_insert(trace->links, GUINT_TO_POINTER(number), link);
    return link;
}

static void
write_link(LhTrace *trace, uint32_t number, Link *link, uint64_t ns)
{
    const LhTraceLink shown = { .process = lh_program_ranks(trace->of.program),
                                .number = number,
                                .name = link->name };

    trace->format->link(&shown, ns, link->bytes_per_s / BYTES_PER_GB, !link->begun, trace->text);
    link->written = link->bytes_per_s;
    link->begun = true;
}

/* Writes the last rate of a nanosecond, once a later one is known. */
static void
end_rate(LhTrace *trace, uint32_t number, Link *link)
{
    if (link->pending && (!link->begun || link->written != link->bytes_per_s))
        write_link(trace, number, link, link->ns);
    link->pending = false;
}

/* Keeps only the last rate within one nanosecond. */
void
lh_trace_add_link(void *data, uint32_t number, LhTime time_ps, double bytes_per_s)
{
    LhTrace *trace = data;
    const uint64_t ns = lh_trace_ns(MAX(time_ps, trace->of.from_ps));
    Link *link;

    if (time_ps > trace->of.to_ps)
        return;
    link = link_of(trace, number);
    if (link->ns != ns)
        end_rate(trace, number, link);
    link->ns = ns;
    link->bytes_per_s = bytes_per_s;
    link->pending = true;
    if (trace->text->len >= PIECE_BYTES)
        write_piece(trace);
}

/* Repeats the last values at the end, since viewers draw a value only up to its last point. */
static void
end_links(LhTrace *trace)
{
    const uint64_t end_ns = lh_trace_ns(MIN(trace->end_ps, trace->of.to_ps));

    for (uint32_t i = 0; i < trace->of.setup->network.links_count; i++) {
        Link *link = g_hash_table_lookup(trace->links, GUINT_TO_POINTER(i));

        if (link == NULL)
            continue;
        end_rate(trace, i, link);
        if (link->ns < end_ns)
            write_link(trace, i, link, end_ns);
    }
}

bool
lh_trace_finish(LhTrace *trace, GError **error)
{
    const uint32_t ranks = lh_params_ranks(&trace->of.program->params);

    for (uint32_t r = 0; r < ranks; r++) {
        SeenRank *rank = g_hash_table_lookup(trace->ranks, GUINT_TO_POINTER(r));

        if (rank != NULL)
            end_memory(trace, r, rank);
    }
    end_links(trace);
    trace->format->end(trace->text);
    write_piece(trace);
    return lh_output_close(g_steal_pointer(&trace->stream), error);
}

void
lh_trace_free(LhTrace *trace)
{
    if (trace == NULL)
        return;
    lh_output_discard(trace->stream);
    g_string_free(trace->text, TRUE);
    if (trace->shown != NULL)
        g_byte_array_unref(trace->shown);
    g_hash_table_unref(trace->ranks);
    g_hash_table_unref(trace->pairs);
    g_hash_table_unref(trace->links);
    lh_op_buffer_clear(&trace->buffer);
    g_free(trace);
}
