/*
 * Repeats the key-value heads for the query heads that share them, as code does whose attention
 * needs as many key-value heads as query heads. Attention here takes key-value heads as they are,
 * so that no other kernel reads what this one writes: it stands for the time and the memory.
 */
#include "kernels/sizes.h"

static uint64_t
operand_elements(const LhKernelArgs *a, unsigned operand)
{
    return operand == 0 ? lh_kv_elements(a) : lh_kv_elements(a) / a->groups * a->heads;
}

static uint64_t
flops(const LhKernelArgs *a)
{
    (void)a;
    return 0;
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return (operand_elements(a, 0) + operand_elements(a, 1)) * element_bytes;
}

const LhKernel lh_kernel_expand_kv = {
    .name = "expand_kv",
    .summary = "k and v with a key-value head for every query head",
    .effect = LH_EFFECT_DERIVE,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "kv", LH_OPERAND_READ, LH_TENSOR_KV, LH_ELEMENT_ACTIVATION },
        { "expanded", LH_OPERAND_WRITE, LH_TENSOR_HIDDEN, LH_ELEMENT_ACTIVATION },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
    .operand_elements = operand_elements,
};
