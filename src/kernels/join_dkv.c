/*
 * Puts dk and dv together, rounded to the activation's type.
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
    return 2 * lh_kv_elements(a) * element_bytes;
}

const LhKernel lh_kernel_join_dkv = {
    .name = "join_dkv",
    .summary = "dk and dv together, rounded",
    .effect = LH_EFFECT_DERIVE,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "dk", LH_OPERAND_READ, LH_TENSOR_DK, LH_ELEMENT_EITHER },
        { "dv", LH_OPERAND_READ, LH_TENSOR_DV, LH_ELEMENT_EITHER },
        { "dkv", LH_OPERAND_WRITE, LH_TENSOR_DKV, LH_ELEMENT_ACTIVATION },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
};
