/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between device and host in the simulator: their time, what they run beside, what they
 * expose; and the host memory of offloaded steps.
 */
#include "recording.h"
#include "run_tests.h"
#include "sim_world.h"
#include "step/memory/offload_forms.h"
#include "steps.h"
#include "verifying.h"

static const LhKernelArgs copied = { .copy = { 1000000, 500000 } };

/* The arguments begin with the time. */
#define KERNEL(...)                                                                                \
    {                                                                                              \
        .kind = LH_OP_COMPUTE, .time_ps = __VA_ARGS__                                              \
    }
#define COPY(on, word, ...)                                                                        \
    {                                                                                              \
        .kind = LH_OP_COMPUTE, .stream = (on), .kernel = LH_KERNEL_ID_##word, .args = &copied,     \
        .time_ps = __VA_ARGS__                                                                     \
    }
#define TO_HOST(...) COPY(COMM, to_host, __VA_ARGS__)
#define FROM_HOST(...) COPY(COMM2, from_host, __VA_ARGS__)

/* ---- time ---- */

START_TEST(copies_run_beside_kernels)
{
    Script script = SCRIPT(KERNEL(10 * US), TO_HOST(8 * US), FROM_HOST(6 * US), KERNEL(5 * US));
    g_autoptr(LhSimResult) result = NULL;
    World w;

    script_init(&w, &script, 1);
    result = world_run(&w);
    ck_assert_int_eq(result->makespan_ps, 15 * US);
    ck_assert_int_eq(result->ranks[0].busy_ps, 15 * US);
    ck_assert_int_eq(result->ranks[0].comm_ps, 8 * US);
    world_clear(&w);
}
END_TEST

/* Kernels of two streams share the SMs; a copy needs none. */
START_TEST(copies_take_no_sms)
{
    Script script = SCRIPT(KERNEL(10 * US), KERNEL(10 * US, .stream = COMPUTE2), TO_HOST(8 * US));
    g_autoptr(LhSimResult) result = NULL;
    World w;

    script_init(&w, &script, 1);
    result = world_run(&w);
    ck_assert_int_eq(result->makespan_ps, 20 * US);
    ck_assert_int_eq(result->ranks[0].comm_ps, 8 * US);
    world_clear(&w);
}
END_TEST

START_TEST(a_kernel_waits_for_its_copy)
{
    Script script = SCRIPT(KERNEL(10 * US), FROM_HOST(25 * US), KERNEL(5 * US, .after = { 2 }));
    g_autoptr(LhSimResult) result = NULL;
    World w;

    script_init(&w, &script, 1);
    result = world_run(&w);
    ck_assert_int_eq(result->makespan_ps, 30 * US);
    ck_assert_int_eq(result->ranks[0].busy_ps, 15 * US);
    ck_assert_int_eq(result->ranks[0].idle_ps[LH_IDLE_COMM + LH_TIER_PCIE], 15 * US);
    world_clear(&w);
}
END_TEST

/* With half duplex both copies have half the rate until the shorter one ends. */
START_TEST(directions_share_a_half_duplex_link)
{
    static const LhTime ends[] = { 8 * US, 14 * US };

    for (int duplex = LH_DUPLEX_FULL; duplex <= LH_DUPLEX_HALF; duplex++) {
        Script script = SCRIPT(TO_HOST(8 * US), FROM_HOST(6 * US));
        g_autoptr(LhSimResult) result = NULL;
        World w;

        script_init(&w, &script, 1);
        w.topology.host_link.duplex = duplex;
        result = world_run(&w);
        ck_assert_int_eq(result->makespan_ps, ends[duplex]);
        world_clear(&w);
    }
}
END_TEST

/* Slow and unsteady kernels make no slow copies. */
START_TEST(copies_do_not_vary)
{
    static const LhStraggler slow = { .rank = 0, .slowdown = 3 };
    Script script = SCRIPT(TO_HOST(8 * US));
    g_autoptr(GArray) stragglers = g_array_new(FALSE, FALSE, sizeof(LhStraggler));
    g_autoptr(LhSimResult) result = NULL;
    World w;

    g_array_append_val(stragglers, slow);
    script_init(&w, &script, 1);
    w.params.stragglers = stragglers;
    w.params.jitter = 0.5;
    result = world_run(&w);
    ck_assert_int_eq(result->makespan_ps, 8 * US);
    world_clear(&w);
}
END_TEST

/* 1.5 MB, shared by two GPUs, at 30 GB/s: 100 us, and the latency. Free without a device. */
START_TEST(copies_take_their_share_of_the_link)
{
    static const LhTime times[] = { 107 * US, 0, 0 };

    for (int mode = LH_COST_DEVICE; mode <= LH_COST_UNIT; mode++) {
        Script script = SCRIPT(TO_HOST(0));
        g_autoptr(LhSimResult) result = NULL;
        World w;

        script_init(&w, &script, 1);
        w.params.compute_time = NULL;
        w.params.cost = (LhCostMode)mode;
        w.topology.host_link = (LhHostLink){ .bandwidth = 30e9,
                                             .latency_ps = 7 * US,
                                             .shared_by = 2,
                                             .from.provenance = LH_PROVENANCE_FITTED };
        result = world_run(&w);
        ck_assert_int_eq(result->makespan_ps, times[mode]);
        if (mode == LH_COST_DEVICE)
            ck_assert_int_eq((int)result->provenance, LH_PROVENANCE_FITTED);
        world_clear(&w);
    }
}
END_TEST

/* A step whose kernels take 1 us each, and the copies of a layer in one direction `copies_us`. */
typedef struct {
    World world;
    double copies_us;
} Timed;

static LhTime
time_of(void *data, uint32_t rank, const LhOp *op)
{
    const Timed *timed = data;
    uint64_t bytes;

    (void)rank;
    if (lh_kernels[op->compute.kernel]->args != LH_ARGS_COPY)
        return US;
    bytes = op->compute.args.copy.bytes + op->compute.args.copy.beside;
    return (LhTime)(timed->copies_us * (double)US * (double)bytes /
                    (double)lh_step_layer_kept_bytes(timed->world.program, op->layer));
}

static LhTime
step_time(const TinyStep *tiny, double copies_us, LhTime *exposed_ps)
{
    Timed timed = { .copies_us = copies_us };
    World *w = &timed.world;
    g_autoptr(LhSimResult) result = NULL;

    world_init(w, "dgx-a100-80g", tiny_step(tiny, NULL));
    w->params.compute_time = time_of;
    w->params.compute_time_data = &timed;
    w->device.kernel_launch_ps = w->device.stream_sync_ps = 0;
    result = world_run(w);
    *exposed_ps = result->ranks[0].idle_ps[LH_IDLE_COMM + LH_TIER_PCIE];
    world_clear(w);
    return result->makespan_ps;
}

/* A layer has more than 12 kernels, forward and backward. Copies that are faster are hidden; the
 * last layer's are not if it is offloaded, too; slower ones hold up each layer. */
START_TEST(copies_are_hidden_by_a_layer)
{
    for (unsigned checkpoint = 0; checkpoint < LH_CHECKPOINTS; checkpoint++) {
        TinyStep tiny = { .schedule = "ring", .layers = 6, .checkpoint = (LhCheckpoint)checkpoint };
        LhTime exposed_ps, plain_ps, some_ps;

        plain_ps = step_time(&tiny, 12, &exposed_ps);
        ck_assert_int_eq(exposed_ps, 0);
        tiny.offload = 5;
        ck_assert_int_eq(step_time(&tiny, 12, &exposed_ps), plain_ps);
        ck_assert_int_eq(exposed_ps, 0);
        some_ps = step_time(&tiny, 100, &exposed_ps);
        ck_assert_int_ge(exposed_ps, 6 * (100 - 50) * US);
        ck_assert_int_eq(some_ps, plain_ps + exposed_ps);
        tiny.offload = LH_STEP_OFFLOAD_ALL;
        some_ps = step_time(&tiny, 12, &exposed_ps);
        ck_assert_int_eq(some_ps, plain_ps + exposed_ps);
        ck_assert_int_ge(exposed_ps, 22 * US); /* a kernel or two need none of it */
        ck_assert_int_le(exposed_ps, 24 * US);
    }
}
END_TEST

/* ---- memory ---- */

/* With one micro-batch all that is offloaded is on the host at once; ranks of a node add up. */
START_TEST(host_memory_is_that_of_the_closed_form)
{
    static const TinyStep tiny[] = {
        { .schedule = "zigzag", .context = 2, .layers = 3, .offload = 2 },
        { .schedule = "ring",
          .tensor = 2,
          .context = 2,
          .layers = 3,
          .offload = LH_STEP_OFFLOAD_ALL,
          .checkpoint = LH_CHECKPOINT_LAYER,
          .behaviour.unfused_bytes = 5 },
        { .schedule = "ring",
          .tensor = 2,
          .layers = 3,
          .offload = LH_STEP_OFFLOAD_ALL,
          .behaviour.unfused_bytes = 5 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(tiny); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(LhSimResult) result = NULL;
        g_autoptr(LhVerdict) verdict = NULL;
        uint64_t sum = 0;
        World w;

        world_init(&w, "dgx-a100-80g", tiny_step(&tiny[i], &error));
        ck_assert_msg(error == NULL, "%s", error != NULL ? error->message : "");
        w.topology.host_memory = 1;
        result = world_run(&w);
        for (uint32_t rank = 0; rank < result->ranks_count; rank++) {
            const uint64_t bytes = lh_step_offloaded_bytes(w.program, rank);

            ck_assert_uint_gt(bytes, 0);
            ck_assert_uint_eq(result->ranks[rank].host_peak_bytes, bytes);
            sum += bytes;
        }
        ck_assert_uint_eq(result->host_memory.needed_bytes, sum);
        ck_assert(!lh_host_memory_fits(&result->host_memory));
        verdict = lh_verify(w.program);
        ck_assert_msg(verdict->findings_total == 0, "%s", first_message(verdict));
        world_clear(&w);
    }
}
END_TEST

/* Bytes that a layer keeps, by hand: its input of 16 x 64 elements; with all of it N1, Q, K and V,
 * O and its statistics, X1, N2, both halves of the gated MLP and their product. */
START_TEST(kept_bytes_by_hand)
{
    static const uint64_t rows = 16, width = 64, heads = 8, inner = 3 * 64;
    const uint64_t input = 2 * rows * width;
    const uint64_t want[LH_CHECKPOINTS] = {
        [LH_CHECKPOINT_NONE] = 8 * input + 4 * rows * heads + 2 * 3 * rows * inner,
        [LH_CHECKPOINT_SELECTIVE] = 7 * input + 2 * 3 * rows * inner,
        [LH_CHECKPOINT_LAYER] = input,
        [LH_CHECKPOINT_REMAT] = 2 * input + 4 * rows * heads,
    };

    for (unsigned checkpoint = 0; checkpoint < LH_CHECKPOINTS; checkpoint++) {
        const TinyStep tiny = { .schedule = "ring",
                                .dtype = LH_DTYPE_BF16,
                                .offload = 1,
                                .checkpoint = (LhCheckpoint)checkpoint };
        g_autoptr(LhProgram) program = tiny_step(&tiny, NULL);

        ck_assert_uint_eq(lh_step_layer_kept_bytes(program, 0), want[checkpoint]);
    }
}
END_TEST

/* ---- mistakes ---- */

/* The first copy of @kernel on rank 0. */
static uint32_t
first_copy(Recording *r, LhKernelId kernel)
{
    for (uint32_t i = 0; i < recording_count(r, 0); i++) {
        const LhOp *op = recording_op(r, 0, i);

        if (op->kind == LH_OP_COMPUTE && op->compute.kernel == kernel)
            return i;
    }
    g_assert_not_reached();
}

/* A kernel reads what is on the host; both ends of a copy are on the device; a copy brings back the
 * tensor of another layer. */
START_TEST(mistakes_are_found)
{
    static const char *const messages[] = { "is in host memory", "is in device memory",
                                            "but copies a tensor of layer" };
    const TinyStep tiny = {
        .schedule = "ring", .layers = 4, .offload = 3, .checkpoint = LH_CHECKPOINT_LAYER
    };
    g_autoptr(LhProgram) program = tiny_step(&tiny, NULL);
    Recording *whole = recording_new(program), *r = recording_new(program);

    for (unsigned i = 0; i < G_N_ELEMENTS(messages); i++) {
        g_autoptr(LhVerdict) verdict = NULL;
        const uint32_t back = first_copy(whole, LH_KERNEL_ID_from_host);
        const uint32_t away = first_copy(whole, LH_KERNEL_ID_to_host);
        LhOp *copy;

        recording_restore(r, whole);
        copy = recording_op(r, 0, back);
        if (i == 0) {
            LhOp *kernel = copy;

            while (kernel->kind != LH_OP_COMPUTE || kernel->compute.kernel != LH_KERNEL_ID_rms_norm)
                kernel++;
            kernel->compute.regions[0] = copy->compute.regions[0];
        } else if (i == 1) {
            copy->compute.regions[0] = recording_op(r, 0, away)->compute.regions[0];
        } else {
            copy->compute.regions[0].part = 0; /* the first of the host's places */
        }
        verdict = lh_verify(&r->program);
        ck_assert_msg(verdict->findings_total > 0, "%s", messages[i]);
        ck_assert_msg(strstr(first_message(verdict), messages[i]) != NULL, "%s",
                      first_message(verdict));
    }
    recording_free(whole);
    recording_free(r);
}
END_TEST

LH_TEST_MAIN("host_copies", mistakes_are_found, copies_run_beside_kernels, copies_take_no_sms,
             copies_are_hidden_by_a_layer, a_kernel_waits_for_its_copy,
             directions_share_a_half_duplex_link, copies_do_not_vary,
             copies_take_their_share_of_the_link, host_memory_is_that_of_the_closed_form,
             kept_bytes_by_hand)
