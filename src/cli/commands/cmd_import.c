/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longhaul import: reads profiler traces of a run and fits the simulator's constants to them.
 */
#include "base/error.h"
#include "base/files/output.h"
#include "cli/command.h"
#include "import/trace/kineto.h"
#include "import/trace/trace_fit_profile.h"
#include "proof/proof_cases.h"
#include "proof/proven.h"
#include "report/text/cluster/describe_import.h"
#include "report/text/describe.h"
#include "scenario/step/setup_step.h"

#include <stddef.h>
#include <string.h>

#define TRACES_MAX 65536

typedef struct {
    LhOutputOptions to;
    GPtrArray *from;             /* of char * */
    char *timeline;              /* path; NULL: not written */
    uint64_t unpacked_bytes_max; /* 0: not given */
} ImportOptions;

static const LhField import_options[] = {
    LH_OPTION_FORMAT(ImportOptions, to),
    LH_OPTION_FROM(ImportOptions, from, TRACES_MAX,
                   "Trace of one rank: JSON of PyTorch's profiler (may be gzipped) or of longhaul "
                   "sim --trace, or a database written by nsys export --type sqlite. For a folder, "
                   "all its .json, .json.gz and .sqlite files are read."),
    { .name = "max-unpacked",
      .category = LH_ABOUT_INPUT,
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_BYTES,
      .offset = offsetof(ImportOptions, unpacked_bytes_max),
      .min = 1,
      .max = -1,
      .placeholder = "SIZE",
      .description = "Refuse a packed trace that is longer than this when it is unpacked, such as "
                     "8GiB; default " LH_KINETO_UNPACKED "." },
    LH_OPTION_WRITES(ImportOptions, LH_ABOUT_OUTPUT, "output", to.file,
                     "File to write the profile to; with - the profile goes to standard output in "
                     "place of the tables."),
    LH_OPTION_WRITES(ImportOptions, LH_ABOUT_FILES, "timeline", timeline,
                     "Also write each op's measured and simulated time to this .csv file."),
    { .name = NULL },
};

/* --- files --------------------------------------------------------------------------------------
 */

static int
by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds the traces in a folder, sorted by name. */
static bool
add_folder(GPtrArray *paths, const char *folder, GError **error)
{
    g_autoptr(GError) why = NULL;
    g_autoptr(GDir) dir = g_dir_open(folder, 0, &why);
    const guint had = paths->len;
    const char *name;

    if (dir == NULL) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "%s: cannot be read: %s", folder,
                    why->message);
        return false;
    }
    while ((name = g_dir_read_name(dir)) != NULL) {
        if (g_str_has_suffix(name, ".json") || g_str_has_suffix(name, ".json.gz") ||
            g_str_has_suffix(name, ".sqlite"))
            g_ptr_array_add(paths, g_build_filename(folder, name, NULL));
    }
    if (paths->len == had) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%s: no file in it ends in .json, .json.gz or .sqlite", folder);
        return false;
    }
    qsort(paths->pdata + had, paths->len - had, sizeof(gpointer), by_name);
    return true;
}

static GPtrArray *
find_paths(const ImportOptions *o, GError **error)
{
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);

    if (o->from == NULL || o->from->len == 0) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "import: no traces given; use --from FILE");
        return NULL;
    }
    for (guint i = 0; i < o->from->len; i++) {
        const char *path = g_ptr_array_index(o->from, i);

        if (!g_file_test(path, G_FILE_TEST_IS_DIR))
            g_ptr_array_add(paths, g_strdup(path));
        else if (!add_folder(paths, path, error))
            return NULL;
    }
    return g_steal_pointer(&paths);
}

static LhGpuTraceRun *
read_traces(const GPtrArray *paths, uint64_t unpacked_bytes_max, GError **error)
{
    g_autoptr(LhGpuTraceRun) run = lh_gpu_trace_new();

    run->unpacked_bytes_max = unpacked_bytes_max;
    for (guint i = 0; i < paths->len; i++) {
        if (!lh_gpu_trace_load(run, g_ptr_array_index(paths, i), error))
            return NULL;
    }
    return lh_gpu_trace_finish(run, error) ? g_steal_pointer(&run) : NULL;
}

/* --- output -------------------------------------------------------------------------------------
 */

/* Returns the provenance text of the profile's values. Caller frees. */
static char *
source_of(const LhImported *imported)
{
    const LhTraceAlignment *m = imported->match;
    const char *first = g_array_index(imported->run->files, LhGpuTraceFile, 0).path;
    g_autofree char *base = g_path_get_basename(first);
    g_autofree char *valid = g_utf8_make_valid(base, -1);

    return g_strdup_printf("longhaul import: %s, ranks seen: %u of %u, steps: %u, calls in a step: "
                           "%u, traces from %.200s on",
                           imported->program->name, m->ranks, lh_program_ranks(imported->program),
                           MAX(m->steps, 1), m->calls, valid);
}

static void
print_table(LhTable *table, LhFormat format, GString *out)
{
    g_string_append_c(out, '\n');
    lh_table_print(table, format, out);
    lh_table_free(table);
}

static void
print_import_text(const LhImported *imported, const char *title, LhFormat format, GString *out)
{
    const LhTraceFit *t = imported->tuning;
    g_autofree char *before = lh_format_time(t->before_ps);
    g_autofree char *after = lh_format_time(t->makespan_ps);
    const gsize from = out->len;

    g_string_append(out, title);
    lh_table_words(format, out, from);
    print_table(lh_describe_traces(imported), format, out);
    print_table(lh_describe_tuned(imported), format, out);
    print_table(lh_describe_samples(imported), format, out);
    g_string_append_printf(
        out,
        "\n"
        "Simulated time: %s before the fit, %s after. Lengths of half rate and latencies not "
        "listed\n"
        "are unchanged: these traces cannot separate them from rates and bandwidths.\n",
        before, after);
    lh_describe_unmatched(imported, out);
}

static bool
write_imported_timeline(const ImportOptions *o, const LhImported *imported, GError **error)
{
    g_autoptr(LhTable) table = lh_imported_timeline(imported);
    g_autoptr(GString) out = g_string_new(NULL);

    lh_table_print(table, LH_FORMAT_CSV, out);
    return lh_output_file(o->timeline, out->str, out->len, error);
}

/* Describes the case before the fit. Caller frees. */
static char *
title_of(const LhImported *imported)
{
    GString *title = g_string_new(NULL);

    g_string_append_printf(title, "%s: ", imported->program->name);
    lh_describe_case(imported->setup, title);
    return g_string_free(title, FALSE);
}

static bool
print_import(const LhCommandLine *line, const LhImported *imported, const char *title,
             GError **error)
{
    const ImportOptions *o = line->options;
    const LhStamp stamp = lh_command_stamp(line);
    g_autoptr(GString) profile = g_string_new(NULL);
    g_autoptr(GString) out = g_string_new(NULL);
    g_autofree char *name = lh_command_base_name(o->to.file, "imported");
    g_autofree char *source = source_of(imported);

    lh_trace_fit_write(imported->tuning, imported->setup, name, source, profile);
    if (lh_command_is_file(o->to.file) &&
        !lh_output_file(o->to.file, profile->str, profile->len, error))
        return false;
    if (o->timeline != NULL && !write_imported_timeline(o, imported, error))
        return false;
    if (o->to.file != NULL && !lh_command_is_file(o->to.file))
        return lh_output_stdout(profile->str, profile->len, error);
    if (o->to.format == LH_FORMAT_JSON) {
        lh_imported_json(imported, &stamp, out);
    } else if (o->to.format == LH_FORMAT_CSV) {
        g_autoptr(LhTable) table = lh_describe_tuned(imported);

        lh_table_print(table, LH_FORMAT_CSV, out);
    } else {
        print_import_text(imported, title, (LhFormat)o->to.format, out);
    }
    return lh_output_stdout(out->str, out->len, error);
}

/* --- the command --------------------------------------------------------------------------------
 */

static LhProgram *
make_program(const LhSetup *setup, GError **error)
{
    return lh_setup_program(setup, g_ptr_array_index(setup->schedules, 0), error);
}

static bool
check_timeline(const ImportOptions *o, GError **error)
{
    return o->timeline == NULL || g_str_has_suffix(o->timeline, ".csv") ||
           lh_output_is_stream(o->timeline) ||
           lh_output_refuse("--timeline", o->timeline,
                            "a name that ends in .csv, a pipe or a device", error);
}

static LhAnswer
run_import(const LhCommandLine *line, GError **error)
{
    const ImportOptions *o = line->options;
    g_autoptr(GPtrArray) paths = NULL;
    g_autoptr(LhSetup) setup = NULL;
    g_autoptr(LhProgram) made = NULL;
    g_autoptr(LhGpuTraceRun) seen = NULL;
    g_autoptr(LhTraceAlignment) match = NULL;
    g_autoptr(LhTraceFit) tuning = NULL;
    g_autofree char *title = NULL;
    LhImported imported;

    if (!lh_command_check_program(line, error) || !check_timeline(o, error) ||
        (paths = find_paths(o, error)) == NULL)
        return LH_ANSWER_FAILED;
    setup = lh_setup_new(line->scenario, error);
    if (setup == NULL || !lh_setup_check_one(setup, error) ||
        !lh_prove_setup(setup, LH_PROVE_TO_SIMULATE, error))
        return LH_ANSWER_FAILED;
    if (setup->program == NULL && (made = make_program(setup, error)) == NULL)
        return LH_ANSWER_FAILED;
    seen = read_traces(paths, o->unpacked_bytes_max, error);
    if (seen == NULL)
        return LH_ANSWER_FAILED;
    imported = (LhImported){ .run = seen,
                             .setup = setup,
                             .program = made != NULL ? made : setup->program };
    imported.match = match = lh_trace_alignment_new(seen, setup, imported.program, error);
    if (match == NULL)
        return LH_ANSWER_FAILED;
    title = title_of(&imported);
    imported.tuning = tuning = lh_trace_fit(setup, imported.program, match, error);
    if (tuning == NULL)
        return LH_ANSWER_FAILED;
    return print_import(line, &imported, title, error) ? LH_ANSWER_YES : LH_ANSWER_FAILED;
}

const LhCommand lh_command_import = {
    .name = "import",
    .arguments = "[SCENARIO] [OPTIONS] --from FILE...",
    .summary = "Fit constants to traces of a run, and compare measured with simulated times.",
    .details = "Reads traces that PyTorch's profiler or Nsight Systems wrote on the ranks of a\n"
               "run with context parallelism, and simulates the case that the options describe.\n"
               "It must equal the run: model, length, schedule, cluster and ranks. Finds\n"
               "attention kernels, communication and steps in the traces, matches them with the\n"
               "ops of the schedule, and fits rates and bandwidths to the measured times. Writes\n"
               "them as a profile, which sim, compare and plan take with --profile. Exit status\n"
               "1 if the traces determine nothing, or do not match the case.\n"
               "docs/manual/traces.md describes the method.\n\n"
               "  longhaul import --cluster hgx-h100:1 --model llama-3-8b --seq-length 64K \\\n"
               "      --schedule te-p2p --from traces/ -o measured.json\n"
               "  longhaul sim --schedule zigzag --trace run.json\n"
               "  longhaul import --schedule zigzag --from run.json -o again.json\n",
    .scenario = true,
    .one_program = true,
    .common = { "--from", "--schedule", "--model", "--cluster", "--seq-length", "--ranks", "--step",
                "--timeline", "--format", "--output" },
    .options = import_options,
    .options_size = sizeof(ImportOptions),
    .run = run_import,
};
