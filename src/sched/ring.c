/*
 * Ring attention on contiguous tokens. Causal: rank r computes in the steps s <= r only, and the
 * others idle: the last rank does twice the mean. Every hop is made all the same.
 */
#include "sched/common/ring.h"

enum {
    DIAGONAL,
    FULL,
};

static const LhRingShape *
block(const LhRingPlan *plan, uint32_t q, uint32_t kv)
{
    if (plan->causal && kv > q)
        return NULL;
    return &plan->shapes[q == kv ? DIAGONAL : FULL];
}

static void
declare(LhProgram *program)
{
    const LhRegion own = { .count = 1 };
    const bool causal = program->params.mask.causal;
    LhRingPlan *plan = lh_ring_declare(program, block);

    lh_ring_set_shape(program, plan, DIAGONAL, own, own, causal ? LH_RING_CAUSAL : LH_RING_FULL);
    lh_ring_set_shape(program, plan, FULL, own, own, LH_RING_FULL);
}

const LhSchedule lh_schedule_ring = {
    .name = "ring",
    .summary = "k, v rotate around a ring; contiguous tokens",
    .details =
        "Ring attention as in zhuzilin/ring-flash-attention: rank r holds tokens [r n,\n"
        "(r+1) n). In each of P steps every rank passes k and v to rank r+1 while it\n"
        "computes one block; the causal mask leaves rank r r+1 blocks, but all hops are\n"
        "made. Block outputs (o, lse) are merged into fp32. Backward, fp32 dk and dv\n"
        "follow one hop behind; their last hop is exposed.\n"
        "\n"
        "bytes sent   fwd (P-1) KV; bwd (P-1) KV + P G, G = dk, dv in fp32\n"
        "flops        (r + 1/2) F on rank r, causal\n"
        "idle         (P-1)/(2P) counting blocks, (P-1)/(2P-1) counting flops; 0 with\n"
        "             the full mask\n"
        "buffers      fwd 2 KV + fp32 out + block; bwd 2 KV + 3 G + KV + Q + fp32 dq\n"
        "restrictions sequence length divisible by P\n"
        "masks        with a window or documents, blocks without pairs are not computed;\n"
        "             every hop is made; idle is then 1 - mean / most of the ranks\n",
    .options = LH_OPTIONS(&lh_option_no_overlap, &lh_option_gradient_wire),
    .placement = LH_PLACE_CONTIGUOUS,
    .masks = LH_MASKS_ALL,
    .declare = declare,
    .generator = { .steps = lh_ring_steps, .emit = lh_ring_emit },
    .closed = {
        .bytes_sent = lh_ring_bytes_sent,
        .flops = lh_contiguous_flops,
        .peak_bytes = lh_ring_peak_bytes,
        .idle_unit = lh_contiguous_idle_unit,
        .idle_flops = lh_contiguous_idle_flops,
    },
};
