/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule attention2d-no, described at the end of this file. Every step of the algorithm
 * depends on the one before, so one stream carries all communication. Tensors gathered together
 * form one collective (one NCCL group call).
 */
#include "sched/common/grid.h"
#include "sched/schedule.h"

typedef struct {
    LhGridPlan base;
    uint16_t fwd_first, fwd_end, bwd_first, bwd_end;
    uint16_t fwd_q, fwd_kv, fwd_block;
    uint16_t bwd_q, bwd_dout, bwd_third, bwd_lse, bwd_kv, bwd_dq, bwd_dkv;
    uint16_t bwd_delta; /* delta of the rank's own queries */
} Attention2dNoPlan;

/* ---- declarations ---- */

static uint16_t
gathered(LhProgram *program, const char *name, LhTensorKind kind, uint32_t parts, uint64_t bytes,
         uint32_t element_bytes)
{
    return lh_pass_add_slot(program, name, kind, LH_SLOT_TEMP, parts, bytes, element_bytes);
}

static void
attention2d_no_declare_forward(LhProgram *program, Attention2dNoPlan *plan)
{
    const LhPassSizes *z = &plan->base.sizes;
    const LhGrid grid = plan->base.grid;

    plan->fwd_first = (uint16_t)program->slots_count;
    plan->fwd_q = plan->base.io.q;
    plan->fwd_kv = plan->base.io.kv;
    if (grid.columns > 1) {
        plan->fwd_q = gathered(program, "fwd_q", LH_TENSOR_Q, grid.columns, z->q, z->e);
        plan->fwd_block =
            gathered(program, "fwd_block", LH_TENSOR_OUT, grid.columns, z->q + z->s, z->e);
    }
    if (grid.rows > 1)
        plan->fwd_kv = gathered(program, "fwd_kv", LH_TENSOR_KV, grid.rows, z->kv, z->e);
    plan->fwd_end = (uint16_t)program->slots_count;
}

static void
declare_backward_rows(LhProgram *program, Attention2dNoPlan *plan)
{
    const LhPassSizes *z = &plan->base.sizes;
    const uint32_t parts = plan->base.grid.columns;

    plan->bwd_q = gathered(program, "bwd_q", LH_TENSOR_Q, parts, z->q, z->e);
    plan->bwd_dout = gathered(program, "bwd_do", LH_TENSOR_DO, parts, z->q, z->e);
    if (plan->base.gather_delta) {
        plan->bwd_delta = gathered(program, "bwd_delta", LH_TENSOR_DELTA, 1, z->s, 4);
        plan->bwd_third = gathered(program, "bwd_deltas", LH_TENSOR_DELTA, parts, z->s, 4);
    } else {
        plan->bwd_third = gathered(program, "bwd_o", LH_TENSOR_O, parts, z->q, z->e);
    }
    plan->bwd_lse = gathered(program, "bwd_lse", LH_TENSOR_LSE, parts, z->s, 4);
    plan->bwd_dq = gathered(program, "bwd_dq", LH_TENSOR_DQ, parts, z->dq, z->w);
}

static void
attention2d_no_declare_backward(LhProgram *program, Attention2dNoPlan *plan)
{
    const LhPassSizes *z = &plan->base.sizes;
    const LhPassSlots *io = &plan->base.io;
    const LhGrid grid = plan->base.grid;

    plan->bwd_first = (uint16_t)program->slots_count;
    plan->bwd_q = io->q;
    plan->bwd_dout = io->dout;
    plan->bwd_third = io->o;
    plan->bwd_lse = io->lse;
    plan->bwd_dq = io->dq;
    plan->bwd_kv = io->kv;
    plan->bwd_dkv = io->dkv;
    if (grid.columns > 1)
        declare_backward_rows(program, plan);
    if (grid.rows > 1) {
        plan->bwd_kv = gathered(program, "bwd_kv", LH_TENSOR_KV, grid.rows, z->kv, z->e);
        plan->bwd_dkv = gathered(program, "bwd_dkv", LH_TENSOR_DKV, grid.rows, z->dkv, z->w);
    }
    plan->bwd_end = (uint16_t)program->slots_count;
}

static void
attention2d_no_declare(LhProgram *program)
{
    const LhProgramParams *p = &program->params;
    Attention2dNoPlan *plan = g_new0(Attention2dNoPlan, 1);

    program->plan = plan;
    lh_grid_declare(program, &plan->base);
    if (lh_pass_has(p, LH_PASS_FWD))
        attention2d_no_declare_forward(program, plan);
    if (lh_pass_has(p, LH_PASS_BWD))
        attention2d_no_declare_backward(program, plan);
}

/* ---- collectives ---- */

/* Starts a collective along the rank's row or column. Compute queued later waits for it. */
static void
collect(LhEmitter *e, const Attention2dNoPlan *plan, LhCollectiveKind kind, bool along_row)
{
    const LhGridPlan *g = &plan->base;
    const LhGroup row = { lh_grid_row(g, e->rank), g->grid.rows, g->grid.columns, 0, 1 };
    const LhGroup column = { g->grid.rows * lh_grid_column(g, e->rank), 1, g->grid.rows, 0, 1 };
    const uint32_t id = lh_emit_collective(e, LH_PASS_STREAM_COMM, kind, along_row ? row : column);

    lh_emit_after(e, e->marks[LH_MARK_COMPUTE]);
    lh_pass_wait(e, id);
}

/* Adds a tensor to the all-gather started last: each rank contributes @from, and all parts
 * arrive in @into. */
static void
gather_tensor(LhEmitter *e, uint16_t from, uint16_t into)
{
    const LhRegion own = { from, 0, 1 };
    const LhRegion all = { into, 0, e->program->slots[into].parts };

    lh_emit_tensor(e, own, all);
}

/* Adds the tensor of the reduce-scatter started last: the rank contributes all parts of @slot,
 * and the sum of its own part arrives in @into. */
static void
scatter_tensor(LhEmitter *e, uint16_t slot, LhRegion into)
{
    const LhRegion all = { slot, 0, e->program->slots[slot].parts };

    lh_emit_tensor(e, all, into);
}

static void
gather_keys(LhEmitter *e, const Attention2dNoPlan *plan, uint16_t into)
{
    collect(e, plan, LH_COLL_ALL_GATHER, false);
    gather_tensor(e, lh_grid_own_kv(e, &plan->base), into);
}

/* ---- forward ---- */

/* Attention arguments of all queries of the row with all keys of the column. */
static LhKernelArgs
row_args(const LhEmitter *e, const Attention2dNoPlan *plan)
{
    const LhGrid grid = plan->base.grid;
    LhKernelArgs args = lh_grid_args(
        e, &plan->base, (LhGridBlock){ .parts = grid.columns, .key_parts = grid.rows });

    args.first = true;
    return args;
}

static void
add_operands(LhEmitter *e, const uint16_t *slots, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        lh_emit_operand(e, slots[i], 0, e->program->slots[slots[i]].parts);
}

/* Merges the partial results of the row in place by a reduce-scatter; the rank's own part
 * becomes o and lse. */
static void
merge_row(LhEmitter *e, const Attention2dNoPlan *plan)
{
    const LhRegion own = lh_grid_part(plan->fwd_block, lh_grid_column(&plan->base, e->rank));

    collect(e, plan, LH_COLL_REDUCE_SCATTER, true);
    lh_emit_last(e)->collective.reduction = LH_REDUCE_ATTENTION;
    scatter_tensor(e, plan->fwd_block, own);
    lh_pass_compute(e, LH_KERNEL_ID_copy_out, &plan->base.q_rows);
    lh_emit_operand(e, own.slot, own.part, own.count);
    lh_emit_operand(e, plan->base.io.o, 0, 1);
    lh_emit_operand(e, plan->base.io.lse, 0, 1);
}

static void
attention2d_no_forward(LhEmitter *e, const Attention2dNoPlan *plan)
{
    const LhPassSlots *io = &plan->base.io;
    const LhKernelArgs args = row_args(e, plan);

    lh_grid_alloc_kt(e, &plan->base);
    lh_pass_alloc(e, plan->fwd_first, plan->fwd_end);
    lh_grid_transpose(e, &plan->base, LH_PASS_STREAM_COMM);
    if (plan->base.grid.columns > 1) {
        collect(e, plan, LH_COLL_ALL_GATHER, true);
        gather_tensor(e, io->q, plan->fwd_q);
    }
    if (plan->base.grid.rows > 1)
        gather_keys(e, plan, plan->fwd_kv);
    if (plan->base.grid.columns > 1) {
        lh_pass_compute(e, LH_KERNEL_ID_attention_block, &args);
        add_operands(e, (const uint16_t[]){ plan->fwd_q, plan->fwd_kv, plan->fwd_block }, 3);
        merge_row(e, plan);
    } else {
        lh_pass_compute(e, LH_KERNEL_ID_attention, &args);
        add_operands(e, (const uint16_t[]){ io->q, plan->fwd_kv, io->o, io->lse }, 4);
    }
    lh_pass_free(e, plan->fwd_first, plan->fwd_end);
    lh_grid_free_kt(e, &plan->base);
}

/* ---- backward ---- */

static void
gather_queries(LhEmitter *e, const Attention2dNoPlan *plan)
{
    const LhPassSlots *io = &plan->base.io;

    if (plan->base.gather_delta) {
        lh_pass_compute(e, LH_KERNEL_ID_delta, &plan->base.q_rows);
        add_operands(e, (const uint16_t[]){ io->dout, io->o, plan->bwd_delta }, 3);
    }
    collect(e, plan, LH_COLL_ALL_GATHER, true);
    gather_tensor(e, io->q, plan->bwd_q);
    gather_tensor(e, io->dout, plan->bwd_dout);
    gather_tensor(e, plan->base.gather_delta ? plan->bwd_delta : io->o, plan->bwd_third);
    gather_tensor(e, io->lse, plan->bwd_lse);
}

/* Reduces dq over the row. The sum arrives in the output itself if the output has the type on
 * the wire. */
static void
reduce_dq(LhEmitter *e, const Attention2dNoPlan *plan)
{
    const LhPassSizes *z = &plan->base.sizes;
    const LhRegion out = lh_grid_part(plan->base.io.dq, 0);
    const LhRegion own = lh_grid_part(plan->bwd_dq, lh_grid_column(&plan->base, e->rank));

    collect(e, plan, LH_COLL_REDUCE_SCATTER, true);
    scatter_tensor(e, plan->bwd_dq, z->w == z->e ? out : own);
    if (z->w != z->e)
        lh_grid_map(e, LH_KERNEL_ID_cast, &plan->base.q_rows, own, out);
}

static void
reduce_dkv(LhEmitter *e, const Attention2dNoPlan *plan)
{
    const LhGridPlan *g = &plan->base;
    const bool wide = g->sizes.w != g->sizes.e;
    const bool moves = lh_grid_moves(&e->program->params, g->grid, e->rank);
    const uint32_t row = lh_grid_row(g, e->rank);
    const LhRegion out = lh_grid_part(g->io.dkv, 0);
    const LhRegion own = lh_grid_part(plan->bwd_dkv, row);
    /* The parts of the other ranks have been sent, so one of them can receive. */
    const LhRegion home = wide ? lh_grid_part(plan->bwd_dkv, (row + 1) % g->grid.rows) : out;

    collect(e, plan, LH_COLL_REDUCE_SCATTER, false);
    scatter_tensor(e, plan->bwd_dkv, moves || wide ? own : out);
    if (moves)
        lh_pass_wait(e, lh_grid_transpose_back(e, g, LH_PASS_STREAM_COMM, own, home));
    if (wide)
        lh_grid_map(e, LH_KERNEL_ID_cast, &g->kv_rows, moves ? home : own, out);
}

static void
attention2d_no_backward(LhEmitter *e, const Attention2dNoPlan *plan)
{
    const LhGridPlan *g = &plan->base;
    const LhKernelArgs args = row_args(e, plan);

    lh_grid_alloc_kt(e, g);
    lh_pass_alloc(e, plan->bwd_first, plan->bwd_end);
    lh_grid_transpose(e, g, LH_PASS_STREAM_COMM);
    if (g->grid.columns > 1)
        gather_queries(e, plan);
    if (g->grid.rows > 1)
        gather_keys(e, plan, plan->bwd_kv);
    lh_pass_compute(e, g->gather_delta ? LH_KERNEL_ID_attention_bwd : LH_KERNEL_ID_attention_bwd_o,
                    &args);
    add_operands(e,
                 (const uint16_t[]){ plan->bwd_q, plan->bwd_dout, plan->bwd_third, plan->bwd_lse,
                                     plan->bwd_kv, plan->bwd_dq, plan->bwd_dkv },
                 7);
    if (g->grid.columns > 1)
        reduce_dq(e, plan);
    if (g->grid.rows > 1)
        reduce_dkv(e, plan);
    lh_pass_free(e, plan->bwd_first, plan->bwd_end);
    lh_grid_free_kt(e, g);
}

static void
attention2d_no_emit(LhEmitter *e, uint32_t step)
{
    const Attention2dNoPlan *plan = e->program->plan;

    lh_pass_enter(e, step, 1);
    if (e->phase == LH_PHASE_FORWARD)
        attention2d_no_forward(e, plan);
    else
        attention2d_no_backward(e, plan);
}

/* Forward Pc (2Q + S) + Pr KV, backward Pc (3Q + S + dQ) + Pr (KV + G), and kt. A row or column
 * of one rank gathers nothing and needs no buffer. */
static uint64_t
attention2d_no_peak_bytes(const LhProgramParams *p, uint32_t rank)
{
    const LhPassSizes z = lh_pass_sizes(p, 0);
    const LhGrid grid = lh_grid_of(p);
    const uint64_t kt = lh_grid_moves(p, grid, rank) ? z.kv : 0;
    const uint64_t columns = grid.columns > 1 ? grid.columns : 0;
    const uint64_t rows = grid.rows > 1 ? grid.rows : 0;
    const uint64_t third = lh_grid_gather_delta(p) ? z.s : z.q;
    const uint64_t delta = lh_grid_gather_delta(p) && columns > 0 ? z.s : 0;

    return lh_pass_peak_bytes(p, kt + columns * (2 * z.q + z.s) + rows * z.kv,
                              kt + columns * (2 * z.q + third + z.s + z.dq) +
                                  rows * (z.kv + z.dkv) + delta);
}

const LhSchedule lh_schedule_attention2d_no = {
    .name = "attention2d-no",
    .summary = "Attention2D without overlap: q gathered along rows, k, v along columns of a grid",
    .details =
        "Attention2D without overlap. P = Pr x Pc ranks form a grid, in which rank\n"
        "r + Pr c is in row r and column c. The queries of row r are then the tokens\n"
        "r + i Pr. k and v are transposed: rank (r, c) receives those of rank Pc r + c, so\n"
        "that the keys of column c are the tokens c + i Pc. q is all-gathered along the\n"
        "row and k, v along the column; one call attends the queries of the row to the\n"
        "keys of the column; a reduce-scatter along the row merges the partial results (o\n"
        "normalised, lse). The backward pass all-gathers q, do, o, lse along the row and\n"
        "the transposed k, v along the column, reduce-scatters dq along the row and dk, dv\n"
        "along the column, and transposes dk, dv back. The transposed k, v stay in memory\n"
        "for the backward pass; a backward pass alone transposes k, v again. No\n"
        "communication overlaps with compute.\n"
        "\n"
        "bytes sent   forward  (Pc-1) (2Q + S) + (Pr-1) KV + t KV\n"
        "             backward (Pc-1) (3Q + S + dQ) + (Pr-1) (KV + G) + t G; a backward\n"
        "             pass alone sends t KV more. t = 0 on the ranks whose k, v the\n"
        "             transpose leaves in place, r (Pc-1) = c (Pr-1), else t = 1. dQ and G\n"
        "             are dq and dk, dv as sent, by default in e bytes\n"
        "flops        causal: (N/P) (k floor((r-c)/k) + (N - Pr + Pc + k)/2) pairs, where\n"
        "             k = gcd(Pr, Pc)\n"
        "idle         0 counting blocks; causal: (Pr + Pc - k - 1)/(N + Pr + Pc - k)\n"
        "             counting flops\n"
        "buffers      forward  Pc (2Q + S) + Pr KV + t KV\n"
        "             backward Pc (3Q + S + dQ) + Pr (KV + G) + t KV; nothing is held for\n"
        "             a row or a column of one rank\n"
        "grid         --grid PrxPc; by default the grid that sends the fewest bytes in\n"
        "             both passes together, Pc/Pr near g/h; ties: more rows\n"
        "local_kv     With --local-kv nothing is transposed: column c has the keys of\n"
        "             the ranks Pr c .. Pr c + Pr-1. Causal: P n (n-1)/2 +\n"
        "             n ((Pc-1-c) Pr + r + 1) pairs, idle (P-1)/(N+P) counting flops\n"
        "gather_delta With --gather-delta delta is gathered instead of o:\n"
        "             (Pc-1) (Q - S) less\n"
        "restrictions Pr Pc = P, N divisible by P\n",
    .options = LH_OPTIONS(&lh_option_gradient_wire, &lh_option_grid, &lh_option_local_kv,
                          &lh_option_gather_delta),
    .placement = LH_PLACE_STRIPED,
    .masks = LH_MASKS_ALL,
    .adapt = lh_grid_adapt,
    .check = lh_grid_check,
    .declare = attention2d_no_declare,
    .generator = { .steps = lh_pass_steps, .emit = attention2d_no_emit },
    .closed = {
        .bytes_sent = lh_grid_bytes_sent,
        .flops = lh_grid_flops,
        .peak_bytes = attention2d_no_peak_bytes,
        .idle_unit = lh_grid_idle_unit,
        .idle_flops = lh_grid_idle_flops,
    },
};
