/* Calibration; see the header. What is measured is in measure/measure.c, how it is fitted in
 * measure/fit.c. */
#include "calibrate/calibrate.h"
#include "calibrate/calibrate_private.h"

#include "base/allocation.h"
#include "base/error.h"
#include "base/json/json_writer.h"
#include "kernels/cpu/cpu.h"
#include "measure/core_sharing.h"
#include "measure/fit.h"
#include "measure/interference.h"
#include "measure/microbenchmarks.h"
#include "program/holding.h"
#include "runtime/process/processes.h"
#include "runtime/thread_affinity.h"
#include "sim/cost/device.h"

#include <math.h>
#include <string.h>

/* Rows of all heads of a call, of queries or of keys, whichever are more: operands of 1 to 2 MiB,
 * as those of a step, or a quarter of that if quick. */
#define HEAD_ROWS 8192
#define HEAD_ROWS_QUICK 2048
#define TRAFFIC_HEADS 32
#define LINEAR_MIN 64 /* tokens */
#define TRANSFER_REPEATS_MAX 3

/* Tokens of a block. */
typedef struct {
    uint64_t queries, keys;
    bool holdout;
} Block;

/* From 16 on, a vector of AVX-512: fewer queries cost as much. The first has the fewest keys, the
 * last the most. Squares alone where queries and keys cannot differ. */
static const Block blocks_full[] = {
    { 16, 16 },         { 16, 64 },   { 64, 16 },         { 32, 32 },    { 64, 64 },   { 512, 64 },
    { 128, 128 },       { 64, 256 },  { 192, 192, true }, { 256, 256 },  { 512, 128 }, { 128, 512 },
    { 256, 512, true }, { 512, 512 }, { 768, 768, true }, { 1024, 1024 }
};
static const Block blocks_quick[] = { { 16, 16 },  { 64, 64 },   { 128, 128 },       { 256, 64 },
                                      { 64, 256 }, { 256, 256 }, { 384, 384, true }, { 512, 512 } };
static const uint32_t head_dims[] = { 64, 128 };               /* the first one alone if quick */
static const uint64_t traffic_rows[] = { 64, 256, 1024, 512 }; /* the last one is held out */
static const uint64_t softmax_rows[] = { 64, 128, 256, 192 };  /* likewise, and as many keys */
G_STATIC_ASSERT(G_N_ELEMENTS(traffic_rows) == G_N_ELEMENTS(softmax_rows));
static const uint64_t transfer_bytes[] = { 4 << 10, 16 << 10, 64 << 10, 256 << 10,
                                           1 << 20, 4 << 20,  16 << 20 };

#define DEVICE "this-cpu" /* what a rank of a cluster that is found is */
#define DEADLINE_DEFAULT_US INT64_C(60000000)
#define GPU_DEADLINE_DEFAULT_US INT64_C(120000000)
/* Of the ring that shows what messages cost: as much to send in a step as 1 MiB. */
#define BESIDE_TOKENS 64
#define BESIDE_HEADS 32
#define BESIDE_HEAD_DIM 128

#define SIZES_MAX G_N_ELEMENTS(blocks_full)

/* A kernel in all the sizes that one fit is made of. */
typedef struct {
    LhKernelId kernel;
    bool causal;
    uint32_t head_dim;
    size_t count;
    LhKernelArgs args[SIZES_MAX];
    const Block *blocks[SIZES_MAX]; /* of a rate; else NULL */
    double *times[SIZES_MAX];       /* [repeats], of this process */
    double seconds[SIZES_MAX];      /* of all processes, when all has been measured */
    double spread;                  /* between them, at most */
} Curve;

/* A calibration on its way. */
typedef struct {
    const LhCalibrateParams *params;
    LhCalibration *c;
    LhProcesses processes;
    double peak;    /* of a core, flop/s; INFINITY where nobody asks for what is fitted */
    GArray *curves; /* of Curve */
} CpuJob;

void
lh_calibrate_tell(const LhCalibrateParams *params, const LhProcesses *processes, const char *what)
{
    if (params->progress != NULL && lh_processes_first(processes))
        params->progress(params->progress_data, what);
}

static void
tell(const CpuJob *job, const char *what)
{
    lh_calibrate_tell(job->params, &job->processes, what);
}

bool
lh_calibrate_median(const LhProcesses *processes, double *seconds, double *spread, GError **error)
{
    g_autofree double *all = g_new(double, processes->count);

    if (!lh_processes_gather(processes, *seconds, all, error))
        return false;
    *seconds = lh_median(all, processes->count); /* in order now */
    if (spread != NULL && *seconds > 0)
        *spread = fmax(*spread, (all[processes->count - 1] - all[0]) / *seconds);
    return true;
}

LhFitResiduals
lh_calibrate_residuals(const LhResiduals *r, double spread)
{
    return (LhFitResiduals){
        .median = r->median, .worst = r->worst, .holdout = r->holdout, .spread = spread
    };
}

/* ---- attention, and products within it ---- */

/* Whether some operand has rows of keys, or of queries. */
static bool
has_rows(const LhKernel *kernel, bool keys)
{
    for (unsigned i = 0; kernel->operands[i].access != LH_OPERAND_END; i++) {
        const LhTensorKind kind = kernel->operands[i].kind;

        if (lh_tensor_is_kv(kind) == keys && kind != LH_TENSOR_STATE && kind != LH_TENSOR_DSTATE)
            return true;
    }
    return false;
}

/* A block of its own: most schedules add blocks up afterwards. */
LhKernelArgs
lh_calibrate_attention_args(uint64_t n, bool causal, uint32_t heads, uint32_t head_dim)
{
    return (LhKernelArgs){ .pairs = causal ? n * (n + 1) / 2 : n * n,
                           .nq = n,
                           .nk = n,
                           .batch = 1,
                           .heads = heads,
                           .groups = heads,
                           .head_dim = head_dim,
                           .mask = causal ? LH_MASK_CAUSAL : LH_MASK_FULL,
                           .first = true };
}

/* A block of as many heads as make the rows; of products that have rows of queries, or of keys,
 * alone, these. */
static LhKernelArgs
block_args(const CpuJob *job, const LhKernel *kernel, const Block *block, bool causal,
           uint32_t head_dim)
{
    const uint64_t rows = job->params->quick ? HEAD_ROWS_QUICK : HEAD_ROWS;
    const uint64_t longest = MAX(block->queries, block->keys);
    LhKernelArgs args =
        lh_calibrate_attention_args(longest, causal, (uint32_t)(rows / longest), head_dim);

    args.nq = block->queries;
    args.nk = block->keys;
    args.pairs = causal ? args.pairs : args.nq * args.nk;
    if (!has_rows(kernel, false))
        args.nq = args.pairs = 0;
    if (!has_rows(kernel, true))
        args.nk = args.pairs = 0;
    return args;
}

/* Whether the kernel is measured on the block: rectangles want rows of both, and no diagonal;
 * linear attention has a state for each head, which would be most of the memory of short blocks. */
static bool
takes_block(const LhKernel *kernel, const Block *block, bool causal)
{
    if (kernel->linear && block->keys < LINEAR_MIN)
        return false;
    return block->queries == block->keys ||
           (!causal && !kernel->linear && has_rows(kernel, false) && has_rows(kernel, true));
}

static void
list_blocks(const CpuJob *job, Curve *curve)
{
    const bool quick = job->params->quick;
    const LhKernel *kernel = lh_kernels[curve->kernel];
    const Block *blocks = quick ? blocks_quick : blocks_full;
    const size_t count = quick ? G_N_ELEMENTS(blocks_quick) : G_N_ELEMENTS(blocks_full);

    for (size_t i = 0; i < count; i++) {
        if (!takes_block(kernel, &blocks[i], curve->causal))
            continue;
        curve->blocks[curve->count] = &blocks[i];
        curve->args[curve->count++] =
            block_args(job, kernel, &blocks[i], curve->causal, curve->head_dim);
    }
}

static bool
fit_rate(const CpuJob *job, const Curve *curve, GError **error)
{
    const LhKernel *kernel = lh_kernels[curve->kernel];
    LhRatePoint points[SIZES_MAX];
    LhResiduals residuals;
    LhRateFit fit;
    LhKernelRate rate;

    for (size_t i = 0; i < curve->count; i++)
        points[i] = (LhRatePoint){ .keys = (double)curve->blocks[i]->keys,
                                   .queries = (double)curve->blocks[i]->queries,
                                   .flops = (double)kernel->flops(&curve->args[i]),
                                   .seconds = curve->seconds[i],
                                   .holdout = curve->blocks[i]->holdout };
    if (!lh_fit_rate(points, curve->count, job->peak, &fit, &residuals)) {
        g_set_error(error, LH_ERROR, LH_ERROR_NO, "kernel %s: no curve fits what was measured",
                    kernel->name);
        return false;
    }
    rate = (LhKernelRate){ .kernel = g_strdup(kernel->name),
                           .mask = curve->causal ? 1 : 0,
                           .head_dim = curve->head_dim,
                           .rate = fit.rate,
                           .half_length = fit.half_length,
                           .query_half_length = fit.query_half_length,
                           .length_min = curve->blocks[0]->keys,
                           .length_max = curve->blocks[curve->count - 1]->keys,
                           .provenance = LH_PROVENANCE_FITTED,
                           .source = g_strdup(job->c->method),
                           .residuals = lh_calibrate_residuals(&residuals, curve->spread) };
    g_array_append_val(job->c->rates, rate);
    return true;
}

/* Kernels that attend have a mask; products with states, or with scores that are written out, have
 * none. */
static bool
has_mask(const LhKernel *kernel)
{
    return kernel->effect == LH_EFFECT_ATTEND || kernel->effect == LH_EFFECT_ATTEND_GRAD;
}

static void
list_rates(const CpuJob *job, LhKernelId id)
{
    const size_t dims = job->params->quick ? 1 : G_N_ELEMENTS(head_dims);
    const int masks = has_mask(lh_kernels[id]) ? 2 : 1;

    for (size_t d = 0; d < dims; d++) {
        for (int mask = 0; mask < masks; mask++) {
            Curve curve = { .kernel = id, .causal = mask == 1, .head_dim = head_dims[d] };

            list_blocks(job, &curve);
            g_array_append_val(job->curves, curve);
        }
    }
}

/* ---- elementwise kernels ---- */

/* On so many rows of queries, or of keys where the kernel works on those. */
LhKernelArgs
lh_calibrate_traffic_args(const LhKernel *kernel, uint64_t rows, uint32_t head_dim)
{
    const bool keys = lh_tensor_is_kv(kernel->operands[0].kind);

    if (kernel->args == LH_ARGS_ELEMENTS)
        return (LhKernelArgs){ .elements.count = rows * TRAFFIC_HEADS * head_dim };
    return (LhKernelArgs){ .nq = keys ? 0 : rows,
                           .nk = keys ? rows : 0,
                           .states = 1,
                           .batch = 1,
                           .heads = TRAFFIC_HEADS,
                           .groups = TRAFFIC_HEADS,
                           .head_dim = head_dim };
}

static void
list_traffic(const CpuJob *job, LhKernelId id)
{
    const LhKernel *kernel = lh_kernels[id];
    const bool softmax =
        kernel->effect == LH_EFFECT_SOFTMAX || kernel->effect == LH_EFFECT_SOFTMAX_GRAD;
    const size_t dim = job->params->quick ? 0 : G_N_ELEMENTS(head_dims) - 1;
    Curve curve = { .kernel = id, .head_dim = head_dims[dim] };

    for (size_t i = 0; i < G_N_ELEMENTS(traffic_rows); i++)
        curve.args[curve.count++] =
            softmax
                ? lh_calibrate_attention_args(softmax_rows[i], false, TRAFFIC_HEADS, curve.head_dim)
                : lh_calibrate_traffic_args(kernel, traffic_rows[i], curve.head_dim);
    g_array_append_val(job->curves, curve);
}

static void
fit_traffic(const CpuJob *job, const Curve *curve)
{
    const LhKernel *kernel = lh_kernels[curve->kernel];
    const size_t fitted = G_N_ELEMENTS(traffic_rows) - 1; /* the last one is held out */
    LhKernelTraffic traffic = { .provenance = LH_PROVENANCE_MEASURED };
    double reached[G_N_ELEMENTS(traffic_rows)];
    double sorted[G_N_ELEMENTS(traffic_rows)];
    double off[G_N_ELEMENTS(traffic_rows)];

    for (size_t i = 0; i <= fitted; i++)
        reached[i] =
            (double)kernel->memory_bytes(&curve->args[i], lh_dtype_bytes(job->params->dtype)) /
            curve->seconds[i];
    memcpy(sorted, reached, fitted * sizeof(double));
    traffic.bandwidth = lh_median(sorted, fitted);
    for (size_t i = 0; i < fitted; i++)
        off[i] = fabs(reached[i] / traffic.bandwidth - 1);
    traffic.residuals.spread = curve->spread;
    traffic.residuals.median = lh_median(off, fitted);
    traffic.residuals.worst = off[fitted - 1];
    traffic.residuals.holdout = fabs(reached[fitted] / traffic.bandwidth - 1);
    traffic.kernel = g_strdup(kernel->name);
    traffic.source = g_strdup(job->c->method);
    g_array_append_val(job->c->traffic, traffic);
}

/* What moves memory and does nothing else. Softmax of rows that are written out goes by two
 * lengths, and what lies outside attention moves what a framework makes of it. */
bool
lh_calibrate_is_elementwise(const LhKernel *kernel)
{
    return kernel->cost == LH_COST_MEMORY && kernel->effect != LH_EFFECT_SOFTMAX &&
           kernel->effect != LH_EFFECT_SOFTMAX_GRAD && kernel->effect != LH_EFFECT_LAYER;
}

/* ---- kernels, all of them ---- */

static void
list_kernels(const CpuJob *job)
{
    for (unsigned k = 0; k < LH_KERNELS_COUNT; k++) {
        const LhKernelId id = (LhKernelId)k;
        const LhKernel *kernel = lh_kernels[id];

        if (kernel->cost == LH_COST_ATTENTION || kernel->cost == LH_COST_GEMM)
            list_rates(job, id);
        if (kernel->effect == LH_EFFECT_SOFTMAX || kernel->effect == LH_EFFECT_SOFTMAX_GRAD ||
            lh_calibrate_is_elementwise(kernel))
            list_traffic(job, id);
    }
}

static void
tell_curve(const CpuJob *job, const Curve *curve, uint32_t round)
{
    const LhKernel *kernel = lh_kernels[curve->kernel];
    g_autoptr(GString) what = g_string_new(kernel->name);

    if (curve->blocks[0] != NULL)
        g_string_append_printf(what, ", %s mask, d %u", curve->causal ? "causal" : "full",
                               curve->head_dim);
    g_string_append_printf(what, " (round %u of %u)", round + 1, job->params->measure.repeats);
    tell(job, what->str);
}

/* One timing of the curve's kernel in each size, while all ranks call it. */
static bool
time_curve(const CpuJob *job, Curve *curve, unsigned char *flush, uint32_t round, GError **error)
{
    LhMeasureParams measure = job->params->measure;

    measure.repeats = 1;
    measure.flush = flush;
    measure.others = job->processes.count > 1 ? &job->processes.control : NULL;
    measure.turns = job->c->cores.turns;
    measure.turn = job->c->cores.turn;
    tell_curve(job, curve, round);
    for (size_t i = 0; i < curve->count; i++) {
        if (curve->times[i] == NULL)
            curve->times[i] = g_new(double, job->params->measure.repeats);
        if (!lh_measure_kernel(&measure, curve->kernel, &curve->args[i], job->params->dtype,
                               &curve->times[i][round], error))
            return false;
    }
    return true;
}

/* Every kernel in every size once, then all of them again: where a machine is slow for some
 * seconds, it is so for one timing of many kernels, which their medians leave out, and not for all
 * timings of a few. */
static bool
time_curves(const CpuJob *job, GError **error)
{
    const gsize threads = MAX(job->params->measure.threads, 1);
    g_autofree unsigned char *flush = g_try_malloc0(threads * LH_MEASURE_FLUSH_BYTES);

    for (uint32_t round = 0; round < job->params->measure.repeats; round++) {
        for (guint i = 0; i < job->curves->len; i++) {
            if (!time_curve(job, &g_array_index(job->curves, Curve, i), flush, round, error))
                return false;
        }
    }
    return true;
}

static bool
fit_curve(const CpuJob *job, Curve *curve, GError **error)
{
    const LhMeasureParams *measure = &job->params->measure;

    for (size_t i = 0; i < curve->count; i++) {
        curve->seconds[i] = lh_statistic(measure->statistic, curve->times[i], measure->repeats);
        if (!lh_calibrate_median(&job->processes, &curve->seconds[i], &curve->spread, error))
            return false;
    }
    if (curve->blocks[0] != NULL)
        return fit_rate(job, curve, error);
    fit_traffic(job, curve);
    return true;
}

static bool
measure_kernels(const CpuJob *job, GError **error)
{
    list_kernels(job);
    if (!time_curves(job, error))
        return false;
    for (guint i = 0; i < job->curves->len; i++) {
        if (!fit_curve(job, &g_array_index(job->curves, Curve, i), error))
            return false;
    }
    return true;
}

static void
clear_curve(void *data)
{
    Curve *curve = data;

    for (size_t i = 0; i < curve->count; i++)
        g_free(curve->times[i]);
}

static void
take_memory(LhCalibration *c)
{
    g_autofree double *reached = g_new(double, c->traffic->len);

    for (guint i = 0; i < c->traffic->len; i++)
        reached[i] = g_array_index(c->traffic, LhKernelTraffic, i).bandwidth;
    c->memory_bandwidth = lh_median(reached, c->traffic->len);
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
    c->kernel_launch_ps = lh_time_from_ps(fmax(issue_s, 0) * (double)LH_PS_PER_S);
    c->stream_sync_ps = lh_time_from_ps(fmax(sync_s, 0) * (double)LH_PS_PER_S);
    return true;
}

static bool
measure_link(const CpuJob *job, GError **error)
{
    const LhCalibrateParams *p = job->params;
    LhCalibration *c = job->c;
    const size_t count = G_N_ELEMENTS(transfer_bytes) - (p->quick ? 1 : 0);
    LhTransferPoint points[G_N_ELEMENTS(transfer_bytes)];
    /* Each is a run with a score of messages. */
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
    c->link.provenance = LH_PROVENANCE_FITTED;
    c->link_residuals = lh_calibrate_residuals(&residuals, 0);
    c->link.source = g_strdup_printf(
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

static void
tell_flows(void *data, const char *what)
{
    tell(data, what);
}

static bool
measure_cluster(CpuJob *job, GError **error)
{
    g_auto(GStrv) hosts = lh_processes_texts(&job->processes, g_get_host_name(), error);
    const LhClusterParams params = { .ranks = job->processes.count,
                                     .hosts = (const char *const *)hosts,
                                     .measure = measure_flows,
                                     .data = job,
                                     .progress = tell_flows,
                                     .progress_data = job };

    if (hosts == NULL)
        return false;
    job->c->cluster = lh_cluster_find(&params, error);
    return job->c->cluster != NULL;
}

/* ---- the whole ---- */

/* The first "model name" of /proc/cpuinfo; caller frees. */
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

/* Cores that compute and move messages do both more slowly. */
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

    tell(job, "kernels beside messages");
    return lh_measure_interference(&probe, &job->c->messages_hold, error) &&
           lh_processes_tell(&job->processes, &job->c->messages_hold, 1, error);
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
    /* Otherwise these would be missed only after a minute of kernels. */
    if (!threads && !has_others(job, error))
        return false;
    if (c->first && (device = lh_device_load(DEVICE, error)) == NULL)
        return false;
    job->peak = device != NULL ? device->matrix_rate : INFINITY;
    if (!lh_core_sharing_find(&job->processes, &c->cores, error) || !measure_kernels(job, error))
        return false;
    take_memory(c);
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
    c->rates = g_array_new(FALSE, FALSE, sizeof(LhKernelRate));
    c->traffic = g_array_new(FALSE, FALSE, sizeof(LhKernelTraffic));
    if (!lh_processes_open(&job.processes, params->backend->control, params->deadline_us, error))
        return NULL;
    c->first = lh_processes_first(&job.processes);
    job.curves = g_array_new(FALSE, FALSE, sizeof(Curve));
    g_array_set_clear_func(job.curves, clear_curve);
    ok = measure_all(&job, error);
    g_array_unref(job.curves);
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

void
lh_calibration_free(LhCalibration *c)
{
    if (c == NULL)
        return;
    for (guint i = 0; i < c->rates->len; i++) {
        g_free(g_array_index(c->rates, LhKernelRate, i).kernel);
        g_free(g_array_index(c->rates, LhKernelRate, i).source);
    }
    for (guint i = 0; i < c->traffic->len; i++) {
        g_free(g_array_index(c->traffic, LhKernelTraffic, i).kernel);
        g_free(g_array_index(c->traffic, LhKernelTraffic, i).source);
    }
    g_clear_pointer(&c->checks, g_array_unref);
    g_array_unref(c->rates);
    g_array_unref(c->traffic);
    g_free(c->link.source);
    g_free(c->pcie.source);
    g_free(c->nic.source);
    for (guint i = 0; c->collectives != NULL && i < c->collectives->len; i++)
        lh_json_clear(lh_collective_times_fields,
                      &g_array_index(c->collectives, LhCollectiveTimes, i));
    g_clear_pointer(&c->collectives, g_array_unref);
    lh_cluster_free(c->cluster);
    g_free(c->machine);
    g_free(c->method);
    g_free(c);
}

/* ---- the file ---- */

static void
write_residuals(LhJsonWriter *w, const LhFitResiduals *r)
{
    lh_jsonw_object_begin(w, "residuals");
    lh_jsonw_double(w, "median", r->median);
    lh_jsonw_double(w, "worst", r->worst);
    lh_jsonw_double(w, "holdout", r->holdout);
    if (r->spread > 0)
        lh_jsonw_double(w, "spread", r->spread);
    lh_jsonw_object_end(w);
}

static void
write_rates(LhJsonWriter *w, const LhCalibration *c)
{
    lh_jsonw_array_begin(w, "kernels");
    for (guint i = 0; i < c->rates->len; i++) {
        const LhKernelRate *rate = &g_array_index(c->rates, LhKernelRate, i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "kernel", rate->kernel);
        lh_jsonw_string(w, "mask", rate->mask == 1 ? "causal" : "full");
        lh_jsonw_uint(w, "head_dim", rate->head_dim);
        lh_cluster_write_unit(w, "rate", lh_format_flops(rate->rate));
        lh_jsonw_double(w, "half_length", rate->half_length);
        if (rate->query_half_length > 0)
            lh_jsonw_double(w, "query_half_length", rate->query_half_length);
        if (rate->length_min > 0)
            lh_jsonw_uint(w, "length_min", rate->length_min);
        if (rate->length_max > 0)
            lh_jsonw_uint(w, "length_max", rate->length_max);
        lh_jsonw_string(w, "provenance", lh_provenance_names[rate->provenance]);
        lh_jsonw_string(w, "source", rate->source);
        write_residuals(w, &rate->residuals);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

static void
write_traffic(LhJsonWriter *w, const LhCalibration *c)
{
    lh_jsonw_array_begin(w, "elementwise");
    for (guint i = 0; i < c->traffic->len; i++) {
        const LhKernelTraffic *traffic = &g_array_index(c->traffic, LhKernelTraffic, i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "kernel", traffic->kernel);
        lh_cluster_write_unit(w, "bandwidth", lh_format_bandwidth(traffic->bandwidth));
        lh_jsonw_string(w, "provenance", lh_provenance_names[traffic->provenance]);
        lh_jsonw_string(w, "source", traffic->source);
        write_residuals(w, &traffic->residuals);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

static void
write_link(LhJsonWriter *w, const char *name, const LhLinkClass *link)
{
    if (link->bandwidth == 0)
        return;
    lh_jsonw_object_begin(w, name);
    lh_cluster_write_unit(w, "bandwidth", lh_format_bandwidth(link->bandwidth));
    lh_cluster_write_unit(w, "latency", lh_format_time(link->latency_ps));
    lh_jsonw_uint(w, "ctas", link->ctas);
    lh_jsonw_string(w, "provenance", lh_provenance_names[link->provenance]);
    lh_jsonw_string(w, "source", link->source);
    lh_jsonw_object_end(w);
}

static void
write_points(LhJsonWriter *w, const LhCluster *cluster)
{
    lh_jsonw_array_begin(w, "messages");
    for (guint i = 0; i < cluster->points->len; i++) {
        const LhClusterPoint *p = &g_array_index(cluster->points, LhClusterPoint, i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "flows", lh_flows_names[p->kind]);
        lh_jsonw_uint(w, "node", p->node);
        lh_jsonw_uint(w, "peer", p->peer);
        lh_jsonw_uint(w, "bytes", p->bytes);
        lh_jsonw_double(w, "measured_s", p->measured_s);
        lh_jsonw_double(w, "fitted_s", p->fitted_s);
        lh_jsonw_bool(w, "holdout", p->holdout);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

static void
write_checks(LhJsonWriter *w, const GArray *checks)
{
    lh_jsonw_array_begin(w, "collective_checks");
    for (guint i = 0; i < checks->len; i++) {
        const LhCollectiveCheck *c = &g_array_index(checks, LhCollectiveCheck, i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "op", lh_collective_names[c->kind]);
        lh_jsonw_uint(w, "ranks", c->members);
        lh_jsonw_uint(w, "bytes", c->vector_bytes);
        lh_jsonw_double(w, "measured_s", c->measured_s);
        lh_jsonw_double(w, "predicted_s", c->predicted_s);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

/* What GPUs have beside links. */
static void
write_gpus(LhJsonWriter *w, const LhCalibration *c)
{
    const struct {
        const char *name;
        double seconds;
    } calls[] = { { "op", c->calls.op },
                  { "compute", c->calls.compute },
                  { "wait", c->calls.wait },
                  { "group", c->calls.group },
                  { "sync", c->calls.sync } };

    lh_jsonw_object_begin(w, "host");
    for (unsigned i = 0; i < G_N_ELEMENTS(calls); i++)
        lh_cluster_write_unit(
            w, calls[i].name,
            lh_format_time(lh_time_from_ps(fmax(calls[i].seconds, 0) * (double)LH_PS_PER_S)));
    lh_jsonw_object_end(w);
    lh_jsonw_array_begin(w, "collective_times");
    for (guint i = 0; i < c->collectives->len; i++)
        lh_collective_times_write(w, &g_array_index(c->collectives, LhCollectiveTimes, i), NULL);
    lh_jsonw_array_end(w);
}

static const char *
describe_ranks(const LhCalibration *c)
{
    if (c->gpus)
        return "One GPU as a rank; for the cluster that its GPUs were said to be.";
    return c->cluster == NULL ? "One core of a machine as a rank; for the cluster this-machine."
                              : "One process as a rank; for the cluster that was measured with it.";
}

/* Method, machine and date; caller frees. */
static char *
source_of(const LhCalibration *c, const char *date)
{
    return g_strdup_printf("%s; %s; %s", c->method, c->machine, date);
}

void
lh_calibration_write(const LhCalibration *c, const char *name, const char *date, GString *out)
{
    g_autoptr(LhJsonWriter) w = lh_jsonw_new(out, false);
    g_autofree char *source = source_of(c, date);

    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "schema", "longhaul.profile/2");
    lh_jsonw_string(w, "name", name);
    lh_jsonw_string(w, "description", describe_ranks(c));
    lh_jsonw_string(w, "source", source);
    lh_cluster_write_unit(w, "memory_bandwidth", lh_format_bandwidth(c->memory_bandwidth));
    lh_jsonw_double(w, "memory_efficiency", 1);
    lh_jsonw_string(w, "memory_provenance", "measured");
    lh_cluster_write_unit(w, "kernel_launch", lh_format_time(c->kernel_launch_ps));
    lh_cluster_write_unit(w, "stream_sync", lh_format_time(c->stream_sync_ps));
    if (c->messages_hold > 0)
        lh_jsonw_double(w, "messages_hold", c->messages_hold);
    if (c->cores.ranks > 0) {
        lh_jsonw_uint(w, "machine_ranks", c->cores.ranks);
        lh_jsonw_uint(w, "machine_cores", c->cores.cores);
    }
    write_rates(w, c);
    write_traffic(w, c);
    if (c->cluster != NULL)
        write_points(w, c->cluster);
    if (c->checks != NULL)
        write_checks(w, c->checks);
    write_link(w, "nvlink", &c->link);
    write_link(w, "pcie", &c->pcie);
    write_link(w, "nic", &c->nic);
    if (c->gpus)
        write_gpus(w, c);
    lh_jsonw_object_end(w);
}

void
lh_calibration_write_topology(const LhCalibration *c, const char *name, const char *date,
                              GString *out)
{
    g_autofree char *source = source_of(c, date);

    lh_cluster_write(c->cluster, name, source, out);
}
