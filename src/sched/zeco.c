/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule zeco, described at the end of this file. Heads are split into K slices, each of
 * which is a chain of its own. The exchange that receives slice k also sends slice k-1, to which
 * the rank has added its own state meanwhile. Additions run on their own stream (scan).
 */
#include "sched/common/linear_shared.h"
#include "sched/schedule.h"

#include <inttypes.h>

#define BLOCKS_MAX 64
#define BLOCKS_DEFAULT 8

static const LhOption scan_blocks = {
    .name = "scan_blocks",
    .category = LH_ABOUT_SCHEDULE_WORK,
    .type = LH_OPTION_COUNT,
    .help = "Number of slices in which the states of linear attention are sent. Must divide the "
            "query groups; at most 64. Default: the largest divisor up to 8.",
    .value = lh_option_one_and_two,
};

typedef struct {
    LhLinearPass l;
    bool overlap;
    uint8_t scan; /* the stream that adds slices */
    LhLinearChain chain;
} ZecoPlan;

static uint32_t
blocks_of(const LhProgramParams *p)
{
    const uint32_t groups = p->attention.groups;
    uint32_t blocks = MIN(groups, BLOCKS_DEFAULT);

    if (lh_option_is_set(p, &scan_blocks))
        return lh_option_first(p, &scan_blocks);
    while (groups % blocks != 0)
        blocks--;
    return blocks;
}

static bool
zeco_check(const LhProgramParams *p, GError **error)
{
    const uint32_t groups = p->attention.groups, wanted = blocks_of(p);
    g_autofree char *near = NULL;
    uint32_t below, above;

    if (!lh_linear_check(p, error))
        return false;
    if (wanted <= BLOCKS_MAX && groups % wanted == 0)
        return true;
    lh_divisors_near(groups, wanted, BLOCKS_MAX, &below, &above);
    near = lh_near_text(below, above);
    return lh_program_refuse(error,
                             "%" PRIu32 " scan blocks do not divide %" PRIu32
                             " query groups (states are cut by heads), at most %d; nearest legal "
                             "numbers of blocks: %s",
                             wanted, groups, BLOCKS_MAX, near);
}

static void
zeco_declare(LhProgram *program)
{
    const LhProgramParams *p = &program->params;
    ZecoPlan *plan = g_new0(ZecoPlan, 1);

    program->plan = plan;
    plan->l = lh_linear_declare(program, blocks_of(p));
    plan->overlap = lh_pass_overlaps(p);
    plan->scan = lh_program_add_stream(program, "scan", LH_STREAM_COMPUTE);
    plan->chain = lh_linear_declare_chain(program, &plan->l);
}

/* The chain of states, to higher ranks, or that of gradients, to lower ones. */
typedef struct {
    bool down;
    uint16_t in, out, tag;
    uint32_t arrivals[BLOCKS_MAX]; /* the exchange that brings each slice, or LH_OP_NONE */
    uint32_t end;                  /* the last exchange */
} Chain;

static bool
chain_receives(const LhEmitter *e, const ZecoPlan *plan, const Chain *c)
{
    return c->down ? e->rank < plan->l.ranks - 1 : e->rank > 0;
}

static bool
chain_sends(const LhEmitter *e, const ZecoPlan *plan, const Chain *c)
{
    return c->down ? e->rank > 0 : e->rank < plan->l.ranks - 1;
}

/* Posts the exchange that receives slice @k and sends slice @k - 1, which op @ready has
 * completed. Both form one group. */
static uint32_t
exchange_slice(LhEmitter *e, const ZecoPlan *plan, const Chain *c, uint32_t k, uint32_t ready)
{
    const bool receives = chain_receives(e, plan, c) && k < plan->l.slices;
    const bool sends = chain_sends(e, plan, c) && k > 0;
    const uint64_t bytes = e->program->slots[c->out].part_bytes;
    uint32_t id;

    if (!receives && !sends)
        return LH_OP_NONE;
    id = lh_emit_exchange(e, LH_PASS_STREAM_COMM);
    if (sends) {
        lh_emit_after(e, ready);
        lh_emit_part(e, true, c->down ? e->rank - 1 : e->rank + 1, c->tag, bytes);
        lh_emit_region(e, c->out, k - 1, 1);
    }
    if (receives) {
        lh_emit_part(e, false, c->down ? e->rank + 1 : e->rank - 1, c->tag, bytes);
        lh_emit_region(e, c->in, k, 1);
    }
    return id;
}

/* Adds the received slice @k to the rank's own slice, computed by op @own. */
static uint32_t
add_arrived(LhEmitter *e, const ZecoPlan *plan, const Chain *c, uint32_t k, uint32_t own)
{
    const uint32_t id = lh_emit_compute(e, plan->scan, LH_KERNEL_ID_linear_carry,
                                        lh_linear_carry_args(e, &plan->l, c->out));

    lh_emit_operand(e, c->in, k, 1);
    lh_emit_operand(e, c->out, k, 1);
    lh_emit_after(e, own);
    lh_emit_after(e, c->arrivals[k]);
    return id;
}

/* Queues the rank's own slices first, so that no slice of the chain waits for intra. Without
 * overlap the chain starts when all queued compute has ended. */
static void
emit_chain(LhEmitter *e, const ZecoPlan *plan, Chain *c)
{
    const bool receives = chain_receives(e, plan, c), sends = chain_sends(e, plan, c);
    uint32_t own[BLOCKS_MAX], ready = LH_OP_NONE;

    for (uint32_t k = 0; sends && k < plan->l.slices; k++) {
        if (c->down)
            lh_linear_own_dstate(e, &plan->l, k, c->out);
        else
            lh_linear_own_state(e, &plan->l, k, c->out);
        own[k] = e->marks[LH_MARK_COMPUTE];
    }
    for (uint32_t k = 0; k <= plan->l.slices; k++) {
        const uint32_t id = exchange_slice(e, plan, c, k, ready);

        if (id != LH_OP_NONE && !plan->overlap)
            lh_emit_after(e, e->marks[LH_MARK_COMPUTE]);
        if (id != LH_OP_NONE)
            c->end = id;
        if (k == plan->l.slices)
            break;
        c->arrivals[k] = id;
        if (sends)
            ready = receives ? add_arrived(e, plan, c, k, own[k]) : own[k];
    }
}

static void
zeco_forward(LhEmitter *e, const ZecoPlan *plan)
{
    const LhLinearPass *l = &plan->l;
    Chain chain = { .in = l->before, .out = plan->chain.fwd_out, .tag = LH_LINEAR_TAG_STATE };

    lh_pass_alloc(e, plan->chain.fwd_first, plan->chain.fwd_end);
    emit_chain(e, plan, &chain);
    if (!plan->overlap)
        lh_pass_wait(e, chain.end);
    for (uint32_t k = 0; k < l->slices; k++)
        lh_linear_intra(e, l, k);
    for (uint32_t k = 0; e->rank > 0 && k < l->slices; k++) {
        lh_pass_wait(e, chain.arrivals[k]);
        lh_linear_inter(e, l, k, l->before);
    }
    lh_pass_free(e, plan->chain.fwd_first, plan->chain.fwd_end);
}

static void
zeco_backward(LhEmitter *e, const ZecoPlan *plan)
{
    const LhLinearPass *l = &plan->l;
    const bool again = lh_linear_recomputes(&e->program->params);
    Chain states = { .in = plan->chain.again_in,
                     .out = plan->chain.again_out,
                     .tag = LH_LINEAR_TAG_STATE };
    Chain gradients = { .down = true,
                        .in = plan->chain.bwd_in,
                        .out = plan->chain.bwd_out,
                        .tag = LH_LINEAR_TAG_DSTATE };

    lh_pass_alloc(e, plan->chain.bwd_first, plan->chain.bwd_end);
    if (again)
        emit_chain(e, plan, &states);
    emit_chain(e, plan, &gradients);
    if (!plan->overlap)
        lh_pass_wait(e, gradients.end);
    for (uint32_t k = 0; k < l->slices; k++)
        lh_linear_intra_grad(e, l, k);
    for (uint32_t k = 0; e->rank > 0 && k < l->slices; k++) {
        if (again)
            lh_pass_wait(e, states.arrivals[k]);
        lh_linear_inter_grad(e, l, k, plan->chain.again_in);
    }
    for (uint32_t k = 0; e->rank < l->ranks - 1 && k < l->slices; k++) {
        lh_pass_wait(e, gradients.arrivals[k]);
        lh_linear_state_grad(e, l, k, plan->chain.bwd_in);
    }
    lh_pass_free(e, plan->chain.bwd_first, plan->chain.bwd_end);
}

static void
zeco_emit(LhEmitter *e, uint32_t step)
{
    lh_pass_enter(e, step, 1);
    if (e->phase == LH_PHASE_FORWARD)
        zeco_forward(e, e->program->plan);
    else
        zeco_backward(e, e->program->plan);
}

/*
 * Additions share the device with intra, so a rank between the ends is never idle while the scan
 * keeps up. Without overlap the last slice reaches a rank after its own state and all its
 * additions, and one addition later on each further rank.
 */
static double
zeco_idle_flops(const LhProgramParams *p)
{
    const LhLinearWork w = lh_linear_work(p, LH_PHASE_FORWARD);
    const double ranks = p->ranks, blocks = blocks_of(p);
    const double carry = p->ranks > 2 ? (double)w.carry : 0;
    const double work = (double)(w.own + w.intra + w.inter);
    const double total = ranks * work - 2 * (double)w.own + (ranks - 2) * carry;
    const double scan = carry / blocks * (lh_pass_overlaps(p) ? blocks : blocks + ranks - 3);

    if (p->ranks == 2 && lh_pass_overlaps(p))
        return 0;
    return 1 - total / (ranks * (work + scan));
}

const LhSchedule lh_schedule_zeco = {
    .name = "zeco",
    .summary = "linear attention: the state passes from rank to rank in slices; contiguous tokens",
    .details =
        "All-Scan of ZeCO (arXiv 2507.01004): the chain of lasp as a pipeline. The state\n"
        "(M = 4 B h d^2 bytes, fp32) is cut by heads into K slices, K = --scan-blocks.\n"
        "Ranks that pass a state on compute their own first. A slice that arrives is\n"
        "decayed, added to the rank's own and sent on while the next slice arrives; this\n"
        "runs on its own stream and overlaps with attention among the rank's own tokens.\n"
        "The queries read a slice when both are done. In the backward pass the slices of\n"
        "the gradient go the other way. --state-recompute and --unfused are as in lasp.\n"
        "With --no-overlap a rank waits for the whole scan before it computes attention.\n"
        "\n"
        "bytes sent   as lasp: forward M, except on the last rank; backward M, except on\n"
        "             the first rank\n"
        "scan         takes (P-2+K) (alpha + M/(K BW)) for a latency alpha and a bandwidth\n"
        "             BW, where the chain of lasp takes (P-1) (alpha + M/BW)\n"
        "flops        as lasp\n"
        "idle         P > 2: 2 (W_own + W_carry) / (P (W_own + W_carry + W_intra +\n"
        "             W_inter)), because the last rank passes no state on and the first\n"
        "             one reads none; P = 2: 0. Exact if the additions of one slice on\n"
        "             P-2 ranks take less time than W_intra\n"
        "buffers      as lasp\n"
        "restrictions N divisible by P; states travel in fp32; K divides g and is at most\n"
        "             64 (default: the largest such number up to 8)\n",
    .options = LH_OPTIONS(&lh_option_no_overlap, &lh_option_gradient_wire, &scan_blocks,
                          &lh_option_state_recompute, &lh_option_unfused),
    .placement = LH_PLACE_CONTIGUOUS,
    .attention = LH_ATTENTION_LINEAR,
    .masks_reason = "linear attention supports only the causal mask",
    .check = zeco_check,
    .declare = zeco_declare,
    .generator = { .steps = lh_pass_steps, .emit = zeco_emit },
    .closed = {
        .bytes_sent = lh_linear_chain_bytes,
        .flops = lh_linear_chain_flops,
        .peak_bytes = lh_linear_chain_peak_bytes,
        .idle_flops = zeco_idle_flops,
    },
};
