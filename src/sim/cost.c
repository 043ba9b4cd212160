/*
 * Kernel times. Attention: flops over a fitted rate R(s) = R_inf / (1 + s0/s), s the key length of
 * the block, times the rounding of the thread blocks to whole waves of SMs. Everything else: memory
 * traffic at the rate that elementwise kernels reach. What a device file does not know falls back
 * to the roofline. What is left out: caches, clocks and power.
 */
#include "sim/cost.h"

#include <math.h>

#define FLOPS_MODE_RATE 1e15

void
lh_cost_init(LhCost *cost, LhCostMode mode, const LhDevice *device, const LhProgram *program)
{
    *cost = (LhCost){ .mode = mode,
                      .device = device,
                      .element_bytes = lh_dtype_bytes(program->params.attention.dtype),
                      .provenance = LH_PROVENANCE_MEASURED };
    if (mode != LH_COST_DEVICE)
        return;
    for (uint32_t k = 0; k < LH_KERNELS_COUNT; k++) {
        cost->traffic[k] = lh_device_traffic(device, lh_kernels[k]->name);
        if (lh_kernels[k]->cost != LH_COST_ATTENTION)
            continue;
        for (uint32_t causal = 0; causal < 2; causal++)
            if (!lh_device_rate(device, lh_kernels[k]->name, causal != 0,
                                program->params.attention.head_dim, &cost->curves[k][causal]))
                cost->curves[k][causal].rate = 0;
    }
}

static void
use(LhCost *cost, int provenance)
{
    cost->provenance = MAX(cost->provenance, (LhProvenance)provenance);
}

/* Thread blocks come in waves of one per SM; the last wave costs as much as a full one. */
static double
wave_rounding(const LhDevice *device, const LhKernelArgs *args)
{
    uint64_t tiles =
        (args->nq + device->tile_rows - 1) / device->tile_rows * args->batch * args->heads;
    uint64_t waves = (tiles + device->sm_count - 1) / device->sm_count;

    return (double)(waves * device->sm_count) / (double)tiles;
}

static double
memory_seconds(LhCost *cost, const LhKernel *kernel, const LhKernelArgs *args)
{
    use(cost, cost->device->memory_provenance);
    return (double)kernel->memory_bytes(args, cost->element_bytes) /
           (cost->device->memory_bandwidth * cost->device->memory_efficiency);
}

static double
elementwise_seconds(LhCost *cost, const LhOp *op)
{
    const LhKernel *kernel = lh_kernels[op->compute.kernel];
    const LhKernelTraffic *traffic = cost->traffic[op->compute.kernel];

    if (traffic == NULL)
        return memory_seconds(cost, kernel, &op->compute.args);
    use(cost, traffic->provenance);
    return (double)kernel->memory_bytes(&op->compute.args, cost->element_bytes) /
           traffic->bandwidth;
}

static double
device_seconds(LhCost *cost, const LhOp *op)
{
    const LhKernel *kernel = lh_kernels[op->compute.kernel];
    const LhKernelArgs *args = &op->compute.args;
    const LhKernelRate *curve = &cost->curves[op->compute.kernel][args->mask == LH_MASK_CAUSAL];
    double flops = (double)kernel->flops(args);

    if (kernel->cost == LH_COST_MEMORY)
        return elementwise_seconds(cost, op);
    if (kernel->cost == LH_COST_ATTENTION && curve->rate > 0 && args->nq > 0 && args->nk > 0) {
        use(cost, curve->provenance);
        return flops / curve->rate * (1 + curve->half_length / (double)args->nk) *
               wave_rounding(cost->device, args);
    }
    use(cost, LH_PROVENANCE_DATASHEET);
    return fmax(flops / cost->device->matrix_rate, memory_seconds(cost, kernel, args));
}

LhTime
lh_cost_compute(LhCost *cost, const LhOp *op)
{
    const LhKernel *kernel = lh_kernels[op->compute.kernel];
    bool block = kernel->effect == LH_EFFECT_ATTEND || kernel->effect == LH_EFFECT_ATTEND_GRAD;
    double seconds;

    if (cost->mode == LH_COST_UNIT)
        return block ? LH_PS_PER_S : 0;
    if (cost->mode == LH_COST_FLOPS)
        seconds = lh_kernel_counts_flops(kernel)
                      ? (double)kernel->flops(&op->compute.args) / FLOPS_MODE_RATE
                      : 0;
    else
        seconds = device_seconds(cost, op);
    return lh_time_from_ps(seconds * (double)LH_PS_PER_S);
}
