/*
 * The verifier on collectives: small hand-written schedules that gather keys and values and scatter
 * or reduce their gradients, proven as they are, and found wrong when a collective is.
 */
#include "recording.h"
#include "run_tests.h"
#include "sched/verify.h"

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
};

enum {
    STREAM_COMPUTE,
    STREAM_COMM,
};

typedef struct {
    bool all_reduce; /* of the gradients, instead of a reduce-scatter */
    bool transpose;  /* an all-to-all of the queries before use */
} Toy;

static const uint64_t rows = 4; /* of a segment */

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
    lh_program_add_slot(p, "q", LH_TENSOR_Q, LH_SLOT_INPUT, 1, q, 2);
    lh_program_add_slot(p, "kv", LH_TENSOR_KV, LH_SLOT_INPUT, 1, kv, 2);
    lh_program_add_slot(p, "do", LH_TENSOR_DO, LH_SLOT_INPUT, 1, q, 2);
    lh_program_add_slot(p, "o", LH_TENSOR_O, LH_SLOT_INPUT, 1, q, 2);
    lh_program_add_slot(p, "lse", LH_TENSOR_LSE, LH_SLOT_INPUT, 1, s, 4);
    lh_program_add_slot(p, "dq", LH_TENSOR_DQ, LH_SLOT_OUTPUT, 1, q, 2);
    lh_program_add_slot(p, "dkv", LH_TENSOR_DKV, LH_SLOT_OUTPUT, 1, kv, 2);
    lh_program_add_slot(p, "kv_all", LH_TENSOR_KV, LH_SLOT_TEMP, ranks, kv, 2);
    lh_program_add_slot(p, "dkv_all", LH_TENSOR_DKV, LH_SLOT_TEMP, ranks, kv, 2);
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
    LhOp *op;

    lh_emit_sync(e);
    op = lh_emit_last(e);
    op->kind = LH_OP_COLLECTIVE;
    op->stream = STREAM_COMM;
    op->collective.kind = kind;
    op->collective.reduction = LH_REDUCE_SUM;
    op->collective.group =
        (LhGroup){ .stride = 1, .count = e->program->params.ranks, .outer_count = 1 };
    op->collective.send = send;
    op->collective.receive = receive;
    op->collective.wire_bytes = bytes;
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

/* Ops: 0, 1 alloc; 2 all-gather; 3, 4 zero; 5 diagonal; [6 rest]; then the reduction. */
static void
toy_emit(LhEmitter *e, uint32_t step)
{
    const LhProgram *p = e->program;
    const uint32_t ranks = p->params.ranks;
    const uint64_t kv = p->slots[SLOT_KV].part_bytes;
    const Toy *toy = (const Toy *)p->user;
    LhKernelArgs args = toy_args(p, rows, 0, LH_MASK_EMPTY, 0);
    uint32_t gather, last;

    (void)step;
    lh_emit_alloc(e, SLOT_KV_ALL);
    lh_emit_alloc(e, SLOT_DKV_ALL);
    toy_collective(e, LH_COLL_ALL_GATHER, (LhRegion){ SLOT_KV, 0, 1 },
                   (LhRegion){ SLOT_KV_ALL, 0, ranks }, kv);
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
    last = lh_emit_last(e)->id;
    if (toy->all_reduce) {
        const LhRegion all = { SLOT_DKV_ALL, 0, ranks };
        uint32_t reduce;

        toy_collective(e, LH_COLL_ALL_REDUCE, all, all, kv);
        lh_emit_after(e, last);
        reduce = lh_emit_last(e)->id;
        args = toy_args(p, 0, rows, LH_MASK_EMPTY, 0);
        lh_emit_compute(e, STREAM_COMPUTE, LH_KERNEL_ID_copy, &args);
        lh_emit_operand(e, SLOT_DKV_ALL, e->rank, 1);
        lh_emit_operand(e, SLOT_DKV, 0, 1);
        lh_emit_after(e, reduce);
    } else {
        toy_collective(e, LH_COLL_REDUCE_SCATTER, (LhRegion){ SLOT_DKV_ALL, 0, ranks },
                       (LhRegion){ SLOT_DKV, 0, 1 }, kv);
        lh_emit_after(e, last);
    }
    lh_emit_free(e, SLOT_KV_ALL);
    lh_emit_free(e, SLOT_DKV_ALL);
}

static uint64_t
toy_bytes(const LhProgramParams *p, uint32_t rank)
{
    (void)rank;
    return 2 * (p->ranks - 1) * lh_attention_kv_bytes(&p->attention, rows, 2);
}

static const LhSchedule toy_schedule = {
    .name = "toy",
    .placement = LH_PLACE_CONTIGUOUS,
    .declare = toy_declare,
    .steps = recording_steps,
    .emit = toy_emit,
    .closed = { .bytes_sent = toy_bytes },
};

static const LhSchedule toy_schedule_open = {
    .name = "toy",
    .placement = LH_PLACE_CONTIGUOUS,
    .declare = toy_declare,
    .steps = recording_steps,
    .emit = toy_emit,
};

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
        .causal = true,
        .pass = LH_PASS_BWD,
        .overlap = true,
    };
    LhProgram *program =
        lh_program_new(toy->all_reduce ? &toy_schedule_open : &toy_schedule, &params, NULL);

    ck_assert_ptr_nonnull(program);
    program->user = toy;
    return program;
}

static const Toy scatter = { 0 };
static const Toy reduce = { .all_reduce = true };

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
    for (uint32_t ranks = 1; ranks <= 9; ranks++) {
        for (uint32_t i = 0; i < 2; i++) {
            g_autoptr(LhProgram) program = toy_program(ranks, i == 0 ? &scatter : &reduce);
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
           "rank 0, op 6 (reduce-scatter, stream comm) is collective 1 of its group, but rank 2 "
           "never takes "
           "part in it");
    recording_free(recording);
}
END_TEST

START_TEST(collective_of_another_kind)
{
    g_autoptr(LhProgram) program = toy_program(4, &reduce);
    Recording *recording = recording_new(program);

    recording_op(recording, 3, 7)->collective.kind = LH_COLL_BROADCAST;
    expect(&recording->program, LH_FINDING_UNMATCHED, 3, 7,
           "rank 3, op 7 (broadcast, stream comm) meets rank 0, op 6 (all-reduce, stream comm), "
           "which is "
           "another collective or has other sizes");
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
    expect(
        &recording->program, LH_FINDING_COVERAGE, 0, 6,
        "rank 0, op 6 (reduce-scatter, stream comm) cannot reduce slot dkv_all (dkv) in this way");
    recording_free(recording);
}
END_TEST

START_TEST(collective_of_a_wrong_shape)
{
    g_autoptr(LhProgram) program = toy_program(3, &scatter);
    Recording *recording = recording_new(program);

    recording_op(recording, 1, 2)->collective.receive.count = 2;
    recording_op(recording, 2, 2)->collective.group.base = 1;
    expect(&recording->program, LH_FINDING_MALFORMED, 1, 2,
           "rank 1, op 2 (all-gather, stream comm) turns 1 parts into 2, which this collective of "
           "3 ranks "
           "cannot");
    recording_free(recording);
}
END_TEST

START_TEST(collective_and_message_deadlock)
{
    g_autoptr(LhProgram) program = toy_program(2, &scatter);
    Recording *recording = recording_new(program);
    const LhPart send = { .peer = 1,
                          .send = true,
                          .regions_count = 1,
                          .wire_bytes = 8,
                          .regions = { { SLOT_Q, 0, 1 } } };
    const LhPart receive = {
        .peer = 0, .regions_count = 1, .wire_bytes = 8, .regions = { { SLOT_Q, 0, 1 } }
    };
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

LH_TEST_MAIN("verify_collective", collective_schedules_are_proven, collective_that_one_rank_omits,
             collective_of_another_kind, collective_posted_before_its_data,
             collective_that_sums_otherwise, collective_of_a_wrong_shape,
             collective_and_message_deadlock)
