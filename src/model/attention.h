/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shape of one attention module, and the sizes computed from it. Letters follow kernels/README.md:
 * B batch, N sequence, h query heads, g key-value heads (query groups), d head dimension, e bytes
 * of an activation element.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    LH_DTYPE_BF16,
    LH_DTYPE_FP16,
    LH_DTYPE_FP32,
    LH_DTYPE_INT8, /* of quantised moments alone; activations have one of the others */
} LhDtype;

/* NULL-terminated, indexed by LhDtype: "bf16", "fp16", "fp32", "int8". */
extern const char *const lh_dtype_names[];
/* The same without int8: element types of activations. */
extern const char *const lh_activation_names[];

static inline uint32_t
lh_dtype_bytes(LhDtype dtype)
{
    return dtype == LH_DTYPE_FP32 ? 4 : dtype == LH_DTYPE_INT8 ? 1 : 2;
}

typedef struct {
    uint32_t batch;      /* B, sequences (--micro-batch-size); >= 1 */
    uint64_t seq_length; /* N, tokens of one sequence over all ranks; >= 1 */
    uint32_t heads;      /* h, query heads; >= 1 */
    uint32_t groups;     /* g, key-value heads; divides h */
    uint32_t head_dim;   /* d (--kv-channels); >= 1 */
    LhDtype dtype;       /* of q, k, v, o and their gradients */
    /*
     * Linear attention: o_i = sum of decay^(i-j) (q_i k_j) v_j over the keys that query i attends
     * to; no softmax, no scale, no lse.
     */
    bool linear;
    double decay;         /* per token, in (0, 1]; 0: none, like 1 */
    double scale;         /* of the logits of softmax attention; 0: 1/sqrt(d) */
    uint32_t hidden_size; /* D, of the activations around the module; 0: h d */
} LhAttention;

/* The factor of the logits: @scale, or its default where that is 0; never 0. */
double lh_attention_scale(double scale, uint32_t head_dim);

/* B tokens D e: bytes of the module's input or output activations for @tokens tokens. */
static inline uint64_t
lh_attention_hidden_bytes(const LhAttention *a, uint64_t tokens)
{
    const uint64_t width = a->hidden_size != 0 ? a->hidden_size : (uint64_t)a->heads * a->head_dim;

    return a->batch * tokens * width * lh_dtype_bytes(a->dtype);
}

/* Bytes for @tokens tokens of one of q, o, do, dq (B n h d e) ... */
static inline uint64_t
lh_attention_q_bytes(const LhAttention *a, uint64_t tokens)
{
    return (uint64_t)a->batch * tokens * a->heads * a->head_dim * lh_dtype_bytes(a->dtype);
}

/* ... k and v together, always at g heads (2 B n g d @element_bytes) ... */
static inline uint64_t
lh_attention_kv_bytes(const LhAttention *a, uint64_t tokens, uint32_t element_bytes)
{
    return 2 * (uint64_t)a->batch * tokens * a->groups * a->head_dim * element_bytes;
}

/* ... and one fp32 row statistic: m, l, lse or delta (4 B n h). */
static inline uint64_t
lh_attention_stat_bytes(const LhAttention *a, uint64_t tokens)
{
    return 4 * (uint64_t)a->batch * tokens * a->heads;
}
