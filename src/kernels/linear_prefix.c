/*
 * Adds up the states of blocks of n = nq + nk tokens each (one of the two is 0), which come in the
 * order of the blocks: source i of m counts decay^((m-1-i) n), the last one wholly. Gradients (nq)
 * are added up from the other side: decay^(i n), the first one wholly.
 */
#include "kernels/sizes.h"

static uint64_t
flops(const LhKernelArgs *a)
{
    return 2 * a->states * lh_state_elements(a);
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    (void)element_bytes;
    return ((uint64_t)a->states + 1) * lh_state_elements(a) * LH_FP32_BYTES;
}

const LhKernel lh_kernel_linear_prefix = {
    .name = "linear_prefix",
    .summary = "adds up the states of blocks one after another, decayed",
    .effect = LH_EFFECT_STATE_PREFIX,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "sources", LH_OPERAND_READ, LH_TENSOR_ANY, LH_ELEMENT_FP32 },
        { "target", LH_OPERAND_WRITE, LH_TENSOR_ANY, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
    .linear = true,
};
