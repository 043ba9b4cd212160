/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule dfa-unbalanced, described at the end of this file. In step t a rank computes with k,
 * v received during step t-1, and its exchange receives those of step t+1; backward it also returns
 * dk, dv of step t-1. Buffers of k, v and of dk, dv alternate. This schedule has no public code:
 * the grouping of messages into one exchange a step, and the buffers, are choices of this project.
 */
#include "sched/common/pass.h"
#include "sched/schedule.h"

enum {
    DFA_UNBALANCED_TAG_KV,
    DFA_UNBALANCED_TAG_DKV,
};

typedef struct {
    LhPassSizes sizes;
    LhPassSlots io;
    uint32_t ranks;
    bool causal, overlap;
    uint16_t fwd_first, fwd_end, bwd_first, bwd_end;
    uint16_t fwd_acc, fwd_kv[2];
    uint16_t bwd_kv[2], bwd_dkv[2], bwd_dkv_in, bwd_dq, bwd_delta;
    LhPassSums sums;
    LhKernelArgs own, full, q_rows, kv_rows;
} DfaUnbalancedPlan;

static void
dfa_unbalanced_declare_forward(LhProgram *program, DfaUnbalancedPlan *plan)
{
    const LhPassSizes *z = &plan->sizes;

    plan->fwd_first = (uint16_t)program->slots_count;
    plan->fwd_acc =
        lh_pass_add_buffer(program, "fwd_acc", LH_TENSOR_ACC, z->q / z->e * 4 + 2 * z->s, 4);
    plan->fwd_kv[0] = lh_pass_add_buffer(program, "fwd_kv0", LH_TENSOR_KV, z->kv, z->e);
    plan->fwd_kv[1] = lh_pass_add_buffer(program, "fwd_kv1", LH_TENSOR_KV, z->kv, z->e);
    plan->fwd_end = (uint16_t)program->slots_count;
}

static void
dfa_unbalanced_declare_backward(LhProgram *program, DfaUnbalancedPlan *plan)
{
    const LhPassSizes *z = &plan->sizes;

    plan->bwd_first = (uint16_t)program->slots_count;
    plan->bwd_delta = lh_pass_add_buffer(program, "bwd_delta", LH_TENSOR_DELTA, z->s, 4);
    plan->bwd_kv[0] = lh_pass_add_buffer(program, "bwd_kv0", LH_TENSOR_KV, z->kv, z->e);
    plan->bwd_kv[1] = lh_pass_add_buffer(program, "bwd_kv1", LH_TENSOR_KV, z->kv, z->e);
    plan->bwd_dkv[0] = lh_pass_add_buffer(program, "bwd_dkv0", LH_TENSOR_DKV, z->dkv, z->w);
    plan->bwd_dkv[1] = lh_pass_add_buffer(program, "bwd_dkv1", LH_TENSOR_DKV, z->dkv, z->w);
    plan->bwd_dkv_in = lh_pass_add_buffer(program, "bwd_dkv_in", LH_TENSOR_DKV, z->dkv, z->w);
    plan->bwd_dq = lh_pass_add_buffer(program, "bwd_dq", LH_TENSOR_DQ, z->q, z->e);
    plan->sums = lh_pass_add_sums(program, z);
    plan->bwd_end = (uint16_t)program->slots_count;
}

static void
dfa_unbalanced_declare(LhProgram *program)
{
    const LhProgramParams *p = &program->params;
    DfaUnbalancedPlan *plan = g_new0(DfaUnbalancedPlan, 1);

    program->plan = plan;
    plan->sizes = lh_pass_sizes(p, 0);
    plan->io = lh_pass_declare(program, &plan->sizes);
    plan->ranks = p->ranks;
    plan->causal = p->mask.causal;
    plan->overlap = lh_pass_overlaps(p);
    plan->own = lh_pass_block_args(p, plan->sizes.n, plan->sizes.n,
                                   p->mask.causal ? LH_MASK_CAUSAL : LH_MASK_FULL, 0);
    plan->full = lh_pass_block_args(p, plan->sizes.n, plan->sizes.n, LH_MASK_FULL, 0);
    plan->q_rows = lh_pass_q_args(p, plan->sizes.n);
    plan->kv_rows = lh_pass_kv_args(p, plan->sizes.n);
    if (lh_pass_has(p, LH_PASS_FWD))
        dfa_unbalanced_declare_forward(program, plan);
    if (lh_pass_has(p, LH_PASS_BWD))
        dfa_unbalanced_declare_backward(program, plan);
}

/* The ranks whose queries see keys of @rank. */
static LhRankRange
users(const LhProgramParams *p, uint32_t rank)
{
    const uint64_t length = p->attention.seq_length, n = length / p->ranks;
    const uint64_t last = (rank + 1) * n - 1;
    LhMaskRule both_ways = p->mask;
    uint64_t end;

    if (!p->mask.causal)
        return lh_pass_owners(p, rank);
    both_ways.causal = false;
    end = lh_mask_keys(&both_ways, last, length).end;
    if (p->mask.window != 0)
        end = MIN(end, last + p->mask.window);
    return (LhRankRange){ rank, (uint32_t)((end - 1) / n) };
}

static bool
is_in(LhRankRange range, uint32_t rank)
{
    return range.first <= rank && rank <= range.last;
}

/* Whether @rank computes, in step @t, with k, v of another rank, which it fetches in step @t -
 * 1; and whether another rank computes in step @t with those of @rank. */
static bool
fetches(const LhProgramParams *p, uint32_t rank, uint32_t t)
{
    return t > 0 && t < p->ranks &&
           is_in(lh_pass_owners(p, rank), (rank + p->ranks - t) % p->ranks);
}

static bool
serves(const LhProgramParams *p, uint32_t rank, uint32_t t)
{
    return t > 0 && t < p->ranks && is_in(users(p, rank), (rank + t) % p->ranks);
}

/* The last step for which fetches(), or serves(), is true; 0 if none. Owners with a higher rank
 * come last. */
static uint32_t
last_fetched(const LhProgramParams *p, uint32_t rank)
{
    const LhRankRange range = lh_pass_owners(p, rank);

    return range.last > rank ? p->ranks - 1 : rank - range.first;
}

static uint32_t
last_served(const LhProgramParams *p, uint32_t rank)
{
    const LhRankRange range = users(p, rank);

    return range.first < rank ? p->ranks - 1 : range.last - rank;
}

/* Step t computes with k, v received in step t-1, and sends those that others use in step t+1. */
static uint32_t
dfa_unbalanced_forward_steps(const LhProgramParams *p, uint32_t rank)
{
    return MAX(last_fetched(p, rank) + 1, last_served(p, rank));
}

/* dk, dv of the block of step t are sent in step t+1. */
static uint32_t
dfa_unbalanced_backward_steps(const LhProgramParams *p, uint32_t rank)
{
    return MAX(last_fetched(p, rank), last_served(p, rank)) + 2;
}

static uint32_t
dfa_unbalanced_steps(const LhProgram *program, uint32_t rank)
{
    const LhProgramParams *p = &program->params;

    return (lh_pass_has(p, LH_PASS_FWD) ? dfa_unbalanced_forward_steps(p, rank) : 0) +
           (lh_pass_has(p, LH_PASS_BWD) ? dfa_unbalanced_backward_steps(p, rank) : 0);
}

/* The rank whose k, v this rank uses in step @t, and the rank that uses this rank's. */
static uint32_t
owner_of(const LhEmitter *e, const DfaUnbalancedPlan *plan, uint32_t t)
{
    return e->rank >= t ? e->rank - t : e->rank + plan->ranks - t;
}

static uint32_t
user_of(const LhEmitter *e, const DfaUnbalancedPlan *plan, uint32_t t)
{
    return e->rank + t < plan->ranks ? e->rank + t : e->rank + t - plan->ranks;
}

/* Sends the rank's k, v to the rank that uses them in step @t + 1, and receives those that it uses
 * itself. */
static void
prefetch(LhEmitter *e, const DfaUnbalancedPlan *plan, uint32_t t, uint16_t into)
{
    const LhProgramParams *p = &e->program->params;

    if (serves(p, e->rank, t + 1))
        lh_pass_message(e, true, user_of(e, plan, t + 1), DFA_UNBALANCED_TAG_KV, plan->io.kv, 1);
    if (fetches(p, e->rank, t + 1))
        lh_pass_message(e, false, owner_of(e, plan, t + 1), DFA_UNBALANCED_TAG_KV, into, 1);
}

static bool
prefetches(const LhEmitter *e, uint32_t t)
{
    const LhProgramParams *p = &e->program->params;

    return serves(p, e->rank, t + 1) || fetches(p, e->rank, t + 1);
}

/* Arguments of the block of step @t, without `first`. */
static LhKernelArgs
block_args(const LhEmitter *e, const DfaUnbalancedPlan *plan, uint32_t t)
{
    const LhPlacement *placement = &e->program->placement;
    const LhSegment q = lh_placement_segment(placement, e->rank);
    const LhSegment k = lh_placement_segment(placement, owner_of(e, plan, t));

    if (lh_mask_is_plain(&e->program->params.mask))
        return t == 0 ? plan->own : plan->full;
    return lh_pass_position_args(e->program, (LhPassRows){ .first = q, .parts = 1 },
                                 (LhPassRows){ .first = k, .parts = 1 });
}

static void
dfa_unbalanced_forward_block(LhEmitter *e, const DfaUnbalancedPlan *plan, uint32_t t)
{
    LhKernelArgs args = block_args(e, plan, t);

    args.first = t == 0;
    lh_pass_compute(e, LH_KERNEL_ID_attention_fwd, &args);
    lh_emit_operand(e, plan->io.q, 0, 1);
    lh_emit_operand(e, t == 0 ? plan->io.kv : plan->fwd_kv[(t - 1) % 2], 0, 1);
    lh_emit_operand(e, plan->fwd_acc, 0, 1);
    if (t != last_fetched(&e->program->params, e->rank))
        return;
    lh_pass_compute(e, LH_KERNEL_ID_normalise, &plan->q_rows);
    lh_emit_operand(e, plan->fwd_acc, 0, 1);
    lh_emit_operand(e, plan->io.o, 0, 1);
    lh_emit_operand(e, plan->io.lse, 0, 1);
}

static void
dfa_unbalanced_forward(LhEmitter *e, const DfaUnbalancedPlan *plan, uint32_t t)
{
    const LhProgramParams *p = &e->program->params;
    uint32_t arrival = LH_OP_NONE;

    if (t == 0)
        lh_pass_alloc(e, plan->fwd_first, plan->fwd_end);
    if (prefetches(e, t)) {
        lh_pass_exchange(e);
        arrival = e->marks[LH_MARK_EXCHANGE];
        prefetch(e, plan, t, plan->fwd_kv[t % 2]);
    }
    if (!plan->overlap)
        lh_pass_wait(e, arrival);
    if (t == 0 || fetches(p, e->rank, t))
        dfa_unbalanced_forward_block(e, plan, t);
    lh_pass_wait(e, arrival);
    if (t + 1 == dfa_unbalanced_forward_steps(p, e->rank))
        lh_pass_free(e, plan->fwd_first, plan->fwd_end);
}

static void
dfa_unbalanced_backward_block(LhEmitter *e, const DfaUnbalancedPlan *plan, uint32_t t)
{
    const bool own = t == 0;
    const LhPassSlots *io = &plan->io;
    LhKernelArgs args = block_args(e, plan, t);

    args.first = true;
    if (own) {
        lh_pass_compute(e, LH_KERNEL_ID_delta, &plan->q_rows);
        lh_emit_operand(e, io->dout, 0, 1);
        lh_emit_operand(e, io->o, 0, 1);
        lh_emit_operand(e, plan->bwd_delta, 0, 1);
    }
    lh_pass_compute(e, LH_KERNEL_ID_attention_bwd, &args);
    lh_emit_operand(e, io->q, 0, 1);
    lh_emit_operand(e, io->dout, 0, 1);
    lh_emit_operand(e, plan->bwd_delta, 0, 1);
    lh_emit_operand(e, io->lse, 0, 1);
    lh_emit_operand(e, own ? io->kv : plan->bwd_kv[(t - 1) % 2], 0, 1);
    lh_emit_operand(e, own ? plan->sums.dq : plan->bwd_dq, 0, 1);
    lh_emit_operand(e, own ? plan->sums.dkv : plan->bwd_dkv[t % 2], 0, 1);
    if (own)
        return;
    lh_pass_compute(e, LH_KERNEL_ID_add_to_fp32, &plan->q_rows);
    lh_emit_operand(e, plan->bwd_dq, 0, 1);
    lh_emit_operand(e, plan->sums.dq, 0, 1);
}

/* Posts the exchange of step @t: k, v of step @t + 1, and dk, dv of the blocks of step @t - 1.
 * With @give the rank returns dk, dv to their owner, with @take it receives its own from their
 * user. */
static uint32_t
dfa_unbalanced_backward_exchange(LhEmitter *e, const DfaUnbalancedPlan *plan, uint32_t t, bool give,
                                 bool take)
{
    if (!prefetches(e, t) && !give && !take)
        return LH_OP_NONE;
    lh_pass_exchange(e);
    prefetch(e, plan, t, plan->bwd_kv[t % 2]);
    if (give)
        lh_pass_message(e, true, owner_of(e, plan, t - 1), DFA_UNBALANCED_TAG_DKV,
                        plan->bwd_dkv[(t - 1) % 2], 1);
    if (take)
        lh_pass_message(e, false, user_of(e, plan, t - 1), DFA_UNBALANCED_TAG_DKV, plan->bwd_dkv_in,
                        1);
    return e->marks[LH_MARK_EXCHANGE];
}

static void
dfa_unbalanced_backward(LhEmitter *e, const DfaUnbalancedPlan *plan, uint32_t t)
{
    const LhProgramParams *p = &e->program->params;
    const bool give = t >= 2 && fetches(p, e->rank, t - 1);
    const bool take = t >= 2 && serves(p, e->rank, t - 1);
    uint32_t arrival;

    if (t == 0)
        lh_pass_alloc(e, plan->bwd_first, plan->bwd_end);
    arrival = dfa_unbalanced_backward_exchange(e, plan, t, give, take);
    if (!plan->overlap)
        lh_pass_wait(e, arrival);
    if (t == 0 || fetches(p, e->rank, t))
        dfa_unbalanced_backward_block(e, plan, t);
    lh_pass_wait(e, arrival);
    if (take) {
        lh_pass_compute(e, LH_KERNEL_ID_add_to_fp32, &plan->kv_rows);
        lh_emit_operand(e, plan->bwd_dkv_in, 0, 1);
        lh_emit_operand(e, plan->sums.dkv, 0, 1);
    }
    if (t + 1 < dfa_unbalanced_backward_steps(p, e->rank))
        return;
    lh_pass_end_sums(e, &plan->sums, &plan->io, &plan->q_rows, &plan->kv_rows);
    lh_pass_free(e, plan->bwd_first, plan->bwd_end);
}

static void
dfa_unbalanced_emit(LhEmitter *e, uint32_t step)
{
    const LhProgramParams *p = &e->program->params;
    const DfaUnbalancedPlan *plan = e->program->plan;
    const uint32_t t = lh_pass_enter(e, step, dfa_unbalanced_forward_steps(p, e->rank));

    if (e->phase == LH_PHASE_FORWARD)
        dfa_unbalanced_forward(e, plan, t);
    else
        dfa_unbalanced_backward(e, plan, t);
}

/* Forward: a rank sends its k, v to each of their users. Backward: also dk, dv to each owner.
 * Causal: forward (P-1-r) KV, backward (P-1-r) KV + r G. Full mask: P-1 in place of both counts. */
static uint64_t
dfa_unbalanced_bytes_sent(const LhProgramParams *p, uint32_t rank)
{
    const LhPassSizes z = lh_pass_sizes(p, 0);
    const LhRankRange from = lh_pass_owners(p, rank), to = users(p, rank);
    const uint64_t used = to.last - to.first, fetched = from.last - from.first;

    return (lh_pass_has(p, LH_PASS_FWD) ? used * z.kv : 0) +
           (lh_pass_has(p, LH_PASS_BWD) ? used * z.kv + fetched * z.dkv : 0);
}

/* Forward an fp32 accumulator + 2 KV; backward 2 KV + 3 G + Q + delta + the fp32 sums. */
static uint64_t
dfa_unbalanced_peak_bytes(const LhProgramParams *p, uint32_t rank)
{
    const LhPassSizes z = lh_pass_sizes(p, 0);

    (void)rank;
    return lh_pass_peak_bytes(p, z.q / z.e * 4 + 2 * z.s + 2 * z.kv,
                              2 * z.kv + 3 * z.dkv + z.q + z.s + lh_pass_sums_bytes(&z));
}

const LhSchedule lh_schedule_dfa_unbalanced = {
    .name = "dfa-unbalanced",
    .summary = "DistFlashAttention unbalanced: k, v fetched from their owners; contiguous tokens",
    .details =
        "DistFlashAttention (LightSeq) without load balancing: algorithm 1 of the paper.\n"
        "Rank r computes its diagonal block in step 0 and attends to k, v of rank r-t in\n"
        "step t. It fetches them straight from their owner during step t-1. The backward\n"
        "pass fetches the same k, v, and returns dk and dv of each fetched block to their\n"
        "owner, which adds them up, during the step after. With the full mask every rank\n"
        "fetches from all others.\n"
        "\n"
        "bytes sent   causal: forward (P-1-r) KV; backward (P-1-r) KV + r G. The last\n"
        "             rank sends no k, v, but receives (P-1) KV in each pass\n"
        "             full mask: forward (P-1) KV; backward (P-1) (KV + G)\n"
        "flops        causal: (r + 1/2) F on rank r\n"
        "idle         causal: (P-1)/(2P) counting blocks, about (P-1)/(2P-1) counting\n"
        "             flops; full mask: 0\n"
        "buffers      forward an fp32 accumulator (o, m, l) + 2 KV;\n"
        "             backward 2 KV + 3 G + Q + S + fp32 sums of dq and of dk, dv\n"
        "restrictions N divisible by P\n"
        "windows      With a window or documents a rank fetches only k, v that its\n"
        "             queries see. If `users` ranks see its k, v and it sees those of\n"
        "             `owners` ranks, itself among both, it sends (users - 1) KV forward\n"
        "             and (users - 1) KV + (owners - 1) G backward. Idle is\n"
        "             1 - mean / maximum of the ranks' work\n",
    .options = LH_OPTIONS(&lh_option_no_overlap, &lh_option_gradient_wire),
    .placement = LH_PLACE_CONTIGUOUS,
    .masks = LH_MASKS_ALL,
    .declare = dfa_unbalanced_declare,
    .generator = { .steps = dfa_unbalanced_steps, .emit = dfa_unbalanced_emit },
    .closed = {
        .bytes_sent = dfa_unbalanced_bytes_sent,
        .flops = lh_contiguous_flops,
        .peak_bytes = dfa_unbalanced_peak_bytes,
        .idle_unit = lh_contiguous_idle_unit,
        .idle_flops = lh_contiguous_idle_flops,
    },
};
