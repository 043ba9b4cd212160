/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elementwise operations between the products of a layer. `width` is that of the forward call's
 * output, also in backward calls: a row of gu and of dgu has twice as many elements, all gates
 * before all others.
 */
#include "kernels/layer.h"

/* Elements of an operand. */
static uint64_t
glu_elements(const LhKernelArgs *a, unsigned operand)
{
    return (operand == 0 ? 2 : 1) * lh_rows_elements(a);
}

static uint64_t
glu_bwd_elements(const LhKernelArgs *a, unsigned operand)
{
    return (operand == 1 ? 1 : 2) * lh_rows_elements(a);
}

static uint64_t
one_each(const LhKernelArgs *a, unsigned operand)
{
    (void)operand;
    return lh_rows_elements(a);
}

#define ACTIVATION(word, what, counted, elements, ...)                                             \
    static uint64_t word##_flops(const LhKernelArgs *a)                                            \
    {                                                                                              \
        return counted * lh_rows_elements(a);                                                      \
    }                                                                                              \
    LH_LAYER_BYTES(word)                                                                           \
    const LhKernel lh_kernel_##word = {                                                            \
        .name = #word,                                                                             \
        .summary = what,                                                                           \
        .args = LH_ARGS_ROWS,                                                                      \
        .effect = LH_EFFECT_LAYER,                                                                 \
        .cost = LH_COST_MEMORY,                                                                    \
        .operands = { __VA_ARGS__, LH_OPERANDS_END },                                              \
        .flops = word##_flops,                                                                     \
        .memory_bytes = word##_bytes,                                                              \
        .operand_elements = elements,                                                              \
    };

/* The numbers are flops per element of the output. */
ACTIVATION(glu, "p = silu(gate) up; a row holds gate, then up", 5, glu_elements,
           LH_HIDDEN("gu", READ), LH_HIDDEN("p", WRITE))
ACTIVATION(glu_bwd, "gradients of gate and up in glu", 11, glu_bwd_elements, LH_HIDDEN("gu", READ),
           LH_HIDDEN("dp", READ), LH_HIDDEN("dgu", WRITE))
ACTIVATION(gelu, "y = gelu(x), by tanh", 9, one_each, LH_HIDDEN("x", READ), LH_HIDDEN("y", WRITE))
ACTIVATION(gelu_bwd, "gradient of x in gelu", 18, one_each, LH_HIDDEN("x", READ),
           LH_HIDDEN("dy", READ), LH_HIDDEN("dx", WRITE))
ACTIVATION(gate, "z = x sigmoid(g)", 4, one_each, LH_HIDDEN("x", READ), LH_HIDDEN("g", READ),
           LH_HIDDEN("z", WRITE))
ACTIVATION(gate_bwd, "gradients of x and g in gate", 8, one_each, LH_HIDDEN("x", READ),
           LH_HIDDEN("g", READ), LH_HIDDEN("dz", READ), LH_HIDDEN("dx", WRITE),
           LH_HIDDEN("dg", WRITE))
