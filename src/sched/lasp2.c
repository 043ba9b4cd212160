/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule lasp2, described at the end of this file. A pass is one step with one all-gather
 * (two if states are recomputed), posted before intra. `before` is the sum of the states before the
 * rank, `behind` that of the gradients of the states after it.
 */
#include "sched/common/linear_shared.h"
#include "sched/schedule.h"

typedef struct {
    LhLinearPass l;
    bool waits; /* for the all-gather, before it computes intra */
    uint16_t fwd_first, fwd_end, bwd_first, bwd_end;
    uint16_t fwd_own, fwd_all;
    uint16_t bwd_own, bwd_all, bwd_behind;
    uint16_t again_own, again_all, again_before; /* with --state-recompute */
} Lasp2Plan;

static void
lasp2_declare_forward(LhProgram *program, Lasp2Plan *plan)
{
    LhLinearPass *l = &plan->l;

    plan->fwd_first = (uint16_t)program->slots_count;
    plan->fwd_own = lh_linear_add_state(program, l, "fwd_own", LH_TENSOR_STATE, 1);
    plan->fwd_all = lh_linear_add_state(program, l, "fwd_all", LH_TENSOR_STATE, l->ranks);
    if (lh_linear_recomputes(&program->params))
        l->before = lh_linear_add_state(program, l, "fwd_before", LH_TENSOR_STATE, 1);
    lh_linear_add_forward_apart(program, l);
    plan->fwd_end = (uint16_t)program->slots_count;
}

static void
lasp2_declare_backward(LhProgram *program, Lasp2Plan *plan)
{
    LhLinearPass *l = &plan->l;

    plan->bwd_first = (uint16_t)program->slots_count;
    plan->bwd_own = lh_linear_add_state(program, l, "bwd_own", LH_TENSOR_DSTATE, 1);
    plan->bwd_all = lh_linear_add_state(program, l, "bwd_all", LH_TENSOR_DSTATE, l->ranks);
    plan->bwd_behind = lh_linear_add_state(program, l, "bwd_behind", LH_TENSOR_DSTATE, 1);
    plan->again_before = l->before;
    if (lh_linear_recomputes(&program->params)) {
        plan->again_own = lh_linear_add_state(program, l, "again_own", LH_TENSOR_STATE, 1);
        plan->again_all = lh_linear_add_state(program, l, "again_all", LH_TENSOR_STATE, l->ranks);
        plan->again_before = lh_linear_add_state(program, l, "again_before", LH_TENSOR_STATE, 1);
    }
    lh_linear_add_backward_apart(program, l);
    plan->bwd_end = (uint16_t)program->slots_count;
}

static void
lasp2_declare(LhProgram *program)
{
    const LhProgramParams *p = &program->params;
    Lasp2Plan *plan = g_new0(Lasp2Plan, 1);

    program->plan = plan;
    plan->l = lh_linear_declare(program, 1);
    plan->waits = lh_pass_published(p) || !lh_pass_overlaps(p);
    if (lh_pass_has(p, LH_PASS_FWD))
        lasp2_declare_forward(program, plan);
    if (lh_pass_has(p, LH_PASS_BWD))
        lasp2_declare_backward(program, plan);
}

/* Posts the all-gather of states after the queued compute. */
static void
gather_states(LhEmitter *e, const Lasp2Plan *plan, uint16_t own, uint16_t all)
{
    const uint32_t ranks = plan->l.ranks;
    const LhGroup group = { .stride = 1, .count = ranks, .outer_count = 1 };
    uint32_t *marks = e->marks;

    marks[LH_MARK_EXCHANGE] = lh_emit_collective(e, LH_PASS_STREAM_COMM, LH_COLL_ALL_GATHER, group);
    lh_emit_tensor(e, (LhRegion){ own, 0, 1 }, (LhRegion){ all, 0, ranks });
    lh_emit_after(e, marks[LH_MARK_COMPUTE]);
}

/* Adds up the gathered states [@first, @first + @count) into @target. */
static void
combine(LhEmitter *e, const Lasp2Plan *plan, uint16_t all, uint32_t first, uint32_t count,
        uint16_t target)
{
    LhKernelArgs args = *lh_linear_carry_args(e, &plan->l, all);

    args.states = count;
    lh_pass_compute(e, LH_KERNEL_ID_linear_prefix, &args);
    lh_emit_operand(e, all, first, count);
    lh_emit_operand(e, target, 0, 1);
}

static void
lasp2_forward(LhEmitter *e, const Lasp2Plan *plan)
{
    const LhLinearPass *l = &plan->l;
    uint32_t arrival;

    lh_pass_alloc(e, plan->fwd_first, plan->fwd_end);
    lh_linear_own_state(e, l, 0, plan->fwd_own);
    gather_states(e, plan, plan->fwd_own, plan->fwd_all);
    arrival = e->marks[LH_MARK_EXCHANGE];
    if (plan->waits)
        lh_pass_wait(e, arrival);
    lh_linear_intra(e, l, 0);
    if (e->rank > 0) {
        lh_pass_wait(e, arrival);
        combine(e, plan, plan->fwd_all, 0, e->rank, l->before);
        lh_linear_inter(e, l, 0, l->before);
    }
    lh_pass_free(e, plan->fwd_first, plan->fwd_end);
}

/* Reads the state before the rank's tokens for dq, after recomputing it if it was not kept. */
static void
emit_inter_grad(LhEmitter *e, const Lasp2Plan *plan)
{
    if (e->rank == 0)
        return;
    if (lh_linear_recomputes(&e->program->params))
        combine(e, plan, plan->again_all, 0, e->rank, plan->again_before);
    lh_linear_inter_grad(e, &plan->l, 0, plan->again_before);
}

static void
lasp2_backward(LhEmitter *e, const Lasp2Plan *plan)
{
    const LhLinearPass *l = &plan->l;
    const uint32_t later = l->ranks - 1 - e->rank;
    uint32_t arrival;

    lh_pass_alloc(e, plan->bwd_first, plan->bwd_end);
    if (lh_linear_recomputes(&e->program->params)) {
        lh_linear_own_state(e, l, 0, plan->again_own);
        gather_states(e, plan, plan->again_own, plan->again_all);
    }
    lh_linear_own_dstate(e, l, 0, plan->bwd_own);
    gather_states(e, plan, plan->bwd_own, plan->bwd_all);
    arrival = e->marks[LH_MARK_EXCHANGE];
    if (plan->waits)
        lh_pass_wait(e, arrival);
    lh_linear_intra_grad(e, l, 0);
    lh_pass_wait(e, arrival);
    emit_inter_grad(e, plan);
    if (later > 0) {
        combine(e, plan, plan->bwd_all, e->rank + 1, later, plan->bwd_behind);
        lh_linear_state_grad(e, l, 0, plan->bwd_behind);
    }
    lh_pass_free(e, plan->bwd_first, plan->bwd_end);
}

static void
lasp2_emit(LhEmitter *e, uint32_t step)
{
    lh_pass_enter(e, step, 1);
    if (e->phase == LH_PHASE_FORWARD)
        lasp2_forward(e, e->program->plan);
    else
        lasp2_backward(e, e->program->plan);
}

/* (P-1) M in each pass, and as much again if the backward pass gathers the states once more. */
static uint64_t
lasp2_bytes_sent(const LhProgramParams *p, uint32_t rank)
{
    const uint64_t gathered = (p->ranks - 1) * lh_linear_state_bytes(p);

    (void)rank;
    return (lh_pass_has(p, LH_PASS_FWD) ? gathered : 0) +
           (lh_pass_has(p, LH_PASS_BWD) ? (lh_linear_recomputes(p) ? 2 : 1) * gathered : 0);
}

static uint64_t
lasp2_flops(const LhProgramParams *p, uint32_t rank)
{
    const LhLinearWork fwd = lh_linear_work(p, LH_PHASE_FORWARD);
    const LhLinearWork bwd = lh_linear_work(p, LH_PHASE_BACKWARD);
    const uint64_t before = rank * fwd.carry, later = p->ranks - 1 - rank;
    uint64_t sum = 0;

    if (lh_pass_has(p, LH_PASS_FWD))
        sum += fwd.own + fwd.intra + (rank > 0 ? before + fwd.inter : 0);
    if (lh_pass_has(p, LH_PASS_BWD))
        sum += bwd.own + bwd.intra + (rank > 0 ? bwd.inter : 0) +
               (later > 0 ? later * bwd.carry + bwd.grad : 0) +
               (lh_linear_recomputes(p) ? fwd.own + before : 0);
    return sum;
}

/* In each pass the rank's own state and those of all ranks; in the backward pass also the sum of
 * gradients. */
static uint64_t
lasp2_peak_bytes(const LhProgramParams *p, uint32_t rank)
{
    const uint64_t m = lh_linear_state_bytes(p), all = (p->ranks + UINT64_C(1)) * m;
    const uint64_t again = lh_linear_recomputes(p) ? all + m : 0;
    const uint64_t fwd =
        all + (lh_linear_recomputes(p) ? m : 0) + lh_linear_apart_bytes(p, LH_PASS_FWD);
    const uint64_t bwd = all + m + again + lh_linear_apart_bytes(p, LH_PASS_BWD);

    (void)rank;
    return lh_linear_io_bytes(p) +
           MAX(lh_pass_has(p, LH_PASS_FWD) ? fwd : 0, lh_pass_has(p, LH_PASS_BWD) ? bwd : 0);
}

/* The last rank has the most work. Rank r adds up P-1-r fewer states, and rank 0 reads no state. */
static double
lasp2_idle_flops(const LhProgramParams *p)
{
    const LhLinearWork w = lh_linear_work(p, LH_PHASE_FORWARD);
    const double ranks = p->ranks, carry = (double)w.carry;
    const double most = (double)(w.own + w.intra + w.inter) + (ranks - 1) * carry;

    return ((double)w.inter + ranks * (ranks - 1) / 2 * carry) / (ranks * most);
}

const LhSchedule lh_schedule_lasp2 = {
    .name = "lasp2",
    .summary = "linear attention: all-gather of the states of all ranks; contiguous tokens",
    .details =
        "LASP-2 (arXiv 2502.07563). Every rank computes the state of its own tokens (M =\n"
        "4 B h d^2 bytes, fp32), and an all-gather exchanges the states of all ranks. One\n"
        "kernel adds up the states before the rank, each decayed by its distance, and the\n"
        "rank's queries read the sum. In the backward pass the gradients of the states\n"
        "are gathered, and those after the rank are added up. The all-gather overlaps\n"
        "with attention among the rank's own tokens. The forward pass keeps the sum for\n"
        "the backward pass; with --state-recompute the backward pass gathers the states\n"
        "again. --unfused is as in lasp.\n"
        "\n"
        "bytes sent   (P-1) M in each pass; with --state-recompute (P-1) M more backward\n"
        "flops        as lasp, but all ranks compute their own state, and they add up\n"
        "             states, 2 B h d^2 for each, instead of passing one on\n"
        "idle         [2 n E + E P (P-1)] / (P W), where E = B h d^2 and W is the work of\n"
        "             the last rank: rank 0 reads no state, and earlier ranks add up fewer\n"
        "buffers      M kept; forward (P+1) M, backward (P+2) M. With --state-recompute\n"
        "             nothing is kept; forward (P+2) M, backward (2P+4) M. With --unfused\n"
        "             forward Q more, backward Q + KV more\n"
        "restrictions N divisible by P; states travel in fp32\n"
        "published    With --published-code, and with --no-overlap, ranks wait for the\n"
        "             all-gather before they continue, as in the public code (Linear-MoE)\n",
    .options = LH_OPTIONS(&lh_option_no_overlap, &lh_option_published_code,
                          &lh_option_gradient_wire, &lh_option_state_recompute,
                          &lh_option_unfused),
    .placement = LH_PLACE_CONTIGUOUS,
    .attention = LH_ATTENTION_LINEAR,
    .masks_reason = "linear attention supports only the causal mask",
    .check = lh_linear_check,
    .declare = lasp2_declare,
    .generator = { .steps = lh_pass_steps, .emit = lasp2_emit },
    .closed = {
        .bytes_sent = lasp2_bytes_sent,
        .flops = lasp2_flops,
        .peak_bytes = lasp2_peak_bytes,
        .idle_flops = lasp2_idle_flops,
    },
};
