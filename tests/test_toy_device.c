/*
 * Another device is a table of functions: the executor runs every schedule on one whose memory it
 * cannot touch and whose streams are late, with the bits of the processor.
 */
#include "running.h"
#include "toy_device.h"

static LhExecuted *
run_on(const LhBackend *backend, LhProgram *program, GError **error)
{
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(LhSetup) setup = NULL;
    const LhExecuteParams params = { .backend = backend };

    scenario->ranks = lh_program_ranks(program);
    setup = lh_setup_new(scenario, error);
    return setup == NULL ? NULL : lh_execute_program(setup, program, &params, error);
}

START_TEST(toy_device_computes_the_bits_of_the_processor)
{
    const LhSchedule *schedule = lh_schedules[_i];
    const Case c = small_case(schedule, 4);
    g_autoptr(LhProgram) program = program_of(&c);
    g_autoptr(GError) error = NULL;
    g_autoptr(LhExecuted) here = NULL;
    g_autoptr(LhExecuted) there = NULL;

    ck_assert_ptr_nonnull(program);
    here = run_on(&lh_backend_cpu, program, &error);
    ck_assert_msg(here != NULL, "%s: %s", schedule->name, error != NULL ? error->message : "");
    toy_device_fail_at(0);
    there = run_on(&toy_backend, program, &error);
    ck_assert_msg(there != NULL, "%s: %s", schedule->name, error != NULL ? error->message : "");
    ck_assert(lh_executed_ok(here) && lh_executed_ok(there));
    ck_assert_str_eq(there->digest, here->digest);
    ck_assert_int_gt(toy_device_commands(), 0);
    ck_assert_int_eq(toy_device_blocks(), 0);
}
END_TEST

/* A failure that shows only when a mark is looked at ends the run, wherever it happens. */
START_TEST(toy_device_may_fail_at_any_time)
{
    const Case c = small_case(lh_schedule_find("zigzag", NULL), 4);
    g_autoptr(LhProgram) program = program_of(&c);
    gint last;

    toy_device_fail_at(0);
    lh_executed_free(run_on(&toy_backend, program, NULL));
    last = toy_device_commands();
    for (gint i = 0; i < 20; i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(LhExecuted) executed = NULL;

        toy_device_fail_at(1 + i * (last - 1) / 19);
        executed = run_on(&toy_backend, program, &error);
        ck_assert_ptr_null(executed);
        ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_RUNTIME));
        ck_assert_ptr_nonnull(strstr(error->message, "the toy device failed"));
        ck_assert_int_eq(toy_device_blocks(), 0);
    }
}
END_TEST

int
main(void)
{
    const TTest *const loops[] = { toy_device_computes_the_bits_of_the_processor };
    const TTest *const tests[] = { toy_device_may_fail_at_any_time };

    return run_suite("toy device", loops, G_N_ELEMENTS(loops), tests, G_N_ELEMENTS(tests));
}
