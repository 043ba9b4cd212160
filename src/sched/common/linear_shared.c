/* SPDX-License-Identifier: Apache-2.0 */
/* Common code of the schedules of linear attention. */
#include "sched/common/linear_shared.h"

#include "kernels/sizes.h"

const LhOption lh_option_state_recompute = {
    .name = "state_recompute",
    .category = LH_ABOUT_SCHEDULE_WORK,
    .type = LH_OPTION_FLAG,
    .help =
        "Recompute the states of linear attention in the backward pass instead of keeping them.",
    .linear_only = true,
};

const LhOption lh_option_unfused = {
    .name = "unfused",
    .category = LH_ABOUT_SCHEDULE_WORK,
    .type = LH_OPTION_FLAG,
    .help = "Use two kernels for contributions that reach tokens through a state from other ranks: "
            "one writes them to memory, another adds them to the rest.",
    .linear_only = true,
};

uint64_t
lh_linear_state_bytes(const LhProgramParams *p)
{
    const LhAttention *a = &p->attention;

    return 4 * (uint64_t)a->batch * a->heads * a->head_dim * a->head_dim;
}

bool
lh_linear_check(const LhProgramParams *p, GError **error)
{
    if (lh_pass_wire(p) != LH_WIRE_16BIT)
        return true;
    return lh_program_refuse(
        error, "states of linear attention are sent in fp32; legal wire types: default, fp32");
}

LhLinearPass
lh_linear_declare(LhProgram *program, uint32_t slices)
{
    const LhProgramParams *p = &program->params;
    LhLinearPass l = {
        .sizes = lh_pass_sizes(p, 0),
        .state = lh_linear_state_bytes(p),
        .ranks = p->ranks,
        .slices = slices,
        .unfused = lh_linear_unfused(p),
    };
    const LhSlotRole saved = lh_pass_has(p, LH_PASS_FWD) ? LH_SLOT_OUTPUT : LH_SLOT_INPUT;

    program->head_slices = program->kv_slices = slices;
    l.io = lh_pass_declare(program, &l.sizes);
    l.block = lh_pass_block_args(p, l.sizes.n, l.sizes.n, LH_MASK_CAUSAL, 0);
    l.block.heads /= slices;
    l.block.groups /= slices;
    l.q_rows = l.kv_rows = l.block;
    l.q_rows.nk = l.q_rows.pairs = l.kv_rows.nq = l.kv_rows.pairs = 0;
    l.q_rows.mask = l.kv_rows.mask = LH_MASK_EMPTY;
    if (!lh_linear_recomputes(p))
        l.before =
            lh_pass_add_slot(program, "state", LH_TENSOR_STATE, saved, slices, l.state / slices, 4);
    return l;
}

uint16_t
lh_linear_add_state(LhProgram *program, const LhLinearPass *l, const char *name, LhTensorKind kind,
                    uint32_t states)
{
    return lh_pass_add_slot(program, name, kind, LH_SLOT_TEMP, states * l->slices,
                            l->state / l->slices, 4);
}

static uint16_t
add_apart(LhProgram *program, const LhLinearPass *l, const char *name, LhTensorKind kind,
          uint64_t bytes)
{
    return lh_pass_add_slot(program, name, kind, LH_SLOT_TEMP, l->slices, bytes / l->slices,
                            l->sizes.e);
}

void
lh_linear_add_forward_apart(LhProgram *program, LhLinearPass *l)
{
    if (l->unfused)
        l->o_apart = add_apart(program, l, "fwd_o_inter", LH_TENSOR_O, l->sizes.q);
}

void
lh_linear_add_backward_apart(LhProgram *program, LhLinearPass *l)
{
    if (!l->unfused)
        return;
    l->dq_apart = add_apart(program, l, "bwd_dq_inter", LH_TENSOR_DQ, l->sizes.q);
    l->dkv_apart = add_apart(program, l, "bwd_dkv_inter", LH_TENSOR_DKV, l->sizes.kv);
}

static void
declare_chain_forward(LhProgram *program, LhLinearPass *l, LhLinearChain *chain)
{
    chain->fwd_first = (uint16_t)program->slots_count;
    chain->fwd_out = lh_linear_add_state(program, l, "fwd_out", LH_TENSOR_STATE, 1);
    if (lh_linear_recomputes(&program->params))
        l->before = lh_linear_add_state(program, l, "fwd_in", LH_TENSOR_STATE, 1);
    lh_linear_add_forward_apart(program, l);
    chain->fwd_end = (uint16_t)program->slots_count;
}

static void
declare_chain_backward(LhProgram *program, LhLinearPass *l, LhLinearChain *chain)
{
    chain->bwd_first = (uint16_t)program->slots_count;
    chain->bwd_in = lh_linear_add_state(program, l, "bwd_in", LH_TENSOR_DSTATE, 1);
    chain->bwd_out = lh_linear_add_state(program, l, "bwd_out", LH_TENSOR_DSTATE, 1);
    chain->again_in = l->before;
    if (lh_linear_recomputes(&program->params)) {
        chain->again_in = lh_linear_add_state(program, l, "again_in", LH_TENSOR_STATE, 1);
        chain->again_out = lh_linear_add_state(program, l, "again_out", LH_TENSOR_STATE, 1);
    }
    lh_linear_add_backward_apart(program, l);
    chain->bwd_end = (uint16_t)program->slots_count;
}

LhLinearChain
lh_linear_declare_chain(LhProgram *program, LhLinearPass *l)
{
    LhLinearChain chain = { 0 };

    if (lh_pass_has(&program->params, LH_PASS_FWD))
        declare_chain_forward(program, l, &chain);
    if (lh_pass_has(&program->params, LH_PASS_BWD))
        declare_chain_backward(program, l, &chain);
    return chain;
}

uint64_t
lh_linear_io_bytes(const LhProgramParams *p)
{
    return lh_pass_io_bytes(p) + (lh_linear_recomputes(p) ? 0 : lh_linear_state_bytes(p));
}

uint64_t
lh_linear_apart_bytes(const LhProgramParams *p, LhPass pass)
{
    const LhPassSizes z = lh_pass_sizes(p, 0);

    if (!lh_linear_unfused(p))
        return 0;
    return pass == LH_PASS_FWD ? z.q : z.q + z.kv;
}

/* ---- ops ---- */

static void
compute_shape(LhEmitter *e, LhKernelId kernel, const LhKernelArgs *shape, bool first)
{
    LhKernelArgs args = *shape;

    args.first = first;
    lh_pass_compute(e, kernel, &args);
}

static void
slice_operands(LhEmitter *e, uint32_t slice, const uint16_t *slots, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        lh_emit_operand(e, slots[i], slice, 1);
}

/* A kernel that reads a state: it adds to @sum itself, or writes to @apart, which another kernel
 * then adds. */
typedef struct {
    LhKernelId kernel;
    const LhKernelArgs *rows;
    uint16_t in, state, sum, apart;
} Through;

static void
through_state(LhEmitter *e, const LhLinearPass *l, uint32_t slice, const Through *t)
{
    compute_shape(e, t->kernel, t->rows, l->unfused);
    slice_operands(e, slice, (const uint16_t[]){ t->in, t->state, l->unfused ? t->apart : t->sum },
                   3);
    if (!l->unfused)
        return;
    compute_shape(e, LH_KERNEL_ID_add, t->rows, false);
    slice_operands(e, slice, (const uint16_t[]){ t->apart, t->sum }, 2);
}

void
lh_linear_intra(LhEmitter *e, const LhLinearPass *l, uint32_t slice)
{
    compute_shape(e, LH_KERNEL_ID_linear_intra, &l->block, true);
    slice_operands(e, slice, (const uint16_t[]){ l->io.q, l->io.kv, l->io.o }, 3);
}

void
lh_linear_inter(LhEmitter *e, const LhLinearPass *l, uint32_t slice, uint16_t before)
{
    const Through t = {
        LH_KERNEL_ID_linear_inter, &l->q_rows, l->io.q, before, l->io.o, l->o_apart
    };

    through_state(e, l, slice, &t);
}

void
lh_linear_own_state(LhEmitter *e, const LhLinearPass *l, uint32_t slice, uint16_t state)
{
    compute_shape(e, LH_KERNEL_ID_linear_state, &l->kv_rows, true);
    slice_operands(e, slice, (const uint16_t[]){ l->io.kv, state }, 2);
}

void
lh_linear_intra_grad(LhEmitter *e, const LhLinearPass *l, uint32_t slice)
{
    const LhPassSlots *io = &l->io;

    compute_shape(e, LH_KERNEL_ID_linear_intra_bwd, &l->block, true);
    slice_operands(e, slice, (const uint16_t[]){ io->q, io->dout, io->kv, io->dq, io->dkv }, 5);
}

void
lh_linear_inter_grad(LhEmitter *e, const LhLinearPass *l, uint32_t slice, uint16_t before)
{
    const Through t = {
        LH_KERNEL_ID_linear_inter_bwd, &l->q_rows, l->io.dout, before, l->io.dq, l->dq_apart
    };

    through_state(e, l, slice, &t);
}

void
lh_linear_state_grad(LhEmitter *e, const LhLinearPass *l, uint32_t slice, uint16_t behind)
{
    const Through t = {
        LH_KERNEL_ID_linear_state_bwd, &l->kv_rows, l->io.kv, behind, l->io.dkv, l->dkv_apart
    };

    through_state(e, l, slice, &t);
}

void
lh_linear_own_dstate(LhEmitter *e, const LhLinearPass *l, uint32_t slice, uint16_t dstate)
{
    compute_shape(e, LH_KERNEL_ID_linear_dstate, &l->q_rows, true);
    slice_operands(e, slice, (const uint16_t[]){ l->io.q, l->io.dout, dstate }, 3);
}

const LhKernelArgs *
lh_linear_carry_args(const LhEmitter *e, const LhLinearPass *l, uint16_t slot)
{
    return e->program->slots[slot].kind == LH_TENSOR_DSTATE ? &l->q_rows : &l->kv_rows;
}

void
lh_linear_carry(LhEmitter *e, const LhLinearPass *l, uint32_t slice, uint16_t from, uint16_t to)
{
    compute_shape(e, LH_KERNEL_ID_linear_carry, lh_linear_carry_args(e, l, to), false);
    slice_operands(e, slice, (const uint16_t[]){ from, to }, 2);
}

/* ---- closed forms ---- */

/*
 * With E = B h d^2 elements of a state, a product of n rows with it costs 2 n E. Within the rank, n
 * tokens in tiles of b have b (b+1) / 2 pairs in a tile. All tiles but the last are added to a
 * state (2 b E each), which is decayed from the second tile on (2 E each), and all but the first
 * read it (2 b E each).
 */
LhLinearWork
lh_linear_work(const LhProgramParams *p, LhPhase phase)
{
    const LhAttention *a = &p->attention;
    const uint64_t n = a->seq_length / p->ranks, b = LH_LINEAR_TILE, rest = n % b;
    const uint64_t elements = lh_linear_state_bytes(p) / 4, rows = 2 * n * elements;
    const uint64_t tiles = (n + b - 1) / b;
    const uint64_t into = (tiles - 1) * b, from = tiles > 1 ? n - b : 0;
    const uint64_t decays = tiles > 2 ? tiles - 2 : 0;
    const uint64_t pairs = n / b * (b * (b + 1) / 2) + rest * (rest + 1) / 2;
    const uint64_t head_rows = (uint64_t)a->batch * a->heads * a->head_dim;

    if (phase == LH_PHASE_FORWARD)
        return (LhLinearWork){ .intra =
                                   4 * head_rows * pairs + 2 * elements * (into + from + decays),
                               .inter = rows,
                               .own = rows,
                               .carry = 2 * elements };
    return (LhLinearWork){ .intra = 10 * head_rows * pairs +
                                    2 * elements * (3 * into + 2 * from + 2 * decays),
                           .inter = rows,
                           .grad = 2 * rows,
                           .own = rows,
                           .carry = 2 * elements };
}

uint64_t
lh_linear_chain_flops(const LhProgramParams *p, uint32_t rank)
{
    const LhLinearWork fwd = lh_linear_work(p, LH_PHASE_FORWARD);
    const LhLinearWork bwd = lh_linear_work(p, LH_PHASE_BACKWARD);
    const bool first = rank == 0, last = rank == p->ranks - 1;
    /* The state that leaves the rank in the forward pass, and its gradient in the backward pass. */
    const uint64_t state = last ? 0 : fwd.own + (first ? 0 : fwd.carry);
    const uint64_t dstate = first ? 0 : bwd.own + (last ? 0 : bwd.carry);
    uint64_t flops = 0;

    if (lh_pass_has(p, LH_PASS_FWD))
        flops += fwd.intra + (first ? 0 : fwd.inter) + state;
    if (lh_pass_has(p, LH_PASS_BWD))
        flops += bwd.intra + (first ? 0 : bwd.inter) + (last ? 0 : bwd.grad) + dstate +
                 (lh_linear_recomputes(p) ? state : 0);
    return flops;
}

uint64_t
lh_linear_chain_bytes(const LhProgramParams *p, uint32_t rank)
{
    const uint64_t up = rank + 1 < p->ranks ? lh_linear_state_bytes(p) : 0;
    const uint64_t down = rank > 0 ? lh_linear_state_bytes(p) : 0;

    return (lh_pass_has(p, LH_PASS_FWD) ? up : 0) +
           (lh_pass_has(p, LH_PASS_BWD) ? down + (lh_linear_recomputes(p) ? up : 0) : 0);
}

/* Forward: the state that leaves the rank and, if states are not kept, the one that arrives.
 * Backward: two gradients, and two states if they are recomputed. */
uint64_t
lh_linear_chain_peak_bytes(const LhProgramParams *p, uint32_t rank)
{
    const uint64_t m = lh_linear_state_bytes(p);
    const uint64_t fwd =
        (lh_linear_recomputes(p) ? 2 : 1) * m + lh_linear_apart_bytes(p, LH_PASS_FWD);
    const uint64_t bwd =
        (lh_linear_recomputes(p) ? 4 : 2) * m + lh_linear_apart_bytes(p, LH_PASS_BWD);

    (void)rank;
    return lh_linear_io_bytes(p) +
           MAX(lh_pass_has(p, LH_PASS_FWD) ? fwd : 0, lh_pass_has(p, LH_PASS_BWD) ? bwd : 0);
}
