/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule te-allgather, described at the end of this file. Tensors of all tokens have 2P
 * parts, one per half-chunk. Gathered tensors are in rank order: first half-chunks of rank 0, 1,
 * ..., then second ones; in token order the second ones are reversed. Not modelled: the copies of
 * the two outputs into one tensor.
 */
#include "sched/common/ring_shared.h"
#include "sched/schedule.h"

enum {
    MARK_SECOND = LH_MARK_OWN, /* the op queued last on the second compute stream */
};

#define HALVES 2

typedef struct {
    LhPassSizes sizes;
    LhPassSlots io;
    uint32_t ranks;
    uint64_t rows; /* tokens of a half-chunk */
    uint8_t second;
    uint16_t fwd_gathered, fwd_kv;
    uint16_t bwd_gathered, bwd_kv;
    uint16_t bwd_first, bwd_end; /* buffers of the backward pass except k, v */
    uint16_t bwd_steps, bwd_dkv, bwd_sent, bwd_shard;
    LhKernelArgs ranks_rows, all_rows, shard_rows;
} TeAllgatherPlan;

/* The number of half-chunks of k, v for which the two calls together produce gradients: at most
 * 2P + 1 under a causal mask, otherwise 4P. */
static uint32_t
step_parts(const LhProgramParams *p)
{
    return p->mask.causal ? HALVES * p->ranks + 1 : 2 * HALVES * p->ranks;
}

static uint16_t
add_halves(LhProgram *program, const char *name, LhTensorKind kind, uint32_t parts, uint64_t bytes,
           uint32_t element_bytes)
{
    return lh_pass_add_slot(program, name, kind, LH_SLOT_TEMP, parts, bytes / HALVES,
                            element_bytes);
}

static void
te_allgather_declare_backward(LhProgram *program, TeAllgatherPlan *plan)
{
    const LhPassSizes *z = &plan->sizes;
    const uint32_t all = HALVES * plan->ranks;

    plan->bwd_gathered = add_halves(program, "bwd_gathered", LH_TENSOR_KV, all, z->kv, z->e);
    plan->bwd_kv = add_halves(program, "bwd_kv", LH_TENSOR_KV, all, z->kv, z->e);
    plan->bwd_first = (uint16_t)program->slots_count;
    plan->bwd_steps =
        add_halves(program, "bwd_steps", LH_TENSOR_DKV, step_parts(&program->params), z->kv, z->e);
    plan->bwd_dkv = add_halves(program, "bwd_dkv", LH_TENSOR_DKV, all, z->kv, z->e);
    plan->bwd_sent = add_halves(program, "bwd_sent", LH_TENSOR_DKV, all, z->dkv, z->w);
    plan->bwd_shard = plan->io.dkv;
    if (z->w > z->e)
        plan->bwd_shard = add_halves(program, "bwd_shard", LH_TENSOR_DKV, HALVES, z->dkv, z->w);
    plan->bwd_end = (uint16_t)program->slots_count;
}

static void
te_allgather_declare(LhProgram *program)
{
    const LhProgramParams *p = &program->params;
    TeAllgatherPlan *plan = g_new0(TeAllgatherPlan, 1);

    program->plan = plan;
    plan->ranks = p->ranks;
    plan->sizes = lh_pass_sizes(p, 0);
    plan->rows = plan->sizes.n / HALVES;
    plan->io = lh_pass_declare(program, &plan->sizes);
    plan->second = lh_program_add_stream(program, "compute2", LH_STREAM_COMPUTE);
    plan->ranks_rows = lh_pass_kv_args(p, p->ranks * plan->rows);
    plan->all_rows = lh_pass_kv_args(p, p->ranks * plan->sizes.n);
    plan->shard_rows = lh_pass_kv_args(p, plan->sizes.n);
    if (lh_pass_has(p, LH_PASS_FWD)) {
        plan->fwd_gathered = add_halves(program, "fwd_gathered", LH_TENSOR_KV, HALVES * p->ranks,
                                        plan->sizes.kv, plan->sizes.e);
        plan->fwd_kv = add_halves(program, "fwd_kv", LH_TENSOR_KV, HALVES * p->ranks,
                                  plan->sizes.kv, plan->sizes.e);
    }
    if (lh_pass_has(p, LH_PASS_BWD))
        te_allgather_declare_backward(program, plan);
}

/* Posts a collective of the first and of the second half-chunks. Compute waits for it. */
static void
collect_halves(LhEmitter *e, const TeAllgatherPlan *plan, LhCollectiveKind kind, uint16_t from,
               uint16_t to)
{
    const LhGroup everyone = { .stride = 1, .count = plan->ranks, .outer_count = 1 };
    const bool gathers = kind == LH_COLL_ALL_GATHER;
    const uint32_t sent = gathers ? 1 : plan->ranks, received = gathers ? plan->ranks : 1;
    uint32_t *marks = e->marks;

    marks[LH_MARK_EXCHANGE] = lh_emit_collective(e, LH_PASS_STREAM_COMM, kind, everyone);
    lh_emit_after(e, marks[LH_MARK_COMPUTE]);
    for (uint32_t half = 0; half < HALVES; half++)
        lh_emit_tensor(e, (LhRegion){ from, half * sent, sent },
                       (LhRegion){ to, half * received, received });
    lh_pass_wait(e, marks[LH_MARK_EXCHANGE]);
}

/* Copies between rank order and token order: the second half-chunks are reversed. */
static void
reorder_halves(LhEmitter *e, const TeAllgatherPlan *plan, LhKernelId kernel, uint16_t from,
               uint16_t to)
{
    LhKernelArgs args = plan->ranks_rows;

    for (uint32_t half = 0; half < HALVES; half++) {
        args.reversed = half == 1;
        lh_pass_compute(e, kernel, &args);
        lh_emit_operand(e, from, half * plan->ranks, plan->ranks);
        lh_emit_operand(e, to, half * plan->ranks, plan->ranks);
    }
}

static void
gather_in_order(LhEmitter *e, const TeAllgatherPlan *plan, uint16_t gathered, uint16_t kv)
{
    lh_emit_alloc(e, gathered);
    collect_halves(e, plan, LH_COLL_ALL_GATHER, plan->io.kv, gathered);
    lh_emit_alloc(e, kv);
    reorder_halves(e, plan, LH_KERNEL_ID_copy, gathered, kv);
    lh_emit_free(e, gathered);
}

/* The half-chunks of k, v that half-chunk @half of the rank's queries sees. */
static LhRegion
keys_of(const LhEmitter *e, const TeAllgatherPlan *plan, uint32_t half)
{
    const LhProgram *program = e->program;
    const LhMaskRule *rule = &program->params.mask;
    const uint64_t length = program->params.attention.seq_length;
    const uint32_t id = lh_placement_segment_id(&program->placement, e->rank, half);
    const uint64_t start = id * plan->rows;
    const uint32_t first = (uint32_t)(lh_mask_keys(rule, start, length).first / plan->rows);
    const uint64_t end = lh_mask_keys(rule, start + plan->rows - 1, length).end;

    return (LhRegion){ .part = first, .count = (uint32_t)((end - 1) / plan->rows) - first + 1 };
}

/* Appends the attention of one half-chunk with its keys, on the stream of the half-chunk.
 * Operands follow. */
static void
attend_half(LhEmitter *e, const TeAllgatherPlan *plan, uint32_t half, LhKernelId kernel)
{
    const LhPlacement *placement = &e->program->placement;
    const LhRegion keys = keys_of(e, plan, half);
    const LhPassRows q = {
        .first = lh_placement_segment(placement, lh_placement_segment_id(placement, e->rank, half)),
        .parts = 1,
    };
    const LhPassRows k = { .first = lh_placement_segment(placement, keys.part),
                           .part_step = (int64_t)plan->rows,
                           .parts = keys.count };
    uint32_t *marks = e->marks;
    LhKernelArgs args = lh_pass_position_args(e->program, q, k);

    args.first = true;
    if (half == 0) {
        lh_pass_compute(e, kernel, &args);
        return;
    }
    marks[MARK_SECOND] = lh_emit_compute(e, plan->second, kernel, &args);
}

static void
te_allgather_forward(LhEmitter *e, const TeAllgatherPlan *plan)
{
    uint32_t ready;

    gather_in_order(e, plan, plan->fwd_gathered, plan->fwd_kv);
    ready = e->marks[LH_MARK_COMPUTE];
    for (uint32_t half = 0; half < HALVES; half++) {
        const LhRegion keys = keys_of(e, plan, half);

        attend_half(e, plan, half, LH_KERNEL_ID_attention);
        lh_emit_after(e, ready);
        lh_emit_operand(e, plan->io.q, half, 1);
        lh_emit_operand(e, plan->fwd_kv, keys.part, keys.count);
        lh_emit_operand(e, plan->io.o, half, 1);
        lh_emit_operand(e, plan->io.lse, half, 1);
    }
    lh_pass_wait(e, e->marks[MARK_SECOND]);
    lh_emit_free(e, plan->fwd_kv);
}

/* Adds up dk, dv of both calls, each on its stream; the second one waits for the first. */
static void
add_steps(LhEmitter *e, const TeAllgatherPlan *plan)
{
    uint32_t *marks = e->marks;
    uint32_t first_part = 0;

    for (uint32_t half = 0; half < HALVES; half++) {
        const LhRegion keys = keys_of(e, plan, half);
        const LhKernelArgs args = lh_pass_kv_args(&e->program->params, keys.count * plan->rows);

        if (half == 0) {
            lh_pass_compute(e, LH_KERNEL_ID_add, &args);
        } else {
            marks[MARK_SECOND] = lh_emit_compute(e, plan->second, LH_KERNEL_ID_add, &args);
            lh_emit_after(e, marks[LH_MARK_COMPUTE]);
        }
        lh_emit_operand(e, plan->bwd_steps, first_part, keys.count);
        lh_emit_operand(e, plan->bwd_dkv, keys.part, keys.count);
        first_part += keys.count;
    }
    lh_pass_wait(e, marks[MARK_SECOND]);
}

static void
te_allgather_backward(LhEmitter *e, const TeAllgatherPlan *plan)
{
    const uint16_t of_q[] = { plan->io.q, plan->io.dout, plan->io.o, plan->io.lse };
    const bool wide = plan->sizes.w > plan->sizes.e;
    uint32_t ready, first_part = 0;

    gather_in_order(e, plan, plan->bwd_gathered, plan->bwd_kv);
    lh_pass_alloc(e, plan->bwd_first, plan->bwd_end);
    lh_pass_compute(e, LH_KERNEL_ID_zero, &plan->all_rows);
    lh_emit_operand(e, plan->bwd_dkv, 0, HALVES * plan->ranks);
    ready = e->marks[LH_MARK_COMPUTE];
    for (uint32_t half = 0; half < HALVES; half++) {
        const LhRegion keys = keys_of(e, plan, half);

        attend_half(e, plan, half, LH_KERNEL_ID_attention_bwd_o);
        lh_emit_after(e, ready);
        for (unsigned i = 0; i < G_N_ELEMENTS(of_q); i++)
            lh_emit_operand(e, of_q[i], half, 1);
        lh_emit_operand(e, plan->bwd_kv, keys.part, keys.count);
        lh_emit_operand(e, plan->io.dq, half, 1);
        lh_emit_operand(e, plan->bwd_steps, first_part, keys.count);
        first_part += keys.count;
    }
    add_steps(e, plan);
    reorder_halves(e, plan, wide ? LH_KERNEL_ID_cast : LH_KERNEL_ID_copy, plan->bwd_dkv,
                   plan->bwd_sent);
    collect_halves(e, plan, LH_COLL_REDUCE_SCATTER, plan->bwd_sent, plan->bwd_shard);
    if (wide) {
        lh_pass_compute(e, LH_KERNEL_ID_cast, &plan->shard_rows);
        lh_emit_operand(e, plan->bwd_shard, 0, HALVES);
        lh_emit_operand(e, plan->io.dkv, 0, HALVES);
    }
    lh_emit_free(e, plan->bwd_kv);
    lh_pass_free(e, plan->bwd_first, plan->bwd_end);
}

static void
te_allgather_emit(LhEmitter *e, uint32_t step)
{
    const TeAllgatherPlan *plan = e->program->plan;

    lh_pass_enter(e, step, 1);
    if (e->phase == LH_PHASE_FORWARD)
        te_allgather_forward(e, plan);
    else
        te_allgather_backward(e, plan);
}

/* A ring all-gather or reduce-scatter sends P-1 times the rank's own share. */
static uint64_t
te_allgather_bytes_sent(const LhProgramParams *p, uint32_t rank)
{
    const LhPassSizes z = lh_pass_sizes(p, 0);
    const uint64_t hops = p->ranks - 1;

    (void)rank;
    return (lh_pass_has(p, LH_PASS_FWD) ? hops * z.kv : 0) +
           (lh_pass_has(p, LH_PASS_BWD) ? hops * (z.kv + z.dkv) : 0);
}

/* Forward: k, v of all ranks, twice while they are reordered. Backward: k, v in token order, the
 * gradients of both calls, their sum, and the sum in rank order. */
static uint64_t
te_allgather_peak_bytes(const LhProgramParams *p, uint32_t rank)
{
    const LhPassSizes z = lh_pass_sizes(p, 0);

    (void)rank;
    return lh_pass_peak_bytes(p, 2 * p->ranks * z.kv,
                              p->ranks * (2 * z.kv + z.dkv) + step_parts(p) * (z.kv / HALVES) +
                                  (z.w > z.e ? z.dkv : 0));
}

const LhSchedule lh_schedule_te_allgather = {
    .name = "te-allgather",
    .summary = "TransformerEngine all_gather: all k, v gathered first; zigzag, two compute streams",
    .details =
        "Context parallelism of TransformerEngine with cp_comm_type all_gather, on zigzag\n"
        "half-chunks. k and v of all ranks are all-gathered and copied into the order of\n"
        "their tokens before anything is computed. Each of the two half-chunks of q then\n"
        "attends to all keys that it sees in one call (causal: half-chunks 0..r and\n"
        "0..2P-1-r of k, v), on its own compute stream. The backward pass gathers k\n"
        "and v again, adds up dk and dv of its two calls in e bytes, copies them into the\n"
        "order of the ranks and reduce-scatters them. No communication overlaps with\n"
        "compute.\n"
        "\n"
        "bytes sent   forward (P-1) KV; backward 2 (P-1) KV, with gradients in e bytes\n"
        "flops        causal: about P F / 2 on every rank\n"
        "idle         0; with a window or documents 1 - mean / maximum of the ranks' work\n"
        "buffers      forward 2 P KV;\n"
        "             backward 3 P KV + (P + 1/2) KV, with the full mask 5 P KV\n"
        "restrictions N divisible by 2P\n"
        "windows      With a window or documents a half-chunk of q reads k, v from the\n"
        "             first to the last half-chunk that it sees; all are gathered\n",
    .options = LH_OPTIONS(&lh_option_gradient_wire),
    .placement = LH_PLACE_ZIGZAG,
    .masks = LH_MASKS_ALL,
    .declare = te_allgather_declare,
    .generator = { .steps = lh_pass_steps, .emit = te_allgather_emit },
    .closed = {
        .bytes_sent = te_allgather_bytes_sent,
        .flops = lh_zigzag_flops,
        .peak_bytes = te_allgather_peak_bytes,
        .idle_unit = lh_zigzag_idle_unit,
        .idle_flops = lh_zigzag_idle_flops,
    },
};
