/*
 * Weights and gradients: who holds, gathers, reduces and updates them. Every weight of a layer is a
 * tensor of its own; a unit is what is gathered and reduced together: a layer, the embedding, the
 * head with its norm; or the whole model.
 */
#include "step/stage_calls.h"

#define GLOBALS (LH_STEP_WEIGHTS - LH_STEP_W_LAYER)

static uint32_t
places(const LhStepPlan *plan)
{
    return plan->layers * LH_STEP_W_LAYER + GLOBALS;
}

/* A weight of the model, by its layer (0 for those that belong to none). */
typedef struct {
    LhStepWeight weight;
    uint32_t layer;
} Weight;

static Weight
held(const LhStepPlan *plan, LhStepWeight weight, uint32_t layer)
{
    weight = lh_step_held_weight(plan, weight);
    return (Weight){ weight, weight < LH_STEP_W_LAYER ? layer : 0 };
}

static uint32_t *
family_place(LhStepRecorder *r, LhStepFamily family, Weight w)
{
    const uint32_t place = w.weight < LH_STEP_W_LAYER
                               ? w.layer * LH_STEP_W_LAYER + w.weight
                               : r->plan->layers * LH_STEP_W_LAYER + w.weight - LH_STEP_W_LAYER;

    return &r->of_weights[family * places(r->plan) + place];
}

static bool
exists(const LhStepPlan *plan, Weight w)
{
    return lh_step_matrix(plan, w.weight, w.layer).rows > 0;
}

/* ---- units ---- */

typedef struct {
    uint32_t first, count;
    bool of_layers;
    Weight globals[GLOBALS]; /* likewise `globals_count` */
    uint32_t globals_count;
} Unit;

/* A unit by its number: the layers, the embedding, the head. */
static Unit
unit_of(const LhStepPlan *plan, uint32_t number)
{
    const Weight embed = { LH_STEP_W_EMBED, 0 }, norm = { LH_STEP_W_NORM_F, 0 };
    const Weight head_matrix = { LH_STEP_W_HEAD, 0 };

    if (plan->params.behaviour.unit_is_model)
        return (Unit){ 0, plan->layers, true, { embed, norm, head_matrix }, 3 };
    if (number < plan->layers)
        return (Unit){ .first = number, .count = 1, .of_layers = true };
    if (number == plan->layers)
        return (Unit){ .globals = { embed }, .globals_count = 1 };
    return (Unit){ .globals = { norm, head_matrix }, .globals_count = 2 };
}

static uint32_t
unit_number(const LhStepPlan *plan, Weight w)
{
    if (plan->params.behaviour.unit_is_model)
        return 0;
    if (w.weight < LH_STEP_W_LAYER)
        return w.layer;
    return plan->layers + (w.weight == LH_STEP_W_EMBED ? 0 : 1);
}

static bool
is_here(const LhStepRecorder *r, Weight w)
{
    return exists(r->plan, w) && lh_step_stage_has(r->plan, r->stage, w.weight, w.layer);
}

/* The weights of a unit that the stage has, each once. Caller unrefs. */
static GArray *
weights_of(const LhStepRecorder *r, uint32_t number)
{
    const LhStepPlan *plan = r->plan;
    const Unit unit = unit_of(plan, number);
    GArray *weights = g_array_new(FALSE, FALSE, sizeof(Weight));

    for (uint32_t layer = unit.first; layer < unit.first + unit.count; layer++) {
        for (unsigned weight = 0; weight < LH_STEP_W_LAYER; weight++) {
            const Weight w = { (LhStepWeight)weight, layer };

            if (is_here(r, w))
                g_array_append_val(weights, w);
        }
    }
    for (uint32_t i = 0; i < unit.globals_count; i++) {
        if (is_here(r, unit.globals[i]))
            g_array_append_val(weights, unit.globals[i]);
    }
    return weights;
}

static uint32_t
units(const LhStepPlan *plan)
{
    return plan->params.behaviour.unit_is_model ? 1 : plan->layers + 2;
}

/* ---- tensors ---- */

/* The tensor of @family that belongs to a weight; made if it is not there. */
static uint32_t
tensor_of(LhStepRecorder *r, LhStepFamily family, Weight w, bool stays)
{
    uint32_t *place = family_place(r, family, w);

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
    return tensor_of(r, family, (Weight){ LH_STEP_W_EMBED, 0 }, true);
}

static bool
is_sharded(const LhStepPlan *plan)
{
    return plan->params.shard == LH_SHARD_FSDP;
}

bool
lh_step_reduces_each(const LhStepPlan *plan)
{
    const LhStepBehaviour *b = &plan->params.behaviour;
    /* Chunks are at different micro-batches: the whole model is never at the end of one. */
    const bool never = b->unit_is_model && lh_step_chunks(&plan->params) > 1;

    return plan->params.shard >= LH_SHARD_ZERO2 &&
           ((b->reduce_each && !never) || plan->params.micro_batches == 1);
}

/* What a reduction gives is added to what earlier ones gave. */
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

/* Puts the tensors of @weights into as few collectives as they fit into. */
typedef struct {
    LhStepStream stream;
    uint32_t layer;
    LhCollectiveKind kind;
    LhStepGroup group;
    uint32_t gather;
} Collective;

static void
add_collective(LhStepRecorder *r, const Collective *c, const LhStepUse *send,
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

static void
close_collective(LhStepRecorder *r)
{
    if (r->list->calls->len > 0)
        g_array_index(r->list->calls, LhStepCall, r->list->calls->len - 1).open = false;
}

static void
gather(LhStepRecorder *r, uint32_t unit)
{
    g_autoptr(GArray) weights = weights_of(r, unit);
    const uint32_t pieces = lh_step_pieces(r->plan);
    const Collective c = { LH_STEP_STREAM_GATHER, unit_of(r->plan, unit).first, LH_COLL_ALL_GATHER,
                           LH_STEP_GROUP_DATA, ++r->gathers };

    for (guint i = 0; i < weights->len; i++) {
        const Weight w = g_array_index(weights, Weight, i);
        const LhStepUse send = { .tensor = tensor_of(r, LH_STEP_OF_WEIGHT_SHARD, w, true),
                                 .count = 1,
                                 .reads = true };
        const LhStepUse receive = { .tensor = tensor_of(r, LH_STEP_OF_WEIGHT, w, false),
                                    .count = pieces,
                                    .writes = true };

        add_collective(r, &c, &send, &receive);
    }
    close_collective(r);
}

uint32_t
lh_step_weight(LhStepRecorder *r, LhStepWeight weight, uint32_t layer)
{
    const Weight w = held(r->plan, weight, layer);

    if (!is_sharded(r->plan))
        return tensor_of(r, LH_STEP_OF_WEIGHT, w, true);
    if (*family_place(r, LH_STEP_OF_WEIGHT, w) == LH_STEP_NONE)
        gather(r, unit_number(r->plan, w));
    return *family_place(r, LH_STEP_OF_WEIGHT, w);
}

void
lh_step_drop_weights(LhStepRecorder *r, LhStepWeight any, uint32_t layer)
{
    const uint32_t unit = unit_number(r->plan, held(r->plan, any, layer));
    g_autoptr(GArray) weights = weights_of(r, unit);

    if (!is_sharded(r->plan) || r->plan->params.behaviour.unit_is_model)
        return;
    for (guint i = 0; i < weights->len; i++)
        *family_place(r, LH_STEP_OF_WEIGHT, g_array_index(weights, Weight, i)) = LH_STEP_NONE;
}

/* ---- reducing ---- */

uint32_t
lh_step_gradient(LhStepRecorder *r, LhStepWeight weight, uint32_t layer, bool *starts, bool *fresh)
{
    const Weight w = held(r->plan, weight, layer);

    *starts = *family_place(r, LH_STEP_OF_GRADIENT, w) == LH_STEP_NONE;
    *fresh = *starts && !gradients_stay(r->plan);
    return tensor_of(r, LH_STEP_OF_GRADIENT, w, gradients_stay(r->plan));
}

/* Sums over the tensor-parallel ranks that have the same weight. */
static void
reduce_replicas(LhStepRecorder *r, const GArray *weights, uint32_t layer, bool all)
{
    const LhStepPlan *plan = r->plan;
    const Collective c = { LH_STEP_STREAM_TENSOR, layer, LH_COLL_ALL_REDUCE,
                           all ? LH_STEP_GROUP_TENSOR : LH_STEP_GROUP_REPLICAS, 0 };

    for (guint i = 0; i < weights->len; i++) {
        const Weight w = g_array_index(weights, Weight, i);
        const uint32_t replicas = lh_step_matrix(plan, w.weight, w.layer).replicas;
        const LhStepUse use = { .tensor = *family_place(r, LH_STEP_OF_GRADIENT, w),
                                .count = lh_step_pieces(plan),
                                .reads = true,
                                .writes = true };

        if (replicas > 1 && (replicas == plan->params.tensor_parallel) == all)
            add_collective(r, &c, &use, &use);
    }
    close_collective(r);
}

/* Sums over the ranks that have other tokens. */
static void
reduce_data(LhStepRecorder *r, const GArray *weights, uint32_t layer)
{
    const LhStepPlan *plan = r->plan;
    const LhShard shard = plan->params.shard;
    const Collective c = { LH_STEP_STREAM_SCATTER, layer,
                           shard == LH_SHARD_DDP ? LH_COLL_ALL_REDUCE : LH_COLL_REDUCE_SCATTER,
                           LH_STEP_GROUP_DATA, 0 };

    for (guint i = 0; i < weights->len; i++) {
        const Weight w = g_array_index(weights, Weight, i);
        const LhStepUse send = { .tensor = *family_place(r, LH_STEP_OF_GRADIENT, w),
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
            receive.tensor =
                tensor_of(r, more ? LH_STEP_OF_GRADIENT_SUM : LH_STEP_OF_GRADIENT_SHARD, w, false);
        }
        add_collective(r, &c, &send, &receive);
    }
    close_collective(r);
}

/* Adds what was reduced to the shards. */
static void
accumulate(LhStepRecorder *r, const GArray *weights)
{
    for (guint i = 0; i < weights->len; i++) {
        const Weight w = g_array_index(weights, Weight, i);
        const LhKernelArgs args = {
            .elements.count = lh_step_piece_elements(r->plan, w.weight, w.layer),
        };
        LhStepCall *call =
            lh_step_add_call(r, LH_STEP_CALL_COMPUTE, LH_STEP_STREAM_COMPUTE, w.layer);

        call->kernel = LH_KERNEL_ID_accumulate;
        call->starts = true;
        lh_step_set_args(r, call, &args);
        lh_step_add_use(r, call,
                        (LhStepUse){ .tensor = *family_place(r, LH_STEP_OF_GRADIENT_SUM, w),
                                     .count = 1,
                                     .reads = true });
        lh_step_add_use(r, call,
                        (LhStepUse){ .tensor = tensor_of(r, LH_STEP_OF_GRADIENT_SHARD, w, true),
                                     .count = 1,
                                     .reads = true,
                                     .writes = true });
        *family_place(r, LH_STEP_OF_GRADIENT_SUM, w) = LH_STEP_NONE;
    }
}

static void
reduce(LhStepRecorder *r, uint32_t unit)
{
    g_autoptr(GArray) weights = weights_of(r, unit);
    const uint32_t layer = unit_of(r->plan, unit).first;
    uint32_t flat = LH_STEP_NONE; /* autograd puts the views of one flat parameter together */

    reduce_replicas(r, weights, layer, true);
    reduce_replicas(r, weights, layer, false);
    if (is_sharded(r->plan) && r->plan->params.behaviour.unit_is_model) {
        flat = lh_step_add_tensor(
            r, (LhStepTensor){ .family = LH_STEP_OF_FLAT_GRADIENT, .first = r->list->calls->len });
    }
    if (r->plan->data_ranks > 1)
        reduce_data(r, weights, layer);
    if (flat != LH_STEP_NONE)
        g_array_index(r->list->tensors, LhStepTensor, flat).last = r->list->calls->len - 1;
    if (r->plan->data_ranks > 1 && accumulates(r->plan))
        accumulate(r, weights);
    for (guint i = 0; i < weights->len && lh_step_reduces_each(r->plan); i++)
        *family_place(r, LH_STEP_OF_GRADIENT, g_array_index(weights, Weight, i)) = LH_STEP_NONE;
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

/* ---- the optimizer ---- */

/* Where the gradient of a weight is when all are reduced. */
static LhStepUse
final_gradient(LhStepRecorder *r, Weight w)
{
    const LhStepPlan *plan = r->plan;
    const bool apart = plan->params.shard >= LH_SHARD_ZERO2;
    const LhStepFamily family = apart ? LH_STEP_OF_GRADIENT_SHARD : LH_STEP_OF_GRADIENT;

    return (LhStepUse){ .tensor = *family_place(r, family, w),
                        .count = 1,
                        .reads = true,
                        .own_piece = plan->params.shard == LH_SHARD_ZERO1 };
}

/* Of the whole weight; a rank that has a piece does not go beyond the end. */
static uint64_t
elements_of(const LhStepPlan *plan, Weight w)
{
    const LhStepMatrix matrix = lh_step_matrix(plan, w.weight, w.layer);

    return matrix.rows * matrix.columns;
}

static LhKernelArgs
optimizer_args(const LhStepPlan *plan, Weight w)
{
    const LhStepBehaviour *b = &plan->params.behaviour;

    return (LhKernelArgs){
        .optimizer = {
            .count = elements_of(plan, w),
            .learning_rate = plan->params.learning_rate,
            .beta1 = LH_STEP_BETA1,
            .beta2 = LH_STEP_BETA2,
            .epsilon = LH_STEP_ADAM_EPSILON,
            .clip = b->clip,
            .traffic = b->optimizer_traffic,
        },
    };
}

static void
add_norm(LhStepRecorder *r, Weight w, bool first)
{
    const uint32_t norm = lh_step_staying(r, LH_STEP_OF_NORM);
    const LhStepMatrix matrix = lh_step_matrix(r->plan, w.weight, w.layer);
    LhKernelArgs args = optimizer_args(r->plan, w);
    LhStepCall *call = lh_step_add_call(r, LH_STEP_CALL_COMPUTE, LH_STEP_STREAM_COMPUTE, w.layer);

    args.optimizer.traffic = 0;
    args.first = first;
    call->kernel = LH_KERNEL_ID_grad_norm;
    call->replicas = matrix.replicas;
    lh_step_set_args(r, call, &args);
    lh_step_add_use(r, call, final_gradient(r, w));
    lh_step_add_use(r, call,
                    (LhStepUse){ .tensor = norm, .count = 1, .reads = !first, .writes = true });
}

/* Sums over a group of ranks, in place. */
static void
add_all_reduce(LhStepRecorder *r, LhStepStream stream, LhStepGroup group, LhStepUse use)
{
    LhStepCall *call = lh_step_add_call(r, LH_STEP_CALL_COLLECTIVE, stream, 0);

    use.reads = use.writes = true;
    call->collective = LH_COLL_ALL_REDUCE;
    call->group = (uint8_t)group;
    lh_step_add_use(r, call, use);
    lh_step_add_use(r, call, use);
}

/* One number, added up over a group. */
static void
add_up(LhStepRecorder *r, LhStepFamily family, LhStepGroup group)
{
    add_all_reduce(r, LH_STEP_STREAM_SCATTER, group,
                   (LhStepUse){ .tensor = lh_step_staying(r, family), .count = 1 });
}

/* The first stage has the gradient of the embedding, the last one that of the head: where these are
 * one matrix, of the same elements. */
static void
add_up_shared(LhStepRecorder *r)
{
    const Weight embed = { LH_STEP_W_EMBED, 0 };

    if (lh_step_is_shared(r->plan, LH_STEP_W_EMBED) && is_here(r, embed))
        add_all_reduce(r, LH_STEP_STREAM_PIPELINE, LH_STEP_GROUP_ENDS, final_gradient(r, embed));
}

/* The weight whose squares come first: every rank of the stage has a part of it. */
static Weight
first_of_norm(const LhStepRecorder *r)
{
    if (r->stage == 0)
        return (Weight){ LH_STEP_W_EMBED, 0 };
    return (Weight){ LH_STEP_W_Q, lh_step_chunk_begins(&r->plan->params, r->stage) };
}

/* The squares of all gradients; of those that several ranks have, by the first of them. */
static void
clip(LhStepRecorder *r)
{
    const LhStepPlan *plan = r->plan;
    const bool sharded = plan->params.shard != LH_SHARD_DDP;
    const Weight first = first_of_norm(r);

    add_norm(r, first, true);
    for (uint32_t unit = 0; unit < units(plan); unit++) {
        g_autoptr(GArray) weights = weights_of(r, unit);

        for (guint i = 0; i < weights->len; i++) {
            const Weight w = g_array_index(weights, Weight, i);

            if (w.weight != LH_STEP_W_EMBED && (w.weight != first.weight || w.layer != first.layer))
                add_norm(r, w, false);
        }
    }
    if (sharded)
        add_up(r, LH_STEP_OF_NORM, LH_STEP_GROUP_ALL);
    else if (lh_step_stages(&plan->params) > 1)
        add_up(r, LH_STEP_OF_NORM, LH_STEP_GROUP_MODEL);
    else if (plan->params.tensor_parallel > 1)
        add_up(r, LH_STEP_OF_NORM, LH_STEP_GROUP_TENSOR);
    lh_step_add_call(r, LH_STEP_CALL_SYNC, LH_STEP_STREAM_COMPUTE, 0);
}

static void
add_adam(LhStepRecorder *r, Weight w)
{
    const LhStepPlan *plan = r->plan;
    const bool fp32 = plan->params.module.attention.dtype == LH_DTYPE_FP32;
    const bool sharded = is_sharded(plan);
    const LhStepFamily family = sharded ? LH_STEP_OF_WEIGHT_SHARD : LH_STEP_OF_WEIGHT;
    const bool piece = !sharded && plan->params.shard != LH_SHARD_DDP;
    const LhKernelArgs args = optimizer_args(plan, w);
    const LhStepUse gradient = final_gradient(r, w);
    const LhStepUse norm = { .tensor = lh_step_staying(r, LH_STEP_OF_NORM),
                             .count = 1,
                             .reads = true };
    const LhStepUse clock = {
        .tensor = tensor_of(r, LH_STEP_OF_CLOCK, w, true), .count = 1, .reads = true, .writes = true
    };
    const LhStepUse moments = { .tensor = tensor_of(r, LH_STEP_OF_MOMENTS, w, true),
                                .count = 1,
                                .reads = true,
                                .writes = true };
    const LhStepUse weight = { .tensor = tensor_of(r, family, w, true),
                               .count = 1,
                               .reads = fp32,
                               .writes = true,
                               .own_piece = piece };
    LhStepUse master = { 0 };
    LhStepCall *call;

    if (!fp32)
        master = (LhStepUse){ .tensor = tensor_of(r, LH_STEP_OF_MASTER, w, true),
                              .count = 1,
                              .reads = true,
                              .writes = true };
    call = lh_step_add_call(r, LH_STEP_CALL_COMPUTE, LH_STEP_STREAM_COMPUTE, w.layer);
    call->kernel = fp32 ? LH_KERNEL_ID_adam_fp32 : LH_KERNEL_ID_adam;
    lh_step_set_args(r, call, &args);
    lh_step_add_use(r, call, gradient);
    lh_step_add_use(r, call, norm);
    lh_step_add_use(r, call, clock);
    if (!fp32)
        lh_step_add_use(r, call, master);
    lh_step_add_use(r, call, moments);
    lh_step_add_use(r, call, weight);
}

/* Each rank has updated its piece of the weights: all get all of them. */
static void
gather_updated(LhStepRecorder *r, uint32_t unit)
{
    g_autoptr(GArray) weights = weights_of(r, unit);
    const Collective c = { LH_STEP_STREAM_GATHER, unit_of(r->plan, unit).first, LH_COLL_ALL_GATHER,
                           LH_STEP_GROUP_DATA, 0 };

    for (guint i = 0; i < weights->len; i++) {
        const uint32_t tensor =
            *family_place(r, LH_STEP_OF_WEIGHT, g_array_index(weights, Weight, i));
        const LhStepUse send = { .tensor = tensor, .count = 1, .reads = true, .own_piece = true };
        const LhStepUse receive = { .tensor = tensor,
                                    .count = lh_step_pieces(r->plan),
                                    .writes = true };

        add_collective(r, &c, &send, &receive);
    }
    close_collective(r);
}

void
lh_step_record_optimizer(LhStepRecorder *r)
{
    const LhStepPlan *plan = r->plan;
    const bool gathers = plan->data_ranks > 1 && (plan->params.shard == LH_SHARD_ZERO1 ||
                                                  plan->params.shard == LH_SHARD_ZERO2);
    uint32_t copy = LH_STEP_NONE;

    r->phase = LH_PHASE_OPTIMIZER;
    if (plan->data_ranks > 1 && r->stage + 1 == lh_step_stages(&plan->params))
        add_up(r, LH_STEP_OF_LOSS, LH_STEP_GROUP_DATA);
    add_up_shared(r);
    if (plan->params.behaviour.clip > 0)
        clip(r);
    if (plan->params.behaviour.step_bytes > 0) {
        copy = lh_step_add_tensor(
            r, (LhStepTensor){ .family = LH_STEP_OF_STEP_COPY, .first = r->list->calls->len });
    }
    for (uint32_t unit = 0; unit < units(plan); unit++) {
        g_autoptr(GArray) weights = weights_of(r, unit);

        for (guint i = 0; i < weights->len; i++)
            add_adam(r, g_array_index(weights, Weight, i));
        if (gathers)
            gather_updated(r, unit);
    }
    if (copy != LH_STEP_NONE)
        g_array_index(r->list->tensors, LhStepTensor, copy).last = r->list->calls->len - 1;
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
