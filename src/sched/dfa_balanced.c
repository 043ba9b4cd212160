/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule dfa-balanced, described at the end of this file. With H = P div 2, step t of rank r
 * computes the block of the queries of rank r with the keys of rank r-t if r >= t, and as a helper
 * the block (r-t+P, r) otherwise. The exchange of step t uses the buffers with index t % 2; the
 * compute of step t uses the others, filled by the exchange of step t-1.
 *
 * The generator for odd P is this project's correction: algorithm 2 of the paper and the public
 * code (RulinShao/LightSeq) are for even P.
 */
#include "sched/common/pass.h"
#include "sched/dfa_balanced_forms.h"
#include "sched/schedule.h"

#include "base/error.h"

enum {
    DFA_BALANCED_TAG_KV,
    DFA_BALANCED_TAG_Q,
    DFA_BALANCED_TAG_RESULT,
};

typedef struct {
    LhPassSizes sizes;
    LhPassSlots io;
    uint32_t ranks, half;
    bool overlap, published;
    uint32_t kv_until, q_until; /* steps before these send k, v and q ahead */
    uint32_t help_last;         /* the last step with helpers */
    uint32_t last;              /* the last step of a pass */
    bool returns_apart;         /* dk, dv of step H have their own exchange in step H */
    uint16_t fwd_first, fwd_end, bwd_first, bwd_end;
    uint16_t fwd_acc, fwd_kv[2], fwd_q[2], fwd_peer_acc[2];
    bool expands;          /* attention gets k and v expanded to as many heads as q */
    uint16_t fwd_expanded; /* k, v expanded to the heads of q */
    uint16_t bwd_kv[2], bwd_q[2], bwd_lse[2], bwd_o[2], bwd_do[2], bwd_dq[2], bwd_dkv[2],
        bwd_dkv_in;
    LhPassSums sums; /* in the published code the outputs themselves */
    LhKernelId add;
    LhKernelArgs own, full, full_first, q_rows, kv_rows;
} DfaBalancedPlan;

static void
declare_pair(LhProgram *program, uint16_t slots[2], const char *name, LhTensorKind kind,
             uint64_t bytes, uint32_t element_bytes)
{
    for (unsigned i = 0; i < 2; i++) {
        g_autofree char *numbered = g_strdup_printf("%s%u", name, i);

        slots[i] = lh_pass_add_buffer(program, numbered, kind, bytes, element_bytes);
    }
}

static void
dfa_balanced_declare_forward(LhProgram *program, DfaBalancedPlan *plan)
{
    const LhPassSizes *z = &plan->sizes;

    plan->fwd_first = (uint16_t)program->slots_count;
    plan->fwd_acc = lh_pass_add_buffer(program, "fwd_acc", LH_TENSOR_ACC,
                                       lh_dfa_balanced_accumulator_bytes(z, plan->published),
                                       plan->published ? z->e : 4);
    declare_pair(program, plan->fwd_kv, "fwd_kv", LH_TENSOR_KV, z->kv, z->e);
    declare_pair(program, plan->fwd_q, "fwd_q", LH_TENSOR_Q, z->q, z->e);
    declare_pair(program, plan->fwd_peer_acc, "fwd_peer_acc", LH_TENSOR_ACC, z->q + 2 * z->s, z->e);
    if (plan->expands)
        plan->fwd_expanded = lh_pass_add_slot(program, "fwd_expanded", LH_TENSOR_HIDDEN,
                                              LH_SLOT_TEMP, 1, 2 * z->q, z->e);
    plan->fwd_end = (uint16_t)program->slots_count;
}

static void
dfa_balanced_declare_backward(LhProgram *program, DfaBalancedPlan *plan)
{
    const LhPassSizes *z = &plan->sizes;

    plan->bwd_first = (uint16_t)program->slots_count;
    declare_pair(program, plan->bwd_kv, "bwd_kv", LH_TENSOR_KV, z->kv, z->e);
    declare_pair(program, plan->bwd_q, "bwd_q", LH_TENSOR_Q, z->q, z->e);
    declare_pair(program, plan->bwd_lse, "bwd_lse", LH_TENSOR_LSE, z->s, 4);
    declare_pair(program, plan->bwd_o, "bwd_o", LH_TENSOR_O, z->q, z->e);
    declare_pair(program, plan->bwd_do, "bwd_do", LH_TENSOR_DO, z->q, z->e);
    declare_pair(program, plan->bwd_dq, "bwd_dq", LH_TENSOR_DQ, z->dq, z->w);
    declare_pair(program, plan->bwd_dkv, "bwd_dkv", LH_TENSOR_DKV, z->dkv, z->w);
    plan->bwd_dkv_in = lh_pass_add_buffer(program, "bwd_dkv_in", LH_TENSOR_DKV, z->dkv, z->w);
    plan->sums = (LhPassSums){ plan->io.dq, plan->io.dkv };
    if (!plan->published)
        plan->sums = lh_pass_add_sums(program, z);
    plan->bwd_end = (uint16_t)program->slots_count;
}

/* Sets which steps send what. The corrected generator for odd P has helpers in every step 1..H
 * and one more step, which only returns results. */
static void
plan_steps(DfaBalancedPlan *plan)
{
    const bool corrected = plan->ranks % 2 == 1 && !plan->published;
    const uint32_t half = plan->half;

    plan->kv_until = plan->published ? half + 1 : half;
    plan->q_until = corrected ? half : half - 1;
    plan->help_last = corrected ? half : half - 1;
    plan->last = corrected ? half + 1 : half;
    plan->returns_apart = !corrected;
}

static void
dfa_balanced_declare(LhProgram *program)
{
    const LhProgramParams *p = &program->params;
    DfaBalancedPlan *plan = g_new0(DfaBalancedPlan, 1);

    program->plan = plan;
    plan->sizes = lh_pass_sizes(p, 0);
    plan->io = lh_pass_declare(program, &plan->sizes);
    plan->ranks = p->ranks;
    plan->half = p->ranks / 2;
    plan->overlap = lh_pass_overlaps(p);
    plan->published = lh_pass_published(p);
    plan->expands = lh_dfa_balanced_expands(p);
    plan_steps(plan);
    plan->add = LH_KERNEL_ID_add_to_fp32;
    if (plan->published)
        plan->add = plan->sizes.w > plan->sizes.e ? LH_KERNEL_ID_add_from_fp32 : LH_KERNEL_ID_add;
    plan->own = lh_pass_block_args(p, plan->sizes.n, plan->sizes.n, LH_MASK_CAUSAL, 0);
    plan->own.first = true;
    plan->full = lh_pass_block_args(p, plan->sizes.n, plan->sizes.n, LH_MASK_FULL, 0);
    plan->full_first = plan->full;
    plan->full_first.first = true;
    plan->q_rows = lh_pass_q_args(p, plan->sizes.n);
    plan->kv_rows = lh_pass_kv_args(p, plan->sizes.n);
    if (lh_pass_has(p, LH_PASS_FWD))
        dfa_balanced_declare_forward(program, plan);
    if (lh_pass_has(p, LH_PASS_BWD))
        dfa_balanced_declare_backward(program, plan);
}

static uint32_t
dfa_balanced_steps(const LhProgram *program, uint32_t rank)
{
    const DfaBalancedPlan *plan = program->plan;

    (void)rank;
    return (plan->last + 1) * (program->params.pass == LH_PASS_BOTH ? 2 : 1);
}

static void
begin_step(LhEmitter *e, const DfaBalancedPlan *plan, uint32_t t, uint16_t first, uint16_t end)
{
    if (plan->published)
        lh_emit_sync(e);
    if (t == 0)
        lh_pass_alloc(e, first, end);
}

/* Opens the exchange of a step when its first message is added; a step without messages has
 * none. */
static void
open_exchange(LhEmitter *e, uint32_t *exchange)
{
    if (*exchange != LH_OP_NONE)
        return;
    lh_pass_exchange(e);
    *exchange = e->marks[LH_MARK_EXCHANGE];
}

static void
message_slot(LhEmitter *e, uint32_t *exchange, bool send, uint32_t peer, uint16_t tag,
             uint16_t slot)
{
    open_exchange(e, exchange);
    lh_pass_message(e, send, peer, tag, slot, 1);
}

static bool
computes_own(const LhEmitter *e, const DfaBalancedPlan *plan, uint32_t t)
{
    return e->rank >= t && t <= plan->half;
}

static bool
helps(const LhEmitter *e, const DfaBalancedPlan *plan, uint32_t t)
{
    return e->rank < t && t <= plan->help_last;
}

/* Whether the exchange of step @t brings the rank a result that a helper has computed in step @t
 * - 1. */
static bool
is_helped(const LhEmitter *e, const DfaBalancedPlan *plan, uint32_t t)
{
    return t >= 2 && t - 1 <= plan->help_last && e->rank + t - 1 >= plan->ranks;
}

static void
dfa_balanced_forward_exchange(LhEmitter *e, const DfaBalancedPlan *plan, uint32_t t, uint32_t *x)
{
    const uint32_t r = e->rank, ranks = plan->ranks;
    const unsigned a = t % 2;

    if (r + t + 1 < ranks && t < plan->kv_until)
        message_slot(e, x, true, r + t + 1, DFA_BALANCED_TAG_KV, plan->io.kv);
    if (r + t + 1 >= ranks && t < plan->q_until)
        message_slot(e, x, true, r + t + 1 - ranks, DFA_BALANCED_TAG_Q, plan->io.q);
    if (r >= t + 1 && t < plan->kv_until)
        message_slot(e, x, false, r - t - 1, DFA_BALANCED_TAG_KV, plan->fwd_kv[a]);
    if (r < t + 1 && t < plan->q_until)
        message_slot(e, x, false, r + ranks - t - 1, DFA_BALANCED_TAG_Q, plan->fwd_q[a]);
    if (t >= 2 && helps(e, plan, t - 1))
        message_slot(e, x, true, r + ranks - t + 1, DFA_BALANCED_TAG_RESULT, plan->fwd_peer_acc[a]);
    if (is_helped(e, plan, t))
        message_slot(e, x, false, r + t - 1 - ranks, DFA_BALANCED_TAG_RESULT,
                     plan->fwd_peer_acc[a]);
}

static void
attend_block(LhEmitter *e, const DfaBalancedPlan *plan, const LhKernelArgs *args,
             const uint16_t operands[3])
{
    if (plan->expands) {
        lh_pass_compute(e, LH_KERNEL_ID_expand_kv, &plan->kv_rows);
        lh_emit_operand(e, operands[1], 0, 1);
        lh_emit_operand(e, plan->fwd_expanded, 0, 1);
    }
    lh_pass_compute(e, LH_KERNEL_ID_attention_fwd, args);
    for (unsigned i = 0; i < 3; i++)
        lh_emit_operand(e, operands[i], 0, 1);
}

static void
dfa_balanced_forward_block(LhEmitter *e, const DfaBalancedPlan *plan, uint32_t t)
{
    const unsigned c = (t + 1) % 2;
    const uint16_t kv = t == 0 ? plan->io.kv : plan->fwd_kv[c];
    const uint16_t own[] = { plan->io.q, kv, plan->fwd_acc };
    const uint16_t help[] = { plan->fwd_q[c], plan->io.kv, plan->fwd_peer_acc[c] };

    if (computes_own(e, plan, t))
        attend_block(e, plan, t == 0 ? &plan->own : &plan->full, own);
    else if (helps(e, plan, t))
        attend_block(e, plan, &plan->full_first, help);
}

static void
merge_result(LhEmitter *e, const DfaBalancedPlan *plan, uint32_t t)
{
    lh_pass_compute(e, LH_KERNEL_ID_merge, &plan->q_rows);
    lh_emit_operand(e, plan->fwd_peer_acc[t % 2], 0, 1);
    lh_emit_operand(e, plan->fwd_acc, 0, 1);
}

static void
normalise(LhEmitter *e, const DfaBalancedPlan *plan)
{
    lh_pass_compute(e, LH_KERNEL_ID_normalise, &plan->q_rows);
    lh_emit_operand(e, plan->fwd_acc, 0, 1);
    lh_emit_operand(e, plan->io.o, 0, 1);
    lh_emit_operand(e, plan->io.lse, 0, 1);
}

static void
dfa_balanced_forward(LhEmitter *e, const DfaBalancedPlan *plan, uint32_t t)
{
    /* Ranks r > H get help until the last step. */
    const uint32_t done = e->rank <= plan->half ? e->rank : plan->last;
    const bool helped = is_helped(e, plan, t);
    uint32_t exchange = LH_OP_NONE;

    begin_step(e, plan, t, plan->fwd_first, plan->fwd_end);
    dfa_balanced_forward_exchange(e, plan, t, &exchange);
    if (!plan->overlap)
        lh_pass_wait(e, exchange);
    dfa_balanced_forward_block(e, plan, t);
    if (t == done && !helped)
        normalise(e, plan);
    lh_pass_wait(e, exchange);
    if (helped)
        merge_result(e, plan, t);
    if (t == done && helped)
        normalise(e, plan);
    if (t == plan->last)
        lh_pass_free(e, plan->fwd_first, plan->fwd_end);
}

static void
message_bundle(LhEmitter *e, uint32_t *exchange, bool send, uint32_t peer, const uint16_t slots[4],
               uint64_t bytes)
{
    open_exchange(e, exchange);
    lh_emit_part(e, send, peer, DFA_BALANCED_TAG_Q, bytes);
    for (unsigned i = 0; i < 4; i++)
        lh_emit_region(e, slots[i], 0, 1);
}

/* Sends q, lse, o, do from the inputs to a helper, and receives those of another rank into the
 * buffers of this step. */
static void
exchange_bundle(LhEmitter *e, const DfaBalancedPlan *plan, uint32_t t, uint32_t *x)
{
    const uint32_t r = e->rank, ranks = plan->ranks;
    const unsigned a = t % 2;
    const uint64_t bytes = 3 * plan->sizes.q + plan->sizes.s;
    const uint16_t own[] = { plan->io.q, plan->io.lse, plan->io.o, plan->io.dout };
    const uint16_t peer[] = { plan->bwd_q[a], plan->bwd_lse[a], plan->bwd_o[a], plan->bwd_do[a] };

    if (r + t + 1 >= ranks)
        message_bundle(e, x, true, r + t + 1 - ranks, own, bytes);
    if (r < t + 1)
        message_bundle(e, x, false, r + ranks - t - 1, peer, bytes);
}

/* Exchanges the results of step @t - 1: a helper returns dq to the owner of q, the other ranks
 * return dk, dv to the owner of k, v. */
static void
exchange_results(LhEmitter *e, const DfaBalancedPlan *plan, uint32_t t, uint32_t *x)
{
    const uint32_t r = e->rank, ranks = plan->ranks;
    const unsigned a = t % 2;

    if (r < t - 1)
        message_slot(e, x, true, r + ranks - t + 1, DFA_BALANCED_TAG_RESULT, plan->bwd_dq[a]);
    else
        message_slot(e, x, true, r - t + 1, DFA_BALANCED_TAG_RESULT, plan->bwd_dkv[a]);
    if (r + t - 1 >= ranks)
        message_slot(e, x, false, r + t - 1 - ranks, DFA_BALANCED_TAG_RESULT, plan->bwd_dq[a]);
    else
        message_slot(e, x, false, r + t - 1, DFA_BALANCED_TAG_RESULT, plan->bwd_dkv_in);
}

static void
dfa_balanced_backward_exchange(LhEmitter *e, const DfaBalancedPlan *plan, uint32_t t, uint32_t *x)
{
    const uint32_t r = e->rank;

    if (r + t + 1 < plan->ranks && t < plan->kv_until)
        message_slot(e, x, true, r + t + 1, DFA_BALANCED_TAG_KV, plan->io.kv);
    if (r >= t + 1 && t < plan->kv_until)
        message_slot(e, x, false, r - t - 1, DFA_BALANCED_TAG_KV, plan->bwd_kv[t % 2]);
    if (t < plan->q_until)
        exchange_bundle(e, plan, t, x);
    if (t >= 2)
        exchange_results(e, plan, t, x);
}

static void
add_to_sum(LhEmitter *e, const DfaBalancedPlan *plan, uint16_t source, uint16_t target)
{
    lh_pass_compute(e, plan->add, target == plan->sums.dq ? &plan->q_rows : &plan->kv_rows);
    lh_emit_operand(e, source, 0, 1);
    lh_emit_operand(e, target, 0, 1);
}

/* Returns whether the block has left dq and dk, dv in buffers, so that one of them must be added
 * to the rank's own sum. */
static bool
dfa_balanced_backward_block(LhEmitter *e, const DfaBalancedPlan *plan, uint32_t t)
{
    const unsigned c = (t + 1) % 2;
    const LhPassSlots *io = &plan->io;
    const uint16_t diagonal[] = { io->q,  io->dout,      io->o,         io->lse,
                                  io->kv, plan->sums.dq, plan->sums.dkv };
    const uint16_t own[] = { io->q,           io->dout,        io->o,           io->lse,
                             plan->bwd_kv[c], plan->bwd_dq[c], plan->bwd_dkv[c] };
    const uint16_t help[] = { plan->bwd_q[c], plan->bwd_do[c], plan->bwd_o[c],  plan->bwd_lse[c],
                              io->kv,         plan->bwd_dq[c], plan->bwd_dkv[c] };
    const uint16_t *operands = t == 0 ? diagonal : computes_own(e, plan, t) ? own : help;

    if (!computes_own(e, plan, t) && !helps(e, plan, t))
        return false;
    lh_pass_compute(e, LH_KERNEL_ID_attention_bwd_o, t == 0 ? &plan->own : &plan->full_first);
    for (unsigned i = 0; i < G_N_ELEMENTS(own); i++)
        lh_emit_operand(e, operands[i], 0, 1);
    return t > 0;
}

/* For even P, dk, dv of step H return to their owner in an exposed exchange. The owner receives
 * into a buffer whose contents the exchange of this step has already sent. */
static uint32_t
exchange_last(LhEmitter *e, const DfaBalancedPlan *plan, uint32_t t)
{
    uint32_t exchange = LH_OP_NONE;

    if (e->rank >= plan->half)
        message_slot(e, &exchange, true, e->rank - plan->half, DFA_BALANCED_TAG_RESULT,
                     plan->bwd_dkv[(t + 1) % 2]);
    if (e->rank + plan->half < plan->ranks)
        message_slot(e, &exchange, false, e->rank + plan->half, DFA_BALANCED_TAG_RESULT,
                     plan->bwd_dkv[t % 2]);
    return exchange;
}

static void
add_results(LhEmitter *e, const DfaBalancedPlan *plan, uint32_t t)
{
    if (e->rank + t - 1 >= plan->ranks)
        add_to_sum(e, plan, plan->bwd_dq[t % 2], plan->sums.dq);
    else
        add_to_sum(e, plan, plan->bwd_dkv_in, plan->sums.dkv);
}

static void
dfa_balanced_backward(LhEmitter *e, const DfaBalancedPlan *plan, uint32_t t)
{
    const bool apart = plan->returns_apart && t == plan->half;
    const unsigned c = (t + 1) % 2;
    uint32_t exchange = LH_OP_NONE, exposed = LH_OP_NONE;
    bool partial;

    begin_step(e, plan, t, plan->bwd_first, plan->bwd_end);
    dfa_balanced_backward_exchange(e, plan, t, &exchange);
    if (!plan->overlap)
        lh_pass_wait(e, exchange);
    partial = dfa_balanced_backward_block(e, plan, t);
    if (apart)
        exposed = exchange_last(e, plan, t);
    if (partial && e->rank >= t)
        add_to_sum(e, plan, plan->bwd_dq[c], plan->sums.dq);
    else if (partial)
        add_to_sum(e, plan, plan->bwd_dkv[c], plan->sums.dkv);
    lh_pass_wait(e, exchange);
    if (t >= 2)
        add_results(e, plan, t);
    lh_pass_wait(e, exposed);
    if (apart && e->rank + plan->half < plan->ranks)
        add_to_sum(e, plan, plan->bwd_dkv[t % 2], plan->sums.dkv);
    if (t < plan->last)
        return;
    if (!plan->published)
        lh_pass_end_sums(e, &plan->sums, &plan->io, &plan->q_rows, &plan->kv_rows);
    lh_pass_free(e, plan->bwd_first, plan->bwd_end);
}

static void
dfa_balanced_emit(LhEmitter *e, uint32_t step)
{
    const DfaBalancedPlan *plan = e->program->plan;
    const uint32_t t = lh_pass_enter(e, step, plan->last + 1);

    if (e->phase == LH_PHASE_FORWARD)
        dfa_balanced_forward(e, plan, t);
    else
        dfa_balanced_backward(e, plan, t);
}

const LhSchedule lh_schedule_dfa_balanced = {
    .name = "dfa-balanced",
    .summary = "DistFlashAttention: ranks without work of their own help others; contiguous tokens",
    .details =
        "DistFlashAttention (LightSeq) with load balancing. H = P div 2. In step t rank\n"
        "r >= t attends to k, v of rank r-t. A rank r < t has no block of its own left\n"
        "and helps rank r-t+P: it has received that rank's q, attends with its own k, v\n"
        "and returns the partial result (o not normalised, m, l), which the owner of q\n"
        "merges. While step t computes, one exchange carries the k, v and q for step t+1\n"
        "and the results of step t-1. In the backward pass helpers receive q, o, do and\n"
        "lse and return dq; the other ranks return dk and dv to the owners of k and v.\n"
        "For even P, dk and dv of step H return in an exposed exchange at the end. For\n"
        "odd P, which neither the paper nor the public code handles, there are helpers in\n"
        "every step 1..H, and all results of step H return in an exposed exchange.\n"
        "\n"
        "bytes sent   even P: forward  min(H, P-1-r) KV + max(0, r-H) Q\n"
        "                              + max(0, H-1-r) (Q + 2S)\n"
        "                     backward min(H, P-1-r) KV + max(0, r-H) (3Q + S)\n"
        "                              + max(0, H-1-r) Q + min(r, H) KV\n"
        "             odd P: the same with H-r in place of H-1-r\n"
        "             On average over the ranks, for multi-head attention and without\n"
        "             the statistics: forward (P-1) Q, backward 2 (P-1) Q\n"
        "flops        (H + 1/2) F; for even P (H - 1/2) F on the ranks r < H\n"
        "idle         even P: 1/(P+2) counting blocks, about 1/(P+1) counting flops;\n"
        "             odd P: 0\n"
        "buffers      forward an fp32 accumulator (o, m, l) + 2 (2Q + KV + 2S);\n"
        "             backward 2 (4Q + 2KV + S) + KV + fp32 sums of dq and of dk, dv\n"
        "restrictions N divisible by P\n"
        "published    With --published-code the schedule follows the public code: in step\n"
        "             H it sends unused k, v; the host waits for its device in every\n"
        "             step; o and gradients are accumulated in e bytes; and for odd P it\n"
        "             loses P div 2 blocks. With grouped queries it expands k and v to h\n"
        "             heads, 2Q, before each call of attention in the forward pass\n"
        "             (maybe_repeat_kv_fwd in lightseq_async_attn.py)\n",
    .options = LH_OPTIONS(&lh_option_no_overlap, &lh_option_published_code,
                          &lh_option_gradient_wire),
    .not_varied = &lh_option_published_code, /* it loses blocks for odd P */
    .placement = LH_PLACE_CONTIGUOUS,
    .full_reason = "with the full mask all ranks have equal work, so there is nothing to balance; "
                   "use dfa-unbalanced or ring",
    .masks_reason = "helpers are assigned by position, as if every earlier block were full; use "
                    "dfa-unbalanced or ring",
    .declare = dfa_balanced_declare,
    .generator = { .steps = dfa_balanced_steps, .emit = dfa_balanced_emit },
    .closed = {
        .bytes_sent = lh_dfa_balanced_bytes_sent,
        .flops = lh_dfa_balanced_flops,
        .peak_bytes = lh_dfa_balanced_peak_bytes,
        .idle_unit = lh_dfa_balanced_idle_unit,
        .idle_flops = lh_dfa_balanced_idle_flops,
    },
};
