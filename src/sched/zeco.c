/*
 * ZeCO: LASP's chain as a pipeline. Heads are cut into K slices, each of which passes down the
 * chain by itself: a rank hands on a slice of the state as soon as it has added its own, while the
 * next one arrives. Additions run on a stream of their own, beside what is local.
 */
#include "sched/common/linear.h"

#include <inttypes.h>

#define BLOCKS_MAX 64
#define BLOCKS_DEFAULT 8

static const LhOption scan_blocks = {
    .name = "scan_blocks",
    .type = LH_OPTION_COUNT,
    .help = "Pieces that the state of linear attention is sent in.",
    .value = lh_option_one_and_two,
};

enum {
    TAG_STATE,
    TAG_DSTATE,
};

typedef struct {
    LhLinearPass l;
    bool overlap;
    uint8_t scan; /* the stream of the additions */
    LhLinearChain chain;
} Plan;

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
check(const LhProgramParams *p, GError **error)
{
    const uint32_t groups = p->attention.groups, wanted = blocks_of(p);
    uint32_t below, above;

    if (!lh_linear_check(p, error))
        return false;
    if (wanted <= BLOCKS_MAX && groups % wanted == 0)
        return true;
    lh_divisors_near(groups, wanted, BLOCKS_MAX, &below, &above);
    return lh_program_refuse(error,
                             "%" PRIu32 " scan blocks do not divide %" PRIu32
                             " query groups (states are cut by heads), at most %d; nearest legal "
                             "numbers of blocks: %" PRIu32 ", %" PRIu32,
                             wanted, groups, BLOCKS_MAX, below, above);
}

static void
declare(LhProgram *program)
{
    const LhProgramParams *p = &program->params;
    Plan *plan = g_new0(Plan, 1);

    program->plan = plan;
    plan->l = lh_linear_declare(program, blocks_of(p));
    plan->overlap = lh_pass_overlaps(p);
    plan->scan = lh_program_add_stream(program, "scan", LH_STREAM_COMPUTE);
    plan->chain = lh_linear_declare_chain(program, &plan->l);
}

/* A state's way up the ranks, or its gradient's down. */
typedef struct {
    bool down;
    uint16_t in, out, tag;
    uint32_t arrivals[BLOCKS_MAX]; /* the exchange that brings each slice; LH_OP_NONE: none does */
    uint32_t end;                  /* the last exchange */
} Chain;

static bool
chain_receives(const LhEmitter *e, const Plan *plan, const Chain *c)
{
    return c->down ? e->rank < plan->l.ranks - 1 : e->rank > 0;
}

static bool
chain_sends(const LhEmitter *e, const Plan *plan, const Chain *c)
{
    return c->down ? e->rank > 0 : e->rank < plan->l.ranks - 1;
}

/* Receives slice @k and sends slice @k - 1, which op @ready has made; one group. */
static uint32_t
exchange(LhEmitter *e, const Plan *plan, const Chain *c, uint32_t k, uint32_t ready)
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

/* Adds slice @k, which has arrived, to the rank's own, which op @own makes. */
static uint32_t
add_arrived(LhEmitter *e, const Plan *plan, const Chain *c, uint32_t k, uint32_t own)
{
    const uint32_t id = lh_emit_compute(e, plan->scan, LH_KERNEL_ID_linear_carry,
                                        lh_linear_carry_args(e, &plan->l, c->out));

    lh_emit_operand(e, c->in, k, 1);
    lh_emit_operand(e, c->out, k, 1);
    lh_emit_after(e, own);
    lh_emit_after(e, c->arrivals[k]);
    return id;
}

/* All own slices first, so that none waits for what is local. */
static void
emit_chain(LhEmitter *e, const Plan *plan, Chain *c)
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
        const uint32_t id = exchange(e, plan, c, k, ready);

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
emit_forward(LhEmitter *e, const Plan *plan)
{
    const LhLinearPass *l = &plan->l;
    Chain chain = { .in = l->before, .out = plan->chain.fwd_out, .tag = TAG_STATE };

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
emit_backward(LhEmitter *e, const Plan *plan)
{
    const LhLinearPass *l = &plan->l;
    const bool again = lh_linear_recomputes(&e->program->params);
    Chain states = { .in = plan->chain.again_in, .out = plan->chain.again_out, .tag = TAG_STATE };
    Chain gradients = {
        .down = true, .in = plan->chain.bwd_in, .out = plan->chain.bwd_out, .tag = TAG_DSTATE
    };

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
emit(LhEmitter *e, uint32_t step)
{
    lh_pass_enter(e, step, 1);
    if (e->phase == LH_PHASE_FORWARD)
        emit_forward(e, e->program->plan);
    else
        emit_backward(e, e->program->plan);
}

/*
 * Additions share the device with the rest, so that a rank between the ends is never idle while the
 * scan keeps up. Without overlap the last slice comes when a rank's own state and all its additions
 * are done, one addition later on every rank.
 */
static double
idle_flops(const LhProgramParams *p)
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
    .summary = "linear attention: the state passes on in slices, pipelined; contiguous tokens",
    .details =
        "ZeCO's All-Scan (arXiv 2507.01004, of which abstract and reviews were read:\n"
        "what is not in them is ours). Rank r holds tokens [r n, (r+1) n). The state (M\n"
        "= 4 B h d^2 bytes, fp32) is cut into K slices of heads, --scan-blocks; ZeCO\n"
        "cuts it along a head's dimension, which moves the same bytes. Every rank\n"
        "computes its own state first; a slice that arrives is decayed, added and sent\n"
        "on while the next one arrives, beside what the rank's tokens have among\n"
        "themselves. --no-overlap waits for the scan before that. Backward the\n"
        "gradient's slices go the other way. The state that came is kept for the\n"
        "backward pass, or the scan is run again there (--state-recompute). --unfused is\n"
        "as in lasp.\n"
        "\n"
        "bytes sent   as lasp: fwd M unless r = P-1, bwd M unless r = 0\n"
        "scan         (P-2+K)(alpha + M/(K BW)) instead of (P-1)(alpha + M/BW)\n"
        "flops        as lasp\n"
        "idle         2 (W_own + W_carry)/(P (W_own + W_carry + W_intra + W_inter)) for\n"
        "             P > 2: the last rank passes no state on, the first one reads none;\n"
        "             0 for P = 2. Exact as long as the additions of a slice on P-2\n"
        "             ranks take less time than W_intra\n"
        "buffers      as lasp\n"
        "restrictions sequence length divisible by P; causal mask; K divides the query\n"
        "             groups (default the largest up to 8 that does), at most 64; states\n"
        "             travel in fp32\n",
    .options = LH_OPTIONS(&lh_option_no_overlap, &lh_option_gradient_wire, &scan_blocks,
                          &lh_option_state_recompute, &lh_option_unfused),
    .placement = LH_PLACE_CONTIGUOUS,
    .attention = LH_ATTENTION_LINEAR,
    .masks_reason = "linear attention has the causal mask only",
    .check = check,
    .declare = declare,
    .generator = { .steps = lh_pass_steps, .emit = emit },
    .closed = {
        .bytes_sent = lh_linear_chain_bytes,
        .flops = lh_linear_chain_flops,
        .peak_bytes = lh_linear_chain_peak_bytes,
        .idle_flops = idle_flops,
    },
};
