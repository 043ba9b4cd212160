/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A layer as a table, and what is known of a step without looking at its program: sizes, which part
 * of a slot is which weight, which program computes the attention of a layer. The builder follows
 * it, and the verifier holds the builder's programs against it.
 */
#pragma once

#include "step/step.h"

/*
 * Activations and their gradients, in rows outside attention: SHARD has the rank's rows under
 * sequence parallelism, FULL those of its whole tensor-parallel group. Those of attention are as
 * its programs declare them.
 */
typedef enum {
    LH_STEP_X, /* the input of a layer; that of the layer behind the last is the model's output */
    LH_STEP_N1,
    LH_STEP_N1_FULL,
    LH_STEP_Q_ROWS,
    LH_STEP_KV_ROWS,
    LH_STEP_Q,
    LH_STEP_KV,
    LH_STEP_O,
    LH_STEP_LSE,
    LH_STEP_STATE,
    LH_STEP_Q_HEADS, /* these, as saved by heads */
    LH_STEP_KV_HEADS,
    LH_STEP_O_HEADS,
    LH_STEP_LSE_HEADS,
    LH_STEP_O_ROWS,
    LH_STEP_O_NORMED,
    LH_STEP_GATE,
    LH_STEP_GATED,
    LH_STEP_A_SUM, /* one tensor-parallel rank's term of the projection of o */
    LH_STEP_A,
    LH_STEP_X1,
    LH_STEP_N2,
    LH_STEP_N2_FULL,
    LH_STEP_UP,
    LH_STEP_P,
    LH_STEP_ROUTER,    /* logits of all experts */
    LH_STEP_ROUTE,     /* each row's experts and their weights */
    LH_STEP_EXPERT_N2, /* these have a row for each of a row's experts, sorted by expert */
    LH_STEP_EXPERT_UP,
    LH_STEP_EXPERT_P,
    LH_STEP_EXPERT_M,
    LH_STEP_ROUTED, /* what a row's experts make of it, and ... */
    LH_STEP_SHARED, /* ... what the shared ones do */
    LH_STEP_M_SUM,
    LH_STEP_M,
    /* In front of the layers and behind them. */
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
    LH_STEP_W_UP, /* of the MLP, or of the shared experts as one */
    LH_STEP_W_DOWN,
    LH_STEP_W_ROUTER,
    LH_STEP_W_EXPERT_UP, /* of all experts that a router chooses */
    LH_STEP_W_EXPERT_DOWN,
    LH_STEP_W_LAYER, /* those above are a layer's */
    LH_STEP_W_EMBED = LH_STEP_W_LAYER,
    LH_STEP_W_NORM_F,
    LH_STEP_W_HEAD, /* not there where it is the embedding's, transposed */
    LH_STEP_WEIGHTS
} LhStepWeight;

/* What kind of layer: how they differ in attention. */
typedef enum {
    LH_STEP_SOFTMAX,
    LH_STEP_WINDOWED, /* softmax with the model's sliding window */
    LH_STEP_LINEAR,
    LH_STEP_KINDS
} LhStepKind;
G_STATIC_ASSERT((int)LH_STEP_KINDS == LH_STEP_KINDS_MAX);

/* A layer's features, which say which rows of the table it has. */
enum {
    LH_STEP_HAS_GLU = 1 << 0,
    LH_STEP_HAS_GELU = 1 << 1,
    LH_STEP_HAS_RMS = 1 << 2,
    LH_STEP_HAS_LAYER_NORM = 1 << 3,
    LH_STEP_HAS_SILU = 1 << 4, /* on q and k: linear attention */
    LH_STEP_HAS_ROTARY = 1 << 5,
    LH_STEP_HAS_GATE = 1 << 6, /* on attention's output */
    LH_STEP_HAS_NO_GATE = 1 << 7,
    LH_STEP_HAS_FP32_LOGITS = 1 << 8,
    LH_STEP_HAS_16BIT_LOGITS = 1 << 9,
    LH_STEP_HAS_MLP = 1 << 10, /* one that all rows pass: of a dense layer, or of shared experts */
    LH_STEP_HAS_DENSE = 1 << 11, /* nothing but that */
    LH_STEP_HAS_EXPERTS = 1 << 12,
    LH_STEP_HAS_SHARED = 1 << 13, /* beside them */
    LH_STEP_HAS_NO_SHARED = 1 << 14,
};

/* What a row of the table does. */
typedef enum {
    LH_STEP_END, /* ends a list */
    LH_STEP_KERNEL,
    LH_STEP_GATHER,    /* SHARD to FULL, over the tensor-parallel group; in[0] to out[0] */
    LH_STEP_SCATTER,   /* sums of FULL to SHARD */
    LH_STEP_STATS,     /* gathers statistics of the loss */
    LH_STEP_ATTENTION, /* the module, forward or backward */
    LH_STEP_NEED,      /* a role must be there before what follows; makes it if it is not, or if
                          gathered rows are gathered again */
} LhStepDoes;

typedef enum {
    LH_STEP_OPERAND_END,
    LH_STEP_IN,
    LH_STEP_OUT,
    LH_STEP_UPDATE,   /* made if it is not there */
    LH_STEP_OUT_NEXT, /* OUT, of the layer behind */
    LH_STEP_WEIGHT,
    LH_STEP_GRADIENT, /* of a weight; added to what other micro-batches left */
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
    uint8_t matrix; /* LhStepWeight whose matrix a product has */
    uint16_t when;  /* features, all of which the layer must have */
    LhKernelId kernel;
    LhStepOperand operands[LH_STEP_OPERANDS]; /* the kernel's, in order */
} LhStepNode;

/* Ended by LH_STEP_END. */
extern const LhStepNode lh_step_embed[], lh_step_forward[], lh_step_head[], lh_step_post_bwd[],
    lh_step_pre_bwd[], lh_step_embed_bwd[];

typedef struct _LhStepPlan LhStepPlan;

/* What a tensor is: the key of its slot. */
typedef enum {
    LH_STEP_OF_ROLE,
    LH_STEP_OF_WEIGHT,         /* as kernels use it: whole */
    LH_STEP_OF_WEIGHT_SHARD,   /* FSDP */
    LH_STEP_OF_GRADIENT,       /* of this rank's tokens */
    LH_STEP_OF_GRADIENT_SUM,   /* what a reduction leaves of it, before it is added to ... */
    LH_STEP_OF_GRADIENT_SHARD, /* ... the shard that the optimizer takes */
    LH_STEP_OF_MASTER,
    LH_STEP_OF_MOMENTS,
    LH_STEP_OF_STEP_COPY,
    LH_STEP_OF_FLAT_GRADIENT, /* all gradients of the model put together, to be reduced as one */
    LH_STEP_OF_UNFUSED,       /* what a layer or the loss keeps that no row of the tables names */
    LH_STEP_OF_GRADIENT_COPY, /* of the whole model, beside its gradients */
    LH_STEP_OF_TOKENS,
    LH_STEP_OF_TARGETS,
    LH_STEP_OF_LOSS,
    LH_STEP_OF_NORM,
    LH_STEP_OF_CLOCK,
    LH_STEP_OF_OTHER,
    LH_STEP_FAMILIES
} LhStepFamily;
