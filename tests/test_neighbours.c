/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nearest legal values that refusals suggest are legal: for random wrong values, the suggested
 * ones are distinct and not 0, and replacing the wrong value by any of them removes that refusal.
 */
#include "base/error.h"
#include "run_tests.h"
#include "scenario/setting.h"
#include "scenario/setup.h"
#include "scenario/step/setup_step.h"

#include <string.h>

#define SEEDS 1700

static const char mark[] = "nearest legal ";

/* The option that suggested values belong to, by the words after the mark; without a match the
 * message begins with the option. */
static const struct {
    const char *words, *option;
} about[] = {
    { "length", "--seq-length" },
    { "sequence lengths", "--seq-length" },
    { "numbers of stages", "--pipeline-model-parallel-size" },
    { "tensor-parallel sizes", "--tensor-model-parallel-size" },
    { "numbers of micro-batches", "--num-micro-batches" },
    { "numbers of groups", "--num-query-groups" },
    { "numbers of ranks", "--ranks" },
    { "numbers of blocks", "--scan-blocks" },
    { "grids", "--grid" },
    { "sizes", "--inner-ring" },
};

/* Questions; one or two of their values are drawn at random. */
static const struct {
    const char *options;
    const char *drawn[3];
} templates[] = {
    { "--model llama-7b --seq-length 4096 --schedule ring", { "--ranks" } },
    { "--model llama-7b --schedule zigzag --ranks 8", { "--seq-length" } },
    { "--model llama-3-8b --schedule ulysses --seq-length 1M", { "--ranks" } },
    { "--model llama-3-8b --schedule te-a2a --seq-length 1M", { "--ranks" } },
    { "--num-attention-heads 24 --ranks 4 --schedule ring", { "--num-query-groups" } },
    { "--model llama-3-8b --ranks 4 --schedule ring", { "--num-attention-heads" } },
    { "--num-attention-heads 24 --ranks 4 --schedule allgather-kv",
      { "--num-query-groups", "--gather-groups" } },
    { "--num-attention-heads 24 --num-query-groups 24 --ranks 4 --schedule zeco",
      { "--scan-blocks" } },
    { "--model llama-7b --ranks 24 --seq-length 48K --schedule double-ring", { "--inner-ring" } },
    { "--model llama-7b --ranks 24 --seq-length 48K --schedule ring", { "--data-parallel-size" } },
    { "--step --model gpt3-125m --ranks 24 --seq-length 48K --schedule ring",
      { "--pipeline-model-parallel-size" } },
    { "--step --model gpt3-125m --ranks 24 --seq-length 48K --schedule ring",
      { "--tensor-model-parallel-size" } },
    { "--step --model llama-3-8b --ranks 48 --seq-length 48K --schedule ring",
      { "--tensor-model-parallel-size", "--pipeline-model-parallel-size" } },
    { "--step --model gpt3-125m --ranks 24 --seq-length 48K --schedule ring",
      { "--tensor-model-parallel-size", "--context-parallel-size" } },
    { "--step --model gpt3-125m --ranks 24 --seq-length 48K --schedule ring",
      { "--context-parallel-size" } },
    { "--step --model gpt3-125m --ranks 24 --seq-length 48K --schedule ring "
      "--pipeline-model-parallel-size 2",
      { "--num-layers-per-virtual-pipeline-stage", "--num-micro-batches" } },
    { "--step --model mixtral-8x7b --ranks 8 --schedule ring",
      { "--tensor-model-parallel-size", "--seq-length" } },
};

static void
set_option(LhScenario *s, const char *option, const char *value)
{
    const LhField *field = lh_setting_find(lh_scenario_options(), option);
    g_autoptr(GError) error = NULL;

    ck_assert_msg(field != NULL, "%s", option);
    if (lh_scenario_has(s, field->name))
        lh_scenario_forget(s, field->name);
    ck_assert_msg(lh_scenario_set(s, field, value, &error), "%s %s", option, value);
}

static LhScenario *
scenario_of(const char *options)
{
    LhScenario *s = lh_scenario_new();
    g_auto(GStrv) words = g_strsplit(options, " ", -1);

    for (guint i = 0; words[i] != NULL; i++) {
        const bool flag = words[i + 1] == NULL || g_str_has_prefix(words[i + 1], "--");

        set_option(s, words[i], flag ? NULL : words[i + 1]);
        i += !flag;
    }
    return s;
}

/* Returns the reason that there is no such program; NULL if there is one. Caller frees. */
static char *
refusal_of(const LhScenario *s)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhSetup) setup = lh_setup_new(s, &error);
    g_autoptr(LhProgram) program = NULL;

    if (setup != NULL)
        program = lh_setup_program(setup, g_ptr_array_index(setup->schedules, 0), &error);
    return program != NULL ? NULL : g_strdup(error->message);
}

/* Returns the message without numbers and the names after the mark, to compare kinds of refusal.
 * Caller frees. */
static char *
family_of(const char *refusal)
{
    GString *text = g_string_new(NULL);

    for (const char *at = refusal; *at != '\0' && !g_str_has_prefix(at, mark); at++) {
        if (!g_ascii_isdigit(*at))
            g_string_append_c(text, *at);
    }
    return g_string_free(text, FALSE);
}

static const char *
option_of(const char *refusal, const char *named, char *buffer, gsize size)
{
    if (g_str_has_prefix(refusal, "--")) {
        g_strlcpy(buffer, refusal, MIN(size, strcspn(refusal, ":") + 1));
        return buffer;
    }
    for (guint i = 0; i < G_N_ELEMENTS(about); i++) {
        if (g_str_has_prefix(named, about[i].words) &&
            !g_ascii_isalpha(named[strlen(about[i].words)]))
            return about[i].option;
    }
    return strstr(refusal, "gathered") != NULL ? "--gather-groups" : "--seq-length";
}

static void
check_refusal(const LhScenario *wrong, const char *refusal)
{
    const char *named = strstr(refusal, mark) + strlen(mark);
    const char *values = strchr(named, ':') + 2;
    g_autofree char *list = g_strndup(values, strcspn(values, ";"));
    g_auto(GStrv) each = g_strsplit(list, ", ", -1);
    g_autofree char *family = family_of(refusal);
    char buffer[64];
    const char *option = option_of(refusal, named, buffer, sizeof(buffer));

    ck_assert_msg(each[0] != NULL && strcmp(each[0], "none") != 0, "%s", refusal);
    for (guint i = 0; each[i] != NULL; i++) {
        g_autoptr(LhScenario) s = lh_scenario_copy(wrong);
        g_autofree char *left = NULL, *left_family = NULL;

        ck_assert_msg(strcmp(each[i], "0") != 0, "%s", refusal);
        ck_assert_msg(i == 0 || strcmp(each[i], each[i - 1]) != 0, "%s", refusal);
        set_option(s, option, each[i]);
        left = refusal_of(s);
        left_family = left != NULL ? family_of(left) : NULL;
        ck_assert_msg(g_strcmp0(left_family, family) != 0, "%s %s after \"%s\": %s", option,
                      each[i], refusal, left);
    }
}

START_TEST(neighbours_are_legal)
{
    g_autoptr(GHashTable) families = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    for (guint seed = 0; seed < SEEDS; seed++) {
        const guint t = seed % G_N_ELEMENTS(templates);
        g_autoptr(GRand) random = g_rand_new_with_seed(seed);
        g_autoptr(LhScenario) s = scenario_of(templates[t].options);
        g_autofree char *refusal = NULL;

        for (guint i = 0; i < 3 && templates[t].drawn[i] != NULL; i++) {
            const bool length = strcmp(templates[t].drawn[i], "--seq-length") == 0;
            g_autofree char *value =
                g_strdup_printf("%d", g_rand_int_range(random, 1, length ? 100000 : 41));

            set_option(s, templates[t].drawn[i], value);
        }
        refusal = refusal_of(s);
        if (refusal == NULL || strstr(refusal, mark) == NULL)
            continue;
        check_refusal(s, refusal);
        g_hash_table_add(families, family_of(refusal));
    }
    ck_assert_uint_gt(g_hash_table_size(families), 12);
}
END_TEST

LH_TEST_MAIN("neighbours", neighbours_are_legal)
