/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule attention2d-o, described at the end of this file. The forward pass has Pr steps in
 * which the rank's own queries attend to the keys of its column as they arrive, then Pc - 1 steps
 * in which the queries of the other ranks of its row, the visitors, attend to all keys of the
 * column. The backward pass begins in the same way, but the last visitors, after Pc - 1 hops,
 * process the keys of one rank at a time, so that dk, dv of finished keys can move on. Queries and
 * their results use the stream of the row, keys and their gradients that of the column.
 *
 * Some of the paper's algorithms need corrections; docs/reference/schedules.md lists them.
 */
#include "sched/attention2d_o_forms.h"
#include "sched/common/grid_hops.h"
#include "sched/schedule.h"

#define ROW_TENSORS 4

typedef struct {
    LhGridPlan base;
    uint16_t fwd_first, fwd_end, bwd_first, bwd_end;
    uint32_t buffers; /* parts of a double buffer; fewer in short rows */
    bool apart;       /* visitors process the keys of one rank at a time */
    uint16_t fwd_q, fwd_kv, fwd_out, fwd_partial;
    uint16_t fwd_block; /* result of the rank's own queries; later the one that arrives */
    uint16_t fwd_apart; /* result of visitors with the keys of one rank */
    uint16_t bwd_q, bwd_dout, bwd_third, bwd_lse; /* received from visitors */
    uint16_t bwd_kv, bwd_dq_sum, bwd_delta;
    uint16_t bwd_dq, bwd_dq_out, bwd_dq_in; /* of visitors: sum, sent, received */
    LhGridDkv dkv;                          /* for the keys of the column */
} Attention2dOPlan;

/* ---- declarations ---- */

static uint16_t
add_double_buffer(LhProgram *program, const char *name, LhTensorKind kind, uint64_t bytes,
                  uint32_t element_bytes)
{
    const Attention2dOPlan *plan = program->plan;

    return lh_pass_add_slot(program, name, kind, LH_SLOT_TEMP, plan->buffers, bytes, element_bytes);
}

static uint16_t
add_column(LhProgram *program, const char *name, LhTensorKind kind, uint64_t bytes,
           uint32_t element_bytes)
{
    const Attention2dOPlan *plan = program->plan;

    return lh_pass_add_slot(program, name, kind, LH_SLOT_TEMP, plan->base.grid.rows, bytes,
                            element_bytes);
}

static void
attention2d_o_declare_forward(LhProgram *program, Attention2dOPlan *plan)
{
    const LhPassSizes *z = &plan->base.sizes;
    const uint64_t block = z->q + z->s;

    plan->fwd_first = (uint16_t)program->slots_count;
    plan->fwd_out =
        lh_pass_add_buffer(program, "fwd_out", LH_TENSOR_OUT, z->q / z->e * 4 + z->s, 4);
    plan->fwd_block = lh_pass_add_buffer(program, "fwd_block", LH_TENSOR_OUT, block, z->e);
    plan->fwd_kv = plan->base.io.kv;
    if (plan->base.grid.rows > 1)
        plan->fwd_kv = add_column(program, "fwd_kv", LH_TENSOR_KV, z->kv, z->e);
    if (plan->buffers > 0) {
        plan->fwd_q = add_double_buffer(program, "fwd_q", LH_TENSOR_Q, z->q, z->e);
        plan->fwd_partial = add_double_buffer(program, "fwd_partial", LH_TENSOR_OUT, block, z->e);
    }
    if (plan->apart)
        plan->fwd_apart = lh_pass_add_buffer(program, "fwd_apart", LH_TENSOR_OUT, block, z->e);
    plan->fwd_end = (uint16_t)program->slots_count;
}

static void
declare_visitors(LhProgram *program, Attention2dOPlan *plan)
{
    const LhPassSizes *z = &plan->base.sizes;

    plan->bwd_q = add_double_buffer(program, "bwd_q", LH_TENSOR_Q, z->q, z->e);
    plan->bwd_dout = add_double_buffer(program, "bwd_do", LH_TENSOR_DO, z->q, z->e);
    plan->bwd_third = plan->base.gather_delta
                          ? add_double_buffer(program, "bwd_deltas", LH_TENSOR_DELTA, z->s, 4)
                          : add_double_buffer(program, "bwd_o", LH_TENSOR_O, z->q, z->e);
    plan->bwd_lse = add_double_buffer(program, "bwd_lse", LH_TENSOR_LSE, z->s, 4);
    if (plan->base.gather_delta)
        plan->bwd_delta = lh_pass_add_buffer(program, "bwd_delta", LH_TENSOR_DELTA, z->s, 4);
    if (lh_grid_rounds(z)) {
        plan->bwd_dq = lh_pass_add_buffer(program, "bwd_dq", LH_TENSOR_DQ, z->q / z->e * 4, 4);
        plan->bwd_dq_out = lh_pass_add_buffer(program, "bwd_dq_out", LH_TENSOR_DQ, z->dq, z->w);
    } else {
        plan->bwd_dq = add_double_buffer(program, "bwd_dq", LH_TENSOR_DQ, z->dq, z->w);
    }
    plan->bwd_dq_in = lh_pass_add_buffer(program, "bwd_dq_in", LH_TENSOR_DQ, z->dq, z->w);
}

static void
attention2d_o_declare_backward(LhProgram *program, Attention2dOPlan *plan)
{
    const LhPassSizes *z = &plan->base.sizes;

    plan->bwd_first = (uint16_t)program->slots_count;
    plan->bwd_dq_sum = lh_pass_add_buffer(program, "bwd_dq_sum", LH_TENSOR_DQ, z->q / z->e * 4, 4);
    plan->dkv.sum = add_column(program, "bwd_dkv_sum", LH_TENSOR_DKV, z->kv / z->e * 4, 4);
    plan->bwd_kv = plan->base.io.kv;
    if (plan->base.grid.rows > 1) {
        plan->bwd_kv = add_column(program, "bwd_kv", LH_TENSOR_KV, z->kv, z->e);
        plan->dkv.in = lh_pass_add_buffer(program, "bwd_dkv_in", LH_TENSOR_DKV, z->dkv, z->w);
        if (lh_grid_rounds(z))
            plan->dkv.out = lh_pass_add_buffer(program, "bwd_dkv_out", LH_TENSOR_DKV, z->dkv, z->w);
    }
    if (plan->buffers > 0)
        declare_visitors(program, plan);
    plan->bwd_end = (uint16_t)program->slots_count;
}

static void
attention2d_o_declare(LhProgram *program)
{
    const LhProgramParams *p = &program->params;
    LhStream *row;
    Attention2dOPlan *plan = g_new0(Attention2dOPlan, 1);

    program->plan = plan;
    lh_grid_declare(program, &plan->base);
    row = &program->streams[LH_GRID_STREAM_ROW];
    g_strlcpy(row->name, "row", sizeof(row->name));
    lh_program_add_stream(program, "column", LH_STREAM_COMM);
    plan->buffers = lh_attention2d_o_buffers(plan->base.grid);
    plan->apart = lh_attention2d_o_apart(p, plan->base.grid);
    if (lh_pass_has(p, LH_PASS_FWD))
        attention2d_o_declare_forward(program, plan);
    if (lh_pass_has(p, LH_PASS_BWD))
        attention2d_o_declare_backward(program, plan);
}

/* ---- queries ---- */

/* The buffer index of visitors that have made @hops hops (at least one). */
static uint32_t
buffer_of(const Attention2dOPlan *plan, uint32_t hops)
{
    g_assert(plan->buffers > 0);
    return (hops - 1) % plan->buffers;
}

/* Sends queries that have made @hops hops to the left: the rank's @own for 0 hops, otherwise
 * those received into @visiting. */
static void
move_queries(LhEmitter *e, const Attention2dOPlan *plan, const uint16_t *own,
             const uint16_t *visiting, unsigned count, uint32_t hops)
{
    LhRegion give[LH_PART_REGIONS_MAX], take[LH_PART_REGIONS_MAX];

    if (hops + 1 >= plan->base.grid.columns)
        return;
    for (unsigned i = 0; i < count; i++) {
        give[i] =
            hops == 0 ? lh_grid_part(own[i], 0) : lh_grid_part(visiting[i], buffer_of(plan, hops));
        take[i] = lh_grid_part(visiting[i], buffer_of(plan, hops + 1));
    }
    lh_grid_hop_move(e, &plan->base, LH_GRID_HOP_QUERIES, give, take, count);
}

/* ---- forward ---- */

/* Attention arguments of the queries that have made @hops hops with the keys of @rows ranks of
 * the column, from row @row on. */
static LhKernelArgs
hop_args(const LhEmitter *e, const Attention2dOPlan *plan, uint32_t hops, uint32_t row,
         uint32_t rows)
{
    const uint32_t column = (lh_grid_column(&plan->base, e->rank) + hops) % plan->base.grid.columns;

    return lh_grid_args(e, &plan->base, (LhGridBlock){ column, 1, row, rows });
}

/* GthrCmpt in the paper: the rank's own queries attend to the keys that have made @hops hops. */
static void
forward_own(LhEmitter *e, const Attention2dOPlan *plan, uint32_t hops)
{
    const uint32_t row = lh_grid_hop_key_row(e, &plan->base, hops);
    const LhRegion into = lh_grid_part(plan->fwd_block, 0);
    const LhKernelArgs args = hop_args(e, plan, 0, row, 1);
    LhKernelArgs rows = plan->base.q_rows;

    rows.first = hops == 0;
    if (hops > 0)
        lh_grid_hop_next_keys(e, &plan->base, plan->fwd_kv, hops);
    lh_grid_attend(e, &args, lh_grid_part(plan->base.io.q, 0), lh_grid_part(plan->fwd_kv, row),
                   into);
    lh_grid_map(e, LH_KERNEL_ID_merge_lse, &rows, into, lh_grid_part(plan->fwd_out, 0));
}

/* Queries that have made @hops hops attend to all keys of the column, in one call or one rank's
 * keys after another. */
static void
attend_visitors(LhEmitter *e, const Attention2dOPlan *plan, uint32_t hops, LhRegion partial)
{
    const uint32_t rows = plan->base.grid.rows, calls = plan->apart ? rows : 1;
    const LhRegion q = lh_grid_part(plan->fwd_q, buffer_of(plan, hops));

    for (uint32_t i = 0; i < calls; i++) {
        const LhRegion keys = { plan->fwd_kv,
                                plan->apart ? lh_grid_hop_key_row(e, &plan->base, i) : 0,
                                rows / calls };
        const LhKernelArgs args = hop_args(e, plan, hops, keys.part, keys.count);
        const LhRegion into = i == 0 ? partial : lh_grid_part(plan->fwd_apart, 0);

        lh_grid_attend(e, &args, q, keys, into);
        if (i > 0)
            lh_grid_map(e, LH_KERNEL_ID_merge_lse, &plan->base.q_rows, into, partial);
    }
}

/* GthrCmptSctr in the paper: queries that have made @hops hops attend to all keys of the column,
 * and the partial result moves left, towards the owner of the queries. */
static void
forward_visitors(LhEmitter *e, const Attention2dOPlan *plan, uint32_t hops)
{
    const LhRegion partial = lh_grid_part(plan->fwd_partial, buffer_of(plan, hops));
    const LhRegion result = lh_grid_part(plan->fwd_block, 0);

    lh_grid_hop_wait(e, LH_GRID_HOP_QUERIES);
    move_queries(e, plan, &plan->base.io.q, &plan->fwd_q, 1, hops);
    attend_visitors(e, plan, hops, partial);
    if (hops > 1) {
        lh_grid_hop_wait(e, LH_GRID_HOP_RESULT);
        lh_grid_map(e, LH_KERNEL_ID_merge_lse, &plan->base.q_rows, result, partial);
    }
    lh_grid_hop_move(e, &plan->base, LH_GRID_HOP_RESULT, &partial, &result, 1);
}

static uint32_t
attention2d_o_forward_steps(LhGrid grid)
{
    return grid.rows + grid.columns - 1;
}

static void
attention2d_o_end_forward(LhEmitter *e, const Attention2dOPlan *plan)
{
    const LhRegion out = lh_grid_part(plan->fwd_out, 0);

    if (plan->base.grid.columns > 1) {
        lh_grid_hop_wait(e, LH_GRID_HOP_RESULT);
        lh_grid_map(e, LH_KERNEL_ID_merge_lse, &plan->base.q_rows, lh_grid_part(plan->fwd_block, 0),
                    out);
    }
    lh_grid_map(e, LH_KERNEL_ID_round_out, &plan->base.q_rows, out,
                lh_grid_part(plan->base.io.o, 0));
    lh_emit_operand(e, plan->base.io.lse, 0, 1);
    lh_pass_free(e, plan->fwd_first, plan->fwd_end);
    lh_grid_free_kt(e, &plan->base);
}

static void
attention2d_o_forward(LhEmitter *e, const Attention2dOPlan *plan, uint32_t step)
{
    const LhGrid grid = plan->base.grid;

    if (step == 0) {
        lh_grid_alloc_kt(e, &plan->base);
        lh_pass_alloc(e, plan->fwd_first, plan->fwd_end);
        move_queries(e, plan, &plan->base.io.q, &plan->fwd_q, 1, 0);
        lh_grid_hop_begin_keys(e, &plan->base, plan->fwd_kv);
    }
    if (step < grid.rows)
        forward_own(e, plan, step);
    else
        forward_visitors(e, plan, step - grid.rows + 1);
    if (step + 1 == attention2d_o_forward_steps(grid))
        attention2d_o_end_forward(e, plan);
}

/* ---- backward ---- */

/* The tensors that move along the row: slots of the rank's own and of visitors. */
typedef struct {
    uint16_t own[ROW_TENSORS], visiting[ROW_TENSORS];
} RowSlots;

static RowSlots
row_slots(const Attention2dOPlan *plan)
{
    const LhPassSlots *io = &plan->base.io;
    const uint16_t third = plan->base.gather_delta ? plan->bwd_delta : io->o;

    return (RowSlots){
        .own = { io->q, io->dout, third, io->lse },
        .visiting = { plan->bwd_q, plan->bwd_dout, plan->bwd_third, plan->bwd_lse },
    };
}

static void
move_visitors(LhEmitter *e, const Attention2dOPlan *plan, uint32_t hops)
{
    const RowSlots slots = row_slots(plan);

    move_queries(e, plan, slots.own, slots.visiting, ROW_TENSORS, hops);
}

/* The region that accumulates dq of queries that have made @hops hops. */
static LhRegion
dq_of(const Attention2dOPlan *plan, uint32_t hops)
{
    if (hops == 0)
        return lh_grid_part(plan->bwd_dq_sum, 0);
    return lh_grid_part(plan->bwd_dq,
                        lh_grid_rounds(&plan->base.sizes) ? 0 : buffer_of(plan, hops));
}

/* Computes the gradients of the queries that have made @hops hops and of the keys @rows of the
 * column. With @first both sums start here. */
static void
gradient(LhEmitter *e, const Attention2dOPlan *plan, uint32_t hops, LhRegion rows, bool first)
{
    const RowSlots slots = row_slots(plan);
    const LhRegion dq = dq_of(plan, hops);
    LhKernelArgs args = hop_args(e, plan, hops, rows.part, rows.count);

    args.first = first;
    lh_grid_compute(
        e, plan->base.gather_delta ? LH_KERNEL_ID_attention_bwd : LH_KERNEL_ID_attention_bwd_o,
        &args);
    for (unsigned i = 0; i < ROW_TENSORS; i++) {
        if (hops == 0)
            lh_emit_operand(e, slots.own[i], 0, 1);
        else
            lh_emit_operand(e, slots.visiting[i], buffer_of(plan, hops), 1);
    }
    lh_emit_operand(e, plan->bwd_kv, rows.part, rows.count);
    lh_emit_operand(e, dq.slot, dq.part, dq.count);
    lh_emit_operand(e, plan->dkv.sum, rows.part, rows.count);
}

/* The rank's own queries are the first to process these keys, so the sum of their dk, dv starts
 * here. With @first the sum of dq starts, too. */
static void
gradient_own(LhEmitter *e, const Attention2dOPlan *plan, uint32_t row, bool first)
{
    if (!first)
        lh_grid_clear(e, &plan->base.kv_rows, lh_grid_part(plan->dkv.sum, row));
    gradient(e, plan, 0, lh_grid_part(plan->bwd_kv, row), first);
}

/* Completes the rank's share of dq of the queries that have made @hops hops: adds what the right
 * neighbour has sent, and sends the sum left, towards the owner of the queries. */
static void
return_dq(LhEmitter *e, const Attention2dOPlan *plan, uint32_t hops)
{
    const LhKernelArgs *rows = &plan->base.q_rows;
    const LhRegion dq = dq_of(plan, hops), in = lh_grid_part(plan->bwd_dq_in, 0);
    LhRegion out;

    if (hops > 1) {
        lh_grid_hop_wait(e, LH_GRID_HOP_RESULT);
        lh_grid_map(e, LH_KERNEL_ID_add_to_fp32, rows, in, dq);
    }
    out = lh_grid_hop_outgoing(e, &plan->base, rows, dq, plan->bwd_dq_out);
    lh_grid_hop_move(e, &plan->base, LH_GRID_HOP_RESULT, &out, &in, 1);
}

/* The last visitors process the keys row by row, those of the rank's own row at the end. A grid
 * of one column has no visitors: the rank's own queries do this, while keys are still arriving. */
static void
backward_last(LhEmitter *e, const Attention2dOPlan *plan, uint32_t hops)
{
    const LhGrid grid = plan->base.grid;
    const uint32_t queries = grid.columns - 1, row = lh_grid_hop_key_row(e, &plan->base, hops);

    if (queries == 0 && hops < grid.rows) {
        lh_grid_hop_next_keys(e, &plan->base, plan->bwd_kv, hops);
    } else if (queries > 0 && hops == 1) {
        lh_grid_hop_wait(e, LH_GRID_HOP_QUERIES);
        lh_grid_clear(e, &plan->base.q_rows, dq_of(plan, queries));
    }
    if (queries > 0)
        gradient(e, plan, queries, lh_grid_part(plan->bwd_kv, row), false);
    else
        gradient_own(e, plan, row, hops == 1);
    if (hops < grid.rows) {
        lh_grid_hop_return_dkv(e, &plan->base, &plan->dkv, hops);
        return;
    }
    if (queries > 0)
        return_dq(e, plan, queries);
    lh_grid_hop_end_dkv(e, &plan->base, &plan->dkv);
}

static void
backward_visitors(LhEmitter *e, const Attention2dOPlan *plan, uint32_t hops)
{
    const uint32_t rows = plan->base.grid.rows, calls = plan->apart ? rows : 1;

    lh_grid_hop_wait(e, LH_GRID_HOP_QUERIES);
    move_visitors(e, plan, hops);
    lh_grid_clear(e, &plan->base.q_rows, dq_of(plan, hops));
    for (uint32_t i = 0; i < calls; i++) {
        const uint32_t row = plan->apart ? lh_grid_hop_key_row(e, &plan->base, i) : 0;

        gradient(e, plan, hops, (LhRegion){ plan->bwd_kv, row, rows / calls }, false);
    }
    return_dq(e, plan, hops);
}

static void
attention2d_o_begin_backward(LhEmitter *e, const Attention2dOPlan *plan)
{
    const LhGridPlan *g = &plan->base;

    lh_grid_alloc_kt(e, g);
    lh_pass_alloc(e, plan->bwd_first, plan->bwd_end);
    if (g->gather_delta) {
        lh_grid_map(e, LH_KERNEL_ID_delta, &g->q_rows, lh_grid_part(g->io.dout, 0),
                    lh_grid_part(g->io.o, 0));
        lh_emit_operand(e, plan->bwd_delta, 0, 1);
    }
    move_visitors(e, plan, 0);
    lh_grid_hop_begin_keys(e, &plan->base, plan->bwd_kv);
}

static void
attention2d_o_end_backward(LhEmitter *e, const Attention2dOPlan *plan)
{
    const LhGridPlan *g = &plan->base;
    const LhRegion sum = lh_grid_part(plan->bwd_dq_sum, 0);

    if (g->grid.columns > 1) {
        lh_grid_hop_wait(e, LH_GRID_HOP_RESULT);
        lh_grid_map(e, LH_KERNEL_ID_add_to_fp32, &g->q_rows, lh_grid_part(plan->bwd_dq_in, 0), sum);
    }
    lh_grid_map(e, LH_KERNEL_ID_cast, &g->q_rows, sum, lh_grid_part(g->io.dq, 0));
    if (g->sizes.w != g->sizes.e && lh_grid_moves(&e->program->params, g->grid, e->rank)) {
        lh_grid_hop_wait(e, LH_GRID_HOP_BACK);
        lh_grid_map(e, LH_KERNEL_ID_cast, &g->kv_rows, lh_grid_part(plan->dkv.in, 0),
                    lh_grid_part(g->io.dkv, 0));
    }
    lh_pass_free(e, plan->bwd_first, plan->bwd_end);
    lh_grid_free_kt(e, g);
}

/* Steps of the backward pass: the rank's own queries (in a row of one rank, backward_last does
 * them), visitors except the last, the last visitors. */
static uint32_t
own_steps(LhGrid grid)
{
    return grid.columns > 1 ? grid.rows : 0;
}

static uint32_t
visitor_steps(LhGrid grid)
{
    return grid.columns > 2 ? grid.columns - 2 : 0;
}

static uint32_t
attention2d_o_backward_steps(LhGrid grid)
{
    return own_steps(grid) + visitor_steps(grid) + grid.rows;
}

static void
attention2d_o_backward(LhEmitter *e, const Attention2dOPlan *plan, uint32_t step)
{
    const LhGrid grid = plan->base.grid;
    const uint32_t own = own_steps(grid), visitors = visitor_steps(grid);

    if (step == 0)
        attention2d_o_begin_backward(e, plan);
    if (step < own) {
        if (step > 0)
            lh_grid_hop_next_keys(e, &plan->base, plan->bwd_kv, step);
        gradient_own(e, plan, lh_grid_hop_key_row(e, &plan->base, step), step == 0);
    } else if (step < own + visitors) {
        backward_visitors(e, plan, step - own + 1);
    } else {
        backward_last(e, plan, step - own - visitors + 1);
    }
    if (step + 1 == attention2d_o_backward_steps(grid))
        attention2d_o_end_backward(e, plan);
}

/* ---- the schedule ---- */

static uint32_t
attention2d_o_steps(const LhProgram *program, uint32_t rank)
{
    const LhProgramParams *p = &program->params;
    const LhGrid grid = lh_grid_of(p);

    (void)rank;
    return (lh_pass_has(p, LH_PASS_FWD) ? attention2d_o_forward_steps(grid) : 0) +
           (lh_pass_has(p, LH_PASS_BWD) ? attention2d_o_backward_steps(grid) : 0);
}

static void
attention2d_o_emit(LhEmitter *e, uint32_t step)
{
    const Attention2dOPlan *plan = e->program->plan;

    g_assert(plan->base.grid.rows > 0 && plan->base.grid.columns > 0);
    step = lh_pass_enter(e, step, attention2d_o_forward_steps(plan->base.grid));
    if (e->phase == LH_PHASE_FORWARD)
        attention2d_o_forward(e, plan, step);
    else
        attention2d_o_backward(e, plan, step);
}

const LhSchedule lh_schedule_attention2d_o = {
    .name = "attention2d-o",
    .summary = "Attention2D with overlap: q moves along rows while k and v move along columns",
    .details =
        "Attention2D with overlap: grid, tokens, transpose and bytes of attention2d-no,\n"
        "but in hops between neighbours. k and v move up the column, and every rank keeps\n"
        "all of them; meanwhile its own q attends to the keys received so far. At the\n"
        "same time q moves left along the row, on its own stream. Then, in each step, the\n"
        "queries of one other rank of the row attend to all keys of the column while the\n"
        "next ones arrive. The partial result (o normalised, lse) is merged with the one\n"
        "that comes from the right and moves left, one step behind; the last of these\n"
        "hops is exposed. The backward pass moves q, do, o, lse and returns dq in the\n"
        "same way. Its last queries process the keys row by row, the rank's own last, so\n"
        "that finished dk and dv can\n"
        "already move up the column; then they are transposed back.\n"
        "\n"
        "bytes sent   forward  (Pc-1) (2Q + S) + (Pr-1) KV + t KV\n"
        "             backward (Pc-1) (3Q + S + dQ) + (Pr-1) (KV + G) + t G; a backward\n"
        "             pass alone sends t KV more; t, dQ and G as in attention2d-no\n"
        "flops        causal: (N/P) (k floor((r-c)/k) + (N - Pr + Pc + k)/2) pairs, where\n"
        "             k = gcd(Pr, Pc)\n"
        "idle         0 counting blocks; causal: (Pr + Pc - k - 1)/(N + Pr + Pc - k)\n"
        "             counting flops\n"
        "buffers      with b = min(2, Pc-1):\n"
        "             forward  Pr KV + b (2Q + S) + Q + S + fp32 Q + S + t KV\n"
        "             backward Pr KV + b (3Q + S) + 2 dQ + 2 G + fp32 (2Q + Pr KV) + t KV.\n"
        "             Gradients in fp32 on the wire are sent from their sums: dQ and G\n"
        "             once, but b + 1 fp32 Q\n"
        "accuracy     Sums are rounded at every hop. In bf16 the error of o and dq grows\n"
        "             as the square root of Pc/2, that of dk and dv as that of Pr/2\n"
        "grid         as in attention2d-no\n"
        "local_kv     as in attention2d-no\n"
        "gather_delta With --gather-delta delta moves instead of o: (Pc-1) (Q - S) less\n"
        "restrictions Pr Pc = P, N divisible by P\n"
        "published    There is no public code. With --published-code the queries of another\n"
        "             rank process the keys of the column row by row, one kernel call\n"
        "             for each, as in the paper; forward merges their results, which takes\n"
        "             Q + S more if Pr > 1 and Pc > 1. Otherwise one call processes all\n",
    .options = LH_OPTIONS(&lh_option_no_overlap, &lh_option_published_code,
                          &lh_option_gradient_wire, &lh_option_grid, &lh_option_local_kv,
                          &lh_option_gather_delta),
    .placement = LH_PLACE_STRIPED,
    .masks = LH_MASKS_ALL,
    .adapt = lh_grid_adapt,
    .check = lh_grid_check,
    .declare = attention2d_o_declare,
    .generator = { .steps = attention2d_o_steps, .emit = attention2d_o_emit },
    .closed = {
        .bytes_sent = lh_grid_bytes_sent,
        .flops = lh_grid_flops,
        .peak_bytes = lh_attention2d_o_peak_bytes,
        .idle_unit = lh_grid_idle_unit,
        .idle_flops = lh_grid_idle_flops,
    },
};
