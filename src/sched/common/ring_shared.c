/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In step s of either pass a rank holds k and v of rank r - s. It posts the exchange that passes
 * them on and receives those of step s + 1, and computes its block meanwhile. In the backward pass
 * it then waits for dk, dv, adds its own, and passes them on: P hops, one behind those of k, v. All
 * messages share one process group in the public code, hence one stream here. Not modelled:
 * dropout.
 */
#include "sched/common/ring_shared.h"

enum {
    RING_TAG_KV,
    RING_TAG_DKV,
};

uint16_t
lh_ring_add_buffer(LhProgram *program, const LhRingPlan *plan, const char *name, LhTensorKind kind,
                   uint64_t bytes, uint32_t element_bytes)
{
    return lh_pass_add_slot(program, name, kind, LH_SLOT_TEMP, plan->parts, bytes / plan->parts,
                            element_bytes);
}

void
lh_ring_declare_forward(LhProgram *program, LhRingPlan *plan)
{
    const LhPassSizes *z = &plan->sizes;

    plan->fwd_first = (uint16_t)program->slots_count;
    plan->fwd_kv[0] = lh_ring_add_buffer(program, plan, "fwd_kv0", LH_TENSOR_KV, z->kv, z->e);
    plan->fwd_kv[1] = lh_ring_add_buffer(program, plan, "fwd_kv1", LH_TENSOR_KV, z->kv, z->e);
    plan->fwd_out =
        lh_ring_add_buffer(program, plan, "fwd_out", LH_TENSOR_OUT, z->q / z->e * 4 + z->s, 4);
    plan->fwd_block =
        lh_ring_add_buffer(program, plan, "fwd_block", LH_TENSOR_OUT, z->q + z->s, z->e);
    plan->fwd_end = (uint16_t)program->slots_count;
}

void
lh_ring_declare_backward(LhProgram *program, LhRingPlan *plan)
{
    const LhPassSizes *z = &plan->sizes;

    plan->bwd_first = (uint16_t)program->slots_count;
    plan->bwd_kv[0] = lh_ring_add_buffer(program, plan, "bwd_kv0", LH_TENSOR_KV, z->kv, z->e);
    plan->bwd_kv[1] = lh_ring_add_buffer(program, plan, "bwd_kv1", LH_TENSOR_KV, z->kv, z->e);
    plan->bwd_dkv[0] = lh_ring_add_buffer(program, plan, "bwd_dkv0", LH_TENSOR_DKV, z->dkv, z->w);
    plan->bwd_dkv[1] = lh_ring_add_buffer(program, plan, "bwd_dkv1", LH_TENSOR_DKV, z->dkv, z->w);
    plan->bwd_dkv[2] = lh_ring_add_buffer(program, plan, "bwd_dkv2", LH_TENSOR_DKV, z->dkv, z->w);
    plan->bwd_block_dq =
        lh_ring_add_buffer(program, plan, "bwd_block_dq", LH_TENSOR_DQ, z->q, z->e);
    plan->bwd_block_dkv =
        lh_ring_add_buffer(program, plan, "bwd_block_dkv", LH_TENSOR_DKV, z->kv, z->e);
    plan->bwd_dq = lh_ring_add_buffer(program, plan, "bwd_dq", LH_TENSOR_DQ, z->q / z->e * 4, 4);
    plan->bwd_end = (uint16_t)program->slots_count;
    plan->add_dkv = z->w > z->e ? LH_KERNEL_ID_add_to_fp32 : LH_KERNEL_ID_add;
    plan->end_dkv = z->w > z->e ? LH_KERNEL_ID_cast : LH_KERNEL_ID_copy;
}

void
lh_ring_init(LhRingPlan *plan, const LhProgram *program, const LhPassSlots *io, uint32_t stride,
             uint32_t parts)
{
    const LhProgramParams *p = &program->params;

    plan->sizes = lh_pass_sizes(p, 4);
    plan->io = *io;
    plan->ranks = p->ranks / stride;
    plan->stride = stride;
    plan->parts = parts;
    plan->part_rows = p->attention.seq_length / lh_placement_segments(&program->placement);
    plan->causal = p->mask.causal;
    plan->overlap = lh_pass_overlaps(p);
    plan->q_rows = lh_pass_slice_args(program, lh_pass_q_args(p, parts * plan->part_rows));
    plan->kv_rows = lh_pass_slice_args(program, lh_pass_kv_args(p, parts * plan->part_rows));
}

LhRingPlan *
lh_ring_declare(LhProgram *program, LhRingBlock block)
{
    const LhProgramParams *p = &program->params;
    const LhPassSizes z = lh_pass_sizes(p, 4);
    LhPassSlots io;
    LhRingPlan *plan = g_new0(LhRingPlan, 1);

    program->plan = plan;
    plan->block = block;
    io = lh_pass_declare(program, &z);
    lh_ring_init(plan, program, &io, 1, lh_placement_parts(&program->placement));
    if (lh_pass_has(p, LH_PASS_FWD))
        lh_ring_declare_forward(program, plan);
    if (lh_pass_has(p, LH_PASS_BWD))
        lh_ring_declare_backward(program, plan);
    return plan;
}

static LhKernelArgs
starting(LhKernelArgs args)
{
    args.first = true;
    return args;
}

LhRingShape
lh_ring_shape(const LhProgram *program, const LhRingPlan *plan, LhRegion q, LhRegion kv,
              LhKernelArgs forward)
{
    const LhProgramParams *p = &program->params;
    LhRingShape shape = {
        .q_part = q.part, .q_parts = q.count, .kv_part = kv.part, .kv_parts = kv.count
    };

    shape.forward = starting(forward);
    shape.backward = shape.forward;
    shape.merge = lh_pass_slice_args(program, lh_pass_q_args(p, q.count * plan->part_rows));
    shape.merge_first = starting(shape.merge);
    shape.add_dq = shape.merge;
    shape.add_dq_first = shape.merge_first;
    shape.add_dkv = lh_pass_slice_args(program, lh_pass_kv_args(p, kv.count * plan->part_rows));
    shape.add_dkv_first = starting(shape.add_dkv);
    return shape;
}

void
lh_ring_set_shape(const LhProgram *program, LhRingPlan *plan, unsigned index, LhRegion q,
                  LhRegion kv, LhRingMask mask)
{
    const LhKernelArgs forward =
        lh_pass_block_args(&program->params, q.count * plan->part_rows, kv.count * plan->part_rows,
                           mask == LH_RING_FULL ? LH_MASK_FULL : LH_MASK_CAUSAL,
                           mask == LH_RING_BELOW_DIAGONAL ? -1 : 0);

    g_assert(index < LH_RING_SHAPES_MAX);
    plan->shapes[index] = lh_ring_shape(program, plan, q, kv, lh_pass_slice_args(program, forward));
}

enum {
    OWN,      /* both half-chunks of q and of k, v: the diagonal */
    FIRST_KV, /* both half-chunks of q with the first one of k, v, which is entirely in the past */
    SECOND_Q, /* the second half-chunk of q with both of k, v */
};

static const LhRingShape *
zigzag_block(const LhRingPlan *plan, uint32_t q, uint32_t kv)
{
    if (q == kv || !plan->causal)
        return &plan->shapes[OWN];
    return &plan->shapes[kv < q ? FIRST_KV : SECOND_Q];
}

void
lh_ring_set_zigzag(const LhProgram *program, LhRingPlan *plan)
{
    const LhRegion first = { .part = 0, .count = plan->parts / 2 };
    const LhRegion second = { .part = plan->parts / 2, .count = plan->parts / 2 };
    const LhRegion both = { .part = 0, .count = plan->parts };

    plan->block = zigzag_block;
    /* The half-chunks are in token order, so the diagonal is causal in local indices. */
    lh_ring_set_shape(program, plan, OWN, both, both, plan->causal ? LH_RING_CAUSAL : LH_RING_FULL);
    lh_ring_set_shape(program, plan, FIRST_KV, both, first, LH_RING_FULL);
    lh_ring_set_shape(program, plan, SECOND_Q, second, both, LH_RING_FULL);
}

/* The rows of parts [part, part + count) of a rank's tokens. */
static LhPassRows
rows_of(const LhPlacement *placement, uint32_t rank, LhRegion parts)
{
    const uint32_t last = parts.part + parts.count - 1;
    LhPassRows rows = { .parts = parts.count };
    LhSegment end;

    rows.first =
        lh_placement_segment(placement, lh_placement_segment_id(placement, rank, parts.part));
    end = lh_placement_segment(placement, lh_placement_segment_id(placement, rank, last));
    /* Placements have at most two parts. */
    rows.part_step = (int64_t)end.start - (int64_t)rows.first.start;
    return rows;
}

/* The smallest range that contains the parts in a bit set; empty if there are none. */
static LhRegion
range_of(uint32_t parts)
{
    uint32_t first, end;

    if (parts == 0)
        return (LhRegion){ 0 };
    first = (uint32_t)__builtin_ctz(parts);
    end = 32 - (uint32_t)__builtin_clz(parts);
    return (LhRegion){ .part = first, .count = end - first };
}

/* The smallest ranges of parts that have pairs with the other rank's tokens, of the queries of
 * rank @q and of the keys of rank @kv. */
static void
find_touching(const LhProgram *program, uint32_t q, uint32_t kv, LhRegion *of_q, LhRegion *of_kv)
{
    const LhPlacement *placement = &program->placement;
    const uint32_t parts = lh_placement_parts(placement);
    uint32_t queries = 0, keys = 0; /* bit sets */

    for (uint32_t a = 0; a < parts; a++) {
        const LhSegment rows =
            lh_placement_segment(placement, lh_placement_segment_id(placement, q, a));

        for (uint32_t b = 0; b < parts; b++) {
            const LhSegment others =
                lh_placement_segment(placement, lh_placement_segment_id(placement, kv, b));

            if (lh_mask_pairs(&program->params.mask, rows, others) == 0)
                continue;
            queries |= UINT32_C(1) << a;
            keys |= UINT32_C(1) << b;
        }
    }
    *of_q = range_of(queries);
    *of_kv = range_of(keys);
}

const LhRingShape *
lh_ring_block(const LhProgram *program, const LhRingPlan *plan, uint32_t q, uint32_t kv,
              LhRingShape *room)
{
    const LhPlacement *placement = &program->placement;
    LhRegion of_q, of_kv;

    if (lh_mask_is_plain(&program->params.mask))
        return plan->block(plan, q, kv);
    find_touching(program, q, kv, &of_q, &of_kv);
    if (of_q.count == 0)
        return NULL;
    *room = lh_ring_shape(
        program, plan, of_q, of_kv,
        lh_pass_position_args(program, rows_of(placement, q, of_q), rows_of(placement, kv, of_kv)));
    return room;
}

uint32_t
lh_ring_position(const LhRingPlan *plan, uint32_t rank)
{
    return rank / plan->stride;
}

uint32_t
lh_ring_behind(const LhRingPlan *plan, uint32_t position, uint32_t steps)
{
    return position >= steps ? position - steps : position + plan->ranks - steps;
}

uint32_t
lh_ring_rank_behind(const LhRingPlan *plan, uint32_t rank, uint32_t steps)
{
    const uint32_t position = lh_ring_behind(plan, lh_ring_position(plan, rank), steps);

    return position * plan->stride + rank % plan->stride;
}

uint32_t
lh_ring_steps(const LhProgram *program, uint32_t rank)
{
    (void)rank;
    return program->params.ranks * (program->params.pass == LH_PASS_BOTH ? 2 : 1);
}

/* Sends @from to the next rank and receives @to from the one before. */
static uint32_t
rotate(LhEmitter *e, const LhRingPlan *plan, uint16_t tag, uint16_t from, uint16_t to)
{
    lh_pass_exchange(e);
    lh_pass_message(e, true, lh_ring_rank_behind(plan, e->rank, plan->ranks - 1), tag, from,
                    plan->parts);
    lh_pass_message(e, false, lh_ring_rank_behind(plan, e->rank, 1), tag, to, plan->parts);
    return e->marks[LH_MARK_EXCHANGE];
}

static const LhRingShape *
block_of_step(const LhEmitter *e, const LhRingPlan *plan, uint32_t s, LhRingShape *room)
{
    const uint32_t position = lh_ring_position(plan, e->rank);

    return lh_ring_block(e->program, plan, position, lh_ring_behind(plan, position, s), room);
}

void
lh_ring_forward_block(LhEmitter *e, const LhRingPlan *plan, const LhRingShape *shape, uint16_t kv,
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

void
lh_ring_end_forward(LhEmitter *e, const LhRingPlan *plan)
{
    lh_pass_compute(e, LH_KERNEL_ID_round_out, &plan->q_rows);
    lh_emit_operand(e, plan->fwd_out, 0, plan->parts);
    lh_emit_operand(e, plan->io.o, 0, plan->parts);
    lh_emit_operand(e, plan->io.lse, 0, plan->parts);
    lh_pass_free(e, plan->fwd_first, plan->fwd_end);
}

void
lh_ring_forward(LhEmitter *e, const LhRingPlan *plan, uint32_t s)
{
    const bool last = s == plan->ranks - 1;
    const uint16_t kv = s == 0 ? plan->io.kv : plan->fwd_kv[(s - 1) % 2];
    LhRingShape room;
    const LhRingShape *shape = block_of_step(e, plan, s, &room);
    uint32_t arrival = LH_OP_NONE;

    if (s == 0)
        lh_pass_alloc(e, plan->fwd_first, plan->fwd_end);
    if (!last)
        arrival = rotate(e, plan, RING_TAG_KV, kv, plan->fwd_kv[s % 2]);
    if (!plan->overlap)
        lh_pass_wait(e, arrival);
    if (shape != NULL)
        lh_ring_forward_block(e, plan, shape, kv, s == 0);
    lh_pass_wait(e, arrival);
    if (last)
        lh_ring_end_forward(e, plan);
}

/* Adds the block's dq to the fp32 sum at once. */
static void
ring_backward_block(LhEmitter *e, const LhRingPlan *plan, const LhRingShape *shape, uint16_t kv,
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

/* Adds the block's dk, dv to those received. */
static void
add_dkv(LhEmitter *e, const LhRingPlan *plan, const LhRingShape *shape, uint16_t dkv, bool first)
{
    lh_pass_compute(e, plan->add_dkv, first ? &shape->add_dkv_first : &shape->add_dkv);
    lh_emit_operand(e, plan->bwd_block_dkv, shape->kv_part, shape->kv_parts);
    lh_emit_operand(e, dkv, shape->kv_part, shape->kv_parts);
}

static void
ring_end_backward(LhEmitter *e, const LhRingPlan *plan)
{
    lh_pass_compute(e, LH_KERNEL_ID_cast, &plan->q_rows);
    lh_emit_operand(e, plan->bwd_dq, 0, plan->parts);
    lh_emit_operand(e, plan->io.dq, 0, plan->parts);
    lh_pass_compute(e, plan->end_dkv, &plan->kv_rows);
    lh_emit_operand(e, plan->bwd_dkv[plan->ranks % 3], 0, plan->parts);
    lh_emit_operand(e, plan->io.dkv, 0, plan->parts);
    lh_pass_free(e, plan->bwd_first, plan->bwd_end);
}

void
lh_ring_backward(LhEmitter *e, const LhRingPlan *plan, uint32_t s)
{
    uint32_t *marks = e->marks;
    const bool last = s == plan->ranks - 1;
    const uint16_t kv = s == 0 ? plan->io.kv : plan->bwd_kv[(s - 1) % 2];
    const uint16_t dkv = plan->bwd_dkv[s % 3];
    LhRingShape room;
    const LhRingShape *shape = block_of_step(e, plan, s, &room);
    uint32_t arrival = LH_OP_NONE;

    if (s == 0)
        lh_pass_alloc(e, plan->bwd_first, plan->bwd_end);
    if (!last)
        arrival = rotate(e, plan, RING_TAG_KV, kv, plan->bwd_kv[s % 2]);
    if (!plan->overlap)
        lh_pass_wait(e, marks[LH_MARK_EXCHANGE]);
    if (shape != NULL)
        ring_backward_block(e, plan, shape, kv, s == 0);
    if (s > 0)
        lh_pass_wait(e, marks[LH_RING_MARK_DKV]);
    if (shape != NULL)
        add_dkv(e, plan, shape, dkv, s == 0);
    lh_pass_wait(e, arrival);
    marks[LH_RING_MARK_DKV] = rotate(e, plan, RING_TAG_DKV, dkv, plan->bwd_dkv[(s + 1) % 3]);
    if (!last)
        return;
    lh_pass_wait(e, marks[LH_RING_MARK_DKV]);
    ring_end_backward(e, plan);
}

void
lh_ring_emit(LhEmitter *e, uint32_t step)
{
    const LhRingPlan *plan = e->program->plan;
    const uint32_t s = lh_pass_enter(e, step, plan->ranks);

    if (e->phase == LH_PHASE_FORWARD)
        lh_ring_forward(e, plan, s);
    else
        lh_ring_backward(e, plan, s);
}

/* Forward (P-1) KV; backward (P-1) KV + P G, since gradients make one more hop. */
uint64_t
lh_ring_bytes_sent(const LhProgramParams *p, uint32_t rank)
{
    const LhPassSizes z = lh_pass_sizes(p, 4);
    const uint64_t hops = p->ranks - 1;
    uint64_t bytes = 0;

    (void)rank;
    if (lh_pass_has(p, LH_PASS_FWD))
        bytes += hops * z.kv;
    if (lh_pass_has(p, LH_PASS_BWD))
        bytes += hops * z.kv + p->ranks * z.dkv;
    return bytes;
}

/* Forward: 2 KV, the fp32 sum of o and the result of a block, both with lse. Backward: 2 KV + 3
 * G, dq, dk, dv of a block and the fp32 sum of dq. */
uint64_t
lh_ring_peak_bytes(const LhProgramParams *p, uint32_t rank)
{
    const LhPassSizes z = lh_pass_sizes(p, 4);
    const uint64_t q32 = z.q / z.e * 4;

    (void)rank;
    return lh_pass_peak_bytes(p, 2 * z.kv + q32 + z.q + 2 * z.s,
                              2 * z.kv + 3 * z.dkv + z.kv + z.q + q32);
}

/* The diagonal and P-1 half blocks. */
uint64_t
lh_zigzag_flops(const LhProgramParams *p, uint32_t rank)
{
    const uint64_t n = p->attention.seq_length / p->ranks;

    if (!lh_mask_is_plain(&p->mask))
        return lh_pass_flops(p, lh_pass_rank_pairs(p, LH_PLACE_ZIGZAG, rank));
    if (!p->mask.causal)
        return lh_pass_flops(p, p->ranks * n * n);
    return lh_pass_flops(p, n * (n + 1) / 2 + (p->ranks - 1) * (n * n / 2));
}

static uint64_t
zigzag_blocks(const LhProgramParams *p, uint32_t rank)
{
    return lh_pass_rank_blocks(p, LH_PLACE_ZIGZAG, rank);
}

double
lh_zigzag_idle_unit(const LhProgramParams *p)
{
    return lh_mask_is_plain(&p->mask) ? 0 : lh_pass_imbalance(p, zigzag_blocks);
}

double
lh_zigzag_idle_flops(const LhProgramParams *p)
{
    return lh_mask_is_plain(&p->mask) ? 0 : lh_pass_imbalance(p, lh_zigzag_flops);
}
