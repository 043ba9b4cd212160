/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Composition of error bars: the parts add up to the bar, and the predicted effect of measuring a
 * constant is the effect of measuring it.
 */
#include "compare/compare.h"
#include "compare/sensitivity.h"
#include "report/data/constants.h"
#include "run_tests.h"
#include "scenario/setting.h"
#include "sim/cost/provenance.h"

#include <math.h>
#include <string.h>

#define CASES 40
#define TOLERANCE 2e-8 /* error bars have nine digits, of which the remainder is a small part */

typedef struct {
    LhScenario *scenario;
    LhSetup *setup;
    LhCompareRow *row;
    LhErrorParts parts;
    LhSensitivities *s;
} Case;

static void
set(LhScenario *s, const char *option, const char *text)
{
    ck_assert(lh_scenario_set(s, lh_setting_find(lh_scenario_options(), option), text, NULL));
}

/* A random case. */
static Case
case_of(int index)
{
    static const char *const clusters[] = { "hgx-h100:2", "dgx-a100-80g:4", "dfa-2node:2",
                                            "lasp-dgx:2" };
    static const char *const lengths[] = { "4K", "32K", "128K" };
    static const char *const schedules[] = { "ring",         "ulysses", "zigzag",
                                             "allgather-kv", "lasp2",   "rsa" };
    g_autoptr(GRand) random = g_rand_new_with_seed((guint32)index);
    Case c = { .scenario = lh_scenario_new() };
    g_autoptr(GError) error = NULL;

    set(c.scenario, "--cluster", clusters[g_rand_int_range(random, 0, G_N_ELEMENTS(clusters))]);
    set(c.scenario, "--seq-length", lengths[g_rand_int_range(random, 0, G_N_ELEMENTS(lengths))]);
    set(c.scenario, "--schedule", schedules[g_rand_int_range(random, 0, G_N_ELEMENTS(schedules))]);
    c.setup = lh_setup_new(c.scenario, &error);
    ck_assert_msg(c.setup != NULL, "%s", error != NULL ? error->message : "");
    c.row = lh_compare_run(c.setup, g_ptr_array_index(c.setup->schedules, 0), NULL);
    ck_assert_ptr_nonnull(c.row->result);
    c.parts = lh_error_parts(c.setup, c.row->result);
    c.s = lh_sensitivities(c.setup, c.row->program, &c.parts, c.row->time_error.above);
    ck_assert_ptr_nonnull(c.s);
    return c;
}

static void
case_clear(Case *c)
{
    lh_sensitivities_free(c->s);
    lh_compare_row_free(c->row);
    lh_setup_free(c->setup);
    lh_scenario_free(c->scenario);
}

static const LhSensitivity *
constant_at(const Case *c, guint index)
{
    return &g_array_index(c->s->constants, LhSensitivity, index);
}

START_TEST(sensitivities_are_the_error_bar)
{
    for (int i = 0; i < CASES; i++) {
        Case c = case_of(i);
        double last = INFINITY;

        ck_assert_double_eq_tol(lh_sensitivities_measured(c.s, 0), c.row->time_error.above,
                                TOLERANCE);
        for (guint k = 0; k < c.s->constants->len; k++) {
            const LhSensitivity *constant = constant_at(&c, k);

            ck_assert_double_gt(constant->moves, 0);
            ck_assert_double_le(constant->moves, last);
            ck_assert_double_le(constant->share, 1 + TOLERANCE);
            ck_assert_double_ge(constant->share * constant->error, constant->moves - TOLERANCE);
            ck_assert_double_le(lh_sensitivities_measured(c.s, k + 1),
                                lh_sensitivities_measured(c.s, k) + TOLERANCE);
            last = constant->moves;
        }
        case_clear(&c);
    }
}
END_TEST

/* Declaring a link or host constant measured changes no time, only the error bar. */
START_TEST(sensitivities_say_what_measuring_does)
{
    guint tried = 0;

    for (int i = 0; i < CASES; i++) {
        Case c = case_of(i);
        const LhSensitivity *first = constant_at(&c, 0);
        LhLinkClass *links[LH_TIERS] = { &c.setup->topology->nvlink, &c.setup->topology->pcie,
                                         &c.setup->topology->nic, NULL };

        if (first->kind == LH_CONSTANT_OF_LINK && links[first->tier] != NULL) {
            links[first->tier]->from.provenance = LH_PROVENANCE_MEASURED;
            ck_assert_double_eq_tol(lh_time_error(c.setup, c.row->result).above,
                                    lh_sensitivities_measured(c.s, 1), TOLERANCE);
            tried++;
        }
        case_clear(&c);
    }
    ck_assert_uint_gt(tried, 5);
}
END_TEST

/* The named constants halve the error bar; one fewer does not. */
START_TEST(sensitivities_halve_the_bar)
{
    guint halved = 0;

    for (int i = 0; i < CASES; i++) {
        Case c = case_of(i);
        const guint count = lh_sensitivities_to_halve(c.s);

        if (count > 0) {
            halved++;
            ck_assert_double_le(lh_sensitivities_measured(c.s, count), c.s->bar / 2);
            ck_assert_double_gt(lh_sensitivities_measured(c.s, count - 1), c.s->bar / 2);
        } else {
            ck_assert_double_gt(lh_sensitivities_measured(c.s, c.s->constants->len), c.s->bar / 2);
        }
        case_clear(&c);
    }
    ck_assert_uint_gt(halved, 5);
}
END_TEST

/* The text depends on the case and names the constant with the largest part. */
START_TEST(sensitivities_discriminate)
{
    g_autoptr(GHashTable) lines = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    for (int i = 0; i < CASES; i++) {
        Case c = case_of(i);
        const LhSensitivity *first = constant_at(&c, 0);
        GString *line = g_string_new(NULL);

        lh_describe_trust(c.setup, c.row, "--provenance", line);
        ck_assert_ptr_nonnull(strstr(line->str, lh_provenance_names[first->provenance]));
        ck_assert_msg((strstr(line->str, "the bandwidth of") != NULL &&
                       strstr(line->str, "the bandwidth of") < strstr(line->str, "(")) ==
                          (first->kind == LH_CONSTANT_OF_LINK),
                      "%s", line->str);
        g_hash_table_add(lines, g_string_free(line, FALSE));
        case_clear(&c);
    }
    ck_assert_uint_gt(g_hash_table_size(lines), CASES / 3);
}
END_TEST

/* Cost models without a machine have no constants. */
START_TEST(sensitivities_of_a_cost_model_are_none)
{
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(LhSetup) setup = NULL;
    g_autoptr(LhCompareRow) row = NULL;
    g_autoptr(GString) line = g_string_new(NULL);

    set(scenario, "--cost", "flops");
    set(scenario, "--ranks", "4");
    set(scenario, "--schedule", "ring");
    setup = lh_setup_new(scenario, NULL);
    row = lh_compare_run(setup, g_ptr_array_index(setup->schedules, 0), NULL);
    lh_describe_trust(setup, row, "--provenance", line);
    ck_assert_str_eq(
        line->str,
        "least certain: nothing; these are the times of a cost model, not of a machine\n");
}
END_TEST

/* The error bar of a difference names the part that differs most. */
START_TEST(sensitivities_of_a_difference)
{
    LhErrorParts a = { { 0 } }, b = { { 0 } };

    a.part[LH_TIER_NIC] = 0.2;
    b.part[LH_TIER_NIC] = 0.1;
    b.part[LH_ERROR_KERNELS] = 0.05;
    ck_assert_int_eq(lh_error_between_most(&a, &b), LH_TIER_NIC);
    b.part[LH_ERROR_KERNELS] = 0.15;
    ck_assert_int_eq(lh_error_between_most(&a, &b), LH_ERROR_KERNELS);
    b = a;
    b.part[LH_ERROR_KERNELS] = LH_MODEL_ERROR / 2;
    ck_assert_int_eq(lh_error_between_most(&a, &b), LH_ERROR_PARTS);
}
END_TEST

LH_TEST_MAIN("sensitivity", sensitivities_are_the_error_bar, sensitivities_say_what_measuring_does,
             sensitivities_halve_the_bar, sensitivities_discriminate,
             sensitivities_of_a_cost_model_are_none, sensitivities_of_a_difference)
