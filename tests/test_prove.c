/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The declared options and masks of schedules are true, and proofs vary whatever was not fixed.
 */
#include "options.h"
#include "program/explicit/explicit_write.h"
#include "proof/proof_cases.h"
#include "run_tests.h"
#include "scenario/setting.h"
#include "scenario/setup_model.h"
#include "share.h"

#include <string.h>

static void
set(LhScenario *scenario, const char *option, const char *text)
{
    ck_assert(
        lh_scenario_set(scenario, lh_setting_find(lh_scenario_options(), option), text, NULL));
}

/* --- declarations of schedules
 * ------------------------------------------------------------------ */

#define RANKS 4

/* Shapes: heads that divide among the ranks and heads that do not, with both kinds of attention;
 * heads exchanged among all ranks although they do not divide; and nodes of two ranks, so that a
 * ring within a node is not the whole ring. */
static const struct {
    bool linear;
    uint32_t heads, groups;
    LhOptionValue hierarchy;
    uint32_t gpus_per_node;
} bases[] = {
    { false, 8, 4, { 0 }, 0 }, { false, 6, 6, { 0 }, 0 },        { true, 8, 4, { 0 }, 0 },
    { true, 6, 6, { 0 }, 0 },  { false, 6, 6, { RANKS, 1 }, 0 }, { true, 6, 6, { RANKS, 1 }, 0 },
    { false, 8, 4, { 0 }, 2 },
};

static LhProgramParams
base_params(guint base)
{
    LhProgramParams p = {
        .attention = { .batch = 1,
                       .seq_length = 256,
                       .heads = bases[base].heads,
                       .groups = bases[base].groups,
                       .head_dim = 16,
                       .dtype = LH_DTYPE_BF16,
                       .linear = bases[base].linear },
        .ranks = RANKS,
        .mask.causal = true,
        .pass = LH_PASS_BOTH,
        .gpus_per_node = bases[base].gpus_per_node,
    };

    set_pair(&p, "hierarchical_context_parallel_sizes", bases[base].hierarchy.first,
             bases[base].hierarchy.second);
    return p;
}

/* Sets the @i-th value of an option; values differ from any default of a schedule on four ranks.
 * Returns false behind the last. */
static bool
value_of(const LhOption *option, guint i, LhOptionValue *value)
{
    const uint32_t power = 1u << MIN(i, 16);
    uint32_t choices = 0;

    switch (option->type) {
    case LH_OPTION_FLAG:
        *value = (LhOptionValue){ .first = 1 };
        return i == 0;
    case LH_OPTION_CHOICE:
        while (option->choices[choices] != NULL)
            choices++;
        *value = (LhOptionValue){ .first = i + 1 };
        return i + 1 < choices;
    case LH_OPTION_COUNT:
        *value = (LhOptionValue){ .first = power };
        return power <= RANKS;
    case LH_OPTION_GRID:
    case LH_OPTION_SIZES:
        *value = (LhOptionValue){ power, RANKS / power };
        return power <= RANKS;
    }
    ck_abort_msg("%s has an unknown type", option->name);
}

/* Returns the program for @p without its parameters (they repeat the options), or the refusal.
 * Caller frees. */
static char *
outcome(const LhSchedule *schedule, const LhProgramParams *p)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhProgram) program = lh_program_new(schedule, p, &error);
    g_autoptr(GString) text = g_string_new(NULL);
    const char *placement;

    if (program == NULL || !lh_program_write(program, text, &error))
        return g_strdup(error->message);
    placement = strstr(text->str, "\"placement\"");
    ck_assert_ptr_nonnull(placement);
    return g_strdup(placement);
}

/* Whether some value of the option changes the outcome of a shape; @plain is the outcome without
 * it. */
static bool
changes(const LhSchedule *schedule, guint base, const char *plain, const LhOption *option)
{
    const LhProgramParams p = base_params(base);
    LhOptionValue value;

    for (guint i = 0; value_of(option, i, &value); i++) {
        LhProgramParams with = p;
        g_autofree char *changed = NULL;

        lh_option_set(&with, option, value);
        changed = outcome(schedule, &with);
        if (strcmp(plain, changed) != 0)
            return true;
    }
    return false;
}

/* Whether some value changes the outcome of some shape with this kind of attention. */
static bool
listens(const LhSchedule *schedule, bool linear, char *const *plain, const LhOption *option)
{
    for (guint base = 0; base < G_N_ELEMENTS(bases); base++) {
        if (bases[base].linear == linear && changes(schedule, base, plain[base], option))
            return true;
    }
    return false;
}

/* Whether a listed option has an effect with the other kind of attention only. Versions of
 * te-a2a differ in gathering o again, which gradients of linear attention do not need. */
static bool
is_of_other_kind(const LhSchedule *schedule, bool linear, const LhOption *option)
{
    if (!linear)
        return option->linear_only;
    return strcmp(schedule->name, "te-a2a") == 0 && strcmp(option->name, "te_version") == 0;
}

/* Compares a schedule, which may have been altered, with the lists of the original. */
static void
check_options(const LhSchedule *schedule, const LhSchedule *listed, bool linear)
{
    const LhOption *const *options = lh_schedule_options();
    char *plain[G_N_ELEMENTS(bases)];

    for (guint base = 0; base < G_N_ELEMENTS(bases); base++) {
        const LhProgramParams p = base_params(base);

        plain[base] = outcome(schedule, &p);
    }
    for (guint k = 0; options[k] != NULL; k++) {
        const bool wanted = lh_schedule_reads(listed, options[k]) &&
                            !is_of_other_kind(schedule, linear, options[k]);

        ck_assert_msg(listens(schedule, linear, plain, options[k]) == wanted,
                      "%s, %s attention: %s %s", schedule->name, linear ? "linear" : "softmax",
                      options[k]->name, wanted ? "changes nothing" : "changes something");
    }
    for (guint base = 0; base < G_N_ELEMENTS(bases); base++)
        g_free(plain[base]);
}

/* With each kind of attention it supports, a schedule depends on exactly the options that it
 * lists, even if it is given all of them: here the lists are replaced by one of all options. */
START_TEST(prove_option_lists_are_true)
{
    for (guint i = 0; lh_schedules[i] != NULL; i++) {
        LhSchedule open = *lh_schedules[i];

        open.options = lh_schedule_options();
        for (int linear = 0; linear < 2; linear++) {
            if (!lh_schedule_takes(lh_schedules[i], linear != 0))
                continue;
            check_options(lh_schedules[i], lh_schedules[i], linear != 0);
            if (test_takes_of(i, 11))
                check_options(&open, lh_schedules[i], linear != 0);
        }
    }
}
END_TEST

/* Not all lists are empty. */
START_TEST(prove_options_are_listed)
{
    const LhSchedule *ring = lh_schedule_find("ring", NULL);
    const LhSchedule *balanced = lh_schedule_find("dfa-balanced", NULL);

    ck_assert(!lh_schedule_reads(ring, option_named("published_code")));
    ck_assert(lh_schedule_reads(ring, option_named("no_overlap")));
    ck_assert(lh_schedule_reads(ring, option_named("gradient_wire")));
    ck_assert(!lh_schedule_reads(ring, option_named("grid")));
    ck_assert(lh_schedule_reads(balanced, option_named("published_code")));
}
END_TEST

/* Every option is a field of the scenario, occurs once, and is listed once by some schedule. */
START_TEST(prove_options_are_those_of_the_scenario)
{
    const LhOption *const *options = lh_schedule_options();

    for (guint k = 0; options[k] != NULL; k++) {
        const LhField *field = NULL;
        guint fields = 0;

        for (const LhField *f = lh_scenario_options(); f->name != NULL; f++) {
            if (strcmp(f->name, options[k]->name) != 0)
                continue;
            field = f;
            fields++;
        }
        ck_assert_msg(fields == 1, "%s", options[k]->name);
        ck_assert_int_eq(lh_setting_is_flag(field), options[k]->type == LH_OPTION_FLAG);
        for (guint other = 0; other < k; other++)
            ck_assert_str_ne(options[other]->name, options[k]->name);
    }
    for (guint i = 0; lh_schedules[i] != NULL; i++) {
        const LhOption *const *own = lh_schedules[i]->options;

        for (guint k = 0; own != NULL && own[k] != NULL; k++) {
            for (guint other = 0; other < k; other++)
                ck_assert_ptr_ne(own[other], own[k]);
        }
    }
}
END_TEST

/* The decay belongs to no schedule: it changes every program of linear attention and no other. */
START_TEST(prove_decay_is_of_linear_attention)
{
    for (guint i = 0; lh_schedules[i] != NULL; i++) {
        for (guint base = 0; base < 4; base += 2) {
            LhProgramParams p = base_params(base);
            g_autofree char *plain = NULL;
            g_autofree char *decaying = NULL;

            if (!lh_schedule_takes(lh_schedules[i], p.attention.linear))
                continue;
            plain = outcome(lh_schedules[i], &p);
            p.attention.decay = 0.5;
            decaying = outcome(lh_schedules[i], &p);
            ck_assert_msg((strcmp(plain, decaying) != 0) == p.attention.linear, "%s",
                          lh_schedules[i]->name);
        }
    }
}
END_TEST

/* A schedule refuses the masks that it declares unsupported, for the declared reason, and no
 * others. */
START_TEST(prove_mask_lists_are_true)
{
    static const uint64_t ends[] = { 100, 256 };
    static const struct {
        LhMaskRule mask;
        unsigned support;
        const char *refusal; /* text before the reason */
    } masks[] = {
        { { .causal = false }, 0, "" },
        { { .causal = true, .window = 50 },
          LH_MASKS_WINDOW,
          "it does not support sliding windows: " },
        { { .causal = true, .document_ends = ends, .documents_count = 2 },
          LH_MASKS_DOCUMENTS,
          "it does not support packed documents: " },
    };

    for (guint i = 0; lh_schedules[i] != NULL; i++) {
        const LhSchedule *schedule = lh_schedules[i];

        if (!lh_schedule_takes(schedule, false))
            continue;
        for (guint k = 0; k < G_N_ELEMENTS(masks); k++) {
            LhProgramParams p = base_params(0);
            const bool taken = masks[k].support == 0 ? schedule->full_reason == NULL
                                                     : (schedule->masks & masks[k].support) != 0;
            const char *reason =
                masks[k].support == 0 ? schedule->full_reason : schedule->masks_reason;
            g_autoptr(GError) error = NULL;
            g_autoptr(LhProgram) program = NULL;
            g_autofree char *expected = g_strconcat(masks[k].refusal, reason, NULL);

            p.mask = masks[k].mask;
            program = lh_program_new(schedule, &p, &error);
            ck_assert_msg((program != NULL) == taken, "%s: %s", schedule->name,
                          error != NULL ? error->message : "it takes the mask");
            if (!taken)
                ck_assert_str_eq(error->message, expected);
        }
    }
}
END_TEST

/* --- proving ------------------------------------------------------------------------------------
 */

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
    g_autoptr(GPtrArray) schedules = g_ptr_array_new();
    g_autoptr(GPtrArray) proven = NULL;
    g_autoptr(GError) error = NULL;

    g_array_append_vals(numbers, ranks, count);
    g_ptr_array_add(schedules, (gpointer)lh_schedule_find(schedule, NULL));
    proven = lh_prove(&c->params, schedules, numbers, &error);
    ck_assert_msg(proven != NULL, "%s", error != NULL ? error->message : schedule);
    return g_ptr_array_steal_index(proven, 0);
}

/* Every schedule is proven for some numbers of ranks, without further options. */
START_TEST(prove_proves_every_schedule)
{
    static const uint64_t ranks[] = { 1, 2, 3, 4, 6, 8 };
    const guint ranks_count = test_is_short() ? 4 : G_N_ELEMENTS(ranks);
    Case c;

    case_init(&c, 1u << LH_PASS_BOTH);
    for (guint i = 0; lh_schedules[i] != NULL; i++) {
        g_autoptr(LhProven) proven = prove(&c, lh_schedules[i]->name, ranks, ranks_count);

        ck_assert_msg(proven->findings->len == 0, "%s: %s", proven->name,
                      proven->findings->len == 0
                          ? ""
                          : g_array_index(proven->findings, LhProofFinding, 0).message);
        ck_assert_uint_ge(proven->proven->len, 3);
        ck_assert_uint_eq(proven->proven->len + proven->refused->len, ranks_count);
        ck_assert_uint_gt(proven->programs, proven->proven->len); /* masks and options were varied
                                                                   * too */
        ck_assert((proven->refusals > 0) == (proven->refusal != NULL));
    }
    case_clear(&c);
}
END_TEST

/* Given values are not varied: one program per pass. */
START_TEST(prove_takes_what_is_told)
{
    static const uint64_t ranks[] = { 4 };
    g_autoptr(LhProven) proven = NULL;
    Case c;

    case_init(&c, 1u << LH_PASS_FWD | 1u << LH_PASS_BWD);
    set(c.scenario, "--mask", "causal");
    set(c.scenario, "--no-overlap", NULL);
    set(c.scenario, "--gradient-wire", "fp32");
    set(c.scenario, "--num-attention-heads", "8");
    set(c.scenario, "--micro-batch-size", "1");
    set(c.scenario, "--dtype", "bf16");
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

/* Every schedule has a description, closed forms of its costs, and a section of the
 * documentation. */
START_TEST(prove_every_schedule_is_described)
{
    g_autofree char *path = g_build_filename(g_getenv("LONGHAUL_SOURCE_DIR"), "docs", "reference",
                                             "schedules.md", NULL);
    g_autofree char *docs = NULL;

    ck_assert(g_file_get_contents(path, &docs, NULL, NULL));
    for (guint i = 0; lh_schedules[i] != NULL; i++) {
        const LhSchedule *s = lh_schedules[i];
        g_autofree char *section = g_strdup_printf("# %s\n", s->name);
        g_autofree char *page =
            g_strdup_printf("<!-- longhaul show %s --format about -->", s->name);

        ck_assert_msg(s->closed.bytes_sent != NULL && s->closed.flops != NULL &&
                          s->closed.peak_bytes != NULL &&
                          (s->closed.idle_unit != NULL || s->closed.idle_flops != NULL),
                      "%s: a closed form is missing", s->name);
        ck_assert_msg(strlen(s->summary) > 20 && strlen(s->details) > 200, "%s", s->name);
        ck_assert_msg(s->masks_reason != NULL || s->masks == LH_MASKS_ALL, "%s", s->name);
        ck_assert_msg(strstr(docs, section) != NULL && strstr(docs, page) != NULL,
                      "%s: no section in docs/reference/schedules.md", s->name);
    }
}
END_TEST

/* The published code of the balanced schedule loses blocks for odd numbers of ranks: requesting
 * it reports that. */
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

LH_TEST_MAIN("prove", prove_option_lists_are_true, prove_options_are_listed,
             prove_options_are_those_of_the_scenario, prove_decay_is_of_linear_attention,
             prove_mask_lists_are_true, prove_proves_every_schedule, prove_takes_what_is_told,
             prove_counts_refusals, prove_every_schedule_is_described,
             prove_reports_what_is_not_proven)
