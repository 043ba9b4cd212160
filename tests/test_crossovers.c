/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where one schedule begins to send less than another: the crossovers of
 * docs/reference/schedules.md, by closed forms that the verifier checks against programs. Units:
 * one q-shaped chunk, Q.
 */
#include "fitting.h"
#include "run_tests.h"

#include <math.h>

static LhProgramParams
shape(uint32_t ranks, uint32_t heads, uint32_t groups, LhPass pass)
{
    return (LhProgramParams){
        .attention = { .batch = 1,
                       .seq_length = (uint64_t)ranks * ranks * 64,
                       .heads = heads,
                       .groups = groups,
                       .head_dim = 128,
                       .dtype = LH_DTYPE_BF16 },
        .ranks = ranks,
        .mask.causal = true,
        .pass = pass,
    };
}

/* Most that a rank sends, in chunks, including row statistics (2 bytes in e d per row). */
static double
most_sent(const char *name, const LhProgramParams *wanted)
{
    const LhSchedule *schedule = lh_schedule_find(name, NULL);
    const LhProgramParams p = lh_schedule_params(schedule, wanted);
    g_autoptr(GError) error = NULL;
    g_autoptr(LhProgram) program = lh_program_new(schedule, wanted, &error);
    uint64_t most = 0;

    ck_assert_msg(program != NULL, "%s", error != NULL ? error->message : "");
    ck_assert_uint_gt(p.ranks, 0);
    for (uint32_t rank = 0; rank < p.ranks; rank++)
        most = MAX(most, schedule->closed.bytes_sent(&p, rank));
    return (double)most /
           (double)lh_attention_q_bytes(&p.attention, p.attention.seq_length / p.ranks);
}

/* One statistic per row beside its d elements of 2 bytes. */
#define STATISTIC (4 / (128 * 2.0))

/* A square grid sends 4 (sqrt P - 1) + 2 chunks and a statistic with each partial output; a ring 2
 * (P - 1). They are equal at 4 ranks; the grid sends less at every larger square. */
START_TEST(attention2d_against_the_ring)
{
    for (uint32_t side = 2; side <= 8; side++) {
        const LhProgramParams p = shape(side * side, 16, 16, LH_PASS_FWD);
        const double grid = most_sent("attention2d-no", &p) - (side - 1) * STATISTIC;
        const double ring = most_sent("zigzag", &p);

        ck_assert_double_eq_tol(grid, 4 * (side - 1) + 2, 1e-9);
        ck_assert_double_eq_tol(ring, 2 * (side * side - 1), 1e-9);
        ck_assert(side == 2 ? fabs(grid - ring) < 1e-9 : grid < ring);
        ck_assert_double_eq_tol(most_sent("attention2d-o", &p), most_sent("attention2d-no", &p),
                                1e-9);
    }
}
END_TEST

/* All-to-alls send 4 (P - 1)/P chunks: less than any grid while there are enough heads, except on
 * two ranks, where both send 2. */
START_TEST(ulysses_below_attention2d_up_to_the_heads)
{
    for (uint32_t ranks = 3; ranks <= 64; ranks++) {
        const LhProgramParams p = shape(ranks, 64, 64, LH_PASS_FWD);
        double sent;

        if (64 % ranks != 0)
            continue;
        sent = most_sent("ulysses", &p);
        ck_assert_double_eq_tol(sent, 4.0 * (ranks - 1) / ranks, 1e-9);
        ck_assert_double_lt(sent, most_sent("attention2d-no", &p));
    }
}
END_TEST

/* Heads exchanged in groups of U = h leave a ring of P/h: 2 P/h + 2 - 4/h chunks against 4 sqrt P -
 * 2, so a grid wins from about P = 4 h^2. */
START_TEST(usp_below_attention2d_up_to_four_squares_of_heads)
{
    static const struct {
        uint32_t heads, ranks;
        bool usp_less;
    } cases[] = {
        { 2, 4, true },    { 2, 36, false }, { 4, 16, true },  { 4, 36, true },   { 4, 100, false },
        { 4, 144, false }, { 8, 64, true },  { 8, 144, true }, { 8, 400, false },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        const uint32_t heads = cases[i].heads, ranks = cases[i].ranks;
        LhProgramParams p = shape(ranks, heads, heads, LH_PASS_FWD);
        const uint32_t ring = ranks / heads;
        double usp;

        set_pair(&p, "hierarchical_context_parallel_sizes", heads, ring);
        usp = most_sent("usp", &p);
        ck_assert_double_eq_tol(usp, 4.0 * (heads - 1) / heads + 2.0 * (ring - 1), 1e-9);
        ck_assert_msg((usp < most_sent("attention2d-no", &p)) == cases[i].usp_less,
                      "%u heads, %u ranks: usp %g", heads, ranks, usp);
    }
}
END_TEST

/* Backward circulates q, do, dq and two statistics (3 chunks per hop) instead of k, v, dk, dv (4
 * g/h, in 16 bits): less for more than 3 groups per 4 heads. */
START_TEST(burst_below_the_ring_for_many_groups)
{
    static const uint32_t groups[] = { 1, 2, 3, 4, 6, 12 };

    for (unsigned i = 0; i < G_N_ELEMENTS(groups); i++) {
        LhProgramParams p = shape(16, 12, groups[i], LH_PASS_BWD);

        set_option(&p, "gradient_wire", LH_WIRE_16BIT);
        ck_assert((most_sent("burst", &p) < most_sent("zigzag", &p)) == (4 * groups[i] > 3 * 12));
    }
}
END_TEST

/* Helpers leave the total bytes unchanged if q and o are as large as k and v, and increase them for
 * grouped heads. */
START_TEST(dfa_balance_costs_bytes_for_grouped_heads)
{
    const LhSchedule *balanced = lh_schedule_find("dfa-balanced", NULL);
    const LhSchedule *unbalanced = lh_schedule_find("dfa-unbalanced", NULL);

    for (uint32_t groups = 4; groups <= 16; groups *= 2) {
        const LhProgramParams p = shape(16, 16, groups, LH_PASS_FWD);
        const uint64_t helpers = 16 * 14 / 8; /* P (P-2)/8 times: q there, o, m, l back */
        const uint64_t statistics =
            helpers * 2 * lh_attention_stat_bytes(&p.attention, p.attention.seq_length / 16);
        uint64_t with = 0, without = 0;

        for (uint32_t rank = 0; rank < 16; rank++) {
            with += balanced->closed.bytes_sent(&p, rank);
            without += unbalanced->closed.bytes_sent(&p, rank);
        }
        ck_assert_int_eq(with - statistics == without, groups == 16);
        ck_assert_uint_ge(with - statistics, without);
    }
}
END_TEST

/* The windows of a double ring change which links are used, not the number of sends per rank. */
START_TEST(double_ring_sends_what_the_ring_sends)
{
    for (uint32_t inner = 1; inner <= 16; inner *= 2) {
        LhProgramParams p = shape(16, 16, 4, LH_PASS_FWD);

        set_option(&p, "inner_ring", inner);
        ck_assert_double_eq_tol(most_sent("double-ring", &p), most_sent("zigzag", &p), 1e-9);
    }
}
END_TEST

LH_TEST_MAIN("crossovers", attention2d_against_the_ring, ulysses_below_attention2d_up_to_the_heads,
             usp_below_attention2d_up_to_four_squares_of_heads,
             burst_below_the_ring_for_many_groups, dfa_balance_costs_bytes_for_grouped_heads,
             double_ring_sends_what_the_ring_sends)
