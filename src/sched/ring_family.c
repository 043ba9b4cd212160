/*
 * The skeleton of the ring family. In step s a rank holds the k and v of rank r - s, computes its
 * block, and passes them on meanwhile; k, v of step s + 1 arrive. Backward, dk and dv follow one
 * hop behind, P hops in all, of which the last is hidden behind nothing. All messages share one
 * stream, as they share one process group in the public code. Not modelled: dropout, windows,
 * variable lengths.
 */
#include "sched/ring_family.h"

enum {
    MARK_DKV = LH_MARK_OWN, /* the dk, dv exchange posted last */
};

enum {
    TAG_KV,
    TAG_DKV,
};

static void
declare_forward(LhProgram *program, LhRingPlan *plan)
{
    const LhPassSizes *z = &plan->sizes;

    plan->fwd_first = (uint16_t)program->slots_count;
    plan->fwd_kv[0] = lh_pass_add_buffer(program, "fwd_kv0", LH_TENSOR_KV, z->kv, z->e);
    plan->fwd_kv[1] = lh_pass_add_buffer(program, "fwd_kv1", LH_TENSOR_KV, z->kv, z->e);
    plan->fwd_out =
        lh_pass_add_buffer(program, "fwd_out", LH_TENSOR_ACC, z->q / z->e * 4 + z->s, 4);
    plan->fwd_block = lh_pass_add_buffer(program, "fwd_block", LH_TENSOR_ACC, z->q + z->s, z->e);
    plan->fwd_end = (uint16_t)program->slots_count;
}

static void
declare_backward(LhProgram *program, LhRingPlan *plan)
{
    const LhPassSizes *z = &plan->sizes;

    plan->bwd_first = (uint16_t)program->slots_count;
    plan->bwd_kv[0] = lh_pass_add_buffer(program, "bwd_kv0", LH_TENSOR_KV, z->kv, z->e);
    plan->bwd_kv[1] = lh_pass_add_buffer(program, "bwd_kv1", LH_TENSOR_KV, z->kv, z->e);
    plan->bwd_dkv[0] = lh_pass_add_buffer(program, "bwd_dkv0", LH_TENSOR_DKV, z->dkv, z->w);
    plan->bwd_dkv[1] = lh_pass_add_buffer(program, "bwd_dkv1", LH_TENSOR_DKV, z->dkv, z->w);
    plan->bwd_dkv[2] = lh_pass_add_buffer(program, "bwd_dkv2", LH_TENSOR_DKV, z->dkv, z->w);
    plan->bwd_block_dq = lh_pass_add_buffer(program, "bwd_block_dq", LH_TENSOR_DQ, z->q, z->e);
    plan->bwd_block_dkv = lh_pass_add_buffer(program, "bwd_block_dkv", LH_TENSOR_DKV, z->kv, z->e);
    plan->bwd_dq = lh_pass_add_buffer(program, "bwd_dq", LH_TENSOR_DQ, z->q / z->e * 4, 4);
    plan->bwd_end = (uint16_t)program->slots_count;
    plan->add_dkv = z->w > z->e ? LH_KERNEL_ID_add_to_fp32 : LH_KERNEL_ID_add;
    plan->end_dkv = z->w > z->e ? LH_KERNEL_ID_cast : LH_KERNEL_ID_copy;
}

LhRingPlan *
lh_ring_declare(LhProgram *program, LhRingBlock block)
{
    const LhProgramParams *p = &program->params;
    LhRingPlan *plan;

    if (p->ranks == 1) {
        lh_single_declare(program);
        return NULL;
    }
    plan = g_new0(LhRingPlan, 1);
    program->plan = plan;
    plan->block = block;
    plan->sizes = lh_pass_sizes(p, 4);
    plan->io = lh_pass_declare(program, &plan->sizes);
    plan->ranks = p->ranks;
    plan->parts = lh_placement_parts(&program->placement);
    plan->causal = p->mask.causal;
    plan->overlap = p->overlap;
    plan->q_rows = lh_pass_q_args(p, plan->sizes.n);
    plan->kv_rows = lh_pass_kv_args(p, plan->sizes.n);
    if (lh_pass_has(p, LH_PASS_FWD))
        declare_forward(program, plan);
    if (lh_pass_has(p, LH_PASS_BWD))
        declare_backward(program, plan);
    return plan;
}

static LhKernelArgs
starting(LhKernelArgs args)
{
    args.first = true;
    return args;
}

void
lh_ring_set_shape(const LhProgram *program, unsigned index, LhRegion q, LhRegion kv,
                  LhMaskKind mask, int8_t shift)
{
    const LhProgramParams *p = &program->params;
    LhRingPlan *plan = program->plan;
    LhRingShape *shape = &plan->shapes[index];
    const uint64_t nq = plan->sizes.n / plan->parts * q.count;
    const uint64_t nk = plan->sizes.n / plan->parts * kv.count;

    g_assert(index < LH_RING_SHAPES_MAX);
    shape->q_part = q.part;
    shape->q_parts = q.count;
    shape->kv_part = kv.part;
    shape->kv_parts = kv.count;
    shape->forward = starting(lh_pass_block_args(p, nq, nk, mask, shift));
    shape->backward = shape->forward;
    shape->merge = lh_pass_q_args(p, nq);
    shape->merge_first = starting(shape->merge);
    shape->add_dq = shape->merge;
    shape->add_dq_first = shape->merge_first;
    shape->add_dkv = lh_pass_kv_args(p, nk);
    shape->add_dkv_first = starting(shape->add_dkv);
}

uint32_t
lh_ring_steps(const LhProgram *program, uint32_t rank)
{
    (void)rank;
    if (program->params.ranks == 1)
        return lh_single_steps(program);
    return program->params.ranks * (program->params.pass == LH_PASS_BOTH ? 2 : 1);
}

/* Sends @from to the next rank and receives @to from the one before. */
static uint32_t
rotate(LhEmitter *e, const LhRingPlan *plan, uint16_t tag, uint16_t from, uint16_t to)
{
    const uint32_t next = e->rank + 1 == plan->ranks ? 0 : e->rank + 1;
    const uint32_t before = e->rank == 0 ? plan->ranks - 1 : e->rank - 1;

    lh_pass_exchange(e);
    lh_pass_message(e, true, next, tag, from, plan->parts);
    lh_pass_message(e, false, before, tag, to, plan->parts);
    return e->cursor->marks[LH_MARK_EXCHANGE];
}

static void
forward_block(LhEmitter *e, const LhRingPlan *plan, const LhRingShape *shape, uint16_t kv,
              bool first)
{
    lh_pass_compute(e, LH_KERNEL_ID_attention_block, &shape->forward);
    lh_emit_operand(e, plan->io.q, shape->q_part, shape->q_parts);
    lh_emit_operand(e, kv, shape->kv_part, shape->kv_parts);
    lh_emit_operand(e, plan->fwd_block, shape->q_part, shape->q_parts);
    lh_pass_compute(e, LH_KERNEL_ID_merge_lse, first ? &shape->merge_first : &shape->merge);
    lh_emit_operand(e, plan->fwd_block, shape->q_part, shape->q_parts);
    lh_emit_operand(e, plan->fwd_out, shape->q_part, shape->q_parts);
}

static void
emit_forward(LhEmitter *e, const LhRingPlan *plan, uint32_t s)
{
    const bool last = s == plan->ranks - 1;
    const uint16_t kv = s == 0 ? plan->io.kv : plan->fwd_kv[(s - 1) % 2];
    const LhRingShape *shape = plan->block(plan, e->rank, s);
    uint32_t arrival = LH_OP_NONE;

    if (s == 0)
        lh_pass_alloc(e, plan->fwd_first, plan->fwd_end);
    if (!last)
        arrival = rotate(e, plan, TAG_KV, kv, plan->fwd_kv[s % 2]);
    if (!plan->overlap)
        lh_pass_wait(e, arrival);
    if (shape != NULL)
        forward_block(e, plan, shape, kv, s == 0);
    lh_pass_wait(e, arrival);
    if (!last)
        return;
    lh_pass_compute(e, LH_KERNEL_ID_round_out, &plan->q_rows);
    lh_emit_operand(e, plan->fwd_out, 0, plan->parts);
    lh_emit_operand(e, plan->io.o, 0, plan->parts);
    lh_emit_operand(e, plan->io.lse, 0, plan->parts);
    lh_pass_free(e, plan->fwd_first, plan->fwd_end);
}

/* The block's dq goes into the fp32 sum at once. */
static void
backward_block(LhEmitter *e, const LhRingPlan *plan, const LhRingShape *shape, uint16_t kv,
               bool first)
{
    const uint16_t of_q[] = { plan->io.q, plan->io.dout, plan->io.o, plan->io.lse };

    lh_pass_compute(e, LH_KERNEL_ID_attention_bwd_o, &shape->backward);
    for (unsigned i = 0; i < G_N_ELEMENTS(of_q); i++)
        lh_emit_operand(e, of_q[i], shape->q_part, shape->q_parts);
    lh_emit_operand(e, kv, shape->kv_part, shape->kv_parts);
    lh_emit_operand(e, plan->bwd_block_dq, shape->q_part, shape->q_parts);
    lh_emit_operand(e, plan->bwd_block_dkv, shape->kv_part, shape->kv_parts);
    lh_pass_compute(e, LH_KERNEL_ID_add_to_fp32, first ? &shape->add_dq_first : &shape->add_dq);
    lh_emit_operand(e, plan->bwd_block_dq, shape->q_part, shape->q_parts);
    lh_emit_operand(e, plan->bwd_dq, shape->q_part, shape->q_parts);
}

/* dk, dv += block: into what arrived one step ago. */
static void
add_dkv(LhEmitter *e, const LhRingPlan *plan, const LhRingShape *shape, uint16_t dkv, bool first)
{
    lh_pass_compute(e, plan->add_dkv, first ? &shape->add_dkv_first : &shape->add_dkv);
    lh_emit_operand(e, plan->bwd_block_dkv, shape->kv_part, shape->kv_parts);
    lh_emit_operand(e, dkv, shape->kv_part, shape->kv_parts);
}

static void
end_backward(LhEmitter *e, const LhRingPlan *plan)
{
    lh_pass_compute(e, LH_KERNEL_ID_cast, &plan->q_rows);
    lh_emit_operand(e, plan->bwd_dq, 0, plan->parts);
    lh_emit_operand(e, plan->io.dq, 0, plan->parts);
    lh_pass_compute(e, plan->end_dkv, &plan->kv_rows);
    lh_emit_operand(e, plan->bwd_dkv[plan->ranks % 3], 0, plan->parts);
    lh_emit_operand(e, plan->io.dkv, 0, plan->parts);
    lh_pass_free(e, plan->bwd_first, plan->bwd_end);
}

static void
emit_backward(LhEmitter *e, const LhRingPlan *plan, uint32_t s)
{
    uint32_t *marks = e->cursor->marks;
    const bool last = s == plan->ranks - 1;
    const uint16_t kv = s == 0 ? plan->io.kv : plan->bwd_kv[(s - 1) % 2];
    const uint16_t dkv = plan->bwd_dkv[s % 3];
    const LhRingShape *shape = plan->block(plan, e->rank, s);
    uint32_t arrival = LH_OP_NONE;

    if (s == 0)
        lh_pass_alloc(e, plan->bwd_first, plan->bwd_end);
    if (!last)
        arrival = rotate(e, plan, TAG_KV, kv, plan->bwd_kv[s % 2]);
    if (!plan->overlap)
        lh_pass_wait(e, marks[LH_MARK_EXCHANGE]);
    if (shape != NULL)
        backward_block(e, plan, shape, kv, s == 0);
    if (s > 0)
        lh_pass_wait(e, marks[MARK_DKV]);
    if (shape != NULL)
        add_dkv(e, plan, shape, dkv, s == 0);
    lh_pass_wait(e, arrival);
    marks[MARK_DKV] = rotate(e, plan, TAG_DKV, dkv, plan->bwd_dkv[(s + 1) % 3]);
    if (!last)
        return;
    lh_pass_wait(e, marks[MARK_DKV]);
    end_backward(e, plan);
}

void
lh_ring_emit(LhEmitter *e, uint32_t step)
{
    const LhRingPlan *plan = e->program->plan;
    uint32_t s;

    if (e->program->params.ranks == 1) {
        lh_single_emit(e, step);
        return;
    }
    s = lh_pass_enter(e, step, plan->ranks);
    if (e->phase == LH_PHASE_FORWARD)
        emit_forward(e, plan, s);
    else
        emit_backward(e, plan, s);
}

/* (P-1) KV forward; (P-1) KV + P G backward: the gradients make one hop more. */
uint64_t
lh_ring_bytes_sent(const LhProgramParams *p, uint32_t rank)
{
    const LhPassSizes z = lh_pass_sizes(p, 4);
    const uint64_t hops = p->ranks - 1;
    uint64_t bytes = 0;

    (void)rank;
    if (p->ranks == 1)
        return 0;
    if (lh_pass_has(p, LH_PASS_FWD))
        bytes += hops * z.kv;
    if (lh_pass_has(p, LH_PASS_BWD))
        bytes += hops * z.kv + p->ranks * z.dkv;
    return bytes;
}

/* Forward 2 KV + fp32 out + block out, both with lse; backward 2 KV + 3 G + block dq, dk, dv + fp32
 * dq. */
uint64_t
lh_ring_peak_bytes(const LhProgramParams *p, uint32_t rank)
{
    const LhPassSizes z = lh_pass_sizes(p, 4);
    const uint64_t q32 = z.q / z.e * 4;

    (void)rank;
    if (p->ranks == 1)
        return lh_single_peak_bytes(p);
    return lh_pass_peak_bytes(p, 2 * z.kv + q32 + z.q + 2 * z.s,
                              2 * z.kv + 3 * z.dkv + z.kv + z.q + q32);
}
