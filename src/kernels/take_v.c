/*
 * Copies v out of k and v.
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
    return 2 * lh_k_elements(a) * element_bytes;
}

const LhKernel lh_kernel_take_v = {
    .name = "take_v",
    .summary = "v alone, out of k and v",
    .effect = LH_EFFECT_DERIVE,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "kv", LH_OPERAND_READ, LH_TENSOR_KV, LH_ELEMENT_ACTIVATION },
        { "v", LH_OPERAND_WRITE, LH_TENSOR_V, LH_ELEMENT_ACTIVATION },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
};
