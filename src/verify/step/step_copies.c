/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offload. A copy moves values, so what a kernel finds behind it is checked where the kernel reads
 * it. What remains to be shown is that offload does what it is for: every kept tensor goes to the
 * host once and back once, and its memory on the device is free in between. Gradients go to the
 * host and weights come back as often as the closed form says.
 */
#include "verify/step/step_copies.h"

#include "step/layer_info.h"
#include "step/memory/host_state_forms.h"
#include "step/memory/host_states.h"
#include "step/memory/offload_forms.h"

#define FIND_COPIES(...)                                                                           \
    lh_proof_find(proof, LH_FINDING_CLOSED_FORM, (LhFindingPlace){ rank, LH_NONE, -1, LH_NONE },   \
                  __VA_ARGS__)

bool
lh_step_copies_has(const LhOp *op)
{
    return op->kind == LH_OP_COMPUTE && lh_kernels[op->compute.kernel]->args == LH_ARGS_COPY;
}

static bool
is_to_host(const LhOp *op)
{
    return op->compute.kernel == LH_KERNEL_ID_to_host;
}

static bool
is_of_weight(const LhValue *value)
{
    return value->kind == LH_VALUE_WEIGHT || value->kind == LH_VALUE_GRADIENT;
}

/* The phase that a copy of @value belongs to. */
static LhPhase
phase_of(const LhStepValues *v, uint32_t g, const LhValue *value)
{
    const uint32_t stage = lh_step_values_place(v, v->proof->op_rank[g]).stage;
    const LhOp *op = &v->proof->ops[g];

    if (value->kind == LH_VALUE_NORM || (value->kind == LH_VALUE_WEIGHT && value->of > 0))
        return LH_PHASE_OPTIMIZER;
    if (value->kind == LH_VALUE_WEIGHT) /* for a gather of any pass */
        return op->phase == LH_PHASE_FORWARD ? LH_PHASE_FORWARD : LH_PHASE_BACKWARD;
    if (value->kind == LH_VALUE_GRADIENT)
        return lh_step_gradient_leaves(v->plan, stage, (LhStepWeight)value->what, value->layer)
                   ? LH_PHASE_BACKWARD
                   : LH_PHASE_OPTIMIZER;
    return is_to_host(op) ? LH_PHASE_FORWARD : LH_PHASE_BACKWARD;
}

/* Checks the labels of a copy of @value. */
static bool
check_labels(LhStepValues *v, uint32_t g, const LhValue *value)
{
    const LhOp *op = &v->proof->ops[g];
    const LhPhase phase = phase_of(v, g, value);

    if (op->phase != phase)
        FIND_VALUE(g, -1, "is labelled phase %s, but belongs to phase %s",
                   lh_phase_names[op->phase], lh_phase_names[phase]);
    else if ((value->kind == LH_VALUE_NORM || is_of_weight(value)) && op->layer != value->layer)
        FIND_VALUE(g, -1, "is labelled layer %u, but copies what belongs to layer %u", op->layer,
                   value->layer);
    else if (value->kind == LH_VALUE_ROLE &&
             (value->layer != op->layer || value->micro_batch != op->micro_batch))
        FIND_VALUE(g, -1,
                   "is labelled layer %u, micro-batch %u, but copies a tensor of layer %u, "
                   "micro-batch %u",
                   op->layer, op->micro_batch, value->layer, value->micro_batch);
    else
        return true;
    return false;
}

void
lh_step_copies_apply(LhStepValues *v, uint32_t g)
{
    const LhOp *op = &v->proof->ops[g];
    const LhRegion *from = &op->compute.regions[0], *to = &op->compute.regions[1];
    bool right = true;

    for (uint32_t i = 0; i < from->count; i++) {
        const LhValue value = lh_step_values_take(v, g, from->slot, from->part + i);

        right = right && check_labels(v, g, &value);
        lh_step_values_put(v, g, to->slot, to->part + i,
                           right ? value : (LhValue){ .kind = LH_VALUE_SUSPECT });
    }
}

/* ---- closed forms ---- */

/* What has become of a part in device memory. */
typedef enum { OTHER, LEFT, CAME_BACK, STATES } State;

/* Bytes on the device in each state, now and at most. */
typedef struct {
    uint8_t *cells; /* [cells] State */
    uint64_t bytes[STATES], most[STATES];
    uint64_t copied[2]; /* of activations: to the host, and back */
    uint64_t states[2]; /* of gradients, weights and norms */
} Copies;

/* Whether a copy is of a tensor of the model, not of an activation. */
static bool
is_of_model(const LhProgram *program, const LhOp *op)
{
    return lh_tensor_is_of_model(program->slots[op->compute.regions[0].slot].kind);
}

static void
set_state(Copies *c, const LhProgram *program, const LhRegion *region, State state)
{
    const LhSlot *slot = &program->slots[region->slot];

    for (uint32_t i = 0; i < region->count; i++) {
        uint8_t *of = &c->cells[slot->first_cell + region->part + i];

        c->bytes[*of] -= MIN(slot->part_bytes, c->bytes[*of]);
        c->bytes[state] += slot->part_bytes;
        *of = (uint8_t)state;
    }
    c->most[state] = MAX(c->most[state], c->bytes[state]);
}

static void
count_op(Copies *c, const LhProof *proof, const LhOp *op)
{
    if (op->kind == LH_OP_FREE || op->kind == LH_OP_ALLOC) {
        set_state(c, proof->program, &op->memory.region, OTHER);
    } else if (lh_step_copies_has(op) && is_of_model(proof->program, op)) {
        c->states[is_to_host(op) ? 0 : 1] +=
            op->compute.args.copy.bytes + op->compute.args.copy.beside;
    } else if (lh_step_copies_has(op)) {
        const LhRegion *device = &op->compute.regions[is_to_host(op) ? 0 : 1];

        c->copied[is_to_host(op) ? 0 : 1] +=
            op->compute.args.copy.bytes + op->compute.args.copy.beside;
        set_state(c, proof->program, device, is_to_host(op) ? LEFT : CAME_BACK);
    }
}

static uint64_t
most_kept(const LhProof *proof)
{
    uint64_t most = 0;

    for (uint32_t layer = 0; layer < lh_step_layers(proof->program->step); layer++) {
        if (lh_step_offloads(proof->program->step, layer))
            most = MAX(most, lh_step_layer_kept_bytes(proof->program, layer));
    }
    return most;
}

static void
check_copied(LhProof *proof, uint32_t rank, const char *what, const uint64_t copied[2],
             const uint64_t want[2])
{
    for (unsigned i = 0; i < 2; i++) {
        if (copied[i] != want[i])
            FIND_COPIES("copies %" G_GUINT64_FORMAT " bytes%s %s, but the closed form says "
                        "%" G_GUINT64_FORMAT,
                        copied[i], what, i == 0 ? "to the host" : "back from the host", want[i]);
    }
}

void
lh_step_copies_check(LhProof *proof, uint32_t rank)
{
    const uint64_t want = lh_step_offloaded_bytes(proof->program, rank);
    const uint64_t layer_bytes = most_kept(proof);
    uint64_t states[2];
    g_autofree uint8_t *cells = g_new0(uint8_t, MAX(proof->cells_count, 1));
    Copies c = { .cells = cells };

    for (uint32_t g = proof->rank_first[rank]; g < proof->rank_first[rank + 1]; g++)
        count_op(&c, proof, &proof->ops[g]);
    check_copied(proof, rank, "", c.copied, (uint64_t[]){ want, want });
    lh_step_host_state_copies(proof->program, rank, &states[0], &states[1]);
    check_copied(proof, rank, " of gradients, weights and norms", c.states, states);
    if (c.most[LEFT] > layer_bytes)
        FIND_COPIES("holds %" G_GUINT64_FORMAT " bytes that it has issued copies of to the host, "
                    "but the closed form says at most a layer's %" G_GUINT64_FORMAT,
                    c.most[LEFT], layer_bytes);
    if (c.most[CAME_BACK] > 2 * layer_bytes)
        FIND_COPIES("holds %" G_GUINT64_FORMAT
                    " bytes that come back from the host, but the closed "
                    "form says at most two layers' %" G_GUINT64_FORMAT,
                    c.most[CAME_BACK], 2 * layer_bytes);
}
