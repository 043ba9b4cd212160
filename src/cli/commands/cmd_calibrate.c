/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longhaul calibrate: measures how long kernels, executor and messages take, on this machine or on
 * a cluster.
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
#define IDLE_S 0.01 /* in which others take the caches; about what a message takes */

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
          "Measure this machine, whose ranks are threads (cpu, default), the machines of the "
          "processes that mpirun (mpi) or any launcher (tcp) has started, which are the ranks, "
          "one GPU (cuda), or a GPU for each rank and what joins them (nccl)." },
    { .name = "cluster",
      .category = LH_ABOUT_CLUSTER,
      .type = LH_FIELD_STRING,
      .offset = offsetof(CalibrateOptions, cluster),
      .placeholder = "NAME",
      .names = "topologies",
      .description = "With --backend cuda or nccl, the cluster that the GPUs are of, a word of "
                     "longhaul list clusters or a file: its device's tiles and its kinds of links "
                     "are what is fitted." },
    { .name = "ranks",
      .category = LH_ABOUT_CLUSTER,
      .type = LH_FIELD_UINT,
      .offset = offsetof(CalibrateOptions, ranks),
      .min = 1,
      .max = THREADS_MAX,
      .description = "With --backend nccl, the number of GPUs of this machine to measure, where "
                     "there is one process; default 2." },
    LH_OPTION_KERNELS(CalibrateOptions, kernels),
    { .name = "dtype",
      .category = LH_ABOUT_MEASUREMENT,
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(CalibrateOptions, dtype),
      .choices = lh_dtype_names,
      .description = "Element type of the activations; default bf16." },
    { .name = "repeat",
      .category = LH_ABOUT_MEASUREMENT,
      .type = LH_FIELD_UINT,
      .offset = offsetof(CalibrateOptions, repeat),
      .min = 1,
      .max = REPEATS_MAX,
      .description = "Number of timings for each result; default 7, with --quick 3." },
    LH_OPTION_DEADLINE(CalibrateOptions, deadline_ps,
                       "Give up when no op and no message has completed for this long, or another "
                       "process has told nothing; default 60 s, and 120 s of GPUs."),
    { .name = "statistic",
      .category = LH_ABOUT_MEASUREMENT,
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(CalibrateOptions, statistic),
      .choices = lh_statistic_names,
      .description = "Which timing counts: the median (default), or the best, for a machine with "
                     "other load." },
    { .name = "threads",
      .category = LH_ABOUT_MEASUREMENT,
      .type = LH_FIELD_UINT,
      .offset = offsetof(CalibrateOptions, threads),
      .min = 1,
      .max = THREADS_MAX,
      .description =
          "Number of cores that call a kernel at the same time, as ranks do; default: all." },
    { .name = "quick",
      .category = LH_ABOUT_MEASUREMENT,
      .type = LH_FIELD_BOOL,
      .offset = offsetof(CalibrateOptions, quick),
      .description = "Measure fewer block lengths and one head dimension only." },
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
        g_string_append(
            out, c->gpus ? "\nR(s) = R_inf / (1 + s0 / s), s keys. Held out: the worst error "
                           "at lengths that were measured but not\nfitted.\n"
                         : "\nR(s, q) = R_inf / (1 + s0 / s + s1 / q), s keys by q queries. "
                           "Held out: the worst error of\nblocks that were measured but not "
                           "fitted.\n");
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

/* What GPUs have no use for, and what others have none for. */
static bool
check_options(const CalibrateOptions *o, bool gpus, GError **error)
{
    if (gpus && o->cluster == NULL)
        return refuse_usage(error,
                            "--backend cuda and nccl: no cluster: give --cluster NAME, which says "
                            "what the GPUs and their links are");
    if (gpus && o->topology != NULL)
        return refuse_usage(error,
                            "--topology: the cluster of GPUs is the one of --cluster, over which "
                            "the profile is laid");
    if (gpus && o->threads != 0)
        return refuse_usage(error, "--threads: all GPUs call a kernel at the same time");
    if (!gpus && o->cluster != NULL)
        return refuse_usage(error, "--cluster: it is for GPUs, with --backend cuda or nccl");
    if (o->ranks != 0 && lh_backends[o->backend] != &lh_backend_nccl)
        return refuse_usage(error, "--ranks: it is for the GPUs of --backend nccl");
    return true;
}

/* A process is a rank: it measures on one core, wherever the system puts it. */
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
                    "--topology: threads of one machine are the cluster this-machine; a cluster is "
                    "found with --backend mpi or tcp");
        return false;
    }
    if (!threads && o->threads > 1) {
        g_set_error(
            error, LH_ERROR, LH_ERROR_USAGE,
            "--threads: with --backend mpi or tcp every process is a rank, which has one; start "
            "as many processes as there shall be ranks");
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
               "threads. Fits the simulator's constants to these times, and prints how far the\n"
               "fits are off. The profile is for the cluster this-machine, whose ranks are the\n"
               "cores of this machine. With --backend mpi or tcp, in many processes, it finds\n"
               "out which of them share a host, what links inside and between hosts reach, and\n"
               "who shares an adapter, and writes a topology file of the cluster as well.\n"
               "With --backend cuda or nccl it measures GPUs, as those of the cluster named:\n"
               "kernels on all of them at once, the host's calls, messages by kind of link,\n"
               "collectives of the library, and kernels beside messages; the profile is for that\n"
               "cluster.\n"
               "docs/manual/validation.md describes the method.\n\n"
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
