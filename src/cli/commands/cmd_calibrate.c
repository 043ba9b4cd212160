/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longhaul calibrate: measures kernels, executor and messages, on this machine or on a cluster.
 */
#include "base/error.h"
#include "base/files/output.h"
#include "calibrate/calibration_profile.h"
#include "cli/command.h"
#include "report/text/cluster/describe_machine.h"
#include "runtime/thread_affinity.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define REPEATS_FULL 7
#define REPEATS_QUICK 3
#define REPEATS_MAX 1000
#define THREADS_MAX 1024
#define IDLE_S 0.01 /* idle: other work evicts the caches; about as long as a message */

typedef struct {
    LhOutputOptions to;
    char *topology;
    int backend; /* index of lh_backends */
    char *cluster;
    uint64_t ranks;
    char *kernels;
    int dtype; /* LhDtype */
    uint64_t repeat;
    LhTime deadline_ps;
    int statistic; /* LhStatistic */
    uint64_t threads;
    bool quick;
} CalibrateOptions;

static const LhField calibrate_options[] = {
    LH_OPTION_FORMAT(CalibrateOptions, to),
    LH_OPTION_WRITES(CalibrateOptions, LH_ABOUT_OUTPUT, "output", to.file,
                     "File to write the profile to; with - the profile goes to standard output in "
                     "place of the tables."),
    LH_OPTION_WRITES(
        CalibrateOptions, LH_ABOUT_FILES, "topology", topology,
        "With --backend mpi or tcp, file to write the cluster to that was found: its nodes, "
        "ranks, adapters and links."),
    { .name = "backend",
      .category = LH_ABOUT_RUNNING,
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(CalibrateOptions, backend),
      .choices = lh_backend_names,
      .description =
          "What to measure: this machine, with threads as ranks (cpu, default); the hosts of the "
          "processes started by mpirun (mpi) or any launcher (tcp), one rank per process; one GPU "
          "(cuda); or one GPU per rank with the links between them (nccl)." },
    { .name = "cluster",
      .category = LH_ABOUT_CLUSTER,
      .type = LH_FIELD_STRING,
      .offset = offsetof(CalibrateOptions, cluster),
      .placeholder = "NAME",
      .names = "topologies",
      .description = "Cluster these GPUs belong to (a name from `longhaul list topologies`, or a "
                     "file). Calibration fits the constants of its device and links. Needed with "
                     "--backend cuda and nccl." },
    { .name = "ranks",
      .category = LH_ABOUT_CLUSTER,
      .type = LH_FIELD_UINT,
      .offset = offsetof(CalibrateOptions, ranks),
      .min = 1,
      .max = THREADS_MAX,
      .description = "With --backend nccl in one process: number of GPUs of this machine to "
                     "measure; default 2." },
    LH_OPTION_KERNELS(CalibrateOptions, kernels),
    { .name = "dtype",
      .category = LH_ABOUT_MEASUREMENT,
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(CalibrateOptions, dtype),
      .choices = lh_activation_names,
      .description = "Element type of the activations; default bf16." },
    { .name = "repeat",
      .category = LH_ABOUT_MEASUREMENT,
      .type = LH_FIELD_UINT,
      .offset = offsetof(CalibrateOptions, repeat),
      .min = 1,
      .max = REPEATS_MAX,
      .description = "Number of timings per result; default 7, with --quick 3." },
    LH_OPTION_DEADLINE(CalibrateOptions, deadline_ps,
                       "Abort if no op and no message completes, or another process is silent, for "
                       "this long; default 60 s, on GPUs 120 s."),
    { .name = "statistic",
      .category = LH_ABOUT_MEASUREMENT,
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(CalibrateOptions, statistic),
      .choices = lh_statistic_names,
      .description = "Statistic of repeated timings: the median (default), or the best, for a "
                     "machine with other load." },
    { .name = "threads",
      .category = LH_ABOUT_MEASUREMENT,
      .type = LH_FIELD_UINT,
      .offset = offsetof(CalibrateOptions, threads),
      .min = 1,
      .max = THREADS_MAX,
      .description =
          "Number of cores that call a kernel at the same time, as ranks do; default all." },
    { .name = "quick",
      .category = LH_ABOUT_MEASUREMENT,
      .type = LH_FIELD_BOOL,
      .offset = offsetof(CalibrateOptions, quick),
      .description = "Measure fewer block lengths, and only one head dimension." },
    { .name = NULL },
};

static bool
progress(void *data, const LhProgress *at)
{
    (void)data;
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[Kmeasuring %s", at->what);
    return true;
}

static void
end_progress(void)
{
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

/* Returns today's date, or that of SOURCE_DATE_EPOCH, which reproducible builds set. Caller
 * frees. */
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
    if (c->cluster != NULL) {
        g_autoptr(LhTable) links = lh_describe_cluster(c->cluster);

        g_string_append_c(out, '\n');
        lh_table_print(links, format, out);
    }
    if (c->checks != NULL) {
        g_autoptr(LhTable) collectives = lh_describe_collectives(c->checks);

        g_string_append_c(out, '\n');
        lh_table_print(collectives, format, out);
    }
    if (format == LH_FORMAT_TABLE)
        g_string_append(out, c->gpus ? "\nR(s) = R_inf / (1 + s0 / s), s keys. Held out: worst "
                                       "error at measured lengths not used by\n"
                                       "the fit.\n"
                                     : "\nR(s, q) = R_inf / (1 + s0 / s + s1 / q), s keys by q "
                                       "queries. Held out: worst error of measured\n"
                                       "blocks not used by the fit.\n");
}

static bool
write_calibration(const CalibrateOptions *o, const LhCalibration *c, const GString *profile,
                  const char *date, GError **error)
{
    g_autoptr(GString) topology = g_string_new(NULL);
    g_autofree char *name = lh_command_base_name(o->topology, "cluster");

    if (lh_command_is_file(o->to.file) &&
        !lh_output_file(o->to.file, profile->str, profile->len, error))
        return false;
    if (o->topology == NULL)
        return true;
    lh_calibration_write_topology(c, name, date, topology);
    return lh_command_is_file(o->topology)
               ? lh_output_file(o->topology, topology->str, topology->len, error)
               : lh_output_stdout(topology->str, topology->len, error);
}

static bool
print_calibrate(const CalibrateOptions *o, const LhCalibration *c, GError **error)
{
    const LhOutputOptions *to = &o->to;
    g_autoptr(GString) document = g_string_new(NULL);
    g_autoptr(GString) out = g_string_new(NULL);
    g_autofree char *name =
        lh_command_base_name(to->file, c->cluster != NULL ? "cluster" : "this-machine");
    g_autofree char *date = date_text();

    lh_calibration_write(c, name, date, document);
    if (!write_calibration(o, c, document, date, error))
        return false;
    if ((to->file != NULL && !lh_command_is_file(to->file)) || to->format == LH_FORMAT_JSON)
        return lh_output_stdout(document->str, document->len, error);
    print_tables((LhFormat)to->format, c, out);
    if (lh_command_is_file(to->file) && to->format == LH_FORMAT_TABLE)
        g_string_append_printf(out, "Written to %s: longhaul validate --profile %s%s%s%s%s\n",
                               to->file, to->file, o->backend != 0 ? " --backend " : "",
                               o->backend != 0 ? lh_backend_names[o->backend] : "",
                               o->backend != 0 ? " --cluster " : "",
                               o->cluster != NULL                ? o->cluster
                               : lh_command_is_file(o->topology) ? o->topology
                               : o->backend != 0                 ? "FILE"
                                                                 : "");
    return lh_output_stdout(out->str, out->len, error);
}

static bool
refuse_usage(GError **error, const char *text)
{
    g_set_error_literal(error, LH_ERROR, LH_ERROR_USAGE, text);
    return false;
}

/* Rejects options that do not apply to GPUs, or apply to GPUs only. */
static bool
check_options(const CalibrateOptions *o, bool gpus, GError **error)
{
    if (gpus && o->cluster == NULL)
        return refuse_usage(
            error, "--backend cuda and nccl need --cluster NAME, the cluster these GPUs belong to");
    if (gpus && o->topology != NULL)
        return refuse_usage(error, "--topology has no effect on GPUs: their cluster is --cluster");
    if (gpus && o->threads != 0)
        return refuse_usage(
            error, "--threads has no effect on GPUs: all of them call a kernel at the same time");
    if (!gpus && o->cluster != NULL)
        return refuse_usage(error, "--cluster has no effect without --backend cuda or nccl");
    if (o->ranks != 0 && lh_backends[o->backend] != &lh_backend_nccl)
        return refuse_usage(error, "--ranks has no effect without --backend nccl");
    return true;
}

/* With processes, each is a rank that measures on one core, wherever the system puts it. */
static bool
choose_backend(const CalibrateOptions *o, LhCalibrateParams *params, GError **error)
{
    const bool threads = lh_backends[o->backend] == &lh_backend_cpu;
    const bool gpus = lh_backends[o->backend]->links != NULL;

    params->backend = lh_backends[o->backend];
    params->ranks = o->ranks != 0                                 ? (uint32_t)o->ranks
                    : gpus && !params->backend->links->needs_both ? 2
                                                                  : 1;
    if (!check_options(o, gpus, error))
        return false;
    params->measure.pin = threads;
    params->measure.idle_s = threads ? 0 : IDLE_S;
    params->measure.threads = o->threads != 0 ? (uint32_t)o->threads
                              : threads       ? lh_cores_count()
                                              : 1;
    if (threads && o->topology != NULL) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "--topology: threads of one machine are always the cluster this-machine; to "
                    "detect a cluster use --backend mpi or tcp");
        return false;
    }
    if (!threads && o->threads > 1) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "--threads: with --backend mpi or tcp every process is a rank with one thread; "
                    "start one process per rank");
        return false;
    }
    return true;
}

static const LhControl *
calibrate_control(const LhCommandLine *line)
{
    const CalibrateOptions *o = line->options;

    return lh_backends[o->backend]->control;
}

static LhAnswer
run_calibrate(const LhCommandLine *line, GError **error)
{
    const CalibrateOptions *o = line->options;
    const uint32_t repeats = o->quick ? REPEATS_QUICK : REPEATS_FULL;
    LhCalibrateParams params = {
        .measure = { .statistic = (LhStatistic)o->statistic,
                     .repeats = o->repeat != 0 ? (uint32_t)o->repeat : repeats },
        .quick = o->quick,
        .deadline_us = o->deadline_ps / LH_PS_PER_US,
        .dtype = (LhDtype)o->dtype,
        .task = { .progress = progress },
    };
    g_autoptr(LhCalibration) calibration = NULL;
    g_autoptr(LhTopology) topology = NULL;
    g_autoptr(LhDevice) device = NULL;

    if (!choose_backend(o, &params, error) ||
        !lh_command_kernels(o->kernels, params.backend->device, &params.measure.kernel_set, error))
        return LH_ANSWER_FAILED;
    if (o->cluster != NULL) {
        params.topology = topology = lh_topology_load(o->cluster, error);
        params.device = device =
            topology == NULL ? NULL : lh_device_load(topology->device_name, error);
        if (device == NULL)
            return LH_ANSWER_FAILED;
    }
    calibration = lh_calibrate(&params, error);
    end_progress();
    if (calibration == NULL)
        return LH_ANSWER_FAILED;
    return !calibration->first || print_calibrate(o, calibration, error) ? LH_ANSWER_YES
                                                                         : LH_ANSWER_FAILED;
}

const LhCommand lh_command_calibrate = {
    .name = "calibrate",
    .arguments = "[OPTIONS] -o PROFILE",
    .summary = "Measure this machine and write a profile for sim, compare and validate.",
    .details = "Times the kernels at several block lengths, masks and head dimensions, then how\n"
               "long the executor takes to issue an op and to synchronise, and messages between\n"
               "threads. Fits the simulator's constants to these times, and prints the errors of\n"
               "the fits. The profile is for the cluster this-machine, whose ranks are the cores\n"
               "of this machine. With --backend mpi or tcp, in many processes, it also detects\n"
               "hosts and shared adapters, measures the links inside and between hosts, and\n"
               "writes a topology file of the cluster. With --backend cuda or nccl it measures\n"
               "GPUs, as those of the cluster named: kernels on all of them at once, the host's\n"
               "calls, messages by kind of link, collectives of the library, and kernels beside\n"
               "messages; the profile is for that cluster. docs/manual/validation.md describes\n"
               "the method.\n\n"
               "  longhaul calibrate -o here.json\n"
               "  longhaul calibrate --quick --statistic best -o here.json\n"
               "  longhaul sim --cluster this-machine --ranks 2 --schedule ring \\\n"
               "      --profile here.json\n"
               "  mpirun -n 8 longhaul calibrate --backend mpi -o profile.json \\\n"
               "      --topology cluster.json\n"
               "  longhaul calibrate --backend nccl --ranks 8 --cluster hgx-h100 -o gpus.json\n",
    .common = { "--backend", "--cluster", "--ranks", "--topology", "--quick", "--repeat",
                "--format", "--output" },
    .options = calibrate_options,
    .options_size = sizeof(CalibrateOptions),
    .run = run_calibrate,
    .control = calibrate_control,
    .deadline_s = 120,
};
