/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hops between neighbours of a grid. Queries and their results move left along the row, keys and
 * their gradients up the column. Row and column have one stream each.
 */
#pragma once

#include "sched/common/grid.h"

enum {
    LH_GRID_STREAM_ROW = LH_PASS_STREAM_COMM,
    LH_GRID_STREAM_COLUMN,
};

/* Contents of a message to the left or upper neighbour. Each kind has a mark for the exchange
 * posted last. */
typedef enum {
    LH_GRID_HOP_QUERIES,
    LH_GRID_HOP_RESULT, /* partial o or dq of the queries */
    LH_GRID_HOP_KEYS,
    LH_GRID_HOP_DKV,
    LH_GRID_HOP_BACK, /* the transpose of dk and dv */
} LhGridHop;

/* Makes the next compute op wait for the last exchange of kind @hop. For several exchanges of
 * one stream it waits for the latest. */
void lh_grid_hop_wait(LhEmitter *e, LhGridHop hop);

/* Records exchange @id as the last one of kind @hop. Without overlap the next compute op waits for
 * it. */
void lh_grid_hop_posted(LhEmitter *e, const LhGridPlan *plan, LhGridHop hop, uint32_t id);

/* Posts an exchange, after the queued compute, that sends @count regions to the left or upper
 * neighbour and receives as many from the opposite one. */
void lh_grid_hop_move(LhEmitter *e, const LhGridPlan *plan, LhGridHop hop, const LhRegion *give,
                      const LhRegion *take, unsigned count);

/* The row of the rank whose keys have arrived here in @hops hops up the column. */
uint32_t lh_grid_hop_key_row(const LhEmitter *e, const LhGridPlan *plan, uint32_t hops);

/* Sends the rank's k, v up the column, and copies them to their place among the keys of the
 * column, slot @kv. */
void lh_grid_hop_begin_keys(LhEmitter *e, const LhGridPlan *plan, uint16_t kv);

/* Makes compute wait for the keys that have made @hops hops, and passes them on. */
void lh_grid_hop_next_keys(LhEmitter *e, const LhGridPlan *plan, uint16_t kv, uint32_t hops);

/* Whether sums of gradients are rounded into a buffer before they are sent. Sums sent in fp32
 * are sent from where they are. */
static inline bool
lh_grid_rounds(const LhPassSizes *z)
{
    return z->w < 4;
}

/* Returns the region that a sum is sent from, after rounding it into slot @out if needed. */
LhRegion lh_grid_hop_outgoing(LhEmitter *e, const LhGridPlan *plan, const LhKernelArgs *rows,
                              LhRegion sum, uint16_t out);

/* Slots of dk, dv of the keys of the column: fp32 sum, send buffer, receive buffer. */
typedef struct {
    uint16_t sum, out, in;
} LhGridDkv;

/* Sends up the rank's complete share of dk, dv of the keys that have made @hops hops. */
void lh_grid_hop_return_dkv(LhEmitter *e, const LhGridPlan *plan, const LhGridDkv *dkv,
                            uint32_t hops);

/* Sends the complete dk, dv of the keys that the rank brought into its column back to the owner
 * of their tokens. */
void lh_grid_hop_end_dkv(LhEmitter *e, const LhGridPlan *plan, const LhGridDkv *dkv);
