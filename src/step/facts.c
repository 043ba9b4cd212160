/*
 * What can be asked about a step without looking at its program: see graph.h.
 */
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
    "x",         "n1",        "n1_full",  "q_rows",    "kv_rows",    "q",          "kv",
    "o",         "lse",       "state",    "q_heads",   "kv_heads",   "o_heads",    "lse_heads",
    "o_rows",    "o_normed",  "gate",     "gated",     "a_sum",      "a",          "x1",
    "n2",        "n2_full",   "up",       "p",         "router",     "route",      "expert_n2",
    "expert_up", "expert_p",  "expert_m", "routed",    "shared",     "m_sum",      "m",
    "e_sum",     "xf",        "xf_full",  "logits",    "logits32",   "stats",      "stats_all",
    "dlogits32", "dlogits",   "dxf_sum",  "dxf",       "dx",         "dx_full",    "dp",
    "dup",       "dexpert_m", "droute",   "dexpert_p", "dexpert_up", "dexpert_n2", "drouter",
    "dn2_sum",   "dn2",       "dgated",   "dgate",     "do_normed",  "do_rows",    "do",
    "dq",        "dkv",       "dq_rows",  "dkv_rows",  "dn1_sum",    "dn1",
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

/* The layer whose tensor has place @instance of @c. */
static uint32_t
layer_at(const LhStepPlan *plan, const LhStepClass *c, uint32_t instance)
{
    if (c->what >= LH_STEP_W_LAYER)
        return 0;
    for (uint32_t layer = instance; layer < plan->layers; layer++) {
        const LhStepVariant variant =
            lh_step_variant(plan, (LhStepFamily)c->family, c->what, layer);

        if (variant.number == c->variant && variant.ordinal == instance)
            return layer;
    }
    g_assert_not_reached();
}

bool
lh_step_state_at(const LhStepPlan *plan, uint32_t slot, uint32_t part, LhStepState *state)
{
    for (guint i = 0; i < plan->classes->len; i++) {
        const LhStepClass *c = &g_array_index(plan->classes, LhStepClass, i);
        const bool of_weight = (c->family > LH_STEP_OF_ROLE && c->family < LH_STEP_OF_STEP_COPY) ||
                               c->family == LH_STEP_OF_CLOCK;

        if (c->slot != slot || !c->stays)
            continue;
        *state = (LhStepState){
            .family = (LhStepFamily)c->family,
            .weight = of_weight ? (LhStepWeight)c->what : LH_STEP_WEIGHTS,
            .layer = of_weight ? layer_at(plan, c, part / c->shape.parts) : 0,
            .part = part % c->shape.parts,
        };
        return true;
    }
    return false;
}
