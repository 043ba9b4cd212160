/* SPDX-License-Identifier: Apache-2.0 */
#include "report/page/report.h"

#include "report/base/text.h"
#include "report/data/constants.h"
#include "report/draw/bars.h"
#include "report/page/page_parts.h"
#include "report/text/describe.h"
#include "report/text/describe_comparison.h"
#include "report/text/describe_critical.h"
#include "report/text/describe_sim.h"
#include "report/text/describe_step.h"

/* --- comparison ---------------------------------------------------------------------------------
 */

static bool
append_comparison(const LhReport *r, GString *out, GError **error)
{
    g_autoptr(GString) svg = g_string_new(NULL);

    lh_page_section(out, "Comparison");
    lh_page_table(out, lh_describe_comparison(r->setup, r->comparison),
                  "All schedules, the fastest first");
    lh_page_words(out,
                  "Times are means over the ranks, and the parts add up to the total time. Exposed "
                  "communication is time in which a rank computes nothing because its data is in "
                  "flight, by kind of link. Imbalance is time in which a rank waits for another "
                  "one that is still computing, or has finished before the others.");
    if (r->comparison->fit_count == 0)
        return true;
    if (!lh_bars_draw(r->setup, r->comparison, (LhFigureTo){ .svg = svg }, error))
        return false;
    lh_page_picture(out, svg,
                    "One bar per schedule with the parts of its time, as in the table above.");
    return true;
}

/* --- one schedule -------------------------------------------------------------------------------
 */

static void
append_timeline(const LhReportRun *run, const char *name, GString *out)
{
    const LhSimResult *result = run->row->result;
    const bool all = run->frame.ranks->len == result->ranks_count;
    g_autofree char *makespan = lh_format_time(result->makespan_ps);
    g_autofree char *words = NULL;
    char bubble[LH_TEXT_SIZE];

    lh_text_percent(lh_sim_bubble_fraction(result), bubble);
    words = g_strdup_printf(
        "Timeline of %u%s ranks: one strip per rank, kernels above and transfers below, dashed "
        "where they only wait for others. If a column has several kinds, the height shows their "
        "share of the time. %s, %s of it not computing.",
        run->frame.ranks->len, all ? "" : " of the", makespan, bubble);
    lh_html_timeline_html(run->strips, name, run->last_rank, words, out);
}

static bool
append_memory(const LhSetup *setup, const LhReportRun *run, GString *out, GError **error)
{
    const LhSimResult *result = run->row->result;
    const LhMemoryFigure figure = { .setup = setup,
                                    .name = run->row->name,
                                    .program = run->row->program,
                                    .result = result,
                                    .envelope = run->envelope };
    g_autoptr(GString) svg = g_string_new(NULL);

    if (!lh_memory_figure_draw(&figure, (LhFigureTo){ .svg = svg }, error))
        return false;
    lh_page_picture(out, svg, "Memory over time of the rank with the highest peak, by category.");
    lh_page_table(out, lh_describe_categories(result), "Memory at the peak, by category");
    lh_page_table(out, lh_describe_memory(result), "Memory at the peak, by tensor");
    return true;
}

/* Nothing without traffic, as with free communication. */
static void
append_links(const LhSetup *setup, const LhSimResult *result, GString *out)
{
    if (result->busy_links_count == 0)
        return;
    lh_page_table(out, lh_describe_link_use(setup, result),
                  "Link utilization, as a share of the links' capacity over this time");
    lh_page_table(out, lh_describe_busy_links(setup, result), "The busiest links");
}

void
lh_report_run_clear(LhReportRun *run)
{
    lh_compare_row_free(run->row);
    lh_html_timeline_free(run->strips);
    lh_time_window_clear(&run->frame);
    g_free(run->envelope);
}

bool
lh_report_run(const LhSetup *setup, const LhReportRun *run, const char *name, const char *title,
              GString *out, GError **error)
{
    g_autoptr(GString) words = g_string_new(NULL);

    lh_page_section(out, title);
    lh_describe_interval(setup, run->row, words);
    lh_page_words(out, words->str);
    if (setup->step != NULL)
        lh_page_table(out, lh_describe_step(&run->row->step),
                      run->row->step.forward_only ? "The prefill" : "The training step");
    append_timeline(run, name, out);
    lh_page_table(out, lh_describe_parts(run->row->result), "Where the time goes");
    lh_page_table(out, lh_describe_ranks(run->row), "Over the ranks");
    lh_page_table(out, lh_describe_traffic(run->row), "Bytes sent, by kind of link");
    append_links(setup, run->row->result, out);
    return append_memory(setup, run, out, error);
}

/* --- critical path ------------------------------------------------------------------------------
 */

void
lh_report_critical(const LhCritical *critical, GString *out)
{
    static const struct {
        LhTable *(*describe)(const LhCritical *critical);
        const char *caption;
    } tables[] = {
        { lh_describe_path_resources, "The critical path, by resource" },
        { lh_describe_path_phases, "The critical path, by phase" },
        { lh_describe_path_ranks, "The critical path, by rank" },
        { lh_describe_slack, "Calls and their slack" },
        { lh_describe_faster_calls, "Savings of faster calls" },
        { lh_describe_faster_ops, "Savings of faster ops" },
    };

    if (critical == NULL) {
        lh_page_words(out, "The critical path is left out because the run has too many ops; "
                           "longhaul sim --critical-path finds it.");
        return;
    }
    lh_page_words(out, "The critical path is the chain of kernels, messages and links that "
                       "determines the makespan: its parts add up to it.");
    for (guint i = 0; i < G_N_ELEMENTS(tables); i++)
        lh_page_table(out, tables[i].describe(critical), tables[i].caption);
}

static void
append_critical(const LhReport *r, GString *out)
{
    g_autofree char *title = NULL;

    if (r->runs_count == 0)
        return;
    title = g_strdup_printf("Critical path of %s", r->runs[0].row->name);
    lh_page_section(out, title);
    lh_report_critical(r->critical, out);
}

/* --- page ---------------------------------------------------------------------------------------
 */

bool
lh_report_html(const LhReport *r, GString *out, GError **error)
{
    g_autoptr(GString) of = g_string_new(NULL);
    g_autoptr(GString) answer = g_string_new(NULL);

    lh_describe_case(r->setup, of);
    lh_page_begin(out, "Which schedule is fastest?", of->str);
    lh_describe_answer(r->setup, r->comparison, "below", answer);
    lh_page_words(out, answer->str);
    if (!append_comparison(r, out, error))
        return false;
    for (guint i = 0; i < r->runs_count; i++) {
        g_autofree char *title = g_strdup_printf("%s: %s", i == 0 ? "The fastest" : "The runner-up",
                                                 r->runs[i].row->name);

        if (!lh_report_run(r->setup, &r->runs[i], i == 0 ? "first" : "second", title, out, error))
            return false;
    }
    append_critical(r, out);
    lh_page_constants(out, r->setup, "Constants and their provenance");
    lh_page_repeat(out, r->stamp, &r->setup, 1);
    lh_page_end(out);
    return true;
}
