/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule te-a2a-p2p, described at the end of this file: the all-to-alls of common/heads.h
 * around the ring of common/te_ring.h. As in TransformerEngine (cp_stream), the second compute
 * stream of the ring also puts received tensors in token order.
 */
#include "sched/common/heads.h"
#include "sched/common/heads_forms.h"
#include "sched/common/heads_moves.h"
#include "sched/common/te_ring.h"
#include "sched/schedule.h"

typedef struct {
    LhHeads heads;
    LhTeRing ring; /* used if R > 1 */
} TeA2aP2pPlan;

static LhHeads
te_a2a_p2p_heads(const LhProgramParams *p)
{
    const uint32_t size = lh_heads_size(p);

    return (LhHeads){
        .cut = { size, size, size },
        .move = lh_heads_move_pipelined,
        .two_stages = true,
        .o = lh_heads_te_version(p) == LH_TE_2_15 ? LH_HEADS_O_KEPT : LH_HEADS_O_GATHERED,
        .apart = lh_pass_published(p),
        .grads_narrow = true,
    };
}

static void
te_a2a_p2p_attend(LhEmitter *e, uint32_t step)
{
    const TeA2aP2pPlan *plan = e->program->plan;

    if (e->phase == LH_PHASE_FORWARD)
        lh_te_ring_forward(e, &plan->ring, step);
    else
        lh_te_ring_backward(e, &plan->ring, step);
}

static void
te_a2a_p2p_declare(LhProgram *program)
{
    const LhProgramParams *p = &program->params;
    LhPassSlots slots;
    TeA2aP2pPlan *plan = g_new0(TeA2aP2pPlan, 1);

    program->plan = plan;
    plan->heads = te_a2a_p2p_heads(p);
    lh_heads_declare(program, &plan->heads);
    if (p->ranks == lh_heads_size(p)) {
        lh_program_add_stream(program, "cp", LH_STREAM_COMPUTE);
        lh_heads_set_whole(program, &plan->heads);
        return;
    }
    slots = lh_heads_slots(&plan->heads);
    lh_te_ring_declare(program, &plan->ring, &slots, lh_heads_size(p), plan->heads.parts);
    g_assert(plan->ring.second == LH_HEADS_STREAM_CP);
    plan->heads.attend = te_a2a_p2p_attend;
    plan->heads.forward_steps = lh_te_ring_forward_steps(&plan->ring);
    plan->heads.backward_steps = lh_te_ring_backward_steps(&plan->ring);
}

static uint64_t
te_a2a_p2p_bytes_sent(const LhProgramParams *p, uint32_t rank)
{
    const LhHeads heads = te_a2a_p2p_heads(p);
    const LhPassSizes z = lh_pass_sizes(p, 0);
    const uint32_t ring = p->ranks / lh_heads_size(p);

    return lh_heads_bytes_sent(p, &heads, rank) +
           (ring == 1 ? 0 : lh_te_ring_bytes_sent(p, &z, ring));
}

static uint64_t
te_a2a_p2p_peak_bytes(const LhProgramParams *p, uint32_t rank)
{
    const LhHeads heads = te_a2a_p2p_heads(p);
    const LhPassSizes z = lh_pass_sizes(p, 0);
    const uint32_t size = lh_heads_size(p), ranks = p->ranks / size;
    const LhHeadsBuffers ring = {
        .forward = lh_te_ring_forward_buffers(p, &z, ranks, rank / size),
        .backward = lh_te_ring_backward_buffers(p, &z),
        .kept = z.kv,
    };

    return lh_heads_peak_bytes(p, &heads, ranks == 1 ? NULL : &ring);
}

const LhSchedule lh_schedule_te_a2a_p2p = {
    .name = "te-a2a-p2p",
    .summary = "TransformerEngine a2a+p2p: all-to-alls in groups of U ranks, rings between them",
    .details =
        "Context parallelism of TransformerEngine with cp_comm_type a2a+p2p, for U x R =\n"
        "P ranks on zigzag half-chunks. U consecutive ranks form a group, in which the\n"
        "all-to-alls of te-a2a exchange tokens for heads. The R ranks in the same place\n"
        "of their groups form the ring of te-p2p, with h/U heads.\n"
        "\n"
        "bytes sent   forward (2Q + KV) (U-1)/U + (R-1) KV;\n"
        "             backward (2Q + KV) (U-1)/U + 2 (R-1) KV, with gradients in e bytes.\n"
        "             For R > 1 a backward pass alone first fetches the k, v with which\n"
        "             the forward pass would have ended: KV more\n"
        "flops        causal: about P F / 2 on every rank\n"
        "idle         0\n"
        "buffers      those of te-a2a and of te-p2p: k, v and output of all R steps\n"
        "group size   --hierarchical-context-parallel-sizes U,R; by default U is the\n"
        "             greatest common divisor of P, g and the GPUs of a node.\n"
        "             --gradient-wire is the type in which the ring sends gradients; the\n"
        "             all-to-alls always send them in e bytes\n"
        "restrictions N divisible by 2P, P and g divisible by U\n"
        "versions     --te-version 2.15 (default) is TransformerEngine since 2.15 (pull\n"
        "             request 2719). With --te-version 2.8 and 2.7, which are the same here,\n"
        "             the backward pass sends o again along with do, as TransformerEngine up\n"
        "             to 2.14 did: Q (U-1)/U more\n"
        "published    With --published-code the ring keeps gradients in e bytes, as te-p2p,\n"
        "             and k and v, dk and dv travel in all-to-alls of their own, as te-a2a\n",
    .options = LH_OPTIONS(&lh_option_no_overlap, &lh_option_published_code,
                          &lh_option_gradient_wire, &lh_option_hierarchy, &lh_option_pad_heads,
                          &lh_option_te_version),
    .placement = LH_PLACE_ZIGZAG,
    .masks_reason = "TransformerEngine supports them with all_gather and a2a only; use "
                    "te-allgather or te-a2a",
    .adapt = lh_heads_adapt_group_size,
    .check = lh_heads_check_group_size,
    .declare = te_a2a_p2p_declare,
    .generator = { .steps = lh_heads_steps, .emit = lh_heads_emit },
    .closed = {
        .bytes_sent = te_a2a_p2p_bytes_sent,
        .flops = lh_heads_ring_flops,
        .peak_bytes = te_a2a_p2p_peak_bytes,
        .idle_unit = lh_pass_idle_none,
        .idle_flops = lh_pass_idle_none,
    },
};
