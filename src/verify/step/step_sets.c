/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/step/step_sets.h"

#include <string.h>

typedef struct {
    uint32_t number, words; /* the last word is not 0 */
    uint64_t bits[];
} Set;

static guint
hash(gconstpointer key)
{
    const Set *set = key;
    uint64_t h = set->words;

    for (uint32_t i = 0; i < set->words; i++)
        h = (h ^ set->bits[i]) * UINT64_C(0x9e3779b97f4a7c15) >> 1;
    return (guint)(h ^ h >> 32);
}

static gboolean
equal(gconstpointer a, gconstpointer b)
{
    const Set *x = a, *y = b;

    return x->words == y->words && memcmp(x->bits, y->bits, x->words * sizeof(uint64_t)) == 0;
}

static Set *
new_set(uint32_t words)
{
    Set *set = g_malloc0(sizeof(Set) + words * sizeof(uint64_t));

    set->words = words;
    return set;
}

/* The number of @set; takes ownership of it. */
static uint32_t
keep(LhSets *sets, Set *set)
{
    const Set *known = g_hash_table_lookup(sets->numbers, set);

    if (known != NULL) {
        g_free(set);
        return known->number;
    }
    set->number = sets->sets->len;
    g_ptr_array_add(sets->sets, set);
    g_hash_table_add(sets->numbers, set);
    return set->number;
}

void
lh_sets_init(LhSets *sets)
{
    sets->sets = g_ptr_array_new_with_free_func(g_free);
    sets->numbers = g_hash_table_new(hash, equal);
    keep(sets, new_set(0));
}

void
lh_sets_clear(LhSets *sets)
{
    g_hash_table_unref(sets->numbers);
    g_ptr_array_unref(sets->sets);
}

static const Set *
set_at(const LhSets *sets, uint32_t number)
{
    return g_ptr_array_index(sets->sets, number);
}

uint32_t
lh_sets_all(LhSets *sets, uint32_t count)
{
    Set *set = new_set((count + 63) / 64);

    for (uint32_t i = 0; i < count; i++)
        set->bits[i / 64] |= UINT64_C(1) << i % 64;
    return keep(sets, set);
}

uint32_t
lh_sets_one(LhSets *sets, uint32_t term)
{
    Set *set = new_set(term / 64 + 1);

    set->bits[term / 64] = UINT64_C(1) << term % 64;
    return keep(sets, set);
}

uint32_t
lh_sets_unite(LhSets *sets, uint32_t a, uint32_t b)
{
    const Set *x = set_at(sets, a), *y = set_at(sets, b);
    Set *sum;

    for (uint32_t i = 0; i < MIN(x->words, y->words); i++) {
        if ((x->bits[i] & y->bits[i]) != 0)
            return LH_NONE;
    }
    sum = new_set(MAX(x->words, y->words));
    for (uint32_t i = 0; i < x->words; i++)
        sum->bits[i] = x->bits[i];
    for (uint32_t i = 0; i < y->words; i++)
        sum->bits[i] |= y->bits[i];
    return keep(sets, sum);
}

uint32_t
lh_sets_size(const LhSets *sets, uint32_t number)
{
    const Set *set = set_at(sets, number);
    uint32_t size = 0;

    for (uint32_t i = 0; i < set->words; i++)
        size += (uint32_t)__builtin_popcountll(set->bits[i]);
    return size;
}

uint32_t
lh_sets_lacks(const LhSets *sets, uint32_t number)
{
    const Set *set = set_at(sets, number);
    uint32_t word = 0;

    while (word < set->words && set->bits[word] == UINT64_MAX)
        word++;
    return word == set->words ? word * 64 : word * 64 + (uint32_t)__builtin_ctzll(~set->bits[word]);
}
