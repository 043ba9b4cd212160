/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries about a step that do not need its program: see graph.h.
 */
#include "step/layer_info.h"

#include "step/memory/liveness.h"
#include "step/step_private.h"

static const char *const weight_names[LH_STEP_WEIGHTS] = {
    [LH_STEP_W_NORM1] = "norm1",
    [LH_STEP_W_Q] = "q",
    [LH_STEP_W_KV] = "kv",
    [LH_STEP_W_GATE] = "gate",
    [LH_STEP_W_O_NORM] = "o_norm",
    [LH_STEP_W_OUT] = "out",
    [LH_STEP_W_NORM2] = "norm2",
    [LH_STEP_W_UP] = "up",
    [LH_STEP_W_DOWN] = "down",
    [LH_STEP_W_ROUTER] = "router",
    [LH_STEP_W_EXPERT_UP] = "expert_up",
    [LH_STEP_W_EXPERT_DOWN] = "expert_down",
    [LH_STEP_W_QKV_A] = "qkv_a",
    [LH_STEP_W_Q_B] = "q_b",
    [LH_STEP_W_KV_B] = "kv_b",
    [LH_STEP_W_OUT_A] = "out_a",
    [LH_STEP_W_OUT_B] = "out_b",
    [LH_STEP_W_UP_A] = "up_a",
    [LH_STEP_W_UP_B] = "up_b",
    [LH_STEP_W_DOWN_A] = "down_a",
    [LH_STEP_W_DOWN_B] = "down_b",
    [LH_STEP_W_EMBED] = "embed",
    [LH_STEP_W_NORM_F] = "norm_f",
    [LH_STEP_W_HEAD] = "head",
};

const char *
lh_step_weight_name(LhStepWeight weight)
{
    return weight_names[weight];
}

static const char *const role_names[LH_STEP_ROLES] = {
    "x",        "n1",        "n1_full",     "q_rows",      "kv_rows",    "q",
    "kv",       "o",         "lse",         "state",       "q_heads",    "kv_heads",
    "o_heads",  "lse_heads", "o_rows",      "o_normed",    "gate",       "gated",
    "a_sum",    "a",         "x1",          "n2",          "n2_full",    "up",
    "p",        "router",    "route",       "expert_n2",   "expert_up",  "expert_p",
    "expert_m", "routed",    "shared",      "m_sum",       "m",          "qkv_low",
    "out_low",  "up_low",    "down_low",    "e_sum",       "xf",         "xf_full",
    "logits",   "logits32",  "stats",       "stats_all",   "dlogits32",  "dlogits",
    "dxf_sum",  "dxf",       "dx",          "dx_full",     "m_tile",     "dp",
    "dup",      "dexpert_m", "droute",      "dexpert_p",   "dexpert_up", "dexpert_n2",
    "drouter",  "dn2_sum",   "dn2",         "dgated",      "dgate",      "do_normed",
    "do_rows",  "do",        "dq",          "dkv",         "dq_rows",    "dkv_rows",
    "dn1_sum",  "dn1",       "dqkv_low",    "dout_low",    "dup_low",    "ddown_low",
    "q_delta",  "kv_delta",  "out_delta",   "up_delta",    "down_delta", "m_tile_delta",
    "x_last",   "xf_last",   "xf_last_all", "logits_last",
};

const char *
lh_step_role_name(LhStepRole role)
{
    return role_names[role];
}

uint32_t
lh_step_layers(const LhStepPlan *plan)
{
    return plan->layers;
}

LhStepKind
lh_step_layer_kind(const LhStepPlan *plan, uint32_t layer)
{
    return (LhStepKind)plan->kinds[MIN(layer, plan->layers - 1)];
}

LhStepPlace
lh_step_place_of(const LhStepPlan *plan, uint32_t rank)
{
    const uint32_t t = plan->params.tensor_parallel;

    return (LhStepPlace){ .tensor = rank % t,
                          .context = rank / t % plan->params.module.ranks,
                          .stage = rank / t / plan->data_ranks,
                          .data = rank / t % plan->data_ranks };
}

uint32_t
lh_step_chunk_of(const LhStepPlan *plan, uint32_t layer)
{
    return (layer + (plan->params.embedding_counts ? 1 : 0)) /
           lh_step_places_of_chunk(&plan->params);
}

bool
lh_step_offloads(const LhStepPlan *plan, uint32_t layer)
{
    const uint32_t first = lh_step_chunk_begins(&plan->params, lh_step_chunk_of(plan, layer));

    return layer < plan->layers && layer - first < plan->params.offload_layers;
}

uint32_t
lh_step_stage_of(const LhStepPlan *plan, uint32_t layer)
{
    return lh_step_chunk_of(plan, MIN(layer, plan->layers - 1)) % lh_step_stages(&plan->params);
}

bool
lh_step_is_shared(const LhStepPlan *plan, LhStepWeight weight)
{
    return weight == LH_STEP_W_EMBED && plan->model.tied_embeddings &&
           lh_step_stages(&plan->params) > 1;
}

bool
lh_step_stage_has(const LhStepPlan *plan, uint32_t stage, LhStepWeight weight, uint32_t layer)
{
    const bool last = stage + 1 == lh_step_stages(&plan->params);

    if (weight < LH_STEP_W_LAYER)
        return lh_step_stage_of(plan, layer) == stage;
    if (weight == LH_STEP_W_EMBED)
        return stage == 0 || (last && plan->model.tied_embeddings);
    return last;
}

char *
lh_step_loss_text(const LhStepParams *params)
{
    const char *kind = lh_loss_names[params->loss];

    return params->loss_chunk_rows > 0
               ? g_strdup_printf("%s:%" G_GUINT64_FORMAT, kind, params->loss_chunk_rows)
               : g_strdup(kind);
}

bool
lh_step_is_result(const LhStepPlan *plan, LhStepRole role)
{
    return plan->params.forward_only && (role == LH_STEP_KV || role == LH_STEP_LOGITS_LAST);
}

uint32_t
lh_step_segments(const LhStepPlan *plan)
{
    return plan->segments;
}

uint64_t
lh_step_rank_rows(const LhStepPlan *plan)
{
    return plan->rows;
}

/* Layer of @stage whose tensor has place @instance of @c. */
static uint32_t
layer_at(const LhStepPlan *plan, const LhStepClass *c, uint32_t stage, uint32_t instance)
{
    const bool of_layer =
        c->family == LH_STEP_OF_RESULT ? c->what == LH_STEP_KV : c->what < LH_STEP_W_LAYER;
    uint32_t before = 0;

    if (!of_layer)
        return c->family == LH_STEP_OF_RESULT ? plan->layers : 0;
    for (uint32_t layer = 0; layer < plan->layers; layer++) {
        if (lh_step_stage_of(plan, layer) == stage &&
            lh_step_variant(plan, (LhStepFamily)c->family, c->what, layer).number == c->variant &&
            lh_step_has_on_host(plan, (LhStepFamily)c->family, stage, c->what, layer) ==
                c->on_host &&
            before++ == instance)
            return layer;
    }
    g_assert_not_reached();
}

bool
lh_step_state_at(const LhStepPlan *plan, uint32_t rank, uint32_t slot, uint32_t part,
                 LhStepState *state)
{
    const uint32_t stage = lh_step_place_of(plan, rank).stage;

    for (guint i = 0; i < plan->classes->len; i++) {
        const LhStepClass *c = &g_array_index(plan->classes, LhStepClass, i);
        const bool of_weight = (c->family > LH_STEP_OF_ROLE && c->family < LH_STEP_OF_STEP_COPY) ||
                               c->family == LH_STEP_OF_CLOCK;
        const bool result = c->family == LH_STEP_OF_RESULT;

        if (c->slot != slot || !c->stays || (c->stage != LH_STEP_NONE && c->stage != stage))
            continue;
        *state = (LhStepState){
            .family = (LhStepFamily)c->family,
            .weight = of_weight ? (LhStepWeight)c->what : LH_STEP_WEIGHTS,
            .role = result ? (LhStepRole)c->what : LH_STEP_ROLES,
            .layer = of_weight || result ? layer_at(plan, c, stage, part / c->shape.parts) : 0,
            .part = part % c->shape.parts,
        };
        return true;
    }
    return false;
}

LhGroup
lh_step_group(const LhStepPlan *plan, LhStepGroup group, uint32_t rank)
{
    const uint32_t t = plan->params.tensor_parallel, of_stage = t * plan->data_ranks;
    const uint32_t stages = lh_step_stages(&plan->params);
    const uint32_t replicas = MAX(t / MAX((uint32_t)plan->model.num_query_groups, 1), 1);
    LhGroup g = { .stride = 1, .outer_count = 1 };

    switch (group) {
    case LH_STEP_GROUP_TENSOR:
        g.base = rank / t * t;
        g.count = t;
        break;
    case LH_STEP_GROUP_REPLICAS:
        g.base = rank / replicas * replicas;
        g.count = replicas;
        break;
    case LH_STEP_GROUP_DATA:
        g.base = rank / of_stage * of_stage + rank % t;
        g.stride = t;
        g.count = plan->data_ranks;
        break;
    case LH_STEP_GROUP_MODEL:
        g.base = rank % of_stage / t * t;
        g.count = t;
        g.outer_stride = of_stage;
        g.outer_count = stages;
        break;
    case LH_STEP_GROUP_ENDS:
        g.base = rank % of_stage;
        g.stride = (stages - 1) * of_stage;
        g.count = 2;
        break;
    default:
        g.count = of_stage * stages;
    }
    return g;
}

bool
lh_step_makes(const LhStepPlan *plan, const LhStepCall *call, uint32_t rank)
{
    const LhStepPlace place = lh_step_place_of(plan, rank);
    const uint32_t ranks = plan->data_ranks;

    return place.tensor % call->replicas == 0 &&
           (call->owners == 0 || (place.data + ranks - call->owners_first) % ranks < call->owners);
}

LhDimension
lh_step_dimension(const LhOp *op)
{
    if (op->kind != LH_OP_EXCHANGE && op->kind != LH_OP_COLLECTIVE)
        return LH_DIMENSIONS;
    if (op->module > 0)
        return LH_DIMENSION_CONTEXT;
    if (op->stream == LH_STEP_STREAM_PIPELINE)
        return LH_DIMENSION_PIPELINE;
    return op->stream == LH_STEP_STREAM_COMPUTE || op->stream == LH_STEP_STREAM_TENSOR
               ? LH_DIMENSION_TENSOR
               : LH_DIMENSION_DATA;
}
