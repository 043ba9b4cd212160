/* SPDX-License-Identifier: Apache-2.0 */
#include "step/memory/recompute_forms.h"

#include "step/lora.h"
#include "step/step_private.h"

/* ---- layers and modules ---- */

/* Number of layers before @layer in its chunk. */
static uint32_t
before_in_chunk(const LhStepPlan *plan, uint32_t layer)
{
    return layer - lh_step_chunk_begins(&plan->params, lh_step_chunk_of(plan, layer));
}

bool
lh_step_layer_again(const LhStepPlan *plan, uint32_t layer)
{
    const LhRecompute *recompute = &plan->params.recompute;

    if (plan->params.checkpoint != LH_CHECKPOINT_LAYER || recompute->layers == 0)
        return plan->params.checkpoint == LH_CHECKPOINT_LAYER;
    if (recompute->method == LH_RECOMPUTE_BLOCK)
        return before_in_chunk(plan, layer) < recompute->layers;
    return recompute->method == LH_RECOMPUTE_UNIFORM ||
           before_in_chunk(plan, layer) % recompute->layers == recompute->layers - 1;
}

static bool
names_module(const LhStepPlan *plan, LhRecomputeModule module)
{
    const LhStepParams *p = &plan->params;

    if (p->checkpoint != LH_CHECKPOINT_SELECTIVE)
        return false;
    return p->recompute.modules == 0 ? module == LH_RECOMPUTE_CORE_ATTN
                                     : (p->recompute.modules & UINT32_C(1) << module) != 0;
}

/* Whether the MLP of a layer, or its experts, are recomputed with what follows them. */
static bool
mlp_again(const LhStepPlan *plan, uint32_t layer)
{
    return names_module(plan, lh_step_is_dense(plan, layer) ? LH_RECOMPUTE_MLP : LH_RECOMPUTE_MOE);
}

static bool
shared_again(const LhStepPlan *plan, uint32_t layer)
{
    return names_module(plan, LH_RECOMPUTE_SHARED_EXPERTS) && !lh_step_is_dense(plan, layer) &&
           plan->model.weights.shared_experts > 0;
}

/* ---- products ---- */

/* Whether attention's backward pass takes q and kv as rows, not as saved by heads. */
static bool
takes_rows(const LhStepPlan *plan, uint32_t layer)
{
    const LhStepModule *module = &plan->modules[plan->kinds[layer]];

    for (uint32_t i = 0; i < module->backward->slots_count; i++) {
        if (module->backward_roles[i] == LH_STEP_Q || module->backward_roles[i] == LH_STEP_KV)
            return true;
    }
    return false;
}

/* Policy `remat` keeps a layer's input and the results of attention; q, k and v are recomputed only
 * if attention's backward pass, or that of silu, reads them. An adapter's products are recomputed
 * with that of its matrix; the product with A of q, k and v also for the gradient of B. */
bool
lh_step_product_again(const LhStepPlan *plan, LhStepWeight weight, uint32_t layer)
{
    switch (lh_step_is_a(weight) && lh_step_adapted(weight) == LH_STEP_W_Q
                ? weight
                : lh_step_adapted(weight)) {
    case LH_STEP_W_Q:
    case LH_STEP_W_KV:
        if (plan->params.checkpoint == LH_CHECKPOINT_REMAT)
            return takes_rows(plan, layer) || plan->kinds[layer] == LH_STEP_LINEAR;
        return lh_step_layer_again(plan, layer);
    case LH_STEP_W_UP:
    case LH_STEP_W_DOWN:
        if (shared_again(plan, layer))
            return true;
        G_GNUC_FALLTHROUGH;
    case LH_STEP_W_ROUTER:
    case LH_STEP_W_EXPERT_UP:
    case LH_STEP_W_EXPERT_DOWN:
        if (mlp_again(plan, layer))
            return true;
        G_GNUC_FALLTHROUGH;
    default:
        return weight < LH_STEP_W_LAYER &&
               (plan->params.checkpoint == LH_CHECKPOINT_REMAT || lh_step_layer_again(plan, layer));
    }
}

bool
lh_step_attention_again(const LhStepPlan *plan, uint32_t layer)
{
    return names_module(plan, LH_RECOMPUTE_CORE_ATTN) || lh_step_layer_again(plan, layer);
}

/* ---- tensor parallelism ---- */

/*
 * A whole layer repeats the moves of N1, A, N2 and M; its MLP those of N2, for its products, and M.
 * Some frameworks gather N1 and N2 once more for weight gradients: N1 not if nothing else needs it
 * in the backward pass, N2 not if it was gathered for a tiled MLP. Others keep the gathered rows,
 * unless they belong to a norm's discarded output, or to a recomputed MLP. Frozen weights need
 * neither; all that needs N1 then are products that are recomputed, and N2 a tiled MLP.
 */
uint64_t
lh_step_moves_again(const LhStepPlan *plan, uint32_t layer)
{
    const LhStepParams *p = &plan->params;
    const bool tiled = p->mlp_tile_rows > 0 && lh_step_matrix(plan, LH_STEP_W_UP, layer).rows > 0;
    const bool remat = p->checkpoint == LH_CHECKPOINT_REMAT,
               whole = lh_step_layer_again(plan, layer);
    const bool norms = names_module(plan, LH_RECOMPUTE_LAYERNORM);
    const bool mlp = mlp_again(plan, layer), q = lh_step_product_again(plan, LH_STEP_W_Q, layer);
    const bool n1 = lh_step_is_read_again(p, LH_STEP_N1_FULL);
    const bool n2 = lh_step_is_read_again(p, LH_STEP_N2_FULL) || tiled;
    uint64_t moves = remat || whole ? 4 : mlp ? 2 : 0;

    if (remat && !n1 && !q && !plan->gated[plan->kinds[layer]])
        moves--;
    if (!p->behaviour.gather_again)
        return moves + (norms && n1 ? 1 : 0) + (norms && !mlp && n2 ? 1 : 0);
    if (moves == 0 && shared_again(plan, layer))
        moves = 1;
    return moves + (n1 && (!remat || q) ? 1 : 0) + (n2 && (moves == 0 || !tiled) ? 1 : 0);
}

/* ---- FSDP ---- */

/* All but the last layer of those that are recomputed together. */
bool
lh_step_weights_again(const LhStepPlan *plan, uint32_t layer)
{
    const LhRecompute *recompute = &plan->params.recompute;
    const bool last = layer + 1 == plan->layers ||
                      lh_step_chunk_of(plan, layer + 1) != lh_step_chunk_of(plan, layer);

    return plan->params.checkpoint == LH_CHECKPOINT_LAYER && plan->params.behaviour.reshard &&
           recompute->layers > 1 && recompute->method == LH_RECOMPUTE_UNIFORM && !last &&
           (before_in_chunk(plan, layer) + 1) % recompute->layers != 0;
}
