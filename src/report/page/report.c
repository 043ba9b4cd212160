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

/* --- the comparison -----------------------------------------------------------------------------
 */

static bool
append_comparison(const LhReport *r, GString *out, GError **error)
{
    g_autoptr(GString) svg = g_string_new(NULL);

    lh_page_section(out, "Comparison");
    lh_page_table(out, lh_describe_comparison(r->setup, r->comparison),
                  "All schedules, the fastest first");
    lh_page_words(out,
                  "Times are means over the ranks, and the parts add up to the time. Exposed is "
                  "time in which a rank computed nothing because its data was on the way, by "
                  "the kind of link. Imbalance is time in which a rank waited for another one "
                  "that was itself computing, or had finished before the others.");
    if (r->comparison->fit_count == 0)
        return true;
    if (!lh_bars_draw(r->setup, r->comparison, (LhFigureTo){ .svg = svg }, error))
        return false;
    lh_page_picture(out, svg,
                    "One bar for each schedule, cut into where its time goes, as in the "
                    "table above.");
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
    words =
        g_strdup_printf("What %u%s ranks do when: of each a strip, with its kernels above and its "
                        "transfers below, in dashes where they only wait for others; as high as "
                        "they take the time, where a column has more than one. %s, %s of it not "
                        "computing.",
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
    lh_page_picture(out, svg, "What the rank with the highest peak holds over time, by category.");
    lh_page_table(out, lh_describe_categories(result), "Memory at the peak, by category");
    lh_page_table(out, lh_describe_memory(result), "Memory at the peak, by tensor");
    return true;
}

/* Nothing where nothing was carried, as with free communication. */
static void
append_links(const LhSetup *setup, const LhSimResult *result, GString *out)
{
    if (result->busy_links_count == 0)
        return;
    lh_page_table(out, lh_describe_link_use(setup, result),
                  "How much links are used, as a share of what they could carry in this time");
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
        lh_page_table(out, lh_describe_step(&run->row->step), "The training step");
    append_timeline(run, name, out);
    lh_page_table(out, lh_describe_parts(run->row->result), "Where the time goes");
    lh_page_table(out, lh_describe_ranks(run->row), "Over the ranks");
    lh_page_table(out, lh_describe_traffic(run->row), "Bytes sent, by the kind of link");
    append_links(setup, run->row->result, out);
    return append_memory(setup, run, out, error);
}

/* --- what made the time -------------------------------------------------------------------------
 */

void
lh_report_critical(const LhCritical *critical, GString *out)
{
    static const struct {
        LhTable *(*describe)(const LhCritical *critical);
        const char *caption;
    } tables[] = {
        { lh_describe_path_resources, "The critical path, by what it waits for" },
        { lh_describe_path_phases, "The critical path, by phase" },
        { lh_describe_path_ranks, "The critical path, by rank" },
        { lh_describe_slack, "Calls, and how much later they could end" },
        { lh_describe_faster_calls, "What faster calls save" },
        { lh_describe_faster_ops, "What faster ops save" },
    };

    if (critical == NULL) {
        lh_page_words(out, "The critical path is left out of a run of so many ops; longhaul sim "
                           "--critical-path finds it.");
        return;
    }
    lh_page_words(out,
                  "The critical path is the chain of kernels, messages and links that led to the "
                  "end: its parts add up to the time.");
    for (guint i = 0; i < G_N_ELEMENTS(tables); i++)
        lh_page_table(out, tables[i].describe(critical), tables[i].caption);
}

static void
append_critical(const LhReport *r, GString *out)
{
    g_autofree char *title = NULL;

    if (r->runs_count == 0)
        return;
    title = g_strdup_printf("What made the time of %s", r->runs[0].row->name);
    lh_page_section(out, title);
    lh_report_critical(r->critical, out);
}

/* --- the page -----------------------------------------------------------------------------------
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
    lh_page_constants(out, r->setup, "Where the constants come from");
    lh_page_repeat(out, r->stamp, &r->setup, 1);
    lh_page_end(out);
    return true;
}
