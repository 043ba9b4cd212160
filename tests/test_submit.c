/*
 * The submitting engine and the GPU as a device, over what stands for CUDA's runtime: every
 * schedule in many orders, with few and many hardware queues. Built twice: with the processor's
 * kernels on the streams, whose bits must be those that threads compute, and with the GPU's own,
 * which are interpreted (INTERPRETED).
 */
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

/* tests/mutants/engine.py has many programs to run. */
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

/* ---- numbers and order ---- */

/* Runs the program in every order: within the gates, with the same bits, and without findings. */
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

/* The makespan, and the time of all kernels in @busy_ps. */
static LhTime
run_time(const LhProgram *program, LhTime *busy_ps)
{
    const LhRunHooks hooks = { .call = call_with_time };
    const LhRunParams params = { .program = program,
                                 .backend = &lh_backend_cuda,
                                 .deadline_us = 60 * G_USEC_PER_SEC,
                                 .hooks = &hooks,
                                 .load = load_zeros };
    g_autoptr(GError) error = NULL;
    g_autoptr(LhRunResult) result = NULL;

    standin_start(&(StandinOptions){ .seed = 1, .devices = 1, .eager = 20 });
    result = lh_execute(&params, &error);
    standin_end();
    ck_assert_msg(result != NULL, "%s: %s", program->name, text(error));
    ck_assert_str_eq(standin_findings(), "");
    *busy_ps = 0;
    for (uint32_t r = 0; r < result->ranks_count; r++)
        *busy_ps += result->ranks[r].busy_ps;
    return result->makespan_ps;
}

static LhTime
sim_time(const LhProgram *program, LhTime *busy_ps)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhTopology) topology = lh_topology_load("hgx-h100", &error);
    g_autoptr(LhDevice) device = lh_device_load(topology->device_name, &error);
    g_autoptr(LhSimResult) result = NULL;
    LhSimParams params = { .program = program,
                           .device = device,
                           .network_model = LH_NETWORK_ALPHA_BETA,
                           .cost = LH_COST_UNIT,
                           .compute_time = unit_time };
    LhNetwork network;

    ck_assert(lh_network_init(&network, topology, 1, lh_program_ranks(program), NULL, &error));
    params.network = &network;
    result = lh_simulate(&params, &error);
    ck_assert_msg(result != NULL, "%s", text(error));
    *busy_ps = 0;
    for (uint32_t r = 0; r < result->ranks_count; r++)
        *busy_ps += result->ranks[r].busy_ps;
    return result->makespan_ps;
}

START_TEST(unit_costs_take_as_long_as_simulated)
{
    for (size_t i = 0; i < G_N_ELEMENTS(ranks_of_runs); i++) {
        const Case c = case_of(lh_schedules[_i], ranks_of_runs[i], LH_PASS_BOTH);
        g_autoptr(LhProgram) program = program_of(&c);
        LhTime run, sim, run_busy, sim_busy;

        if (program == NULL)
            continue;
        run = run_time(program, &run_busy);
        sim = sim_time(program, &sim_busy);
        ck_assert_msg(run == sim, "%s, P %u: %g s, simulated %g s", program->name, ranks_of_runs[i],
                      (double)run / LH_PS_PER_S, (double)sim / LH_PS_PER_S);
        ck_assert_int_gt(run, 0);
        ck_assert_int_eq(run_busy, sim_busy);
    }
}
END_TEST

/* ---- what cannot run, or not to its end ---- */

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
                  "the driver is too old: it knows CUDA 11.8");
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
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_RUNTIME));
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
    const TTest *const tests[] = { machines_without_a_usable_gpu_are_named,
                                   stuck_programs_say_what_each_stream_waits_for };

    return run_suite("submit", loops, G_N_ELEMENTS(loops), tests, G_N_ELEMENTS(tests));
}
