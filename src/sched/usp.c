/*
 * USP (yunchang): groups of U ranks exchange heads as in Ulysses, and R = P/U ranks, one of each
 * group, are a zigzag ring with h/U heads. Rings of one rank compute attention at once, groups of
 * one rank exchange nothing. Not modelled: a ring rank's messages to itself when R is 1.
 */
#include "sched/common/heads.h"
#include "sched/common/ring.h"

typedef struct {
    LhHeads heads;
    LhRingPlan ring; /* if it has more than one rank */
} Plan;

static LhHeads
heads_of(const LhProgramParams *p)
{
    const uint32_t size = lh_heads_size(p);

    return (LhHeads){
        .cut = { size, size, size },
        .move = lh_heads_move_one_by_one,
        .grads_narrow = true,
    };
}

static void
attend(LhEmitter *e, uint32_t step)
{
    const Plan *plan = e->program->plan;

    if (e->phase == LH_PHASE_FORWARD)
        lh_ring_forward(e, &plan->ring, step);
    else
        lh_ring_backward(e, &plan->ring, step);
}

static void
declare(LhProgram *program)
{
    const LhProgramParams *p = &program->params;
    const uint32_t ring_ranks = p->ranks / lh_heads_size(p);
    LhPassSlots slots;
    Plan *plan = g_new0(Plan, 1);

    program->plan = plan;
    program->placement.split = lh_heads_size(p);
    plan->heads = heads_of(p);
    lh_heads_declare(program, &plan->heads);
    if (ring_ranks == 1) {
        lh_heads_set_whole(program, &plan->heads);
        return;
    }
    plan->heads.attend = attend;
    plan->heads.forward_steps = plan->heads.backward_steps = ring_ranks;
    slots = lh_heads_slots(&plan->heads);
    lh_ring_init(&plan->ring, program, &slots, lh_heads_size(p), plan->heads.parts);
    lh_ring_set_zigzag(program, &plan->ring);
    if (lh_pass_has(p, LH_PASS_FWD))
        lh_ring_declare_forward(program, &plan->ring);
    if (lh_pass_has(p, LH_PASS_BWD))
        lh_ring_declare_backward(program, &plan->ring);
}

/* The all-to-alls, and R-1 hops of k, v in both passes, and R of their gradients. */
static uint64_t
bytes_sent(const LhProgramParams *p, uint32_t rank)
{
    const LhHeads heads = heads_of(p);
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

/* The ring has the buffers of zigzag: h/U heads of U times as many tokens. */
static uint64_t
peak_bytes(const LhProgramParams *p, uint32_t rank)
{
    const LhHeads heads = heads_of(p);
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
    .summary = "Ulysses in groups of U ranks, a zigzag ring of P/U between the groups",
    .details =
        "Unified sequence parallelism (arXiv:2405.07719, feifeibear/\n"
        "long-context-attention): a grid of U x R = P ranks. The sequence is cut into 2R\n"
        "halves in zigzag; the U ranks of a group, which follow each other, share those\n"
        "of one ring position, and all-to-alls of heads as in Ulysses give each of them\n"
        "all tokens of the group for h/U heads. Ranks of equal place in their groups are\n"
        "a zigzag ring (see zigzag) with these heads. Backward likewise; what forward\n"
        "has gathered stays by heads.\n"
        "\n"
        "bytes sent   fwd (2 Q + KV) (U-1)/U + (R-1) KV;\n"
        "             bwd (2 Q + KV) (U-1)/U + (R-1) KV + R G, G = dk, dv in fp32; for\n"
        "             R = 1 without the ring. A hop of h/U heads of U n tokens is as large\n"
        "             as one of the plain ring; there are fewer. The Attention2D paper\n"
        "             prints O(B N h d), which is U = h only: in elements, MHA, the ring has\n"
        "             2 B N (h d/U) (R-1)/R, the all-to-alls 4 B N (h d/P) (U-1)/U\n"
        "flops        P F / 2 on every rank, causal\n"
        "idle         0\n"
        "buffers      of ulysses and of zigzag together\n"
        "group size   --hierarchical-context-parallel-sizes U,R; by default U is the\n"
        "             largest that divides ranks, groups and the devices of a node. The\n"
        "             type of gradients on the wire is that of the ring; all-to-alls\n"
        "             move what it leaves, in e bytes\n"
        "restrictions sequence length divisible by 2P; U divides P and the groups\n",
    .options = LH_OPTIONS(&lh_option_no_overlap, &lh_option_gradient_wire, &lh_option_hierarchy,
                          &lh_option_pad_heads),
    .placement = LH_PLACE_ZIGZAG,
    .masks_reason = "the blocks of its ring are causal or full",
    .adapt = lh_heads_adapt_group_size,
    .check = lh_heads_check_group_size,
    .declare = declare,
    .generator = { .steps = lh_heads_steps, .emit = lh_heads_emit },
    .closed = {
        .bytes_sent = bytes_sent,
        .flops = lh_heads_ring_flops,
        .peak_bytes = peak_bytes,
        .idle_unit = lh_pass_idle_none,
        .idle_flops = lh_pass_idle_none,
    },
};
