/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data races on shared memory, and the order that barriers give. Time is a stamp that advances when
 * a barrier orders something. Every granule (the smallest access of the kernel: 1, 2 or 4 bytes)
 * keeps its last write and, for each warp, its last reads. An access is ordered after another if
 * all threads have met at a barrier since, or the two warps have, or the two lanes of a warp have
 * (bar.warp.sync, or a barrier).
 *
 * Two unordered accesses, one of them a write, are a race, even if it has no visible effect while
 * lanes run in step. Atomic and other strong accesses do not race with each other. Reads of a warp
 * by lanes synchronised only in part are merged under the latest stamp.
 */
#include "ptx_private.h"

#include <string.h>

bool
ptx_in_shared(const ptx_block *block, uint64_t at, uint32_t bytes)
{
    return at <= block->shared_bytes && bytes <= block->shared_bytes - at;
}

static bool
lanes_ordered(const ptx_warp *warp, uint32_t lane, uint32_t other, uint32_t stamp)
{
    return lane == other || stamp <= warp->lanes_seen || stamp <= warp->lane_seen[lane][other];
}

/* Whether the access of @thread at @stamp is ordered before the lane's current one. */
static bool
ordered(const ptx_warp *warp, uint32_t lane, uint32_t thread, uint32_t stamp)
{
    if (stamp <= warp->block->seen)
        return true;
    if (thread / PTX_LANES != warp->index)
        return stamp <= warp->warp_seen[thread / PTX_LANES];
    return lanes_ordered(warp, lane, thread % PTX_LANES, stamp);
}

static void
race(ptx_warp *warp, const ptx_instruction *in, uint32_t lane, uint32_t at, uint32_t other,
     const char *what)
{
    ptx_stop(warp, in, "race in shared memory at %u: lane %u %s warp %u lane %u", at, lane, what,
             other / PTX_LANES, other % PTX_LANES);
}

/* Slow path of a check: the last write belongs to this phase, or a copy is in flight. */
static bool
check_written(ptx_warp *warp, const ptx_instruction *in, uint32_t lane, uint32_t granule,
              bool write)
{
    const ptx_written *written = &warp->block->written[granule];
    const uint32_t at = granule << warp->block->kernel->granule_shift;

    if (written->stamp == PTX_FLYING) {
        ptx_stop(warp, in, "touches shared memory at %u, where a cp.async is on its way", at);
        return false;
    }
    if (ordered(warp, lane, written->thread, written->stamp) || (written->strong && in->strong))
        return true;
    race(warp, in, lane, at, written->thread,
         write ? "writes what was written by" : "reads what was written by");
    return false;
}

static bool
check_reads_of(ptx_warp *warp, const ptx_instruction *in, uint32_t lane, uint32_t granule,
               uint32_t other, const ptx_read *read)
{
    const uint32_t at = granule << warp->block->kernel->granule_shift, stamp = read->stamp >> 1;

    if (((read->stamp & 1) != 0 && in->strong) ||
        (other != warp->index ? stamp <= warp->warp_seen[other] : stamp <= warp->lanes_seen))
        return true;
    PTX_EACH_LANE(reader, read->lanes)
    {
        if (other != warp->index || !lanes_ordered(warp, lane, reader, stamp)) {
            race(warp, in, lane, at, other * PTX_LANES + reader, "overwrites what was read by");
            return false;
        }
    }
    return true;
}

static bool
check_reads(ptx_warp *warp, const ptx_instruction *in, uint32_t lane, uint32_t granule)
{
    const ptx_block *block = warp->block;

    for (uint32_t other = 0; other < block->warps_count; other++) {
        const ptx_read *read = &block->reads[(size_t)other * block->granules + granule];

        if (read->stamp >> 1 > block->seen && !check_reads_of(warp, in, lane, granule, other, read))
            return false;
    }
    return true;
}

static inline void
note_read(const ptx_warp *warp, const ptx_instruction *in, uint32_t lane, ptx_read *read)
{
    const ptx_block *block = warp->block;
    const uint32_t stamp = read->stamp >> 1;
    const bool fresh = stamp > block->seen && stamp > warp->lanes_seen;
    const uint32_t strong = in->strong && (!fresh || (read->stamp & 1) != 0);

    read->lanes = fresh ? read->lanes | 1u << lane : 1u << lane;
    read->stamp = block->now << 1 | strong;
}

static bool
beyond(ptx_warp *warp, const ptx_instruction *in, uint32_t lane, uint64_t at, uint32_t bytes)
{
    if (ptx_in_shared(warp->block, at, bytes))
        return false;
    ptx_stop(warp, in, "lane %u touches %u bytes at %llu beyond shared memory of %u", lane, bytes,
             (unsigned long long)at, warp->block->shared_bytes);
    return true;
}

static bool
write_granules(ptx_warp *warp, const ptx_instruction *in, uint32_t lane, uint32_t first,
               uint32_t last)
{
    ptx_block *block = warp->block;

    for (uint32_t granule = first; granule <= last; granule++) {
        if (block->written[granule].stamp > block->seen &&
            !check_written(warp, in, lane, granule, true))
            return false;
        if (!check_reads(warp, in, lane, granule))
            return false;
        block->written[granule] =
            (ptx_written){ .stamp = block->now,
                           .thread = (uint16_t)(warp->index * PTX_LANES + lane),
                           .strong = in->strong };
    }
    return true;
}

bool
ptx_shared_touch(ptx_warp *warp, const ptx_instruction *in, uint32_t lane, uint64_t at,
                 uint32_t bytes, bool write)
{
    ptx_block *block = warp->block;
    ptx_read *reads = block->reads + (size_t)warp->index * block->granules;
    const uint32_t shift = block->kernel->granule_shift;
    uint32_t first, last;

    if (beyond(warp, in, lane, at, bytes))
        return false;
    first = (uint32_t)at >> shift;
    last = ((uint32_t)at + bytes - 1) >> shift;
    if (write)
        return write_granules(warp, in, lane, first, last);
    for (uint32_t granule = first; granule <= last; granule++) {
        if (block->written[granule].stamp > block->seen &&
            !check_written(warp, in, lane, granule, false))
            return false;
        note_read(warp, in, lane, &reads[granule]);
    }
    return true;
}

/* The data read goes to other lanes than the one that gives the address: each must be ordered. */
bool
ptx_shared_touch_row(ptx_warp *warp, const ptx_instruction *in, uint32_t lane, uint64_t at,
                     bool write)
{
    ptx_block *block = warp->block;
    ptx_read *reads = block->reads + (size_t)warp->index * block->granules;
    const uint32_t shift = block->kernel->granule_shift;
    const ptx_read all = { block->now << 1, PTX_ALL_LANES };
    uint32_t first;

    if (beyond(warp, in, lane, at, 16))
        return false;
    first = (uint32_t)at >> shift;
    if (write)
        return write_granules(warp, in, lane, first, first + (16u >> shift) - 1);
    for (uint32_t granule = first; granule < first + (16u >> shift); granule++) {
        for (uint32_t other = 0; other < PTX_LANES && block->written[granule].stamp > block->seen;
             other++)
            if (!check_written(warp, in, other, granule, false))
                return false;
        reads[granule] = all;
    }
    return true;
}

void
ptx_shared_fly(ptx_warp *warp, uint32_t at, uint32_t bytes)
{
    const uint32_t shift = warp->block->kernel->granule_shift;

    for (uint32_t granule = at >> shift; granule <= (at + bytes - 1) >> shift; granule++)
        warp->block->written[granule].stamp = PTX_FLYING;
}

void
ptx_shared_land(ptx_warp *warp, uint32_t at, uint32_t bytes)
{
    const uint32_t shift = warp->block->kernel->granule_shift;

    for (uint32_t granule = at >> shift; granule <= (at + bytes - 1) >> shift; granule++)
        warp->block->written[granule].stamp = 0;
}

/* ---- what barriers order ---- */

void
ptx_sync_lanes(ptx_warp *warp, uint32_t mask)
{
    const uint32_t now = warp->block->now++;
    uint32_t seen[PTX_LANES] = { 0 };

    if (mask == warp->there) {
        warp->lanes_seen = now;
        return;
    }
    PTX_EACH_LANE(lane, mask)
    {
        for (uint32_t other = 0; other < PTX_LANES; other++)
            if (warp->lane_seen[lane][other] > seen[other])
                seen[other] = warp->lane_seen[lane][other];
    }
    PTX_EACH_LANE(lane, mask)
    {
        seen[lane] = now;
    }
    PTX_EACH_LANE(lane, mask)
    {
        memcpy(warp->lane_seen[lane], seen, sizeof(seen));
    }
}

/* Orders everything so far before everything to come. */
void
ptx_sync_block(ptx_block *block)
{
    block->seen = block->now++;
}

void
ptx_sync_arrive(ptx_warp *warp, ptx_barrier *barrier)
{
    for (uint32_t i = 0; i < warp->block->warps_count; i++)
        if (warp->warp_seen[i] > barrier->seen[i])
            barrier->seen[i] = warp->warp_seen[i];
    barrier->seen[warp->index] = warp->block->now++;
}

void
ptx_sync_leave(ptx_warp *warp, const ptx_barrier *barrier, uint32_t mask)
{
    for (uint32_t i = 0; i < warp->block->warps_count; i++)
        if (barrier->seen[i] > warp->warp_seen[i])
            warp->warp_seen[i] = barrier->seen[i];
    ptx_sync_lanes(warp, mask == warp->live ? warp->there : mask);
}

/* ---- counting ---- */

/* Waves of lanes that access 128 bytes together: the maximum number of different positions in one
 * bank, with banks as wide as the access. */
static uint32_t
waves_of(const uint32_t at[PTX_LANES], uint32_t mask, uint32_t bytes)
{
    uint32_t places[32][32], count[32] = { 0 }, most = 0;

    PTX_EACH_LANE(lane, mask)
    {
        const uint32_t place = at[lane] / bytes, bank = place % (128 / bytes);
        uint32_t i = 0;

        while (i < count[bank] && places[bank][i] != place)
            i++;
        if (i < count[bank])
            continue;
        places[bank][count[bank]++] = place;
        if (count[bank] > most)
            most = count[bank];
    }
    return most;
}

/* Whether no two lanes access different positions of a bank, true for most requests. */
static bool
one_wave(const uint32_t at[PTX_LANES], uint32_t mask, uint32_t bytes)
{
    uint32_t taken = 0;

    PTX_EACH_LANE(lane, mask)
    {
        const uint32_t bank = 1u << at[lane] / bytes % (128 / bytes);

        if ((taken & bank) != 0)
            return false;
        taken |= bank;
    }
    return true;
}

void
ptx_count_shared(ptx_warp *warp, const uint32_t at[PTX_LANES], uint32_t mask, uint32_t bytes)
{
    ptx_counts *counts = warp->block->counts;
    const uint32_t lanes = bytes >= 16 ? 8 : bytes >= 8 ? 16 : 32;
    const uint32_t part = lanes == 32 ? PTX_ALL_LANES : (1u << lanes) - 1;
    const uint32_t wide = bytes < 4 ? 4 : bytes > 16 ? 16 : bytes;

    counts->shared_requests++;
    for (uint32_t first = 0; first < PTX_LANES; first += lanes) {
        const uint32_t taking = mask & part << first;

        if (taking == 0)
            continue;
        counts->shared_waves += one_wave(at, taking, wide) ? 1 : waves_of(at, taking, wide);
        counts->shared_waves_least++;
    }
}

void
ptx_count_global(ptx_warp *warp, const uint64_t at[PTX_LANES], uint32_t mask, uint32_t bytes)
{
    ptx_counts *counts = warp->block->counts;
    uint64_t sorted[PTX_LANES], next_sector = 0, next_byte = 0, sectors = 0, distinct = 0;
    uint32_t count = 0;

    PTX_EACH_LANE(lane, mask)
    {
        uint32_t i = count++;

        for (; i > 0 && sorted[i - 1] > at[lane]; i--)
            sorted[i] = sorted[i - 1];
        sorted[i] = at[lane];
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t end = sorted[i] + bytes;
        const uint64_t sector = sorted[i] / 32, last = (end - 1) / 32;
        const uint64_t from = sector > next_sector ? sector : next_sector;

        if (last + 1 > from) {
            sectors += last + 1 - from;
            next_sector = last + 1;
        }
        if (end > next_byte) {
            distinct += end - (sorted[i] > next_byte ? sorted[i] : next_byte);
            next_byte = end;
        }
    }
    counts->global_requests++;
    counts->global_sectors += sectors;
    counts->global_sectors_least += (distinct + 31) / 32;
}
