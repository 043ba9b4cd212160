/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The submitting engine with GPUs, on a stand-in for the CUDA runtime: every schedule in many
 * orders, with few and many hardware queues. Built twice: with the CPU's kernels on the streams,
 * bit-identical to threads; and with the GPU's own kernels, interpreted (INTERPRETED).
 */
#include "built.h"
#include "running.h"
#include "runtime/executor.h"
#include "sim/sim.h"
#include "standin.h"
#include "virtual_time.h"

#ifdef INTERPRETED
#define HEAD_DIM 64
#define HEADS 2
#define RANKS 2, 4
#else
#define HEAD_DIM 32
#define HEADS 8
#define RANKS 2, 3, 4, 5, 8
#endif

/* tests/mutants/engine.py runs many programs. */
#ifdef FEW_RUNS
static const uint32_t ranks_of_runs[] = { 4 };
#else
static const uint32_t ranks_of_runs[] = { RANKS };
#endif

static const StandinOptions orders[] = {
    { .seed = 1, .devices = 1 },
    { .seed = 2, .devices = 1, .queues = 1 },
    { .seed = 3, .devices = 1, .queues = 4, .eager = 40 },
#if !defined(INTERPRETED) && !defined(FEW_RUNS)
    { .seed = 4, .devices = 1, .eager = 40 },
    { .seed = 5, .devices = 1, .queues = 1, .eager = 40 },
    { .seed = 6, .devices = 1, .queues = 4 },
    { .seed = 7, .devices = 1, .eager = 100 },
#endif
};

static LhExecuted *
run_on(const LhBackend *backend, LhProgram *program, const char *inject, GError **error)
{
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(LhSetup) setup = NULL;
    const LhExecuteParams params = { .backend = backend,
                                     .inject = inject,
                                     .deadline_ps = inject != NULL ? 2 * LH_PS_PER_S : 0 };

    scenario->ranks = lh_program_ranks(program);
    setup = lh_setup_new(scenario, error);
    return setup == NULL ? NULL : lh_execute_program(setup, program, &params, error);
}

static Case
case_of(const LhSchedule *schedule, uint32_t ranks, LhPass pass)
{
    Case c = small_case(schedule, ranks);

    c.wanted.attention.heads = HEADS;
    c.wanted.attention.groups = HEADS;
    c.wanted.attention.head_dim = HEAD_DIM;
    c.wanted.pass = pass;
    return c;
}

static const char *
text(const GError *error)
{
    return error != NULL ? error->message : "";
}

/* ---- results and order ---- */

/* Runs the program in every order: within the gates, bit-identical, and without findings. */
static void
run_in_all_orders(const char *name, uint32_t ranks, LhProgram *program, const char *digest)
{
    g_autofree char *first = g_strdup(digest);

    for (size_t i = 0; i < G_N_ELEMENTS(orders); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(LhExecuted) executed = NULL;

        standin_start(&orders[i]);
        executed = run_on(&lh_backend_cuda, program, NULL, &error);
        standin_end();
        ck_assert_msg(executed != NULL, "%s, P %u, order %zu: %s\n%s", name, ranks, i, text(error),
                      standin_findings());
        ck_assert_msg(standin_findings()[0] == '\0', "%s, P %u, order %zu: %s", name, ranks, i,
                      standin_findings());
        ck_assert_msg(lh_executed_ok(executed), "%s, P %u, order %zu: wrong results", name, ranks,
                      i);
        ck_assert_uint_gt(standin_counts().kernels, 0);
        if (first == NULL)
            first = g_strdup(executed->digest);
        ck_assert_msg(strcmp(executed->digest, first) == 0, "%s, P %u, order %zu: other bits", name,
                      ranks, i);
    }
}

START_TEST(schedules_run_in_every_order)
{
    const LhSchedule *schedule = lh_schedules[_i];

    for (size_t i = 0; i < G_N_ELEMENTS(ranks_of_runs); i++) {
        const Case c = case_of(schedule, ranks_of_runs[i], LH_PASS_BOTH);
        g_autoptr(LhProgram) program = program_of(&c);
        g_autoptr(LhExecuted) threads = NULL;

        if (program == NULL)
            continue;
#ifndef INTERPRETED
        threads = run_on(&lh_backend_cpu, program, NULL, NULL);
        ck_assert_ptr_nonnull(threads);
#endif
        run_in_all_orders(schedule->name, ranks_of_runs[i], program,
                          threads != NULL ? threads->digest : NULL);
    }
}
END_TEST

/* ---- time ---- */

/* The timing of a program, simulated or run. */
typedef struct {
    LhTime makespan_ps;
    LhTime busy_ps;  /* of all ranks */
    GArray *records; /* of LhTimelineRecord, by rank and op */
} Played;

static Played
played_new(void)
{
    return (Played){ .records = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord)) };
}

static void
collect(void *data, const LhTimelineRecord *record)
{
    g_array_append_vals(data, record, 1);
}

static int
by_rank_and_op(const void *a, const void *b)
{
    const LhTimelineRecord *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

static Played
run_in_time(const LhProgram *program, const Costs *costs)
{
    Played played = played_new();
    const LhRunHooks hooks = { .call = call_with_time, .data = (void *)costs };
    const LhRunParams params = { .program = program,
                                 .backend = &lh_backend_cuda,
                                 .deadline_us = 60 * G_USEC_PER_SEC,
                                 .hooks = &hooks,
                                 .load = load_zeros,
                                 .timeline = collect,
                                 .timeline_data = played.records };
    g_autoptr(GError) error = NULL;
    g_autoptr(LhRunResult) result = NULL;

    standin_start(&(StandinOptions){ .seed = 1, .devices = 1, .eager = 20 });
    result = lh_execute(&params, &error);
    standin_end();
    ck_assert_msg(result != NULL, "%s: %s", program->name, text(error));
    ck_assert_str_eq(standin_findings(), "");
    for (uint32_t r = 0; r < result->ranks_count; r++)
        played.busy_ps += result->ranks[r].busy_ps;
    played.makespan_ps = result->makespan_ps;
    g_array_sort(played.records, by_rank_and_op);
    return played;
}

static Played
simulate(const LhProgram *program, const Costs *costs)
{
    Played played = played_new();
    g_autoptr(GError) error = NULL;
    g_autoptr(LhTopology) topology = lh_topology_load("hgx-h100", &error);
    g_autoptr(LhDevice) device = lh_device_load(topology->device_name, &error);
    g_autoptr(LhSimResult) result = NULL;
    LhSimParams params = { .program = program,
                           .device = device,
                           .network_model = LH_NETWORK_ALPHA_BETA,
                           .cost = LH_COST_UNIT,
                           .compute_time = unit_time,
                           .compute_time_data = (void *)costs,
                           .timeline = collect,
                           .timeline_data = played.records };
    LhNetwork network;

    ck_assert(lh_network_init(&network, topology, 1, lh_program_ranks(program), NULL, &error));
    params.network = &network;
    result = lh_simulate(&params, &error);
    ck_assert_msg(result != NULL, "%s", text(error));
    for (uint32_t r = 0; r < result->ranks_count; r++)
        played.busy_ps += result->ranks[r].busy_ps;
    played.makespan_ps = result->makespan_ps;
    g_array_sort(played.records, by_rank_and_op);
    return played;
}

/* Whether the op begins and ends at the simulated time. */
static bool
is_at_the_time(const LhTimelineRecord *ran, const LhTimelineRecord *simulated, bool exactly)
{
    if (ran->rank != simulated->rank || ran->op != simulated->op)
        return false;
    if (exactly)
        return ran->start_ps == simulated->start_ps && ran->end_ps == simulated->end_ps;
    return ran->start_ps >= simulated->start_ps && ran->end_ps >= simulated->end_ps;
}

/*
 * The makespan equals the simulated one, and no op begins or ends earlier. Ops may be later unless
 * @exactly: copies to one rank are serialised, so that a sender may wait for another one.
 */
static void
compare_times(const LhProgram *program, const Costs *costs, bool exactly)
{
    const Played run = run_in_time(program, costs), sim = simulate(program, costs);

    ck_assert_msg(run.makespan_ps == sim.makespan_ps, "%s, P %u: %g s, simulated %g s",
                  program->name, lh_program_ranks(program), (double)run.makespan_ps / LH_PS_PER_S,
                  (double)sim.makespan_ps / LH_PS_PER_S);
    ck_assert_int_gt(run.makespan_ps, 0);
    ck_assert_int_eq(run.busy_ps, sim.busy_ps);
    ck_assert_uint_eq(run.records->len, sim.records->len);
    for (guint i = 0; i < run.records->len; i++) {
        const LhTimelineRecord *ran = &g_array_index(run.records, LhTimelineRecord, i);
        const LhTimelineRecord *simulated = &g_array_index(sim.records, LhTimelineRecord, i);

        ck_assert_msg(is_at_the_time(ran, simulated, exactly),
                      "%s, rank %u, op %u: %g to %g s, simulated %g to %g s", program->name,
                      ran->rank, ran->op, (double)ran->start_ps / LH_PS_PER_S,
                      (double)ran->end_ps / LH_PS_PER_S, (double)simulated->start_ps / LH_PS_PER_S,
                      (double)simulated->end_ps / LH_PS_PER_S);
    }
    g_array_unref(run.records);
    g_array_unref(sim.records);
}

START_TEST(unit_costs_take_as_long_as_simulated)
{
    for (size_t i = 0; i < G_N_ELEMENTS(ranks_of_runs); i++) {
        const Case c = case_of(lh_schedules[_i], ranks_of_runs[i], LH_PASS_BOTH);
        g_autoptr(LhProgram) program = program_of(&c);

        if (program != NULL)
            compare_times(program, NULL, false);
    }
}
END_TEST

/* ---- beyond the schedules ---- */

enum { X, Y, Z, TEMP, LARGE };
#define LARGE_SIDE 128 /* a product that needs more workspace than 4 x 4 x 4 */

/* A rank with two streams of kernels, and a slot that is allocated and freed. */
static Built
begin_by_hand(const char *name)
{
    const LhProgramParams params = built_params(1);
    Built b = built_new(name, &params);
    const LhSlotParams slots[] = {
        [X] = { "x", LH_TENSOR_HIDDEN, LH_SLOT_INPUT, LH_DTYPE_FP32, .parts = 1, .part_bytes = 64 },
        [Y] = { "y", LH_TENSOR_HIDDEN, LH_SLOT_OUTPUT, LH_DTYPE_FP32, .parts = 1,
                .part_bytes = 64 },
        [Z] = { "z", LH_TENSOR_HIDDEN, LH_SLOT_OUTPUT, LH_DTYPE_FP32, .parts = 1,
                .part_bytes = 64 },
        [TEMP] = { "temp", LH_TENSOR_HIDDEN, LH_SLOT_TEMP, LH_DTYPE_FP32, .parts = 1,
                   .part_bytes = 64 },
        [LARGE] = { "large", LH_TENSOR_HIDDEN, LH_SLOT_OUTPUT, LH_DTYPE_FP32, .parts = 3,
                    .part_bytes = LARGE_SIDE * LARGE_SIDE * sizeof(float) },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(slots); i++)
        lh_program_add_slot(b.program, slots[i]);
    lh_program_add_stream(b.program, "compute", LH_STREAM_COMPUTE);
    lh_program_add_stream(b.program, "compute2", LH_STREAM_COMPUTE);
    return b;
}

/* @into = x + x. */
static void
add_on(LhEmitter *e, uint8_t stream, uint16_t into)
{
    lh_emit_compute(e, stream, LH_KERNEL_ID_residual, &(LhKernelArgs){ .elements.count = 16 });
    lh_emit_operand(e, X, 0, 1);
    lh_emit_operand(e, X, 0, 1);
    lh_emit_operand(e, into, 0, 1);
}

static void
come_and_go(LhEmitter *e)
{
    lh_emit_alloc(e, TEMP);
    lh_emit_free(e, TEMP);
}

START_TEST(hosts_wait_as_simulated)
{
    const Costs every = { .every_kernel = true };
    Built ahead = begin_by_hand("far ahead"), synced = begin_by_hand("sync");
    g_autoptr(LhProgram) far_ahead = NULL;
    g_autoptr(LhProgram) sync = NULL;

    add_on(&ahead.emitters[0], 0, Y);
    for (uint32_t i = 0; i < LH_HOST_WINDOW; i++)
        come_and_go(&ahead.emitters[0]);
    add_on(&ahead.emitters[0], 1, Z);
    far_ahead = built_end(&ahead);
    compare_times(far_ahead, &every, true);
    add_on(&synced.emitters[0], 0, Y);
    lh_emit_sync(&synced.emitters[0]);
    add_on(&synced.emitters[0], 1, Z);
    sync = built_end(&synced);
    compare_times(sync, &every, true);
}
END_TEST

static void
multiply(LhEmitter *e, uint64_t side, uint16_t x, uint16_t w, uint16_t y)
{
    const LhKernelArgs args = { .product = { .m = side, .n = side, .k = side } };

    lh_emit_compute(e, 0, LH_KERNEL_ID_product, &args);
    lh_emit_operand(e, x, 0, 1);
    lh_emit_operand(e, w, x == LARGE ? 1 : 0, 1);
    lh_emit_operand(e, y, x == LARGE ? 2 : 0, 1);
}

/* A stream's workspace grows while a kernel that uses the old one is waiting, and the next op
 * allocates memory. */
START_TEST(scratch_memory_grows)
{
    Built b = begin_by_hand("more scratch memory");
    LhEmitter *e = &b.emitters[0];
    g_autoptr(LhProgram) program = NULL;

    multiply(e, 4, X, X, Y);
    multiply(e, LARGE_SIDE, LARGE, LARGE, LARGE);
    come_and_go(e);
    add_on(e, 1, Z);
    program = built_end(&b);
    compare_times(program, &(Costs){ .every_kernel = true }, true);
}
END_TEST

/* ---- programs that fail ---- */

static void
check_refusal(const StandinOptions *options, const char *said)
{
    const Case c = case_of(lh_schedule_find("ring", NULL), 4, LH_PASS_FWD);
    g_autoptr(LhProgram) program = program_of(&c);
    g_autoptr(GError) error = NULL;

    standin_start(options);
    ck_assert_ptr_null(run_on(&lh_backend_cuda, program, NULL, &error));
    standin_end();
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_RUNTIME));
    ck_assert_msg(strstr(error->message, said) != NULL, "%s", error->message);
    ck_assert_str_eq(standin_findings(), "");
}

START_TEST(machines_without_a_usable_gpu_are_named)
{
    check_refusal(&(StandinOptions){ .seed = 1 }, "no GPU is visible");
    check_refusal(&(StandinOptions){ .seed = 1, .devices = 1, .driver = -1 },
                  "there is no driver for NVIDIA GPUs here");
    check_refusal(&(StandinOptions){ .seed = 1, .devices = 1, .driver = 11080 },
                  "the driver is too old: it supports CUDA 11.8");
    check_refusal(&(StandinOptions){ .seed = 1, .devices = 1, .memory_bytes = 5 << 20 },
                  "the GPU's memory is full");
}
END_TEST

START_TEST(stuck_programs_say_what_each_stream_waits_for)
{
    const Case c = case_of(lh_schedule_find("zigzag", NULL), 4, LH_PASS_FWD);
    g_autoptr(LhProgram) program = program_of(&c);
    g_autoptr(GError) error = NULL;

    standin_start(&orders[0]);
    ck_assert_ptr_null(run_on(&lh_backend_cuda, program, "stall:1", &error));
    standin_end();
    ck_assert(g_error_matches(error, LH_WAITED, LH_ERROR_RUNTIME));
    ck_assert_ptr_nonnull(strstr(error->message, "no op and no message has completed for 2 s"));
    ck_assert_ptr_nonnull(strstr(error->message, "rank 2, op "));
    ck_assert_ptr_nonnull(strstr(error->message, "receives from rank 1, slot "));
    ck_assert_str_eq(standin_findings(), "");
}
END_TEST

int
main(void)
{
    const TTest *const loops[] = { schedules_run_in_every_order,
                                   unit_costs_take_as_long_as_simulated };
    const TTest *const tests[] = { hosts_wait_as_simulated, scratch_memory_grows,
                                   machines_without_a_usable_gpu_are_named,
                                   stuck_programs_say_what_each_stream_waits_for };

    return run_suite("submit", loops, G_N_ELEMENTS(loops), tests, G_N_ELEMENTS(tests));
}
