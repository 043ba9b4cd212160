/*
 * target += source, both of the activation's type: the 16-bit accumulation of gradients of
 * LightSeq.
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
    return (a->first ? 2 : 3) * lh_elements(a) * element_bytes;
}

const LhKernel lh_kernel_add = {
    .name = "add",
    .summary = "adds gradients, both in the activation's type",
    .effect = LH_EFFECT_ADD,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "source", LH_OPERAND_READ, LH_TENSOR_ANY, LH_ELEMENT_ACTIVATION },
        { "target", LH_OPERAND_UPDATE, LH_TENSOR_ANY, LH_ELEMENT_ACTIVATION },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
};
