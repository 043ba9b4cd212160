/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules as in Megatron-LM (megatron/core: transformer_layer.py, moe/moe_layer.py, moe/experts.py,
 * recompute.py) and torchtitan (activation_checkpoint.py). Not modelled: a module inside another
 * one that is recomputed, which would run a third time.
 */
#include "step/memory/recomputation.h"

#include "step/sharding.h"
#include "step/table_rows.h"

#define BIT(role) (UINT64_C(1) << LH_STEP_##role)

/* Outputs of attention for other rows. */
#define WRITTEN_BY_ATTENTION                                                                       \
    (BIT(O) | BIT(LSE) | BIT(STATE) | BIT(Q_HEADS) | BIT(KV_HEADS) | BIT(O_HEADS) | BIT(LSE_HEADS))
#define GATHERED (BIT(N1_FULL) | BIT(N2_FULL))
#define OF_MLP (BIT(UP) | BIT(P) | BIT(UP_LOW) | BIT(DOWN_LOW))
#define OF_EXPERTS                                                                                 \
    (BIT(ROUTER) | BIT(ROUTE) | BIT(EXPERT_N2) | BIT(EXPERT_UP) | BIT(EXPERT_P) | BIT(EXPERT_M) |  \
     BIT(ROUTED))
#define BEHIND_MLP (BIT(M_SUM) | BIT(M))

G_STATIC_ASSERT(LH_STEP_DX < LH_STEP_KEPT_BITS); /* hence all roles of the forward pass */

/* ---- modules ---- */

typedef struct {
    uint32_t when;    /* features of the layers that have it */
    uint64_t dropped; /* roles that are not kept */
    /* Made again before the backward pass of the layer: the last result of the module, or the
     * discarded output of a norm. LH_STEP_ROLES: made when the first row reads it. */
    uint8_t again;
} Module;

/* Rows gathered for a module's first product are part of it; those of a norm are its output. */
static const Module modules[LH_RECOMPUTE_MODULES] = {
    [LH_RECOMPUTE_CORE_ATTN] = { 0, WRITTEN_BY_ATTENTION, LH_STEP_ROLES },
    [LH_RECOMPUTE_LAYERNORM] = { 0, BIT(N1) | BIT(N2) | GATHERED, LH_STEP_N2 },
    [LH_RECOMPUTE_MLP] = { LH_STEP_HAS_DENSE, BIT(N2_FULL) | OF_MLP | BEHIND_MLP, LH_STEP_M },
    [LH_RECOMPUTE_MOE] = { LH_STEP_HAS_EXPERTS,
                           BIT(N2_FULL) | OF_EXPERTS | OF_MLP | BIT(SHARED) | BEHIND_MLP,
                           LH_STEP_M },
    [LH_RECOMPUTE_MOE_ACT] = { LH_STEP_HAS_EXPERTS, BIT(EXPERT_P), LH_STEP_ROLES },
    [LH_RECOMPUTE_SHARED_EXPERTS] = { LH_STEP_HAS_SHARED, OF_MLP | BIT(SHARED), LH_STEP_SHARED },
    [LH_RECOMPUTE_MLA_UP_PROJ] = { 0, 0, LH_STEP_ROLES }, /* no step has it */
};

/* Whether a module of this layer is recomputed on its own. */
static bool
recomputes(const LhStepPlan *plan, LhRecomputeModule module, uint32_t layer)
{
    const uint32_t set = plan->params.recompute.modules;
    const uint32_t bits = set != 0 ? set : LH_RECOMPUTE_BIT(CORE_ATTN);
    const uint32_t when = modules[module].when;

    return plan->params.checkpoint == LH_CHECKPOINT_SELECTIVE && (bits >> module & 1) != 0 &&
           (lh_step_features(plan, layer) & when) == when;
}

/* ---- layers ---- */

/* Layers [first, last] are recomputed together, before the backward pass of the last one. */
typedef struct {
    uint32_t first, last;
    bool recomputed;
} Group;

static Group
layers_with(const LhStepPlan *plan, uint32_t layer)
{
    const LhStepParams *p = &plan->params;
    const uint32_t chunk = lh_step_chunk_of(plan, layer), n = p->recompute.layers;
    const uint32_t begins = lh_step_chunk_begins(p, chunk);
    Group group = { layer, layer, p->checkpoint >= LH_CHECKPOINT_LAYER };

    if (p->checkpoint != LH_CHECKPOINT_LAYER || n == 0)
        return group;
    switch (p->recompute.method) {
    case LH_RECOMPUTE_BLOCK:
        group.recomputed = layer - begins < n;
        break;
    case LH_RECOMPUTE_EVERY:
        group.recomputed = (layer - begins + 1) % n == 0;
        break;
    default:
        group.first = layer - (layer - begins) % n;
        group.last = MIN(group.first + n, lh_step_chunk_begins(p, chunk + 1)) - 1;
    }
    return group;
}

uint64_t
lh_step_kept(const LhStepPlan *plan, uint32_t layer)
{
    const Group group = layers_with(plan, layer);
    uint64_t kept = UINT64_MAX;

    if (group.recomputed)
        kept = (group.first == layer ? BIT(X) : 0) |
               (plan->params.checkpoint == LH_CHECKPOINT_REMAT ? WRITTEN_BY_ATTENTION : 0);
    for (unsigned module = 0; module < LH_RECOMPUTE_MODULES; module++)
        kept &= ~(recomputes(plan, (LhRecomputeModule)module, layer) ? modules[module].dropped : 0);
    return kept & ~(plan->params.behaviour.gather_again ? GATHERED : 0);
}

uint32_t
lh_step_recomputed_from(const LhStepPlan *plan, uint32_t layer)
{
    return layers_with(plan, layer).first;
}

/* ---- recording ---- */

/* Calls all of the layers again, including their last products. Under FSDP a layer is gathered for
 * that, and again for its own backward pass. */
static void
call_group(LhStepRecorder *r, const Group *group)
{
    for (uint32_t layer = group->first; layer <= group->last; layer++) {
        lh_step_need(r, LH_STEP_M, layer);
        if (layer < group->last && r->plan->params.behaviour.reshard)
            lh_step_drop_weights(r, LH_STEP_W_Q, layer);
    }
}

void
lh_step_call_again(LhStepRecorder *r, uint32_t layer)
{
    const Group group = layers_with(r->plan, layer);

    if (group.recomputed && group.last == layer)
        call_group(r, &group);
    for (unsigned module = 0; module < LH_RECOMPUTE_MODULES; module++) {
        if (modules[module].again != LH_STEP_ROLES &&
            recomputes(r->plan, (LhRecomputeModule)module, layer))
            lh_step_need(r, (LhStepRole)modules[module].again, layer);
    }
}

void
lh_step_restore_norm(LhStepRecorder *r, uint32_t layer)
{
    if (recomputes(r->plan, LH_RECOMPUTE_LAYERNORM, layer))
        lh_step_need(r, LH_STEP_N1, layer);
}

/* ---- what is possible ---- */

static bool
check_module(const LhStepParams *p, LhRecomputeModule module, GError **error)
{
    const LhModel *m = p->model;
    const char *name = lh_recompute_module_names[module];
    const uint64_t dense = m->num_experts > 0 ? lh_model_dense(m) : m->num_layers;

    switch (module) {
    case LH_RECOMPUTE_MLP:
        if (dense > 0)
            return true;
        return lh_program_refuse(error,
                                 "%s recomputes layers without experts, and all layers have "
                                 "them; moe recomputes those",
                                 name);
    case LH_RECOMPUTE_MOE:
    case LH_RECOMPUTE_MOE_ACT:
        if (dense < m->num_layers)
            return true;
        return lh_program_refuse(error, "%s recomputes layers with experts, and no layer has any%s",
                                 name, module == LH_RECOMPUTE_MOE ? "; mlp recomputes these" : "");
    case LH_RECOMPUTE_SHARED_EXPERTS:
        if (m->weights.shared_experts > 0)
            return true;
        return lh_program_refuse(error, "%s are recomputed, and the model has none", name);
    case LH_RECOMPUTE_MLA_UP_PROJ:
        return lh_program_refuse(
            error, "%s recomputes latent attention, which steps do not support", name);
    default:
        return true;
    }
}

static bool
check_layers(const LhStepParams *p, GError **error)
{
    const uint64_t most = MIN(lh_step_places_of_chunk(p), p->model->num_layers);

    if (p->recompute.layers <= most)
        return true;
    return lh_program_refuse(
        error, "recomputation by the method %s with %u layers: %s has %u; allowed: 1 to %u",
        lh_recompute_method_names[p->recompute.method], p->recompute.layers,
        lh_step_chunks(p) > 1   ? "a chunk of a pipeline stage"
        : lh_step_stages(p) > 1 ? "a pipeline stage"
                                : "the model",
        (unsigned)most, (unsigned)most);
}

bool
lh_step_check_recomputation(const LhStepParams *p, GError **error)
{
    const uint32_t set = p->recompute.modules;

    if (p->checkpoint == LH_CHECKPOINT_LAYER)
        return check_layers(p, error);
    for (unsigned module = 0; module < LH_RECOMPUTE_MODULES; module++) {
        const bool inside = module == LH_RECOMPUTE_MOE_ACT || module == LH_RECOMPUTE_SHARED_EXPERTS;

        if ((set >> module & 1) == 0)
            continue;
        if (inside && (set & LH_RECOMPUTE_BIT(MOE)) != 0)
            return lh_program_refuse(error, "moe recomputes %s, too; leave one of them out",
                                     lh_recompute_module_names[module]);
        if (!check_module(p, (LhRecomputeModule)module, error))
            return false;
    }
    return true;
}
