/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights and gradients: which ranks hold, gather and reduce them. Every weight of a layer is a
 * tensor of its own. A unit is gathered and reduced together: a layer, the embedding, the head with
 * its norm; or the whole model.
 */
#include "step/sharding.h"

#include "step/lora.h"
#include "step/memory/host_states.h"

#define GLOBALS (LH_STEP_WEIGHTS - LH_STEP_W_LAYER)

static uint32_t
places(const LhStepPlan *plan)
{
    return plan->layers * LH_STEP_W_LAYER + GLOBALS;
}

static LhStepHeld
held(const LhStepPlan *plan, LhStepWeight weight, uint32_t layer)
{
    weight = lh_step_held_weight(plan, weight);
    return (LhStepHeld){ weight, weight < LH_STEP_W_LAYER ? layer : 0 };
}

uint32_t *
lh_step_weight_place(LhStepRecorder *r, LhStepFamily family, LhStepHeld w)
{
    const uint32_t place = w.weight < LH_STEP_W_LAYER
                               ? w.layer * LH_STEP_W_LAYER + w.weight
                               : r->plan->layers * LH_STEP_W_LAYER + w.weight - LH_STEP_W_LAYER;

    return &r->of_weights[family * places(r->plan) + place];
}

static bool
exists(const LhStepPlan *plan, LhStepHeld w)
{
    return lh_step_matrix(plan, w.weight, w.layer).rows > 0;
}

/* ---- units ---- */

typedef struct {
    uint32_t first, count;
    bool of_layers;
    LhStepHeld globals[GLOBALS]; /* `globals_count` weights outside layers */
    uint32_t globals_count;
} Unit;

/* Unit @number: first the layers, then the embedding, then the head. */
static Unit
unit_of(const LhStepPlan *plan, uint32_t number)
{
    const LhStepHeld embed = { LH_STEP_W_EMBED, 0 }, norm = { LH_STEP_W_NORM_F, 0 };
    const LhStepHeld head_matrix = { LH_STEP_W_HEAD, 0 };

    if (plan->params.behaviour.unit_is_model)
        return (Unit){ 0, plan->layers, true, { embed, norm, head_matrix }, 3 };
    if (number < plan->layers)
        return (Unit){ .first = number, .count = 1, .of_layers = true };
    if (number == plan->layers)
        return (Unit){ .globals = { embed }, .globals_count = 1 };
    return (Unit){ .globals = { norm, head_matrix }, .globals_count = 2 };
}

uint32_t
lh_step_unit_layer(const LhStepPlan *plan, uint32_t number)
{
    return unit_of(plan, number).first;
}

static uint32_t
unit_number(const LhStepPlan *plan, LhStepHeld w)
{
    if (plan->params.behaviour.unit_is_model)
        return 0;
    if (w.weight < LH_STEP_W_LAYER)
        return w.layer;
    return plan->layers + (w.weight == LH_STEP_W_EMBED ? 0 : 1);
}

bool
lh_step_is_here(const LhStepRecorder *r, LhStepHeld w)
{
    return exists(r->plan, w) && lh_step_stage_has(r->plan, r->stage, w.weight, w.layer);
}

GArray *
lh_step_unit_weights(const LhStepRecorder *r, uint32_t number)
{
    const LhStepPlan *plan = r->plan;
    const Unit unit = unit_of(plan, number);
    GArray *weights = g_array_new(FALSE, FALSE, sizeof(LhStepHeld));

    for (uint32_t layer = unit.first; layer < unit.first + unit.count; layer++) {
        for (unsigned weight = 0; weight < LH_STEP_W_LAYER; weight++) {
            const LhStepHeld w = { (LhStepWeight)weight, layer };

            if (lh_step_is_here(r, w))
                g_array_append_val(weights, w);
        }
    }
    for (uint32_t i = 0; i < unit.globals_count; i++) {
        if (lh_step_is_here(r, unit.globals[i]))
            g_array_append_val(weights, unit.globals[i]);
    }
    return weights;
}

GArray *
lh_step_trained_weights(const LhStepRecorder *r, uint32_t number)
{
    GArray *weights = lh_step_unit_weights(r, number);

    for (guint i = weights->len; i-- > 0;) {
        if (!lh_step_is_trained(&r->plan->params, g_array_index(weights, LhStepHeld, i).weight))
            g_array_remove_index(weights, i);
    }
    return weights;
}

uint32_t
lh_step_units(const LhStepPlan *plan)
{
    return plan->params.behaviour.unit_is_model ? 1 : plan->layers + 2;
}

/* ---- tensors ---- */

uint32_t
lh_step_weight_tensor(LhStepRecorder *r, LhStepFamily family, LhStepHeld w, bool stays)
{
    uint32_t *place = lh_step_weight_place(r, family, w);

    if (*place == LH_STEP_NONE)
        *place = lh_step_add_tensor(r, (LhStepTensor){
                                           .family = (uint8_t)family,
                                           .what = (uint8_t)w.weight,
                                           .stays = stays,
                                           .layer = (uint16_t)w.layer,
                                       });
    return *place;
}

uint32_t
lh_step_staying(LhStepRecorder *r, LhStepFamily family)
{
    return lh_step_weight_tensor(r, family, (LhStepHeld){ LH_STEP_W_EMBED, 0 }, true);
}

bool
lh_step_is_sharded(const LhStepPlan *plan)
{
    return plan->params.shard == LH_SHARD_FSDP;
}

bool
lh_step_reduces_each(const LhStepPlan *plan)
{
    const LhStepBehaviour *b = &plan->params.behaviour;
    /* Chunks are at different micro-batches, so the whole model is never at the end of one. */
    const bool never = b->unit_is_model && lh_step_chunks(&plan->params) > 1;

    const bool alone = plan->data_ranks == 1 && plan->params.gradients_leave;

    return (plan->params.shard >= LH_SHARD_ZERO2 || alone) &&
           ((b->reduce_each && !never) || plan->params.micro_batches == 1);
}

/* Whether the result of a reduction is added to those of earlier micro-batches. */
static bool
accumulates(const LhStepPlan *plan)
{
    return lh_step_reduces_each(plan) && plan->params.micro_batches > 1;
}

static bool
gradients_stay(const LhStepPlan *plan)
{
    return !lh_step_reduces_each(plan) &&
           (plan->params.behaviour.gradients_stay || plan->params.micro_batches > 1);
}

/* ---- gathering ---- */

void
lh_step_add_collective(LhStepRecorder *r, const LhStepCollective *c, const LhStepUse *send,
                       const LhStepUse *receive)
{
    GArray *calls = r->list->calls;
    LhStepCall *call = calls->len == 0 ? NULL : &g_array_index(calls, LhStepCall, calls->len - 1);

    if (call == NULL || call->uses_count == LH_STEP_USES_MAX || !call->open) {
        call = lh_step_add_call(r, LH_STEP_CALL_COLLECTIVE, c->stream, c->layer);
        call->collective = (uint8_t)c->kind;
        call->group = (uint8_t)c->group;
        call->gather = c->gather;
        call->open = true;
    }
    lh_step_add_use(r, call, *send);
    lh_step_add_use(r, call, *receive);
}

void
lh_step_close_collective(LhStepRecorder *r)
{
    if (r->list->calls->len > 0)
        g_array_index(r->list->calls, LhStepCall, r->list->calls->len - 1).open = false;
}

/* Copies weights in from the host: the shards for a gather, or whole weights where nothing is
 * sharded. */
static void
fetch(LhStepRecorder *r, const GArray *weights, uint32_t number)
{
    const LhStepFamily family =
        lh_step_is_sharded(r->plan) ? LH_STEP_OF_WEIGHT_SHARD : LH_STEP_OF_WEIGHT;

    for (guint i = 0; i < weights->len && lh_step_fetches(r->plan); i++) {
        const LhStepHeld w = g_array_index(weights, LhStepHeld, i);

        lh_step_fetch(r, w, lh_step_weight_tensor(r, family, w, false), number);
    }
}

/* Whether weights are on the device only around their use. */
static bool
come_and_go(const LhStepPlan *plan)
{
    return lh_step_is_sharded(plan) || lh_step_fetches(plan);
}

static void
gather(LhStepRecorder *r, uint32_t unit)
{
    g_autoptr(GArray) weights = lh_step_unit_weights(r, unit);
    const uint32_t pieces = lh_step_pieces(r->plan);
    const LhStepCollective c = { LH_STEP_STREAM_GATHER, unit_of(r->plan, unit).first,
                                 LH_COLL_ALL_GATHER, LH_STEP_GROUP_DATA, ++r->gathers };

    fetch(r, weights, c.gather);
    for (guint i = 0; i < weights->len && lh_step_is_sharded(r->plan); i++) {
        const LhStepHeld w = g_array_index(weights, LhStepHeld, i);
        const LhStepUse send = { .tensor =
                                     lh_step_weight_tensor(r, LH_STEP_OF_WEIGHT_SHARD, w, true),
                                 .count = 1,
                                 .reads = true };
        const LhStepUse receive = { .tensor = lh_step_weight_tensor(r, LH_STEP_OF_WEIGHT, w, false),
                                    .count = pieces,
                                    .writes = true };

        lh_step_add_collective(r, &c, &send, &receive);
        if (lh_step_fetches(r->plan)) /* each gather has a copy of its own */
            *lh_step_weight_place(r, LH_STEP_OF_WEIGHT_SHARD, w) = LH_STEP_NONE;
    }
    lh_step_close_collective(r);
}

uint32_t
lh_step_weight(LhStepRecorder *r, LhStepWeight weight, uint32_t layer)
{
    const LhStepHeld w = held(r->plan, weight, layer);

    if (!come_and_go(r->plan))
        return lh_step_weight_tensor(r, LH_STEP_OF_WEIGHT, w, true);
    if (*lh_step_weight_place(r, LH_STEP_OF_WEIGHT, w) == LH_STEP_NONE)
        gather(r, unit_number(r->plan, w));
    return *lh_step_weight_place(r, LH_STEP_OF_WEIGHT, w);
}

void
lh_step_drop_weights(LhStepRecorder *r, LhStepWeight any, uint32_t layer)
{
    const uint32_t unit = unit_number(r->plan, held(r->plan, any, layer));
    g_autoptr(GArray) weights = lh_step_unit_weights(r, unit);

    if (!come_and_go(r->plan) || r->plan->params.behaviour.unit_is_model)
        return;
    for (guint i = 0; i < weights->len; i++)
        *lh_step_weight_place(r, LH_STEP_OF_WEIGHT, g_array_index(weights, LhStepHeld, i)) =
            LH_STEP_NONE;
}

/* ---- reducing ---- */

uint32_t
lh_step_gradient(LhStepRecorder *r, LhStepWeight weight, uint32_t layer, bool *starts, bool *fresh)
{
    const LhStepHeld w = held(r->plan, weight, layer);

    *starts = *lh_step_weight_place(r, LH_STEP_OF_GRADIENT, w) == LH_STEP_NONE;
    *fresh = *starts && !gradients_stay(r->plan);
    return lh_step_weight_tensor(r, LH_STEP_OF_GRADIENT, w, gradients_stay(r->plan));
}

/* Sums over the tensor-parallel ranks that hold the same weight. */
static void
reduce_replicas(LhStepRecorder *r, const GArray *weights, uint32_t layer, bool all)
{
    const LhStepPlan *plan = r->plan;
    const LhStepCollective c = { LH_STEP_STREAM_TENSOR, layer, LH_COLL_ALL_REDUCE,
                                 all ? LH_STEP_GROUP_TENSOR : LH_STEP_GROUP_REPLICAS, 0 };

    for (guint i = 0; i < weights->len; i++) {
        const LhStepHeld w = g_array_index(weights, LhStepHeld, i);
        const uint32_t replicas = lh_step_matrix(plan, w.weight, w.layer).replicas;
        const LhStepUse use = { .tensor = *lh_step_weight_place(r, LH_STEP_OF_GRADIENT, w),
                                .count = lh_step_pieces(plan),
                                .reads = true,
                                .writes = true };

        if (replicas > 1 && (replicas == plan->params.tensor_parallel) == all)
            lh_step_add_collective(r, &c, &use, &use);
    }
    lh_step_close_collective(r);
}

/* Sums over the ranks that have other tokens. */
static void
reduce_data(LhStepRecorder *r, const GArray *weights, uint32_t layer)
{
    const LhStepPlan *plan = r->plan;
    const LhShard shard = plan->params.shard;
    const LhStepCollective c = { LH_STEP_STREAM_SCATTER, layer,
                                 shard == LH_SHARD_DDP ? LH_COLL_ALL_REDUCE
                                                       : LH_COLL_REDUCE_SCATTER,
                                 LH_STEP_GROUP_DATA, 0 };

    for (guint i = 0; i < weights->len; i++) {
        const LhStepHeld w = g_array_index(weights, LhStepHeld, i);
        const LhStepUse send = { .tensor = *lh_step_weight_place(r, LH_STEP_OF_GRADIENT, w),
                                 .count = lh_step_pieces(plan),
                                 .reads = true };
        LhStepUse receive = send;

        receive.reads = false;
        receive.writes = true;
        if (shard == LH_SHARD_ZERO1) {
            receive.count = 1;
            receive.own_piece = true;
        } else if (shard >= LH_SHARD_ZERO2) {
            const bool more = accumulates(plan);

            receive.count = 1;
            receive.tensor = lh_step_weight_tensor(
                r, more ? LH_STEP_OF_GRADIENT_SUM : LH_STEP_OF_GRADIENT_SHARD, w, false);
        }
        lh_step_add_collective(r, &c, &send, &receive);
    }
    lh_step_close_collective(r);
}

/* Adds the results of reductions to the shards. */
static void
accumulate(LhStepRecorder *r, const GArray *weights)
{
    for (guint i = 0; i < weights->len; i++) {
        const LhStepHeld w = g_array_index(weights, LhStepHeld, i);
        const LhKernelArgs args = {
            .elements.count = lh_step_piece_elements(r->plan, w.weight, w.layer),
        };
        LhStepCall *call;

        if (lh_step_gradient_leaves(r->plan, r->stage, w.weight, w.layer))
            continue; /* added up on the CPU */
        call = lh_step_add_call(r, LH_STEP_CALL_COMPUTE, LH_STEP_STREAM_COMPUTE, w.layer);
        call->kernel = LH_KERNEL_ID_accumulate;
        call->starts = true;
        lh_step_set_args(r, call, &args);
        lh_step_add_use(r, call,
                        (LhStepUse){ .tensor = *lh_step_weight_place(r, LH_STEP_OF_GRADIENT_SUM, w),
                                     .count = 1,
                                     .reads = true });
        lh_step_add_use(
            r, call,
            (LhStepUse){ .tensor = lh_step_weight_tensor(r, LH_STEP_OF_GRADIENT_SHARD, w, true),
                         .count = 1,
                         .reads = true,
                         .writes = true });
        *lh_step_weight_place(r, LH_STEP_OF_GRADIENT_SUM, w) = LH_STEP_NONE;
    }
}

static void
reduce(LhStepRecorder *r, uint32_t unit)
{
    g_autoptr(GArray) weights = lh_step_trained_weights(r, unit);
    const uint32_t layer = unit_of(r->plan, unit).first;
    uint32_t flat = LH_STEP_NONE; /* autograd concatenates the views of one flat parameter */

    reduce_replicas(r, weights, layer, true);
    reduce_replicas(r, weights, layer, false);
    if (lh_step_is_sharded(r->plan) && r->plan->params.behaviour.unit_is_model) {
        flat = lh_step_add_tensor(
            r, (LhStepTensor){ .family = LH_STEP_OF_FLAT_GRADIENT, .first = r->list->calls->len });
    }
    if (r->plan->data_ranks > 1)
        reduce_data(r, weights, layer);
    if (flat != LH_STEP_NONE)
        g_array_index(r->list->tensors, LhStepTensor, flat).last = r->list->calls->len - 1;
    if (lh_step_reduces_each(r->plan) || r->last)
        lh_step_leave(r, weights,
                      r->plan->data_ranks == 1 ? LH_STEP_OF_GRADIENT
                      : accumulates(r->plan)   ? LH_STEP_OF_GRADIENT_SUM
                                               : LH_STEP_OF_GRADIENT_SHARD,
                      accumulates(r->plan));
    if (r->plan->data_ranks > 1 && accumulates(r->plan))
        accumulate(r, weights);
    for (guint i = 0; i < weights->len && lh_step_reduces_each(r->plan); i++)
        *lh_step_weight_place(r, LH_STEP_OF_GRADIENT, g_array_index(weights, LhStepHeld, i)) =
            LH_STEP_NONE;
}

void
lh_step_reduce_gradients(LhStepRecorder *r, LhStepWeight any, uint32_t layer)
{
    const LhStepPlan *plan = r->plan;
    const uint32_t unit = unit_number(plan, held(plan, any, layer));

    if (!r->last && !lh_step_reduces_each(plan))
        return;
    if (plan->params.behaviour.unit_is_model &&
        (any != LH_STEP_W_EMBED || lh_step_stages(&plan->params) > 1))
        return;
    if (plan->params.behaviour.overlap_reduce)
        reduce(r, unit);
    else
        g_array_append_val(r->waiting, unit);
}

void
lh_step_reduce_model(LhStepRecorder *r)
{
    const uint32_t unit = 0;

    if (!r->plan->params.behaviour.unit_is_model || (!r->last && !lh_step_reduces_each(r->plan)))
        return;
    if (r->plan->params.behaviour.overlap_reduce)
        reduce(r, unit);
    else
        g_array_append_val(r->waiting, unit);
}

void
lh_step_reduce_waiting(LhStepRecorder *r)
{
    for (guint i = 0; i < r->waiting->len; i++)
        reduce(r, g_array_index(r->waiting, uint32_t, i));
    g_array_set_size(r->waiting, 0);
}

/* ---- around a micro-batch ---- */

void
lh_step_begin_weights(LhStepRecorder *r)
{
    const uint32_t count = LH_STEP_FAMILIES * places(r->plan);

    r->waiting = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    r->of_weights = g_new(uint32_t, count);
    for (uint32_t i = 0; i < count; i++)
        r->of_weights[i] = LH_STEP_NONE;
}

void
lh_step_end_weights(LhStepRecorder *r)
{
    g_array_unref(r->waiting);
    g_free(r->of_weights);
}
