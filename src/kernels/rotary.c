/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts one segment's rows outside attention (q; k then v) to tensors by heads, and back. q and
 * k are rotated: elements i and i + d/2 of a head, at position p, by the angle p base^(-2i/d). Base
 * 0: no rotation. Linear attention applies silu to q and k first. Outputs of attention change
 * layout only.
 */
#include "kernels/layer.h"

#define ROTATION_FLOPS 3 /* per element: two products and a sum */

static uint64_t
tokens(const LhKernelArgs *a)
{
    return a->to_heads.rows * a->to_heads.layout.batch;
}

static uint64_t
q_elements(const LhKernelArgs *a)
{
    return tokens(a) * a->to_heads.heads * a->to_heads.head_dim;
}

static uint64_t
kv_elements(const LhKernelArgs *a)
{
    return 2 * tokens(a) * a->to_heads.groups * a->to_heads.head_dim;
}

/* silu(x) = x / (1 + exp(-x)), and its gradient, which recomputes exp(-x). */
#define SILU_FLOPS 4
#define SILU_BWD_FLOPS 8

static uint64_t
rotation_flops(const LhKernelArgs *a, uint64_t elements)
{
    return a->to_heads.base != 0 ? ROTATION_FLOPS * elements : 0;
}

/* In kv only k is rotated. */
#define FLOPS(word, elements, more)                                                                \
    static uint64_t word##_flops(const LhKernelArgs *a)                                            \
    {                                                                                              \
        return rotation_flops(a, elements) + (more) * (elements);                                  \
    }

#define Q_OR_KV(word, elements)                                                                    \
    static uint64_t word##_elements(const LhKernelArgs *a, unsigned operand)                       \
    {                                                                                              \
        (void)operand;                                                                             \
        return elements(a);                                                                        \
    }

Q_OR_KV(of_q, q_elements)
Q_OR_KV(of_kv, kv_elements)

#define TO_HEADS(word, what, of, turned, more, ...)                                                \
    FLOPS(word, turned, more)                                                                      \
    LH_LAYER_BYTES(word)                                                                           \
    const LhKernel lh_kernel_##word = {                                                            \
        .name = #word,                                                                             \
        .summary = what,                                                                           \
        .args = LH_ARGS_HEADS,                                                                     \
        .effect = LH_EFFECT_LAYER,                                                                 \
        .cost = LH_COST_MEMORY,                                                                    \
        .operands = { __VA_ARGS__, LH_OPERANDS_END },                                              \
        .flops = word##_flops,                                                                     \
        .memory_bytes = word##_bytes,                                                              \
        .operand_elements = of##_elements,                                                         \
    };
#define Q_TURNED q_elements(a)
#define K_TURNED (kv_elements(a) / 2)

TO_HEADS(rotary_q, "q by heads, rotated, from rows of q", of_q, Q_TURNED, 0,
         LH_HIDDEN("rows", READ), LH_BY_HEADS("q", WRITE, Q, ACTIVATION))
TO_HEADS(rotary_kv, "kv by heads, k rotated, from rows of k and v", of_kv, K_TURNED, 0,
         LH_HIDDEN("rows", READ), LH_BY_HEADS("kv", WRITE, KV, ACTIVATION))
TO_HEADS(rotary_q_bwd, "rows of dq, rotated back, from dq by heads", of_q, Q_TURNED, 0,
         LH_BY_HEADS("dq", READ, DQ, EITHER), LH_HIDDEN("drows", WRITE))
TO_HEADS(rotary_kv_bwd, "rows of dk, rotated back, and dv, from dkv by heads", of_kv, K_TURNED, 0,
         LH_BY_HEADS("dkv", READ, DKV, EITHER), LH_HIDDEN("drows", WRITE))
TO_HEADS(silu_q, "q by heads, of silu of its rows", of_q, Q_TURNED, SILU_FLOPS,
         LH_HIDDEN("rows", READ), LH_BY_HEADS("q", WRITE, Q, ACTIVATION))
TO_HEADS(silu_kv, "kv by heads, of silu of the rows of k", of_kv, K_TURNED, SILU_FLOPS,
         LH_HIDDEN("rows", READ), LH_BY_HEADS("kv", WRITE, KV, ACTIVATION))
TO_HEADS(silu_q_bwd, "gradient of the rows of silu_q", of_q, Q_TURNED, SILU_BWD_FLOPS,
         LH_HIDDEN("rows", READ), LH_BY_HEADS("dq", READ, DQ, EITHER), LH_HIDDEN("drows", WRITE))
TO_HEADS(silu_kv_bwd, "gradient of the rows of silu_kv", of_kv, K_TURNED, SILU_BWD_FLOPS,
         LH_HIDDEN("rows", READ), LH_BY_HEADS("dkv", READ, DKV, EITHER), LH_HIDDEN("drows", WRITE))
TO_HEADS(from_heads, "rows of o, from o by heads", of_q, UINT64_C(0), 0,
         LH_BY_HEADS("o", READ, O, ACTIVATION), LH_HIDDEN("rows", WRITE))
TO_HEADS(from_heads_bwd, "do by heads, from its rows", of_q, UINT64_C(0), 0,
         LH_HIDDEN("drows", READ), LH_BY_HEADS("do", WRITE, DO, ACTIVATION))
