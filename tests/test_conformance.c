/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verifier, simulator and runtime agree on the meaning of programs: random and handwritten programs
 * go through all three. A proven program completes in the simulator and on real data, with the same
 * bytes, flops and peak memory on every rank and identical bits in every run; a program that cannot
 * complete is not proven.
 */
#include "base/error.h"
#include "execute/execute.h"
#include "hand_programs.h"
#include "program/explicit/explicit.h"
#include "program/explicit/explicit_read.h"
#include "program/explicit/explicit_write.h"
#include "random_program.h"
#include "run_tests.h"
#include "scenario/setup_simulate.h"
#include "share.h"
#include "toy_device.h"
#include "verify/verify.h"

#include <string.h>

#define PROGRAMS 150
#define DAMAGES 4 /* per program */
#define TOPOLOGY "bench-platform"

static LhSetup *
setup_of(const LhProgram *program, LhScenario *scenario)
{
    g_autoptr(GError) error = NULL;
    LhSetup *setup;

    scenario->ranks = lh_program_ranks(program);
    scenario->cluster = g_strdup(TOPOLOGY);
    setup = lh_setup_new(scenario, &error);
    ck_assert_msg(setup != NULL, "%s", error != NULL ? error->message : "");
    return setup;
}

/* Both kernel sets, with pauses before every op, on a device that executes late; each with other
 * collective algorithms. */
static const LhExecuteParams ways[] = {
    { .backend = &lh_backend_cpu },
    { .backend = &lh_backend_cpu, .kernel_set = 1, .inject = "delay:1" },
    { .backend = &toy_backend },
};

#define WAYS G_N_ELEMENTS(ways)

static const LhCollectiveModel collectives[WAYS] = { LH_COLLECTIVES_DIRECT, LH_COLLECTIVES_RING,
                                                     LH_COLLECTIVES_PAIRWISE };

/* Asserts that a proven program completes with equal results in the first @count ways. */
static void
check_agreement(const LhProgram *program, const char *what, unsigned count)
{
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(LhSetup) setup = setup_of(program, scenario);

    for (unsigned i = 0; i < count; i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(LhExecuted) executed = NULL;

        scenario->collectives = (int)collectives[i];
        executed = lh_execute_program(setup, program, &ways[i], &error);

        ck_assert_msg(executed != NULL, "%s: %s", what, error != NULL ? error->message : "");
        ck_assert_msg(
            executed->counts_ok, "%s: bytes %u %u %u, flops equal %d, peak %u %u %u", what,
            (unsigned)executed->bytes_sent.counted, (unsigned)executed->bytes_sent.verified,
            (unsigned)executed->bytes_sent.simulated, executed->flops.equal,
            (unsigned)executed->peak_bytes.counted, (unsigned)executed->peak_bytes.verified,
            (unsigned)executed->peak_bytes.simulated);
        ck_assert_uint_gt(executed->peak_bytes.counted, 0);
        ck_assert_msg(executed->errors.ok, "%s: results are wrong", what);
    }
}

/* The same program, written to a file and read back. */
static LhProgram *
reread(const LhProgram *program)
{
    g_autoptr(GString) text = g_string_new(NULL), again = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    LhProgram *copy;

    ck_assert(lh_program_write(program, text, &error));
    copy = lh_program_parse("random.json", text->str, text->len, &error);
    ck_assert_msg(copy != NULL, "%s", error != NULL ? error->message : "");
    ck_assert(lh_program_write(copy, again, &error));
    ck_assert_str_eq(text->str, again->str);
    return copy;
}

START_TEST(random_programs_mean_the_same_to_all)
{
    g_autoptr(LhProgram) program = random_program((uint64_t)_i);
    g_autoptr(LhVerdict) verdict = lh_verify(program);
    g_autoptr(LhProgram) copy = NULL;
    g_autoptr(LhVerdict) again = NULL;
    g_autofree char *what = g_strdup_printf("seed %d", _i);

    ck_assert_msg(
        verdict->findings->len == 0, "%s: %s", what,
        verdict->findings->len == 0 ? "" : g_array_index(verdict->findings, LhFinding, 0).message);
    check_agreement(program, what,
                    _i % 5 == 0 ? WAYS : WAYS - 1); /* late devices are slow to run */
    copy = reread(program);
    again = lh_verify(copy);
    ck_assert_uint_eq(again->findings->len, 0);
    ck_assert_uint_eq(again->ops, verdict->ops);
    ck_assert_uint_eq(again->messages, verdict->messages);
    ck_assert_uint_eq(again->orders_checked, verdict->orders_checked);
}
END_TEST

/* Simulates a program, proven or not. Returns NULL, or the error's text if it cannot complete. */
static char *
why_it_cannot_end(const LhProgram *program)
{
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(LhSetup) setup = setup_of(program, scenario);
    g_autoptr(GError) error = NULL;
    g_autoptr(LhSimResult) result = lh_setup_simulate(setup, program, NULL, NULL, NULL, &error);

    return result == NULL ? g_strdup(error->message) : NULL;
}

START_TEST(damaged_programs_are_found_or_mean_the_same_to_all)
{
    for (unsigned i = 0; i < DAMAGES; i++) {
        g_autoptr(LhProgram) program = random_program((uint64_t)_i);
        g_autofree char *what = g_strdup_printf("seed %d, damage %u", _i, i);
        g_autoptr(LhVerdict) verdict = NULL;

        damage_program(program, (uint64_t)_i * DAMAGES + i);
        verdict = lh_verify(program);
        if (verdict->findings->len == 0)
            check_agreement(program, what, WAYS - 1);
        else if (g_array_index(verdict->findings, LhFinding, 0).kind != LH_FINDING_MALFORMED)
            g_free(why_it_cannot_end(program));
    }
}
END_TEST

START_TEST(programs_by_hand)
{
    const HandProgram *hand = &hand_programs[_i];
    g_autoptr(LhProgram) program = hand->make();
    g_autoptr(LhVerdict) verdict = lh_verify(program);
    const char *found =
        verdict->findings->len == 0 ? NULL : g_array_index(verdict->findings, LhFinding, 0).message;
    g_autofree char *message = why_it_cannot_end(program);

    if (hand->error == NULL)
        ck_assert_msg(message == NULL, "%s: %s", hand->name, message);
    else
        ck_assert_msg(message != NULL && strstr(message, hand->error) != NULL, "%s: %s", hand->name,
                      message != NULL ? message : "it ends");
    if (hand->finding != NULL) {
        ck_assert_msg(found != NULL && strstr(found, hand->finding) != NULL, "%s: %s", hand->name,
                      found != NULL ? found : "proven");
        return;
    }
    ck_assert_msg(found == NULL, "%s: %s", hand->name, found);
    check_agreement(program, hand->name, WAYS);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("conformance");
    TCase *cases = tcase_create("conformance");
    SRunner *runner = srunner_create(suite);
    const int programs = (int)(PROGRAMS / MIN(test_every(), 20));
    int count = 0, failed;

    while (hand_programs[count].name != NULL)
        count++;
    tcase_add_loop_test(cases, programs_by_hand, 0, count);
    tcase_add_loop_test(cases, random_programs_mean_the_same_to_all, 0, programs);
    tcase_add_loop_test(cases, damaged_programs_are_found_or_mean_the_same_to_all, 0, programs);
    suite_add_tcase(suite, cases);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
