/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closed forms of a step. Symbols as in the documentation: rows of a micro-batch on a context-
 * parallel rank, T tensor-parallel ranks, D data- and context-parallel ranks, M micro-batches. In a
 * pipeline they are those of one stage.
 */
#include "step/formulas.h"

#include "step/lora.h"
#include "step/memory/host_state_forms.h"
#include "step/memory/recompute_forms.h"
#include "step/muon/muon_forms.h"
#include "step/packs.h"
#include "step/step_private.h"

#define NORM_BYTES 4U /* of the loss and of the norm of gradients */

static uint32_t
tensor(const LhStepPlan *plan)
{
    return plan->params.tensor_parallel;
}

static uint32_t
stage_of(const LhStepPlan *plan, uint32_t rank)
{
    return lh_step_place_of(plan, rank).stage;
}

static bool
is_last(const LhStepPlan *plan, uint32_t stage)
{
    return stage + 1 == lh_step_stages(&plan->params);
}

/* Iterator over the weights of a stage. */
typedef struct {
    const LhStepPlan *plan;
    uint32_t stage;
    uint32_t layer;
    LhStepWeight weight;
    bool begun;
} Weights;

static bool
next_weight(Weights *w)
{
    do {
        if (!w->begun) {
            w->begun = true;
        } else if (w->weight + 1 == LH_STEP_W_LAYER && w->layer + 1 < w->plan->layers) {
            w->weight = (LhStepWeight)0;
            w->layer++;
        } else {
            w->weight++;
        }
        if (w->weight == LH_STEP_WEIGHTS)
            return false;
        if (w->weight >= LH_STEP_W_LAYER)
            w->layer = 0;
    } while (lh_step_matrix(w->plan, w->weight, w->layer).rows == 0 ||
             !lh_step_stage_has(w->plan, w->stage, w->weight, w->layer));
    return true;
}

static bool
is_norm(LhStepWeight weight)
{
    return weight == LH_STEP_W_NORM1 || weight == LH_STEP_W_NORM2 || weight == LH_STEP_W_NORM_F ||
           weight == LH_STEP_W_O_NORM;
}

/* ---- flops ---- */

/* Number of times that loops over tiles compute the product with @weight again: a tiled MLP does
 * before the gradients of each tile, a checkpointed loss before those of each chunk. */
static uint32_t
again_in_tiles(const LhStepPlan *plan, LhStepWeight weight, bool head)
{
    const LhStepParams *p = &plan->params;
    const LhStepWeight of = lh_step_adapted(weight);
    const bool mlp = of == LH_STEP_W_UP || of == LH_STEP_W_DOWN;

    return (mlp && p->mlp_tile_rows > 0) || (head && lh_step_loss_again(p)) ? 1 : 0;
}

uint64_t
lh_step_dense_flops(const LhProgram *program, uint32_t rank)
{
    const LhStepPlan *plan = program->step;
    Weights w = { .plan = plan, .stage = stage_of(plan, rank) };
    const bool forward_only = plan->params.forward_only;
    uint64_t products = 0; /* one forward, two backward, of which a frozen weight has one */

    while (next_weight(&w)) {
        const LhStepMatrix matrix = lh_step_matrix(plan, w.weight, w.layer);
        const LhKernelArgs product = lh_step_product(plan, &matrix);
        const bool head =
            w.weight == LH_STEP_W_HEAD ||
            (w.weight == LH_STEP_W_EMBED && plan->model.tied_embeddings && is_last(plan, w.stage));

        if (is_norm(w.weight) || (w.weight >= LH_STEP_W_LAYER && !head))
            continue;
        if (forward_only) /* logits of a row of each sequence */
            products += (head ? plan->params.module.attention.batch : product.product.m) *
                        product.product.n * product.product.k;
        else
            products += product.product.m * product.product.n * product.product.k *
                        ((lh_step_is_trained(&plan->params, w.weight) ? 3U : 2U) +
                         (lh_step_product_again(plan, w.weight, w.layer) ? 1U : 0U) +
                         again_in_tiles(plan, w.weight, head));
    }
    return 2 * products * plan->params.micro_batches + lh_muon_flops(plan, rank);
}

/* Adds the attention programs' closed forms over all layers of micro-batches that share a pack. */
static bool
add_claims(const LhStepPlan *plan, LhClaim claim, LhStepPlace place, uint32_t pack, uint64_t *sum)
{
    for (unsigned kind = 0; kind < LH_STEP_KINDS; kind++) {
        const LhStepModule *module = &plan->modules[pack * LH_STEP_KINDS + kind];
        uint64_t forward = 0, backward = 0;

        if (module->forward == NULL)
            continue;
        if (!lh_program_claim(module->forward, claim, place.context, &forward) ||
            (module->backward != NULL &&
             !lh_program_claim(module->backward, claim, place.context, &backward)))
            return false;
        for (uint32_t layer = 0; layer < plan->layers; layer++) {
            const uint64_t passes = lh_step_attention_again(plan, layer) ? 2 : 1;

            if (plan->kinds[layer] == kind && lh_step_stage_of(plan, layer) == place.stage)
                *sum += passes * forward + backward;
        }
    }
    return true;
}

/* Sum of the attention programs' closed forms over all layers and micro-batches. */
static bool
attention_claims(const LhStepPlan *plan, LhClaim claim, uint32_t rank, uint64_t *sum)
{
    const LhStepPlace place = lh_step_place_of(plan, rank);
    const uint32_t data = place.data / plan->params.module.ranks;
    bool claims = true;

    *sum = 0;
    if (plan->packs_count == 1) {
        claims = add_claims(plan, claim, place, 0, sum);
        *sum *= plan->params.micro_batches;
        return claims;
    }
    for (uint32_t i = 0; claims && i < plan->params.micro_batches; i++)
        claims = add_claims(plan, claim, place, lh_step_pack_number(plan, data, i), sum);
    return claims;
}

bool
lh_step_attention_flops(const LhProgram *program, uint32_t rank, uint64_t *flops)
{
    return attention_claims(program->step, LH_CLAIM_FLOPS, rank, flops);
}

/* Number of query-key pairs that the mask allows in a document of @n tokens. */
static LhWide
pairs_within(const LhMaskRule *mask, LhWide n)
{
    const LhWide window = mask->window > 0 && (LhWide)mask->window < n ? (LhWide)mask->window : n;

    return mask->causal ? n * window - window * (window - 1) / 2 : n * n;
}

/* The same of one sequence, summed over its documents. */
static LhWide
pairs_of(const LhStepPlan *plan, LhStepKind kind, const LhDocumentPack *pack)
{
    const LhMaskRule *mask = &plan->modules[kind].forward->params.mask;
    LhWide pairs = 0;

    if (pack->count == 0)
        return pairs_within(mask, plan->params.module.attention.seq_length);
    for (uint32_t i = 0; i < pack->count; i++)
        pairs += pairs_within(mask, pack->ends[i] - (i == 0 ? 0 : pack->ends[i - 1]));
    return pairs;
}

/* Flops of the forward pass of one sequence and layer: 4 d per pair and head; for linear attention
 * two products of a token with the d x d state of a head. */
static LhWide
attention_forward(const LhStepPlan *plan, LhStepKind kind, const LhDocumentPack *pack)
{
    const LhWide heads = plan->model.num_attention_heads, d = plan->model.kv_channels;

    if (kind == LH_STEP_LINEAR)
        return 4 * heads * d * d * (LhWide)plan->params.module.attention.seq_length;
    return 4 * heads * d * pairs_of(plan, kind, pack);
}

/* The same of a layer, over all sequences. */
static LhWide
attention_of_layer(const LhStepPlan *plan, LhStepKind kind)
{
    const LhStepParams *p = &plan->params;
    LhWide flops = 0;

    if (plan->packs_count == 1)
        return (LhWide)p->data_parallel * p->micro_batches * p->module.attention.batch *
               attention_forward(plan, kind, &plan->packs[0]);
    for (uint32_t i = 0; i < p->packs_count; i++)
        flops += p->module.attention.batch * attention_forward(plan, kind, &p->packs[i]);
    return flops;
}

LhStepFlops
lh_step_flops(const LhProgram *program)
{
    const LhStepPlan *plan = program->step;
    const LhStepParams *p = &plan->params;
    const uint32_t ranks = (uint32_t)lh_step_ranks(p);
    const LhStepParameters all = lh_step_parameters(program);
    const LhWide sequences =
        (LhWide)p->module.attention.batch * p->data_parallel * p->micro_batches;
    const LhWide logits = (LhWide)plan->model.vocab_size * plan->model.hidden_size;
    const uint32_t each = p->lora_rank == 0 ? 6 : 4;
    const unsigned passes = p->forward_only ? 1 : 3;
    LhStepFlops f = {
        .model = p->forward_only
                     ? 2 * ((all.active - logits) * lh_step_tokens(p) + logits * sequences)
                     : (each * (LhWide)all.active + 6 * (LhWide)all.adapters) * lh_step_tokens(p),
    };

    for (unsigned kind = 0; kind < LH_STEP_KINDS; kind++) {
        if (plan->kind_layers[kind] > 0)
            f.model +=
                passes * plan->kind_layers[kind] * attention_of_layer(plan, (LhStepKind)kind);
    }
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint64_t flops = 0;

        lh_step_attention_flops(program, rank, &flops);
        f.attention += flops;
        f.dense += lh_step_dense_flops(program, rank);
    }
    return f;
}

/* ---- communication ---- */

static uint64_t
gradient_bytes(const LhStepPlan *plan)
{
    return lh_dtype_bytes(lh_step_gradient_dtype(plan));
}

/* Number of reductions of the gradients. */
static uint64_t
reductions(const LhStepPlan *plan)
{
    const LhStepBehaviour *b = &plan->params.behaviour;
    /* Chunks of a model that is one unit end a micro-batch at different times. */
    const bool apart = b->unit_is_model && lh_step_chunks(&plan->params) > 1;
    const bool each = plan->params.shard >= LH_SHARD_ZERO2 && b->reduce_each && !apart;

    return each ? plan->params.micro_batches : 1;
}

/* Bytes that each member sends in an all-reduce of @bytes, whose shares are even. */
static uint64_t
all_reduced(uint64_t bytes, uint64_t members)
{
    return members > 1 ? 2 * (members - 1) * (bytes / members) : 0;
}

static uint64_t
piece_elements(const LhStepPlan *plan, const Weights *w)
{
    return lh_step_piece_elements(plan, w->weight, w->layer);
}

/* Bytes sent to reduce gradients of weights that several tensor-parallel ranks hold. */
static uint64_t
replicas_sent(const LhStepPlan *plan, uint32_t stage)
{
    Weights w = { .plan = plan, .stage = stage };
    uint64_t bytes = 0;

    while (next_weight(&w)) {
        const uint32_t replicas = lh_step_matrix(plan, w.weight, w.layer).replicas;

        if (lh_step_is_trained(&plan->params, w.weight))
            bytes += all_reduced(
                lh_step_pieces(plan) * piece_elements(plan, &w) * gradient_bytes(plan), replicas);
    }
    return bytes * reductions(plan);
}

/* Bytes of a rank's rows of the residual stream, or of their gradient. */
static uint64_t
rows_bytes(const LhStepPlan *plan)
{
    return plan->rows / tensor(plan) * plan->model.hidden_size *
           lh_dtype_bytes(plan->params.module.attention.dtype);
}

/*
 * Sequence parallelism gathers rows before a layer's products and scatters sums after them: N1, A,
 * N2 and M forward, dx twice and the gradients of N1 and N2 backward. Around the layers it moves
 * the embedding, its gradient unless it is frozen, the head's input and its gradient. Recomputation
 * repeats moves of the forward pass, and gathered inputs may be gathered once more; the head's too,
 * unless chunks of the loss have gathered it. Statistics of the loss are three numbers per row. A
 * forward pass alone has the moves of the forward pass, and gathers the last row of each sequence.
 */
static uint64_t
tensor_sent(const LhStepPlan *plan, uint32_t stage)
{
    const uint64_t t = tensor(plan);
    const LhAttention *a = &plan->params.module.attention;
    const bool forward_only = plan->params.forward_only;
    const uint64_t last_rows = a->batch * plan->model.hidden_size * lh_dtype_bytes(a->dtype);
    const uint64_t stats = forward_only ? last_rows : plan->rows * 3 * NORM_BYTES;
    const uint64_t head = is_last(plan, stage) ? stats : 0;
    const uint64_t layers = lh_step_stage_layers(&plan->params, stage);
    uint64_t moves = 8 * layers + (stage == 0 ? (plan->params.lora_rank == 0 ? 2 : 1) : 0) +
                     (is_last(plan, stage) ? 2 : 0);

    if (t == 1)
        return 0;
    if (forward_only)
        return plan->params.micro_batches * (t - 1) *
               ((4 * layers + (stage == 0 ? 1 : 0)) * rows_bytes(plan) + head);
    if (plan->params.behaviour.gather_again && plan->params.lora_rank == 0 &&
        is_last(plan, stage) && !lh_step_loss_in_chunks(&plan->params))
        moves++;
    for (uint32_t layer = 0; layer < plan->layers; layer++)
        moves += lh_step_stage_of(plan, layer) == stage ? lh_step_moves_again(plan, layer) : 0;
    return plan->params.micro_batches * (t - 1) * (moves * rows_bytes(plan) + head) +
           replicas_sent(plan, stage);
}

uint64_t
lh_step_gathers(const LhStepPlan *plan, LhStepWeight weight, uint32_t layer)
{
    const LhStepBehaviour *b = &plan->params.behaviour;
    const uint64_t m = plan->params.micro_batches, halves = b->halves ? 2 : 0;
    const bool pipeline = lh_step_stages(&plan->params) > 1;
    const bool forward_only = plan->params.forward_only;

    if (b->unit_is_model)
        return pipeline ? 1 : m;
    if (weight >= LH_STEP_W_LAYER) /* a tied head gathers the embedding's matrix again */
        return weight == LH_STEP_W_EMBED && plan->model.tied_embeddings && !pipeline ? 2 * m : m;
    if (pipeline && !b->reshard)
        return 1 + (forward_only ? halves / 2 : halves) * m;
    if (forward_only)
        return m * (1 + halves / 2);
    return m * (1 + halves + (b->reshard ? 1 : 0) + (lh_step_weights_again(plan, layer) ? 1 : 0));
}

/* Bytes sent for the norm of all gradients, over all ranks that hold distinct parts. */
static uint64_t
norm_sent(const LhStepPlan *plan)
{
    const LhStepParams *p = &plan->params;
    const uint64_t ranks = lh_step_ranks(p), stages = lh_step_stages(p);

    return all_reduced(ranks * NORM_BYTES,
                       p->shard == LH_SHARD_DDP ? tensor(plan) * stages : ranks);
}

/* Bytes sent for weights and gradients, the loss and the norm of gradients. */
static uint64_t
data_sent(const LhStepPlan *plan, uint32_t stage)
{
    const LhStepParams *p = &plan->params;
    const uint64_t d = plan->data_ranks;
    const uint64_t weight = lh_dtype_bytes(p->module.attention.dtype);
    Weights w = { .plan = plan, .stage = stage };
    uint64_t bytes = 0;

    if (is_last(plan, stage) && !p->forward_only)
        bytes += all_reduced(lh_step_ranks(p) * NORM_BYTES, d);
    if (p->behaviour.clip > 0 && !p->forward_only)
        bytes += norm_sent(plan);
    while (next_weight(&w)) {
        const uint64_t piece = piece_elements(plan, &w);
        const bool trained = lh_step_is_trained(p, w.weight);

        if (p->shard == LH_SHARD_FSDP)
            bytes += (d - 1) * piece * weight * lh_step_gathers(plan, w.weight, w.layer);
        if (!trained || p->forward_only)
            continue;
        if (p->shard == LH_SHARD_DDP)
            bytes += all_reduced(piece * gradient_bytes(plan), d);
        else
            bytes += (d - 1) * piece * gradient_bytes(plan) * reductions(plan);
        if (p->shard == LH_SHARD_ZERO1 || p->shard == LH_SHARD_ZERO2)
            bytes += (d - 1) * piece * weight;
    }
    return bytes;
}

/*
 * Bytes sent between stages: the rows after every chunk but the last of the model, and the
 * gradients before every chunk but the first. If the head is tied, also the gradient of the
 * embedding's matrix.
 */
static uint64_t
pipeline_sent(const LhStepPlan *plan, uint32_t stage)
{
    const LhStepParams *p = &plan->params;
    const uint64_t chunks = lh_step_chunks(p);
    const bool ends = stage == 0 || is_last(plan, stage);
    uint64_t bytes = p->micro_batches * rows_bytes(plan) * (2 * chunks - (ends ? 1 : 0));

    if (lh_step_stages(p) == 1)
        return 0;
    if (p->forward_only)
        return p->micro_batches * rows_bytes(plan) * (chunks - (is_last(plan, stage) ? 1 : 0));
    if (ends && p->lora_rank == 0 && lh_step_is_shared(plan, LH_STEP_W_EMBED))
        bytes +=
            all_reduced(lh_step_piece_elements(plan, LH_STEP_W_EMBED, 0) * gradient_bytes(plan), 2);
    return bytes;
}

bool
lh_step_bytes_sent(const LhProgram *program, LhDimension dimension, uint32_t rank, uint64_t *bytes)
{
    const LhStepPlan *plan = program->step;

    switch (dimension) {
    case LH_DIMENSION_TENSOR:
        *bytes = tensor_sent(plan, stage_of(plan, rank)) + lh_muon_tensor_sent(plan, rank);
        return true;
    case LH_DIMENSION_CONTEXT:
        return attention_claims(plan, LH_CLAIM_BYTES_SENT, rank, bytes);
    case LH_DIMENSION_PIPELINE:
        *bytes = pipeline_sent(plan, stage_of(plan, rank));
        return true;
    default:
        *bytes = data_sent(plan, stage_of(plan, rank)) + lh_muon_data_sent(plan, rank);
        return true;
    }
}

/* ---- states ---- */

/* Keys and values of a rank's own tokens: all layers of its stage, all micro-batches. With more
 * tensor-parallel ranks than key-value heads, each has one. */
static uint64_t
cache_bytes(const LhStepPlan *plan, uint32_t stage)
{
    const LhModel *m = &plan->model;
    const uint64_t heads = MAX(m->num_query_groups / tensor(plan), 1);

    return (uint64_t)lh_step_stage_layers(&plan->params, stage) * plan->params.micro_batches *
           plan->rows * 2 * heads * m->kv_channels *
           lh_dtype_bytes(plan->params.module.attention.dtype);
}

LhStepStateBytes
lh_step_state_bytes(const LhProgram *program, uint32_t rank)
{
    const LhStepPlan *plan = program->step;
    const LhShard shard = plan->params.shard;
    const uint64_t pieces = lh_step_pieces(plan);
    Weights w = { .plan = plan, .stage = stage_of(plan, rank) };
    const LhStepHostStates host = lh_step_host_states(program, rank);
    uint64_t all = 0, piece = 0; /* of all weights; of those that are trained */
    uint64_t weights;

    while (next_weight(&w)) {
        all += piece_elements(plan, &w);
        if (lh_step_is_trained(&plan->params, w.weight))
            piece += piece_elements(plan, &w);
    }
    weights = plan->params.offload_param ? 0
                                         : all * (shard == LH_SHARD_FSDP ? 1 : pieces) *
                                               lh_dtype_bytes(plan->params.module.attention.dtype);
    if (plan->params.forward_only)
        return (LhStepStateBytes){ .weights = weights, .cache = cache_bytes(plan, w.stage) };
    return (LhStepStateBytes){
        .weights = weights,
        .gradients = piece * (shard >= LH_SHARD_ZERO2 ? 1 : pieces) * gradient_bytes(plan),
        .optimizer = host.device_optimizer,
        .host = host.weights + host.optimizer,
    };
}

/* ---- pipelines ---- */

uint32_t
lh_step_in_flight(const LhStepParams *params, uint32_t stage)
{
    const uint32_t stages = lh_step_stages(params), chunks = lh_step_chunks(params);
    const uint32_t m = params->micro_batches;

    if (params->forward_only)
        return 1;
    if (params->pipeline_order == LH_PIPELINE_GPIPE)
        return m;
    if (chunks == 1)
        return MIN(m, stages - stage);
    return MIN(m * chunks, 2 * (stages - stage - 1) + (chunks - 1) * stages + 1);
}
