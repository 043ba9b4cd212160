/* SPDX-License-Identifier: Apache-2.0 */
#include "reference/model_pass.h"

#include "reference/model_adapters.h"
#include "reference/model_experts.h"
#include "reference/model_math.h"
#include "reference/model_noise.h"

#include <glib.h>
#include <math.h>

/* Intermediate results of a layer, kept for the backward pass; all owned. */
typedef struct {
    double *x, *n1, *q_rows, *kv_rows, *o, *o_normed, *gate, *gated, *x1, *n2, *up, *p;
    double *qkv_low, *out_low, *up_low, *down_low; /* inputs of adapters times A; NULL: none */
    LhReference attention;                         /* q, k, v by heads; o, and gradients */
    LhMixturePass mixture;
} Layer;

typedef struct {
    LhModelReference *r;
    const LhModelShape *s;
    uint64_t rows;
    unsigned threads;
    const uint32_t *tokens, *targets;
    Layer *layers;
    double *x; /* the residual stream; in the backward pass its gradient */
} Step;

static double *
new_rows(const Step *step, uint64_t width)
{
    return g_new0(double, step->rows *width);
}

static double *
duplicate_rows(const Step *step, const double *from, uint64_t width)
{
    return g_memdup2(from, step->rows * width * sizeof(double));
}

/* ---- noise ---- */

static void
disturb_rows(const Step *step, double *rows, uint64_t width)
{
    lh_model_disturb(step->r, rows, step->rows, width);
}

/* ---- products and norms ---- */

static LhModelTensor *
weight_of(const Step *step, LhModelWeight weight, uint32_t layer)
{
    if (weight == LH_MODEL_HEAD && step->s->tied)
        weight = LH_MODEL_EMBED;
    return lh_model_tensor(step->r, weight, layer);
}

static LhMathProduct
product_with(const Step *step, const LhModelTensor *w)
{
    return (LhMathProduct){ step->rows, w->rows, w->columns, step->threads };
}

/* Returns y = x w; caller frees. */
static double *
multiply(const Step *step, const LhModelTensor *w, const double *x)
{
    const LhMathProduct p = product_with(step, w);
    double *y = new_rows(step, w->columns);

    lh_math_product(&p, x, w->value, y);
    disturb_rows(step, y, w->columns);
    return y;
}

/* dx += dy w^T, and adds the gradient of w. */
static void
multiply_back(const Step *step, const LhModelTensor *w, const double *x, const double *dy,
              double *dx)
{
    const LhMathProduct p = product_with(step, w);

    lh_math_product_dx(&p, dy, w->value, dx);
    lh_model_product_dw(step->r, &p, x, dy, w->gradient);
    disturb_rows(step, dx, w->rows);
}

/* A matrix and its adapter, which may be absent; B follows A among the weights. */
typedef struct {
    LhModelTensor *w, *b;
    LhAdapter adapter;
} Adapted;

static Adapted
adapted(const Step *step, LhModelWeight weight, LhModelWeight a, uint32_t layer)
{
    return (Adapted){ weight_of(step, weight, layer),
                      weight_of(step, (LhModelWeight)(a + 1), layer),
                      { step->r, weight_of(step, a, layer), step->rows, step->threads } };
}

static double *
multiply_adapted(const Step *step, const Adapted *m, const double *x, double **low)
{
    double *y = multiply(step, m->w, x);

    *low = lh_adapter_in(&m->adapter, x);
    lh_adapter_out(&m->adapter, m->b, *low, y);
    return y;
}

static void
multiply_adapted_back(const Step *step, const Adapted *m, const double *x, const double *low,
                      const double *dy, double *dx)
{
    g_autofree double *dlow = new_rows(step, step->s->rank);

    multiply_back(step, m->w, x, dy, dx);
    lh_adapter_out_back(&m->adapter, m->b, low, dy, dlow);
    lh_adapter_in_back(&m->adapter, x, dlow, dx);
}

static LhMathNorm
norm_of(const Step *step)
{
    return (LhMathNorm){ step->rows, step->s->hidden, 1, step->s->layer_norm, step->s->epsilon };
}

static LhMathNorm
output_norm_of(const Step *step)
{
    const LhModelShape *s = step->s;

    return (LhMathNorm){ step->rows, s->heads * s->head_dim, MAX(s->o_norms, 1), false,
                         s->epsilon };
}

static double *
normalise(const Step *step, const LhMathNorm *n, const LhModelTensor *w, const double *x)
{
    double *y = new_rows(step, n->width);

    lh_math_norm(n, x, w->value, y);
    disturb_rows(step, y, n->width);
    return y;
}

/* ---- attention ---- */

/* Conversion of a tensor from rows to heads. */
typedef enum {
    TURNED, /* q and k */
    AS_IS,  /* v, o */
} Way;

/* Maps columns [first, first + heads d) of rows of @width to a tensor of the reference by heads. */
typedef struct {
    Way way;
    uint64_t width, first;
    const LhReference *attention;
    double *tensor;
    uint32_t heads;
} Columns;

/* Addresses of one head of a token: in the rows outside and in the tensor. */
typedef struct {
    double *outside, *by_heads;
    uint64_t position;
} Head;

/* Heads are numbered consecutively, those of a row first. */
static Head
head_at(const Step *step, const Columns *c, double *rows, uint64_t index)
{
    const uint64_t row = index / c->heads, tokens = step->s->tokens;
    const uint32_t head = (uint32_t)(index % c->heads);
    const uint64_t at = lh_reference_row(c->attention, row / tokens, head, c->heads, row % tokens);

    return (Head){
        .outside = rows + row * c->width + c->first + head * step->s->head_dim,
        .by_heads = c->tensor + at * c->attention->stride,
        .position = row % tokens,
    };
}

static LhReference
new_attention(const Step *step, const LhModelLayer *layer)
{
    LhAttention all = layer->attention;
    LhReference a;

    all.batch = (uint32_t)step->s->sequences;
    all.dtype = LH_DTYPE_FP32;
    lh_reference_init(&a, &all, &layer->mask);
    a.packs = step->s->packs;
    return a;
}

static void
to_heads(const Step *step, const LhModelLayer *layer, const Columns *columns, double *rows)
{
    const uint64_t d = step->s->head_dim;
    const bool turned = columns->way == TURNED;

    for (uint64_t i = 0; i < step->rows * columns->heads; i++) {
        const Head at = head_at(step, columns, rows, i);

        for (uint64_t c = 0; c < d; c++)
            at.by_heads[c] =
                turned && layer->attention.linear ? lh_math_silu(at.outside[c]) : at.outside[c];
        if (turned && !layer->attention.linear && step->s->rotary_base > 0)
            lh_math_rotate(at.by_heads, d, step->s->rotary_base, at.position, false);
    }
}

/* Converts gradients from heads to rows; @before are the rows of the forward pass. */
static void
from_heads(const Step *step, const LhModelLayer *layer, const Columns *columns, double *before,
           double *rows)
{
    const uint64_t d = step->s->head_dim;
    const bool turned = columns->way == TURNED;

    for (uint64_t i = 0; i < step->rows * columns->heads; i++) {
        const Head at = head_at(step, columns, rows, i);
        const Head of = head_at(step, columns, before, i);

        if (turned && !layer->attention.linear && step->s->rotary_base > 0)
            lh_math_rotate(at.by_heads, d, step->s->rotary_base, at.position, true);
        for (uint64_t c = 0; c < d; c++)
            at.outside[c] =
                at.by_heads[c] *
                (turned && layer->attention.linear ? lh_math_silu_slope(of.outside[c]) : 1);
    }
}

static void
attend_layer(const Step *step, const LhModelLayer *layer, Layer *l)
{
    const LhReferenceWork work = { .forward = true, .threads = step->threads };
    const uint64_t d = step->s->head_dim, groups = layer->attention.groups;
    const uint32_t heads = (uint32_t)step->s->heads;
    const uint32_t kv_heads = (uint32_t)groups;
    LhReference *a = &l->attention;

    *a = new_attention(step, layer);
    l->o = new_rows(step, heads * d);
    to_heads(step, layer, &(Columns){ TURNED, heads * d, 0, a, a->q, heads }, l->q_rows);
    to_heads(step, layer, &(Columns){ TURNED, 2 * groups * d, 0, a, a->k, kv_heads }, l->kv_rows);
    to_heads(step, layer, &(Columns){ AS_IS, 2 * groups * d, groups * d, a, a->v, kv_heads },
             l->kv_rows);
    lh_model_disturb(step->r, a->q, lh_reference_q_rows(&a->attention), a->stride);
    lh_model_disturb(step->r, a->k, lh_reference_k_rows(&a->attention), a->stride);
    lh_model_disturb(step->r, a->v, lh_reference_k_rows(&a->attention), a->stride);
    lh_reference_run(a, &work);
    lh_model_disturb_heads(step->r, a, a->o, lh_reference_q_rows(&a->attention), a->o_size2, NULL);
    from_heads(step, layer, &(Columns){ AS_IS, heads * d, 0, a, a->o, heads }, l->o, l->o);
}

/* Computes the gradients of the rows of q and kv from do. */
static void
attend_back(const Step *step, const LhModelLayer *layer, Layer *l, double *dout, double *dq,
            double *dkv)
{
    const LhReferenceWork work = { .threads = step->threads };
    const uint64_t d = step->s->head_dim, groups = layer->attention.groups;
    const uint32_t heads = (uint32_t)step->s->heads;
    const uint32_t kv_heads = (uint32_t)groups;
    LhReference *a = &l->attention;

    to_heads(step, layer, &(Columns){ AS_IS, heads * d, 0, a, a->dout, heads }, dout);
    lh_reference_run(a, &work);
    lh_model_disturb_heads(step->r, a, a->dq, lh_reference_q_rows(&a->attention), a->dq_size2,
                           a->dq_delta2);
    lh_model_disturb_heads(step->r, a, a->dk, lh_reference_k_rows(&a->attention), a->dk_size2,
                           a->dk_delta2);
    lh_model_disturb_heads(step->r, a, a->dv, lh_reference_k_rows(&a->attention), a->dv_size2,
                           NULL);
    from_heads(step, layer, &(Columns){ TURNED, heads * d, 0, a, a->dq, heads }, l->q_rows, dq);
    from_heads(step, layer, &(Columns){ TURNED, 2 * groups * d, 0, a, a->dk, kv_heads }, l->kv_rows,
               dkv);
    from_heads(step, layer, &(Columns){ AS_IS, 2 * groups * d, groups * d, a, a->dv, kv_heads },
               l->kv_rows, dkv);
}

/* ---- a layer ---- */

static void
gate_output(const Step *step, uint32_t index, Layer *l)
{
    const LhMathNorm n = output_norm_of(step);

    l->o_normed = normalise(step, &n, weight_of(step, LH_MODEL_O_NORM, index), l->o);
    l->gate = multiply(step, weight_of(step, LH_MODEL_GATE, index), l->n1);
    l->gated = new_rows(step, n.width);
    for (uint64_t i = 0; i < step->rows * n.width; i++)
        l->gated[i] = l->o_normed[i] * lh_math_sigmoid(l->gate[i]);
    disturb_rows(step, l->gated, n.width);
}

static void
add_to(const Step *step, double *to, const double *from)
{
    for (uint64_t i = 0; i < step->rows * step->s->hidden; i++)
        to[i] += from[i];
    disturb_rows(step, to, step->s->hidden);
}

static LhMixture
mixture_of(const Step *step, uint32_t index)
{
    const LhModelShape *s = step->s;

    return (LhMixture){
        .rows = step->rows,
        .hidden = s->hidden,
        .ffn = s->expert_ffn,
        .experts = s->experts,
        .choices = s->choices,
        .gated = s->gated_mlp,
        .threads = step->threads,
        .model = step->r,
        .router = weight_of(step, LH_MODEL_ROUTER, index),
        .up = weight_of(step, LH_MODEL_EXPERT_UP, index),
        .down = weight_of(step, LH_MODEL_EXPERT_DOWN, index),
    };
}

static void
mlp(const Step *step, uint32_t index, Layer *l)
{
    const LhModelLayer *layer = &step->s->layers[index];
    const uint64_t ffn = lh_model_ffn(step->s, layer);

    if (layer->experts) {
        const LhMixture mixture = mixture_of(step, index);

        g_autofree double *m = new_rows(step, step->s->hidden);

        lh_mixture_forward(&mixture, l->n2, m, &l->mixture);
        add_to(step, step->x, m);
    }
    if (ffn > 0) {
        const Adapted up = adapted(step, LH_MODEL_UP, LH_MODEL_UP_A, index);
        const Adapted down = adapted(step, LH_MODEL_DOWN, LH_MODEL_DOWN_A, index);
        g_autofree double *m = NULL;

        l->up = multiply_adapted(step, &up, l->n2, &l->up_low);
        l->p = new_rows(step, ffn);
        lh_math_activate(step->rows, ffn, step->s->gated_mlp, l->up, l->p);
        disturb_rows(step, l->p, ffn);
        m = multiply_adapted(step, &down, l->p, &l->down_low);
        add_to(step, step->x, m);
    }
}

static void
layer_forward(Step *step, uint32_t index)
{
    const LhModelLayer *layer = &step->s->layers[index];
    const LhMathNorm norm = norm_of(step);
    const Adapted q = adapted(step, LH_MODEL_Q, LH_MODEL_QKV_A, index);
    const Adapted out = adapted(step, LH_MODEL_OUT, LH_MODEL_OUT_A, index);
    Layer *l = &step->layers[index];
    g_autofree double *a = NULL;

    l->x = duplicate_rows(step, step->x, step->s->hidden);
    l->n1 = normalise(step, &norm, weight_of(step, LH_MODEL_NORM1, index), l->x);
    l->q_rows = multiply_adapted(step, &q, l->n1, &l->qkv_low);
    l->kv_rows = multiply(step, weight_of(step, LH_MODEL_KV, index), l->n1);
    lh_adapter_out(&q.adapter, weight_of(step, LH_MODEL_KV_B, index), l->qkv_low, l->kv_rows);
    attend_layer(step, layer, l);
    if (layer->gate)
        gate_output(step, index, l);
    a = multiply_adapted(step, &out, layer->gate ? l->gated : l->o, &l->out_low);
    add_to(step, step->x, a);
    l->x1 = duplicate_rows(step, step->x, step->s->hidden);
    l->n2 = normalise(step, &norm, weight_of(step, LH_MODEL_NORM2, index), l->x1);
    mlp(step, index, l);
}

static void
normalise_back(const Step *step, const LhModelTensor *w, const double *x, const double *dy)
{
    const LhMathNorm norm = norm_of(step);

    lh_math_norm_back(&norm, x, w->value, dy, step->x, w->gradient);
    disturb_rows(step, step->x, step->s->hidden);
}

static void
mlp_back(const Step *step, uint32_t index, const Layer *l)
{
    const LhModelLayer *layer = &step->s->layers[index];
    const uint64_t ffn = lh_model_ffn(step->s, layer);
    g_autofree double *dp = new_rows(step, ffn);
    g_autofree double *dup = new_rows(step, lh_model_up_width(step->s, ffn));
    g_autofree double *dn = new_rows(step, step->s->hidden);

    if (layer->experts) {
        const LhMixture mixture = mixture_of(step, index);

        lh_mixture_backward(&mixture, &l->mixture, l->n2, step->x, dn);
        disturb_rows(step, dn, step->s->hidden);
    }
    if (ffn > 0) {
        const Adapted up = adapted(step, LH_MODEL_UP, LH_MODEL_UP_A, index);
        const Adapted down = adapted(step, LH_MODEL_DOWN, LH_MODEL_DOWN_A, index);

        multiply_adapted_back(step, &down, l->p, l->down_low, step->x, dp);
        lh_math_activate_back(step->rows, ffn, step->s->gated_mlp, l->up, dp, dup);
        disturb_rows(step, dup, lh_model_up_width(step->s, ffn));
        multiply_adapted_back(step, &up, l->n2, l->up_low, dup, dn);
    }
    normalise_back(step, weight_of(step, LH_MODEL_NORM2, index), l->x1, dn);
}

/* Computes the gradient of attention's output from that of the gated output; adds to @dn1. */
static double *
gate_back(const Step *step, uint32_t index, const Layer *l, const double *dgated, double *dn1)
{
    const LhMathNorm n = output_norm_of(step);
    const LhModelTensor *w = weight_of(step, LH_MODEL_O_NORM, index);
    g_autofree double *dnormed = new_rows(step, n.width), *dgate = new_rows(step, n.width);
    double *dout = new_rows(step, n.width);

    for (uint64_t i = 0; i < step->rows * n.width; i++) {
        const double s = lh_math_sigmoid(l->gate[i]);

        dnormed[i] = dgated[i] * s;
        dgate[i] = dgated[i] * l->o_normed[i] * s * (1 - s);
    }
    disturb_rows(step, dnormed, n.width);
    disturb_rows(step, dgate, n.width);
    multiply_back(step, weight_of(step, LH_MODEL_GATE, index), l->n1, dgate, dn1);
    lh_math_norm_back(&n, l->o, w->value, dnormed, dout, w->gradient);
    disturb_rows(step, dout, n.width);
    return dout;
}

static void
attention_back(const Step *step, uint32_t index, Layer *l)
{
    const LhModelLayer *layer = &step->s->layers[index];
    const uint64_t q = step->s->heads * step->s->head_dim;
    const uint64_t kv = 2 * layer->attention.groups * step->s->head_dim;
    g_autofree double *dgated = new_rows(step, q), *dq = new_rows(step, q);
    g_autofree double *dkv = new_rows(step, kv), *dn = new_rows(step, step->s->hidden);
    g_autofree double *dout = NULL, *dlow = new_rows(step, step->s->rank);
    const Adapted out = adapted(step, LH_MODEL_OUT, LH_MODEL_OUT_A, index);
    const Adapted qkv = adapted(step, LH_MODEL_Q, LH_MODEL_QKV_A, index);

    multiply_adapted_back(step, &out, layer->gate ? l->gated : l->o, l->out_low, step->x, dgated);
    dout = layer->gate ? gate_back(step, index, l, dgated, dn) : duplicate_rows(step, dgated, q);
    attend_back(step, layer, l, dout, dq, dkv);
    disturb_rows(step, dq, q);
    disturb_rows(step, dkv, kv);
    multiply_back(step, weight_of(step, LH_MODEL_Q, index), l->n1, dq, dn);
    multiply_back(step, weight_of(step, LH_MODEL_KV, index), l->n1, dkv, dn);
    lh_adapter_out_back(&qkv.adapter, qkv.b, l->qkv_low, dq, dlow);
    lh_adapter_out_back(&qkv.adapter, weight_of(step, LH_MODEL_KV_B, index), l->qkv_low, dkv, dlow);
    lh_adapter_in_back(&qkv.adapter, l->n1, dlow, dn);
    normalise_back(step, weight_of(step, LH_MODEL_NORM1, index), l->x, dn);
}

static void
clear_layer(Layer *l)
{
    double *const all[] = { l->x,       l->n1,      l->q_rows, l->kv_rows, l->o,  l->o_normed,
                            l->gate,    l->gated,   l->x1,     l->n2,      l->up, l->p,
                            l->qkv_low, l->out_low, l->up_low, l->down_low };

    for (unsigned i = 0; i < G_N_ELEMENTS(all); i++)
        g_free(all[i]);
    lh_reference_clear(&l->attention);
    lh_mixture_clear(&l->mixture);
}

/* ---- around the layers ---- */

static void
embed(const Step *step)
{
    const uint64_t h = step->s->hidden;
    const LhModelTensor *table = weight_of(step, LH_MODEL_EMBED, 0);

    for (uint64_t i = 0; i < step->rows * h; i++)
        step->x[i] = table->value[step->tokens[i / h] * h + i % h];
}

static void
embed_back(const Step *step)
{
    const uint64_t h = step->s->hidden;
    const LhModelTensor *table = weight_of(step, LH_MODEL_EMBED, 0);

    for (uint64_t i = 0; i < step->rows * h; i++)
        table->gradient[step->tokens[i / h] * h + i % h] += step->x[i];
}

/* Returns the cross-entropy of a row and replaces its logits by their gradient. */
static double
row_loss(double *logits, uint64_t vocabulary, uint32_t target, double weight)
{
    double most = logits[0], sum, loss;

    for (uint64_t i = 1; i < vocabulary; i++)
        most = fmax(most, logits[i]);
    sum = exp(logits[0] - most);
    for (uint64_t i = 1; i < vocabulary; i++)
        sum += exp(logits[i] - most);
    loss = most + log(sum) - logits[target];
    for (uint64_t i = 0; i < vocabulary; i++)
        logits[i] = weight * (exp(logits[i] - most) / sum - (i == target ? 1 : 0));
    return loss * weight;
}

/*
 * Final norm, head and loss, forward and backward. The head has a row per token of the vocabulary,
 * so logits are a product with its transpose.
 */
static void
head(Step *step)
{
    const LhModelTensor *w = weight_of(step, LH_MODEL_HEAD, 0);
    const LhModelTensor *norm_w = weight_of(step, LH_MODEL_NORM_F, 0);
    const LhMathNorm norm = norm_of(step);
    const uint64_t v = step->s->vocabulary, h = step->s->hidden;
    const LhMathProduct p = { step->rows, v, h, step->threads };
    g_autofree double *x = step->x, *xf = normalise(step, &norm, norm_w, step->x);
    g_autofree double *logits = new_rows(step, v), *dxf = new_rows(step, h);

    lh_math_product_dx(&p, xf, w->value, logits);
    disturb_rows(step, logits, v);
    step->r->loss = 0;
    for (uint64_t row = 0; row < step->rows; row++)
        step->r->loss += row_loss(logits + row * v, v, step->targets[row], 1 / (double)step->rows);
    disturb_rows(step, logits, v); /* now their gradient */
    lh_math_product(&p, logits, w->value, dxf);
    disturb_rows(step, dxf, h);
    lh_model_product_dw(step->r, &p, logits, xf, w->gradient);
    step->x = new_rows(step, h);
    normalise_back(step, norm_w, x, dxf);
}

double *
lh_model_reference_layers(LhModelReference *r, const uint32_t *tokens, unsigned threads,
                          LhReference *attention)
{
    Step step = { .r = r,
                  .s = &r->shape,
                  .rows = r->shape.sequences * r->shape.tokens,
                  .threads = threads,
                  .tokens = tokens };
    const LhMathNorm norm = norm_of(&step);
    double *xf;

    step.layers = g_new0(Layer, r->shape.layers_count);
    step.x = new_rows(&step, r->shape.hidden);
    embed(&step);
    for (uint32_t i = 0; i < r->shape.layers_count; i++) {
        layer_forward(&step, i);
        attention[i] = step.layers[i].attention;
        step.layers[i].attention = (LhReference){ 0 };
        clear_layer(&step.layers[i]);
    }
    xf = normalise(&step, &norm, weight_of(&step, LH_MODEL_NORM_F, 0), step.x);
    g_free(step.layers);
    g_free(step.x);
    return xf;
}

void
lh_model_reference_gradients(LhModelReference *r, const uint32_t *tokens, const uint32_t *targets,
                             unsigned threads)
{
    Step step = { .r = r,
                  .s = &r->shape,
                  .rows = r->shape.sequences * r->shape.tokens,
                  .threads = threads,
                  .tokens = tokens,
                  .targets = targets };

    step.layers = g_new0(Layer, r->shape.layers_count);
    step.x = new_rows(&step, r->shape.hidden);
    embed(&step);
    for (uint32_t i = 0; i < r->shape.layers_count; i++)
        layer_forward(&step, i);
    head(&step);
    for (uint32_t i = r->shape.layers_count; i-- > 0;) {
        mlp_back(&step, i, &step.layers[i]);
        attention_back(&step, i, &step.layers[i]);
        clear_layer(&step.layers[i]);
    }
    embed_back(&step);
    g_free(step.layers);
    g_free(step.x);
}
