/* SPDX-License-Identifier: Apache-2.0 */
#include "step/state_contents.h"

#include "program/holding.h"
#include "step/step_private.h"

/* ---- the whole model ---- */

static uint64_t
kv_heads(const LhStepPlan *plan, LhStepKind kind)
{
    return kind == LH_STEP_LINEAR ? plan->model.num_attention_heads : plan->model.num_query_groups;
}

LhStepExtent
lh_step_whole(const LhStepPlan *plan, LhStepWeight weight, uint32_t layer)
{
    const LhStepKind kind = lh_step_layer_kind(plan, layer);
    const LhStepMatrix one = lh_step_matrix(plan, weight, layer);
    const uint64_t t = plan->params.tensor_parallel;

    if (one.rows == 0)
        return (LhStepExtent){ 0 };
    switch (weight) {
    case LH_STEP_W_Q:
    case LH_STEP_W_GATE:
    case LH_STEP_W_O_NORM:
    case LH_STEP_W_UP:
    case LH_STEP_W_EXPERT_UP:
    case LH_STEP_W_Q_B:
    case LH_STEP_W_UP_B:
        return (LhStepExtent){ one.rows, t * one.columns };
    case LH_STEP_W_KV:
    case LH_STEP_W_KV_B:
        return (LhStepExtent){ one.rows, 2 * kv_heads(plan, kind) * plan->model.kv_channels };
    case LH_STEP_W_OUT:
    case LH_STEP_W_DOWN:
    case LH_STEP_W_EXPERT_DOWN:
    case LH_STEP_W_OUT_A:
    case LH_STEP_W_DOWN_A:
        return (LhStepExtent){ t * one.rows, one.columns };
    case LH_STEP_W_EMBED:
    case LH_STEP_W_HEAD:
        return (LhStepExtent){ plan->model.vocab_size, one.columns };
    default:
        return (LhStepExtent){ one.rows, one.columns };
    }
}

/* Blocks of columns side by side (k and v, gates and others); each rank has a slice of every
 * block. */
static uint32_t
halves_of(const LhStepPlan *plan, LhStepWeight weight)
{
    const bool up =
        weight == LH_STEP_W_UP || weight == LH_STEP_W_UP_B || weight == LH_STEP_W_EXPERT_UP;

    return weight == LH_STEP_W_KV || weight == LH_STEP_W_KV_B || (up && plan->model.gated_mlp) ? 2
                                                                                               : 1;
}

/* ---- parts ---- */

/* Whole weights and their gradients have all pieces, as parts; all others have the rank's piece. */
static void
set_weight(const LhStepPlan *plan, uint32_t rank, LhStepContents *c)
{
    const bool whole =
        c->state.family == LH_STEP_OF_WEIGHT || c->state.family == LH_STEP_OF_GRADIENT;
    const LhStepPlace place = lh_step_place_of(plan, rank);
    const uint64_t pieces = lh_step_pieces(plan);
    const uint64_t number = whole ? c->state.part : pieces > 1 ? place.data : 0;
    uint64_t elements, piece;

    c->matrix = lh_step_matrix(plan, c->state.weight, c->state.layer);
    elements = c->matrix.rows * c->matrix.columns;
    piece = (elements + pieces - 1) / pieces;
    c->slice = place.tensor / MAX(c->matrix.replicas, 1);
    c->halves = halves_of(plan, c->state.weight);
    c->whole = lh_step_whole(plan, c->state.weight, c->state.layer);
    c->first = MIN(number * piece, elements);
    c->count = MIN(piece, elements - c->first);
}

/* Parts are micro-batches x segments x members of the tensor-parallel group x cuts. */
static void
set_tokens(const LhStepPlan *plan, uint32_t rank, LhStepContents *c)
{
    const LhPlacement *placement = &plan->modules[plan->kinds[0]].forward->placement;
    const LhStepPlace place = lh_step_place_of(plan, rank);
    const uint32_t data = place.data / plan->params.module.ranks;
    const uint32_t of_segment = plan->params.tensor_parallel * plan->cuts;
    const uint32_t parts = plan->segments * of_segment;
    LhSegment segment = lh_placement_segment(
        placement,
        lh_placement_segment_id(placement, place.context, c->state.part % parts / of_segment));

    segment.count /= of_segment;
    segment.start += c->state.part % of_segment * segment.count * segment.stride;
    c->positions = segment;
    c->sequence = ((uint64_t)data * plan->params.micro_batches + c->state.part / parts) *
                  plan->params.module.attention.batch;
    c->count = plan->params.module.attention.batch * segment.count;
}

/* Parts are micro-batches x those of the attention program's keys and values, or one. */
static void
set_result(const LhStepPlan *plan, uint32_t rank, LhStepContents *c)
{
    const LhStepPlace place = lh_step_place_of(plan, rank);
    const LhStepModule *module = &plan->modules[lh_step_layer_kind(plan, c->state.layer)];
    const LhStepShape one = lh_step_role_shape(plan, c->state.role, c->state.layer);
    const LhPlacement *placement = &module->forward->placement;
    const uint32_t data = place.data / plan->params.module.ranks;
    LhHolding holding = { .segment = lh_placement_segment_id(placement, place.context,
                                                             plan->segments - 1) };

    c->sequence = ((uint64_t)data * plan->params.micro_batches + c->state.part / one.parts) *
                  plan->params.module.attention.batch;
    if (c->state.role == LH_STEP_KV) {
        const uint64_t heads = module->forward->params.attention.groups;
        const uint32_t replicas = lh_step_matrix(plan, LH_STEP_W_KV, c->state.layer).replicas;
        uint32_t slot = 0;

        while (module->forward_roles[slot] != LH_STEP_KV)
            slot++;
        holding = lh_slot_holding(module->forward, &module->forward->slots[slot], place.context,
                                  c->state.part % one.parts);
        c->count = heads / lh_program_slices(module->forward, LH_TENSOR_KV);
        c->first = place.tensor / replicas * heads + holding.slice * c->count;
        c->positions = lh_placement_segment(placement, holding.segment);
        return;
    }
    c->count = lh_step_vocabulary(plan);
    c->first = place.tensor * c->count;
    c->count = MIN(c->count, plan->model.vocab_size - c->first);
    c->positions = lh_placement_segment(placement, holding.segment);
    c->positions.start += (c->positions.count - 1) * c->positions.stride;
    c->positions.count = 1;
}

bool
lh_step_contents(const LhProgram *program, uint32_t rank, uint16_t slot, uint32_t part,
                 LhStepContents *c)
{
    const LhStepPlan *plan = program->plan;

    *c = (LhStepContents){ .count = 1 };
    if (lh_step_params(program) == NULL || !lh_step_state_at(plan, rank, slot, part, &c->state))
        return false;
    if (c->state.family == LH_STEP_OF_TOKENS || c->state.family == LH_STEP_OF_TARGETS)
        set_tokens(plan, rank, c);
    else if (c->state.family == LH_STEP_OF_RESULT)
        set_result(plan, rank, c);
    else if (c->state.weight < LH_STEP_WEIGHTS && c->state.family != LH_STEP_OF_CLOCK)
        set_weight(plan, rank, c);
    return true;
}

/* ---- elements ---- */

static bool
is_cut_by_rows(LhStepWeight weight)
{
    return weight == LH_STEP_W_OUT || weight == LH_STEP_W_DOWN || weight == LH_STEP_W_EXPERT_DOWN ||
           weight == LH_STEP_W_EMBED || weight == LH_STEP_W_HEAD || weight == LH_STEP_W_OUT_A ||
           weight == LH_STEP_W_DOWN_A;
}

bool
lh_step_whole_element(const LhStepContents *c, uint64_t element, uint64_t *whole)
{
    const uint64_t half = c->whole.columns / c->halves, own_half = c->matrix.columns / c->halves;
    uint64_t row = element / c->matrix.columns, column = element % c->matrix.columns;

    if (is_cut_by_rows(c->state.weight)) {
        const uint64_t experts = MAX(c->matrix.experts, 1);
        const uint64_t all = c->whole.rows / experts, own = c->matrix.rows / experts;

        row = row / own * all + c->slice * own + row % own;
    } else if (c->matrix.columns != c->whole.columns)
        column = column / own_half * half + c->slice * own_half + column % own_half;
    *whole = row * c->whole.columns + column;
    return row < c->whole.rows;
}
