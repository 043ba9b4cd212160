/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training step of a whole transformer on one rank in fp64: embedding, layers, loss, backward
 * pass, AdamW. Executed steps are compared with it. It is written down from the definitions and
 * shares nothing with the kernels; attention is that of reference.h, which shares nothing either.
 *
 * All tokens of a step are taken together: rows are [sequences][tokens], matrices are multiplied
 * from the right (y = x w), and as in Llama a layer is x1 = x + attention(norm(x)), x1 +
 * mlp(norm(x1)), where the MLP may be a mixture of experts (model_experts.h).
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
    LH_MODEL_GATE,   /* hidden x heads d; of layers with an output gate, as is the next */
    LH_MODEL_O_NORM, /* 1 x heads d */
    LH_MODEL_OUT,    /* heads d x hidden */
    LH_MODEL_NORM2,
    LH_MODEL_UP,        /* hidden x ffn; gated: x 2 ffn, gates first */
    LH_MODEL_DOWN,      /* ffn x hidden */
    LH_MODEL_ROUTER,    /* hidden x experts; of layers with experts, as are the next */
    LH_MODEL_EXPERT_UP, /* as of the MLP, those of all experts one below the other */
    LH_MODEL_EXPERT_DOWN,
    LH_MODEL_OF_LAYER,
    LH_MODEL_EMBED = LH_MODEL_OF_LAYER, /* vocabulary x hidden */
    LH_MODEL_NORM_F,
    LH_MODEL_HEAD, /* vocabulary x hidden; not there where it is the embedding's */
    LH_MODEL_WEIGHTS
} LhModelWeight;

typedef struct {
    /* All of it but the batch and the element type is read. Linear attention has silu of q and k,
     * not turned. */
    LhAttention attention;
    LhMaskRule mask;
    bool gate; /* attention's output, normalised, times the sigmoid of a projection of its input */
    bool experts; /* a mixture of experts, and beside them an MLP of its own width */
} LhModelLayer;

typedef struct {
    uint64_t hidden, heads, head_dim, ffn, vocabulary;
    const LhModelLayer *layers; /* borrowed */
    uint32_t layers_count;
    bool gated_mlp;                  /* silu(gate) up; else gelu, by tanh */
    bool layer_norm;                 /* else RMS norms */
    uint32_t experts, choices;       /* of layers with experts; how many a row is given to */
    uint64_t expert_ffn, shared_ffn; /* width of each, and of the MLP beside them; 0: none */
    bool tied;                       /* the head is the embedding, transposed */
    uint32_t o_norms;   /* attention's output is normalised in so many equal slices of the heads */
    double epsilon;     /* of norms */
    double rotary_base; /* 0: no rotation */
    uint64_t sequences, tokens; /* of a step; of a sequence */
    double learning_rate, beta1, beta2, adam_epsilon;
    double clip; /* the largest norm of all gradients; 0: any */
} LhModelShape;

/* A weight and what training has of it. */
typedef struct {
    uint64_t rows, columns; /* 0: there is none */
    double *value, *gradient, *first, *second;
} LhModelTensor;

/*
 * What rounding may do, done on purpose: every number that a step stores is moved by this share of
 * itself, of the size of its row (as sums of many terms are), and by this much, all three up or
 * down by chance. All zero: none of it.
 */
typedef struct {
    double of_number, of_row, absolute;
    uint64_t seed;
} LhModelNoise;

typedef struct {
    LhModelShape shape;
    LhModelNoise noise;
    uint64_t disturbed;     /* tensors, so far */
    LhModelTensor *tensors; /* owned; see lh_model_tensor() */
    uint64_t clock;         /* steps done */
    double loss, squares;   /* of the last one: the loss, the sum of the gradients' squares */
} LhModelReference;

/* The width of a layer's MLP; the columns of the first matrix of one. */
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

/* All weights zero. Caller frees. */
LhModelReference *lh_model_reference_new(const LhModelShape *shape);
void lh_model_reference_free(LhModelReference *reference);

/* A weight of layer @layer (ignored for those that belong to none). */
LhModelTensor *lh_model_tensor(const LhModelReference *reference, LhModelWeight weight,
                               uint32_t layer);

/* Bytes that a step of @shape takes, at most, with all activations, weights and a copy of these. */
uint64_t lh_model_reference_bytes(const LhModelShape *shape);

/* What storing rows does to them by the reference's noise. */
void lh_model_disturb(LhModelReference *reference, double *rows, uint64_t rows_count,
                      uint64_t width);
/* What a sum whose terms have squares of @terms2 in all is off by. */
double lh_model_noise_of_sum(LhModelReference *reference, double terms2);
/* lh_math_product_dw(), whose sums over rows are off like that. */
void lh_model_product_dw(LhModelReference *reference, const LhMathProduct *p, const double *x,
                         const double *dy, double *dw);

/* One step: loss and gradients, and the update of the weights. */
void lh_model_reference_step(LhModelReference *reference, const uint32_t *tokens,
                             const uint32_t *targets, unsigned threads);
