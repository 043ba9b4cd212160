/*
 * How many parameters a model has: of embeddings, projections, MLPs or experts with their router,
 * norms and biases. Vision and audio towers, heads for several tokens at once and quantisation
 * scales are left out.
 */
#include "model/model.h"

/* Sums and products that stop at the largest number. */
static uint64_t
add(uint64_t a, uint64_t b)
{
    uint64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t
times(uint64_t a, uint64_t b)
{
    uint64_t product;

    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* q, k, v, o and what else a run says. Linear attention has a key-value head for each query head.
 */
static uint64_t
attention_of(const LhModel *m, const LhLayerRun *run)
{
    const LhModelWeights *w = &m->weights;
    const uint64_t q = times(m->num_attention_heads, m->kv_channels);
    const uint64_t kv =
        run->kind == LH_LAYER_LINEAR ? q : times(m->num_query_groups, m->kv_channels);
    uint64_t matrices = times(m->hidden_size, add(times(2, q), times(2, kv)));
    uint64_t vectors = 0;

    if (w->attention_parameters > 0 && run->kind == LH_LAYER_SOFTMAX)
        return w->attention_parameters;
    if (run->output_gate)
        matrices = add(matrices, times(m->hidden_size, q));
    if (w->biases || w->qkv_bias)
        vectors = add(q, times(2, kv));
    if (w->biases)
        vectors = add(vectors, m->hidden_size);
    if (w->qk_norm)
        vectors = add(vectors, times(2, m->kv_channels));
    return add(matrices, vectors);
}

/* All layers' attention: the pattern's, as often as it is repeated. */
static uint64_t
attentions_of(const LhModel *m)
{
    uint64_t sum = 0, period = 0;

    for (guint i = 0; i < m->layers->len; i++) {
        const LhLayerRun *run = &g_array_index(m->layers, LhLayerRun, i);

        period += run->count;
        sum = add(sum, times(run->count, attention_of(m, run)));
    }
    return times(sum, m->num_layers / MAX(period, 1));
}

static uint64_t
mlp_of(const LhModel *m, uint64_t ffn)
{
    const uint64_t inner = times(m->gated_mlp ? 2 : 1, ffn);
    const uint64_t matrices = times(m->hidden_size, add(inner, ffn));

    return m->weights.biases ? add(matrices, add(inner, m->hidden_size)) : matrices;
}

/* All MLPs of the model, with so many experts in each layer that has any. */
static uint64_t
mlps_of(const LhModel *m, uint64_t experts)
{
    const LhModelWeights *w = &m->weights;
    const uint64_t dense = m->num_experts == 0 ? m->num_layers : w->dense_layers;
    const uint64_t dense_ffn =
        w->dense_ffn_hidden_size > 0 ? w->dense_ffn_hidden_size : m->ffn_hidden_size;
    const uint64_t router = times(m->hidden_size, m->num_experts - w->shared_experts);
    const uint64_t mixture = add(times(experts, mlp_of(m, m->ffn_hidden_size)), router);

    return add(times(dense, mlp_of(m, dense_ffn)), times(m->num_layers - dense, mixture));
}

static uint64_t
parameters_of(const LhModel *m, uint64_t experts)
{
    const LhModelWeights *w = &m->weights;
    const uint64_t norm = times(w->biases ? 2 : 1, m->hidden_size);
    const uint64_t norms = w->norms_per_layer > 0 ? w->norms_per_layer : 2;
    uint64_t sum = times(times(m->tied_embeddings ? 1 : 2, m->vocab_size), m->hidden_size);

    sum = add(sum, times(w->learned_positions, m->hidden_size));
    sum = add(sum, attentions_of(m));
    sum = add(sum, mlps_of(m, experts));
    return add(sum, times(norm, add(times(norms, m->num_layers), 1)));
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
