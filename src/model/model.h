/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shapes of transformers, from which attention, parameters and activation memory are computed.
 * Weights, tokenizers and training settings are left out.
 */
#pragma once

#include "base/json/json.h"
#include "model/attention.h"

typedef enum { LH_LAYER_SOFTMAX, LH_LAYER_LINEAR, LH_LAYER_KINDS } LhLayerKind;

/* "softmax", "linear"; NULL-terminated. */
extern const char *const lh_layer_kind_names[];

/* Layers of one kind in a row. */
typedef struct {
    int kind; /* LhLayerKind */
    uint64_t count;
    /* Attention's output is multiplied by a projection of its input, equally wide. */
    bool output_gate;
    bool whole; /* attend to the whole sequence even if the model has a sliding window */
    bool dense; /* have a dense MLP even if the model has experts */
} LhLayerRun;

/* What the number of parameters depends on in addition to the shape. All zero: like Llama. */
typedef struct {
    bool biases;                /* every matrix and norm of a layer has a bias */
    bool qkv_bias;              /* the projections to q, k and v have a bias */
    bool qk_norm;               /* heads of q and k are normalised, with weights */
    uint64_t norms_per_layer;   /* 0: 2 */
    bool bare_norms;            /* norms have no weights */
    uint64_t learned_positions; /* rows of a learned position embedding; 0: none */
    /* Of num_experts: those that every token passes without a router. */
    uint64_t shared_experts;
    uint64_t dense_layers;           /* leading layers with a dense MLP, in a mixture of experts */
    uint64_t dense_ffn_hidden_size;  /* width of the dense MLP; 0: as an expert's */
    uint64_t shared_ffn_hidden_size; /* of each shared expert; 0: as other experts */
    uint64_t embedding_width;        /* if not hidden_size; 0: hidden_size */
    bool embedding_once;             /* a projection from this width, but none back to it */
    /* Of the whole model, not accounted for by the other members. */
    uint64_t other_parameters;
    /* Of one layer of softmax attention; 0: computed from the shape. */
    uint64_t attention_parameters;
} LhModelWeights;

/* Names are Megatron-LM's. */
typedef struct {
    char *name;
    char *description;
    char *source; /* source of the numbers */
    uint64_t num_layers;
    GArray *layers; /* of LhLayerRun: a pattern, repeated up to num_layers */
    uint64_t hidden_size;
    uint64_t num_attention_heads;
    uint64_t num_query_groups; /* key-value heads */
    uint64_t kv_channels;      /* head dimension */
    uint64_t ffn_hidden_size;
    bool gated_mlp;             /* three matrices (SwiGLU) instead of two */
    uint64_t num_experts;       /* shared experts included; 0: dense */
    uint64_t experts_per_token; /* shared experts included */
    uint64_t vocab_size;
    bool tied_embeddings;
    uint64_t max_position_embeddings; /* 0: not stated */
    uint64_t sliding_window;          /* of softmax layers that are not `whole`; 0: none */
    double rotary_base; /* of the rotary angles in softmax layers; 0: no rotary positions */
    bool bidirectional; /* a token also attends to later ones, as in an encoder */
    LhModelWeights weights;
    /* Only for Hugging Face files. */
    uint64_t chunk_size; /* of layers that are not `whole`: see `refusal`; 0: none */
    GPtrArray *notes;    /* of char *: remarks on reading the file, for every output; NULL: none */
    GPtrArray *unused;   /* of char *: keys that affect no result; NULL: none */
    /* Why sequences longer than `refused_above` are not supported; NULL: they are. */
    char *refusal;
    uint64_t refused_above;
    char *sha256; /* of the file */
    int schema;   /* version of longhaul.model, from 0 */
} LhModel;

void lh_model_free(LhModel *model);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhModel, lh_model_free)

/* Number of layers in the pattern that @model repeats. */
uint64_t lh_model_period(const LhModel *model);

/* Layer @index, from 0; borrowed. And the number of layers of @kind. */
const LhLayerRun *lh_model_layer(const LhModel *model, uint64_t index);
uint64_t lh_model_count(const LhModel *model, LhLayerKind kind);

/* Number of softmax layers with the model's sliding window. */
uint64_t lh_model_windowed(const LhModel *model);

/* Number of layers with a dense MLP. */
uint64_t lh_model_dense(const LhModel *model);

/* The field table of longhaul.model/1, for its schema. */
extern const LhField lh_model_fields[];
