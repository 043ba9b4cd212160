/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/symbolic_sets.h"

#include <glib.h>
#include <string.h>

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

/* What word @w adds to the sum of a set. Words are multiplied by different odd numbers and added,
 * which takes no word's turn before another's, and lets one word change alone. */
static inline uint64_t
weigh(uint64_t word, uint32_t w)
{
    return (word ^ word >> 32) * (2 * w * GOLDEN + GOLDEN);
}

static uint64_t
sum_of(const LhSymbolicSets *sets, const uint64_t *set)
{
    uint64_t sum = 0;

    for (uint32_t w = 0; w < sets->words; w++)
        sum += weigh(set[w], w);
    return sum;
}

static uint32_t *
list_of(const LhSymbolicSets *sets, uint64_t sum)
{
    return &sets->bucket[(uint32_t)((sum ^ sum >> 29) * GOLDEN >> 32) & (sets->buckets - 1)];
}

static uint64_t *
contents_of(const LhSymbolicSets *sets, uint32_t place)
{
    return &sets->chunks[place / LH_SYMBOLIC_SETS_CHUNK]
                        [(size_t)(place % LH_SYMBOLIC_SETS_CHUNK) * sets->words];
}

static bool
is_empty(const LhSymbolicSets *sets, const uint64_t *set)
{
    for (uint32_t w = 0; w < sets->words; w++) {
        if (set[w] != 0)
            return false;
    }
    return true;
}

/* Puts the set of a place into its list, or takes it out. */
static void
link_place(LhSymbolicSets *sets, uint32_t place)
{
    uint32_t *first = list_of(sets, sets->sum[place]);

    sets->next[place] = *first;
    *first = place;
}

static void
unlink_place(LhSymbolicSets *sets, uint32_t place)
{
    uint32_t *link = list_of(sets, sets->sum[place]);

    while (*link != place)
        link = &sets->next[*link];
    *link = sets->next[place];
}

/* Adds a chunk, and lists its places in twice as many buckets if there are few. */
static void
add_chunk(LhSymbolicSets *sets)
{
    const uint32_t chunks = sets->room / LH_SYMBOLIC_SETS_CHUNK;

    sets->room += LH_SYMBOLIC_SETS_CHUNK;
    sets->chunks = g_renew(uint64_t *, sets->chunks, chunks + 1);
    sets->chunks[chunks] = g_new0(uint64_t, (size_t)LH_SYMBOLIC_SETS_CHUNK * sets->words);
    sets->uses = g_renew(uint32_t, sets->uses, sets->room);
    sets->sum = g_renew(uint64_t, sets->sum, sets->room);
    sets->next = g_renew(uint32_t, sets->next, sets->room);
    if (sets->buckets >= sets->room)
        return;
    sets->buckets = MAX(2 * sets->buckets, 2 * LH_SYMBOLIC_SETS_CHUNK);
    g_free(sets->bucket);
    sets->bucket = g_new0(uint32_t, sets->buckets);
    /* All places are taken when a chunk is added. */
    for (uint32_t i = 1; i < sets->count; i++)
        link_place(sets, i);
}

void
lh_symbolic_sets_init(LhSymbolicSets *sets, uint32_t words)
{
    *sets = (LhSymbolicSets){ .words = words, .joined = g_new(uint64_t, words) };
    add_chunk(sets);
    sets->uses[LH_SYMBOLIC_SET_EMPTY] = 0;
    sets->sum[LH_SYMBOLIC_SET_EMPTY] = 0;
    sets->count = 1;
}

void
lh_symbolic_sets_clear(LhSymbolicSets *sets)
{
    for (uint32_t i = 0; i < sets->room / LH_SYMBOLIC_SETS_CHUNK; i++)
        g_free(sets->chunks[i]);
    g_free(sets->chunks);
    g_free(sets->uses);
    g_free(sets->sum);
    g_free(sets->joined);
    g_free(sets->next);
    g_free(sets->bucket);
}

static uint32_t
take_place(LhSymbolicSets *sets)
{
    const uint32_t place = sets->free;

    if (place != 0) {
        sets->free = sets->next[place];
        return place;
    }
    if (sets->count == sets->room)
        add_chunk(sets);
    return sets->count++;
}

/* The place of a set, with one use more; 0: none has it. */
static uint32_t
find_place(LhSymbolicSets *sets, const uint64_t *set, uint64_t sum)
{
    const size_t bytes = sets->words * sizeof(uint64_t);
    uint32_t place = *list_of(sets, sum);

    while (place != 0 &&
           (sets->sum[place] != sum || memcmp(contents_of(sets, place), set, bytes) != 0))
        place = sets->next[place];
    sets->uses[place] += place != 0;
    return place;
}

/* A place with one use for a set that no place has; its contents are up to the caller. */
static uint32_t
new_place(LhSymbolicSets *sets, uint64_t sum)
{
    const uint32_t place = take_place(sets);

    sets->uses[place] = 1;
    sets->sum[place] = sum;
    link_place(sets, place);
    return place;
}

uint32_t
lh_symbolic_sets_store(LhSymbolicSets *sets, const uint64_t *set)
{
    uint64_t sum;
    uint32_t place;

    if (is_empty(sets, set))
        return LH_SYMBOLIC_SET_EMPTY;
    sum = sum_of(sets, set);
    place = find_place(sets, set, sum);
    if (place != 0)
        return place;
    place = new_place(sets, sum);
    memcpy(contents_of(sets, place), set, sets->words * sizeof(uint64_t));
    return place;
}

/* A place for the contents that @number gets, which no place has: its own if it has one use, or
 * else a new one that takes the use over. */
static uint32_t
place_to_change(LhSymbolicSets *sets, uint32_t number, uint64_t sum)
{
    if (number == LH_SYMBOLIC_SET_EMPTY)
        return new_place(sets, sum);
    if (sets->uses[number] > 1) {
        sets->uses[number]--;
        return new_place(sets, sum);
    }
    unlink_place(sets, number);
    sets->sum[number] = sum;
    link_place(sets, number);
    return number;
}

uint32_t
lh_symbolic_sets_add(LhSymbolicSets *sets, uint32_t number, uint32_t source)
{
    const uint64_t *set = lh_symbolic_sets_get(sets, number);
    const uint32_t w = source / 64;
    const uint64_t word = set[w] | UINT64_C(1) << source % 64;
    const uint64_t sum = sets->sum[number] - weigh(set[w], w) + weigh(word, w);
    uint32_t place = *list_of(sets, sum);

    while (place != 0 && sets->sum[place] != sum)
        place = sets->next[place];
    if (place != 0) { /* most likely the same set */
        memcpy(sets->joined, set, sets->words * sizeof(uint64_t));
        sets->joined[w] = word;
        place = find_place(sets, sets->joined, sum);
    }
    if (place != 0) {
        lh_symbolic_sets_drop(sets, number);
        return place;
    }
    place = place_to_change(sets, number, sum);
    if (place != number)
        memcpy(contents_of(sets, place), set, sets->words * sizeof(uint64_t));
    contents_of(sets, place)[w] = word;
    return place;
}

uint32_t
lh_symbolic_sets_join(LhSymbolicSets *sets, uint32_t number, const uint64_t *more)
{
    const uint64_t *set = lh_symbolic_sets_get(sets, number);
    uint64_t *joined = sets->joined;
    uint64_t sum = 0, any = 0;
    uint32_t place;

    for (uint32_t w = 0; w < sets->words; w++) {
        joined[w] = set[w] | more[w];
        any |= joined[w];
        sum += weigh(joined[w], w);
    }
    if (any == 0)
        return LH_SYMBOLIC_SET_EMPTY;
    place = find_place(sets, joined, sum);
    if (place != 0) {
        lh_symbolic_sets_drop(sets, number);
        return place;
    }
    place = place_to_change(sets, number, sum);
    memcpy(contents_of(sets, place), joined, sets->words * sizeof(uint64_t));
    return place;
}

void
lh_symbolic_sets_forget(LhSymbolicSets *sets, uint32_t number)
{
    unlink_place(sets, number);
    sets->next[number] = sets->free;
    sets->free = number;
}
