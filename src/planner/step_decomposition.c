/* SPDX-License-Identifier: Apache-2.0 */
#include "planner/step_decomposition.h"

#include "planner/plan_point.h"
#include "scenario/setup_simulate.h"
#include "step/modules.h"

uint32_t
lh_plan_group_rank(const LhStepParams *p, uint32_t index, uint32_t count)
{
    const uint32_t last = p->module.ranks - 1;

    return p->tensor_parallel * (count > 1 ? (uint32_t)((uint64_t)last * index / (count - 1)) : 0);
}

/* ---- attention ---- */

static void
look_at_pass(const LhPlanCase *c, const LhProgram *program, bool communication,
             LhAttentionPart *part, unsigned kind, unsigned pass)
{
    const LhSimParams params = lh_setup_sim_params(&c->setup, program);
    const uint32_t rank = c->step.params.module.ranks - 1;
    const LhRankMap map = { .stride = c->step.params.tensor_parallel };
    LhLowerBoundCalls *calls = lh_bound_cache_take(c->calls);
    g_autoptr(LhLowerBound) least = lh_lower_bound_new(&params, calls);
    uint64_t given_bytes;
    LhLive live;

    part->times[kind][pass] =
        lh_lower_bound_embedded(least, rank, map, communication, &part->passes_ps[kind][pass]);
    lh_bound_cache_give_back(c->calls, calls);
    lh_live_init(&live, program, rank);
    given_bytes = live.bytes;
    lh_live_walk(&live, program, rank);
    part->peak_bytes[kind][pass] = live.peak_bytes - given_bytes;
}

bool
lh_attention_part(const LhPlanCase *of, bool communication, LhAttentionPart *part, GError **error)
{
    LhPlanCase c = *of;
    LhStepAttention attention;
    LhStepParams params;
    LhModel model;

    c.setup.step = &c.step;
    params = lh_setup_step_params(&c.setup, c.schedule, &model);
    *part = (LhAttentionPart){ 0 };
    if (!lh_step_attention(&params, &attention, error))
        return false;
    for (unsigned kind = 0; kind < LH_STEP_KINDS; kind++) {
        for (unsigned pass = 0; pass < 2 && attention.pass[kind][0] != NULL; pass++)
            look_at_pass(&c, attention.pass[kind][pass], communication, part, kind, pass);
    }
    part->hollow = lh_step_hollow(&attention);
    lh_step_attention_clear(&attention);
    return true;
}

void
lh_attention_part_clear(LhAttentionPart *part)
{
    lh_step_attention_clear(&part->hollow);
}

/* ---- the rest of the step ---- */

static void
count_call(LhAttentionCalls *calls, const LhOp *op, bool joined, uint64_t held_bytes)
{
    calls->all++;
    calls->joined |= joined;
    calls->first += op->micro_batch == 0;
    calls->timely += op->micro_batch == 0 && op->phase != LH_PHASE_RECOMPUTE;
    calls->held_bytes = MAX(calls->held_bytes, held_bytes);
}

/* A walk over a rank's program that measures memory and counts calls; the attention stub is
 * everything that belongs to a module. */
typedef struct {
    const LhProgram *program;
    LhAroundPart *part;
    LhLive live;
    uint64_t states_of_gradients_bytes; /* gradients before the first op */
    bool joined;
} AroundWalk;

static void
walk_op(void *data, const LhOp *op)
{
    AroundWalk *walk = data;

    if (op->kind == LH_OP_ALLOC || op->kind == LH_OP_FREE) {
        lh_live_change(&walk->live, walk->program, op->memory.region, op->kind == LH_OP_ALLOC);
        walk->part->gradients_bytes =
            MAX(walk->part->gradients_bytes,
                walk->live.by_category[LH_CATEGORY_GRADIENTS] - walk->states_of_gradients_bytes);
    }
    if (op->module > 0)
        count_call(&walk->part->calls[(op->module - 1) / 2][(op->module - 1) % 2], op, walk->joined,
                   walk->live.bytes);
    if (op->kind == LH_OP_COMPUTE && op->stream == 0)
        walk->joined = op->module > 0;
}

/* Whether a collective follows its layer's matrix products, and the layer may wait for it, in any
 * stage: tensor-parallel ones, and gradient reductions. */
static bool
is_of_layer(const LhOp *op)
{
    return op->module == 0 &&
           (op->stream == LH_STEP_STREAM_TENSOR || op->stream == LH_STEP_STREAM_SCATTER);
}

bool
lh_around_part(const LhPlanCase *of, uint64_t layers, const LhStepAttention *hollow,
               bool communication, LhAroundPart *part, GError **error)
{
    LhPlanCase c = *of;
    const uint32_t rank = lh_plan_group_rank(&c.step.params, 1, 2);
    AroundWalk walk = { .part = part };
    g_autoptr(LhProgram) program = NULL;
    g_autoptr(LhLowerBound) least = NULL;
    LhLowerBoundCalls *calls;
    LhSimParams params;

    *part = (LhAroundPart){ 0 };
    c.setup.step = &c.step;
    c.step.model.num_layers = layers;
    c.step.params.attention = hollow;
    program = lh_plan_case_program(&c, error);
    if (program == NULL)
        return false;
    params = lh_setup_sim_params(&c.setup, program);
    calls = lh_bound_cache_take(c.calls);
    least = lh_lower_bound_new(&params, calls);
    lh_lower_bound_await(least, is_of_layer);
    lh_lower_bound_watch(least, (uint32_t)layers); /* the head's label */
    lh_live_init(&walk.live, program, rank);
    part->states_bytes = walk.live.bytes;
    walk.states_of_gradients_bytes = walk.live.by_category[LH_CATEGORY_GRADIENTS];
    walk.program = program;
    lh_lower_bound_visit(least, walk_op, &walk);
    part->times = lh_lower_bound_of(least, rank, communication);
    lh_bound_cache_give_back(c.calls, calls);
    part->peak_bytes = walk.live.peak_bytes;
    part->saved_bytes = walk.live.most_saved;
    return true;
}
