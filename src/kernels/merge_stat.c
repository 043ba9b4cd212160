/*
 * Adds the lse of a normalised block to a running lse: what TransformerEngine does after every step
 * of its ring, long before it touches the outputs themselves.
 */
#include "kernels/cpu.h"
#include "kernels/sizes.h"

#include <math.h>
#include <stddef.h>

static uint64_t
flops(const LhKernelArgs *a)
{
    /* Maximum, difference, exponential, logarithm, sum. */
    return a->first ? 0 : 5 * lh_rows(a);
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    (void)element_bytes;
    return (a->first ? 2 : 3) * lh_rows(a) * LH_STAT_BYTES;
}

static float
log_add(double a, double b)
{
    const double larger = fmax(a, b);

    return larger == -INFINITY ? -INFINITY : (float)(larger + log1p(exp(-fabs(a - b))));
}

static enum lh_status
run(const LhCall *call)
{
    const LhKernelArgs *a = call->args;
    const LhRows of_block = lh_rows_acc_stat(call, 0, 0), of_lse = lh_rows_stat(call, 1);

    if (!lh_parts_divide(call, 2, 0))
        return LH_STATUS_UNSUPPORTED;
    for (uint64_t b = 0; b < a->batch; b++) {
        for (uint64_t row = 0; row < a->nq; row++) {
            for (uint32_t head = 0; head < a->heads; head++) {
                const float block = *lh_stat_at(&of_block, b, row, head);
                float *lse = lh_stat_at(&of_lse, b, row, head);

                *lse = a->first ? block : log_add((double)*lse, (double)block);
            }
        }
    }
    return LH_STATUS_OK;
}

const LhKernel lh_kernel_merge_stat = {
    .name = "merge_stat",
    .summary = "adds the lse of a normalised block to a running lse",
    .effect = LH_EFFECT_ADD,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "block", LH_OPERAND_READ, LH_TENSOR_ACC, LH_ELEMENT_ACTIVATION },
        { "lse", LH_OPERAND_UPDATE, LH_TENSOR_LSE, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
    .reference = run,
    .cpu = run,
};
