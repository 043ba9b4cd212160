/*
 * longhaul sweep: all combinations of the values that a scenario lists.
 */
#include "base/error.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "report/describe_sweep.h"
#include "report/page_parts.h"
#include "report/sweep_figure.h"
#include "report/sweep_page.h"

#include <stddef.h>

typedef struct {
    LhOutputOptions to;
    char *figure;
    char *report;
    char *points;
    uint64_t jobs;
    LhTime max_work_ps;
} Options;

static const LhField options[] = {
    LH_OPTION_FORMAT(Options, to),
    LH_OPTION_OUTPUT(Options, to),
    LH_OPTION_FIGURE(Options, figure,
                     "Draw the sweep of one field as curves of time, or that of two fields as a "
                     "map of the fastest schedules, into this .svg, .png or .pdf file."),
    LH_OPTION_REPORT(Options, report,
                     "Also write the sweep as a page to hand on, with its figure, into this .html "
                     "or .pdf file."),
    { .name = "points",
      .type = LH_FIELD_STRING,
      .offset = offsetof(Options, points),
      .flags = LH_COMMAND_OUTPUT,
      .description = "File that remembers what was found, one JSON line for each point; the same "
                     "sweep goes on from it, wherever it was killed.",
      .placeholder = "FILE",
      .names = "files" },
    LH_OPTION_JOBS(Options, jobs, "Points to simulate"),
    LH_OPTION_MAX_WORK(Options, max_work_ps),
    { .name = NULL },
};

/* ---- on a terminal ---- */

static bool
draw_progress(void *data, const LhSweepProgress *progress)
{
    LhProgressLine *line = data;

    if (lh_progress_is_due(line)) {
        g_autofree char *text =
            g_strdup_printf("%u of %u points", progress->done, progress->points);

        lh_progress_draw_text(line, text);
    }
    return !lh_interrupted();
}

static LhSweep *
sweep(const LhCommandLine *line, GError **error)
{
    const Options *o = line->options;
    LhProgressLine live;
    const LhSweepQuery query = { .scenario = line->scenario,
                                 .cells = &lh_sweep_cells,
                                 .jobs = (guint)o->jobs,
                                 .max_work_ps = o->max_work_ps,
                                 .points_file = o->points,
                                 .progress = draw_progress,
                                 .progress_data = &live };
    LhSweep *result;
    bool listens;

    lh_progress_start(&live, 0);
    listens = lh_interrupt_listen();
    result = lh_sweep(&query, error);
    lh_interrupt_end(listens);
    lh_progress_end(&live);
    return result;
}

/* ---- the answer ---- */

static void
print(const LhCommandLine *line, const LhSweep *sweep, GString *out)
{
    const Options *o = line->options;
    const LhFormat format = (LhFormat)o->to.format;
    const LhStamp stamp = lh_command_stamp(line);

    if (format == LH_FORMAT_JSON) {
        lh_sweep_json(sweep, &stamp, out);
    } else if (format == LH_FORMAT_CSV) {
        g_autoptr(LhTable) table = lh_sweep_table(sweep);

        lh_table_print(table, format, out);
    } else {
        lh_describe_sweep(sweep, format, out);
    }
}

static bool
write_page(const LhCommandLine *line, const LhSweep *sweep, GError **error)
{
    const Options *o = line->options;
    const LhStamp stamp = lh_command_stamp(line);
    g_autoptr(GString) out = g_string_new(NULL);

    return lh_sweep_page(line->scenario, sweep, &stamp, out, error) &&
           lh_page_write(o->report, out, error);
}

/* Whether a schedule runs at any point. */
static bool
has_answer(const LhSweep *sweep)
{
    for (guint i = 0; i < sweep->points->len; i++) {
        if (lh_sweep_place(sweep, g_ptr_array_index(sweep->points, i), 0) != NULL)
            return true;
    }
    return false;
}

static int
run(const LhCommandLine *line, GError **error)
{
    const Options *o = line->options;
    g_autoptr(GString) out = g_string_new(NULL);
    g_autoptr(LhSweep) result = NULL;

    if (line->scenario->axes == NULL) {
        g_set_error_literal(error, LH_ERROR, LH_ERROR_INPUT,
                            "sweep needs a scenario that lists values to go through, such as "
                            "\"sweep\": {\"seq_length\": [\"64K\", \"128K\"]}; for one case see "
                            "longhaul compare");
        return LH_ERROR_INPUT;
    }
    if (o->report != NULL && !lh_page_check_path("--report", o->report, error))
        return LH_ERROR_USAGE;
    if (o->figure != NULL && !lh_sweep_figure_check(line->scenario, error))
        return LH_ERROR_USAGE;
    result = sweep(line, error);
    if (result == NULL)
        return LH_ERROR_INPUT;
    if (result->columns == NULL) /* interrupted before anything was known */
        return LH_ERROR_INTERRUPTED;
    print(line, result, out);
    if (!lh_command_write(&o->to, out, error) ||
        (o->figure != NULL && !lh_sweep_figure(result, (LhFigureTo){ .path = o->figure }, error)) ||
        (o->report != NULL && !write_page(line, result, error)))
        return LH_ERROR_RUNTIME;
    if (result->interrupted)
        return LH_ERROR_INTERRUPTED;
    return has_answer(result) ? 0 : LH_ERROR_NO;
}

const LhCommand lh_command_sweep = {
    .name = "sweep",
    .arguments = "SCENARIO [OPTIONS]",
    .summary = "Compare schedules over lengths, clusters and whatever else has several values.",
    .details =
        "The scenario has an object \"sweep\", which names fields and lists values of each.\n"
        "All combinations are gone through, and at each the schedules are compared as\n"
        "longhaul compare does it. An option gives a field one value in place of its\n"
        "list. What cannot run is a row, too, with the reason. CSV has the columns of\n"
        "compare, a row for each schedule at each point.\n\n"
        "Ctrl-C ends the sweep with the points that are done (exit status 130).\n\n"
        "  longhaul sweep sweep-length\n"
        "  longhaul sweep sweep-length --ranks 16 --format csv -o times.csv\n"
        "  longhaul sweep ./mine.json --points mine.jsonl --figure map.svg\n",
    .scenario = true,
    .sweeps = true,
    .options = options,
    .options_size = sizeof(Options),
    .run = run,
};
