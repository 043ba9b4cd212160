/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verifier on collectives: small schedules written by hand that gather keys and values and
 * scatter or reduce their gradients. They are proven, and rejected when a collective is wrong.
 */
#include "recording.h"
#include "run_tests.h"
#include "sched/common/pass.h"
#include "verify/verify.h"

enum {
    SLOT_Q,
    SLOT_KV,
    SLOT_DO,
    SLOT_O,
    SLOT_LSE,
    SLOT_DQ,
    SLOT_DKV,
    SLOT_KV_ALL,
    SLOT_DKV_ALL,
    SLOT_DKV_IN, /* with an all-to-all */
};

enum {
    STREAM_COMPUTE,
    STREAM_COMM,
};

typedef enum {
    RETURN_REDUCE_SCATTER,
    RETURN_ALL_REDUCE, /* of all gradients everywhere; a rank then copies its own */
    RETURN_ALL_TO_ALL, /* of the contributions, which their owner adds up */
    RETURN_UNEVEN,     /* likewise, without contributions to keys of later ranks, which are empty */
} Return;

typedef struct {
    bool broadcast; /* k, v are broadcast to the later ranks, rank by rank, not all-gathered */
    Return back;    /* how dk, dv reach their owners */
    LhSchedule schedule;
} Toy;

static const uint64_t rows = 4; /* per segment */

#define RANKS_MAX 9

static bool
adds_up(const Toy *toy)
{
    return toy->back == RETURN_ALL_TO_ALL || toy->back == RETURN_UNEVEN;
}

static void
toy_declare(LhProgram *p)
{
    const LhAttention *a = &p->params.attention;
    const uint64_t q = lh_attention_q_bytes(a, rows);
    const uint64_t kv = lh_attention_kv_bytes(a, rows, 2);
    const uint64_t s = lh_attention_stat_bytes(a, rows);
    const uint32_t ranks = p->params.ranks;

    lh_program_add_stream(p, "compute", LH_STREAM_COMPUTE);
    lh_program_add_stream(p, "comm", LH_STREAM_COMM);
    lh_pass_add_slot(p, "q", LH_TENSOR_Q, LH_SLOT_INPUT, 1, q, 2);
    lh_pass_add_slot(p, "kv", LH_TENSOR_KV, LH_SLOT_INPUT, 1, kv, 2);
    lh_pass_add_slot(p, "do", LH_TENSOR_DO, LH_SLOT_INPUT, 1, q, 2);
    lh_pass_add_slot(p, "o", LH_TENSOR_O, LH_SLOT_INPUT, 1, q, 2);
    lh_pass_add_slot(p, "lse", LH_TENSOR_LSE, LH_SLOT_INPUT, 1, s, 4);
    lh_pass_add_slot(p, "dq", LH_TENSOR_DQ, LH_SLOT_OUTPUT, 1, q, 2);
    lh_pass_add_slot(p, "dkv", LH_TENSOR_DKV, LH_SLOT_OUTPUT, 1, kv, 2);
    lh_pass_add_slot(p, "kv_all", LH_TENSOR_KV, LH_SLOT_TEMP, ranks, kv, 2);
    lh_pass_add_slot(p, "dkv_all", LH_TENSOR_DKV, LH_SLOT_TEMP, ranks, kv, 2);
    lh_pass_add_slot(p, "dkv_in", LH_TENSOR_DKV, LH_SLOT_TEMP, ranks, kv, 2);
}

static LhKernelArgs
toy_args(const LhProgram *p, uint64_t nq, uint64_t nk, LhMaskKind mask, uint64_t pairs)
{
    const LhAttention *a = &p->params.attention;

    return (LhKernelArgs){
        .pairs = pairs,
        .nq = nq,
        .nk = nk,
        .batch = a->batch,
        .heads = a->heads,
        .groups = a->groups,
        .head_dim = a->head_dim,
        .mask = (uint8_t)mask,
    };
}

static void
toy_collective(LhEmitter *e, LhCollectiveKind kind, LhRegion send, LhRegion receive, uint64_t bytes)
{
    lh_emit_collective(
        e, STREAM_COMM, kind,
        (LhGroup){ .stride = 1, .count = e->program->params.ranks, .outer_count = 1 });
    lh_emit_tensor(e, send, receive);
    lh_emit_last(e)->collective.wire_bytes = bytes;
}

/* Rank r sends to ranks up to r, and receives from those from r on. */
static void
toy_uneven(LhEmitter *e)
{
    const uint32_t ranks = e->program->params.ranks;
    uint32_t sent[RANKS_MAX], received[RANKS_MAX];

    g_assert(ranks <= RANKS_MAX);
    for (uint32_t i = 0; i < ranks; i++) {
        sent[i] = i <= e->rank;
        received[i] = i >= e->rank;
    }
    lh_emit_collective(e, STREAM_COMM, LH_COLL_ALL_TO_ALL,
                       (LhGroup){ .stride = 1, .count = ranks, .outer_count = 1 });
    lh_emit_tensor_uneven(e, (LhRegion){ SLOT_DKV_ALL, 0, e->rank + 1 },
                          (LhRegion){ SLOT_DKV_IN, 0, ranks - e->rank }, sent, received);
}

static void
toy_attend(LhEmitter *e, uint32_t part, uint32_t count, const LhKernelArgs *args, uint32_t after)
{
    lh_emit_compute(e, STREAM_COMPUTE, LH_KERNEL_ID_attention_bwd_o, args);
    lh_emit_operand(e, SLOT_Q, 0, 1);
    lh_emit_operand(e, SLOT_DO, 0, 1);
    lh_emit_operand(e, SLOT_O, 0, 1);
    lh_emit_operand(e, SLOT_LSE, 0, 1);
    lh_emit_operand(e, SLOT_KV_ALL, part, count);
    lh_emit_operand(e, SLOT_DQ, 0, 1);
    lh_emit_operand(e, SLOT_DKV_ALL, part, count);
    lh_emit_after(e, after);
}

/* Brings k, v of the ranks up to this one (all-gather: of all) into kv_all. */
static void
toy_fetch(LhEmitter *e, const Toy *toy)
{
    const LhProgram *p = e->program;
    const uint32_t ranks = p->params.ranks;
    const uint64_t kv = p->slots[SLOT_KV].part_bytes;
    const LhRegion own = { SLOT_KV, 0, 1 };

    if (!toy->broadcast) {
        toy_collective(e, LH_COLL_ALL_GATHER, own, (LhRegion){ SLOT_KV_ALL, 0, ranks }, kv);
        return;
    }
    for (uint32_t root = 0; root <= e->rank; root++) {
        toy_collective(e, LH_COLL_BROADCAST, own, (LhRegion){ SLOT_KV_ALL, root, 1 }, kv);
        lh_emit_last(e)->collective.group =
            (LhGroup){ .base = root, .stride = 1, .count = ranks - root, .outer_count = 1 };
    }
}

/* An elementwise call on a part of dkv_all or dkv_in, into dkv. */
static void
toy_keep(LhEmitter *e, LhKernelId kernel, uint16_t slot, uint32_t part, uint32_t after)
{
    LhKernelArgs args = toy_args(e->program, 0, rows, LH_MASK_EMPTY, 0);

    args.first = kernel == LH_KERNEL_ID_add && part == 0;
    lh_emit_compute(e, STREAM_COMPUTE, kernel, &args);
    lh_emit_operand(e, slot, part, 1);
    lh_emit_operand(e, SLOT_DKV, 0, 1);
    lh_emit_after(e, after);
}

/* Collects dk, dv of this rank's keys in dkv. */
static void
toy_return(LhEmitter *e, const Toy *toy)
{
    const uint32_t ranks = e->program->params.ranks;
    const uint64_t kv = e->program->slots[SLOT_KV].part_bytes;
    const LhRegion all = { SLOT_DKV_ALL, 0, ranks };
    const uint32_t last = lh_emit_last(e)->id;
    uint32_t returned, arrived;

    if (toy->back == RETURN_REDUCE_SCATTER)
        toy_collective(e, LH_COLL_REDUCE_SCATTER, all, (LhRegion){ SLOT_DKV, 0, 1 }, kv);
    else if (toy->back == RETURN_ALL_REDUCE)
        toy_collective(e, LH_COLL_ALL_REDUCE, all, all, kv);
    else if (toy->back == RETURN_UNEVEN)
        toy_uneven(e);
    else
        toy_collective(e, LH_COLL_ALL_TO_ALL, all, (LhRegion){ SLOT_DKV_IN, 0, ranks }, ranks * kv);
    lh_emit_after(e, last);
    returned = lh_emit_last(e)->id;
    if (toy->back == RETURN_ALL_REDUCE)
        toy_keep(e, LH_KERNEL_ID_copy, SLOT_DKV_ALL, e->rank, returned);
    arrived = toy->back == RETURN_UNEVEN ? ranks - e->rank : ranks;
    for (uint32_t part = 0; adds_up(toy) && part < arrived; part++)
        toy_keep(e, LH_KERNEL_ID_add, SLOT_DKV_IN, part, returned);
}

/* Ops: 0, 1 alloc; 2 all-gather; 3, 4 zero; 5 diagonal; [6 rest]; then the reduction. An
 * all-to-all adds one alloc; broadcasts add as many as the rank has predecessors. */
static void
toy_emit(LhEmitter *e, uint32_t step)
{
    const LhProgram *p = e->program;
    const uint32_t ranks = p->params.ranks;
    const Toy *toy = p->plan;
    LhKernelArgs args = toy_args(p, rows, 0, LH_MASK_EMPTY, 0);
    uint32_t gather;

    (void)step;
    lh_emit_alloc(e, SLOT_KV_ALL);
    lh_emit_alloc(e, SLOT_DKV_ALL);
    if (adds_up(toy))
        lh_emit_alloc(e, SLOT_DKV_IN);
    toy_fetch(e, toy);
    gather = lh_emit_last(e)->id;
    lh_emit_compute(e, STREAM_COMPUTE, LH_KERNEL_ID_zero, &args);
    lh_emit_operand(e, SLOT_DQ, 0, 1);
    args = toy_args(p, 0, ranks * rows, LH_MASK_EMPTY, 0);
    lh_emit_compute(e, STREAM_COMPUTE, LH_KERNEL_ID_zero, &args);
    lh_emit_operand(e, SLOT_DKV_ALL, 0, ranks);
    args = toy_args(p, rows, rows, LH_MASK_CAUSAL, rows * (rows + 1) / 2);
    toy_attend(e, e->rank, 1, &args, gather);
    if (e->rank > 0) {
        args = toy_args(p, rows, e->rank * rows, LH_MASK_FULL, e->rank * rows * rows);
        toy_attend(e, 0, e->rank, &args, LH_OP_NONE);
    }
    toy_return(e, toy);
    lh_emit_free(e, SLOT_KV_ALL);
    lh_emit_free(e, SLOT_DKV_ALL);
    if (adds_up(toy))
        lh_emit_free(e, SLOT_DKV_IN);
}

/* Bytes of k, v or dk, dv of one rank: sent to everyone, or along the broadcast chains. */
static uint64_t
toy_bytes(const LhProgramParams *p, uint32_t rank)
{
    (void)rank;
    return 2 * (p->ranks - 1) * lh_attention_kv_bytes(&p->attention, rows, 2);
}

static uint64_t
toy_bytes_reduced(const LhProgramParams *p, uint32_t rank)
{
    (void)rank;
    return 3 * (p->ranks - 1) * lh_attention_kv_bytes(&p->attention, rows, 2);
}

static uint64_t
toy_bytes_uneven(const LhProgramParams *p, uint32_t rank)
{
    return (rank + p->ranks - 1) * lh_attention_kv_bytes(&p->attention, rows, 2);
}

static uint64_t
toy_bytes_broadcast(const LhProgramParams *p, uint32_t rank)
{
    const uint32_t passed_on = rank + 1 < p->ranks ? rank + 1 : 0;

    return (passed_on + p->ranks - 1) * lh_attention_kv_bytes(&p->attention, rows, 2);
}

#define TOY_SCHEDULE(bytes)                                                                        \
    {                                                                                              \
        .name = "toy", .placement = LH_PLACE_CONTIGUOUS, .declare = toy_declare,                   \
        .generator = { .steps = recording_steps, .emit = toy_emit },                               \
        .closed = { .bytes_sent = (bytes) },                                                       \
    }

static const Toy scatter = { .schedule = TOY_SCHEDULE(toy_bytes) };
static const Toy reduce = { .back = RETURN_ALL_REDUCE,
                            .schedule = TOY_SCHEDULE(toy_bytes_reduced) };
static const Toy transpose = { .back = RETURN_ALL_TO_ALL, .schedule = TOY_SCHEDULE(toy_bytes) };
static const Toy triangle = { .back = RETURN_UNEVEN, .schedule = TOY_SCHEDULE(toy_bytes_uneven) };
static const Toy chain = { .broadcast = true, .schedule = TOY_SCHEDULE(toy_bytes_broadcast) };

static LhProgram *
toy_program(uint32_t ranks, const Toy *toy)
{
    const LhProgramParams params = {
        .attention = { .batch = 1,
                       .seq_length = ranks * rows,
                       .heads = 4,
                       .groups = 2,
                       .head_dim = 8 },
        .ranks = ranks,
        .mask.causal = true,
        .pass = LH_PASS_BWD,
    };
    LhProgram *program = lh_program_new(&toy->schedule, &params, NULL);

    ck_assert_ptr_nonnull(program);
    if (ranks > 1) /* a single rank only attends */
        program->plan = g_memdup2(toy, sizeof(*toy));
    return program;
}

static void
expect(const LhProgram *program, LhFindingKind kind, uint32_t rank, uint32_t op,
       const char *message)
{
    g_autoptr(LhVerdict) verdict = lh_verify(program);
    const LhFinding *finding;

    ck_assert_uint_gt(verdict->findings->len, 0);
    finding = &g_array_index(verdict->findings, LhFinding, 0);
    ck_assert_str_eq(finding->message, message);
    ck_assert_int_eq(finding->kind, kind);
    ck_assert_uint_eq(finding->rank, rank);
    ck_assert_uint_eq(finding->op, op);
}

START_TEST(collective_schedules_are_proven)
{
    static const Toy *const toys[] = { &scatter, &reduce, &transpose, &triangle, &chain };

    for (uint32_t ranks = 1; ranks <= RANKS_MAX; ranks++) {
        for (uint32_t i = 0; i < G_N_ELEMENTS(toys); i++) {
            g_autoptr(LhProgram) program = toy_program(ranks, toys[i]);
            g_autoptr(LhVerdict) verdict = lh_verify(program);

            if (verdict->findings->len > 0)
                ck_abort_msg("%s", g_array_index(verdict->findings, LhFinding, 0).message);
            ck_assert_uint_eq(verdict->flops[ranks - 1],
                              10 * 4 * 8 * (rows * (rows + 1) / 2 + (ranks - 1) * rows * rows));
        }
    }
}
END_TEST

START_TEST(collective_that_one_rank_omits)
{
    g_autoptr(LhProgram) program = toy_program(4, &scatter);
    Recording *recording = recording_new(program);

    /* The reduce-scatter becomes a sync. */
    recording_op(recording, 2, 7)->kind = LH_OP_SYNC;
    expect(&recording->program, LH_FINDING_UNMATCHED, 0, 6,
           "rank 0, op 6 (reduce-scatter, stream comm) is collective 1 of its communicator, but "
           "rank 2 never takes part in it");
    recording_free(recording);
}
END_TEST

START_TEST(collective_of_another_kind)
{
    g_autoptr(LhProgram) program = toy_program(4, &reduce);
    Recording *recording = recording_new(program);

    recording_op(recording, 3, 7)->collective.kind = LH_COLL_BROADCAST;
    recording_op(recording, 3, 7)->collective.wire_bytes *= 4;
    expect(&recording->program, LH_FINDING_UNMATCHED, 3, 7,
           "rank 3, op 7 (broadcast, stream comm) matches rank 0, op 6 (all-reduce, stream comm), "
           "which is a different collective or has different sizes or halves");
    recording_free(recording);
}
END_TEST

START_TEST(collective_posted_before_its_data)
{
    g_autoptr(LhProgram) program = toy_program(4, &scatter);
    Recording *recording = recording_new(program);

    recording_op(recording, 1, 7)->after_count = 0;
    expect(&recording->program, LH_FINDING_RACE, 1, 7,
           "rank 1, op 7 (reduce-scatter, stream comm) reads slot dkv_all[0] while op 6 "
           "(attention_bwd_o, "
           "stream compute) may still be writing it: nothing orders op 7 after op 6");
    recording_free(recording);
}
END_TEST

START_TEST(collective_that_sums_otherwise)
{
    g_autoptr(LhProgram) program = toy_program(3, &scatter);
    Recording *recording = recording_new(program);

    for (uint32_t rank = 0; rank < 3; rank++)
        recording_op(recording, rank, rank == 0 ? 6 : 7)->collective.reduction =
            LH_REDUCE_ATTENTION;
    expect(&recording->program, LH_FINDING_COVERAGE, 0, 6,
           "rank 0, op 6 (reduce-scatter, stream comm) cannot reduce slot dkv_all (dkv) this way");
    recording_free(recording);
}
END_TEST

START_TEST(collective_of_a_wrong_shape)
{
    g_autoptr(LhProgram) program = toy_program(3, &scatter);
    Recording *recording = recording_new(program);

    recording_op(recording, 1, 2)->collective.receive[0].count = 2;
    recording_op(recording, 2, 2)->collective.group.base = 1;
    expect(&recording->program, LH_FINDING_MALFORMED, 1, 2,
           "rank 1, op 2 (all-gather, stream comm) turns 1 parts into 2, which does not fit this "
           "collective of 3 ranks");
    recording_free(recording);
}
END_TEST

/* All ranks broadcast instead of transposing: only rank 0's contributions arrive. */
START_TEST(collective_that_does_not_transpose)
{
    g_autoptr(LhProgram) program = toy_program(3, &transpose);
    Recording *recording = recording_new(program);

    for (uint32_t rank = 0; rank < 3; rank++)
        recording_op(recording, rank, rank == 0 ? 7 : 8)->collective.kind = LH_COLL_BROADCAST;
    expect(&recording->program, LH_FINDING_COVERAGE, 0, LH_OP_NONE,
           "rank 0 ends with an output dkv for segment 0 that lacks the contribution of segment 1 "
           "and others");
    recording_free(recording);
}
END_TEST

/* 3 parts cannot be split among 4 ranks. */
START_TEST(collective_that_cannot_transpose)
{
    g_autoptr(LhProgram) program = toy_program(4, &transpose);
    Recording *recording = recording_new(program);

    recording_op(recording, 1, 8)->collective.send[0].count = 3;
    recording_op(recording, 1, 8)->collective.receive[0].count = 3;
    expect(&recording->program, LH_FINDING_MALFORMED, 1, 8,
           "rank 1, op 8 (all-to-all, stream comm) turns 3 parts into 3, which does not fit this "
           "collective of 4 ranks");
    recording_free(recording);
}
END_TEST

/* Rank 2 has one part for each of the ranks 0, 1 and 2. */
START_TEST(collective_of_other_counts)
{
    g_autoptr(LhProgram) program = toy_program(3, &triangle);
    Recording *recording = recording_new(program);
    uint32_t *sent = &g_array_index(recording->counts[2], uint32_t, 0);

    sent[0] = 2;
    sent[1] = 0;
    expect(&recording->program, LH_FINDING_UNMATCHED, 2, 8,
           "rank 2, op 8 (all-to-all, stream comm) sends 2 parts of its tensor 0 to rank 0, op 7 "
           "(all-to-all, stream comm), which takes 1 from it");
    sent[1] = 1;
    expect(&recording->program, LH_FINDING_MALFORMED, 2, 8,
           "rank 2, op 8 (all-to-all, stream comm) turns 3 parts into 1, which does not fit this "
           "collective of 3 ranks");
    sent[0] = 1;
    recording_op(recording, 2, 8)->collective.uneven = false;
    expect(&recording->program, LH_FINDING_MALFORMED, 2, 8,
           "rank 2, op 8 (all-to-all, stream comm) turns 3 parts into 1, which does not fit this "
           "collective of 3 ranks");
    recording_free(recording);
}
END_TEST

/* The root of the second chain forwards what it received from the first. */
START_TEST(collective_that_sends_the_wrong_keys)
{
    g_autoptr(LhProgram) program = toy_program(3, &chain);
    Recording *recording = recording_new(program);

    recording_op(recording, 1, 3)->collective.send[0] = (LhRegion){ SLOT_KV_ALL, 0, 1 };
    expect(&recording->program, LH_FINDING_COVERAGE, 1, 6,
           "rank 1, op 6 (attention_bwd_o, stream compute) computes the causal pairs shifted by 0 "
           "of query segment 1 with key segment 0, where the mask has every pair");
    recording_free(recording);
}
END_TEST

/* Rank 2 joins the chain of rank 1 once more instead of its own. */
START_TEST(collective_with_another_root)
{
    g_autoptr(LhProgram) program = toy_program(4, &chain);
    Recording *recording = recording_new(program);

    recording_op(recording, 2, 4)->collective.group.base = 1;
    recording_op(recording, 2, 4)->collective.group.count = 3;
    expect(&recording->program, LH_FINDING_UNMATCHED, 2, 4,
           "rank 2, op 4 (broadcast, stream comm) is collective 1 of its communicator, but rank "
           "1 never takes part in it");
    recording_free(recording);
}
END_TEST

START_TEST(collective_of_another_type)
{
    g_autoptr(LhProgram) program = toy_program(2, &scatter);

    program->slots[SLOT_KV_ALL].dtype = LH_DTYPE_FP32;
    program->slots[SLOT_KV_ALL].part_bytes *= 2;
    expect(program, LH_FINDING_MALFORMED, 0, 2,
           "rank 0, op 2 (all-gather, stream comm) turns slot kv (bf16) into slot kv_all (fp32)");
}
END_TEST

START_TEST(collective_and_message_deadlock)
{
    g_autoptr(LhProgram) program = toy_program(2, &scatter);
    Recording *recording = recording_new(program);
    const LhPart send = { .peer = 1,
                          .send = true,
                          .regions_count = 1,
                          .wire_bytes = recording->program.slots[SLOT_KV].part_bytes,
                          .regions = { { SLOT_KV, 0, 1 } } };
    const LhPart receive = { .peer = 0,
                             .regions_count = 1,
                             .wire_bytes = send.wire_bytes,
                             .regions = { { SLOT_KV_ALL, 0, 1 } } };
    LhOp op = { .id = 2, .kind = LH_OP_EXCHANGE, .stream = STREAM_COMM, .exchange = { 0, 1 } };

    /* Rank 0 sends before the all-gather, rank 1 receives after it. */
    g_array_append_val(recording->parts[0], send);
    g_array_append_val(recording->parts[1], receive);
    g_array_insert_val(recording->ops[0], 2, op);
    g_array_insert_val(recording->ops[1], 3, op);
    for (uint32_t rank = 0; rank < 2; rank++) {
        for (uint32_t i = 0; i < recording_count(recording, rank); i++) {
            LhOp *o = recording_op(recording, rank, i);

            o->id = i;
            for (uint32_t k = 0; k < o->after_count; k++)
                o->after[k] += o->after[k] >= 2 + rank ? 1 : 0;
        }
    }
    expect(&recording->program, LH_FINDING_DEADLOCK, 0, 2,
           "rank 0, op 2 (exchange, stream comm) waits for rank 1, op 3 (exchange, stream comm), "
           "which waits for "
           "rank 1, op 2 (all-gather, stream comm), which waits for rank 0, op 3 (all-gather, "
           "stream comm), which "
           "waits for rank 0, op 2 (exchange, stream comm): a cycle, so none ever ends");
    recording_free(recording);
}
END_TEST

/* Inserts an op after position @at; nothing depends on the ops that move. */
static void
insert_op(Recording *recording, uint32_t rank, uint32_t at, LhOp op)
{
    g_array_insert_val(recording->ops[rank], at, op);
    for (uint32_t i = 0; i < recording_count(recording, rank); i++) {
        LhOp *o = recording_op(recording, rank, i);

        o->id = i;
        for (uint32_t k = 0; i > at && k < o->after_count; k++)
            o->after[k] += o->after[k] >= at ? 1 : 0;
    }
}

/* An exchange of one message with the other of two ranks, on a communicator of their own. */
static LhOp
message_op(Recording *recording, uint32_t rank, bool send, uint8_t stream)
{
    const LhPart part = {
        .peer = 1 - rank,
        .send = send,
        .regions_count = 1,
        .wire_bytes = recording->program.slots[SLOT_KV].part_bytes,
        .regions = { { send ? SLOT_KV : SLOT_KV_ALL, 0, 1 } },
    };
    GArray *parts = recording->parts[rank];

    g_assert(parts != NULL);
    g_array_append_val(parts, part);
    return (LhOp){ .kind = LH_OP_EXCHANGE,
                   .stream = stream,
                   .communicator = 1,
                   .exchange = { parts->len - 1, 1 } };
}

/* Rank 1 receives before it sends, both on one stream. Rank 0 posts its receive before its send,
 * on two streams, so that either may come first; in between its host has @between ops to issue. */
static Recording *
far_apart(const LhProgram *program, uint32_t between)
{
    Recording *recording = recording_new(program);

    recording->program.closed = NULL;
    insert_op(recording, 1, 1, message_op(recording, 1, true, STREAM_COMM));
    insert_op(recording, 1, 1, message_op(recording, 1, false, STREAM_COMM));
    insert_op(recording, 0, 1, message_op(recording, 0, true, STREAM_COMPUTE));
    insert_op(recording, 0, 1, message_op(recording, 0, false, STREAM_COMM));
    /* With an odd number, the first of the pairs surrounds the receive. */
    for (uint32_t i = between + between % 2; i > 0; i--)
        insert_op(recording, 0, i == 1 && between % 2 != 0 ? 1 : 2,
                  (LhOp){ .kind = i % 2 == 0 ? LH_OP_FREE : LH_OP_ALLOC,
                          .memory = { { SLOT_DKV_IN, 0, 2 } } });
    return recording;
}

/* A host issues an op when all but LH_HOST_WINDOW of those before it are complete. */
START_TEST(hosts_run_ahead_of_so_many_ops)
{
    g_autoptr(LhProgram) program = toy_program(2, &scatter);

    for (uint32_t between = LH_HOST_WINDOW - 2; between <= LH_HOST_WINDOW + 1; between++) {
        const uint32_t receive = 1 + between % 2, send = receive + between + 1;
        Recording *recording = far_apart(program, between);
        g_autoptr(LhVerdict) verdict = lh_verify(&recording->program);
        g_autofree char *cycle = g_strdup_printf(
            "rank 0, op %u (exchange, stream comm) waits for rank 1, op 2 (exchange, stream comm), "
            "which waits for rank 1, op 1 (exchange, stream comm), which waits for rank 0, op %u "
            "(exchange, stream compute), which waits for rank 0, op %u (exchange, stream comm): a "
            "cycle, so none ever ends",
            receive, send, receive);

        ck_assert_uint_eq(verdict->findings->len, between < LH_HOST_WINDOW ? 0 : 1);
        if (between >= LH_HOST_WINDOW)
            expect(&recording->program, LH_FINDING_DEADLOCK, 0, receive, cycle);
        recording_free(recording);
    }
}
END_TEST

LH_TEST_MAIN("verify_collective", collective_schedules_are_proven, collective_that_one_rank_omits,
             collective_of_another_kind, collective_posted_before_its_data,
             collective_that_sums_otherwise, collective_of_a_wrong_shape,
             collective_that_does_not_transpose, collective_that_cannot_transpose,
             collective_of_other_counts, collective_that_sends_the_wrong_keys,
             collective_with_another_root, collective_of_another_type,
             collective_and_message_deadlock, hosts_run_ahead_of_so_many_ops)
