/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Common part of both Attention2D schedules; `longhaul show attention2d-no` describes the grid.
 * Rank r + Pr c is in row r and column c. kt is the rank's k, v after the transpose: those of
 * segment Pc r + c, or with local_kv the rank's own.
 */
#pragma once

#include "sched/common/pass.h"

extern const LhOption lh_option_grid;
extern const LhOption lh_option_local_kv;
extern const LhOption lh_option_gather_delta;

static inline bool
lh_grid_local_kv(const LhProgramParams *p)
{
    return lh_option_first(p, &lh_option_local_kv) != 0;
}

static inline bool
lh_grid_gather_delta(const LhProgramParams *p)
{
    return lh_option_first(p, &lh_option_gather_delta) != 0;
}

typedef struct {
    uint32_t rows, columns; /* Pr, Pc */
} LhGrid;

/* Marks of the cursor; the schedule uses those from LH_GRID_MARK_OWN on. */
enum {
    LH_GRID_MARK_WAIT = LH_MARK_OWN, /* a second exchange that the next compute op must wait for */
    LH_GRID_MARK_OWN,
};

/* Tags of messages; the schedule uses those from LH_GRID_TAG_OWN on. */
enum {
    LH_GRID_TAG_TRANSPOSE,
    LH_GRID_TAG_TRANSPOSE_BACK,
    LH_GRID_TAG_OWN,
};

/* First member of the plans of both schedules. */
typedef struct {
    LhPassSizes sizes;
    LhPassSlots io;
    LhGrid grid;
    uint32_t ranks;
    bool overlap, local_kv;
    bool gather_delta; /* requested, and a row has more than one rank */
    uint16_t kt;       /* transposed k, v; kept from the forward to the backward pass */
    LhKernelArgs q_rows, kv_rows;
} LhGridPlan;

/* The grid set by the options; by default the one that sends the fewest bytes. */
LhGrid lh_grid_of(const LhProgramParams *p);
void lh_grid_adapt(LhProgramParams *p);
bool lh_grid_check(const LhProgramParams *p, GError **error);

/* Whether the transpose moves k and v of @rank to another rank; otherwise the rank sends nothing
 * in it. In a grid of one row or one column no rank does. */
bool lh_grid_moves(const LhProgramParams *p, LhGrid grid, uint32_t rank);

/* Fills @plan and declares inputs, outputs and kt. */
void lh_grid_declare(LhProgram *program, LhGridPlan *plan);

static inline uint32_t
lh_grid_row(const LhGridPlan *plan, uint32_t rank)
{
    g_assert(plan->grid.rows > 0);
    return rank % plan->grid.rows;
}

static inline uint32_t
lh_grid_column(const LhGridPlan *plan, uint32_t rank)
{
    return rank / plan->grid.rows;
}

/* The rank in row @row and column @column, modulo Pr and Pc. */
static inline uint32_t
lh_grid_rank(const LhGridPlan *plan, uint32_t row, uint32_t column)
{
    return row % plan->grid.rows + plan->grid.rows * (column % plan->grid.columns);
}

/* The slot of the k, v that a rank brings into its column: kt, or its own. */
static inline uint16_t
lh_grid_own_kv(const LhEmitter *e, const LhGridPlan *plan)
{
    return lh_grid_moves(&e->program->params, plan->grid, e->rank) ? plan->kt : plan->io.kv;
}

/*
 * Attention arguments of the queries of @parts ranks of the rank's row, from column @column on,
 * with the keys of @key_parts ranks of its column, from row @key_row on.
 */
typedef struct {
    uint32_t column, parts;
    uint32_t key_row, key_parts;
} LhGridBlock;
LhKernelArgs lh_grid_args(const LhEmitter *e, const LhGridPlan *plan, LhGridBlock block);

/* Allocate and free kt at the start and the end of a pass, on the ranks that need it. */
void lh_grid_alloc_kt(LhEmitter *e, const LhGridPlan *plan);
void lh_grid_free_kt(LhEmitter *e, const LhGridPlan *plan);

/* Posts the transpose of k and v and returns the exchange; LH_OP_NONE if the forward pass has
 * done it or the rank keeps its k and v. */
uint32_t lh_grid_transpose(LhEmitter *e, const LhGridPlan *plan, uint8_t stream);

/* Posts the inverse of the transpose: dk and dv of the keys that the rank has held return to
 * their owner from @from; those of its own tokens arrive in @to. */
uint32_t lh_grid_transpose_back(LhEmitter *e, const LhGridPlan *plan, uint8_t stream, LhRegion from,
                                LhRegion to);

/* Appends a compute op that waits for both marked exchanges, of the row and of the column. */
void lh_grid_compute(LhEmitter *e, LhKernelId kernel, const LhKernelArgs *args);

/* Appends an elementwise call on one part of each slot. */
void lh_grid_map(LhEmitter *e, LhKernelId kernel, const LhKernelArgs *rows, LhRegion source,
                 LhRegion target);

/* Appends attention of one block, with the normalised result in @into. */
void lh_grid_attend(LhEmitter *e, const LhKernelArgs *args, LhRegion q, LhRegion kv, LhRegion into);

/* Appends a call that sets a sum to zero. */
void lh_grid_clear(LhEmitter *e, const LhKernelArgs *rows, LhRegion target);

/* Closed forms of both schedules. */
uint64_t lh_grid_bytes_sent(const LhProgramParams *p, uint32_t rank);
uint64_t lh_grid_flops(const LhProgramParams *p, uint32_t rank);
double lh_grid_idle_unit(const LhProgramParams *p);
double lh_grid_idle_flops(const LhProgramParams *p);

static inline LhRegion
lh_grid_part(uint16_t slot, uint32_t part)
{
    return (LhRegion){ slot, part, 1 };
}
