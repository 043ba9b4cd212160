/*
 * longhaul report: a comparison as a page to hand on.
 */
#include "base/error.h"
#include "cli/command.h"
#include "cli/compare_live.h"
#include "cli/look.h"
#include "cli/progress.h"
#include "plan/length.h"
#include "plan/work.h"
#include "report/page_parts.h"
#include "report/report.h"

#include <stddef.h>

#define RUNS_MAX 2 /* schedules that are looked at closely */

typedef struct {
    char *output;
    char *ranks_shown;
    uint64_t jobs;
    LhTime max_work_ps;
} Options;

static const LhField options[] = {
    { .name = "output",
      .type = LH_FIELD_STRING,
      .offset = offsetof(Options, output),
      .flags = LH_COMMAND_OUTPUT,
      .min = 1,
      .max = -1,
      .placeholder = "FILE",
      .names = "files",
      .description = "The .html or .pdf file to write." },
    { .name = "ranks-shown",
      .type = LH_FIELD_STRING,
      .offset = offsetof(Options, ranks_shown),
      .placeholder = "LIST",
      .description =
          "Ranks that timelines show, such as 0-3,12; default all, or the first 1,024. The last "
          "one to finish is always shown." },
    LH_OPTION_JOBS(Options, jobs, "Schedules to simulate"),
    LH_OPTION_MAX_WORK(Options, max_work_ps),
    { .name = NULL },
};

static bool
check_output(const char *path, GError **error)
{
    if (path == NULL || g_str_equal(path, "-")) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "longhaul report needs --output FILE, the .html or .pdf file to write");
        return false;
    }
    return lh_page_check_path("--output", path, error);
}

/* --- the fastest, looked at closely -------------------------------------------------------------
 */

typedef struct {
    LhReportRun runs[RUNS_MAX];
    guint count;
    LhCritical *critical;
} Closely;

static void
closely_clear(Closely *c)
{
    for (guint i = 0; i < c->count; i++)
        lh_report_run_clear(&c->runs[i]);
    lh_critical_free(c->critical);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Closely, closely_clear)

static bool
has_critical(const LhComparison *comparison)
{
    const LhCompareRow *first = g_ptr_array_index(comparison->rows, 0);

    return comparison->fit_count > 0 && lh_look_has_critical(first->result);
}

/* The row's own schedule; NULL: it is the explicit program of the setup. */
static const LhSchedule *
schedule_of(const LhSetup *setup, const LhCompareRow *row)
{
    for (guint i = 0; row->made != NULL && i < setup->schedules->len; i++) {
        const LhSchedule *schedule = g_ptr_array_index(setup->schedules, i);

        if (g_str_equal(schedule->name, row->name))
            return schedule;
    }
    g_assert(row->made == NULL);
    return NULL;
}

static bool
look_closely(const LhSetup *setup, const LhComparison *comparison, const Options *o, Closely *c,
             GError **error)
{
    for (guint i = 0; i < MIN(comparison->fit_count, RUNS_MAX); i++) {
        const LhCompareRow *row = g_ptr_array_index(comparison->rows, i);
        const LhLook how = { .setup = setup,
                             .schedule = schedule_of(setup, row),
                             .result = row->result,
                             .seconds = lh_work_simulate(row->program),
                             .ranks = o->ranks_shown,
                             .critical = i == 0 && has_critical(comparison) };

        c->count = i + 1;
        if (!lh_look(&how, &c->runs[i], error))
            return false;
    }
    if (!has_critical(comparison))
        return true;
    c->critical = lh_look_critical(setup, &c->runs[0], error);
    return c->critical != NULL;
}

static double
seconds_closely(const LhComparison *comparison)
{
    const guint runs = MIN(comparison->fit_count, RUNS_MAX);
    double seconds = 0;

    for (guint i = 0; i < runs; i++) {
        const LhCompareRow *row = g_ptr_array_index(comparison->rows, i);

        seconds +=
            lh_work_simulate(row->program) * lh_look_plays(i == 0 && has_critical(comparison));
    }
    return seconds;
}

/* --- the command --------------------------------------------------------------------------------
 */

static int
write_report(const LhCommandLine *line, const LhSetup *setup, const LhComparison *comparison,
             GError **error)
{
    const Options *o = line->options;
    const LhStamp stamp = lh_command_stamp(line);
    g_auto(Closely) closely = { .count = 0 };
    g_autoptr(GString) out = g_string_new(NULL);
    LhReport report = { .setup = setup, .comparison = comparison, .stamp = &stamp };

    if (comparison->interrupted) {
        g_set_error(error, LH_ERROR, LH_ERROR_INTERRUPTED,
                    "interrupted before all schedules were simulated: no page is written");
        return LH_ERROR_INTERRUPTED;
    }
    if (!lh_work_check(seconds_closely(comparison), o->max_work_ps, error))
        return LH_ERROR_NO;
    if (!look_closely(setup, comparison, o, &closely, error))
        return LH_ERROR_RUNTIME;
    report.runs = closely.runs;
    report.runs_count = closely.count;
    report.critical = closely.critical;
    if (!lh_report_html(&report, out, error) || !lh_page_write(o->output, out, error))
        return LH_ERROR_RUNTIME;
    return comparison->fit_count > 0 ? 0 : LH_ERROR_NO;
}

static int
run(const LhCommandLine *line, GError **error)
{
    const Options *o = line->options;
    g_autoptr(LhSetup) setup = NULL;
    g_autoptr(LhComparison) comparison = NULL;
    g_auto(LhFrame) frame = { .ranks = NULL };
    double seconds;

    if (!check_output(o->output, error))
        return LH_ERROR_USAGE;
    setup = lh_setup_new(line->scenario, error);
    if (setup == NULL ||
        !lh_frame_init(&frame, o->ranks_shown, NULL, lh_params_ranks(&setup->params), error) ||
        !lh_prove_setup(setup, LH_PROVE_TO_SIMULATE, error) || !lh_length_check(setup, error))
        return LH_ERROR_INPUT;
    seconds = lh_work_compare(setup);
    if (!lh_work_check(seconds, o->max_work_ps, error))
        return LH_ERROR_NO;
    comparison =
        lh_compare_live(setup, &(LhCompareOptions){ .jobs = (guint)o->jobs }, seconds, error);
    if (comparison == NULL || !lh_compare_live_check(comparison, error))
        return LH_ERROR_RUNTIME;
    return write_report(line, setup, comparison, error);
}

const LhCommand lh_command_report = {
    .name = "report",
    .arguments = "[SCENARIO] [OPTIONS] --output FILE",
    .summary = "Write a comparison as a page to hand on, with figures.",
    .details = "Compares schedules as longhaul compare does and writes one .html file that needs\n"
               "nothing else: the answer in a sentence, the table, where the time goes, the\n"
               "timeline, the traffic and the memory of the fastest schedule and of the\n"
               "runner-up, the critical path, where every constant comes from, and the command\n"
               "that repeats it. It has no script and loads nothing. Figures are drawn by\n"
               "gnuplot. A .pdf file is the page as chromium prints it, or else WeasyPrint.\n"
               "The commands plan, sweep and validate write pages, too: see their --report.\n\n"
               "Exit status 1 if no schedule can run; the page then says why. Ctrl-C ends the\n"
               "command without a page (exit status 130).\n\n"
               "  longhaul report dfa-2node --output report.html\n"
               "  longhaul report --cluster hgx-h100:4 --model llama-3-8b --seq-length 512K \\\n"
               "      --output report.html\n",
    .scenario = true,
    .options = options,
    .options_size = sizeof(Options),
    .run = run,
};
