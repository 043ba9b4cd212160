/*
 * Megatron-LM's attention module with tensor and sequence parallelism: every rank has its heads for
 * all tokens, so that attention needs nobody; what moves is the module's activations, an all-gather
 * before it and a reduce-scatter behind it. The projections are left out, as in all schedules here:
 * what they would read and write stands for itself. The gathered buffer, from which q, k, v would
 * be made, is also where the partial sums would be that the output projection leaves; what is in it
 * is nobody's claim, its bytes and its place in time are.
 */
#include "sched/common/heads.h"

#include <inttypes.h>

typedef struct {
    LhPassSlots io, again; /* again: with o and lse as backward has them, perhaps recomputed */
    LhKernelArgs attention;
    uint16_t x, y, dy, dx;  /* the module's activations, each rank's tokens */
    uint16_t all, grad_all; /* gathered, and then to be reduced */
    uint16_t y_again;       /* recomputed */
} Plan;

/* What a backward pass computes again. */
typedef enum {
    RECOMPUTE_NONE,
    RECOMPUTE_SELECTIVE, /* attention itself, not the collectives around it */
    RECOMPUTE_FULL,      /* all of the module, collectives too */
} Recompute;

static const char *const recompute_names[] = {
    [RECOMPUTE_NONE] = "none",
    [RECOMPUTE_SELECTIVE] = "selective",
    [RECOMPUTE_FULL] = "full",
    NULL,
};

static const LhOption recompute_granularity = {
    .name = "recompute_granularity",
    .type = LH_OPTION_CHOICE,
    .choices = recompute_names,
    .help = "What backward computes again: nothing (default), attention, or the whole module with "
            "its collectives.",
};

static void
shape_width(LhProgramParams *p)
{
    lh_option_pad_heads.shape(p);
    lh_option_set(p, &lh_option_pad_heads, (LhOptionValue){ .first = 1 });
}

static const LhOption pad_width = {
    .name = "pad_width",
    .type = LH_OPTION_FLAG,
    .help =
        "With --pad-heads the model's hidden size grows with its heads; else only the projections "
        "of attention do.",
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
adapt(LhProgramParams *p)
{
    LhAttention *a = &p->attention;
    const uint32_t heads = a->heads;

    if (!lh_heads_padded(p))
        return;
    lh_heads_pad(a, p->ranks, false);
    if (lh_option_first(p, &pad_width) != 0 && heads > 0)
        a->hidden_size = (uint32_t)MIN((uint64_t)a->hidden_size * a->heads / heads, UINT32_MAX);
}

static bool
legal(const LhAttention *a, uint32_t ranks)
{
    return a->groups % ranks == 0;
}

static bool
check(const LhProgramParams *p, GError **error)
{
    const LhAttention *a = &p->attention;
    g_autofree char *nearest = NULL;

    if (lh_option_is_set(p, &pad_width) && !lh_heads_padded(p))
        return lh_program_refuse(error,
                                 "--pad-width is for heads that are padded: give --pad-heads, "
                                 "too");
    if (legal(a, p->ranks))
        return true;
    nearest = lh_heads_nearest_ranks(a, p->ranks, legal);
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

/* One rank alone has nothing to gather. */
static void
declare_hidden(LhProgram *program, Plan *plan)
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
declare(LhProgram *program)
{
    const LhProgramParams *p = &program->params;
    const LhPassSizes z = lh_pass_sizes(p, 0);
    Plan *plan = g_new0(Plan, 1);

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
steps(const LhProgram *program, uint32_t rank)
{
    const LhProgramParams *p = &program->params;

    (void)rank;
    return (lh_pass_has(p, LH_PASS_FWD) ? (uint32_t)FORWARD_STEPS : 0) +
           (lh_pass_has(p, LH_PASS_BWD) ? (uint32_t)BACKWARD_STEPS : 0);
}

/* Over all ranks, behind the compute ops so far. */
static void
collective(LhEmitter *e, LhCollectiveKind kind, uint16_t from, uint16_t to)
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
set_again_live(LhEmitter *e, const Plan *plan, bool live)
{
    const uint16_t slots[] = { plan->again.o, plan->again.lse };

    for (unsigned i = 0; i < (e->program->params.attention.linear ? 1 : 2); i++) {
        if (live)
            lh_emit_alloc(e, slots[i]);
        else
            lh_emit_free(e, slots[i]);
    }
}

static void
emit_forward(LhEmitter *e, const Plan *plan, uint32_t step)
{
    switch (step) {
    case FORWARD_GATHER:
        set_hidden_live(e, plan->all, true);
        collective(e, LH_COLL_ALL_GATHER, plan->x, plan->all);
        wait(e);
        break;
    case FORWARD_ATTENTION:
        lh_pass_attend(e, &plan->attention, &plan->io, 0, 1);
        break;
    default:
        collective(e, LH_COLL_REDUCE_SCATTER, plan->all, plan->y);
        wait(e);
        set_hidden_live(e, plan->all, false);
        break;
    }
}

/* What backward computes again: attention alone, or the module with its collectives. */
static void
recompute(LhEmitter *e, const Plan *plan)
{
    const Recompute how = recomputes(&e->program->params);

    if (how == RECOMPUTE_NONE)
        return;
    set_again_live(e, plan, true);
    if (how == RECOMPUTE_FULL) {
        collective(e, LH_COLL_ALL_GATHER, plan->x, plan->all);
        wait(e);
    }
    lh_pass_attend(e, &plan->attention, &plan->again, 0, 1);
    if (how == RECOMPUTE_FULL) {
        set_hidden_live(e, plan->y_again, true);
        collective(e, LH_COLL_REDUCE_SCATTER, plan->all, plan->y_again);
        wait(e);
        set_hidden_live(e, plan->y_again, false);
    }
}

static void
attend_backward(LhEmitter *e, const Plan *plan)
{
    lh_pass_attend_grad(e, &plan->attention, &plan->again, 0, 1);
    if (recomputes(&e->program->params) != RECOMPUTE_NONE)
        set_again_live(e, plan, false);
}

/* The second gather of x is for the gradient of the weights: nothing here waits for it. */
static void
emit_backward(LhEmitter *e, const Plan *plan, uint32_t step)
{
    switch (step) {
    case BACKWARD_RECOMPUTE:
        set_hidden_live(e, plan->all, true);
        recompute(e, plan);
        break;
    case BACKWARD_GATHER:
        set_hidden_live(e, plan->grad_all, true);
        collective(e, LH_COLL_ALL_GATHER, plan->dy, plan->grad_all);
        wait(e);
        collective(e, LH_COLL_ALL_GATHER, plan->x, plan->all);
        if (!lh_pass_overlaps(&e->program->params))
            wait(e);
        break;
    case BACKWARD_ATTENTION:
        attend_backward(e, plan);
        break;
    default:
        collective(e, LH_COLL_REDUCE_SCATTER, plan->grad_all, plan->dx);
        set_hidden_live(e, plan->grad_all, false);
        set_hidden_live(e, plan->all, false);
        break;
    }
}

static void
emit(LhEmitter *e, uint32_t step)
{
    const Plan *plan = e->program->plan;

    step = lh_pass_enter(e, step, FORWARD_STEPS);
    if (e->phase == LH_PHASE_FORWARD)
        emit_forward(e, plan, step);
    else
        emit_backward(e, plan, step);
}

/* 2 collectives forward, 3 backward, and those of forward again; of P-1 shards each. */
static uint64_t
bytes_sent(const LhProgramParams *p, uint32_t rank)
{
    const uint64_t forward = lh_pass_has(p, LH_PASS_FWD) ? 2 : 0;
    const uint64_t backward = recomputes(p) == RECOMPUTE_FULL ? 5 : 3;

    (void)rank;
    return (forward + (lh_pass_has(p, LH_PASS_BWD) ? backward : 0)) * (p->ranks - 1) *
           hidden_bytes(p);
}

static uint64_t
flops(const LhProgramParams *p, uint32_t rank)
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

/* Shards of the module's activations on top of q, k, v, ...; forward P of them gathered, backward
 * twice P, and what is recomputed. */
static uint64_t
peak_bytes(const LhProgramParams *p, uint32_t rank)
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
    .summary = "Megatron's attention module: heads on ranks, activations gathered and scattered",
    .details =
        "Tensor and sequence parallelism of Megatron-LM (core/tensor_parallel), its\n"
        "attention module. Rank r has its h/P heads for all tokens and N/P tokens of the\n"
        "activations around the module, X = B N D e / P bytes with D the hidden size.\n"
        "Forward all-gathers the input and reduce-scatters the output. Backward\n"
        "all-gathers the gradient of the output; all-gathers the input again, for the\n"
        "gradient of the weights, which nothing waits for: it runs beside attention\n"
        "here, beside the dgrad product in Megatron; and reduce-scatters the gradient of\n"
        "the input, behind attention here, beside the wgrad product in Megatron. The\n"
        "projections are left out, being the same under every schedule.\n"
        "\n"
        "bytes sent   fwd 2 (P-1) X; bwd 3 (P-1) X; with --recompute-granularity full\n"
        "             2 (P-1) X more. A layer has an MLP besides, with 2 and 3 more:\n"
        "             10 (P-1) X, or 14 with full recomputation. The LightSeq paper prints\n"
        "             10 N d and 14 N d, which is per worker, without the factor (P-1)/P\n"
        "flops        P F / 2 on every rank, causal; recomputed attention once more\n"
        "idle         0. Padded heads (--pad-heads: h up to P ceil(h/P)) are extra work,\n"
        "             of which h / (P ceil(h/P)) is useful: 33 heads on 16 ranks become\n"
        "             48, 45.5% more\n"
        "buffers      4 X, fwd P X gathered, bwd 2 P X; o and lse when recomputed\n"
        "linear       as ulysses; no lse. Recomputed attention leaves an o that its\n"
        "             backward does not read, as a checkpoint would\n"
        "restrictions heads divisible by P, which is Megatron's error, too (LightSeq's\n"
        "             authors padded them); groups divisible by P. With more ranks than\n"
        "             groups Megatron gathers q, k, v over the ranks instead, which is\n"
        "             not modelled. The wire type of gradients changes nothing: dq, dk, dv\n"
        "             do not travel\n",
    .options = LH_OPTIONS(&lh_option_no_overlap, &lh_option_pad_heads, &pad_width,
                          &recompute_granularity),
    .placement = LH_PLACE_HEADS,
    .attention = LH_ATTENTION_ALL,
    .masks = LH_MASKS_ALL,
    .adapt = adapt,
    .check = check,
    .declare = declare,
    .generator = { .steps = steps, .emit = emit },
    .closed = {
        .bytes_sent = bytes_sent,
        .flops = flops,
        .peak_bytes = peak_bytes,
        .idle_unit = lh_pass_idle_none,
        .idle_flops = lh_pass_idle_none,
    },
    .alone = true, /* it recomputes */
};
