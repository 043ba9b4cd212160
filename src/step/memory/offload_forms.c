/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closed form of offload: bytes of what a layer keeps for its backward pass. The tables say what
 * the backward pass reads; what the policy does not keep of that takes the inputs of the row that
 * makes it, and so on. Independent of offload.c, which looks at the recorded calls.
 */
#include "step/memory/offload_forms.h"

#include "step/lora.h"
#include "step/memory/kept_beside.h"
#include "step/memory/recomputation.h"
#include "step/memory/recompute_forms.h"
#include "step/step_private.h"

/* What the backward pass of a layer takes from its forward pass, as far as it is known. */
typedef struct {
    const LhStepPlan *plan;
    uint32_t layer;
    bool known[LH_STEP_ROLES];
    uint64_t bytes;
} Needs;

static bool
has_row(const Needs *n, const LhStepNode *node)
{
    const bool moves = node->does == LH_STEP_GATHER || node->does == LH_STEP_SCATTER;

    /* With frozen weights no gradient may read what is made available to them. */
    if (node->does == LH_STEP_NEED &&
        !lh_step_is_read_again(&n->plan->params, (LhStepRole)node->operands[0].what))
        return false;
    return (!moves || n->plan->params.tensor_parallel > 1) &&
           lh_step_takes(n->plan, node, n->layer);
}

static bool
keeps(const Needs *n, LhStepRole role)
{
    return (lh_step_kept(n->plan, n->layer) >> role & 1) != 0 &&
           lh_step_tiles(n->plan, lh_step_rows(role).tiling) == 0;
}

static uint64_t
bytes_of(const Needs *n, LhStepRole role)
{
    const LhStepShape shape = lh_step_role_shape(n->plan, role, n->layer);
    const LhStepTensor unfused = { .family = LH_STEP_OF_UNFUSED,
                                   .what = LH_STEP_W_NORM2,
                                   .layer = (uint16_t)n->layer };
    uint64_t bytes = shape.parts * shape.part_bytes;

    if (role == LH_STEP_X1 && lh_step_layer_beside_bytes(n->plan, n->layer) > 0) {
        const LhStepShape beside = lh_step_tensor_shape(n->plan, &unfused);

        bytes += beside.parts * beside.part_bytes;
    }
    return bytes;
}

/* Whether attention, forward, has an output (@out) or input slot of @role. */
static bool
is_of_attention(const Needs *n, LhStepRole role, bool out)
{
    const LhStepModule *module = &n->plan->modules[lh_step_layer_kind(n->plan, n->layer)];
    const LhSlotRole wanted = out ? LH_SLOT_OUTPUT : LH_SLOT_INPUT;

    for (uint32_t i = 0; i < module->forward->slots_count; i++) {
        if (module->forward_roles[i] == role && module->forward->slots[i].role == wanted)
            return true;
    }
    return false;
}

static bool
makes_role(const Needs *n, const LhStepNode *node, LhStepRole role)
{
    if (node->does == LH_STEP_ATTENTION)
        return is_of_attention(n, role, true);
    for (unsigned i = 0; i < LH_STEP_OPERANDS; i++) {
        const LhStepOperand *o = &node->operands[i];

        if (o->kind == LH_STEP_OUT && lh_step_role(n->plan, (LhStepRole)o->what) == role)
            return true;
    }
    return false;
}

/* Whether a row of the forward pass reads @role. */
static bool
reads_role(const Needs *n, const LhStepNode *node, LhStepRole role)
{
    if (node->does == LH_STEP_ATTENTION)
        return is_of_attention(n, role, false);
    for (unsigned i = 0; i < LH_STEP_OPERANDS; i++) {
        const LhStepOperand *o = &node->operands[i];

        if (o->kind == LH_STEP_IN && lh_step_role(n->plan, (LhStepRole)o->what) == role)
            return true;
    }
    return false;
}

/* Adds what makes @role again, which is not kept. */
static void
add_inputs(const Needs *n, LhStepRole role, bool wanted[LH_STEP_ROLES])
{
    const LhStepNode *node = lh_step_forward;

    while (!has_row(n, node) || !makes_role(n, node, role))
        node++;
    for (unsigned input = 0; input < LH_STEP_E_SUM; input++)
        wanted[input] |= reads_role(n, node, (LhStepRole)input);
}

/* Completes the needs by what the recomputation of what is not kept reads. */
static void
close_needs(Needs *n, bool wanted[LH_STEP_ROLES])
{
    bool more = true;

    while (more) {
        more = false;
        for (unsigned role = 0; role < LH_STEP_E_SUM; role++) {
            if (!wanted[role] || n->known[role])
                continue;
            n->known[role] = more = true;
            if (keeps(n, (LhStepRole)role))
                n->bytes += bytes_of(n, (LhStepRole)role);
            else if (role != LH_STEP_X) /* that is kept for the layer before, or made by it */
                add_inputs(n, (LhStepRole)role, wanted);
        }
    }
}

/* What a row gathers again for others, these read. */
static void
want_rows(const Needs *n, const LhStepNode *table, bool wanted[LH_STEP_ROLES])
{
    for (; table->does != LH_STEP_END; table++) {
        for (unsigned i = 0; i < LH_STEP_OPERANDS && has_row(n, table); i++) {
            const LhStepOperand *o = &table->operands[i];

            if (table->does != LH_STEP_NEED && o->kind == LH_STEP_IN && o->what < LH_STEP_E_SUM)
                wanted[lh_step_role(n->plan, (LhStepRole)o->what)] = true;
        }
    }
}

uint64_t
lh_step_layer_kept_bytes(const LhProgram *program, uint32_t layer)
{
    Needs n = { .plan = program->step, .layer = layer };
    const LhStepModule *module = &n.plan->modules[lh_step_layer_kind(n.plan, layer)];
    bool wanted[LH_STEP_ROLES] = { false };

    want_rows(&n, lh_step_post_bwd, wanted);
    want_rows(&n, lh_step_pre_bwd, wanted);
    for (uint32_t i = 0; i < module->backward->slots_count; i++) {
        if (module->backward_roles[i] < LH_STEP_E_SUM &&
            module->backward->slots[i].role == LH_SLOT_INPUT)
            wanted[module->backward_roles[i]] = true;
    }
    if (n.plan->params.checkpoint == LH_CHECKPOINT_REMAT || lh_step_layer_again(n.plan, layer))
        wanted[lh_step_role(n.plan, LH_STEP_M)] = true;
    close_needs(&n, wanted);
    return n.bytes;
}

uint64_t
lh_step_offloaded_bytes(const LhProgram *program, uint32_t rank)
{
    const LhStepPlan *plan = program->step;
    const uint32_t stage = lh_step_place_of(plan, rank).stage;
    uint64_t bytes = 0;

    for (uint32_t layer = 0; layer < plan->layers; layer++) {
        if (lh_step_stage_of(plan, layer) == stage && lh_step_offloads(plan, layer))
            bytes += lh_step_layer_kept_bytes(program, layer);
    }
    return bytes * plan->params.micro_batches;
}
