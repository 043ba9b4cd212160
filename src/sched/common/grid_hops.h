/*
 * Grids of ranks whose neighbours pass things on: queries and their results to the left along the
 * row, keys and their gradients up the column, each on a stream of its own.
 */
#pragma once

#include "sched/common/grid.h"

enum {
    LH_GRID_STREAM_ROW = LH_PASS_STREAM_COMM,
    LH_GRID_STREAM_COLUMN,
};

/* Messages to the neighbour, left or up; the last one posted of each has a mark. */
typedef enum {
    LH_GRID_HOP_QUERIES,
    LH_GRID_HOP_RESULT, /* of the queries: partial o or dq */
    LH_GRID_HOP_KEYS,
    LH_GRID_HOP_DKV,
    LH_GRID_HOP_BACK, /* the transpose of dk and dv */
} LhGridHop;

/* The next compute op waits for an exchange; of one stream, for the latest that it is told to. */
void lh_grid_hop_wait(LhEmitter *e, LhGridHop hop);

/* Exchange @id is the last one of @hop; without overlap the next compute op waits for it. */
void lh_grid_hop_posted(LhEmitter *e, const LhGridPlan *plan, LhGridHop hop, uint32_t id);

/* Gives @count regions to the left or upper neighbour and takes as many from the opposite one,
 * after the compute that is queued. */
void lh_grid_hop_move(LhEmitter *e, const LhGridPlan *plan, LhGridHop hop, const LhRegion *give,
                      const LhRegion *take, unsigned count);

/* The place of the keys that have come @hops ranks up the column. */
uint32_t lh_grid_hop_key_row(const LhEmitter *e, const LhGridPlan *plan, uint32_t hops);

/* The own k, v start up the column, and are put into their place among its keys, slot @kv. */
void lh_grid_hop_begin_keys(LhEmitter *e, const LhGridPlan *plan, uint16_t kv);

/* The keys that came @hops ranks have arrived, and move on. */
void lh_grid_hop_next_keys(LhEmitter *e, const LhGridPlan *plan, uint16_t kv, uint32_t hops);
