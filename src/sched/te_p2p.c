/*
 * TransformerEngine's context parallelism, cp_comm_type "p2p": the ring of te_ring.c on all ranks.
 */
#include "sched/common/te_ring.h"

static void
declare(LhProgram *program)
{
    const LhPassSizes z = lh_pass_sizes(&program->params, 0);
    LhPassSlots io;
    LhTeRing *te = g_new0(LhTeRing, 1);

    program->plan = te;
    io = lh_pass_declare(program, &z);
    lh_te_ring_declare(program, te, &io, 1, lh_placement_parts(&program->placement));
}

static uint32_t
steps(const LhProgram *program, uint32_t rank)
{
    const LhProgramParams *p = &program->params;
    const LhTeRing *te = program->plan;

    (void)rank;
    return (lh_pass_has(p, LH_PASS_FWD) ? lh_te_ring_forward_steps(te) : 0) +
           (lh_pass_has(p, LH_PASS_BWD) ? lh_te_ring_backward_steps(te) : 0);
}

static void
emit(LhEmitter *e, uint32_t step)
{
    const LhTeRing *te = e->program->plan;
    const uint32_t s = lh_pass_enter(e, step, lh_te_ring_forward_steps(te));

    if (e->phase == LH_PHASE_FORWARD)
        lh_te_ring_forward(e, te, s);
    else
        lh_te_ring_backward(e, te, s);
}

static uint64_t
bytes_sent(const LhProgramParams *p, uint32_t rank)
{
    const LhPassSizes z = lh_pass_sizes(p, 0);

    (void)rank;
    return lh_te_ring_bytes_sent(p, &z, p->ranks);
}

static uint64_t
peak_bytes(const LhProgramParams *p, uint32_t rank)
{
    const LhPassSizes z = lh_pass_sizes(p, 0);

    return lh_pass_peak_bytes(p, lh_te_ring_forward_buffers(p, &z, p->ranks, rank),
                              lh_te_ring_backward_buffers(p, &z));
}

const LhSchedule lh_schedule_te_p2p = {
    .name = "te-p2p",
    .summary = "TransformerEngine p2p: zigzag ring on two compute streams that keeps all steps",
    .details =
        "Context parallelism of TransformerEngine, cp_comm_type p2p, on zigzag halves.\n"
        "k and v travel in one message, sent and received independently of each other\n"
        "(one group between two ranks). Steps alternate between two compute streams;\n"
        "the lse of a step is merged while the next one computes, outputs are kept and\n"
        "added up in fp32 after the last. Backward starts from the k, v that forward\n"
        "ended with and turns the other way: step 0 sends k, v, the steps between k, v\n"
        "with dk, dv of the step before, the last dk, dv only. The own block is last, so\n"
        "that no hop is exposed. A backward pass alone first fetches those k, v: + KV.\n"
        "\n"
        "bytes sent   fwd (P-1) KV; bwd 2 (P-1) KV, gradients of e bytes\n"
        "flops        P F / 2 on every rank, causal\n"
        "idle         0\n"
        "buffers      fwd P KV + (P+r+1)/2 (Q+S) + fp32 Q: all k, v and all outputs; bwd\n"
        "             4 KV + Q + fp32 dq, and dk, dv of a block in fp32\n"
        "restrictions sequence length divisible by 2P; no window, no documents\n"
        "published    published_code: dk, dv of a block, and dq, in e bytes\n",
    .options = LH_OPTIONS(&lh_option_no_overlap, &lh_option_published_code,
                          &lh_option_gradient_wire),
    .placement = LH_PLACE_ZIGZAG,
    .masks_reason = "TransformerEngine has them with all_gather and a2a only; use te-allgather",
    .declare = declare,
    .generator = { .steps = steps, .emit = emit },
    .closed = {
        .bytes_sent = bytes_sent,
        .flops = lh_zigzag_flops,
        .peak_bytes = peak_bytes,
        .idle_unit = lh_zigzag_idle_unit,
        .idle_flops = lh_zigzag_idle_flops,
    },
};
