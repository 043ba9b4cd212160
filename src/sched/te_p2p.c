/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule te-p2p, described at the end of this file: the ring of common/te_ring.h over all
 * ranks.
 */
#include "sched/common/te_ring.h"
#include "sched/schedule.h"

static void
te_p2p_declare(LhProgram *program)
{
    const LhPassSizes z = lh_pass_sizes(&program->params, 0);
    LhPassSlots io;
    LhTeRing *te = g_new0(LhTeRing, 1);

    program->plan = te;
    io = lh_pass_declare(program, &z);
    lh_te_ring_declare(program, te, &io, 1, lh_placement_parts(&program->placement));
}

static uint32_t
te_p2p_steps(const LhProgram *program, uint32_t rank)
{
    const LhProgramParams *p = &program->params;
    const LhTeRing *te = program->plan;

    (void)rank;
    return (lh_pass_has(p, LH_PASS_FWD) ? lh_te_ring_forward_steps(te) : 0) +
           (lh_pass_has(p, LH_PASS_BWD) ? lh_te_ring_backward_steps(te) : 0);
}

static void
te_p2p_emit(LhEmitter *e, uint32_t step)
{
    const LhTeRing *te = e->program->plan;
    const uint32_t s = lh_pass_enter(e, step, lh_te_ring_forward_steps(te));

    if (e->phase == LH_PHASE_FORWARD)
        lh_te_ring_forward(e, te, s);
    else
        lh_te_ring_backward(e, te, s);
}

static uint64_t
te_p2p_bytes_sent(const LhProgramParams *p, uint32_t rank)
{
    const LhPassSizes z = lh_pass_sizes(p, 0);

    (void)rank;
    return lh_te_ring_bytes_sent(p, &z, p->ranks);
}

static uint64_t
te_p2p_peak_bytes(const LhProgramParams *p, uint32_t rank)
{
    const LhPassSizes z = lh_pass_sizes(p, 0);

    return lh_pass_peak_bytes(p, lh_te_ring_forward_buffers(p, &z, p->ranks, rank),
                              lh_te_ring_backward_buffers(p, &z));
}

const LhSchedule lh_schedule_te_p2p = {
    .name = "te-p2p",
    .summary = "TransformerEngine p2p: zigzag ring on two compute streams that keeps all k and v",
    .details =
        "Context parallelism of TransformerEngine with cp_comm_type p2p, on zigzag\n"
        "half-chunks. k and v travel in one message. Sends and receives have their own\n"
        "streams; between two ranks they form one group. In the forward pass steps\n"
        "alternate between two compute streams, and the lse of a step is merged while the\n"
        "next step computes. The outputs of all steps are kept and added up in fp32 after\n"
        "the last one. The backward pass starts with the last k, v of the forward pass,\n"
        "those of rank r+1, and rotates the other way, on one compute stream. dk and dv\n"
        "of a step are sent during the next one, in one message with k and v. The\n"
        "diagonal block is the last, so that no hop is exposed.\n"
        "\n"
        "bytes sent   forward (P-1) KV; backward 2 (P-1) KV, with gradients in e bytes. A\n"
        "             backward pass alone first fetches k, v of rank r+1: KV more\n"
        "flops        causal: about P F / 2 on every rank\n"
        "idle         0\n"
        "buffers      forward P KV + (P+r+1)/2 (Q+S) + fp32 Q: k, v and output of every\n"
        "             step (full mask: P (Q+S) of outputs);\n"
        "             backward 4 KV + Q + fp32 Q + fp32 KV (dk, dv of a block)\n"
        "restrictions N divisible by 2P\n"
        "published    With --published-code dk, dv of a block, and dq, are kept in e bytes\n",
    .options = LH_OPTIONS(&lh_option_no_overlap, &lh_option_published_code,
                          &lh_option_gradient_wire),
    .placement = LH_PLACE_ZIGZAG,
    .masks_reason = "TransformerEngine supports them with all_gather and a2a only; use "
                    "te-allgather",
    .declare = te_p2p_declare,
    .generator = { .steps = te_p2p_steps, .emit = te_p2p_emit },
    .closed = {
        .bytes_sent = te_p2p_bytes_sent,
        .flops = lh_zigzag_flops,
        .peak_bytes = te_p2p_peak_bytes,
        .idle_unit = lh_zigzag_idle_unit,
        .idle_flops = lh_zigzag_idle_flops,
    },
};
