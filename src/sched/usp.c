/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule usp, described at the end of this file: the all-to-alls of common/heads.h around the
 * ring of common/ring_shared.h, which works on the slots by heads. A ring of one rank is replaced
 * by one call of attention, and a group of one rank exchanges nothing. Not modelled: the messages
 * of a rank to itself that the public code sends for R = 1.
 */
#include "sched/common/heads.h"
#include "sched/common/heads_forms.h"
#include "sched/common/heads_moves.h"
#include "sched/common/ring_shared.h"
#include "sched/schedule.h"

typedef struct {
    LhHeads heads;
    LhRingPlan ring; /* used if R > 1 */
} UspPlan;

static LhHeads
usp_heads(const LhProgramParams *p)
{
    const uint32_t size = lh_heads_size(p);

    return (LhHeads){
        .cut = { size, size, size },
        .move = lh_heads_move_one_by_one,
        .apart = lh_pass_published(p),
        .grads_narrow = true,
    };
}

static void
usp_attend(LhEmitter *e, uint32_t step)
{
    const UspPlan *plan = e->program->plan;

    if (e->phase == LH_PHASE_FORWARD)
        lh_ring_forward(e, &plan->ring, step);
    else
        lh_ring_backward(e, &plan->ring, step);
}

static void
usp_declare(LhProgram *program)
{
    const LhProgramParams *p = &program->params;
    const uint32_t ring_ranks = p->ranks / lh_heads_size(p);
    LhPassSlots slots;
    UspPlan *plan = g_new0(UspPlan, 1);

    program->plan = plan;
    program->placement.split = lh_heads_size(p);
    plan->heads = usp_heads(p);
    lh_heads_declare(program, &plan->heads);
    if (ring_ranks == 1) {
        lh_heads_set_whole(program, &plan->heads);
        return;
    }
    plan->heads.attend = usp_attend;
    plan->heads.forward_steps = plan->heads.backward_steps = ring_ranks;
    slots = lh_heads_slots(&plan->heads);
    lh_ring_init(&plan->ring, program, &slots, lh_heads_size(p), plan->heads.parts);
    lh_ring_set_zigzag(program, &plan->ring);
    if (lh_pass_has(p, LH_PASS_FWD))
        lh_ring_declare_forward(program, &plan->ring);
    if (lh_pass_has(p, LH_PASS_BWD))
        lh_ring_declare_backward(program, &plan->ring);
}

/* The all-to-alls, R-1 hops of k, v in each pass, and R hops of dk, dv. */
static uint64_t
usp_bytes_sent(const LhProgramParams *p, uint32_t rank)
{
    const LhHeads heads = usp_heads(p);
    const LhPassSizes z = lh_pass_sizes(p, 4);
    const uint64_t ring = p->ranks / lh_heads_size(p);
    uint64_t bytes = lh_heads_bytes_sent(p, &heads, rank);

    if (ring == 1)
        return bytes;
    if (lh_pass_has(p, LH_PASS_FWD))
        bytes += (ring - 1) * z.kv;
    if (lh_pass_has(p, LH_PASS_BWD))
        bytes += (ring - 1) * z.kv + ring * z.dkv;
    return bytes;
}

/* The ring has the buffers of zigzag: h/U heads of U n tokens are as large as h heads of n
 * tokens. */
static uint64_t
usp_peak_bytes(const LhProgramParams *p, uint32_t rank)
{
    const LhHeads heads = usp_heads(p);
    const LhPassSizes z = lh_pass_sizes(p, 4);
    const uint64_t q32 = z.q / z.e * 4;
    const LhHeadsBuffers ring = {
        .forward = 2 * z.kv + q32 + z.q + 2 * z.s,
        .backward = 2 * z.kv + 3 * z.dkv + z.kv + z.q + q32,
    };

    (void)rank;
    return lh_heads_peak_bytes(p, &heads, p->ranks == lh_heads_size(p) ? NULL : &ring);
}

const LhSchedule lh_schedule_usp = {
    .name = "usp",
    .summary = "Ulysses in groups of U ranks, and a zigzag ring of P/U ranks between the groups",
    .details =
        "Unified sequence parallelism (arXiv:2405.07719; feifeibear/\n"
        "long-context-attention) on a grid of U x R = P ranks. U consecutive ranks form a\n"
        "group. The sequence is cut into 2R half-chunks; a group holds two of them in\n"
        "zigzag, and each rank of the group holds 1/U of both (the placement below is the\n"
        "one of U = 1). All-to-alls within the group, as in ulysses, give each rank all\n"
        "tokens of the group for h/U heads. The R ranks in the same place of their groups\n"
        "then form a zigzag ring with these heads. Tensors received in the all-to-alls of\n"
        "the forward pass stay by heads for the backward pass.\n"
        "\n"
        "bytes sent   forward (2Q + KV) (U-1)/U + (R-1) KV;\n"
        "             backward (2Q + KV) (U-1)/U + (R-1) KV + R G, where G is dk, dv in\n"
        "             fp32; R = 1: without the terms of the ring. A hop of the ring\n"
        "             carries h/U heads of U n tokens, KV bytes as in the plain ring\n"
        "flops        causal: about P F / 2 on every rank\n"
        "idle         0\n"
        "buffers      those of ulysses and of zigzag\n"
        "group size   --hierarchical-context-parallel-sizes U,R; by default U is the\n"
        "             greatest common divisor of P, g and the GPUs of a node.\n"
        "             --gradient-wire is the type in which the ring sends gradients; the\n"
        "             all-to-alls always send them in e bytes\n"
        "restrictions N divisible by 2P, P and g divisible by U\n"
        "published    With --published-code k and v each travel in an all-to-all of their\n"
        "             own, and so do dk and dv: as LongContextAttention calls SeqAllToAll4D\n",
    .options = LH_OPTIONS(&lh_option_no_overlap, &lh_option_published_code,
                          &lh_option_gradient_wire, &lh_option_hierarchy, &lh_option_pad_heads),
    .placement = LH_PLACE_ZIGZAG,
    .masks_reason = "the blocks of its ring are causal or full",
    .adapt = lh_heads_adapt_group_size,
    .check = lh_heads_check_group_size,
    .declare = usp_declare,
    .generator = { .steps = lh_heads_steps, .emit = lh_heads_emit },
    .closed = {
        .bytes_sent = usp_bytes_sent,
        .flops = lh_heads_ring_flops,
        .peak_bytes = usp_peak_bytes,
        .idle_unit = lh_pass_idle_none,
        .idle_flops = lh_pass_idle_none,
    },
};
