/*
 * Ends an accumulator: o = acc / l, lse = m + log l. Systems that do this inside the last attention
 * call save its traffic.
 */
#include "kernels/sizes.h"

static uint64_t
flops(const LhKernelArgs *a)
{
    /* A quotient per element; logarithm and sum per row. */
    return lh_q_elements(a) + 2 * lh_rows(a);
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return lh_q_elements(a) * (LH_FP32_BYTES + element_bytes) + 3 * lh_rows(a) * LH_STAT_BYTES;
}

const LhKernel lh_kernel_normalise = {
    .name = "normalise",
    .summary = "turns an attention accumulator (o, m, l) into o and lse",
    .effect = LH_EFFECT_DERIVE,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "acc", LH_OPERAND_READ, LH_TENSOR_ACC, LH_ELEMENT_EITHER },
        { "o", LH_OPERAND_WRITE, LH_TENSOR_O, LH_ELEMENT_ACTIVATION },
        { "lse", LH_OPERAND_WRITE, LH_TENSOR_LSE, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
};
