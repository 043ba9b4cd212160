/* SPDX-License-Identifier: Apache-2.0 */
/* The rarer parts of the event queue: growing, laying out its buckets, removal. */
#include "base/heap.h"

#define BUCKETS_MIN 256u
#define BUCKETS_MAX 65536u
#define SHIFT_MIN 10 /* spans of at least 1 ns */

/* Initialises @buckets, a power of two, when nothing is parked. */
static void
lay_out(LhHeap *h, uint32_t buckets)
{
    uint32_t words = buckets / 64 + 1;

    h->buckets = g_renew(uint32_t, h->buckets, buckets + 1);
    h->filled = g_renew(uint64_t, h->filled, words);
    for (uint32_t i = 0; i <= buckets; i++)
        h->buckets[i] = LH_HEAP_NONE;
    for (uint32_t i = 0; i < words; i++)
        h->filled[i] = 0;
    h->mask = buckets - 1;
}

void
lh_heap_reserve(LhHeap *h, uint32_t items)
{
    if (items <= h->items)
        return;
    g_assert(items < (1u << LH_HEAP_ITEM_BITS));
    if (h->buckets == NULL) {
        h->shift = SHIFT_MIN;
        lay_out(h, BUCKETS_MIN);
    }
    items = MAX(items, MIN(h->items * 2, (1u << LH_HEAP_ITEM_BITS) - 1));
    h->where = g_renew(LhHeapItem, h->where, items);
    for (uint32_t i = h->items; i < items; i++)
        h->where[i].place = 0;
    h->items = items;
}

void
lh_heap_clear(LhHeap *h)
{
    g_aligned_free(h->block);
    g_free(h->where);
    g_free(h->buckets);
    g_free(h->filled);
    *h = (LhHeap){ 0 };
}

/* The children 4i+1 .. 4i+4 of an entry start at a multiple of four entries: 64 bytes. */
void
lh_heap_grow(LhHeap *h)
{
    uint32_t capacity = MAX(64, h->capacity * 2);
    LhHeapEntry *block = g_aligned_alloc(capacity + 3, sizeof(LhHeapEntry), 64);

    for (uint32_t i = 0; i < h->heap_count; i++)
        block[i + 3] = h->entries[i];
    g_aligned_free(h->block);
    h->block = block;
    h->entries = block + 3;
    h->capacity = capacity;
}

/* The first non-empty bucket at or after h->near; LH_HEAP_NONE: all are empty. */
static uint32_t
next_filled(const LhHeap *h)
{
    uint32_t buckets = h->mask + 1, start = (uint32_t)h->near & h->mask;

    for (uint32_t i = 0; i <= buckets / 64; i++) {
        uint32_t word = (start / 64 + i) % (buckets / 64);
        uint64_t bits = h->filled[word];

        if (i == 0)
            bits &= ~UINT64_C(0) << start % 64;
        else if (i == buckets / 64)
            bits &= ~(~UINT64_C(0) << start % 64);
        if (bits != 0)
            return word * 64 + (uint32_t)__builtin_ctzll(bits);
    }
    return LH_HEAP_NONE;
}

/* Lays out the buckets for the entries beyond them: one bucket for every two entries. */
static void
spread(LhHeap *h)
{
    uint32_t first = h->buckets[h->mask + 1], waiting = 0, buckets = BUCKETS_MIN;
    LhTime least = LH_TIME_NEVER, most = 0;

    for (uint32_t item = first; item != LH_HEAP_NONE; item = h->where[item].next) {
        least = MIN(least, h->where[item].entry.time);
        most = MAX(most, h->where[item].entry.time);
        waiting++;
    }
    while (buckets < BUCKETS_MAX && buckets < waiting)
        buckets *= 2;
    h->shift = SHIFT_MIN;
    while ((uint64_t)(most - least) >> h->shift > buckets / 2)
        h->shift++;
    h->near = (uint64_t)least >> h->shift;
    h->limit = h->near + buckets;
    lay_out(h, buckets);
    while (first != LH_HEAP_NONE) {
        uint32_t next = h->where[first].next;

        lh_heap_park(h, first, h->where[first].entry);
        first = next;
    }
}

void
lh_heap_refill(LhHeap *h)
{
    uint32_t bucket = next_filled(h), item;

    if (bucket == LH_HEAP_NONE) {
        spread(h);
        bucket = next_filled(h);
    }
    h->near += ((bucket - (uint32_t)h->near) & h->mask) + 1;
    item = h->buckets[bucket];
    h->buckets[bucket] = LH_HEAP_NONE;
    h->filled[bucket / 64] &= ~(UINT64_C(1) << bucket % 64);
    while (item != LH_HEAP_NONE) {
        uint32_t next = h->where[item].next;

        lh_heap_push(h, h->where[item].entry);
        item = next;
    }
}

static void
unpark(LhHeap *h, uint32_t item)
{
    LhHeapItem *i = &h->where[item];
    uint32_t list = i->place & ~LH_HEAP_PARKED;

    if (i->next != LH_HEAP_NONE)
        h->where[i->next].previous = i->previous;
    if (i->previous != LH_HEAP_NONE)
        h->where[i->previous].next = i->next;
    else
        h->buckets[list] = i->next;
    if (h->buckets[list] == LH_HEAP_NONE)
        h->filled[list / 64] &= ~(UINT64_C(1) << list % 64);
}

void
lh_heap_remove(LhHeap *h, uint32_t item)
{
    const uint32_t place = h->where[item].place;
    LhHeapEntry last;

    if (place == 0)
        return;
    h->count--;
    if (place & LH_HEAP_PARKED)
        unpark(h, item);
    h->where[item].place = 0;
    if (place & LH_HEAP_PARKED)
        return;
    last = h->entries[--h->heap_count];
    if (place - 1 == h->heap_count)
        return;
    if (lh_heap_before(last, h->entries[place - 1]))
        lh_heap_sift_up(h, place - 1, last);
    else
        lh_heap_sift_down(h, place - 1, last);
}
