/*
 * Adds the lse of a normalised block to a running lse: what TransformerEngine does after every step
 * of its ring, long before it touches the outputs themselves.
 */
#include "kernels/sizes.h"

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

const LhKernel lh_kernel_merge_stat = {
    .name = "merge_stat",
    .summary = "adds the lse of a normalised block to a running lse",
    .effect = LH_EFFECT_ADD,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "block", LH_OPERAND_READ, LH_TENSOR_OUT, LH_ELEMENT_ACTIVATION },
        { "lse", LH_OPERAND_UPDATE, LH_TENSOR_LSE, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
};
