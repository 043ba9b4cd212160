/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule ring, described at the end of this file. Blocks of a ring on contiguous tokens: the
 * diagonal, all blocks below it, and none above it.
 */
#include "sched/common/ring_shared.h"
#include "sched/schedule.h"

enum {
    DIAGONAL,
    FULL,
};

static const LhRingShape *
ring_block(const LhRingPlan *plan, uint32_t q, uint32_t kv)
{
    if (plan->causal && kv > q)
        return NULL;
    return &plan->shapes[q == kv ? DIAGONAL : FULL];
}

static void
ring_declare(LhProgram *program)
{
    const LhRegion own = { .count = 1 };
    const bool causal = program->params.mask.causal;
    LhRingPlan *plan = lh_ring_declare(program, ring_block);

    lh_ring_set_shape(program, plan, DIAGONAL, own, own, causal ? LH_RING_CAUSAL : LH_RING_FULL);
    lh_ring_set_shape(program, plan, FULL, own, own, LH_RING_FULL);
}

const LhSchedule lh_schedule_ring = {
    .name = "ring",
    .summary = "k and v rotate around a ring; contiguous tokens",
    .details =
        "Ring attention as in zhuzilin/ring-flash-attention. In each of P steps every\n"
        "rank passes k and v on to rank r+1 and meanwhile computes one block with them.\n"
        "A causal mask leaves rank r only r+1 blocks to compute, but k and v make every\n"
        "hop. Partial results (o, lse) are merged in fp32. In the backward pass dk and dv\n"
        "follow k and v one hop behind; their last hop, which brings them back to their\n"
        "owner, is exposed.\n"
        "\n"
        "bytes sent   forward (P-1) KV; backward (P-1) KV + P G, where G is dk, dv in fp32\n"
        "flops        causal: (r + 1/2) F on rank r\n"
        "idle         causal: (P-1)/(2P) counting blocks, about (P-1)/(2P-1) counting\n"
        "             flops; full mask: 0\n"
        "buffers      forward 2 KV + fp32 Q + S (the sum) + Q + S (a block's result);\n"
        "             backward 3 KV + 3 G + Q + fp32 Q\n"
        "restrictions N divisible by P\n"
        "windows      With a window or documents, blocks in which no query sees a key are\n"
        "             not computed; k and v make every hop. Idle is 1 - mean / maximum of\n"
        "             the ranks' work\n",
    .options = LH_OPTIONS(&lh_option_no_overlap, &lh_option_gradient_wire),
    .placement = LH_PLACE_CONTIGUOUS,
    .masks = LH_MASKS_ALL,
    .declare = ring_declare,
    .generator = { .steps = lh_ring_steps, .emit = lh_ring_emit },
    .closed = {
        .bytes_sent = lh_ring_bytes_sent,
        .flops = lh_contiguous_flops,
        .peak_bytes = lh_ring_peak_bytes,
        .idle_unit = lh_contiguous_idle_unit,
        .idle_flops = lh_contiguous_idle_flops,
    },
};
