/*
 * Converts gradients between the activation's type and fp32.
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
    return lh_elements(a) * (element_bytes + LH_FP32_BYTES);
}

const LhKernel lh_kernel_cast = {
    .name = "cast",
    .summary = "converts between the activation's type and fp32",
    .effect = LH_EFFECT_DERIVE,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "source", LH_OPERAND_READ, LH_TENSOR_ANY, LH_ELEMENT_EITHER },
        { "target", LH_OPERAND_WRITE, LH_TENSOR_ANY, LH_ELEMENT_OTHER },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
};
