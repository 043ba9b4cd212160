/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a buffer holds. Kernels state it of their operands, schedules of their slots; the verifier
 * holds the two against each other, and reports count memory by it.
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
    LH_TENSOR_K, /* k, v, dk, dv each alone */
    LH_TENSOR_V,
    LH_TENSOR_DK,
    LH_TENSOR_DV,
    LH_TENSOR_SCORES,   /* q k^T of query rows with some keys, without scale and mask */
    LH_TENSOR_PROBS,    /* softmax of complete rows of these */
    LH_TENSOR_DSCORES,  /* do v^T; from the gradient of softmax on, that of scores */
    LH_TENSOR_TOKENS,   /* numbers of tokens, 32 bits each, as inputs or targets */
    LH_TENSOR_GRADIENT, /* of weights */
    LH_TENSOR_MASTER,   /* weights in fp32 */
    LH_TENSOR_MOMENTS,  /* of the optimizer: the first, then the second, fp32 */
    LH_TENSOR_NUMBERS,  /* a few fp32 numbers: of a row in the loss, norms, counts of steps */
    LH_TENSOR_KINDS,
    LH_TENSOR_ANY = LH_TENSOR_KINDS, /* of operands only, never of a slot */
} LhTensorKind;

/* Indexed by LhTensorKind, NULL-terminated: "q", "kv", "acc", ... */
extern const char *const lh_tensor_names[];

/* What belongs to the model and to no tokens: weights, and what goes with them. */
static inline bool
lh_tensor_is_of_model(LhTensorKind kind)
{
    const uint32_t kinds = 1u << LH_TENSOR_WEIGHT | 1u << LH_TENSOR_GRADIENT |
                           1u << LH_TENSOR_MASTER | 1u << LH_TENSOR_MOMENTS |
                           1u << LH_TENSOR_NUMBERS | 1u << LH_TENSOR_TOKENS;

    return (kinds >> kind & 1) != 0;
}

/* What no tensor of attention can be made of without products: all that lies outside it. */
static inline bool
lh_tensor_is_outside(LhTensorKind kind)
{
    return kind == LH_TENSOR_HIDDEN || lh_tensor_is_of_model(kind);
}
