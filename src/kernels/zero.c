/*
 * Makes an empty accumulator.
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
    return lh_elements(a) * element_bytes;
}

const LhKernel lh_kernel_zero = {
    .name = "zero",
    .summary = "clears an accumulator",
    .effect = LH_EFFECT_ZERO,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "target", LH_OPERAND_WRITE, LH_TENSOR_ANY, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
};
