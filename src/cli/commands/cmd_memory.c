/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longhaul memory: how much memory a case needs, without simulating it.
 */
#include "cli/command.h"
#include "proof/proof_cases.h"
#include "proof/proven.h"
#include "report/text/describe.h"
#include "report/text/describe_memory.h"

#include <stddef.h>

typedef struct {
    LhOutputOptions to;
    char *from_config;
    GPtrArray *set; /* of char * */
    bool no_changes;
} MemoryOptions;

static const LhField memory_options[] = {
    LH_OPTION_FORMAT(MemoryOptions, to),
    LH_OPTION_OUTPUT(MemoryOptions, to),
    LH_OPTION_FROM_CONFIG(MemoryOptions, from_config,
                          "Everything about the training step is read from it."),
    LH_OPTION_SET(MemoryOptions, set),
    { .name = "no-changes",
      .category = LH_ABOUT_OUTPUT,
      .type = LH_FIELD_BOOL,
      .offset = offsetof(MemoryOptions, no_changes),
      .flags = LH_COMMAND_SHOWN,
      .description = "Leave out what other options would save." },
    { .name = NULL },
};

static void
print_part(LhTable *table, LhFormat format, GString *out)
{
    if (out->len > 0)
        g_string_append_c(out, '\n');
    lh_table_print(table, format, out);
    lh_table_free(table);
}

static void
print_text(const LhSetup *setup, const LhMemoryNeed *need, LhFormat format, GString *out)
{
    gsize from = out->len;

    lh_describe_case(setup, out);
    lh_table_words(format, out, from);
    print_part(lh_describe_stage_needs(need), format, out);
    if (need->reliefs != NULL)
        print_part(lh_describe_changes(need), format, out);
    g_string_append_c(out, '\n');
    from = out->len;
    lh_describe_memory_need(setup, need, out);
    lh_table_words(format, out, from);
}

static LhAnswer
run_memory(const LhCommandLine *line, GError **error)
{
    const MemoryOptions *o = line->options;
    const LhFormat format = (LhFormat)o->to.format;
    const LhStamp stamp = lh_command_stamp(line);
    g_autoptr(LhSetup) setup = NULL;
    g_autoptr(LhMemoryNeed) need = NULL;
    g_autoptr(GString) out = g_string_new(NULL);

    if (!lh_command_check_program(line, error))
        return LH_ANSWER_FAILED;
    lh_command_warn_config(line);
    setup = lh_setup_new(line->scenario, error);
    if (setup == NULL || !lh_setup_check_one(setup, error) ||
        !lh_prove_setup(setup, LH_PROVE_TO_SIMULATE, error))
        return LH_ANSWER_FAILED;
    need = lh_memory_need(setup, !o->no_changes && format != LH_FORMAT_CSV, NULL, error);
    if (need == NULL)
        return LH_ANSWER_FAILED;
    if (format == LH_FORMAT_JSON)
        lh_memory_json(setup, need, &stamp, out);
    else if (format == LH_FORMAT_CSV)
        print_part(lh_describe_stage_needs(need), format, out);
    else
        print_text(setup, need, format, out);
    if (!lh_command_write(&o->to, out, error))
        return LH_ANSWER_FAILED;
    return lh_memory_need_fits(need) ? LH_ANSWER_YES : LH_ANSWER_NO;
}

const LhCommand lh_command_memory = {
    .name = "memory",
    .arguments = "[SCENARIO] [OPTIONS]",
    .summary = "Compute the memory that a case needs, and what other options would save.",
    .details = "Computes the peak of every pipeline stage by category, to the byte of what sim\n"
               "finds, without simulating time. Exit status 1 if it does not fit.\n\n"
               "  longhaul memory step-7b\n"
               "  longhaul memory --step --model llama-3-8b --cluster hgx-h100 --seq-length 1M \\\n"
               "      --schedule zigzag --checkpoint layer --loss chunked\n",
    .scenario = true,
    .one_program = true,
    .ignores = LH_SCENARIO_OF_SIMULATION | LH_SCENARIO_OF_COLLECTIVES | LH_SCENARIO_OF_CHANCE,
    .config_parts = LH_CONFIG_QUESTION | LH_CONFIG_WAY | LH_CONFIG_SCHEDULE,
    .common = { "--schedule", "--model", "--cluster", "--seq-length", "--ranks", "--step",
                "--checkpoint", "--loss", "--format", "--output" },
    .options = memory_options,
    .options_size = sizeof(MemoryOptions),
    .run = run_memory,
};
