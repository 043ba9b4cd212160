/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segments and the exact masks between them. All segments of a placement have the same stride, so
 * the edge of a causal mask between two of them is a straight line in local indices.
 */
#include "program/placement.h"

#include <glib.h>
#include <stddef.h>

const char *const lh_placement_names[] = {
    [LH_PLACE_CONTIGUOUS] = "contiguous",
    [LH_PLACE_ZIGZAG] = "zigzag",
    [LH_PLACE_STRIPED] = "striped",
    [LH_PLACE_HEADS] = "heads",
    NULL,
};

uint32_t
lh_placement_parts(const LhPlacement *p)
{
    return p->kind == LH_PLACE_ZIGZAG ? 2 : 1;
}

uint32_t
lh_placement_segments(const LhPlacement *p)
{
    return p->kind == LH_PLACE_HEADS ? 1 : p->ranks * lh_placement_parts(p);
}

uint32_t
lh_placement_segment_id(const LhPlacement *p, uint32_t rank, uint32_t part)
{
    const uint32_t split = MAX(p->split, 1);

    if (p->kind == LH_PLACE_HEADS)
        return 0;
    if (part == 0)
        return rank;
    /* The second half-chunk of group rank / split; within it the same piece as in the first. */
    return (2 * (p->ranks / split) - 1 - rank / split) * split + rank % split;
}

LhSegment
lh_placement_segment(const LhPlacement *p, uint32_t segment_id)
{
    const uint64_t count = p->seq_length / lh_placement_segments(p);

    if (p->kind == LH_PLACE_STRIPED)
        return (LhSegment){ .start = segment_id, .stride = p->ranks, .count = count };
    return (LhSegment){ .start = segment_id * count, .stride = 1, .count = count };
}

static int64_t
floor_quotient(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

static LhBlock
plain_block(LhSegment q, LhSegment k, bool causal)
{
    const uint64_t all = q.count * k.count;
    const uint64_t stride = q.count > 1 ? q.stride : k.stride;
    LhBlock block = { .kind = LH_MASK_FULL, .pairs = all };

    if (!causal)
        return block;
    g_assert(q.count <= 1 || k.count <= 1 || q.stride == k.stride);
    /* k.start + j stride <= q.start + i stride */
    block.shift = floor_quotient((int64_t)q.start - (int64_t)k.start, (int64_t)MAX(stride, 1));
    block.pairs = lh_causal_pairs(q.count, k.count, block.shift);
    block.kind = block.pairs == 0     ? LH_MASK_EMPTY
                 : block.pairs == all ? LH_MASK_FULL
                                      : LH_MASK_CAUSAL;
    if (block.kind != LH_MASK_CAUSAL)
        block.shift = 0;
    return block;
}

LhBlock
lh_block(LhSegment q, LhSegment k, const LhMaskRule *rule)
{
    LhBlock block = plain_block(q, k, rule->causal);
    uint64_t pairs;

    if (lh_mask_is_plain(rule))
        return block;
    /* Windows and documents only remove pairs: an equal count means the same pairs. */
    pairs = lh_mask_pairs(rule, q, k);
    if (pairs == block.pairs)
        return block;
    return (LhBlock){ .kind = pairs == 0 ? LH_MASK_EMPTY : LH_MASK_POSITIONS, .pairs = pairs };
}
