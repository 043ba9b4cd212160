/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel times. Attention: flops over a fitted rate R(s) = R_inf / (1 + s0/s), with s the key
 * length of the block (on CPUs 1 + s0/s + s1/q, with q the query length), times the rounding of
 * thread blocks to whole waves of SMs. Linear attention, and products with scores that are written
 * out: flops at a fraction of the matrix units' peak, rounded likewise. Products outside attention:
 * by tiles (product_cost.h). Everything else: memory traffic at the rate of elementwise kernels.
 * What a device file does not cover falls back to the roofline. Not modelled: caches, clocks and
 * power.
 */
#include "sim/cost/cost.h"

#include "program/work.h"
#include "sim/cost/attention_loads.h"
#include "sim/cost/product_cost.h"
#include "sim/cost/provenance.h"

#include <math.h>
#include <string.h>

#define FLOPS_MODE_RATE 1e15
/* Fraction of the peak of large products that write their scores out: batched, with a short inner
 * dimension, d or n. */
#define GEMM_EFFICIENCY 0.6
/* Fraction of the rectangle's pairs from which on a block counts as full: halfway between a
 * triangle and the rectangle. */
#define FULL_SHARE 0.75

/* Matrix products use a curve only if it is their own: curves of attention do not apply to them. */
static bool
find_curve(const LhDevice *device, const LhKernel *kernel, bool causal, uint32_t head_dim,
           LhKernelRate *rate)
{
    return (kernel->cost == LH_COST_ATTENTION || kernel->cost == LH_COST_GEMM) &&
           lh_device_rate(device, kernel->name, causal, head_dim, rate) &&
           (kernel->cost == LH_COST_ATTENTION || strcmp(rate->kernel, kernel->name) == 0);
}

#define CURVE_COLUMNS 64 /* block length of kernels known by curves */

const char *const lh_cost_mode_names[] = { "device", "flops", "unit", NULL };

void
lh_extrapolation_join(LhExtrapolation *all, const LhExtrapolation *other)
{
    if (other->shortest > 0 && (all->shortest <= 0 || other->shortest < all->shortest)) {
        all->shortest = other->shortest;
        all->fitted_from = other->fitted_from;
    }
    if (other->longest > all->longest) {
        all->longest = other->longest;
        all->fitted_to = other->fitted_to;
    }
}

void
lh_cost_init(LhCost *cost, LhCostMode mode, const LhDevice *device)
{
    *cost = (LhCost){ .mode = mode, .device = device, .provenance = LH_PROVENANCE_MEASURED };
    if (mode != LH_COST_DEVICE)
        return;
    for (uint32_t k = 0; k < LH_KERNELS_COUNT; k++)
        cost->traffic[k] = lh_device_traffic(device, lh_kernels[k]->name);
}

void
lh_cost_clear(LhCost *cost)
{
    g_clear_pointer(&cost->loads, g_hash_table_unref);
    g_clear_pointer(&cost->recent, lh_recent_calls_free);
}

static void
fill_curves(LhCostCurves *curves, const LhDevice *device, uint32_t head_dim)
{
    curves->head_dim = head_dim;
    for (uint32_t k = 0; k < LH_KERNELS_COUNT; k++) {
        for (uint32_t causal = 0; causal < 2; causal++)
            if (!find_curve(device, lh_kernels[k], causal != 0, head_dim, &curves->rate[k][causal]))
                curves->rate[k][causal].rate = 0;
    }
}

/* The curves of a head dimension. The last entry is shared by all that do not fit. */
static const LhCostCurves *
curves_of(LhCost *cost, uint32_t head_dim)
{
    LhCostCurves *curves = cost->curves;

    while (curves < &cost->curves[LH_COST_HEAD_DIMS - 1] && curves->head_dim != 0 &&
           curves->head_dim != head_dim)
        curves++;
    if (curves->head_dim != head_dim)
        fill_curves(curves, cost->device, head_dim);
    return curves;
}

static void
use_fit(LhCost *cost, int provenance, const LhFitResiduals *residuals)
{
    cost->provenance = MAX(cost->provenance, (LhProvenance)provenance);
    cost->op_error = fmax(cost->op_error, lh_fit_error(provenance, residuals));
}

static void
use(LhCost *cost, int provenance)
{
    use_fit(cost, provenance, &(const LhFitResiduals){ 0 });
}

/* Notes blocks outside the range of the curve's points: from @shortest to @longest. */
static void
note_extrapolation(LhCost *cost, const LhKernelRate *curve, double shortest, double longest)
{
    LhExtrapolation here = { 0 };

    if (shortest >= (double)curve->length_min &&
        (curve->length_max == 0 || longest <= (double)curve->length_max))
        return;
    if (shortest < (double)curve->length_min)
        here = (LhExtrapolation){ .shortest = shortest, .fitted_from = (double)curve->length_min };
    else
        here = (LhExtrapolation){ .longest = longest, .fitted_to = (double)curve->length_max };
    lh_extrapolation_join(&cost->beyond, &here);
}

/* Thread blocks run in waves of one per SM; the last wave costs as much as a full one. */
static double
wave_rounding(const LhDevice *device, const LhKernelArgs *args)
{
    uint64_t rows = args->nq > 0 ? args->nq : args->nk;
    uint64_t tiles = (rows + device->tile_rows - 1) / device->tile_rows * args->batch * args->heads;
    uint64_t waves = (tiles + device->sm_count - 1) / device->sm_count;

    return tiles > 0 ? (double)(waves * device->sm_count) / (double)tiles : 1;
}

static double
memory_seconds(LhCost *cost, uint64_t bytes)
{
    use(cost, cost->device->memory_provenance);
    return (double)bytes / (cost->device->memory_bandwidth * cost->device->memory_efficiency);
}

static double
elementwise_seconds(LhCost *cost, const LhOp *op, uint64_t bytes)
{
    const LhKernelTraffic *traffic = cost->traffic[op->compute.kernel];

    if (traffic == NULL)
        return memory_seconds(cost, bytes);
    use_fit(cost, traffic->from.provenance, &traffic->residuals);
    return (double)bytes / traffic->bandwidth;
}

/*
 * Decides which curve a block of pairs by position uses, and the key length to use: full blocks the
 * average number of keys that a row attends to; others, typically triangles, twice that, as in a
 * triangle. So a window within a long block is timed by its own length, since kernels skip tiles
 * outside it.
 */
bool
lh_cost_is_triangle(const LhKernelArgs *args, double *keys)
{
    const double seen = fmax((double)args->pairs / (double)MAX(args->nq, 1), 1);

    *keys = (double)(args->nk > 0 ? args->nk
                                  : args->nq); /* products with states have only one of them */
    if (args->mask != LH_MASK_POSITIONS)
        return args->mask == LH_MASK_CAUSAL;
    if (seen > FULL_SHARE * (double)args->nk) {
        *keys = seen;
        return false;
    }
    *keys = fmin(2 * seen, *keys);
    return true;
}

/* The query length of a block by the same rule: for pairs by position, the number of queries that
 * attend to a key. */
static double
queries_of(const LhKernelArgs *args, bool triangle)
{
    if (args->mask != LH_MASK_POSITIONS || args->nk == 0)
        return (double)MAX(args->nq > 0 ? args->nq : args->nk, 1);
    return fmax(fmin((triangle ? 2 : 1) * (double)args->pairs / (double)args->nk, (double)args->nq),
                1);
}

/* By the formula of curves, without tiles. */
static double
formula_seconds(const LhDevice *device, const LhKernelRate *curve, LhKernelId kernel,
                const LhKernelArgs *args, double *rounding)
{
    double keys;
    const bool triangle = lh_cost_is_triangle(args, &keys);
    const double short_of =
        curve->half_length / keys + curve->query_half_length / queries_of(args, triangle);

    *rounding = wave_rounding(device, args);
    return (double)lh_kernels[kernel]->flops(args) / curve->rate * (1 + short_of) * *rounding;
}

static double
curve_seconds(LhCost *cost, const LhKernelRate curves[2], const LhOp *op, double *rounding)
{
    const LhKernelArgs *args = &op->compute.args;
    double keys, shortest;
    const bool triangle = lh_cost_is_triangle(args, &keys);
    const LhKernelRate *curve = &curves[triangle];

    shortest = curve->query_half_length > 0 ? fmin(keys, queries_of(args, triangle)) : keys;
    use_fit(cost, curve->from.provenance, &curve->residuals);
    note_extrapolation(cost, curve, shortest, keys);
    return formula_seconds(cost->device, curve, op->compute.kernel, args, rounding);
}

/* ---- kernels by their tiles ---- */

static const LhAttentionRow *
find_row(const LhCost *cost, const LhOp *op, const LhKernelRate curves[2])
{
    const LhDevice *device = cost->device;
    const LhKernel *kernel = lh_kernels[op->compute.kernel];
    const LhKernelArgs *args = &op->compute.args;
    const bool bwd = kernel->effect == LH_EFFECT_ATTEND_GRAD;
    const LhAttentionRow *row = NULL;
    double keys;
    bool triangle;

    if (device->attention == NULL || (!bwd && kernel->effect != LH_EFFECT_ATTEND))
        return NULL;
    triangle = lh_cost_is_triangle(args, &keys);
    if (device->attention_kernel != NULL)
        row = lh_attention_find(device, device->attention_kernel, bwd, args->head_dim, triangle);
    if (row == NULL && (curves[0].rate <= 0 || curves[triangle].head_dim != args->head_dim))
        row = lh_attention_find(device, NULL, bwd, args->head_dim, triangle);
    return row;
}

static double
tiles_seconds(LhCost *cost, const LhAttentionRow *row, const LhOp *op, double *rounding)
{
    const LhAttentionLoad *load = lh_attention_cached_load(cost, row, op);
    const double seconds = lh_attention_seconds(row, load, cost->serving);
    const double quantile = lh_attention_quantile(row, seconds);

    use_fit(cost, row->from.provenance,
            &(const LhFitResiduals){ .worst = quantile > 0 ? quantile : row->residuals.mean,
                                     .holdout = quantile > 0 ? 0 : row->residuals.holdout_mean });
    cost->op_judged = quantile > 0 && cost->serving; /* other boards and programs differ more */
    if (load->busy > 0)
        *rounding = 1 / load->busy;
    return seconds;
}

/*
 * Converts a curve R(s) to tiles: s0 tokens become the prologue of its tiles. For a triangle, s0
 * belongs to a rate over the pairs up to the diagonal; half a tile of it accounts for the pairs
 * beyond the diagonal in its blocks, which tiles count themselves.
 */
static LhAttentionRow
row_of_curve(const LhDevice *device, const LhKernelRate *curve, bool bwd, bool triangle)
{
    const uint64_t columns = MIN(device->tile_rows, CURVE_COLUMNS);
    const double tokens =
        triangle ? fmax(curve->half_length - (double)device->tile_rows, 0) / 2 : curve->half_length;

    return (LhAttentionRow){ .direction = bwd ? LH_ATTENTION_BWD : LH_ATTENTION_FWD,
                             .tiling = { .rows = device->tile_rows,
                                         .columns = columns,
                                         .of_keys = bwd,
                                         .order = (LhTileOrder)device->tile_order,
                                         .prologue = tokens / (double)columns },
                             .rate = curve->rate,
                             .sustained_rate = curve->rate };
}

static double
curve_tiles_seconds(LhCost *cost, const LhKernelRate curves[2], const LhOp *op, double *rounding)
{
    const bool bwd = lh_kernels[op->compute.kernel]->effect == LH_EFFECT_ATTEND_GRAD;
    double keys;
    const bool triangle = lh_cost_is_triangle(&op->compute.args, &keys);
    const LhKernelRate *curve = &curves[triangle];
    const LhAttentionRow row = row_of_curve(cost->device, curve, bwd, triangle);
    const LhAttentionLoad *load = lh_attention_cached_load(cost, &row, op);

    use_fit(cost, curve->from.provenance, &curve->residuals);
    note_extrapolation(cost, curve, keys, keys);
    if (load->busy > 0)
        *rounding = 1 / load->busy;
    return lh_attention_tiles_seconds(&row, load->flops, false);
}

static double
roofline_seconds(LhCost *cost, const LhOp *op, uint64_t bytes, double *rounding)
{
    const LhKernel *kernel = lh_kernels[op->compute.kernel];
    const double memory_s = memory_seconds(cost, bytes);
    double matrix_s = (double)kernel->flops(&op->compute.args) / cost->device->matrix_rate;

    use(cost, LH_PROVENANCE_DATASHEET);
    if (kernel->cost != LH_COST_GEMM)
        return fmax(matrix_s, memory_s);
    use(cost, kernel->linear && cost->device->linear_efficiency > 0
                  ? cost->device->linear_from.provenance
                  : LH_PROVENANCE_ASSUMED);
    matrix_s *= wave_rounding(cost->device, &op->compute.args) /
                (kernel->linear ? lh_device_linear_efficiency(cost->device) : GEMM_EFFICIENCY);
    if (matrix_s < memory_s)
        return memory_s;
    *rounding = wave_rounding(cost->device, &op->compute.args);
    return matrix_s;
}

static double
product_seconds(LhCost *cost, const LhOp *op, uint64_t bytes, double *rounding)
{
    const LhProductShape shape =
        lh_product_shape(lh_kernels[op->compute.kernel], &op->compute.args);
    const double memory_s = memory_seconds(cost, bytes);
    const LhDevice *device = cost->device;
    const bool fp32 = op->compute.args.product.fp32;
    const double rate =
        fp32 ? lh_device_fp32_rate(device) : device->matrix_rate * device->matrix_efficiency;
    double waves;
    const double matrix_s = lh_product_seconds(device, &shape, rate, &waves);

    use(cost, !fp32                   ? device->matrix_provenance
              : device->fp32_rate > 0 ? device->fp32_from.provenance
                                      : LH_PROVENANCE_ASSUMED);
    if (matrix_s < memory_s)
        return memory_s;
    *rounding = waves;
    return matrix_s;
}

/* CPUs are devices with tiles of one row, that is, without tiles. */
static bool
is_tiled(const LhDevice *device, const LhKernel *kernel)
{
    return device->tile_rows > 1 && kernel->cost == LH_COST_ATTENTION &&
           (kernel->effect == LH_EFFECT_ATTEND || kernel->effect == LH_EFFECT_ATTEND_GRAD);
}

double
lh_cost_curve_call(const LhDevice *device, const LhKernelRate *curve, LhKernelId kernel,
                   const LhKernelArgs *args)
{
    const bool bwd = lh_kernels[kernel]->effect == LH_EFFECT_ATTEND_GRAD;
    double keys, rounding;
    const bool triangle = lh_cost_is_triangle(args, &keys);
    LhAttentionRow row;

    if (!is_tiled(device, lh_kernels[kernel]))
        return formula_seconds(device, curve, kernel, args, &rounding);
    row = row_of_curve(device, curve, bwd, triangle);
    return lh_attention_tiles_seconds(
        &row, lh_attention_load(&row, device->sm_count, args, 1, 1, false).flops, false);
}

static double
copy_seconds(LhCost *cost, uint64_t bytes)
{
    const LhHostLink *link = cost->host_link;

    if (link == NULL || link->bandwidth <= 0)
        return 0;
    use(cost, link->from.provenance);
    if (link->latency_ps > 0)
        use(cost, link->latency_provenance);
    return lh_host_link_seconds(link, bytes);
}

/* On a rank's share of the CPUs of its node, with as many other ranks. */
static double
cpu_seconds(LhCost *cost, const LhProgram *program, uint64_t bytes)
{
    const LhHostCpu *cpu = cost->host_cpu;

    if (cpu == NULL || cpu->bandwidth <= 0)
        return 0;
    use(cost, cpu->from.provenance);
    return (double)bytes * (double)MIN(cost->node_ranks, lh_program_ranks(program)) /
           cpu->bandwidth;
}

/* Sets @rounding if it affects the result. */
static double
device_seconds(LhCost *cost, const LhOp *op, uint32_t element_bytes, double *rounding)
{
    const LhKernel *kernel = lh_kernels[op->compute.kernel];
    const LhKernelArgs *args = &op->compute.args;
    const uint64_t bytes = kernel->memory_bytes(args, element_bytes);
    const LhAttentionRow *row = NULL;
    const LhKernelRate *curves;

    if (kernel->cost == LH_COST_OUTSIDE)
        return 0;
    if (kernel->cost == LH_COST_HOST_LINK)
        return copy_seconds(cost, bytes);
    if (kernel->cost == LH_COST_MEMORY)
        return elementwise_seconds(cost, op, bytes);
    if (kernel->cost == LH_COST_PRODUCT)
        return product_seconds(cost, op, bytes, rounding);
    curves = curves_of(cost, args->head_dim)->rate[op->compute.kernel];
    if (kernel->cost == LH_COST_ATTENTION && args->nq > 0 && args->nk > 0)
        row = find_row(cost, op, curves);
    if (row != NULL)
        return tiles_seconds(cost, row, op, rounding);
    if (curves[0].rate > 0 && args->nq > 0 && args->nk > 0 && is_tiled(cost->device, kernel))
        return curve_tiles_seconds(cost, curves, op, rounding);
    if (curves[0].rate > 0 &&
        (kernel->cost == LH_COST_GEMM ? args->nq + args->nk > 0 : args->nq > 0 && args->nk > 0))
        return curve_seconds(cost, curves, op, rounding);
    return roofline_seconds(cost, op, bytes, rounding);
}

/* The call of @op with its time on the device, which is computed if it is not among the recent
 * ones. */
static const LhRecentCall *
timed_call(LhCost *cost, const LhProgram *program, const LhOp *op)
{
    const LhKernelId kernel = op->compute.kernel;
    const LhProvenance provenance = cost->provenance;
    const bool on_cpu = lh_op_on_cpu(program, op);
    LhCallOperands operands = { .kernel = kernel,
                                .on_cpu = on_cpu,
                                .element_bytes = lh_dtype_bytes(lh_op_activation(program, op)) };
    LhRecentCall *call;
    bool known;

    if (lh_kernels[kernel]->cost == LH_COST_ATTENTION)
        lh_attention_parts(op, &operands.q_parts, &operands.k_parts);
    if (cost->recent == NULL)
        cost->recent = lh_recent_calls_new();
    call = lh_recent_calls_find(cost->recent, &op->compute.args, &operands, &known);
    if (!known) {
        cost->provenance = LH_PROVENANCE_MEASURED;
        cost->op_error = 0;
        cost->op_judged = false;
        call->rounding = 1;
        call->seconds = on_cpu ? cpu_seconds(cost, program,
                                             lh_kernels[kernel]->memory_bytes(
                                                 &op->compute.args, operands.element_bytes))
                               : device_seconds(cost, op, operands.element_bytes, &call->rounding);
        call->error = cost->op_error;
        call->judged = cost->op_judged;
        call->provenance = (uint8_t)cost->provenance;
    }
    cost->provenance = MAX(provenance, (LhProvenance)call->provenance);
    return call;
}

/* Seconds of the training framework's work around the call, at the device's memory bandwidth. */
static double
around_seconds(LhCost *cost, const LhProgram *program, const LhOp *op)
{
    const double bytes = lh_call_bytes(cost->framework, program, op, &cost->calls);

    if (bytes == 0)
        return 0;
    use(cost, (int)(op->compute.kernel == LH_KERNEL_ID_merge_lse ? cost->trust.slices
                                                                 : cost->trust.copies));
    use(cost, cost->device->memory_provenance);
    return bytes / (cost->device->memory_bandwidth * cost->device->memory_efficiency);
}

void
lh_cost_count(LhCost *cost, const LhOpSeconds *op)
{
    cost->uncertain_s += op->seconds * op->error;
    cost->judged_s += op->judged ? op->seconds : 0;
    cost->uncertain_s += op->around_seconds * op->around_error;
    cost->spent_s += op->seconds + op->around_seconds;
}

/* Seconds of both, with accounting of their errors. */
static double
judged_seconds(LhCost *cost, const LhProgram *program, const LhOp *op, double *rounding)
{
    const LhRecentCall *call = timed_call(cost, program, op);
    LhOpSeconds *s = &cost->op_seconds;

    *rounding = call->rounding;
    s->seconds = call->seconds;
    s->error = call->error;
    s->judged = call->judged;
    cost->op_error = 0;
    s->around_seconds = around_seconds(cost, program, op);
    s->around_error = cost->op_error;
    lh_cost_count(cost, s);
    return s->seconds + s->around_seconds;
}

/* Whether a kernel computes a block's scores: attention itself, or the product of scores that are
 * written out. */
static bool
is_block(LhEffect effect)
{
    return effect == LH_EFFECT_ATTEND || effect == LH_EFFECT_ATTEND_GRAD ||
           effect == LH_EFFECT_SCORES;
}

LhTime
lh_cost_compute(LhCost *cost, const LhProgram *program, const LhOp *op, double *occupancy)
{
    const LhKernel *kernel = lh_kernels[op->compute.kernel];
    double seconds = 0, rounding = 1;

    if (cost->mode == LH_COST_UNIT)
        seconds = is_block(kernel->effect) ? 1 : 0;
    else if (cost->mode == LH_COST_DEVICE)
        seconds = judged_seconds(cost, program, op, &rounding);
    else if (lh_kernel_counts_flops(kernel))
        seconds = (double)kernel->flops(&op->compute.args) / FLOPS_MODE_RATE;
    if (occupancy != NULL)
        *occupancy = 1 / rounding;
    return lh_time_from_ps(seconds * (double)LH_PS_PER_S);
}
