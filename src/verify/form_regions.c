/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Form of the regions that ops name: parts of existing slots that may be read, written or moved.
 */
#include "verify/verify_private.h"

bool
lh_form_check_region(LhProof *proof, uint32_t g, const LhRegion *region)
{
    const LhProgram *program = proof->program;
    const LhSlot *slot;

    if (region->slot >= program->slots_count)
        return MALFORMED(g, -1, "names slot %u, but there are %u", region->slot,
                         program->slots_count);
    slot = &program->slots[region->slot];
    if (!lh_slot_is_on(slot, proof->op_rank[g]))
        return MALFORMED(g, region->slot, "names slot %s, which does not exist on this rank",
                         slot->name);
    if (region->count == 0 || region->part >= slot->parts ||
        region->count > slot->parts - region->part)
        return MALFORMED(g, region->slot, "names %u parts of slot %s from %u on, which has %u",
                         region->count, slot->name, region->part, slot->parts);
    return true;
}

/* Checks that a region is a whole input. */
bool
lh_form_check_given(LhProof *proof, uint32_t g, const LhRegion *region)
{
    const LhSlot *slot;

    if (!lh_form_check_region(proof, g, region))
        return false;
    slot = &proof->program->slots[region->slot];
    if (slot->role == LH_SLOT_INPUT && region->count == slot->parts)
        return true;
    return MALFORMED(g, region->slot, "provides %u of %u parts of slot %s, which is %s",
                     region->count, slot->parts, slot->name,
                     slot->role == LH_SLOT_INPUT ? "needed whole" : "not an input");
}

/* Checks that a region names whole parts; only messages and collectives may name halves. */
bool
lh_form_check_whole(LhProof *proof, uint32_t g, const LhRegion *region)
{
    const LhSlot *slot = &proof->program->slots[region->slot];

    if (region->half == LH_HALF_BOTH)
        return true;
    if (region->half >= LH_HALVES)
        return MALFORMED(g, region->slot, "names an unknown half of slot %s (%u)", slot->name,
                         region->half);
    return MALFORMED(g, region->slot,
                     "takes %s%s: single halves can only be sent and received, by exchanges and by "
                     "collectives without a reduction",
                     slot->name, lh_half_suffixes[region->half]);
}

/* Checks a moved region: it may name one half if the slot has halves. */
bool
lh_form_check_half(LhProof *proof, uint32_t g, const LhRegion *region)
{
    const LhSlot *slot = &proof->program->slots[region->slot];

    if (region->half == LH_HALF_BOTH || (region->half < LH_HALVES && lh_slot_has_halves(slot)))
        return true;
    if (region->half >= LH_HALVES)
        return lh_form_check_whole(proof, g, region);
    return MALFORMED(g, region->slot,
                     "moves %s%s, but only slots of kind kv and dkv have a half "
                     "%s; this one is of kind %s",
                     slot->name, lh_half_suffixes[region->half], lh_half_suffixes[region->half] + 1,
                     lh_tensor_names[slot->kind]);
}

/* Checks that a region exists and may be written; inputs are read-only. */
bool
lh_form_check_target(LhProof *proof, uint32_t g, const LhRegion *region)
{
    if (!lh_form_check_region(proof, g, region))
        return false;
    if (proof->program->slots[region->slot].role != LH_SLOT_INPUT)
        return true;
    return MALFORMED(g, region->slot, "writes slot %s, which is an input",
                     proof->program->slots[region->slot].name);
}
