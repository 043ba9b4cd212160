/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Number of parameters of a model: embeddings, projections, MLPs or experts with their router,
 * norms and biases. Vision and audio towers, multi-token prediction heads and quantisation scales
 * are left out.
 */
#include "model/parameters.h"

#include "base/saturate.h"

/* Parameters of one layer's attention: q, k, v, o and what its run adds. Linear attention has a
 * key-value head per query head. */
static uint64_t
attention_of(const LhModel *m, const LhLayerRun *run)
{
    const LhModelWeights *w = &m->weights;
    const uint64_t q = lh_times(m->num_attention_heads, m->kv_channels);
    const uint64_t kv =
        run->kind == LH_LAYER_LINEAR ? q : lh_times(m->num_query_groups, m->kv_channels);
    uint64_t matrices = lh_times(m->hidden_size, lh_plus(lh_times(2, q), lh_times(2, kv)));
    uint64_t vectors = 0;

    if (w->attention_parameters > 0 && run->kind == LH_LAYER_SOFTMAX)
        return w->attention_parameters;
    if (run->output_gate)
        matrices = lh_plus(matrices, lh_times(m->hidden_size, q));
    if (w->biases || w->qkv_bias)
        vectors = lh_plus(q, lh_times(2, kv));
    if (w->biases)
        vectors = lh_plus(vectors, m->hidden_size);
    if (w->qk_norm)
        vectors = lh_plus(vectors, lh_times(2, m->kv_channels));
    return lh_plus(matrices, vectors);
}

/* Attention of all layers: the pattern's, times its repetitions. */
static uint64_t
attentions_of(const LhModel *m)
{
    uint64_t sum = 0, period = 0;

    for (guint i = 0; i < m->layers->len; i++) {
        const LhLayerRun *run = &g_array_index(m->layers, LhLayerRun, i);

        period += run->count;
        sum = lh_plus(sum, lh_times(run->count, attention_of(m, run)));
    }
    return lh_times(sum, m->num_layers / MAX(period, 1));
}

static uint64_t
mlp_of(const LhModel *m, uint64_t ffn)
{
    const uint64_t inner = lh_times(m->gated_mlp ? 2 : 1, ffn);
    const uint64_t matrices = lh_times(m->hidden_size, lh_plus(inner, ffn));

    return m->weights.biases ? lh_plus(matrices, lh_plus(inner, m->hidden_size)) : matrices;
}

/* All MLPs of the model, with @experts experts in each layer that has any. */
static uint64_t
mlps_of(const LhModel *m, uint64_t experts)
{
    const LhModelWeights *w = &m->weights;
    const uint64_t dense = lh_model_dense(m);
    const uint64_t dense_ffn =
        w->dense_ffn_hidden_size > 0 ? w->dense_ffn_hidden_size : m->ffn_hidden_size;
    const uint64_t router = lh_times(m->hidden_size, m->num_experts - w->shared_experts);
    const uint64_t shared_ffn =
        w->shared_ffn_hidden_size > 0 ? w->shared_ffn_hidden_size : m->ffn_hidden_size;
    const uint64_t routed = lh_times(experts - w->shared_experts, mlp_of(m, m->ffn_hidden_size));
    const uint64_t mixture =
        lh_plus(lh_plus(routed, lh_times(w->shared_experts, mlp_of(m, shared_ffn))), router);

    return lh_plus(lh_times(dense, mlp_of(m, dense_ffn)), lh_times(m->num_layers - dense, mixture));
}

static uint64_t
parameters_of(const LhModel *m, uint64_t experts)
{
    const LhModelWeights *w = &m->weights;
    const uint64_t norm = w->bare_norms ? 0 : lh_times(w->biases ? 2 : 1, m->hidden_size);
    const uint64_t norms = w->norms_per_layer > 0 ? w->norms_per_layer : 2;
    const uint64_t embeddings = m->tied_embeddings ? 1 : 2;
    const uint64_t width = w->embedding_width > 0 ? w->embedding_width : m->hidden_size;
    uint64_t sum = lh_times(lh_times(embeddings, m->vocab_size), width);

    if (w->embedding_width > 0)
        sum = lh_plus(sum, lh_times(w->embedding_once ? 1 : 2, lh_times(width, m->hidden_size)));
    sum = lh_plus(sum, w->other_parameters);
    sum = lh_plus(sum, lh_times(w->learned_positions, m->hidden_size));
    sum = lh_plus(sum, attentions_of(m));
    sum = lh_plus(sum, mlps_of(m, experts));
    return lh_plus(sum, lh_times(norm, lh_plus(lh_times(norms, m->num_layers), 1)));
}

uint64_t
lh_model_parameters(const LhModel *m)
{
    return parameters_of(m, m->num_experts);
}

uint64_t
lh_model_active_parameters(const LhModel *m)
{
    return parameters_of(m, m->experts_per_token);
}
