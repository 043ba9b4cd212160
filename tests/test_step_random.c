/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random training steps (random_step.h): each is built, proven, simulated and executed, with
 * consistent results. Refused steps are refused before anything else is reported.
 */
#include "compare/memory_need.h"
#include "execute/execute.h"
#include "program/live.h"
#include "random_step.h"
#include "run_tests.h"
#include "scenario/step/setup_step.h"
#include "share.h"

#include <glib/gstdio.h>

#define STEPS 512U
#define REFUSED_MAX 0.4 /* share of all that are tried */

typedef struct {
    const char *framework; /* path of the file */
    uint32_t tried, refused, wrong;
} Trial;

/* Reports an error with the description of the step, which may exceed the buffer of Check. */
G_GNUC_PRINTF(3, 4)
static void
say(Trial *t, const LhScenario *s, const char *format, ...)
{
    g_autoptr(GString) given = g_string_new(NULL);
    g_autofree char *framework = NULL, *what = NULL;
    va_list args;

    va_start(args, format);
    what = g_strdup_vprintf(format, args);
    va_end(args);
    lh_scenario_lines(s, given);
    g_file_get_contents(t->framework, &framework, NULL, NULL);
    g_printerr("seed %" PRIu64 ": %s\n%s\n%s\n%s", s->seed, what, s->model_text, framework,
               given->str);
    t->wrong++;
}

static void
compare_errors(Trial *t, const LhScenario *s, const LhExecuted *executed)
{
    for (uint32_t i = 0; i < executed->errors.rows_count; i++) {
        const LhErrorRow *row = &executed->errors.rows[i];

        if (!row->ok)
            say(t, s, "%s: error %g, in units %g on the mean and %g at worst", row->name,
                row->rel_l2, row->mean, row->row);
    }
}

static void
execute_step(Trial *t, const LhSetup *setup)
{
    const LhScenario *s = setup->scenario;
    const LhExecuteParams params = { .backend = &lh_backend_cpu };
    g_autoptr(GError) error = NULL;
    g_autoptr(LhExecuted) executed = lh_execute_setup(setup, &params, &error);

    if (executed == NULL) {
        say(t, s, "%s", error != NULL ? error->message : "");
        return;
    }
    compare_errors(t, s, executed);
    if (!executed->counts_ok)
        say(t, s, "bytes %d, flops %d, peak %d", executed->bytes_sent.equal, executed->flops.equal,
            executed->peak_bytes.equal);
    if (!executed->errors.ok && executed->errors.rows_count == 0)
        say(t, s, "nothing was compared");
}

/* `longhaul memory` finds the peaks of stages, without ops, which are those of all ranks, op by op.
 * The verifier and the executor count the latter. */
static void
compare_memory(Trial *t, const LhSetup *setup, const LhProgram *program)
{
    g_autoptr(LhMemoryNeed) need = lh_memory_need(setup, false, NULL, NULL);
    const uint32_t of_stage = (uint32_t)lh_step_stage_ranks(lh_step_params(program));

    for (guint i = 0; i < need->stages->len; i++) {
        const LhStageNeed *stage = &g_array_index(need->stages, LhStageNeed, i);
        uint64_t most_bytes = 0, sum_bytes = 0, host_bytes = 0;

        for (uint32_t rank = i * of_stage; rank < (i + 1) * of_stage; rank++) {
            LhLive live;

            lh_live_walk(&live, program, rank);
            most_bytes = MAX(most_bytes, live.peak_bytes);
            host_bytes = MAX(host_bytes, live.host_peak_bytes);
        }
        for (int c = 0; c < LH_CATEGORIES; c++)
            sum_bytes += stage->by_category[c];
        if (stage->peak_bytes != most_bytes || sum_bytes != most_bytes)
            say(t, setup->scenario,
                "stage %u: %" PRIu64 " bytes, %" PRIu64 " by category, not %" PRIu64, i,
                stage->peak_bytes, sum_bytes, most_bytes);
        if (stage->host_bytes != host_bytes)
            say(t, setup->scenario, "stage %u: %" PRIu64 " bytes on the host, not %" PRIu64, i,
                stage->host_bytes, host_bytes);
    }
}

/* Builds a step; executes it if it is within the share of this run. */
static void
try_step(Trial *t, uint64_t seed)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhScenario) s = random_step(seed, t->framework, &error);
    g_autoptr(LhSetup) setup = s != NULL && error == NULL ? lh_setup_new(s, &error) : NULL;
    g_autoptr(LhProgram) program =
        setup != NULL ? lh_setup_program(setup, g_ptr_array_index(setup->schedules, 0), &error)
                      : NULL;

    t->tried++;
    if (program != NULL) {
        if (test_takes(seed - 1)) {
            compare_memory(t, setup, program);
            execute_step(t, setup);
        }
        return;
    }
    t->refused++;
    ck_assert(error != NULL);
    if (strstr(error->message, "malformed") != NULL)
        say(t, s, "%s", error->message);
}

/* Seeds start at 1. */
START_TEST(random_steps_agree)
{
    g_autofree char *folder = g_dir_make_tmp("longhaul-steps-XXXXXX", NULL);
    g_autofree char *framework = g_build_filename(folder, "framework.json", NULL);
    Trial t = { .framework = framework };

    for (uint64_t seed = 1; seed <= STEPS; seed++)
        try_step(&t, seed);
    g_remove(framework);
    g_rmdir(folder);
    ck_assert_uint_eq(t.wrong, 0);
    ck_assert_uint_le(t.refused, (uint32_t)(REFUSED_MAX * t.tried));
}
END_TEST

LH_TEST_MAIN("step_random", random_steps_agree)
