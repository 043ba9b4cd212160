/* SPDX-License-Identifier: Apache-2.0 */
#include "program/live.h"

#include "program/cursor.h"

#include <string.h>

void
lh_live_init(LhLive *live, const LhProgram *program, uint32_t rank)
{
    *live = (LhLive){ 0 };
    for (uint32_t i = 0; i < program->slots_count; i++) {
        const LhSlot *slot = &program->slots[i];

        if (slot->role != LH_SLOT_TEMP && lh_slot_is_on(slot, rank))
            lh_live_change(live, program, lh_region_whole(program, (uint16_t)i), true);
    }
}

static void
change_host(LhLive *live, uint64_t bytes, bool alloc)
{
    if (alloc)
        live->host_bytes += bytes;
    else
        live->host_bytes -= MIN(bytes, live->host_bytes);
    live->host_peak_bytes = MAX(live->host_peak_bytes, live->host_bytes);
}

bool
lh_live_change(LhLive *live, const LhProgram *program, LhRegion region, bool alloc)
{
    const LhSlot *slot = &program->slots[region.slot];
    const uint64_t bytes = lh_region_bytes(program, region);

    if (slot->on_host) {
        change_host(live, bytes, alloc);
        return false;
    }
    /* Only a program that is not proven frees more than it has allocated. */
    if (!alloc) {
        live->bytes -= MIN(bytes, live->bytes);
        live->by_tensor[slot->kind] -= MIN(bytes, live->by_tensor[slot->kind]);
        live->by_category[slot->category] -= MIN(bytes, live->by_category[slot->category]);
        return false;
    }
    live->bytes += bytes;
    live->by_tensor[slot->kind] += bytes;
    live->by_category[slot->category] += bytes;
    live->most_saved = MAX(live->most_saved, live->by_category[LH_CATEGORY_SAVED]);
    if (live->bytes <= live->peak_bytes)
        return false;
    live->peak_bytes = live->bytes;
    memcpy(live->peak_by_tensor, live->by_tensor, sizeof(live->by_tensor));
    memcpy(live->peak_by_category, live->by_category, sizeof(live->by_category));
    return true;
}

void
lh_live_walk(LhLive *live, const LhProgram *program, uint32_t rank)
{
    LhOpBuffer buffer = { 0 };
    LhCursor cursor;

    lh_live_init(live, program, rank);
    lh_cursor_init(&cursor, program, rank);
    while (lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; i < buffer.ops_count; i++) {
            const LhOp *op = &buffer.ops[i];

            if (op->kind == LH_OP_ALLOC || op->kind == LH_OP_FREE)
                lh_live_change(live, program, op->memory.region, op->kind == LH_OP_ALLOC);
        }
    }
    lh_op_buffer_clear(&buffer);
}
