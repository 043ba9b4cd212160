/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model as tables. A row names a kernel with its inputs and outputs; rows whose features a
 * layer lacks are skipped. Backward rows follow the chain rule, with the gradient of an input
 * before that of the weight, as autograd and Megatron-LM have it. Rows for the gradient of a frozen
 * weight are skipped, too. An adapter adds x A B to the product of the matrix that it adapts.
 */
#include "step/lora.h"
#include "step/step_private.h"

#define K(id) .does = LH_STEP_KERNEL, .kernel = LH_KERNEL_ID_##id
#define IN(role)                                                                                   \
    {                                                                                              \
        LH_STEP_IN, LH_STEP_##role                                                                 \
    }
#define IN_LAST(role)                                                                              \
    {                                                                                              \
        LH_STEP_IN_LAST, LH_STEP_##role                                                            \
    }
#define OUT(role)                                                                                  \
    {                                                                                              \
        LH_STEP_OUT, LH_STEP_##role                                                                \
    }
#define OUT_NEXT(role)                                                                             \
    {                                                                                              \
        LH_STEP_OUT_NEXT, LH_STEP_##role                                                           \
    }
#define UPDATE(role)                                                                               \
    {                                                                                              \
        LH_STEP_UPDATE, LH_STEP_##role                                                             \
    }
#define WEIGHT(weight)                                                                             \
    {                                                                                              \
        LH_STEP_WEIGHT, LH_STEP_W_##weight                                                         \
    }
#define GRADIENT(weight)                                                                           \
    {                                                                                              \
        LH_STEP_GRADIENT, LH_STEP_W_##weight                                                       \
    }
#define OTHER(kind)                                                                                \
    {                                                                                              \
        LH_STEP_##kind, 0                                                                          \
    }
#define WHEN(feature) .when = LH_STEP_HAS_##feature
#define WHEN_BOTH(one, other) .when = LH_STEP_HAS_##one | LH_STEP_HAS_##other
#define MATRIX(weight) .matrix = LH_STEP_W_##weight
#define OPERANDS(...) .operands = { __VA_ARGS__ }
#define GATHER(from, to) .does = LH_STEP_GATHER, .operands = { IN(from), OUT(to) }
#define SCATTER(from, to) .does = LH_STEP_SCATTER, .operands = { IN(from), OUT(to) }
#define NEED(role) .does = LH_STEP_NEED, .operands = { IN(role) }
#define FORGET(role) .does = LH_STEP_FORGET, .operands = { IN(role) }
#define TILED(loop) .tiling = LH_STEP_TILES_OF_##loop
#define END                                                                                        \
    {                                                                                              \
        .does = LH_STEP_END                                                                        \
    }

const LhStepNode lh_step_embed[] = {
    { K(embed), MATRIX(EMBED), OPERANDS(OTHER(TOKENS), WEIGHT(EMBED), OUT(E_SUM)) },
    { SCATTER(E_SUM, X) },
    END,
};

const LhStepNode lh_step_forward[] = {
    { K(rms_norm), WHEN(RMS), OPERANDS(IN(X), WEIGHT(NORM1), OUT(N1)) },
    { K(layer_norm), WHEN(LAYER_NORM), OPERANDS(IN(X), WEIGHT(NORM1), OUT(N1)) },
    { GATHER(N1, N1_FULL) },
    { K(product), MATRIX(Q), OPERANDS(IN(N1_FULL), WEIGHT(Q), OUT(Q_ROWS)) },
    { K(product), MATRIX(KV), OPERANDS(IN(N1_FULL), WEIGHT(KV), OUT(KV_ROWS)) },
    { K(product), WHEN(LORA_QKV), MATRIX(QKV_A),
      OPERANDS(IN(N1_FULL), WEIGHT(QKV_A), OUT(QKV_LOW)) },
    { K(product), WHEN(LORA_QKV), MATRIX(Q_B), OPERANDS(IN(QKV_LOW), WEIGHT(Q_B), OUT(Q_DELTA)) },
    { K(add_hidden), WHEN(LORA_QKV), OPERANDS(IN(Q_DELTA), UPDATE(Q_ROWS)) },
    { K(product), WHEN(LORA_QKV), MATRIX(KV_B),
      OPERANDS(IN(QKV_LOW), WEIGHT(KV_B), OUT(KV_DELTA)) },
    { K(add_hidden), WHEN(LORA_QKV), OPERANDS(IN(KV_DELTA), UPDATE(KV_ROWS)) },
    { K(rotary_q), WHEN(ROTARY), OPERANDS(IN(Q_ROWS), OUT(Q)) },
    { K(rotary_kv), WHEN(ROTARY), OPERANDS(IN(KV_ROWS), OUT(KV)) },
    { K(silu_q), WHEN(SILU), OPERANDS(IN(Q_ROWS), OUT(Q)) },
    { K(silu_kv), WHEN(SILU), OPERANDS(IN(KV_ROWS), OUT(KV)) },
    { .does = LH_STEP_ATTENTION },
    { K(out_product), WHEN(NO_GATE), MATRIX(OUT), OPERANDS(IN(O), WEIGHT(OUT), OUT(A_SUM)) },
    { K(from_heads), WHEN(GATE), OPERANDS(IN(O), OUT(O_ROWS)) },
    { K(rms_norm), WHEN(GATE), OPERANDS(IN(O_ROWS), WEIGHT(O_NORM), OUT(O_NORMED)) },
    { K(product), WHEN(GATE), MATRIX(GATE), OPERANDS(IN(N1_FULL), WEIGHT(GATE), OUT(GATE)) },
    { K(gate), WHEN(GATE), OPERANDS(IN(O_NORMED), IN(GATE), OUT(GATED)) },
    { K(product), WHEN(GATE), MATRIX(OUT), OPERANDS(IN(GATED), WEIGHT(OUT), OUT(A_SUM)) },
    { K(out_product), WHEN_BOTH(NO_GATE, LORA_PROJ), MATRIX(OUT_A),
      OPERANDS(IN(O), WEIGHT(OUT_A), OUT(OUT_LOW)) },
    { K(product), WHEN_BOTH(GATE, LORA_PROJ), MATRIX(OUT_A),
      OPERANDS(IN(GATED), WEIGHT(OUT_A), OUT(OUT_LOW)) },
    { K(product), WHEN(LORA_PROJ), MATRIX(OUT_B),
      OPERANDS(IN(OUT_LOW), WEIGHT(OUT_B), OUT(OUT_DELTA)) },
    { K(add_hidden), WHEN(LORA_PROJ), OPERANDS(IN(OUT_DELTA), UPDATE(A_SUM)) },
    { SCATTER(A_SUM, A) },
    { K(residual), OPERANDS(IN(X), IN(A), OUT(X1)) },
    { K(rms_norm), WHEN(RMS), OPERANDS(IN(X1), WEIGHT(NORM2), OUT(N2)) },
    { K(layer_norm), WHEN(LAYER_NORM), OPERANDS(IN(X1), WEIGHT(NORM2), OUT(N2)) },
    { GATHER(N2, N2_FULL) },
    { K(product), WHEN(EXPERTS), MATRIX(ROUTER),
      OPERANDS(IN(N2_FULL), WEIGHT(ROUTER), OUT(ROUTER)) },
    { K(route), WHEN(EXPERTS), OPERANDS(IN(ROUTER), OUT(ROUTE)) },
    { K(dispatch), WHEN(EXPERTS), OPERANDS(IN(N2_FULL), IN(ROUTE), OUT(EXPERT_N2)) },
    { K(expert_product), WHEN(EXPERTS), MATRIX(EXPERT_UP),
      OPERANDS(IN(EXPERT_N2), WEIGHT(EXPERT_UP), OUT(EXPERT_UP), IN(ROUTE)) },
    { K(glu), WHEN_BOTH(EXPERTS, GLU), OPERANDS(IN(EXPERT_UP), OUT(EXPERT_P)) },
    { K(gelu), WHEN_BOTH(EXPERTS, GELU), OPERANDS(IN(EXPERT_UP), OUT(EXPERT_P)) },
    { K(expert_product), WHEN(EXPERTS), MATRIX(EXPERT_DOWN),
      OPERANDS(IN(EXPERT_P), WEIGHT(EXPERT_DOWN), OUT(EXPERT_M), IN(ROUTE)) },
    { K(combine), WHEN(NO_SHARED), OPERANDS(IN(EXPERT_M), IN(ROUTE), OUT(M_SUM)) },
    { K(combine), WHEN(SHARED), OPERANDS(IN(EXPERT_M), IN(ROUTE), OUT(ROUTED)) },
    { K(product), TILED(MLP), WHEN(MLP), MATRIX(UP), OPERANDS(IN(N2_FULL), WEIGHT(UP), OUT(UP)) },
    { K(product), TILED(MLP), WHEN(LORA_FC1), MATRIX(UP_A),
      OPERANDS(IN(N2_FULL), WEIGHT(UP_A), OUT(UP_LOW)) },
    { K(product), TILED(MLP), WHEN(LORA_FC1), MATRIX(UP_B),
      OPERANDS(IN(UP_LOW), WEIGHT(UP_B), OUT(UP_DELTA)) },
    { K(add_hidden), TILED(MLP), WHEN(LORA_FC1), OPERANDS(IN(UP_DELTA), UPDATE(UP)) },
    { K(glu), TILED(MLP), WHEN_BOTH(MLP, GLU), OPERANDS(IN(UP), OUT(P)) },
    { K(gelu), TILED(MLP), WHEN_BOTH(MLP, GELU), OPERANDS(IN(UP), OUT(P)) },
    { K(product), TILED(MLP), WHEN(DENSE), MATRIX(DOWN),
      OPERANDS(IN(P), WEIGHT(DOWN), OUT(M_SUM)) },
    { K(product), TILED(MLP), WHEN(SHARED), MATRIX(DOWN),
      OPERANDS(IN(P), WEIGHT(DOWN), OUT(SHARED)) },
    { K(product), TILED(MLP), WHEN(LORA_FC2), MATRIX(DOWN_A),
      OPERANDS(IN(P), WEIGHT(DOWN_A), OUT(DOWN_LOW)) },
    { K(product), TILED(MLP), WHEN(LORA_FC2), MATRIX(DOWN_B),
      OPERANDS(IN(DOWN_LOW), WEIGHT(DOWN_B), OUT(DOWN_DELTA)) },
    { K(add_hidden), TILED(MLP), WHEN(LORA_FC2), OPERANDS(IN(DOWN_DELTA), UPDATE(M_SUM)) },
    { K(residual), WHEN(SHARED), OPERANDS(IN(ROUTED), IN(SHARED), OUT(M_SUM)) },
    { SCATTER(M_SUM, M) },
    { K(residual), OPERANDS(IN(X1), IN(M), OUT_NEXT(X)) },
    END,
};

/* The head's matrix is stored like the embedding's, one row per token: logits are a product with
 * its transpose, which is the kernel for the gradient of a product's input. */
const LhStepNode lh_step_head[] = {
    { K(rms_norm), WHEN(RMS), OPERANDS(IN(X), WEIGHT(NORM_F), OUT(XF)) },
    { K(layer_norm), WHEN(LAYER_NORM), OPERANDS(IN(X), WEIGHT(NORM_F), OUT(XF)) },
    { GATHER(XF, XF_FULL) },
    { K(product_dgrad), TILED(LOSS), MATRIX(HEAD),
      OPERANDS(IN(XF_FULL), WEIGHT(HEAD), UPDATE(LOGITS)) },
    { K(cast_hidden), TILED(LOSS), WHEN(FP32_LOGITS), OPERANDS(IN(LOGITS), OUT(LOGITS_FP32)) },
    { K(loss_stats), TILED(LOSS), WHEN(FP32_LOGITS),
      OPERANDS(IN(LOGITS_FP32), OTHER(TARGETS), OUT(LOSS_STATS)) },
    { K(loss_stats), TILED(LOSS), WHEN(16BIT_LOGITS),
      OPERANDS(IN(LOGITS), OTHER(TARGETS), OUT(LOSS_STATS)) },
    { TILED(LOSS), .does = LH_STEP_STATS, .operands = { IN(LOSS_STATS), OUT(LOSS_STATS_ALL) } },
    { TILED(LOSS), FORGET(LOGITS) },
    { TILED(LOSS), FORGET(LOGITS_FP32) },
    { K(loss), TILED(LOSS), WHEN(FP32_LOGITS),
      OPERANDS(IN(LOGITS_FP32), OTHER(TARGETS), IN(LOSS_STATS_ALL), OUT(DLOGITS_FP32),
               OTHER(LOSS)) },
    { K(cast_hidden), TILED(LOSS), WHEN(FP32_LOGITS), OPERANDS(IN(DLOGITS_FP32), OUT(DLOGITS)) },
    { K(loss), TILED(LOSS), WHEN_BOTH(16BIT_LOGITS, SEPARATE_LOSS),
      OPERANDS(IN(LOGITS), OTHER(TARGETS), IN(LOSS_STATS_ALL), OUT(DLOGITS), OTHER(LOSS)) },
    { K(loss), TILED(LOSS), WHEN_BOTH(16BIT_LOGITS, FUSED_LOSS), .in_place = true,
      OPERANDS(IN(LOGITS), OTHER(TARGETS), IN(LOSS_STATS_ALL), OUT(DLOGITS), OTHER(LOSS)) },
    { NEED(XF_FULL) },
    { K(product), TILED(LOSS), MATRIX(HEAD), OPERANDS(IN(DLOGITS), WEIGHT(HEAD), OUT(DXF_SUM)) },
    { SCATTER(DXF_SUM, DXF) },
    { K(product_wgrad), TILED(LOSS), MATRIX(HEAD),
      OPERANDS(IN(DLOGITS), IN(XF_FULL), GRADIENT(HEAD)) },
    { K(rms_norm_bwd), WHEN(RMS),
      OPERANDS(IN(X), WEIGHT(NORM_F), IN(DXF), UPDATE(DX), GRADIENT(NORM_F)) },
    { K(layer_norm_bwd), WHEN(LAYER_NORM),
      OPERANDS(IN(X), WEIGHT(NORM_F), IN(DXF), UPDATE(DX), GRADIENT(NORM_F)) },
    { K(rms_norm_dgrad), WHEN_BOTH(FROZEN, RMS),
      OPERANDS(IN(X), WEIGHT(NORM_F), IN(DXF), UPDATE(DX)) },
    { K(layer_norm_dgrad), WHEN_BOTH(FROZEN, LAYER_NORM),
      OPERANDS(IN(X), WEIGHT(NORM_F), IN(DXF), UPDATE(DX)) },
    END,
};

/* The head of a forward pass alone: logits of the last row of each sequence. Every context-parallel
 * rank computes those of the last row that it holds. Under sequence parallelism the last
 * tensor-parallel rank has that row, and each has its share of the vocabulary. */
const LhStepNode lh_step_last_head[] = {
    { K(last_rows), OPERANDS(IN_LAST(X), OUT(X_LAST)) },
    { K(rms_norm), WHEN(RMS), OPERANDS(IN(X_LAST), WEIGHT(NORM_F), OUT(XF_LAST)) },
    { K(layer_norm), WHEN(LAYER_NORM), OPERANDS(IN(X_LAST), WEIGHT(NORM_F), OUT(XF_LAST)) },
    { .does = LH_STEP_STATS, .operands = { IN(XF_LAST), OUT(XF_LAST_ALL) } },
    { K(product_dgrad), MATRIX(HEAD),
      OPERANDS(IN_LAST(XF_LAST_ALL), WEIGHT(HEAD), UPDATE(LOGITS_LAST)) },
    END,
};

/* Backward, the part after attention. Autograd computes all of a tile again, so its last product,
 * too. */
const LhStepNode lh_step_post_bwd[] = {
    { GATHER(DX, DX_FULL) },
    { K(product), TILED(MLP), WHEN(TILED_MLP), .again = true, MATRIX(DOWN),
      OPERANDS(IN(P), WEIGHT(DOWN), OUT(M_TILE)) },
    { K(product), TILED(MLP), WHEN_BOTH(TILED_MLP, LORA_FC2), .again = true, MATRIX(DOWN_B),
      OPERANDS(IN(DOWN_LOW), WEIGHT(DOWN_B), OUT(M_TILE_DELTA)) },
    { K(add_hidden), TILED(MLP), WHEN_BOTH(TILED_MLP, LORA_FC2), .again = true,
      OPERANDS(IN(M_TILE_DELTA), UPDATE(M_TILE)) },
    { K(product_dgrad), TILED(MLP), WHEN(MLP), MATRIX(DOWN),
      OPERANDS(IN(DX_FULL), WEIGHT(DOWN), UPDATE(DP)) },
    { K(product_wgrad), TILED(MLP), WHEN(MLP), MATRIX(DOWN),
      OPERANDS(IN(P), IN(DX_FULL), GRADIENT(DOWN)) },
    { K(product_dgrad), TILED(MLP), WHEN(LORA_FC2), MATRIX(DOWN_B),
      OPERANDS(IN(DX_FULL), WEIGHT(DOWN_B), UPDATE(DDOWN_LOW)) },
    { K(product_wgrad), TILED(MLP), WHEN(LORA_FC2), MATRIX(DOWN_B),
      OPERANDS(IN(DOWN_LOW), IN(DX_FULL), GRADIENT(DOWN_B)) },
    { K(product_dgrad), TILED(MLP), WHEN(LORA_FC2), MATRIX(DOWN_A),
      OPERANDS(IN(DDOWN_LOW), WEIGHT(DOWN_A), UPDATE(DP)) },
    { K(product_wgrad), TILED(MLP), WHEN(LORA_FC2), MATRIX(DOWN_A),
      OPERANDS(IN(P), IN(DDOWN_LOW), GRADIENT(DOWN_A)) },
    { K(glu_bwd), TILED(MLP), WHEN_BOTH(MLP, GLU), OPERANDS(IN(UP), IN(DP), OUT(DUP)) },
    { K(gelu_bwd), TILED(MLP), WHEN_BOTH(MLP, GELU), OPERANDS(IN(UP), IN(DP), OUT(DUP)) },
    { K(combine_bwd), WHEN(EXPERTS),
      OPERANDS(IN(EXPERT_M), IN(ROUTE), IN(DX_FULL), OUT(DEXPERT_M), OUT(DROUTE)) },
    { K(expert_product_dgrad), WHEN(EXPERTS), MATRIX(EXPERT_DOWN),
      OPERANDS(IN(DEXPERT_M), WEIGHT(EXPERT_DOWN), UPDATE(DEXPERT_P), IN(ROUTE)) },
    { K(expert_product_wgrad), WHEN(EXPERTS), MATRIX(EXPERT_DOWN),
      OPERANDS(IN(EXPERT_P), IN(DEXPERT_M), GRADIENT(EXPERT_DOWN), IN(ROUTE)) },
    { K(glu_bwd), WHEN_BOTH(EXPERTS, GLU),
      OPERANDS(IN(EXPERT_UP), IN(DEXPERT_P), OUT(DEXPERT_UP)) },
    { K(gelu_bwd), WHEN_BOTH(EXPERTS, GELU),
      OPERANDS(IN(EXPERT_UP), IN(DEXPERT_P), OUT(DEXPERT_UP)) },
    { K(expert_product_dgrad), WHEN(EXPERTS), MATRIX(EXPERT_UP),
      OPERANDS(IN(DEXPERT_UP), WEIGHT(EXPERT_UP), UPDATE(DEXPERT_N2), IN(ROUTE)) },
    { K(expert_product_wgrad), WHEN(EXPERTS), MATRIX(EXPERT_UP),
      OPERANDS(IN(EXPERT_N2), IN(DEXPERT_UP), GRADIENT(EXPERT_UP), IN(ROUTE)) },
    { NEED(N2_FULL) },
    { K(dispatch_bwd), WHEN(EXPERTS), OPERANDS(IN(DEXPERT_N2), IN(ROUTE), UPDATE(DN2_SUM)) },
    { K(route_bwd), WHEN(EXPERTS), OPERANDS(IN(ROUTE), IN(DROUTE), OUT(DROUTER)) },
    { K(product_dgrad), WHEN(EXPERTS), MATRIX(ROUTER),
      OPERANDS(IN(DROUTER), WEIGHT(ROUTER), UPDATE(DN2_SUM)) },
    { K(product_dgrad), TILED(MLP), WHEN(MLP), MATRIX(UP),
      OPERANDS(IN(DUP), WEIGHT(UP), UPDATE(DN2_SUM)) },
    { K(product_dgrad), TILED(MLP), WHEN(LORA_FC1), MATRIX(UP_B),
      OPERANDS(IN(DUP), WEIGHT(UP_B), UPDATE(DUP_LOW)) },
    { K(product_wgrad), TILED(MLP), WHEN(LORA_FC1), MATRIX(UP_B),
      OPERANDS(IN(UP_LOW), IN(DUP), GRADIENT(UP_B)) },
    { K(product_dgrad), TILED(MLP), WHEN(LORA_FC1), MATRIX(UP_A),
      OPERANDS(IN(DUP_LOW), WEIGHT(UP_A), UPDATE(DN2_SUM)) },
    { SCATTER(DN2_SUM, DN2) },
    { K(product_wgrad), WHEN(EXPERTS), MATRIX(ROUTER),
      OPERANDS(IN(N2_FULL), IN(DROUTER), GRADIENT(ROUTER)) },
    { K(product_wgrad), TILED(MLP), WHEN(MLP), MATRIX(UP),
      OPERANDS(IN(N2_FULL), IN(DUP), GRADIENT(UP)) },
    { K(product_wgrad), TILED(MLP), WHEN(LORA_FC1), MATRIX(UP_A),
      OPERANDS(IN(N2_FULL), IN(DUP_LOW), GRADIENT(UP_A)) },
    { K(rms_norm_bwd), WHEN(RMS),
      OPERANDS(IN(X1), WEIGHT(NORM2), IN(DN2), UPDATE(DX), GRADIENT(NORM2)) },
    { K(layer_norm_bwd), WHEN(LAYER_NORM),
      OPERANDS(IN(X1), WEIGHT(NORM2), IN(DN2), UPDATE(DX), GRADIENT(NORM2)) },
    { K(rms_norm_dgrad), WHEN_BOTH(FROZEN, RMS),
      OPERANDS(IN(X1), WEIGHT(NORM2), IN(DN2), UPDATE(DX)) },
    { K(layer_norm_dgrad), WHEN_BOTH(FROZEN, LAYER_NORM),
      OPERANDS(IN(X1), WEIGHT(NORM2), IN(DN2), UPDATE(DX)) },
    { GATHER(DX, DX_FULL) },
    { K(out_product_dgrad), WHEN(NO_GATE), MATRIX(OUT),
      OPERANDS(IN(DX_FULL), WEIGHT(OUT), UPDATE(DO)) },
    { K(out_product_wgrad), WHEN(NO_GATE), MATRIX(OUT),
      OPERANDS(IN(O), IN(DX_FULL), GRADIENT(OUT)) },
    { K(product_dgrad), WHEN(GATE), MATRIX(OUT),
      OPERANDS(IN(DX_FULL), WEIGHT(OUT), UPDATE(DGATED)) },
    { K(product_wgrad), WHEN(GATE), MATRIX(OUT), OPERANDS(IN(GATED), IN(DX_FULL), GRADIENT(OUT)) },
    { K(product_dgrad), WHEN(LORA_PROJ), MATRIX(OUT_B),
      OPERANDS(IN(DX_FULL), WEIGHT(OUT_B), UPDATE(DOUT_LOW)) },
    { K(product_wgrad), WHEN(LORA_PROJ), MATRIX(OUT_B),
      OPERANDS(IN(OUT_LOW), IN(DX_FULL), GRADIENT(OUT_B)) },
    { K(out_product_dgrad), WHEN_BOTH(NO_GATE, LORA_PROJ), MATRIX(OUT_A),
      OPERANDS(IN(DOUT_LOW), WEIGHT(OUT_A), UPDATE(DO)) },
    { K(out_product_wgrad), WHEN_BOTH(NO_GATE, LORA_PROJ), MATRIX(OUT_A),
      OPERANDS(IN(O), IN(DOUT_LOW), GRADIENT(OUT_A)) },
    { K(product_dgrad), WHEN_BOTH(GATE, LORA_PROJ), MATRIX(OUT_A),
      OPERANDS(IN(DOUT_LOW), WEIGHT(OUT_A), UPDATE(DGATED)) },
    { K(product_wgrad), WHEN_BOTH(GATE, LORA_PROJ), MATRIX(OUT_A),
      OPERANDS(IN(GATED), IN(DOUT_LOW), GRADIENT(OUT_A)) },
    { K(gate_bwd), WHEN(GATE),
      OPERANDS(IN(O_NORMED), IN(GATE), IN(DGATED), OUT(DO_NORMED), OUT(DGATE)) },
    { K(rms_norm_bwd), WHEN(GATE),
      OPERANDS(IN(O_ROWS), WEIGHT(O_NORM), IN(DO_NORMED), UPDATE(DO_ROWS), GRADIENT(O_NORM)) },
    { K(rms_norm_dgrad), WHEN_BOTH(FROZEN, GATE),
      OPERANDS(IN(O_ROWS), WEIGHT(O_NORM), IN(DO_NORMED), UPDATE(DO_ROWS)) },
    { K(from_heads_bwd), WHEN(GATE), OPERANDS(IN(DO_ROWS), OUT(DO)) },
    END,
};

/* Backward, the part before attention. */
const LhStepNode lh_step_pre_bwd[] = {
    { K(rotary_q_bwd), WHEN(ROTARY), OPERANDS(IN(DQ), OUT(DQ_ROWS)) },
    { K(rotary_kv_bwd), WHEN(ROTARY), OPERANDS(IN(DKV), OUT(DKV_ROWS)) },
    { K(silu_q_bwd), WHEN(SILU), OPERANDS(IN(Q_ROWS), IN(DQ), OUT(DQ_ROWS)) },
    { K(silu_kv_bwd), WHEN(SILU), OPERANDS(IN(KV_ROWS), IN(DKV), OUT(DKV_ROWS)) },
    { NEED(N1_FULL) },
    { K(product_dgrad), MATRIX(Q), OPERANDS(IN(DQ_ROWS), WEIGHT(Q), UPDATE(DN1_SUM)) },
    { K(product_dgrad), MATRIX(KV), OPERANDS(IN(DKV_ROWS), WEIGHT(KV), UPDATE(DN1_SUM)) },
    { K(product_dgrad), WHEN(GATE), MATRIX(GATE),
      OPERANDS(IN(DGATE), WEIGHT(GATE), UPDATE(DN1_SUM)) },
    { K(product_dgrad), WHEN(LORA_QKV), MATRIX(Q_B),
      OPERANDS(IN(DQ_ROWS), WEIGHT(Q_B), UPDATE(DQKV_LOW)) },
    { K(product_dgrad), WHEN(LORA_QKV), MATRIX(KV_B),
      OPERANDS(IN(DKV_ROWS), WEIGHT(KV_B), UPDATE(DQKV_LOW)) },
    { K(product_dgrad), WHEN(LORA_QKV), MATRIX(QKV_A),
      OPERANDS(IN(DQKV_LOW), WEIGHT(QKV_A), UPDATE(DN1_SUM)) },
    { SCATTER(DN1_SUM, DN1) },
    { K(product_wgrad), MATRIX(Q), OPERANDS(IN(N1_FULL), IN(DQ_ROWS), GRADIENT(Q)) },
    { K(product_wgrad), MATRIX(KV), OPERANDS(IN(N1_FULL), IN(DKV_ROWS), GRADIENT(KV)) },
    { K(product_wgrad), WHEN(GATE), MATRIX(GATE),
      OPERANDS(IN(N1_FULL), IN(DGATE), GRADIENT(GATE)) },
    { K(product_wgrad), WHEN(LORA_QKV), MATRIX(Q_B),
      OPERANDS(IN(QKV_LOW), IN(DQ_ROWS), GRADIENT(Q_B)) },
    { K(product_wgrad), WHEN(LORA_QKV), MATRIX(KV_B),
      OPERANDS(IN(QKV_LOW), IN(DKV_ROWS), GRADIENT(KV_B)) },
    { K(product_wgrad), WHEN(LORA_QKV), MATRIX(QKV_A),
      OPERANDS(IN(N1_FULL), IN(DQKV_LOW), GRADIENT(QKV_A)) },
    { K(rms_norm_bwd), WHEN(RMS),
      OPERANDS(IN(X), WEIGHT(NORM1), IN(DN1), UPDATE(DX), GRADIENT(NORM1)) },
    { K(layer_norm_bwd), WHEN(LAYER_NORM),
      OPERANDS(IN(X), WEIGHT(NORM1), IN(DN1), UPDATE(DX), GRADIENT(NORM1)) },
    { K(rms_norm_dgrad), WHEN_BOTH(FROZEN, RMS),
      OPERANDS(IN(X), WEIGHT(NORM1), IN(DN1), UPDATE(DX)) },
    { K(layer_norm_dgrad), WHEN_BOTH(FROZEN, LAYER_NORM),
      OPERANDS(IN(X), WEIGHT(NORM1), IN(DN1), UPDATE(DX)) },
    END,
};

const LhStepNode lh_step_embed_bwd[] = {
    { GATHER(DX, DX_FULL), WHEN(TRAINED) },
    { K(embed_bwd), MATRIX(EMBED), OPERANDS(OTHER(TOKENS), IN(DX_FULL), GRADIENT(EMBED)) },
    END,
};

static uint32_t
mlp_features(const LhStepPlan *plan, uint32_t layer)
{
    if (lh_step_is_dense(plan, layer))
        return LH_STEP_HAS_MLP | LH_STEP_HAS_DENSE;
    if (plan->model.weights.shared_experts > 0)
        return LH_STEP_HAS_MLP | LH_STEP_HAS_EXPERTS | LH_STEP_HAS_SHARED;
    return LH_STEP_HAS_EXPERTS | LH_STEP_HAS_NO_SHARED;
}

uint32_t
lh_step_features(const LhStepPlan *plan, uint32_t layer)
{
    const LhModel *m = &plan->model;
    const LhStepKind kind = lh_step_layer_kind(plan, layer);
    const bool fp32_logits =
        plan->params.behaviour.logits_fp32 && plan->params.module.attention.dtype != LH_DTYPE_FP32;
    uint32_t features = mlp_features(plan, layer);

    features |= m->gated_mlp ? LH_STEP_HAS_GLU : LH_STEP_HAS_GELU;
    features |= m->weights.biases ? LH_STEP_HAS_LAYER_NORM : LH_STEP_HAS_RMS;
    features |= kind == LH_STEP_LINEAR ? LH_STEP_HAS_SILU : LH_STEP_HAS_ROTARY;
    features |= plan->gated[kind] ? LH_STEP_HAS_GATE : LH_STEP_HAS_NO_GATE;
    features |= fp32_logits ? LH_STEP_HAS_FP32_LOGITS : LH_STEP_HAS_16BIT_LOGITS;
    features |=
        lh_step_loss_in_place(&plan->params) ? LH_STEP_HAS_FUSED_LOSS : LH_STEP_HAS_SEPARATE_LOSS;
    if (plan->tiles[LH_STEP_TILES_OF_MLP] > 0 && (features & LH_STEP_HAS_MLP) != 0)
        features |= LH_STEP_HAS_TILED_MLP;
    return features | lh_step_lora_features(&plan->params);
}
