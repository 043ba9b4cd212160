/*
 * Passes a state, or its gradient, over the n = nq + nk tokens of a block (one of the two is 0):
 * target = decay^n source + target; with `first` target = decay^n source.
 */
#include "kernels/sizes.h"

static uint64_t
flops(const LhKernelArgs *a)
{
    return (a->first ? 1 : 2) * lh_state_elements(a);
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    (void)element_bytes;
    return (a->first ? 2 : 3) * lh_state_elements(a) * LH_FP32_BYTES;
}

const LhKernel lh_kernel_linear_carry = {
    .name = "linear_carry",
    .summary = "adds the decayed state of earlier tokens to that of a block",
    .effect = LH_EFFECT_STATE_CARRY,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "source", LH_OPERAND_READ, LH_TENSOR_ANY, LH_ELEMENT_FP32 },
        { "target", LH_OPERAND_UPDATE, LH_TENSOR_ANY, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
    .linear = true,
};
