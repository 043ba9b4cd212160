/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule zigzag, described at the end of this file: the ring with the zigzag blocks that
 * several schedules share; see lh_ring_set_zigzag.
 */
#include "sched/common/ring_shared.h"
#include "sched/schedule.h"

static void
zigzag_declare(LhProgram *program)
{
    lh_ring_set_zigzag(program, lh_ring_declare(program, NULL));
}

const LhSchedule lh_schedule_zigzag = {
    .name = "zigzag",
    .summary = "ring on half-chunks r and 2P-1-r, which balances a causal mask",
    .details =
        "Zigzag ring attention as in zhuzilin/ring-flash-attention: the ring on a\n"
        "placement that gives every rank the same work under a causal mask. Step 0 is the\n"
        "causal diagonal. If k, v come from an earlier rank (in the steps s <= r), both\n"
        "half-chunks of q see the first half-chunk of k, v; if they come from a later\n"
        "one, the second half-chunk of q sees both. Either is half a block. k and v\n"
        "travel whole in every hop. Messages and merging are those of ring.\n"
        "\n"
        "bytes sent   forward (P-1) KV; backward (P-1) KV + P G, where G is dk, dv in fp32\n"
        "flops        causal: about P F / 2 on every rank, n (n+1)/2 + (P-1) n^2/2 pairs\n"
        "idle         0\n"
        "buffers      forward 2 KV + fp32 Q + S (the sum) + Q + S (a block's result);\n"
        "             backward 3 KV + 3 G + Q + fp32 Q\n"
        "restrictions N divisible by 2P\n"
        "windows      With a window or documents, half-chunks in which no query sees a\n"
        "             key are left out of the computation; k and v make every hop. Idle is\n"
        "             1 - mean / maximum of the ranks' work\n",
    .options = LH_OPTIONS(&lh_option_no_overlap, &lh_option_gradient_wire),
    .placement = LH_PLACE_ZIGZAG,
    .masks = LH_MASKS_ALL,
    .declare = zigzag_declare,
    .generator = { .steps = lh_ring_steps, .emit = lh_ring_emit },
    .closed = {
        .bytes_sent = lh_ring_bytes_sent,
        .flops = lh_zigzag_flops,
        .peak_bytes = lh_ring_peak_bytes,
        .idle_unit = lh_zigzag_idle_unit,
        .idle_flops = lh_zigzag_idle_flops,
    },
};
