/* SPDX-License-Identifier: Apache-2.0 */
#include "calibrate/calibrate.h"

#include "base/allocation.h"
#include "base/error.h"
#include "calibrate/calibrate_private.h"
#include "calibrate/kernel_curves.h"
#include "kernels/cpu/cpu.h"
#include "measure/core_sharing.h"
#include "measure/fit.h"
#include "measure/interference.h"
#include "measure/measure_executor.h"
#include "measure/microbenchmarks.h"
#include "runtime/process/processes.h"
#include "runtime/thread_affinity.h"
#include "sim/cost/device.h"

#include <math.h>
#include <string.h>

#define TRANSFER_REPEATS_MAX 3
static const uint64_t transfer_bytes[] = { 4 << 10, 16 << 10, 64 << 10, 256 << 10,
                                           1 << 20, 4 << 20,  16 << 20 };

#define DEVICE "this-cpu" /* device of the ranks of a cluster that is found */
#define DEADLINE_DEFAULT_US INT64_C(60000000)
#define GPU_DEADLINE_DEFAULT_US INT64_C(120000000)
/* Shape of the ring that is timed for interference: a step sends 1 MiB. */
#define BESIDE_TOKENS 64
#define BESIDE_HEADS 32
#define BESIDE_HEAD_DIM 128

/* State of a calibration. */
typedef struct {
    const LhCalibrateParams *params;
    LhCalibration *c;
    LhProcesses processes;
} CpuJob;

static void
tell(const CpuJob *job, const char *what)
{
    lh_calibrate_tell(job->params, &job->processes, what);
}

/* ---- executor and transport ---- */

static bool
measure_executor(const CpuJob *job, GError **error)
{
    LhCalibration *c = job->c;
    double issue_s, sync_s;

    tell(job, "host");
    if (!lh_processes_wait(&job->processes, error) || !lh_measure_host(&issue_s, &sync_s, error) ||
        !lh_calibrate_median(&job->processes, &issue_s, NULL, error) ||
        !lh_calibrate_median(&job->processes, &sync_s, NULL, error))
        return false;
    c->device.kernel_launch_ps = lh_time_from_ps(fmax(issue_s, 0) * (double)LH_PS_PER_S);
    c->device.stream_sync_ps = lh_time_from_ps(fmax(sync_s, 0) * (double)LH_PS_PER_S);
    return true;
}

static bool
measure_link(const CpuJob *job, GError **error)
{
    const LhCalibrateParams *p = job->params;
    LhCalibration *c = job->c;
    const size_t count = G_N_ELEMENTS(transfer_bytes) - (p->quick ? 1 : 0);
    LhTransferPoint points[G_N_ELEMENTS(transfer_bytes)];
    /* Each repeat is a run of about twenty messages. */
    const uint32_t repeats = MIN(p->measure.repeats, TRANSFER_REPEATS_MAX);
    LhResiduals residuals;
    double alpha_s;

    for (size_t i = 0; i < count; i++) {
        g_autofree char *size = lh_format_bytes(transfer_bytes[i]);
        g_autofree char *what = g_strdup_printf("messages of %s", size);

        tell(job, what);
        points[i].bytes = (double)transfer_bytes[i];
        if (!lh_measure_transfer(repeats, &lh_backend_cpu, transfer_bytes[i], &points[i].seconds,
                                 error))
            return false;
    }
    if (!lh_fit_transfer(points, count, &alpha_s, &c->link.bandwidth, &residuals)) {
        g_set_error(error, LH_ERROR, LH_ERROR_NO,
                    "messages: time does not grow with size; is the machine busy?");
        return false;
    }
    c->link.latency_ps = lh_time_from_ps(alpha_s * (double)LH_PS_PER_S);
    c->link.from.provenance = LH_PROVENANCE_FITTED;
    c->link_residuals = lh_calibrate_residuals(&residuals, 0);
    c->link.from.source = g_strdup_printf(
        "%s; transport %s, one message at a time, 4 KiB to %u MiB, after Theil and Sen; residuals: "
        "median %.1f %%, worst %.1f %%",
        c->method, lh_transport_threads.name, (unsigned)(transfer_bytes[count - 1] >> 20),
        100 * residuals.median, 100 * residuals.worst);
    return true;
}

/* ---- processes ---- */

static bool
measure_flows(void *data, const LhClusterFlows *flows, double *seconds, GError **error)
{
    const CpuJob *job = data;
    const LhFlowsProbe probe = { .backend = job->params->backend,
                                 .ranks = job->processes.count,
                                 .to = flows->to,
                                 .answered = flows->answered,
                                 .bytes = flows->bytes,
                                 .rounds = flows->rounds };

    return lh_measure_flows(&probe, seconds, error) &&
           lh_processes_tell(&job->processes, seconds, probe.ranks, error);
}

static bool
tell_flows(void *data, const LhProgress *at)
{
    tell(data, at->what);
    return true;
}

static bool
measure_cluster(CpuJob *job, GError **error)
{
    g_auto(GStrv) hosts = lh_processes_texts(&job->processes, g_get_host_name(), error);
    const LhClusterParams params = { .ranks = job->processes.count,
                                     .hosts = (const char *const *)hosts,
                                     .measure = measure_flows,
                                     .data = job,
                                     .task = { .progress = tell_flows, .data = job } };

    if (hosts == NULL)
        return false;
    job->c->cluster = lh_cluster_find(&params, error);
    return job->c->cluster != NULL;
}

/* ---- the whole ---- */

/* Returns the first "model name" of /proc/cpuinfo; caller frees. */
static char *
processor_name(void)
{
    g_autofree char *text = NULL;
    const char *line, *colon, *end;

    if (!g_file_get_contents("/proc/cpuinfo", &text, NULL, NULL))
        return g_strdup("unknown processor");
    line = strstr(text, "model name");
    colon = line == NULL ? NULL : strchr(line, ':');
    end = colon == NULL ? NULL : strchr(colon, '\n');
    if (end == NULL || end - colon <= 2)
        return g_strdup("unknown processor");
    return g_strndup(colon + 2, (gsize)(end - colon - 2));
}

static char *
describe_method(const LhCalibrateParams *p)
{
    return g_strdup_printf(
        "longhaul calibrate%s: backend %s, kernels %s, %s, %s of %u timings, %u at a time%s",
        p->quick ? " --quick" : "", p->backend->name,
        p->backend->device->kernel_sets[p->measure.kernel_set], lh_dtype_names[p->dtype],
        lh_statistic_names[p->measure.statistic], p->measure.repeats, p->measure.threads,
        p->measure.pin ? "" : " in each process");
}

/* Measures how much cores slow down when they compute and move messages at the same time. */
static bool
measure_interference(CpuJob *job, GError **error)
{
    const LhInterference probe = { .backend = job->params->backend,
                                   .kernel_set = job->params->measure.kernel_set,
                                   .ranks = job->processes.count,
                                   .tokens = BESIDE_TOKENS,
                                   .heads = BESIDE_HEADS,
                                   .head_dim = BESIDE_HEAD_DIM,
                                   .dtype = job->params->dtype,
                                   .deadline_us = job->params->deadline_us };

    tell(job, "kernels during communication");
    return lh_measure_interference(&probe, &job->c->device.messages_hold, error) &&
           lh_processes_tell(&job->processes, &job->c->device.messages_hold, 1, error);
}

static bool
has_others(const CpuJob *job, GError **error)
{
    if (job->processes.count > 1)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                "--backend %s: there is one process; start at least two: mpirun -n 4 longhaul "
                "calibrate ...",
                job->params->backend->name);
    return false;
}

static bool
measure_all(CpuJob *job, GError **error)
{
    LhCalibration *c = job->c;
    const bool threads = job->params->backend == &lh_backend_cpu;
    g_autoptr(LhDevice) device = NULL;

    if (!lh_processes_agree(&job->processes, "way to measure", c->method, error))
        return false;
    /* Check this before spending a minute on kernels. */
    if (!threads && !has_others(job, error))
        return false;
    if (c->first && (device = lh_device_load(DEVICE, error)) == NULL)
        return false;
    if (!lh_core_sharing_find(&job->processes, &c->cores, error))
        return false;
    c->device.machine_ranks = c->cores.ranks;
    c->device.machine_cores = c->cores.cores;
    if (!lh_calibrate_kernels(job->params, &job->processes,
                              device != NULL ? device->matrix_rate : INFINITY, c, error))
        return false;
    return measure_executor(job, error) &&
           (threads
                ? measure_link(job, error)
                : measure_cluster(job, error) &&
                      lh_calibrate_collectives(job->params, &job->processes, c, device, error) &&
                      measure_interference(job, error));
}

static LhCalibration *
calibrate_processors(const LhCalibrateParams *params, GError **error)
{
    g_autoptr(LhCalibration) c = g_new0(LhCalibration, 1);
    g_autofree char *processor = processor_name();
    CpuJob job = { .params = params, .c = c };
    bool ok;

    lh_memory_keep();
    c->machine =
        g_strdup_printf("%s, %u cores, level %s", processor, lh_cores_count(), lh_cpu()->name);
    c->method = describe_method(params);
    c->device = lh_profile_nothing()->device;
    c->device.kernels = g_array_new(FALSE, FALSE, sizeof(LhKernelRate));
    c->device.elementwise = g_array_new(FALSE, FALSE, sizeof(LhKernelTraffic));
    if (!lh_processes_open(&job.processes, params->backend->control, params->deadline_us, error))
        return NULL;
    c->first = lh_processes_first(&job.processes);
    ok = measure_all(&job, error);
    lh_processes_close(&job.processes);
    return ok ? g_steal_pointer(&c) : NULL;
}

LhCalibration *
lh_calibrate(const LhCalibrateParams *params, GError **error)
{
    const bool gpus = params->backend->links != NULL;
    LhCalibrateParams with = *params;

    if (with.deadline_us == 0)
        with.deadline_us = gpus ? GPU_DEADLINE_DEFAULT_US : DEADLINE_DEFAULT_US;
    lh_microbenchmark_set_deadline(with.deadline_us);
    return gpus ? lh_calibrate_gpus(&with, error) : calibrate_processors(&with, error);
}
