/*
 * Segments and the exact masks between them. All segments of a placement have one stride, so that a
 * causal mask between two of them is a straight edge in local indices.
 */
#include "sched/placement.h"

#include <glib.h>
#include <stddef.h>

const char *const lh_placement_names[] = {
    [LH_PLACE_CONTIGUOUS] = "contiguous",
    [LH_PLACE_ZIGZAG] = "zigzag",
    [LH_PLACE_STRIPED] = "striped",
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
    return p->ranks * lh_placement_parts(p);
}

uint32_t
lh_placement_segment_id(const LhPlacement *p, uint32_t rank, uint32_t part)
{
    return part == 0 ? rank : 2 * p->ranks - 1 - rank;
}

LhSegment
lh_placement_segment(const LhPlacement *p, uint32_t segment_id)
{
    const uint64_t count = p->seq_length / lh_placement_segments(p);

    if (p->kind == LH_PLACE_STRIPED)
        return (LhSegment){ .start = segment_id, .stride = p->ranks, .count = count };
    return (LhSegment){ .start = segment_id * count, .stride = 1, .count = count };
}

uint64_t
lh_causal_pairs(uint64_t nq, uint64_t nk, int64_t shift)
{
    const int64_t rows = (int64_t)nq;
    const int64_t keys = (int64_t)nk;
    /* Row i allows i + shift + 1 keys: none before row `first`, all of them from row `full` on. */
    const int64_t first = CLAMP(-shift, 0, rows);
    const int64_t full = CLAMP(keys - 1 - shift, 0, rows);
    const uint64_t ramp = (uint64_t)MAX(full - first, 0);

    if (nk == 0)
        return 0;
    /* The rows between allow first + shift + 1, ..., full + shift keys. */
    if (ramp == 0)
        return (uint64_t)(rows - full) * nk;
    return ramp * (uint64_t)(first + full + 2 * shift + 1) / 2 + (uint64_t)(rows - full) * nk;
}

static int64_t
floor_quotient(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

LhBlock
lh_block(LhSegment q, LhSegment k, bool causal)
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
