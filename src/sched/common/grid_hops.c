/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/common/grid_hops.h"

void
lh_grid_hop_wait(LhEmitter *e, LhGridHop hop)
{
    uint32_t *marks = e->marks;
    uint32_t *wait =
        &marks[hop < LH_GRID_HOP_KEYS ? (unsigned)LH_MARK_WAIT : (unsigned)LH_GRID_MARK_WAIT];
    const uint32_t id = marks[LH_GRID_MARK_OWN + (unsigned)hop];

    if (id != LH_OP_NONE && (*wait == LH_OP_NONE || *wait < id))
        *wait = id;
}

void
lh_grid_hop_posted(LhEmitter *e, const LhGridPlan *plan, LhGridHop hop, uint32_t id)
{
    e->marks[LH_GRID_MARK_OWN + (unsigned)hop] = id;
    if (!plan->overlap)
        lh_grid_hop_wait(e, hop);
}

static void
message_hop(LhEmitter *e, bool send, uint32_t peer, LhGridHop hop, const LhRegion *regions,
            unsigned count)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < count; i++)
        bytes += lh_region_bytes(e->program, regions[i]);
    lh_emit_part(e, send, peer, (uint16_t)(LH_GRID_TAG_OWN + (unsigned)hop), bytes);
    for (unsigned i = 0; i < count; i++)
        lh_emit_region(e, regions[i].slot, regions[i].part, regions[i].count);
}

void
lh_grid_hop_move(LhEmitter *e, const LhGridPlan *plan, LhGridHop hop, const LhRegion *give,
                 const LhRegion *take, unsigned count)
{
    const uint32_t row = lh_grid_row(plan, e->rank), column = lh_grid_column(plan, e->rank);
    const bool left = hop < LH_GRID_HOP_KEYS;
    const uint32_t to = left ? lh_grid_rank(plan, row, column + plan->grid.columns - 1)
                             : lh_grid_rank(plan, row + plan->grid.rows - 1, column);
    const uint32_t from =
        left ? lh_grid_rank(plan, row, column + 1) : lh_grid_rank(plan, row + 1, column);
    const uint8_t stream = left ? LH_GRID_STREAM_ROW : LH_GRID_STREAM_COLUMN;
    const uint32_t id = lh_emit_exchange(e, stream);

    /* A rank may be a neighbour both in the row and in the column. */
    lh_emit_last(e)->communicator = stream;
    lh_emit_after(e, e->marks[LH_MARK_COMPUTE]);
    message_hop(e, true, to, hop, give, count);
    message_hop(e, false, from, hop, take, count);
    lh_grid_hop_posted(e, plan, hop, id);
}

uint32_t
lh_grid_hop_key_row(const LhEmitter *e, const LhGridPlan *plan, uint32_t hops)
{
    return (lh_grid_row(plan, e->rank) + hops) % plan->grid.rows;
}

/* Passes on k, v that have made @hops hops, if the rank above does not have them yet. */
static void
move_keys(LhEmitter *e, const LhGridPlan *plan, uint16_t kv, uint32_t hops)
{
    const LhRegion own = lh_grid_part(lh_grid_own_kv(e, plan), 0);
    const LhRegion give = hops == 0 ? own : lh_grid_part(kv, lh_grid_hop_key_row(e, plan, hops));
    const LhRegion take = lh_grid_part(kv, lh_grid_hop_key_row(e, plan, hops + 1));

    if (hops + 1 < plan->grid.rows)
        lh_grid_hop_move(e, plan, LH_GRID_HOP_KEYS, &give, &take, 1);
}

void
lh_grid_hop_begin_keys(LhEmitter *e, const LhGridPlan *plan, uint16_t kv)
{
    const uint32_t transposed = lh_grid_transpose(e, plan, LH_GRID_STREAM_COLUMN);

    if (plan->grid.rows == 1)
        return;
    if (transposed != LH_OP_NONE)
        e->marks[LH_GRID_MARK_WAIT] = transposed;
    move_keys(e, plan, kv, 0);
    lh_grid_map(e, LH_KERNEL_ID_copy, &plan->kv_rows, lh_grid_part(lh_grid_own_kv(e, plan), 0),
                lh_grid_part(kv, lh_grid_hop_key_row(e, plan, 0)));
}

void
lh_grid_hop_next_keys(LhEmitter *e, const LhGridPlan *plan, uint16_t kv, uint32_t hops)
{
    lh_grid_hop_wait(e, LH_GRID_HOP_KEYS);
    move_keys(e, plan, kv, hops);
}

LhRegion
lh_grid_hop_outgoing(LhEmitter *e, const LhGridPlan *plan, const LhKernelArgs *rows, LhRegion sum,
                     uint16_t out)
{
    if (!lh_grid_rounds(&plan->sizes))
        return sum;
    lh_grid_map(e, LH_KERNEL_ID_cast, rows, sum, lh_grid_part(out, 0));
    return lh_grid_part(out, 0);
}

/* Adds the sums of dk, dv received from the ranks below, for the keys of row @row. */
static void
add_column_dkv(LhEmitter *e, const LhGridPlan *plan, const LhGridDkv *dkv, uint32_t row)
{
    lh_grid_hop_wait(e, LH_GRID_HOP_DKV);
    lh_grid_map(e, LH_KERNEL_ID_add_to_fp32, &plan->kv_rows, lh_grid_part(dkv->in, 0),
                lh_grid_part(dkv->sum, row));
}

void
lh_grid_hop_return_dkv(LhEmitter *e, const LhGridPlan *plan, const LhGridDkv *dkv, uint32_t hops)
{
    const uint32_t row = lh_grid_hop_key_row(e, plan, hops);
    const LhRegion in = lh_grid_part(dkv->in, 0);
    LhRegion out;

    if (hops > 1)
        add_column_dkv(e, plan, dkv, row);
    out = lh_grid_hop_outgoing(e, plan, &plan->kv_rows, lh_grid_part(dkv->sum, row), dkv->out);
    lh_grid_hop_move(e, plan, LH_GRID_HOP_DKV, &out, &in, 1);
}

void
lh_grid_hop_end_dkv(LhEmitter *e, const LhGridPlan *plan, const LhGridDkv *dkv)
{
    const uint32_t row = lh_grid_row(plan, e->rank);
    const LhRegion sum = lh_grid_part(dkv->sum, row), result = lh_grid_part(plan->io.dkv, 0);
    const bool converts = plan->sizes.w != plan->sizes.e;
    LhRegion out;

    if (plan->grid.rows > 1)
        add_column_dkv(e, plan, dkv, row);
    if (!lh_grid_moves(&e->program->params, plan->grid, e->rank)) {
        lh_grid_map(e, LH_KERNEL_ID_cast, &plan->kv_rows, sum, result);
        return;
    }
    out = lh_grid_hop_outgoing(e, plan, &plan->kv_rows, sum, dkv->out);
    lh_grid_hop_posted(e, plan, LH_GRID_HOP_BACK,
                       lh_grid_transpose_back(e, plan, LH_GRID_STREAM_COLUMN, out,
                                              converts ? lh_grid_part(dkv->in, 0) : result));
}
