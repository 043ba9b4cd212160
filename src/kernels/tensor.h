/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kinds of tensors that a buffer holds. Kernels state them for their operands, schedules for their
 * slots. The verifier compares the two; reports count memory by kind.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    LH_TENSOR_Q,
    LH_TENSOR_KV,  /* k and v together */
    LH_TENSOR_ACC, /* o, m, l: attention of some keys, not normalised */
    LH_TENSOR_OUT, /* o and its lse: attention of some keys, normalised */
    LH_TENSOR_O,   /* normalised output */
    LH_TENSOR_LSE, /* global log-sum-exp, fp32 */
    LH_TENSOR_DO,
    LH_TENSOR_DELTA, /* rowsum(do * o), fp32 */
    LH_TENSOR_DQ,
    LH_TENSOR_DKV,   /* dk and dv together */
    LH_TENSOR_STATE, /* linear-attention state d_k x d_v per head */
    LH_TENSOR_DSTATE,
    LH_TENSOR_HIDDEN, /* activations outside attention */
    LH_TENSOR_WEIGHT,
    LH_TENSOR_K, /* k, v, dk, dv one by one */
    LH_TENSOR_V,
    LH_TENSOR_DK,
    LH_TENSOR_DV,
    LH_TENSOR_SCORES,   /* q k^T of query rows and some keys, without scale and mask */
    LH_TENSOR_PROBS,    /* softmax of complete rows of scores */
    LH_TENSOR_DSCORES,  /* do v^T; after the softmax gradient, the gradient of the scores */
    LH_TENSOR_TOKENS,   /* token ids, 32 bits, inputs or targets */
    LH_TENSOR_GRADIENT, /* of weights */
    LH_TENSOR_MASTER,   /* weights in fp32 */
    LH_TENSOR_MOMENTS,  /* of the optimizer: the first, then the second, fp32 */
    LH_TENSOR_NUMBERS,  /* some fp32 numbers: loss statistics of a row, norms, step counts */
    LH_TENSOR_KINDS,
    LH_TENSOR_ANY = LH_TENSOR_KINDS, /* for operands only, never for a slot */
} LhTensorKind;

/* Indexed by LhTensorKind, NULL-terminated: "q", "kv", "acc", ... */
extern const char *const lh_tensor_names[];

/* Whether a kind belongs to the model, not to tokens of attention: weights and their companions. */
static inline bool
lh_tensor_is_of_model(LhTensorKind kind)
{
    const uint32_t kinds = 1u << LH_TENSOR_WEIGHT | 1u << LH_TENSOR_GRADIENT |
                           1u << LH_TENSOR_MASTER | 1u << LH_TENSOR_MOMENTS |
                           1u << LH_TENSOR_NUMBERS | 1u << LH_TENSOR_TOKENS;

    return (kinds >> kind & 1) != 0;
}

/* Whether a kind lies outside attention: turning it into a tensor of attention takes a product. */
static inline bool
lh_tensor_is_outside(LhTensorKind kind)
{
    return kind == LH_TENSOR_HIDDEN || lh_tensor_is_of_model(kind);
}
