/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longhaul sim: simulates one schedule in detail.
 */
#include "base/error.h"
#include "base/escape.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/run_files.h"
#include "compare/totals.h"
#include "proof/run_time_estimate.h"
#include "report/data/constants.h"
#include "report/data/memory_limit.h"
#include "report/data/result_json.h"
#include "report/data/result_values.h"
#include "report/draw/figure.h"
#include "report/draw/memory_figure.h"
#include "report/draw/memory_timeline.h"
#include "report/export/export.h"
#include "report/text/describe.h"
#include "report/text/describe_critical.h"
#include "report/text/describe_relief.h"
#include "report/text/describe_sim.h"
#include "report/text/path_json.h"
#include "scenario/step/setup_step.h"

#include <stddef.h>
#include <stdio.h>

#define GIB (1024.0 * 1024 * 1024)

typedef struct {
    LhOutputOptions to;
    LhRunFileOptions files;
    char *from_config;
    GPtrArray *set;        /* of char * */
    char *memory_timeline; /* path; NULL: not wanted */
    char *export;          /* likewise */
    bool provenance;
    bool critical_path;
    bool trace_links;
    LhTime max_work_ps;
} SimOptions;

static const LhField sim_options[] = {
    LH_OPTION_FORMAT(SimOptions, to),
    LH_OPTION_OUTPUT(SimOptions, to),
    LH_OPTION_FROM_CONFIG(SimOptions, from_config,
                          "Everything about the training step is read from it."),
    LH_OPTION_SET(SimOptions, set),
    LH_OPTION_RUN_FILES(SimOptions, files),
    { .name = "memory-timeline",
      .category = LH_ABOUT_FILES,
      .type = LH_FIELD_STRING,
      .offset = offsetof(SimOptions, memory_timeline),
      .flags = LH_FIELD_WRITTEN | LH_COMMAND_MAYBE_FIGURE,
      .placeholder = "FILE",
      .names = "files",
      .description = "Also write each rank's memory over time to this .csv or .json file, or draw "
                     "it for the rank with the highest peak to this .svg, .png or .pdf file." },
    { .name = "trace-links",
      .category = LH_ABOUT_FILES,
      .type = LH_FIELD_BOOL,
      .offset = offsetof(SimOptions, trace_links),
      .flags = LH_COMMAND_SHOWN,
      .description = "Also include the load of every link over time in the trace, in GB/s. The "
                     "file becomes up to several times as large." },
    LH_OPTION_WRITES(SimOptions, LH_ABOUT_FILES, "export", export,
                     "Also write the program in a format of other tools. A .goal file: GOAL, for "
                     "LogGOPSim. PREFIX.et: Chakra traces for ASTRA-sim, written to PREFIX.RANK.et "
                     "for each rank and PREFIX.groups.json. An .xml file: only the exchanges, for "
                     "MSCCL, if they gather one input."),
    { .name = "critical-path",
      .category = LH_ABOUT_OUTPUT,
      .type = LH_FIELD_BOOL,
      .offset = offsetof(SimOptions, critical_path),
      .flags = LH_COMMAND_SHOWN,
      .description = "Print the critical path instead: its chain of kernels, messages and links, "
                     "the slack of the rest, and the time that faster calls would save." },
    LH_OPTION_PROVENANCE(SimOptions, provenance),
    LH_OPTION_MAX_WORK(SimOptions, max_work_ps),
    { .name = NULL },
};

static void
print_section(const LhTable *table, LhFormat format, GString *out)
{
    g_string_append_c(out, '\n');
    lh_table_print(table, format, out);
}

static void
print_memory_limit(const LhSetup *setup, const LhCompareRow *row, GString *out)
{
    g_autofree char *limit = NULL;
    g_autoptr(LhReliefs) reliefs = NULL;

    if (row->state != LH_ROW_NO_MEMORY)
        return;
    limit = lh_describe_memory_limit(setup, row->result);
    g_string_append_printf(out, "\nIt does not fit in memory: %s.\n", limit);
    if (row->made != NULL)
        reliefs = lh_reliefs(setup, g_ptr_array_index(setup->schedules, 0), NULL);
    if (reliefs != NULL)
        lh_describe_reliefs(reliefs, out);
}

static void
print_sim_text(const SimOptions *o, const LhSetup *setup, const LhCompareRow *row, GString *out)
{
    const LhFormat format = (LhFormat)o->to.format;
    g_autoptr(LhTable) parts = lh_describe_parts(row->result);
    g_autoptr(LhTable) ranks = lh_describe_ranks(row);
    g_autoptr(LhTable) traffic = lh_describe_traffic(row);
    g_autoptr(LhTable) memory = lh_describe_memory(row->result);
    g_autoptr(LhTable) categories = lh_describe_categories(row->result);
    g_autofree char *ops = lh_format_count(row->result->ops);
    g_autofree char *name = lh_escaped_line(row->name);
    gsize from = out->len;

    g_string_append_printf(out, "%s (%s ops): ", name, ops);
    lh_describe_case(setup, out);
    lh_table_words(format, out, from);
    if (setup->step != NULL) {
        g_autoptr(LhTable) step = lh_describe_step(&row->step);

        print_section(step, format, out);
    }
    print_section(parts, format, out);
    print_section(ranks, format, out);
    print_section(traffic, format, out);
    if (categories != NULL)
        print_section(categories, format, out);
    print_section(memory, format, out);
    print_memory_limit(setup, row, out);
    g_string_append_c(out, '\n');
    from = out->len;
    lh_describe_interval(setup, row, out);
    lh_describe_trust(setup, row, "--provenance", out);
    lh_describe_extrapolation(&row->result->beyond, out);
    lh_table_words(format, out, from);
    if (o->provenance && setup->cost == LH_COST_DEVICE) {
        g_autoptr(LhTable) constants = lh_describe_constants(setup);

        print_section(constants, format, out);
    }
}

/* Prints JSON or CSV: one run is a comparison of one schedule. */
static void
print_for_machines(const LhCommandLine *line, const LhSetup *setup, LhCompareRow *row, GString *out)
{
    const SimOptions *o = line->options;
    const LhStamp stamp = lh_command_stamp(line);
    g_autoptr(GPtrArray) rows = g_ptr_array_new();
    const LhComparison one = { .rows = rows, .fit_count = row->state == LH_ROW_RAN };
    g_autoptr(LhTable) table = NULL;

    g_ptr_array_add(rows, row);
    if (o->to.format == LH_FORMAT_JSON) {
        lh_result_json(setup, &one, &stamp, out);
        return;
    }
    table = lh_result_table(setup, &one);
    lh_table_print(table, LH_FORMAT_CSV, out);
}

/* Tables of a critical path, in order. */
static LhTable *(*const critical_tables[])(const LhCritical *) = {
    lh_describe_path_resources, lh_describe_path_phases,  lh_describe_path_ranks,
    lh_describe_slack,          lh_describe_faster_calls, lh_describe_faster_ops,
};

static void
print_critical_text(const LhSetup *setup, const LhCompareRow *row, const LhCritical *critical,
                    LhFormat format, GString *out)
{
    g_autofree char *name = lh_escaped_line(row->name);
    gsize from = out->len;

    g_string_append_printf(out, "%s: ", name);
    lh_describe_case(setup, out);
    lh_table_words(format, out, from);
    for (guint i = 0; i < G_N_ELEMENTS(critical_tables); i++) {
        g_autoptr(LhTable) table = critical_tables[i](critical);

        print_section(table, format, out);
    }
    g_string_append_c(out, '\n');
    from = out->len;
    lh_describe_trust(setup, row, "--provenance", out);
    lh_table_words(format, out, from);
}

/* Finds and prints the critical path of a row that ran. */
static bool
print_critical(const LhCommandLine *line, const LhSetup *setup, const LhCompareRow *row,
               GString *out, GError **error)
{
    const SimOptions *o = line->options;
    const LhStamp stamp = lh_command_stamp(line);
    LhProgressLine progress;
    const LhTask task = { .progress = lh_progress_draw, .data = &progress };
    g_autoptr(LhCritical) critical = NULL;
    g_autoptr(LhTable) table = NULL;

    lh_progress_start(&progress, 0);
    critical = lh_critical_find(setup, row, &task, error);
    lh_progress_end(&progress);
    if (critical == NULL)
        return false;
    if (o->to.format == LH_FORMAT_JSON) {
        lh_critical_json(setup, row, critical, &stamp, out);
    } else if (o->to.format == LH_FORMAT_CSV) {
        table = lh_critical_table(critical);
        lh_table_print(table, LH_FORMAT_CSV, out);
    } else {
        print_critical_text(setup, row, critical, (LhFormat)o->to.format, out);
    }
    return true;
}

/* Returns the program; NULL if the schedule refuses the case. Caller frees @made. */
static const LhProgram *
program_of(const LhSetup *setup, LhProgram **made)
{
    if (setup->program != NULL)
        return setup->program;
    *made = lh_setup_program(setup, g_ptr_array_index(setup->schedules, 0), NULL);
    return *made;
}

/* Estimated duration of the simulation; 0 if the schedule refuses the case. */
static double
seconds_to_simulate(const LhSetup *setup)
{
    g_autoptr(LhProgram) made = NULL;
    const LhProgram *program = program_of(setup, &made);

    return program == NULL ? 0 : lh_run_time_simulate(program);
}

/* Recorders of a simulation; NULL: none. */
typedef struct {
    LhTimeline *timeline;
    LhTrace *trace;
    LhMemoryTimeline *memory;
    LhMemoryEnvelope *envelope;
    bool links; /* the trace records link loads */
} Watchers;

static void
tell_op(void *data, const LhTimelineRecord *record)
{
    const Watchers *to = data;

    if (to->timeline != NULL)
        lh_timeline_collect(to->timeline, record);
    if (to->trace != NULL)
        lh_trace_add(to->trace, record);
}

static void
tell_memory(void *data, const LhMemoryRecord *record)
{
    const Watchers *to = data;

    if (to->memory != NULL)
        lh_memory_timeline_add(to->memory, record);
    if (to->envelope != NULL)
        lh_memory_envelope_add(to->envelope, record);
    if (to->trace != NULL)
        lh_trace_add_memory(to->trace, record);
}

static void
tell_link(void *data, uint32_t link, LhTime time_ps, double bytes_per_s)
{
    const Watchers *to = data;

    lh_trace_add_link(to->trace, link, time_ps, bytes_per_s);
}

static LhCompareRow *
simulate(const LhSetup *setup, Watchers *to, bool critical)
{
    const bool ops = to->timeline != NULL || to->trace != NULL;
    const bool memory = to->memory != NULL || to->envelope != NULL || to->trace != NULL;
    LhProgressLine progress;
    LhHooks hooks = { .task = { .progress = lh_progress_draw, .data = &progress },
                      .timeline = ops ? tell_op : NULL,
                      .timeline_data = to,
                      .memory = memory ? tell_memory : NULL,
                      .memory_data = to,
                      .links = to->links && to->trace != NULL ? tell_link : NULL,
                      .links_data = to };
    LhCompareRow *row;

    if (critical)
        lh_critical_hooks(&hooks);
    lh_progress_start(&progress, seconds_to_simulate(setup));
    row = setup->program != NULL
              ? lh_compare_run_program(setup, setup->program, &hooks)
              : lh_compare_run(setup, g_ptr_array_index(setup->schedules, 0), &hooks);
    lh_progress_end(&progress);
    return row;
}

/* Files written in addition to the result. */
typedef struct {
    LhRunFiles run;
    LhProgram *traced;          /* program of the trace, unless the setup has one */
    LhMemoryTimeline *memory;   /* NULL: not written as CSV or JSON */
    const char *memory_figure;  /* path; NULL: no figure */
    LhMemoryEnvelope *envelope; /* for the figure, once its rank is known */
} Files;

static void
files_clear(Files *files)
{
    lh_run_files_clear(&files->run);
    if (files->traced != NULL)
        lh_program_free(files->traced);
    lh_memory_timeline_free(files->memory);
    g_free(files->envelope);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Files, files_clear)

/* A refused case has nothing to trace. */
static bool
begin_trace(Files *files, const LhSetup *setup, GError **error)
{
    const LhProgram *program;

    if (files->run.options->trace == NULL)
        return true;
    program = program_of(setup, &files->traced);
    return program == NULL || lh_run_files_begin_trace(&files->run, setup, program, error);
}

/* Prepares the files before the run. */
static bool
files_init(Files *files, const LhCommandLine *line, const LhSetup *setup, GError **error)
{
    const SimOptions *o = line->options;
    const LhMemoryTimelineOf of = { .setup = setup,
                                    .schedule = lh_run_name(setup),
                                    .stamp = &files->run.stamp };

    if (o->trace_links && o->files.trace == NULL) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "--trace-links has no effect without --trace");
        return false;
    }
    if (!lh_run_files_init(&files->run, &o->files, setup, false, error) ||
        (o->memory_timeline != NULL && !lh_memory_timeline_check_path(o->memory_timeline, error)) ||
        (o->export != NULL && !lh_export_check_path(o->export, error)) ||
        !begin_trace(files, setup, error))
        return false;
    if (o->memory_timeline != NULL && lh_figure_has_path(o->memory_timeline)) {
        files->memory_figure = o->memory_timeline;
        return true;
    }
    if (o->memory_timeline != NULL)
        files->memory = lh_memory_timeline_new(o->memory_timeline, &of, error);
    return o->memory_timeline == NULL || files->memory != NULL;
}

/*
 * Repeats the simulation, which is deterministic, to record the ops of the rank that finished last
 * or the memory of the rank with the highest peak: these ranks are known only after the first run.
 */
static void
play_again(Files *files, const LhSetup *setup, const LhCompareRow *row, uint32_t last)
{
    const bool kept = lh_run_files_add_last(&files->run, last);
    LhTotals totals;
    Watchers to;

    if (files->memory_figure != NULL) {
        lh_totals(row->result, &totals);
        files->envelope = lh_memory_envelope_new(totals.peak_rank, row->result->makespan_ps);
    }
    if (kept && files->envelope == NULL)
        return;
    to = (Watchers){ .timeline = kept ? NULL : files->run.timeline, .envelope = files->envelope };
    lh_compare_row_free(simulate(setup, &to, false));
}

static bool
write_memory(Files *files, const LhSetup *setup, const LhCompareRow *row, GError **error)
{
    const LhMemoryFigure figure = { .setup = setup,
                                    .name = row->name,
                                    .program = row->program,
                                    .result = row->result,
                                    .envelope = files->envelope };

    if (files->memory != NULL)
        return lh_memory_timeline_finish(files->memory, error);
    if (files->envelope == NULL)
        return true;
    lh_memory_envelope_finish(files->envelope);
    return lh_memory_figure_draw(&figure, (LhFigureTo){ .path = files->memory_figure }, error);
}

/* If one file cannot be written, the others still are. */
static bool
write_sim_files(Files *files, const SimOptions *o, const LhSetup *setup, const LhCompareRow *row,
                GError **error)
{
    const uint32_t last = lh_gantt_last_rank(row->result, &files->run.frame);
    LhGantt gantt = { .setup = setup,
                      .name = row->name,
                      .program = row->program,
                      .makespan_ps = row->result->makespan_ps,
                      .last_rank = last,
                      .bubble = lh_sim_bubble_fraction(row->result) };
    bool ok;

    play_again(files, setup, row, last);
    ok = lh_run_files_write(&files->run, &gantt, error);
    ok = write_memory(files, setup, row, ok ? error : NULL) && ok;
    return (o->export == NULL ||
            lh_export_write(o->export, setup, row->program, ok ? error : NULL)) &&
           ok;
}

/* If the schedule refused the case, the answer is no, with its reason. A row without a result
 * otherwise means that the simulation failed. JSON and CSV already have that as the state of the
 * result. */
static bool
check_row(const LhCompareRow *row, GError **error)
{
    if (row->result != NULL)
        return true;
    g_set_error(error, LH_ERROR, row->state == LH_ROW_REFUSED ? LH_ERROR_NO : LH_ERROR_RUNTIME,
                "%s: %s", row->name, row->reason);
    return false;
}

/* Prints the result, if there is one. */
static bool
print_sim(const LhCommandLine *line, const LhSetup *setup, LhCompareRow *row, GString *out,
          GError **error)
{
    const SimOptions *o = line->options;

    if (o->critical_path && row->result != NULL)
        return print_critical(line, setup, row, out, error);
    if (o->to.format == LH_FORMAT_JSON || o->to.format == LH_FORMAT_CSV)
        print_for_machines(line, setup, row, out);
    else if (row->result != NULL)
        print_sim_text(o, setup, row, out);
    return true;
}

/* Estimated duration; each what-if of the critical path is another simulation. */
static double
work_of(const SimOptions *o, const LhSetup *setup)
{
    return seconds_to_simulate(setup) * (o->critical_path ? 1 + 2 * LH_CRITICAL_TOP : 1);
}

/* Says beforehand that the critical path may need much memory: that of a folded run unless single
 * ops must be followed on every rank. */
static void
announce_memory(const SimOptions *o, const LhSetup *setup)
{
    g_autoptr(LhProgram) made = NULL;
    const LhProgram *program = o->critical_path ? program_of(setup, &made) : NULL;
    const double bytes = program == NULL ? 0 : lh_run_memory_waits(program);

    if (bytes >= GIB)
        fprintf(stderr, "longhaul: --critical-path needs up to %.1f GiB of memory\n", bytes / GIB);
}

static LhAnswer
run_sim(const LhCommandLine *line, GError **error)
{
    const SimOptions *o = line->options;
    g_autoptr(LhSetup) setup = NULL;
    g_autoptr(LhCompareRow) row = NULL;
    g_auto(Files) files = { .memory = NULL };
    Watchers to;
    g_autoptr(GString) out = g_string_new(NULL);

    if (!lh_command_check_provenance(o->provenance, o->to.format, error) ||
        !lh_command_check_program(line, error))
        return LH_ANSWER_FAILED;
    lh_command_warn_config(line);
    files.run.stamp = lh_command_stamp(line);
    setup = lh_setup_new(line->scenario, error);
    if (setup == NULL || !lh_setup_check_one(setup, error) ||
        !files_init(&files, line, setup, error) ||
        !lh_prove_setup(setup, LH_PROVE_TO_SIMULATE, error) ||
        !lh_run_time_check(work_of(o, setup), o->max_work_ps, error))
        return LH_ANSWER_FAILED;
    announce_memory(o, setup);
    to = (Watchers){ .timeline = files.run.timeline,
                     .trace = files.run.trace,
                     .memory = files.memory,
                     .links = o->trace_links };
    row = simulate(setup, &to, o->critical_path);
    if (!print_sim(line, setup, row, out, error) ||
        (out->len > 0 && !lh_command_write(&o->to, out, error)) ||
        (row->result != NULL && !write_sim_files(&files, o, setup, row, error)) ||
        !check_row(row, error))
        return LH_ANSWER_FAILED;
    return row->state == LH_ROW_NO_MEMORY ? LH_ANSWER_NO : LH_ANSWER_YES;
}

const LhCommand lh_command_sim = {
    .name = "sim",
    .arguments = "[SCENARIO] [OPTIONS]",
    .summary = "Simulate one schedule in detail: its time, traffic, memory and timeline.",
    .details = "Simulates one attention module under one schedule, given by --schedule or the\n"
               "scenario. Exit status 1 if the schedule refuses the case, or needs more memory\n"
               "than a GPU has.\n\n"
               "  longhaul sim dfa-2node --schedule zigzag\n"
               "  longhaul sim --ranks 8 --schedule ring --figure ring.svg --timeline ring.csv\n"
               "  longhaul sim --schedule-file mine.schedule.json --cluster dgx-a100-80g\n",
    .scenario = true,
    .one_program = true,
    .config_parts = LH_CONFIG_QUESTION | LH_CONFIG_WAY | LH_CONFIG_SCHEDULE,
    .common = { "--schedule", "--model", "--cluster", "--seq-length", "--ranks", "--step",
                "--trace", "--critical-path", "--format", "--output" },
    .options = sim_options,
    .options_size = sizeof(SimOptions),
    .run = run_sim,
};
