/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings, double rings, gathers and windows: bytes, flops and memory worked out by hand, the traffic
 * of each step, and proofs for every relevant number of ranks.
 */
#include "base/error.h"
#include "options.h"
#include "run_tests.h"
#include "sched/common/pass.h"
#include "share.h"
#include "verify/verify.h"

#include <string.h>

/* B 2, n 6, h 8, g 2, d 16, 2 bytes. */
#define Q UINT64_C(3072)
#define KV UINT64_C(1536)
#define S UINT64_C(384)
#define FWD_PAIR UINT64_C(1024) /* flops: 4 B h d */
#define BWD_PAIR UINT64_C(2560)
#define FWD_IO UINT64_C(8064)  /* 2Q + KV + S */
#define BWD_IO UINT64_C(15744) /* 4Q + 2KV + S */

static LhProgramParams
make_params(uint32_t ranks, LhPass pass)
{
    return (LhProgramParams){
        .attention = {
            .batch = 2,
            .seq_length = 6 * (uint64_t)ranks,
            .heads = 8,
            .groups = 2,
            .head_dim = 16,
            .dtype = LH_DTYPE_BF16,
        },
        .ranks = ranks,
        .mask.causal = true,
        .pass = pass,
    };
}

static LhProgram *
make(const char *name, const LhProgramParams *p)
{
    g_autoptr(GError) error = NULL;
    LhProgram *program = lh_program_new(lh_schedule_find(name, NULL), p, &error);

    ck_assert_msg(program != NULL, "%s", error == NULL ? "" : error->message);
    return program;
}

/* The proof itself compares its counts with the closed forms. */
static LhVerdict *
prove(const char *name, const LhProgramParams *p)
{
    g_autoptr(LhProgram) program = make(name, p);
    LhVerdict *verdict = lh_verify(program);

    if (verdict->findings_total > 0)
        ck_abort_msg("%s, P %u, g %u, pass %d, window %u, %u documents%s%s: %s", name, p->ranks,
                     p->attention.groups, (int)p->pass, (unsigned)p->mask.window,
                     p->mask.documents_count, p->mask.causal ? ", causal" : "",
                     lh_pass_overlaps(p) ? "" : ", no overlap",
                     g_array_index(verdict->findings, LhFinding, 0).message);
    return verdict;
}

typedef struct {
    const char *name;
    uint32_t ranks, rank;
    LhPass pass;
    uint64_t expected;
    LhWireDtype wire;
    uint32_t inner_ring, gather_groups;
    bool full, published;
} Row;

static LhProgramParams
params_of(const Row *row)
{
    LhProgramParams p = make_params(row->ranks, row->pass);

    set_option(&p, "gradient_wire", row->wire);
    set_option(&p, "inner_ring", row->inner_ring);
    set_option(&p, "gather_groups", row->gather_groups);
    set_option(&p, "published_code", row->published);
    p.mask.causal = !row->full;
    return p;
}

START_TEST(forms_rings_count_bytes)
{
    static const Row rows[] = {
        { "te-p2p", 4, 1, LH_PASS_FWD, .expected = 3 * KV },
        { "te-p2p", 4, 1, LH_PASS_BOTH, .expected = 3 * KV + 2 * 3 * KV },
        /* Backward alone, one extra hop brings what a forward pass would have left. */
        { "te-p2p", 4, 1, LH_PASS_BWD, .expected = KV + 2 * 3 * KV },
        { "te-p2p", 2, 0, LH_PASS_BOTH, .expected = 3 * KV },
        { "te-p2p", 4, 1, LH_PASS_BOTH, .expected = 3 * KV + 3 * 3 * KV, .wire = LH_WIRE_FP32 },
        { "te-p2p", 1, 0, LH_PASS_BOTH, .expected = 0 },
        { "te-allgather", 4, 2, LH_PASS_FWD, .expected = 3 * KV },
        { "te-allgather", 4, 2, LH_PASS_BWD, .expected = 2 * 3 * KV },
        { "te-allgather", 4, 2, LH_PASS_BWD, .expected = 3 * 3 * KV, .wire = LH_WIRE_FP32 },
        { "allgather-kv", 4, 3, LH_PASS_FWD, .expected = 3 * KV },
        { "allgather-kv", 4, 0, LH_PASS_BWD, .expected = 2 * 3 * KV },
        { "allgather-kv", 4, 0, LH_PASS_BWD, .expected = 2 * 3 * KV, .gather_groups = 2 },
        { "burst", 4, 0, LH_PASS_FWD, .expected = 3 * KV },
        { "burst", 4, 0, LH_PASS_BWD, .expected = 3 * (2 * Q + 2 * S) + 4 * Q },
        { "burst", 4, 0, LH_PASS_BWD, .expected = 3 * (2 * Q + 2 * S) + 4 * 2 * Q,
          .wire = LH_WIRE_FP32 },
        { "double-ring", 8, 5, LH_PASS_FWD, .expected = 7 * KV, .inner_ring = 4 },
        /* k, v; a window of fp32, one of 16 bits; two hops from window to window. */
        { "double-ring", 8, 5, LH_PASS_BWD, .expected = (7 + 4 * 2 + 4 + 2) * KV, .inner_ring = 4 },
        { "double-ring", 8, 5, LH_PASS_BWD, .expected = (7 + 8 * 2) * KV },
        { "double-ring", 8, 5, LH_PASS_BWD, .expected = (7 + 8) * KV, .inner_ring = 1 },
        { "double-ring", 8, 5, LH_PASS_BWD, .expected = (7 + 8 + 2) * KV, .wire = LH_WIRE_16BIT,
          .inner_ring = 4 },
        { "double-ring", 8, 5, LH_PASS_BWD, .expected = (7 + 16 + 4) * KV, .wire = LH_WIRE_FP32,
          .inner_ring = 4 },
        { "tokenring", 4, 0, LH_PASS_FWD, .expected = 3 * (Q / 2) + 6 * (Q + S) / 2 },
        { "tokenring", 4, 1, LH_PASS_FWD, .expected = 6 * (Q / 2) + 5 * (Q + S) / 2 },
        { "tokenring", 4, 2, LH_PASS_FWD, .expected = 5 * (Q / 2) + 4 * (Q + S) / 2 },
        { "tokenring", 4, 3, LH_PASS_FWD, .expected = 4 * (Q / 2) + 3 * (Q + S) / 2 },
        { "tokenring", 4, 0, LH_PASS_BWD, .expected = 3 * (Q + S) + 6 * (Q / 2) },
        { "tokenring", 4, 0, LH_PASS_FWD, .expected = 3 * (2 * Q + S), .full = true },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        const LhProgramParams p = params_of(&rows[i]);
        g_autoptr(LhVerdict) verdict = prove(rows[i].name, &p);

        ck_assert_msg(verdict->bytes_sent[rows[i].rank] == rows[i].expected,
                      "row %u, %s: %" G_GUINT64_FORMAT " bytes", i, rows[i].name,
                      verdict->bytes_sent[rows[i].rank]);
    }
}
END_TEST

/* On average, a causal mask saves a quarter of tokenring's bytes. */
START_TEST(forms_rings_save_a_quarter)
{
    const LhProgramParams p = make_params(8, LH_PASS_FWD);
    g_autoptr(LhVerdict) verdict = prove("tokenring", &p);
    uint64_t total = 0;

    for (uint32_t rank = 0; rank < 8; rank++)
        total += verdict->bytes_sent[rank];
    ck_assert_uint_eq(total, 8 * 7 * (2 * Q + S) / 4 * 3);
}
END_TEST

START_TEST(forms_rings_count_flops)
{
    static const Row rows[] = {
        /* A diagonal of 21 pairs and three halves of 36. */
        { "te-p2p", 4, 0, LH_PASS_FWD, .expected = 75 * FWD_PAIR },
        { "te-p2p", 4, 3, LH_PASS_BWD, .expected = 75 * BWD_PAIR },
        { "te-allgather", 4, 1, LH_PASS_BOTH, .expected = 75 * (FWD_PAIR + BWD_PAIR) },
        { "burst", 4, 2, LH_PASS_BWD, .expected = 75 * BWD_PAIR },
        { "double-ring", 4, 2, LH_PASS_BWD, .expected = 75 * BWD_PAIR },
        { "tokenring", 4, 0, LH_PASS_FWD, .expected = 75 * FWD_PAIR },
        { "tokenring", 4, 0, LH_PASS_FWD, .expected = 144 * FWD_PAIR, .full = true },
        { "allgather-kv", 4, 0, LH_PASS_FWD, .expected = 21 * FWD_PAIR },
        { "allgather-kv", 4, 3, LH_PASS_FWD, .expected = (3 * 36 + 21) * FWD_PAIR },
        { "allgather-kv", 4, 3, LH_PASS_BWD, .expected = 144 * BWD_PAIR, .full = true },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        const LhProgramParams p = params_of(&rows[i]);
        g_autoptr(LhVerdict) verdict = prove(rows[i].name, &p);

        ck_assert_msg(verdict->flops[rows[i].rank] == rows[i].expected, "row %u, %s", i,
                      rows[i].name);
    }
}
END_TEST

START_TEST(forms_rings_count_memory)
{
    static const Row rows[] = {
        /* P k, v; 6 and 8 halves of outputs; fp32 sum. */
        { "te-p2p", 4, 1, LH_PASS_FWD, .expected = FWD_IO + 4 * KV + 6 * (Q + S) / 2 + 2 * Q },
        { "te-p2p", 4, 3, LH_PASS_FWD, .expected = FWD_IO + 4 * KV + 8 * (Q + S) / 2 + 2 * Q },
        { "te-p2p", 4, 1, LH_PASS_FWD, .expected = FWD_IO + 4 * KV + 8 * (Q + S) / 2 + 2 * Q,
          .full = true },
        { "te-p2p", 4, 1, LH_PASS_BWD, .expected = BWD_IO + 4 * KV + Q + 2 * KV + 2 * Q },
        { "te-p2p", 4, 1, LH_PASS_BWD, .expected = BWD_IO + 4 * KV + Q + KV, .published = true },
        { "te-allgather", 4, 1, LH_PASS_FWD, .expected = FWD_IO + 2 * 4 * KV },
        { "te-allgather", 4, 1, LH_PASS_BWD, .expected = BWD_IO + 3 * 4 * KV + 9 * KV / 2 },
        { "allgather-kv", 4, 1, LH_PASS_FWD, .expected = FWD_IO + 2 * 4 * KV / 2 },
        { "allgather-kv", 4, 1, LH_PASS_FWD, .expected = FWD_IO + 2 * 4 * KV, .gather_groups = 2 },
        { "allgather-kv", 4, 1, LH_PASS_BWD, .expected = BWD_IO + 3 * 4 * KV / 2 },
        { "burst", 4, 1, LH_PASS_FWD, .expected = FWD_IO + 2 * KV + 2 * Q + Q + 2 * S },
        { "burst", 4, 1, LH_PASS_BWD, .expected = BWD_IO + 6 * Q + 5 * S + 2 * Q + KV + 2 * KV },
        { "burst", 4, 1, LH_PASS_BWD, .expected = BWD_IO + 6 * Q + 5 * S + Q + KV,
          .published = true },
        { "double-ring", 8, 1, LH_PASS_FWD, .expected = FWD_IO + 4 * KV + 3 * Q + 2 * S,
          .inner_ring = 4 },
        { "double-ring", 8, 1, LH_PASS_FWD, .expected = FWD_IO + 2 * KV + 3 * Q + 2 * S },
        { "double-ring", 8, 1, LH_PASS_BWD, .expected = BWD_IO + 8 * KV + 4 * KV + 3 * Q + 2 * KV,
          .inner_ring = 4 },
        { "double-ring", 8, 1, LH_PASS_BWD, .expected = BWD_IO + 2 * KV + 4 * KV + 3 * Q + KV },
        { "tokenring", 4, 1, LH_PASS_FWD, .expected = FWD_IO + 6 * Q + 5 * S + 2 * Q },
        { "tokenring", 4, 1, LH_PASS_BWD,
          .expected = BWD_IO + 8 * Q + 5 * S + 2 * Q + KV + 2 * KV },
        { "tokenring", 1, 0, LH_PASS_BWD, .expected = BWD_IO },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        const LhProgramParams p = params_of(&rows[i]);
        g_autoptr(LhVerdict) verdict = prove(rows[i].name, &p);

        ck_assert_msg(verdict->peak_bytes[rows[i].rank] == rows[i].expected,
                      "row %u, %s: %" G_GUINT64_FORMAT " bytes", i, rows[i].name,
                      verdict->peak_bytes[rows[i].rank]);
    }
}
END_TEST

/* 24 tokens: a window of 7 keys; documents of 5 and 19 tokens. */
typedef struct {
    const char *name;
    uint32_t rank;
    bool documents, full;
    uint64_t pairs, hops; /* forward */
} MaskRow;

START_TEST(forms_rings_count_masks)
{
    static const uint64_t ends[] = { 5, 24 };
    static const MaskRow rows[] = {
        { "ring", 0, false, false, 21, 3 },
        { "ring", 1, false, false, 42, 3 },
        { "ring", 0, true, false, 15 + 1, 3 },
        { "ring", 1, true, false, 2 + 3 + 4 + 5 + 6 + 7, 3 },
        { "ring", 0, true, true, 25 + 19, 3 },
        { "zigzag", 0, false, false, 6 + 21, 3 },
        { "zigzag", 3, false, false, 42, 3 },
        /* Tokens 1, 5, 9, 13, 17, 21. */
        { "striped", 1, false, false, 2 + 6 + 4 * 7, 3 },
        { "striped", 1, true, true, 5 + 5 * 19, 3 },
        { "dfa-unbalanced", 1, false, false, 42, 1 },
        { "dfa-unbalanced", 3, false, false, 42, 0 },
        { "dfa-unbalanced", 0, true, false, 16, 3 }, /* token 5 */
        { "dfa-unbalanced", 3, true, true, 6 * 19, 3 },
        { "allgather-kv", 1, false, false, 42, 3 },
        { "te-allgather", 0, false, false, 6 + 21, 3 },
        { "burst", 0, false, false, 6 + 21, 3 },
        { "double-ring", 0, false, false, 6 + 21, 3 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        LhProgramParams p = make_params(4, LH_PASS_FWD);
        g_autoptr(LhVerdict) verdict = NULL;

        p.mask.causal = !rows[i].full;
        p.mask.window = rows[i].documents ? 0 : 7;
        p.mask.document_ends = rows[i].documents ? ends : NULL;
        p.mask.documents_count = rows[i].documents ? 2 : 0;
        verdict = prove(rows[i].name, &p);
        ck_assert_msg(verdict->flops[rows[i].rank] == rows[i].pairs * FWD_PAIR, "row %u, %s", i,
                      rows[i].name);
        ck_assert_msg(verdict->bytes_sent[rows[i].rank] == rows[i].hops * KV, "row %u, %s", i,
                      rows[i].name);
    }
}
END_TEST

/* tokenring computes by a rank's keys: tokens 0..2 are seen by 7 queries each, 21..23 by 3, 2,
 * 1. */
START_TEST(forms_rings_count_keys)
{
    LhProgramParams p = make_params(4, LH_PASS_FWD);
    g_autoptr(LhVerdict) verdict = NULL;

    p.mask.window = 7;
    verdict = prove("tokenring", &p);
    ck_assert_uint_eq(verdict->flops[0], (21 + 6) * FWD_PAIR);
    /* q whole or in halves as always; results for ranks 1 (twice: 3..5, 18..20 see either half) and
     * 2 (6..8 see token 2). */
    ck_assert_uint_eq(verdict->bytes_sent[0], 3 * (Q / 2) + 2 * (Q + S) / 2);
}
END_TEST

static bool
attends(const LhOp *op)
{
    return op->kind == LH_OP_COMPUTE && lh_kernels[op->compute.kernel]->cost == LH_COST_ATTENTION;
}

typedef struct {
    uint32_t attention, exchanges;
} Ops;

static Ops
count_ops(const char *name, const LhProgramParams *p, uint32_t rank)
{
    g_autoptr(LhProgram) program = make(name, p);
    LhOpBuffer buffer = { 0 };
    LhCursor cursor;
    Ops ops = { 0 };

    lh_cursor_init(&cursor, program, rank);
    while (lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; i < buffer.ops_count; i++) {
            ops.attention += attends(&buffer.ops[i]) ? 1 : 0;
            ops.exchanges += buffer.ops[i].kind == LH_OP_EXCHANGE ? 1 : 0;
        }
    }
    lh_op_buffer_clear(&buffer);
    return ops;
}

/* A window of 7 reaches one rank of 6 tokens back; the ring still goes all the way round. */
START_TEST(forms_rings_skip_empty_blocks)
{
    LhProgramParams p = make_params(8, LH_PASS_FWD);

    p.mask.window = 7;
    ck_assert_uint_eq(count_ops("ring", &p, 5).attention, 2);
    ck_assert_uint_eq(count_ops("ring", &p, 5).exchanges, 7);
    ck_assert_uint_eq(count_ops("dfa-unbalanced", &p, 5).attention, 2);
    /* A rank that fetches and serves in one step. */
    ck_assert_uint_eq(count_ops("dfa-unbalanced", &p, 5).exchanges, 1);
    /* Halves of 3 tokens: 15..17 sees 9..17, 30..32 sees 24..32: halves 3, 4, 5 and 8, 9, 10, owned
     * by ranks 3, 4, 5 and 7, 6, 5. */
    ck_assert_uint_eq(count_ops("zigzag", &p, 5).attention, 5);
    p.mask.window = 0;
    ck_assert_uint_eq(count_ops("ring", &p, 5).attention, 6);
}
END_TEST

/* Bytes rank 1 of 4 sends in the backward pass, by exchange. */
START_TEST(forms_rings_te_sends_keys_with_gradients)
{
    static const uint64_t expected[] = { KV, 2 * KV, 2 * KV, KV };
    const LhProgramParams p = make_params(4, LH_PASS_BOTH);
    g_autoptr(LhProgram) program = make("te-p2p", &p);
    LhOpBuffer buffer = { 0 };
    LhCursor cursor;
    uint32_t sent = 0;

    lh_cursor_init(&cursor, program, 1);
    while (lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; i < buffer.parts_count; i++) {
            const LhPart *part = &buffer.parts[i];

            if (buffer.ops[0].phase == LH_PHASE_FORWARD || !part->send)
                continue;
            ck_assert_uint_lt(sent, 4);
            ck_assert_uint_eq(part->peer, 0);
            ck_assert_uint_eq(part->wire_bytes, expected[sent++]);
        }
    }
    ck_assert_uint_eq(sent, 4);
    lh_op_buffer_clear(&buffer);
}
END_TEST

/* Steps of the forward pass alternate between two streams; backward has one. */
START_TEST(forms_rings_te_alternates_streams)
{
    const LhProgramParams p = make_params(6, LH_PASS_BOTH);
    g_autoptr(LhProgram) program = make("te-p2p", &p);
    LhOpBuffer buffer = { 0 };
    LhCursor cursor;
    uint32_t seen = 0;

    lh_cursor_init(&cursor, program, 4);
    while (lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; i < buffer.ops_count; i++) {
            const LhOp *op = &buffer.ops[i];
            const bool second = op->phase == LH_PHASE_FORWARD && op->step % 2 != 0;

            if (!attends(op))
                continue;
            ck_assert_str_eq(program->streams[op->stream].name, second ? "compute2" : "compute");
            seen++;
        }
    }
    ck_assert_uint_eq(seen, 12);
    lh_op_buffer_clear(&buffer);
}
END_TEST

/* Windows of 4: rank 6 sends three times within its window in either half, and once to rank 2. */
START_TEST(forms_rings_double_ring_leaves_its_window_once)
{
    LhProgramParams p = make_params(8, LH_PASS_FWD);
    LhOpBuffer buffer = { 0 };
    uint32_t inner = 0, outer = 0;
    LhCursor cursor;

    set_option(&p, "inner_ring", 4);
    g_autoptr(LhProgram) program = make("double-ring", &p);
    lh_cursor_init(&cursor, program, 6);
    while (lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; i < buffer.parts_count; i++) {
            if (!buffer.parts[i].send)
                continue;
            ck_assert(buffer.parts[i].peer == 7 || buffer.parts[i].peer == 2);
            inner += buffer.parts[i].peer == 7 ? 1 : 0;
            outer += buffer.parts[i].peer == 2 ? 1 : 0;
        }
    }
    ck_assert_uint_eq(inner, 6);
    ck_assert_uint_eq(outer, 1);
    lh_op_buffer_clear(&buffer);
}
END_TEST

/* Counts rank 0's calls of @kernel on dk and dv. */
static uint32_t
calls_on_dkv(const LhProgram *program, LhKernelId kernel)
{
    LhOpBuffer buffer = { 0 };
    uint32_t calls = 0;
    LhCursor cursor;

    lh_cursor_init(&cursor, program, 0);
    while (lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; i < buffer.ops_count; i++) {
            const LhOp *op = &buffer.ops[i];

            calls += op->kind == LH_OP_COMPUTE && op->compute.kernel == kernel &&
                     program->slots[op->compute.regions[0].slot].kind == LH_TENSOR_DKV;
        }
    }
    lh_op_buffer_clear(&buffer);
    return calls;
}

/* Three windows of 4, dk and dv in 16 bits. To round the whole sum only once per round, each round
 * but the first starts its own sum, which is added to the whole one; the public code continues the
 * received sum. */
START_TEST(forms_rings_double_ring_sums_each_round)
{
    for (uint32_t published = 0; published < 2; published++) {
        LhProgramParams p = make_params(12, LH_PASS_BWD);
        g_autoptr(LhProgram) program = NULL;

        set_option(&p, "inner_ring", 4);
        set_option(&p, "published_code", published);
        program = make("double-ring", &p);
        ck_assert_uint_eq(calls_on_dkv(program, LH_KERNEL_ID_zero), published ? 0 : 2);
        ck_assert(published || calls_on_dkv(program, LH_KERNEL_ID_add) == 2);
    }
}
END_TEST

/* The inner ring has a node's GPUs if they divide the ranks, else a divisor; a prime number gives
 * one ring. */
START_TEST(forms_rings_double_ring_fits_nodes)
{
    static const struct {
        uint32_t ranks, gpus_per_node;
        uint64_t hops; /* of dk, dv between windows: P/w */
    } cases[] = { { 16, 0, 2 }, { 16, 4, 4 }, { 12, 8, 2 }, { 11, 0, 0 }, { 6, 0, 0 } };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        LhProgramParams p = make_params(cases[i].ranks, LH_PASS_BWD);
        g_autoptr(LhVerdict) verdict = NULL;
        const uint64_t ranks = cases[i].ranks;

        p.gpus_per_node = cases[i].gpus_per_node;
        set_option(&p, "gradient_wire", LH_WIRE_16BIT);
        verdict = prove("double-ring", &p);
        ck_assert_uint_eq(verdict->bytes_sent[0], (ranks - 1 + ranks + cases[i].hops) * KV);
    }
}
END_TEST

static void
check_refused(const char *name, const LhProgramParams *p, const char *words)
{
    g_autoptr(GError) error = NULL;

    ck_assert_ptr_null(lh_program_new(lh_schedule_find(name, NULL), p, &error));
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_NO));
    ck_assert_msg(strstr(error->message, words) != NULL, "%s", error->message);
}

START_TEST(forms_rings_refuse)
{
    LhProgramParams p = make_params(8, LH_PASS_BOTH);

    p.attention.groups = 8;
    set_option(&p, "gather_groups", 3);
    check_refused("allgather-kv", &p, "nearest legal numbers: 2, 4");
    set_option(&p, "inner_ring", 3);
    check_refused("double-ring", &p, "nearest legal sizes: 2, 4");
    p.mask.window = 5;
    check_refused("te-p2p", &p, "use te-allgather");
    check_refused("dfa-balanced", &p, "use dfa-unbalanced or ring");
}
END_TEST

/* Counts every query of a segment one by one. */
START_TEST(forms_rings_masks_count_keys)
{
    static const uint64_t ends[] = { 3, 4, 17, 30 };

    for (unsigned i = 0; i < 2 * 2 * 6 * 4; i++) {
        const LhMaskRule rule = { .causal = i % 2 == 0,
                                  .window = i % 2 == 0 ? i / 4 % 6 * 5 : 0,
                                  .document_ends = ends,
                                  .documents_count = i / 2 % 2 == 0 ? 1 : 4 };
        const uint64_t stride = 1 + i / 24;

        for (uint64_t start = 0; start < 30; start++) {
            const uint64_t count = (29 - start) / stride + 1;
            uint64_t keys = 0;

            for (uint64_t q = start; q < 30; q += stride) {
                for (uint64_t k = 0; k < 30; k++)
                    keys += lh_mask_sees(&rule, q, k) ? 1 : 0;
            }
            ck_assert_uint_eq(lh_mask_keys_count(&rule, (LhSegment){ start, stride, count }, 30),
                              keys);
        }
    }
}
END_TEST

static const char *const schedules[] = {
    "ring",         "zigzag",       "striped", "dfa-unbalanced", "te-p2p",
    "te-allgather", "allgather-kv", "burst",   "double-ring",    "tokenring",
};

static bool
can(const char *name, const LhProgramParams *p)
{
    return lh_schedule_find(name, NULL)->masks == LH_MASKS_ALL || lh_mask_is_plain(&p->mask);
}

/* All other parameters cycle with coprime periods. */
START_TEST(forms_rings_prove)
{
    static const uint32_t ranks[] = { 1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                      11, 12, 13, 14, 15, 16, 25, 32, 36, 64 };
    const char *name = schedules[_i];

    for (unsigned i = 0; i < 5 * G_N_ELEMENTS(ranks); i++) {
        LhProgramParams p = make_params(ranks[i % G_N_ELEMENTS(ranks)], (LhPass)(1 + i % 3));
        const uint64_t tokens = p.attention.seq_length;
        const uint64_t ends[] = { 1, 1 + tokens / 4, 1 + 2 * tokens / 3, tokens };
        const unsigned mask = i / 20;

        p.attention.groups = i % 7 == 0 ? 1 : i % 7 == 1 ? 8 : 2;
        set_option(&p, "no_overlap", i % 11 == 0);
        set_option(&p, "published_code", i % 13 == 0);
        set_option(&p, "gradient_wire", (LhWireDtype)(i / 5 % 3));
        p.mask.causal = mask != 1;
        p.mask.window = mask == 2 ? 1 + tokens / 3 : 0;
        p.mask.document_ends = ends;
        p.mask.documents_count = mask >= 3 ? 4 : 0;
        if (mask == 4 && i % 2 == 0)
            p.mask.causal = false;
        if (test_takes_of(i + (unsigned)_i, 11) && can(name, &p))
            lh_verdict_free(prove(name, &p));
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("forms_rings");
    TCase *tests = tcase_create("forms_rings");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_test(tests, forms_rings_count_bytes);
    tcase_add_test(tests, forms_rings_save_a_quarter);
    tcase_add_test(tests, forms_rings_count_flops);
    tcase_add_test(tests, forms_rings_count_memory);
    tcase_add_test(tests, forms_rings_count_masks);
    tcase_add_test(tests, forms_rings_count_keys);
    tcase_add_test(tests, forms_rings_skip_empty_blocks);
    tcase_add_test(tests, forms_rings_te_sends_keys_with_gradients);
    tcase_add_test(tests, forms_rings_te_alternates_streams);
    tcase_add_test(tests, forms_rings_double_ring_leaves_its_window_once);
    tcase_add_test(tests, forms_rings_double_ring_sums_each_round);
    tcase_add_test(tests, forms_rings_double_ring_fits_nodes);
    tcase_add_test(tests, forms_rings_refuse);
    tcase_add_test(tests, forms_rings_masks_count_keys);
    tcase_add_loop_test(tests, forms_rings_prove, 0, G_N_ELEMENTS(schedules));
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
