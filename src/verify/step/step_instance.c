/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/step/step_instance.h"

#include "step/packs.h"

/* An op of the step and the corresponding op of the program. */
typedef struct {
    LhStepValues *v;
    LhInstance *instance;
    const LhOp *own, *op;
    uint32_t g;
} Pair;

static bool
slots_agree(const LhSlot *a, const LhSlot *b)
{
    return a->kind == b->kind && a->dtype == b->dtype && a->head_dim == b->head_dim &&
           a->part_bytes == b->part_bytes && (a->role != LH_SLOT_TEMP || b->role == LH_SLOT_TEMP);
}

static bool
region_agrees(const Pair *p, const LhRegion *own, const LhRegion *region)
{
    LhInstance *instance = p->instance;
    const LhSlot *slot = &instance->of->program->slots[own->slot];
    const LhSlot *around = &p->v->proof->program->slots[region->slot];

    if (instance->slots[own->slot] == LH_NONE) {
        if (!slots_agree(slot, around) || region->part < own->part ||
            region->part - own->part + slot->parts > around->parts)
            return false;
        instance->slots[own->slot] = region->slot;
        instance->parts[own->slot] = region->part - own->part;
    }
    return region->slot == instance->slots[own->slot] &&
           region->part == own->part + instance->parts[own->slot] && region->count == own->count &&
           region->half == own->half;
}

static bool
compute_agrees(const Pair *p)
{
    const LhOp *own = p->own, *op = p->op;
    bool agrees =
        own->compute.kernel == op->compute.kernel &&
        own->compute.regions_count == op->compute.regions_count &&
        lh_kernel_args_equal(lh_proof_kernel(own)->args, &own->compute.args, &op->compute.args);

    for (uint32_t i = 0; agrees && i < own->compute.regions_count; i++)
        agrees = region_agrees(p, &own->compute.regions[i], &op->compute.regions[i]);
    return agrees;
}

LhRankMap
lh_instance_map(const LhStepValues *v, uint32_t rank)
{
    return (LhRankMap){ rank - v->tensor * lh_step_values_place(v, rank).context, v->tensor };
}

static bool
exchange_agrees(const Pair *p)
{
    const LhProof *proof = p->v->proof;
    const LhRankMap map = lh_instance_map(p->v, p->instance->rank);

    if (p->own->exchange.parts_count != p->op->exchange.parts_count)
        return false;
    for (uint32_t i = 0; i < p->own->exchange.parts_count; i++) {
        const LhPart *a =
            &g_array_index(p->instance->of->parts, LhPart, p->own->exchange.parts_first + i);
        const LhPart *b = &proof->parts[p->op->exchange.parts_first + i];

        if (lh_rank_map(map, a->peer) != b->peer || a->tag != b->tag || a->send != b->send ||
            a->regions_count != b->regions_count || a->wire_bytes != b->wire_bytes)
            return false;
        for (uint32_t k = 0; k < a->regions_count; k++) {
            if (!region_agrees(p, &a->regions[k], &b->regions[k]))
                return false;
        }
    }
    return true;
}

static bool
counts_agree(const Pair *p)
{
    const uint64_t count =
        2 * lh_group_size(&p->own->collective.group) * p->own->collective.tensors_count;

    for (uint64_t i = 0; p->own->collective.uneven && i < count; i++) {
        if (g_array_index(p->instance->of->counts, uint32_t, p->own->collective.counts_first + i) !=
            p->v->proof->counts[p->op->collective.counts_first + i])
            return false;
    }
    return true;
}

static bool
collective_agrees(const Pair *p)
{
    const LhOp *own = p->own, *op = p->op;
    const LhCommunicatorKey a = { 0, lh_group_canonical(
                                         lh_group_map(lh_instance_map(p->v, p->instance->rank),
                                                      own->collective.group)) };
    const LhCommunicatorKey b = { 0, lh_group_canonical(op->collective.group) };

    if (own->collective.kind != op->collective.kind ||
        own->collective.reduction != op->collective.reduction ||
        own->collective.tensors_count != op->collective.tensors_count ||
        own->collective.uneven != op->collective.uneven ||
        own->collective.wire_bytes != op->collective.wire_bytes ||
        lh_communicator_compare(&a, &b) != 0 || !counts_agree(p))
        return false;
    for (uint32_t i = 0; i < own->collective.tensors_count; i++) {
        if (!region_agrees(p, &own->collective.send[i], &op->collective.send[i]) ||
            !region_agrees(p, &own->collective.receive[i], &op->collective.receive[i]))
            return false;
    }
    return true;
}

/* Streams of the program must map to distinct streams of the step. */
static bool
stream_agrees(const Pair *p)
{
    uint32_t *streams = p->instance->streams;

    if (!lh_op_on_stream(p->own))
        return true;
    if (streams[p->own->stream] == LH_NONE) {
        for (uint32_t i = 0; i < LH_STREAMS_MAX; i++) {
            if (streams[i] == p->op->stream)
                return false;
        }
        streams[p->own->stream] = p->op->stream;
    }
    return streams[p->own->stream] == p->op->stream;
}

static bool
communicator_agrees(const Pair *p)
{
    LhInstance *instance = p->instance;

    if (p->own->kind != LH_OP_EXCHANGE && p->own->kind != LH_OP_COLLECTIVE)
        return true;
    if (!instance->has_communicator) {
        instance->communicator = (uint8_t)(p->op->communicator - p->own->communicator);
        instance->has_communicator = true;
    }
    return (uint8_t)(p->own->communicator + instance->communicator) == p->op->communicator;
}

/* The op must wait for everything that its own program waits for; it may wait for more. */
static bool
waits_agree(const Pair *p)
{
    const uint32_t first = p->instance->first - p->v->proof->rank_first[p->instance->rank];

    for (uint32_t i = 0; i < p->own->after_count; i++) {
        uint32_t k = 0;

        while (k < p->op->after_count && p->op->after[k] != first + p->own->after[i])
            k++;
        if (k == p->op->after_count)
            return false;
    }
    return true;
}

static bool
labels_agree(const Pair *p)
{
    const LhInstance *instance = p->instance;
    const LhOp *op = p->op;

    return op->kind == p->own->kind && op->step == p->own->step &&
           op->module == instance->module + 1 && op->layer == instance->layer &&
           op->micro_batch == instance->micro_batch &&
           op->phase == (instance->again ? LH_PHASE_RECOMPUTE : p->own->phase);
}

static bool
body_agrees(const Pair *p)
{
    switch (p->own->kind) {
    case LH_OP_COMPUTE:
        return compute_agrees(p);
    case LH_OP_EXCHANGE:
        return exchange_agrees(p);
    case LH_OP_COLLECTIVE:
        return collective_agrees(p);
    case LH_OP_ALLOC:
    case LH_OP_FREE:
        return region_agrees(p, &p->own->memory.region, &p->op->memory.region);
    default:
        return true;
    }
}

const char *
lh_instance_difference(LhStepValues *v, LhInstance *instance, const LhOp *own, const LhOp *op,
                       uint32_t g)
{
    const Pair pair = { v, instance, own, op, g };
    if (!labels_agree(&pair))
        return "kind, labels or phase";
    if (!stream_agrees(&pair))
        return "its stream";
    if (!communicator_agrees(&pair))
        return "its communicator";
    if (!waits_agree(&pair))
        return "its dependencies";
    return body_agrees(&pair) ? NULL : "its work";
}

LhMaskRule
lh_instance_mask(const LhStepValues *v, LhStepKind kind, uint32_t data, uint32_t micro_batch)
{
    const LhDocumentPack pack = lh_step_pack_of(v->params, data, micro_batch);
    LhMaskRule rule = lh_step_pack_mask(v->params->module.mask, pack);

    if (kind == LH_STEP_WINDOWED)
        rule.window = v->params->window;
    return rule;
}
