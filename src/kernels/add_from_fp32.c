/*
 * target += source, the source in fp32: gradients that travelled as fp32.
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
    return lh_elements(a) * (LH_FP32_BYTES + (a->first ? 1 : 2) * element_bytes);
}

const LhKernel lh_kernel_add_from_fp32 = {
    .name = "add_from_fp32",
    .summary = "adds fp32 gradients to sums of the activation's type",
    .effect = LH_EFFECT_ADD,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "source", LH_OPERAND_READ, LH_TENSOR_ANY, LH_ELEMENT_FP32 },
        { "target", LH_OPERAND_UPDATE, LH_TENSOR_ANY, LH_ELEMENT_ACTIVATION },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
};
