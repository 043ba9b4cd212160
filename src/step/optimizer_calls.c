/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of the optimizer: the norm of all gradients, the update of every piece of a weight that the
 * rank holds, and the all-gather of updated weights.
 */
#include "step/optimizer_calls.h"

#include "step/lora.h"
#include "step/memory/host_states.h"
#include "step/muon/muon.h"
#include "step/muon/muon_calls.h"
#include "step/sharding.h"

/* Location of a weight's gradient after all reductions. */
static LhStepUse
final_gradient(LhStepRecorder *r, LhStepHeld w)
{
    const LhStepPlan *plan = r->plan;
    const bool apart = plan->params.shard >= LH_SHARD_ZERO2;
    const LhStepFamily family = apart ? LH_STEP_OF_GRADIENT_SHARD : LH_STEP_OF_GRADIENT;

    return (LhStepUse){ .tensor = *lh_step_weight_place(r, family, w),
                        .count = 1,
                        .reads = true,
                        .own_piece = plan->params.shard == LH_SHARD_ZERO1 };
}

/* Elements of the whole weight; a rank's piece does not exceed its end. */
static uint64_t
elements_of(const LhStepPlan *plan, LhStepHeld w)
{
    const LhStepMatrix matrix = lh_step_matrix(plan, w.weight, w.layer);

    return matrix.rows * matrix.columns;
}

static LhKernelArgs
optimizer_args(const LhStepPlan *plan, LhStepHeld w)
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

/* Whether the gradient is on the host before the optimizer runs. */
static bool
has_left(const LhStepRecorder *r, LhStepHeld w)
{
    return lh_step_gradient_leaves(r->plan, r->stage, w.weight, w.layer);
}

static LhStepUse
host_gradient(LhStepRecorder *r, LhStepHeld w)
{
    return (LhStepUse){ .tensor = *lh_step_weight_place(r, LH_STEP_OF_HOST_GRADIENT, w),
                        .count = 1,
                        .reads = true };
}

static void
add_norm(LhStepRecorder *r, LhStepHeld w, bool first)
{
    const bool left = has_left(r, w);
    const uint32_t norm = lh_step_staying(r, left ? LH_STEP_OF_HOST_NORM : LH_STEP_OF_NORM);
    const LhStepMatrix matrix = lh_step_matrix(r->plan, w.weight, w.layer);
    LhKernelArgs args = optimizer_args(r->plan, w);
    LhStepCall *call = lh_step_add_call(
        r, LH_STEP_CALL_COMPUTE, left ? LH_STEP_STREAM_CPU : LH_STEP_STREAM_COMPUTE, w.layer);

    args.optimizer.traffic = 0;
    args.first = first;
    if (r->plan->host_states != NULL) /* the sum may just have come; calls before may be absent */
        call->behind = LH_STEP_BEHIND(left ? LH_STEP_STREAM_TO_HOST : LH_STEP_STREAM_FROM_HOST);
    call->kernel = LH_KERNEL_ID_grad_norm;
    call->replicas = matrix.replicas;
    lh_step_set_args(r, call, &args);
    lh_step_add_use(r, call, left ? host_gradient(r, w) : final_gradient(r, w));
    lh_step_add_use(r, call,
                    (LhStepUse){ .tensor = norm, .count = 1, .reads = !first, .writes = true });
}

/* All-reduces over a group of ranks, in place. */
static void
add_all_reduce(LhStepRecorder *r, LhStepStream stream, LhStepGroup group, LhStepUse use)
{
    LhStepCall *call = lh_step_add_call(r, LH_STEP_CALL_COLLECTIVE, stream, 0);

    use.reads = use.writes = true;
    call->collective = LH_COLL_ALL_REDUCE;
    call->group = (uint8_t)group;
    /* The norm may just have come back from the host; calls that add to it may be absent. */
    if (r->plan->host_states != NULL)
        call->behind = LH_STEP_BEHIND(LH_STEP_STREAM_FROM_HOST);
    lh_step_add_use(r, call, use);
    lh_step_add_use(r, call, use);
}

/* All-reduces one number over a group. */
static void
add_up(LhStepRecorder *r, LhStepFamily family, LhStepGroup group)
{
    add_all_reduce(r, LH_STEP_STREAM_SCATTER, group,
                   (LhStepUse){ .tensor = lh_step_staying(r, family), .count = 1 });
}

/* Adds the gradients of a tied matrix: the first stage has the embedding's, the last one the
 * head's. */
static void
add_up_shared(LhStepRecorder *r)
{
    const LhStepHeld embed = { LH_STEP_W_EMBED, 0 };

    if (lh_step_is_trained(&r->plan->params, embed.weight) &&
        lh_step_is_shared(r->plan, LH_STEP_W_EMBED) && lh_step_is_here(r, embed))
        add_all_reduce(r, LH_STEP_STREAM_PIPELINE, LH_STEP_GROUP_ENDS, final_gradient(r, embed));
}

/* The weight whose squares are added first; every rank of the stage holds a part of it. */
static LhStepHeld
first_of_norm(const LhStepRecorder *r)
{
    const LhStepParams *p = &r->plan->params;
    const bool all = lh_step_is_trained(p, LH_STEP_W_EMBED);

    if (all && r->stage == 0)
        return (LhStepHeld){ LH_STEP_W_EMBED, 0 };
    return (LhStepHeld){ all ? LH_STEP_W_Q : lh_step_cut_adapter(p),
                         lh_step_chunk_begins(p, r->stage) };
}

/* Adds the squares of gradients that are on the host, or on the device. */
static bool
add_norms(LhStepRecorder *r, LhStepHeld first, bool left)
{
    bool any = false;

    for (uint32_t unit = 0; unit < lh_step_units(r->plan); unit++) {
        g_autoptr(GArray) weights = lh_step_trained_weights(r, unit);

        for (guint i = 0; i < weights->len; i++) {
            const LhStepHeld w = g_array_index(weights, LhStepHeld, i);

            if (has_left(r, w) != left || w.weight == LH_STEP_W_EMBED ||
                (w.weight == first.weight && w.layer == first.layer))
                continue;
            if (!any && has_left(r, first) != left)
                lh_step_copy_norm(r, left);
            add_norm(r, w, false);
            any = true;
        }
    }
    return any;
}

/* Sums the squares of all gradients. If several ranks hold a gradient, the first of them adds it.
 * Some gradients may be on the host, where their squares are added up; the sum over ranks is taken
 * on the device. */
static void
clip(LhStepRecorder *r)
{
    const LhStepPlan *plan = r->plan;
    const bool sharded = plan->params.shard != LH_SHARD_DDP;
    const LhStepHeld first = first_of_norm(r);
    bool on_host = has_left(r, first), there = false;

    add_norm(r, first, true);
    add_norms(r, first, on_host);
    if (add_norms(r, first, !on_host))
        on_host = !on_host;
    if (on_host)
        lh_step_copy_norm(r, false);
    if (sharded)
        add_up(r, LH_STEP_OF_NORM, LH_STEP_GROUP_ALL);
    else if (lh_step_stages(&plan->params) > 1)
        add_up(r, LH_STEP_OF_NORM, LH_STEP_GROUP_MODEL);
    else if (plan->params.tensor_parallel > 1)
        add_up(r, LH_STEP_OF_NORM, LH_STEP_GROUP_TENSOR);
    else
        there = on_host;
    if (plan->host_states != NULL && !there)
        lh_step_copy_norm(r, true);
    lh_step_add_call(r, LH_STEP_CALL_SYNC, LH_STEP_STREAM_COMPUTE, 0);
}

/* The kernel for what is updated and the type of the moments. */
static LhKernelId
adam_kernel(const LhStepPlan *plan)
{
    static const LhKernelId kernels[LH_MOMENTS][2] = {
        [LH_MOMENTS_FP32] = { LH_KERNEL_ID_adam_direct, LH_KERNEL_ID_adam },
        [LH_MOMENTS_16BIT] = { LH_KERNEL_ID_adam_direct_moments16, LH_KERNEL_ID_adam_moments16 },
        [LH_MOMENTS_8BIT] = { LH_KERNEL_ID_adam_direct_moments8, LH_KERNEL_ID_adam_moments8 },
    };
    const LhMoments moments = plan->params.behaviour.moments;

    if (plan->params.module.attention.dtype == LH_DTYPE_FP32 && moments == LH_MOMENTS_FP32)
        return LH_KERNEL_ID_adam_fp32;
    return kernels[moments][lh_step_has_master(plan)];
}

/* Adds a state of the rank's piece of a weight, read and written. */
static void
add_state(LhStepRecorder *r, LhStepCall *call, LhStepFamily family, LhStepHeld w)
{
    lh_step_add_use(r, call,
                    (LhStepUse){ .tensor = lh_step_weight_tensor(r, family, w, true),
                                 .count = 1,
                                 .reads = true,
                                 .writes = true });
}

/* The weight that is updated: all of it, the rank's piece or shard, or that on the host. */
static LhStepUse
updated_weight(LhStepRecorder *r, LhStepHeld w, bool on_cpu)
{
    const LhStepPlan *plan = r->plan;
    const bool master = lh_step_has_master(plan), sharded = lh_step_is_sharded(plan);
    const LhStepFamily family = on_cpu    ? LH_STEP_OF_HOST_WEIGHT
                                : sharded ? LH_STEP_OF_WEIGHT_SHARD
                                          : LH_STEP_OF_WEIGHT;
    const bool stays = !on_cpu || !master || lh_step_fetches(plan);

    return (LhStepUse){ .tensor = lh_step_weight_tensor(r, family, w, stays),
                        .count = 1,
                        .reads = !master,
                        .writes = true,
                        .own_piece = !on_cpu && !sharded && plan->params.shard != LH_SHARD_DDP };
}

static void
add_step(LhStepRecorder *r, LhStepHeld w, bool on_cpu)
{
    const LhStepPlan *plan = r->plan;
    const bool master = lh_step_has_master(plan);
    const LhStepFamily norm = on_cpu ? LH_STEP_OF_HOST_NORM : LH_STEP_OF_NORM;
    LhKernelArgs args = optimizer_args(plan, w);
    LhStepCall *call = lh_step_add_call(
        r, LH_STEP_CALL_COMPUTE, on_cpu ? LH_STEP_STREAM_CPU : LH_STEP_STREAM_COMPUTE, w.layer);

    if (on_cpu)
        args.optimizer.traffic = plan->params.behaviour.cpu_optimizer_traffic;
    if (plan->host_states != NULL && !plan->params.overlap_optimizer_copies)
        call->behind = LH_STEP_BEHIND(LH_STEP_STREAM_TO_HOST);
    call->kernel = adam_kernel(plan);
    lh_step_set_args(r, call, &args);
    lh_step_add_use(r, call, on_cpu ? host_gradient(r, w) : final_gradient(r, w));
    lh_step_add_use(r, call,
                    (LhStepUse){ .tensor = lh_step_staying(r, norm), .count = 1, .reads = true });
    add_state(r, call, LH_STEP_OF_CLOCK, w);
    if (master)
        add_state(r, call, LH_STEP_OF_MASTER, w);
    add_state(r, call, LH_STEP_OF_MOMENTS, w);
    if (plan->params.behaviour.moments == LH_MOMENTS_8BIT)
        add_state(r, call, LH_STEP_OF_SCALES, w);
    lh_step_add_use(r, call, updated_weight(r, w, on_cpu));
}

static bool
is_on_cpu(const LhStepRecorder *r, LhStepHeld w)
{
    return lh_step_is_host_state(r->plan, r->stage, w.weight, w.layer);
}

static void
add_adam(LhStepRecorder *r, LhStepHeld w)
{
    if (!is_on_cpu(r, w))
        add_step(r, w, false);
}

static void
add_cpu_adam(LhStepRecorder *r, LhStepHeld w)
{
    add_step(r, w, true);
}

/* All-gathers the weights, of which each rank has updated its piece. */
static void
gather_updated(LhStepRecorder *r, uint32_t unit)
{
    g_autoptr(GArray) weights = lh_step_trained_weights(r, unit);
    const LhStepCollective c = { LH_STEP_STREAM_GATHER, lh_step_unit_layer(r->plan, unit),
                                 LH_COLL_ALL_GATHER, LH_STEP_GROUP_DATA, 0 };

    for (guint i = 0; i < weights->len; i++) {
        const uint32_t tensor =
            *lh_step_weight_place(r, LH_STEP_OF_WEIGHT, g_array_index(weights, LhStepHeld, i));
        const LhStepUse send = { .tensor = tensor, .count = 1, .reads = true, .own_piece = true };
        const LhStepUse receive = { .tensor = tensor,
                                    .count = lh_step_pieces(r->plan),
                                    .writes = true };

        lh_step_add_collective(r, &c, &send, &receive);
    }
    lh_step_close_collective(r);
}

void
lh_step_record_optimizer(LhStepRecorder *r)
{
    const LhStepPlan *plan = r->plan;
    const bool gathers = plan->data_ranks > 1 && (plan->params.shard == LH_SHARD_ZERO1 ||
                                                  plan->params.shard == LH_SHARD_ZERO2);
    const bool on_cpu = plan->host_states != NULL;
    uint32_t copy = LH_STEP_NONE;
    LhStepTensor step_copy = { .family = LH_STEP_OF_STEP_COPY, .stage = (uint16_t)r->stage };

    r->phase = LH_PHASE_OPTIMIZER;
    if (plan->data_ranks > 1 && r->stage + 1 == lh_step_stages(&plan->params))
        add_up(r, LH_STEP_OF_LOSS, LH_STEP_GROUP_DATA);
    add_up_shared(r);
    if (plan->params.behaviour.clip > 0)
        clip(r);
    if (plan->params.muon.optimizer == LH_OPTIMIZER_MUON)
        lh_muon_record(r, final_gradient);
    step_copy.first = r->list->calls->len;
    if (lh_step_tensor_shape(plan, &step_copy).part_bytes > 0)
        copy = lh_step_add_tensor(r, step_copy);
    if (on_cpu)
        lh_step_copy_gradients(r);
    for (uint32_t unit = 0; unit < lh_step_units(plan); unit++) {
        g_autoptr(GArray) weights = lh_step_trained_weights(r, unit);

        for (guint i = 0; i < weights->len; i++) {
            if (!lh_muon_has(&plan->params, g_array_index(weights, LhStepHeld, i).weight))
                add_adam(r, g_array_index(weights, LhStepHeld, i));
        }
        if (gathers && !on_cpu)
            gather_updated(r, unit);
    }
    if (on_cpu)
        lh_step_update_on_cpu(r, add_cpu_adam, gathers ? gather_updated : NULL);
    if (copy != LH_STEP_NONE)
        g_array_index(r->list->tensors, LhStepTensor, copy).last = r->list->calls->len - 1;
}
