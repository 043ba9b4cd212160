/*
 * Ring attention on zigzag halves: rank r holds half-chunks r and 2P-1-r, so that every step of a
 * causal mask has the same work on every rank. With the full mask every block is full.
 */
#include "sched/common/ring.h"

static void
declare(LhProgram *program)
{
    lh_ring_set_zigzag(program, lh_ring_declare(program, NULL));
}

const LhSchedule lh_schedule_zigzag = {
    .name = "zigzag",
    .summary = "ring on half-chunks r and 2P-1-r: a causal mask is balanced",
    .details =
        "Zigzag ring attention as in zhuzilin/ring-flash-attention: the sequence is cut\n"
        "into 2P halves and rank r holds halves r and 2P-1-r. Step 0 is the causal\n"
        "diagonal; when k, v come from an earlier rank (s <= r) only their first half\n"
        "matters, otherwise only the second half of q attends. Both are half a block.\n"
        "k, v travel whole in every hop. Backward as in ring.\n"
        "\n"
        "bytes sent   fwd (P-1) KV; bwd (P-1) KV + P G, G = dk, dv in fp32\n"
        "flops        P F / 2 on every rank, causal\n"
        "idle         0\n"
        "buffers      fwd 2 KV + fp32 out + block; bwd 2 KV + 3 G + KV + Q + fp32 dq\n"
        "restrictions sequence length divisible by 2P\n"
        "masks        with a window or documents, half blocks without pairs are not\n"
        "             computed; every hop is made; idle is then 1 - mean / most of the\n"
        "             ranks\n",
    .options = LH_OPTIONS(&lh_option_no_overlap, &lh_option_gradient_wire),
    .placement = LH_PLACE_ZIGZAG,
    .masks = LH_MASKS_ALL,
    .declare = declare,
    .generator = { .steps = lh_ring_steps, .emit = lh_ring_emit },
    .closed = {
        .bytes_sent = lh_ring_bytes_sent,
        .flops = lh_zigzag_flops,
        .peak_bytes = lh_ring_peak_bytes,
        .idle_unit = lh_zigzag_idle_unit,
        .idle_flops = lh_zigzag_idle_flops,
    },
};
