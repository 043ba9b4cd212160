/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What both schedules of Attention2D share; `longhaul show attention2d-no` describes the grid. Rank
 * r + Pr c stands in row r and column c. kt is the rank's k, v after the transpose, those of
 * segment Pc r + c; with local_kv a rank keeps its own.
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

/* Marks of the cursor; those from LH_GRID_MARK_OWN on belong to the schedule. */
enum {
    LH_GRID_MARK_WAIT = LH_MARK_OWN, /* a second exchange that the next compute op must wait for */
    LH_GRID_MARK_OWN,
};

/* Tags of messages; those from LH_GRID_TAG_OWN on belong to the schedule. */
enum {
    LH_GRID_TAG_TRANSPOSE,
    LH_GRID_TAG_TRANSPOSE_BACK,
    LH_GRID_TAG_OWN,
};

/* The first member of the plans of both schedules. */
typedef struct {
    LhPassSizes sizes;
    LhPassSlots io;
    LhGrid grid;
    uint32_t ranks;
    bool overlap, local_kv;
    bool gather_delta; /* asked for, and a row has more than one rank */
    uint16_t kt;       /* transposed k, v; stays from the forward to the backward pass */
    LhKernelArgs q_rows, kv_rows;
} LhGridPlan;

/* The grid that the options ask for; by default the one that sends the least bytes. */
LhGrid lh_grid_of(const LhProgramParams *p);
void lh_grid_adapt(LhProgramParams *p);
bool lh_grid_check(const LhProgramParams *p, GError **error);

/* Whether the transpose moves k and v of @rank to another rank. If not, the rank sends nothing in
 * it; in a grid of one row or one column this is so on all ranks. */
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
 * Arguments of attention of the queries of @parts ranks of the rank's row, starting at column
 * @column, with the keys of @key_parts ranks of its column, starting at row @key_row.
 */
typedef struct {
    uint32_t column, parts;
    uint32_t key_row, key_parts;
} LhGridBlock;
LhKernelArgs lh_grid_args(const LhEmitter *e, const LhGridPlan *plan, LhGridBlock block);

/* Allocate and free kt, at the start and the end of a pass, on the ranks that need it. */
void lh_grid_alloc_kt(LhEmitter *e, const LhGridPlan *plan);
void lh_grid_free_kt(LhEmitter *e, const LhGridPlan *plan);

/* Posts the transpose of k and v, and returns the exchange; LH_OP_NONE if the forward pass has done
 * it or if the rank keeps its k and v. */
uint32_t lh_grid_transpose(LhEmitter *e, const LhGridPlan *plan, uint8_t stream);

/* Posts the inverse of the transpose: dk and dv of the keys that the rank has held go back from
 * @from, those of its own tokens arrive in @to. */
uint32_t lh_grid_transpose_back(LhEmitter *e, const LhGridPlan *plan, uint8_t stream, LhRegion from,
                                LhRegion to);

/* Appends a compute op that waits for both marked exchanges, of the row and of the column. */
void lh_grid_compute(LhEmitter *e, LhKernelId kernel, const LhKernelArgs *args);

/* Appends an elementwise call on one part of each slot. */
void lh_grid_map(LhEmitter *e, LhKernelId kernel, const LhKernelArgs *rows, LhRegion source,
                 LhRegion target);

/* Appends attention of one block, whose normalised result goes to @into. */
void lh_grid_attend(LhEmitter *e, const LhKernelArgs *args, LhRegion q, LhRegion kv, LhRegion into);

/* Appends a call that makes a sum of nothing. */
void lh_grid_clear(LhEmitter *e, const LhKernelArgs *rows, LhRegion target);

/* Closed forms that both schedules share. */
uint64_t lh_grid_bytes_sent(const LhProgramParams *p, uint32_t rank);
uint64_t lh_grid_flops(const LhProgramParams *p, uint32_t rank);
double lh_grid_idle_unit(const LhProgramParams *p);
double lh_grid_idle_flops(const LhProgramParams *p);

static inline LhRegion
lh_grid_part(uint16_t slot, uint32_t part)
{
    return (LhRegion){ slot, part, 1 };
}
