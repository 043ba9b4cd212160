/*
 * Which options a schedule listens to, and proving it with what was not told varied.
 */
#include "base/error.h"
#include "plan/probe.h"
#include "plan/prove.h"
#include "plan/setting.h"
#include "run_tests.h"

#include <string.h>

static void
set(LhScenario *scenario, const char *option, const char *text)
{
    ck_assert(lh_scenario_set(scenario, lh_setting_find(lh_scenario_options, option), text, NULL));
}

/* Options that the code has are found, and no others. */
START_TEST(prove_probes_options)
{
    const LhSchedule *ring = lh_schedule_find("ring", NULL);
    const LhSchedule *balanced = lh_schedule_find("dfa-balanced", NULL);
    g_autoptr(GPtrArray) options = lh_probe_options(ring);

    for (guint i = 0; i < options->len; i++)
        ck_assert_str_ne(((const LhField *)g_ptr_array_index(options, i))->name, "published_code");
    ck_assert(lh_probe_option(ring, LH_ATTENTION_ALL, "no_overlap"));
    ck_assert(lh_probe_option(ring, LH_ATTENTION_ALL, "gradient_wire"));
    ck_assert(!lh_probe_option(ring, LH_ATTENTION_ALL, "grid"));
    ck_assert(!lh_probe_option(ring, LH_ATTENTION_ALL, "linear_decay"));
    ck_assert(lh_probe_option(balanced, LH_ATTENTION_ALL, "published_code"));
}
END_TEST

/* Every schedule is probed without a complaint, and reads at least one option or none: what counts
 * is that each option found is one of the scenario's. */
START_TEST(prove_probes_every_schedule)
{
    for (guint i = 0; lh_schedules[i] != NULL; i++) {
        g_autoptr(GPtrArray) options = lh_probe_options(lh_schedules[i]);

        for (guint k = 0; k < options->len; k++) {
            const LhField *field = g_ptr_array_index(options, k);
            g_autofree char *option = lh_setting_option(field);

            ck_assert_ptr_eq(lh_setting_find(lh_scenario_options, option), field);
            ck_assert(lh_probe_option(lh_schedules[i], LH_ATTENTION_ALL, field->name));
        }
    }
}
END_TEST

typedef struct {
    LhScenario *scenario;
    LhModel *model;
    LhProveParams params;
} Case;

static void
case_init(Case *c, unsigned passes)
{
    c->scenario = lh_scenario_new();
    c->model = lh_setup_load_model(c->scenario, NULL);
    c->params = (LhProveParams){
        .scenario = c->scenario,
        .sources = { .model = c->model },
        .passes = passes,
    };
}

static void
case_clear(Case *c)
{
    lh_scenario_free(c->scenario);
    lh_model_free(c->model);
}

static LhProven *
prove(const Case *c, const char *schedule, const uint64_t *ranks, guint count)
{
    g_autoptr(GArray) numbers = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    g_autoptr(GError) error = NULL;
    LhProven *proven;

    g_array_append_vals(numbers, ranks, count);
    proven = lh_prove(&c->params, lh_schedule_find(schedule, NULL), numbers, &error);
    ck_assert_msg(proven != NULL, "%s", error != NULL ? error->message : schedule);
    return proven;
}

/* Every schedule is proven for some numbers of ranks, without help. */
START_TEST(prove_proves_every_schedule)
{
    static const uint64_t ranks[] = { 1, 2, 3, 4, 6, 8 };
    Case c;

    case_init(&c, 1u << LH_PASS_BOTH);
    for (guint i = 0; lh_schedules[i] != NULL; i++) {
        g_autoptr(LhProven) proven = prove(&c, lh_schedules[i]->name, ranks, G_N_ELEMENTS(ranks));

        ck_assert_msg(proven->findings->len == 0, "%s: %s", proven->name,
                      proven->findings->len == 0
                          ? ""
                          : g_array_index(proven->findings, LhProofFinding, 0).message);
        ck_assert_uint_ge(proven->proven->len, 3);
        ck_assert_uint_eq(proven->proven->len + proven->refused->len, G_N_ELEMENTS(ranks));
        ck_assert_uint_gt(proven->programs, proven->proven->len); /* masks and options came too */
        ck_assert((proven->refusals > 0) == (proven->refusal != NULL));
    }
    case_clear(&c);
}
END_TEST

/* What is told is not varied: one program for each pass. */
START_TEST(prove_takes_what_is_told)
{
    static const uint64_t ranks[] = { 4 };
    g_autoptr(LhProven) proven = NULL;
    Case c;

    case_init(&c, 1u << LH_PASS_FWD | 1u << LH_PASS_BWD);
    set(c.scenario, "--mask", "causal");
    set(c.scenario, "--no-overlap", NULL);
    set(c.scenario, "--gradient-wire", "fp32");
    proven = prove(&c, "ring", ranks, 1);
    ck_assert_uint_eq(proven->programs, 2);
    ck_assert_uint_eq(proven->refusals, 0);
    case_clear(&c);
}
END_TEST

START_TEST(prove_counts_refusals)
{
    static const uint64_t ranks[] = { 3, 4, 5 };
    g_autoptr(LhProven) proven = NULL;
    Case c;

    case_init(&c, 1u << LH_PASS_FWD);
    set(c.scenario, "--seq-length", "4096");
    proven = prove(&c, "ring", ranks, G_N_ELEMENTS(ranks));
    ck_assert_uint_eq(proven->proven->len, 1);
    ck_assert_uint_eq(proven->refused->len, 2);
    ck_assert_uint_eq(proven->refusals, 2);
    ck_assert_msg(g_str_has_prefix(proven->refusal, "3 ranks: sequence length 4096 is not"), "%s",
                  proven->refusal);
    case_clear(&c);
}
END_TEST

/* The published code of the balanced schedule loses blocks for odd numbers of ranks; asked for,
 * that is found. */
START_TEST(prove_reports_what_is_not_proven)
{
    static const uint64_t ranks[] = { 4, 5 };
    g_autoptr(LhProven) proven = NULL;
    Case c;

    case_init(&c, 1u << LH_PASS_FWD);
    set(c.scenario, "--published-code", NULL);
    set(c.scenario, "--mask", "causal");
    proven = prove(&c, "dfa-balanced", ranks, G_N_ELEMENTS(ranks));
    ck_assert_uint_eq(proven->unproven->len, 1);
    ck_assert_uint_eq(g_array_index(proven->unproven, uint64_t, 0), 5);
    ck_assert_uint_eq(g_array_index(proven->proven, uint64_t, 0), 4);
    ck_assert(
        g_str_has_prefix(g_array_index(proven->findings, LhProofFinding, 0).message, "5 ranks"));
    case_clear(&c);
}
END_TEST

LH_TEST_MAIN("prove", prove_probes_options, prove_probes_every_schedule,
             prove_proves_every_schedule, prove_takes_what_is_told, prove_counts_refusals,
             prove_reports_what_is_not_proven)
