/*
 * target += source, the target in fp32, as ring-flash-attention accumulates its gradients.
 */
#include "kernels/sizes.h"

static uint64_t
flops(const LhKernelArgs *a)
{
    return a->first ? 0 : lh_elements(a);
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return lh_elements(a) * (element_bytes + (a->first ? 1 : 2) * LH_FP32_BYTES);
}

const LhKernel lh_kernel_add_to_fp32 = {
    .name = "add_to_fp32",
    .summary = "adds gradients to fp32 sums",
    .effect = LH_EFFECT_ADD,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "source", LH_OPERAND_READ, LH_TENSOR_ANY, LH_ELEMENT_EITHER },
        { "target", LH_OPERAND_UPDATE, LH_TENSOR_ANY, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
};
