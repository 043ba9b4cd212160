/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A layer as a table, and the facts of a step that do not need its program: sizes, the weight
 * stored in each part of a slot, the attention program of each layer. The builder follows the
 * table, and the verifier checks the builder's programs against it.
 */
#pragma once

#include "step/step.h"

/*
 * Roles of activations and their gradients, as rows outside attention. Under sequence parallelism
 * SHARD is the rank's own rows, FULL those of its tensor-parallel group. Tensors of attention have
 * the layout that its programs declare.
 */
typedef enum {
    LH_STEP_X, /* input of a layer; that after the last layer is the model's output */
    LH_STEP_N1,
    LH_STEP_N1_FULL,
    LH_STEP_Q_ROWS,
    LH_STEP_KV_ROWS,
    LH_STEP_Q,
    LH_STEP_KV,
    LH_STEP_O,
    LH_STEP_LSE,
    LH_STEP_STATE,
    LH_STEP_Q_HEADS, /* these four, as saved by heads */
    LH_STEP_KV_HEADS,
    LH_STEP_O_HEADS,
    LH_STEP_LSE_HEADS,
    LH_STEP_O_ROWS,
    LH_STEP_O_NORMED,
    LH_STEP_GATE,
    LH_STEP_GATED,
    LH_STEP_A_SUM, /* one tensor-parallel rank's term of the output projection */
    LH_STEP_A,
    LH_STEP_X1,
    LH_STEP_N2,
    LH_STEP_N2_FULL,
    LH_STEP_UP,
    LH_STEP_P,
    LH_STEP_ROUTER,    /* logits of all experts */
    LH_STEP_ROUTE,     /* experts of each row, and their weights */
    LH_STEP_EXPERT_N2, /* from here on, a row for each choice of a row, sorted by expert */
    LH_STEP_EXPERT_UP,
    LH_STEP_EXPERT_P,
    LH_STEP_EXPERT_M,
    LH_STEP_ROUTED, /* output of a row's experts, and ... */
    LH_STEP_SHARED, /* ... of the shared ones */
    LH_STEP_M_SUM,
    LH_STEP_M,
    LH_STEP_QKV_LOW, /* input of an adapter times its A */
    LH_STEP_OUT_LOW, /* ... one tensor-parallel rank's term, as is that of the next but one */
    LH_STEP_UP_LOW,
    LH_STEP_DOWN_LOW,
    /* Before and after the layers. */
    LH_STEP_E_SUM,
    LH_STEP_XF,
    LH_STEP_XF_FULL,
    LH_STEP_LOGITS,
    LH_STEP_LOGITS_FP32,
    LH_STEP_LOSS_STATS,
    LH_STEP_LOSS_STATS_ALL,
    /* Gradients. */
    LH_STEP_DLOGITS_FP32,
    LH_STEP_DLOGITS,
    LH_STEP_DXF_SUM,
    LH_STEP_DXF,
    LH_STEP_DX, /* of the residual stream: one tensor for the whole backward pass */
    LH_STEP_DX_FULL,
    LH_STEP_M_TILE, /* output of a tile of the MLP, computed again in the backward pass and unused
                     */
    LH_STEP_DP,
    LH_STEP_DUP,
    LH_STEP_DEXPERT_M,
    LH_STEP_DROUTE, /* of the weights of a row's experts */
    LH_STEP_DEXPERT_P,
    LH_STEP_DEXPERT_UP,
    LH_STEP_DEXPERT_N2,
    LH_STEP_DROUTER,
    LH_STEP_DN2_SUM,
    LH_STEP_DN2,
    LH_STEP_DGATED,
    LH_STEP_DGATE,
    LH_STEP_DO_NORMED,
    LH_STEP_DO_ROWS,
    LH_STEP_DO,
    LH_STEP_DQ,
    LH_STEP_DKV,
    LH_STEP_DQ_ROWS,
    LH_STEP_DKV_ROWS,
    LH_STEP_DN1_SUM,
    LH_STEP_DN1,
    LH_STEP_DQKV_LOW,
    LH_STEP_DOUT_LOW,
    LH_STEP_DUP_LOW,
    LH_STEP_DDOWN_LOW,
    /* Results of adapters, forward, until they have been added; never kept. */
    LH_STEP_Q_DELTA,
    LH_STEP_KV_DELTA,
    LH_STEP_OUT_DELTA,
    LH_STEP_UP_DELTA,
    LH_STEP_DOWN_DELTA,
    LH_STEP_M_TILE_DELTA,
    /* Last rows of the sequences in a rank's last segment, of a forward pass alone. */
    LH_STEP_X_LAST,
    LH_STEP_XF_LAST,
    LH_STEP_XF_LAST_ALL, /* of all tensor-parallel ranks; those of the last one are the last */
    LH_STEP_LOGITS_LAST,
    LH_STEP_ROLES
} LhStepRole;

typedef enum {
    LH_STEP_W_NORM1,
    LH_STEP_W_Q,
    LH_STEP_W_KV,
    LH_STEP_W_GATE,
    LH_STEP_W_O_NORM,
    LH_STEP_W_OUT,
    LH_STEP_W_NORM2,
    LH_STEP_W_UP, /* of the MLP, or of all shared experts together */
    LH_STEP_W_DOWN,
    LH_STEP_W_ROUTER,
    LH_STEP_W_EXPERT_UP, /* of all routed experts */
    LH_STEP_W_EXPERT_DOWN,
    /* Adapters: A, hidden to rank; B, rank to the width of the matrix that is adapted. */
    LH_STEP_W_QKV_A,
    LH_STEP_W_ADAPTERS = LH_STEP_W_QKV_A, /* from here to the end of a layer */
    LH_STEP_W_Q_B,
    LH_STEP_W_KV_B,
    LH_STEP_W_OUT_A,
    LH_STEP_W_OUT_B,
    LH_STEP_W_UP_A,
    LH_STEP_W_UP_B,
    LH_STEP_W_DOWN_A,
    LH_STEP_W_DOWN_B,
    LH_STEP_W_LAYER, /* the weights above belong to a layer */
    LH_STEP_W_EMBED = LH_STEP_W_LAYER,
    LH_STEP_W_NORM_F,
    LH_STEP_W_HEAD, /* absent if the head is the embedding's matrix, transposed */
    LH_STEP_WEIGHTS
} LhStepWeight;

/* Kinds of layers, by their attention. */
typedef enum {
    LH_STEP_SOFTMAX,
    LH_STEP_WINDOWED, /* softmax with the model's sliding window */
    LH_STEP_LINEAR,
    LH_STEP_KINDS
} LhStepKind;
G_STATIC_ASSERT((int)LH_STEP_KINDS == LH_STEP_KINDS_MAX);

/* Features of a layer, which select the rows of the table. */
enum {
    LH_STEP_HAS_GLU = 1 << 0,
    LH_STEP_HAS_GELU = 1 << 1,
    LH_STEP_HAS_RMS = 1 << 2,
    LH_STEP_HAS_LAYER_NORM = 1 << 3,
    LH_STEP_HAS_SILU = 1 << 4, /* on q and k: linear attention */
    LH_STEP_HAS_ROTARY = 1 << 5,
    LH_STEP_HAS_GATE = 1 << 6, /* on the output of attention */
    LH_STEP_HAS_NO_GATE = 1 << 7,
    LH_STEP_HAS_FP32_LOGITS = 1 << 8,
    LH_STEP_HAS_16BIT_LOGITS = 1 << 9,
    LH_STEP_HAS_MLP = 1 << 10,   /* of a dense layer, or of shared experts */
    LH_STEP_HAS_DENSE = 1 << 11, /* and no experts */
    LH_STEP_HAS_EXPERTS = 1 << 12,
    LH_STEP_HAS_SHARED = 1 << 13, /* in addition to routed experts */
    LH_STEP_HAS_NO_SHARED = 1 << 14,
    LH_STEP_HAS_FUSED_LOSS = 1 << 15, /* with 16-bit logits: their gradient takes their place */
    LH_STEP_HAS_SEPARATE_LOSS = 1 << 16,
    LH_STEP_HAS_TILED_MLP = 1 << 17,
    LH_STEP_HAS_TRAINED = 1 << 18, /* all weights are trained; */
    LH_STEP_HAS_FROZEN = 1 << 19,  /* ... or only the adapters of ... */
    LH_STEP_HAS_LORA_QKV = 1 << 20,
    LH_STEP_HAS_LORA_PROJ = 1 << 21,
    LH_STEP_HAS_LORA_FC1 = 1 << 22,
    LH_STEP_HAS_LORA_FC2 = 1 << 23,
};

typedef struct _LhStepPlan LhStepPlan;

/* Features of a layer, as bits. */
uint32_t lh_step_features(const LhStepPlan *plan, uint32_t layer);

/* Rows of a table that form a loop over tiles: each tile of the rank's rows passes all of them
 * before the next one. */
typedef enum {
    LH_STEP_NO_TILES,
    LH_STEP_TILES_OF_LOSS,
    LH_STEP_TILES_OF_MLP,
    LH_STEP_TILINGS
} LhStepTiling;

/* Action of a row of the table. */
typedef enum {
    LH_STEP_END, /* ends a list */
    LH_STEP_KERNEL,
    LH_STEP_GATHER,    /* SHARD to FULL, over the tensor-parallel group; in[0] to out[0] */
    LH_STEP_SCATTER,   /* reduce-scatter, FULL to SHARD */
    LH_STEP_STATS,     /* gathers a part of each rank: statistics of the loss, or last rows */
    LH_STEP_ATTENTION, /* the module, forward or backward */
    /* Makes a role available to later rows: computes it if absent, and gathers rows again if the
     * framework does. */
    LH_STEP_NEED,
    /* If the loss checkpoints its chunks: forgets the role, which is recomputed when needed. */
    LH_STEP_FORGET,
} LhStepDoes;

typedef enum {
    LH_STEP_OPERAND_END,
    LH_STEP_IN,
    LH_STEP_IN_LAST, /* IN, of which only the last part is read */
    LH_STEP_OUT,
    LH_STEP_UPDATE,   /* created if absent */
    LH_STEP_OUT_NEXT, /* OUT, of the next layer */
    LH_STEP_WEIGHT,
    LH_STEP_GRADIENT, /* of a weight; added to the result of earlier micro-batches */
    LH_STEP_TOKENS,
    LH_STEP_TARGETS,
    LH_STEP_LOSS,
} LhStepOperandKind;

typedef struct {
    uint8_t kind; /* LhStepOperandKind */
    uint8_t what; /* LhStepRole or LhStepWeight */
} LhStepOperand;

#define LH_STEP_OPERANDS 6

typedef struct {
    uint8_t does;   /* LhStepDoes */
    uint8_t matrix; /* LhStepWeight of a product's matrix */
    uint8_t tiling; /* LhStepTiling: the loop that the row belongs to */
    bool in_place;  /* the first OUT operand takes the place of operand 0 */
    bool again;     /* recomputes what a row of the forward pass has computed */
    uint32_t when;  /* features that the layer must have, all of them */
    LhKernelId kernel;
    LhStepOperand operands[LH_STEP_OPERANDS]; /* the kernel's, in order */
} LhStepNode;

/* Tables, ended by LH_STEP_END. A forward pass alone has lh_step_last_head for lh_step_head. */
extern const LhStepNode lh_step_embed[], lh_step_forward[], lh_step_head[], lh_step_post_bwd[],
    lh_step_pre_bwd[], lh_step_embed_bwd[], lh_step_last_head[];

/* Family of a tensor: with its role or weight, the key of its slot. */
typedef enum {
    LH_STEP_OF_ROLE,
    LH_STEP_OF_WEIGHT,         /* whole, as used by kernels */
    LH_STEP_OF_WEIGHT_SHARD,   /* FSDP */
    LH_STEP_OF_GRADIENT,       /* of the rank's own tokens */
    LH_STEP_OF_GRADIENT_SUM,   /* result of a reduction, before it is added to ... */
    LH_STEP_OF_GRADIENT_SHARD, /* ... the optimizer's shard */
    LH_STEP_OF_MASTER,
    LH_STEP_OF_MOMENTS,
    LH_STEP_OF_SCALES, /* of 8-bit moments */
    /* Muon: the state of a rank's piece, and what exists of one batch of matrices (muon/muon.h):
     * the rank's pieces of all of them; all pieces of its slice of its own one; the slices of all
     * tensor-parallel ranks; the matrices, their Gram matrices, and polynomials of these. */
    LH_STEP_OF_MOMENTUM,
    LH_STEP_OF_MUON_PIECES,
    LH_STEP_OF_MUON_SLICE,
    LH_STEP_OF_MUON_SLICES,
    LH_STEP_OF_MUON_WHOLE,
    LH_STEP_OF_MUON_GRAM,
    LH_STEP_OF_MUON_POLYNOMIAL,
    LH_STEP_OF_HOST_WEIGHT, /* the rank's piece in host memory; and of its gradient ... */
    LH_STEP_OF_HOST_GRADIENT,
    LH_STEP_OF_HOST_GRADIENT_SUM, /* ... before it is added to that of earlier micro-batches */
    LH_STEP_OF_STEP_COPY,
    LH_STEP_OF_FLAT_GRADIENT, /* all gradients of the model as one flat tensor, reduced at once */
    /* Kept by unfused kernels of a layer or the loss, not in the tables. */
    LH_STEP_OF_UNFUSED,
    LH_STEP_OF_GRADIENT_COPY, /* of the whole model, in addition to its gradients */
    LH_STEP_OF_TOKENS,
    LH_STEP_OF_TARGETS,
    LH_STEP_OF_LOSS,
    LH_STEP_OF_NORM,
    LH_STEP_OF_CLOCK,
    LH_STEP_OF_OTHER,
    /* A role that a forward pass alone leaves, of all its micro-batches: the KV cache of a layer,
     * and logits (lh_step_is_result()). */
    LH_STEP_OF_RESULT,
    LH_STEP_OF_HOST,         /* copy of a role's tensor in host memory */
    LH_STEP_OF_HOST_UNFUSED, /* likewise of LH_STEP_OF_UNFUSED, which moves with it */
    LH_STEP_OF_HOST_NORM,    /* likewise of LH_STEP_OF_NORM */
    LH_STEP_FAMILIES
} LhStepFamily;
