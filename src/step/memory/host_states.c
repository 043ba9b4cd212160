/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offload of optimizer states, as Megatron-LM's HybridDeviceOptimizer, ZeRO-Offload (arXiv
 * 2101.06840) and FSDP2's CPUOffloadPolicy do it: fp32 weights and moments are in host memory.
 * Gradients go there, the host's CPU updates, updated weights come back. Gradients that are reduced
 * to shards of their own leave at once, and are added up on the CPU; those of buffers leave when
 * the optimizer runs. With offload_param the host has the weights, too: each is copied in ahead of
 * its gather.
 *
 * Without overlap the copies wait for kernels and for each other as on one stream: all gradients,
 * all updates, all weights. With it a weight is copied back while the next ones are updated.
 */
#include "step/memory/host_states.h"

#include "step/lora.h"

static uint32_t
number_of(const LhStepPlan *plan, uint32_t stage, LhStepWeight weight, uint32_t layer)
{
    const uint32_t of_layers = plan->layers * LH_STEP_W_LAYER;
    const uint32_t number = weight < LH_STEP_W_LAYER ? layer * LH_STEP_W_LAYER + weight
                                                     : of_layers + weight - LH_STEP_W_LAYER;

    return stage * (of_layers + LH_STEP_WEIGHTS - LH_STEP_W_LAYER) + number;
}

/* Trained weights of a stage in order: of the layers, then the others. */
static GArray *
trained_weights(LhStepPlan *plan, uint32_t stage)
{
    const LhStepRecorder r = { .plan = plan, .stage = stage };
    GArray *all = g_array_new(FALSE, FALSE, sizeof(LhStepHeld));

    for (uint32_t unit = 0; unit < lh_step_units(plan); unit++) {
        g_autoptr(GArray) weights = lh_step_trained_weights(&r, unit);

        g_array_append_vals(all, weights->data, weights->len);
    }
    return all;
}

static uint64_t
elements(const LhStepPlan *plan, const GArray *weights, guint i)
{
    const LhStepHeld *w = &g_array_index(weights, LhStepHeld, i);

    return lh_step_piece_elements(plan, w->weight, w->layer);
}

/* The first weights are on the host, until they make up the fraction: HybridDeviceOptimizer's rule.
 */
static void
choose(LhStepPlan *plan, uint32_t stage)
{
    g_autoptr(GArray) weights = trained_weights(plan, stage);
    double all = 0, before = 0;

    for (guint i = 0; i < weights->len; i++)
        all += (double)elements(plan, weights, i);
    for (guint i = 0; i < weights->len && before < plan->params.optimizer_offload * all; i++) {
        const LhStepHeld *w = &g_array_index(weights, LhStepHeld, i);

        plan->host_states[number_of(plan, stage, w->weight, w->layer)] = true;
        before += (double)elements(plan, weights, i);
    }
}

void
lh_step_choose_host_states(LhStepPlan *plan)
{
    const uint32_t stages = lh_step_stages(&plan->params);

    if (plan->params.optimizer_offload <= 0)
        return;
    plan->host_states = g_new0(bool, number_of(plan, stages, (LhStepWeight)0, 0));
    for (uint32_t stage = 0; stage < stages; stage++)
        choose(plan, stage);
}

bool
lh_step_is_host_state(const LhStepPlan *plan, uint32_t stage, LhStepWeight weight, uint32_t layer)
{
    return plan->host_states != NULL && plan->host_states[number_of(plan, stage, weight, layer)];
}

/* The gradient of a tied matrix is summed over two stages on the device. */
bool
lh_step_gradient_leaves(const LhStepPlan *plan, uint32_t stage, LhStepWeight weight, uint32_t layer)
{
    return plan->params.gradients_leave && !lh_step_is_shared(plan, weight) &&
           lh_step_is_host_state(plan, stage, weight, layer);
}

static bool
is_host(const LhStepRecorder *r, LhStepHeld w)
{
    return lh_step_is_host_state(r->plan, r->stage, w.weight, w.layer);
}

static bool
leaves(const LhStepRecorder *r, LhStepHeld w)
{
    return lh_step_gradient_leaves(r->plan, r->stage, w.weight, w.layer);
}

bool
lh_step_fetches(const LhStepPlan *plan)
{
    return plan->params.offload_param;
}

/* ---- copies ---- */

#define BEHIND(stream) LH_STEP_BEHIND(LH_STEP_STREAM_##stream)

static LhStepCall *
add_copy(LhStepRecorder *r, uint32_t layer, LhStepUse from, LhStepUse to, bool to_host)
{
    LhStepCall *call = lh_step_add_call(
        r, LH_STEP_CALL_COPY, to_host ? LH_STEP_STREAM_TO_HOST : LH_STEP_STREAM_FROM_HOST, layer);

    if (call->phase == LH_PHASE_RECOMPUTE)
        call->phase = LH_PHASE_BACKWARD;
    from.reads = true;
    to.writes = true;
    lh_step_add_use(r, call, from);
    lh_step_add_use(r, call, to);
    return call;
}

void
lh_step_fetch(LhStepRecorder *r, LhStepHeld w, uint32_t to, uint32_t gather)
{
    const LhStepUse from = { .tensor = lh_step_weight_tensor(r, LH_STEP_OF_HOST_WEIGHT, w, true),
                             .count = 1 };

    add_copy(r, w.layer, from, (LhStepUse){ .tensor = to, .count = 1 }, false)->gather = gather;
}

/* y += x on the CPU. */
static void
add_on_cpu(LhStepRecorder *r, LhStepHeld w, uint32_t sum)
{
    const LhKernelArgs args = {
        .elements.count = lh_step_piece_elements(r->plan, w.weight, w.layer),
    };
    const uint32_t all = lh_step_weight_tensor(r, LH_STEP_OF_HOST_GRADIENT, w, true);
    LhStepCall *call = lh_step_add_call(r, LH_STEP_CALL_COMPUTE, LH_STEP_STREAM_CPU, w.layer);

    call->kernel = LH_KERNEL_ID_accumulate;
    call->starts = true;
    lh_step_set_args(r, call, &args);
    lh_step_add_use(r, call, (LhStepUse){ .tensor = sum, .count = 1, .reads = true });
    lh_step_add_use(r, call,
                    (LhStepUse){ .tensor = all, .count = 1, .reads = true, .writes = true });
}

void
lh_step_leave(LhStepRecorder *r, const GArray *weights, LhStepFamily family, bool adds)
{
    const LhStepFamily host = adds ? LH_STEP_OF_HOST_GRADIENT_SUM : LH_STEP_OF_HOST_GRADIENT;

    for (guint i = 0; i < weights->len; i++) {
        const LhStepHeld w = g_array_index(weights, LhStepHeld, i);
        uint32_t *from = lh_step_weight_place(r, family, w), to;

        if (!leaves(r, w))
            continue;
        to = lh_step_weight_tensor(r, host, w, false);
        add_copy(r, w.layer, (LhStepUse){ .tensor = *from, .count = 1 },
                 (LhStepUse){ .tensor = to, .count = 1 }, true);
        *from = LH_STEP_NONE;
        if (!adds)
            continue;
        add_on_cpu(r, w, to);
        *lh_step_weight_place(r, host, w) = LH_STEP_NONE;
    }
}

void
lh_step_copy_norm(LhStepRecorder *r, bool to_host)
{
    const LhStepUse device = { .tensor = lh_step_staying(r, LH_STEP_OF_NORM), .count = 1 };
    const LhStepUse host = { .tensor = lh_step_staying(r, LH_STEP_OF_HOST_NORM), .count = 1 };

    /* The squares before it may be those of ranks that have none of a weight, which add nothing. */
    add_copy(r, 0, to_host ? device : host, to_host ? host : device, to_host)->behind =
        to_host ? BEHIND(COMPUTE) | BEHIND(FROM_HOST) : BEHIND(CPU) | BEHIND(TO_HOST);
}

/* ---- the optimizer ---- */

/* Copies the gradient of a weight to the host, unless it has left. */
static void
copy_gradient(LhStepRecorder *r, LhStepHeld w)
{
    const LhStepParams *p = &r->plan->params;
    const LhStepFamily family =
        p->shard >= LH_SHARD_ZERO2 ? LH_STEP_OF_GRADIENT_SHARD : LH_STEP_OF_GRADIENT;
    const LhStepUse from = { .tensor = *lh_step_weight_place(r, family, w),
                             .count = 1,
                             .own_piece = p->shard == LH_SHARD_ZERO1 };
    LhStepUse to = { .count = 1 };
    LhStepCall *call;

    if (leaves(r, w))
        return;
    to.tensor = lh_step_weight_tensor(r, LH_STEP_OF_HOST_GRADIENT, w, false);
    call = add_copy(r, w.layer, from, to, true);
    if (!p->overlap_optimizer_copies)
        call->behind = BEHIND(COMPUTE);
}

/* Copies the updated piece of a weight to where the device has it. */
static void
copy_back(LhStepRecorder *r, LhStepHeld w)
{
    const bool sharded = lh_step_is_sharded(r->plan);
    const LhStepFamily family = sharded ? LH_STEP_OF_WEIGHT_SHARD : LH_STEP_OF_WEIGHT;
    const LhStepUse from = { .tensor = *lh_step_weight_place(r, LH_STEP_OF_HOST_WEIGHT, w),
                             .count = 1 };
    const LhStepUse to = { .tensor = lh_step_weight_tensor(r, family, w, true),
                           .count = 1,
                           .own_piece = !sharded && r->plan->params.shard != LH_SHARD_DDP };
    LhStepCall *call = add_copy(r, w.layer, from, to, false);

    call->of_shard = true; /* an empty piece is not updated */
    if (!r->plan->params.overlap_optimizer_copies)
        call->behind = BEHIND(CPU);
}

typedef void (*ForWeight)(LhStepRecorder *r, LhStepHeld w);

/* Calls all three for each weight of the unit whose states are on the host; NULL: nothing. */
static void
for_unit(LhStepRecorder *r, uint32_t unit, ForWeight first, ForWeight second, ForWeight third)
{
    const ForWeight all[] = { first, second, third };
    g_autoptr(GArray) weights = lh_step_trained_weights(r, unit);

    for (guint i = 0; i < weights->len; i++) {
        const LhStepHeld w = g_array_index(weights, LhStepHeld, i);

        for (unsigned k = 0; k < G_N_ELEMENTS(all) && is_host(r, w); k++) {
            if (all[k] != NULL)
                all[k](r, w);
        }
    }
}

/* Without overlap the device updates behind all copies of gradients. */
void
lh_step_copy_gradients(LhStepRecorder *r)
{
    for (uint32_t unit = 0;
         unit < lh_step_units(r->plan) && !r->plan->params.overlap_optimizer_copies; unit++)
        for_unit(r, unit, copy_gradient, NULL, NULL);
}

void
lh_step_update_on_cpu(LhStepRecorder *r, void (*update)(LhStepRecorder *r, LhStepHeld w),
                      void (*after)(LhStepRecorder *r, uint32_t unit))
{
    const bool overlap = r->plan->params.overlap_optimizer_copies;
    const ForWeight back = lh_step_fetches(r->plan) ? NULL : copy_back;

    for (uint32_t unit = 0; unit < lh_step_units(r->plan) && !overlap; unit++)
        for_unit(r, unit, update, NULL, NULL);
    for (uint32_t unit = 0; unit < lh_step_units(r->plan); unit++) {
        for_unit(r, unit, overlap ? copy_gradient : NULL, overlap ? update : NULL, back);
        if (after != NULL)
            after(r, unit);
    }
}
