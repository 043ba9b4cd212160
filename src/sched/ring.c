/*
 * Ring attention on contiguous tokens. Causal: rank r computes in the steps s <= r only, and the
 * others idle: the last rank does twice the mean. Every hop is made all the same.
 */
#include "sched/ring_family.h"

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

    if (plan == NULL)
        return;
    lh_ring_set_shape(program, plan, DIAGONAL, own, own, causal ? LH_RING_CAUSAL : LH_RING_FULL);
    lh_ring_set_shape(program, plan, FULL, own, own, LH_RING_FULL);
}

/* r full blocks and the diagonal. */
static uint64_t
flops(const LhProgramParams *p, uint32_t rank)
{
    const uint64_t n = p->attention.seq_length / p->ranks;
    const uint64_t full = p->mask.causal ? rank : p->ranks - 1;
    const uint64_t own = p->mask.causal ? n * (n + 1) / 2 : n * n;

    if (!lh_mask_is_plain(&p->mask))
        return lh_pass_flops(p, lh_pass_rank_pairs(p, LH_PLACE_CONTIGUOUS, rank));
    return lh_pass_flops(p, full * n * n + own);
}

static uint64_t
blocks(const LhProgramParams *p, uint32_t rank)
{
    return lh_pass_rank_blocks(p, LH_PLACE_CONTIGUOUS, rank);
}

static double
idle_unit(const LhProgramParams *p)
{
    if (!lh_mask_is_plain(&p->mask))
        return lh_pass_imbalance(p, blocks);
    return p->mask.causal ? (p->ranks - 1.0) / (2.0 * p->ranks) : 0;
}

/* 1 - N (N+1) / 2 / (P ((P-1) n^2 + n (n+1) / 2)), which tends to (P-1) / (2P-1). */
static double
idle_flops(const LhProgramParams *p)
{
    const double ranks = p->ranks;
    const double n = (double)p->attention.seq_length / ranks;

    if (!lh_mask_is_plain(&p->mask))
        return lh_pass_imbalance(p, flops);
    return p->mask.causal ? (ranks - 1) * n / ((2 * ranks - 1) * n + 1) : 0;
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
    .placement = LH_PLACE_CONTIGUOUS,
    .masks = LH_MASKS_ALL,
    .declare = declare,
    .steps = lh_ring_steps,
    .emit = lh_ring_emit,
    .closed = {
        .bytes_sent = lh_ring_bytes_sent,
        .flops = flops,
        .peak_bytes = lh_ring_peak_bytes,
        .idle_unit = idle_unit,
        .idle_flops = idle_flops,
    },
};
