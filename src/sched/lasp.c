/*
 * LASP: the state passes down the chain of ranks, one message of M bytes a pass, whatever the
 * sequence length. By the paper's algorithms 2 and 3, what is local is computed before the chain
 * reaches a rank; the public code receives before it computes anything, so that ranks work one
 * after another.
 */
#include "sched/common/linear.h"

enum {
    TAG_STATE,
    TAG_DSTATE,
};

typedef struct {
    LhLinearPass l;
    bool receives_first;
    LhLinearChain chain;
} Plan;

static void
declare(LhProgram *program)
{
    const LhProgramParams *p = &program->params;
    Plan *plan = g_new0(Plan, 1);

    program->plan = plan;
    plan->l = lh_linear_declare(program, 1);
    plan->receives_first = lh_pass_published(p) || !lh_pass_overlaps(p);
    plan->chain = lh_linear_declare_chain(program, &plan->l);
}

#define FORWARD_STEPS 2U /* what is local, the chain */
#define BACKWARD_STEPS                                                                             \
    3U /* what is local, the chain of states computed again, that of gradients                     \
        */

static uint32_t
steps(const LhProgram *program, uint32_t rank)
{
    const LhProgramParams *p = &program->params;

    (void)rank;
    return (lh_pass_has(p, LH_PASS_FWD) ? FORWARD_STEPS : 0) +
           (lh_pass_has(p, LH_PASS_BWD) ? BACKWARD_STEPS : 0);
}

static bool
is_first(const LhEmitter *e)
{
    return e->rank == 0;
}

static bool
is_last(const LhEmitter *e, const Plan *plan)
{
    return e->rank == plan->l.ranks - 1;
}

/* Compute goes on when the message is there. */
static void
receive(LhEmitter *e, uint32_t peer, uint16_t tag, uint16_t slot)
{
    lh_pass_exchange(e);
    lh_pass_message(e, false, peer, tag, slot, 1);
    lh_pass_wait(e, e->marks[LH_MARK_EXCHANGE]);
}

static void
send(LhEmitter *e, uint32_t peer, uint16_t tag, uint16_t slot)
{
    lh_pass_exchange(e);
    lh_pass_message(e, true, peer, tag, slot, 1);
}

/* The state behind the rank's tokens, to the next rank. */
static void
send_state(LhEmitter *e, const Plan *plan, uint16_t in, uint16_t out)
{
    if (is_last(e, plan))
        return;
    lh_linear_own_state(e, &plan->l, 0, out);
    if (!is_first(e))
        lh_linear_carry(e, &plan->l, 0, in, out);
    send(e, e->rank + 1, TAG_STATE, out);
}

static void
receive_state(LhEmitter *e, uint16_t in)
{
    if (!is_first(e))
        receive(e, e->rank - 1, TAG_STATE, in);
}

static void
receive_dstate(LhEmitter *e, const Plan *plan)
{
    if (!is_last(e, plan))
        receive(e, e->rank + 1, TAG_DSTATE, plan->chain.bwd_in);
}

static void
emit_forward(LhEmitter *e, const Plan *plan, uint32_t t)
{
    if (t == 0) {
        lh_pass_alloc(e, plan->chain.fwd_first, plan->chain.fwd_end);
        if (plan->receives_first)
            receive_state(e, plan->l.before);
        lh_linear_intra(e, &plan->l, 0);
        return;
    }
    if (!plan->receives_first)
        receive_state(e, plan->l.before);
    if (!is_first(e))
        lh_linear_inter(e, &plan->l, 0, plan->l.before);
    send_state(e, plan, plan->l.before, plan->chain.fwd_out);
    lh_pass_free(e, plan->chain.fwd_first, plan->chain.fwd_end);
}

static void
state_again(LhEmitter *e, const Plan *plan)
{
    if (!lh_linear_recomputes(&e->program->params))
        return;
    receive_state(e, plan->chain.again_in);
    send_state(e, plan, plan->chain.again_in, plan->chain.again_out);
}

static void
backward_local(LhEmitter *e, const Plan *plan)
{
    lh_pass_alloc(e, plan->chain.bwd_first, plan->chain.bwd_end);
    if (plan->receives_first) {
        state_again(e, plan);
        receive_dstate(e, plan);
    }
    lh_linear_intra_grad(e, &plan->l, 0);
}

static void
backward_states(LhEmitter *e, const Plan *plan)
{
    if (!plan->receives_first)
        state_again(e, plan);
    if (!is_first(e))
        lh_linear_inter_grad(e, &plan->l, 0, plan->chain.again_in);
}

static void
backward_gradients(LhEmitter *e, const Plan *plan)
{
    if (!plan->receives_first)
        receive_dstate(e, plan);
    if (!is_last(e, plan))
        lh_linear_state_grad(e, &plan->l, 0, plan->chain.bwd_in);
    if (!is_first(e)) {
        lh_linear_own_dstate(e, &plan->l, 0, plan->chain.bwd_out);
        if (!is_last(e, plan))
            lh_linear_carry(e, &plan->l, 0, plan->chain.bwd_in, plan->chain.bwd_out);
        send(e, e->rank - 1, TAG_DSTATE, plan->chain.bwd_out);
    }
    lh_pass_free(e, plan->chain.bwd_first, plan->chain.bwd_end);
}

static void
emit(LhEmitter *e, uint32_t step)
{
    static void (*const backward[BACKWARD_STEPS])(LhEmitter * e, const Plan *plan) = {
        backward_local,
        backward_states,
        backward_gradients,
    };
    const Plan *plan = e->program->plan;
    const uint32_t t = lh_pass_enter(e, step, FORWARD_STEPS);

    if (e->phase == LH_PHASE_FORWARD)
        emit_forward(e, plan, t);
    else
        backward[t](e, plan);
}

/* The chain goes through inter, own and carry of one rank after another; what is local runs in
 * parallel, or in the chain too. */
static double
idle_flops(const LhProgramParams *p)
{
    const LhLinearWork w = lh_linear_work(p, LH_PHASE_FORWARD);
    const double ranks = p->ranks, intra = (double)w.intra;
    const double chain = (ranks - 1) * (double)(w.inter + w.own) +
                         (p->ranks > 2 ? (ranks - 2) * (double)w.carry : 0);

    if (lh_pass_published(p) || !lh_pass_overlaps(p))
        return (ranks - 1) / ranks;
    return 1 - (ranks * intra + chain) / (ranks * (intra + chain));
}

const LhSchedule lh_schedule_lasp = {
    .name = "lasp",
    .summary = "linear attention: the state passes from rank to rank; contiguous tokens",
    .details =
        "LASP (arXiv 2404.02882). Rank r holds tokens [r n, (r+1) n). The state, one d x\n"
        "d matrix a head in fp32 (M = 4 B h d^2 bytes), comes from rank r-1, is read by\n"
        "the rank's queries, takes in its keys and values and goes on to r+1; backward\n"
        "its gradient goes the other way. What a rank's tokens have among themselves\n"
        "(intra) is computed before the state arrives, as algorithms 2 and 3 of the\n"
        "paper have it; the public code (--published-code, and also --no-overlap)\n"
        "receives before it computes anything, in all its variants. Both send after the\n"
        "state has been read. A better chain, which neither has, sends lambda^n KV + the\n"
        "own state before that; zeco does so.\n"
        "The state that came is kept for the backward pass (the paper's KV-state\n"
        "caching), or the forward chain is run again there (--state-recompute).\n"
        "--unfused writes what goes through the state apart from the rest and adds it in\n"
        "a kernel of its own. The barriers of the variant fuse_parallel, in every layer,\n"
        "are not modelled.\n"
        "\n"
        "bytes sent   fwd M unless r = P-1; bwd M unless r = 0, and with state_recompute\n"
        "             M more unless r = P-1; whatever the sequence length. The paper's\n"
        "             table 1 has B d^2/h elements, d the width of the model: the same\n"
        "flops        E = B h d^2, in tiles of b = 128 tokens: fwd about (8 E + 2 E b/d)\n"
        "             n: intra 4 E + 2 E b/d, o and the own state 2 E each; bwd about\n"
        "             (18 E + 5 E b/d) n, with state_recompute 2 E n more. Kernels that\n"
        "             leave the state behind while they compute intra would save 2 E\n"
        "idle         1 - (W_intra + W_inter)/(W_intra + P W_inter), W_inter what the\n"
        "             chain waits for on a rank on average; (P-1)/P if the receive comes\n"
        "             first. Without barriers between layers ranks fall into a wavefront\n"
        "             that costs (P-1) modules once\n"
        "buffers      M kept; fwd M, bwd 2 M (state_recompute: nothing kept, 2 M and 4\n"
        "             M); unfused Q more forward, Q + KV backward\n"
        "restrictions sequence length divisible by P; causal mask; states travel in\n"
        "             fp32. The paper's layout, groups of T consecutive ranks with a batch\n"
        "             each, is --data-parallel-size W/T on W ranks\n",
    .options = LH_OPTIONS(&lh_option_no_overlap, &lh_option_published_code,
                          &lh_option_gradient_wire, &lh_option_state_recompute,
                          &lh_option_unfused),
    .placement = LH_PLACE_CONTIGUOUS,
    .attention = LH_ATTENTION_LINEAR,
    .masks_reason = "linear attention has the causal mask only",
    .check = lh_linear_check,
    .declare = declare,
    .generator = { .steps = steps, .emit = emit },
    .closed = {
        .bytes_sent = lh_linear_chain_bytes,
        .flops = lh_linear_chain_flops,
        .peak_bytes = lh_linear_chain_peak_bytes,
        .idle_flops = idle_flops,
    },
};
