/*
 * Copies within device memory, both sides of the activation's type.
 */
#include "kernels/sizes.h"

static uint64_t
flops(const LhKernelArgs *a)
{
    (void)a;
    return 0;
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return 2 * lh_elements(a) * element_bytes;
}

const LhKernel lh_kernel_copy = {
    .name = "copy",
    .summary = "copies a tensor",
    .effect = LH_EFFECT_DERIVE,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "source", LH_OPERAND_READ, LH_TENSOR_ANY, LH_ELEMENT_ACTIVATION },
        { "target", LH_OPERAND_WRITE, LH_TENSOR_ANY, LH_ELEMENT_ACTIVATION },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
};
