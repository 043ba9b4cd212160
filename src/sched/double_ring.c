/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule double-ring, described at the end of this file. A step is (i, j): round i, in which
 * the k, v of the window of ranks i windows behind circulate, and place j in it. Zigzag half-chunks
 * and the merge of blocks are those of common/ring_shared.h.
 *
 * In the backward pass dk and dv of a round go around the whole inner ring, back to the rank where
 * the k, v of the round came in, and from there one hop through the outer ring. The public code
 * accumulates them in fp32 in the first round, rounds the sum at its end, and carries the one sum
 * through all later rounds in e bytes, so that the error grows with the number of hops. Here every
 * round accumulates its own dk, dv, and adds the sum received from the outer ring when they are
 * complete: the messages are the same, but the whole sum is rounded only once a round.
 *
 * Each of the four rings has a process group in the public code, hence a stream here.
 */
#include "sched/common/ring_shared.h"
#include "sched/schedule.h"

#include <inttypes.h>

/* The four rings. Their values are also the tags of their messages. */
enum {
    INNER,
    OUTER,
    INNER_DKV,
    OUTER_DKV,
    RINGS,
};

enum {
    MARK_POSTED = LH_RING_MARK_END,     /* the exchange posted last on each ring */
    MARK_PENDING = MARK_POSTED + RINGS, /* those that the next compute op must wait for */
};

static const LhOption inner_ring = {
    .name = "inner_ring",
    .category = LH_ABOUT_SCHEDULE_RANKS,
    .type = LH_OPTION_COUNT,
    .help = "Number of ranks in an inner ring; must divide the ranks. Default: the GPUs of a node, "
            "if they divide the ranks.",
    .value = lh_option_divisors,
};

#define WINDOW_MAX 8 /* largest default if the GPUs of a node are unknown */

typedef struct {
    LhRingPlan ring; /* all ranks as one ring; its k, v buffers are the inner ring's */
    uint32_t window, windows;
    bool published;
    uint8_t streams[RINGS];
    uint16_t fwd_end; /* end of the buffers of both rings */
    uint16_t fwd_outer_kv[2];
    uint16_t bwd_first, bwd_end;
    uint16_t bwd_kv[2], bwd_outer_kv[2];
    bool widens;          /* dk, dv of the first round have a wider type than later ones */
    uint16_t bwd_wide[2]; /* buffers of the wider type */
    uint16_t bwd_dkv[2], bwd_outer_dkv[2];
    bool restarts; /* each round starts a new sum; otherwise it continues the one received */
    uint16_t bwd_block_dq, bwd_block_dkv, bwd_dq;
    bool rounds_once; /* dk, dv of a block are in fp32 and rounded when added */
    uint32_t w;       /* bytes of an element of dk, dv in later rounds */
} DoubleRingPlan;

/* The number of ranks in an inner ring: the GPUs of a node, if known and a divisor of the ranks;
 * otherwise the largest divisor of the ranks from 2 to WINDOW_MAX; otherwise all ranks form one
 * ring. */
static uint32_t
window_of(const LhProgramParams *p)
{
    uint32_t window = MIN(p->ranks, WINDOW_MAX);

    if (lh_option_is_set(p, &inner_ring))
        return lh_option_first(p, &inner_ring);
    if (p->gpus_per_node != 0 && p->ranks % p->gpus_per_node == 0)
        return p->gpus_per_node;
    while (p->ranks % window != 0)
        window--;
    return window == 1 ? p->ranks : window;
}

static bool
double_ring_check(const LhProgramParams *p, GError **error)
{
    const uint32_t window = window_of(p);
    g_autofree char *near = NULL;
    uint32_t below, above;

    if (p->ranks % window == 0)
        return true;
    lh_divisors_near(p->ranks, window, p->ranks, &below, &above);
    near = lh_near_text(below, above);
    return lh_program_refuse(error,
                             "%" PRIu32 " ranks cannot be divided into inner rings of %" PRIu32
                             "; nearest legal sizes: %s",
                             p->ranks, window, near);
}

/* Sizes, with dk, dv as sent in the first round and in the others. */
typedef struct {
    LhPassSizes first, other;
} Sizes;

static Sizes
sizes_of(const LhProgramParams *p)
{
    return (Sizes){ lh_pass_sizes(p, 4), lh_pass_sizes(p, 0) };
}

/* Whether dk, dv of a block are kept in fp32 because they are sent in a narrower type, so that
 * they are rounded once per hop. The public code rounds blocks, too. */
static bool
has_wide_dkv(const LhProgramParams *p, const Sizes *z)
{
    const bool narrow = window_of(p) < p->ranks || z->first.w <= z->first.e;

    return narrow && !lh_pass_published(p) && z->other.w <= z->other.e && z->other.e < 4;
}

static void
add_kv_pair(LhProgram *program, const DoubleRingPlan *plan, const char *name, LhTensorKind kind,
            const LhPassSizes *z, uint16_t slots[2])
{
    const bool gradient = kind == LH_TENSOR_DKV;
    char numbered[16];

    for (unsigned i = 0; i < 2; i++) {
        g_snprintf(numbered, sizeof(numbered), "%s%u", name, i);
        slots[i] = lh_ring_add_buffer(program, &plan->ring, numbered, kind,
                                      gradient ? z->dkv : z->kv, gradient ? z->w : z->e);
    }
}

static void
double_ring_declare_forward(LhProgram *program, DoubleRingPlan *plan)
{
    lh_ring_declare_forward(program, &plan->ring);
    if (plan->windows > 1)
        add_kv_pair(program, plan, "fwd_outer_kv", LH_TENSOR_KV, &plan->ring.sizes,
                    plan->fwd_outer_kv);
    plan->fwd_end = (uint16_t)program->slots_count;
}

static void
double_ring_declare_backward(LhProgram *program, DoubleRingPlan *plan)
{
    const LhRingPlan *ring = &plan->ring;
    const Sizes sizes = sizes_of(&program->params);
    const LhPassSizes *z = &sizes.other;

    plan->w = z->w;
    plan->widens = sizes.first.w > z->w;
    plan->bwd_first = (uint16_t)program->slots_count;
    add_kv_pair(program, plan, "bwd_kv", LH_TENSOR_KV, z, plan->bwd_kv);
    if (plan->windows > 1) {
        add_kv_pair(program, plan, "bwd_outer_kv", LH_TENSOR_KV, z, plan->bwd_outer_kv);
        add_kv_pair(program, plan, "bwd_outer_dkv", LH_TENSOR_DKV, z, plan->bwd_outer_dkv);
    }
    if (plan->windows > 1 || !plan->widens)
        add_kv_pair(program, plan, "bwd_dkv", LH_TENSOR_DKV, z, plan->bwd_dkv);
    if (plan->widens)
        add_kv_pair(program, plan, "bwd_wide", LH_TENSOR_DKV, &sizes.first, plan->bwd_wide);
    plan->bwd_block_dq =
        lh_ring_add_buffer(program, ring, "bwd_block_dq", LH_TENSOR_DQ, z->q, z->e);
    plan->restarts = !plan->published && z->w <= z->e;
    plan->rounds_once = has_wide_dkv(&program->params, &sizes);
    plan->bwd_block_dkv = lh_ring_add_buffer(program, ring, "bwd_block_dkv", LH_TENSOR_DKV,
                                             plan->rounds_once ? z->kv / z->e * 4 : z->kv,
                                             plan->rounds_once ? 4 : z->e);
    plan->bwd_dq = lh_ring_add_buffer(program, ring, "bwd_dq", LH_TENSOR_DQ, z->q / z->e * 4, 4);
    plan->bwd_end = (uint16_t)program->slots_count;
}

static void
double_ring_declare(LhProgram *program)
{
    const LhProgramParams *p = &program->params;
    const LhPassSizes z = lh_pass_sizes(p, 4);
    LhPassSlots io;
    DoubleRingPlan *plan = g_new0(DoubleRingPlan, 1);

    program->plan = plan;
    io = lh_pass_declare(program, &z);
    lh_ring_init(&plan->ring, program, &io, 1, lh_placement_parts(&program->placement));
    lh_ring_set_zigzag(program, &plan->ring);
    plan->window = window_of(p);
    plan->windows = p->ranks / plan->window;
    plan->published = lh_pass_published(p);
    plan->streams[INNER] = LH_PASS_STREAM_COMM;
    plan->streams[OUTER] = lh_program_add_stream(program, "outer", LH_STREAM_COMM);
    if (lh_pass_has(p, LH_PASS_FWD))
        double_ring_declare_forward(program, plan);
    if (!lh_pass_has(p, LH_PASS_BWD))
        return;
    plan->streams[INNER_DKV] = lh_program_add_stream(program, "inner_dkv", LH_STREAM_COMM);
    plan->streams[OUTER_DKV] = lh_program_add_stream(program, "outer_dkv", LH_STREAM_COMM);
    double_ring_declare_backward(program, plan);
}

/* A step of a pass, by round and place. */
typedef struct {
    uint32_t i; /* round */
    uint32_t j; /* place in the round */
} At;

static uint32_t
behind(uint32_t place, uint32_t steps, uint32_t count)
{
    return (place + count - steps % count) % count;
}

/* The rank that is @windows windows and @places places of the inner ring behind. */
static uint32_t
rank_behind(const DoubleRingPlan *plan, uint32_t rank, uint32_t windows, uint32_t places)
{
    const uint32_t w = plan->window;

    return behind(rank / w, windows, plan->windows) * w + behind(rank % w, places, w);
}

static void
wait_for(LhEmitter *e, unsigned ring)
{
    uint32_t *marks = e->marks;

    if (marks[MARK_POSTED + ring] != LH_OP_NONE)
        marks[MARK_PENDING + ring] = marks[MARK_POSTED + ring];
}

static void
after_pending(LhEmitter *e)
{
    for (unsigned ring = 0; ring < RINGS; ring++)
        lh_emit_after(e, e->marks[MARK_PENDING + ring]);
}

static void
compute_after_pending(LhEmitter *e, LhKernelId kernel, const LhKernelArgs *args)
{
    lh_pass_compute(e, kernel, args);
    after_pending(e);
    for (unsigned ring = 0; ring < RINGS; ring++)
        e->marks[MARK_PENDING + ring] = LH_OP_NONE;
}

/* Posts one hop on @ring, after all queued compute and all exchanges that it waits for. */
static void
post_on_ring(LhEmitter *e, const DoubleRingPlan *plan, unsigned ring, uint16_t from, uint16_t to)
{
    const bool outer = ring == OUTER || ring == OUTER_DKV;
    const uint32_t windows = plan->windows - 1, places = plan->window - 1;
    const uint32_t next = rank_behind(plan, e->rank, outer ? windows : 0, outer ? 0 : places);
    const uint32_t before = rank_behind(plan, e->rank, outer ? 1 : 0, outer ? 0 : 1);

    e->marks[MARK_POSTED + ring] = lh_emit_exchange(e, plan->streams[ring]);
    lh_emit_last(e)->communicator = (uint8_t)ring; /* short rings share their neighbours */
    lh_emit_after(e, e->marks[LH_MARK_COMPUTE]);
    after_pending(e);
    lh_pass_message(e, true, next, (uint16_t)ring, from, plan->ring.parts);
    lh_pass_message(e, false, before, (uint16_t)ring, to, plan->ring.parts);
}

/* Makes compute wait for k, v of the step, and posts the exchanges that pass them on. Returns
 * their slot. */
static uint16_t
pass_keys(LhEmitter *e, const DoubleRingPlan *plan, At at, const uint16_t inner[2],
          const uint16_t outer[2])
{
    const uint16_t first = at.i == 0 ? plan->ring.io.kv : outer[(at.i - 1) % 2];
    const uint16_t kv = at.j == 0 ? first : inner[(at.j - 1) % 2];

    if (at.j > 0)
        wait_for(e, INNER);
    else if (at.i > 0)
        wait_for(e, OUTER);
    if (at.j == 0 && at.i + 1 < plan->windows)
        post_on_ring(e, plan, OUTER, first, outer[at.i % 2]);
    if (at.j + 1 < plan->window)
        post_on_ring(e, plan, INNER, kv, inner[at.j % 2]);
    if (!plan->ring.overlap) {
        wait_for(e, INNER);
        wait_for(e, OUTER);
    }
    return kv;
}

static const LhRingShape *
block_of(const LhEmitter *e, const DoubleRingPlan *plan, At at, LhRingShape *room)
{
    return lh_ring_block(e->program, &plan->ring, e->rank, rank_behind(plan, e->rank, at.i, at.j),
                         room);
}

static void
double_ring_forward(LhEmitter *e, const DoubleRingPlan *plan, At at)
{
    const LhRingPlan *ring = &plan->ring;
    const bool first = at.i == 0 && at.j == 0;
    LhRingShape room;
    const LhRingShape *shape = block_of(e, plan, at, &room);
    uint16_t kv;

    if (first)
        lh_pass_alloc(e, ring->fwd_first, plan->fwd_end);
    kv = pass_keys(e, plan, at, ring->fwd_kv, plan->fwd_outer_kv);
    if (shape != NULL) {
        compute_after_pending(e, LH_KERNEL_ID_attention_block, &shape->forward);
        lh_emit_operand(e, ring->io.q, shape->q_part, shape->q_parts);
        lh_emit_operand(e, kv, shape->kv_part, shape->kv_parts);
        lh_emit_operand(e, ring->fwd_block, shape->q_part, shape->q_parts);
        compute_after_pending(e, LH_KERNEL_ID_merge_lse,
                              first ? &shape->merge_first : &shape->merge);
        lh_emit_operand(e, ring->fwd_block, shape->q_part, shape->q_parts);
        lh_emit_operand(e, ring->fwd_out, shape->q_part, shape->q_parts);
    }
    if (at.i + 1 < plan->windows || at.j + 1 < plan->window)
        return;
    lh_ring_end_forward(e, ring);
    lh_pass_free(e, ring->fwd_end, plan->fwd_end);
}

/* Whether dk, dv of round @i are accumulated in the wider type. */
static bool
is_wide(const DoubleRingPlan *plan, uint32_t i)
{
    return i == 0 && plan->widens;
}

/*
 * The slot to which step @at adds dk, dv; for at.j = w, the slot of the dk, dv that have come back.
 * Each hop goes to the other buffer. A round that continues a sum starts in the buffer in which the
 * sum arrived.
 */
static uint16_t
current_dkv(const DoubleRingPlan *plan, At at)
{
    const uint32_t j = plan->window > 1 ? at.j : 0;

    if (is_wide(plan, at.i))
        return plan->bwd_wide[j % 2];
    if (at.i == 0 || plan->restarts)
        return plan->bwd_dkv[j % 2];
    return j == 0 ? plan->bwd_outer_dkv[at.i % 2] : plan->bwd_dkv[(j - 1) % 2];
}

static void
convert(LhEmitter *e, const DoubleRingPlan *plan, LhKernelId kernel, uint16_t from, uint16_t to)
{
    const bool queries = e->program->slots[to].kind == LH_TENSOR_DQ;

    compute_after_pending(e, kernel, queries ? &plan->ring.q_rows : &plan->ring.kv_rows);
    lh_emit_operand(e, from, 0, plan->ring.parts);
    lh_emit_operand(e, to, 0, plan->ring.parts);
}

/* The public code also rounds dq in every round after the first. */
static bool
sums_in_fp32(const DoubleRingPlan *plan, uint32_t i)
{
    return i == 0 || !plan->published;
}

/* Returns the slot of the sum that is sent to the next window. */
static uint16_t
outgoing_dkv(LhEmitter *e, const DoubleRingPlan *plan, uint32_t i, uint16_t home)
{
    const uint16_t sum = plan->bwd_outer_dkv[i % 2];

    if (i == 0 && (plan->widens || plan->restarts))
        convert(e, plan, plan->widens ? LH_KERNEL_ID_cast : LH_KERNEL_ID_copy, home, sum);
    else if (plan->restarts)
        convert(e, plan, LH_KERNEL_ID_add, home, sum);
    else
        return home;
    return sum;
}

static void
end_window(LhEmitter *e, const DoubleRingPlan *plan, uint32_t i)
{
    const LhPassSlots *io = &plan->ring.io;
    const bool last = i + 1 == plan->windows;
    uint16_t dkv = current_dkv(plan, (At){ i, plan->window });

    wait_for(e, INNER_DKV);
    if (sums_in_fp32(plan, i) && (last || !sums_in_fp32(plan, i + 1)))
        convert(e, plan, LH_KERNEL_ID_cast, plan->bwd_dq, io->dq);
    if (plan->windows > 1) {
        const uint16_t arriving = plan->bwd_outer_dkv[(i + 1) % 2];

        wait_for(e, OUTER_DKV);
        post_on_ring(e, plan, OUTER_DKV, outgoing_dkv(e, plan, i, dkv), arriving);
        dkv = arriving;
    }
    if (!last)
        return;
    wait_for(e, OUTER_DKV);
    convert(e, plan,
            lh_slot_element_bytes(&e->program->slots[dkv]) > plan->ring.sizes.e ? LH_KERNEL_ID_cast
                                                                                : LH_KERNEL_ID_copy,
            dkv, io->dkv);
    lh_pass_free(e, plan->bwd_first, plan->bwd_end);
}

static void
double_ring_backward_block(LhEmitter *e, const DoubleRingPlan *plan, At at,
                           const LhRingShape *shape, uint16_t kv)
{
    const LhRingPlan *ring = &plan->ring;
    const uint16_t of_q[] = { ring->io.q, ring->io.dout, ring->io.o, ring->io.lse };
    const bool fp32 = sums_in_fp32(plan, at.i), first = at.i == 0 && at.j == 0;

    compute_after_pending(e, LH_KERNEL_ID_attention_bwd_o, &shape->backward);
    for (unsigned k = 0; k < G_N_ELEMENTS(of_q); k++)
        lh_emit_operand(e, of_q[k], shape->q_part, shape->q_parts);
    lh_emit_operand(e, kv, shape->kv_part, shape->kv_parts);
    lh_emit_operand(e, plan->bwd_block_dq, shape->q_part, shape->q_parts);
    lh_emit_operand(e, plan->bwd_block_dkv, shape->kv_part, shape->kv_parts);
    compute_after_pending(e, fp32 ? LH_KERNEL_ID_add_to_fp32 : LH_KERNEL_ID_add,
                          first ? &shape->add_dq_first : &shape->add_dq);
    lh_emit_operand(e, plan->bwd_block_dq, shape->q_part, shape->q_parts);
    lh_emit_operand(e, fp32 ? plan->bwd_dq : ring->io.dq, shape->q_part, shape->q_parts);
}

static void
add_block_dkv(LhEmitter *e, const DoubleRingPlan *plan, At at, const LhRingShape *shape,
              uint16_t dkv)
{
    const bool fp32 = plan->w > plan->ring.sizes.e || is_wide(plan, at.i);
    const LhKernelId narrow = plan->rounds_once ? LH_KERNEL_ID_add_from_fp32 : LH_KERNEL_ID_add;
    const bool first = at.i == 0 && at.j == 0;

    compute_after_pending(e, fp32 ? LH_KERNEL_ID_add_to_fp32 : narrow,
                          first ? &shape->add_dkv_first : &shape->add_dkv);
    lh_emit_operand(e, plan->bwd_block_dkv, shape->kv_part, shape->kv_parts);
    lh_emit_operand(e, dkv, shape->kv_part, shape->kv_parts);
}

/* Prepares the slot that the step adds to: waits for its data, or zeroes it. */
static void
begin_dkv(LhEmitter *e, const DoubleRingPlan *plan, At at, uint16_t dkv)
{
    if (at.j > 0) {
        wait_for(e, INNER_DKV);
    } else if (at.i > 0 && plan->restarts) {
        compute_after_pending(e, LH_KERNEL_ID_zero, &plan->ring.kv_rows);
        lh_emit_operand(e, dkv, 0, plan->ring.parts);
    } else {
        wait_for(e, OUTER_DKV);
    }
}

static void
double_ring_backward(LhEmitter *e, const DoubleRingPlan *plan, At at)
{
    const uint16_t dkv = current_dkv(plan, at);
    LhRingShape room;
    const LhRingShape *shape = block_of(e, plan, at, &room);
    uint16_t kv;

    if (at.i == 0 && at.j == 0)
        lh_pass_alloc(e, plan->bwd_first, plan->bwd_end);
    kv = pass_keys(e, plan, at, plan->bwd_kv, plan->bwd_outer_kv);
    if (!plan->ring.overlap) {
        wait_for(e, INNER_DKV);
        wait_for(e, OUTER_DKV);
    }
    if (shape != NULL)
        double_ring_backward_block(e, plan, at, shape, kv);
    begin_dkv(e, plan, at, dkv);
    if (shape != NULL)
        add_block_dkv(e, plan, at, shape, dkv);
    if (plan->window > 1)
        post_on_ring(e, plan, INNER_DKV, dkv, current_dkv(plan, (At){ at.i, at.j + 1 }));
    if (at.j + 1 == plan->window)
        end_window(e, plan, at.i);
}

static void
double_ring_emit(LhEmitter *e, uint32_t step)
{
    const DoubleRingPlan *plan = e->program->plan;
    const uint32_t s = lh_pass_enter(e, step, plan->ring.ranks);

    if (e->phase == LH_PHASE_FORWARD)
        double_ring_forward(e, plan, (At){ s / plan->window, s % plan->window });
    else
        double_ring_backward(e, plan, (At){ s / plan->window, s % plan->window });
}

/*
 * P-1 hops of k, v; backward P hops of dk, dv on inner rings, w of them in the type of the first
 * round, and P/w on outer rings. A ring of one rank has no hops.
 */
static uint64_t
double_ring_bytes_sent(const LhProgramParams *p, uint32_t rank)
{
    const Sizes z = sizes_of(p);
    const uint64_t window = window_of(p), windows = p->ranks / window, hops = p->ranks - 1;
    uint64_t bytes = 0;

    (void)rank;
    if (lh_pass_has(p, LH_PASS_FWD))
        bytes += hops * z.other.kv;
    if (!lh_pass_has(p, LH_PASS_BWD))
        return bytes;
    if (window > 1)
        bytes += window * z.first.dkv + (p->ranks - window) * z.other.dkv;
    return bytes + hops * z.other.kv + (windows > 1 ? windows * z.other.dkv : 0);
}

/* As ring, with two more k, v and two dk, dv for the outer ring, two dk, dv of each type for the
 * inner ring, and dk, dv of a block in fp32. */
static uint64_t
double_ring_peak_bytes(const LhProgramParams *p, uint32_t rank)
{
    const Sizes sizes = sizes_of(p);
    const LhPassSizes *z = &sizes.other;
    const uint64_t q32 = z->q / z->e * 4;
    const bool outer = window_of(p)<p->ranks, widens = sizes.first.w> z->w;
    const uint64_t kv = (outer ? 4 : 2) * z->kv;
    const uint64_t dkv = (outer ? 4 : widens ? 0 : 2) * z->dkv + (widens ? 2 : 0) * sizes.first.dkv;

    (void)rank;
    return lh_pass_peak_bytes(p, kv + q32 + z->q + 2 * z->s,
                              kv + dkv + z->q + q32 +
                                  (has_wide_dkv(p, &sizes) ? z->kv / z->e * 4 : z->kv));
}

const LhSchedule lh_schedule_double_ring = {
    .name = "double-ring",
    .summary = "LoongTrain: rings within windows of ranks and one ring between them; zigzag halves",
    .details =
        "The double ring of LoongTrain (InternEvo) on zigzag half-chunks. The ranks form\n"
        "P/w windows of w consecutive ranks, and the P steps form P/w rounds of w. During\n"
        "a round k and v make w-1 hops around an inner ring, within each window. The k\n"
        "and v that started the round are meanwhile sent to the rank in the same place of\n"
        "the next window, where they start the next round; this hop can overlap with w\n"
        "steps. A rank sends as many bytes as in ring, but only P/w - 1 of the P-1 hops\n"
        "of k, v leave the window. In the backward pass dk and dv follow one hop behind:\n"
        "w hops around the inner ring and one to the next window. They are sent in fp32\n"
        "in the first round, later in e bytes. Each round accumulates its own dk and dv,\n"
        "and adds those received from the outer ring at its end. Each of the four rings\n"
        "(k, v and dk, dv, inner and outer) has its own stream.\n"
        "\n"
        "bytes sent   forward (P-1) KV; backward (P-1) KV + [w G + (P-w) KV] + (P/w) KV,\n"
        "             where G is dk, dv in fp32; w = 1: without the bracket; w = P:\n"
        "             without the last term\n"
        "flops        causal: about P F / 2 on every rank\n"
        "idle         0; with a window or documents 1 - mean / maximum of the ranks' work\n"
        "buffers      forward 4 KV + fp32 Q + S + Q + S;\n"
        "             backward 8 KV + 2 G + Q + fp32 Q + fp32 KV;\n"
        "             w = P: forward 2 KV less, backward 3 KV + 2 G + Q + fp32 Q\n"
        "window size  w is --inner-ring; by default the GPUs of a node if they divide P,\n"
        "             otherwise the largest divisor of P from 2 to 8, otherwise P\n"
        "restrictions N divisible by 2P, P divisible by w\n"
        "windows      With a sliding window or documents, blocks in which no query sees a\n"
        "             key are not computed; k and v make every hop\n"
        "published    With --published-code one sum of dk, dv goes around all windows;\n"
        "             dk, dv of a block and, from the second round on, dq are kept in e\n"
        "             bytes\n",
    .options = LH_OPTIONS(&lh_option_no_overlap, &lh_option_published_code,
                          &lh_option_gradient_wire, &inner_ring),
    .placement = LH_PLACE_ZIGZAG,
    .masks = LH_MASKS_ALL,
    .check = double_ring_check,
    .declare = double_ring_declare,
    .generator = { .steps = lh_ring_steps, .emit = double_ring_emit },
    .closed = {
        .bytes_sent = double_ring_bytes_sent,
        .flops = lh_zigzag_flops,
        .peak_bytes = double_ring_peak_bytes,
        .idle_unit = lh_zigzag_idle_unit,
        .idle_flops = lh_zigzag_idle_flops,
    },
};
