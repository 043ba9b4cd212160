/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions across lanes of a warp. The run loop ensures that the lanes named have arrived. */
#include "ptx_private.h"

#include <string.h>

static void
keep_bits(ptx_warp *warp, uint32_t offset, uint32_t bits, uint32_t mask)
{
    uint32_t *d = ptx_at(warp, offset);

    *d = (*d & ~mask) | (bits & mask);
}

/* The lane that a lane reads, and whether it is within the segment; otherwise the lane reads
 * itself. */
static bool
source_lane(uint8_t mode, uint32_t lane, uint32_t b, uint32_t c, uint32_t *from)
{
    const uint32_t clamp = c & 31, segment = c >> 8 & 31;
    const uint32_t first = lane & segment, last = first | (clamp & ~segment);
    bool within;

    b &= 31;
    switch (mode) {
    case PTX_SHUFFLE_UP: /* here the bound is the lowest lane */
        *from = lane - b;
        within = (int32_t)*from >= (int32_t)last;
        break;
    case PTX_SHUFFLE_DOWN:
        *from = lane + b;
        within = *from <= last;
        break;
    case PTX_SHUFFLE_BFLY:
        *from = lane ^ b;
        within = *from <= last;
        break;
    default:
        *from = first | (b & ~segment);
        within = *from <= last;
        break;
    }
    if (!within)
        *from = lane;
    return within;
}

void
ptx_shuffle(ptx_warp *warp, const ptx_instruction *in, uint32_t mask)
{
    const uint32_t *a = ptx_at(warp, in->a), *b = ptx_at(warp, in->b), *c = ptx_at(warp, in->c);
    uint32_t r[PTX_LANES], within = 0;

    PTX_EACH_LANE(lane, mask)
    {
        uint32_t from;

        within |= (uint32_t)source_lane(in->mode, lane, b[lane], c[lane], &from) << lane;
        if ((mask >> from & 1) == 0) {
            ptx_stop(warp, in, "lane %u reads lane %u, which takes no part", lane, from);
            return;
        }
        r[lane] = a[from];
    }
    if (in->d != PTX_NONE) {
        uint32_t *d = ptx_at(warp, in->d);

        PTX_EACH_LANE(lane, mask)
        {
            d[lane] = r[lane];
        }
    }
    if (in->e != PTX_NONE)
        keep_bits(warp, in->e, within, mask);
}

void
ptx_vote(ptx_warp *warp, const ptx_instruction *in, uint32_t mask)
{
    const uint32_t *a = ptx_at(warp, in->a);
    const uint32_t yes = (in->negated ? ~*a : *a) & mask;
    bool result;

    if (in->d == PTX_NONE)
        return;
    if (in->mode == PTX_VOTE_BALLOT) {
        uint32_t *d = ptx_at(warp, in->d);

        PTX_EACH_LANE(lane, mask)
        {
            d[lane] = yes;
        }
        return;
    }
    if (in->mode == PTX_VOTE_ALL)
        result = yes == mask;
    else if (in->mode == PTX_VOTE_ANY)
        result = yes != 0;
    else
        result = yes == 0 || yes == mask;
    keep_bits(warp, in->d, result ? PTX_ALL_LANES : 0, mask);
}

static uint64_t
value_at(const ptx_warp *warp, const ptx_instruction *in, uint32_t lane)
{
    if (in->width == 4)
        return ((const uint32_t *)ptx_at(warp, in->a))[lane];
    return ((const uint64_t *)ptx_at(warp, in->a))[lane];
}

/* match.any: the lanes with equal values; match.all: all lanes or none. */
void
ptx_match(ptx_warp *warp, const ptx_instruction *in, uint32_t mask)
{
    uint32_t r[PTX_LANES];
    bool all = true;

    PTX_EACH_LANE(lane, mask)
    {
        r[lane] = 0;
        PTX_EACH_LANE(other, mask)
        {
            r[lane] |= (uint32_t)(value_at(warp, in, other) == value_at(warp, in, lane)) << other;
        }
        all = all && r[lane] == mask;
    }
    if (in->d != PTX_NONE) {
        uint32_t *d = ptx_at(warp, in->d);

        PTX_EACH_LANE(lane, mask)
        {
            d[lane] = in->mode == 0 ? r[lane] : all ? mask : 0;
        }
    }
    if (in->e != PTX_NONE)
        keep_bits(warp, in->e, all ? PTX_ALL_LANES : 0, mask);
}

static uint32_t
reduce(const ptx_instruction *in, uint32_t x, uint32_t y)
{
    const bool less = in->type == PTX_S32 ? (int32_t)x < (int32_t)y : x < y;

    switch (in->mode) {
    case PTX_ATOMIC_ADD:
        return x + y;
    case PTX_ATOMIC_MIN:
        return less ? x : y;
    case PTX_ATOMIC_MAX:
        return less ? y : x;
    case PTX_ATOMIC_AND:
        return x & y;
    case PTX_ATOMIC_OR:
        return x | y;
    default:
        return x ^ y;
    }
}

void
ptx_redux(ptx_warp *warp, const ptx_instruction *in, uint32_t mask)
{
    const uint32_t *a = ptx_at(warp, in->a);
    uint32_t result = a[ptx_first_lane(mask)];

    PTX_EACH_LANE(lane, mask & (mask - 1))
    {
        result = reduce(in, result, a[lane]);
    }
    if (in->d != PTX_NONE) {
        uint32_t *d = ptx_at(warp, in->d);

        PTX_EACH_LANE(lane, mask)
        {
            d[lane] = result;
        }
    }
}

void
ptx_warp_sync(ptx_warp *warp, const ptx_instruction *in, uint32_t mask)
{
    (void)in;
    ptx_sync_lanes(warp, mask);
}

void
ptx_active_mask(ptx_warp *warp, const ptx_instruction *in, uint32_t mask)
{
    uint32_t *d;

    if (in->d == PTX_NONE)
        return;
    d = ptx_at(warp, in->d);
    PTX_EACH_LANE(lane, mask)
    {
        d[lane] = mask;
    }
}

/* Elects the first lane, as the hardware does; PTX leaves it open. */
void
ptx_elect(ptx_warp *warp, const ptx_instruction *in, uint32_t mask)
{
    const uint32_t first = ptx_first_lane(mask);

    if (in->d != PTX_NONE) {
        uint32_t *d = ptx_at(warp, in->d);

        PTX_EACH_LANE(lane, mask)
        {
            d[lane] = first;
        }
    }
    if (in->e != PTX_NONE)
        keep_bits(warp, in->e, 1u << first, mask);
}
