/* SPDX-License-Identifier: Apache-2.0 */
#include "step/memory/kept_beside.h"

#include "step/memory/tiles.h"

static uint64_t
elements_of(const LhStepPlan *plan, LhStepRole role, uint32_t layer)
{
    const LhStepShape shape = lh_step_role_shape(plan, role, layer);

    return shape.parts * shape.part_bytes / lh_dtype_bytes(shape.dtype);
}

/* What a layer's norms keep: two of its input, and those of the heads of q and k. A rank has as
 * large a share of these as of the input: rows, or heads. */
static uint64_t
norms_keep(const LhStepPlan *plan, uint32_t layer)
{
    const LhModel *model = plan->params.model;
    const uint64_t elements = elements_of(plan, LH_STEP_X1, layer);
    const uint64_t heads = model->num_attention_heads + model->num_query_groups;
    uint64_t all = 2 * elements;

    if (model->weights.qk_norm)
        all += elements * heads * model->kv_channels / model->hidden_size;
    return all * plan->params.behaviour.norm_kept_bytes;
}

static uint64_t
glu_keeps(const LhStepPlan *plan, uint32_t layer)
{
    const uint32_t features = lh_step_features(plan, layer);
    const uint64_t tiles = MAX(lh_step_tiles(plan, LH_STEP_TILES_OF_MLP), 1);
    uint64_t elements = 0;

    if ((features & LH_STEP_HAS_MLP) != 0)
        elements = elements_of(plan, LH_STEP_P, layer) / tiles;
    if ((features & LH_STEP_HAS_EXPERTS) != 0)
        elements += elements_of(plan, LH_STEP_EXPERT_P, layer);
    return elements * plan->params.behaviour.glu_kept_bytes;
}

uint64_t
lh_step_layer_beside_bytes(const LhStepPlan *plan, uint32_t layer)
{
    const LhStepBehaviour *b = &plan->params.behaviour;
    const uint32_t features = lh_step_features(plan, layer);
    uint64_t bytes = 0;

    if (b->unfused_bytes > 0)
        bytes = elements_of(plan, LH_STEP_X1, layer) * b->unfused_bytes;
    if (b->norm_kept_bytes > 0 && (features & LH_STEP_HAS_RMS) != 0)
        bytes += norms_keep(plan, layer);
    if (b->glu_kept_bytes > 0 && (features & LH_STEP_HAS_GLU) != 0)
        bytes += glu_keeps(plan, layer);
    return bytes;
}
