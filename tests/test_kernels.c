/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of kernels: names, operands, and flops and traffic worked out by hand for one call
 * each.
 */
#include "kernels/kernel.h"
#include "run_tests.h"

#include <glib.h>
#include <string.h>

START_TEST(kernels_are_found_by_name)
{
    for (unsigned i = 0; i < LH_KERNELS_COUNT; i++) {
        ck_assert_ptr_nonnull(lh_kernels[i]);
        ck_assert_int_eq(lh_kernel_find(lh_kernels[i]->name), (LhKernelId)i);
        ck_assert_ptr_nonnull(lh_kernels[i]->summary);
        ck_assert(lh_kernels[i]->flops != NULL);
        ck_assert(lh_kernels[i]->memory_bytes != NULL);
    }
    ck_assert_int_eq(lh_kernel_find("no such kernel"), LH_KERNELS_COUNT);
}
END_TEST

/* Every operand list ends, every operand has a name, and at least one is written. */
START_TEST(kernels_name_their_operands)
{
    for (unsigned i = 0; i < LH_KERNELS_COUNT; i++) {
        const LhOperand *operands = lh_kernels[i]->operands;
        unsigned count = 0, written = 0;

        for (; operands[count].access != LH_OPERAND_END; count++) {
            ck_assert_uint_lt(count, LH_KERNEL_OPERANDS_MAX);
            ck_assert_ptr_nonnull(operands[count].name);
            ck_assert_int_le(operands[count].kind, LH_TENSOR_ANY);
            /* An operand of the other type of a pair needs an earlier one to refer to. */
            ck_assert(operands[count].element != LH_ELEMENT_OTHER || count > 0);
            written += operands[count].access != LH_OPERAND_READ ? 1 : 0;
        }
        ck_assert_uint_ge(count, 1);
        ck_assert(written >= 1 || lh_kernels[i]->effect == LH_EFFECT_OUTSIDE);
    }
}
END_TEST

/* Row statistics are always fp32; inputs from outside never are. */
START_TEST(kernels_know_their_element_types)
{
    for (unsigned i = 0; i < LH_KERNELS_COUNT; i++) {
        const LhOperand *operands = lh_kernels[i]->operands;

        for (unsigned k = 0; operands[k].access != LH_OPERAND_END; k++) {
            const bool statistic =
                operands[k].kind == LH_TENSOR_LSE || operands[k].kind == LH_TENSOR_DELTA;
            const bool given = operands[k].kind == LH_TENSOR_Q ||
                               operands[k].kind == LH_TENSOR_KV ||
                               operands[k].kind == LH_TENSOR_K || operands[k].kind == LH_TENSOR_V;

            ck_assert(!statistic || operands[k].element == LH_ELEMENT_FP32);
            ck_assert(!given || operands[k].element == LH_ELEMENT_ACTIVATION);
        }
    }
    ck_assert_str_eq(lh_tensor_names[LH_TENSOR_WEIGHT], "weight");
    ck_assert_ptr_null(lh_tensor_names[LH_TENSOR_KINDS]);
}
END_TEST

/* B = 2, nq = 3, nk = 5, h = 4, g = 2, d = 8: 24 rows, 192 elements of q, 320 of k and v. */
static const LhKernelArgs call = { .pairs = 7,
                                   .nq = 3,
                                   .nk = 5,
                                   .batch = 2,
                                   .heads = 4,
                                   .groups = 2,
                                   .head_dim = 8,
                                   .mask = LH_MASK_CAUSAL };

static void
check(const char *name, LhKernelArgs args, uint64_t flops, uint64_t bytes)
{
    const LhKernelId id = lh_kernel_find(name);

    ck_assert_int_ne(id, LH_KERNELS_COUNT);
    ck_assert_uint_eq(lh_kernels[id]->flops(&args), flops);
    ck_assert_uint_eq(lh_kernels[id]->memory_bytes(&args, 2), bytes);
}

START_TEST(kernels_count_exactly)
{
    /* Three tiles of 128, 128 and 44 tokens; and three states. */
    enum { PAIRS = 2 * (128 * 129 / 2) + 44 * 45 / 2 };
    LhKernelArgs first = call, rows = call, keys = call, first_rows, tiled = call, gathered = call;
    LhKernelArgs all = call, first_all;

    first.first = true;
    rows.nk = 0;
    keys.nq = 0;
    tiled.nq = tiled.nk = 300;
    tiled.pairs = 300 * 301 / 2;
    gathered.states = 3;
    first_rows = rows;
    first_rows.first = true;
    check("attention_fwd", first, 4 * 2 * 4 * 8 * 7, 2 * 192 + 2 * 320 + (2 * 192 + 8 * 24));
    check("attention_fwd", call, 4 * 2 * 4 * 8 * 7, 2 * 192 + 2 * 320 + 2 * (2 * 192 + 8 * 24));
    check("attention_block", first, 4 * 2 * 4 * 8 * 7, 2 * 192 + 2 * 320 + (2 * 192 + 4 * 24));
    check("attention", call, 4 * 2 * 4 * 8 * 7, 2 * 192 + 2 * 320 + (2 * 192 + 4 * 24));
    check("attention_bwd", first, 10 * 2 * 4 * 8 * 7,
          2 * 2 * 192 + 2 * 320 + 8 * 24 + (2 * 192 + 2 * 320));
    check("attention_bwd_o", first, 10 * 2 * 4 * 8 * 7,
          2 * 2 * 192 + 4 * 24 + 2 * 2 * 192 + 2 * 320 + 8 * 24 + (2 * 192 + 2 * 320));
    check("merge", rows, 3 * 192 + 8 * 24, (2 * 192 + 8 * 24) + 2 * (4 * 192 + 8 * 24));
    /* As separate kernels: cast, difference, product, difference. */
    check("merge_lse", rows, 3 * 192 + 9 * 24, (6 + 12 + 8 + 12) * 192 + 4 * 4 * 24);
    check("merge_lse", first_rows, 0, 6 * 192 + 4 * 4 * 24);
    check("merge_stat", rows, 5 * 24, 3 * 4 * 24);
    check("merge_stat", first_rows, 0, 2 * 4 * 24);
    check("weigh_out", rows, 2 * 192 + 2 * 24, (2 + 8) * 192 + 2 * 4 * 24);
    check("weigh_out", first_rows, 192 + 2 * 24, (2 + 4) * 192 + 2 * 4 * 24);
    check("normalise", rows, 192 + 2 * 24, (4 + 2) * 192 + 8 * 24 + 4 * 24);
    check("round_out", rows, 0, 6 * 192 + 8 * 24);
    check("copy_out", rows, 0, 2 * 2 * 192 + 8 * 24);
    check("delta", rows, 2 * 192, 2 * 2 * 192 + 4 * 24);
    check("add", rows, 192, 3 * 2 * 192);
    check("add", keys, 320, 3 * 2 * 320);
    check("add_to_fp32", keys, 320, (2 + 8) * 320);
    check("add_to_fp32", first_rows, 0, (2 + 4) * 192);
    check("add_from_fp32", keys, 320, (4 + 4) * 320);
    check("cast", keys, 0, 6 * 320);
    check("copy", rows, 0, 4 * 192);
    check("zero", rows, 0, 2 * 192);
    check("expand_kv", keys, 0, 2 * (320 + 2 * 320));
    /* Linear attention: the state is 2 * 4 * 8 * 8 = 512 fp32 numbers. */
    check("linear_intra", first, 4 * 2 * 4 * 8 * 7, 2 * (192 + 320 + 192));
    check("linear_intra", call, 4 * 2 * 4 * 8 * 7, 2 * (192 + 320 + 2 * 192));
    check("linear_intra", tiled, 4 * 2 * 4 * 8 * PAIRS + 2 * 512 * (256 + 172 + 1),
          2 * (19200 + 19200 + 2 * 19200));
    check("linear_intra_bwd", tiled, 10 * 2 * 4 * 8 * PAIRS + 2 * 512 * (3 * 256 + 2 * 172 + 2),
          2 * (2 * 19200 + 19200 + 2 * 19200 + 2 * (19200 + 19200)));
    check("linear_prefix", gathered, 2 * 512 * 3, 4 * 512 * 4);
    check("linear_inter", call, 2 * 192 * 8, 4 * 512 + 3 * 2 * 192);
    check("linear_state", call, 2 * 320 * 8 + 2 * 512, 2 * 4 * 512 + 2 * 320);
    check("linear_state", first, 2 * 320 * 8, 4 * 512 + 2 * 320);
    check("linear_carry", call, 2 * 512, 3 * 4 * 512);
    check("linear_intra_bwd", first, 10 * 2 * 4 * 8 * 7, 2 * (2 * 192 + 320 + 192 + 320));
    check("linear_inter_bwd", first, 2 * 192 * 8, 4 * 512 + 2 * 2 * 192);
    check("linear_state_bwd", call, 4 * 320 * 8, 4 * 512 + 3 * 2 * 320);
    check("linear_dstate", call, 2 * 192 * 8 + 2 * 512, 2 * 4 * 512 + 2 * 2 * 192);
    /* Materialised scores: 2 * 4 * 3 * 5 = 120, all 15 pairs computed; k alone has 160 elements. */
    all.pairs = 15;
    first_all = all;
    first_all.first = true;
    check("take_k", keys, 0, 2 * 2 * 160);
    check("take_v", keys, 0, 2 * 2 * 160);
    check("join_dkv", keys, 0, 2 * 2 * 320);
    check("scores", all, 2 * 2 * 4 * 8 * 15, 2 * 192 + 2 * 160 + 4 * 120);
    check("scores_softmax", call, 5 * 120 + 2 * 24, (4 + 2) * 120 + 4 * 24);
    check("scores_o", first_all, 2 * 2 * 4 * 8 * 15, 2 * (120 + 160 + 192));
    check("scores_o", all, 2 * 2 * 4 * 8 * 15, 2 * (120 + 160 + 2 * 192));
    check("scores_dv", all, 2 * 2 * 4 * 8 * 15, 2 * (120 + 192 + 160));
    check("scores_dp", all, 2 * 2 * 4 * 8 * 15, 2 * (192 + 160 + 120));
    check("scores_softmax_bwd", all, 5 * 120, 3 * 2 * 120);
    check("scores_dq", all, 2 * 2 * 4 * 8 * 15, 2 * (120 + 160 + 2 * 192));
    check("scores_dk", all, 2 * 2 * 4 * 8 * 15, 2 * (120 + 192 + 160));
}
END_TEST

/* The layer outside attention: 6 rows of 4, 24 elements; 2 bytes per activation. */
START_TEST(kernels_count_the_layer_exactly)
{
    const LhKernelArgs product = { .product = { 6, 5, 4 } };
    const LhKernelArgs experts = { .product = { 6, 5, 4, .experts = 3 } };
    const LhKernelArgs count = { .elements = { 24 } }, moved = { .elements = { 24, 7 } };
    const LhKernelArgs rows = { .rows = { 6, 4, .vocabulary = 8, .count = 8, .tokens = 6 } };
    const LhKernelArgs stated = { .rows = { 6, 4, .traffic = 10 } };
    const LhKernelArgs padded = { .rows = { 6, 4, .vocabulary = 9, .tokens = 6 } };
    const LhKernelArgs heads = { .to_heads = { 3, 0, 1, 1e4, { 2, 1 }, 4, 2, 8 } };
    const LhKernelArgs muon = { .muon = { 6, 4, 2, 2, 2, 1 } };
    const LhKernelArgs shard = { .optimizer = { 24 } }, shards = { .optimizer = { 513 } };
    LhKernelArgs first = product, first_rows = rows, added, plain = heads, first_count = count;

    first.first = first_rows.first = first_count.first = true;
    added = first_rows;
    added.rows.adds = true;
    plain.to_heads.base = 0;
    check("product", product, 240, 2 * (24 + 20 + 30));
    check("expert_product_dgrad", experts, 240, 2 * (2 * 24 + 3 * 20 + 30) + 4 * 2 * 6);
    check("product_dgrad", first, 240, 2 * (24 + 20 + 30));
    check("out_product_dgrad", product, 240, 2 * (2 * 24 + 20 + 30));
    check("product_wgrad", product, 240, 2 * (24 + 2 * 20 + 30));
    check("product_wgrad", first, 240, 2 * (24 + 20 + 30));
    check("out_product", product, 240, 2 * (24 + 20 + 30));
    check("residual", count, 24, 2 * 72);
    check("residual", moved, 24, 7 * 24);
    check("add_hidden", count, 24, 2 * 72);
    check("add_hidden", first_count, 0, 2 * 48);
    check("accumulate", count, 24, 2 * 72);
    check("cast_hidden", count, 0, 6 * 24);
    check("last_rows", rows, 0, 2 * 48);
    check("embed", rows, 0, 4 * 6 + 2 * 48);
    check("embed_bwd", rows, 24, 4 * 6 + 2 * 72);
    check("embed_bwd", first_rows, 24, 4 * 6 + 2 * (72 + 32));
    check("rms_norm", rows, 4 * 24 + 3 * 6, 2 * (24 + 4 + 24));
    check("rms_norm", stated, 4 * 24 + 3 * 6, 10 * 24);
    check("rms_norm_bwd", rows, 11 * 24 + 4 * 6, 2 * (2 * 24 + 4 + 24 + 2 * 4));
    check("rms_norm_bwd", first_rows, 11 * 24 + 4 * 6, 2 * (2 * 24 + 4 + 24 + 4));
    check("rms_norm_bwd", added, 12 * 24 + 4 * 6, 2 * (2 * 24 + 4 + 2 * 24 + 4));
    check("rms_norm_dgrad", rows, 9 * 24 + 4 * 6, 2 * (2 * 24 + 4 + 24));
    check("rms_norm_dgrad", added, 10 * 24 + 4 * 6, 2 * (2 * 24 + 4 + 2 * 24));
    check("layer_norm", rows, 7 * 24 + 4 * 6, 2 * (24 + 8 + 24));
    check("layer_norm_bwd", first_rows, 17 * 24 + 6 * 6, 2 * (2 * 24 + 8 + 24 + 8));
    check("layer_norm_dgrad", rows, 14 * 24 + 6 * 6, 2 * (2 * 24 + 8 + 24));
    /* 6 tokens of 4 heads of 8; 2 heads of k, which are rotated, and 2 of v. silu and its
     * gradient. */
    check("rotary_q", heads, 3 * 6 * 32, 2 * 2 * 6 * 32);
    check("rotary_q", plain, 0, 2 * 2 * 6 * 32);
    check("rotary_kv", heads, 3 * 6 * 16, 2 * 2 * 6 * 32);
    check("rotary_q_bwd", heads, 3 * 6 * 32, 2 * 2 * 6 * 32);
    check("rotary_kv_bwd", plain, 0, 2 * 2 * 6 * 32);
    check("silu_q", heads, (3 + 4) * 6 * 32, 2 * 2 * 6 * 32);
    check("silu_kv", plain, 4 * 6 * 16, 2 * 2 * 6 * 32);
    check("silu_q_bwd", plain, 8 * 6 * 32, 2 * 3 * 6 * 32);
    check("silu_kv_bwd", heads, (3 + 8) * 6 * 16, 2 * 3 * 6 * 32);
    check("from_heads", heads, 0, 2 * 2 * 6 * 32);
    check("from_heads_bwd", heads, 0, 2 * 2 * 6 * 32);
    check("glu", rows, 5 * 24, 2 * 72);
    check("glu_bwd", rows, 11 * 24, 2 * 5 * 24);
    check("glu_bwd", stated, 11 * 24, 10 * 24);
    check("gelu", rows, 9 * 24, 2 * 48);
    check("gelu_bwd", rows, 18 * 24, 2 * 72);
    check("gate", rows, 4 * 24, 2 * 72);
    check("gate_bwd", rows, 8 * 24, 2 * 5 * 24);
    check("loss_stats", rows, 3 * 24, 2 * 24 + 4 * 6 + 12 * 6);
    check("loss", rows, 4 * 24 + 12 * 6, 2 * 48 + 4 * 6 + 2 * 12 * 6 + 2 * 4);
    check("loss", padded, 4 * 24 + 16 * 6, 2 * 48 + 4 * 6 + 3 * 12 * 6 + 2 * 4);
    check("grad_norm", shard, 48, 2 * 24 + 2 * 4);
    check("to_host", (LhKernelArgs){ .copy = { 96, 32 } }, 0, 96 + 32);
    check("from_host", (LhKernelArgs){ .copy = { 96, 0 } }, 0, 96);
    /* 2 + 8 + 16 + 2 bytes per parameter, the norm, and the step counter. */
    check("adam", shard, 17 * 24, 28 * 24 + 4 + 8);
    check("adam_fp32", shard, 17 * 24, (2 + 16 + 8) * 24 + 4 + 8);
    check("adam_moments16", shard, 17 * 24, (2 + 8 + 8 + 2) * 24 + 4 + 8);
    check("adam_direct", shard, 17 * 24, (2 + 16 + 4) * 24 + 4 + 8);
    check("adam_direct_moments16", shard, 17 * 24, (2 + 8 + 4) * 24 + 4 + 8);
    /* Two scales, read and written. */
    check("adam_moments8", shard, 25 * 24, (2 + 8 + 4 + 2) * 24 + 4 + 8 + 16);
    check("adam_direct_moments8", shard, 25 * 24, (2 + 4 + 4) * 24 + 4 + 8 + 16);
    /* Two experts of 3 x 2 and 3 x 2, as 4 matrices of 2 x 3, in two slices. */
    check("muon_join", muon, 3 * 24, 2 * (24 + 24));
    check("muon_gram", muon, 2 * 2 * 24, 2 * (24 + 16));
    check("muon_square", muon, (2 * 2 + 3) * 16, 2 * (16 + 16));
    check("muon_step", muon, (2 * 2 + 2) * 24, 2 * (16 + 24 + 24));
    check("muon_split", muon, 12, 2 * (24 + 12));
    check("muon_momentum", shard, 7 * 24, (2 + 8 + 2) * 24 + 4);
    check("muon_momentum16", shard, 7 * 24, (2 + 4 + 2) * 24 + 4);
    check("muon_update", shard, 4 * 24, (2 + 8 + 2) * 24);
    check("muon_update_direct", shard, 4 * 24, (2 + 4) * 24);
    check("adam_direct_moments8", shards, 25 * 513, (2 + 4 + 4) * 513 + 4 + 8 + 3 * 16);
}
END_TEST

/* ---- hashes of arguments, and whether they are equal ---- */

/* Sets member @which of the arguments of a kind to @value; false if there are no more. New members
 * of a kind must be added here too. */
static bool
set_member(LhKernelArgs *a, LhArgsKind kind, unsigned which, uint8_t value)
{
    static const LhMaskRule rules[2] = { { .window = 1 }, { .window = 2 } };
    const struct {
        LhArgsKind kind;
        void *at;
        size_t bytes;
    } members[] = {
#define MEMBER(of, member) { (of), &a->member, sizeof(a->member) }
        MEMBER(LH_ARGS_ATTENTION, pairs),
        MEMBER(LH_ARGS_ATTENTION, nq),
        MEMBER(LH_ARGS_ATTENTION, nk),
        MEMBER(LH_ARGS_ATTENTION, batch),
        MEMBER(LH_ARGS_ATTENTION, heads),
        MEMBER(LH_ARGS_ATTENTION, groups),
        MEMBER(LH_ARGS_ATTENTION, head_dim),
        MEMBER(LH_ARGS_ATTENTION, q_at.start),
        MEMBER(LH_ARGS_ATTENTION, q_at.part_step),
        MEMBER(LH_ARGS_ATTENTION, k_at.start),
        MEMBER(LH_ARGS_ATTENTION, k_at.part_step),
        MEMBER(LH_ARGS_ATTENTION, stride),
        MEMBER(LH_ARGS_ATTENTION, scale),
        MEMBER(LH_ARGS_ATTENTION, decay),
        MEMBER(LH_ARGS_ATTENTION, states),
        MEMBER(LH_ARGS_ATTENTION, traffic),
        MEMBER(LH_ARGS_ATTENTION, mask),
        MEMBER(LH_ARGS_ATTENTION, shift),
        MEMBER(LH_ARGS_PRODUCT, product.m),
        MEMBER(LH_ARGS_PRODUCT, product.n),
        MEMBER(LH_ARGS_PRODUCT, product.k),
        MEMBER(LH_ARGS_PRODUCT, product.experts),
        MEMBER(LH_ARGS_PRODUCT, product.layout.batch),
        MEMBER(LH_ARGS_PRODUCT, product.layout.members),
        MEMBER(LH_ARGS_PRODUCT, product.fp32),
        MEMBER(LH_ARGS_ELEMENTS, elements.count),
        MEMBER(LH_ARGS_ELEMENTS, elements.traffic),
        MEMBER(LH_ARGS_ROWS, rows.rows),
        MEMBER(LH_ARGS_ROWS, rows.width),
        MEMBER(LH_ARGS_ROWS, rows.vocabulary),
        MEMBER(LH_ARGS_ROWS, rows.first),
        MEMBER(LH_ARGS_ROWS, rows.count),
        MEMBER(LH_ARGS_ROWS, rows.tokens),
        MEMBER(LH_ARGS_ROWS, rows.epsilon),
        MEMBER(LH_ARGS_ROWS, rows.traffic),
        MEMBER(LH_ARGS_HEADS, to_heads.rows),
        MEMBER(LH_ARGS_HEADS, to_heads.start),
        MEMBER(LH_ARGS_HEADS, to_heads.stride),
        MEMBER(LH_ARGS_HEADS, to_heads.base),
        MEMBER(LH_ARGS_HEADS, to_heads.layout.batch),
        MEMBER(LH_ARGS_HEADS, to_heads.layout.members),
        MEMBER(LH_ARGS_HEADS, to_heads.heads),
        MEMBER(LH_ARGS_HEADS, to_heads.groups),
        MEMBER(LH_ARGS_HEADS, to_heads.head_dim),
        MEMBER(LH_ARGS_HEADS, to_heads.traffic),
        MEMBER(LH_ARGS_EXPERTS, experts.rows),
        MEMBER(LH_ARGS_EXPERTS, experts.width),
        MEMBER(LH_ARGS_EXPERTS, experts.experts),
        MEMBER(LH_ARGS_EXPERTS, experts.choices),
        MEMBER(LH_ARGS_OPTIMIZER, optimizer.count),
        MEMBER(LH_ARGS_OPTIMIZER, optimizer.learning_rate),
        MEMBER(LH_ARGS_OPTIMIZER, optimizer.beta1),
        MEMBER(LH_ARGS_OPTIMIZER, optimizer.beta2),
        MEMBER(LH_ARGS_OPTIMIZER, optimizer.epsilon),
        MEMBER(LH_ARGS_OPTIMIZER, optimizer.weight_decay),
        MEMBER(LH_ARGS_OPTIMIZER, optimizer.clip),
        MEMBER(LH_ARGS_OPTIMIZER, optimizer.traffic),
        MEMBER(LH_ARGS_MUON, muon.rows),
        MEMBER(LH_ARGS_MUON, muon.width),
        MEMBER(LH_ARGS_MUON, muon.experts),
        MEMBER(LH_ARGS_MUON, muon.halves),
        MEMBER(LH_ARGS_MUON, muon.slices),
        MEMBER(LH_ARGS_MUON, muon.replicas),
        MEMBER(LH_ARGS_MUON, muon.slice),
        MEMBER(LH_ARGS_MUON, muon.a),
        MEMBER(LH_ARGS_MUON, muon.b),
        MEMBER(LH_ARGS_MUON, muon.c),
        MEMBER(LH_ARGS_MUON, muon.factor),
        MEMBER(LH_ARGS_COPY, copy.bytes),
        MEMBER(LH_ARGS_COPY, copy.beside),
#undef MEMBER
    };

    if (which == 0)
        a->first = value != 0;
    if (kind == LH_ARGS_ATTENTION && which == 1)
        a->rule = &rules[value != 0];
    if (kind == LH_ARGS_ATTENTION && which == 2)
        a->reversed = value != 0;
    if (kind == LH_ARGS_ROWS && which == 1)
        a->rows.adds = value != 0;
    if (kind == LH_ARGS_MUON && which == 1)
        a->muon.by_rows = value != 0;
    if (which < 3)
        return true;
    for (size_t i = 0; i < G_N_ELEMENTS(members); i++) {
        if (members[i].kind != kind || which-- > 3)
            continue;
        memset(members[i].at, value, members[i].bytes);
        return true;
    }
    return false;
}

static LhKernelArgs
args_with(LhArgsKind kind, uint8_t rest, int other)
{
    LhKernelArgs args;

    memset(&args, rest, sizeof(args));
    for (unsigned i = 0; set_member(&args, kind, i, i == (unsigned)other ? 1 : 0); i++)
        ;
    return args;
}

static uint64_t
hash_of(LhArgsKind kind, uint8_t rest, int other)
{
    const LhKernelArgs args = args_with(kind, rest, other);

    return lh_kernel_args_mix(7, kind, &args);
}

static bool
equals_plain(LhArgsKind kind, uint8_t rest, int other)
{
    const LhKernelArgs plain = args_with(kind, 0, -1), args = args_with(kind, rest, other);

    return lh_kernel_args_equal(kind, &plain, &args);
}

/* Hashes and comparisons cover all members and no padding. Otherwise a step's forms could be
 * visited twice, or its repeats be missed, at random. */
START_TEST(kernels_arguments_go_by_member)
{
    for (int k = 0; k < LH_ARGS_KINDS; k++) {
        const LhArgsKind kind = (LhArgsKind)k;
        const uint64_t plain = hash_of(kind, 0, -1);
        LhKernelArgs args = { 0 };
        unsigned members = 0;

        ck_assert_uint_eq(hash_of(kind, 0xa5, -1), plain);
        ck_assert(equals_plain(kind, 0xa5, -1));
        while (set_member(&args, kind, members, 0))
            members++;
        for (unsigned i = 0; i < members; i++) {
            if ((i == 1 && kind != LH_ARGS_ATTENTION && kind != LH_ARGS_ROWS &&
                 kind != LH_ARGS_MUON) ||
                (i == 2 && kind != LH_ARGS_ATTENTION))
                continue; /* this kind has no such member */
            ck_assert_msg(hash_of(kind, 0, (int)i) != plain, "kind %d, member %u", k, i);
            ck_assert_msg(!equals_plain(kind, 0, (int)i), "kind %d, member %u", k, i);
        }
    }
}
END_TEST

LH_TEST_MAIN("kernels", kernels_arguments_go_by_member, kernels_are_found_by_name,
             kernels_name_their_operands, kernels_know_their_element_types, kernels_count_exactly,
             kernels_count_the_layer_exactly)
