/* See the header. */
#include "report/report.h"

#include "config.h"
#include "report/bars.h"
#include "report/constants.h"
#include "report/describe.h"
#include "report/describe_comparison.h"
#include "report/describe_critical.h"
#include "report/describe_sim.h"
#include "report/describe_step.h"
#include "report/page.h"

#include <string.h>

static void
append_table(GString *out, LhTable *table, const char *caption)
{
    if (table == NULL)
        return;
    lh_table_html(table, caption, out);
    lh_table_free(table);
}

/* --- the comparison -----------------------------------------------------------------------------
 */

static bool
append_comparison(const LhReport *r, GString *out, GError **error)
{
    g_autoptr(GString) svg = g_string_new(NULL);

    lh_page_section(out, "Comparison");
    append_table(out, lh_describe_comparison(r->setup, r->comparison),
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

static bool
append_timeline(const LhReport *r, LhReportRun *run, GString *out, GError **error)
{
    const LhGantt gantt = { .setup = r->setup,
                            .program = run->row->program,
                            .timeline = run->timeline,
                            .frame = &run->frame,
                            .makespan_ps = run->row->result->makespan_ps,
                            .last_rank = run->last_rank,
                            .bubble = lh_sim_bubble_fraction(run->row->result) };
    g_autoptr(GString) svg = g_string_new(NULL);

    if (!lh_gantt_draw(&gantt, (LhFigureTo){ .svg = svg }, error))
        return false;
    lh_page_picture(out, svg,
                    "What ranks do when: of each rank a row, with its kernels above and "
                    "its transfers below.");
    return true;
}

static bool
append_memory(const LhReport *r, const LhReportRun *run, GString *out, GError **error)
{
    const LhSimResult *result = run->row->result;
    const LhMemoryFigure figure = {
        .setup = r->setup, .program = run->row->program, .result = result, .envelope = run->envelope
    };
    g_autoptr(GString) svg = g_string_new(NULL);

    if (!lh_memory_figure_draw(&figure, (LhFigureTo){ .svg = svg }, error))
        return false;
    lh_page_picture(out, svg, "What the rank with the highest peak holds over time, by category.");
    append_table(out, lh_describe_categories(result), "Memory at the peak, by category");
    append_table(out, lh_describe_memory(result), "Memory at the peak, by tensor");
    return true;
}

static bool
append_run(const LhReport *r, guint index, GString *out, GError **error)
{
    LhReportRun *run = &r->runs[index];
    g_autofree char *title =
        g_strdup_printf("%s: %s", index == 0 ? "The fastest" : "The runner-up", run->row->name);
    g_autoptr(GString) words = g_string_new(NULL);

    lh_page_section(out, title);
    lh_describe_interval(r->setup, run->row, words);
    lh_page_words(out, words->str);
    if (r->setup->step != NULL)
        append_table(out, lh_describe_step(&run->row->step), "The training step");
    if (!append_timeline(r, run, out, error))
        return false;
    append_table(out, lh_describe_parts(run->row->result), "Where the time goes");
    append_table(out, lh_describe_ranks(run->row), "Over the ranks");
    append_table(out, lh_describe_traffic(run->row), "Bytes sent, by the kind of link");
    return append_memory(r, run, out, error);
}

/* --- what made the time -------------------------------------------------------------------------
 */

static void
append_critical(const LhReport *r, GString *out)
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
    g_autofree char *title = NULL;

    if (r->runs_count == 0)
        return;
    title = g_strdup_printf("What made the time of %s", r->runs[0].row->name);
    lh_page_section(out, title);
    if (r->critical == NULL) {
        lh_page_words(out, "The critical path is left out of a run of so many ops; longhaul sim "
                           "--critical-path finds it.");
        return;
    }
    lh_page_words(out,
                  "The critical path is the chain of kernels, messages and links that led to the "
                  "end: its parts add up to the time.");
    for (guint i = 0; i < G_N_ELEMENTS(tables); i++)
        append_table(out, tables[i].describe(r->critical), tables[i].caption);
}

/* --- how to repeat it ---------------------------------------------------------------------------
 */

/* As a shell takes it; only what needs quotes has some. Caller frees. */
static char *
command_text(const LhStamp *stamp)
{
    static const char plain[] = G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "-_./,:=+%@";
    GString *text = g_string_new("longhaul");

    for (guint i = 1; stamp->argv[0] != NULL && stamp->argv[i] != NULL; i++) {
        const char *word = stamp->argv[i];
        g_autofree char *quoted = g_shell_quote(word);

        g_string_append_c(text, ' ');
        g_string_append(text, *word != '\0' && word[strspn(word, plain)] == '\0' ? word : quoted);
    }
    return g_string_free(text, FALSE);
}

static LhTable *
describe_inputs(const LhSetup *setup)
{
    LhTable *table = lh_table_new();

    lh_table_column(table, "path", "file", NULL, false);
    lh_table_column(table, "sha256", "SHA-256", NULL, false);
    for (guint i = 0; i < setup->inputs->len; i++) {
        const LhInput *input = g_ptr_array_index(setup->inputs, i);

        lh_table_row(table);
        lh_table_cell(table, input->path, NULL);
        lh_table_cell(table, input->sha256, NULL);
    }
    return table;
}

static void
append_repeat(const LhReport *r, GString *out)
{
    g_autofree char *command = command_text(r->stamp);
    g_autofree char *seed =
        g_strdup_printf("longhaul %s, seed %" G_GUINT64_FORMAT ": the same files give the same "
                        "bytes.",
                        LH_VERSION, r->setup->scenario->seed);

    lh_page_section(out, "How to repeat it");
    lh_page_code(out, command);
    lh_page_words(out, seed);
    append_table(out, describe_inputs(r->setup), "What was read");
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
        if (!append_run(r, i, out, error))
            return false;
    }
    append_critical(r, out);
    if (r->setup->cost == LH_COST_DEVICE) {
        lh_page_section(out, "Where the constants come from");
        append_table(out, lh_describe_constants(r->setup), "Constants");
    }
    append_repeat(r, out);
    lh_page_end(out);
    return true;
}
