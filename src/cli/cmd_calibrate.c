/*
 * longhaul calibrate: measures how long this machine's kernels, executor and memory transfers take.
 */
#include "base/error.h"
#include "base/output.h"
#include "cli/command.h"
#include "report/describe_machine.h"
#include "runtime/pin.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REPEATS_FULL 7
#define REPEATS_QUICK 3
#define REPEATS_MAX 1000
#define THREADS_MAX 1024

typedef struct {
    LhOutputOptions to;
    char *kernels;
    int dtype; /* LhDtype */
    uint64_t repeat;
    int statistic; /* LhStatistic */
    uint64_t threads;
    bool quick;
} Options;

static const LhField options[] = {
    LH_OPTION_FORMAT(Options, to),
    { .name = "output",
      .type = LH_FIELD_STRING,
      .offset = offsetof(Options, to.file),
      .flags = LH_COMMAND_OUTPUT,
      .placeholder = "FILE",
      .names = "files",
      .description = "File to write the profile to; with - the profile goes to standard output in "
                     "place of the tables." },
    LH_OPTION_KERNELS(Options, kernels),
    { .name = "dtype",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(Options, dtype),
      .choices = lh_dtype_names,
      .description = "Element type of the activations; default bf16." },
    { .name = "repeat",
      .type = LH_FIELD_UINT,
      .offset = offsetof(Options, repeat),
      .min = 1,
      .max = REPEATS_MAX,
      .description = "Number of timings for each result; default 7, with --quick 3." },
    { .name = "statistic",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(Options, statistic),
      .choices = lh_statistic_names,
      .description = "Which timing counts: the median (default), or the best, for a machine with "
                     "other load." },
    { .name = "threads",
      .type = LH_FIELD_UINT,
      .offset = offsetof(Options, threads),
      .min = 1,
      .max = THREADS_MAX,
      .description =
          "Number of cores that call a kernel at the same time, as ranks do; default: all." },
    { .name = "quick",
      .type = LH_FIELD_BOOL,
      .offset = offsetof(Options, quick),
      .description = "Measure fewer block lengths and one head dimension only." },
    { .name = NULL },
};

static void
progress(void *data, const char *what)
{
    (void)data;
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[Kmeasuring %s", what);
}

static void
end_progress(void)
{
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

/* Today's date, or that of SOURCE_DATE_EPOCH, which reproducible builds set. Caller frees. */
static char *
date_text(void)
{
    const char *epoch = g_getenv("SOURCE_DATE_EPOCH");
    g_autoptr(GDateTime) now = epoch != NULL
                                   ? g_date_time_new_from_unix_utc(g_ascii_strtoll(epoch, NULL, 10))
                                   : g_date_time_new_now_utc();

    return now == NULL ? g_strdup("1970-01-01") : g_date_time_format(now, "%Y-%m-%d");
}

static void
print_tables(LhFormat format, const LhCalibration *c, GString *out)
{
    g_autoptr(LhTable) rates = lh_describe_rates(c);
    g_autoptr(LhTable) elementwise = lh_describe_elementwise(c);
    g_autoptr(LhTable) executor = lh_describe_executor(c);

    if (format == LH_FORMAT_TABLE)
        g_string_append_printf(out, "%s\n%s\n\n", c->machine, c->method);
    lh_table_print(rates, format, out);
    g_string_append_c(out, '\n');
    lh_table_print(elementwise, format, out);
    g_string_append_c(out, '\n');
    lh_table_print(executor, format, out);
    if (format == LH_FORMAT_TABLE)
        g_string_append(out,
                        "\nR(s) = R_inf / (1 + s0 / s). Held out: the worst error at lengths that "
                        "were measured but not fitted.\n");
}

static bool
print(const LhOutputOptions *to, const LhCalibration *c, GError **error)
{
    g_autoptr(GString) document = g_string_new(NULL);
    g_autoptr(GString) out = g_string_new(NULL);
    g_autofree char *base = to->file == NULL ? g_strdup("-") : g_path_get_basename(to->file);
    g_autofree char *date = date_text();
    char *dot = strrchr(base, '.');

    if (dot != NULL && dot != base)
        *dot = '\0';
    lh_calibration_write(c, strcmp(base, "-") == 0 ? "this-machine" : base, date, document);
    if (to->file != NULL && strcmp(to->file, "-") != 0 &&
        !lh_output_file(to->file, document->str, document->len, error))
        return false;
    if ((to->file != NULL && strcmp(to->file, "-") == 0) || to->format == LH_FORMAT_JSON)
        return lh_output_stdout(document->str, document->len, error);
    print_tables((LhFormat)to->format, c, out);
    if (to->file != NULL && to->format == LH_FORMAT_TABLE)
        g_string_append_printf(out, "Written to %s: longhaul validate --profile %s\n", to->file,
                               to->file);
    return lh_output_stdout(out->str, out->len, error);
}

static int
run(const LhCommandLine *line, GError **error)
{
    const Options *o = line->options;
    const uint32_t repeats = o->quick ? REPEATS_QUICK : REPEATS_FULL;
    LhCalibrateParams params = {
        .measure = { .statistic = (LhStatistic)o->statistic,
                     .threads = o->threads != 0 ? (uint32_t)o->threads : lh_cores_count(),
                     .repeats = o->repeat != 0 ? (uint32_t)o->repeat : repeats },
        .quick = o->quick,
        .dtype = (LhDtype)o->dtype,
        .progress = progress,
    };
    g_autoptr(LhCalibration) calibration = NULL;

    if (!lh_command_kernels(o->kernels, &lh_device_cpu, &params.measure.kernel_set, error))
        return LH_ERROR_USAGE;
    calibration = lh_calibrate(&params, error);
    end_progress();
    if (calibration == NULL || !print(&o->to, calibration, error))
        return LH_ERROR_RUNTIME;
    return 0;
}

const LhCommand lh_command_calibrate = {
    .name = "calibrate",
    .arguments = "[OPTIONS] -o PROFILE",
    .summary = "Measure this machine and write a profile for sim, compare and validate.",
    .details = "Times the kernels at several block lengths, masks and head dimensions, then how\n"
               "long the executor takes to issue an op and to synchronise, and messages between\n"
               "threads. Fits the simulator's constants to these times, and prints how far the\n"
               "fits are off. The profile is for the cluster this-machine, whose ranks are the\n"
               "cores of this machine. docs/validate.md describes the method.\n\n"
               "  longhaul calibrate -o here.json\n"
               "  longhaul calibrate --quick --statistic best -o here.json\n"
               "  longhaul sim --cluster this-machine --ranks 2 --schedule ring \\\n"
               "      --profile here.json\n",
    .options = options,
    .options_size = sizeof(Options),
    .run = run,
};
