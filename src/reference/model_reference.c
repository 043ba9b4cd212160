/* SPDX-License-Identifier: Apache-2.0 */
/* Weights and optimizer of the reference; model_pass.c has the passes. */
#include "reference/model_reference.h"

#include "base/rng.h"
#include "reference/model_muon.h"
#include "reference/model_pass.h"
#include "reference/model_states.h"

#include <glib.h>
#include <math.h>

/* ---- weights ---- */

LhModelTensor *
lh_model_tensor(const LhModelReference *r, LhModelWeight weight, uint32_t layer)
{
    if (weight < LH_MODEL_OF_LAYER)
        return &r->tensors[layer * LH_MODEL_OF_LAYER + weight];
    return &r->tensors[r->shape.layers_count * LH_MODEL_OF_LAYER + weight - LH_MODEL_OF_LAYER];
}

static uint32_t
tensors_count(const LhModelShape *s)
{
    return s->layers_count * LH_MODEL_OF_LAYER + LH_MODEL_WEIGHTS - LH_MODEL_OF_LAYER;
}

/* Shape of an adapter's matrix: A if @is_a, of a matrix of this shape. */
static LhModelTensor
adapter_shape(const LhModelShape *s, bool has, bool is_a, uint64_t rows, uint64_t columns)
{
    return (LhModelTensor){ .rows = !has   ? 0
                                    : is_a ? rows
                                           : s->rank,
                            .columns = is_a ? s->rank : columns };
}

static LhModelTensor
shape_in_adapter(const LhModelShape *s, LhModelWeight weight, const LhModelLayer *layer)
{
    const uint64_t h = s->hidden, q = s->heads * s->head_dim, ffn = lh_model_ffn(s, layer);

    switch (weight) {
    case LH_MODEL_QKV_A:
    case LH_MODEL_Q_B:
        return adapter_shape(s, s->adapts_qkv, weight == LH_MODEL_QKV_A, h, q);
    case LH_MODEL_KV_B:
        return adapter_shape(s, s->adapts_qkv, false, h, 2 * layer->attention.groups * s->head_dim);
    case LH_MODEL_OUT_A:
    case LH_MODEL_OUT_B:
        return adapter_shape(s, s->adapts_out, weight == LH_MODEL_OUT_A, q, h);
    case LH_MODEL_UP_A:
    case LH_MODEL_UP_B:
        return adapter_shape(s, s->adapts_up, weight == LH_MODEL_UP_A, h,
                             lh_model_up_width(s, ffn));
    default:
        return adapter_shape(s, s->adapts_down, weight == LH_MODEL_DOWN_A, ffn, h);
    }
}

static LhModelTensor
weight_shape(const LhModelShape *s, LhModelWeight weight, const LhModelLayer *layer)
{
    const uint64_t h = s->hidden, q = s->heads * s->head_dim, ffn = lh_model_ffn(s, layer);
    const uint64_t experts = layer->experts ? s->experts : 0;

    if (weight >= LH_MODEL_QKV_A && weight < LH_MODEL_OF_LAYER)
        return shape_in_adapter(s, weight, layer);
    switch (weight) {
    case LH_MODEL_NORM1:
    case LH_MODEL_NORM2:
    case LH_MODEL_NORM_F:
        return (LhModelTensor){ .rows = 1, .columns = s->layer_norm ? 2 * h : h };
    case LH_MODEL_Q:
        return (LhModelTensor){ .rows = h, .columns = q };
    case LH_MODEL_KV:
        return (LhModelTensor){ .rows = h, .columns = 2 * layer->attention.groups * s->head_dim };
    case LH_MODEL_GATE:
        return (LhModelTensor){ .rows = layer->gate ? h : 0, .columns = q };
    case LH_MODEL_O_NORM:
        return (LhModelTensor){ .rows = layer->gate ? 1 : 0, .columns = q };
    case LH_MODEL_OUT:
        return (LhModelTensor){ .rows = q, .columns = h };
    case LH_MODEL_UP:
        return (LhModelTensor){ .rows = h, .columns = lh_model_up_width(s, ffn) };
    case LH_MODEL_DOWN:
        return (LhModelTensor){ .rows = ffn, .columns = h };
    case LH_MODEL_ROUTER:
        return (LhModelTensor){ .rows = h, .columns = experts };
    case LH_MODEL_EXPERT_UP:
        return (LhModelTensor){ .rows = experts * h,
                                .columns = lh_model_up_width(s, s->expert_ffn) };
    case LH_MODEL_EXPERT_DOWN:
        return (LhModelTensor){ .rows = experts * s->expert_ffn, .columns = h };
    case LH_MODEL_HEAD:
        return (LhModelTensor){ .rows = s->tied ? 0 : s->vocabulary, .columns = h };
    default:
        return (LhModelTensor){ .rows = s->vocabulary, .columns = h };
    }
}

LhModelTensor
lh_model_weight_shape(const LhModelShape *s, LhModelWeight weight, uint32_t layer)
{
    return weight_shape(s, weight, &s->layers[weight < LH_MODEL_OF_LAYER ? layer : 0]);
}

static LhModelTensor
new_tensor(const LhModelShape *s, LhModelWeight weight, uint32_t layer)
{
    LhModelTensor t = weight_shape(s, weight, &s->layers[layer]);
    const uint64_t elements = t.rows * t.columns;

    if (elements == 0)
        return (LhModelTensor){ 0 };
    t.value = g_new0(double, elements);
    t.gradient = g_new0(double, elements);
    t.first = g_new0(double, elements);
    t.second = g_new0(double, elements);
    return t;
}

LhModelReference *
lh_model_reference_new(const LhModelShape *shape)
{
    LhModelReference *r = g_new0(LhModelReference, 1);

    r->shape = *shape;
    r->shape.layers =
        g_memdup2(shape->layers, shape->layers_count * sizeof(*shape->layers)); /* an owned copy */
    r->shape.muon.coefficients =
        g_memdup2(shape->muon.coefficients, shape->muon.steps * sizeof(*shape->muon.coefficients));
    r->shape.packs =
        g_memdup2(shape->packs, shape->packs != NULL ? shape->sequences * sizeof(*shape->packs)
                                                     : 0); /* likewise */
    r->tensors = g_new0(LhModelTensor, tensors_count(shape));
    for (uint32_t layer = 0; layer < shape->layers_count; layer++) {
        for (unsigned w = 0; w < LH_MODEL_OF_LAYER; w++)
            *lh_model_tensor(r, (LhModelWeight)w, layer) =
                new_tensor(shape, (LhModelWeight)w, layer);
    }
    for (unsigned w = LH_MODEL_OF_LAYER; w < LH_MODEL_WEIGHTS; w++)
        *lh_model_tensor(r, (LhModelWeight)w, 0) = new_tensor(shape, (LhModelWeight)w, 0);
    return r;
}

void
lh_model_reference_free(LhModelReference *r)
{
    if (r == NULL)
        return;
    for (uint32_t i = 0; i < tensors_count(&r->shape); i++) {
        g_free(r->tensors[i].value);
        g_free(r->tensors[i].gradient);
        g_free(r->tensors[i].first);
        g_free(r->tensors[i].second);
    }
    g_free(r->tensors);
    g_free((void *)r->shape.layers);
    g_free((void *)r->shape.packs);
    g_free((void *)r->shape.muon.coefficients);
    g_free(r);
}

/* ---- the optimizer ---- */

/* Whether tensor @i is updated. */
static bool
is_trained(const LhModelReference *r, uint32_t i)
{
    return r->shape.rank == 0 || (i < r->shape.layers_count * LH_MODEL_OF_LAYER &&
                                  i % LH_MODEL_OF_LAYER >= LH_MODEL_QKV_A);
}

static void
add_squares(LhModelReference *r, const LhModelTensor *t)
{
    for (uint64_t i = 0; i < t->rows * t->columns; i++)
        r->squares += t->gradient[i] * t->gradient[i];
}

static void
update(const LhModelReference *r, const LhModelTensor *t, double scale)
{
    const LhModelShape *s = &r->shape;
    const double clock = (double)r->clock;

    for (uint64_t i = 0; i < t->rows * t->columns; i++) {
        const double g = t->gradient[i] * scale;

        t->first[i] = s->beta1 * t->first[i] + (1 - s->beta1) * g;
        t->second[i] = s->beta2 * t->second[i] + (1 - s->beta2) * g * g;
        t->value[i] -= s->learning_rate * (t->first[i] / (1 - pow(s->beta1, clock))) /
                       (sqrt(t->second[i] / (1 - pow(s->beta2, clock))) + s->adam_epsilon);
    }
    lh_model_round_states(&s->states, t);
}

/* The momentum is the first moment. */
static void
update_by_muon(const LhModelReference *r, uint32_t i, double scale)
{
    const LhModelMuon *muon = &r->shape.muon;
    const LhModelTensor *t = &r->tensors[i];
    const uint64_t count = t->rows * t->columns;
    g_autofree double *direction = g_new(double, MAX(count, 1));

    for (uint64_t k = 0; k < count; k++) {
        const double g = t->gradient[k] * scale;

        t->first[k] = muon->momentum * t->first[k] + (1 - muon->momentum) * g;
        direction[k] = muon->mixture * t->first[k] + (1 - muon->mixture) * g;
    }
    if (count > 0)
        lh_model_muon_update(&r->shape, (LhModelWeight)(i % LH_MODEL_OF_LAYER),
                             i / LH_MODEL_OF_LAYER, direction, NULL, direction);
    for (uint64_t k = 0; k < count; k++)
        t->value[k] -= r->shape.learning_rate * direction[k];
    lh_model_round_states(&r->shape.states, t);
}

/* Whether Muon updates tensor @i. */
static bool
is_of_muon(const LhModelReference *r, uint32_t i)
{
    return i < r->shape.layers_count * LH_MODEL_OF_LAYER &&
           lh_model_muon_has(&r->shape, (LhModelWeight)(i % LH_MODEL_OF_LAYER));
}

static void
optimize(LhModelReference *r)
{
    const uint32_t count = tensors_count(&r->shape);
    double scale = 1;

    r->clock++;
    r->squares = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (is_trained(r, i))
            add_squares(r, &r->tensors[i]);
    }
    if (r->shape.clip > 0 && sqrt(r->squares) > r->shape.clip)
        scale = r->shape.clip / sqrt(r->squares);
    for (uint32_t i = 0; i < count; i++) {
        if (is_of_muon(r, i))
            update_by_muon(r, i, scale);
        else if (is_trained(r, i))
            update(r, &r->tensors[i], scale);
    }
}

void
lh_model_reference_step(LhModelReference *r, const uint32_t *tokens, const uint32_t *targets,
                        unsigned threads)
{
    for (uint32_t i = 0; i < tensors_count(&r->shape); i++) {
        for (uint64_t k = 0; k < r->tensors[i].rows * r->tensors[i].columns; k++)
            r->tensors[i].gradient[k] = 0;
    }
    lh_model_reference_gradients(r, tokens, targets, threads);
    optimize(r);
}

/* ---- memory ---- */

#define WEIGHT_NUMBERS 5 /* per weight, with its initial value */
#define RESIDUAL                                                                                   \
    8 /* tensors per layer as wide as the residual stream, including the temporary ones */
#define HEADS 12   /* of the width of q or of k and v, likewise */
#define WIDE 4     /* of the MLP's width */
#define ADAPTERS 8 /* of the rank of adapters; their results count among the others' */

uint64_t
lh_model_reference_bytes(const LhModelShape *s)
{
    const uint64_t rows = s->sequences * s->tokens, q = s->heads * s->head_dim;
    const uint64_t layer =
        RESIDUAL * s->hidden + HEADS * 3 * q + /* k and v have at most as many heads */
        WIDE * lh_model_up_width(s, MAX(s->ffn, s->shared_ffn)) + ADAPTERS * s->rank +
        s->choices * (RESIDUAL * s->hidden + WIDE * lh_model_up_width(s, s->expert_ffn));
    uint64_t weights = 0;

    for (uint32_t i = 0; i < s->layers_count; i++) {
        for (unsigned w = 0; w < LH_MODEL_WEIGHTS; w++) {
            const LhModelTensor t = weight_shape(s, (LhModelWeight)w, &s->layers[i]);

            if (i == 0 || w < LH_MODEL_OF_LAYER)
                weights += t.rows * t.columns;
        }
    }
    return (s->states.moments == LH_MODEL_8BIT ? 2 * weights * sizeof(uint32_t) : 0) +
           sizeof(double) *
               (WEIGHT_NUMBERS * weights + rows * (layer * s->layers_count + 2 * s->vocabulary));
}
