/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of contributions. Equal sets are stored once: cells hold numbers, and two cells have the
 * same contributions if and only if their numbers are equal. A set that no cell has is forgotten.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LH_SYMBOLIC_SET_EMPTY 0 /* the number of the empty set */

typedef struct {
    uint32_t words;       /* of one set */
    uint64_t **chunks;    /* contents, which never move */
    uint32_t *uses;       /* [room] cells that have the set; 0: its place is free */
    uint64_t *sum;        /* [room] of the contents; its hash goes into the lists */
    uint32_t *next;       /* [room] in its list: of a hash, or of free places; 0: the end */
    uint32_t *bucket;     /* [buckets] first set of a hash; 0: none */
    uint32_t buckets;     /* a power of 2 */
    uint32_t room, count; /* places; those that have been used so far */
    uint32_t free;        /* first free place below count; 0: none */
    uint64_t *joined;     /* [words] a set for a moment */
} LhSymbolicSets;

#define LH_SYMBOLIC_SETS_CHUNK 512 /* sets */

/* @words: of one set, whose bits have no other meaning here. */
void lh_symbolic_sets_init(LhSymbolicSets *sets, uint32_t words);

/* Words of all sets that there has been room for at once. */
static inline uint64_t
lh_symbolic_sets_words(const LhSymbolicSets *sets)
{
    return (uint64_t)sets->room * sets->words;
}

void lh_symbolic_sets_clear(LhSymbolicSets *sets);

/* The number of a set, which gets one more use. */
uint32_t lh_symbolic_sets_store(LhSymbolicSets *sets, const uint64_t *set);

/* The number of the set @number with one contribution more, or those of @more. The use of @number
 * becomes one of the result. @more may be another set of these, but none with that number. */
uint32_t lh_symbolic_sets_add(LhSymbolicSets *sets, uint32_t number, uint32_t source);
uint32_t lh_symbolic_sets_join(LhSymbolicSets *sets, uint32_t number, const uint64_t *more);

/* One use more, or less, of the set @number. */
static inline void
lh_symbolic_sets_hold(LhSymbolicSets *sets, uint32_t number)
{
    sets->uses[number] += number != LH_SYMBOLIC_SET_EMPTY;
}
void lh_symbolic_sets_forget(LhSymbolicSets *sets, uint32_t number);

static inline void
lh_symbolic_sets_drop(LhSymbolicSets *sets, uint32_t number)
{
    if (number != LH_SYMBOLIC_SET_EMPTY && --sets->uses[number] == 0)
        lh_symbolic_sets_forget(sets, number);
}

static inline const uint64_t *
lh_symbolic_sets_get(const LhSymbolicSets *sets, uint32_t number)
{
    return &sets->chunks[number / LH_SYMBOLIC_SETS_CHUNK]
                        [(size_t)(number % LH_SYMBOLIC_SETS_CHUNK) * sets->words];
}
