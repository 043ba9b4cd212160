/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule striped, described at the end of this file. Blocks of a ring on striped tokens:
 * under a causal mask every block is a triangle, with its diagonal (s <= r) or without it (s > r),
 * so the work of two ranks in a step differs by at most n pairs.
 */
#include "sched/common/ring_shared.h"
#include "sched/schedule.h"

enum {
    WITH_DIAGONAL,
    BELOW_DIAGONAL,
};

static const LhRingShape *
striped_block(const LhRingPlan *plan, uint32_t q, uint32_t kv)
{
    const LhRingShape *shape =
        &plan->shapes[plan->causal && kv > q ? BELOW_DIAGONAL : WITH_DIAGONAL];

    /* With one token per rank a triangle without its diagonal is empty. */
    return shape->forward.pairs == 0 ? NULL : shape;
}

static void
striped_declare(LhProgram *program)
{
    const LhRegion own = { .count = 1 };
    const bool causal = program->params.mask.causal;
    LhRingPlan *plan = lh_ring_declare(program, striped_block);

    lh_ring_set_shape(program, plan, WITH_DIAGONAL, own, own,
                      causal ? LH_RING_CAUSAL : LH_RING_FULL);
    /* For k, v of a later rank the public code takes q[1:] and k[:-1]; here it is the triangle j
     * <= i - 1 of the whole block. */
    lh_ring_set_shape(program, plan, BELOW_DIAGONAL, own, own, LH_RING_BELOW_DIAGONAL);
}

/* r+1 triangles with their diagonal and P-1-r without. */
static uint64_t
striped_flops(const LhProgramParams *p, uint32_t rank)
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
striped_blocks(const LhProgramParams *p, uint32_t rank)
{
    return lh_pass_rank_blocks(p, LH_PLACE_STRIPED, rank);
}

static double
striped_idle_unit(const LhProgramParams *p)
{
    return lh_mask_is_plain(&p->mask) ? 0 : lh_pass_imbalance(p, striped_blocks);
}

/* The last rank has P triangles with their diagonal: 1 - N (N+1) / (P^2 n (n+1)). */
static double
striped_idle_flops(const LhProgramParams *p)
{
    if (!lh_mask_is_plain(&p->mask))
        return lh_pass_imbalance(p, striped_flops);
    return p->mask.causal ? (p->ranks - 1.0) / ((double)p->attention.seq_length + p->ranks) : 0;
}

const LhSchedule lh_schedule_striped = {
    .name = "striped",
    .summary = "ring on tokens r, r+P, r+2P, ..., which balances a causal mask to one token",
    .details =
        "Striped ring attention as in zhuzilin/ring-flash-attention: the ring on a\n"
        "placement that makes every block of a causal mask a triangle. In local indices\n"
        "query i sees key j if j <= i where k, v are the rank's own or come from an\n"
        "earlier rank (in the steps s <= r), and if j <= i-1 where they come from a later\n"
        "one. Messages and merging are those of ring.\n"
        "\n"
        "bytes sent   forward (P-1) KV; backward (P-1) KV + P G, where G is dk, dv in fp32\n"
        "flops        causal: (r+1) n (n+1)/2 + (P-1-r) n (n-1)/2 pairs on rank r\n"
        "idle         0 counting blocks; causal: (P-1)/(N+P) counting flops\n"
        "buffers      forward 2 KV + fp32 Q + S (the sum) + Q + S (a block's result);\n"
        "             backward 3 KV + 3 G + Q + fp32 Q\n"
        "restrictions N divisible by P\n"
        "windows      With a window or documents, blocks in which no query sees a key are\n"
        "             not computed; k and v make every hop. Idle is 1 - mean / maximum of\n"
        "             the ranks' work\n",
    .options = LH_OPTIONS(&lh_option_no_overlap, &lh_option_gradient_wire),
    .placement = LH_PLACE_STRIPED,
    .masks = LH_MASKS_ALL,
    .declare = striped_declare,
    .generator = { .steps = lh_ring_steps, .emit = lh_ring_emit },
    .closed = {
        .bytes_sent = lh_ring_bytes_sent,
        .flops = striped_flops,
        .peak_bytes = lh_ring_peak_bytes,
        .idle_unit = striped_idle_unit,
        .idle_flops = striped_idle_flops,
    },
};
