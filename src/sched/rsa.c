/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule rsa, described at the end of this file. A pass is a sequence of rings of P steps
 * each, in which k or v circulates: scores, then o; backward the gradients of scores, then dq.
 * Before each of the backward rings the gradients of all keys are computed and all-reduced. Not
 * modelled: dropout, and copies that make q, k, v contiguous by heads.
 */
#include "sched/common/pass.h"
#include "sched/schedule.h"

/*
 * Bytes per score that the published code moves between the products, one kernel per step
 * (Colossal-AI, colossalai/nn/layer/parallel_sequence, and FusedScaleMaskSoftmax, whose fused
 * kernel takes rows of up to 2048 keys). Forward: a block into the tensor of all 4, division 4,
 * cast to fp32 6, mask 9, softmax 8, cast back 6. Backward: the same for the gradients; softmax
 * reads twice.
 */
#define PUBLISHED_FORWARD 37
#define PUBLISHED_BACKWARD 41

enum {
    RSA_TAG_SCORES,  /* k */
    RSA_TAG_OUT,     /* v */
    RSA_TAG_DSCORES, /* v */
    RSA_TAG_DQ,      /* k */
};

/* The rings in execution order; each has P steps. */
typedef enum {
    RING_SCORES,
    RING_OUT,
    RING_AGAIN, /* in a backward pass alone: the scores, recomputed */
    RING_DSCORES,
    RING_DQ,
} Ring;

typedef struct {
    LhPassSizes sizes;
    LhPassSlots io;
    uint32_t ranks;
    LhKernelArgs block; /* one rank's queries with one rank's keys, all pairs */
    LhKernelArgs rows;  /* one rank's queries with all keys, all pairs */
    LhKernelArgs q_rows, kv_rows;
    uint16_t k[2], v[2]; /* in use, and arriving */
    uint16_t scores, probs, dscores, lse_again, o_sum, dq_sum, dk, dv;
} RsaPlan;

/* B h n numbers per key, for @keys keys. */
static uint64_t
score_elements(const LhProgramParams *p, uint64_t keys)
{
    const LhAttention *a = &p->attention;

    return (uint64_t)a->batch * a->heads * (a->seq_length / p->ranks) * keys;
}

/* Adds a slot with one part for the keys of each rank. */
static uint16_t
add_parts(LhProgram *program, const char *name, LhTensorKind kind, uint64_t part_bytes,
          uint32_t element_bytes)
{
    return lh_pass_add_slot(program, name, kind, LH_SLOT_TEMP, program->params.ranks, part_bytes,
                            element_bytes);
}

static void
declare_rings(LhProgram *program, RsaPlan *plan)
{
    const LhPassSizes *z = &plan->sizes;
    const uint64_t block = score_elements(&program->params, z->n);

    plan->k[0] = lh_pass_add_buffer(program, "k0", LH_TENSOR_K, z->kv / 2, z->e);
    plan->k[1] = lh_pass_add_buffer(program, "k1", LH_TENSOR_K, z->kv / 2, z->e);
    plan->v[0] = lh_pass_add_buffer(program, "v0", LH_TENSOR_V, z->kv / 2, z->e);
    plan->v[1] = lh_pass_add_buffer(program, "v1", LH_TENSOR_V, z->kv / 2, z->e);
    plan->scores = add_parts(program, "scores", LH_TENSOR_SCORES, 4 * block, 4);
    plan->probs = add_parts(program, "probs", LH_TENSOR_PROBS, z->e * block, z->e);
}

static void
declare_sums(LhProgram *program, RsaPlan *plan)
{
    const LhPassSizes *z = &plan->sizes;
    const uint64_t sum = z->q / z->e * 4, block = score_elements(&program->params, z->n);

    if (lh_pass_has(&program->params, LH_PASS_FWD))
        plan->o_sum = lh_pass_add_buffer(program, "o_sum", LH_TENSOR_O, sum, 4);
    if (!lh_pass_has(&program->params, LH_PASS_BWD))
        return;
    if (!lh_pass_has(&program->params, LH_PASS_FWD))
        plan->lse_again = lh_pass_add_buffer(program, "lse_again", LH_TENSOR_LSE, z->s, 4);
    plan->dscores = add_parts(program, "dscores", LH_TENSOR_DSCORES, z->e * block, z->e);
    plan->dk = add_parts(program, "dk_all", LH_TENSOR_DK, z->dkv / 2, z->w);
    plan->dv = add_parts(program, "dv_all", LH_TENSOR_DV, z->dkv / 2, z->w);
    plan->dq_sum = lh_pass_add_buffer(program, "dq_sum", LH_TENSOR_DQ, sum, 4);
}

static void
rsa_declare(LhProgram *program)
{
    const LhProgramParams *p = &program->params;
    RsaPlan *plan;

    plan = g_new0(RsaPlan, 1);
    program->plan = plan;
    plan->sizes = lh_pass_sizes(p, 0);
    plan->ranks = p->ranks;
    plan->block = lh_pass_block_args(p, plan->sizes.n, plan->sizes.n, LH_MASK_FULL, 0);
    plan->rows = lh_pass_block_args(p, plan->sizes.n, p->attention.seq_length, LH_MASK_FULL, 0);
    plan->q_rows = lh_pass_q_args(p, plan->sizes.n);
    plan->kv_rows = lh_pass_kv_args(p, plan->sizes.n);
    plan->io = lh_pass_declare(program, &plan->sizes);
    declare_rings(program, plan);
    declare_sums(program, plan);
}

static uint32_t
rsa_steps(const LhProgram *program, uint32_t rank)
{
    const LhProgramParams *p = &program->params;

    (void)rank;
    return p->ranks * (p->pass == LH_PASS_FWD ? 2 : p->pass == LH_PASS_BWD ? 3 : 4);
}

static void
alloc(LhEmitter *e, const uint16_t *slots, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        lh_emit_alloc(e, slots[i]);
}

static void
release(LhEmitter *e, const uint16_t *slots, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        lh_emit_free(e, slots[i]);
}

#define ALLOC(e, ...)                                                                              \
    alloc(e, (const uint16_t[]){ __VA_ARGS__ }, G_N_ELEMENTS(((const uint16_t[]){ __VA_ARGS__ })))
#define FREE(e, ...)                                                                               \
    release(e, (const uint16_t[]){ __VA_ARGS__ }, G_N_ELEMENTS(((const uint16_t[]){ __VA_ARGS__ })))

/* Step @t of a ring over two buffers. Copies the rank's own k or v into the first one; from then
 * on each step waits for the hop that brings the next, and nothing else runs meanwhile. Returns
 * the buffer to use. */
static uint16_t
pass_on(LhEmitter *e, const RsaPlan *plan, const uint16_t *buffers, uint16_t tag, uint32_t t)
{
    const uint16_t here = buffers[t % 2];

    if (t == 0) {
        lh_pass_compute(e, buffers == plan->k ? LH_KERNEL_ID_take_k : LH_KERNEL_ID_take_v,
                        &plan->kv_rows);
        lh_emit_operand(e, plan->io.kv, 0, 1);
        lh_emit_operand(e, here, 0, 1);
        return here;
    }
    lh_pass_exchange(e);
    lh_pass_message(e, true, (e->rank + 1) % plan->ranks, tag, buffers[(t - 1) % 2], 1);
    lh_pass_message(e, false, (e->rank + plan->ranks - 1) % plan->ranks, tag, here, 1);
    lh_pass_wait(e, e->marks[LH_MARK_EXCHANGE]);
    if (lh_pass_published(&e->program->params))
        lh_emit_sync(e);
    return here;
}

/* The rank whose k or v is in use in step @t. */
static uint32_t
owner(const LhEmitter *e, const RsaPlan *plan, uint32_t t)
{
    return (e->rank + plan->ranks - t) % plan->ranks;
}

/* The operands of a product: rows of queries, and keys or values. */
typedef struct {
    uint16_t rows, keys, scores;
} Slots;

/* Computes scores or dscores: the product of the rank's rows with the keys in use. */
static void
emit_scores(LhEmitter *e, const RsaPlan *plan, LhKernelId kernel, const Slots *of, uint32_t t)
{
    lh_pass_compute(e, kernel, &plan->block);
    lh_emit_operand(e, of->rows, 0, 1);
    lh_emit_operand(e, of->keys, 0, 1);
    lh_emit_operand(e, of->scores, owner(e, plan, t), 1);
}

/* rows += scores x keys. */
static void
emit_apply(LhEmitter *e, const RsaPlan *plan, LhKernelId kernel, const Slots *of, uint32_t t)
{
    LhKernelArgs args = plan->block;

    args.first = t == 0;
    lh_pass_compute(e, kernel, &args);
    lh_emit_operand(e, of->scores, owner(e, plan, t), 1);
    lh_emit_operand(e, of->keys, 0, 1);
    lh_emit_operand(e, of->rows, 0, 1);
}

static void
emit_softmax(LhEmitter *e, const RsaPlan *plan, uint16_t lse, bool again)
{
    const LhPlacement *placement = &e->program->placement;
    const LhPassRows q = { lh_placement_segment(placement, e->rank), 0, 1 };
    const LhPassRows k = { lh_placement_segment(placement, 0), (int64_t)plan->sizes.n,
                           plan->ranks };
    LhKernelArgs args = lh_pass_position_args(e->program, q, k);

    args.traffic = lh_pass_published(&e->program->params) && !again ? PUBLISHED_FORWARD : 0;
    lh_pass_compute(e, LH_KERNEL_ID_scores_softmax, &args);
    lh_emit_operand(e, plan->scores, 0, plan->ranks);
    lh_emit_operand(e, plan->probs, 0, plan->ranks);
    lh_emit_operand(e, lse, 0, 1);
}

/* Computes the gradients of all keys from the rank's rows, and adds them up over the ranks. */
static void
emit_gradients(LhEmitter *e, const RsaPlan *plan, LhKernelId kernel, uint16_t scores, uint16_t rows,
               uint16_t sums)
{
    const LhGroup group = { .stride = 1, .count = plan->ranks, .outer_count = 1 };
    const LhRegion all = { sums, 0, plan->ranks };
    uint32_t *marks = e->marks;

    lh_pass_compute(e, kernel, &plan->rows);
    lh_emit_operand(e, scores, 0, plan->ranks);
    lh_emit_operand(e, rows, 0, 1);
    lh_emit_operand(e, sums, 0, plan->ranks);
    marks[LH_MARK_EXCHANGE] = lh_emit_collective(e, LH_PASS_STREAM_COMM, LH_COLL_ALL_REDUCE, group);
    lh_emit_tensor(e, all, all);
    lh_emit_after(e, marks[LH_MARK_COMPUTE]);
    lh_pass_wait(e, marks[LH_MARK_EXCHANGE]);
}

static void
emit_cast(LhEmitter *e, const RsaPlan *plan, uint16_t sum, uint16_t target)
{
    lh_pass_compute(e, LH_KERNEL_ID_cast, &plan->q_rows);
    lh_emit_operand(e, sum, 0, 1);
    lh_emit_operand(e, target, 0, 1);
}

/* The ring of scores with the softmax at its end, in the forward pass or recomputed. */
static void
ring_scores(LhEmitter *e, const RsaPlan *plan, uint32_t t, bool again)
{
    uint16_t k;

    if (t == 0)
        ALLOC(e, plan->k[0], plan->k[1], plan->scores);
    k = pass_on(e, plan, plan->k, RSA_TAG_SCORES, t);
    emit_scores(e, plan, LH_KERNEL_ID_scores, &(Slots){ plan->io.q, k, plan->scores }, t);
    if (t + 1 < plan->ranks)
        return;
    ALLOC(e, plan->probs);
    if (again)
        ALLOC(e, plan->lse_again);
    emit_softmax(e, plan, again ? plan->lse_again : plan->io.lse, again);
    FREE(e, plan->k[0], plan->k[1], plan->scores);
    if (again)
        FREE(e, plan->lse_again);
}

static void
ring_out(LhEmitter *e, const RsaPlan *plan, uint32_t t)
{
    uint16_t v;

    if (t == 0)
        ALLOC(e, plan->v[0], plan->v[1], plan->o_sum);
    v = pass_on(e, plan, plan->v, RSA_TAG_OUT, t);
    emit_apply(e, plan, LH_KERNEL_ID_scores_o, &(Slots){ plan->o_sum, v, plan->probs }, t);
    if (t + 1 < plan->ranks)
        return;
    emit_cast(e, plan, plan->o_sum, plan->io.o);
    FREE(e, plan->v[0], plan->v[1], plan->o_sum);
    if (!lh_pass_has(&e->program->params, LH_PASS_BWD))
        FREE(e, plan->probs);
}

static void
ring_dscores(LhEmitter *e, const RsaPlan *plan, uint32_t t)
{
    LhKernelArgs args = plan->rows;
    uint16_t v;

    if (t == 0) {
        ALLOC(e, plan->dv);
        emit_gradients(e, plan, LH_KERNEL_ID_scores_dv, plan->probs, plan->io.dout, plan->dv);
        ALLOC(e, plan->v[0], plan->v[1], plan->dscores);
    }
    v = pass_on(e, plan, plan->v, RSA_TAG_DSCORES, t);
    emit_scores(e, plan, LH_KERNEL_ID_scores_dp, &(Slots){ plan->io.dout, v, plan->dscores }, t);
    if (t + 1 < plan->ranks)
        return;
    args.traffic = lh_pass_published(&e->program->params) ? PUBLISHED_BACKWARD : 0;
    lh_pass_compute(e, LH_KERNEL_ID_scores_softmax_bwd, &args);
    lh_emit_operand(e, plan->probs, 0, plan->ranks);
    lh_emit_operand(e, plan->dscores, 0, plan->ranks);
    lh_emit_operand(e, plan->dscores, 0, plan->ranks);
    FREE(e, plan->v[0], plan->v[1], plan->probs);
}

static void
ring_dq(LhEmitter *e, const RsaPlan *plan, uint32_t t)
{
    uint16_t k;

    if (t == 0) {
        ALLOC(e, plan->dk);
        emit_gradients(e, plan, LH_KERNEL_ID_scores_dk, plan->dscores, plan->io.q, plan->dk);
        ALLOC(e, plan->k[0], plan->k[1], plan->dq_sum);
    }
    k = pass_on(e, plan, plan->k, RSA_TAG_DQ, t);
    emit_apply(e, plan, LH_KERNEL_ID_scores_dq, &(Slots){ plan->dq_sum, k, plan->dscores }, t);
    if (t + 1 < plan->ranks)
        return;
    emit_cast(e, plan, plan->dq_sum, plan->io.dq);
    lh_pass_compute(e, LH_KERNEL_ID_join_dkv, &plan->kv_rows);
    lh_emit_operand(e, plan->dk, e->rank, 1);
    lh_emit_operand(e, plan->dv, e->rank, 1);
    lh_emit_operand(e, plan->io.dkv, 0, 1);
    FREE(e, plan->k[0], plan->k[1], plan->dq_sum, plan->dscores, plan->dk, plan->dv);
}

/* The ring of step @s of a pass. */
static Ring
ring_of(const LhEmitter *e, const RsaPlan *plan, uint32_t s)
{
    const Ring first = e->phase == LH_PHASE_FORWARD                    ? RING_SCORES
                       : lh_pass_has(&e->program->params, LH_PASS_FWD) ? RING_DSCORES
                                                                       : RING_AGAIN;

    return (Ring)(first + s / plan->ranks);
}

static void
rsa_emit(LhEmitter *e, uint32_t step)
{
    const RsaPlan *plan = e->program->plan;
    const uint32_t s = lh_pass_enter(e, step, 2 * plan->ranks);
    const uint32_t t = s % plan->ranks;

    switch (ring_of(e, plan, s)) {
    case RING_SCORES:
        ring_scores(e, plan, t, false);
        break;
    case RING_OUT:
        ring_out(e, plan, t);
        break;
    case RING_AGAIN:
        ring_scores(e, plan, t, true);
        break;
    case RING_DSCORES:
        ring_dscores(e, plan, t);
        break;
    case RING_DQ:
        ring_dq(e, plan, t);
        break;
    }
}

/* (P-1) KV forward, for k and v; backward the same and two all-reduces of P G/2. */
static uint64_t
rsa_bytes_sent(const LhProgramParams *p, uint32_t rank)
{
    const LhPassSizes z = lh_pass_sizes(p, 0);
    const uint64_t hops = p->ranks - 1;
    uint64_t bytes = 0;

    (void)rank;
    if (lh_pass_has(p, LH_PASS_FWD))
        bytes += hops * z.kv;
    if (lh_pass_has(p, LH_PASS_BWD))
        bytes += hops * (z.kv + 2 * z.dkv);
    if (p->pass == LH_PASS_BWD)
        bytes += hops * (z.kv / 2);
    return bytes;
}

/* Two products forward and four backward on all n N pairs; a backward pass alone also computes
 * the scores. */
static uint64_t
rsa_flops(const LhProgramParams *p, uint32_t rank)
{
    const LhAttention *a = &p->attention;
    const uint64_t product = 2 * (uint64_t)a->batch * a->heads * a->head_dim *
                             (a->seq_length / p->ranks) * a->seq_length;
    const unsigned products[] = {
        [LH_PASS_FWD] = 2,
        [LH_PASS_BWD] = 5,
        [LH_PASS_BOTH] = 6,
    };

    (void)rank;
    return products[p->pass] * product;
}

/* Peak of the live buffers. Forward: scores and probabilities, or probabilities and the fp32 sum
 * of o. Backward: two matrices of e bytes and dv of all keys, or one, dv and dk of all keys and
 * the fp32 sum of dq. */
static uint64_t
rsa_peak_bytes(const LhProgramParams *p, uint32_t rank)
{
    const LhPassSizes z = lh_pass_sizes(p, 0);
    const uint64_t x = score_elements(p, p->attention.seq_length), sum = z.q / z.e * 4;
    const uint64_t all = p->ranks * (z.dkv / 2);
    const uint64_t softmax = (4 + (uint64_t)z.e) * x;
    const uint64_t again = p->pass == LH_PASS_BWD ? softmax + z.s : 0;
    const uint64_t dscores = 2 * z.e * x + all, dq = z.e * x + 2 * all + sum;

    (void)rank;
    return lh_pass_peak_bytes(p, z.kv + MAX(softmax, z.e * x + sum),
                              z.kv + MAX(again, MAX(dscores, dq)));
}

const LhSchedule lh_schedule_rsa = {
    .name = "rsa",
    .summary = "ring self-attention: k, then v, rotate, and all scores are written to memory",
    .details =
        "Ring Self-Attention (arXiv 2105.13120; Colossal-AI's RingQK and RingAV). k\n"
        "rotates around the ring, and the scores of the rank's queries with all N keys are\n"
        "written to memory: X = B h n N numbers. The rank computes the softmax of complete\n"
        "rows. Then v rotates, and the rank adds up o. In the backward pass each rank\n"
        "computes dv of all N tokens from its own rows; an all-reduce adds them up, and\n"
        "the rank keeps those of its own tokens. v rotates for the gradients of the\n"
        "probabilities, from which the rank computes those of the scores, in place. dk is\n"
        "obtained like dv, and k rotates for dq. The probabilities stay in memory between\n"
        "the passes; a backward pass alone computes them again, for which k rotates once\n"
        "more. No communication overlaps with compute: each step waits for its hop. The\n"
        "mask is applied to the scores and saves no work.\n"
        "\n"
        "bytes sent   forward (P-1) KV; backward (P-1) KV + 2 (P-1) G, with G in e bytes;\n"
        "             backward alone (P-1) KV/2 more\n"
        "flops        forward 4 B h d n N, backward 8 B h d n N (alone 10 B h d n N),\n"
        "             whatever the mask\n"
        "idle         0, whatever the mask, but a causal mask needs only (N+1)/(2N) of\n"
        "             the work\n"
        "buffers      forward  KV + max((4+e) X, e X + fp32 Q)\n"
        "             backward KV + max(2 e X + P G/2, e X + P G + fp32 Q); alone at least\n"
        "             KV + (4+e) X + S. e X of them, the probabilities, stay from the\n"
        "             forward to the backward pass\n"
        "restrictions N divisible by P\n"
        "published    With --published-code the host also waits after every hop\n",
    .options = LH_OPTIONS(&lh_option_published_code, &lh_option_gradient_wire),
    .placement = LH_PLACE_CONTIGUOUS,
    .masks = LH_MASKS_ALL,
    .declare = rsa_declare,
    .generator = { .steps = rsa_steps, .emit = rsa_emit },
    .closed = {
        .bytes_sent = rsa_bytes_sent,
        .flops = rsa_flops,
        .peak_bytes = rsa_peak_bytes,
        .idle_unit = lh_pass_idle_none,
        .idle_flops = lh_pass_idle_none,
    },
};
