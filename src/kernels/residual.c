/*
 * z = x + y: the sum of two activations outside attention.
 */
#include "kernels/kernel.h"

#define OPERANDS 3

static uint64_t
flops(const LhKernelArgs *a)
{
    return a->elements.count;
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return OPERANDS * a->elements.count * element_bytes;
}

static uint64_t
operand_elements(const LhKernelArgs *a, unsigned operand)
{
    (void)operand;
    return a->elements.count;
}

const LhKernel lh_kernel_residual = {
    .name = "residual",
    .summary = "z = x + y, element by element",
    .args = LH_ARGS_ELEMENTS,
    .effect = LH_EFFECT_DERIVE,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "x", LH_OPERAND_READ, LH_TENSOR_HIDDEN, LH_ELEMENT_EITHER },
        { "y", LH_OPERAND_READ, LH_TENSOR_HIDDEN, LH_ELEMENT_EITHER },
        { "z", LH_OPERAND_WRITE, LH_TENSOR_HIDDEN, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
    .operand_elements = operand_elements,
};
