/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/compare_page.h"

#include "base/error.h"
#include "cli/step_artifacts.h"
#include "proof/run_time_estimate.h"
#include "report/page/page_parts.h"
#include "report/page/page_pdf.h"
#include "report/page/report.h"

#define RUNS_MAX 2 /* schedules with a timeline on the page */

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

    return comparison->fit_count > 0 && lh_artifacts_has_critical(first->result);
}

/* The row's schedule; NULL: its program is explicit. */
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
look_closely(const LhSetup *setup, const LhComparison *comparison, const LhComparePage *page,
             Closely *c, GError **error)
{
    for (guint i = 0; i < MIN(comparison->fit_count, RUNS_MAX); i++) {
        const LhCompareRow *row = g_ptr_array_index(comparison->rows, i);
        const LhArtifacts how = { .setup = setup,
                                  .schedule = schedule_of(setup, row),
                                  .program = row->program,
                                  .result = row->result,
                                  .seconds = lh_run_time_simulate(row->program),
                                  .ranks = page->ranks_shown,
                                  .critical = i == 0 && has_critical(comparison) };

        c->count = i + 1;
        if (!lh_artifacts_write(&how, &c->runs[i], error))
            return false;
    }
    if (!has_critical(comparison))
        return true;
    c->critical = lh_artifacts_critical(setup, &c->runs[0], page->jobs, error);
    return c->critical != NULL;
}

static double
seconds_closely(const LhComparison *comparison)
{
    const guint runs = MIN(comparison->fit_count, RUNS_MAX);
    double seconds = 0;

    for (guint i = 0; i < runs; i++) {
        const LhCompareRow *row = g_ptr_array_index(comparison->rows, i);

        seconds += lh_run_time_simulate(row->program) *
                   lh_artifacts_plays(i == 0 && has_critical(comparison));
    }
    return seconds;
}

bool
lh_compare_page_check(const LhComparePage *page, const char *option, const LhSetup *setup,
                      GError **error)
{
    g_auto(LhTimeWindow) frame = { .ranks = NULL };

    return lh_page_check_path(option, page->path, error) &&
           lh_time_window_init(&frame, page->ranks_shown, NULL, lh_time_window_ranks(setup), error);
}

bool
lh_compare_page_write(const LhCommandLine *line, const LhSetup *setup,
                      const LhComparison *comparison, const LhComparePage *page, GError **error)
{
    const LhStamp stamp = lh_command_stamp(line);
    g_auto(Closely) closely = { .count = 0 };
    g_autoptr(GString) out = g_string_new(NULL);
    LhReport report = { .setup = setup, .comparison = comparison, .stamp = &stamp };

    if (comparison->interrupted) {
        g_set_error(error, LH_ERROR, LH_ERROR_INTERRUPTED,
                    "interrupted before all schedules were simulated: no page is written");
        return false;
    }
    if (!lh_run_time_check(seconds_closely(comparison), page->max_work_ps, error) ||
        !look_closely(setup, comparison, page, &closely, error))
        return false;
    report.runs = closely.runs;
    report.runs_count = closely.count;
    report.critical = closely.critical;
    return lh_report_html(&report, out, error) && lh_page_write(page->path, out, error);
}
