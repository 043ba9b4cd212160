/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of ranks over time. Memory is counted in the order of the host, as an allocator sees it.
 * It changes when the host reaches the op: behind a sync, when the sync has ended.
 */
#include "sim/sim_private.h"

#include <string.h>

/* Keeps the earliest of all ranks' first ops beyond the limit. Calls for one rank come in order. */
static void
exceed(LhEngine *e, uint32_t r, LhTime time_ps, LhMemoryOp op)
{
    LhOutOfMemory *first = e->out_of_memory;

    if (first != NULL &&
        (time_ps > first->time_ps || (time_ps == first->time_ps && r >= first->rank)))
        return;
    if (first == NULL)
        first = e->out_of_memory = g_new(LhOutOfMemory, 1);
    *first = (LhOutOfMemory){ .rank = r,
                              .time_ps = time_ps,
                              .op = op,
                              .needed_bytes = lh_memory_now(e, r)->bytes,
                              .limit_bytes = e->params->memory_limit_bytes };
    memcpy(first->by_category, lh_memory_now(e, r)->by_category, sizeof(first->by_category));
}

/* Rank @r has reached a new peak. */
static void
peak(LhEngine *e, uint32_t r, LhTime time_ps, LhMemoryOp op)
{
    const uint64_t limit_bytes = e->params->memory_limit_bytes;

    e->results[r].peak_at_ps = time_ps;
    e->results[r].peak_op = op;
    if (limit_bytes > 0 && lh_memory_now(e, r)->bytes > limit_bytes)
        exceed(e, r, time_ps, op);
}

static void
tell_memory(const LhEngine *e, uint32_t r, LhTime time_ps, LhMemoryOp op, uint64_t bytes)
{
    const LhLive *live = lh_memory_now(e, r);
    const bool on_host = op.category == LH_CATEGORIES;
    const LhMemoryRecord record = { .rank = r,
                                    .time_ps = time_ps,
                                    .op = op,
                                    .on_host = on_host,
                                    .category_bytes =
                                        on_host ? live->host_bytes : live->by_category[op.category],
                                    .bytes = bytes };

    e->params->memory(e->params->memory_data, &record);
}

/* One record per category, with running totals from the first one on. */
static void
tell_beginning(const LhEngine *e, uint32_t r)
{
    uint64_t bytes = 0;

    for (int c = 0; c < LH_CATEGORIES; c++) {
        bytes += lh_memory_now(e, r)->by_category[c];
        if (lh_memory_now(e, r)->by_category[c] > 0)
            tell_memory(e, r, 0, (LhMemoryOp){ .op = LH_OP_NONE, .category = (uint16_t)c }, bytes);
    }
}

void
lh_memory_begins(LhEngine *e)
{
    for (uint32_t r = 0; r < e->ranks_count; r++) {
        if (!lh_engine_plays(e, r))
            continue;
        peak(e, r, 0, (LhMemoryOp){ .op = LH_OP_NONE, .category = LH_CATEGORIES });
        if (e->params->memory != NULL)
            tell_beginning(e, r);
    }
}

void
lh_memory_changes(LhEngine *e, const LhSimRank *rank, uint32_t id, const LhNode *node,
                  LhTime time_ps)
{
    const uint32_t r = rank->index;
    const LhSlot *slot = &e->program->slots[node->region.slot];
    const LhMemoryOp op = { .op = id,
                            .layer = node->layer,
                            .micro_batch = node->micro_batch,
                            .phase = node->phase,
                            .category =
                                (uint16_t)(slot->on_host ? LH_CATEGORIES : slot->category) };
    bool peaks;

    e->memory_states[r] = lh_live_states_change(e->memory, e->memory_states[r], node->region,
                                                node->kind == LH_OP_ALLOC, &peaks);
    if (peaks)
        peak(e, r, time_ps, op);
    if (e->params->memory != NULL)
        tell_memory(e, r, time_ps, op, lh_memory_now(e, r)->bytes);
}
