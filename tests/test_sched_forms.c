/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of the attention schedules compared with the formulas of docs/reference/schedules.md,
 * written independently here: bytes, flops, memory and idle time by walking the cursors. Every
 * block is computed once; cursors can be copied. The verifier proves the programs themselves.
 */
#include "base/error.h"
#include "fitting.h"
#include "program/collective_semantics.h"
#include "run_tests.h"
#include "sched/schedule.h"

#include <math.h>
#include <string.h>

static const uint32_t rank_counts[] = { 1, 2, 3, 4, 5, 7, 8, 16, 32 };

typedef struct {
    uint64_t bytes, flops, peak;
} Counted;

static LhProgramParams
make_params(uint32_t ranks, bool gqa, LhPass pass)
{
    return (LhProgramParams){
        .attention = {
            .batch = 2,
            .seq_length = 6 * (uint64_t)ranks,
            .heads = 8,
            .groups = gqa ? 2 : 8,
            .head_dim = 16,
            .dtype = LH_DTYPE_BF16,
        },
        .ranks = ranks,
        .mask.causal = true,
        .pass = pass,
    };
}

static LhProgram *
make(const char *name, const LhProgramParams *params)
{
    g_autoptr(GError) error = NULL;
    const LhSchedule *schedule = lh_schedule_find(name, &error);
    LhProgram *program;

    ck_assert_msg(schedule != NULL, "%s", error == NULL ? "" : error->message);
    program = lh_program_new(schedule, params, &error);
    ck_assert_msg(program != NULL, "%s", error == NULL ? "" : error->message);
    return program;
}

static void
count_op(const LhProgram *program, uint32_t rank, const LhOpBuffer *buffer, const LhOp *op,
         Counted *counted, uint64_t *held)
{
    if (op->kind == LH_OP_ALLOC || op->kind == LH_OP_FREE) {
        const LhRegion *region = &op->memory.region;
        const uint64_t bytes = region->count * program->slots[region->slot].part_bytes;

        *held = op->kind == LH_OP_ALLOC ? *held + bytes : *held - bytes;
        counted->peak = MAX(counted->peak, *held);
    } else if (op->kind == LH_OP_COMPUTE) {
        const LhKernel *kernel = lh_kernels[op->compute.kernel];

        if (lh_kernel_counts_flops(kernel))
            counted->flops += kernel->flops(&op->compute.args);
    } else if (op->kind == LH_OP_EXCHANGE) {
        for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
            const LhPart *part = &buffer->parts[op->exchange.parts_first + i];
            uint64_t region_bytes = 0;

            for (unsigned k = 0; k < part->regions_count; k++)
                region_bytes += lh_region_bytes(program, part->regions[k]);
            ck_assert_uint_eq(part->wire_bytes, region_bytes);
            counted->bytes += part->send ? part->wire_bytes : 0;
        }
    } else if (op->kind == LH_OP_COLLECTIVE) {
        counted->bytes += lh_collective_bytes_sent(op->collective.kind, &op->collective.group, rank,
                                                   op->collective.wire_bytes);
    }
}

static Counted
count(const LhProgram *program, uint32_t rank)
{
    Counted counted = { 0 };
    uint64_t held = 0, resident = 0;
    LhOpBuffer buffer = { 0 };
    LhCursor cursor;

    for (uint32_t i = 0; i < program->slots_count; i++) {
        if (program->slots[i].role != LH_SLOT_TEMP)
            resident += program->slots[i].parts * program->slots[i].part_bytes;
    }
    held = resident;
    counted.peak = held;
    lh_cursor_init(&cursor, program, rank);
    while (lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; i < buffer.ops_count; i++)
            count_op(program, rank, &buffer, &buffer.ops[i], &counted, &held);
    }
    lh_op_buffer_clear(&buffer);
    ck_assert_uint_eq(held, resident);
    return counted;
}

/* Q, KV, S of make_params: 6 tokens per rank, batch 2, 8 heads, head size 16, 2 bytes. */
typedef struct {
    int64_t ranks, half, rank;
    uint64_t q, kv, s;
} Letters;

static Letters
letters(const LhProgramParams *p, uint32_t rank)
{
    return (Letters){
        .ranks = p->ranks,
        .half = p->ranks / 2,
        .rank = rank,
        .q = 2 * 6 * 8 * 16 * 2,
        .kv = 2 * 2 * 6 * (uint64_t)p->attention.groups * 16 * 2,
        .s = 4 * 2 * 6 * 8,
    };
}

static uint64_t
positive(int64_t x)
{
    return x > 0 ? (uint64_t)x : 0;
}

/* Section "dfa-balanced" of the reference. */
static uint64_t
balanced_bytes(const LhProgramParams *p, uint32_t rank, LhPass pass)
{
    const Letters z = letters(p, rank);
    const bool odd = z.ranks % 2 == 1;
    const uint64_t kv = (uint64_t)MIN(z.half, z.ranks - 1 - z.rank);
    const uint64_t q = positive(z.rank - z.half);
    const uint64_t back = positive(odd ? z.half - z.rank : z.half - 1 - z.rank);
    const uint64_t dkv = (uint64_t)MIN(z.rank, z.half);

    if (pass == LH_PASS_FWD)
        return kv * z.kv + q * z.q + back * (z.q + 2 * z.s);
    return kv * z.kv + q * (3 * z.q + z.s) + back * z.q + dkv * z.kv;
}

static uint64_t
unbalanced_bytes(const LhProgramParams *p, uint32_t rank, LhPass pass)
{
    const Letters z = letters(p, rank);

    return (p->ranks - 1 - rank) * z.kv + (pass == LH_PASS_BWD ? rank * z.kv : 0);
}

static uint64_t
ring_bytes(const LhProgramParams *p, uint32_t rank, LhPass pass)
{
    const Letters z = letters(p, rank);

    if (p->ranks == 1)
        return 0;
    return pass == LH_PASS_FWD ? (p->ranks - 1) * z.kv : (3 * (uint64_t)p->ranks - 1) * z.kv;
}

/* Half-pairs and pairs of 6 tokens. */
#define DIAGONAL (6 * 7 / 2)

static uint64_t
contiguous_pairs(const LhProgramParams *p, uint32_t rank)
{
    (void)p;
    return rank * UINT64_C(36) + DIAGONAL;
}

static uint64_t
zigzag_pairs(const LhProgramParams *p, uint32_t rank)
{
    (void)rank;
    return (p->ranks - 1) * UINT64_C(18) + DIAGONAL;
}

static uint64_t
striped_pairs(const LhProgramParams *p, uint32_t rank)
{
    return (rank + 1) * UINT64_C(21) + (p->ranks - 1 - rank) * UINT64_C(15);
}

static uint64_t
balanced_pairs(const LhProgramParams *p, uint32_t rank)
{
    const uint64_t half = p->ranks / 2;

    return (p->ranks % 2 == 0 && rank < half ? half - 1 : half) * 36 + DIAGONAL;
}

static uint64_t
ring_buffers(const LhProgramParams *p, LhPass pass)
{
    const Letters z = letters(p, 0);

    if (pass == LH_PASS_FWD)
        return 2 * z.kv + 2 * z.q + z.q + 2 * z.s;
    return 2 * z.kv + 3 * 2 * z.kv + z.kv + z.q + 2 * z.q;
}

static uint64_t
unbalanced_buffers(const LhProgramParams *p, LhPass pass)
{
    const Letters z = letters(p, 0);

    /* Sums are fp32: twice the bytes of 16-bit activations. */
    return pass == LH_PASS_FWD ? 2 * z.q + 2 * z.s + 2 * z.kv
                               : 5 * z.kv + z.q + z.s + 2 * (z.q + z.kv);
}

static uint64_t
balanced_buffers(const LhProgramParams *p, LhPass pass)
{
    const Letters z = letters(p, 0);

    if (pass == LH_PASS_FWD)
        return 2 * z.q + 2 * z.s + 2 * (2 * z.q + z.kv + 2 * z.s);
    return 2 * (4 * z.q + 2 * z.kv + z.s) + z.kv + 2 * (z.q + z.kv);
}

typedef struct {
    const char *name;
    uint64_t (*bytes)(const LhProgramParams *p, uint32_t rank, LhPass pass);
    uint64_t (*pairs)(const LhProgramParams *p, uint32_t rank);
    uint64_t (*buffers)(const LhProgramParams *p, LhPass pass);
} Expected;

static const Expected expected[] = {
    { "dfa-balanced", balanced_bytes, balanced_pairs, balanced_buffers },
    { "dfa-unbalanced", unbalanced_bytes, contiguous_pairs, unbalanced_buffers },
    { "ring", ring_bytes, contiguous_pairs, ring_buffers },
    { "zigzag", ring_bytes, zigzag_pairs, ring_buffers },
    { "striped", ring_bytes, striped_pairs, ring_buffers },
};

static uint64_t
expected_peak(const Expected *x, const LhProgramParams *p)
{
    const Letters z = letters(p, 0);
    const uint64_t resident = 2 * z.q + z.kv + z.s + (p->pass == LH_PASS_FWD ? 0 : 2 * z.q + z.kv);
    uint64_t fwd = x->buffers(p, LH_PASS_FWD), bwd = x->buffers(p, LH_PASS_BWD);

    if (p->ranks == 1) {
        fwd = 0;
        bwd = 0;
    }
    return resident +
           MAX((p->pass & LH_PASS_FWD) != 0 ? fwd : 0, (p->pass & LH_PASS_BWD) != 0 ? bwd : 0);
}

static void
check_program(const Expected *x, const LhProgramParams *p)
{
    g_autoptr(LhProgram) program = make(x->name, p);
    const LhClosedForms *closed = program->closed;

    for (uint32_t rank = 0; rank < p->ranks; rank++) {
        const Counted counted = count(program, rank);
        uint64_t bytes = 0, flops_per_pair = 0;

        if ((p->pass & LH_PASS_FWD) != 0) {
            bytes += x->bytes(p, rank, LH_PASS_FWD);
            flops_per_pair += 4 * 2 * 8 * 16;
        }
        if ((p->pass & LH_PASS_BWD) != 0) {
            bytes += x->bytes(p, rank, LH_PASS_BWD);
            flops_per_pair += 10 * 2 * 8 * 16;
        }
        ck_assert_uint_eq(counted.bytes, bytes);
        ck_assert_uint_eq(counted.flops, flops_per_pair * x->pairs(p, rank));
        ck_assert_uint_eq(counted.peak, expected_peak(x, p));
        ck_assert_uint_eq(closed->bytes_sent(p, rank), counted.bytes);
        ck_assert_uint_eq(closed->flops(p, rank), counted.flops);
        ck_assert_uint_eq(closed->peak_bytes(p, rank), counted.peak);
    }
}

START_TEST(sched_forms_hold_exactly)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(expected); i++) {
        for (unsigned k = 0; k < G_N_ELEMENTS(rank_counts); k++) {
            for (int pass = LH_PASS_FWD; pass <= LH_PASS_BOTH; pass++) {
                const LhProgramParams mha = make_params(rank_counts[k], false, (LhPass)pass);
                const LhProgramParams gqa = make_params(rank_counts[k], true, (LhPass)pass);

                check_program(&expected[i], &mha);
                check_program(&expected[i], &gqa);
            }
        }
    }
}
END_TEST

/* Forward and backward in units of one chunk Q (MHA, without statistics), as counted in the
 * papers. */
START_TEST(sched_forms_agree_with_the_papers)
{
    for (uint32_t ranks = 2; ranks <= 32; ranks += 2) {
        LhProgramParams p = make_params(ranks, false, LH_PASS_FWD);
        const Letters z = letters(&p, 0);
        const LhClosedForms *closed = &lh_schedule_find("dfa-balanced", NULL)->closed;
        uint64_t fwd = 0, bwd = 0, helped = 0;

        for (uint32_t rank = 0; rank < ranks; rank++) {
            helped += positive((int64_t)ranks / 2 - 1 - rank);
            p.pass = LH_PASS_FWD;
            fwd += closed->bytes_sent(&p, rank);
            p.pass = LH_PASS_BWD;
            bwd += closed->bytes_sent(&p, rank);
        }
        ck_assert_uint_eq(helped, (uint64_t)ranks * (ranks - 2) / 8);
        ck_assert_uint_eq(fwd, (uint64_t)ranks * (ranks - 1) * z.q + helped * 2 * z.s);
        ck_assert_uint_eq(bwd, 2 * (uint64_t)ranks * (ranks - 1) * z.q + helped * z.s);
    }
}
END_TEST

START_TEST(sched_forms_count_wire_dtypes)
{
    static const struct {
        const char *name;
        LhWireDtype wire;
        uint64_t dkv_hops_of_last_rank, width;
    } cases[] = {
        { "ring", LH_WIRE_DEFAULT, 4, 4 },
        { "ring", LH_WIRE_16BIT, 4, 2 },
        { "zigzag", LH_WIRE_FP32, 4, 4 },
        { "striped", LH_WIRE_16BIT, 4, 2 },
        { "dfa-unbalanced", LH_WIRE_DEFAULT, 3, 2 },
        { "dfa-unbalanced", LH_WIRE_FP32, 3, 4 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        LhProgramParams p = make_params(4, true, LH_PASS_BWD);
        const Letters z = letters(&p, 3);
        const uint64_t kv_hops = g_str_has_prefix(cases[i].name, "dfa") ? 0 : 3;
        uint64_t gradients;

        set_option(&p, "gradient_wire", cases[i].wire);
        g_autoptr(LhProgram) program = make(cases[i].name, &p);
        gradients = cases[i].dkv_hops_of_last_rank * z.kv / 2 * cases[i].width;
        ck_assert_uint_eq(count(program, 3).bytes, kv_hops * z.kv + gradients);
        ck_assert_uint_eq(program->closed->bytes_sent(&p, 3), kv_hops * z.kv + gradients);
        ck_assert_uint_eq(program->closed->peak_bytes(&p, 3), count(program, 3).peak);
    }
}
END_TEST

START_TEST(sched_forms_follow_the_published_code)
{
    for (unsigned k = 0; k < G_N_ELEMENTS(rank_counts); k++) {
        const uint32_t ranks = rank_counts[k];
        LhProgramParams p = make_params(ranks, true, LH_PASS_BOTH);

        set_option(&p, "published_code", true);
        const LhClosedForms *closed = lh_closed_forms(lh_schedule_find("dfa-balanced", NULL), &p);
        g_autoptr(LhProgram) program = make("dfa-balanced", &p);
        for (uint32_t rank = 0; rank < ranks; rank++) {
            const Counted counted = count(program, rank);
            const Letters z = letters(&p, rank);
            /* Unneeded k, v of both passes. */
            const uint64_t dead = ranks > 1 && z.rank <= z.half - 2 ? 2 * z.kv : 0;

            ck_assert_uint_eq(closed->bytes_sent(&p, rank), counted.bytes);
            ck_assert_uint_eq(closed->flops(&p, rank), counted.flops);
            ck_assert_uint_eq(closed->peak_bytes(&p, rank), counted.peak);
            if (ranks % 2 == 0)
                ck_assert_uint_eq(counted.bytes, balanced_bytes(&p, rank, LH_PASS_FWD) +
                                                     balanced_bytes(&p, rank, LH_PASS_BWD) + dead);
        }
    }
}
END_TEST

static uint64_t
count_kernel(const LhProgram *program, uint32_t rank, LhKernelId kernel)
{
    LhOpBuffer buffer = { 0 };
    LhCursor cursor;
    uint64_t ops = 0;

    lh_cursor_init(&cursor, program, rank);
    while (lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; i < buffer.ops_count; i++)
            ops += buffer.ops[i].kind == LH_OP_COMPUTE && buffer.ops[i].compute.kernel == kernel;
    }
    lh_op_buffer_clear(&buffer);
    return ops;
}

/* With grouped queries the public code repeats k and v for all heads before each of its forward
 * blocks: H times on ranks r < H and H + 1 times on the others. It does not without grouped
 * queries, nor backward. */
START_TEST(sched_forms_repeat_heads_as_the_public_code_does)
{
    for (int gqa = 0; gqa < 2; gqa++) {
        LhProgramParams p = make_params(8, gqa, LH_PASS_FWD);

        for (uint32_t rank = 0; rank < 8; rank++) {
            const Letters z = letters(&p, rank);
            const uint64_t io = 2 * z.q + z.kv + z.s;

            set_option(&p, "published_code", true);
            g_autoptr(LhProgram) program = make("dfa-balanced", &p);
            ck_assert_uint_eq(program->closed->peak_bytes(&p, rank),
                              io + z.q + 2 * z.s + 2 * (2 * z.q + z.kv + 2 * z.s) +
                                  (gqa ? 2 * z.q : 0));
            ck_assert_uint_eq(count(program, rank).peak, program->closed->peak_bytes(&p, rank));
            ck_assert_uint_eq(count_kernel(program, rank, LH_KERNEL_ID_expand_kv),
                              gqa ? (rank < 4 ? 4 : 5) : 0);
            set_option(&p, "published_code", false);
            g_autoptr(LhProgram) plain = make("dfa-balanced", &p);
            ck_assert_uint_eq(count_kernel(plain, rank, LH_KERNEL_ID_expand_kv), 0);
        }
    }
}
END_TEST

/* Counts forward blocks, [query rank * ranks + key rank]. The key rows of a block arrive with
 * its message, so the walk needs only what a step states about itself. */
static void
count_blocks(const char *name, bool published, uint32_t ranks, unsigned *blocks)
{
    LhProgramParams p = make_params(ranks, false, LH_PASS_FWD);
    LhOpBuffer buffer = { 0 };

    set_option(&p, "published_code", published);
    g_autoptr(LhProgram) program = make(name, &p);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        LhCursor cursor;

        lh_cursor_init(&cursor, program, rank);
        while (lh_cursor_step(&cursor, &buffer)) {
            for (uint32_t i = 0; i < buffer.ops_count; i++) {
                const LhOp *op = &buffer.ops[i];
                const bool attends = op->kind == LH_OP_COMPUTE &&
                                     lh_kernels[op->compute.kernel]->effect == LH_EFFECT_ATTEND;
                const uint32_t other = (rank + ranks - op->step % ranks) % ranks;
                const bool own_q =
                    attends && program->slots[op->compute.regions[0].slot].role == LH_SLOT_INPUT;

                if (attends)
                    blocks[own_q ? rank * ranks + other : other * ranks + rank]++;
            }
        }
    }
    lh_op_buffer_clear(&buffer);
}

static unsigned
missing_blocks(const char *name, bool published, uint32_t ranks)
{
    g_autofree unsigned *blocks = g_new0(unsigned, (gsize)ranks *ranks);
    unsigned missing = 0;

    count_blocks(name, published, ranks, blocks);
    for (uint32_t q = 0; q < ranks; q++) {
        for (uint32_t k = 0; k < ranks; k++) {
            ck_assert_uint_le(blocks[q * ranks + k], k <= q ? 1 : 0);
            missing += k <= q && blocks[q * ranks + k] == 0 ? 1 : 0;
        }
    }
    return missing;
}

START_TEST(sched_forms_cover_every_block_once)
{
    for (unsigned k = 0; k < G_N_ELEMENTS(rank_counts); k++) {
        const uint32_t ranks = rank_counts[k];

        ck_assert_uint_eq(missing_blocks("ring", false, ranks), 0);
        ck_assert_uint_eq(missing_blocks("dfa-unbalanced", false, ranks), 0);
        ck_assert_uint_eq(missing_blocks("dfa-balanced", false, ranks), 0);
        /* The public code loses floor(P / 2) blocks when P is odd. */
        ck_assert_uint_eq(missing_blocks("dfa-balanced", true, ranks),
                          ranks % 2 == 0 ? 0 : ranks / 2);
    }
}
END_TEST

START_TEST(sched_forms_know_idle_time)
{
    for (uint32_t ranks = 1; ranks <= 33; ranks++) {
        const LhProgramParams p = make_params(ranks, false, LH_PASS_FWD);

        for (unsigned i = 0; i < G_N_ELEMENTS(expected); i++) {
            const LhClosedForms *closed =
                lh_closed_forms(lh_schedule_find(expected[i].name, NULL), &p);
            uint64_t total = 0, largest = 0;

            /* Steps are in lockstep, but in each of these schedules one rank works in every
             * step: the makespan is the largest work. */
            for (uint32_t rank = 0; rank < ranks; rank++) {
                total += expected[i].pairs(&p, rank);
                largest = MAX(largest, expected[i].pairs(&p, rank));
            }
            ck_assert_double_eq_tol(closed->idle_flops(&p),
                                    1 - (double)total / (double)(largest * ranks), 1e-12);
        }
    }
}
END_TEST

START_TEST(sched_forms_reach_the_limits_of_idle_time)
{
    LhProgramParams p = make_params(8, false, LH_PASS_FWD);

    p.attention.seq_length = 8 << 24;
    ck_assert_double_eq_tol(lh_schedule_find("ring", NULL)->closed.idle_flops(&p), 7.0 / 15, 1e-6);
    ck_assert_double_eq_tol(lh_schedule_find("dfa-unbalanced", NULL)->closed.idle_flops(&p),
                            7.0 / 15, 1e-6);
    ck_assert_double_eq_tol(lh_schedule_find("dfa-balanced", NULL)->closed.idle_flops(&p), 1.0 / 9,
                            1e-6);
    ck_assert_double_eq_tol(lh_schedule_find("ring", NULL)->closed.idle_unit(&p), 7.0 / 16, 1e-15);
    ck_assert_double_eq_tol(lh_schedule_find("dfa-unbalanced", NULL)->closed.idle_unit(&p),
                            7.0 / 16, 1e-15);
    ck_assert_double_eq_tol(lh_schedule_find("dfa-balanced", NULL)->closed.idle_unit(&p), 1.0 / 10,
                            1e-15);
    p.ranks = 7;
    ck_assert_double_eq(lh_schedule_find("dfa-balanced", NULL)->closed.idle_unit(&p), 0);
    ck_assert_double_eq(lh_schedule_find("dfa-balanced", NULL)->closed.idle_flops(&p), 0);
}
END_TEST

/* Whether the first compute op of a step waits for an exchange posted earlier in that step. */
static bool
waits_for_exchange(const LhOpBuffer *buffer)
{
    uint32_t exchange = LH_OP_NONE;

    for (uint32_t k = 0; k < buffer->ops_count; k++) {
        const LhOp *op = &buffer->ops[k];

        if (op->kind == LH_OP_EXCHANGE)
            exchange = op->id;
        if (op->kind != LH_OP_COMPUTE)
            continue;
        if (exchange == LH_OP_NONE)
            return false;
        ck_assert_uint_gt(op->after_count, 0);
        ck_assert_uint_ge(op->after[0], exchange);
        return true;
    }
    return false;
}

/* Walks every schedule of the table op by op, without the verifier. */
START_TEST(sched_forms_hold_in_every_schedule)
{
    const LhSchedule *schedule = lh_schedules[_i];
    unsigned programs = 0;

    for (unsigned k = 0; k < 3 * G_N_ELEMENTS(rank_counts); k++) {
        const LhProgramParams wanted =
            make_params(rank_counts[k / 3], k % 2 == 0, (LhPass)(LH_PASS_FWD + k % 3));
        g_autoptr(LhProgram) program = fitting_program(schedule, &wanted);
        const LhClosedForms *closed = lh_closed_forms(schedule, &wanted);

        for (uint32_t rank = 0; program != NULL && rank < wanted.ranks; rank++) {
            const LhProgramParams *p = &program->params;
            const Counted counted = count(program, rank);

            if (closed->bytes_sent != NULL)
                ck_assert_uint_eq(closed->bytes_sent(p, rank), counted.bytes);
            if (closed->flops != NULL)
                ck_assert_uint_eq(closed->flops(p, rank), counted.flops);
            if (closed->peak_bytes != NULL)
                ck_assert_uint_eq(closed->peak_bytes(p, rank), counted.peak);
        }
        programs += program != NULL ? 1 : 0;
    }
    ck_assert_uint_gt(programs, 0);
}
END_TEST

/* Without overlap, the first compute op of every step comes after all messages so far. */
START_TEST(sched_forms_obey_overlap)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(expected); i++) {
        LhProgramParams p = make_params(5, false, LH_PASS_BOTH);
        LhOpBuffer buffer = { 0 };
        unsigned waits = 0;

        set_option(&p, "no_overlap", 1);
        g_autoptr(LhProgram) program = make(expected[i].name, &p);
        for (uint32_t rank = 0; rank < p.ranks; rank++) {
            LhCursor cursor;

            lh_cursor_init(&cursor, program, rank);
            while (lh_cursor_step(&cursor, &buffer))
                waits += waits_for_exchange(&buffer) ? 1 : 0;
        }
        ck_assert_uint_gt(waits, 0);
        lh_op_buffer_clear(&buffer);
    }
}
END_TEST

static unsigned
count_kind(const LhProgram *program, uint32_t rank, LhOpKind kind)
{
    LhOpBuffer buffer = { 0 };
    unsigned ops = 0;
    LhCursor cursor;

    lh_cursor_init(&cursor, program, rank);
    while (lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; i < buffer.ops_count; i++)
            ops += buffer.ops[i].kind == kind ? 1 : 0;
    }
    lh_op_buffer_clear(&buffer);
    return ops;
}

START_TEST(sched_forms_sync_where_the_public_code_does)
{
    LhProgramParams p = make_params(8, false, LH_PASS_BOTH);
    g_autoptr(LhProgram) plain = make("dfa-balanced", &p);
    g_autoptr(LhProgram) published = NULL;

    set_option(&p, "published_code", true);
    published = make("dfa-balanced", &p);
    for (uint32_t rank = 0; rank < 8; rank++) {
        ck_assert_uint_eq(count_kind(plain, rank, LH_OP_SYNC), 0);
        ck_assert_uint_eq(count_kind(published, rank, LH_OP_SYNC), 2 * (8 / 2 + 1));
    }
}
END_TEST

static void
check_same_op(const LhOp *a, const LhOp *b)
{
    ck_assert_uint_eq(a->id, b->id);
    ck_assert_uint_eq(a->kind, b->kind);
    ck_assert_uint_eq(a->step, b->step);
    ck_assert_uint_eq(a->after_count, b->after_count);
    for (unsigned i = 0; i < a->after_count; i++)
        ck_assert_uint_eq(a->after[i], b->after[i]);
}

/* A copied cursor yields the same steps as the original, with any buffer and with other ranks
 * walked in between. */
START_TEST(sched_forms_cursors_are_plain_data)
{
    for (unsigned i = 0; lh_schedules[i] != NULL; i++) {
        const LhProgramParams p = make_params(4, true, LH_PASS_BOTH);
        g_autoptr(LhProgram) program = fitting_program(lh_schedules[i], &p);
        LhOpBuffer a = { 0 }, b = { 0 };
        LhCursor cursor, other;
        uint32_t next_id = 0;

        ck_assert_msg(program != NULL, "%s refuses 4 ranks", lh_schedules[i]->name);
        lh_cursor_init(&cursor, program, 3);
        lh_cursor_init(&other, program, 1);
        for (;;) {
            LhCursor copy = cursor;
            const bool more = lh_cursor_step(&cursor, &a);

            lh_cursor_step(&other, &b);
            ck_assert(lh_cursor_step(&copy, &b) == more);
            ck_assert_mem_eq(&copy, &cursor, sizeof(copy));
            ck_assert_uint_eq(a.ops_count, b.ops_count);
            ck_assert_uint_eq(a.parts_count, b.parts_count);
            for (uint32_t k = 0; k < a.ops_count; k++) {
                ck_assert_uint_eq(a.ops[k].id, next_id++);
                check_same_op(&a.ops[k], &b.ops[k]);
            }
            if (!more)
                break;
        }
        ck_assert_uint_eq(a.ops_count, 0);
        lh_op_buffer_clear(&a);
        lh_op_buffer_clear(&b);
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

START_TEST(sched_forms_refuse_what_cannot_be)
{
    LhProgramParams p = make_params(4, false, LH_PASS_BOTH);

    p.mask.causal = false;
    check_refused("dfa-balanced", &p, "use dfa-unbalanced or ring");
    p = make_params(4, false, LH_PASS_BOTH);
    p.attention.seq_length = 30;
    check_refused("ring", &p, "nearest legal lengths: 28, 32");
    p.attention.seq_length = 28;
    check_refused("zigzag", &p, "nearest legal lengths: 24, 32");
    p.attention.seq_length = 3;
    check_refused("striped", &p, "nearest legal length: 4");
    p = make_params(4, false, LH_PASS_BOTH);
    p.attention.groups = 3;
    check_refused("ring", &p, "nearest legal numbers of groups: 2, 4");
    p = make_params(4, false, LH_PASS_BOTH);
    p.ranks = 0;
    check_refused("ring", &p, "0 ranks");
    p = make_params(4, false, LH_PASS_BOTH);
    p.attention.heads = p.attention.groups = 1 << 30;
    p.attention.seq_length = 1 << 30;
    check_refused("ring", &p, "2^32");
    p.attention.heads = p.attention.groups = 1 << 20;
    check_refused("ring", &p, "2^63");
    /* States have d^2 elements per rank. */
    p = make_params(1 << 16, false, LH_PASS_BOTH);
    p.attention.linear = true;
    p.attention.heads = p.attention.groups = p.attention.head_dim = p.attention.batch = 1 << 14;
    p.attention.seq_length = 1 << 16;
    check_refused("lasp", &p, "2^63");
    /* Flops that grow with N, not N^2, do not overflow. */
    p = make_params(64, false, LH_PASS_BOTH);
    p.attention.linear = true;
    p.attention.seq_length = 1 << 30;
    p.attention.head_dim = 128;
    lh_program_free(make("lasp", &p));
}
END_TEST

START_TEST(sched_forms_suggest_a_name)
{
    g_autoptr(GError) error = NULL;

    ck_assert_ptr_null(lh_schedule_find("zigzga", &error));
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_INPUT));
    ck_assert_ptr_nonnull(strstr(error->message, "did you mean \"zigzag\"?"));
    ck_assert_ptr_nonnull(strstr(error->message, "dfa-balanced"));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        sched_forms_hold_exactly,
        sched_forms_agree_with_the_papers,
        sched_forms_count_wire_dtypes,
        sched_forms_follow_the_published_code,
        sched_forms_repeat_heads_as_the_public_code_does,
        sched_forms_cover_every_block_once,
        sched_forms_know_idle_time,
        sched_forms_reach_the_limits_of_idle_time,
        sched_forms_obey_overlap,
        sched_forms_sync_where_the_public_code_does,
        sched_forms_cursors_are_plain_data,
        sched_forms_refuse_what_cannot_be,
        sched_forms_suggest_a_name,
    };
    Suite *suite = suite_create("sched_forms");
    TCase *cases = tcase_create("sched_forms");
    SRunner *runner;
    int failed, schedules_count = 0;

    while (lh_schedules[schedules_count] != NULL)
        schedules_count++;
    for (size_t i = 0; i < G_N_ELEMENTS(tests); i++)
        tcase_add_test(cases, tests[i]);
    tcase_add_loop_test(cases, sched_forms_hold_in_every_schedule, 0, schedules_count);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
