/*
 * delta = rowsum(do * o), what the backward pass needs of o.
 */
#include "kernels/sizes.h"

static uint64_t
flops(const LhKernelArgs *a)
{
    return 2 * lh_q_elements(a);
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return 2 * lh_q_elements(a) * element_bytes + lh_rows(a) * LH_STAT_BYTES;
}

const LhKernel lh_kernel_delta = {
    .name = "delta",
    .summary = "rowsum(do * o) of every query row",
    .effect = LH_EFFECT_DERIVE,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "do", LH_OPERAND_READ, LH_TENSOR_DO, LH_ELEMENT_ACTIVATION },
        { "o", LH_OPERAND_READ, LH_TENSOR_O, LH_ELEMENT_ACTIVATION },
        { "delta", LH_OPERAND_WRITE, LH_TENSOR_DELTA, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
};
