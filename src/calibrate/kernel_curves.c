/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measurement of a processor's kernels: times each kernel at many sizes, in rounds, and fits a
 * curve of rate by length, or a bandwidth.
 */
#include "calibrate/kernel_curves.h"

#include "base/error.h"
#include "calibrate/calibrate_private.h"
#include "measure/fit.h"
#include "program/holding.h"

#include <math.h>
#include <string.h>

/* Rows of all heads of a call, queries or keys, whichever are more. Operands have 1 to 2 MiB, as
 * those of a step, or a quarter of that with --quick. */
#define HEAD_ROWS 8192
#define HEAD_ROWS_QUICK 2048
#define TRAFFIC_HEADS 32
#define LINEAR_MIN 64 /* tokens */

/* A block, in tokens. */
typedef struct {
    uint64_t queries, keys;
    bool holdout;
} Block;

/* Blocks start at 16 queries, one AVX-512 vector: fewer queries take the same time. The first block
 * has the fewest keys, the last the most. Only square blocks are used where queries and keys cannot
 * differ. */
static const Block blocks_full[] = {
    { 16, 16 },         { 16, 64 },   { 64, 16 },         { 32, 32 },    { 64, 64 },   { 512, 64 },
    { 128, 128 },       { 64, 256 },  { 192, 192, true }, { 256, 256 },  { 512, 128 }, { 128, 512 },
    { 256, 512, true }, { 512, 512 }, { 768, 768, true }, { 1024, 1024 }
};
static const Block blocks_quick[] = { { 16, 16 },  { 64, 64 },   { 128, 128 },       { 256, 64 },
                                      { 64, 256 }, { 256, 256 }, { 384, 384, true }, { 512, 512 } };
static const uint32_t head_dims[] = { 64, 128 };               /* only the first one with --quick */
static const uint64_t traffic_rows[] = { 64, 256, 1024, 512 }; /* the last one is held out */
static const uint64_t softmax_rows[] = { 64, 128, 256, 192 };  /* likewise, and as many keys */
G_STATIC_ASSERT(G_N_ELEMENTS(traffic_rows) == G_N_ELEMENTS(softmax_rows));

#define SIZES_MAX G_N_ELEMENTS(blocks_full)

/* A kernel at all the sizes that one fit uses. */
typedef struct {
    LhKernelId kernel;
    bool causal;
    uint32_t head_dim;
    size_t count;
    LhKernelArgs args[SIZES_MAX];
    const Block *blocks[SIZES_MAX]; /* for a rate; else NULL */
    double *times[SIZES_MAX];       /* [repeats], of this process */
    double seconds[SIZES_MAX];      /* over all processes, once everything is measured */
    double spread;                  /* largest relative range over processes */
} Curve;

/* All curves. */
typedef struct {
    const LhCalibrateParams *params;
    LhCalibration *c;
    const LhProcesses *processes;
    double peak;    /* of a core, flop/s; INFINITY in processes whose fit is not used */
    GArray *curves; /* of Curve */
} CurvesJob;

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

/* Arguments of a block with as many heads as fill the rows. Products that have rows of queries
 * alone, or of keys alone, take only those. */
static LhKernelArgs
block_args(const CurvesJob *job, const LhKernel *kernel, const Block *block, bool causal,
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

/* Whether the kernel is measured on the block. Rectangles need rows of queries and of keys, and no
 * diagonal. Linear attention has a state for each head, which would dominate the memory of short
 * blocks. */
static bool
takes_block(const LhKernel *kernel, const Block *block, bool causal)
{
    if (kernel->linear && block->keys < LINEAR_MIN)
        return false;
    return block->queries == block->keys ||
           (!causal && !kernel->linear && has_rows(kernel, false) && has_rows(kernel, true));
}

static void
list_blocks(const CurvesJob *job, Curve *curve)
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
fit_rate(const CurvesJob *job, const Curve *curve, GError **error)
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
        g_set_error(error, LH_ERROR, LH_ERROR_NO, "kernel %s: no curve fits the measured times",
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
                           .from = { LH_PROVENANCE_FITTED, g_strdup(job->c->method) },
                           .residuals = lh_calibrate_residuals(&residuals, curve->spread) };
    g_array_append_val(job->c->device.kernels, rate);
    return true;
}

/* Whether the kernel has a mask: attention has one; products with states, or with materialised
 * scores, have none. */
static bool
has_mask(const LhKernel *kernel)
{
    return kernel->effect == LH_EFFECT_ATTEND || kernel->effect == LH_EFFECT_ATTEND_GRAD;
}

static void
list_rates(const CurvesJob *job, LhKernelId id)
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
list_traffic(const CurvesJob *job, LhKernelId id)
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
fit_traffic(const CurvesJob *job, const Curve *curve)
{
    const LhKernel *kernel = lh_kernels[curve->kernel];
    const size_t fitted = G_N_ELEMENTS(traffic_rows) - 1; /* the last one is held out */
    LhKernelTraffic traffic = { .from.provenance = LH_PROVENANCE_MEASURED };
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
    traffic.from.source = g_strdup(job->c->method);
    g_array_append_val(job->c->device.elementwise, traffic);
}

/* Kernels that only move memory. Excluded are softmax over materialised scores, whose traffic
 * depends on two lengths, and kernels outside attention, whose traffic depends on the framework. */
bool
lh_calibrate_is_elementwise(const LhKernel *kernel)
{
    return kernel->cost == LH_COST_MEMORY && kernel->effect != LH_EFFECT_SOFTMAX &&
           kernel->effect != LH_EFFECT_SOFTMAX_GRAD && kernel->effect != LH_EFFECT_LAYER;
}

/* ---- all kernels ---- */

static void
list_kernels(const CurvesJob *job)
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
tell_curve(const CurvesJob *job, const Curve *curve, uint32_t round)
{
    const LhKernel *kernel = lh_kernels[curve->kernel];
    g_autoptr(GString) what = g_string_new(kernel->name);

    if (curve->blocks[0] != NULL)
        g_string_append_printf(what, ", %s mask, d %u", curve->causal ? "causal" : "full",
                               curve->head_dim);
    g_string_append_printf(what, " (round %u of %u)", round + 1, job->params->measure.repeats);
    lh_calibrate_tell(job->params, job->processes, what->str);
}

/* Times the curve's kernel once at each size, while all ranks call it. */
static bool
time_curve(const CurvesJob *job, Curve *curve, unsigned char *flush, uint32_t round, GError **error)
{
    LhMeasureParams measure = job->params->measure;

    measure.repeats = 1;
    measure.flush = flush;
    measure.others = job->processes->count > 1 ? &job->processes->control : NULL;
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

/* Times every kernel at every size once per round. If the machine is slow for some seconds, one
 * timing of many kernels is affected, which their medians ignore, instead of all timings of a
 * few. */
static bool
time_curves(const CurvesJob *job, GError **error)
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
fit_curve(const CurvesJob *job, Curve *curve, GError **error)
{
    const LhMeasureParams *measure = &job->params->measure;

    for (size_t i = 0; i < curve->count; i++) {
        curve->seconds[i] = lh_statistic(measure->statistic, curve->times[i], measure->repeats);
        if (!lh_calibrate_median(job->processes, &curve->seconds[i], &curve->spread, error))
            return false;
    }
    if (curve->blocks[0] != NULL)
        return fit_rate(job, curve, error);
    fit_traffic(job, curve);
    return true;
}

static bool
measure_kernels(const CurvesJob *job, GError **error)
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
    g_autofree double *reached = g_new(double, c->device.elementwise->len);

    for (guint i = 0; i < c->device.elementwise->len; i++)
        reached[i] = g_array_index(c->device.elementwise, LhKernelTraffic, i).bandwidth;
    c->device.memory_bandwidth = lh_median(reached, c->device.elementwise->len);
}

bool
lh_calibrate_kernels(const LhCalibrateParams *params, const LhProcesses *processes, double peak,
                     LhCalibration *c, GError **error)
{
    g_autoptr(GArray) curves = g_array_new(FALSE, FALSE, sizeof(Curve));
    const CurvesJob job = {
        .params = params, .c = c, .processes = processes, .peak = peak, .curves = curves
    };

    g_array_set_clear_func(curves, clear_curve);
    if (!measure_kernels(&job, error))
        return false;
    take_memory(c);
    return true;
}
