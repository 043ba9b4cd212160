/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule burst, described at the end of this file. The forward pass is that of
 * common/ring_shared.h. In the backward pass the pack (q, do, lse and delta of one rank) takes the
 * place of k, v in the ring, and dq that of dk, dv: it follows one hop behind, P hops in all. All
 * messages share one process group in the public code (MayDomine/Burst-Attention,
 * thunlp/BurstEngine), hence one stream here. Not modelled: the public code's double ring.
 */
#include "sched/common/ring_shared.h"
#include "sched/schedule.h"

enum {
    BURST_TAG_PACK,
    BURST_TAG_DQ,
};

enum {
    MARK_PACK = LH_RING_MARK_END,
    MARK_DQ,
};

/* The tensors of one rank's queries that circulate in the backward pass. */
typedef struct {
    uint16_t q, dout, lse, delta;
} BurstPack;

typedef struct {
    LhRingPlan ring;
    bool published;
    uint16_t bwd_first, bwd_end;
    BurstPack own, arrived[2];
    uint16_t bwd_dq[2], bwd_block_dq, bwd_block_dkv, bwd_dkv;
    LhKernelId add_dq, add_dkv, end_dq;
} BurstPlan;

/* Whether dq of a block is kept in fp32, so that it is rounded only once, when it is added to
 * the 16-bit sum received. */
static bool
has_wide_dq(const LhProgramParams *p, const LhPassSizes *z)
{
    return !lh_pass_published(p) && z->w <= z->e && z->e < 4;
}

static void
burst_declare_backward(LhProgram *program, BurstPlan *plan)
{
    const LhRingPlan *ring = &plan->ring;
    const LhPassSizes *z = &ring->sizes;
    const bool wide = has_wide_dq(&program->params, z);
    char name[16];

    plan->bwd_first = (uint16_t)program->slots_count;
    plan->own = (BurstPack){ ring->io.q, ring->io.dout, ring->io.lse, 0 };
    plan->own.delta = lh_ring_add_buffer(program, ring, "bwd_delta", LH_TENSOR_DELTA, z->s, 4);
    for (unsigned i = 0; i < 2; i++) {
        BurstPack *pack = &plan->arrived[i];

        g_snprintf(name, sizeof(name), "bwd_q%u", i);
        pack->q = lh_ring_add_buffer(program, ring, name, LH_TENSOR_Q, z->q, z->e);
        g_snprintf(name, sizeof(name), "bwd_do%u", i);
        pack->dout = lh_ring_add_buffer(program, ring, name, LH_TENSOR_DO, z->q, z->e);
        g_snprintf(name, sizeof(name), "bwd_lse%u", i);
        pack->lse = lh_ring_add_buffer(program, ring, name, LH_TENSOR_LSE, z->s, 4);
        g_snprintf(name, sizeof(name), "bwd_delta%u", i);
        pack->delta = lh_ring_add_buffer(program, ring, name, LH_TENSOR_DELTA, z->s, 4);
        g_snprintf(name, sizeof(name), "bwd_dq%u", i);
        plan->bwd_dq[i] = lh_ring_add_buffer(program, ring, name, LH_TENSOR_DQ, z->dq, z->w);
    }
    plan->bwd_block_dq = lh_ring_add_buffer(program, ring, "bwd_block_dq", LH_TENSOR_DQ,
                                            wide ? z->q / z->e * 4 : z->q, wide ? 4 : z->e);
    plan->bwd_block_dkv =
        lh_ring_add_buffer(program, ring, "bwd_block_dkv", LH_TENSOR_DKV, z->kv, z->e);
    plan->bwd_dkv = ring->io.dkv;
    if (!plan->published)
        plan->bwd_dkv =
            lh_ring_add_buffer(program, ring, "bwd_dkv", LH_TENSOR_DKV, z->kv / z->e * 4, 4);
    plan->bwd_end = (uint16_t)program->slots_count;
    plan->add_dq = wide          ? LH_KERNEL_ID_add_from_fp32
                   : z->w > z->e ? LH_KERNEL_ID_add_to_fp32
                                 : LH_KERNEL_ID_add;
    plan->add_dkv = plan->published ? LH_KERNEL_ID_add : LH_KERNEL_ID_add_to_fp32;
    plan->end_dq = z->w > z->e ? LH_KERNEL_ID_cast : LH_KERNEL_ID_copy;
}

static void
burst_declare(LhProgram *program)
{
    const LhProgramParams *p = &program->params;
    const LhPassSizes z = lh_pass_sizes(p, 0);
    LhPassSlots io;
    BurstPlan *plan = g_new0(BurstPlan, 1);

    program->plan = plan;
    io = lh_pass_declare(program, &z);
    lh_ring_init(&plan->ring, program, &io, 1, lh_placement_parts(&program->placement));
    plan->ring.sizes = z;
    plan->published = lh_pass_published(p);
    lh_ring_set_zigzag(program, &plan->ring);
    if (lh_pass_has(p, LH_PASS_FWD))
        lh_ring_declare_forward(program, &plan->ring);
    if (lh_pass_has(p, LH_PASS_BWD))
        burst_declare_backward(program, plan);
}

static void
message_burst_pack(LhEmitter *e, const BurstPlan *plan, bool send, uint32_t peer,
                   const BurstPack *pack)
{
    const LhPassSizes *z = &plan->ring.sizes;
    const uint16_t slots[] = { pack->delta, pack->dout, pack->q, pack->lse };

    lh_emit_part(e, send, peer, BURST_TAG_PACK, 2 * z->q + 2 * z->s);
    for (unsigned i = 0; i < G_N_ELEMENTS(slots); i++)
        lh_emit_region(e, slots[i], 0, plan->ring.parts);
}

static uint32_t
rotate_pack(LhEmitter *e, const BurstPlan *plan, const BurstPack *from, const BurstPack *to)
{
    const LhRingPlan *ring = &plan->ring;

    lh_pass_exchange(e);
    message_burst_pack(e, plan, true, lh_ring_rank_behind(ring, e->rank, ring->ranks - 1), from);
    message_burst_pack(e, plan, false, lh_ring_rank_behind(ring, e->rank, 1), to);
    return e->marks[LH_MARK_EXCHANGE];
}

static uint32_t
rotate_dq(LhEmitter *e, const BurstPlan *plan, uint16_t from, uint16_t to)
{
    const LhRingPlan *ring = &plan->ring;

    lh_pass_exchange(e);
    lh_pass_message(e, true, lh_ring_rank_behind(ring, e->rank, ring->ranks - 1), BURST_TAG_DQ,
                    from, ring->parts);
    lh_pass_message(e, false, lh_ring_rank_behind(ring, e->rank, 1), BURST_TAG_DQ, to, ring->parts);
    return e->marks[LH_MARK_EXCHANGE];
}

static void
burst_begin_backward(LhEmitter *e, const BurstPlan *plan)
{
    const LhPassSlots *io = &plan->ring.io;

    lh_pass_alloc(e, plan->bwd_first, plan->bwd_end);
    lh_pass_compute(e, LH_KERNEL_ID_delta, &plan->ring.q_rows);
    lh_emit_operand(e, io->dout, 0, plan->ring.parts);
    lh_emit_operand(e, io->o, 0, plan->ring.parts);
    lh_emit_operand(e, plan->own.delta, 0, plan->ring.parts);
}

static void
burst_backward_block(LhEmitter *e, const BurstPlan *plan, const LhRingShape *shape,
                     const BurstPack *pack)
{
    const uint16_t of_q[] = { pack->q, pack->dout, pack->delta, pack->lse };

    lh_pass_compute(e, LH_KERNEL_ID_attention_bwd, &shape->backward);
    for (unsigned i = 0; i < G_N_ELEMENTS(of_q); i++)
        lh_emit_operand(e, of_q[i], shape->q_part, shape->q_parts);
    lh_emit_operand(e, plan->ring.io.kv, shape->kv_part, shape->kv_parts);
    lh_emit_operand(e, plan->bwd_block_dq, shape->q_part, shape->q_parts);
    lh_emit_operand(e, plan->bwd_block_dkv, shape->kv_part, shape->kv_parts);
}

static void
add_block(LhEmitter *e, const BurstPlan *plan, const LhRingShape *shape, uint16_t dq, bool first)
{
    lh_pass_compute(e, plan->add_dq, first ? &shape->add_dq_first : &shape->add_dq);
    lh_emit_operand(e, plan->bwd_block_dq, shape->q_part, shape->q_parts);
    lh_emit_operand(e, dq, shape->q_part, shape->q_parts);
    lh_pass_compute(e, plan->add_dkv, first ? &shape->add_dkv_first : &shape->add_dkv);
    lh_emit_operand(e, plan->bwd_block_dkv, shape->kv_part, shape->kv_parts);
    lh_emit_operand(e, plan->bwd_dkv, shape->kv_part, shape->kv_parts);
}

static void
burst_end_backward(LhEmitter *e, const BurstPlan *plan)
{
    const LhRingPlan *ring = &plan->ring;

    lh_pass_compute(e, plan->end_dq, &ring->q_rows);
    lh_emit_operand(e, plan->bwd_dq[ring->ranks % 2], 0, ring->parts);
    lh_emit_operand(e, ring->io.dq, 0, ring->parts);
    if (!plan->published) {
        lh_pass_compute(e, LH_KERNEL_ID_cast, &ring->kv_rows);
        lh_emit_operand(e, plan->bwd_dkv, 0, ring->parts);
        lh_emit_operand(e, ring->io.dkv, 0, ring->parts);
    }
    lh_pass_free(e, plan->bwd_first, plan->bwd_end);
}

/* Step @s processes the queries of rank r - @s. */
static void
burst_backward(LhEmitter *e, const BurstPlan *plan, uint32_t s)
{
    const LhRingPlan *ring = &plan->ring;
    const uint32_t position = lh_ring_position(ring, e->rank);
    const BurstPack *pack = s == 0 ? &plan->own : &plan->arrived[(s - 1) % 2];
    const uint16_t dq = plan->bwd_dq[s % 2], dq_before = plan->bwd_dq[(s + 1) % 2];
    const bool last = s + 1 == ring->ranks;
    LhRingShape room;
    const LhRingShape *shape =
        lh_ring_block(e->program, ring, lh_ring_behind(ring, position, s), position, &room);
    uint32_t arrival = LH_OP_NONE;

    if (s == 0)
        burst_begin_backward(e, plan);
    if (!last)
        arrival = rotate_pack(e, plan, pack, &plan->arrived[s % 2]);
    if (s > 0)
        arrival = rotate_dq(e, plan, dq_before, dq);
    if (!ring->overlap)
        lh_pass_wait(e, arrival);
    if (shape != NULL)
        burst_backward_block(e, plan, shape, pack);
    lh_pass_wait(e, arrival);
    if (shape != NULL)
        add_block(e, plan, shape, dq, s == 0);
    if (!last)
        return;
    lh_pass_wait(e, rotate_dq(e, plan, dq, dq_before));
    burst_end_backward(e, plan);
}

static void
burst_emit(LhEmitter *e, uint32_t step)
{
    const BurstPlan *plan = e->program->plan;
    const uint32_t s = lh_pass_enter(e, step, plan->ring.ranks);

    if (e->phase == LH_PHASE_FORWARD)
        lh_ring_forward(e, &plan->ring, s);
    else
        burst_backward(e, plan, s);
}

/* (P-1) KV forward; (P-1) (2Q + 2S) + P dq backward. */
static uint64_t
burst_bytes_sent(const LhProgramParams *p, uint32_t rank)
{
    const LhPassSizes z = lh_pass_sizes(p, 0);
    const uint64_t hops = p->ranks - 1;

    (void)rank;
    return (lh_pass_has(p, LH_PASS_FWD) ? hops * z.kv : 0) +
           (lh_pass_has(p, LH_PASS_BWD) ? hops * 2 * (z.q + z.s) + p->ranks * z.dq : 0);
}

/* In the backward pass a rank processes its own keys with all queries that see them. */
static uint64_t
burst_flops(const LhProgramParams *p, uint32_t rank)
{
    LhProgramParams forward = *p, backward = *p;

    if (lh_mask_is_plain(&p->mask))
        return lh_zigzag_flops(p, rank);
    forward.pass = p->pass & LH_PASS_FWD;
    backward.pass = p->pass & LH_PASS_BWD;
    return lh_zigzag_flops(&forward, rank) +
           lh_pass_flops(&backward, lh_pass_rank_key_pairs(p, LH_PLACE_ZIGZAG, rank));
}

/* Forward as ring. Backward: two packs, two dq, the rank's own delta, the gradients of a block,
 * and the fp32 sum of dk, dv. */
static uint64_t
burst_peak_bytes(const LhProgramParams *p, uint32_t rank)
{
    const LhPassSizes z = lh_pass_sizes(p, 0);
    const uint64_t q32 = z.q / z.e * 4, kv32 = z.kv / z.e * 4;

    (void)rank;
    return lh_pass_peak_bytes(p, 2 * z.kv + q32 + z.q + 2 * z.s,
                              4 * z.q + 5 * z.s + 2 * z.dq + (has_wide_dq(p, &z) ? q32 : z.q) +
                                  z.kv + (lh_pass_published(p) ? 0 : kv32));
}

const LhSchedule lh_schedule_burst = {
    .name = "burst",
    .summary = "zigzag ring whose backward pass rotates q, do, lse, delta, dq instead of k and v",
    .details =
        "BurstAttention as in MayDomine/Burst-Attention, on zigzag half-chunks. The\n"
        "forward pass is that of zigzag. In the backward pass k, v and their gradients\n"
        "stay where they are. In step s a rank works on q, do, lse and delta of rank r-s\n"
        "and passes them on to rank r+1; dq follows one hop behind, and its last hop is\n"
        "exposed. This sends about 3Q a step where ring sends KV + G. If both send\n"
        "gradients in e bytes, burst sends less for g/h > 3/4 and more for g/h < 3/4.\n"
        "\n"
        "bytes sent   forward (P-1) KV; backward (P-1) (2Q + 2S) + P Q\n"
        "flops        causal: about P F / 2 on every rank. With a window or documents the\n"
        "             backward pass computes the rank's keys with all queries that see\n"
        "             them, which may differ in number from the forward pass's\n"
        "idle         0; with a window or documents 1 - mean / maximum of the ranks' work\n"
        "buffers      forward 2 KV + fp32 Q + S + Q + S;\n"
        "             backward 6Q + 5S + fp32 Q + KV + fp32 KV\n"
        "restrictions N divisible by 2P\n"
        "windows      With a window or documents, blocks in which no query sees a key are\n"
        "             not computed; every hop is made\n"
        "published    With --published-code the gradients of a block, and the sum of dk,\n"
        "             dv, are kept in e bytes\n",
    .options = LH_OPTIONS(&lh_option_no_overlap, &lh_option_published_code,
                          &lh_option_gradient_wire),
    .placement = LH_PLACE_ZIGZAG,
    .masks = LH_MASKS_ALL,
    .declare = burst_declare,
    .generator = { .steps = lh_ring_steps, .emit = burst_emit },
    .closed = {
        .bytes_sent = burst_bytes_sent,
        .flops = burst_flops,
        .peak_bytes = burst_peak_bytes,
        .idle_unit = lh_zigzag_idle_unit,
        .idle_flops = lh_zigzag_idle_flops,
    },
};
