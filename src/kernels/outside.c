/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placeholder calls for the layer around an attention module: its projections, forward and
 * backward, and other readers of its activations. Their work is not in the program of a module, so
 * they have neither flops nor traffic. They state data dependencies and order.
 */
#include "kernels/kernel.h"

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    (void)a;
    (void)element_bytes;
    return 0;
}

#define OUTSIDE(word, what, which, ...)                                                            \
    const LhKernel lh_kernel_##word = {                                                            \
        .name = #word,                                                                             \
        .summary = what,                                                                           \
        .args = LH_ARGS_NONE,                                                                      \
        .effect = which,                                                                           \
        .cost = LH_COST_OUTSIDE,                                                                   \
        .operands = { __VA_ARGS__, { .access = LH_OPERAND_END } },                                 \
        .flops = lh_no_flops,                                                                      \
        .memory_bytes = memory_bytes,                                                              \
    };
#define HIDDEN(name, access)                                                                       \
    {                                                                                              \
        name, LH_OPERAND_##access, LH_TENSOR_HIDDEN, LH_ELEMENT_EITHER                             \
    }
#define GIVEN(name, kind)                                                                          \
    {                                                                                              \
        name, LH_OPERAND_GIVEN, LH_TENSOR_##kind, LH_ELEMENT_ACTIVATION                            \
    }
#define RESULT(name, kind)                                                                         \
    {                                                                                              \
        name, LH_OPERAND_READ, LH_TENSOR_##kind, LH_ELEMENT_EITHER                                 \
    }

OUTSIDE(qkv_projection, "stands for the projection of x to q, k, v", LH_EFFECT_PROJECT_IN,
        HIDDEN("x", READ), GIVEN("q", Q), GIVEN("kv", KV))
OUTSIDE(out_projection, "stands for the projection of o to y", LH_EFFECT_PROJECT_OUT,
        RESULT("o", O), HIDDEN("y", WRITE))
OUTSIDE(out_projection_dgrad, "stands for the gradient do of the projection of o",
        LH_EFFECT_PROJECT_IN, HIDDEN("dy", READ), GIVEN("do", DO))
OUTSIDE(qkv_projection_dgrad, "stands for the gradient dx of the projection to q, k, v",
        LH_EFFECT_PROJECT_OUT, RESULT("dq", DQ), RESULT("dkv", DKV), HIDDEN("dx", WRITE))
OUTSIDE(outside, "stands for a reader outside the attention module", LH_EFFECT_OUTSIDE,
        HIDDEN("x", READ))
