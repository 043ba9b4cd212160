/*
 * What both schedules of Attention2D share. P = Pr x Pc ranks form a grid; rank r + Pr c stands in
 * row r and column c. Tokens are striped, so that the queries of a row are the tokens r + i Pr. k
 * and v are transposed: rank (r, c) gets those of segment Pc r + c, and the keys of a column are
 * the tokens c + i Pc. Every row meets every column in one rank, which computes that part of the
 * attention matrix; partial outputs are merged along rows, dk and dv added up along columns.
 *
 * With local_kv nothing is transposed: column c has the keys of the segments Pr c, ..., Pr c +
 * Pr-1.
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

/* Marks of the cursor from here on are a schedule's own. */
enum {
    LH_GRID_MARK_WAIT = LH_MARK_OWN, /* a second exchange that the next compute op must wait for */
    LH_GRID_MARK_OWN,
};

/* Tags of messages, likewise. */
enum {
    LH_GRID_TAG_TRANSPOSE,
    LH_GRID_TAG_TRANSPOSE_BACK,
    LH_GRID_TAG_OWN,
};

/* What both plans have; the first member of each. */
typedef struct {
    LhPassSizes sizes;
    LhPassSlots io;
    LhGrid grid;
    uint32_t ranks;
    bool overlap, local_kv;
    bool gather_delta; /* and there are rows to gather it over */
    uint16_t kt;       /* transposed k, v; stays from the forward to the backward pass */
    LhKernelArgs q_rows, kv_rows;
} LhGridPlan;

/* The grid that is asked for; what is not said of it becomes that which sends the least bytes. */
LhGrid lh_grid_of(const LhProgramParams *p);
void lh_grid_adapt(LhProgramParams *p);
bool lh_grid_check(const LhProgramParams *p, GError **error);

/* Whether the transpose takes k and v of @rank elsewhere. Its fixed points send nothing; in a grid
 * of one row or one column all ranks are that. */
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

/* The slot of the k, v that a rank brings into its column. */
static inline uint16_t
lh_grid_own_kv(const LhEmitter *e, const LhGridPlan *plan)
{
    return lh_grid_moves(&e->program->params, plan->grid, e->rank) ? plan->kt : plan->io.kv;
}

/*
 * Arguments of attention of the queries of @parts ranks of the rank's row, from column @column on,
 * with the keys of @key_parts ranks of its column, from row @key_row on.
 */
typedef struct {
    uint32_t column, parts;
    uint32_t key_row, key_parts;
} LhGridBlock;
LhKernelArgs lh_grid_args(const LhEmitter *e, const LhGridPlan *plan, LhGridBlock block);

/* At the start and the end of a pass: kt exists where the rank needs it. */
void lh_grid_alloc_kt(LhEmitter *e, const LhGridPlan *plan);
void lh_grid_free_kt(LhEmitter *e, const LhGridPlan *plan);

/* Posts the transpose of k and v, unless an earlier pass has done it or the rank is a fixed point:
 * LH_OP_NONE then. */
uint32_t lh_grid_transpose(LhEmitter *e, const LhGridPlan *plan, uint8_t stream);

/* Posts its inverse: dk and dv of the held keys go home from @from, the own ones arrive in @to. */
uint32_t lh_grid_transpose_back(LhEmitter *e, const LhGridPlan *plan, uint8_t stream, LhRegion from,
                                LhRegion to);

/* Appends a compute op behind both waits. */
void lh_grid_compute(LhEmitter *e, LhKernelId kernel, const LhKernelArgs *args);

/* An elementwise call on one part each. */
void lh_grid_map(LhEmitter *e, LhKernelId kernel, const LhKernelArgs *rows, LhRegion source,
                 LhRegion target);

/* Closed forms that do not depend on what overlaps. */
uint64_t lh_grid_bytes_sent(const LhProgramParams *p, uint32_t rank);
uint64_t lh_grid_flops(const LhProgramParams *p, uint32_t rank);
double lh_grid_idle_unit(const LhProgramParams *p);
double lh_grid_idle_flops(const LhProgramParams *p);

static inline LhRegion
lh_grid_part(uint16_t slot, uint32_t part)
{
    return (LhRegion){ slot, part, 1 };
}
