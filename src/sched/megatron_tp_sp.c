/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule megatron-tp-sp, described at the end of this file. The projections between the
 * collectives and attention are not part of it, except for calls that stand for them
 * (kernels/outside.c). The buffer that receives the all-gathered input also holds the partial sums
 * that the output projection leaves for the reduce-scatter.
 */
#include "sched/common/heads.h"
#include "sched/common/heads_forms.h"
#include "sched/schedule.h"

#include <inttypes.h>

typedef struct {
    LhPassSlots io, again; /* again: with the o and lse of the backward pass, perhaps recomputed */
    LhKernelArgs attention;
    uint16_t x, y, dy, dx;  /* activations around the module, each rank's tokens */
    uint16_t all, grad_all; /* of all ranks: gathered, later reduced */
    uint16_t y_again;       /* output of the recomputed forward pass */
} MegatronTpSpPlan;

/* What the backward pass recomputes. */
typedef enum {
    RECOMPUTE_NONE,
    RECOMPUTE_SELECTIVE, /* attention, without the collectives around it */
    RECOMPUTE_FULL,      /* the whole module with its collectives */
} Recompute;

static const char *const recompute_names[] = {
    [RECOMPUTE_NONE] = "none",
    [RECOMPUTE_SELECTIVE] = "selective",
    [RECOMPUTE_FULL] = "full",
    NULL,
};

static const LhOption recompute_granularity = {
    .name = "recompute_granularity",
    .category = LH_ABOUT_SCHEDULE_WORK,
    .type = LH_OPTION_CHOICE,
    .choices = recompute_names,
    .help = "What the backward pass recomputes: nothing (none, default), attention (selective), or "
            "the whole module with its collectives (full).",
};

static void
shape_width(LhProgramParams *p)
{
    lh_option_pad_heads.shape(p);
    lh_option_set(p, &lh_option_pad_heads, (LhOptionValue){ .first = 1 });
}

static const LhOption pad_width = {
    .name = "pad_width",
    .category = LH_ABOUT_SCHEDULE_RANKS,
    .type = LH_OPTION_FLAG,
    .help = "With --pad-heads: pad the model's hidden size, too. Default: only the projections of "
            "attention grow.",
    .shape = shape_width,
};

static Recompute
recomputes(const LhProgramParams *p)
{
    return (Recompute)lh_option_first(p, &recompute_granularity);
}

enum {
    FORWARD_GATHER,
    FORWARD_ATTENTION,
    FORWARD_REDUCE,
    FORWARD_STEPS,
};

enum {
    BACKWARD_RECOMPUTE,
    BACKWARD_GATHER,
    BACKWARD_ATTENTION,
    BACKWARD_REDUCE,
    BACKWARD_STEPS,
};

static void
pad(LhProgramParams *p)
{
    LhAttention *a = &p->attention;
    const uint32_t heads = a->heads;

    if (!lh_heads_padded(p))
        return;
    lh_heads_pad(a, p->ranks, true);
    if (lh_option_first(p, &pad_width) != 0 && heads > 0)
        a->hidden_size = (uint32_t)MIN((uint64_t)a->hidden_size * a->heads / heads, UINT32_MAX);
}

/* Whether there are more ranks than key-value heads, and the same number of ranks for each head. */
static bool
replicates(const LhAttention *a, uint32_t ranks)
{
    return a->groups > 0 && a->groups < ranks && ranks % a->groups == 0 && a->heads % ranks == 0;
}

/*
 * A copy of a key-value head is a group of its own, with the query heads of its rank: attention has
 * as many groups as ranks. The sum of the copies' gradients is outside this module: the projections
 * of all copies have one matrix, so the reduce-scatter of dx adds them up.
 */
static void
megatron_tp_sp_adapt(LhProgramParams *p)
{
    pad(p);
    if (replicates(&p->attention, p->ranks))
        p->attention.groups = p->ranks;
}

static bool
megatron_tp_sp_legal(const LhAttention *a, uint32_t ranks)
{
    return a->groups % ranks == 0 || replicates(a, ranks);
}

static bool
megatron_tp_sp_check(const LhProgramParams *p, GError **error)
{
    const LhAttention *a = &p->attention;
    g_autofree char *nearest = NULL;

    if (lh_option_is_set(p, &pad_width) && !lh_heads_padded(p))
        return lh_program_refuse(error, "--pad-width has no effect without --pad-heads; give both");
    if (megatron_tp_sp_legal(a, p->ranks))
        return true;
    nearest = lh_heads_nearest_ranks(a, p->ranks, megatron_tp_sp_legal);
    return lh_program_refuse(
        error,
        "%" PRIu32 " heads in %" PRIu32
        " groups are not divisible by tensor parallelism over %" PRIu32
        " ranks (--pad-heads rounds them up); nearest legal numbers of ranks: %s",
        a->heads, a->groups, p->ranks, nearest);
}

static uint64_t
hidden_bytes(const LhProgramParams *p)
{
    return lh_attention_hidden_bytes(&p->attention, p->attention.seq_length / p->ranks);
}

static uint16_t
add_hidden(LhProgram *program, const char *name, LhSlotRole role, uint32_t parts)
{
    const LhProgramParams *p = &program->params;

    return lh_pass_add_slot(program, name, LH_TENSOR_HIDDEN, role, parts, hidden_bytes(p),
                            lh_dtype_bytes(p->attention.dtype));
}

/* Declares the activations around the module. A single rank has nothing to gather and needs
 * none. */
static void
declare_hidden(LhProgram *program, MegatronTpSpPlan *plan)
{
    const LhProgramParams *p = &program->params;

    plan->x = add_hidden(program, "x", LH_SLOT_INPUT, 1);
    plan->all = add_hidden(program, "x_all", LH_SLOT_TEMP, p->ranks);
    if (lh_pass_has(p, LH_PASS_FWD))
        plan->y = add_hidden(program, "y", LH_SLOT_OUTPUT, 1);
    if (!lh_pass_has(p, LH_PASS_BWD))
        return;
    plan->dy = add_hidden(program, "dy", LH_SLOT_INPUT, 1);
    plan->dx = add_hidden(program, "dx", LH_SLOT_OUTPUT, 1);
    plan->grad_all = add_hidden(program, "grad_all", LH_SLOT_TEMP, p->ranks);
    if (recomputes(p) == RECOMPUTE_FULL)
        plan->y_again = add_hidden(program, "y_again", LH_SLOT_TEMP, 1);
}

static void
megatron_tp_sp_declare(LhProgram *program)
{
    const LhProgramParams *p = &program->params;
    const LhPassSizes z = lh_pass_sizes(p, 0);
    MegatronTpSpPlan *plan = g_new0(MegatronTpSpPlan, 1);

    program->plan = plan;
    program->head_slices = program->kv_slices = p->ranks;
    plan->io = lh_pass_declare(program, &z);
    plan->attention = lh_heads_attention_args(program, 1);
    plan->again = plan->io;
    if (lh_pass_has(p, LH_PASS_BWD) && recomputes(p) != RECOMPUTE_NONE) {
        plan->again.o = lh_pass_add_buffer(program, "o_again", LH_TENSOR_O, z.q, z.e);
        if (!p->attention.linear)
            plan->again.lse = lh_pass_add_buffer(program, "lse_again", LH_TENSOR_LSE, z.s, 4);
    }
    if (p->ranks > 1)
        declare_hidden(program, plan);
}

static uint32_t
megatron_tp_sp_steps(const LhProgram *program, uint32_t rank)
{
    const LhProgramParams *p = &program->params;

    (void)rank;
    return (lh_pass_has(p, LH_PASS_FWD) ? (uint32_t)FORWARD_STEPS : 0) +
           (lh_pass_has(p, LH_PASS_BWD) ? (uint32_t)BACKWARD_STEPS : 0);
}

/* Posts a collective over all ranks, after the queued compute. */
static void
collect_hidden(LhEmitter *e, LhCollectiveKind kind, uint16_t from, uint16_t to)
{
    const LhSlot *slots = e->program->slots;
    const uint32_t ranks = e->program->params.ranks;
    uint32_t *marks = e->marks;

    if (ranks == 1)
        return;
    marks[LH_MARK_EXCHANGE] = lh_emit_collective(
        e, LH_PASS_STREAM_COMM, kind, (LhGroup){ .stride = 1, .count = ranks, .outer_count = 1 });
    lh_emit_after(e, marks[LH_MARK_COMPUTE]);
    lh_emit_tensor(e, (LhRegion){ from, 0, slots[from].parts },
                   (LhRegion){ to, 0, slots[to].parts });
}

static void
wait(LhEmitter *e)
{
    lh_pass_wait(e, e->marks[LH_MARK_EXCHANGE]);
}

static void
set_hidden_live(LhEmitter *e, uint16_t slot, bool live)
{
    if (e->program->params.ranks == 1)
        return;
    if (live)
        lh_emit_alloc(e, slot);
    else
        lh_emit_free(e, slot);
}

static void
set_again_live(LhEmitter *e, const MegatronTpSpPlan *plan, bool live)
{
    const uint16_t slots[] = { plan->again.o, plan->again.lse };

    for (unsigned i = 0; i < (e->program->params.attention.linear ? 1 : 2); i++) {
        if (live)
            lh_emit_alloc(e, slots[i]);
        else
            lh_emit_free(e, slots[i]);
    }
}

/* A call that stands for a projection between @hidden and attention; it waits like any compute
 * op. */
static void
project(LhEmitter *e, LhKernelId kernel, const uint16_t *operands, uint32_t count)
{
    const LhKernelArgs none = { 0 };

    if (e->program->params.ranks == 1)
        return;
    lh_pass_compute(e, kernel, &none);
    for (uint32_t i = 0; i < count; i++)
        lh_emit_operand(e, operands[i], 0, e->program->slots[operands[i]].parts);
}

static void
project_qkv(LhEmitter *e, const MegatronTpSpPlan *plan)
{
    project(e, LH_KERNEL_ID_qkv_projection,
            (const uint16_t[]){ plan->all, plan->io.q, plan->io.kv }, 3);
}

static void
project_out(LhEmitter *e, const MegatronTpSpPlan *plan, uint16_t o)
{
    project(e, LH_KERNEL_ID_out_projection, (const uint16_t[]){ o, plan->all }, 2);
}

static void
megatron_tp_sp_forward(LhEmitter *e, const MegatronTpSpPlan *plan, uint32_t step)
{
    switch (step) {
    case FORWARD_GATHER:
        set_hidden_live(e, plan->all, true);
        collect_hidden(e, LH_COLL_ALL_GATHER, plan->x, plan->all);
        wait(e);
        project_qkv(e, plan);
        break;
    case FORWARD_ATTENTION:
        lh_pass_attend(e, &plan->attention, &plan->io, 0, 1);
        project_out(e, plan, plan->io.o);
        break;
    default:
        collect_hidden(e, LH_COLL_REDUCE_SCATTER, plan->all, plan->y);
        wait(e);
        set_hidden_live(e, plan->all, false);
        break;
    }
}

/* Recomputes attention, or the whole forward pass with its collectives. */
static void
recompute(LhEmitter *e, const MegatronTpSpPlan *plan)
{
    const Recompute how = recomputes(&e->program->params);

    if (how == RECOMPUTE_NONE)
        return;
    set_again_live(e, plan, true);
    if (how == RECOMPUTE_FULL) {
        collect_hidden(e, LH_COLL_ALL_GATHER, plan->x, plan->all);
        wait(e);
        project_qkv(e, plan);
    }
    lh_pass_attend(e, &plan->attention, &plan->again, 0, 1);
    if (how == RECOMPUTE_FULL) {
        project_out(e, plan, plan->again.o);
        set_hidden_live(e, plan->y_again, true);
        collect_hidden(e, LH_COLL_REDUCE_SCATTER, plan->all, plan->y_again);
        wait(e);
        project(e, LH_KERNEL_ID_outside, &plan->y_again, 1);
        set_hidden_live(e, plan->y_again, false);
    }
}

static void
attend_backward(LhEmitter *e, const MegatronTpSpPlan *plan)
{
    lh_pass_attend_grad(e, &plan->attention, &plan->again, 0, 1);
    if (recomputes(&e->program->params) != RECOMPUTE_NONE)
        set_again_live(e, plan, false);
}

/* The second all-gather of x is for the weight gradient; attention does not wait for it. */
static void
megatron_tp_sp_backward(LhEmitter *e, const MegatronTpSpPlan *plan, uint32_t step)
{
    switch (step) {
    case BACKWARD_RECOMPUTE:
        set_hidden_live(e, plan->all, true);
        recompute(e, plan);
        break;
    case BACKWARD_GATHER:
        set_hidden_live(e, plan->grad_all, true);
        collect_hidden(e, LH_COLL_ALL_GATHER, plan->dy, plan->grad_all);
        wait(e);
        project(e, LH_KERNEL_ID_out_projection_dgrad,
                (const uint16_t[]){ plan->grad_all, plan->io.dout }, 2);
        collect_hidden(e, LH_COLL_ALL_GATHER, plan->x, plan->all);
        if (!lh_pass_overlaps(&e->program->params))
            wait(e);
        break;
    case BACKWARD_ATTENTION:
        attend_backward(e, plan);
        project(e, LH_KERNEL_ID_qkv_projection_dgrad,
                (const uint16_t[]){ plan->io.dq, plan->io.dkv, plan->grad_all }, 3);
        break;
    default:
        wait(e);
        project(e, LH_KERNEL_ID_outside, &plan->all, 1);
        collect_hidden(e, LH_COLL_REDUCE_SCATTER, plan->grad_all, plan->dx);
        set_hidden_live(e, plan->grad_all, false);
        set_hidden_live(e, plan->all, false);
        break;
    }
}

static void
megatron_tp_sp_emit(LhEmitter *e, uint32_t step)
{
    const MegatronTpSpPlan *plan = e->program->plan;

    step = lh_pass_enter(e, step, FORWARD_STEPS);
    if (e->phase == LH_PHASE_FORWARD)
        megatron_tp_sp_forward(e, plan, step);
    else
        megatron_tp_sp_backward(e, plan, step);
}

/* 2 collectives in the forward pass, 3 in the backward pass, and with full recomputation the 2
 * of the forward pass again; each sends P-1 shards. */
static uint64_t
megatron_tp_sp_bytes_sent(const LhProgramParams *p, uint32_t rank)
{
    const uint64_t forward = lh_pass_has(p, LH_PASS_FWD) ? 2 : 0;
    const uint64_t backward = recomputes(p) == RECOMPUTE_FULL ? 5 : 3;

    (void)rank;
    return (forward + (lh_pass_has(p, LH_PASS_BWD) ? backward : 0)) * (p->ranks - 1) *
           hidden_bytes(p);
}

static uint64_t
megatron_tp_sp_flops(const LhProgramParams *p, uint32_t rank)
{
    const uint32_t heads = p->attention.heads / p->ranks;
    const uint64_t sum = lh_heads_flops(p, heads);
    LhProgramParams forward = *p;

    (void)rank;
    if (!lh_pass_has(p, LH_PASS_BWD) || recomputes(p) == RECOMPUTE_NONE)
        return sum;
    forward.pass = LH_PASS_FWD;
    return sum + lh_heads_flops(&forward, heads);
}

/* The rank's shards of the activations around the module, on top of q, k, v, ...; forward P
 * gathered shards, backward 2P; and recomputed tensors. */
static uint64_t
megatron_tp_sp_peak_bytes(const LhProgramParams *p, uint32_t rank)
{
    const LhPassSizes z = lh_pass_sizes(p, 0);
    const uint64_t x = p->ranks > 1 ? hidden_bytes(p) : 0;
    const uint64_t shards = p->pass == LH_PASS_BOTH ? 4 : p->pass == LH_PASS_BWD ? 3 : 2;
    const uint64_t again = recomputes(p) == RECOMPUTE_NONE ? 0 : z.q + z.s;
    uint64_t recompute = again + p->ranks * x;

    (void)rank;
    if (recomputes(p) == RECOMPUTE_FULL)
        recompute += x;
    return shards * x +
           lh_pass_peak_bytes(p, p->ranks * x, MAX(recompute, again + 2 * p->ranks * x));
}

const LhSchedule lh_schedule_megatron_tp_sp = {
    .name = "megatron-tp-sp",
    .summary = "Megatron's tensor and sequence parallelism: each rank has all tokens of its heads",
    .details =
        "The attention module of Megatron-LM (core/tensor_parallel) under tensor and\n"
        "sequence parallelism. q, k, v, o, lse and their gradients are local to a rank,\n"
        "which has h/P heads. Of the module's input x and output y a rank holds N/P\n"
        "tokens, X = B N D e / P bytes, where D is the hidden size. The forward pass\n"
        "all-gathers x and reduce-scatters y. The backward pass all-gathers dy; then it\n"
        "all-gathers x again, which only the gradient of the weights needs, so that it\n"
        "overlaps with attention (in Megatron with the dgrad GEMM); and it\n"
        "reduce-scatters dx after attention (in Megatron during the wgrad GEMM). As in\n"
        "every schedule the projections take no time; here calls stand for them, so that\n"
        "the proof covers the data flow through them.\n"
        "\n"
        "bytes sent   forward 2 (P-1) X; backward 3 (P-1) X\n"
        "flops        causal: P F / 2 on every rank, N (N+1)/2 pairs of h/P heads;\n"
        "             recomputed attention costs its forward flops once more\n"
        "idle         0\n"
        "buffers      4 X (x, y, dy, dx); forward P X gathered, backward 2 P X;\n"
        "             recomputed: also o and lse\n"
        "recompute    With --recompute-granularity selective the backward pass computes\n"
        "             attention again. With full it repeats the whole forward pass and\n"
        "             sends 2 (P-1) X more\n"
        "linear       as ulysses. Recomputed attention writes an o that the backward pass\n"
        "             does not read, as checkpointing does\n"
        "restrictions h divisible by P, and g by P or P by g (--pad-heads makes them so; X\n"
        "             remains the same unless --pad-width is given, too)\n"
        "replication  With P > g, P/g ranks hold a copy of each key-value head, with h/P\n"
        "             query heads each. Their projections have one matrix, so the\n"
        "             reduce-scatter of dx adds up the gradients of all copies\n",
    .options = LH_OPTIONS(&lh_option_no_overlap, &lh_option_pad_heads, &pad_width,
                          &recompute_granularity),
    .placement = LH_PLACE_HEADS,
    .attention = LH_ATTENTION_ALL,
    .masks = LH_MASKS_ALL,
    .adapt = megatron_tp_sp_adapt,
    .check = megatron_tp_sp_check,
    .declare = megatron_tp_sp_declare,
    .generator = { .steps = megatron_tp_sp_steps, .emit = megatron_tp_sp_emit },
    .closed = {
        .bytes_sent = megatron_tp_sp_bytes_sent,
        .flops = megatron_tp_sp_flops,
        .peak_bytes = megatron_tp_sp_peak_bytes,
        .idle_unit = lh_pass_idle_none,
        .idle_flops = lh_pass_idle_none,
    },
    .alone = true, /* even a single rank recomputes */
};
