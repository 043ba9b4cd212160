/*
 * Kernel times. Attention: flops over a fitted rate R(s) = R_inf / (1 + s0/s), s the key length of
 * the block, times the rounding of the thread blocks to whole waves of SMs. Linear attention: flops
 * at a share of the matrix units' peak, likewise rounded, and so products with scores that are
 * written out; products outside attention by tiles (product_cost.h). Everything else: memory
 * traffic at the rate that elementwise kernels reach. What a device file does not know falls back
 * to the roofline. What is left out: caches, clocks and power.
 */
#include "sim/cost.h"

#include "program/work.h"
#include "sim/accuracy.h"
#include "sim/product_cost.h"

#include <math.h>
#include <string.h>

#define FLOPS_MODE_RATE 1e15
/* Share of the peak that large products reach which write their scores out: batched ones of a short
 * inner dimension, d or n. */
#define GEMM_EFFICIENCY 0.6
/* Part of the rectangle's pairs from which on a block counts as full: half way between a triangle
 * and the rectangle. */
#define FULL_SHARE 0.75

/* Matrix products take a curve only if it is their own: attention's say nothing of them. */
static bool
find_curve(const LhDevice *device, const LhKernel *kernel, bool causal, uint32_t head_dim,
           LhKernelRate *rate)
{
    return (kernel->cost == LH_COST_ATTENTION || kernel->cost == LH_COST_GEMM) &&
           lh_device_rate(device, kernel->name, causal, head_dim, rate) &&
           (kernel->cost == LH_COST_ATTENTION || strcmp(rate->kernel, kernel->name) == 0);
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

/* The curves of a head dimension; the last place is that of all that have no other. */
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

/* Notes blocks of @keys that no point of the curve is as short or as long as. */
static void
note_extrapolation(LhCost *cost, const LhKernelRate *curve, double keys)
{
    LhExtrapolation here = { 0 };

    if (keys >= (double)curve->length_min &&
        (curve->length_max == 0 || keys <= (double)curve->length_max))
        return;
    if (keys < (double)curve->length_min)
        here = (LhExtrapolation){ .shortest = keys, .fitted_from = (double)curve->length_min };
    else
        here = (LhExtrapolation){ .longest = keys, .fitted_to = (double)curve->length_max };
    lh_extrapolation_join(&cost->beyond, &here);
}

/* Thread blocks come in waves of one per SM; the last wave costs as much as a full one. */
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
    use_fit(cost, traffic->provenance, &traffic->residuals);
    return (double)bytes / traffic->bandwidth;
}

/*
 * Which curve a block of pairs by position takes, and the key length at which: full blocks that of
 * the keys that a row sees on average; others, of which a triangle is the type, twice that, as in a
 * triangle. So a window within a long block is timed by its own length, since kernels skip the
 * tiles that it does not touch.
 */
static bool
is_triangle(const LhKernelArgs *args, double *keys)
{
    const double seen = fmax((double)args->pairs / (double)args->nq, 1);

    *keys = (double)args->nk;
    if (args->mask != LH_MASK_POSITIONS)
        return args->mask == LH_MASK_CAUSAL;
    if (seen > FULL_SHARE * (double)args->nk) {
        *keys = seen;
        return false;
    }
    *keys = fmin(2 * seen, *keys);
    return true;
}

static double
curve_seconds(LhCost *cost, const LhKernelRate curves[2], const LhOp *op, double *rounding)
{
    const LhKernelArgs *args = &op->compute.args;
    double keys;
    const LhKernelRate *curve = &curves[is_triangle(args, &keys)];

    use_fit(cost, curve->provenance, &curve->residuals);
    note_extrapolation(cost, curve, keys);
    *rounding = wave_rounding(cost->device, args);
    return (double)lh_kernels[op->compute.kernel]->flops(args) / curve->rate *
           (1 + curve->half_length / keys) * *rounding;
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
                  ? cost->device->linear_provenance
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
    double waves;
    const double matrix_s = lh_product_seconds(cost->device, &shape, &waves);

    use(cost, cost->device->matrix_provenance);
    if (matrix_s < memory_s)
        return memory_s;
    *rounding = waves;
    return matrix_s;
}

/* @rounding is set where it is in the result. */
static double
device_seconds(LhCost *cost, const LhProgram *program, const LhOp *op, double *rounding)
{
    const LhKernel *kernel = lh_kernels[op->compute.kernel];
    const LhKernelArgs *args = &op->compute.args;
    const uint64_t bytes =
        kernel->memory_bytes(args, lh_dtype_bytes(lh_op_activation(program, op)));
    const LhKernelRate *curves;

    if (kernel->cost == LH_COST_OUTSIDE)
        return 0;
    if (kernel->cost == LH_COST_MEMORY)
        return elementwise_seconds(cost, op, bytes);
    if (kernel->cost == LH_COST_PRODUCT)
        return product_seconds(cost, op, bytes, rounding);
    curves = curves_of(cost, args->head_dim)->rate[op->compute.kernel];
    if (curves[0].rate > 0 && args->nq > 0 && args->nk > 0)
        return curve_seconds(cost, curves, op, rounding);
    return roofline_seconds(cost, op, bytes, rounding);
}

/* What the training system does around the call, at the device's memory bandwidth. */
static double
around_seconds(LhCost *cost, const LhProgram *program, const LhOp *op)
{
    const double bytes = lh_call_bytes(cost->framework, program, op, &cost->calls);

    if (bytes == 0)
        return 0;
    use(cost, LH_PROVENANCE_FITTED);
    use(cost, cost->device->memory_provenance);
    return bytes / (cost->device->memory_bandwidth * cost->device->memory_efficiency);
}

/* The same, and notes how far it can be trusted. */
static double
judged_seconds(LhCost *cost, const LhProgram *program, const LhOp *op, double *rounding)
{
    double seconds;

    cost->op_error = 0;
    seconds = device_seconds(cost, program, op, rounding) + around_seconds(cost, program, op);
    cost->spent_s += seconds;
    cost->uncertain_s += seconds * cost->op_error;
    return seconds;
}

/* Whether a call is the one that computes a block's scores: attention itself, or, where they are
 * written out, their product. */
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
