/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios and their setups. Files named by path are not opened: the machine's files are not part
 * of the input.
 */
#include "fuzz.h"
#include "proof/run_time_estimate.h"
#include "scenario/setup.h"
#include "scenario/setup_simulate.h"

#include <string.h>

#define RANKS_MAX 16
#define HEADS_MAX                                                                                  \
    1024                /* messages of thousands of slices at once take the square of their number \
                         */
#define WORK_MAX_S 0.15 /* of all schedules of an input, in a build that is not slowed down */

static bool
is_path(const char *name)
{
    return name != NULL && (strchr(name, '/') != NULL || strstr(name, ".json") != NULL);
}

static void
play(const LhSetup *setup)
{
    double work_s = 0;

    for (guint i = 0; i < setup->schedules->len; i++) {
        g_autoptr(GError) refusal = NULL;
        g_autoptr(LhProgram) program =
            lh_program_new(g_ptr_array_index(setup->schedules, i), &setup->params, &refusal);
        g_autoptr(LhSimResult) result = NULL;

        fuzz_check(program != NULL, refusal, NULL);
        if (program == NULL || lh_params_ranks(&setup->params) > RANKS_MAX ||
            setup->params.attention.heads > HEADS_MAX)
            continue;
        if (work_s + lh_run_time_simulate(program) > WORK_MAX_S)
            continue;
        work_s += lh_run_time_simulate(program);
        result = lh_setup_simulate(setup, program, NULL, NULL, NULL, &refusal);
        fuzz_check(result != NULL, refusal, NULL);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhScenario) scenario = lh_scenario_parse(FUZZ_NAME, (const char *)data, size, &error);
    g_autoptr(LhSetup) setup = NULL;

    fuzz_check_file(scenario != NULL, error);
    if (scenario == NULL)
        return 0;
    for (const LhField *field = lh_scenario_options(); field->name != NULL; field++)
        lh_scenario_has(scenario, field->name);
    if (scenario->schedule_file != NULL || scenario->profile != NULL ||
        scenario->document_lengths != NULL || is_path(scenario->cluster) ||
        is_path(scenario->model))
        return 0;
    setup = lh_setup_new(scenario, &error);
    fuzz_check(setup != NULL, error, NULL);
    if (setup != NULL)
        play(setup);
    return 0;
}
