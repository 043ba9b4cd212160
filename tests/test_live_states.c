/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory kept once for equal ranks against memory of each rank on its own: random allocs and frees,
 * of ranks that do the same, now and then differ, or soon have nothing in common.
 */
#include "program/live_states.h"

#include "run_tests.h"

enum { SLOTS = 9, PARTS = 5, RANKS = 24, CHANGES_OF_RANK = 3000 };

static LhProgram *
make_program(GRand *random)
{
    static const LhGenerator nothing = { .steps = NULL };
    const LhProgramParams params = {
        .attention = { .batch = 1,
                       .seq_length = RANKS,
                       .heads = 1,
                       .groups = 1,
                       .head_dim = 1,
                       .dtype = LH_DTYPE_BF16 },
        .ranks = RANKS,
    };
    LhProgram *program = lh_program_create("live", &nothing, &params, LH_PLACE_CONTIGUOUS);

    for (int i = 0; i < SLOTS; i++)
        lh_program_add_slot(
            program, (LhSlotParams){
                         .name = "slot",
                         .kind = (LhTensorKind)g_rand_int_range(random, 0, LH_TENSOR_KINDS),
                         .role = g_rand_int_range(random, 0, 3) == 0 ? LH_SLOT_INPUT : LH_SLOT_TEMP,
                         .dtype = LH_DTYPE_BF16,
                         .category = (LhCategory)g_rand_int_range(random, 0, LH_CATEGORIES),
                         .parts = PARTS,
                         .part_bytes = (uint64_t)g_rand_int_range(random, 0, 4) * 10 });
    return program;
}

static LhRegion
random_region(GRand *random)
{
    const uint32_t part = (uint32_t)g_rand_int_range(random, 0, PARTS);

    return (LhRegion){ .slot = (uint16_t)g_rand_int_range(random, 0, SLOTS),
                       .part = part,
                       .count = (uint32_t)g_rand_int_range(random, 0, (int)(PARTS - part)) + 1 };
}

/* The same ranks twice. */
typedef struct {
    LhProgram *program;
    LhLiveStates *states;
    uint32_t state[RANKS];
    LhLive alone[RANKS];
} Ranks;

/* @few: as for so few ranks that each has a state of its own. */
static void
ranks_init(Ranks *ranks, GRand *random, bool few)
{
    ranks->program = make_program(random);
    ranks->states = lh_live_states_new(ranks->program, few ? 1 : 1000);
    for (uint32_t r = 0; r < RANKS; r++) {
        ranks->state[r] = lh_live_states_begin(ranks->states, r);
        lh_live_init(&ranks->alone[r], ranks->program, r);
    }
}

static void
ranks_clear(Ranks *ranks)
{
    lh_live_states_free(ranks->states);
    lh_program_free(ranks->program);
}

static void
check_rank(const Ranks *ranks, uint32_t r)
{
    ck_assert_mem_eq(lh_live_states_get(ranks->states, ranks->state[r]), &ranks->alone[r],
                     sizeof(LhLive));
}

static void
change(Ranks *ranks, uint32_t r, LhRegion region, bool alloc)
{
    bool peak;

    ranks->state[r] = lh_live_states_change(ranks->states, ranks->state[r], region, alloc, &peak);
    ck_assert(peak == lh_live_change(&ranks->alone[r], ranks->program, region, alloc));
    check_rank(ranks, r);
}

/* Ranks change in turns; of each @same changes one is the rank's own. */
static void
check_ranks(uint32_t seed, int same, bool few)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(seed);
    Ranks ranks;

    ranks_init(&ranks, random, few);
    for (int i = 0; i < CHANGES_OF_RANK; i++) {
        LhRegion region = random_region(random);
        bool alloc = g_rand_boolean(random);

        for (uint32_t r = 0; r < RANKS; r++) {
            if (g_rand_int_range(random, 0, same) == 0) {
                region = random_region(random);
                alloc = g_rand_boolean(random);
            }
            change(&ranks, r, region, alloc);
        }
    }
    for (uint32_t r = 0; r < RANKS; r++)
        check_rank(&ranks, r);
    ck_assert_uint_le(lh_live_states_count(ranks.states), lh_live_states_end(ranks.states));
    ck_assert_uint_le(lh_live_states_end(ranks.states), 1100); /* unused states are dropped */
    ranks_clear(&ranks);
}

START_TEST(shared_memory_is_that_of_each_rank)
{
    check_ranks((uint32_t)_i, 1 << _i, false);
    check_ranks((uint32_t)_i, 1 << _i, true);
}
END_TEST

/* Ranks that do the same have one state. */
START_TEST(equal_ranks_share_a_state)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(7);
    Ranks ranks;

    ranks_init(&ranks, random, false);
    for (int i = 0; i < 100; i++) {
        const LhRegion region = random_region(random);
        const bool alloc = g_rand_boolean(random);

        for (uint32_t r = 0; r < RANKS; r++) {
            change(&ranks, r, region, alloc);
            ck_assert_uint_eq(ranks.state[r], ranks.state[0]);
        }
    }
    ranks_clear(&ranks);
}
END_TEST

LH_TEST_MAIN_OF_LOOPS("live_states", { shared_memory_is_that_of_each_rank, 12 },
                      { equal_ranks_share_a_state, 1 })
