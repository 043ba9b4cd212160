/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs of schedules, for models with layers of linear and of softmax attention: their names, and
 * that no row depends on the order in which schedules are named.
 */
#include "compare/compare.h"
#include "data_files.h"
#include "scenario/schedule_pairs.h"
#include "scenario/setting.h"
#include "sched/pair.h"

#include "base/error.h"

#include <string.h>

#define ORDERS 12

static void
set(LhScenario *scenario, const char *option, const char *text)
{
    const LhField *field = lh_setting_find(lh_scenario_options(), option);

    ck_assert(lh_scenario_set(scenario, field, text, NULL));
}

/* A step on four GPUs of a model with both kinds of attention; two GPUs, or @context, are
 * context-parallel. */
static LhScenario *
hybrid_step(const char *context)
{
    LhScenario *s = lh_scenario_new();

    set(s, "--step", NULL);
    set(s, "--cluster", "hgx-h100:1");
    set(s, "--ranks", "4");
    set(s, "--model", "minimax-text-01");
    set(s, "--seq-length", "4K");
    set(s, "--context-parallel-size", context);
    return s;
}

static LhSetup *
setup_of(const LhScenario *scenario)
{
    g_autoptr(GError) error = NULL;
    LhSetup *setup = lh_setup_new(scenario, &error);

    ck_assert_msg(setup != NULL, "%s", error != NULL ? error->message : "");
    return setup;
}

static const LhSchedule *
schedule_at(const LhSetup *setup, guint index)
{
    return g_ptr_array_index(setup->schedules, index);
}

/* Lists the candidates, "a, b, ...". */
static char *
names_of(const LhSetup *setup)
{
    GString *names = g_string_new(NULL);

    for (guint i = 0; i < setup->schedules->len; i++)
        g_string_append_printf(names, "%s%s", i > 0 ? ", " : "", schedule_at(setup, i)->name);
    return g_string_free(names, FALSE);
}

/* ---- names ---- */

START_TEST(pairs_are_found_by_name)
{
    static const char *const names[] = { "lasp2 + ring", "lasp2+ring", "ring+lasp2",
                                         " ring +  lasp2 " };
    const LhSchedule *pair = lh_schedule_find(names[0], NULL);

    ck_assert_ptr_nonnull(pair);
    ck_assert_str_eq(pair->name, "lasp2 + ring");
    ck_assert_str_eq(lh_schedule_side(pair, true)->name, "lasp2");
    ck_assert_str_eq(lh_schedule_side(pair, false)->name, "ring");
    ck_assert(lh_schedule_takes(pair, true) && lh_schedule_takes(pair, false));
    for (guint i = 0; i < G_N_ELEMENTS(names); i++)
        ck_assert_ptr_eq(lh_schedule_find(names[i], NULL), pair);
    /* Both support both kinds: the first one is for linear attention. */
    ck_assert_str_eq(lh_schedule_find("te-a2a+ulysses", NULL)->name, "te-a2a + ulysses");
    ck_assert_str_eq(lh_schedule_find("ulysses+te-a2a", NULL)->name, "ulysses + te-a2a");
    ck_assert_str_eq(lh_schedule_find("ulysses+ulysses", NULL)->name, "ulysses");
}
END_TEST

START_TEST(pairs_read_the_options_of_both)
{
    const LhSchedule *linear = lh_schedule_find("zeco", NULL);

    for (guint i = 0; lh_schedules[i] != NULL; i++) {
        const LhOption *const *options = lh_schedule_options();
        const LhSchedule *pair;

        if (!lh_schedule_takes(lh_schedules[i], false))
            continue;
        pair = lh_schedule_pair(linear, lh_schedules[i]);
        for (; *options != NULL; options++)
            ck_assert_int_eq(lh_schedule_reads(pair, *options),
                             lh_schedule_reads(linear, *options) ||
                                 lh_schedule_reads(lh_schedules[i], *options));
    }
}
END_TEST

START_TEST(pairs_that_are_none_are_refused)
{
    static const struct {
        const char *name, *words;
    } wrong[] = {
        { "ring+zigzag", "both support only softmax attention" },
        { "lasp2+zeco", "both support only linear attention" },
        { "lasp2+ringg", "did you mean \"ring\"" },
        { "+ring", "unknown schedule \"\"" },
        { "lasp2+ring+zigzag", "more than two schedules" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autoptr(GError) error = NULL;

        ck_assert_ptr_null(lh_schedule_find(wrong[i].name, &error));
        ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_INPUT));
        ck_assert_msg(strstr(error->message, wrong[i].words) != NULL, "%s", error->message);
    }
}
END_TEST

/* ---- candidates ---- */

START_TEST(pairs_are_those_of_what_is_named)
{
    static const struct {
        const char *names[3], *pairs;
    } cases[] = {
        { { "ring", "lasp2" }, "lasp2 + ring" },
        { { "ring", "lasp2", "zeco" }, "lasp2 + ring, zeco + ring" },
        { { "ulysses" }, "ulysses" },
        { { "ulysses", "lasp" }, "ulysses, lasp + ulysses" },
        { { "zeco+ring", "lasp2", "dfa-balanced" }, "lasp2 + dfa-balanced, zeco + ring" },
        /* Schedules that were not named are added if they place tokens alike. */
        { { "ring" }, "ulysses + ring, lasp + ring, lasp2 + ring, zeco + ring" },
        { { "zigzag" }, "te-a2a + zigzag" },
        { { "striped" }, "lasp2 + striped" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(LhScenario) s = hybrid_step("2");
        g_autoptr(LhSetup) setup = NULL;
        g_autofree char *names = NULL;

        for (guint k = 0; k < G_N_ELEMENTS(cases[i].names) && cases[i].names[k] != NULL; k++)
            set(s, "--schedule", cases[i].names[k]);
        setup = setup_of(s);
        names = names_of(setup);
        ck_assert_str_eq(names, cases[i].pairs);
    }
}
END_TEST

/* Without a name the candidates are all pairs that a step can have, and each has a program. */
START_TEST(pairs_of_no_name_are_all)
{
    g_autoptr(LhScenario) s = hybrid_step("2");
    g_autoptr(LhSetup) setup = setup_of(s);
    guint softmax = 0, linear = 0;

    for (guint i = 0; lh_schedules[i] != NULL; i++) {
        softmax += lh_schedule_takes(lh_schedules[i], false);
        linear += lh_schedule_takes(lh_schedules[i], true);
    }
    ck_assert_uint_gt(setup->schedules->len, 20);
    ck_assert_uint_ge(setup->schedules->len + setup->left_out, softmax * linear / 2);
    ck_assert_uint_le(setup->schedules->len + setup->left_out, softmax * linear);
    for (guint i = 0; i < setup->schedules->len; i++)
        ck_assert_int_eq(lh_schedule_side(schedule_at(setup, i), true)->placement,
                         lh_schedule_side(schedule_at(setup, i), false)->placement);
}
END_TEST

/* Without context parallelism one schedule represents all that are not named. */
START_TEST(pairs_of_one_rank_are_few)
{
    g_autoptr(LhScenario) s = hybrid_step("1");
    g_autoptr(LhSetup) setup = NULL;
    g_autofree char *names = NULL;

    set(s, "--schedule", "ring");
    setup = setup_of(s);
    names = names_of(setup);
    ck_assert_str_eq(names, "ulysses + ring");
}
END_TEST

/* Names in @order, a permutation given by a seed. */
static LhScenario *
in_order(const char *const *names, guint count, uint32_t seed)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(seed);
    LhScenario *s = hybrid_step("2");
    g_autofree const char **order = g_memdup2(names, count * sizeof(*names));

    for (guint i = count - 1; i > 0; i--) {
        const guint k = (guint)g_rand_int_range(random, 0, (gint32)i + 1);
        const char *swapped = order[i];

        order[i] = order[k];
        order[k] = swapped;
    }
    for (guint i = 0; i < count; i++)
        set(s, "--schedule", order[i]);
    return s;
}

START_TEST(pairs_do_not_depend_on_the_order_of_names)
{
    static const char *const names[] = { "ring", "zeco", "dfa-unbalanced", "lasp", "ulysses" };
    g_autoptr(LhScenario) first = in_order(names, G_N_ELEMENTS(names), 0);
    g_autoptr(LhSetup) expected = setup_of(first);
    g_autofree char *those = names_of(expected);

    for (uint32_t seed = 1; seed < ORDERS; seed++) {
        g_autoptr(LhScenario) s = in_order(names, G_N_ELEMENTS(names), seed);
        g_autoptr(LhSetup) setup = setup_of(s);
        g_autofree char *found = names_of(setup);

        ck_assert_str_eq(found, those);
    }
}
END_TEST

/* A row is the same whether its pair is asked for alone or among others. */
START_TEST(pairs_are_what_they_are_called)
{
    g_autoptr(LhScenario) s = hybrid_step("2");
    g_autoptr(LhSetup) setup = NULL;
    g_autoptr(LhComparison) all = NULL;
    const LhCompareOptions options = { .task.jobs = 1, .no_bound = true };

    set(s, "--schedule", "zeco");
    set(s, "--schedule", "ring");
    set(s, "--schedule", "lasp2");
    set(s, "--schedule", "dfa-balanced");
    setup = setup_of(s);
    all = lh_compare(setup, &options, NULL);
    ck_assert_uint_eq(all->rows->len, 4);
    for (guint i = 0; i < all->rows->len; i++) {
        const LhCompareRow *row = g_ptr_array_index(all->rows, i);
        g_autoptr(LhScenario) one = hybrid_step("2");
        g_autoptr(LhSetup) alone = NULL;
        g_autoptr(LhCompareRow) again = NULL;

        set(one, "--schedule", row->name);
        alone = setup_of(one);
        ck_assert_uint_eq(alone->schedules->len, 1);
        again = lh_compare_run(alone, schedule_at(alone, 0), NULL);
        ck_assert_str_eq(again->name, row->name);
        ck_assert_ptr_nonnull(row->result);
        ck_assert_int_eq(again->result->makespan_ps, row->result->makespan_ps);
        ck_assert_uint_eq(again->step.peak_bytes, row->step.peak_bytes);
    }
}
END_TEST

/* ---- rejected pairs ---- */

static void
check_refused(const char *schedule, const char *model, bool step, const char *words)
{
    g_autoptr(LhScenario) s = lh_scenario_new();
    g_autoptr(LhSetup) setup = NULL;
    g_autoptr(GError) error = NULL;

    if (step)
        set(s, "--step", NULL);
    set(s, "--ranks", "4");
    set(s, "--model", model);
    set(s, "--schedule", schedule);
    setup = lh_setup_new(s, &error);
    ck_assert_ptr_null(setup);
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_INPUT));
    ck_assert_msg(strstr(error->message, words) != NULL, "%s", error->message);
}

START_TEST(pairs_of_one_kind_are_refused)
{
    check_refused("lasp2+ring", "llama-7b", true,
                  "all layers of llama-7b have softmax attention: "
                  "give ring");
    check_refused("lasp2+ring", "tnl-1b", true, "linear attention: give lasp2");
    check_refused("ring+lasp2", "minimax-text-01", false, "this is one attention module");
}
END_TEST

/* ---- a single pair ---- */

static void
check_joined(const char *first, const char *second, const char *words)
{
    g_autoptr(LhScenario) s = hybrid_step("2");
    g_autoptr(GError) error = NULL;
    bool joined;

    set(s, "--schedule", first);
    set(s, "--schedule", second);
    joined = lh_pairs_join(s, &error);
    ck_assert_msg(joined == (error == NULL), "%s", words);
    if (joined)
        ck_assert_str_eq(g_ptr_array_index(s->schedule, 0), words);
    else
        ck_assert_msg(strstr(error->message, words) != NULL, "%s", error->message);
}

START_TEST(pairs_are_joined_where_one_is_asked_for)
{
    check_joined("ring", "lasp2", "lasp2 + ring");
    check_joined("lasp2", "ring", "lasp2 + ring");
    check_joined("ulysses", "lasp2", "lasp2 + ulysses");
    check_joined("ulysses", "te-a2a", "give ulysses + te-a2a or te-a2a + ulysses");
    check_joined("ring", "zigzag", "both support only softmax attention");
    check_joined("lasp2+ring", "zigzag", "allowed: one schedule, or one pair");
    check_joined("rings", "lasp2", "did you mean \"ring\"");
}
END_TEST

START_TEST(pairs_of_one_name_are_told_where_one_is_asked_for)
{
    g_autoptr(LhScenario) s = hybrid_step("2");
    g_autoptr(LhSetup) setup = NULL;
    g_autoptr(GError) error = NULL;

    set(s, "--schedule", "ring");
    ck_assert(lh_pairs_join(s, NULL));
    setup = setup_of(s);
    ck_assert(!lh_setup_check_one(setup, &error));
    ck_assert_ptr_nonnull(strstr(error->message, "name one of these: ulysses + ring, lasp + ring"));
}
END_TEST

/* Lengths are rounded so that both schedules of a pair can split them. */
START_TEST(pairs_round_lengths_for_both)
{
    g_autoptr(LhScenario) s = hybrid_step("2");
    g_autoptr(LhSetup) setup = NULL;

    set(s, "--schedule", "te-a2a+zigzag");
    set(s, "--seq-length", "4099");
    set(s, "--round-seq-length", NULL);
    setup = setup_of(s);
    ck_assert_uint_eq(setup->params.attention.seq_length % 4, 0);
}
END_TEST

LH_TEST_MAIN("pairs", pairs_are_found_by_name, pairs_read_the_options_of_both,
             pairs_that_are_none_are_refused, pairs_are_those_of_what_is_named,
             pairs_of_no_name_are_all, pairs_of_one_rank_are_few,
             pairs_do_not_depend_on_the_order_of_names, pairs_are_what_they_are_called,
             pairs_of_one_kind_are_refused, pairs_are_joined_where_one_is_asked_for,
             pairs_of_one_name_are_told_where_one_is_asked_for, pairs_round_lengths_for_both)
