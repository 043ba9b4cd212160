/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calibration of GPUs. Kernels run on all GPUs at once, and their curves are fitted with the cost
 * model of the device that the user names. Everything else is measured by programs that the engine
 * runs, timed by marks on the devices.
 */
#include "calibrate/calibrate_private.h"

#include "base/error.h"
#include "calibrate/fit_call.h"
#include "calibrate/kernel_curves.h"
#include "measure/fit.h"
#include "measure/interference.h"
#include "measure/measure_device.h"
#include "program/pairing.h"
#include "runtime/process/processes.h"
#include "sched/schedule.h"
#include "sim/network/network.h"

#include <math.h>
#include <string.h>

#define HEADS 16
#define POINTS_MAX 16

typedef struct {
    uint64_t value;
    bool holdout;
} Size;

static const Size lengths_full[] = { { 512, false },  { 1024, false }, { 1536, true },
                                     { 2048, false }, { 4096, false }, { 6144, true },
                                     { 8192, false }, { 16384, false } };
static const Size lengths_quick[] = {
    { 512, false }, { 1024, false }, { 1536, true }, { 2048, false }, { 4096, false }
};
#define TRAFFIC_HEAD_DIM 128
static const uint32_t gpu_head_dims[] = { 128, 64 }; /* only the first one with --quick */
/* The last one is held out. */
static const uint64_t rows_full[] = { 1024, 4096, 16384, 8192 };
static const uint64_t rows_quick[] = { 256, 512, 2048, 1024 };
static const Size messages[] = { { 4 << 10, false }, { 64 << 10, false }, { 256 << 10, true },
                                 { 1 << 20, false }, { 4 << 20, false },  { 16 << 20, false },
                                 { 32 << 20, true }, { 64 << 20, false } };
#define MESSAGES_QUICK 6
/* Bytes of a rank's part of the vector. */
static const uint64_t shard_sizes[] = { 1 << 10, 16 << 10, 128 << 10, 1 << 20, 4 << 20, 16 << 20 };
#define SHARDS_QUICK 5

typedef struct {
    const LhCalibrateParams *params;
    LhCalibration *c;
    LhProcesses processes;
    LhBench *bench;
    uint32_t ranks;
    LhNetwork network;
} GpuJob;

static void
tell_next(const GpuJob *job, const char *what)
{
    lh_calibrate_tell(job->params, &job->processes, what);
}

/* Replaces @values by those of the first process, in all processes. */
static bool
hand_out(const GpuJob *job, double *values, size_t count, GError **error)
{
    return lh_processes_tell(&job->processes, values, count, error);
}

/* ---- kernels ---- */

/* Times one call while all GPUs run it. *@seconds: median over processes; 0 if the GPUs do not
 * support the kernel. */
static bool
time_call(const GpuJob *job, LhKernelId id, const LhKernelArgs *args, double *seconds,
          double *spread, GError **error)
{
    return lh_processes_wait(&job->processes, error) &&
           lh_bench_kernel(job->bench, id, args, job->params->dtype, seconds, error) &&
           lh_calibrate_median(&job->processes, seconds, spread, error);
}

static bool
fail_fit(LhKernelId id, GError **error)
{
    g_set_error(error, LH_ERROR, LH_ERROR_NO, "kernel %s: no curve fits the measured times",
                lh_kernels[id]->name);
    return false;
}

static bool
fail_peak(const LhDevice *device, LhKernelId id, double rate, GError **error)
{
    g_autofree char *found = lh_format_flops(rate);
    g_autofree char *peak = lh_format_flops(device->matrix_rate);

    g_set_error(error, LH_ERROR, LH_ERROR_NO,
                "kernel %s took so little time that its rate would be %s, above the peak of the "
                "%s, %s: do these GPUs belong to --cluster?",
                lh_kernels[id]->name, found, device->name, peak);
    return false;
}

/* Fits a curve of the kernel; adds none if the GPUs do not support it. */
static bool
measure_rate(const GpuJob *job, LhKernelId id, bool causal, uint32_t head_dim, GError **error)
{
    const bool quick = job->params->quick;
    const Size *lengths = quick ? lengths_quick : lengths_full;
    const size_t count = quick ? G_N_ELEMENTS(lengths_quick) : G_N_ELEMENTS(lengths_full);
    LhKernelRate rate = { .mask = causal,
                          .head_dim = head_dim,
                          .length_min = lengths[0].value,
                          .length_max = lengths[count - 1].value,
                          .from.provenance = LH_PROVENANCE_FITTED };
    LhCallPoint points[POINTS_MAX];
    LhResiduals residuals;
    double spread = 0;

    for (size_t i = 0; i < count; i++) {
        points[i] = (LhCallPoint){ .args = lh_calibrate_attention_args(lengths[i].value, causal,
                                                                       HEADS, head_dim),
                                   .holdout = lengths[i].holdout };
        if (!time_call(job, id, &points[i].args, &points[i].seconds, &spread, error))
            return false;
        if (points[i].seconds <= 0)
            return true;
    }
    if (!lh_fit_calls(job->params->device, id, points, count, &rate, &residuals) ||
        !isfinite(rate.rate) || !isfinite(rate.half_length))
        return fail_fit(id, error);
    if (rate.rate > job->params->device->matrix_rate)
        return fail_peak(job->params->device, id, rate.rate, error);
    rate.residuals = lh_calibrate_residuals(&residuals, spread);
    rate.kernel = g_strdup(lh_kernels[id]->name);
    rate.from.source = g_strdup(job->c->method);
    g_array_append_val(job->c->device.kernels, rate);
    return true;
}

static bool
measure_rates(const GpuJob *job, LhKernelId id, GError **error)
{
    const size_t dims = job->params->quick ? 1 : G_N_ELEMENTS(gpu_head_dims);

    for (size_t d = 0; d < dims; d++) {
        for (int causal = 0; causal < 2; causal++) {
            g_autofree char *what =
                g_strdup_printf("%s, %s mask, d %u", lh_kernels[id]->name,
                                causal != 0 ? "causal" : "full", gpu_head_dims[d]);

            tell_next(job, what);
            if (!measure_rate(job, id, causal != 0, gpu_head_dims[d], error))
                return false;
        }
    }
    return true;
}

static bool
measure_traffic(const GpuJob *job, LhKernelId id, GError **error)
{
    const LhKernel *kernel = lh_kernels[id];
    const uint64_t *rows = job->params->quick ? rows_quick : rows_full;
    const size_t fitted = G_N_ELEMENTS(rows_full) - 1;
    const uint32_t element = lh_dtype_bytes(job->params->dtype);
    LhKernelTraffic traffic = { .from.provenance = LH_PROVENANCE_MEASURED };
    double reached[G_N_ELEMENTS(rows_full)], sorted[G_N_ELEMENTS(rows_full)];
    double off[G_N_ELEMENTS(rows_full)];

    tell_next(job, kernel->name);
    for (size_t i = 0; i <= fitted; i++) {
        const LhKernelArgs args = lh_calibrate_traffic_args(kernel, rows[i], TRAFFIC_HEAD_DIM);

        if (!time_call(job, id, &args, &reached[i], &traffic.residuals.spread, error))
            return false;
        if (reached[i] <= 0)
            return true;
        reached[i] = (double)kernel->memory_bytes(&args, element) / reached[i];
    }
    memcpy(sorted, reached, sizeof(sorted));
    traffic.bandwidth = lh_median(sorted, fitted);
    for (size_t i = 0; i < fitted; i++)
        off[i] = fabs(reached[i] / traffic.bandwidth - 1);
    traffic.residuals.median = lh_median(off, fitted);
    traffic.residuals.worst = off[fitted - 1];
    traffic.residuals.holdout = fabs(reached[fitted] / traffic.bandwidth - 1);
    traffic.kernel = g_strdup(kernel->name);
    traffic.from.source = g_strdup(job->c->method);
    g_array_append_val(job->c->device.elementwise, traffic);
    return true;
}

static bool
measure_gpu_kernels(GpuJob *job, GError **error)
{
    LhCalibration *c = job->c;
    g_autofree double *reached = NULL;

    for (unsigned k = 0; k < LH_KERNELS_COUNT; k++) {
        const LhKernelId id = (LhKernelId)k;

        if (lh_kernels[id]->cost == LH_COST_ATTENTION && !measure_rates(job, id, error))
            return false;
        if (lh_calibrate_is_elementwise(lh_kernels[id]) && !measure_traffic(job, id, error))
            return false;
    }
    if (c->device.elementwise->len == 0 || c->device.kernels->len == 0) {
        g_set_error(error, LH_ERROR, LH_ERROR_NO, "the GPUs have no kernels to measure");
        return false;
    }
    reached = g_new(double, c->device.elementwise->len);
    for (guint i = 0; i < c->device.elementwise->len; i++)
        reached[i] = g_array_index(c->device.elementwise, LhKernelTraffic, i).bandwidth;
    c->device.memory_bandwidth = lh_median(reached, c->device.elementwise->len);
    return true;
}

/* ---- hosts ---- */

static bool
measure_calls(const GpuJob *job, GError **error)
{
    LhCalibration *c = job->c;
    double values[5];

    tell_next(job, "host calls");
    if (!lh_measure_calls(job->params->backend, job->ranks, &c->calls, error))
        return false;
    values[0] = c->calls.op;
    values[1] = c->calls.compute;
    values[2] = c->calls.wait;
    values[3] = c->calls.group;
    values[4] = c->calls.sync;
    if (!hand_out(job, values, G_N_ELEMENTS(values), error))
        return false;
    c->calls = (LhCallCosts){ values[0], values[1], values[2], values[3], values[4] };
    c->device.kernel_launch_ps = lh_time_from_ps(fmax(c->calls.compute, 0) * (double)LH_PS_PER_S);
    c->device.stream_sync_ps = lh_time_from_ps(fmax(c->calls.sync, 0) * (double)LH_PS_PER_S);
    return true;
}

/* ---- links ---- */

/* The first rank whose route from rank 0 uses links of @tier; LH_RANKS_MAX: none. */
static uint32_t
peer_over(const GpuJob *job, LhTier tier, LhRoute *route)
{
    for (uint32_t r = 1; r < job->ranks; r++) {
        lh_network_route(&job->network, 0, r, route);
        if (route->tier == tier)
            return r;
    }
    return LH_RANKS_MAX;
}

/* Measures the slowdown of messages when every rank r sends to r + @peer at the same time. */
static bool
measure_crowd(const GpuJob *job, uint32_t peer, uint64_t bytes, double alone_s, double *crowd,
              GError **error)
{
    g_autofree uint32_t *to = g_new(uint32_t, job->ranks);

    for (uint32_t r = 0; r < job->ranks; r++)
        to[r] = (r + peer) % job->ranks;
    if (!lh_measure_messages(job->params->backend, job->ranks, to, bytes, crowd, error) ||
        !hand_out(job, crowd, 1, error))
        return false;
    *crowd /= alone_s;
    return true;
}

static bool
fit_link(const LhTransferPoint *points, const Size *sizes, size_t count, double *alpha_s,
         double *bytes_per_s, LhResiduals *residuals)
{
    g_autofree LhTransferPoint *fitted = g_new(LhTransferPoint, count);
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        if (!sizes[i].holdout)
            fitted[n++] = points[i];
    }
    if (!lh_fit_transfer(fitted, n, alpha_s, bytes_per_s, residuals))
        return false;
    for (size_t i = 0; i < count; i++) {
        const double off =
            fabs((*alpha_s + points[i].bytes / *bytes_per_s) / points[i].seconds - 1);

        if (sizes[i].holdout)
            residuals->holdout = fmax(residuals->holdout, off);
    }
    return true;
}

/* Measures a link class by a pair of ranks whose messages have the links to themselves. */
static bool
measure_tier(GpuJob *job, LhTier tier, const LhLinkClass *base, LhLinkClass *link,
             LhFitResiduals *residuals, GError **error)
{
    const size_t count = job->params->quick ? MESSAGES_QUICK : G_N_ELEMENTS(messages);
    g_autofree uint32_t *to = g_new(uint32_t, job->ranks);
    LhTransferPoint points[G_N_ELEMENTS(messages)];
    LhRoute route;
    const uint32_t peer = peer_over(job, tier, &route);
    LhResiduals found;
    double alpha_s, crowd;

    if (peer == LH_RANKS_MAX || base->bandwidth == 0)
        return true;
    for (uint32_t r = 0; r < job->ranks; r++)
        to[r] = r == 0 ? peer : LH_RANKS_MAX;
    for (size_t i = 0; i < count; i++) {
        g_autofree char *size = lh_format_bytes(messages[i].value);
        g_autofree char *what = g_strdup_printf(
            "%s, messages of %s", lh_topology_link_name(job->network.topology, tier), size);

        tell_next(job, what);
        points[i].bytes = (double)messages[i].value;
        if (!lh_measure_messages(job->params->backend, job->ranks, to, messages[i].value,
                                 &points[i].seconds, error) ||
            !hand_out(job, &points[i].seconds, 1, error))
            return false;
    }
    if (!fit_link(points, messages, count, &alpha_s, &link->bandwidth, &found)) {
        g_set_error(error, LH_ERROR, LH_ERROR_NO, "messages over %s: time does not grow with size",
                    lh_topology_link_name(job->network.topology, tier));
        return false;
    }
    if (!measure_crowd(job, peer, messages[count - 1].value, points[count - 1].seconds, &crowd,
                       error))
        return false;
    /* Subtract the latency of the other links of the route. */
    link->latency_ps = MAX(
        lh_time_from_ps(alpha_s * (double)LH_PS_PER_S) - (route.latency_ps - base->latency_ps), 0);
    link->ctas = base->ctas;
    link->from.provenance = LH_PROVENANCE_FITTED;
    *residuals = lh_calibrate_residuals(&found, 0);
    link->from.source = g_strdup_printf(
        "%s; ranks 0 and %u, %g KiB to %g MiB, after Theil and Sen; residuals: median %.1f %%, "
        "worst %.1f %%, held out %.1f %%; %g MiB of every rank at once take %.2f times as long",
        job->c->method, peer, (double)messages[0].value / 1024,
        (double)messages[count - 1].value / 1048576, 100 * found.median, 100 * found.worst,
        100 * found.holdout, (double)messages[count - 1].value / 1048576, crowd);
    return true;
}

static bool
measure_links(GpuJob *job, GError **error)
{
    LhCalibration *c = job->c;
    const LhTopology *t = job->network.topology;

    return measure_tier(job, LH_TIER_NVLINK, &t->nvlink, &c->link, &c->link_residuals, error) &&
           measure_tier(job, LH_TIER_PCIE, &t->pcie, &c->pcie, &c->pcie_residuals, error) &&
           measure_tier(job, LH_TIER_NIC, &t->nic, &c->nic, &c->nic_residuals, error);
}

/* ---- collectives ---- */

/* Removes sizes before the last one until the last segment of the curve rises, since it is
 * extrapolated. At the removed sizes the host's overhead dominated. False if fewer than two sizes
 * remain. */
static bool
make_rising(LhCollectiveTimes *row)
{
    while (row->us->len >= 2) {
        const guint last = row->us->len - 1;

        if (g_array_index(row->us, double, last) > g_array_index(row->us, double, last - 1))
            return true;
        g_array_remove_index(row->us, last - 1);
        g_array_remove_index(row->bytes, last - 1);
    }
    return false;
}

static bool
measure_collective(const GpuJob *job, LhCollectiveKind kind, uint32_t members, GError **error)
{
    const size_t count = job->params->quick ? SHARDS_QUICK : G_N_ELEMENTS(shard_sizes);
    LhCollectiveTimes row = { .op = (int)kind,
                              .ranks = members,
                              .bytes = g_array_new(FALSE, FALSE, sizeof(uint64_t)),
                              .us = g_array_new(FALSE, FALSE, sizeof(double)),
                              .from = { LH_PROVENANCE_MEASURED, g_strdup(job->c->method) } };
    g_autofree char *what = g_strdup_printf("%s of %u ranks", lh_collective_names[kind], members);
    bool ok = true;

    tell_next(job, what);
    for (size_t i = 0; ok && i < count; i++) {
        const LhCollectiveProbe probe = { .backend = job->params->backend,
                                          .way = LH_WAY_NATIVE,
                                          .ranks = job->ranks,
                                          .kind = kind,
                                          .members = members,
                                          .shard_bytes = shard_sizes[i] };
        const uint64_t bytes = shard_sizes[i] * members;
        double seconds;

        ok = lh_measure_collective(&probe, &seconds, error) && hand_out(job, &seconds, 1, error);
        seconds *= G_USEC_PER_SEC;
        g_array_append_val(row.bytes, bytes);
        g_array_append_val(row.us, seconds);
    }
    if (ok && make_rising(&row))
        g_array_append_val(job->c->collectives, row);
    else
        lh_json_clear(lh_collective_times_fields, &row);
    return ok;
}

/* Measures groups of 2, 4, 8 ... ranks of the first node, and the whole node. */
static bool
measure_collectives(const GpuJob *job, GError **error)
{
    const uint32_t node = MIN(job->ranks, job->network.gpus_per_node);

    if (job->params->backend->links->collectives == NULL)
        return true;
    for (unsigned kind = 0; kind < LH_COLL_KINDS; kind++) {
        for (uint32_t members = 2; members <= node;
             members = members == node ? node + 1 : MIN(2 * members, node)) {
            if (!measure_collective(job, (LhCollectiveKind)kind, members, error))
                return false;
        }
    }
    return true;
}

/* ---- interference ---- */

static bool
measure_gpu_interference(GpuJob *job, GError **error)
{
    const LhInterference probe = { .backend = job->params->backend,
                                   .kernel_set = job->params->measure.kernel_set,
                                   .ranks = job->ranks,
                                   .tokens = job->params->quick ? 2048 : 8192,
                                   .heads = HEADS,
                                   .head_dim = gpu_head_dims[0],
                                   .dtype = job->params->dtype,
                                   .deadline_us = job->params->deadline_us };
    const uint64_t sms = job->params->device->sm_count;
    double held;

    tell_next(job, "kernels during communication");
    if (!lh_measure_interference(&probe, &held, error) || !hand_out(job, &held, 1, error))
        return false;
    for (unsigned i = 0; held >= 0 && i < 2; i++) {
        LhLinkClass *link = i == 0 ? &job->c->link : &job->c->nic;

        if (link->bandwidth > 0)
            link->ctas = (uint64_t)llround(held * (double)sms);
    }
    return true;
}

/* ---- the whole ---- */

/* Describes the GPUs of this process; caller frees. */
static char *
machine_name(const LhRunDevice *device, GError **error)
{
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *driver = NULL;

    if (device->survey == NULL || !device->survey(&driver, found, error))
        return NULL;
    return g_strdup_printf("%s; %s",
                           found->len > 0 ? (char *)g_ptr_array_index(found, 0) : "no GPU", driver);
}

/* Checks that ranks which share a host in the topology share one in fact. */
static bool
check_hosts(const GpuJob *job, GError **error)
{
    const uint32_t per_host = job->network.gpus_per_host;
    g_auto(GStrv) hosts = lh_processes_texts(&job->processes, g_get_host_name(), error);

    if (hosts == NULL)
        return false;
    for (uint32_t r = 1; r < job->processes.count; r++) {
        const uint32_t first = r / per_host * per_host;

        if (strcmp(hosts[r], hosts[first]) == 0)
            continue;
        g_set_error(error, LH_ERROR, LH_ERROR_NO,
                    "ranks %u and %u are on hosts %s and %s, but the cluster %s has %u GPUs on a "
                    "host: start as many processes on each host",
                    first, r, hosts[first], hosts[r], job->network.topology->name, per_host);
        return false;
    }
    return true;
}

static bool
open_network(GpuJob *job, GError **error)
{
    const LhTopology *t = job->params->topology;

    if (job->processes.count > 1)
        job->ranks = job->processes.count;
    else
        job->ranks = MAX(job->params->ranks, 1);
    return lh_network_init(&job->network, t,
                           (job->ranks + (uint32_t)t->gpus_per_node - 1) /
                               (uint32_t)t->gpus_per_node,
                           job->ranks, NULL, error) &&
           check_hosts(job, error);
}

static bool
open_bench(GpuJob *job, GError **error)
{
    const LhCalibrateParams *p = job->params;
    const bool alone = job->processes.count > 1;
    const LhBenchParams params = { .device = p->backend->device,
                                   .first = alone ? lh_control_local() : 0,
                                   .count = alone || p->backend->links->needs_both ? 1 : job->ranks,
                                   .alone = alone,
                                   .kernel_set = p->measure.kernel_set,
                                   .statistic = p->measure.statistic,
                                   .repeats = p->measure.repeats };

    job->bench = lh_bench_new(&params, error);
    return job->bench != NULL;
}

static bool
measure_gpus(GpuJob *job, GError **error)
{
    const LhCalibrateParams *p = job->params;
    const bool far = !p->backend->links->needs_both;
    bool ok;

    job->c->method = g_strdup_printf(
        "longhaul calibrate%s: backend %s, kernels %s, %s, %s of %u timings, %u GPUs of %s",
        p->quick ? " --quick" : "", p->backend->name,
        p->backend->device->kernel_sets[p->measure.kernel_set], lh_dtype_names[p->dtype],
        lh_statistic_names[p->measure.statistic], p->measure.repeats, job->ranks,
        p->topology->name);
    if (!lh_processes_agree(&job->processes, "way to measure", job->c->method, error) ||
        !open_bench(job, error))
        return false;
    ok = measure_gpu_kernels(job, error);
    g_clear_pointer(&job->bench, lh_bench_free);
    if (!ok || !measure_calls(job, error))
        return false;
    return !far || job->ranks < 2 ||
           (measure_links(job, error) && measure_collectives(job, error) &&
            measure_gpu_interference(job, error));
}

LhCalibration *
lh_calibrate_gpus(const LhCalibrateParams *params, GError **error)
{
    const LhRunDevice *device = params->backend->device;
    g_autoptr(LhCalibration) c = g_new0(LhCalibration, 1);
    GpuJob job = { .params = params, .c = c };
    bool ok;

    c->gpus = true;
    c->device = lh_profile_nothing()->device;
    c->device.kernels = g_array_new(FALSE, FALSE, sizeof(LhKernelRate));
    c->device.elementwise = g_array_new(FALSE, FALSE, sizeof(LhKernelTraffic));
    c->collectives = g_array_new(FALSE, FALSE, sizeof(LhCollectiveTimes));
    if (!lh_processes_open(&job.processes, params->backend->control, params->deadline_us, error))
        return NULL;
    c->first = lh_processes_first(&job.processes);
    ok = device->probe == NULL || device->probe(error);
    c->machine = ok ? machine_name(device, error) : NULL;
    ok = c->machine != NULL && open_network(&job, error) && measure_gpus(&job, error);
    g_clear_pointer(&job.bench, lh_bench_free);
    lh_processes_close(&job.processes);
    return ok ? g_steal_pointer(&c) : NULL;
}
