/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training step of a whole transformer on one rank in fp64: embedding, layers, loss, backward
 * pass, AdamW. Executed steps are compared with it. It follows the definitions directly and shares
 * no code with the kernels; attention is that of reference.h, which shares none either.
 *
 * All tokens of a step are processed together: rows are [sequences][tokens], and weights are right
 * factors (y = x w). As in Llama, a layer is x1 = x + attention(norm(x)), x1 + mlp(norm(x1)). The
 * MLP may be a mixture of experts (model_experts.h).
 */
#pragma once

#include "model/attention.h"
#include "model/mask.h"
#include "reference/model_math.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    LH_MODEL_NORM1,  /* 1 x hidden; layer_norm: w, then the bias */
    LH_MODEL_Q,      /* hidden x heads d */
    LH_MODEL_KV,     /* hidden x 2 groups d: k, then v */
    LH_MODEL_GATE,   /* hidden x heads d; for layers with an output gate, as is the next */
    LH_MODEL_O_NORM, /* 1 x heads d */
    LH_MODEL_OUT,    /* heads d x hidden */
    LH_MODEL_NORM2,
    LH_MODEL_UP,        /* hidden x ffn; gated: x 2 ffn, gates first */
    LH_MODEL_DOWN,      /* ffn x hidden */
    LH_MODEL_ROUTER,    /* hidden x experts; for layers with experts, as are the next */
    LH_MODEL_EXPERT_UP, /* as for the MLP, all experts stacked by rows */
    LH_MODEL_EXPERT_DOWN,
    LH_MODEL_QKV_A, /* hidden x rank; adapters, as are the next */
    LH_MODEL_Q_B,   /* rank x columns of q */
    LH_MODEL_KV_B,
    LH_MODEL_OUT_A, /* rows of the output's matrix x rank */
    LH_MODEL_OUT_B, /* rank x hidden */
    LH_MODEL_UP_A,
    LH_MODEL_UP_B,
    LH_MODEL_DOWN_A,
    LH_MODEL_DOWN_B,
    LH_MODEL_OF_LAYER,
    LH_MODEL_EMBED = LH_MODEL_OF_LAYER, /* vocabulary x hidden */
    LH_MODEL_NORM_F,
    LH_MODEL_HEAD, /* vocabulary x hidden; absent if tied to the embedding */
    LH_MODEL_WEIGHTS
} LhModelWeight;

typedef struct {
    /*
     * Batch and element type are ignored. Linear attention applies silu to q and k and does not
     * rotate them.
     */
    LhAttention attention;
    LhMaskRule mask;
    bool gate;    /* attention's normalised output is multiplied by the sigmoid of a projection of
                     its input */
    bool experts; /* a mixture of experts, and a shared MLP of its own width */
} LhModelLayer;

/* How numbers are stored between steps. */
typedef enum {
    LH_MODEL_EXACT, /* in fp64 */
    LH_MODEL_BF16,
    LH_MODEL_FP16,
    LH_MODEL_8BIT, /* codes in blocks: kernels/sizes.h */
} LhModelRounding;

typedef struct {
    LhModelRounding weights, moments;
} LhModelStates;

/* Factor of Muon's update of a matrix from `in` to `out` features. */
typedef enum {
    LH_MODEL_SPECTRAL,      /* sqrt(max(in, out)) */
    LH_MODEL_UNIT_RMS_NORM, /* sqrt(out / in) */
    LH_MODEL_SHAPE_SCALING, /* that, but at least 1 */
} LhModelMuonScale;

/* Muon updates the matrices of layers; AdamW the other weights. */
typedef struct {
    uint32_t steps;                  /* of Newton-Schulz; 0: no Muon */
    const double (*coefficients)[3]; /* [steps]; borrowed */
    uint32_t slices;                 /* of a matrix, orthogonalised apart; 1: none */
    LhModelMuonScale scale;
    double momentum, mixture, extra_scale; /* mixture: share of the momentum in the update */
} LhModelMuon;

typedef struct {
    uint64_t hidden, heads, head_dim, ffn, vocabulary;
    const LhModelLayer *layers; /* borrowed */
    uint32_t layers_count;
    bool gated_mlp;                  /* silu(gate) up; otherwise gelu, by tanh */
    bool layer_norm;                 /* otherwise RMS norms */
    uint32_t experts, choices;       /* for layers with experts: number of experts, and experts
                                        per row */
    uint64_t expert_ffn, shared_ffn; /* width of an expert, and of the shared MLP; 0: none */
    uint64_t rank;                   /* of adapters, which alone are trained; 0: all weights are */
    bool adapts_qkv, adapts_out, adapts_up, adapts_down; /* which matrices have adapters */
    bool tied;                                           /* the head is the transposed embedding */
    uint32_t o_norms;           /* slices of the heads in which attention's output is normalised */
    double epsilon;             /* of norms */
    double rotary_base;         /* 0: no rotation */
    uint64_t sequences, tokens; /* sequences per step; tokens per sequence */
    /* [sequences] documents, in place of those of the layers' masks; borrowed, as are their
     * ends; NULL: theirs. */
    const LhDocumentPack *packs;
    double learning_rate, beta1, beta2, adam_epsilon;
    double clip; /* maximum norm of all gradients; 0: no clipping */
    LhModelStates states;
    LhModelMuon muon;
} LhModelShape;

/* A weight, its gradient and its moments. */
typedef struct {
    uint64_t rows, columns; /* 0: absent */
    double *value, *gradient, *first, *second;
    /* For 8-bit moments: the block of each element; borrowed; and the number of blocks. */
    const uint32_t *blocks;
    uint32_t blocks_count;
} LhModelTensor;

/*
 * Simulated rounding: every number that a step stores changes by a share of itself, a share of its
 * row's size (as sums of many terms do) and a constant, all three in the same random direction. All
 * zero: no noise.
 */
typedef struct {
    double of_number, of_row, absolute;
    uint64_t seed;
} LhModelNoise;

typedef struct {
    LhModelShape shape;
    LhModelNoise noise;
    uint64_t disturbed;     /* number of tensors disturbed so far */
    LhModelTensor *tensors; /* owned; see lh_model_tensor() */
    uint64_t clock;         /* number of steps done */
    double loss, squares;   /* of the last step: loss, and sum of squared gradients */
} LhModelReference;

/* Width of a layer's MLP; columns of an MLP's first matrix. */
static inline uint64_t
lh_model_ffn(const LhModelShape *shape, const LhModelLayer *layer)
{
    return layer->experts ? shape->shared_ffn : shape->ffn;
}

static inline uint64_t
lh_model_up_width(const LhModelShape *shape, uint64_t ffn)
{
    return ffn * (shape->gated_mlp ? 2 : 1);
}

/* Creates a reference with all weights zero. Caller frees. */
LhModelReference *lh_model_reference_new(const LhModelShape *shape);
void lh_model_reference_free(LhModelReference *reference);

/* Rows and columns of a weight of layer @layer, without numbers; 0 x 0: absent. */
LhModelTensor lh_model_weight_shape(const LhModelShape *shape, LhModelWeight weight,
                                    uint32_t layer);

/* Returns a weight of layer @layer (ignored for weights outside layers). */
LhModelTensor *lh_model_tensor(const LhModelReference *reference, LhModelWeight weight,
                               uint32_t layer);

/*
 * Returns an upper bound of the bytes of a step of @shape: all activations, weights and a copy of
 * the weights.
 */
uint64_t lh_model_reference_bytes(const LhModelShape *shape);

/* Computes one step: loss, gradients, and the update of the weights. */
void lh_model_reference_step(LhModelReference *reference, const uint32_t *tokens,
                             const uint32_t *targets, unsigned threads);
