/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Form of exchanges and collectives: peers and groups exist, sends match what the slots hold, and
 * receive regions have the shape of send regions.
 */
#include "verify/verify_private.h"

#include "program/work.h"

/* Transfers do not convert: wire bytes must equal the bytes of the regions. */
static bool
check_wire_bytes(LhProof *proof, uint32_t g, uint64_t claimed, uint64_t held)
{
    if (claimed == held)
        return true;
    return MALFORMED(g, -1,
                     "states %" G_GUINT64_FORMAT
                     " bytes on the wire, but its regions have %" G_GUINT64_FORMAT,
                     claimed, held);
}

bool
lh_form_check_exchange(LhProof *proof, uint32_t g)
{
    const LhOp *op = &proof->ops[g];

    if (op->exchange.parts_count == 0)
        return MALFORMED(g, -1, "has no messages");
    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        const LhPart *part = &proof->parts[op->exchange.parts_first + i];

        if (part->peer >= proof->ranks || part->peer == proof->op_rank[g])
            return MALFORMED(g, -1, "%s rank %u: peers are the other ranks below %u",
                             part->send ? "sends to" : "receives from", part->peer, proof->ranks);
        if (part->regions_count == 0 || part->regions_count > LH_PART_REGIONS_MAX)
            return MALFORMED(g, -1, "has a message of %u regions; 1 to %d are possible",
                             part->regions_count, LH_PART_REGIONS_MAX);
        for (uint32_t k = 0; k < part->regions_count; k++) {
            if (!(part->send ? lh_form_check_region : lh_form_check_target)(proof, g,
                                                                            &part->regions[k]) ||
                !lh_form_check_on_device(proof, g, &part->regions[k]) ||
                !lh_form_check_half(proof, g, &part->regions[k]))
                return false;
        }
        if (!check_wire_bytes(proof, g, part->wire_bytes, lh_part_wire_bytes(proof->program, part)))
            return false;
    }
    return true;
}

/* Checks that an all-reduce divides evenly among the ranks that reduce it: by elements, or by
 * whole parts of attention. */
static bool
check_slices_of_reduction(LhProof *proof, uint32_t g, const LhRegion *region, uint32_t members)
{
    const LhOp *op = &proof->ops[g];
    const LhSlot *slot = &proof->program->slots[region->slot];
    const uint64_t elements =
        lh_region_bytes(proof->program, *region) / lh_slot_element_bytes(slot);

    if (op->collective.kind != LH_COLL_ALL_REDUCE)
        return true;
    if (op->collective.reduction == LH_REDUCE_ATTENTION && region->count % members != 0)
        return MALFORMED(g, region->slot,
                         "merges %u parts of slot %s, which do not divide among %u ranks",
                         region->count, slot->name, members);
    if (op->collective.reduction == LH_REDUCE_SUM && elements % members != 0)
        return MALFORMED(g, region->slot,
                         "adds up %" G_GUINT64_FORMAT
                         " elements of slot %s, which do not divide among %u ranks",
                         elements, slot->name, members);
    return true;
}

/* Checks that both regions of a tensor name the same half, or both halves; sums need both. */
static bool
check_halves(LhProof *proof, uint32_t g, const LhRegion *send, const LhRegion *receive)
{
    const LhSlot *slots = proof->program->slots;

    if (!lh_form_check_half(proof, g, send) || !lh_form_check_half(proof, g, receive))
        return false;
    if (send->half != receive->half)
        return MALFORMED(g, receive->slot, "turns %s%s into %s%s: both must be the same half",
                         slots[send->slot].name, lh_half_suffixes[send->half],
                         slots[receive->slot].name, lh_half_suffixes[receive->half]);
    return !lh_collective_reduces(proof->ops[g].collective.kind) ||
           lh_form_check_whole(proof, g, send);
}

/* Checks the relative number of parts of a tensor's send and receive regions. */
static bool
check_collective_tensor(LhProof *proof, uint32_t g, uint32_t tensor)
{
    const LhOp *op = &proof->ops[g];
    const LhRegion *send = &op->collective.send[tensor];
    const LhRegion *receive = &op->collective.receive[tensor];
    const LhCollectiveCall call = lh_collective_call(op, proof->counts, proof->op_rank[g]);
    const LhSlot *from = &proof->program->slots[send->slot];
    const LhSlot *to = &proof->program->slots[receive->slot];

    if (!lh_collective_fits(&call, tensor))
        return MALFORMED(g, receive->slot,
                         "turns %u parts into %u, which does not fit this collective of %u ranks",
                         send->count, receive->count, call.members);
    if (from->kind != to->kind)
        return MALFORMED(g, receive->slot, "turns %s into %s", lh_tensor_names[from->kind],
                         lh_tensor_names[to->kind]);
    if (from->head_dim != to->head_dim)
        return MALFORMED(g, receive->slot, "turns slot %s with heads of %u into slot %s with %u",
                         from->name, from->head_dim, to->name, to->head_dim);
    if (from->dtype != to->dtype)
        return MALFORMED(g, receive->slot, "turns slot %s (%s) into slot %s (%s)", from->name,
                         lh_dtype_names[from->dtype], to->name, lh_dtype_names[to->dtype]);
    if (from->dtype == LH_DTYPE_INT8 && lh_collective_reduces(op->collective.kind))
        return MALFORMED(g, receive->slot, "reduces slot %s, whose int8 codes cannot be added",
                         from->name);
    if (from->part_bytes != to->part_bytes)
        return MALFORMED(g, receive->slot,
                         "turns parts of %" G_GUINT64_FORMAT
                         " bytes of slot %s into parts of %" G_GUINT64_FORMAT " of slot %s",
                         from->part_bytes, from->name, to->part_bytes, to->name);
    return check_halves(proof, g, send, receive) &&
           check_slices_of_reduction(proof, g, send, call.members);
}

bool
lh_form_check_collective(LhProof *proof, uint32_t g)
{
    const LhOp *op = &proof->ops[g];
    uint64_t wire_bytes = 0;

    if ((uint32_t)op->collective.kind >= LH_COLL_KINDS ||
        (uint32_t)op->collective.reduction > LH_REDUCE_ATTENTION)
        return MALFORMED(g, -1, "has an unknown collective or reduction");
    if (!lh_group_is_valid(&op->collective.group, proof->ranks))
        return MALFORMED(g, -1, "has a group with unknown or repeated members");
    if (lh_group_position(&op->collective.group, proof->op_rank[g]) == LH_NONE)
        return MALFORMED(g, -1, "is not a member of its own group");
    if (op->collective.tensors_count == 0 ||
        op->collective.tensors_count > LH_COLLECTIVE_TENSORS_MAX)
        return MALFORMED(g, -1, "moves %u tensors; 1 to %d are possible",
                         op->collective.tensors_count, LH_COLLECTIVE_TENSORS_MAX);
    for (uint32_t i = 0; i < op->collective.tensors_count; i++) {
        if (!lh_form_check_region(proof, g, &op->collective.send[i]) ||
            !lh_form_check_target(proof, g, &op->collective.receive[i]) ||
            !lh_form_check_on_device(proof, g, &op->collective.send[i]) ||
            !lh_form_check_on_device(proof, g, &op->collective.receive[i]) ||
            !check_collective_tensor(proof, g, i))
            return false;
        wire_bytes += lh_tensor_wire_bytes(proof->program, op, i);
    }
    return check_wire_bytes(proof, g, op->collective.wire_bytes, wire_bytes);
}
