/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shape holds everything about an event but its rank and, if no wait gives it, its time: the op
 * relative to the rank's last, and the events waited for relative to the last of their ranks. Both
 * directions of reading decode a block from its beginning, from the states of all ranks there.
 */
#include "sim/causes/event_blocks.h"

#include "base/mix.h"

#include <string.h>

#define BLOCK_EVENTS (1u << 16)
#define RECENT 8u           /* events of a rank whose times are known while a block is read */
#define SHAPES_MAX 32768u   /* more are written out each time */
#define TIMED_MAX 16384u    /* of these, shapes with all of their durations */
#define TABLE_SIZE 65536u   /* a power of two, twice the shapes */
#define SHAPE_WAITS_MAX 12u /* events with more are written out */
#define HEAD_WORDS 4u
#define WAIT_WORDS 4u
#define WORDS_MAX (HEAD_WORDS + WAIT_WORDS * SHAPE_WAITS_MAX)
#define EXPLICIT 255u    /* the time is written out; else the number of the wait that gives it */
#define NUMBER_BYTES 10u /* largest size of a number */
#define FILLS UINT64_MAX /* a duration that lasts from the event waited for to this one */

/* What the description of a rank's next event refers to. */
typedef struct {
    LhTime recent_ps[RECENT];
    LhTime gate_time_ps, gate_takes_ps; /* of its last wait of a host */
    uint32_t gate_rank, gate_index;
    uint32_t count; /* of its events so far */
    uint32_t op;    /* of its last event */
} RankState;

typedef struct {
    guint8 *bytes;    /* NULL: it is being filled */
    RankState *ranks; /* at its beginning */
    uint32_t events, waits;
} Block;

typedef struct {
    uint32_t first, count; /* of words */
} Shape;

typedef struct {
    guint8 *bytes;
    gsize count, capacity;
} Bytes;

struct _LhEventBlocks {
    uint32_t ranks_count;
    RankState *ranks;
    GArray *blocks;  /* of Block */
    Bytes last;      /* of the last one, while it is being filled */
    GArray *shapes;  /* of Shape */
    GArray *words;   /* of uint32_t */
    uint32_t *table; /* by hash: number of a shape + 1; 0: free */
    uint32_t last_rank;
    LhTime last_ps;
    uint32_t reach;
};

/* ---- life ---- */

LhEventBlocks *
lh_event_blocks_new(uint32_t ranks)
{
    LhEventBlocks *b = g_new0(LhEventBlocks, 1);

    b->ranks_count = ranks;
    b->ranks = g_new0(RankState, ranks);
    b->blocks = g_array_new(FALSE, FALSE, sizeof(Block));
    b->shapes = g_array_new(FALSE, FALSE, sizeof(Shape));
    b->words = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    b->table = g_new0(uint32_t, TABLE_SIZE);
    return b;
}

void
lh_event_blocks_free(LhEventBlocks *b)
{
    if (b == NULL)
        return;
    for (guint i = 0; i < b->blocks->len; i++) {
        g_free(g_array_index(b->blocks, Block, i).bytes);
        g_free(g_array_index(b->blocks, Block, i).ranks);
    }
    g_array_unref(b->blocks);
    g_free(b->last.bytes);
    g_array_unref(b->shapes);
    g_array_unref(b->words);
    g_free(b->table);
    g_free(b->ranks);
    g_free(b);
}

uint32_t
lh_event_blocks_count(const LhEventBlocks *b)
{
    return b->blocks->len;
}

uint32_t
lh_event_blocks_of_rank(const LhEventBlocks *b, uint32_t rank)
{
    return b->ranks[rank].count;
}

uint32_t
lh_event_blocks_reach(const LhEventBlocks *b)
{
    return b->reach;
}

/* ---- numbers ---- */

static inline uint64_t
folded(int64_t value)
{
    return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

static inline int64_t
unfolded(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

/* Seven bits a byte, the lowest first. Returns where the next number goes. */
static inline guint8 *
put(guint8 *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (guint8)(value | 0x80);
    *at++ = (guint8)value;
    return at;
}

static inline uint64_t
get(const guint8 **at)
{
    uint64_t value = 0;
    unsigned shift = 0;

    for (; **at & 0x80; shift += 7)
        value |= (uint64_t)(*(*at)++ & 0x7f) << shift;
    return value | (uint64_t) * (*at)++ << shift;
}

/* ---- references between events ---- */

/* Whether the host waits for the same event as last time. */
static inline bool
is_gate(const RankState *own, const LhWait *wait)
{
    return wait->host && own->gate_rank == wait->rank && own->gate_index == wait->index;
}

/* Whether the time of the event waited for is known while the block is read. Sets it. */
static inline bool
known_time(const RankState *ranks, const RankState *own, const LhWait *wait, LhTime *time_ps)
{
    const RankState *of = &ranks[wait->rank];

    if (is_gate(own, wait)) {
        *time_ps = own->gate_time_ps;
        return true;
    }
    if (of->count - wait->index > RECENT)
        return false;
    *time_ps = of->recent_ps[wait->index % RECENT];
    return true;
}

/* After an event of @rank. */
static inline void
go_on(RankState *rank, const LhEvent *event)
{
    rank->recent_ps[rank->count++ % RECENT] = event->time_ps;
    rank->op = event->op;
}

/* After the waits of an event of @rank. */
static inline void
pass_gates(const RankState *ranks, RankState *rank, const LhWait *waits, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        LhTime time_ps = 0;

        if (!waits[i].host)
            continue;
        if (!known_time(ranks, rank, &waits[i], &time_ps))
            time_ps = LH_TIME_NEVER;
        rank->gate_rank = waits[i].rank;
        rank->gate_index = waits[i].index;
        rank->gate_time_ps = time_ps;
        rank->gate_takes_ps = waits[i].takes_ps;
    }
}

/* ---- writing ---- */

static uint32_t
describe(const LhEventBlocks *b, const LhEvent *event, const LhWait *waits, bool timed,
         uint32_t *words)
{
    const RankState *own = &b->ranks[event->rank];
    uint32_t mode = EXPLICIT, at = HEAD_WORDS;

    for (uint32_t i = 0; i < event->waits_count; i++) {
        const LhWait *wait = &waits[i];
        const RankState *of = &b->ranks[wait->rank];
        const bool same_gate = is_gate(own, wait);
        const int64_t less_ps = same_gate ? own->gate_takes_ps : 0;
        uint64_t takes = folded(wait->takes_ps - less_ps);
        LhTime from_ps;
        const bool gives = known_time(b->ranks, own, wait, &from_ps) && from_ps != LH_TIME_NEVER &&
                           from_ps + wait->takes_ps == event->time_ps;

        if (gives && timed && mode == EXPLICIT && i < EXPLICIT)
            mode = i;
        if (gives && !timed && wait->takes_ps != 0)
            takes = FILLS;
        words[at++] = (same_gate ? 0 : (uint32_t)folded((int64_t)wait->rank - event->rank) << 2) |
                      (uint32_t)wait->host << 1 | same_gate;
        words[at++] = same_gate ? 0 : of->count - wait->index;
        words[at++] = (uint32_t)takes;
        words[at++] = (uint32_t)(takes >> 32);
    }
    words[0] = event->kind | (uint32_t)event->tiers << 2 | (uint32_t)event->end << 10 | mode << 12;
    words[1] = event->op - own->op;
    words[2] = event->call;
    words[3] = event->waits_count;
    return at;
}

static const uint32_t *
words_of(const LhEventBlocks *b, const Shape *shape)
{
    return &g_array_index(b->words, uint32_t, shape->first);
}

/* The number of the shape + 1, added if there are less than @most; 0: it is not known. */
static uint32_t
find_shape(LhEventBlocks *b, const uint32_t *words, uint32_t count, uint32_t most)
{
    const uint64_t hash = lh_mix_bytes(count, words, count * sizeof(*words));
    uint32_t slot;

    for (slot = (uint32_t)hash % TABLE_SIZE; b->table[slot] != 0; slot = (slot + 1) % TABLE_SIZE) {
        const Shape *known = &g_array_index(b->shapes, Shape, b->table[slot] - 1);

        if (known->count == count && memcmp(words_of(b, known), words, count * sizeof(*words)) == 0)
            return b->table[slot];
    }
    if (b->shapes->len >= most)
        return 0;
    g_array_append_val(b->shapes, ((Shape){ b->words->len, count }));
    g_array_append_vals(b->words, words, count);
    return b->table[slot] = b->shapes->len;
}

static Block *
block_to_fill(LhEventBlocks *b)
{
    Block next = { .bytes = NULL };

    if (b->blocks->len > 0) {
        Block *last = &g_array_index(b->blocks, Block, b->blocks->len - 1);

        if (last->events < BLOCK_EVENTS)
            return last;
        last->bytes = g_memdup2(b->last.bytes, b->last.count);
        b->last.count = 0;
    }
    next.ranks = g_memdup2(b->ranks, b->ranks_count * sizeof(RankState));
    b->last_rank = 0;
    b->last_ps = 0;
    g_array_append_val(b->blocks, next);
    return &g_array_index(b->blocks, Block, b->blocks->len - 1);
}

/* Returns the end of the bytes, with room for @numbers more. */
static guint8 *
room_for(Bytes *to, gsize numbers)
{
    const gsize most = to->count + numbers * NUMBER_BYTES;

    if (most > to->capacity) {
        to->capacity = MAX(most, 2 * to->capacity);
        to->bytes = g_realloc(to->bytes, to->capacity);
    }
    return to->bytes + to->count;
}

static void
write_event(LhEventBlocks *b, const LhEvent *event, const LhWait *waits)
{
    uint32_t words[WORDS_MAX];
    g_autofree uint32_t *many = NULL;
    uint32_t *own = words;
    uint32_t count, shape = 0;
    guint8 *at;

    if (event->waits_count > SHAPE_WAITS_MAX)
        own = many = g_new(uint32_t, HEAD_WORDS + WAIT_WORDS * (gsize)event->waits_count);
    count = describe(b, event, waits, many == NULL, own);
    if (many == NULL)
        shape = find_shape(b, own, count, TIMED_MAX);
    if (many == NULL && shape == 0) {
        count = describe(b, event, waits, false, own);
        shape = find_shape(b, own, count, SHAPES_MAX);
    }
    at = room_for(&b->last, 3 + (shape == 0 ? count : 0));
    at = put(at, folded((int64_t)event->rank - b->last_rank));
    at = put(at, shape);
    for (uint32_t i = 0; shape == 0 && i < count; i++)
        at = put(at, own[i]);
    if ((own[0] >> 12 & 0xff) == EXPLICIT)
        at = put(at, folded(event->time_ps - b->last_ps));
    b->last.count = (gsize)(at - b->last.bytes);
}

void
lh_event_blocks_add(LhEventBlocks *b, LhEvent *event, const LhWait *waits)
{
    Block *block = block_to_fill(b);
    RankState *rank = &b->ranks[event->rank];

    event->index = rank->count;
    for (uint32_t i = 0; i < event->waits_count; i++)
        if (!is_gate(rank, &waits[i]))
            b->reach = MAX(b->reach, b->ranks[waits[i].rank].count - waits[i].index);
    write_event(b, event, waits);
    pass_gates(b->ranks, rank, waits, event->waits_count);
    go_on(rank, event);
    b->last_rank = event->rank;
    b->last_ps = event->time_ps;
    block->events++;
    block->waits += event->waits_count;
}

/* ---- reading ---- */

static void
read_waits(const RankState *ranks, const LhEvent *event, const uint32_t *words, LhWait *waits)
{
    const RankState *own = &ranks[event->rank];

    for (uint32_t i = 0; i < event->waits_count; i++, words += WAIT_WORDS) {
        const uint64_t takes = words[2] | (uint64_t)words[3] << 32;
        const bool same_gate = words[0] & 1;
        LhWait *wait = &waits[i];

        wait->rank = same_gate ? own->gate_rank : (uint32_t)(event->rank + unfolded(words[0] >> 2));
        wait->host = words[0] >> 1 & 1;
        wait->index = same_gate ? own->gate_index : ranks[wait->rank].count - words[1];
        wait->takes_ps = takes == FILLS ? LH_TIME_NEVER : unfolded(takes);
        if (same_gate && takes != FILLS)
            wait->takes_ps += own->gate_takes_ps;
    }
}

/* Sets the time of the event, and durations that last until then. */
static void
read_times(const RankState *ranks, LhEvent *event, uint32_t mode, LhWait *waits)
{
    const RankState *own = &ranks[event->rank];
    LhTime from_ps = 0;

    if (mode != EXPLICIT) {
        known_time(ranks, own, &waits[mode], &from_ps);
        event->time_ps = from_ps + waits[mode].takes_ps;
    }
    for (uint32_t i = 0; i < event->waits_count; i++) {
        if (waits[i].takes_ps != LH_TIME_NEVER)
            continue;
        known_time(ranks, own, &waits[i], &from_ps);
        waits[i].takes_ps = event->time_ps - from_ps;
    }
}

/* Where a block is being read. */
typedef struct {
    const guint8 *at;
    RankState *ranks;
    uint32_t last_rank;
    LhTime last_ps;
    uint32_t *spelled; /* words of an event without a shape */
    gsize spelled_size;
} Reader;

static const uint32_t *
spell(Reader *r)
{
    uint32_t head[HEAD_WORDS];
    gsize count;

    for (gsize i = 0; i < HEAD_WORDS; i++)
        head[i] = (uint32_t)get(&r->at);
    count = HEAD_WORDS + WAIT_WORDS * (gsize)head[3];
    if (count > r->spelled_size) {
        r->spelled_size = count;
        r->spelled = g_renew(uint32_t, r->spelled, count);
    }
    memcpy(r->spelled, head, sizeof(head));
    for (gsize i = HEAD_WORDS; i < count; i++)
        r->spelled[i] = (uint32_t)get(&r->at);
    return r->spelled;
}

/* Reads the next event, and its waits to @waits, which is number @waits_first. */
static LhEvent
read_event(const LhEventBlocks *b, Reader *r, LhWait *waits, uint32_t waits_first)
{
    LhEvent event = { .rank = (uint32_t)(r->last_rank + unfolded(get(&r->at))) };
    RankState *rank = &r->ranks[event.rank];
    const uint32_t shape = (uint32_t)get(&r->at);
    const uint32_t *words =
        shape == 0 ? spell(r) : words_of(b, &g_array_index(b->shapes, Shape, shape - 1));
    const uint32_t mode = words[0] >> 12 & 0xff;

    event.kind = words[0] & 3;
    event.tiers = (uint8_t)(words[0] >> 2);
    event.end = words[0] >> 10 & 3;
    event.waits_count = words[3];
    event.waits_first = waits_first;
    event.op = rank->op + words[1];
    event.call = (uint16_t)words[2];
    event.index = rank->count;
    if (mode == EXPLICIT)
        event.time_ps = r->last_ps + unfolded(get(&r->at));
    read_waits(r->ranks, &event, words + HEAD_WORDS, waits);
    read_times(r->ranks, &event, mode, waits);
    pass_gates(r->ranks, rank, waits, event.waits_count);
    go_on(rank, &event);
    r->last_rank = event.rank;
    r->last_ps = event.time_ps;
    return event;
}

void
lh_event_blocks_read(const LhEventBlocks *b, uint32_t index, LhEventBlock *block)
{
    const Block *from = &g_array_index(b->blocks, Block, index);
    g_autofree RankState *ranks = g_memdup2(from->ranks, b->ranks_count * sizeof(RankState));
    Reader r = { .at = from->bytes != NULL ? from->bytes : b->last.bytes, .ranks = ranks };

    if (block->events == NULL) {
        block->events = g_array_new(FALSE, FALSE, sizeof(LhEvent));
        block->waits = g_array_new(FALSE, FALSE, sizeof(LhWait));
    }
    g_array_set_size(block->events, from->events);
    g_array_set_size(block->waits, from->waits);
    for (uint32_t i = 0, waits = 0; i < from->events; i++) {
        LhEvent *event = &g_array_index(block->events, LhEvent, i);

        *event = read_event(b, &r, (LhWait *)(void *)block->waits->data + waits, waits);
        waits += event->waits_count;
    }
    g_free(r.spelled);
}

void
lh_event_block_clear(LhEventBlock *block)
{
    g_clear_pointer(&block->events, g_array_unref);
    g_clear_pointer(&block->waits, g_array_unref);
}
