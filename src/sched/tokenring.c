/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule tokenring, described at the end of this file. Queries use the communication stream
 * of the pass. Results have their own stream, since they have another process group in the public
 * code. Each pass is a Flow: the queries in transit (the pack), results sent and received, and the
 * sum of the rank's own results. Two buffers of each alternate with the steps.
 */
#include "sched/common/ring_shared.h"
#include "sched/schedule.h"

enum {
    TOKENRING_TAG_PACK,
    TOKENRING_TAG_RESULT,
};

/* Results need their own communicator: the owner of a result may be the neighbour to which the
 * queries go. */
enum {
    COMMUNICATOR_RESULTS = 1,
};

enum {
    MARK_RESULT = LH_RING_MARK_END, /* the last exchange of results of an even, of an odd step */
};

/* The tensors of one rank's queries that rotate. */
typedef struct {
    uint16_t slots[4]; /* q; backward also do, lse, delta */
    unsigned count;
} Pack;

/* One pass: the pack, results of this rank's work and of others' work for this rank, and their
 * sum. */
typedef struct {
    Pack own, arrived[2];
    uint16_t result[2], received[2], sum;
    LhKernelId add;
    uint16_t first, end; /* the slots of all buffers */
} Flow;

typedef struct {
    LhRingPlan ring; /* its neighbours and blocks */
    uint8_t results; /* the stream of results */
    Flow fwd, bwd;
    uint16_t bwd_block_dkv, bwd_dkv;
} TokenringPlan;

/* Common properties of the two buffers of a pair. */
typedef struct {
    LhTensorKind kind;
    uint64_t bytes;
    uint32_t element_bytes;
} Like;

static void
add_pair(LhProgram *program, const TokenringPlan *plan, const char *name, const Like *like,
         uint16_t slots[2])
{
    char numbered[16];

    for (unsigned i = 0; i < 2; i++) {
        g_snprintf(numbered, sizeof(numbered), "%s%u", name, i);
        slots[i] = lh_ring_add_buffer(program, &plan->ring, numbered, like->kind, like->bytes,
                                      like->element_bytes);
    }
}

/* Adds the tensor in the rank's slot @own to the pack. */
static void
add_to_pack(LhProgram *program, const TokenringPlan *plan, Flow *flow, const char *name,
            uint16_t own)
{
    const LhSlot *slot = &program->slots[own];
    const Like like = { slot->kind, slot->parts * slot->part_bytes, lh_slot_element_bytes(slot) };
    const unsigned at = flow->own.count++;
    uint16_t slots[2];

    add_pair(program, plan, name, &like, slots);
    flow->own.slots[at] = own;
    for (unsigned i = 0; i < 2; i++) {
        flow->arrived[i].slots[at] = slots[i];
        flow->arrived[i].count = flow->own.count;
    }
}

static void
tokenring_declare_forward(LhProgram *program, TokenringPlan *plan)
{
    const LhPassSizes *z = &plan->ring.sizes;
    const Like result = { LH_TENSOR_OUT, z->q + z->s, z->e };
    Flow *flow = &plan->fwd;

    flow->first = (uint16_t)program->slots_count;
    flow->add = LH_KERNEL_ID_merge_lse;
    add_to_pack(program, plan, flow, "fwd_q", plan->ring.io.q);
    add_pair(program, plan, "fwd_result", &result, flow->result);
    add_pair(program, plan, "fwd_received", &result, flow->received);
    flow->sum = lh_ring_add_buffer(program, &plan->ring, "fwd_out", LH_TENSOR_OUT,
                                   z->q / z->e * 4 + z->s, 4);
    flow->end = (uint16_t)program->slots_count;
}

static void
tokenring_declare_backward(LhProgram *program, TokenringPlan *plan)
{
    const LhRingPlan *ring = &plan->ring;
    const LhPassSizes *z = &ring->sizes;
    const Like result = { LH_TENSOR_DQ, z->dq, z->w };
    Flow *flow = &plan->bwd;

    flow->first = (uint16_t)program->slots_count;
    flow->add = LH_KERNEL_ID_add_to_fp32;
    add_to_pack(program, plan, flow, "bwd_q", ring->io.q);
    add_to_pack(program, plan, flow, "bwd_do", ring->io.dout);
    add_to_pack(program, plan, flow, "bwd_lse", ring->io.lse);
    add_to_pack(program, plan, flow, "bwd_delta",
                lh_ring_add_buffer(program, ring, "bwd_own_delta", LH_TENSOR_DELTA, z->s, 4));
    add_pair(program, plan, "bwd_result", &result, flow->result);
    add_pair(program, plan, "bwd_received", &result, flow->received);
    flow->sum = lh_ring_add_buffer(program, ring, "bwd_dq", LH_TENSOR_DQ, z->q / z->e * 4, 4);
    plan->bwd_block_dkv =
        lh_ring_add_buffer(program, ring, "bwd_block_dkv", LH_TENSOR_DKV, z->kv, z->e);
    plan->bwd_dkv =
        lh_ring_add_buffer(program, ring, "bwd_dkv", LH_TENSOR_DKV, z->kv / z->e * 4, 4);
    flow->end = (uint16_t)program->slots_count;
}

static void
tokenring_declare(LhProgram *program)
{
    const LhProgramParams *p = &program->params;
    const LhPassSizes z = lh_pass_sizes(p, 0);
    LhPassSlots io;
    TokenringPlan *plan = g_new0(TokenringPlan, 1);

    program->plan = plan;
    io = lh_pass_declare(program, &z);
    plan->results = lh_program_add_stream(program, "results", LH_STREAM_COMM);
    lh_ring_init(&plan->ring, program, &io, 1, lh_placement_parts(&program->placement));
    plan->ring.sizes = z;
    lh_ring_set_zigzag(program, &plan->ring);
    if (lh_pass_has(p, LH_PASS_FWD))
        tokenring_declare_forward(program, plan);
    if (lh_pass_has(p, LH_PASS_BWD))
        tokenring_declare_backward(program, plan);
}

/* The parts of @owner's queries that are sent to rank @to. Under a causal mask, ranks after
 * @owner need only the second half-chunk. */
static LhRegion
travelling_parts(const LhRingPlan *ring, uint32_t owner, uint32_t to)
{
    if (ring->causal && to > owner)
        return (LhRegion){ .part = ring->parts / 2, .count = ring->parts / 2 };
    return (LhRegion){ .count = ring->parts };
}

static void
message_pack(LhEmitter *e, bool send, uint32_t peer, const Pack *pack, LhRegion parts)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < pack->count; i++) {
        parts.slot = pack->slots[i];
        bytes += lh_region_bytes(e->program, parts);
    }
    lh_emit_part(e, send, peer, TOKENRING_TAG_PACK, bytes);
    for (unsigned i = 0; i < pack->count; i++)
        lh_emit_region(e, pack->slots[i], parts.part, parts.count);
}

/* Passes the queries of step @s on to the previous rank, and receives those of the next step. */
static void
pass_queries(LhEmitter *e, const TokenringPlan *plan, const Flow *flow, uint32_t s)
{
    const LhRingPlan *ring = &plan->ring;
    const uint32_t before = lh_ring_behind(ring, e->rank, 1);
    const uint32_t next = lh_ring_behind(ring, e->rank, ring->ranks - 1);
    const uint32_t owner = lh_ring_behind(ring, e->rank, (ring->ranks - s) % ring->ranks);
    const uint32_t owner_next = lh_ring_behind(ring, e->rank, ring->ranks - s - 1);

    lh_pass_exchange(e);
    message_pack(e, true, before, s == 0 ? &flow->own : &flow->arrived[(s - 1) % 2],
                 travelling_parts(ring, owner, before));
    message_pack(e, false, next, &flow->arrived[s % 2],
                 travelling_parts(ring, owner_next, e->rank));
}

static void
message_result(LhEmitter *e, bool send, uint32_t peer, uint16_t slot, const LhRingShape *shape)
{
    const LhRegion region = { slot, shape->q_part, shape->q_parts };

    lh_emit_part(e, send, peer, TOKENRING_TAG_RESULT, lh_region_bytes(e->program, region));
    lh_emit_region(e, region.slot, region.part, region.count);
}

/* Sends the result of step @s, if any, to the owner of the queries, and receives the result that
 * the rank @s behind has computed for this rank. */
static void
return_result(LhEmitter *e, const TokenringPlan *plan, const Flow *flow, uint32_t s,
              const LhRingShape *computed)
{
    const LhRingPlan *ring = &plan->ring;
    const uint32_t owner = lh_ring_behind(ring, e->rank, ring->ranks - s);
    const uint32_t helper = lh_ring_behind(ring, e->rank, s);
    uint32_t *mark = &e->marks[MARK_RESULT + s % 2];
    LhRingShape room;
    const LhRingShape *own = lh_ring_block(e->program, ring, e->rank, helper, &room);

    if (computed == NULL && own == NULL)
        return;
    *mark = lh_emit_exchange(e, plan->results);
    lh_emit_last(e)->communicator = COMMUNICATOR_RESULTS;
    lh_emit_after(e, e->marks[LH_MARK_COMPUTE]);
    if (computed != NULL)
        message_result(e, true, owner, flow->result[s % 2], computed);
    if (own != NULL)
        message_result(e, false, helper, flow->received[s % 2], own);
}

static void
add_result(LhEmitter *e, const Flow *flow, uint16_t result, const LhRingShape *shape, bool first)
{
    lh_pass_compute(e, flow->add, first ? &shape->merge_first : &shape->merge);
    lh_emit_operand(e, result, shape->q_part, shape->q_parts);
    lh_emit_operand(e, flow->sum, shape->q_part, shape->q_parts);
}

/* Adds the result of step @s that another rank has computed for this one. */
static void
add_received(LhEmitter *e, const TokenringPlan *plan, const Flow *flow, uint32_t s)
{
    LhRingShape room;
    const LhRingShape *shape = lh_ring_block(e->program, &plan->ring, e->rank,
                                             lh_ring_behind(&plan->ring, e->rank, s), &room);

    if (shape == NULL)
        return;
    add_result(e, flow, flow->received[s % 2], shape, false);
    lh_emit_after(e, e->marks[MARK_RESULT + s % 2]);
}

static void
tokenring_forward_block(LhEmitter *e, const TokenringPlan *plan, const Pack *pack,
                        const LhRingShape *shape, uint16_t result)
{
    lh_pass_compute(e, LH_KERNEL_ID_attention_block, &shape->forward);
    lh_emit_operand(e, pack->slots[0], shape->q_part, shape->q_parts);
    lh_emit_operand(e, plan->ring.io.kv, shape->kv_part, shape->kv_parts);
    lh_emit_operand(e, result, shape->q_part, shape->q_parts);
}

static void
tokenring_backward_block(LhEmitter *e, const TokenringPlan *plan, const Pack *pack,
                         const LhRingShape *shape, uint16_t result)
{
    const uint16_t of_q[] = { pack->slots[0], pack->slots[1], pack->slots[3], pack->slots[2] };

    lh_pass_compute(e, LH_KERNEL_ID_attention_bwd, &shape->backward);
    for (unsigned i = 0; i < G_N_ELEMENTS(of_q); i++)
        lh_emit_operand(e, of_q[i], shape->q_part, shape->q_parts);
    lh_emit_operand(e, plan->ring.io.kv, shape->kv_part, shape->kv_parts);
    lh_emit_operand(e, result, shape->q_part, shape->q_parts);
    lh_emit_operand(e, plan->bwd_block_dkv, shape->kv_part, shape->kv_parts);
}

/* The exchange that the block of step @s waits for: its buffer's previous result must have been
 * sent, and without overlap all results. */
static uint32_t
sent_before(const LhEmitter *e, const TokenringPlan *plan, uint32_t s)
{
    const uint32_t this = e->marks[MARK_RESULT + s % 2],
                   other = e->marks[MARK_RESULT + (s + 1) % 2];

    if (plan->ring.overlap || other == LH_OP_NONE)
        return this;
    return this == LH_OP_NONE ? other : MAX(this, other);
}

/* Computes the block of step @s. */
static void
compute_block(LhEmitter *e, const TokenringPlan *plan, const Flow *flow, uint32_t s,
              const LhRingShape *shape)
{
    const Pack *pack = s == 0 ? &flow->own : &flow->arrived[(s - 1) % 2];
    const uint32_t sent = sent_before(e, plan, s);

    if (e->phase == LH_PHASE_FORWARD) {
        tokenring_forward_block(e, plan, pack, shape, flow->result[s % 2]);
        lh_emit_after(e, sent);
        return;
    }
    tokenring_backward_block(e, plan, pack, shape, flow->result[s % 2]);
    lh_emit_after(e, sent);
    lh_pass_compute(e, LH_KERNEL_ID_add_to_fp32, s == 0 ? &shape->add_dkv_first : &shape->add_dkv);
    lh_emit_operand(e, plan->bwd_block_dkv, shape->kv_part, shape->kv_parts);
    lh_emit_operand(e, plan->bwd_dkv, shape->kv_part, shape->kv_parts);
}

static void
begin_flow(LhEmitter *e, const TokenringPlan *plan, const Flow *flow)
{
    const LhRingPlan *ring = &plan->ring;

    lh_pass_alloc(e, flow->first, flow->end);
    if (e->phase == LH_PHASE_FORWARD)
        return;
    lh_pass_compute(e, LH_KERNEL_ID_delta, &ring->q_rows);
    lh_emit_operand(e, ring->io.dout, 0, ring->parts);
    lh_emit_operand(e, ring->io.o, 0, ring->parts);
    lh_emit_operand(e, flow->own.slots[3], 0, ring->parts);
}

static void
end_flow(LhEmitter *e, const TokenringPlan *plan, const Flow *flow)
{
    const LhRingPlan *ring = &plan->ring;

    if (e->phase == LH_PHASE_FORWARD) {
        lh_pass_compute(e, LH_KERNEL_ID_round_out, &ring->q_rows);
        lh_emit_operand(e, flow->sum, 0, ring->parts);
        lh_emit_operand(e, ring->io.o, 0, ring->parts);
        lh_emit_operand(e, ring->io.lse, 0, ring->parts);
    } else {
        lh_pass_compute(e, LH_KERNEL_ID_cast, &ring->q_rows);
        lh_emit_operand(e, flow->sum, 0, ring->parts);
        lh_emit_operand(e, ring->io.dq, 0, ring->parts);
        lh_pass_compute(e, LH_KERNEL_ID_cast, &ring->kv_rows);
        lh_emit_operand(e, plan->bwd_dkv, 0, ring->parts);
        lh_emit_operand(e, ring->io.dkv, 0, ring->parts);
    }
    /* The last result may still be in flight to its owner. */
    lh_emit_after(e, e->marks[MARK_RESULT + (ring->ranks - 1) % 2]);
    lh_pass_free(e, flow->first, flow->end);
}

static void
emit_step(LhEmitter *e, const TokenringPlan *plan, const Flow *flow, uint32_t s)
{
    const LhRingPlan *ring = &plan->ring;
    const uint32_t owner = lh_ring_behind(ring, e->rank, (ring->ranks - s) % ring->ranks);
    const bool last = s + 1 == ring->ranks;
    LhRingShape room;
    const LhRingShape *shape = lh_ring_block(e->program, ring, owner, e->rank, &room);
    uint32_t arrival = LH_OP_NONE;

    if (s == 0)
        begin_flow(e, plan, flow);
    if (!last) {
        pass_queries(e, plan, flow, s);
        arrival = e->marks[LH_MARK_EXCHANGE];
    }
    if (!ring->overlap)
        lh_pass_wait(e, arrival);
    if (shape != NULL)
        compute_block(e, plan, flow, s, shape);
    if (s == 0) {
        g_assert(shape != NULL); /* every query sees itself */
        add_result(e, flow, flow->result[0], shape, true);
    } else {
        return_result(e, plan, flow, s, shape);
    }
    if (s > 1)
        add_received(e, plan, flow, s - 1);
    lh_pass_wait(e, arrival);
    if (!last)
        return;
    add_received(e, plan, flow, s);
    end_flow(e, plan, flow);
}

static void
tokenring_emit(LhEmitter *e, uint32_t step)
{
    const TokenringPlan *plan = e->program->plan;
    const uint32_t s = lh_pass_enter(e, step, plan->ring.ranks);

    emit_step(e, plan, e->phase == LH_PHASE_FORWARD ? &plan->fwd : &plan->bwd, s);
}

/* Half-chunks of queries that a rank passes on: both of each owner after the receiving rank, one
 * of each other owner. */
static uint64_t
halves_passed(const LhProgramParams *p, uint32_t rank)
{
    const uint64_t before = rank == 0 ? p->ranks - 1 : rank - 1;

    return p->mask.causal ? 2 * (p->ranks - 1 - before) + before : 2 * ((uint64_t)p->ranks - 1);
}

/* Half-chunks of results that a rank returns: one for each half-chunk of others' queries that
 * sees its keys. */
static uint64_t
halves_returned(const LhProgramParams *p, uint32_t rank)
{
    const LhPlacement placement = { LH_PLACE_ZIGZAG, p->ranks, p->attention.seq_length, 1 };
    uint64_t halves = 0;

    if (lh_mask_is_plain(&p->mask))
        return p->mask.causal ? 2 * (p->ranks - 1 - (uint64_t)rank) + rank
                              : 2 * ((uint64_t)p->ranks - 1);
    for (uint32_t id = 0; id < 2 * p->ranks; id++) {
        const LhSegment q = lh_placement_segment(&placement, id);
        const LhSegment first = lh_placement_segment(&placement, rank);
        const LhSegment second =
            lh_placement_segment(&placement, lh_placement_segment_id(&placement, rank, 1));
        const bool own = MIN(id, 2 * p->ranks - 1 - id) == rank;

        if (!own && lh_mask_pairs(&p->mask, q, first) + lh_mask_pairs(&p->mask, q, second) > 0)
            halves++;
    }
    return halves;
}

static uint64_t
tokenring_bytes_sent(const LhProgramParams *p, uint32_t rank)
{
    const LhPassSizes z = lh_pass_sizes(p, 0);
    const uint64_t passed = halves_passed(p, rank), returned = halves_returned(p, rank);
    uint64_t bytes = 0;

    if (lh_pass_has(p, LH_PASS_FWD))
        bytes += passed * (z.q / 2) + returned * ((z.q + z.s) / 2);
    if (lh_pass_has(p, LH_PASS_BWD))
        bytes += passed * (z.q + z.s) + returned * (z.dq / 2);
    return bytes;
}

/* A rank computes its own keys with all queries. */
static uint64_t
tokenring_flops(const LhProgramParams *p, uint32_t rank)
{
    if (lh_mask_is_plain(&p->mask))
        return lh_zigzag_flops(p, rank);
    return lh_pass_flops(p, lh_pass_rank_key_pairs(p, LH_PLACE_ZIGZAG, rank));
}

/* Forward: two q, two results sent, two received, and the sum. Backward: as many packs and dq,
 * the rank's own delta, dk, dv of a block, and their sum. */
static uint64_t
tokenring_peak_bytes(const LhProgramParams *p, uint32_t rank)
{
    const LhPassSizes z = lh_pass_sizes(p, 0);
    const uint64_t q32 = z.q / z.e * 4;

    (void)rank;
    return lh_pass_peak_bytes(p, 6 * z.q + 5 * z.s + q32,
                              4 * z.q + 5 * z.s + 4 * z.dq + q32 + z.kv + z.kv / z.e * 4);
}

static uint64_t
tokenring_blocks(const LhProgramParams *p, uint32_t rank)
{
    return lh_pass_rank_key_blocks(p, LH_PLACE_ZIGZAG, rank);
}

static double
tokenring_idle_unit(const LhProgramParams *p)
{
    return lh_mask_is_plain(&p->mask) ? 0 : lh_pass_imbalance(p, tokenring_blocks);
}

static double
tokenring_idle_flops(const LhProgramParams *p)
{
    return lh_mask_is_plain(&p->mask) ? 0 : lh_pass_imbalance(p, tokenring_flops);
}

const LhSchedule lh_schedule_tokenring = {
    .name = "tokenring",
    .summary = "k and v stay, q rotates, and results go straight to its owner; zigzag halves",
    .details =
        "TokenRing as in ACA-Lab-SJTU/token-ring, on zigzag half-chunks. k and v stay\n"
        "where they are. In step s rank r works on q of rank r+s and passes it on to rank\n"
        "r-1. The result (o, lse) goes straight to rank r+s, which merges it in fp32;\n"
        "results have their own stream, so that both directions of a link are used. The\n"
        "last result is exposed. Under a causal mask the ranks after the owner of q need\n"
        "only its second half-chunk: only that half is sent to them and its results\n"
        "return. The backward pass, which the public code lacks, works in the same way\n"
        "with q, do, lse and delta in place of q, and dq in place of o and lse.\n"
        "\n"
        "bytes sent   With b = (r-1) mod P, rank r passes on x = 2 (P-1-b) + b half-chunks\n"
        "             of queries and returns y = 2 (P-1-r) + r half-chunks of results:\n"
        "             forward x Q/2 + y (Q+S)/2, backward x (Q+S) + y Q/2. The mean of x\n"
        "             and y is 3/2 (P-1). Full mask: x = y = 2 (P-1)\n"
        "flops        causal: about P F / 2 on every rank; with a window or documents the\n"
        "             pairs of the rank's keys with all queries\n"
        "idle         0; with a window or documents 1 - mean / maximum of the ranks' work\n"
        "buffers      forward 6Q + 5S + fp32 Q;\n"
        "             backward 8Q + 5S + fp32 Q + KV + fp32 KV\n"
        "restrictions N divisible by 2P\n"
        "windows      With a window or documents, blocks in which no query sees a key are\n"
        "             not computed and return nothing; q makes every hop\n",
    .options = LH_OPTIONS(&lh_option_no_overlap, &lh_option_gradient_wire),
    .placement = LH_PLACE_ZIGZAG,
    .masks = LH_MASKS_ALL,
    .declare = tokenring_declare,
    .generator = { .steps = lh_ring_steps, .emit = tokenring_emit },
    .closed = {
        .bytes_sent = tokenring_bytes_sent,
        .flops = tokenring_flops,
        .peak_bytes = tokenring_peak_bytes,
        .idle_unit = tokenring_idle_unit,
        .idle_flops = tokenring_idle_flops,
    },
};
