/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/symbolic_sets.h"

#include <glib.h>
#include <string.h>

/* Words are multiplied by different odd numbers and added, which takes no word's turn before
 * another's. */
static uint32_t
hash_of(const LhSymbolicSets *sets, const uint64_t *set)
{
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t hash = 0;

    for (uint32_t w = 0; w < sets->words; w++)
        hash += (set[w] ^ set[w] >> 32) * (2 * w * golden + golden);
    return (uint32_t)((hash ^ hash >> 29) * golden >> 32);
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

/* Adds a chunk, and lists its places in twice as many buckets if there are few. */
static void
add_chunk(LhSymbolicSets *sets)
{
    const uint32_t chunks = sets->room / LH_SYMBOLIC_SETS_CHUNK;

    sets->room += LH_SYMBOLIC_SETS_CHUNK;
    sets->chunks = g_renew(uint64_t *, sets->chunks, chunks + 1);
    sets->chunks[chunks] = g_new0(uint64_t, (size_t)LH_SYMBOLIC_SETS_CHUNK * sets->words);
    sets->uses = g_renew(uint32_t, sets->uses, sets->room);
    sets->hash = g_renew(uint32_t, sets->hash, sets->room);
    sets->next = g_renew(uint32_t, sets->next, sets->room);
    if (sets->buckets >= sets->room)
        return;
    sets->buckets = MAX(2 * sets->buckets, 2 * LH_SYMBOLIC_SETS_CHUNK);
    g_free(sets->bucket);
    sets->bucket = g_new0(uint32_t, sets->buckets);
    /* All places are taken when a chunk is added. */
    for (uint32_t i = 1; i < sets->count; i++) {
        uint32_t *first = &sets->bucket[sets->hash[i] & (sets->buckets - 1)];

        sets->next[i] = *first;
        *first = i;
    }
}

void
lh_symbolic_sets_init(LhSymbolicSets *sets, uint32_t words)
{
    *sets = (LhSymbolicSets){ .words = words };
    add_chunk(sets);
    sets->uses[LH_SYMBOLIC_SET_EMPTY] = 0;
    sets->count = 1;
}

void
lh_symbolic_sets_clear(LhSymbolicSets *sets)
{
    for (uint32_t i = 0; i < sets->room / LH_SYMBOLIC_SETS_CHUNK; i++)
        g_free(sets->chunks[i]);
    g_free(sets->chunks);
    g_free(sets->uses);
    g_free(sets->hash);
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

uint32_t
lh_symbolic_sets_store(LhSymbolicSets *sets, const uint64_t *set)
{
    const size_t bytes = sets->words * sizeof(uint64_t);
    uint32_t hash, place, *first;

    if (is_empty(sets, set))
        return LH_SYMBOLIC_SET_EMPTY;
    hash = hash_of(sets, set);
    place = sets->bucket[hash & (sets->buckets - 1)];
    while (place != 0 && (sets->hash[place] != hash ||
                          memcmp(lh_symbolic_sets_get(sets, place), set, bytes) != 0))
        place = sets->next[place];
    if (place != 0) {
        sets->uses[place]++;
        return place;
    }
    place = take_place(sets);
    memcpy(&sets->chunks[place / LH_SYMBOLIC_SETS_CHUNK]
                        [(size_t)(place % LH_SYMBOLIC_SETS_CHUNK) * sets->words],
           set, bytes);
    sets->uses[place] = 1;
    sets->hash[place] = hash;
    first = &sets->bucket[hash & (sets->buckets - 1)]; /* a chunk more may have moved it */
    sets->next[place] = *first;
    *first = place;
    return place;
}

void
lh_symbolic_sets_forget(LhSymbolicSets *sets, uint32_t number)
{
    uint32_t *link = &sets->bucket[sets->hash[number] & (sets->buckets - 1)];

    while (*link != number)
        link = &sets->next[*link];
    *link = sets->next[number];
    sets->next[number] = sets->free;
    sets->free = number;
}
