/*
 * An indexed 4-ary min-heap of events: at most one entry per item, in total order (time, insertion
 * number), so equal times leave in the order they came. Re-keying an item counts as a new
 * insertion.
 *
 * Four children share a cache line (16-byte entries), which is what makes it faster than a binary
 * heap here.
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

typedef struct {
    LhHeapEntry
        *block; /* owns the memory; entries starts inside it so that siblings share a line */
    LhHeapEntry *entries;
    uint32_t *positions; /* item -> index of its entry + 1; 0: absent */
    uint32_t count, capacity;
    uint32_t items; /* length of positions */
    uint64_t inserted;
} LhHeap;

/* Makes room for items [0, items). */
static inline void
lh_heap_reserve(LhHeap *h, uint32_t items)
{
    if (items <= h->items)
        return;
    g_assert(items < (1u << LH_HEAP_ITEM_BITS));
    items = MAX(items, MIN(h->items * 2, 1u << LH_HEAP_ITEM_BITS));
    h->positions = g_renew(uint32_t, h->positions, items);
    for (uint32_t i = h->items; i < items; i++)
        h->positions[i] = 0;
    h->items = items;
}

/* The children 4i+1 .. 4i+4 of an entry start at a multiple of four entries: 64 bytes. */
static inline void
lh_heap_grow(LhHeap *h)
{
    uint32_t capacity = MAX(64, h->capacity * 2);
    LhHeapEntry *block = g_aligned_alloc(capacity + 3, sizeof(LhHeapEntry), 64);

    for (uint32_t i = 0; i < h->count; i++)
        block[i + 3] = h->entries[i];
    g_aligned_free(h->block);
    h->block = block;
    h->entries = block + 3;
    h->capacity = capacity;
}

static inline void
lh_heap_clear(LhHeap *h)
{
    g_aligned_free(h->block);
    g_free(h->positions);
    *h = (LhHeap){ 0 };
}

/* One 128-bit comparison instead of two branches that nothing can predict. Times are never
 * negative. */
static inline bool
lh_heap_before(LhHeapEntry a, LhHeapEntry b)
{
    __extension__ typedef unsigned __int128 Key;

    return ((Key)(uint64_t)a.time << 64 | a.order) < ((Key)(uint64_t)b.time << 64 | b.order);
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
    h->positions[lh_heap_item(e)] = index + 1;
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

static inline uint32_t
lh_heap_lesser(const LhHeap *h, uint32_t a, uint32_t b)
{
    uint32_t swap = lh_heap_before(h->entries[b], h->entries[a]);

    return a ^ ((a ^ b) & -swap); /* without a branch: which is the lesser is anybody's guess */
}

/* The least child of @index, which has at least one. */
static inline uint32_t
lh_heap_least_child(const LhHeap *h, uint32_t index)
{
    uint32_t child = 4 * index + 1, least = child;

    if (child + 3 < h->count)
        return lh_heap_lesser(h, lh_heap_lesser(h, child, child + 1),
                              lh_heap_lesser(h, child + 2, child + 3));
    for (uint32_t c = child + 1; c < h->count; c++)
        least = lh_heap_lesser(h, least, c);
    return least;
}

static inline void
lh_heap_sift_down(LhHeap *h, uint32_t index, LhHeapEntry e)
{
    while (4 * index + 1 < h->count) {
        uint32_t least = lh_heap_least_child(h, index);

        if (!lh_heap_before(h->entries[least], e))
            break;
        lh_heap_put(h, index, h->entries[least]);
        index = least;
    }
    lh_heap_put(h, index, e);
}

/* Inserts @item at @time, or moves it there. */
static inline void
lh_heap_set(LhHeap *h, uint32_t item, LhTime time)
{
    LhHeapEntry e = { time, h->inserted++ << LH_HEAP_ITEM_BITS | item };
    uint32_t position = h->positions[item];

    if (position == 0) {
        if (h->count == h->capacity)
            lh_heap_grow(h);
        lh_heap_sift_up(h, h->count++, e);
    } else if (lh_heap_before(e, h->entries[position - 1])) {
        lh_heap_sift_up(h, position - 1, e);
    } else {
        lh_heap_sift_down(h, position - 1, e);
    }
}

/* Takes @item out; nothing happens if it is not there. */
static inline void
lh_heap_remove(LhHeap *h, uint32_t item)
{
    uint32_t position = h->positions[item];
    LhHeapEntry last;

    if (position == 0)
        return;
    h->positions[item] = 0;
    last = h->entries[--h->count];
    if (position - 1 == h->count)
        return;
    if (lh_heap_before(last, h->entries[position - 1]))
        lh_heap_sift_up(h, position - 1, last);
    else
        lh_heap_sift_down(h, position - 1, last);
}

/* Time of the earliest entry, or LH_TIME_NEVER. */
static inline LhTime
lh_heap_time(const LhHeap *h)
{
    return h->count > 0 ? h->entries[0].time : LH_TIME_NEVER;
}

/*
 * Removes and returns the item of the earliest entry; the heap must not be empty. The hole sinks to
 * the bottom before the last entry fills it: that entry belongs near the bottom anyway, and the way
 * down is then free of surprises.
 */
static inline uint32_t
lh_heap_pop(LhHeap *h)
{
    uint32_t item = lh_heap_item(h->entries[0]);
    uint32_t hole = 0;
    LhHeapEntry last;

    h->positions[item] = 0;
    last = h->entries[--h->count];
    if (h->count == 0)
        return item;
    while (4 * hole + 1 < h->count) {
        uint32_t least = lh_heap_least_child(h, hole);

        lh_heap_put(h, hole, h->entries[least]);
        hole = least;
    }
    lh_heap_sift_up(h, hole, last);
    return item;
}
