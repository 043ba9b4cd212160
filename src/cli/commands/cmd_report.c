/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longhaul report: writes a comparison or a saved result as a page.
 */
#include "base/error.h"
#include "base/files/file_uses.h"
#include "cli/compare_live.h"
#include "cli/compare_page.h"
#include "cli/options.h"
#include "cli/outputs.h"
#include "cli/saved.h"
#include "proof/run_time_estimate.h"
#include "scenario/seq_length_rounding.h"
#include "scenario/setting.h"

#include <inttypes.h>
#include <stddef.h>

typedef struct {
    char *output;
    char *from_config;
    GPtrArray *set; /* of char * */
    char *from;
    char *ranks_shown;
    uint64_t jobs;
    LhTime max_work_ps;
} ReportOptions;

static const LhField report_options[] = {
    { .name = "output",
      .category = LH_ABOUT_OUTPUT,
      .type = LH_FIELD_STRING,
      .offset = offsetof(ReportOptions, output),
      .flags = LH_FIELD_WRITTEN,
      .min = 1,
      .max = -1,
      .placeholder = "FILE",
      .names = "files",
      .description = "File to write, .html or .pdf." },
    LH_OPTION_FROM_CONFIG(
        ReportOptions, from_config,
        "Everything about the training step except the schedule is read from it."),
    LH_OPTION_SET(ReportOptions, set),
    { .name = "from",
      .category = LH_ABOUT_INPUT,
      .type = LH_FIELD_STRING,
      .offset = offsetof(ReportOptions, from),
      .min = 1,
      .max = -1,
      .placeholder = "RESULT",
      .names = "files",
      .description = "Show a saved result, a .json file of compare, plan, sweep or validate, "
                     "instead of a comparison." },
    LH_OPTION_RANKS_SHOWN(ReportOptions, ranks_shown),
    LH_OPTION_JOBS(ReportOptions, jobs, "Schedules to simulate"),
    LH_OPTION_MAX_WORK(ReportOptions, max_work_ps),
    { .name = NULL },
};

static bool
check_output(const ReportOptions *o, GError **error)
{
    if (o->output != NULL && !g_str_equal(o->output, "-"))
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                "longhaul report needs --output FILE, the .html or .pdf file to write");
    return false;
}

/* --- a comparison -------------------------------------------------------------------------------
 */

static LhAnswer
compare(const LhCommandLine *line, GError **error)
{
    const ReportOptions *o = line->options;
    const LhComparePage page = { .path = o->output,
                                 .ranks_shown = o->ranks_shown,
                                 .max_work_ps = o->max_work_ps,
                                 .jobs = (guint)o->jobs };
    g_autoptr(LhSetup) setup = lh_setup_new(line->scenario, error);
    g_autoptr(LhComparison) comparison = NULL;
    double seconds;

    lh_command_warn_config(line);
    if (setup == NULL || !lh_compare_page_check(&page, "--output", setup, error) ||
        !lh_prove_setup(setup, LH_PROVE_TO_SIMULATE, error) || !lh_seq_length_check(setup, error))
        return LH_ANSWER_FAILED;
    seconds = lh_run_time_compare(setup);
    if (!lh_run_time_check(seconds, o->max_work_ps, error))
        return LH_ANSWER_FAILED;
    comparison =
        lh_compare_live(setup, &(LhCompareOptions){ .task.jobs = (guint)o->jobs }, seconds, error);
    if (comparison == NULL || !lh_compare_live_check(comparison, error) ||
        !lh_compare_page_write(line, setup, comparison, &page, error))
        return LH_ANSWER_FAILED;
    return comparison->fit_count > 0 ? LH_ANSWER_YES : LH_ANSWER_NO;
}

/* --- a saved result -----------------------------------------------------------------------------
 */

/* Sets an option of the command that made the result to @value (NULL: unchanged), if it has that
 * option. */
static bool
set(const LhCommandLine *again, const char *option, const char *value, GError **error)
{
    const LhField *field = lh_setting_find(again->command->options, option);

    if (value == NULL)
        return true;
    if (field != NULL)
        return lh_setting_parse(field, value, again->options, error);
    g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "%s has no effect on a result of %s; remove it",
                option, again->command->name);
    return false;
}

/* Redirects the outputs of @again, the recorded command line, to those of @line. */
static bool
ask_again(const LhCommandLine *line, const LhCommandLine *again, GError **error)
{
    const ReportOptions *o = line->options;
    g_autofree char *jobs = o->jobs > 0 ? g_strdup_printf("%" PRIu64, o->jobs) : NULL;
    g_autofree char *work =
        o->max_work_ps > 0 ? g_strdup_printf("%" PRIi64 "ps", o->max_work_ps) : NULL;

    return set(again, "--report", o->output, error) && set(again, "--format", "json", error) &&
           set(again, "--ranks-shown", o->ranks_shown, error) &&
           set(again, "--jobs", jobs, error) && set(again, "--max-work", work, error) &&
           lh_outputs_check(line->command, line, error) &&
           lh_inputs_check(again->command, again, error);
}

static LhAnswer
show(const LhCommandLine *line, GError **error)
{
    static const char *const writers[] = { "compare", "plan", "sweep", "validate", NULL };
    const ReportOptions *o = line->options;
    g_autoptr(LhSaved) saved = NULL;
    LhCommandLine again;
    LhAnswer answer = LH_ANSWER_FAILED;

    if (line->scenario->json != NULL || line->config != NULL ||
        lh_scenario_has_options(line->scenario)) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "the result of --from defines the case; remove the scenario and its options");
        return LH_ANSWER_FAILED;
    }
    saved = lh_saved_load(o->from, writers, error);
    if (saved == NULL)
        return LH_ANSWER_FAILED;
    lh_file_uses_forget_outputs(); /* until the inputs are known */
    if (lh_saved_line(saved, &again, error) && ask_again(line, &again, error))
        answer = again.command->run(&again, error);
    lh_options_clear(again.command, &again);
    return answer;
}

static LhAnswer
run_report(const LhCommandLine *line, GError **error)
{
    const ReportOptions *o = line->options;

    if (!check_output(o, error))
        return LH_ANSWER_FAILED;
    return o->from != NULL ? show(line, error) : compare(line, error);
}

const LhCommand lh_command_report = {
    .name = "report",
    .arguments = "[SCENARIO] [OPTIONS] --output FILE",
    .summary = "Write a comparison, or a saved result, as a self-contained page with figures.",
    .details = "Compares schedules as longhaul compare does and writes one self-contained .html\n"
               "file: a summary sentence, the table, the breakdown of times, the timeline,\n"
               "traffic and memory of the fastest schedule and the runner-up, the critical path,\n"
               "the provenance of every constant, and the command that reproduces it. The page\n"
               "has no script and loads nothing. Figures are drawn by gnuplot. A .pdf file is\n"
               "the page printed by chromium or, without it, WeasyPrint.\n\n"
               "With --from the page shows a result saved as JSON. The recorded command line is\n"
               "run again from the current folder, without writing its files. Comparisons, plans\n"
               "and sweeps are recomputed and must equal the saved result; if an input has\n"
               "changed since, an error reports the first difference. Validations are shown as\n"
               "they were measured.\n\n"
               "Exit status 1 if no schedule can run; the page then gives the reason. Ctrl-C or\n"
               "SIGTERM ends the command without a page (exit status 130).\n\n"
               "  longhaul report dfa-2node --output report.html\n"
               "  longhaul report --cluster hgx-h100:4 --model llama-3-8b --seq-length 512K \\\n"
               "      --output report.html\n"
               "  longhaul report --from plan.json --output plan.html\n",
    .scenario = true,
    .config_parts = LH_CONFIG_QUESTION | LH_CONFIG_WAY,
    .common = { "--from", "--model", "--cluster", "--seq-length", "--schedule", "--ranks", "--step",
                "--from-config", "--output" },
    .options = report_options,
    .options_size = sizeof(ReportOptions),
    .run = run_report,
};
