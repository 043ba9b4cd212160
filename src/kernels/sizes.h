/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Element counts of a call's operands, in the letters of kernels/README.md. Shared by the rows of
 * the table.
 */
#pragma once

#include "kernels/kernel.h"

/* B nq h: rows of q, over sequences and heads. Each has d elements and one of every statistic. */
static inline uint64_t
lh_rows(const LhKernelArgs *a)
{
    return (uint64_t)a->batch * a->nq * a->heads;
}

/* B nq h d: elements of one of q, o, do, dq. */
static inline uint64_t
lh_q_elements(const LhKernelArgs *a)
{
    return lh_rows(a) * a->head_dim;
}

/* 2 B nk g d: elements of k and v, or of dk and dv, together. */
static inline uint64_t
lh_kv_elements(const LhKernelArgs *a)
{
    return 2 * (uint64_t)a->batch * a->nk * a->groups * a->head_dim;
}

/* Elements of an elementwise call: on q (nk is 0), or on k and v (nq is 0). */
static inline uint64_t
lh_elements(const LhKernelArgs *a)
{
    return lh_q_elements(a) + lh_kv_elements(a);
}

/* B nk g d: elements of one of k, v, dk, dv. */
static inline uint64_t
lh_k_elements(const LhKernelArgs *a)
{
    return lh_kv_elements(a) / 2;
}

/* B h nq nk: scores of all query rows and all keys of a call. */
static inline uint64_t
lh_score_elements(const LhKernelArgs *a)
{
    return lh_rows(a) * a->nk;
}

/* Flops of one product, 2 d per pair; of scores in memory, all pairs. */
static inline uint64_t
lh_score_flops(const LhKernelArgs *a)
{
    return 2 * (uint64_t)a->batch * a->heads * a->head_dim * a->pairs;
}

/* B h d d: elements of the states of linear attention. */
static inline uint64_t
lh_state_elements(const LhKernelArgs *a)
{
    return (uint64_t)a->batch * a->heads * a->head_dim * a->head_dim;
}

/* Forward flops of attention on the pairs of a block: two products (s = q k^T, p v) of 2 d each. */
static inline uint64_t
lh_pair_flops_forward(const LhKernelArgs *a)
{
    return 4 * (uint64_t)a->batch * a->heads * a->head_dim * a->pairs;
}

/* Backward flops: five products: s = q k^T again, dp = do v^T, dv, dk, dq. */
static inline uint64_t
lh_pair_flops_backward(const LhKernelArgs *a)
{
    return 10 * (uint64_t)a->batch * a->heads * a->head_dim * a->pairs;
}

/*
 * Causal linear attention among the tokens of a call works in tiles of LH_LINEAR_TILE tokens: pairs
 * within a tile, earlier tiles through their state, which stays on chip. Under other masks every
 * pair counts.
 */
#define LH_LINEAR_TILE UINT64_C(128)

typedef struct {
    uint64_t count;  /* tiles; 0: pair by pair */
    uint64_t pairs;  /* within tiles */
    uint64_t before; /* tokens of all tiles but the last, which go into a state */
    uint64_t behind; /* tokens of all tiles but the first, which read it */
} LhLinearTiles;

static inline LhLinearTiles
lh_linear_tiles(const LhKernelArgs *a)
{
    const uint64_t tile = LH_LINEAR_TILE, rest = a->nq % tile;
    LhLinearTiles t = { .pairs = a->pairs };

    if (a->mask != LH_MASK_CAUSAL || a->shift != 0 || a->nq != a->nk || a->nq == 0)
        return t;
    t.count = (a->nq + tile - 1) / tile;
    t.pairs = a->nq / tile * (tile * (tile + 1) / 2) + rest * (rest + 1) / 2;
    t.before = (t.count - 1) * tile;
    t.behind = t.count > 1 ? a->nq - tile : 0;
    return t;
}

/* Flops of @tokens tokens with the states of all heads, one product of 2 d^2 each. */
static inline uint64_t
lh_state_flops(const LhKernelArgs *a, uint64_t tokens)
{
    return 2 * lh_state_elements(a) * tokens;
}

/*
 * Moments that are not in fp32. bf16 has the range of fp32. fp16 stores second moments by their
 * roots, since a square below 2^-25 would be 0 (TransformerEngine scales them instead, in as many
 * bytes: github:NVIDIA/TransformerEngine transformer_engine/pytorch/optimizers/fused_adam.py).
 *
 * 8-bit moments are codes in blocks of LH_MOMENT_BLOCK parameters, each block with an fp32 scale.
 * First moments: scale = largest magnitude / 127, code = round(m / scale), in int8. Second moments
 * by their roots, whose range is half as wide: scale = largest root / 255, code = round(sqrt(v) /
 * scale), in uint8. bitsandbytes has the same blocks and bytes and another table of codes
 * (github:bitsandbytes-foundation/bitsandbytes bitsandbytes/functional.py, create_dynamic_map).
 */
#define LH_MOMENT_BLOCK UINT64_C(256)

/* Scales of the first moments of @count parameters, then of the second ones. */
static inline uint64_t
lh_moment_scales(uint64_t count)
{
    return 2 * ((count + LH_MOMENT_BLOCK - 1) / LH_MOMENT_BLOCK);
}

/* Bytes of one row statistic (m, l, lse, delta): always fp32. */
#define LH_STAT_BYTES UINT64_C(4)
#define LH_FP32_BYTES UINT64_C(4)
