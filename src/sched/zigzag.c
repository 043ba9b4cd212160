/*
 * Ring attention on zigzag halves: rank r holds half-chunks r and 2P-1-r, so that every step of a
 * causal mask has the same work on every rank. With the full mask every block is full.
 */
#include "sched/ring_family.h"

enum {
    OWN,      /* both halves against both: the diagonal */
    FIRST_KV, /* both halves of q against the first of k, v: those are all in the past */
    SECOND_Q, /* the second half of q against both of k, v */
};

static const LhRingShape *
block(const LhRingPlan *plan, uint32_t rank, uint32_t step)
{
    if (step == 0 || !plan->causal)
        return &plan->shapes[OWN];
    return &plan->shapes[step <= rank ? FIRST_KV : SECOND_Q];
}

static void
declare(LhProgram *program)
{
    const LhRegion first = { .part = 0, .count = 1 };
    const LhRegion second = { .part = 1, .count = 1 };
    const LhRegion both = { .part = 0, .count = 2 };

    if (lh_ring_declare(program, block) == NULL)
        return;
    /* The halves lie in the order of their tokens, so the diagonal is causal in local indices. */
    lh_ring_set_shape(program, OWN, both, both,
                      program->params.mask.causal ? LH_MASK_CAUSAL : LH_MASK_FULL, 0);
    lh_ring_set_shape(program, FIRST_KV, both, first, LH_MASK_FULL, 0);
    lh_ring_set_shape(program, SECOND_Q, second, both, LH_MASK_FULL, 0);
}

/* The diagonal, and P-1 halves of a full block. */
static uint64_t
flops(const LhProgramParams *p, uint32_t rank)
{
    const uint64_t n = p->attention.seq_length / p->ranks;

    (void)rank;
    if (!p->mask.causal)
        return lh_pass_flops(p, p->ranks * n * n);
    return lh_pass_flops(p, n * (n + 1) / 2 + (p->ranks - 1) * (n * n / 2));
}

static double
idle_none(const LhProgramParams *p)
{
    (void)p;
    return 0;
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
        "restrictions sequence length divisible by 2P\n",
    .placement = LH_PLACE_ZIGZAG,
    .masks_reason = "its blocks are causal or full",
    .declare = declare,
    .steps = lh_ring_steps,
    .emit = lh_ring_emit,
    .closed = {
        .bytes_sent = lh_ring_bytes_sent,
        .flops = flops,
        .peak_bytes = lh_ring_peak_bytes,
        .idle_unit = idle_none,
        .idle_flops = idle_none,
    },
};
