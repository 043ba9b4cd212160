/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule allgather-kv, described at the end of this file. Each step of the program handles
 * one group of key-value heads, which is one slice of the tensors. k and v are double-buffered:
 * compute reads one buffer while the next group is gathered into the other. dk and dv have one
 * buffer, since nothing is computed while they are reduced.
 */
#include "sched/common/pass.h"
#include "sched/schedule.h"

#include <inttypes.h>

static const LhOption gather_groups = {
    .name = "gather_groups",
    .category = LH_ABOUT_SCHEDULE_RANKS,
    .type = LH_OPTION_COUNT,
    .help = "Key-value heads gathered at a time. Must divide their number. Default 1.",
    .value = lh_option_one_and_two,
};

enum {
    MARK_GATHER = LH_MARK_OWN, /* the all-gather of the group computed next */
};

typedef struct {
    LhPassSizes sizes;
    LhPassSlots io;
    uint32_t groups; /* number of groups of heads, computed one after another */
    uint16_t fwd_first, fwd_end, bwd_first, bwd_end;
    uint16_t fwd_kv[2], bwd_kv[2], bwd_dkv;
    uint16_t bwd_shard; /* the rank's dk, dv in fp32, before rounding */
    LhKernelArgs gathered_rows, shard_rows;
} AllgatherKvPlan;

static uint32_t
groups_of(const LhProgramParams *p)
{
    return p->attention.groups / MAX(lh_option_first(p, &gather_groups), 1);
}

static bool
allgather_kv_check(const LhProgramParams *p, GError **error)
{
    const uint32_t groups = p->attention.groups;
    const uint32_t wanted = MAX(lh_option_first(p, &gather_groups), 1);
    g_autofree char *near = NULL;
    uint32_t below, above;

    if (groups % wanted == 0)
        return true;
    lh_divisors_near(groups, wanted, groups, &below, &above);
    near = lh_near_text(below, above);
    return lh_program_refuse(error,
                             "%" PRIu32 " key-value heads cannot be gathered %" PRIu32
                             " at a time; nearest legal numbers: %s",
                             groups, wanted, near);
}

static uint16_t
add_gathered(LhProgram *program, const AllgatherKvPlan *plan, const char *name, LhTensorKind kind,
             uint64_t bytes, uint32_t element_bytes)
{
    return lh_pass_add_slot(program, name, kind, LH_SLOT_TEMP, program->params.ranks,
                            bytes / plan->groups, element_bytes);
}

static void
declare_buffers(LhProgram *program, AllgatherKvPlan *plan)
{
    const LhProgramParams *p = &program->params;
    const LhPassSizes *z = &plan->sizes;

    plan->fwd_first = (uint16_t)program->slots_count;
    if (lh_pass_has(p, LH_PASS_FWD)) {
        plan->fwd_kv[0] = add_gathered(program, plan, "fwd_kv0", LH_TENSOR_KV, z->kv, z->e);
        plan->fwd_kv[1] = add_gathered(program, plan, "fwd_kv1", LH_TENSOR_KV, z->kv, z->e);
    }
    plan->fwd_end = plan->bwd_first = (uint16_t)program->slots_count;
    if (lh_pass_has(p, LH_PASS_BWD)) {
        plan->bwd_kv[0] = add_gathered(program, plan, "bwd_kv0", LH_TENSOR_KV, z->kv, z->e);
        plan->bwd_kv[1] = add_gathered(program, plan, "bwd_kv1", LH_TENSOR_KV, z->kv, z->e);
        plan->bwd_dkv = add_gathered(program, plan, "bwd_dkv", LH_TENSOR_DKV, z->dkv, z->w);
    }
    if (lh_pass_has(p, LH_PASS_BWD) && z->w > z->e)
        plan->bwd_shard = lh_pass_add_slot(program, "bwd_shard", LH_TENSOR_DKV, LH_SLOT_TEMP, 1,
                                           z->dkv / plan->groups, z->w);
    plan->bwd_end = (uint16_t)program->slots_count;
}

static void
allgather_kv_declare(LhProgram *program)
{
    const LhProgramParams *p = &program->params;
    AllgatherKvPlan *plan = g_new0(AllgatherKvPlan, 1);

    program->plan = plan;
    plan->sizes = lh_pass_sizes(p, 0);
    plan->groups = groups_of(p);
    program->head_slices = program->kv_slices = plan->groups;
    plan->io = lh_pass_declare(program, &plan->sizes);
    plan->gathered_rows = lh_pass_slice_args(program, lh_pass_kv_args(p, p->ranks * plan->sizes.n));
    plan->shard_rows = lh_pass_slice_args(program, lh_pass_kv_args(p, plan->sizes.n));
    declare_buffers(program, plan);
}

static uint32_t
allgather_kv_steps(const LhProgram *program, uint32_t rank)
{
    const LhProgramParams *p = &program->params;

    (void)rank;
    return groups_of(p) * (p->pass == LH_PASS_BOTH ? 2 : 1);
}

static void
post_collective(LhEmitter *e, LhCollectiveKind kind, LhRegion send, LhRegion receive)
{
    const LhGroup everyone = { .stride = 1, .count = e->program->params.ranks, .outer_count = 1 };
    uint32_t *marks = e->marks;

    marks[LH_MARK_EXCHANGE] = lh_emit_collective(e, LH_PASS_STREAM_COMM, kind, everyone);
    lh_emit_after(e, marks[LH_MARK_COMPUTE]);
    lh_emit_tensor(e, send, receive);
}

/* Posts the all-gather of group @i + 1 (of the first two groups if @i is 0), and makes compute
 * wait for that of group @i. */
static void
gather_ahead(LhEmitter *e, const AllgatherKvPlan *plan, uint32_t i, const uint16_t kv[2])
{
    const LhProgramParams *p = &e->program->params;
    uint32_t *marks = e->marks;

    for (uint32_t ahead = i == 0 ? 0 : i + 1; ahead <= i + 1 && ahead < plan->groups; ahead++) {
        const LhRegion own = { .slot = plan->io.kv, .part = ahead, .count = 1 };
        const LhRegion all = { .slot = kv[ahead % 2], .count = p->ranks };

        post_collective(e, LH_COLL_ALL_GATHER, own, all);
        if (ahead == i)
            marks[MARK_GATHER] = marks[LH_MARK_EXCHANGE];
    }
    lh_pass_wait(e, lh_pass_overlaps(p) ? marks[MARK_GATHER] : marks[LH_MARK_EXCHANGE]);
    marks[MARK_GATHER] = marks[LH_MARK_EXCHANGE];
}

/* Attention arguments of the rank's queries with the gathered keys of the ranks @owners. */
static LhKernelArgs
gathered_args(const LhEmitter *e, const AllgatherKvPlan *plan, LhRankRange owners)
{
    const LhPlacement *placement = &e->program->placement;
    const LhPassRows q = { .first = lh_placement_segment(placement, e->rank), .parts = 1 };
    const LhPassRows k = { .first = lh_placement_segment(placement, owners.first),
                           .part_step = (int64_t)plan->sizes.n,
                           .parts = owners.last - owners.first + 1 };
    LhKernelArgs args = lh_pass_position_args(e->program, q, k);

    args.first = true;
    return args;
}

static void
allgather_kv_forward(LhEmitter *e, const AllgatherKvPlan *plan, uint32_t i)
{
    const LhRankRange owners = lh_pass_owners(&e->program->params, e->rank);
    const LhKernelArgs args = gathered_args(e, plan, owners);

    if (i == 0)
        lh_pass_alloc(e, plan->fwd_first, plan->fwd_end);
    gather_ahead(e, plan, i, plan->fwd_kv);
    lh_pass_compute(e, LH_KERNEL_ID_attention, &args);
    lh_emit_operand(e, plan->io.q, i, 1);
    lh_emit_operand(e, plan->fwd_kv[i % 2], owners.first, owners.last - owners.first + 1);
    lh_emit_operand(e, plan->io.o, i, 1);
    lh_emit_operand(e, plan->io.lse, i, 1);
    if (i + 1 == plan->groups)
        lh_pass_free(e, plan->fwd_first, plan->fwd_end);
}

/* Gathered keys that no query of the rank sees get a zero gradient. */
static void
allgather_kv_backward_block(LhEmitter *e, const AllgatherKvPlan *plan, uint32_t i)
{
    const LhRankRange owners = lh_pass_owners(&e->program->params, e->rank);
    const LhKernelArgs args = gathered_args(e, plan, owners);
    const uint16_t of_q[] = { plan->io.q, plan->io.dout, plan->io.o, plan->io.lse };
    const uint32_t parts = owners.last - owners.first + 1;

    lh_pass_compute(e, LH_KERNEL_ID_zero, &plan->gathered_rows);
    lh_emit_operand(e, plan->bwd_dkv, 0, e->program->params.ranks);
    lh_pass_compute(e, LH_KERNEL_ID_attention_bwd_o, &args);
    for (unsigned k = 0; k < G_N_ELEMENTS(of_q); k++)
        lh_emit_operand(e, of_q[k], i, 1);
    lh_emit_operand(e, plan->bwd_kv[i % 2], owners.first, parts);
    lh_emit_operand(e, plan->io.dq, i, 1);
    lh_emit_operand(e, plan->bwd_dkv, owners.first, parts);
}

/* Reduce-scatters dk and dv of group @i; compute waits for it. */
static void
scatter_group(LhEmitter *e, const AllgatherKvPlan *plan, uint32_t i)
{
    const LhRegion all = { .slot = plan->bwd_dkv, .count = e->program->params.ranks };
    const LhRegion own = { .slot = plan->io.dkv, .part = i, .count = 1 };
    const LhRegion wide = { .slot = plan->bwd_shard, .count = 1 };
    const bool rounds = plan->sizes.w > plan->sizes.e;

    post_collective(e, LH_COLL_REDUCE_SCATTER, all, rounds ? wide : own);
    lh_pass_wait(e, e->marks[LH_MARK_EXCHANGE]);
    if (!rounds)
        return;
    lh_pass_compute(e, LH_KERNEL_ID_cast, &plan->shard_rows);
    lh_emit_operand(e, wide.slot, 0, 1);
    lh_emit_operand(e, own.slot, own.part, 1);
}

static void
allgather_kv_backward(LhEmitter *e, const AllgatherKvPlan *plan, uint32_t i)
{
    if (i == 0)
        lh_pass_alloc(e, plan->bwd_first, plan->bwd_end);
    gather_ahead(e, plan, i, plan->bwd_kv);
    allgather_kv_backward_block(e, plan, i);
    scatter_group(e, plan, i);
    if (i + 1 == plan->groups)
        lh_pass_free(e, plan->bwd_first, plan->bwd_end);
}

static void
allgather_kv_emit(LhEmitter *e, uint32_t step)
{
    const AllgatherKvPlan *plan = e->program->plan;
    const uint32_t i = lh_pass_enter(e, step, plan->groups);

    if (e->phase == LH_PHASE_FORWARD)
        allgather_kv_forward(e, plan, i);
    else
        allgather_kv_backward(e, plan, i);
}

/* A ring all-gather or reduce-scatter sends P-1 times the rank's own share. */
static uint64_t
allgather_kv_bytes_sent(const LhProgramParams *p, uint32_t rank)
{
    const LhPassSizes z = lh_pass_sizes(p, 0);
    const uint64_t hops = p->ranks - 1;

    (void)rank;
    return (lh_pass_has(p, LH_PASS_FWD) ? hops * z.kv : 0) +
           (lh_pass_has(p, LH_PASS_BWD) ? hops * (z.kv + z.dkv) : 0);
}

/* Forward: two groups of gathered heads. Backward: also dk and dv of one group. */
static uint64_t
allgather_kv_peak_bytes(const LhProgramParams *p, uint32_t rank)
{
    const LhPassSizes z = lh_pass_sizes(p, 0);
    const uint64_t kv = z.kv / groups_of(p), dkv = z.dkv / groups_of(p);

    (void)rank;
    return lh_pass_peak_bytes(p, 2 * p->ranks * kv,
                              p->ranks * (2 * kv + dkv) + (z.w > z.e ? dkv : 0));
}

const LhSchedule lh_schedule_allgather_kv = {
    .name = "allgather-kv",
    .summary = "Llama 3: k and v all-gathered a few heads ahead of their use; contiguous tokens",
    .details =
        "Context parallelism of Llama 3, as llama3_flash_attn_varlen of\n"
        "zhuzilin/ring-flash-attention implements it. Key-value heads are all-gathered in\n"
        "g / s steps of s heads, s = --gather-groups (default 1). While the queries attend\n"
        "to the heads of one step, all their keys in one call, k and v of the next step\n"
        "are gathered. The backward pass gathers them again; dk and dv of a step are\n"
        "reduce-scattered before the next one is computed, which exposes the\n"
        "reduce-scatter. The schedule does not balance a causal mask.\n"
        "\n"
        "bytes sent   forward (P-1) KV; backward 2 (P-1) KV, with gradients in e bytes\n"
        "flops        causal: (r + 1/2) F on rank r\n"
        "idle         causal: (P-1)/(2P) counting blocks, about (P-1)/(2P-1) counting\n"
        "             flops; full mask: 0; with a window or documents 1 - mean / maximum\n"
        "             of the ranks' work\n"
        "buffers      forward 2 P KV s/g; backward 3 P KV s/g\n"
        "restrictions N divisible by P, g divisible by s\n"
        "windows      With a window or documents a rank reads k, v from the first to the\n"
        "             last rank whose keys its queries see; all are gathered\n",
    .options = LH_OPTIONS(&lh_option_no_overlap, &lh_option_gradient_wire, &gather_groups),
    .placement = LH_PLACE_CONTIGUOUS,
    .masks = LH_MASKS_ALL,
    .check = allgather_kv_check,
    .declare = allgather_kv_declare,
    .generator = { .steps = allgather_kv_steps, .emit = allgather_kv_emit },
    .closed = {
        .bytes_sent = allgather_kv_bytes_sent,
        .flops = lh_contiguous_flops,
        .peak_bytes = allgather_kv_peak_bytes,
        .idle_unit = lh_contiguous_idle_unit,
        .idle_flops = lh_contiguous_idle_flops,
    },
};
