/*
 * Adds the o of a normalised block to an fp32 sum, weighed by exp(lse of the block - lse), lse
 * being that of all keys: the output correction of TransformerEngine, one fused kernel per block
 * after the last step of its ring.
 */
#include "kernels/sizes.h"

static uint64_t
flops(const LhKernelArgs *a)
{
    /* Product and sum per element; difference and exponential per row. */
    return (a->first ? 1 : 2) * lh_q_elements(a) + 2 * lh_rows(a);
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return lh_q_elements(a) * (element_bytes + (a->first ? 1 : 2) * LH_FP32_BYTES) +
           2 * lh_rows(a) * LH_STAT_BYTES;
}

const LhKernel lh_kernel_weigh_out = {
    .name = "weigh_out",
    .summary = "adds the o of a normalised block, weighed by the lse of all keys, to an fp32 sum",
    .effect = LH_EFFECT_ADD,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "block", LH_OPERAND_READ, LH_TENSOR_OUT, LH_ELEMENT_ACTIVATION },
        { "lse", LH_OPERAND_READ, LH_TENSOR_LSE, LH_ELEMENT_FP32 },
        { "out", LH_OPERAND_UPDATE, LH_TENSOR_O, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
};
