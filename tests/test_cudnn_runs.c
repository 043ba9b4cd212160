/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schedules with attention by cuDNN, on the stand-ins: results within the tolerance of runs, and
 * rejected or failing runs. test_cudnn.c tests the calls themselves.
 */
#include "program/cursor.h"
#include "running.h"
#include "standin.h"

#define CUDNN 1 /* index among the device's kernel sets */

/* @inject: a fault, or NULL. */
static LhExecuted *
run_injected(LhProgram *program, const char *inject, GError **error)
{
    const StandinOptions options = { .seed = 11, .devices = 1, .eager = 30 };
    const LhExecuteParams params = { .backend = &lh_backend_cuda,
                                     .kernel_set = CUDNN,
                                     .inject = inject };
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(LhSetup) setup = NULL;
    LhExecuted *executed = NULL;

    scenario->ranks = lh_program_ranks(program);
    standin_start(&options);
    setup = lh_setup_new(scenario, error);
    if (setup != NULL)
        executed = lh_execute_program(setup, program, &params, error);
    standin_end();
    ck_assert_str_eq(standin_findings(), "");
    return executed;
}

static LhExecuted *
run_with_cudnn(LhProgram *program, GError **error)
{
    return run_injected(program, NULL, error);
}

static LhProgram *
program_with(const char *schedule, uint32_t ranks, LhPass pass)
{
    Case c = small_case(lh_schedule_find(schedule, NULL), ranks);

    c.wanted.attention.groups = 4;
    c.wanted.attention.head_dim = 16;
    c.wanted.pass = pass;
    return program_of(&c);
}

static bool
uses(const LhProgram *program, LhKernelId kernel)
{
    LhOpBuffer step = { 0 };
    bool found = false;

    for (uint32_t rank = 0; rank < lh_program_ranks(program); rank++) {
        LhCursor cursor;

        lh_cursor_init(&cursor, program, rank);
        while (lh_cursor_step(&cursor, &step)) {
            for (uint32_t i = 0; i < step.ops_count; i++)
                found |= step.ops[i].kind == LH_OP_COMPUTE && step.ops[i].compute.kernel == kernel;
        }
    }
    lh_op_buffer_clear(&step);
    return found;
}

static void
check_results(const LhExecuted *executed, const char *schedule, uint32_t ranks, const GError *error)
{
    ck_assert_msg(executed != NULL, "%s, P %u: %s", schedule, ranks,
                  error != NULL ? error->message : "");
    ck_assert_msg(lh_executed_ok(executed), "%s, P %u: wrong results", schedule, ranks);
    ck_assert_uint_eq(executed->repeats, 1); /* the warm-up run is not counted */
    LhExecuted other_bits = *executed;
    other_bits.same_bits = false;
    /* cuDNN does not guarantee identical bits where it accumulates gradients. */
    ck_assert(lh_executed_ok(&other_bits) == (executed->program->params.pass != LH_PASS_FWD));
}

/* Runs both passes if the backward one has o wherever it needs it; otherwise that is rejected and
 * the forward pass runs. */
START_TEST(schedules_run_with_cudnn)
{
    const char *name = lh_schedules[_i]->name;

    for (uint32_t ranks = 2; ranks <= 4; ranks += 2) {
        g_autoptr(LhProgram) both = program_with(name, ranks, LH_PASS_BOTH);
        g_autoptr(LhProgram) forward = program_with(name, ranks, LH_PASS_FWD);
        g_autoptr(LhExecuted) executed = NULL;
        g_autoptr(GError) error = NULL;

        if (both == NULL || forward == NULL)
            continue;
        executed = run_with_cudnn(both, &error);
        if (!uses(both, LH_KERNEL_ID_attention_bwd)) {
            check_results(executed, name, ranks, error);
            continue;
        }
        ck_assert_ptr_null(executed);
        ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_NO));
        ck_assert_ptr_nonnull(strstr(error->message, "kernels \"cudnn\": "));
        ck_assert_ptr_nonnull(strstr(error->message, "computes delta from o"));
        g_clear_error(&error);
        executed = run_with_cudnn(forward, &error);
        check_results(executed, name, ranks, error);
    }
}
END_TEST

/* ---- failures ---- */

static void
check_failure(const char *variable, const char *value, LhErrorCode code, const char *said)
{
    g_autoptr(LhProgram) program = program_with("ring", 2, LH_PASS_FWD);
    g_autoptr(GError) error = NULL;

    g_setenv(variable, value, TRUE);
    ck_assert_ptr_null(run_with_cudnn(program, &error));
    ck_assert_msg(g_error_matches(error, LH_ERROR, (int)code), "%s: %s", value, error->message);
    ck_assert_msg(strstr(error->message, said) != NULL, "%s: %s", value, error->message);
}

static const struct {
    const char *variable, *value;
    LhErrorCode code;
    const char *said;
} failures[] = {
    { "LONGHAUL_CUDNN", "/nowhere/libcudnn.so", LH_ERROR_RUNTIME,
      "cuDNN: cannot load /nowhere/libcudnn.so (" },
    { "LONGHAUL_CUDNN", "libm.so.6", LH_ERROR_RUNTIME,
      "cuDNN: libm.so.6 has no function cudnnGetVersion; version 9.16 or newer is needed" },
    { "STANDIN_CUDNN", "version=91599", LH_ERROR_RUNTIME,
      "is version 9.15.99; 9.16 or a newer version 9 is needed" },
    { "STANDIN_CUDNN", "version=100000", LH_ERROR_RUNTIME,
      "is version 10.0.0; 9.16 or a newer version 9 is needed" },
    { "STANDIN_CUDNN", "handle=0", LH_ERROR_RUNTIME, "cuDNN: handle: " },
    { "STANDIN_CUDNN", "engines=0", LH_ERROR_NO,
      "no engine of version 9.19.0 computes this attention on this device: cuDNN suggests none" },
    { "STANDIN_CUDNN", "plans=0", LH_ERROR_NO,
      "computes this attention on this device: cuDNN: plan: CUDNN_STATUS_NOT_SUPPORTED" },
    { "STANDIN_CUDNN", "execute=0", LH_ERROR_RUNTIME,
      "cuDNN: execution: CUDNN_STATUS_EXECUTION_FAILED (the kernel could not be launched)" },
};

START_TEST(failures_are_named)
{
    check_failure(failures[_i].variable, failures[_i].value, failures[_i].code, failures[_i].said);
}
END_TEST

/* The second engine is tried if the first one rejects the graph. */
START_TEST(what_one_engine_refuses_another_may_take)
{
    g_autoptr(LhProgram) program = program_with("ring", 2, LH_PASS_FWD);
    g_autoptr(LhExecuted) executed = NULL;
    g_autoptr(GError) error = NULL;

    g_setenv("STANDIN_CUDNN", "first=0", TRUE);
    executed = run_with_cudnn(program, &error);
    check_results(executed, "ring", 2, error);
}
END_TEST

/* A warm-up run precedes the timed ones; there is none with an injected fault. */
START_TEST(a_run_comes_before_those_that_are_timed)
{
    g_autoptr(LhProgram) program = program_with("ring", 2, LH_PASS_FWD);
    uint64_t kernels[2];

    for (unsigned i = 0; i < G_N_ELEMENTS(kernels); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(LhExecuted) executed = run_injected(program, i == 0 ? "delay:1" : NULL, &error);

        ck_assert_msg(executed != NULL && lh_executed_ok(executed), "run %u", i);
        ck_assert_uint_eq(executed->repeats, 1);
        kernels[i] = standin_counts().kernels;
    }
    ck_assert_uint_gt(kernels[0], 0);
    ck_assert_uint_eq(kernels[1], 2 * kernels[0]);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("cudnn_runs");
    TCase *cases = tcase_create("cudnn_runs");
    SRunner *runner = srunner_create(suite);
    int schedules = 0, failed;

    while (lh_schedules[schedules] != NULL)
        schedules++;
    tcase_add_loop_test(cases, schedules_run_with_cudnn, 0, schedules);
    tcase_add_loop_test(cases, failures_are_named, 0, G_N_ELEMENTS(failures));
    tcase_add_test(cases, what_one_engine_refuses_another_may_take);
    tcase_add_test(cases, a_run_comes_before_those_that_are_timed);
    suite_add_tcase(suite, cases);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
