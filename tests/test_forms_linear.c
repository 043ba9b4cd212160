/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear attention end to end: bytes, flops and memory worked out by hand, idle time in the
 * simulator, proofs for every number of ranks, mistakes that the verifier must find, and runs
 * against the fp64 reference.
 */
#include "base/error.h"
#include "options.h"
#include "recording.h"
#include "reference/tolerance.h"
#include "run_tests.h"
#include "runtime/executor.h"
#include "sched/common/pass.h"
#include "share.h"
#include "sim/sim.h"
#include "verify/verify.h"

#include <math.h>
#include <string.h>

static const char *const names[] = { "lasp", "lasp2", "zeco" };
static const char *const by_heads[] = { "ulysses", "te-a2a", "megatron-tp-sp" };
static const LhPass passes[] = { LH_PASS_FWD, LH_PASS_BWD, LH_PASS_BOTH };

/* B = 1, h = 4, g = 2, d = 16, 8 tokens per rank: E = 1024 elements of the states, M = 4096 bytes;
 * q, o, do and dq have 1024 bytes each, k and v together as well. */
static LhProgramParams
make_params(uint32_t ranks, LhPass pass)
{
    return (LhProgramParams){
        .attention = {
            .batch = 1,
            .seq_length = 8 * (uint64_t)ranks,
            .heads = 4,
            .groups = 2,
            .head_dim = 16,
            .dtype = LH_DTYPE_BF16,
            .linear = true,
            .decay = 0.97,
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
    const LhSchedule *schedule = lh_schedule_find(name, NULL);
    LhProgram *program;

    ck_assert_ptr_nonnull(schedule);
    program = lh_program_new(schedule, p, &error);
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
        ck_abort_msg("%s, P %u, pass %d: %s", name, p->ranks, (int)p->pass,
                     g_array_index(verdict->findings, LhFinding, 0).message);
    return verdict;
}

/* ---- closed forms ---- */

typedef struct {
    const char *name;
    LhPass pass;
    bool recompute, unfused;
    uint32_t rank;
    uint64_t bytes, flops, peak;
} Form;

/*
 * 4 ranks. 8 tokens have 36 pairs among themselves: 4 * 4 * 16 * 36 = 9216 flops forward, 23040
 * backward. A product of their rows with the states has 2 * 8 * 1024 = 16384, a carry 2048. Inputs
 * and outputs: q, kv, o, the saved state; backward do, dq, dkv.
 */
static const Form forms[] = {
    { "lasp", LH_PASS_FWD, false, false, 0, 4096, 9216 + 16384, 3072 + 4096 + 4096 },
    { "lasp", LH_PASS_FWD, false, false, 1, 4096, 9216 + 16384 + 16384 + 2048, 11264 },
    { "lasp", LH_PASS_FWD, false, true, 3, 0, 9216 + 16384, 11264 + 1024 },
    { "lasp", LH_PASS_FWD, true, false, 2, 4096, 44032, 3072 + 2 * 4096 },
    { "lasp", LH_PASS_BWD, false, false, 0, 0, 23040 + 32768, 6144 + 4096 + 2 * 4096 },
    { "lasp", LH_PASS_BWD, false, false, 1, 4096, 23040 + 16384 + 32768 + 16384 + 2048, 18432 },
    { "lasp", LH_PASS_BWD, false, true, 3, 4096, 23040 + 16384 + 16384, 18432 + 2048 },
    { "lasp", LH_PASS_BWD, true, false, 1, 8192, 90624 + 16384 + 2048, 6144 + 4 * 4096 },
    { "lasp", LH_PASS_BWD, true, false, 3, 4096, 55808, 22528 },
    { "lasp", LH_PASS_BOTH, false, false, 2, 8192, 44032 + 90624, 18432 },
    { "lasp2", LH_PASS_FWD, false, false, 0, 12288, 16384 + 9216, 3072 + 4096 + 5 * 4096 },
    { "lasp2", LH_PASS_FWD, false, false, 2, 12288, 16384 + 9216 + 16384 + 2 * 2048, 27648 },
    { "lasp2", LH_PASS_BWD, false, false, 1, 12288, 16384 + 23040 + 16384 + 32768 + 2 * 2048,
      6144 + 4096 + 6 * 4096 },
    { "lasp2", LH_PASS_BWD, true, false, 3, 24576, 16384 + 23040 + 16384 + (16384 + 3 * 2048),
      6144 + 12 * 4096 },
    { "lasp2", LH_PASS_BOTH, false, true, 3, 24576, 48128 + 55808, 34816 + 2048 },
    { "zeco", LH_PASS_FWD, false, false, 1, 4096, 44032, 11264 },
    { "zeco", LH_PASS_BOTH, true, false, 1, 12288, 44032 + 109056, 22528 },
};

static void
check_form(const Form *f, const LhProgramParams *p)
{
    g_autoptr(LhVerdict) verdict = prove(f->name, p);

    ck_assert_msg(verdict->bytes_sent[f->rank] == f->bytes && verdict->flops[f->rank] == f->flops &&
                      verdict->peak_bytes[f->rank] == f->peak,
                  "%s, pass %d, rank %u: bytes %" G_GUINT64_FORMAT ", flops %" G_GUINT64_FORMAT
                  ", peak %" G_GUINT64_FORMAT,
                  f->name, (int)f->pass, f->rank, verdict->bytes_sent[f->rank],
                  verdict->flops[f->rank], verdict->peak_bytes[f->rank]);
}

START_TEST(linear_counts_by_hand)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(forms); i++) {
        const Form *f = &forms[i];
        LhProgramParams p = make_params(4, f->pass);

        set_option(&p, "state_recompute", f->recompute);
        set_option(&p, "unfused", f->unfused);
        check_form(f, &p);
    }
}
END_TEST

/* 300 tokens of one head of 8 form tiles of 128, 128 and 44: 2 * 8256 + 990 pairs; 256 tokens go
 * into a state of 64 elements, which is decayed once, and 172 read it. */
START_TEST(linear_counts_tiles)
{
    LhProgramParams p = make_params(1, LH_PASS_FWD);

    p.attention.seq_length = 300;
    p.attention.heads = p.attention.groups = 1;
    p.attention.head_dim = 8;
    for (unsigned s = 0; s < G_N_ELEMENTS(names); s++) {
        g_autoptr(LhVerdict) forward = NULL;
        g_autoptr(LhVerdict) backward = NULL;

        p.pass = LH_PASS_FWD;
        forward = prove(names[s], &p);
        ck_assert_uint_eq(forward->flops[0], 4 * 8 * 17502 + 2 * 64 * (256 + 172 + 1));
        p.pass = LH_PASS_BWD;
        backward = prove(names[s], &p);
        ck_assert_uint_eq(backward->flops[0], 10 * 8 * 17502 + 2 * 64 * (3 * 256 + 2 * 172 + 2));
    }
}
END_TEST

/* From 4K to 4M tokens of a 32-head model: constant bytes, linear flops. */
START_TEST(linear_sends_the_same_at_any_length)
{
    const uint64_t state = 4 * 32 * 128 * 128;

    for (uint64_t length = 4096; length <= 4194304; length *= 4) {
        LhProgramParams p = make_params(8, LH_PASS_BOTH);
        LhProgramParams twice;

        p.attention.heads = p.attention.groups = 32;
        p.attention.head_dim = 128;
        p.attention.seq_length = length;
        twice = p;
        twice.attention.seq_length = 2 * length;
        for (unsigned s = 0; s < G_N_ELEMENTS(names); s++) {
            const uint64_t each = strcmp(names[s], "lasp2") == 0 ? 7 * state : state;
            g_autoptr(LhVerdict) verdict = prove(names[s], &p);
            g_autoptr(LhVerdict) longer = prove(names[s], &twice);

            ck_assert_uint_eq(verdict->bytes_sent[3], 2 * each);
            ck_assert_double_le((double)longer->flops[3], 2.2 * (double)verdict->flops[3]);
            ck_assert_double_ge((double)longer->flops[3], 1.9 * (double)verdict->flops[3]);
        }
    }
}
END_TEST

/* As make_params, with @heads heads and as many key-value heads. */
static LhProgramParams
make_heads(uint32_t ranks, uint32_t heads, LhPass pass)
{
    LhProgramParams p = make_params(ranks, pass);

    p.attention.heads = p.attention.groups = heads;
    return p;
}

/*
 * 4 ranks of one head each: 32 tokens have 528 pairs, 4 * 16 * 528 = 33792 flops forward, 84480
 * backward. Q = X = 1024 bytes, KV = 2048. Only q, k, v are saved by heads, and there is no lse.
 */
static const Form forms_by_heads[] = {
    { "ulysses", LH_PASS_FWD, false, false, 2, 3072, 33792, 4096 + 2 * 3072 },
    { "ulysses", LH_PASS_BWD, false, false, 2, 3072, 84480, 8192 + 2 * 3072 },
    { "ulysses", LH_PASS_BOTH, false, false, 2, 6144, 118272, 8192 + 3072 + 1024 + 3072 },
    { "te-a2a", LH_PASS_FWD, false, false, 1, 3072, 33792, 4096 + 3 * 3072 },
    { "te-a2a", LH_PASS_BOTH, false, false, 1, 6144, 118272, 8192 + 3 * 3072 },
    { "megatron-tp-sp", LH_PASS_FWD, false, false, 3, 6144, 33792, 4096 + 2048 + 4096 },
    { "megatron-tp-sp", LH_PASS_BOTH, false, false, 0, 15360, 118272, 8192 + 4096 + 8192 },
    { "megatron-tp-sp", LH_PASS_BOTH, true, false, 0, 15360, 152064, 20480 + 1024 },
};

START_TEST(linear_by_heads_counts_by_hand)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(forms_by_heads); i++) {
        const Form *f = &forms_by_heads[i];
        LhProgramParams p = make_heads(4, 4, f->pass);

        set_option(&p, "recompute_granularity", f->recompute); /* selective */
        check_form(f, &p);
    }
}
END_TEST

/* A rank's one head over all 300 tokens costs the same as one head on a single rank. */
START_TEST(linear_by_heads_is_linear_in_tokens)
{
    for (unsigned s = 0; s < G_N_ELEMENTS(by_heads); s++) {
        LhProgramParams p = make_heads(3, 3, LH_PASS_FWD);
        g_autoptr(LhVerdict) forward = NULL;
        g_autoptr(LhVerdict) backward = NULL;

        p.attention.seq_length = 300;
        p.attention.head_dim = 8;
        forward = prove(by_heads[s], &p);
        ck_assert_uint_eq(forward->flops[2], 4 * 8 * 17502 + 2 * 64 * (256 + 172 + 1));
        p.pass = LH_PASS_BWD;
        backward = prove(by_heads[s], &p);
        ck_assert_uint_eq(backward->flops[1], 10 * 8 * 17502 + 2 * 64 * (3 * 256 + 2 * 172 + 2));
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

START_TEST(linear_refuses)
{
    LhProgramParams p = make_params(4, LH_PASS_BOTH);

    for (unsigned s = 0; s < G_N_ELEMENTS(names); s++) {
        p = make_params(4, LH_PASS_BOTH);
        p.mask.causal = false;
        check_refused(names[s], &p, "only the causal mask");
        p = make_params(4, LH_PASS_BOTH);
        set_option(&p, "gradient_wire", LH_WIRE_16BIT);
        check_refused(names[s], &p, "are sent in fp32");
        set_option(&p, "gradient_wire", LH_WIRE_DEFAULT);
        p.attention.linear = false;
        check_refused(names[s], &p, "softmax");
    }
    p = make_params(4, LH_PASS_BOTH);
    check_refused("ring", &p,
                  "is supported by: te-a2a, ulysses, megatron-tp-sp, lasp, lasp2, zeco");
    p.attention.heads = p.attention.groups = 12;
    set_option(&p, "scan_blocks", 5);
    check_refused("zeco", &p, "nearest legal numbers of blocks: 4, 6");
    set_option(&p, "scan_blocks", 24);
    check_refused("zeco", &p, "nearest legal numbers of blocks: 12");
}
END_TEST

/* ---- idle time ---- */

static double
simulated_idle(const char *name, const LhProgramParams *p)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhTopology) topology = lh_topology_load("bench-platform", &error);
    g_autoptr(LhDevice) device = lh_device_load(topology->device_name, &error);
    g_autoptr(LhProgram) program = make(name, p);
    const uint32_t gpus = (uint32_t)topology->gpus_per_node;
    LhNetwork network;
    const LhSimParams params = {
        .program = program, .network = &network, .device = device, .cost = LH_COST_FLOPS
    };
    g_autoptr(LhSimResult) result = NULL;

    ck_assert(
        lh_network_init(&network, topology, (p->ranks + gpus - 1) / gpus, p->ranks, NULL, &error));
    result = lh_simulate(&params, &error);
    ck_assert_msg(result != NULL, "%s", error == NULL ? "" : error->message);
    return lh_sim_bubble_fraction(result);
}

/* Forward flops of a rank with 100 tokens of 40 heads of 50: E = 100000. They, and an eighth of
 * them, take whole picoseconds. */
#define IDLE_INTRA (4.0 * 40 * 50 * 5050)
#define IDLE_ROWS (2.0 * 100 * 100000)
#define IDLE_CARRY (2.0 * 100000)

static double
expected_idle(const char *name, double ranks, bool overlap)
{
    /* From the first rank's state to the last rank's output. */
    const double chain = (ranks - 1) * 2 * IDLE_ROWS + (ranks > 2 ? ranks - 2 : 0) * IDLE_CARRY;
    const double most = IDLE_INTRA + 2 * IDLE_ROWS;

    if (ranks == 1)
        return 0;
    if (strcmp(name, "lasp") == 0)
        return overlap ? 1 - (IDLE_INTRA + chain / ranks) / (IDLE_INTRA + chain) : 1 - 1 / ranks;
    if (strcmp(name, "lasp2") == 0)
        return (IDLE_ROWS + ranks * (ranks - 1) / 2 * IDLE_CARRY) /
               (ranks * (most + (ranks - 1) * IDLE_CARRY));
    return ranks == 2 ? 0 : 2 * (IDLE_ROWS + IDLE_CARRY) / (ranks * (most + IDLE_CARRY));
}

START_TEST(linear_idles_as_the_formulas_say)
{
    static const uint32_t ranks[] = { 1, 2, 3, 4, 5, 8, 13, 16, 32 };

    for (unsigned i = 0; i < G_N_ELEMENTS(ranks) * G_N_ELEMENTS(names) * 2; i++) {
        const char *name = names[i / 2 % G_N_ELEMENTS(names)];
        const bool overlap = i % 2 == 0;
        LhProgramParams p = make_params(ranks[i / 2 / G_N_ELEMENTS(names)], LH_PASS_FWD);
        const LhClosedForms *closed = lh_closed_forms(lh_schedule_find(name, NULL), &p);

        p.attention.heads = p.attention.groups = 40;
        p.attention.head_dim = 50;
        p.attention.seq_length = 100 * (uint64_t)p.ranks;
        set_option(&p, "no_overlap", !overlap);
        ck_assert_msg(fabs(simulated_idle(name, &p) - closed->idle_flops(&p)) < 1e-12,
                      "%s, P %u, overlap %d: idle %.9f, by the formula %.9f", name, p.ranks,
                      overlap, simulated_idle(name, &p), closed->idle_flops(&p));
        if (overlap || strcmp(name, "zeco") != 0)
            ck_assert_double_eq_tol(closed->idle_flops(&p), expected_idle(name, p.ranks, overlap),
                                    1e-12);
    }
}
END_TEST

/* LASP's public code serialises the ranks, whatever their number. */
START_TEST(linear_published_lasp_is_serial)
{
    LhProgramParams p = make_params(8, LH_PASS_FWD);

    set_option(&p, "published_code", true);
    p.attention.heads = p.attention.groups = 40;
    p.attention.head_dim = 50;
    p.attention.seq_length = 800;
    ck_assert_double_eq_tol(simulated_idle("lasp", &p), 7.0 / 8, 1e-9);
    p.pass = LH_PASS_BOTH;
    ck_assert_double_eq_tol(simulated_idle("lasp", &p), 7.0 / 8, 1e-9);
}
END_TEST

/* Its forward pass begins with a barrier: an all-reduce of one number per rank. */
START_TEST(linear_published_lasp_has_a_barrier)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(passes); i++) {
        LhProgramParams p = make_params(4, passes[i]);
        const bool forward = passes[i] != LH_PASS_BWD;
        const LhClosedForms *closed = lh_closed_forms(lh_schedule_find("lasp", NULL), &p);
        const uint64_t bytes = closed->bytes_sent(&p, 1), peak = closed->peak_bytes(&p, 1);

        set_option(&p, "published_code", true);
        ck_assert_uint_eq(closed->bytes_sent(&p, 1), bytes + (forward ? 2 * 3 * 4 : 0));
        ck_assert_uint_eq(closed->peak_bytes(&p, 1), peak + (forward ? 4 * 4 : 0));
    }
}
END_TEST

/* ---- proofs ---- */

START_TEST(linear_is_proven)
{
    static const uint32_t ranks[] = { 1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                      12, 13, 14, 15, 16, 24, 25, 32, 33, 64 };

    for (unsigned i = 0; i < G_N_ELEMENTS(ranks); i++) {
        for (unsigned bits = 0; bits < 3 * 3 * 16; bits++) {
            LhProgramParams p = make_params(ranks[i], passes[bits / 3 % 3]);

            if ((ranks[i] > 16 && (bits + i) % 11 != 0) || !test_takes_next(0))
                continue;
            set_option(&p, "no_overlap", bits / 9 & 1);
            set_option(&p, "published_code", (bits / 9 & 2) != 0);
            set_option(&p, "state_recompute", (bits / 9 & 4) != 0);
            set_option(&p, "unfused", (bits / 9 & 8) != 0);
            p.attention.seq_length = ranks[i] * (1 + bits % 7);
            lh_verdict_free(prove(names[bits % 3], &p));
        }
    }
}
END_TEST

START_TEST(linear_by_heads_is_proven)
{
    for (uint32_t ranks = 1; ranks <= 64; ranks += ranks < 16 ? 1 : 8) {
        for (unsigned bits = 0; bits < 3 * 3 * 12; bits++) {
            LhProgramParams p = make_heads(ranks, ranks * (1 + bits % 2), passes[bits / 3 % 3]);

            if ((ranks > 16 && (bits + ranks / 8) % 7 != 0) || !test_takes_next(0))
                continue;
            p.attention.groups = ranks;
            p.attention.seq_length = 2 * ranks * (1 + bits % 5);
            set_option(&p, "no_overlap", bits / 9 % 2);
            set_option(&p, "published_code", bits / 18 % 2 != 0);
            set_option(&p, "recompute_granularity", bits / 36);
            lh_verdict_free(prove(by_heads[bits % 3], &p));
        }
    }
}
END_TEST

/* A megatron rank with a single token, and padded heads. */
START_TEST(linear_by_heads_takes_odd_shapes)
{
    LhProgramParams p = make_heads(1, 2, LH_PASS_BOTH);

    p.attention.seq_length = 1;
    lh_verdict_free(prove("megatron-tp-sp", &p));
    p = make_heads(16, 33, LH_PASS_BOTH);
    lh_verdict_free(prove("ulysses", &p));
    set_option(&p, "pad_heads", true);
    for (unsigned s = 0; s < G_N_ELEMENTS(by_heads); s++)
        lh_verdict_free(prove(by_heads[s], &p));
    p.mask.causal = false;
    check_refused("ulysses", &p, "only the causal mask");
}
END_TEST

START_TEST(linear_scans_in_any_number_of_blocks)
{
    for (uint32_t blocks = 1; blocks <= 64; blocks++) {
        LhProgramParams p = make_params(5, LH_PASS_BOTH);

        if (!test_takes_of(blocks - 1, 9))
            continue;
        p.attention.heads = 2 * blocks;
        p.attention.groups = blocks;
        set_option(&p, "scan_blocks", blocks);
        set_option(&p, "state_recompute", blocks % 2 == 0);
        lh_verdict_free(prove("zeco", &p));
    }
}
END_TEST

/* ---- mistakes ---- */

/* The @which-th call of @kernel on @rank. */
static LhOp *
call_of(const Recording *r, uint32_t rank, LhKernelId kernel, uint32_t which)
{
    for (uint32_t i = 0; i < recording_count(r, rank); i++) {
        LhOp *op = recording_op(r, rank, i);

        if (op->kind == LH_OP_COMPUTE && op->compute.kernel == kernel && which-- == 0)
            return op;
    }
    ck_abort_msg("no such call");
    return NULL;
}

/* Swaps two calls of the compute stream; `after` stays in place. */
static void
swap_calls(LhOp *a, LhOp *b)
{
    const LhOp other = *a;

    a->compute = b->compute;
    b->compute = other.compute;
}

static void
carry_before_own_state(Recording *r)
{
    swap_calls(call_of(r, 2, LH_KERNEL_ID_linear_state, 0),
               call_of(r, 2, LH_KERNEL_ID_linear_carry, 0));
}

static void
no_carry(Recording *r)
{
    LhOp *carry = call_of(r, 1, LH_KERNEL_ID_linear_carry, 0);

    *carry = (LhOp){ .id = carry->id, .kind = LH_OP_SYNC, .phase = carry->phase };
}

static void
state_applied_twice(Recording *r)
{
    LhOp *own = call_of(r, 1, LH_KERNEL_ID_linear_state, 0);

    own->compute = call_of(r, 1, LH_KERNEL_ID_linear_inter, 0)->compute;
}

static void
carry_over_two_segments(Recording *r)
{
    call_of(r, 2, LH_KERNEL_ID_linear_carry, 0)->compute.args.nk *= 2;
}

static void
carry_over_half_a_segment(Recording *r)
{
    call_of(r, 2, LH_KERNEL_ID_linear_carry, 0)->compute.args.nk /= 2;
}

static void
another_decay(Recording *r)
{
    call_of(r, 3, LH_KERNEL_ID_linear_inter, 0)->compute.args.decay = 0.5;
}

/* Uses the state behind the rank's tokens instead of the one before them. */
static void
state_of_the_wrong_border(Recording *r)
{
    LhOp *inter = call_of(r, 1, LH_KERNEL_ID_linear_inter, 0);

    swap_calls(inter, call_of(r, 1, LH_KERNEL_ID_linear_state, 0));
    call_of(r, 1, LH_KERNEL_ID_linear_inter, 0)->compute.regions[1].slot =
        call_of(r, 1, LH_KERNEL_ID_linear_state, 0)->compute.regions[1].slot;
}

static void
gradient_of_the_wrong_border(Recording *r)
{
    LhOp *own = call_of(r, 2, LH_KERNEL_ID_linear_dstate, 0);
    LhOp *grad = call_of(r, 2, LH_KERNEL_ID_linear_state_bwd, 0);

    swap_calls(grad, own);
    own->compute.regions[1].slot = grad->compute.regions[2].slot;
}

static void
gradient_started_after_carry(Recording *r)
{
    swap_calls(call_of(r, 1, LH_KERNEL_ID_linear_carry, 0),
               call_of(r, 1, LH_KERNEL_ID_linear_dstate, 0));
    call_of(r, 1, LH_KERNEL_ID_linear_carry, 0)->compute.args.first = true;
}

static void
one_state_too_many(Recording *r)
{
    LhOp *prefix = call_of(r, 2, LH_KERNEL_ID_linear_prefix, 0);

    prefix->compute.regions[0].count++;
    prefix->compute.args.states++;
}

static void
one_state_too_few(Recording *r)
{
    LhOp *prefix = call_of(r, 2, LH_KERNEL_ID_linear_prefix, 0);

    prefix->compute.regions[0].part++;
    prefix->compute.regions[0].count--;
    prefix->compute.args.states--;
}

static void
states_counted_wrongly(Recording *r)
{
    call_of(r, 3, LH_KERNEL_ID_linear_prefix, 0)->compute.args.states--;
}

static void
states_from_the_other_side(Recording *r)
{
    LhKernelArgs *args = &call_of(r, 3, LH_KERNEL_ID_linear_prefix, 0)->compute.args;

    args->nq = args->nk;
    args->nk = 0;
}

static void
slice_of_other_heads(Recording *r)
{
    call_of(r, 3, LH_KERNEL_ID_linear_inter, 1)->compute.regions[1].part = 0;
}

static void
kernels_of_linear_attention(Recording *r)
{
    r->program.params.attention.linear = false;
}

typedef struct {
    const char *schedule;
    LhPass pass;
    void (*make)(Recording *r);
    LhFindingKind kind;
    const char *words;
} Mistake;

static const Mistake mistakes[] = {
    { "lasp", LH_PASS_FWD, carry_before_own_state, LH_FINDING_COVERAGE,
      "which has not been written" },
    { "lasp", LH_PASS_FWD, no_carry, LH_FINDING_COVERAGE, "lacks the contribution of segment 0" },
    { "lasp", LH_PASS_FWD, state_applied_twice, LH_FINDING_COVERAGE, "a second time" },
    { "lasp", LH_PASS_FWD, carry_over_two_segments, LH_FINDING_COVERAGE,
      "at the border before segment 4, but its border is before segment 3" },
    { "lasp", LH_PASS_FWD, carry_over_half_a_segment, LH_FINDING_COVERAGE,
      "by 4 tokens, where there is no border" },
    { "lasp", LH_PASS_FWD, another_decay, LH_FINDING_COVERAGE,
      "decays by 0.5 per token; the program's decay is 0.97" },
    { "lasp", LH_PASS_FWD, state_of_the_wrong_border, LH_FINDING_COVERAGE,
      "at the border before segment 1, but its border is before segment 2" },
    { "lasp", LH_PASS_BWD, gradient_of_the_wrong_border, LH_FINDING_COVERAGE,
      "at the border before segment 3, but its border is before segment 2" },
    { "lasp", LH_PASS_BWD, gradient_started_after_carry, LH_FINDING_COVERAGE,
      "lacks the contribution of segment 2" },
    { "lasp2", LH_PASS_FWD, one_state_too_many, LH_FINDING_COVERAGE,
      "at the border before segment 2, but its border is before segment 3" },
    { "lasp2", LH_PASS_FWD, one_state_too_few, LH_FINDING_COVERAGE,
      "lacks the contribution of segment 0" },
    { "lasp2", LH_PASS_FWD, states_counted_wrongly, LH_FINDING_COVERAGE, "called for 2 states" },
    { "lasp2", LH_PASS_FWD, states_from_the_other_side, LH_FINDING_COVERAGE,
      "8 query and 0 key rows" },
    { "zeco", LH_PASS_FWD, slice_of_other_heads, LH_FINDING_COVERAGE,
      "slice 0 of the state in slot state for slice 1 of the heads" },
    { "ulysses", LH_PASS_FWD, kernels_of_linear_attention, LH_FINDING_COVERAGE,
      "is for linear attention, and the program's is softmax" },
};

START_TEST(linear_mistakes_are_found)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(mistakes); i++) {
        const Mistake *m = &mistakes[i];
        const LhProgramParams p = make_params(4, m->pass);
        g_autoptr(LhProgram) program = make(m->schedule, &p);
        Recording *recording = recording_new(program);
        g_autoptr(LhVerdict) verdict = NULL;
        bool found = false;

        m->make(recording);
        verdict = lh_verify(&recording->program);
        for (guint k = 0; k < verdict->findings->len; k++) {
            const LhFinding *finding = &g_array_index(verdict->findings, LhFinding, k);

            found |= finding->kind == m->kind && strstr(finding->message, m->words) != NULL;
        }
        ck_assert_msg(found, "mistake %u: %s", i,
                      verdict->findings->len == 0
                          ? "nothing found"
                          : g_array_index(verdict->findings, LhFinding, 0).message);
        recording_free(recording);
    }
}
END_TEST

/* ---- numbers ---- */

/* Kernel sets of the CPU, in the device's order. */
typedef enum {
    FAST,
    REFERENCE,
} KernelSet;

/* Asserts that results are within tolerance and counts as proven. */
static void
check_run(const char *name, const LhProgramParams *p, KernelSet kernels, LhInputKind inputs)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhProgram) program = make(name, p);
    g_autoptr(LhNumerics) numerics = lh_numerics_new(p, 7, inputs);
    g_autoptr(LhVerdict) verdict = prove(name, p);
    LhNumericsLoad load = { numerics, program };
    const LhRunParams params = { .program = program,
                                 .backend = &lh_backend_cpu,
                                 .kernel_set = kernels,
                                 .deadline_us = 60 * G_USEC_PER_SEC,
                                 .load = lh_numerics_load_part,
                                 .load_data = &load };
    g_autoptr(LhRunResult) result = lh_execute(&params, &error);
    g_auto(LhErrorReport) report = { 0 };

    ck_assert_msg(result != NULL, "%s", error == NULL ? "" : error->message);
    lh_tolerance_compare(numerics, program, result, &report);
    ck_assert_uint_eq(report.rows_count, p->pass == LH_PASS_FWD   ? 1
                                         : p->pass == LH_PASS_BWD ? 3
                                                                  : 4);
    for (uint32_t i = 0; i < report.rows_count; i++) {
        const LhErrorRow *row = &report.rows[i];
        const bool exact =
            p->attention.dtype != LH_DTYPE_FP32 || inputs != LH_INPUTS_NORMAL || row->rel_l2 < 1e-5;

        ck_assert_msg(row->ok && exact,
                      "%s, P %u, h %u, g %u, d %u, decay %g, %s, pass %d: %s: rel L2 %g, worst "
                      "row %g",
                      name, p->ranks, p->attention.heads, p->attention.groups,
                      p->attention.head_dim, p->attention.decay, lh_dtype_names[p->attention.dtype],
                      (int)p->pass, row->name, row->rel_l2, row->row);
    }
    for (uint32_t rank = 0; rank < p->ranks; rank++) {
        ck_assert_uint_eq(result->ranks[rank].bytes_sent, verdict->bytes_sent[rank]);
        ck_assert_uint_eq(result->ranks[rank].flops, verdict->flops[rank]);
        ck_assert_uint_eq(result->ranks[rank].peak_bytes, verdict->peak_bytes[rank]);
    }
}

static const uint32_t shapes[][3] = { { 4, 4, 16 }, { 8, 2, 24 }, { 3, 1, 40 }, { 6, 6, 8 } };
static const double decays[] = { 0, 0.99, 1, 0.5 };

/* Every number of ranks with every schedule; other parameters alternate. */
static void
check_runs(LhDtype dtype)
{
    static const uint32_t ranks[] = { 1, 2, 3, 4, 5, 8, 12, 16 };
    unsigned turn = dtype;

    for (unsigned i = 0; i < G_N_ELEMENTS(ranks) * G_N_ELEMENTS(names) * 2; i++, turn += 5) {
        const uint32_t *shape = shapes[turn % G_N_ELEMENTS(shapes)];
        LhProgramParams p = make_params(ranks[i / 2 / G_N_ELEMENTS(names)], passes[turn / 3 % 3]);

        if (!test_takes_of(i, 11))
            continue;
        p.attention.dtype = dtype;
        p.attention.batch = 1 + turn % 2;
        p.attention.heads = shape[0];
        p.attention.groups = shape[1];
        p.attention.head_dim = shape[2];
        p.attention.decay = decays[turn / 4 % G_N_ELEMENTS(decays)];
        p.attention.seq_length = p.ranks * (turn % 11 + 3);
        set_option(&p, "no_overlap", turn / 2 % 3 == 0);
        set_option(&p, "published_code", turn / 4 % 3 == 0);
        set_option(&p, "state_recompute", turn / 8 % 2 != 0);
        set_option(&p, "unfused", turn / 16 % 2 != 0);
        check_run(names[i % G_N_ELEMENTS(names)], &p, i % 5 == 0 ? REFERENCE : FAST,
                  LH_INPUTS_NORMAL);
    }
}

START_TEST(linear_runs_in_fp32)
{
    check_runs(LH_DTYPE_FP32);
}
END_TEST

START_TEST(linear_runs_in_bf16)
{
    check_runs(LH_DTYPE_BF16);
}
END_TEST

START_TEST(linear_runs_in_fp16)
{
    check_runs(LH_DTYPE_FP16);
}
END_TEST

/* Several tiles per rank, and sums far from normal magnitudes. */
START_TEST(linear_runs_on_long_segments_and_odd_inputs)
{
    for (unsigned i = 0; i < 3 * G_N_ELEMENTS(names); i++) {
        LhProgramParams p = make_params(3, LH_PASS_BOTH);

        if (!test_takes_of(i, 4))
            continue;
        p.attention.seq_length = 3 * 200;
        p.attention.dtype = (LhDtype)(i / 3);
        check_run(names[i % 3], &p, FAST, LH_INPUTS_NORMAL);
        p.attention.seq_length = 3 * 10;
        for (int inputs = LH_INPUTS_LOGITS4; inputs <= LH_INPUTS_EQUAL; inputs++)
            check_run(names[i % 3], &p, FAST, (LhInputKind)inputs);
    }
}
END_TEST

/* Heads over ranks: as many as ranks, twice as many, grouped, and (ulysses) replicated and
 * uneven. */
static const struct {
    const char *name;
    uint32_t ranks, heads, groups;
} by_heads_runs[] = {
    { "ulysses", 1, 3, 3 },        { "ulysses", 2, 4, 4 },        { "ulysses", 3, 6, 3 },
    { "ulysses", 8, 8, 2 },        { "ulysses", 4, 5, 5 },        { "ulysses", 12, 24, 12 },
    { "te-a2a", 1, 2, 1 },         { "te-a2a", 2, 2, 2 },         { "te-a2a", 4, 8, 4 },
    { "te-a2a", 6, 12, 6 },        { "megatron-tp-sp", 1, 2, 2 }, { "megatron-tp-sp", 2, 8, 4 },
    { "megatron-tp-sp", 3, 3, 3 }, { "megatron-tp-sp", 8, 8, 8 },
};

START_TEST(linear_by_heads_runs)
{
    unsigned turn = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(by_heads_runs); i++) {
        for (unsigned k = 0; k < 3 * G_N_ELEMENTS(passes); k++, turn += 5) {
            LhProgramParams p = make_params(by_heads_runs[i].ranks, passes[k % 3]);

            if (!test_takes_of(turn / 5, 11))
                continue;
            p.attention.heads = by_heads_runs[i].heads;
            p.attention.groups = by_heads_runs[i].groups;
            p.attention.dtype = (LhDtype)(k / 3);
            p.attention.batch = 1 + turn % 2;
            p.attention.head_dim = 8 * (1 + turn % 3);
            p.attention.decay = decays[turn / 4 % G_N_ELEMENTS(decays)];
            p.attention.seq_length = 2 * p.ranks * (turn % 11 + 1);
            if (k == 0) /* several tiles */
                p.attention.seq_length += 2 * p.ranks * (150 / p.ranks + 1);
            set_option(&p, "no_overlap", turn / 2 % 3 == 0);
            set_option(&p, "recompute_granularity", turn % 3);
            set_option(&p, "published_code", turn % 2 != 0);
            set_option(&p, "gradient_wire", turn % 4 == 0 ? LH_WIRE_FP32 : LH_WIRE_DEFAULT);
            check_run(by_heads_runs[i].name, &p, k == 4 ? REFERENCE : FAST, LH_INPUTS_NORMAL);
        }
    }
}
END_TEST

/* The loss sum(o * do) is linear in every input, so differences over a step of 1 are exact; and the
 * state alone determines o of later tokens. */
START_TEST(linear_reference_is_its_definition)
{
    const LhProgramParams p = make_params(1, LH_PASS_BOTH);
    const LhAttention *a = &p.attention;
    const LhReferenceWork all = { 0 };
    g_autoptr(LhNumerics) n = lh_numerics_new(&p, 3, LH_INPUTS_NORMAL);
    LhReference *r = &n->reference;
    const double *const gradients[] = { r->dq, r->dk, r->dv };
    const uint64_t count = lh_reference_q_rows(a) * r->stride;
    const uint64_t of_keys = lh_reference_k_rows(a) * r->stride;
    const uint64_t last = lh_reference_row(r, a->batch - 1, 1, a->heads, a->seq_length - 1);
    const uint64_t moving = 2 * r->stride + 5;
    double state[256], o = 0;

    lh_reference_state(r, a->batch - 1, 1, a->seq_length, state);
    for (uint32_t c = 0; c < 16; c++)
        o += r->q[last * r->stride + c] * state[c * 16 + 5];
    ck_assert_double_eq_tol(o, r->o[last * r->stride + 5], 1e-9 * fabs(o) + 1e-12);
    for (unsigned i = 0; i < 3; i++) {
        double losses[2];

        for (unsigned side = 0; side < 2; side++) {
            LhReference moved;

            lh_reference_init(&moved, a, &r->mask);
            memcpy(moved.q, r->q, count * sizeof(double));
            memcpy(moved.dout, r->dout, count * sizeof(double));
            memcpy(moved.k, r->k, of_keys * sizeof(double));
            memcpy(moved.v, r->v, of_keys * sizeof(double));
            (i == 0 ? moved.q : i == 1 ? moved.k : moved.v)[moving] += side;
            lh_reference_run(&moved, &all);
            losses[side] = 0;
            for (uint64_t k = 0; k < count; k++)
                losses[side] += moved.o[k] * moved.dout[k];
            lh_reference_clear(&moved);
        }
        ck_assert_double_eq_tol(losses[1] - losses[0], gradients[i][moving], 1e-9);
    }
}
END_TEST

LH_TEST_MAIN("forms_linear", linear_counts_by_hand, linear_counts_tiles,
             linear_sends_the_same_at_any_length, linear_refuses, linear_idles_as_the_formulas_say,
             linear_published_lasp_is_serial, linear_published_lasp_has_a_barrier, linear_is_proven,
             linear_scans_in_any_number_of_blocks, linear_mistakes_are_found, linear_runs_in_fp32,
             linear_runs_in_bf16, linear_runs_in_fp16, linear_runs_on_long_segments_and_odd_inputs,
             linear_reference_is_its_definition, linear_by_heads_counts_by_hand,
             linear_by_heads_is_linear_in_tokens, linear_by_heads_is_proven,
             linear_by_heads_takes_odd_shapes, linear_by_heads_runs)
