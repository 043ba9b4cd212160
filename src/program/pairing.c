/* SPDX-License-Identifier: Apache-2.0 */
/* Collects all ends of messages and collectives and sorts them so that matching ends are
 * adjacent. */
#include "program/pairing.h"

#include "program/cursor.h"

/* A message's sender or receiver, or a member of a collective. */
typedef struct {
    uint32_t communicator; /* a message's communicator number; for collectives one index per
                              communicator */
    bool collective;
    uint32_t from, to; /* of a message; 0 for a collective */
    bool send;
    uint32_t number; /* position among the ends of its rank on this communicator */
    guint record;
} End;

struct _LhPairing {
    guint *first; /* [records + 1]: into others */
    guint *others;
};

/* Collects ends. */
typedef struct {
    GArray *ends;        /* of End */
    GHashTable *numbers; /* LhCommunicatorKey *, owned -> index of a collective's communicator */
    GHashTable *counts;  /* of the current rank: communicator index -> number of ends so far */
} Collector;

static uint32_t
number_of(Collector *c, const LhOp *op)
{
    const LhCommunicatorKey key = lh_op_communicator(op);
    gpointer known;

    if (g_hash_table_lookup_extended(c->numbers, &key, NULL, &known))
        return GPOINTER_TO_UINT(known);
    g_hash_table_insert(c->numbers, g_memdup2(&key, sizeof(key)),
                        GUINT_TO_POINTER(g_hash_table_size(c->numbers)));
    return g_hash_table_size(c->numbers) - 1;
}

/* ---- order ---- */

static int
compare_numbers(uint32_t a, uint32_t b)
{
    return a < b ? -1 : a > b;
}

/* Compares channels: everything that identifies a match except the number. */
static int
compare_ways(const End *a, const End *b)
{
    int order = compare_numbers(a->collective, b->collective);

    if (order == 0)
        order = compare_numbers(a->communicator, b->communicator);
    if (order == 0)
        order = compare_numbers(a->from, b->from);
    return order != 0 ? order : compare_numbers(a->to, b->to);
}

/* Sorts by channel, and within it by side and op order. */
static int
by_way(const void *a, const void *b)
{
    const End *x = a, *y = b;
    int order = compare_ways(x, y);

    if (order == 0)
        order = compare_numbers(x->send, y->send);
    return order != 0 ? order : compare_numbers(x->number, y->number);
}

static int
by_meeting(const void *a, const void *b)
{
    const End *x = a, *y = b;
    const int order = compare_ways(x, y);

    return order != 0 ? order : compare_numbers(x->number, y->number);
}

/* ---- ends ---- */

/* Numbers the ends of each channel: sends of a rank separately from its receives. */
static void
number_ends(GArray *ends)
{
    uint32_t number = 0;

    g_array_sort(ends, by_way);
    for (guint i = 0; i < ends->len; i++) {
        End *e = &g_array_index(ends, End, i);
        const End *before = i == 0 ? NULL : &g_array_index(ends, End, i - 1);

        if (e->collective)
            continue;
        if (before == NULL || compare_ways(before, e) != 0 || before->send != e->send)
            number = 0;
        e->number = number++;
    }
    g_array_sort(ends, by_meeting);
}

static void
add_exchange(Collector *c, const LhOpBuffer *buffer, const LhOp *op, uint32_t rank, guint record)
{
    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        const LhPart *part = &buffer->parts[op->exchange.parts_first + i];
        const End end = { .communicator = op->communicator,
                          .from = part->send ? rank : part->peer,
                          .to = part->send ? part->peer : rank,
                          .send = part->send,
                          .number = c->ends->len, /* ascending with the rank's ops */
                          .record = record };

        g_array_append_val(c->ends, end);
    }
}

static void
add_collective(Collector *c, const LhOp *op, guint record)
{
    const uint32_t communicator = number_of(c, op);
    gpointer key = GUINT_TO_POINTER(communicator);
    const uint32_t number = GPOINTER_TO_UINT(g_hash_table_lookup(c->counts, key));
    const End end = {
        .communicator = communicator, .collective = true, .number = number, .record = record
    };

    g_hash_table_insert(c->counts, key, GUINT_TO_POINTER(number + 1));
    g_array_append_val(c->ends, end);
}

/* Adds the ends of a rank, whose records start at @record. Returns the first record of the next
 * rank. */
static guint
add_rank(Collector *c, const LhProgram *program, uint32_t rank, LhOpBuffer *buffer, guint record)
{
    LhCursor cursor;

    g_hash_table_remove_all(c->counts);
    lh_cursor_init(&cursor, program, rank);
    while (lh_cursor_step(&cursor, buffer)) {
        for (uint32_t i = 0; i < buffer->ops_count; i++) {
            const LhOp *op = &buffer->ops[i];

            if (op->kind == LH_OP_EXCHANGE)
                add_exchange(c, buffer, op, rank, record);
            else if (op->kind == LH_OP_COLLECTIVE)
                add_collective(c, op, record);
            record += lh_op_on_stream(op);
        }
    }
    return record;
}

/* ---- matches ---- */

/* Calls @with for every ordered pair of matching ends. */
static void
for_all(const GArray *ends, void (*with)(LhPairing *m, guint record, guint other), LhPairing *m)
{
    for (guint i = 0, next; i < ends->len; i = next) {
        next = i + 1;
        while (next < ends->len &&
               by_meeting(&g_array_index(ends, End, i), &g_array_index(ends, End, next)) == 0)
            next++;
        for (guint a = i; a < next; a++) {
            for (guint b = i; b < next; b++) {
                if (a != b)
                    with(m, g_array_index(ends, End, a).record, g_array_index(ends, End, b).record);
            }
        }
    }
}

static void
count_other(LhPairing *m, guint record, guint other)
{
    (void)other;
    m->first[record + 1]++;
}

static void
add_other(LhPairing *m, guint record, guint other)
{
    m->others[m->first[record]++] = other;
}

static void
fill_meetings(LhPairing *m, const GArray *ends, guint records)
{
    for_all(ends, count_other, m);
    for (guint i = 0; i < records; i++)
        m->first[i + 1] += m->first[i];
    m->others = g_new(guint, MAX(m->first[records], 1));
    for_all(ends, add_other, m);
    for (guint i = records; i > 0; i--) /* each has advanced to the start of the next */
        m->first[i] = m->first[i - 1];
    m->first[0] = 0;
}

LhPairing *
lh_pairing_new(const LhProgram *program, const GArray *records)
{
    g_autoptr(GArray) ends = g_array_new(FALSE, FALSE, sizeof(End));
    g_autoptr(GHashTable) numbers =
        g_hash_table_new_full(lh_communicator_key_hash, lh_communicator_key_equal, g_free, NULL);
    g_autoptr(GHashTable) counts = g_hash_table_new(NULL, NULL);
    Collector c = { .ends = ends, .numbers = numbers, .counts = counts };
    LhPairing *m = g_new0(LhPairing, 1);
    LhOpBuffer buffer = { 0 };
    guint record = 0;

    for (uint32_t rank = 0; rank < lh_program_ranks(program); rank++)
        record = add_rank(&c, program, rank, &buffer, record);
    lh_op_buffer_clear(&buffer);
    g_assert(record == records->len);
    number_ends(ends);
    m->first = g_new0(guint, (gsize)record + 1);
    fill_meetings(m, ends, record);
    return m;
}

void
lh_pairing_free(LhPairing *m)
{
    if (m == NULL)
        return;
    g_free(m->first);
    g_free(m->others);
    g_free(m);
}

/* If the clocks of ranks differ by more than a transfer, other ends may seem to start after this
 * op has ended. Then the op's own start counts. */
LhTime
lh_pairing_took(const LhPairing *m, const GArray *records, guint index)
{
    const LhTimelineRecord *own = &g_array_index(records, LhTimelineRecord, index);
    LhTime start_ps = own->start_ps;

    for (guint i = m->first[index]; i < m->first[index + 1]; i++)
        start_ps = MAX(start_ps, g_array_index(records, LhTimelineRecord, m->others[i]).start_ps);
    return own->end_ps - (start_ps < own->end_ps ? start_ps : own->start_ps);
}

static int
by_from(const void *a, const void *b)
{
    const LhMotion *x = a, *y = b;

    return x->from_ps < y->from_ps ? -1 : x->from_ps > y->from_ps;
}

/* Merges intervals that touch or overlap. The last one is extended to the end of the op, which
 * waited for it. */
static void
join_motions(GArray *motions, LhTime end_ps)
{
    guint count = 0;

    g_array_sort(motions, by_from);
    for (guint i = 0; i < motions->len; i++) {
        const LhMotion next = g_array_index(motions, LhMotion, i);
        LhMotion *last = count == 0 ? NULL : &g_array_index(motions, LhMotion, count - 1);

        if (last != NULL && next.from_ps <= last->to_ps)
            last->to_ps = MAX(last->to_ps, next.to_ps);
        else
            g_array_index(motions, LhMotion, count++) = next;
    }
    g_array_set_size(motions, count);
    if (count > 0)
        g_array_index(motions, LhMotion, count - 1).to_ps = end_ps;
}

void
lh_pairing_motions(const LhPairing *m, const GArray *records, guint index, GArray *motions)
{
    const LhTimelineRecord *own = &g_array_index(records, LhTimelineRecord, index);
    const LhMotion together = { own->end_ps - lh_pairing_took(m, records, index), own->end_ps };

    g_array_set_size(motions, 0);
    if (m->first[index] == m->first[index + 1])
        return;
    if (own->kind == LH_OP_COLLECTIVE)
        g_array_append_val(motions, together);
    for (guint i = m->first[index]; own->kind == LH_OP_EXCHANGE && i < m->first[index + 1]; i++) {
        const LhTimelineRecord *r = &g_array_index(records, LhTimelineRecord, m->others[i]);
        const LhTime both_ps = MAX(own->start_ps, r->start_ps);
        const LhTime from_ps = both_ps < own->end_ps ? both_ps : own->start_ps;
        const LhMotion motion = { from_ps, MAX(from_ps, MIN(own->end_ps, r->end_ps)) };

        g_array_append_val(motions, motion);
    }
    join_motions(motions, own->end_ps);
}

const guint *
lh_pairing_with(const LhPairing *m, guint index, guint *count)
{
    *count = m->first[index + 1] - m->first[index];
    return m->others + m->first[index];
}
