/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule lasp, described at the end of this file. A pass has one step for the work that needs
 * no state of other ranks (intra) and one for each chain. With the published code, and without
 * overlap, the receives of all chains move to the front of the first step; stream order then makes
 * ranks work one after another.
 */
#include "sched/common/linear_shared.h"
#include "sched/schedule.h"

#include "kernels/sizes.h"

typedef struct {
    LhLinearPass l;
    bool receives_first, barrier;
    LhLinearChain chain;
    uint16_t flags, flags_sum; /* of the barrier */
} LaspPlan;

/* dist.barrier() of PyTorch is an all-reduce of a one-element tensor, for which the host waits.
 * Here an all-reduce leaves every rank an equal share, so it has one fp32 per rank. */
static uint64_t
barrier_bytes(const LhProgramParams *p)
{
    return lh_pass_published(p) && lh_pass_has(p, LH_PASS_FWD) && p->ranks > 1
               ? p->ranks * LH_FP32_BYTES
               : 0;
}

static void
lasp_declare(LhProgram *program)
{
    const LhProgramParams *p = &program->params;
    LaspPlan *plan = g_new0(LaspPlan, 1);

    program->plan = plan;
    plan->l = lh_linear_declare(program, 1);
    plan->receives_first = lh_pass_published(p) || !lh_pass_overlaps(p);
    plan->barrier = barrier_bytes(p) > 0;
    plan->chain = lh_linear_declare_chain(program, &plan->l);
    if (!plan->barrier)
        return;
    plan->flags = lh_pass_add_slot(program, "flags", LH_TENSOR_HIDDEN, LH_SLOT_INPUT, 1,
                                   barrier_bytes(p), LH_FP32_BYTES);
    plan->flags_sum = lh_pass_add_slot(program, "flags_sum", LH_TENSOR_HIDDEN, LH_SLOT_TEMP, 1,
                                       barrier_bytes(p), LH_FP32_BYTES);
}

#define LASP_FORWARD_STEPS 2U  /* intra; the chain of states */
#define LASP_BACKWARD_STEPS 3U /* intra; the chain of states, again; the chain of gradients */

static uint32_t
lasp_steps(const LhProgram *program, uint32_t rank)
{
    const LhProgramParams *p = &program->params;

    (void)rank;
    return (lh_pass_has(p, LH_PASS_FWD) ? LASP_FORWARD_STEPS : 0) +
           (lh_pass_has(p, LH_PASS_BWD) ? LASP_BACKWARD_STEPS : 0);
}

static bool
is_first(const LhEmitter *e)
{
    return e->rank == 0;
}

static bool
is_last(const LhEmitter *e, const LaspPlan *plan)
{
    return e->rank == plan->l.ranks - 1;
}

/* Receives a message, for which later compute waits. */
static void
receive_slot(LhEmitter *e, uint32_t peer, uint16_t tag, uint16_t slot)
{
    lh_pass_exchange(e);
    lh_pass_message(e, false, peer, tag, slot, 1);
    lh_pass_wait(e, e->marks[LH_MARK_EXCHANGE]);
}

static void
send_slot(LhEmitter *e, uint32_t peer, uint16_t tag, uint16_t slot)
{
    lh_pass_exchange(e);
    lh_pass_message(e, true, peer, tag, slot, 1);
}

/* Computes the state after the rank's tokens and sends it to the next rank. */
static void
send_state(LhEmitter *e, const LaspPlan *plan, uint16_t in, uint16_t out)
{
    if (is_last(e, plan))
        return;
    lh_linear_own_state(e, &plan->l, 0, out);
    if (!is_first(e))
        lh_linear_carry(e, &plan->l, 0, in, out);
    send_slot(e, e->rank + 1, LH_LINEAR_TAG_STATE, out);
}

static void
receive_state(LhEmitter *e, uint16_t in)
{
    if (!is_first(e))
        receive_slot(e, e->rank - 1, LH_LINEAR_TAG_STATE, in);
}

static void
receive_dstate(LhEmitter *e, const LaspPlan *plan)
{
    if (!is_last(e, plan))
        receive_slot(e, e->rank + 1, LH_LINEAR_TAG_DSTATE, plan->chain.bwd_in);
}

static void
synchronise(LhEmitter *e, const LaspPlan *plan)
{
    const LhGroup everyone = { .stride = 1, .count = plan->l.ranks, .outer_count = 1 };

    lh_emit_alloc(e, plan->flags_sum);
    lh_emit_collective(e, LH_PASS_STREAM_COMM, LH_COLL_ALL_REDUCE, everyone);
    lh_emit_tensor(e, (LhRegion){ plan->flags, 0, 1 }, (LhRegion){ plan->flags_sum, 0, 1 });
    lh_emit_sync(e);
    lh_emit_free(e, plan->flags_sum);
}

static void
lasp_forward(LhEmitter *e, const LaspPlan *plan, uint32_t t)
{
    if (t == 0) {
        if (plan->barrier)
            synchronise(e, plan);
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
state_again(LhEmitter *e, const LaspPlan *plan)
{
    if (!lh_linear_recomputes(&e->program->params))
        return;
    receive_state(e, plan->chain.again_in);
    send_state(e, plan, plan->chain.again_in, plan->chain.again_out);
}

static void
lasp_backward_local(LhEmitter *e, const LaspPlan *plan)
{
    lh_pass_alloc(e, plan->chain.bwd_first, plan->chain.bwd_end);
    if (plan->receives_first) {
        state_again(e, plan);
        receive_dstate(e, plan);
    }
    lh_linear_intra_grad(e, &plan->l, 0);
}

static void
lasp_backward_states(LhEmitter *e, const LaspPlan *plan)
{
    if (!plan->receives_first)
        state_again(e, plan);
    if (!is_first(e))
        lh_linear_inter_grad(e, &plan->l, 0, plan->chain.again_in);
}

static void
lasp_backward_gradients(LhEmitter *e, const LaspPlan *plan)
{
    if (!plan->receives_first)
        receive_dstate(e, plan);
    if (!is_last(e, plan))
        lh_linear_state_grad(e, &plan->l, 0, plan->chain.bwd_in);
    if (!is_first(e)) {
        lh_linear_own_dstate(e, &plan->l, 0, plan->chain.bwd_out);
        if (!is_last(e, plan))
            lh_linear_carry(e, &plan->l, 0, plan->chain.bwd_in, plan->chain.bwd_out);
        send_slot(e, e->rank - 1, LH_LINEAR_TAG_DSTATE, plan->chain.bwd_out);
    }
    lh_pass_free(e, plan->chain.bwd_first, plan->chain.bwd_end);
}

static void
lasp_emit(LhEmitter *e, uint32_t step)
{
    static void (*const backward[LASP_BACKWARD_STEPS])(LhEmitter * e, const LaspPlan *plan) = {
        lasp_backward_local,
        lasp_backward_states,
        lasp_backward_gradients,
    };
    const LaspPlan *plan = e->program->plan;
    const uint32_t t = lh_pass_enter(e, step, LASP_FORWARD_STEPS);

    if (e->phase == LH_PHASE_FORWARD)
        lasp_forward(e, plan, t);
    else
        backward[t](e, plan);
}

static uint64_t
lasp_bytes_sent(const LhProgramParams *p, uint32_t rank)
{
    const uint64_t barrier = barrier_bytes(p);

    return lh_linear_chain_bytes(p, rank) + (barrier > 0 ? 2 * (barrier - LH_FP32_BYTES) : 0);
}

/* The flags are freed before the buffers of the chain are allocated. */
static uint64_t
lasp_peak_bytes(const LhProgramParams *p, uint32_t rank)
{
    const uint64_t barrier = barrier_bytes(p);

    return MAX(lh_linear_chain_peak_bytes(p, rank), lh_linear_io_bytes(p) + barrier) + barrier;
}

/* inter, own and carry of one rank after another make up the chain. intra runs on all ranks at
 * once before it, or in the chain if ranks receive first. */
static double
lasp_idle_flops(const LhProgramParams *p)
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
        "LASP (arXiv 2404.02882). The tokens before a rank act on it through a state: one\n"
        "d x d matrix per head in fp32, M = 4 B h d^2 bytes in all. The rank receives the\n"
        "state from rank r-1, its queries read it, its keys and values are added, and the\n"
        "sum is sent to rank r+1. In the backward pass the gradient of the state goes the\n"
        "other way. Attention among the rank's own tokens (intra) is computed before the\n"
        "state arrives, as in algorithms 2 and 3 of the paper. The forward pass keeps the\n"
        "state that a rank has received for the backward pass (the paper's KV-state\n"
        "caching); with --state-recompute it does not, and the backward pass runs the\n"
        "forward chain again. With --unfused the contributions through a state (to o, dq,\n"
        "dk, dv) are written to memory and added by another kernel.\n"
        "\n"
        "bytes sent   forward M, except on the last rank; backward M, except on the first\n"
        "             rank, and with --state-recompute M more, except on the last rank\n"
        "flops        With E = B h d^2 and tiles of b = 128 tokens: forward about\n"
        "             (8 E + 2 E b/d) n, of which intra 4 E + 2 E b/d, reading the state\n"
        "             2 E and the rank's own state 2 E; backward about (18 E + 5 E b/d) n,\n"
        "             with --state-recompute 2 E n more\n"
        "idle         1 - (W_intra + W_chain) / (W_intra + P W_chain), where W_intra is a\n"
        "             rank's work on intra and W_chain the mean of its other work\n"
        "buffers      M kept; forward M, backward 2 M. With --state-recompute nothing is\n"
        "             kept; forward 2 M, backward 4 M. With --unfused forward Q more,\n"
        "             backward Q + KV more\n"
        "restrictions N divisible by P; states travel in fp32\n"
        "published    With --published-code, and with --no-overlap, a rank receives the\n"
        "             state before it computes anything, as all variants of the public\n"
        "             code do: idle (P-1)/P. With --published-code the forward pass\n"
        "             begins with a barrier, as in lasp_fuse_parallel.py: an all-reduce\n"
        "             of P fp32 numbers, 8 (P-1) bytes, for which the host waits. There\n"
        "             it covers all ranks, here those that share the sequence\n",
    .options = LH_OPTIONS(&lh_option_no_overlap, &lh_option_published_code,
                          &lh_option_gradient_wire, &lh_option_state_recompute,
                          &lh_option_unfused),
    .placement = LH_PLACE_CONTIGUOUS,
    .attention = LH_ATTENTION_LINEAR,
    .masks_reason = "linear attention supports only the causal mask",
    .check = lh_linear_check,
    .declare = lasp_declare,
    .generator = { .steps = lasp_steps, .emit = lasp_emit },
    .closed = {
        .bytes_sent = lasp_bytes_sent,
        .flops = lh_linear_chain_flops,
        .peak_bytes = lasp_peak_bytes,
        .idle_flops = lasp_idle_flops,
    },
};
