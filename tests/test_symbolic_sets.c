/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets that are stored once against plain ones: cells that store, add to, join, share and drop sets
 * at random always hold what plain bits say, and two of them have one number exactly when their
 * bits are equal.
 */
#include "verify/symbolic_sets.h"

#include "base/rng.h"
#include "run_tests.h"
#include "share.h"

#include <string.h>

#define SEED 71
#define CELLS 12
#define WORDS_MAX 3
#define SOURCES 6
#define CHANGES 4000

typedef struct {
    LhSymbolicSets sets;
    uint32_t words;
    uint32_t number[CELLS];
    uint64_t plain[CELLS][WORDS_MAX];
} Cells;

static void
give(Cells *c, uint32_t cell, uint32_t number)
{
    lh_symbolic_sets_hold(&c->sets, number);
    lh_symbolic_sets_drop(&c->sets, c->number[cell]);
    c->number[cell] = number;
}

static void
change(Cells *c, uint32_t cell, uint32_t other, uint64_t bits)
{
    const uint32_t source = (uint32_t)(bits >> 8) % SOURCES * 31 % (64 * c->words);
    uint64_t *plain = c->plain[cell];
    uint32_t stored;

    switch (bits % 8) {
    case 0:
        give(c, cell, c->number[other]);
        memcpy(plain, c->plain[other], sizeof(c->plain[other]));
        break;
    case 1:
        give(c, cell, LH_SYMBOLIC_SET_EMPTY);
        memset(plain, 0, sizeof(c->plain[cell]));
        break;
    case 2:
        memset(plain, 0, sizeof(c->plain[cell]));
        plain[source / 64] = UINT64_C(1) << source % 64;
        stored = lh_symbolic_sets_store(&c->sets, plain);
        lh_symbolic_sets_drop(&c->sets, c->number[cell]);
        c->number[cell] = stored;
        break;
    case 3:
    case 4:
        if (c->number[cell] == c->number[other])
            break;
        for (uint32_t w = 0; w < c->words; w++)
            plain[w] |= c->plain[other][w];
        c->number[cell] = lh_symbolic_sets_join(&c->sets, c->number[cell],
                                                lh_symbolic_sets_get(&c->sets, c->number[other]));
        break;
    default:
        plain[source / 64] |= UINT64_C(1) << source % 64;
        c->number[cell] = lh_symbolic_sets_add(&c->sets, c->number[cell], source);
    }
}

static void
check(const Cells *c)
{
    const size_t bytes = c->words * sizeof(uint64_t);

    for (uint32_t i = 0; i < CELLS; i++) {
        ck_assert(memcmp(lh_symbolic_sets_get(&c->sets, c->number[i]), c->plain[i], bytes) == 0);
        for (uint32_t k = 0; k < i; k++)
            ck_assert((c->number[i] == c->number[k]) ==
                      (memcmp(c->plain[i], c->plain[k], bytes) == 0));
    }
}

/* Few sources, so that cells often come to the same set by different ways. */
START_TEST(sets_hold_what_plain_ones_do)
{
    for (uint32_t words = 1; words <= WORDS_MAX; words++) {
        Cells c = { .words = words };

        lh_symbolic_sets_init(&c.sets, words);
        for (uint32_t i = 0; i < CHANGES / test_every(); i++) {
            const uint64_t bits = lh_rng_bits(SEED, words, i);

            change(&c, (uint32_t)(bits >> 40) % CELLS, (uint32_t)(bits >> 50) % CELLS, bits);
            check(&c);
        }
        for (uint32_t i = 0; i < CELLS; i++)
            give(&c, i, LH_SYMBOLIC_SET_EMPTY);
        for (uint32_t place = 1; place < c.sets.count; place++)
            ck_assert_uint_eq(c.sets.uses[place], 0);
        lh_symbolic_sets_clear(&c.sets);
    }
}
END_TEST

LH_TEST_MAIN("symbolic_sets", sets_hold_what_plain_ones_do)
