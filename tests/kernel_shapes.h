/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes for running kernels on data, and masks by position. */
#pragma once

#include "kernel_runs.h"

static inline bool
is_linear(const char *name)
{
    return g_str_has_prefix(name, "linear_");
}

static inline bool
has_pairs(const char *name)
{
    return g_str_has_prefix(name, "attention") || g_str_has_prefix(name, "linear_intra") ||
           g_str_has_prefix(name, "scores");
}

/* Adapts the cases of a shape to a kernel: elementwise kernels take queries or keys. */
static inline void
each_case(const Case *shape, const char *name, void (*check)(const Case *c))
{
    const LhOperand *operands = lh_kernels[lh_kernel_find(name)]->operands;
    Case c = *shape;

    c.kernel = name;
    c.args.states = 1;
    if (is_linear(name) && c.args.mask == LH_MASK_CAUSAL)
        c.args.decay = 0.97;
    for (unsigned first = 0; first < 2; first++) {
        c.args.first = first != 0;
        if (has_pairs(name) || g_str_has_prefix(name, "linear")) {
            check(&c);
            continue;
        }
        c.args.nk = is_keys(&c, operands[0].kind) ? shape->args.nk : 0;
        check(&c);
        if (operands[0].kind != LH_TENSOR_ANY)
            continue;
        c.args.nk = shape->args.nk;
        c.args.nq = 0;
        check(&c);
        c.args.nq = shape->args.nq;
    }
}

static const Case shapes[] = {
    { .args = { .nq = 64,
                .nk = 64,
                .batch = 1,
                .heads = 1,
                .groups = 1,
                .head_dim = 64,
                .mask = LH_MASK_CAUSAL },
      .q_parts = 1,
      .k_parts = 1 },
    { .args = { .nq = 100,
                .nk = 100,
                .batch = 2,
                .heads = 4,
                .groups = 1,
                .head_dim = 80,
                .mask = LH_MASK_CAUSAL,
                .shift = -1 },
      .q_parts = 2,
      .k_parts = 2,
      .narrow = true },
    { .args = { .nq = 66,
                .nk = 132,
                .batch = 1,
                .heads = 4,
                .groups = 2,
                .head_dim = 96,
                .mask = LH_MASK_FULL,
                .scale = 0.2 },
      .q_parts = 1,
      .k_parts = 2 },
    { .args = { .nq = 130,
                .nk = 5,
                .batch = 1,
                .heads = 2,
                .groups = 2,
                .head_dim = 128,
                .mask = LH_MASK_CAUSAL },
      .q_parts = 2,
      .k_parts = 1,
      .narrow = true },
    { .args = { .nq = 3,
                .nk = 150,
                .batch = 2,
                .heads = 8,
                .groups = 1,
                .head_dim = 5,
                .mask = LH_MASK_FULL },
      .q_parts = 1,
      .k_parts = 1 },
    { .args = { .nq = 70,
                .nk = 140,
                .batch = 1,
                .heads = 2,
                .groups = 1,
                .head_dim = 33,
                .mask = LH_MASK_CAUSAL },
      .q_parts = 1,
      .k_parts = 1 },
    /* Linear attention over several tiles, cut by parts. */
    { .args = { .nq = 270,
                .nk = 270,
                .batch = 1,
                .heads = 2,
                .groups = 1,
                .head_dim = 9,
                .mask = LH_MASK_CAUSAL },
      .q_parts = 2,
      .k_parts = 3,
      .narrow = true },
    { .args = { .nq = 256,
                .nk = 256,
                .batch = 1,
                .heads = 1,
                .groups = 1,
                .head_dim = 17,
                .mask = LH_MASK_CAUSAL },
      .q_parts = 1,
      .k_parts = 1 },
    { .args = { .nq = 2,
                .nk = 2,
                .batch = 1,
                .heads = 1,
                .groups = 1,
                .head_dim = 1,
                .mask = LH_MASK_EMPTY },
      .q_parts = 1,
      .k_parts = 1 },
};

/* Sizes around the number of rows per pass and around the block size of elements. */
static const Case others[] = {
    { .kernel = "product", .args.product = { 1, 1, 1 }, .q_parts = 1 },
    { .kernel = "product", .args.product = { 8, 16, 32 }, .q_parts = 1 },
    { .kernel = "product", .args.product = { 37, 19, 53 }, .q_parts = 1 },
    { .kernel = "product", .args.product = { 24, 40, 36 }, .q_parts = 2 },
    { .kernel = "product", .args.product = { 9, 65, 3 }, .q_parts = 3 },
    /* Several blocks in each dimension; parts cut rows. */
    { .kernel = "product", .args.product = { 300, 530, 270 }, .q_parts = 1 },
    { .kernel = "product", .args.product = { 36, 17, 33 }, .q_parts = 3 },
    { .kernel = "product_dgrad", .args.product = { 37, 19, 53 }, .q_parts = 1 },
    { .kernel = "product_dgrad", .args.product = { 40, 520, 300 }, .q_parts = 4 },
    { .kernel = "product_dgrad",
      .args = { .product = { 40, 520, 300 }, .first = true },
      .q_parts = 4 },
    { .kernel = "out_product_dgrad",
      .args = { .product = { 48, 19, 40, 1, { 1, 1 } }, .first = true },
      .q_parts = 1 },
    { .kernel = "product_dgrad", .args.product = { 36, 17, 33 }, .q_parts = 1 },
    { .kernel = "product_wgrad", .args.product = { 37, 19, 53 }, .q_parts = 1 },
    { .kernel = "product_wgrad", .args.product = { 600, 64, 50 }, .q_parts = 2 },
    { .kernel = "product_wgrad",
      .args = { .product = { 36, 17, 33 }, .first = true },
      .q_parts = 1 },
    { .kernel = "out_product", .args.product = { 48, 19, 40, 1, { 2, 2 } }, .q_parts = 4 },
    { .kernel = "out_product_dgrad", .args.product = { 48, 19, 40, 1, { 2, 4 } }, .q_parts = 4 },
    { .kernel = "out_product_wgrad", .args.product = { 48, 20, 40, 1, { 3, 1 } }, .q_parts = 2 },
    { .kernel = "out_product_wgrad",
      .args = { .product = { 48, 19, 40, 1, { 1, 1 } }, .first = true },
      .q_parts = 1 },
    /* More experts than rows for some; more rows than a block. */
    { .kernel = "expert_product", .args.product = { 36, 17, 33, .experts = 4 }, .q_parts = 3 },
    { .kernel = "expert_product", .args.product = { 700, 40, 24, .experts = 2 }, .q_parts = 1 },
    { .kernel = "expert_product_dgrad",
      .args = { .product = { 20, 17, 33, .experts = 16 }, .first = true },
      .q_parts = 1 },
    { .kernel = "expert_product_dgrad",
      .args.product = { 600, 40, 24, .experts = 3 },
      .q_parts = 2 },
    { .kernel = "expert_product_wgrad",
      .args = { .product = { 20, 17, 33, .experts = 16 }, .first = true },
      .q_parts = 1 },
    { .kernel = "expert_product_wgrad",
      .args.product = { 600, 40, 24, .experts = 3 },
      .q_parts = 2 },
    { .kernel = "route", .args.experts = { 30, 8, 7, 3 }, .q_parts = 3 },
    { .kernel = "route_bwd", .args.experts = { 30, 8, 7, 3 }, .q_parts = 3 },
    { .kernel = "dispatch", .args.experts = { 30, 700, 7, 2 }, .q_parts = 2 },
    { .kernel = "dispatch_bwd", .args.experts = { 30, 700, 7, 2 }, .q_parts = 3 },
    { .kernel = "dispatch_bwd",
      .args = { .experts = { 30, 6, 7, 2 }, .first = true },
      .q_parts = 1 },
    { .kernel = "combine", .args.experts = { 30, 700, 7, 2 }, .q_parts = 2 },
    { .kernel = "combine_bwd", .args.experts = { 30, 700, 7, 2 }, .q_parts = 2 },
    { .kernel = "add_hidden", .args.elements = { 1026 }, .q_parts = 2 },
    { .kernel = "add_hidden", .args = { .elements = { 700 }, .first = true }, .q_parts = 1 },
    { .kernel = "accumulate", .args.elements = { 1500 }, .q_parts = 3 },
    { .kernel = "cast_hidden", .args.elements = { 1030 }, .q_parts = 2 },
    { .kernel = "last_rows", .args.rows = { 3, 600, .count = 7 }, .q_parts = 1 },
    { .kernel = "last_rows", .args.rows = { 1, 33, .count = 1 }, .q_parts = 1 },
    { .kernel = "embed", .args.rows = { 30, 600, 50, 10, 30 }, .q_parts = 3 },
    { .kernel = "embed_bwd", .args.rows = { 40, 24, 12, 2, 8 }, .q_parts = 2 },
    { .kernel = "embed_bwd",
      .args = { .rows = { 40, 600, 12, 0, 12 }, .first = true },
      .q_parts = 1 },
    { .kernel = "rms_norm", .args.rows = { 6, 34, .epsilon = 1e-5 }, .q_parts = 2 },
    { .kernel = "rms_norm_bwd", .args.rows = { 6, 34, .epsilon = 1e-5 }, .q_parts = 2 },
    { .kernel = "rms_norm_bwd",
      .args = { .rows = { 4, 700, .epsilon = 1e-5, .adds = true }, .first = true },
      .q_parts = 1 },
    { .kernel = "rms_norm_dgrad", .args.rows = { 6, 34, .epsilon = 1e-5 }, .q_parts = 2 },
    { .kernel = "rms_norm_dgrad",
      .args.rows = { 4, 700, .epsilon = 1e-5, .adds = true },
      .q_parts = 1 },
    { .kernel = "layer_norm", .args.rows = { 6, 34, .epsilon = 1e-5 }, .q_parts = 2 },
    /* The row of weights and bias is aligned, the bias in it is not. */
    { .kernel = "layer_norm", .args.rows = { 6, 34, .epsilon = 1e-5 }, .q_parts = 1 },
    { .kernel = "layer_norm_bwd", .args.rows = { 6, 34, .epsilon = 1e-5 }, .q_parts = 2 },
    { .kernel = "layer_norm_dgrad", .args.rows = { 6, 34, .epsilon = 1e-5 }, .q_parts = 2 },
    { .kernel = "rotary_q",
      .args.to_heads = { 12, 100, 3, 10000, { 2, 2 }, 8, 4, 6 },
      .q_parts = 2 },
    { .kernel = "rotary_kv",
      .args.to_heads = { 12, 100, 3, 10000, { 2, 2 }, 8, 4, 6 },
      .q_parts = 2,
      .k_parts = 4 },
    { .kernel = "rotary_q_bwd", .args.to_heads = { 12, 0, 1, 0, { 1, 4 }, 8, 2, 5 }, .q_parts = 4 },
    { .kernel = "rotary_kv_bwd",
      .args.to_heads = { 12, 0, 1, 0, { 1, 4 }, 8, 2, 5 },
      .q_parts = 4,
      .k_parts = 1 },
    { .kernel = "silu_q", .args.to_heads = { 12, 100, 3, 10000, { 2, 2 }, 8, 4, 6 }, .q_parts = 2 },
    { .kernel = "silu_kv",
      .args.to_heads = { 12, 0, 1, 0, { 1, 4 }, 8, 2, 5 },
      .q_parts = 4,
      .k_parts = 2 },
    { .kernel = "silu_q_bwd",
      .args.to_heads = { 12, 100, 3, 10000, { 2, 2 }, 8, 4, 6 },
      .q_parts = 2 },
    { .kernel = "silu_kv_bwd",
      .args.to_heads = { 12, 100, 3, 10000, { 2, 2 }, 8, 4, 6 },
      .q_parts = 2,
      .k_parts = 4 },
    { .kernel = "from_heads", .args.to_heads = { 12, 0, 1, 0, { 2, 2 }, 8, 4, 6 }, .q_parts = 2 },
    { .kernel = "from_heads_bwd",
      .args.to_heads = { 12, 0, 1, 0, { 1, 4 }, 8, 2, 5 },
      .q_parts = 4 },
    { .kernel = "glu", .args.rows = { 6, 300 }, .q_parts = 3 },
    { .kernel = "glu_bwd", .args.rows = { 6, 300 }, .q_parts = 2 },
    { .kernel = "gelu", .args.rows = { 6, 300 }, .q_parts = 3 },
    { .kernel = "gelu_bwd", .args.rows = { 6, 300 }, .q_parts = 2 },
    { .kernel = "gate", .args.rows = { 6, 300 }, .q_parts = 3 },
    { .kernel = "gate_bwd", .args.rows = { 6, 300 }, .q_parts = 2 },
    { .kernel = "loss_stats", .args.rows = { 6, 600, 1200, 600, .tokens = 24 }, .q_parts = 2 },
    { .kernel = "loss", .args.rows = { 6, 600, 1200, 600, .tokens = 24 }, .q_parts = 1 },
    { .kernel = "grad_norm", .args.optimizer = { 1300 }, .q_parts = 1 },
    { .kernel = "adam", .args.optimizer = { 1300, 1e-3, 0.9, 0.95, 1e-8, 0.1, 1 }, .q_parts = 1 },
    { .kernel = "adam_fp32",
      .args.optimizer = { 1300, 1e-3, 0.9, 0.95, 1e-8, 0.1, 1 },
      .q_parts = 1 },
    { .kernel = "adam_moments16",
      .args.optimizer = { 1300, 1e-3, 0.9, 0.95, 1e-8, 0.1, 1 },
      .q_parts = 1 },
    { .kernel = "adam_moments8",
      .args.optimizer = { 1300, 1e-3, 0.9, 0.95, 1e-8, 0.1, 1 },
      .q_parts = 1 },
    { .kernel = "adam_direct",
      .args.optimizer = { 1300, 1e-3, 0.9, 0.95, 1e-8, 0.1, 1 },
      .q_parts = 1 },
    { .kernel = "adam_direct_moments16",
      .args.optimizer = { 1300, 1e-3, 0.9, 0.95, 1e-8, 0.1, 1 },
      .q_parts = 1 },
    { .kernel = "adam_direct_moments8",
      .args.optimizer = { 1300, 1e-3, 0.9, 0.95, 1e-8, 0.1, 1 },
      .q_parts = 1 },
    { .kernel = "muon_momentum", .args.optimizer = { 1300, 0, 0.9, 0.9, .clip = 1 }, .q_parts = 1 },
    { .kernel = "muon_momentum16", .args.optimizer = { 1300, 0, 0.9, 1 }, .q_parts = 1 },
    { .kernel = "muon_update", .args.optimizer = { 1300, 1e-2 }, .q_parts = 1 },
    { .kernel = "muon_update_direct", .args.optimizer = { 1300, 1e-2 }, .q_parts = 1 },
    { .kernel = "muon_join", .args.muon = { 12, 8, 3, 2, 1, 1 }, .q_parts = 1 },
    { .kernel = "muon_split", .args.muon = { 12, 8, 3, 2, 1, 1, .factor = 3 }, .q_parts = 1 },
    /* Several blocks of a product, and several matrices; tall ones. */
    { .kernel = "muon_gram", .args.muon = { 270, 300 }, .q_parts = 1 },
    { .kernel = "muon_gram", .args.muon = { 90, 20, 2, 2 }, .q_parts = 1 },
    { .kernel = "muon_square", .args.muon = { 270, 300, .b = -4, .c = 2 }, .q_parts = 1 },
    { .kernel = "muon_square", .args.muon = { 90, 20, 2, 2, .b = -4, .c = 2 }, .q_parts = 1 },
    { .kernel = "muon_step", .args.muon = { 270, 300, .a = 3 }, .q_parts = 1 },
    { .kernel = "muon_step", .args.muon = { 90, 20, 2, 2, .a = 3 }, .q_parts = 1 },
    { .kernel = "residual", .args.elements = { 1 }, .q_parts = 1 },
    { .kernel = "residual", .args.elements = { 512 }, .q_parts = 1 },
    { .kernel = "residual", .args.elements = { 1026 }, .q_parts = 2 },
    { .kernel = "residual", .args.elements = { 1500 }, .q_parts = 3 },
    /* Tables padded beyond the vocabulary, and tokens in the padding. */
    { .kernel = "embed", .args.rows = { 60, 24, 40, 8, 40 }, .q_parts = 3 },
    { .kernel = "embed_bwd", .args.rows = { 60, 24, 40, 8, 40 }, .q_parts = 2 },
};

/* ---- masks by position ---- */

/* Positions of a call's rows, in parts of a fixed number of rows. */
typedef struct {
    LhRowsPosition q_at, k_at;
    uint64_t stride;
    uint32_t q_parts, k_parts;
    uint64_t q_rows, k_rows;
} Layout;

/* No part is a whole number of tiles, so tiles cross the borders of parts. */
static const Layout layouts[] = {
    { { 100, 0 }, { 30, 0 }, 1, 1, 1, 130, 170 },      /* two overlapping chunks */
    { { 70, 0 }, { 70, 0 }, 1, 1, 1, 70, 70 },         /* a chunk on itself */
    { { 2, 0 }, { 3, 0 }, 4, 1, 1, 90, 75 },           /* striped */
    { { 30, 150 }, { 60, 90 }, 1, 2, 2, 30, 30 },      /* zigzag: ranks 1 and 2 of 4 */
    { { 180, -150 }, { 0, 210 }, 1, 2, 2, 30, 30 },    /* the later half-chunk first */
    { { 1, 4 }, { 0, 1 }, 8, 2, 3, 35, 40 },           /* rows and columns of a grid of 8 ranks */
    { { 320, -160 }, { 400, -100 }, 1, 3, 5, 45, 33 }, /* gathered in reverse */
    { { 0, 1 }, { 1, 4 }, 64, 36, 12, 1, 9 },          /* tiles over several interleaved parts */
};

static const uint64_t document_ends[] = { 1, 40, 103, 104, 260, 600 };

static const LhMaskRule rules[] = {
    { .causal = true },
    { .causal = false },
    { .causal = true, .window = 1 },
    { .causal = true, .window = 37 },
    { .causal = true, .window = 1000 },
    { .causal = true, .document_ends = document_ends, .documents_count = 6 },
    { .causal = false, .document_ends = document_ends, .documents_count = 6 },
    { .causal = true, .window = 20, .document_ends = document_ends, .documents_count = 6 },
};

static inline Case
positions_case(const char *kernel, const Layout *l, const LhMaskRule *rule)
{
    return (Case){ .kernel = kernel,
                   .args = { .nq = l->q_parts * l->q_rows,
                             .nk = l->k_parts * l->k_rows,
                             .batch = 1,
                             .heads = 2,
                             .groups = 1,
                             .head_dim = 20,
                             .mask = LH_MASK_POSITIONS,
                             .q_at = l->q_at,
                             .k_at = l->k_at,
                             .stride = l->stride,
                             .rule = rule,
                             .first = true },
                   .q_parts = l->q_parts,
                   .k_parts = l->k_parts };
}
