/* SPDX-License-Identifier: Apache-2.0 */
/* Synchronised start of the processes of a run: with simulated clock rounds, and without rounds. */
#include "runtime/process/clocks.h"

#include "base/rng.h"
#include "run_tests.h"

#define PROCESSES 5
#define CASES 1000

/* Rounds of two clocks, the other one behind by @behind_ns, with random delays in both
 * directions. */
static void
make_rounds(uint64_t seed, int64_t behind_ns, LhClockRound *first, LhClockRound *other)
{
    int64_t now_ns = 1000000;

    for (uint64_t i = 0; i < LH_CLOCK_ROUNDS; i++) {
        const int64_t there = 1000 + (int64_t)(lh_rng_bits(seed, i, 1) % 100000);
        const int64_t back = 1000 + (int64_t)(lh_rng_bits(seed, i, 2) % 100000);

        other[i].sent_ns = now_ns - behind_ns;
        first[i].received_ns = now_ns + there;
        other[i].received_ns = now_ns + there + back - behind_ns;
        now_ns += there + back;
    }
}

START_TEST(the_narrowest_round_says_by_how_much_clocks_differ)
{
    for (uint64_t seed = 0; seed < CASES; seed++) {
        const int64_t behind_ns = (int64_t)(lh_rng_bits(seed, 9, 9) % 2000000000) - 1000000000;
        LhClockRound first[LH_CLOCK_ROUNDS], other[LH_CLOCK_ROUNDS];
        int64_t width_ns, ahead_ns;

        make_rounds(seed, behind_ns, first, other);
        ahead_ns = lh_clocks_ahead(first, other, LH_CLOCK_ROUNDS, &width_ns);
        ck_assert_int_le(ABS(ahead_ns - behind_ns), width_ns / 2 + 1);
        for (size_t i = 0; i < LH_CLOCK_ROUNDS; i++)
            ck_assert_int_le(width_ns, other[i].received_ns - other[i].sent_ns);
    }
}
END_TEST

/* Five processes with clocks seconds apart: on the first one's clock all begin together, after the
 * last one has received the start time. */
START_TEST(all_begin_together)
{
    for (uint64_t seed = 0; seed < CASES; seed++) {
        LhClockRound rounds[PROCESSES][LH_CLOCK_ROUNDS];
        int64_t behind_ns[PROCESSES] = { 0 }, width_ns, last_ns = 0, start_ns;

        for (size_t p = 1; p < PROCESSES; p++) {
            behind_ns[p] = (int64_t)(lh_rng_bits(seed, p, 7) % 8000000000) - 4000000000;
            make_rounds(seed, behind_ns[p], rounds[0], rounds[p]);
        }
        for (size_t i = 0; i < LH_CLOCK_ROUNDS; i++)
            rounds[0][i].sent_ns = rounds[0][i].received_ns - 1000;
        start_ns = lh_clocks_start(rounds[0], PROCESSES, 0);
        for (size_t p = 1; p < PROCESSES; p++) {
            const LhClockRound *end = &rounds[p][LH_CLOCK_ROUNDS - 1];

            lh_clocks_ahead(rounds[0], rounds[p], LH_CLOCK_ROUNDS, &width_ns);
            ck_assert_int_le(
                ABS(lh_clocks_start(rounds[0], PROCESSES, p) + behind_ns[p] - start_ns),
                width_ns / 2 + 1);
            last_ns = MAX(last_ns, end->received_ns + behind_ns[p]);
        }
        ck_assert_int_gt(start_ns, last_ns);
    }
}
END_TEST

START_TEST(equal_ways_are_no_error)
{
    const LhClockRound first[] = { { 0, 5000 }, { 0, 9000 } };
    const LhClockRound other[] = { { 1000, 3000 }, { 4000, 8000 } };
    int64_t width_ns;

    ck_assert_int_eq(lh_clocks_ahead(first, other, 2, &width_ns), 3000);
    ck_assert_int_eq(width_ns, 2000);
    ck_assert_int_eq(lh_clocks_ahead(first, other + 1, 1, &width_ns), -1000);
}
END_TEST

START_TEST(one_process_begins_at_once)
{
    LhOpenControl control = { .table = &lh_control_single };
    const int64_t before_ns = lh_clocks_now();
    int64_t start_ns = 0;

    control.state = control.table->open(1, 1000000, &control.place, NULL);
    ck_assert_ptr_nonnull(control.state);
    ck_assert(lh_clocks_meet(&control, &start_ns, NULL));
    ck_assert_int_ge(start_ns, before_ns);
    ck_assert_int_le(start_ns, lh_clocks_now());
    lh_clocks_sleep_until(start_ns + 2000000);
    ck_assert_int_ge(lh_clocks_now(), start_ns + 2000000);
    control.table->close(control.state);
}
END_TEST

LH_TEST_MAIN("clocks", all_begin_together, the_narrowest_round_says_by_how_much_clocks_differ,
             equal_ways_are_no_error, one_process_begins_at_once)
