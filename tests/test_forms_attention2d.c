/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention2D against numbers worked out by hand and against brute force: bytes, pairs, memory and
 * idle time of all kinds of grids; proofs for every grid; executed programs. Shape: 6 tokens per
 * rank, 4 heads of 8 in bf16, so Q = 384, KV = 768 or 384 bytes (4 or 2 key-value heads), S = 96.
 */
#include "base/error.h"
#include "options.h"
#include "reference/tolerance.h"
#include "run_tests.h"
#include "sched/common/grid.h"
#include "share.h"
#include "sim/sim.h"
#include "verify/verify.h"

#include <string.h>

#define TOKENS 6
#define Q 384
#define S 96

static const char *const names[] = { "attention2d-no", "attention2d-o" };

static LhProgramParams
make_params(uint32_t rows, uint32_t columns, uint32_t groups, LhPass pass)
{
    LhProgramParams p = {
        .attention = { .batch = 1,
                       .seq_length = TOKENS * (uint64_t)rows * columns,
                       .heads = 4,
                       .groups = groups,
                       .head_dim = 8,
                       .dtype = LH_DTYPE_BF16 },
        .ranks = rows * columns,
        .mask.causal = true,
        .pass = pass,
    };

    set_pair(&p, "grid", rows, columns);
    return p;
}

static LhProgram *
make(const char *name, const LhProgramParams *params)
{
    g_autoptr(GError) error = NULL;
    LhProgram *program = lh_program_new(lh_schedule_find(name, NULL), params, &error);

    ck_assert_msg(program != NULL, "%s", error == NULL ? "" : error->message);
    return program;
}

static const LhClosedForms *
forms(const char *name)
{
    return &lh_schedule_find(name, NULL)->closed;
}

/* ---- by hand ---- */

/* Bytes sent by a rank whose k, v stay in place in the transpose (otherwise + KV forward, + dk, dv
 * backward), and which ranks those are. */
typedef struct {
    uint32_t rows, columns;
    uint64_t fwd, bwd, fwd_grouped, bwd_grouped;
    const char *fixed; /* by rank: 1 stays, 0 moves */
} Sent;

static const Sent sent[] = {
    /* (Pc-1)(2Q + S) + (Pr-1) KV; (Pc-1)(4Q + S) + (Pr-1) 2 KV */
    { 1, 4, 2592, 4896, 2592, 4896, "1111" },
    { 4, 1, 2304, 4608, 1152, 2304, "1111" },
    { 2, 2, 1632, 3168, 1248, 2400, "1001" },
    { 2, 3, 2496, 4800, 2112, 4032, "100001" },
    { 3, 2, 2400, 4704, 1632, 3168, "100001" },
    { 4, 4, 4896, 9504, 3744, 7200, "1000010000100001" },
    { 2, 8, 6816, 12960, 6432, 12192, "1000000000000001" },
};

START_TEST(attention2d_sends_what_is_worked_out)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(sent); i++) {
        const Sent *x = &sent[i];

        for (uint32_t rank = 0; rank < x->rows * x->columns; rank++) {
            for (unsigned grouped = 0; grouped < 2; grouped++) {
                const uint64_t kv = grouped ? 384 : 768, moved = x->fixed[rank] == '1' ? 0 : kv;
                const uint64_t fwd = grouped ? x->fwd_grouped : x->fwd;
                const uint64_t bwd = grouped ? x->bwd_grouped : x->bwd;
                LhProgramParams p = make_params(x->rows, x->columns, grouped ? 2 : 4, LH_PASS_FWD);

                ck_assert_uint_eq(forms(names[0])->bytes_sent(&p, rank), fwd + moved);
                /* Backward alone transposes k, v again; after the forward pass they are still
                 * there. */
                p.pass = LH_PASS_BWD;
                ck_assert_uint_eq(forms(names[0])->bytes_sent(&p, rank), bwd + 2 * moved);
                p.pass = LH_PASS_BOTH;
                ck_assert_uint_eq(forms(names[0])->bytes_sent(&p, rank), fwd + bwd + 2 * moved);
                set_option(&p, "gather_delta", true); /* S replaces Q */
                ck_assert_uint_eq(forms(names[0])->bytes_sent(&p, rank),
                                  fwd + bwd + 2 * moved - (x->columns - 1) * (Q - S));
                set_option(&p, "local_kv", true);
                set_option(&p, "gather_delta", false);
                set_option(&p, "gradient_wire",
                           LH_WIRE_FP32); /* dq and dk, dv have twice the bytes */
                ck_assert_uint_eq(forms(names[0])->bytes_sent(&p, rank),
                                  fwd + bwd + (x->columns - 1) * Q + (x->rows - 1) * kv);
            }
        }
    }
}
END_TEST

/* Pairs per rank, causal. */
typedef struct {
    uint32_t rows, columns;
    bool local_kv;
    uint64_t pairs[16];
} Pairs;

static const Pairs pairs[] = {
    { 1, 4, false, { 84, 78, 72, 66 } },
    { 4, 1, false, { 66, 72, 78, 84 } },
    { 2, 2, false, { 78, 78, 66, 78 } },
    { 2, 3, false, { 114, 120, 108, 114, 102, 108 } },
    { 3, 2, false, { 108, 114, 120, 102, 108, 114 } },
    { 4,
      4,
      false,
      { 300, 300, 300, 300, 276, 300, 300, 300, 276, 276, 300, 300, 276, 276, 276, 300 } },
    { 2,
      8,
      false,
      { 312, 312, 300, 312, 300, 300, 288, 300, 288, 288, 276, 288, 276, 276, 264, 276 } },
    { 2, 2, true, { 78, 84, 66, 72 } },
    { 2, 3, true, { 120, 126, 108, 114, 96, 102 } },
};

START_TEST(attention2d_computes_what_is_worked_out)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(pairs); i++) {
        const Pairs *x = &pairs[i];
        LhProgramParams p = make_params(x->rows, x->columns, 4, LH_PASS_BOTH);
        uint64_t total = 0;

        set_option(&p, "local_kv", x->local_kv);
        for (uint32_t rank = 0; rank < p.ranks; rank++) {
            ck_assert_uint_eq(forms(names[1])->flops(&p, rank), 14 * 4 * 8 * x->pairs[rank]);
            total += x->pairs[rank];
        }
        ck_assert_uint_eq(total, p.attention.seq_length * (p.attention.seq_length + 1) / 2);
    }
}
END_TEST

/* Peak memory of a rank of a 2x2 grid that gets its k, v from another one, and of one that keeps
 * its own; KV = 768. */
START_TEST(attention2d_holds_what_is_worked_out)
{
    static const struct {
        const char *name;
        LhPass pass;
        LhWireDtype wire;
        uint64_t moving, staying;
    } cases[] = {
        /* q, kv, o, lse 1632; kt 768, 2 (2Q + S) 1728, 2 KV 1536 */
        { "attention2d-no", LH_PASS_FWD, LH_WIRE_DEFAULT, 5664, 4896 },
        /* and do, dq, dkv 3168; kt, 2 (4Q + S) 3264, 2 (KV + KV) 3072 */
        { "attention2d-no", LH_PASS_BWD, LH_WIRE_DEFAULT, 10272, 9504 },
        { "attention2d-no", LH_PASS_BOTH, LH_WIRE_FP32, 12576, 11808 },
        /* kt, 2 KV, 1 (2Q + S) 864, Q + S 480, fp32 Q + S 864 */
        { "attention2d-o", LH_PASS_FWD, LH_WIRE_DEFAULT, 6144, 5376 },
        /* kt, 2 KV, 3Q + S 1248, 2 Q of dq, 2 KV of dkv, fp32 2 Q 1536 and 2 KV 3072 */
        { "attention2d-o", LH_PASS_BOTH, LH_WIRE_DEFAULT, 13632, 12864 },
        /* only received tensors are in fp32, and each is sent from a buffer: 768 and 1536 */
        { "attention2d-o", LH_PASS_BWD, LH_WIRE_FP32, 13632, 12864 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        LhProgramParams p = make_params(2, 2, 4, cases[i].pass);

        set_option(&p, "gradient_wire", cases[i].wire);
        ck_assert_uint_eq(forms(cases[i].name)->peak_bytes(&p, 1), cases[i].moving);
        ck_assert_uint_eq(forms(cases[i].name)->peak_bytes(&p, 3), cases[i].staying);
        if (strcmp(cases[i].name, "attention2d-no") == 0)
            continue;
        /* One more result, Q + S, in forward. */
        set_option(&p, "published_code", true);
        ck_assert_uint_eq(forms(cases[i].name)->peak_bytes(&p, 1),
                          cases[i].moving + (cases[i].pass == LH_PASS_FWD ? Q + S : 0));
    }
}
END_TEST

/* Calls of forward and backward attention per rank: one per block of keys, or, in the paper's
 * variant, one for all keys of the column and the queries of another rank. */
START_TEST(attention2d_calls_the_kernel_as_the_paper_does)
{
    static const struct {
        uint32_t rows, columns, calls, published;
    } cases[] = {
        { 1, 4, 4 + 4, 4 + 4 },
        { 4, 1, 4 + 4, 4 + 4 },
        { 2, 2, 3 + 4, 4 + 4 },
        { 3, 4, 6 + 8, 12 + 12 },
    };

    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(cases); i++) {
        LhProgramParams p = make_params(cases[i / 2].rows, cases[i / 2].columns, 4, LH_PASS_BOTH);
        const uint32_t wanted = i % 2 == 0 ? cases[i / 2].calls : cases[i / 2].published;
        LhOpBuffer buffer = { 0 };
        LhCursor cursor;
        uint32_t calls = 0;

        set_option(&p, "published_code", i % 2);
        g_autoptr(LhProgram) program = make("attention2d-o", &p);
        lh_cursor_init(&cursor, program, 1);
        while (lh_cursor_step(&cursor, &buffer)) {
            for (uint32_t k = 0; k < buffer.ops_count; k++)
                calls += buffer.ops[k].kind == LH_OP_COMPUTE &&
                         lh_kernels[buffer.ops[k].compute.kernel]->cost == LH_COST_ATTENTION;
        }
        lh_op_buffer_clear(&buffer);
        ck_assert_uint_eq(calls, wanted);
    }
}
END_TEST

START_TEST(attention2d_compares_with_ring)
{
    static const uint32_t sides[] = { 2, 3, 4, 5, 6, 8 };

    for (unsigned i = 0; i < G_N_ELEMENTS(sides); i++) {
        const uint32_t side = sides[i];
        LhProgramParams p = make_params(side, side, 4, LH_PASS_FWD);
        const uint64_t statistics = (uint64_t)(side - 1) * S;
        const uint64_t bytes = forms(names[0])->bytes_sent(&p, 1) - statistics; /* rank 1 moves */
        const uint64_t ring = forms("ring")->bytes_sent(&p, 1);

        ck_assert_uint_eq(bytes, (4 * (side - 1) + 2) * (uint64_t)Q);
        ck_assert_uint_eq(ring, 2 * (side * side - 1) * (uint64_t)Q);
        if (side == 2)
            ck_assert_uint_eq(bytes, ring);
        else
            ck_assert_uint_lt(bytes, ring);
        p.pass = LH_PASS_BOTH;
        ck_assert_uint_eq(forms(names[0])->bytes_sent(&p, 1) - 2 * statistics,
                          (12 * (side - 1) + 4) * (uint64_t)Q);
    }
}
END_TEST

/* ---- by brute force ---- */

static uint64_t
brute_pairs(const LhProgramParams *p, uint32_t rank)
{
    const LhGrid grid = lh_grid_of(p);
    const uint64_t row = rank % grid.rows, column = rank / grid.rows;
    const bool local_kv = option_of(p, "local_kv") != 0;
    uint64_t count = 0;

    for (uint64_t q = row; q < p->attention.seq_length; q += grid.rows) {
        for (uint64_t k = 0; k < p->attention.seq_length; k++) {
            const bool mine =
                local_kv ? k % p->ranks / grid.rows == column : k % grid.columns == column;

            count += mine && lh_mask_sees(&p->mask, q, k) ? 1 : 0;
        }
    }
    return count;
}

static void
check_pairs(const LhProgramParams *p)
{
    double total = 0, most = 0;

    for (uint32_t rank = 0; rank < p->ranks; rank++) {
        const uint64_t brute = brute_pairs(p, rank);

        ck_assert_uint_eq(forms(names[0])->flops(p, rank), 4 * 4 * 8 * brute);
        total += (double)brute;
        most = MAX(most, (double)brute);
    }
    ck_assert_double_eq_tol(forms(names[0])->idle_flops(p), 1 - total / (most * p->ranks), 1e-12);
}

static const uint64_t ends[] = { 5, 6, 29, 0 };

START_TEST(attention2d_counts_pairs)
{
    for (uint32_t rows = 1; rows <= 6; rows++) {
        for (uint32_t columns = 1; columns <= 6; columns++) {
            for (unsigned local_kv = 0; local_kv < 2; local_kv++) {
                LhProgramParams p = make_params(rows, columns, 4, LH_PASS_FWD);
                uint64_t documents[G_N_ELEMENTS(ends)];

                set_option(&p, "local_kv", local_kv != 0);
                check_pairs(&p);
                p.mask.window = 7;
                check_pairs(&p);
                memcpy(documents, ends, sizeof(ends));
                documents[3] = p.attention.seq_length;
                if (documents[3] <= documents[2])
                    continue;
                p.mask = (LhMaskRule){ true, 0, documents, G_N_ELEMENTS(ends) };
                check_pairs(&p);
                p.mask.causal = false;
                check_pairs(&p);
                p.mask = (LhMaskRule){ 0 };
                check_pairs(&p);
            }
        }
    }
}
END_TEST

START_TEST(attention2d_is_idle_as_simulated)
{
    static const uint32_t grids[][2] = { { 2, 2 }, { 4, 4 }, { 6, 6 }, { 2, 3 },
                                         { 4, 2 }, { 1, 4 }, { 4, 1 }, { 2, 8 } };
    g_autoptr(GError) error = NULL;
    g_autoptr(LhTopology) topology = lh_topology_load("dgx-a100-80g", &error);
    g_autoptr(LhDevice) device =
        topology == NULL ? NULL : lh_device_load(topology->device_name, &error);

    ck_assert_msg(device != NULL, "%s", error == NULL ? "" : error->message);
    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(grids); i++) {
        const uint32_t rows = grids[i / 2][0], columns = grids[i / 2][1];
        LhProgramParams p = make_params(rows, columns, 4, LH_PASS_FWD);
        g_autoptr(LhProgram) program = NULL;
        g_autoptr(LhSimResult) result = NULL;
        LhNetwork network;

        p.attention.batch = 1 << 20; /* so that a pair takes more than a picosecond */
        program = make(names[i % 2], &p);
        const LhSimParams sim = {
            .program = program, .network = &network, .device = device, .cost = LH_COST_FLOPS
        };

        ck_assert(lh_network_init(&network, topology, (p.ranks + 7) / 8, p.ranks, NULL, &error));
        result = lh_simulate(&sim, &error);
        ck_assert_msg(result != NULL, "%s", error == NULL ? "" : error->message);
        ck_assert_double_eq_tol(lh_sim_bubble_fraction(result), forms(names[i % 2])->idle_flops(&p),
                                1e-6);
        if (rows == columns)
            ck_assert_double_eq_tol(forms(names[0])->idle_flops(&p),
                                    (rows - 1.0) / ((double)p.attention.seq_length + rows), 1e-12);
    }
}
END_TEST

/* ---- grids ---- */

static uint64_t
largest_bytes(const LhProgramParams *p)
{
    uint64_t most = 0;

    for (uint32_t rank = 0; rank < p->ranks; rank++)
        most = MAX(most, forms(names[0])->bytes_sent(p, rank));
    return most;
}

START_TEST(attention2d_takes_the_best_grid)
{
    static const uint32_t groups[] = { 4, 2, 1 };

    for (uint32_t ranks = 1; ranks <= 64; ranks++) {
        for (unsigned i = 0; i < G_N_ELEMENTS(groups); i++) {
            LhProgramParams p = make_params(ranks, 1, groups[i], LH_PASS_BOTH);
            LhOptionValue grid;
            uint64_t best;

            set_pair(&p, "grid", 0, 0);
            p = lh_schedule_params(lh_schedule_find(names[0], NULL), &p);
            grid = lh_option_get(&p, &lh_option_grid);
            ck_assert_uint_eq(grid.first * grid.second, ranks);
            best = largest_bytes(&p);
            for (uint32_t rows = 1; rows <= ranks; rows++) {
                if (ranks % rows != 0)
                    continue;
                set_pair(&p, "grid", rows, ranks / rows);
                ck_assert_uint_le(best, largest_bytes(&p));
            }
        }
    }
}
END_TEST

START_TEST(attention2d_grids_are_known)
{
    static const uint32_t cases[][4] = {
        /* ranks, groups, rows, columns */
        { 1, 4, 1, 1 }, { 2, 4, 2, 1 },  { 8, 4, 4, 2 },   { 16, 4, 4, 4 },
        { 7, 4, 7, 1 }, { 64, 4, 8, 8 }, { 64, 1, 16, 4 }, { 16, 1, 8, 2 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        LhProgramParams p = make_params(cases[i][0], 1, cases[i][1], LH_PASS_FWD);

        set_pair(&p, "grid", 0, 0);
        for (int pass = LH_PASS_FWD; pass <= LH_PASS_BOTH; pass++) {
            LhOptionValue grid;

            p.pass = (LhPass)pass;
            g_autoptr(LhProgram) program = make(names[1], &p);
            grid = lh_option_get(&program->params, &lh_option_grid);
            ck_assert_uint_eq(grid.first, cases[i][2]);
            ck_assert_uint_eq(grid.second, cases[i][3]);
        }
        set_pair(&p, "grid", 1, cases[i][0]); /* an explicit grid is kept */
        g_autoptr(LhProgram) flat = make(names[0], &p);
        ck_assert_uint_eq(lh_grid_of(&flat->params).rows, 1);
    }
}
END_TEST

static void
check_refused(const LhProgramParams *p, const char *words)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(GError) error = NULL;

        ck_assert_ptr_null(lh_program_new(lh_schedule_find(names[i], NULL), p, &error));
        ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_NO));
        ck_assert_msg(strstr(error->message, words) != NULL, "%s", error->message);
    }
}

START_TEST(attention2d_refuses_other_grids)
{
    LhProgramParams p = make_params(4, 4, 4, LH_PASS_FWD);

    set_pair(&p, "grid", 4, 3);
    check_refused(&p, "a grid of 4x3 has 12 places, not 16; nearest legal grids: 4x4, 8x2");
    set_pair(&p, "grid", 5, 3);
    check_refused(&p, "a grid of 5x3 has 15 places, not 16; nearest legal grids: 4x4, 8x2");
    set_pair(&p, "grid", 99, 1);
    check_refused(&p, "a grid of 99x1 has 99 places, not 16; nearest legal grids: 16x1");
    p = make_params(4, 4, 4, LH_PASS_FWD);
    p.attention.seq_length = 100;
    check_refused(&p, "nearest legal lengths: 96, 112");
}
END_TEST

/* ---- programs ---- */

static LhVerdict *
prove(const LhProgram *program)
{
    LhVerdict *verdict = lh_verify(program);
    const LhProgramParams *p = &program->params;

    if (verdict->findings->len > 0) {
        g_autofree char *options =
            program->record == NULL ? NULL : g_strjoinv(", ", program->record);

        ck_abort_msg("%s, %s, N %u, pass %d, window %u, %u documents: %s", program->name, options,
                     (unsigned)p->attention.seq_length, (int)p->pass, (unsigned)p->mask.window,
                     p->mask.documents_count,
                     g_array_index(verdict->findings, LhFinding, 0).message);
    }
    return verdict;
}

/* Both schedules, which must send and compute the same on every rank. */
static void
prove_both(const LhProgramParams *p)
{
    g_autoptr(LhProgram) no = make(names[0], p), o = make(names[1], p);
    g_autoptr(LhVerdict) of_no = prove(no), of_o = prove(o);

    for (uint32_t rank = 0; rank < p->ranks; rank++) {
        ck_assert_uint_eq(of_no->bytes_sent[rank], of_o->bytes_sent[rank]);
        ck_assert_uint_eq(of_no->flops[rank], of_o->flops[rank]);
    }
}

/* Each option alone, with alternating passes. */
static void
prove_variants(uint32_t rows, uint32_t columns)
{
    const uint64_t length = TOKENS * (uint64_t)rows * columns;
    const uint64_t documents[] = { 1, length / 2, length };

    for (unsigned variant = 0; variant < 24; variant++) {
        LhProgramParams p = make_params(rows, columns, 2, (LhPass)(1 + variant % 3));

        if (!test_takes_next(0))
            continue;
        set_option(&p, "local_kv", variant % 2 != 0);
        set_option(&p, "gather_delta", variant % 5 < 2);
        set_option(&p, "no_overlap", variant % 7 >= 4);
        set_option(&p, "published_code", variant / 3 % 2 != 0);
        set_option(&p, "gradient_wire", variant % 4 < 2 ? LH_WIRE_DEFAULT : LH_WIRE_FP32);
        p.mask.causal = variant % 8 != 3;
        p.mask.window = variant % 8 == 4 ? 5 : 0;
        if (variant % 8 == 5 && rows * columns > 1) {
            p.mask.document_ends = documents;
            p.mask.documents_count = G_N_ELEMENTS(documents);
        }
        if (variant % 8 == 6)
            p.attention.seq_length = p.ranks; /* nothing below the diagonal */
        if (variant % 8 == 7)
            p.attention.dtype = LH_DTYPE_FP32;
        prove_both(&p);
    }
}

START_TEST(attention2d_is_proven)
{
    for (uint32_t ranks = 1; ranks <= 16; ranks++) {
        for (uint32_t rows = 1; rows <= ranks; rows++) {
            if (ranks % rows == 0)
                prove_variants(rows, ranks / rows);
        }
    }
}
END_TEST

START_TEST(attention2d_is_proven_for_more_ranks)
{
    static const uint32_t grids[][2] = { { 5, 5 },  { 1, 25 }, { 25, 1 }, { 6, 6 },
                                         { 4, 9 },  { 12, 3 }, { 8, 8 },  { 16, 4 },
                                         { 4, 16 }, { 2, 32 }, { 64, 1 }, { 1, 64 } };

    for (unsigned i = 0; i < G_N_ELEMENTS(grids); i++) {
        for (int pass = LH_PASS_FWD; pass <= LH_PASS_BOTH; pass++) {
            LhProgramParams p = make_params(grids[i][0], grids[i][1], 2, (LhPass)pass);

            if (!test_takes_of(3 * i + (unsigned)pass, 7))
                continue;
            prove_both(&p);
            set_option(&p, "local_kv", true);
            set_option(&p, "gather_delta", true);
            prove_both(&p);
        }
    }
}
END_TEST

/* Counts compute ops that may overlap with an exchange posted before them, judged by the waits of
 * the in-order compute stream. */
static unsigned
overlapping_ops(const LhProgram *program, uint32_t rank)
{
    uint32_t posted[LH_STREAMS_MAX] = { 0 }, done[LH_STREAMS_MAX] = { 0 }; /* ids + 1 */
    g_autofree uint8_t *streams = g_new0(uint8_t, 4096);
    LhOpBuffer buffer = { 0 };
    unsigned overlapping = 0;
    LhCursor cursor;

    lh_cursor_init(&cursor, program, rank);
    while (lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; i < buffer.ops_count; i++) {
            const LhOp *op = &buffer.ops[i];
            bool free_running = false;

            ck_assert_uint_lt(op->id, 4096);
            streams[op->id] = op->stream;
            if (op->kind == LH_OP_EXCHANGE || op->kind == LH_OP_COLLECTIVE)
                posted[op->stream] = op->id + 1;
            if (op->kind != LH_OP_COMPUTE)
                continue;
            for (unsigned k = 0; k < op->after_count; k++)
                done[streams[op->after[k]]] = MAX(done[streams[op->after[k]]], op->after[k] + 1);
            for (unsigned s = 1; s < program->streams_count; s++)
                free_running = free_running || done[s] < posted[s];
            overlapping += free_running;
        }
    }
    lh_op_buffer_clear(&buffer);
    return overlapping;
}

START_TEST(attention2d_overlaps_if_it_may)
{
    static const uint32_t grids[][2] = { { 3, 3 }, { 1, 5 }, { 5, 1 }, { 2, 4 }, { 4, 2 } };

    for (unsigned i = 0; i < G_N_ELEMENTS(grids); i++) {
        LhProgramParams p = make_params(grids[i][0], grids[i][1], 4, LH_PASS_BOTH);
        g_autoptr(LhProgram) no = make(names[0], &p), o = make(names[1], &p);
        g_autoptr(LhProgram) apart = NULL;

        set_option(&p, "no_overlap", 1);
        apart = make(names[1], &p);
        for (uint32_t rank = 0; rank < p.ranks; rank++) {
            ck_assert_uint_eq(overlapping_ops(no, rank), 0);
            ck_assert_uint_gt(overlapping_ops(o, rank), 0);
            ck_assert_uint_eq(overlapping_ops(apart, rank), 0);
        }
    }
}
END_TEST

/* ---- executed ---- */

static LhErrorReport
execute(const char *name, const LhProgramParams *p)
{
    g_autoptr(LhProgram) program = make(name, p);
    g_autoptr(LhNumerics) numerics = lh_numerics_new(p, 3, LH_INPUTS_NORMAL);
    g_autoptr(GError) error = NULL;
    LhNumericsLoad load = { numerics, program };
    const LhRunParams params = {
        .program = program,
        .backend = &lh_backend_cpu,
        .deadline_us = 60000000,
        .load = lh_numerics_load_part,
        .load_data = &load,
    };
    g_autoptr(LhRunResult) result = lh_execute(&params, &error);
    LhErrorReport report = { 0 };

    ck_assert_msg(result != NULL, "%s", error == NULL ? "" : error->message);
    lh_tolerance_compare(numerics, program, result, &report);
    for (uint32_t rank = 0; rank < p->ranks; rank++) {
        ck_assert_uint_eq(result->ranks[rank].bytes_sent, forms(name)->bytes_sent(p, rank));
        ck_assert_uint_eq(result->ranks[rank].flops, forms(name)->flops(p, rank));
        ck_assert_uint_eq(result->ranks[rank].peak_bytes, forms(name)->peak_bytes(p, rank));
    }
    return report;
}

/* In fp32 any two variants agree to 1e-5. */
static void
check_right(const char *name, const LhProgramParams *p)
{
    g_auto(LhErrorReport) report = execute(name, p);
    const LhGrid grid = lh_grid_of(p);

    for (uint32_t row = 0; row < report.rows_count; row++)
        ck_assert_msg(report.rows[row].ok && report.rows[row].rel_l2 < 1e-5,
                      "%s, grid %ux%u: %s: rel L2 %g", name, grid.rows, grid.columns,
                      report.rows[row].name, report.rows[row].rel_l2);
}

/* Options and masks, alternating. */
static void
check_right_in_turn(uint32_t rows, uint32_t columns, unsigned turn)
{
    LhProgramParams p = make_params(rows, columns, 2, LH_PASS_BOTH);
    const uint64_t documents[] = { 1, p.attention.seq_length / 2, p.attention.seq_length };

    if (!test_takes_of(turn, 11))
        return;
    p.attention.dtype = LH_DTYPE_FP32;
    set_option(&p, "local_kv", turn % 4 >= 2);
    set_option(&p, "gather_delta", turn % 3 == 0);
    set_option(&p, "no_overlap", turn % 7 == 0);
    set_option(&p, "published_code", turn / 2 % 2 != 0);
    p.mask = (LhMaskRule){ .causal = turn % 5 != 0, .window = turn % 5 == 1 ? 5 : 0 };
    if (turn % 5 == 2) {
        p.mask.document_ends = documents;
        p.mask.documents_count = G_N_ELEMENTS(documents);
    }
    check_right(names[turn % 2], &p);
}

static const uint32_t executed_ranks[] = { 2, 3, 4, 6, 8, 9, 12, 16 };

START_TEST(attention2d_is_right)
{
    unsigned turn = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(executed_ranks); i++) {
        for (uint32_t rows = 1; rows <= executed_ranks[i]; rows++) {
            for (unsigned k = 0; k < 4 && executed_ranks[i] % rows == 0; k++)
                check_right_in_turn(rows, executed_ranks[i] / rows, turn++);
        }
    }
}
END_TEST

/* In 16 bits, on the default grids, with data on the wire rounded as by default and in fp32. */
START_TEST(attention2d_is_within_the_gates)
{
    for (unsigned i = 0; i < 4 * G_N_ELEMENTS(executed_ranks); i++) {
        LhProgramParams p = make_params(executed_ranks[i / 4], 1, i % 8 < 4 ? 4 : 1, LH_PASS_BOTH);

        if (!test_takes_of(i, 7))
            continue;
        set_pair(&p, "grid", 0, 0);
        p.attention.seq_length = 16 * (uint64_t)p.ranks;
        p.attention.head_dim = 32;
        set_option(&p, "gradient_wire", i % 4 < 2 ? LH_WIRE_DEFAULT : LH_WIRE_FP32);
        g_auto(LhErrorReport) report = execute(names[i % 2], &p);

        for (uint32_t row = 0; row < report.rows_count; row++)
            ck_assert_msg(report.rows[row].ok, "%s, P %u: %s: rel L2 %g, worst row %g",
                          names[i % 2], p.ranks, report.rows[row].name, report.rows[row].rel_l2,
                          report.rows[row].row);
    }
}
END_TEST

LH_TEST_MAIN("forms_attention2d", attention2d_sends_what_is_worked_out,
             attention2d_computes_what_is_worked_out, attention2d_holds_what_is_worked_out,
             attention2d_calls_the_kernel_as_the_paper_does, attention2d_compares_with_ring,
             attention2d_counts_pairs, attention2d_is_idle_as_simulated,
             attention2d_takes_the_best_grid, attention2d_grids_are_known,
             attention2d_refuses_other_grids, attention2d_is_proven,
             attention2d_is_proven_for_more_ranks, attention2d_overlaps_if_it_may,
             attention2d_is_right, attention2d_is_within_the_gates)
