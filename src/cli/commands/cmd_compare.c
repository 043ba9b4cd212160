/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longhaul compare: simulates every schedule on one cluster and sorts them by time.
 */
#include "base/error.h"
#include "cli/command.h"
#include "cli/compare_live.h"
#include "cli/compare_page.h"
#include "cli/synth_live.h"
#include "proof/run_time_estimate.h"
#include "report/data/constants.h"
#include "report/data/result_values.h"
#include "report/draw/bars.h"
#include "report/text/describe.h"
#include "report/text/describe_comparison.h"
#include "scenario/seq_length_rounding.h"

#include <math.h>
#include <stddef.h>

typedef struct {
    LhOutputOptions to;
    char *from_config;
    GPtrArray *set; /* of char * */
    char *figure;
    char *report, *ranks_shown;
    char *within;
    uint64_t jobs, budget;
    bool synth;
    bool provenance;
    LhTime max_work_ps;
} CompareOptions;

static const LhField compare_options[] = {
    LH_OPTION_FORMAT(CompareOptions, to),
    LH_OPTION_OUTPUT(CompareOptions, to),
    LH_OPTION_FROM_CONFIG(
        CompareOptions, from_config,
        "Everything about the training step except the schedule is read from it."),
    LH_OPTION_SET(CompareOptions, set),
    LH_OPTION_FIGURE(
        CompareOptions, figure,
        "Draw where the time of each schedule goes, into this .svg, .png or .pdf file."),
    LH_OPTION_WRITES(
        CompareOptions, LH_ABOUT_FILES, "report", report,
        "Also write the comparison as a page to hand on, as longhaul report does, into "
        "this .html or .pdf file."),
    LH_OPTION_RANKS_SHOWN(CompareOptions, ranks_shown),
    { .name = "within",
      .category = LH_ABOUT_SEARCH,
      .type = LH_FIELD_STRING,
      .offset = offsetof(CompareOptions, within),
      .description = "Omit schedules slower than this multiple of the fastest, such as 3x; their "
                     "simulation stops early.",
      .placeholder = "FACTOR" },
    { .name = "synth",
      .category = LH_ABOUT_SEARCH,
      .type = LH_FIELD_BOOL,
      .offset = offsetof(CompareOptions, synth),
      .description = "Also search for a schedule, as longhaul synth does, and compare the best one "
                     "found (row synth)." },
    { .name = "budget",
      .category = LH_ABOUT_SEARCH,
      .type = LH_FIELD_UINT,
      .offset = offsetof(CompareOptions, budget),
      .min = 1,
      .max = LH_SYNTH_BUDGET_MAX,
      .placeholder = "CANDIDATES",
      .absent = G_STRINGIFY(LH_SYNTH_BUDGET),
      .description = "With --synth, number of candidates to search; default " G_STRINGIFY(
          LH_SYNTH_BUDGET) "." },
    LH_OPTION_JOBS(CompareOptions, jobs, "Schedules to simulate"),
    LH_OPTION_PROVENANCE(CompareOptions, provenance),
    LH_OPTION_MAX_WORK(CompareOptions, max_work_ps),
    { .name = NULL },
};

static void
print_compare(const LhCommandLine *line, const LhSetup *setup, const LhComparison *comparison,
              GString *out)
{
    const CompareOptions *o = line->options;
    const LhFormat format = (LhFormat)o->to.format;
    const LhStamp stamp = lh_command_stamp(line);
    gsize from = out->len;
    g_autoptr(LhTable) table = NULL;

    if (format == LH_FORMAT_JSON) {
        lh_result_json(setup, comparison, &stamp, out);
        return;
    }
    if (format == LH_FORMAT_CSV) {
        table = lh_result_table(setup, comparison);
        lh_table_print(table, format, out);
        return;
    }
    table = lh_describe_comparison(setup, comparison);
    lh_describe_case(setup, out);
    lh_table_words(format, out, from);
    g_string_append_c(out, '\n');
    lh_table_print(table, format, out);
    g_string_append_c(out, '\n');
    from = out->len;
    lh_describe_answer(setup, comparison, "--provenance", out);
    lh_table_words(format, out, from);
    if (o->provenance && setup->cost == LH_COST_DEVICE) {
        g_autoptr(LhTable) constants = lh_describe_constants(setup);

        g_string_append_c(out, '\n');
        lh_table_print(constants, format, out);
    }
}

/* Whether the output is for people; for programs every schedule has a row, even if none supports
 * the sequence length. */
static bool
is_for_people(LhFormat format)
{
    return format == LH_FORMAT_TABLE || format == LH_FORMAT_MD;
}

/* Parses "3x" or "3"; NULL: 0. */
static bool
parse_within(const char *text, double *factor, GError **error)
{
    char *end;

    *factor = 0;
    if (text == NULL)
        return true;
    *factor = g_ascii_strtod(text, &end);
    if (g_ascii_isdigit(text[0]) && *factor >= 1 && isfinite(*factor) &&
        (g_str_equal(end, "") || g_str_equal(end, "x")))
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                "--within \"%s\" is not a factor; allowed: a number of at least 1, such as 3x",
                text);
    return false;
}

/* Runs the search of --synth, if given, and returns its best program. */
static bool
search(const LhSetup *setup, const CompareOptions *o, LhSynthesis **found, GError **error)
{
    g_autoptr(LhSynthesis) synthesis = NULL;

    if (!o->synth)
        return true;
    synthesis = lh_synth_live(setup,
                              (LhSynthOptions){ .budget = (uint32_t)o->budget,
                                                .task.jobs = (guint)o->jobs,
                                                .alone = true },
                              error);
    if (synthesis == NULL)
        return false;
    if (synthesis->interrupted) {
        g_set_error(error, LH_ERROR, LH_ERROR_INTERRUPTED,
                    "interrupted during the search for a schedule: nothing was compared");
        return false;
    }
    *found = g_steal_pointer(&synthesis);
    return true;
}

static LhComparePage
page_of(const CompareOptions *o)
{
    return (LhComparePage){ .path = o->report,
                            .ranks_shown = o->ranks_shown,
                            .max_work_ps = o->max_work_ps,
                            .jobs = (guint)o->jobs };
}

static bool
check_page(const CompareOptions *o, const LhSetup *setup, GError **error)
{
    const LhComparePage page = page_of(o);

    return o->report == NULL || lh_compare_page_check(&page, "--report", setup, error);
}

/* Checks options before anything runs. */
static bool
check_compare(const LhCommandLine *line, double *within, GError **error)
{
    const CompareOptions *o = line->options;

    if (!lh_command_check_provenance(o->provenance, o->to.format, error) ||
        !parse_within(o->within, within, error))
        return false;
    if (o->ranks_shown != NULL && o->report == NULL) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "--ranks-shown has no effect without --report");
        return false;
    }
    if (o->budget == 0 || o->synth)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "--budget has no effect without --synth");
    return false;
}

/* Writes the page of --report, if given. */
static bool
write_compare_page(const LhCommandLine *line, const LhSetup *setup, const LhComparison *comparison,
                   GError **error)
{
    const CompareOptions *o = line->options;
    const LhComparePage page = page_of(o);

    return o->report == NULL || lh_compare_page_write(line, setup, comparison, &page, error);
}

static LhAnswer
answer_of(const LhComparison *comparison)
{
    if (comparison->interrupted)
        return LH_ANSWER_PARTIAL;
    return comparison->fit_count > 0 ? LH_ANSWER_YES : LH_ANSWER_NO;
}

static LhAnswer
run_compare(const LhCommandLine *line, GError **error)
{
    const CompareOptions *o = line->options;
    const bool for_machines = o->to.format == LH_FORMAT_JSON || o->to.format == LH_FORMAT_CSV;
    g_autoptr(LhSetup) setup = NULL;
    g_autoptr(LhComparison) comparison = NULL;
    g_autoptr(GString) out = g_string_new(NULL);
    LhCompareOptions how = { .task.jobs = (guint)o->jobs };
    g_autoptr(LhSynthesis) found = NULL;
    double seconds;

    if (!check_compare(line, &how.within, error))
        return LH_ANSWER_FAILED;
    lh_command_warn_config(line);
    setup = lh_setup_new(line->scenario, error);
    if (setup == NULL || !check_page(o, setup, error) ||
        !lh_prove_setup(setup, LH_PROVE_TO_SIMULATE, error) ||
        (is_for_people((LhFormat)o->to.format) && !lh_seq_length_check(setup, error)) ||
        (o->synth && !lh_synth_check(setup, error)))
        return LH_ANSWER_FAILED;
    seconds = lh_run_time_compare(setup);
    if (!lh_run_time_check(seconds, o->max_work_ps, error) || !search(setup, o, &found, error))
        return LH_ANSWER_FAILED;
    how.also = found != NULL ? found->best->program : NULL;
    comparison = lh_compare_live(setup, &how, seconds, error);
    if (comparison == NULL || (!for_machines && !lh_compare_live_check(comparison, error)))
        return LH_ANSWER_FAILED;
    print_compare(line, setup, comparison, out);
    if (!lh_command_finish(line, &o->to, out, error) || !lh_compare_live_check(comparison, error) ||
        (o->figure != NULL &&
         !lh_bars_draw(setup, comparison, (LhFigureTo){ .path = o->figure }, error)) ||
        !write_compare_page(line, setup, comparison, error))
        return LH_ANSWER_FAILED;
    return answer_of(comparison);
}

const LhCommand lh_command_compare = {
    .name = "compare",
    .arguments = "[SCENARIO] [OPTIONS]",
    .summary = "Compare schedules on a cluster, and find the bottleneck of the fastest one.",
    .details = "Simulates one attention module with each schedule and lists the fastest first.\n"
               "Compute, exposed communication by kind of link, imbalance (waiting for another\n"
               "rank) and host time are means over the ranks and add up to the total time.\n"
               "Schedules that cannot run are listed last, with the reason.\n\n"
               "The fastest schedule is then simulated again with kernels, latencies, each kind\n"
               "of link, and each set of them 10 % faster. The change that saves most is the\n"
               "bottleneck. If speeding up one kind of link alone does not help, the kinds that\n"
               "must be sped up together are listed.\n\n"
               "With --synth the fastest program found by longhaul synth's search is compared as\n"
               "well, proven like the schedules, whether it wins or not. longhaul synth writes\n"
               "it to a file.\n\n"
               "Ctrl-C or SIGTERM ends the comparison with the schedules done so far (exit\n"
               "status 130).\n\n"
               "  longhaul compare dfa-2node\n"
               "  longhaul compare --cluster hgx-h100:4 --model llama-3-8b --seq-length 512K\n"
               "  longhaul compare --cluster hgx-h100:128 --seq-length 1M --within 3x\n"
               "  longhaul compare --ranks 8 --cost unit --schedule ring --schedule zigzag\n",
    .scenario = true,
    .config_parts = LH_CONFIG_QUESTION | LH_CONFIG_WAY,
    .common = { "--model", "--cluster", "--seq-length", "--schedule", "--ranks", "--step",
                "--from-config", "--report", "--format", "--output" },
    .options = compare_options,
    .options_size = sizeof(CompareOptions),
    .run = run_compare,
};
