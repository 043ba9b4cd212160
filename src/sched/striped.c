/*
 * Ring attention on striped tokens: rank r holds r, r+P, r+2P, ... Every block of a causal mask is
 * a triangle, with its diagonal (s <= r) or without (s > r), so that ranks differ by n pairs only.
 */
#include "sched/common/ring.h"

enum {
    WITH_DIAGONAL,
    BELOW_DIAGONAL,
};

static const LhRingShape *
block(const LhRingPlan *plan, uint32_t q, uint32_t kv)
{
    const LhRingShape *shape =
        &plan->shapes[plan->causal && kv > q ? BELOW_DIAGONAL : WITH_DIAGONAL];

    /* Below the diagonal of a single token there is nothing. */
    return shape->forward.pairs == 0 ? NULL : shape;
}

static void
declare(LhProgram *program)
{
    const LhRegion own = { .count = 1 };
    const bool causal = program->params.mask.causal;
    LhRingPlan *plan = lh_ring_declare(program, block);

    lh_ring_set_shape(program, plan, WITH_DIAGONAL, own, own,
                      causal ? LH_RING_CAUSAL : LH_RING_FULL);
    /* k, v of a later rank: q[1:] against k[:-1], the triangle j <= i - 1 of the whole block. */
    lh_ring_set_shape(program, plan, BELOW_DIAGONAL, own, own, LH_RING_BELOW_DIAGONAL);
}

/* r+1 triangles with the diagonal, P-1-r without. */
static uint64_t
flops(const LhProgramParams *p, uint32_t rank)
{
    const uint64_t n = p->attention.seq_length / p->ranks;
    const uint64_t with = rank + 1;

    if (!lh_mask_is_plain(&p->mask))
        return lh_pass_flops(p, lh_pass_rank_pairs(p, LH_PLACE_STRIPED, rank));
    if (!p->mask.causal)
        return lh_pass_flops(p, p->ranks * n * n);
    return lh_pass_flops(p, with * (n * (n + 1) / 2) + (p->ranks - with) * (n * (n - 1) / 2));
}

static uint64_t
blocks(const LhProgramParams *p, uint32_t rank)
{
    return lh_pass_rank_blocks(p, LH_PLACE_STRIPED, rank);
}

static double
idle_unit(const LhProgramParams *p)
{
    return lh_mask_is_plain(&p->mask) ? 0 : lh_pass_imbalance(p, blocks);
}

/* The last rank has P triangles with diagonal: 1 - N (N+1) / (P^2 n (n+1)). */
static double
idle_flops(const LhProgramParams *p)
{
    if (!lh_mask_is_plain(&p->mask))
        return lh_pass_imbalance(p, flops);
    return p->mask.causal ? (p->ranks - 1.0) / ((double)p->attention.seq_length + p->ranks) : 0;
}

const LhSchedule lh_schedule_striped = {
    .name = "striped",
    .summary = "ring on tokens r, r+P, r+2P, ...: a causal mask is balanced to a token",
    .details =
        "Striped ring attention as in zhuzilin/ring-flash-attention: rank r holds\n"
        "tokens r + iP. A block is causal in local indices: j <= i when k, v come from\n"
        "an earlier rank or the own one (s <= r), j <= i-1 when they come from a later\n"
        "one. Traffic and buffers as in ring.\n"
        "\n"
        "bytes sent   fwd (P-1) KV; bwd (P-1) KV + P G, G = dk, dv in fp32\n"
        "flops        (r+1) n(n+1)/2 + (P-1-r) n(n-1)/2 pairs on rank r, causal\n"
        "idle         0 counting blocks, (P-1)/(N+P) counting flops\n"
        "buffers      fwd 2 KV + fp32 out + block; bwd 2 KV + 3 G + KV + Q + fp32 dq\n"
        "restrictions sequence length divisible by P\n"
        "masks        with a window or documents, blocks without pairs are not computed;\n"
        "             every hop is made; idle is then 1 - mean / most of the ranks\n",
    .options = LH_OPTIONS(&lh_option_no_overlap, &lh_option_gradient_wire),
    .placement = LH_PLACE_STRIPED,
    .masks = LH_MASKS_ALL,
    .declare = declare,
    .generator = { .steps = lh_ring_steps, .emit = lh_ring_emit },
    .closed = {
        .bytes_sent = lh_ring_bytes_sent,
        .flops = flops,
        .peak_bytes = lh_ring_peak_bytes,
        .idle_unit = idle_unit,
        .idle_flops = idle_flops,
    },
};
