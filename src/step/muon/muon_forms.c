/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrices of a stage are numbered by weight, then shape, then layer. Of D ranks that share states,
 * rank d has those whose number is d modulo D. An all-to-all moves D matrices of one shape, or what
 * is left of them; each rank sends a piece to every other one, there and back.
 */
#include "step/muon/muon_forms.h"

#include "step/memory/liveness.h"
#include "step/muon/muon.h"
#include "step/step_private.h"

/* Matrices of one shape in a stage: the first layer of one, their number, and that of the matrices
 * before them. */
typedef struct {
    uint32_t layer, count, before;
} Shape;

typedef void Visit(const LhStepPlan *plan, LhStepWeight weight, const Shape *shape, uint32_t rank,
                   uint64_t *sum);

static Shape
find_shape(const LhStepPlan *plan, uint32_t stage, LhStepWeight weight, uint32_t variant)
{
    Shape shape = { 0 };

    for (uint32_t layer = plan->layers; layer-- > 0;) {
        if (lh_step_stage_of(plan, layer) != stage ||
            lh_step_matrix(plan, weight, layer).rows == 0 ||
            lh_step_variant(plan, LH_STEP_OF_WEIGHT, (uint8_t)weight, layer).number != variant)
            continue;
        shape.layer = layer;
        shape.count++;
    }
    return shape;
}

static uint64_t
sum_of(const LhStepPlan *plan, uint32_t rank, Visit *visit)
{
    const uint32_t stage = lh_step_place_of(plan, rank).stage;
    uint32_t before = 0;
    uint64_t sum = 0;

    for (uint32_t i = 0; i < LH_STEP_W_LAYER * LH_STEP_KINDS; i++) {
        const LhStepWeight weight = (LhStepWeight)(i / LH_STEP_KINDS);
        Shape shape;

        if (!lh_muon_has(&plan->params, weight))
            continue;
        shape = find_shape(plan, stage, weight, i % LH_STEP_KINDS);
        shape.before = before;
        before += shape.count;
        if (shape.count > 0)
            visit(plan, weight, &shape, rank, &sum);
    }
    return sum;
}

/* Ranks that share states, each of which has its own matrices; 1: all ranks have all. */
static uint32_t
sharers(const LhStepPlan *plan)
{
    return plan->params.shard == LH_SHARD_DDP ? 1 : plan->data_ranks;
}

/* How many of the numbers [0, @count) are @rest modulo @d. */
static uint64_t
count_below(uint64_t count, uint64_t rest, uint64_t d)
{
    return (count + d - 1 - rest) / d;
}

/* Matrices of a shape that a rank has. */
static uint64_t
own_count(const LhStepPlan *plan, const Shape *shape, uint32_t rank)
{
    const uint32_t d = sharers(plan), own = d == 1 ? 0 : lh_step_place_of(plan, rank).data;

    return count_below(shape->before + shape->count, own, d) - count_below(shape->before, own, d);
}

static bool
is_whole(const LhStepPlan *plan, const LhStepMatrix *matrix)
{
    return plan->params.muon.tp_mode == LH_MUON_DUPLICATED &&
           matrix->replicas < plan->params.tensor_parallel;
}

/* 2 r r c, 2 r r r and 2 r r c of a matrix of r x c, r <= c, with 3 r r and 2 r c of the sums. */
static void
add_flops(const LhStepPlan *plan, LhStepWeight weight, const Shape *shape, uint32_t rank,
          uint64_t *sum)
{
    const LhStepMatrix m = lh_step_matrix(plan, weight, shape->layer);
    const uint64_t cuts = is_whole(plan, &m) ? plan->params.tensor_parallel / m.replicas : 1;
    const bool down =
        weight == LH_STEP_W_OUT || weight == LH_STEP_W_DOWN || weight == LH_STEP_W_EXPERT_DOWN;
    const bool up = weight == LH_STEP_W_UP || weight == LH_STEP_W_EXPERT_UP;
    const uint64_t pairs = weight == LH_STEP_W_KV || (up && plan->model.gated_mlp) ? 2 : 1;
    const uint64_t in = m.rows / MAX(m.experts, 1) * (down ? cuts : 1);
    const uint64_t out = m.columns / pairs * (down ? 1 : cuts);
    const uint64_t r = MIN(in, out), c = MAX(in, out);

    *sum += own_count(plan, shape, rank) * plan->params.muon.steps * MAX(m.experts, 1) * pairs *
            (4 * r * r * c + 2 * r * r * r + 3 * r * r + 2 * r * c);
}

static void
add_tensor_sent(const LhStepPlan *plan, LhStepWeight weight, const Shape *shape, uint32_t rank,
                uint64_t *sum)
{
    const LhStepMatrix m = lh_step_matrix(plan, weight, shape->layer);

    if (is_whole(plan, &m))
        *sum += own_count(plan, shape, rank) * (plan->params.tensor_parallel - 1) * sharers(plan) *
                lh_step_piece_elements(plan, weight, shape->layer) *
                lh_dtype_bytes(plan->params.module.attention.dtype);
}

static void
add_data_sent(const LhStepPlan *plan, LhStepWeight weight, const Shape *shape, uint32_t rank,
              uint64_t *sum)
{
    const uint64_t d = sharers(plan);

    (void)rank;
    *sum += 2 * ((shape->count + d - 1) / d) * (d - 1) *
            lh_step_piece_elements(plan, weight, shape->layer) *
            lh_dtype_bytes(plan->params.module.attention.dtype);
}

uint64_t
lh_muon_flops(const LhStepPlan *plan, uint32_t rank)
{
    return sum_of(plan, rank, add_flops);
}

uint64_t
lh_muon_tensor_sent(const LhStepPlan *plan, uint32_t rank)
{
    return sum_of(plan, rank, add_tensor_sent);
}

uint64_t
lh_muon_data_sent(const LhStepPlan *plan, uint32_t rank)
{
    return sum_of(plan, rank, add_data_sent);
}
