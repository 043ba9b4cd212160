/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another device is a table of functions: the executor runs every schedule, bit-identical to the
 * CPU, on a device whose memory it cannot touch and whose streams are late.
 */
#include "running.h"
#include "share.h"
#include "toy_device.h"

static LhExecuted *
run_with(const LhExecuteParams *params, LhProgram *program, GError **error)
{
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(LhSetup) setup = NULL;

    scenario->ranks = lh_program_ranks(program);
    setup = lh_setup_new(scenario, error);
    return setup == NULL ? NULL : lh_execute_program(setup, program, params, error);
}

static LhExecuted *
run_on(const LhBackend *backend, LhProgram *program, GError **error)
{
    return run_with(&(LhExecuteParams){ .backend = backend }, program, error);
}

static void
check_bits(const LhSchedule *schedule, uint32_t ranks, const LhBackend *backend)
{
    const Case c = small_case(schedule, ranks);
    g_autoptr(LhProgram) program = program_of(&c);
    g_autoptr(GError) error = NULL;
    g_autoptr(LhExecuted) here = NULL;
    g_autoptr(LhExecuted) there = NULL;

    if (program == NULL && ranks != 4)
        return;
    ck_assert_ptr_nonnull(program);
    here = run_on(&lh_backend_cpu, program, &error);
    ck_assert_msg(here != NULL, "%s: %s", schedule->name, error != NULL ? error->message : "");
    toy_device_fail_at(0);
    there = run_on(backend, program, &error);
    ck_assert_msg(there != NULL, "%s: %s", schedule->name, error != NULL ? error->message : "");
    ck_assert(lh_executed_ok(here) && lh_executed_ok(there));
    ck_assert_str_eq(there->digest, here->digest);
    ck_assert_int_gt(toy_device_commands(), 0);
    ck_assert_int_eq(toy_device_blocks(), 0);
}

START_TEST(toy_device_computes_the_bits_of_the_processor)
{
    if (test_takes_of((uint64_t)_i, 7))
        check_bits(lh_schedules[_i], 4, &toy_backend);
}
END_TEST

START_TEST(submitted_programs_compute_the_bits_of_the_processor)
{
    static const uint32_t ranks[] = { 2, 3, 4, 5, 8 };

    for (size_t i = 0; i < G_N_ELEMENTS(ranks); i++)
        if (test_takes_of(i + (size_t)_i, 11))
            check_bits(lh_schedules[_i], ranks[i], &toy_submitting_backend);
}
END_TEST

/* A failure that shows only when an event is queried ends the run, at any command. */
static void
fail_everywhere(const LhBackend *backend)
{
    const Case c = small_case(lh_schedule_find("zigzag", NULL), 4);
    g_autoptr(LhProgram) program = program_of(&c);
    gint last;

    toy_device_fail_at(0);
    lh_executed_free(run_on(backend, program, NULL));
    /* the number of waits varies: completed ones are skipped */
    last = toy_device_commands() * (backend->links != NULL ? 3 : 4) / 4;
    for (gint i = 0; i < 20; i += test_takes_of(1, 4) ? 1 : 4) {
        g_autoptr(GError) error = NULL;
        g_autoptr(LhExecuted) executed = NULL;

        toy_device_fail_at(1 + i * (last - 1) / 19);
        executed = run_on(backend, program, &error);
        ck_assert_ptr_null(executed);
        ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_RUNTIME));
        ck_assert_ptr_nonnull(strstr(error->message, "the toy device failed"));
        ck_assert_int_eq(toy_device_blocks(), 0);
    }
}

START_TEST(toy_device_may_fail_at_any_time)
{
    fail_everywhere(&toy_backend);
}
END_TEST

START_TEST(device_may_fail_under_submitted_programs)
{
    fail_everywhere(&toy_submitting_backend);
}
END_TEST

/* A rank that never sends: the error reports what each stream waits for. */
START_TEST(submitted_programs_get_stuck_with_words)
{
    const Case c = small_case(lh_schedule_find("ring", NULL), 4);
    g_autoptr(LhProgram) program = program_of(&c);
    g_autoptr(GError) error = NULL;
    LhExecuteParams params = { .backend = &toy_submitting_backend,
                               .inject = "stall:2",
                               .deadline_ps = 5 * LH_PS_PER_S };

    toy_device_fail_at(0);
    ck_assert_ptr_null(run_with(&params, program, &error));
    ck_assert(g_error_matches(error, LH_WAITED, LH_ERROR_RUNTIME));
    ck_assert_ptr_nonnull(strstr(error->message, "rank 3, op "));
    ck_assert_ptr_nonnull(strstr(error->message, "receives from rank 2, slot "));
    ck_assert_ptr_nonnull(strstr(error->message, "on which it depends"));
    ck_assert_int_eq(toy_device_blocks(), 0);
}
END_TEST

/* Both engines detect injected faults. */
START_TEST(submitted_faults_are_found)
{
    static const char *const faults[] = { "drop-pair", "duplicate-pair", "mask-shift",
                                          "local-lse", "stale-buffer",   "wrong-kv-head" };
    const Case c = small_case(lh_schedule_find("zigzag", NULL), 4);
    g_autoptr(LhProgram) program = program_of(&c);

    toy_device_fail_at(0);
    for (size_t i = 0; i < G_N_ELEMENTS(faults); i++) {
        LhExecuteParams params = { .backend = &toy_submitting_backend, .inject = faults[i] };
        g_autoptr(GError) error = NULL;
        g_autoptr(LhExecuted) executed = run_with(&params, program, &error);

        ck_assert_msg(executed != NULL, "%s: %s", faults[i], error != NULL ? error->message : "");
        ck_assert_msg(!executed->errors.ok, "%s is not detected", faults[i]);
    }
}
END_TEST

int
main(void)
{
    const TTest *const loops[] = { toy_device_computes_the_bits_of_the_processor,
                                   submitted_programs_compute_the_bits_of_the_processor };
    const TTest *const tests[] = { toy_device_may_fail_at_any_time,
                                   device_may_fail_under_submitted_programs,
                                   submitted_programs_get_stuck_with_words,
                                   submitted_faults_are_found };

    return run_suite("toy device", loops, G_N_ELEMENTS(loops), tests, G_N_ELEMENTS(tests));
}
