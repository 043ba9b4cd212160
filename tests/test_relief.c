/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suggestions where nothing fits: sim accepts every suggested change and simulates the stated peak
 * memory.
 */
#include "base/json/json_encode.h"
#include "compare/compare.h"
#include "compare/memory_relief.h"
#include "compare/totals.h"
#include "planner/plan.h"
#include "report/data/relief_fields.h"
#include "report/text/describe_relief.h"
#include "run_tests.h"
#include "scenario/setting.h"
#include "step/memory/peak_memory.h"

#include <string.h>

/* Options of steps and of a module that do not fit. */
static const char *const cases[] = {
    "--step --cluster hgx-h100:1 --model llama-7b --seq-length 512K --schedule ring",
    "--step --cluster dgx-a100-80g:1 --model llama-3-8b --seq-length 64K --schedule ulysses "
    "--data-parallel-size 2 --context-parallel-size 4 --micro-batch-size 4 --shard ddp",
    "--step --cluster hgx-h100:1 --model gpt3-13b --seq-length 32K --schedule zigzag "
    "--data-parallel-size 8 --micro-batch-size 2 --shard zero1",
    "--step --ranks 4 --model llama-13b --seq-length 128K --schedule dfa-balanced",
    "--step --cluster hgx-h100:2 --model minimax-text-01 --seq-length 32K --schedule lasp2+ring",
    "--step --cluster hgx-h100:1 --model llama-7b --seq-length 16M --schedule ring",
    "--ranks 2 --model llama-7b --seq-length 4M --schedule ring",
};

static void
set_options(LhScenario *s, const char *options)
{
    g_auto(GStrv) words = g_strsplit(options, " ", -1);

    for (guint i = 0; options[0] != '\0' && words[i] != NULL; i++) {
        const LhField *field = lh_setting_find(lh_scenario_options(), words[i]);
        g_autoptr(GError) error = NULL;
        const bool flag = lh_setting_is_flag(field);

        if (lh_scenario_has(s, field->name))
            lh_scenario_forget(s, field->name);
        ck_assert_msg(lh_scenario_set(s, field, flag ? NULL : words[i + 1], &error), "%s",
                      error != NULL ? error->message : options);
        i += !flag;
    }
}

/* Peak memory that sim reports for these options, added to those of a case. */
static uint64_t
peak_of(const char *options, const char *over, bool *fits)
{
    g_autoptr(LhScenario) s = lh_scenario_new();
    g_autoptr(LhSetup) setup = NULL;
    g_autoptr(LhProgram) program = NULL;
    g_autoptr(LhSimResult) result = NULL;
    g_autoptr(GError) error = NULL;
    LhTotals totals;

    set_options(s, options);
    set_options(s, over);
    setup = lh_setup_new(s, &error);
    ck_assert_msg(setup != NULL, "%s %s: %s", options, over, error != NULL ? error->message : "");
    program = lh_setup_program(setup, g_ptr_array_index(setup->schedules, 0), &error);
    ck_assert_msg(program != NULL, "%s", error != NULL ? error->message : "");
    result = lh_setup_simulate(setup, program, NULL, NULL, NULL, NULL);
    ck_assert_ptr_nonnull(result);
    lh_totals(result, &totals);
    *fits = result->out_of_memory == NULL;
    return totals.peak_bytes;
}

static LhReliefs *
reliefs_of(const char *options, LhScenario **scenario, LhSetup **setup)
{
    LhReliefs *reliefs;

    *scenario = lh_scenario_new();
    set_options(*scenario, options);
    *setup = lh_setup_new(*scenario, NULL);
    ck_assert_ptr_nonnull(*setup);
    reliefs = lh_reliefs(*setup, g_ptr_array_index((*setup)->schedules, 0), NULL);
    ck_assert_ptr_nonnull(reliefs);
    return reliefs;
}

START_TEST(relief_is_what_sim_finds)
{
    LhScenario *scenario;
    LhSetup *setup;
    g_autoptr(LhReliefs) reliefs = reliefs_of(cases[_i], &scenario, &setup);
    guint checked = 0;
    bool fits;

    ck_assert_uint_gt(reliefs->peak_bytes, reliefs->limit_bytes);
    ck_assert_uint_gt(reliefs->category_bytes, 0);
    ck_assert_uint_eq(peak_of(cases[_i], "", &fits), reliefs->peak_bytes);
    ck_assert(!fits);
    ck_assert_uint_gt(reliefs->tried->len, 0);
    for (guint i = 0; i < reliefs->tried->len; i++) {
        const LhRelief *relief = g_ptr_array_index(reliefs->tried, i);

        if (_i == 4 && relief->kind == LH_RELIEF_GPUS && checked > 2)
            continue; /* slow */
        ck_assert_uint_eq(peak_of(cases[_i], relief->options, &fits), relief->peak_bytes);
        ck_assert_int_eq(fits, relief->fits);
        checked++;
    }
    lh_setup_free(setup);
    lh_scenario_free(scenario);
}
END_TEST

/* Suggests the best fitting change of each kind; if none fits, those that need least memory, and
 * a length that fits. */
START_TEST(relief_names_the_best)
{
    LhScenario *scenario;
    LhSetup *setup;
    g_autoptr(LhReliefs) reliefs = reliefs_of(cases[_i], &scenario, &setup);
    g_autoptr(GPtrArray) best = lh_reliefs_best(reliefs, 3);
    g_autoptr(GString) text = g_string_new(NULL);
    bool any = false, fits;

    for (guint i = 0; i < reliefs->tried->len; i++)
        any = any || ((const LhRelief *)g_ptr_array_index(reliefs->tried, i))->fits;
    for (guint i = 0; i < best->len; i++) {
        const LhRelief *relief = g_ptr_array_index(best, i);
        const LhRelief *before = i > 0 ? g_ptr_array_index(best, i - 1) : NULL;

        ck_assert_int_eq(relief->fits, any);
        ck_assert_uint_lt(relief->peak_bytes, reliefs->peak_bytes);
        ck_assert(!any || before == NULL || before->kind != relief->kind);
        ck_assert(any || before == NULL || before->peak_bytes <= relief->peak_bytes);
    }
    lh_describe_reliefs(reliefs, text);
    ck_assert_msg((strstr(text->str, "It would fit with --") != NULL) == any, "%s", text->str);
    if (reliefs->fitting_length > 0) {
        g_autofree char *length =
            g_strdup_printf("--seq-length %" G_GUINT64_FORMAT, reliefs->fitting_length);

        ck_assert(!any);
        ck_assert_ptr_nonnull(strstr(text->str, "tokens fits"));
        peak_of(cases[_i], length, &fits);
        ck_assert(fits);
    }
    lh_setup_free(setup);
    lh_scenario_free(scenario);
}
END_TEST

static bool
interrupt(void *data, const LhProgress *at)
{
    (void)data;
    (void)at;
    return false;
}

/* There are no suggestions for a step that fits, for an interrupted run, and for unit costs. */
START_TEST(relief_is_of_what_does_not_fit)
{
    static const char *const fine[] = {
        "--step --cluster hgx-h100:1 --model llama-7b --seq-length 8K --schedule ring",
        "--cost flops --ranks 2 --model llama-7b --seq-length 4M --schedule ring",
    };
    const LhTask task = { .progress = interrupt };

    for (guint i = 0; i < G_N_ELEMENTS(fine); i++) {
        g_autoptr(LhScenario) s = lh_scenario_new();

        set_options(s, fine[i]);
        ck_assert_ptr_null(lh_reliefs_of(s, NULL));
    }
    for (guint i = 0; i < 2; i++) {
        g_autoptr(LhScenario) s = lh_scenario_new();

        set_options(s, cases[i]);
        ck_assert_ptr_null(lh_reliefs_of(s, &task));
    }
}
END_TEST

/* compare prints suggestions for the row that needs least memory, as text and as JSON. */
START_TEST(relief_is_told_by_compare)
{
    g_autoptr(LhScenario) s = lh_scenario_new();
    g_autoptr(LhSetup) setup = NULL;
    g_autoptr(LhComparison) c = NULL;
    g_autoptr(GString) json = g_string_new(NULL);
    g_autoptr(LhJsonWriter) w = lh_jsonw_new(json, false);
    const LhCompareRow *least;
    LhTotals totals;

    set_options(s, "--step --cluster hgx-h100:1 --model llama-7b --seq-length 512K");
    lh_scenario_set(s, lh_setting_find(lh_scenario_options(), "--schedule"), "ulysses", NULL);
    lh_scenario_set(s, lh_setting_find(lh_scenario_options(), "--schedule"), "ring", NULL);
    setup = lh_setup_new(s, NULL);
    c = lh_compare(setup, NULL, NULL);
    ck_assert_uint_eq(c->fit_count, 0);
    ck_assert_ptr_nonnull(c->reliefs);
    least = lh_compare_least(c);
    ck_assert_str_eq(least->name, "ring");
    lh_totals(least->result, &totals);
    ck_assert_uint_eq(c->reliefs->peak_bytes, totals.peak_bytes);
    lh_json_encode(w, NULL, lh_relief_fields, c->reliefs, NULL);
    ck_assert_ptr_nonnull(strstr(json->str, "\"largest\": \"saved\""));
    ck_assert_ptr_nonnull(strstr(json->str, "\"options\": \"--checkpoint layer\""));
}
END_TEST

/* For the configuration that needs least memory, plan and sim give the same suggestions. */
START_TEST(relief_of_points_is_that_of_their_scenarios)
{
    static const char text[] =
        "{\"schema\": \"longhaul.scenario/1\", \"model\": \"gpt3-1.3b\", "
        "\"cluster\": \"hgx-h100:1\", \"ranks\": 8, \"seq_length\": \"16K\"}";
    g_autoptr(LhScenario) scenario = lh_scenario_parse("s.json", text, strlen(text), NULL);
    g_autoptr(LhPlanSpace) space = lh_plan_space_new(scenario, NULL, 8, 1, NULL);
    guint checked = 0;

    for (guint i = 0; i < space->points->len; i += space->points->len / 60 + 1) {
        g_autoptr(LhScenario) s = lh_plan_point_scenario(space, i);
        g_autoptr(LhSetup) setup = NULL;
        g_autoptr(LhProgram) mine = NULL, other = NULL;
        uint64_t by_category[LH_CATEGORIES];
        LhPlanCase c;

        if (s == NULL || !lh_plan_case_init(&c, space, i, NULL))
            continue;
        mine = lh_plan_case_program(&c, NULL);
        setup = lh_setup_new(s, NULL);
        if (mine == NULL)
            continue;
        ck_assert_ptr_nonnull(setup);
        ck_assert_uint_eq(setup->schedules->len, 1);
        other = lh_setup_program(setup, g_ptr_array_index(setup->schedules, 0), NULL);
        ck_assert_ptr_nonnull(other);
        ck_assert_uint_eq(lh_step_peak(mine, by_category), lh_step_peak(other, by_category));
        checked++;
    }
    ck_assert_uint_gt(checked, 20);
}
END_TEST

LH_TEST_MAIN_OF_LOOPS("relief", { relief_is_what_sim_finds, G_N_ELEMENTS(cases) },
                      { relief_names_the_best, G_N_ELEMENTS(cases) },
                      { relief_is_of_what_does_not_fit, 1 }, { relief_is_told_by_compare, 1 },
                      { relief_of_points_is_that_of_their_scenarios, 1 })
