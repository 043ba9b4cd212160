/* SPDX-License-Identifier: Apache-2.0 */
/* Weights and tokens of executed training steps. Errors are computed in step_compare.c. */
#include "execute/step_numerics.h"

#include "base/rng.h"
#include "base/saturate.h"
#include "execute/step_moments.h"
#include "execute/step_muon.h"
#include "kernels/cpu/rows.h"
#include "reference/reference.h"
#include "step/layer_info.h"
#include "step/lora.h"
#include "step/modules.h"
#include "step/packs.h"
#include "step/step.h"
#include "step/tensor_sizes.h"

#include <math.h>
#include <string.h>

G_STATIC_ASSERT((int)LH_MODEL_WEIGHTS == (int)LH_STEP_WEIGHTS);
G_STATIC_ASSERT((int)LH_MODEL_OF_LAYER == (int)LH_STEP_W_LAYER);
G_STATIC_ASSERT((int)LH_MODEL_O_NORM == (int)LH_STEP_W_O_NORM);
G_STATIC_ASSERT((int)LH_MODEL_DOWN == (int)LH_STEP_W_DOWN);
G_STATIC_ASSERT((int)LH_MODEL_EXPERT_DOWN == (int)LH_STEP_W_EXPERT_DOWN);
G_STATIC_ASSERT((int)LH_MODEL_DOWN_B == (int)LH_STEP_W_DOWN_B);
G_STATIC_ASSERT((int)LH_MODEL_HEAD == (int)LH_STEP_W_HEAD);

/* ---- the model ---- */

static bool
has(const LhProgram *program, LhStepWeight weight, uint32_t layer)
{
    return lh_step_whole(program->plan, weight, layer).rows > 0;
}

/* Width of the MLP, from the rows of a layer's last matrix; 0 if no layer has one of that kind. */
static uint64_t
width_of_mlp(const LhProgram *program, bool dense)
{
    const LhStepPlan *plan = program->plan;

    for (uint32_t i = 0; i < lh_step_layers(plan); i++) {
        if (lh_step_is_dense(plan, i) == dense)
            return lh_step_whole(plan, LH_STEP_W_DOWN, i).rows;
    }
    return 0;
}

/* Documents of each sequence; NULL: those of the layers' masks. Caller frees. */
static LhDocumentPack *
packs_of(const LhStepParams *p, uint64_t sequences)
{
    LhDocumentPack *packs = p->packs != NULL ? g_new(LhDocumentPack, sequences) : NULL;

    for (uint64_t i = 0; packs != NULL && i < sequences; i++) {
        const uint64_t micro_batch = i / p->module.attention.batch;

        packs[i] = lh_step_pack_of(p, (uint32_t)(micro_batch / p->micro_batches),
                                   (uint32_t)(micro_batch % p->micro_batches));
    }
    return packs;
}

/* Shape of the model. The caller provides @layers and @coefficients, which the shape borrows. */
static LhModelShape
shape_of(const LhProgram *program, LhModelLayer *layers, double (*coefficients)[3])
{
    const LhStepParams *p = lh_step_params(program);
    const LhModel *m = p->model;
    LhModelShape shape = {
        .hidden = m->hidden_size,
        .heads = m->num_attention_heads,
        .head_dim = m->kv_channels,
        .ffn = width_of_mlp(program, true),
        .vocabulary = m->vocab_size,
        .layers = layers,
        .layers_count = (uint32_t)m->num_layers,
        .gated_mlp = m->gated_mlp,
        .experts = lh_step_experts(program->plan),
        .choices = lh_step_choices(program->plan),
        .expert_ffn = m->num_experts > 0 ? m->ffn_hidden_size : 0,
        .shared_ffn = width_of_mlp(program, false),
        .rank = p->lora_rank,
        .adapts_qkv = has(program, LH_STEP_W_Q_B, 0),
        .adapts_out = has(program, LH_STEP_W_OUT_B, 0),
        .adapts_up = has(program, LH_STEP_W_UP_B, 0),
        .adapts_down = has(program, LH_STEP_W_DOWN_B, 0),
        .layer_norm = m->weights.biases,
        .tied = !has(program, LH_STEP_W_HEAD, 0),
        .o_norms = p->tensor_parallel, /* each rank normalises its own heads */
        .epsilon = LH_STEP_NORM_EPSILON,
        .rotary_base = m->rotary_base,
        .sequences = (uint64_t)p->module.attention.batch * p->micro_batches * p->data_parallel,
        .tokens = p->module.attention.seq_length,
        .learning_rate = p->learning_rate,
        .beta1 = LH_STEP_BETA1,
        .beta2 = LH_STEP_BETA2,
        .adam_epsilon = LH_STEP_ADAM_EPSILON,
        .clip = p->behaviour.clip,
        .states = lh_step_model_states(program),
        .muon = lh_step_model_muon(program, coefficients),
    };

    for (uint32_t i = 0; i < shape.layers_count; i++) {
        const LhStepKindAttention of =
            lh_step_kind_attention(program->plan, lh_step_layer_kind(program->plan, i));

        layers[i] = (LhModelLayer){ .attention = of.attention,
                                    .mask = of.mask,
                                    .gate = has(program, LH_STEP_W_GATE, i),
                                    .experts = !lh_step_is_dense(program->plan, i) };
    }
    return shape;
}

uint64_t
lh_step_numerics_bytes(const LhProgram *program, unsigned threads)
{
    g_autofree LhModelLayer *layers =
        g_new(LhModelLayer, lh_step_params(program)->model->num_layers);
    double coefficients[LH_MUON_STEPS_MAX][3];
    const LhModelShape shape = shape_of(program, layers, coefficients);
    const LhAttention attention = { .batch = (uint32_t)shape.sequences,
                                    .seq_length = shape.tokens,
                                    .heads = (uint32_t)shape.heads,
                                    .groups = (uint32_t)shape.heads, /* upper bound */
                                    .head_dim = (uint32_t)shape.head_dim };

    /* The first reference includes the initial weights. A disturbed one exists only after the other
     * has finished its step, so work memory counts once. */
    return lh_plus(2 * lh_model_reference_bytes(&shape),
                   lh_reference_work_bytes(&attention, threads));
}

/* ---- numbers ---- */

enum { STREAM_TOKENS, STREAM_WEIGHTS };

#define GLOBALS (LH_STEP_WEIGHTS - LH_STEP_W_LAYER)

/* Random streams are used in pairs; each weight has its own. Those of experts and of adapters are
 * far apart from the others, so that no other weight depends on their presence. */
#define OF_EXPERTS (UINT64_C(1) << 32)
#define OF_ADAPTERS (UINT64_C(1) << 33)

static uint64_t
stream_of(LhStepWeight weight, uint32_t layer)
{
    uint64_t number;

    if (weight >= LH_STEP_W_LAYER)
        number = (uint64_t)weight - LH_STEP_W_LAYER;
    else if (weight >= LH_STEP_W_ADAPTERS)
        number = OF_ADAPTERS + (uint64_t)layer * (LH_STEP_W_LAYER - LH_STEP_W_ADAPTERS) + weight -
                 LH_STEP_W_ADAPTERS;
    else if (weight >= LH_STEP_W_ROUTER)
        number = OF_EXPERTS + (uint64_t)layer * (LH_STEP_W_ADAPTERS - LH_STEP_W_ROUTER) + weight -
                 LH_STEP_W_ROUTER;
    else
        number = (uint64_t)layer * LH_STEP_W_ROUTER + weight + GLOBALS;
    return 2 * (STREAM_WEIGHTS + number);
}

/* Uniform random number with variance 1. */
static double
spread(uint64_t seed, uint64_t stream, uint64_t index)
{
    return sqrt(3) * (2 * lh_rng_uniform(seed, stream, index) - 1);
}

static bool
is_norm(LhStepWeight weight)
{
    return weight == LH_STEP_W_NORM1 || weight == LH_STEP_W_NORM2 || weight == LH_STEP_W_NORM_F ||
           weight == LH_STEP_W_O_NORM;
}

/* Whether the element is a bias of a norm: biases follow the weights. The norm of attention's
 * output has none. */
static bool
is_bias(const LhProgram *program, LhStepWeight weight, uint64_t element)
{
    const LhModel *m = lh_step_params(program)->model;

    return weight != LH_STEP_W_O_NORM && m->weights.biases && element >= m->hidden_size;
}

/*
 * A step chooses the experts of a row in its own precision, the reference in fp64. Where logits are
 * nearly equal, the two would train different models, so logits are kept apart: each token's row of
 * the embedding starts with one number per expert, which separates its chosen experts from the
 * others by much more than layers add to them. Routers weigh these numbers more than all others.
 * The weights of the chosen experts still depend on the whole row.
 */
#define PREFERENCE 8.0
#define ROUTER_SPREAD 0.25

/* The experts of a token are consecutive, modulo their number. */
static double
preference(const LhProgram *program, uint64_t token, uint64_t column)
{
    const uint32_t experts = lh_step_experts(program->plan);
    const uint32_t choices = lh_step_choices(program->plan);

    if (column >= experts || choices == experts)
        return 0;
    return (column + experts - token % experts) % experts < choices ? PREFERENCE : -PREFERENCE;
}

/* Matrices preserve the magnitude of their inputs; norms are near 1 and their biases near 0; rows
 * of the embedding are small, so that the first layers matter. */
#define NORM_SPREAD 0.1
#define EMBEDDING_SPREAD 0.5
/* An adapter's B begins with zeros in training, where A has no gradient; here it adds about half as
 * much as its matrix. */
#define ADAPTER_SPREAD 0.5

/*
 * The norm of attention's output divides a row by its magnitude or, if that is small, by
 * sqrt(epsilon). Some rows nearly cancel out, more of them for narrower heads. Divided by their
 * magnitude, they and their rounding errors would become as large as all other rows. Where that
 * norm is present, values are therefore about as small as sqrt(epsilon), so that all rows are
 * divided by about the same.
 */
static bool
is_small(const LhProgram *program, LhStepWeight weight, uint32_t layer, bool value)
{
    return (weight == LH_STEP_W_KV || weight == LH_STEP_W_KV_B) && value &&
           has(program, LH_STEP_W_O_NORM, layer);
}

static double
draw(const LhProgram *program, uint64_t seed, LhStepWeight weight, uint32_t layer, uint64_t element)
{
    const LhStepParams *p = lh_step_params(program);
    const LhStepExtent whole = lh_step_whole(program->plan, weight, layer);
    const uint32_t experts = lh_step_matrix(program->plan, weight, layer).experts;
    const uint64_t row = element / whole.columns, column = element % whole.columns;
    const uint64_t rows = whole.rows / MAX(experts, 1);
    const double x = spread(seed, stream_of(weight, layer), element);
    const enum lh_storage storage = lh_dtype_storage(p->module.attention.dtype);
    double value;
    uint64_t cell;

    if (is_norm(weight))
        value = NORM_SPREAD * x + (is_bias(program, weight, element) ? 0 : 1);
    else if (weight == LH_STEP_W_EMBED)
        value = EMBEDDING_SPREAD * x + preference(program, row, column);
    else if (weight == LH_STEP_W_HEAD)
        value = x / sqrt((double)whole.columns);
    else if (weight == LH_STEP_W_ROUTER)
        value = ROUTER_SPREAD * x / sqrt((double)whole.rows) + (row == column ? 1 : 0);
    else if (is_small(program, weight, layer, 2 * column >= whole.columns))
        value = x * sqrt(LH_STEP_NORM_EPSILON / (double)rows);
    else
        value = x / sqrt((double)rows);
    if (lh_step_adapted(weight) != weight && !lh_step_is_a(weight))
        value *= ADAPTER_SPREAD;
    lh_element_put(&cell, storage, 0, value);
    return lh_element_get(&cell, storage, 0);
}

/* Token at @position of a sequence; its target is the token at the next position. */
static uint32_t
token_of(const LhStepNumerics *n, uint64_t step, uint64_t sequence, uint64_t position)
{
    const LhModelShape *s = &n->reference->shape;
    const uint64_t index =
        ((n->new_tokens ? step : 0) * s->sequences + sequence) * (s->tokens + 1) + position;

    return (uint32_t)(lh_rng_bits(n->seed, STREAM_TOKENS, index) % s->vocabulary);
}

/* Initial values of a weight, in the order of the reference's tensors. */
static double **
initial_at(const LhStepNumerics *n, LhStepWeight weight, uint32_t layer)
{
    return &n->initial[lh_model_tensor(n->reference, (LhModelWeight)weight, layer) -
                       n->reference->tensors];
}

static void
fill_weight(const LhStepNumerics *n, LhStepWeight weight, uint32_t layer)
{
    LhModelTensor *t = lh_model_tensor(n->reference, (LhModelWeight)weight, layer);
    const uint64_t count = t->rows * t->columns;

    for (uint64_t i = 0; i < count; i++)
        t->value[i] = draw(n->program, n->seed, weight, layer, i);
    if (n->blocks != NULL) {
        uint32_t *blocks = g_new0(uint32_t, count);

        t->blocks_count = lh_step_moments_blocks(n->program, weight, layer, blocks);
        t->blocks = n->blocks[t - n->reference->tensors] = blocks;
    }
    *initial_at(n, weight, layer) = g_memdup2(t->value, count * sizeof(double));
}

const double *
lh_step_initial(const LhStepNumerics *n, LhStepWeight weight, uint32_t layer)
{
    return *initial_at(n, weight, layer);
}

LhStepNumerics *
lh_step_numerics_new(const LhProgram *program, uint64_t seed, bool new_tokens)
{
    g_autofree LhModelLayer *layers =
        g_new(LhModelLayer, lh_step_params(program)->model->num_layers);
    double coefficients[LH_MUON_STEPS_MAX][3];
    LhModelShape shape = shape_of(program, layers, coefficients);
    g_autofree LhDocumentPack *packs = packs_of(lh_step_params(program), shape.sequences);
    LhStepNumerics *n = g_new0(LhStepNumerics, 1);

    shape.packs = packs;
    *n = (LhStepNumerics){ .program = program,
                           .seed = seed,
                           .new_tokens = new_tokens,
                           .reference = lh_model_reference_new(&shape) };
    n->initial_count = shape.layers_count * LH_STEP_W_LAYER + GLOBALS;
    n->initial = g_new0(double *, n->initial_count);
    if (shape.states.moments == LH_MODEL_8BIT)
        n->blocks = g_new0(uint32_t *, n->initial_count);
    for (unsigned w = 0; w < LH_STEP_WEIGHTS; w++) {
        for (uint32_t i = 0; i < (w < LH_STEP_W_LAYER ? shape.layers_count : 1); i++)
            fill_weight(n, (LhStepWeight)w, i);
    }
    return n;
}

void
lh_step_numerics_free(LhStepNumerics *n)
{
    if (n == NULL)
        return;
    for (uint32_t i = 0; i < n->initial_count; i++) {
        g_free(n->initial[i]);
        if (n->blocks != NULL)
            g_free(n->blocks[i]);
    }
    g_free(n->initial);
    g_free(n->blocks);
    lh_model_reference_free(n->reference);
    g_free(n);
}

uint32_t *
lh_step_numerics_tokens(const LhStepNumerics *n, uint64_t step, uint64_t next)
{
    const LhModelShape *s = &n->reference->shape;
    uint32_t *tokens = g_new(uint32_t, s->sequences * s->tokens);

    for (uint64_t i = 0; i < s->sequences * s->tokens; i++)
        tokens[i] = token_of(n, step, i / s->tokens, i % s->tokens + next);
    return tokens;
}

/* Computes the next step of @reference, which is this one's or has the same shape. */
static void
advance(const LhStepNumerics *n, LhModelReference *reference)
{
    g_autofree uint32_t *tokens = lh_step_numerics_tokens(n, reference->clock, 0);
    g_autofree uint32_t *targets = lh_step_numerics_tokens(n, reference->clock, 1);

    lh_model_reference_step(reference, tokens, targets, n->threads);
}

void
lh_step_numerics_advance(LhStepNumerics *n, unsigned threads)
{
    const gint64 started_us = g_get_monotonic_time();

    n->threads = threads;
    advance(n, n->reference);
    n->seconds += (double)(g_get_monotonic_time() - started_us) / G_USEC_PER_SEC;
}

/* A reference with the initial weights, and @noise. Caller frees. */
static LhModelReference *
disturbed(const LhStepNumerics *n, const LhModelNoise *noise)
{
    LhModelReference *r = lh_model_reference_new(&n->reference->shape);

    r->noise = *noise;
    for (uint32_t i = 0; i < n->initial_count; i++) {
        r->tensors[i].blocks = n->reference->tensors[i].blocks;
        r->tensors[i].blocks_count = n->reference->tensors[i].blocks_count;
        if (n->initial[i] != NULL)
            memcpy(r->tensors[i].value, n->initial[i],
                   r->tensors[i].rows * r->tensors[i].columns * sizeof(double));
    }
    return r;
}

LhModelReference *
lh_step_numerics_disturbed(const LhStepNumerics *n, const LhModelNoise *noise)
{
    LhModelReference *r = disturbed(n, noise);

    advance(n, r);
    return r;
}

LhModelForward *
lh_step_numerics_forward(const LhStepNumerics *n, const LhModelRows *rows,
                         const LhModelNoise *noise, unsigned threads)
{
    g_autofree uint32_t *tokens = lh_step_numerics_tokens(n, 0, 0);
    LhModelReference *r = noise != NULL ? disturbed(n, noise) : n->reference;
    LhModelForward *forward = lh_model_forward_new(r, tokens, rows, threads);

    if (r != n->reference)
        lh_model_reference_free(r);
    return forward;
}

/* ---- loading ---- */

static void
load_tokens(const LhStepLoad *load, const LhStepContents *c, unsigned char *data)
{
    const uint64_t next = c->state.family == LH_STEP_OF_TARGETS ? 1 : 0;

    for (uint64_t i = 0; i < c->count; i++) {
        const uint64_t row = i % c->positions.count;
        const uint32_t token =
            token_of(load->numerics, load->step, c->sequence + i / c->positions.count,
                     c->positions.start + row * c->positions.stride + next);

        memcpy(data + i * sizeof(token), &token, sizeof(token));
    }
}

static void
load_weight(const LhStepLoad *load, const LhSlot *slot, const LhStepContents *c,
            unsigned char *data)
{
    const double *initial = lh_step_initial(load->numerics, c->state.weight, c->state.layer);
    uint64_t whole;

    for (uint64_t i = 0; i < c->count; i++) {
        if (lh_step_whole_element(c, c->first + i, &whole))
            lh_element_put(data, lh_dtype_storage(slot->dtype), i, initial[whole]);
    }
}

void
lh_step_load(void *load_data, uint32_t rank, uint16_t slot, uint32_t part, unsigned char *data)
{
    const LhStepLoad *load = load_data;
    const LhProgram *program = load->numerics->program;
    const LhSlot *s = &program->slots[slot];
    LhStepContents c;

    if (!lh_step_contents(program, rank, slot, part, &c))
        return;
    if (c.state.family == LH_STEP_OF_TOKENS || c.state.family == LH_STEP_OF_TARGETS)
        load_tokens(load, &c, data);
    else if (load->last != NULL)
        memcpy(data, lh_run_output(load->last, program, rank, slot, part), s->part_bytes);
    else if (c.state.family == LH_STEP_OF_WEIGHT || c.state.family == LH_STEP_OF_WEIGHT_SHARD ||
             c.state.family == LH_STEP_OF_HOST_WEIGHT || c.state.family == LH_STEP_OF_MASTER)
        load_weight(load, s, &c, data);
}

/* ---- the loss ---- */

double
lh_step_loss(const LhProgram *program, const LhRunResult *result)
{
    const uint32_t rank = result->ranks_count - 1; /* belongs to the stage that computes the loss */

    for (uint32_t slot = 0; slot < program->slots_count; slot++) {
        LhStepContents c;

        if (lh_step_contents(program, rank, (uint16_t)slot, 0, &c) &&
            c.state.family == LH_STEP_OF_LOSS)
            return lh_element_get(lh_run_output(result, program, rank, (uint16_t)slot, 0),
                                  LH_STORAGE_FP32, 0);
    }
    return NAN;
}
