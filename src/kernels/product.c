/*
 * y = x w: a product of matrices outside attention.
 */
#include "kernels/kernel.h"

static uint64_t
flops(const LhKernelArgs *a)
{
    return 2 * a->product.m * a->product.n * a->product.k;
}

static uint64_t
operand_elements(const LhKernelArgs *a, unsigned operand)
{
    const uint64_t elements[] = { a->product.m * a->product.k, a->product.k * a->product.n,
                                  a->product.m * a->product.n };

    return elements[operand];
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    uint64_t elements = 0;

    for (unsigned i = 0; i < 3; i++)
        elements += operand_elements(a, i);
    return elements * element_bytes;
}

const LhKernel lh_kernel_product = {
    .name = "product",
    .summary = "y = x w, of matrices m x k and k x n",
    .args = LH_ARGS_PRODUCT,
    .effect = LH_EFFECT_DERIVE,
    .cost = LH_COST_PRODUCT,
    .operands = {
        { "x", LH_OPERAND_READ, LH_TENSOR_HIDDEN, LH_ELEMENT_EITHER },
        { "w", LH_OPERAND_READ, LH_TENSOR_WEIGHT, LH_ELEMENT_EITHER },
        { "y", LH_OPERAND_WRITE, LH_TENSOR_HIDDEN, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
    .operand_elements = operand_elements,
};
