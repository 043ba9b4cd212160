/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longhaul sweep: compares schedules for all combinations of values that a scenario lists.
 */
#include "base/error.h"
#include "base/escape.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "compare/sweep_file.h"
#include "report/draw/sweep_figure.h"
#include "report/page/page_parts.h"
#include "report/page/page_pdf.h"
#include "report/page/sweep_page.h"
#include "report/text/describe_sweep.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    LhOutputOptions to;
    char *from_config;
    GPtrArray *set; /* of char * */
    char *figure;
    char *report;
    char *points;
    char *shard_of; /* "3/8", or auto */
    uint64_t shards;
    uint64_t jobs;
    LhTime max_work_ps;
} SweepOptions;

static const LhField sweep_options[] = {
    LH_OPTION_FORMAT(SweepOptions, to),
    LH_OPTION_OUTPUT(SweepOptions, to),
    LH_OPTION_FROM_CONFIG(SweepOptions, from_config,
                          "Everything about the training step is read from it, except the schedule "
                          "and the scenario's fields."),
    LH_OPTION_SET(SweepOptions, set),
    LH_OPTION_FIGURE(SweepOptions, figure,
                     "Draw the sweep of one field as curves of time, or that of two fields as a "
                     "map of the fastest schedules, into this .svg, .png or .pdf file."),
    LH_OPTION_WRITES(SweepOptions, LH_ABOUT_FILES, "report", report,
                     "Also write the sweep as a page to hand on, with its figure, into this .html "
                     "or .pdf file."),
    { .name = "points",
      .category = LH_ABOUT_RUNNING,
      .type = LH_FIELD_STRING,
      .offset = offsetof(SweepOptions, points),
      .flags = LH_FIELD_UPDATED,
      .description = "File that caches results, one JSON line per point. The same sweep resumes "
                     "from it, even after it was killed.",
      .placeholder = "FILE",
      .names = "files" },
    { .name = "shard-of",
      .category = LH_ABOUT_RUNNING,
      .type = LH_FIELD_STRING,
      .offset = offsetof(SweepOptions, shard_of),
      .min = 1,
      .max = -1,
      .placeholder = "K/N|auto",
      .description = "Run every N-th point only, starting at the K-th, and write them to the "
                     "--points file with .K-of-N appended. auto: K and N are those of the Slurm "
                     "job array this process is a task of." },
    { .name = "shards",
      .category = LH_ABOUT_RUNNING,
      .type = LH_FIELD_UINT,
      .offset = offsetof(SweepOptions, shards),
      .min = 1,
      .max = LH_SWEEP_POINTS_MAX,
      .flags = LH_COMMAND_HOW,
      .description = "Merge the files of this many shards. Missing points are listed with their "
                     "shard, and run." },
    LH_OPTION_JOBS(SweepOptions, jobs, "Points to simulate"),
    LH_OPTION_MAX_WORK(SweepOptions, max_work_ps),
    { .name = NULL },
};

/* ---- on a terminal ---- */

static bool
draw_progress(void *data, const LhProgress *at)
{
    LhProgressLine *line = data;

    if (lh_progress_is_due(line)) {
        g_autofree char *text =
            g_strdup_printf("%" PRIu64 " of %" PRIu64 " points", at->done, at->total);

        lh_progress_draw_text(line, text);
    }
    return !lh_interrupted();
}

/* ---- shards ---- */

/* Reads a number of Slurm's job array; false if the environment lacks it. */
static bool
slurm_number(const char *name, guint64 *value)
{
    const char *text = g_getenv(name);

    return text != NULL && g_ascii_string_to_unsigned(text, 10, 0, UINT32_MAX, value, NULL);
}

static bool
slurm_shard(guint *shard, guint *shards)
{
    guint64 task, first, last, count, step = 1;

    if (!slurm_number("SLURM_ARRAY_TASK_ID", &task) ||
        !slurm_number("SLURM_ARRAY_TASK_MIN", &first) ||
        !slurm_number("SLURM_ARRAY_TASK_MAX", &last) ||
        !slurm_number("SLURM_ARRAY_TASK_COUNT", &count) || count == 0 || task < first)
        return false;
    if (count > 1)
        step = MAX((last - first) / (count - 1), 1);
    *shard = (guint)((task - first) / step + 1);
    *shards = (guint)count;
    return true;
}

/* Parses "3/8" or auto. */
static bool
read_shard(const SweepOptions *o, guint *shard, guint *shards, GError **error)
{
    g_auto(GStrv) parts = o->shard_of != NULL ? g_strsplit(o->shard_of, "/", 2) : NULL;
    guint64 k = 0, n = 0;

    *shard = 0;
    *shards = (guint)o->shards;
    if (o->shard_of == NULL)
        return true;
    if (strcmp(o->shard_of, "auto") == 0) {
        if (!slurm_shard(shard, shards)) {
            g_set_error_literal(error, LH_ERROR, LH_ERROR_USAGE,
                                "--shard-of auto needs a Slurm job array, which sets "
                                "SLURM_ARRAY_TASK_ID, _MIN, _MAX and _COUNT; else give K/N");
            return false;
        }
    } else if (g_strv_length(parts) == 2 &&
               g_ascii_string_to_unsigned(parts[0], 10, 1, UINT32_MAX, &k, NULL) &&
               g_ascii_string_to_unsigned(parts[1], 10, 1, UINT32_MAX, &n, NULL)) {
        *shard = (guint)k;
        *shards = (guint)n;
    }
    if (*shard >= 1 && *shard <= *shards && *shards <= LH_SWEEP_POINTS_MAX)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                "--shard-of %s is not a shard; allowed: K/N with K from 1 to N, and N at most %d",
                o->shard_of, LH_SWEEP_POINTS_MAX);
    return false;
}

static bool
check_shards(const SweepOptions *o, GError **error)
{
    const char *wrong = NULL;

    if ((o->shard_of != NULL || o->shards > 0) && o->points == NULL)
        wrong = "shards need --points FILE, which names their files";
    else if (o->shard_of != NULL && o->shards > 0)
        wrong = "--shard-of runs one shard, and --shards merges all; give one of them";
    else if (o->shard_of != NULL && (o->figure != NULL || o->report != NULL || o->to.file != NULL))
        wrong = "one shard has no result; use --output, --report and --figure with --shards N, "
                "when all are done";
    if (wrong != NULL)
        g_set_error_literal(error, LH_ERROR, LH_ERROR_USAGE, wrong);
    return wrong == NULL;
}

static void
print_shard(const SweepOptions *o, const LhSweep *sweep, guint shard, guint shards, GString *out)
{
    g_autofree char *file = lh_sweep_shard_file(o->points, shard, shards);

    g_string_append_printf(out, "shard %u of %u: %u of %u points are in ", shard, shards,
                           sweep->in_shard, sweep->points->len);
    lh_escape_line(out, file);
    g_string_append_c(out, '\n');
}

/* ---- the sweep ---- */

static LhSweep *
sweep(const LhCommandLine *line, guint shard, guint shards, GError **error)
{
    const SweepOptions *o = line->options;
    LhProgressLine live;
    const LhSweepQuery query = {
        .scenario = line->scenario,
        .cells = &lh_sweep_cells,
        .task = { .jobs = (guint)o->jobs, .progress = draw_progress, .data = &live },
        .max_work_ps = o->max_work_ps,
        .points_file = o->points,
        .shard = shard,
        .shards = shards
    };
    LhSweep *result;

    lh_progress_start(&live, 0);
    lh_interrupt_listen();
    result = lh_sweep(&query, error);
    lh_progress_end(&live);
    return result;
}

/* ---- the answer ---- */

static void
print_sweep(const LhCommandLine *line, const LhSweep *sweep, GString *out)
{
    const SweepOptions *o = line->options;
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
write_sweep_page(const LhCommandLine *line, const LhSweep *sweep, GError **error)
{
    const SweepOptions *o = line->options;
    const LhStamp stamp = lh_command_stamp(line);
    g_autoptr(GString) out = g_string_new(NULL);

    if (sweep->interrupted) {
        g_set_error_literal(error, LH_ERROR, LH_ERROR_INTERRUPTED,
                            "interrupted before all points were run: no page is written");
        return false;
    }
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

static LhAnswer
run_sweep(const LhCommandLine *line, GError **error)
{
    const SweepOptions *o = line->options;
    g_autoptr(GString) out = g_string_new(NULL);
    g_autoptr(LhSweep) result = NULL;
    guint shard, shards;

    if (line->scenario->axes == NULL) {
        g_set_error_literal(
            error, LH_ERROR, LH_ERROR_INPUT,
            "sweep needs a scenario that lists values, such as \"sweep\": {\"seq_length\": "
            "[\"64K\", \"128K\"]}; for one case use longhaul compare");
        return LH_ANSWER_FAILED;
    }
    if (!check_shards(o, error) || !read_shard(o, &shard, &shards, error) ||
        (o->report != NULL && !lh_page_check_path("--report", o->report, error)) ||
        (o->figure != NULL && !lh_sweep_figure_check(line->scenario, error)))
        return LH_ANSWER_FAILED;
    lh_command_warn_config(line);
    result = sweep(line, shard, shards, error);
    if (result == NULL)
        return LH_ANSWER_FAILED;
    if (result->columns == NULL) {
        g_set_error_literal(error, LH_ERROR, LH_ERROR_INTERRUPTED,
                            "interrupted before any point was run: nothing is decided");
        return LH_ANSWER_FAILED;
    }
    for (guint i = 0; i < result->lost->len; i++)
        fprintf(stderr, "longhaul: %s\n", (const char *)g_ptr_array_index(result->lost, i));
    if (shard > 0 && result->interrupted)
        return LH_ANSWER_PARTIAL;
    if (shard > 0)
        print_shard(o, result, shard, shards, out);
    else
        print_sweep(line, result, out);
    if (!lh_command_finish(line, &o->to, out, error) ||
        (o->figure != NULL && !lh_sweep_figure(result, (LhFigureTo){ .path = o->figure }, error)) ||
        (o->report != NULL && !write_sweep_page(line, result, error)))
        return LH_ANSWER_FAILED;
    if (result->interrupted)
        return LH_ANSWER_PARTIAL;
    return shard > 0 || has_answer(result) ? LH_ANSWER_YES : LH_ANSWER_NO;
}

const LhCommand lh_command_sweep = {
    .name = "sweep",
    .arguments = "SCENARIO [OPTIONS]",
    .summary = "Compare schedules over sequence lengths, clusters or any other fields.",
    .details = "The scenario has an object \"sweep\" that lists values of fields. All\n"
               "combinations are run, and at each the schedules are compared as by longhaul\n"
               "compare. An option sets one value of a field and replaces its list. Schedules\n"
               "that cannot run have a row as well, with the reason. CSV has the columns of\n"
               "compare, a row per schedule and point.\n\n"
               "Ctrl-C or SIGTERM ends the sweep with the points done so far (exit status 130).\n\n"
               "  longhaul sweep sweep-length\n"
               "  longhaul sweep sweep-length --ranks 16 --format csv -o times.csv\n"
               "  longhaul sweep ./mine.json --points mine.jsonl --figure map.svg\n"
               "  sbatch --array 1-8 --wrap 'longhaul sweep big --points p --shard-of auto'\n"
               "  longhaul sweep big --points p --shards 8 --format csv -o big.csv\n",
    .scenario = true,
    .sweeps = true,
    .config_parts = LH_CONFIG_QUESTION | LH_CONFIG_WAY,
    .common = { "--model", "--cluster", "--seq-length", "--schedule", "--step", "--points",
                "--figure", "--report", "--format", "--output" },
    .options = sweep_options,
    .options_size = sizeof(SweepOptions),
    .run = run_sweep,
};
