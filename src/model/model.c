/* SPDX-License-Identifier: Apache-2.0 */
#include "model/model.h"

#include "model/model_rules.h"

#define TEXT(key, needed, text)                                                                    \
    {                                                                                              \
        .name = #key, .type = LH_FIELD_STRING, .offset = offsetof(LhModel, key),                   \
        .flags = (needed), .min = 1, .max = LH_MODEL_TEXT_MAX, .description = (text)               \
    }

#define COUNT(key, needed, low, high, text)                                                        \
    {                                                                                              \
        .name = #key, .type = LH_FIELD_UNIT, .offset = offsetof(LhModel, key), .flags = (needed),  \
        .unit = LH_UNIT_COUNT, .min = (low), .max = (high), .description = (text)                  \
    }

#define TRUTH(key, text)                                                                           \
    {                                                                                              \
        .name = #key, .type = LH_FIELD_BOOL, .offset = offsetof(LhModel, key),                     \
        .description = (text)                                                                      \
    }

#define WEIGHTS_FLAG(key, text)                                                                    \
    {                                                                                              \
        .name = #key, .type = LH_FIELD_BOOL, .offset = offsetof(LhModel, weights.key),             \
        .description = (text)                                                                      \
    }

#define WEIGHTS_COUNT(key, low, high, text)                                                        \
    {                                                                                              \
        .name = #key, .type = LH_FIELD_UNIT, .offset = offsetof(LhModel, weights.key),             \
        .unit = LH_UNIT_COUNT, .min = (low), .max = (high), .description = (text)                  \
    }

static const char *const model_schemas[] = { "longhaul.model/1", NULL };

const char *const lh_layer_kind_names[] = { "softmax", "linear", NULL };

static void
init_run(void *run)
{
    ((LhLayerRun *)run)->count = 1;
}

static const LhField run_fields[] = {
    { .name = "attention",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(LhLayerRun, kind),
      .flags = LH_FIELD_REQUIRED,
      .choices = lh_layer_kind_names,
      .description = "Kind of attention." },
    { .name = "count",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = offsetof(LhLayerRun, count),
      .min = 1,
      .max = LH_MODEL_LAYERS_MAX,
      .description = "Consecutive layers of this kind; default 1." },
    { .name = "output_gate",
      .type = LH_FIELD_BOOL,
      .offset = offsetof(LhLayerRun, output_gate),
      .description = "Whether attention's output is multiplied by a gate, another projection of "
                     "the layer's input, as wide as the heads; default no." },
    { .name = "whole_sequence",
      .type = LH_FIELD_BOOL,
      .offset = offsetof(LhLayerRun, whole),
      .description = "Whether these layers attend to the whole sequence although the model has a "
                     "sliding window; default no." },
    { .name = "dense",
      .type = LH_FIELD_BOOL,
      .offset = offsetof(LhLayerRun, dense),
      .description =
          "Whether these layers have a dense MLP although the model has experts; default no." },
    { .name = NULL },
};

const LhField lh_model_fields[] = {
    { .name = "schema",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(LhModel, schema),
      .flags = LH_FIELD_REQUIRED,
      .choices = model_schemas,
      .description = "The format and its version." },
    TEXT(name, LH_FIELD_REQUIRED, "The model's name, equal to the file's."),
    TEXT(description, 0, "Description of the model, one sentence."),
    TEXT(source, LH_FIELD_REQUIRED, "Source of the numbers."),
    COUNT(num_layers, LH_FIELD_REQUIRED, 1, LH_MODEL_LAYERS_MAX, "Transformer layers."),
    { .name = "layers",
      .type = LH_FIELD_ARRAY,
      .offset = offsetof(LhModel, layers),
      .fields = run_fields,
      .element_size = sizeof(LhLayerRun),
      .element_init = init_run,
      .min = 1,
      .max = LH_MODEL_LAYERS_MAX,
      .description = "Pattern of layers: runs of one kind, from the first layer on, repeated up to "
                     "num_layers. Default: softmax attention in all layers." },
    COUNT(hidden_size, LH_FIELD_REQUIRED, 1, LH_MODEL_WIDTH_MAX, "Width of the residual stream."),
    COUNT(num_attention_heads, LH_FIELD_REQUIRED, 1, LH_MODEL_HEADS_MAX, "Query heads."),
    COUNT(num_query_groups, 0, 1, LH_MODEL_HEADS_MAX,
          "Key-value heads; divides num_attention_heads; default num_attention_heads."),
    COUNT(kv_channels, 0, 1, LH_MODEL_HEADS_MAX,
          "Head dimension; default hidden_size / num_attention_heads."),
    COUNT(ffn_hidden_size, LH_FIELD_REQUIRED, 1, LH_MODEL_WIDTH_MAX,
          "Inner width of the MLP; with experts, of one expert."),
    TRUTH(gated_mlp,
          "Whether the MLP has three matrices (SwiGLU, GLU) instead of two; default no."),
    COUNT(num_experts, 0, 1, LH_MODEL_HEADS_MAX,
          "Experts of an MLP, shared ones included; absent for a dense model."),
    COUNT(experts_per_token, 0, 1, LH_MODEL_HEADS_MAX,
          "Experts per token, shared ones included; at most num_experts."),
    COUNT(vocab_size, LH_FIELD_REQUIRED, 1, LH_MODEL_VOCAB_MAX, "Rows of the embedding."),
    TRUTH(tied_embeddings, "Whether input and output embedding share their weights; default no."),
    COUNT(max_position_embeddings, 0, 1, LH_MODEL_POSITIONS_MAX,
          "Longest sequence that the model supports; absent if not stated."),
    COUNT(sliding_window, 0, 1, LH_MODEL_POSITIONS_MAX,
          "Sliding window of layers of softmax attention: tokens that a query attends to, itself "
          "included; absent: no window."),
    { .name = "rotary_base",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(LhModel, rotary_base),
      .min = 0,
      .max = LH_MODEL_ROTARY_BASE_MAX,
      .description =
          "Base of the rotary angles in layers of softmax attention; 0: no rotary positions. "
          "Default 10000; 0 with learned_positions or with linear attention in all layers." },
    TRUTH(bidirectional,
          "Whether a token also attends to later ones, as in an encoder; default no."),
    WEIGHTS_FLAG(biases, "Whether every matrix and norm of a layer has a bias; default no."),
    WEIGHTS_FLAG(qkv_bias, "Whether the projections to q, k and v have a bias; default no."),
    WEIGHTS_FLAG(qk_norm, "Whether heads of q and k are normalised, with weights; default no."),
    WEIGHTS_COUNT(norms_per_layer, 1, LH_MODEL_HEADS_MAX, "Norms per layer; default 2."),
    WEIGHTS_COUNT(learned_positions, 1, LH_MODEL_POSITIONS_MAX,
                  "Positions with a learned embedding; default none."),
    WEIGHTS_COUNT(
        shared_experts, 1, LH_MODEL_HEADS_MAX,
        "Shared experts, of num_experts: those that every token passes without a router."),
    WEIGHTS_COUNT(dense_layers, 1, LH_MODEL_LAYERS_MAX,
                  "Leading layers with a dense MLP in a mixture of experts."),
    WEIGHTS_COUNT(dense_ffn_hidden_size, 1, LH_MODEL_WIDTH_MAX,
                  "Inner width of the MLP of dense layers; default ffn_hidden_size."),
    WEIGHTS_COUNT(shared_ffn_hidden_size, 1, LH_MODEL_WIDTH_MAX,
                  "Inner width of a shared expert; default ffn_hidden_size."),
    WEIGHTS_COUNT(embedding_width, 1, LH_MODEL_WIDTH_MAX,
                  "Width of the embedding; if not hidden_size, matrices project from it and to it. "
                  "Default hidden_size."),
    WEIGHTS_COUNT(other_parameters, 1, LH_MODEL_POSITIONS_MAX,
                  "Parameters of the whole model that the other fields do not account for."),
    WEIGHTS_COUNT(attention_parameters, 1, LH_MODEL_POSITIONS_MAX,
                  "Parameters of attention in one layer, if its matrices are not those of q, k, v "
                  "and o (latent attention)."),
    { .name = NULL },
};

uint64_t
lh_model_period(const LhModel *m)
{
    uint64_t period = 0;

    for (guint i = 0; i < m->layers->len; i++)
        period += g_array_index(m->layers, LhLayerRun, i).count;
    g_assert(period > 0); /* run_fields ensures it */
    return period;
}

const LhLayerRun *
lh_model_layer(const LhModel *m, uint64_t index)
{
    uint64_t left = index % lh_model_period(m);
    guint i = 0;

    while (left >= g_array_index(m->layers, LhLayerRun, i).count)
        left -= g_array_index(m->layers, LhLayerRun, i++).count;
    return &g_array_index(m->layers, LhLayerRun, i);
}

uint64_t
lh_model_count(const LhModel *m, LhLayerKind kind)
{
    uint64_t count = 0;

    for (guint i = 0; i < m->layers->len; i++) {
        const LhLayerRun *run = &g_array_index(m->layers, LhLayerRun, i);

        count += run->kind == (int)kind ? run->count : 0;
    }
    return count * (m->num_layers / lh_model_period(m));
}

uint64_t
lh_model_windowed(const LhModel *m)
{
    uint64_t count = 0;

    if (m->sliding_window == 0)
        return 0;
    for (guint i = 0; i < m->layers->len; i++) {
        const LhLayerRun *run = &g_array_index(m->layers, LhLayerRun, i);

        count += run->kind == LH_LAYER_SOFTMAX && !run->whole ? run->count : 0;
    }
    return count * (m->num_layers / lh_model_period(m));
}

uint64_t
lh_model_dense(const LhModel *m)
{
    uint64_t count = 0;

    if (m->num_experts == 0)
        return m->num_layers;
    for (guint i = 0; i < m->layers->len; i++) {
        const LhLayerRun *run = &g_array_index(m->layers, LhLayerRun, i);

        count += run->dense ? run->count : 0;
    }
    return MIN(count * (m->num_layers / lh_model_period(m)) + m->weights.dense_layers,
               m->num_layers);
}

void
lh_model_free(LhModel *model)
{
    if (model == NULL)
        return;
    lh_json_clear(lh_model_fields, model);
    g_clear_pointer(&model->notes, g_ptr_array_unref);
    g_clear_pointer(&model->unused, g_ptr_array_unref);
    g_free(model->refusal);
    g_free(model->sha256);
    g_free(model);
}
