/* SPDX-License-Identifier: Apache-2.0 */
#include "reference/reference_slots.h"

static LhReferenceSlots
held_of_queries(const LhReference *r, const LhSlot *slot, const char *name, const double *whole)
{
    return (LhReferenceSlots){ .name = name,
                               .whole = whole,
                               .heads = r->attention.heads,
                               .dim = r->attention.head_dim,
                               .storage = lh_dtype_storage(slot->dtype) };
}

/* Tensor @half of a slot with two tensors. */
static LhReferenceSlots
held_of_keys(const LhReference *r, const LhSlot *slot, const char *name, const double *whole,
             unsigned half)
{
    return (LhReferenceSlots){ .name = name,
                               .whole = whole,
                               .heads = r->attention.groups,
                               .dim = r->attention.head_dim,
                               .keys = true,
                               .storage = lh_dtype_storage(slot->dtype),
                               .offset_bytes = half * (slot->part_bytes / 2) };
}

unsigned
lh_reference_slots(const LhReference *r, const LhSlot *slot, LhReferenceSlots held[2])
{
    switch (slot->kind) {
    case LH_TENSOR_Q:
        held[0] = held_of_queries(r, slot, NULL, r->q);
        return 1;
    case LH_TENSOR_DO:
        held[0] = held_of_queries(r, slot, NULL, r->dout);
        return 1;
    case LH_TENSOR_O:
        held[0] = held_of_queries(r, slot, "o", r->o);
        return 1;
    case LH_TENSOR_DQ:
        held[0] = held_of_queries(r, slot, "dq", r->dq);
        return 1;
    case LH_TENSOR_LSE:
        held[0] = held_of_queries(r, slot, "lse", r->lse);
        held[0].dim = 1;
        held[0].storage = LH_STORAGE_FP32;
        return 1;
    case LH_TENSOR_KV:
        held[0] = held_of_keys(r, slot, NULL, r->k, 0);
        held[1] = held_of_keys(r, slot, NULL, r->v, 1);
        return 2;
    case LH_TENSOR_DKV:
        held[0] = held_of_keys(r, slot, "dk", r->dk, 0);
        held[1] = held_of_keys(r, slot, "dv", r->dv, 1);
        return 2;
    default:
        return 0;
    }
}

LhReferencePart
lh_reference_slots_part(const LhProgram *program, uint32_t rank, uint16_t slot, uint32_t part)
{
    const LhTensorKind kind = program->slots[slot].kind;
    const LhHolding holding = lh_slot_holding(program, &program->slots[slot], rank, part);

    return (LhReferencePart){ .segment = lh_placement_segment(&program->placement, holding.segment),
                              .slice = holding.slice,
                              .slices = lh_program_slices(program, kind) };
}

void
lh_reference_slots_visit(const LhReference *r, const LhReferenceSlots *held,
                         const LhReferencePart *part, LhReferenceSlotsVisit visit, void *data)
{
    const LhSegment *s = &part->segment;
    const uint32_t heads = held->heads / part->slices;
    uint64_t element = 0;

    for (uint32_t sequence = 0; sequence < r->attention.batch; sequence++) {
        for (uint64_t t = 0; t < s->count; t++) {
            for (uint32_t head = part->slice * heads; head < (part->slice + 1) * heads; head++) {
                visit(data,
                      lh_reference_row(r, sequence, head, held->heads, s->start + t * s->stride),
                      element);
                element += held->dim;
            }
        }
    }
}
