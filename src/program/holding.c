/* SPDX-License-Identifier: Apache-2.0 */
#include "program/holding.h"

bool
lh_tensor_is_kv(LhTensorKind kind)
{
    return kind == LH_TENSOR_KV || kind == LH_TENSOR_DKV || kind == LH_TENSOR_K ||
           kind == LH_TENSOR_V || kind == LH_TENSOR_DK || kind == LH_TENSOR_DV;
}

uint32_t
lh_program_slices(const LhProgram *program, LhTensorKind kind)
{
    if (lh_tensor_is_outside(kind))
        return 1;
    return MAX(lh_tensor_is_kv(kind) ? program->kv_slices : program->head_slices, 1);
}

uint32_t
lh_slices_share(uint32_t slices, uint32_t ranks)
{
    return (slices - 1) / ranks + 1;
}

uint32_t
lh_slices_first(uint32_t slices, uint32_t ranks, uint32_t index)
{
    if (slices < ranks)
        return (uint32_t)((uint64_t)index * slices / ranks);
    return index * (slices / ranks) + MIN(index, slices % ranks);
}

uint32_t
lh_slot_parts(const LhProgram *program, const LhSlot *slot)
{
    const uint32_t segments = lh_placement_parts(&program->placement);
    const uint32_t slices = lh_program_slices(program, slot->kind);

    if (program->placement.kind == LH_PLACE_HEADS)
        return segments;
    if (slot->by_heads)
        return segments * program->saved_group * lh_slices_share(slices, program->saved_group);
    return segments * slices;
}

/* Second halves of zigzag are in reverse order within the group, unless the placement is split. */
static LhHolding
saved_holding(const LhProgram *program, uint32_t slices, uint32_t rank, uint32_t part)
{
    const LhPlacement *placement = &program->placement;
    const uint32_t ranks = program->saved_group;
    const uint32_t segments = ranks * lh_placement_parts(placement);
    const uint32_t slice = lh_slices_first(slices, ranks, rank % ranks) + part / segments;
    const uint32_t half = part % segments / ranks, index = part % ranks;
    const uint32_t member = half == 1 && placement->split <= 1 ? ranks - 1 - index : index;

    return (LhHolding){ lh_placement_segment_id(placement, rank - rank % ranks + member, half),
                        MIN(slice, slices - 1) };
}

LhHolding
lh_slot_holding(const LhProgram *program, const LhSlot *slot, uint32_t rank_of_all, uint32_t part)
{
    const uint32_t rank = lh_program_group_rank(program, rank_of_all);
    const LhPlacement *placement = &program->placement;
    const uint32_t slices = lh_program_slices(program, slot->kind);

    if (placement->kind == LH_PLACE_HEADS && slot->kind == LH_TENSOR_HIDDEN)
        return (LhHolding){ 0, rank };
    if (placement->kind == LH_PLACE_HEADS)
        return (LhHolding){ 0, lh_slices_first(slices, placement->ranks, rank) };
    if (slot->by_heads)
        return saved_holding(program, slices, rank, part);
    return (LhHolding){ lh_placement_segment_id(placement, rank, part / slices), part % slices };
}

bool
lh_slot_holds(const LhProgram *program, const LhSlot *slot, uint32_t rank_of_all, uint32_t part)
{
    const uint32_t ranks = program->saved_group;
    const uint32_t slices = lh_program_slices(program, slot->kind);
    const uint32_t index = lh_program_group_rank(program, rank_of_all) % MAX(ranks, 1);
    const uint32_t segments = ranks * lh_placement_parts(&program->placement);

    if (!slot->by_heads || program->placement.kind == LH_PLACE_HEADS || slices < ranks)
        return true;
    return lh_slices_first(slices, ranks, index) + part / segments <
           lh_slices_first(slices, ranks, index + 1);
}
