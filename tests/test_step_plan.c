/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A step of which only a few micro-batches are simulated has the results of the full simulation, to
 * the picosecond and to the byte.
 */
#include "compare/step_plan.h"
#include "compare/time_range.h"
#include "run_tests.h"
#include "scenario/setup.h"
#include "scenario/step/setup_step.h"

#include <string.h>

static const struct {
    const char *members; /* of a scenario */
    uint64_t micro_batches;
} steps[] = {
    { "\"schedule\": [\"te-p2p\"], \"cluster\": \"azure-nc96-a100:2\", \"shard\": \"zero1\", "
      "\"framework\": \"deepspeed\"",
      16 },
    { "\"schedule\": [\"attention2d-o\"], \"cluster\": \"azure-nc96-a100:4\", \"shard\": "
      "\"zero1\", \"framework\": \"deepspeed\"",
      23 },
    { "\"schedule\": [\"ulysses\"], \"cluster\": \"hgx-h100:1\", \"shard\": \"fsdp\"", 64 },
    { "\"schedule\": [\"dfa-balanced\"], \"cluster\": \"dfa-2node:2\", \"shard\": \"fsdp\", "
      "\"data_parallel_size\": 2, \"checkpoint\": \"remat\"",
      17 },
    { "\"schedule\": [\"ring\"], \"cluster\": \"hgx-h100:1\", \"shard\": \"ddp\", "
      "\"pipeline_model_parallel_size\": 2",
      16 },
};

static LhScenario *
scenario_of(int index)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text =
        g_strdup_printf("{\"schema\": \"longhaul.scenario/1\", \"step\": true, \"model\": "
                        "\"gpt3-125m\", \"seq_length\": \"8K\", \"num_micro_batches\": "
                        "%" G_GUINT64_FORMAT ", %s}",
                        steps[index].micro_batches, steps[index].members);
    LhScenario *scenario = lh_scenario_parse("s.json", text, strlen(text), &error);

    ck_assert_msg(scenario != NULL, "%s", error != NULL ? error->message : "");
    return scenario;
}

START_TEST(few_micro_batches_tell_what_many_do)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhScenario) scenario = scenario_of(_i);
    g_autoptr(LhSetup) setup = lh_setup_new(scenario, &error);
    g_autoptr(LhProgram) program = NULL;
    g_autoptr(LhSimResult) result = NULL;
    g_autoptr(GArray) peaks = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    LhStepAnswer whole, answer;

    ck_assert_msg(setup != NULL, "%s", error != NULL ? error->message : "");
    program = lh_setup_program(setup, g_ptr_array_index(setup->schedules, 0), &error);
    ck_assert_msg(program != NULL, "%s", error != NULL ? error->message : "");
    result = lh_time_range_simulate(setup, program, NULL, &error);
    ck_assert_ptr_nonnull(result);
    whole = lh_step_answer_of(setup, program, result);
    ck_assert_msg(lh_step_answer_of_ranks(scenario, &answer, peaks, &error), "%s",
                  error != NULL ? error->message : "");
    ck_assert_double_eq_tol(answer.iteration_s, whole.iteration_s, 0.6e-12);
    ck_assert_double_eq_tol(answer.tokens_per_s, whole.tokens_per_s, 1e-9 * whole.tokens_per_s);
    ck_assert_double_eq_tol(answer.mfu, whole.mfu, 1e-9);
    ck_assert_double_eq_tol(answer.hfu, whole.hfu, 1e-9);
    ck_assert_uint_eq(answer.peak_bytes, whole.peak_bytes);
    ck_assert_uint_eq(peaks->len, result->ranks_count);
    for (guint r = 0; r < peaks->len; r++)
        ck_assert_uint_eq(g_array_index(peaks, uint64_t, r), result->ranks[r].peak_bytes);
}
END_TEST

LH_TEST_MAIN_OF_LOOPS("step_plan", { few_micro_batches_tell_what_many_do, G_N_ELEMENTS(steps) })
