/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An indexed event queue: at most one entry per item, removed in total order (time, insertion
 * number), so equal times leave in insertion order. Re-keying an item counts as a new insertion.
 *
 * The near future is a 4-ary heap. Later entries are parked unsorted in buckets of equal time spans
 * and enter the heap when their span is reached, so the heap stays a few entries deep, however many
 * are pending. Entries beyond the last bucket wait in one list; when the buckets are empty, they
 * are laid out anew from this list, with a span that follows the density of pending entries.
 */
#pragma once

#include "base/units.h"

#include <glib.h>

/* Items are small integers below 2^24; 2^40 insertions. */
#define LH_HEAP_ITEM_BITS 24

typedef struct {
    LhTime time;
    uint64_t order; /* insertion number << LH_HEAP_ITEM_BITS | item */
} LhHeapEntry;

/* Location of an item: absent (place 0), in the heap (index + 1), or parked in a list (its number |
 * LH_HEAP_PARKED). */
typedef struct {
    uint32_t place;
    uint32_t next, previous; /* parked: neighbours in the list, or LH_HEAP_NONE */
    LhHeapEntry entry;       /* parked: its key */
} LhHeapItem;

#define LH_HEAP_PARKED (1u << 31)
#define LH_HEAP_NONE UINT32_MAX

typedef struct {
    uint32_t count; /* all entries, in the heap or parked */
    uint32_t heap_count, capacity;
    LhHeapEntry *entries; /* the heap; inside `block`, so that siblings share a cache line */
    LhHeapEntry *block;
    LhHeapItem *where; /* by item */
    uint32_t items;
    uint64_t inserted;
    uint64_t near;     /* spans below this number are in the heap; */
    uint64_t limit;    /* those below this one, in buckets */
    uint32_t shift;    /* a span is 2^shift ps */
    uint32_t *buckets; /* list heads by span & mask; at mask + 1, entries beyond the buckets */
    uint64_t *filled;  /* one bit per bucket: not empty */
    uint32_t mask;
} LhHeap;

/* Makes room for items [0, items). */
void lh_heap_reserve(LhHeap *h, uint32_t items);

void lh_heap_clear(LhHeap *h);

/* Moves the next span's entries into the heap, which must be empty; at least one entry must be
 * parked. */
void lh_heap_refill(LhHeap *h);

void lh_heap_grow(LhHeap *h);

/* Removes @item, if it is in the queue. */
void lh_heap_remove(LhHeap *h, uint32_t item);

/* One 128-bit comparison in place of two unpredictable branches. Times are never negative. */
static inline bool
lh_heap_before(LhHeapEntry a, LhHeapEntry b)
{
    __extension__ typedef unsigned __int128 Key;

    return ((Key)(uint64_t)a.time << 64 | a.order) < ((Key)(uint64_t)b.time << 64 | b.order);
}

static inline bool
lh_heap_contains(const LhHeap *h, uint32_t item)
{
    return h->where[item].place != 0;
}

static inline uint32_t
lh_heap_item(LhHeapEntry e)
{
    return (uint32_t)(e.order & ((1u << LH_HEAP_ITEM_BITS) - 1));
}

static inline void
lh_heap_put(LhHeap *h, uint32_t index, LhHeapEntry e)
{
    h->entries[index] = e;
    h->where[lh_heap_item(e)].place = index + 1;
}

static inline void
lh_heap_sift_up(LhHeap *h, uint32_t index, LhHeapEntry e)
{
    while (index > 0) {
        uint32_t parent = (index - 1) / 4;

        if (!lh_heap_before(e, h->entries[parent]))
            break;
        lh_heap_put(h, index, h->entries[parent]);
        index = parent;
    }
    lh_heap_put(h, index, e);
}

/* The least child of @index, which has at least one. */
static inline uint32_t
lh_heap_least_child(const LhHeap *h, uint32_t index)
{
    uint32_t child = 4 * index + 1, least = child, end = MIN(child + 4, h->heap_count);

    for (uint32_t c = child + 1; c < end; c++) {
        uint32_t swap = lh_heap_before(h->entries[c], h->entries[least]);

        least ^= (least ^ c) & -swap; /* without a branch, which would be unpredictable */
    }
    return least;
}

static inline void
lh_heap_sift_down(LhHeap *h, uint32_t index, LhHeapEntry e)
{
    while (4 * index + 1 < h->heap_count) {
        uint32_t least = lh_heap_least_child(h, index);

        if (!lh_heap_before(h->entries[least], e))
            break;
        lh_heap_put(h, index, h->entries[least]);
        index = least;
    }
    lh_heap_put(h, index, e);
}

static inline void
lh_heap_push(LhHeap *h, LhHeapEntry e)
{
    if (h->heap_count == h->capacity)
        lh_heap_grow(h);
    lh_heap_sift_up(h, h->heap_count++, e);
}

static inline void
lh_heap_park(LhHeap *h, uint32_t item, LhHeapEntry e)
{
    uint64_t span = (uint64_t)e.time >> h->shift;
    uint32_t beyond = h->mask + 1, list, head;

    /* The buckets may advance with time only while nothing waits beyond them: it would be
     * overtaken. */
    if (span >= h->limit && h->buckets[beyond] == LH_HEAP_NONE)
        h->limit = h->near + h->mask + 1;
    list = span < h->limit ? (uint32_t)span & h->mask : beyond;
    head = h->buckets[list];
    h->where[item] = (LhHeapItem){ list | LH_HEAP_PARKED, head, LH_HEAP_NONE, e };
    if (head != LH_HEAP_NONE)
        h->where[head].previous = item;
    h->buckets[list] = item;
    h->filled[list / 64] |= UINT64_C(1) << list % 64;
}

/* Inserts @item at @time, or moves it to @time. */
static inline void
lh_heap_set(LhHeap *h, uint32_t item, LhTime time)
{
    const LhHeapEntry e = { time, h->inserted++ << LH_HEAP_ITEM_BITS | item };

    if (lh_heap_contains(h, item))
        lh_heap_remove(h, item);
    h->count++;
    if ((uint64_t)time >> h->shift < h->near)
        lh_heap_push(h, e);
    else
        lh_heap_park(h, item, e);
}

/* Time of the earliest entry, or LH_TIME_NEVER. */
static inline LhTime
lh_heap_time(LhHeap *h)
{
    if (h->heap_count == 0) {
        if (h->count == 0)
            return LH_TIME_NEVER;
        lh_heap_refill(h);
    }
    return h->entries[0].time;
}

/*
 * Removes and returns the item of the earliest entry; the queue must not be empty. The hole sinks
 * to the bottom before the last entry fills it: that entry belongs near the bottom anyway, and this
 * way down has no unpredictable branch.
 */
static inline uint32_t
lh_heap_pop(LhHeap *h)
{
    uint32_t item, hole = 0;
    LhHeapEntry last;

    if (h->heap_count == 0)
        lh_heap_refill(h);
    item = lh_heap_item(h->entries[0]);
    h->count--;
    h->where[item].place = 0;
    last = h->entries[--h->heap_count];
    if (h->heap_count == 0)
        return item;
    while (4 * hole + 1 < h->heap_count) {
        uint32_t least = lh_heap_least_child(h, hole);

        lh_heap_put(h, hole, h->entries[least]);
        hole = least;
    }
    lh_heap_sift_up(h, hole, last);
    return item;
}
