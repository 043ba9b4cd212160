/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Optimizer states and weights in host memory: what is there, how long a step takes for it, and
 * what is refused. test_step_run.c executes such steps, test_verify_step_damage.c damages them.
 */
#include "run_tests.h"
#include "scenario/setup.h"
#include "sim_world.h"
#include "step/formulas.h"
#include "step/memory/host_state_forms.h"
#include "step/memory/peak_memory.h"
#include "steps.h"

/* ---- what is on the host ---- */

/* Bytes by hand: of a tiny model of two layers, 64 wide, with an MLP of 192 and 64 tokens. */
START_TEST(states_by_hand)
{
    enum { WIDTH = 64, INNER = 3 * WIDTH };
    static const uint64_t layer = 2 * WIDTH + 4 * WIDTH * WIDTH + 3 * WIDTH * INNER;
    static const uint64_t all =
        2 * (2 * WIDTH + 4 * WIDTH * WIDTH + 3 * WIDTH * INNER) + 2 * WIDTH * WIDTH + WIDTH;
    /* Half of the parameters end in the second layer, whose down projection goes with them. */
    static const double shares[] = { 1, 0.5, 1e-9, 0 };
    const uint64_t counts[] = { all, 0, WIDTH, 0 };

    for (unsigned i = 0; i < G_N_ELEMENTS(shares); i++) {
        const TinyStep tiny = { .schedule = "ring",
                                .dtype = LH_DTYPE_BF16,
                                .optimizer_offload = shares[i] };
        g_autoptr(LhProgram) program = tiny_step(&tiny, NULL);
        const LhStepHostStates states = lh_step_host_states(program, 0);
        const LhStepStateBytes bytes = lh_step_state_bytes(program, 0);

        if (i == 1) {
            ck_assert_uint_ge(states.optimizer, 12 * all / 2);
            ck_assert_uint_le(states.optimizer, 12 * (all / 2 + layer / 2));
        } else {
            ck_assert_uint_eq(states.optimizer, 12 * counts[i]);
        }
        ck_assert_uint_eq(states.optimizer + states.device_optimizer, 12 * all);
        ck_assert_uint_eq(bytes.optimizer, states.device_optimizer);
        ck_assert_uint_eq(bytes.host, states.optimizer);
    }
}
END_TEST

/* Weights that the host has are nowhere else from one step to the next. */
START_TEST(weights_are_on_the_host)
{
    const TinyStep tiny = { .schedule = "zigzag",
                            .context = 2,
                            .dtype = LH_DTYPE_BF16,
                            .shard = LH_SHARD_FSDP,
                            .optimizer_offload = 1,
                            .offload_param = true };
    TinyStep without = tiny;
    g_autoptr(LhProgram) program = tiny_step(&tiny, NULL), plain = NULL;

    without.optimizer_offload = 0;
    without.offload_param = false;
    plain = tiny_step(&without, NULL);
    ck_assert_uint_eq(lh_step_state_bytes(program, 0).weights, 0);
    ck_assert_uint_eq(lh_step_state_bytes(program, 0).optimizer, 0);
    ck_assert_uint_eq(lh_step_state_bytes(program, 0).host,
                      lh_step_state_bytes(plain, 0).weights +
                          lh_step_state_bytes(plain, 0).optimizer);
}
END_TEST

/* ---- time ---- */

#define COPY_PS 1000 /* of a byte */
#define CPU_PS 3000  /* of a parameter */

/* Only copies and the CPU take time. */
static LhTime
time_of(void *data, uint32_t rank, const LhOp *op)
{
    (void)rank;
    if (lh_kernels[op->compute.kernel]->args == LH_ARGS_COPY)
        return (LhTime)op->compute.args.copy.bytes * COPY_PS;
    return lh_op_on_cpu(data, op) ? (LhTime)op->compute.args.optimizer.count * CPU_PS : 0;
}

/* The time of a step of one rank, and the times of its copies and updates, in order. */
static LhTime
step_time(const TinyStep *tiny, GArray *out, GArray *update, GArray *in)
{
    g_autoptr(LhSimResult) result = NULL;
    LhOpBuffer buffer = { 0 };
    LhCursor cursor;
    LhTime time_ps;
    World w;

    world_init(&w, "dgx-a100-80g", tiny_step(tiny, NULL));
    w.params.compute_time = time_of;
    w.params.compute_time_data = w.program;
    w.device.kernel_launch_ps = w.device.stream_sync_ps = 0;
    lh_cursor_init(&cursor, w.program, 0);
    while (lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; i < buffer.ops_count; i++) {
            const LhOp *op = &buffer.ops[i];
            const LhTime takes_ps = op->kind == LH_OP_COMPUTE ? time_of(w.program, 0, op) : 0;

            if (takes_ps > 0)
                g_array_append_val(lh_op_on_cpu(w.program, op)                  ? update
                                   : op->compute.kernel == LH_KERNEL_ID_to_host ? out
                                                                                : in,
                                   takes_ps);
        }
    }
    lh_op_buffer_clear(&buffer);
    result = world_run(&w);
    time_ps = result->makespan_ps;
    ck_assert_int_eq(result->ranks[0].idle_ps[LH_IDLE_COMM + LH_TIER_PCIE], time_ps);
    world_clear(&w);
    return time_ps;
}

static LhTime
sum_of(const GArray *times)
{
    LhTime sum = 0;

    for (guint i = 0; i < times->len; i++)
        sum += g_array_index(times, LhTime, i);
    return sum;
}

/* Without overlap all gradients, all updates and all weights follow each other. With it they are
 * three lines of work: a weight is updated behind its gradient and the updates before it. */
START_TEST(copies_overlap_with_updates)
{
    for (unsigned overlap = 0; overlap < 2; overlap++) {
        const TinyStep tiny = { .schedule = "ring",
                                .dtype = LH_DTYPE_BF16,
                                .optimizer_offload = 1,
                                .overlap_copies = overlap == 1 };
        g_autoptr(GArray) out = g_array_new(FALSE, FALSE, sizeof(LhTime));
        g_autoptr(GArray) update = g_array_new(FALSE, FALSE, sizeof(LhTime));
        g_autoptr(GArray) in = g_array_new(FALSE, FALSE, sizeof(LhTime));
        const LhTime time_ps = step_time(&tiny, out, update, in);
        LhTime out_ps = 0, updated_ps = 0, in_ps = 0;

        ck_assert_uint_eq(out->len, update->len);
        ck_assert_uint_eq(out->len, in->len);
        for (guint i = 0; i < out->len; i++) {
            out_ps += g_array_index(out, LhTime, i);
            updated_ps = MAX(out_ps, updated_ps) + g_array_index(update, LhTime, i);
            in_ps = MAX(updated_ps, in_ps) + g_array_index(in, LhTime, i);
        }
        ck_assert_int_eq(time_ps, overlap == 1 ? in_ps : sum_of(out) + sum_of(update) + sum_of(in));
    }
}
END_TEST

/* The CPU takes its memory traffic over the rank's share of the bandwidth: of as many ranks as a
 * node has. */
START_TEST(the_cpu_is_shared)
{
    LhTime times[3];
    uint64_t parameters = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(times); i++) {
        const TinyStep tiny = { .schedule = "ring",
                                .data = 4,
                                .shard = LH_SHARD_ZERO1,
                                .dtype = LH_DTYPE_BF16,
                                .optimizer_offload = 1,
                                .behaviour.cpu_optimizer_traffic = i < 2 ? 28 : 56 };
        g_autoptr(LhSimResult) result = NULL;
        World w;

        world_init(&w, "dgx-a100-80g", tiny_step(&tiny, NULL));
        w.topology.host_cpu = (LhHostCpu){ .bandwidth = i == 1 ? 50e6 : 100e6,
                                           .from.provenance = LH_PROVENANCE_ASSUMED };
        result = world_run(&w);
        times[i] = result->makespan_ps;
        ck_assert_int_eq((int)result->provenance, LH_PROVENANCE_ASSUMED);
        parameters = lh_step_host_states(w.program, 0).optimizer / 12;
        world_clear(&w);
    }
    /* 28 bytes a parameter more of the time, at a quarter of 100 MB/s; pieces are rounded up. */
    ck_assert_int_eq(times[1], times[2]);
    ck_assert_double_eq_tol((double)(times[1] - times[0]),
                            28.0 * (double)parameters / 25e6 * (double)LH_PS_PER_S,
                            0.01 * (double)(times[1] - times[0]));
}
END_TEST

/* ---- memory ---- */

/* What is predicted without simulating is what the simulator finds. */
START_TEST(host_peaks_agree)
{
    static const TinyStep tiny[] = {
        { .schedule = "ring", .optimizer_offload = 0.5, .offload = 1 },
        { .schedule = "zigzag",
          .context = 2,
          .micro_batches = 3,
          .shard = LH_SHARD_FSDP,
          .optimizer_offload = 1,
          .offload_param = true,
          .behaviour.reduce_each = true },
        { .schedule = "ring",
          .stages = 2,
          .data = 2,
          .micro_batches = 4,
          .shard = LH_SHARD_ZERO2,
          .optimizer_offload = 1,
          .overlap_copies = true },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(tiny); i++) {
        const uint32_t stages = MAX(tiny[i].stages, 1);
        g_autoptr(LhSimResult) result = NULL;
        LhStepPeak peaks[2];
        uint64_t sum = 0;
        World w;

        world_init(&w, "dgx-a100-80g", tiny_step(&tiny[i], NULL));
        w.topology.host_memory = 1;
        lh_step_stage_peaks(w.program, peaks);
        result = world_run(&w);
        for (uint32_t rank = 0; rank < result->ranks_count; rank++) {
            ck_assert_uint_eq(result->ranks[rank].host_peak_bytes,
                              peaks[rank * stages / result->ranks_count].host_bytes);
            ck_assert_uint_ge(result->ranks[rank].host_peak_bytes,
                              lh_step_state_bytes(w.program, rank).host);
            sum += result->ranks[rank].host_peak_bytes;
        }
        ck_assert_uint_eq(result->host_memory.needed_bytes, sum);
        ck_assert(!lh_host_memory_fits(&result->host_memory));
        world_clear(&w);
    }
}
END_TEST

/* ---- refusals ---- */

static const struct {
    TinyStep tiny;
    const char *message;
} steps[] = {
    { { .schedule = "ring", .optimizer_offload = 1.5 }, "allowed: 0 to 1" },
    { { .schedule = "ring", .data = 2, .optimizer_offload = 1, .offload_param = true },
      "only if they are sharded" },
    { { .schedule = "ring", .data = 2, .shard = LH_SHARD_FSDP, .offload_param = true },
      "all of the optimizer" },
    { { .schedule = "ring", .forward_only = true, .optimizer_offload = 1 }, "forward pass alone" },
};

START_TEST(impossible_steps_are_refused)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(steps); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(LhProgram) program = tiny_step(&steps[i].tiny, &error);

        ck_assert_ptr_null(program);
        ck_assert_msg(strstr(error->message, steps[i].message) != NULL, "%s", error->message);
    }
}
END_TEST

START_TEST(options_are_checked)
{
    static const char *const cases[][2] = {
        { "\"optimizer_offload_fraction\": 0.5", "give --optimizer-cpu-offload, too" },
        { "\"overlap_cpu_optimizer_d2h_h2d\": true", "give --optimizer-cpu-offload, too" },
        { "\"optimizer_cpu_offload\": true, \"optimizer_offload_fraction\": 2", "0 to 1" },
        { "\"offload_param\": true, \"optimizer_cpu_offload\": true, "
          "\"optimizer_offload_fraction\": 0.5",
          "takes all of the optimizer" },
        { "\"optimizer_cpu_offload\": true, \"pass\": \"fwd\"", "has no optimizer" },
        { "\"optimizer_cpu_offload\": true, \"cluster\": \"pcie-l20\"", "has no host_" },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf(
            "{\"schema\": \"longhaul.scenario/1\", \"step\": true, \"model\": \"gpt3-125m\", "
            "\"schedule\": [\"ring\"]%s, %s}",
            strstr(cases[i][0], "cluster") != NULL ? "" : ", \"cluster\": \"hgx-h100\"",
            cases[i][0]);
        g_autoptr(GError) error = NULL;
        g_autoptr(LhScenario) s = lh_scenario_parse("x.json", text, strlen(text), &error);
        g_autoptr(LhSetup) setup = s != NULL ? lh_setup_new(s, &error) : NULL;

        ck_assert_ptr_null(setup);
        ck_assert_msg(strstr(error->message, cases[i][1]) != NULL, "%s", error->message);
    }
}
END_TEST

LH_TEST_MAIN("host_states", states_by_hand, weights_are_on_the_host, copies_overlap_with_updates,
             the_cpu_is_shared, host_peaks_agree, impossible_steps_are_refused, options_are_checked)
