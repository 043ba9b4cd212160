/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Predictions against published measurements: the decomposition given in the text of
 * DistFlashAttention (arXiv 2310.03294), and the benchmark table of zhuzilin/ring-flash-attention's
 * README. The rows are held-out: no constant of a device or cluster was fitted to them, except that
 * the split of A100's forward and backward curves is the single-GPU row of the second source.
 * docs/results/accuracy.md shows the numbers side by side.
 */
#include "run_tests.h"

#include "base/files/data_files.h"
#include "options.h"
#include "sim/sim.h"

#include <math.h>

typedef struct {
    const char *topology;
    uint32_t ranks;
    const char *schedule;
    uint64_t seq_length;
    uint32_t groups;
    LhPass pass;
    bool overlap, published_code;
    uint32_t head_dim;
} Run;

/* 32 heads: of width 128 as in LLaMA-7B, or 80 as in GPT-3 2.7B. */
static LhSimResult *
play(const Run *run)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhTopology) topology = lh_topology_load(run->topology, &error);
    g_autoptr(LhDevice) device = lh_device_load(topology->device_name, &error);
    const LhSchedule *schedule = lh_schedule_find(run->schedule, &error);
    LhProgramParams params = {
        .attention = { .batch = 1,
                       .seq_length = run->seq_length,
                       .heads = 32,
                       .groups = run->groups,
                       .head_dim = run->head_dim,
                       .dtype = LH_DTYPE_BF16 },
        .ranks = run->ranks,
        .mask.causal = true,
        .pass = run->pass,
    };
    g_autoptr(LhProgram) program = NULL;
    LhNetwork network;
    LhSimParams sim = { .network = &network, .device = device };
    const uint32_t gpus = (uint32_t)topology->gpus_per_node;
    LhSimResult *result;
    bool fits = lh_network_init(&network, topology, (run->ranks + gpus - 1) / gpus, run->ranks,
                                NULL, &error);

    ck_assert(fits);
    set_option(&params, "no_overlap", !run->overlap);
    set_option(&params, "published_code", run->published_code);
    sim.program = program = lh_program_new(schedule, &params, &error);
    result = lh_simulate(&sim, &error);
    ck_assert_ptr_nonnull(result);
    return result;
}

static double
milliseconds(LhTime time_ps)
{
    return (double)time_ps / 1e9;
}

static double
busiest_ms(const LhSimResult *result)
{
    LhTime most = 0;

    for (uint32_t r = 0; r < result->ranks_count; r++)
        most = MAX(most, result->ranks[r].busy_ps);
    return milliseconds(most);
}

#define ck_assert_within(predicted, published, tolerance)                                          \
    ck_assert_msg(fabs((predicted) / (published)-1) <= (tolerance),                                \
                  #predicted " is %.2f, published %.2f: off by %.1f %%", (predicted), (published), \
                  100 * ((predicted) / (published)-1))

/* 4K tokens per GPU on 2 x 8 A100: communication 143 ms, computation 53 ms, 151 ms with overlap. */
START_TEST(dfa_decomposition_is_met)
{
    Run run = { "dfa-2node", 16, "dfa-balanced", 65536, 32, LH_PASS_BOTH, true, false, 128 };
    g_autoptr(LhSimResult) overlapped = play(&run);
    g_autoptr(LhSimResult) apart = NULL;
    double compute_ms, communication_ms;

    run.overlap = false;
    apart = play(&run);
    compute_ms = busiest_ms(apart);
    communication_ms = milliseconds(apart->makespan_ps) - compute_ms;
    ck_assert_within(communication_ms, 143.0, 0.12);
    ck_assert_within(compute_ms, 53.0, 0.12);
    ck_assert_within(milliseconds(overlapped->makespan_ps), 151.0, 0.12);
}
END_TEST

/* The public code sends unneeded k, v and synchronises with its device in every step: the same
 * bounds hold. */
START_TEST(dfa_published_code_is_met)
{
    const Run run = { "dfa-2node", 16, "dfa-balanced", 65536, 32, LH_PASS_BOTH, true, true, 128 };
    g_autoptr(LhSimResult) overlapped = play(&run);

    ck_assert_within(milliseconds(overlapped->makespan_ps), 151.0, 0.12);
}
END_TEST

/* Overlap must hide most of the smaller side. The paper's ablation: exposed communication is 105
 * % without overlap and 44 % with it. */
START_TEST(dfa_overlap_hides_more_than_half)
{
    Run run = { "dfa-2node", 16, "dfa-balanced", 131072, 32, LH_PASS_BOTH, true, false, 128 };
    g_autoptr(LhSimResult) overlapped = play(&run);
    g_autoptr(LhSimResult) apart = NULL;
    double compute_ms, with, without;

    run.overlap = false;
    apart = play(&run);
    compute_ms = busiest_ms(apart);
    with = milliseconds(overlapped->makespan_ps) / compute_ms - 1;
    without = milliseconds(apart->makespan_ps) / compute_ms - 1;
    ck_assert_double_lt(with, without / 2);
}
END_TEST

/* 8 x A100, 8K tokens per GPU, 32 query and 8 key-value heads: iterations per second. */
START_TEST(ring_flash_attention_table_is_met)
{
    static const struct {
        const char *schedule;
        double forward_per_s, both_per_s;
    } rows[] = { { "ring", 24.0, 6.2 }, { "zigzag", 38.2, 10.6 }, { "striped", 32.5, 9.75 } };

    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        Run run = { "dgx-a100-80g", 8, rows[i].schedule, 65536, 8, LH_PASS_FWD, true, false, 128 };
        g_autoptr(LhSimResult) forward = play(&run);
        g_autoptr(LhSimResult) both = NULL;

        run.pass = LH_PASS_BOTH;
        both = play(&run);
        ck_assert_within(1000 / milliseconds(forward->makespan_ps), rows[i].forward_per_s, 0.15);
        ck_assert_within(1000 / milliseconds(both->makespan_ps), rows[i].both_per_s, 0.15);
    }
}
END_TEST

/* Attention2D (arXiv 2503.15758), A100s on Ethernet, GPT-3 2.7B: whole steps are at least 2.4
 * (16 GPUs) and 4 times (64) as fast as with a zigzag ring. The single attention module judged
 * here is predicted more than 1.6 and 2.8 times as fast at every length;
 * docs/results/accuracy.md explains the gap. */
START_TEST(attention2d_beats_the_ring_on_ethernet)
{
    for (uint64_t length = 8192; length <= 131072; length *= 2) {
        double ring_ms[2], grid_ms[2], ring_communication[2], grid_communication[2];

        for (unsigned i = 0; i < 2; i++) {
            Run run = { "azure-nc96-a100",
                        i == 0 ? 16 : 64,
                        "zigzag",
                        length,
                        32,
                        LH_PASS_BOTH,
                        true,
                        false,
                        80 };
            g_autoptr(LhSimResult) ring = play(&run);
            g_autoptr(LhSimResult) grid = NULL;

            run.schedule = "attention2d-no";
            grid = play(&run);
            ring_ms[i] = milliseconds(ring->makespan_ps);
            grid_ms[i] = milliseconds(grid->makespan_ps);
            ring_communication[i] = ring_ms[i] - busiest_ms(ring);
            grid_communication[i] = grid_ms[i] - busiest_ms(grid);
        }
        ck_assert_double_gt(ring_ms[0] / grid_ms[0], 1.6);
        ck_assert_double_gt(ring_ms[1] / grid_ms[1], 2.8);
        /* From 16 to 64 GPUs 1/sqrt(P) halves. Bytes per rank fall from 14/16 to 30/64 chunks,
         * but more of them cross nodes. A ring's do not fall. */
        ck_assert_double_lt(grid_communication[1], 0.7 * grid_communication[0]);
        ck_assert_double_gt(ring_communication[1], ring_communication[0]);
    }
}
END_TEST

LH_TEST_MAIN("papers", dfa_decomposition_is_met, dfa_published_code_is_met,
             dfa_overlap_hides_more_than_half, ring_flash_attention_table_is_met,
             attention2d_beats_the_ring_on_ethernet)
