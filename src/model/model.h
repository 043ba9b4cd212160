/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transformer shapes: what attention, parameters and activation memory are computed from. Weights,
 * tokenizers and training settings are left out.
 */
#pragma once

#include "base/json/json.h"
#include "model/attention.h"

typedef enum { LH_LAYER_SOFTMAX, LH_LAYER_LINEAR, LH_LAYER_KINDS } LhLayerKind;

/* "softmax", "linear"; NULL-terminated. */
extern const char *const lh_layer_kind_names[];

/* Layers of one kind in a row. */
typedef struct {
    int kind; /* LhLayerKind: of attention */
    uint64_t count;
    bool output_gate; /* attention's output is multiplied by a projection of its input, as wide */
    bool whole;       /* they see the whole sequence, even if the model has a sliding window */
    bool dense;       /* they have one MLP, even if the model has experts */
} LhLayerRun;

/* What the number of parameters depends on beside the shape. All zero: a model like Llama. */
typedef struct {
    bool biases;                     /* every matrix and norm of a layer has one */
    bool qkv_bias;                   /* the projections to q, k and v have one */
    bool qk_norm;                    /* heads of q and k are normalised, with weights */
    uint64_t norms_per_layer;        /* 0: 2 */
    bool bare_norms;                 /* norms have no weights */
    uint64_t learned_positions;      /* rows of an embedding of positions; 0: none */
    uint64_t shared_experts;         /* of num_experts: those that no router chooses */
    uint64_t dense_layers;           /* of a mixture of experts: the first layers, with one MLP */
    uint64_t dense_ffn_hidden_size;  /* its width; 0: as an expert's */
    uint64_t shared_ffn_hidden_size; /* of each shared expert; 0: as another's */
    uint64_t embedding_width;        /* of the embedding, if it is not hidden_size; 0: it is */
    bool embedding_once;             /* a projection from this width, none back to it */
    uint64_t other_parameters;       /* of the whole model, beside all these */
    uint64_t attention_parameters;   /* of one layer of softmax attention; 0: by the shape */
} LhModelWeights;

/* Names are Megatron-LM's. */
typedef struct {
    char *name;
    char *description;
    char *source; /* where the numbers come from */
    uint64_t num_layers;
    GArray *layers; /* of LhLayerRun: a pattern, which is repeated until there are num_layers */
    uint64_t hidden_size;
    uint64_t num_attention_heads;
    uint64_t num_query_groups; /* key-value heads */
    uint64_t kv_channels;      /* head dimension */
    uint64_t ffn_hidden_size;
    bool gated_mlp;             /* three matrices (SwiGLU) instead of two */
    uint64_t num_experts;       /* shared experts included; 0: dense */
    uint64_t experts_per_token; /* likewise */
    uint64_t vocab_size;
    bool tied_embeddings;
    uint64_t max_position_embeddings; /* 0: not stated */
    uint64_t sliding_window;          /* of softmax layers that are not `whole`; 0: none */
    double rotary_base; /* of the angles by which softmax layers turn q and k; 0: they do not */
    bool bidirectional; /* a token also sees those behind it, as in an encoder */
    LhModelWeights weights;
    /* Of a Hugging Face file only. */
    uint64_t chunk_size; /* of layers that are not `whole`: see `refusal`; 0: none */
    GPtrArray *notes;    /* of char *: what every output says about how it was read; NULL: none */
    GPtrArray *unused;   /* of char *: keys that no answer depends on; NULL: none */
    char *refusal;       /* why longer sequences than these are not predicted; NULL: they are */
    uint64_t refused_above;
    char *sha256; /* of the file */
    int schema;   /* version of longhaul.model, from 0 */
} LhModel;

void lh_model_free(LhModel *model);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhModel, lh_model_free)

/* How many layers the pattern has that @model repeats. */
uint64_t lh_model_period(const LhModel *model);

/* What layer @index, from 0, is; borrowed. And how many layers are of @kind. */
const LhLayerRun *lh_model_layer(const LhModel *model, uint64_t index);
uint64_t lh_model_count(const LhModel *model, LhLayerKind kind);

/* How many layers of softmax attention have the model's sliding window. */
uint64_t lh_model_windowed(const LhModel *model);

/* How many layers have one MLP and no experts. */
uint64_t lh_model_dense(const LhModel *model);

/* The field table of longhaul.model/1, for its schema. */
extern const LhField lh_model_fields[];
