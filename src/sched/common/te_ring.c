/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of ops follows attn_forward_func_with_cp and its backward in TransformerEngine.
 *
 * Forward: step i runs on compute stream i % 2. It waits for k, v of step i, posts the messages
 * that bring those of step i+1, and computes. Then the lse of step i-1 is merged on the other
 * stream. P more steps rescale the kept outputs and add them up in fp32, on the first stream.
 *
 * Backward: the buffers of k, v alternate between saved_kv, left by the forward pass, and bwd_kv.
 *
 * Not modelled: fp8 with its all-to-all of dk, dv, and events of CUDA graphs.
 */
#include "sched/common/te_ring.h"

#define TE_RING_TAG 0 /* one tag is enough: messages of one direction keep their order */

static LhRegion
whole_slot(const LhTeRing *te, uint16_t slot)
{
    return (LhRegion){ .slot = slot, .count = te->ring.parts };
}

/* Declares the outputs of all steps, one after the other. Under a causal mask, later steps may
 * have only a half-chunk. */
static void
declare_outputs(LhProgram *program, LhTeRing *te)
{
    const LhRingPlan *ring = &te->ring;
    const uint64_t part_bytes = (ring->sizes.q + ring->sizes.s) / ring->parts;

    te->out = lh_pass_add_slot(program, "fwd_out", LH_TENSOR_OUT, LH_SLOT_TEMP,
                               ring->ranks * ring->parts, part_bytes, ring->sizes.e);
    if (ring->causal && ring->ranks > 1)
        te->half =
            lh_pass_add_slot(program, "fwd_half", LH_TENSOR_OUT, LH_SLOT_TEMP,
                             (ring->ranks - 1) * (ring->parts / 2), part_bytes, ring->sizes.e);
}

static void
te_ring_declare_forward(LhProgram *program, LhTeRing *te)
{
    const LhRingPlan *ring = &te->ring;
    const LhPassSizes *z = &ring->sizes;

    te->fwd_first = (uint16_t)program->slots_count;
    te->fwd_kv = lh_pass_add_slot(program, "fwd_kv", LH_TENSOR_KV, LH_SLOT_TEMP,
                                  ring->parts * (ring->ranks - 1), z->kv / ring->parts, z->e);
    te->fwd_sum = lh_ring_add_buffer(program, ring, "fwd_sum", LH_TENSOR_O, z->q / z->e * 4, 4);
    te->fwd_end = (uint16_t)program->slots_count;
    declare_outputs(program, te);
}

static void
te_ring_declare_backward(LhProgram *program, LhTeRing *te)
{
    const LhRingPlan *ring = &te->ring;
    const LhPassSizes *z = &ring->sizes;
    /* Whether dk, dv of a block are kept in fp32, so that they are rounded only once, when they
     * are added to those received. */
    const bool wide = !te->published && z->w <= z->e && z->e < 4;

    te->bwd_first = (uint16_t)program->slots_count;
    te->bwd_kv = lh_ring_add_buffer(program, ring, "bwd_kv", LH_TENSOR_KV, z->kv, z->e);
    te->bwd_dkv[0] = lh_ring_add_buffer(program, ring, "bwd_dkv0", LH_TENSOR_DKV, z->dkv, z->w);
    te->bwd_dkv[1] = lh_ring_add_buffer(program, ring, "bwd_dkv1", LH_TENSOR_DKV, z->dkv, z->w);
    te->bwd_block_dq = lh_ring_add_buffer(program, ring, "bwd_block_dq", LH_TENSOR_DQ, z->q, z->e);
    te->bwd_block_dkv = lh_ring_add_buffer(program, ring, "bwd_block_dkv", LH_TENSOR_DKV,
                                           wide ? z->kv / z->e * 4 : z->kv, wide ? 4 : z->e);
    te->bwd_dq = ring->io.dq;
    if (!te->published)
        te->bwd_dq = lh_ring_add_buffer(program, ring, "bwd_dq", LH_TENSOR_DQ, z->q / z->e * 4, 4);
    te->bwd_end = (uint16_t)program->slots_count;
    te->add_dq = te->published ? LH_KERNEL_ID_add : LH_KERNEL_ID_add_to_fp32;
    te->add_dkv = wide          ? LH_KERNEL_ID_add_from_fp32
                  : z->w > z->e ? LH_KERNEL_ID_add_to_fp32
                                : LH_KERNEL_ID_add;
    te->end_dkv = z->w > z->e ? LH_KERNEL_ID_cast : LH_KERNEL_ID_copy;
}

void
lh_te_ring_declare(LhProgram *program, LhTeRing *te, const LhPassSlots *io, uint32_t stride,
                   uint32_t parts)
{
    const LhProgramParams *p = &program->params;

    lh_ring_init(&te->ring, program, io, stride, parts);
    te->ring.sizes = lh_pass_sizes(p, 0);
    te->published = lh_pass_published(p);
    lh_ring_set_zigzag(program, &te->ring);
    te->second = lh_program_add_stream(program, "compute2", LH_STREAM_COMPUTE);
    te->receive = lh_program_add_stream(program, "comm_recv", LH_STREAM_COMM);
    te->saved_kv = lh_ring_add_buffer(program, &te->ring, "saved_kv", LH_TENSOR_KV,
                                      te->ring.sizes.kv, te->ring.sizes.e);
    if (lh_pass_has(p, LH_PASS_FWD))
        te_ring_declare_forward(program, te);
    if (lh_pass_has(p, LH_PASS_BWD))
        te_ring_declare_backward(program, te);
}

uint32_t
lh_te_ring_forward_steps(const LhTeRing *te)
{
    return 2 * te->ring.ranks;
}

uint32_t
lh_te_ring_backward_steps(const LhTeRing *te)
{
    return te->ring.ranks;
}

/* Appends an op to the first or the second compute stream. */
static void
compute_on(LhEmitter *e, const LhTeRing *te, bool second, LhKernelId kernel,
           const LhKernelArgs *args)
{
    if (second)
        e->marks[LH_TE_MARK_SECOND] = lh_emit_compute(e, te->second, kernel, args);
    else
        lh_pass_compute(e, kernel, args);
}

/* Makes the compute op appended last wait for the messages posted last. */
static void
after_messages(LhEmitter *e)
{
    lh_emit_after(e, e->marks[LH_TE_MARK_SEND]);
    lh_emit_after(e, e->marks[LH_TE_MARK_RECEIVE]);
}

static void
message_regions(LhEmitter *e, bool send, uint32_t peer, const LhRegion *regions, unsigned count)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < count; i++)
        bytes += lh_region_bytes(e->program, regions[i]);
    lh_emit_part(e, send, peer, TE_RING_TAG, bytes);
    for (unsigned i = 0; i < count; i++)
        lh_emit_region(e, regions[i].slot, regions[i].part, regions[i].count);
}

/* One hop: the peers, and the regions sent and received. */
typedef struct {
    uint32_t to, from;
    LhRegion send[2], receive[2];
    unsigned count;
} Hop;

/* Dependencies of the messages of a hop: both follow the calls on the compute streams, each
 * follows the other one of the previous hop. */
typedef struct {
    uint32_t queued, other, sent, received;
} Before;

static void
post_send(LhEmitter *e, const Hop *hop, const Before *before)
{
    e->marks[LH_TE_MARK_SEND] = lh_emit_exchange(e, LH_PASS_STREAM_COMM);
    lh_emit_after(e, before->queued);
    lh_emit_after(e, before->other);
    lh_emit_after(e, before->received);
    message_regions(e, true, hop->to, hop->send, hop->count);
}

static void
post_receive(LhEmitter *e, const LhTeRing *te, const Hop *hop, const Before *before)
{
    e->marks[LH_TE_MARK_RECEIVE] = lh_emit_exchange(e, te->receive);
    lh_emit_after(e, before->queued);
    lh_emit_after(e, before->other);
    lh_emit_after(e, before->sent);
    message_regions(e, false, hop->from, hop->receive, hop->count);
}

/*
 * Posts both messages of a hop from a compute stream that has waited for those before. They are
 * independent of each other. Between two ranks, which have one communicator for both directions,
 * they are one group. Otherwise every other rank of the ring posts its receive first, so that a
 * device that runs one op at a time can run them. Without overlap they also wait for the other
 * compute stream.
 */
static void
post_hop(LhEmitter *e, const LhTeRing *te, bool second, const Hop *hop)
{
    uint32_t *marks = e->marks;
    const Before before = {
        .queued = marks[second ? LH_TE_MARK_SECOND : LH_MARK_COMPUTE],
        .other =
            te->ring.overlap ? LH_OP_NONE : marks[second ? LH_MARK_COMPUTE : LH_TE_MARK_SECOND],
        .sent = marks[LH_TE_MARK_SEND],
        .received = marks[LH_TE_MARK_RECEIVE],
    };

    if (te->ring.ranks == 2) {
        post_send(e, hop, &before);
        message_regions(e, false, hop->from, hop->receive, hop->count);
        marks[LH_TE_MARK_RECEIVE] = marks[LH_TE_MARK_SEND];
    } else if (lh_ring_position(&te->ring, e->rank) % 2 == 0) {
        post_send(e, hop, &before);
        post_receive(e, te, hop, &before);
    } else {
        post_receive(e, te, hop, &before);
        post_send(e, hop, &before);
    }
}

/* The k, v of step @i of the forward pass. */
static LhRegion
forward_kv(const LhTeRing *te, uint32_t i)
{
    const uint32_t parts = te->ring.parts;

    if (i == te->ring.ranks - 1)
        return whole_slot(te, te->saved_kv);
    return (LhRegion){ .slot = te->fwd_kv, .part = i * parts, .count = parts };
}

/* The block of step @i of the forward pass, and the region of its output. */
typedef struct {
    const LhRingShape *shape;
    LhRegion out;
} Block;

static Block
te_ring_forward_block(const LhEmitter *e, const LhTeRing *te, uint32_t i)
{
    const LhRingPlan *ring = &te->ring;
    const uint32_t position = lh_ring_position(ring, e->rank);
    const LhRingShape *shape = ring->block(ring, position, lh_ring_behind(ring, position, i));
    const bool half = shape->q_parts < ring->parts;

    return (Block){ shape, half ? (LhRegion){ te->half, (i - 1) * shape->q_parts, shape->q_parts }
                                : (LhRegion){ te->out, i * ring->parts, ring->parts } };
}

static void
te_ring_begin_forward(LhEmitter *e, const LhTeRing *te)
{
    lh_pass_alloc(e, te->fwd_first, te->fwd_end);
    lh_emit_alloc(e, te->saved_kv);
    /* TransformerEngine copies k and v next to each other into one buffer and sends from there. */
    lh_pass_compute(e, LH_KERNEL_ID_copy, &te->ring.kv_rows);
    lh_emit_operand(e, te->ring.io.kv, 0, te->ring.parts);
    lh_emit_operand(e, te->fwd_kv, 0, te->ring.parts);
}

static void
compute_step(LhEmitter *e, const LhTeRing *te, uint32_t i)
{
    const LhRingPlan *ring = &te->ring;
    const uint32_t sent = e->marks[LH_TE_MARK_SEND];
    const uint32_t received = e->marks[LH_TE_MARK_RECEIVE];
    const bool second = i % 2 != 0;
    const LhRegion kv = forward_kv(te, i);
    const Block block = te_ring_forward_block(e, te, i);

    if (i + 1 < ring->ranks) {
        const Hop hop = { .to = lh_ring_rank_behind(ring, e->rank, ring->ranks - 1),
                          .from = lh_ring_rank_behind(ring, e->rank, 1),
                          .send = { kv },
                          .receive = { forward_kv(te, i + 1) },
                          .count = 1 };

        post_hop(e, te, second, &hop);
    }
    lh_emit_alloc_region(e, block.out);
    compute_on(e, te, second, LH_KERNEL_ID_attention_block, &block.shape->forward);
    lh_emit_operand(e, ring->io.q, block.shape->q_part, block.shape->q_parts);
    lh_emit_operand(e, kv.slot, kv.part + block.shape->kv_part, block.shape->kv_parts);
    lh_emit_operand(e, block.out.slot, block.out.part, block.out.count);
    if (i > 0) {
        lh_emit_after(e, sent);
        lh_emit_after(e, received);
    }
    if (!ring->overlap)
        after_messages(e);
}

/* Merges the lse of step @i into the final one. Merges wait for each other, since they alternate
 * between two streams. */
static void
merge_step(LhEmitter *e, const LhTeRing *te, uint32_t i)
{
    uint32_t *marks = e->marks;
    const Block block = te_ring_forward_block(e, te, i);
    const uint32_t before = marks[LH_TE_MARK_MERGE];
    const bool second = i % 2 != 0;

    compute_on(e, te, second, LH_KERNEL_ID_merge_stat,
               i == 0 ? &block.shape->merge_first : &block.shape->merge);
    lh_emit_operand(e, block.out.slot, block.out.part, block.out.count);
    lh_emit_operand(e, te->ring.io.lse, block.shape->q_part, block.shape->q_parts);
    lh_emit_after(e, before);
    marks[LH_TE_MARK_MERGE] = lh_emit_last(e)->id;
}

/* Adds the output of step @i to the sum on the first stream, which has waited for the second. */
static void
correct_step(LhEmitter *e, const LhTeRing *te, uint32_t i)
{
    const LhRingPlan *ring = &te->ring;
    const Block block = te_ring_forward_block(e, te, i);

    if (i == 0)
        lh_pass_wait(e, e->marks[LH_TE_MARK_SECOND]);
    lh_pass_compute(e, LH_KERNEL_ID_weigh_out,
                    i == 0 ? &block.shape->merge_first : &block.shape->merge);
    lh_emit_operand(e, block.out.slot, block.out.part, block.out.count);
    lh_emit_operand(e, ring->io.lse, block.shape->q_part, block.shape->q_parts);
    lh_emit_operand(e, te->fwd_sum, block.shape->q_part, block.shape->q_parts);
    lh_emit_free_region(e, block.out);
    if (i + 1 < ring->ranks)
        return;
    lh_pass_compute(e, LH_KERNEL_ID_cast, &ring->q_rows);
    lh_emit_operand(e, te->fwd_sum, 0, ring->parts);
    lh_emit_operand(e, ring->io.o, 0, ring->parts);
    lh_pass_free(e, te->fwd_first, te->fwd_end);
    if (!lh_pass_has(&e->program->params, LH_PASS_BWD))
        lh_emit_free(e, te->saved_kv);
}

void
lh_te_ring_forward(LhEmitter *e, const LhTeRing *te, uint32_t s)
{
    const uint32_t ranks = te->ring.ranks;

    if (s == 0)
        te_ring_begin_forward(e, te);
    if (s < ranks)
        compute_step(e, te, s);
    if (s > 0 && s <= ranks)
        merge_step(e, te, s - 1);
    if (s >= ranks)
        correct_step(e, te, s - ranks);
}

/* Posts the hop of step @i of the backward pass: k, v of the step, except in the last one, and
 * dk, dv of the step before, except in the first one. */
static void
post_backward(LhEmitter *e, const LhTeRing *te, uint32_t i)
{
    const LhRingPlan *ring = &te->ring;
    const uint16_t kv[] = { te->saved_kv, te->bwd_kv };
    Hop hop = { .to = lh_ring_rank_behind(ring, e->rank, 1),
                .from = lh_ring_rank_behind(ring, e->rank, ring->ranks - 1) };

    if (i + 1 < ring->ranks) {
        hop.send[hop.count] = whole_slot(te, kv[i % 2]);
        hop.receive[hop.count++] = whole_slot(te, kv[(i + 1) % 2]);
    }
    if (i > 0) {
        hop.send[hop.count] = whole_slot(te, te->bwd_dkv[i % 2]);
        hop.receive[hop.count++] = whole_slot(te, te->bwd_dkv[(i + 1) % 2]);
    }
    post_hop(e, te, false, &hop);
}

static void
te_ring_begin_backward(LhEmitter *e, const LhTeRing *te)
{
    const LhRingPlan *ring = &te->ring;
    const Hop hop = { .to = lh_ring_rank_behind(ring, e->rank, 1),
                      .from = lh_ring_rank_behind(ring, e->rank, ring->ranks - 1),
                      .send = { whole_slot(te, ring->io.kv) },
                      .receive = { whole_slot(te, te->saved_kv) },
                      .count = 1 };

    lh_pass_alloc(e, te->bwd_first, te->bwd_end);
    if (lh_pass_has(&e->program->params, LH_PASS_FWD))
        return;
    lh_emit_alloc(e, te->saved_kv);
    post_hop(e, te, false, &hop);
}

static void
add_to_region(LhEmitter *e, LhKernelId kernel, const LhKernelArgs *args, uint16_t source,
              LhRegion target)
{
    lh_pass_compute(e, kernel, args);
    lh_emit_operand(e, source, target.part, target.count);
    lh_emit_operand(e, target.slot, target.part, target.count);
}

/* Zeroes the parts of the sums that the first block of the backward pass, which is not the
 * diagonal, does not write. */
static void
zero_rest(LhEmitter *e, const LhTeRing *te, LhRegion of_dq, LhRegion of_dkv)
{
    const LhProgramParams *p = &e->program->params;
    const uint32_t half = te->ring.parts / 2;
    const uint64_t rows = half * te->ring.part_rows;
    LhKernelArgs args;

    if (of_dq.count == half) {
        args = lh_pass_slice_args(e->program, lh_pass_q_args(p, rows));
        lh_pass_compute(e, LH_KERNEL_ID_zero, &args);
        lh_emit_operand(e, of_dq.slot, half - of_dq.part, half);
    }
    if (of_dkv.count == half) {
        args = lh_pass_slice_args(e->program, lh_pass_kv_args(p, rows));
        lh_pass_compute(e, LH_KERNEL_ID_zero, &args);
        lh_emit_operand(e, of_dkv.slot, half - of_dkv.part, half);
    }
}

static void
te_ring_end_backward(LhEmitter *e, const LhTeRing *te)
{
    const LhRingPlan *ring = &te->ring;

    if (!te->published)
        add_to_region(e, LH_KERNEL_ID_cast, &ring->q_rows, te->bwd_dq, whole_slot(te, ring->io.dq));
    add_to_region(e, te->end_dkv, &ring->kv_rows, te->bwd_dkv[ring->ranks % 2],
                  whole_slot(te, ring->io.dkv));
    lh_pass_free(e, te->bwd_first, te->bwd_end);
    lh_emit_free(e, te->saved_kv);
}

void
lh_te_ring_backward(LhEmitter *e, const LhTeRing *te, uint32_t s)
{
    const LhRingPlan *ring = &te->ring;
    const uint16_t of_q[] = { ring->io.q, ring->io.dout, ring->io.o, ring->io.lse };
    const uint32_t position = lh_ring_position(ring, e->rank);
    const uint32_t owner = lh_ring_behind(ring, position, ring->ranks - 1 - s);
    const LhRingShape *shape = ring->block(ring, position, owner);
    const LhRegion of_dq = { te->bwd_dq, shape->q_part, shape->q_parts };
    const LhRegion of_dkv = { te->bwd_dkv[(s + 1) % 2], shape->kv_part, shape->kv_parts };
    uint32_t sent, received;

    if (s == 0)
        te_ring_begin_backward(e, te);
    sent = e->marks[LH_TE_MARK_SEND];
    received = e->marks[LH_TE_MARK_RECEIVE];
    post_backward(e, te, s);
    lh_pass_compute(e, LH_KERNEL_ID_attention_bwd_o, &shape->backward);
    lh_emit_after(e, sent);
    lh_emit_after(e, received);
    if (!ring->overlap)
        after_messages(e);
    for (unsigned i = 0; i < G_N_ELEMENTS(of_q); i++)
        lh_emit_operand(e, of_q[i], shape->q_part, shape->q_parts);
    lh_emit_operand(e, s % 2 == 0 ? te->saved_kv : te->bwd_kv, shape->kv_part, shape->kv_parts);
    lh_emit_operand(e, te->bwd_block_dq, shape->q_part, shape->q_parts);
    lh_emit_operand(e, te->bwd_block_dkv, shape->kv_part, shape->kv_parts);
    if (s == 0)
        zero_rest(e, te, of_dq, of_dkv);
    add_to_region(e, te->add_dq, s == 0 ? &shape->add_dq_first : &shape->add_dq, te->bwd_block_dq,
                  of_dq);
    add_to_region(e, te->add_dkv, s == 0 ? &shape->add_dkv_first : &shape->add_dkv,
                  te->bwd_block_dkv, of_dkv);
    if (s > 0)
        after_messages(e);
    if (s + 1 == ring->ranks)
        te_ring_end_backward(e, te);
}

/* Forward: R-1 hops of k, v. Backward: as many of k, v and of dk, dv; a backward pass alone has
 * one more of k, v. */
uint64_t
lh_te_ring_bytes_sent(const LhProgramParams *p, const LhPassSizes *z, uint32_t ranks)
{
    const uint64_t hops = ranks - 1;
    uint64_t bytes = 0;

    if (lh_pass_has(p, LH_PASS_FWD))
        bytes += hops * z->kv;
    if (lh_pass_has(p, LH_PASS_BWD))
        bytes += hops * (z->kv + z->dkv);
    return bytes + (p->pass == LH_PASS_BWD ? z->kv : 0);
}

/* k, v and output, with lse, of all R steps, and the fp32 sum of o. Under a causal mask the
 * steps after the rank's position have half an output. */
uint64_t
lh_te_ring_forward_buffers(const LhProgramParams *p, const LhPassSizes *z, uint32_t ranks,
                           uint32_t position)
{
    const uint64_t halves = p->mask.causal ? ranks + position + 1 : 2 * (uint64_t)ranks;

    return ranks * z->kv + halves * ((z->q + z->s) / 2) + z->q / z->e * 4;
}

/* Two of k, v, two of dk, dv, the gradients of a block, and the fp32 sum of dq. If dk, dv are
 * sent in 16 bits, those of a block are kept in fp32 until they are added. The public code has
 * neither in fp32. */
uint64_t
lh_te_ring_backward_buffers(const LhProgramParams *p, const LhPassSizes *z)
{
    const bool wide = !lh_pass_published(p) && z->w <= z->e;

    return 2 * z->kv + 2 * z->dkv + z->q + (wide ? z->kv / z->e * 4 : z->kv) +
           (lh_pass_published(p) ? 0 : z->q / z->e * 4);
}
