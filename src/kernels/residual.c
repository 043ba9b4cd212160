/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elementwise sums and copies outside attention.
 */
#include "kernels/layer.h"

static uint64_t
each_element(const LhKernelArgs *a)
{
    return a->elements.count;
}

static uint64_t
one_unless_first(const LhKernelArgs *a)
{
    return a->first ? 0 : a->elements.count;
}

static uint64_t
residual_elements(const LhKernelArgs *a, unsigned operand)
{
    (void)operand;
    return a->elements.count;
}

#define ELEMENTS(word, what, which, counted, ...)                                                  \
    LH_LAYER_BYTES(word)                                                                           \
    const LhKernel lh_kernel_##word = {                                                            \
        .name = #word,                                                                             \
        .summary = what,                                                                           \
        .args = LH_ARGS_ELEMENTS,                                                                  \
        .effect = which,                                                                           \
        .cost = LH_COST_MEMORY,                                                                    \
        .operands = { __VA_ARGS__, LH_OPERANDS_END },                                              \
        .flops = counted,                                                                          \
        .memory_bytes = word##_bytes,                                                              \
        .operand_elements = residual_elements,                                                     \
    };

ELEMENTS(residual, "z = x + y, element by element", LH_EFFECT_DERIVE, each_element,
         LH_HIDDEN("x", READ), LH_HIDDEN("y", READ), LH_HIDDEN("z", WRITE))
ELEMENTS(add_hidden, "y += x, activations outside attention", LH_EFFECT_LAYER, one_unless_first,
         LH_HIDDEN("x", READ), LH_HIDDEN("y", UPDATE))
ELEMENTS(accumulate, "y += x, gradients of weights", LH_EFFECT_LAYER, one_unless_first,
         LH_OF_WEIGHTS("x", READ, GRADIENT), LH_OF_WEIGHTS("y", UPDATE, GRADIENT))
ELEMENTS(cast_hidden, "converts activations outside attention between e bytes and fp32",
         LH_EFFECT_LAYER, lh_no_flops, LH_HIDDEN("x", READ),
         { "y", LH_OPERAND_WRITE, LH_TENSOR_HIDDEN, LH_ELEMENT_OTHER })
