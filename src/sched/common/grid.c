/* SPDX-License-Identifier: Apache-2.0 */
/* Common code of the Attention2D schedules. */
#include "sched/common/grid.h"

#include <inttypes.h>

const LhOption lh_option_grid = {
    .name = "grid",
    .category = LH_ABOUT_SCHEDULE_RANKS,
    .type = LH_OPTION_GRID,
    .help = "Rows and columns of the grid of ranks. Default: the grid that sends the fewest bytes.",
    .at_every_size = true,
};

const LhOption lh_option_local_kv = {
    .name = "local_kv",
    .category = LH_ABOUT_SCHEDULE_WORK,
    .type = LH_OPTION_FLAG,
    .help = "Gather k and v from their owners directly, without transposing them first.",
};

const LhOption lh_option_gather_delta = {
    .name = "gather_delta",
    .category = LH_ABOUT_SCHEDULE_WORK,
    .type = LH_OPTION_FLAG,
    .help = "Gather delta instead of o in the backward pass.",
};

/* ---- the grid ---- */

bool
lh_grid_moves(const LhProgramParams *p, LhGrid grid, uint32_t rank)
{
    const uint64_t row = rank % grid.rows, column = rank / grid.rows;

    return !lh_grid_local_kv(p) && row * grid.columns + column != rank;
}

static bool
gathers_delta(const LhProgramParams *p, LhGrid grid)
{
    return lh_grid_gather_delta(p) && grid.columns > 1;
}

/* Bytes a rank sends; @moves says whether the transpose moves its k and v. */
static uint64_t
bytes_of(const LhProgramParams *p, LhGrid grid, bool moves)
{
    const LhPassSizes z = lh_pass_sizes(p, 0);
    const uint64_t along_row = grid.columns - 1, along_column = grid.rows - 1;
    const uint64_t third = gathers_delta(p, grid) ? z.s : z.q; /* gathered together with q and do */
    uint64_t bytes = moves ? z.kv : 0;

    if (lh_pass_has(p, LH_PASS_FWD))
        bytes += along_row * (2 * z.q + z.s) + along_column * z.kv;
    if (lh_pass_has(p, LH_PASS_BWD))
        bytes += along_row * (2 * z.q + third + z.s + z.dq) + along_column * (z.kv + z.dkv) +
                 (moves ? z.dkv : 0);
    return bytes;
}

/* The factorisation that sends the fewest bytes in both passes together; ties: more rows. */
static LhGrid
best_grid(const LhProgramParams *p)
{
    LhProgramParams both = *p;
    LhGrid best = { MAX(p->ranks, 1), 1 };
    uint64_t least = UINT64_MAX;

    both.pass = LH_PASS_BOTH;
    for (uint32_t columns = 1; columns <= p->ranks; columns++) {
        const LhGrid grid = { p->ranks / columns, columns };
        const bool moves = !lh_grid_local_kv(p) && grid.rows > 1 && columns > 1;
        uint64_t bytes;

        if (p->ranks % columns != 0)
            continue;
        bytes = bytes_of(&both, grid, moves);
        if (bytes < least) {
            least = bytes;
            best = grid;
        }
    }
    return best;
}

LhGrid
lh_grid_of(const LhProgramParams *p)
{
    const LhOptionValue grid = lh_option_get(p, &lh_option_grid);

    if (grid.first == 0)
        return p->ranks == 0 ? (LhGrid){ 1, 1 } : best_grid(p);
    return (LhGrid){ grid.first, grid.second };
}

void
lh_grid_adapt(LhProgramParams *p)
{
    const LhGrid grid = lh_grid_of(p);

    lh_option_set(p, &lh_option_grid, (LhOptionValue){ grid.rows, grid.columns });
}

bool
lh_grid_check(const LhProgramParams *p, GError **error)
{
    const LhGrid grid = lh_grid_of(p);
    g_autofree char *other = NULL;
    uint32_t below, above, none;

    if ((uint64_t)grid.rows * grid.columns == p->ranks)
        return true;
    lh_divisors_near(p->ranks, grid.rows, p->ranks, &below, &none);
    lh_divisors_near(p->ranks, below + 1, p->ranks, &none, &above);
    if (above > below)
        other = g_strdup_printf(", %" PRIu32 "x%" PRIu32, above, p->ranks / above);
    return lh_program_refuse(error,
                             "a grid of %" PRIu32 "x%" PRIu32 " has %" PRIu64
                             " places, not %" PRIu32 "; nearest legal grids: %" PRIu32 "x%" PRIu32
                             "%s",
                             grid.rows, grid.columns, (uint64_t)grid.rows * grid.columns, p->ranks,
                             below, p->ranks / below, other == NULL ? "" : other);
}

/* ---- programs ---- */

void
lh_grid_declare(LhProgram *program, LhGridPlan *plan)
{
    const LhProgramParams *p = &program->params;
    const LhPassSizes z = lh_pass_sizes(p, 0);

    plan->sizes = z;
    plan->io = lh_pass_declare(program, &z);
    plan->grid = lh_grid_of(p);
    plan->ranks = p->ranks;
    plan->overlap = lh_pass_overlaps(p);
    plan->local_kv = lh_grid_local_kv(p);
    plan->gather_delta = gathers_delta(p, plan->grid);
    plan->q_rows = lh_pass_q_args(p, z.n);
    plan->kv_rows = lh_pass_kv_args(p, z.n);
    if (!lh_grid_local_kv(p) && plan->grid.rows > 1 && plan->grid.columns > 1)
        plan->kt = lh_pass_add_buffer(program, "kv_transposed", LH_TENSOR_KV, z.kv, z.e);
}

LhKernelArgs
lh_grid_args(const LhEmitter *e, const LhGridPlan *plan, LhGridBlock block)
{
    const uint64_t row = lh_grid_row(plan, e->rank), column = lh_grid_column(plan, e->rank);
    const uint64_t rows = plan->grid.rows, columns = plan->grid.columns;
    const uint64_t key_step = plan->local_kv ? 1 : columns;
    const uint64_t key_first = plan->local_kv ? rows * column : column;
    const LhPassRows q = {
        .first = { row + rows * block.column, plan->ranks, plan->sizes.n },
        .part_step = (int64_t)rows,
        .parts = block.parts,
    };
    const LhPassRows k = {
        .first = { key_first + key_step * block.key_row, plan->ranks, plan->sizes.n },
        .part_step = (int64_t)key_step,
        .parts = block.key_parts,
    };

    return lh_pass_position_args(e->program, q, k);
}

void
lh_grid_alloc_kt(LhEmitter *e, const LhGridPlan *plan)
{
    const LhProgramParams *p = &e->program->params;

    if (lh_grid_moves(p, plan->grid, e->rank) &&
        !(e->phase == LH_PHASE_BACKWARD && lh_pass_has(p, LH_PASS_FWD)))
        lh_emit_alloc(e, plan->kt);
}

void
lh_grid_free_kt(LhEmitter *e, const LhGridPlan *plan)
{
    const LhProgramParams *p = &e->program->params;

    if (lh_grid_moves(p, plan->grid, e->rank) &&
        !(e->phase == LH_PHASE_FORWARD && lh_pass_has(p, LH_PASS_BWD)))
        lh_emit_free(e, plan->kt);
}

/* The rank whose k, v @rank brings into its column, and the rank that brings those of @rank into
 * its own. */
static uint32_t
keys_owner(const LhGridPlan *plan, uint32_t rank)
{
    return plan->grid.columns * lh_grid_row(plan, rank) + lh_grid_column(plan, rank);
}

static uint32_t
keys_holder(const LhGridPlan *plan, uint32_t rank)
{
    return lh_grid_rank(plan, rank / plan->grid.columns, rank % plan->grid.columns);
}

/* Posts an exchange after the queued compute. */
static uint32_t
post_exchange(LhEmitter *e, uint8_t stream)
{
    const uint32_t id = lh_emit_exchange(e, stream);

    lh_emit_after(e, e->marks[LH_MARK_COMPUTE]);
    return id;
}

uint32_t
lh_grid_transpose(LhEmitter *e, const LhGridPlan *plan, uint8_t stream)
{
    const LhProgramParams *p = &e->program->params;
    uint32_t id;

    if (!lh_grid_moves(p, plan->grid, e->rank) ||
        (e->phase == LH_PHASE_BACKWARD && lh_pass_has(p, LH_PASS_FWD)))
        return LH_OP_NONE;
    id = post_exchange(e, stream);
    lh_pass_message(e, true, keys_holder(plan, e->rank), LH_GRID_TAG_TRANSPOSE, plan->io.kv, 1);
    lh_pass_message(e, false, keys_owner(plan, e->rank), LH_GRID_TAG_TRANSPOSE, plan->kt, 1);
    return id;
}

uint32_t
lh_grid_transpose_back(LhEmitter *e, const LhGridPlan *plan, uint8_t stream, LhRegion from,
                       LhRegion to)
{
    const uint64_t bytes = lh_region_bytes(e->program, from);
    const uint32_t id = post_exchange(e, stream);

    lh_emit_part(e, true, keys_owner(plan, e->rank), LH_GRID_TAG_TRANSPOSE_BACK, bytes);
    lh_emit_region(e, from.slot, from.part, from.count);
    lh_emit_part(e, false, keys_holder(plan, e->rank), LH_GRID_TAG_TRANSPOSE_BACK, bytes);
    lh_emit_region(e, to.slot, to.part, to.count);
    return id;
}

void
lh_grid_compute(LhEmitter *e, LhKernelId kernel, const LhKernelArgs *args)
{
    uint32_t *marks = e->marks;

    lh_pass_compute(e, kernel, args);
    lh_emit_after(e, marks[LH_GRID_MARK_WAIT]);
    marks[LH_GRID_MARK_WAIT] = LH_OP_NONE;
}

void
lh_grid_map(LhEmitter *e, LhKernelId kernel, const LhKernelArgs *rows, LhRegion source,
            LhRegion target)
{
    lh_grid_compute(e, kernel, rows);
    lh_emit_operand(e, source.slot, source.part, source.count);
    lh_emit_operand(e, target.slot, target.part, target.count);
}

void
lh_grid_attend(LhEmitter *e, const LhKernelArgs *args, LhRegion q, LhRegion kv, LhRegion into)
{
    lh_grid_compute(e, LH_KERNEL_ID_attention_block, args);
    lh_emit_operand(e, q.slot, q.part, q.count);
    lh_emit_operand(e, kv.slot, kv.part, kv.count);
    lh_emit_operand(e, into.slot, into.part, into.count);
}

void
lh_grid_clear(LhEmitter *e, const LhKernelArgs *rows, LhRegion target)
{
    lh_grid_compute(e, LH_KERNEL_ID_zero, rows);
    lh_emit_operand(e, target.slot, target.part, target.count);
}

/* ---- closed forms ---- */

uint64_t
lh_grid_bytes_sent(const LhProgramParams *p, uint32_t rank)
{
    const LhGrid grid = lh_grid_of(p);

    return bytes_of(p, grid, lh_grid_moves(p, grid, rank));
}

/*
 * Queries are the tokens r + a Pr, keys the tokens c + b Pc; k = gcd(Pr, Pc). Both have the same
 * residues modulo k, so the distance of the diagonal from the corner of a block depends only on (r
 * - c) div k.
 */
static uint64_t
causal_pairs(const LhProgramParams *p, LhGrid grid, uint32_t rank)
{
    const int64_t length = (int64_t)p->attention.seq_length, n = length / p->ranks;
    const int64_t rows = grid.rows, columns = grid.columns,
                  k = lh_pass_common_divisor(grid.rows, grid.columns);
    const int64_t row = rank % rows, column = rank / rows;
    const int64_t ahead = (row - column + columns) / k - columns / k; /* rounded down */

    return (uint64_t)(n * (2 * k * ahead + length - rows + columns + k) / 2);
}

/* Of each P consecutive tokens, the query of column c' sees all Pr keys if c' > c and the first
 * r + 1 if c' = c. It sees every key of all earlier groups of P tokens. */
static uint64_t
causal_pairs_local(const LhProgramParams *p, LhGrid grid, uint32_t rank)
{
    const uint64_t n = p->attention.seq_length / p->ranks;
    const uint64_t row = rank % grid.rows, column = rank / grid.rows;

    return p->ranks * (n * (n - 1) / 2) + n * ((grid.columns - 1 - column) * grid.rows + row + 1);
}

/* Counts the pairs under any mask by splitting queries and keys into segments of one stride. */
static uint64_t
counted_pairs(const LhProgramParams *p, LhGrid grid, uint32_t rank)
{
    const uint64_t row = rank % grid.rows, column = rank / grid.rows;
    const uint64_t shared = lh_pass_common_divisor(grid.rows, grid.columns);
    const uint64_t stride = lh_grid_local_kv(p) ? p->ranks : p->ranks / shared; /* lcm(Pr, Pc) */
    const uint64_t count = p->attention.seq_length / stride;
    const uint64_t keys = lh_grid_local_kv(p) ? grid.rows : stride / grid.columns;
    uint64_t pairs = 0;

    for (uint64_t a = 0; a < stride / grid.rows; a++) {
        const LhSegment q = { row + a * grid.rows, stride, count };

        for (uint64_t b = 0; b < keys; b++) {
            const LhSegment k = {
                lh_grid_local_kv(p) ? column * grid.rows + b : column + b * grid.columns,
                stride,
                count,
            };

            pairs += lh_mask_pairs(&p->mask, q, k);
        }
    }
    return pairs;
}

static uint64_t
pairs_of(const LhProgramParams *p, LhGrid grid, uint32_t rank)
{
    const uint64_t length = p->attention.seq_length;

    if (!lh_mask_is_plain(&p->mask))
        return counted_pairs(p, grid, rank);
    if (!p->mask.causal)
        return length / p->ranks * length;
    return lh_grid_local_kv(p) ? causal_pairs_local(p, grid, rank) : causal_pairs(p, grid, rank);
}

uint64_t
lh_grid_flops(const LhProgramParams *p, uint32_t rank)
{
    return lh_pass_flops(p, pairs_of(p, lh_grid_of(p), rank));
}

double
lh_grid_idle_unit(const LhProgramParams *p)
{
    (void)p;
    return 0;
}

/* With windows or documents the work has no closed form, so its pairs are counted. */
static double
idle_counted(const LhProgramParams *p, LhGrid grid)
{
    double total = 0, most = 0;

    for (uint32_t rank = 0; rank < p->ranks; rank++) {
        const double pairs = (double)counted_pairs(p, grid, rank);

        total += pairs;
        most = MAX(most, pairs);
    }
    return 1 - total / (most * p->ranks);
}

double
lh_grid_idle_flops(const LhProgramParams *p)
{
    const LhGrid grid = lh_grid_of(p);
    const double length = (double)p->attention.seq_length, ranks = p->ranks;
    /* Under a causal mask the busiest rank has (N/2P) (N + edge) pairs, the mean is (N/2P) (N +
     * 1). */
    const double edge =
        (double)grid.rows + grid.columns - lh_pass_common_divisor(grid.rows, grid.columns);

    if (!lh_mask_is_plain(&p->mask))
        return idle_counted(p, grid);
    if (!p->mask.causal)
        return 0;
    return lh_grid_local_kv(p) ? (ranks - 1) / (length + ranks) : (edge - 1) / (length + edge);
}
