/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schedules that split heads: bytes, flops and memory worked out by hand, proofs for every legal
 * number of ranks, and runs against fp64 attention.
 */
#include "base/error.h"
#include "kernels/call.h"
#include "kernels/cpu/kernels.h"
#include "options.h"
#include "program/explicit/explicit.h"
#include "program/explicit/explicit_read.h"
#include "program/explicit/explicit_write.h"
#include "reference/tolerance.h"
#include "run_tests.h"
#include "runtime/executor.h"
#include "sched/common/heads.h"
#include "share.h"
#include "verify/verify.h"

#include <string.h>

/* Choices of recompute_granularity. */
enum {
    RECOMPUTE_NONE,
    RECOMPUTE_SELECTIVE,
    RECOMPUTE_FULL,
};

static const LhPass passes[] = { LH_PASS_FWD, LH_PASS_BWD, LH_PASS_BOTH };

static LhProgramParams
make_params(uint32_t ranks, uint32_t heads, uint32_t groups, LhPass pass)
{
    return (LhProgramParams){
        .attention = {
            .batch = 1,
            .seq_length = 4 * (uint64_t)ranks,
            .heads = heads,
            .groups = groups,
            .head_dim = 16,
            .dtype = LH_DTYPE_BF16,
        },
        .ranks = ranks,
        .mask.causal = true,
        .pass = pass,
    };
}

static const LhSchedule *
schedule_called(const char *name)
{
    const LhSchedule *schedule = lh_schedule_find(name, NULL);

    ck_assert_ptr_nonnull(schedule);
    return schedule;
}

static LhProgram *
make(const char *name, const LhProgramParams *p)
{
    g_autoptr(GError) error = NULL;
    LhProgram *program = lh_program_new(schedule_called(name), p, &error);

    ck_assert_msg(program != NULL, "%s", error == NULL ? "" : error->message);
    return program;
}

/* Sets groups of @size ranks that exchange heads, and rings across the groups. */
static void
set_size(LhProgramParams *p, uint32_t size)
{
    set_pair(p, "hierarchical_context_parallel_sizes", size, size > 0 ? p->ranks / size : 0);
}

/* The proof itself compares its counts with the closed forms. */
static LhVerdict *
prove(const char *name, const LhProgramParams *p)
{
    g_autoptr(LhProgram) program = make(name, p);
    LhVerdict *verdict = lh_verify(program);

    if (verdict->findings_total > 0)
        ck_abort_msg("%s, P %u, h %u, g %u, pass %d: %s", name, p->ranks, p->attention.heads,
                     p->attention.groups, (int)p->pass,
                     g_array_index(verdict->findings, LhFinding, 0).message);
    return verdict;
}

static uint64_t
bytes_of(const char *name, const LhProgramParams *p, uint32_t rank)
{
    g_autoptr(LhVerdict) verdict = prove(name, p);

    return verdict->bytes_sent[rank];
}

static uint64_t
flops_of(const char *name, const LhProgramParams *p, uint32_t rank)
{
    g_autoptr(LhVerdict) verdict = prove(name, p);

    return verdict->flops[rank];
}

static uint64_t
peak_of(const char *name, const LhProgramParams *p, uint32_t rank)
{
    g_autoptr(LhVerdict) verdict = prove(name, p);

    return verdict->peak_bytes[rank];
}

static void
check_refused(const char *name, const LhProgramParams *p, const char *words)
{
    g_autoptr(GError) error = NULL;

    ck_assert_ptr_null(lh_program_new(schedule_called(name), p, &error));
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_NO));
    ck_assert_msg(strstr(error->message, words) != NULL, "%s", error->message);
}

static LhRunResult *
run(const LhProgram *program, const LhNumerics *numerics, LhErrorReport *report)
{
    g_autoptr(GError) error = NULL;
    LhNumericsLoad load = { numerics, program };
    const LhRunParams params = {
        .program = program,
        .backend = &lh_backend_cpu,
        .deadline_us = 60 * G_USEC_PER_SEC,
        .load = lh_numerics_load_part,
        .load_data = &load,
    };
    LhRunResult *result = lh_execute(&params, &error);

    ck_assert_msg(result != NULL, "%s, P %u, U %u, pass %d: %s", program->name,
                  program->params.ranks, lh_heads_size(&program->params), (int)program->params.pass,
                  error == NULL ? "" : error->message);
    lh_tolerance_compare(numerics, program, result, report);
    return result;
}

/* Asserts that a program is proven, runs on threads with every output within tolerance, and counts
 * as proven. */
static void
check_run(const char *name, const LhProgramParams *p)
{
    g_autoptr(LhProgram) program = make(name, p);
    g_autoptr(LhNumerics) numerics = lh_numerics_new(&program->params, 3, LH_INPUTS_NORMAL);
    g_autoptr(LhVerdict) verdict = prove(name, p);
    g_autoptr(LhRunResult) result = NULL;
    g_auto(LhErrorReport) report = { 0 };

    result = run(program, numerics, &report);
    for (uint32_t i = 0; i < report.rows_count; i++)
        ck_assert_msg(
            report.rows[i].ok,
            "%s, P %u, h %u, g %u, pass %d, window %d, %u documents: error of %s is %g, %g", name,
            p->ranks, p->attention.heads, p->attention.groups, (int)p->pass, (int)p->mask.window,
            p->mask.documents_count, report.rows[i].name, report.rows[i].rel_l2,
            report.rows[i].row);
    ck_assert_uint_ge(report.rows_count, (lh_pass_has(p, LH_PASS_FWD) ? 1U : 0U) +
                                             (lh_pass_has(p, LH_PASS_BWD) ? 3U : 0U));
    for (uint32_t rank = 0; rank < p->ranks; rank++) {
        ck_assert_uint_eq(result->ranks[rank].bytes_sent, verdict->bytes_sent[rank]);
        ck_assert_uint_eq(result->ranks[rank].peak_bytes, verdict->peak_bytes[rank]);
    }
}

/* Q of make_params: 4 tokens of h heads of 16 elements of 2 bytes; KV: k and v of g heads. */
#define Q(heads) ((heads)*UINT64_C(128))
#define KV(groups) ((groups)*UINT64_C(256))
#define S(heads) ((heads)*UINT64_C(16))

START_TEST(slices_are_dealt_out)
{
    ck_assert_uint_eq(lh_slices_share(33, 16), 3);
    ck_assert_uint_eq(lh_slices_first(33, 16, 1), 3);
    ck_assert_uint_eq(lh_slices_first(33, 16, 15), 31);
    ck_assert_uint_eq(lh_slices_share(16, 16), 1);
    ck_assert_uint_eq(lh_slices_first(16, 16, 15), 15);
    ck_assert_uint_eq(lh_slices_share(2, 8), 1);
    ck_assert_uint_eq(lh_slices_first(2, 8, 3), 0);
    ck_assert_uint_eq(lh_slices_first(2, 8, 4), 1);
}
END_TEST

/* Rank 6, in groups of 4 of 8 ranks, on zigzag halves: first halves 4 to 7, second halves 8 to 11,
 * whose owners are in reverse order unless the halves are split. */
START_TEST(saved_tensors_lie_in_the_order_of_tokens)
{
    LhProgram program = {
        .placement = { .kind = LH_PLACE_ZIGZAG, .ranks = 8, .seq_length = 64 },
        .head_slices = 4,
        .kv_slices = 2,
        .saved_group = 4,
    };
    const LhSlot q_slot = { .kind = LH_TENSOR_Q, .role = LH_SLOT_INPUT, .by_heads = true };
    const LhSlot kv_slot = { .kind = LH_TENSOR_KV, .role = LH_SLOT_INPUT, .by_heads = true };
    const LhSlot dq_slot = { .kind = LH_TENSOR_DQ, .role = LH_SLOT_OUTPUT };
    const LhSlot dkv_slot = { .kind = LH_TENSOR_DKV, .role = LH_SLOT_OUTPUT };

    ck_assert_uint_eq(lh_slot_parts(&program, &q_slot), 8);
    ck_assert_uint_eq(lh_slot_parts(&program, &dq_slot), 2 * 4);
    ck_assert_uint_eq(lh_slot_parts(&program, &dkv_slot), 2 * 2);
    for (unsigned split = 1; split <= 4; split += 3) {
        program.placement.split = split;
        for (uint32_t part = 0; part < 8; part++) {
            const LhHolding q = lh_slot_holding(&program, &q_slot, 6, part);
            const LhHolding kv = lh_slot_holding(&program, &kv_slot, 6, part);

            ck_assert_uint_eq(q.segment, 4 + part);
            ck_assert_uint_eq(q.slice, 2);
            ck_assert_uint_eq(kv.segment, 4 + part);
            ck_assert_uint_eq(kv.slice, 1);
        }
    }
}
END_TEST

START_TEST(copies_reverse_parts)
{
    float from[3][2] = { { 1, 2 }, { 3, 4 }, { 5, 6 } }, to[3][2];
    const LhKernelArgs args = {
        .nq = 3, .batch = 1, .heads = 1, .groups = 1, .head_dim = 2, .reversed = true
    };
    const LhCall call = {
        .args = &args,
        .operands = { { .data = (unsigned char *)from, .parts = 3, .part_bytes = sizeof(from[0]) },
                      { .data = (unsigned char *)to, .parts = 3, .part_bytes = sizeof(to[0]) } },
    };

    ck_assert_int_eq(lh_cpu_kernels[LH_KERNEL_ID_copy]->fast(&call), LH_STATUS_OK);
    for (unsigned part = 0; part < 3; part++)
        ck_assert_mem_eq(to[part], from[2 - part], sizeof(to[0]));
}
END_TEST

START_TEST(ulysses_sends_a_share_of_everything)
{
    LhProgramParams p = make_params(4, 8, 8, LH_PASS_FWD);

    /* 2 Q + KV = 2 1024 + 2048, of which 3/4 is sent. */
    ck_assert_uint_eq(bytes_of("ulysses", &p, 1), 3072);
    p.pass = LH_PASS_BWD;
    ck_assert_uint_eq(bytes_of("ulysses", &p, 1), 3072);
    p.pass = LH_PASS_BOTH;
    ck_assert_uint_eq(bytes_of("ulysses", &p, 1), 6144);
    /* dq, dk, dv in fp32: 1024 + 2 1024 + 2 2048. */
    p.pass = LH_PASS_BWD;
    set_option(&p, "gradient_wire", LH_WIRE_FP32);
    ck_assert_uint_eq(bytes_of("ulysses", &p, 1), 5376);
    /* Grouped: 2 1024 + 4 256. */
    p = make_params(4, 8, 4, LH_PASS_FWD);
    ck_assert_uint_eq(bytes_of("ulysses", &p, 3), 2304);
    /* 16 tokens, 136 pairs of 2 heads of 16. */
    ck_assert_uint_eq(flops_of("ulysses", &p, 3), 4 * 2 * 16 * 136);
    p.mask.causal = false;
    ck_assert_uint_eq(flops_of("ulysses", &p, 3), 4 * 2 * 16 * 256);
    ck_assert_double_eq(schedule_called("ulysses")->closed.idle_flops(&p), 0);
}
END_TEST

START_TEST(ulysses_replicates_groups_fewer_than_ranks)
{
    LhProgramParams p = make_params(8, 8, 2, LH_PASS_FWD);

    /* 2 Q + 4 KV, of which 7/8 is sent. */
    ck_assert_uint_eq(bytes_of("ulysses", &p, 5), (2 * Q(8) + 4 * KV(2)) / 8 * 7);
    p.pass = LH_PASS_BWD;
    ck_assert_uint_eq(bytes_of("ulysses", &p, 5), (2 * Q(8) + 4 * KV(2)) / 8 * 7);
    p = make_params(8, 6, 2, LH_PASS_FWD);
    check_refused("ulysses", &p, "nearest legal numbers of ranks: 6");
    p = make_params(4, 12, 3, LH_PASS_FWD);
    check_refused("ulysses", &p, "nearest legal numbers of ranks: 3, 6");
}
END_TEST

START_TEST(ulysses_deals_out_heads_that_do_not_divide)
{
    LhProgramParams p = make_params(16, 33, 33, LH_PASS_FWD);
    const LhClosedForms *closed = &schedule_called("ulysses")->closed;

    /* Rank 0 has 3 heads and the others 2. Rank 0 sends 30 of 33 slices of q, k, v, and 15/16 of o
     * of 3 heads, for 64 tokens. */
    ck_assert_uint_eq(bytes_of("ulysses", &p, 0), 30 * (Q(1) + KV(1)) + 15 * 3 * Q(1));
    ck_assert_uint_eq(bytes_of("ulysses", &p, 1), 31 * (Q(1) + KV(1)) + 15 * 2 * Q(1));
    ck_assert_uint_eq(flops_of("ulysses", &p, 0), 4 * 3 * 16 * 64 * 65 / 2);
    ck_assert_uint_eq(flops_of("ulysses", &p, 15), 4 * 2 * 16 * 64 * 65 / 2);
    ck_assert_double_eq_tol(closed->idle_flops(&p), 0.3125, 1e-15); /* 1 - 33/48 */
    p.pass = LH_PASS_BWD;
    ck_assert_uint_eq(bytes_of("ulysses", &p, 1), 31 * Q(1) + 15 * 2 * (Q(1) + KV(1)));
    /* By key-value heads: 5 of them on 4 ranks, with 3 query heads each. */
    p = make_params(4, 15, 5, LH_PASS_FWD);
    ck_assert_uint_eq(flops_of("ulysses", &p, 0), 4 * 6 * 16 * 136);
    ck_assert_double_eq_tol(closed->idle_unit(&p), 0.375, 1e-15); /* 1 - 5/8 */
}
END_TEST

START_TEST(ulysses_pads_heads)
{
    LhProgramParams p = make_params(16, 33, 33, LH_PASS_FWD);

    set_option(&p, "pad_heads", true);
    g_autoptr(LhProgram) padded = make("ulysses", &p);
    ck_assert_uint_eq(padded->params.attention.heads, 48);
    ck_assert_uint_eq(padded->params.attention.groups, 48);
    ck_assert_uint_eq(padded->params.attention.hidden_size, 33 * 16);
    ck_assert_uint_eq(flops_of("ulysses", &p, 9), 4 * 3 * 16 * 64 * 65 / 2);
    /* 10 query heads per group, 4 groups; 2 groups have 8 ranks each, so 16. */
    p = make_params(16, 40, 4, LH_PASS_FWD);
    set_option(&p, "pad_heads", true);
    g_autoptr(LhProgram) shared = make("ulysses", &p);
    ck_assert_uint_eq(shared->params.attention.heads, 48);
    ck_assert_uint_eq(shared->params.attention.groups, 4);
    /* Groups, with their heads. */
    p = make_params(4, 12, 6, LH_PASS_FWD);
    set_option(&p, "pad_heads", true);
    g_autoptr(LhProgram) grouped = make("ulysses", &p);
    ck_assert_uint_eq(grouped->params.attention.heads, 16);
    ck_assert_uint_eq(grouped->params.attention.groups, 8);
}
END_TEST

START_TEST(ulysses_holds_what_it_saves)
{
    LhProgramParams p = make_params(4, 8, 8, LH_PASS_FWD);

    /* q, k, v, o; by heads q, k, v, o, lse; and o rearranged, smaller than q, k, v were. */
    ck_assert_uint_eq(peak_of("ulysses", &p, 0),
                      2 * Q(8) + KV(8) + MAX(2 * Q(8) + 2 * KV(8), 3 * Q(8) + KV(8) + S(8)));
    p.pass = LH_PASS_BOTH;
    /* Also do, dq, dk, dv by tokens and by heads. */
    ck_assert_uint_eq(peak_of("ulysses", &p, 0),
                      4 * Q(8) + 2 * KV(8) + 2 * Q(8) + KV(8) + S(8) + 2 * Q(8) + KV(8));
}
END_TEST

/* The tests of verifier and runtime cover every number of ranks. */
static const uint32_t run_ranks[] = { 2, 3, 4, 6, 8 };
static const uint32_t proof_ranks[] = { 1, 2, 3, 4, 6, 8, 9, 12, 16, 25 };

/* Packed documents of 5, 11 and the rest of the tokens, and a window. */
static void
set_masks(LhProgramParams *p, unsigned variant, uint64_t ends[3])
{
    ends[0] = 5;
    ends[1] = 16;
    ends[2] = p->attention.seq_length;
    p->mask.causal = variant != 1;
    p->mask.window = variant == 2 || variant == 4 ? 7 : 0;
    if (variant >= 3 && p->attention.seq_length > 16) {
        p->mask.document_ends = ends;
        p->mask.documents_count = 3;
    }
}

static void
prove_all(const char *name, uint32_t heads, uint32_t groups, uint32_t ranks, unsigned masks)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(passes); i++) {
        for (unsigned variant = 0; variant < masks * 2; variant++) {
            LhProgramParams p = make_params(ranks, heads, groups, passes[i]);
            g_autoptr(LhVerdict) verdict = NULL;
            uint64_t ends[3];

            if (!test_takes_next(0))
                continue;
            set_masks(&p, variant / 2, ends);
            set_option(&p, "no_overlap", variant % 2);
            set_option(&p, "te_version", (variant + i) % 3);
            verdict = prove(name, &p);
            ck_assert_uint_eq(verdict->ranks, ranks);
        }
    }
}

START_TEST(ulysses_is_proven)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(proof_ranks); i++) {
        const uint32_t ranks = proof_ranks[i];

        prove_all("ulysses", 2 * ranks, ranks, ranks, 5);
        prove_all("ulysses", ranks + 1, ranks + 1, ranks, ranks <= 16 ? 5 : 1);
        if (ranks % 4 == 0)
            prove_all("ulysses", ranks, ranks / 4, ranks, ranks <= 16 ? 5 : 1);
    }
}
END_TEST

static void
run_all(const char *name, uint32_t heads, uint32_t groups, uint32_t ranks, unsigned masks)
{
    for (unsigned variant = 0; variant < masks; variant++) {
        for (unsigned i = 0; i < G_N_ELEMENTS(passes); i++) {
            LhProgramParams p = make_params(ranks, heads, groups, passes[i]);
            uint64_t ends[3];

            if (!test_takes_next(0))
                continue;
            set_masks(&p, variant, ends);
            set_option(&p, "te_version", (variant + 1) % 3);
            set_option(&p, "gradient_wire", variant == 0 ? LH_WIRE_FP32 : LH_WIRE_DEFAULT);
            p.attention.dtype = variant == 2 ? LH_DTYPE_FP32 : LH_DTYPE_BF16;
            check_run(name, &p);
        }
    }
}

START_TEST(ulysses_computes_attention)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(run_ranks); i++) {
        const uint32_t ranks = run_ranks[i];

        run_all("ulysses", 2 * ranks, ranks, ranks, 5);
        run_all("ulysses", ranks + 1, ranks + 1, ranks, 1);
        if (ranks % 4 == 0)
            run_all("ulysses", ranks, ranks / 4, ranks, 1);
    }
}
END_TEST

START_TEST(te_a2a_sends_a_share_of_everything)
{
    LhProgramParams p = make_params(4, 8, 4, LH_PASS_FWD);

    ck_assert_uint_eq(bytes_of("te-a2a", &p, 3), 2304); /* (2 1024 + 1024) 3/4 */
    p.pass = LH_PASS_BWD;
    ck_assert_uint_eq(bytes_of("te-a2a", &p, 3), 2304);
    set_option(&p, "te_version", LH_TE_2_8);
    ck_assert_uint_eq(bytes_of("te-a2a", &p, 3), 2304);
    set_option(&p, "te_version", LH_TE_2_7); /* and o once more: 3/4 of 1024 */
    ck_assert_uint_eq(bytes_of("te-a2a", &p, 3), 3072);
    p.pass = LH_PASS_BOTH;
    ck_assert_uint_eq(bytes_of("te-a2a", &p, 3), 5376);
    ck_assert_uint_eq(flops_of("te-a2a", &p, 3), 14 * 2 * 16 * 136);
    p = make_params(8, 8, 4, LH_PASS_FWD);
    check_refused("te-a2a", &p, "nearest legal numbers of ranks: 4");
    p = make_params(5, 12, 12, LH_PASS_FWD);
    check_refused("te-a2a", &p, "nearest legal numbers of ranks: 4, 6");
    /* q, k, v, o; q, k, v by heads, rearranged and received. */
    p = make_params(4, 8, 8, LH_PASS_FWD);
    ck_assert_uint_eq(peak_of("te-a2a", &p, 0), 2 * Q(8) + KV(8) + 3 * (Q(8) + KV(8)));
}
END_TEST

/* Asserts the first finding about te-a2a on 2 ranks with one word of its explicit form replaced. */
static void
check_found(const char *word, const char *other, LhFindingKind kind)
{
    const LhProgramParams p = make_params(2, 2, 2, LH_PASS_FWD);
    g_autoptr(LhProgram) program = make("te-a2a", &p);
    g_autoptr(LhProgram) broken = NULL;
    g_autoptr(LhVerdict) verdict = NULL;
    GString *text = g_string_new(NULL);

    ck_assert(lh_program_write(program, text, NULL));
    ck_assert_uint_eq(g_string_replace(text, word, other, 1), 1);
    broken = lh_program_parse("broken", text->str, text->len, NULL);
    ck_assert_ptr_nonnull(broken);
    verdict = lh_verify(broken);
    ck_assert_uint_gt(verdict->findings_total, 0);
    ck_assert_int_eq(g_array_index(verdict->findings, LhFinding, 0).kind, kind);
    g_string_free(text, TRUE);
}

START_TEST(te_a2a_needs_its_reversed_copies)
{
    check_found("\"reversed\": true", "\"reversed\": false", LH_FINDING_COVERAGE);
    check_found("\"attention\"", "\"attention\", \"reversed\": true", LH_FINDING_MALFORMED);
}
END_TEST

START_TEST(te_a2a_is_proven)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(proof_ranks); i++)
        prove_all("te-a2a", 2 * proof_ranks[i], proof_ranks[i], proof_ranks[i], 5);
}
END_TEST

START_TEST(te_a2a_computes_attention)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(run_ranks); i++)
        run_all("te-a2a", 2 * run_ranks[i], run_ranks[i], run_ranks[i], 5);
}
END_TEST

/* X of make_params: 4 tokens of h heads of 16 elements of 2 bytes, as Q. */
START_TEST(megatron_gathers_and_scatters)
{
    LhProgramParams p = make_params(4, 8, 4, LH_PASS_FWD);

    ck_assert_uint_eq(bytes_of("megatron-tp-sp", &p, 2), 2 * 3 * 1024);
    ck_assert_uint_eq(flops_of("megatron-tp-sp", &p, 2), 4 * 2 * 16 * 136);
    p.pass = LH_PASS_BWD;
    ck_assert_uint_eq(bytes_of("megatron-tp-sp", &p, 2), 3 * 3 * 1024);
    p.pass = LH_PASS_BOTH;
    ck_assert_uint_eq(bytes_of("megatron-tp-sp", &p, 2), 5 * 3 * 1024);
    /* q, k, v, o, lse, do, dq, dk, dv; x, y, dy, dx; x and the gradient gathered. */
    ck_assert_uint_eq(peak_of("megatron-tp-sp", &p, 2),
                      4 * Q(8) + 2 * KV(4) + S(8) + 4 * 1024 + 2 * 4 * 1024);
    set_option(&p, "recompute_granularity", RECOMPUTE_SELECTIVE);
    ck_assert_uint_eq(bytes_of("megatron-tp-sp", &p, 2), 5 * 3 * 1024);
    ck_assert_uint_eq(flops_of("megatron-tp-sp", &p, 2), 18 * 2 * 16 * 136);
    set_option(&p, "recompute_granularity", RECOMPUTE_FULL);
    ck_assert_uint_eq(bytes_of("megatron-tp-sp", &p, 2), 7 * 3 * 1024);
    ck_assert_uint_eq(flops_of("megatron-tp-sp", &p, 2), 18 * 2 * 16 * 136);
    p.attention.hidden_size = 100;
    ck_assert_uint_eq(bytes_of("megatron-tp-sp", &p, 2), 7 * 3 * 800);
}
END_TEST

START_TEST(megatron_wants_heads_that_divide)
{
    LhProgramParams p = make_params(16, 33, 33, LH_PASS_FWD);

    check_refused("megatron-tp-sp", &p, "nearest legal numbers of ranks: 11, 33");
    set_option(&p, "pad_heads", true);
    /* X is that of 33 heads, the computation that of 48. */
    ck_assert_uint_eq(bytes_of("megatron-tp-sp", &p, 0), 2 * 15 * Q(33));
    ck_assert_uint_eq(flops_of("megatron-tp-sp", &p, 0), 4 * 3 * 16 * 64 * 65 / 2);
    p = make_params(6, 12, 4, LH_PASS_FWD);
    check_refused("megatron-tp-sp", &p, "nearest legal numbers of ranks: 4, 12");
    p = make_params(8, 12, 2, LH_PASS_FWD);
    check_refused("megatron-tp-sp", &p, "nearest legal numbers of ranks: 6, 12");
}
END_TEST

/*
 * With fewer key-value heads than ranks each rank has a copy of one: computation and memory are as
 * with one key-value head per rank. Padding rounds a group's query heads up to a multiple of its
 * ranks.
 */
START_TEST(megatron_replicates_key_value_heads)
{
    for (uint32_t pass = LH_PASS_FWD; pass <= LH_PASS_BOTH; pass++) {
        const LhProgramParams whole = make_params(4, 8, 4, (LhPass)pass);
        LhProgramParams p = make_params(4, 8, 2, (LhPass)pass), padded;

        for (unsigned i = 0; i < 2; i++, p.attention.groups = 1) {
            ck_assert_uint_eq(bytes_of("megatron-tp-sp", &p, 2),
                              bytes_of("megatron-tp-sp", &whole, 2));
            ck_assert_uint_eq(flops_of("megatron-tp-sp", &p, 2),
                              flops_of("megatron-tp-sp", &whole, 2));
            ck_assert_uint_eq(peak_of("megatron-tp-sp", &p, 2),
                              peak_of("megatron-tp-sp", &whole, 2));
        }
        p = make_params(8, 12, 2, (LhPass)pass);
        set_option(&p, "pad_heads", true);
        padded = make_params(8, 16, 8, (LhPass)pass);
        ck_assert_uint_eq(flops_of("megatron-tp-sp", &p, 0),
                          flops_of("megatron-tp-sp", &padded, 0));
    }
}
END_TEST

START_TEST(megatron_is_proven)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(proof_ranks); i++) {
        const uint32_t ranks = proof_ranks[i];

        prove_all("megatron-tp-sp", 2 * ranks, ranks, ranks, 5);
        if (ranks % 4 == 0)
            prove_all("megatron-tp-sp", ranks, ranks / 4, ranks, ranks <= 16 ? 5 : 1);
        for (uint32_t how = RECOMPUTE_NONE; how <= RECOMPUTE_FULL; how++) {
            LhProgramParams p = make_params(ranks, ranks, ranks, LH_PASS_BOTH);
            g_autoptr(LhVerdict) verdict = NULL;

            if (!test_takes_next(0))
                continue;
            set_option(&p, "recompute_granularity", how);
            verdict = prove("megatron-tp-sp", &p);
            ck_assert_uint_eq(verdict->ranks, ranks);
        }
    }
}
END_TEST

START_TEST(megatron_computes_attention)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(run_ranks); i++) {
        LhProgramParams p = make_params(run_ranks[i], run_ranks[i], run_ranks[i], LH_PASS_BOTH);

        run_all("megatron-tp-sp", 2 * run_ranks[i], run_ranks[i], run_ranks[i], 5);
        if (run_ranks[i] % 4 == 0)
            run_all("megatron-tp-sp", 2 * run_ranks[i], run_ranks[i] / 4, run_ranks[i], 5);
        set_option(&p, "recompute_granularity", RECOMPUTE_FULL);
        check_run("megatron-tp-sp", &p);
    }
}
END_TEST

/* 12 ranks, 12 heads in 4 groups: U = 4, R = 3. */
START_TEST(usp_sends_less_than_a_ring)
{
    LhProgramParams p = make_params(12, 12, 4, LH_PASS_FWD);
    LhProgramParams sized;

    ck_assert_uint_eq(bytes_of("usp", &p, 7), (2 * Q(12) + KV(4)) / 4 * 3 + 2 * KV(4));
    /* 48 tokens in blocks of 16: a diagonal of 136 pairs and 2 halves, for 3 heads. */
    ck_assert_uint_eq(flops_of("usp", &p, 7), 4 * 3 * 16 * (136 + 2 * 128));
    p.pass = LH_PASS_BWD;
    ck_assert_uint_eq(bytes_of("usp", &p, 7),
                      (2 * Q(12) + KV(4)) / 4 * 3 + 2 * KV(4) + 3 * 2 * KV(4));
    set_option(&p, "gradient_wire", LH_WIRE_16BIT);
    ck_assert_uint_eq(bytes_of("usp", &p, 7), (2 * Q(12) + KV(4)) / 4 * 3 + 2 * KV(4) + 3 * KV(4));
    set_option(&p, "gradient_wire", LH_WIRE_DEFAULT);
    set_size(&p, 2); /* R = 6 */
    ck_assert_uint_eq(bytes_of("usp", &p, 7), (2 * Q(12) + KV(4)) / 2 + 5 * KV(4) + 6 * 2 * KV(4));
    p.pass = LH_PASS_FWD;
    set_size(&p, 1); /* zigzag */
    ck_assert_uint_eq(bytes_of("usp", &p, 7), 11 * KV(4));
    set_size(&p, 3);
    check_refused("usp", &p, "must divide the 12 ranks and the 4 query groups: 1, 2, 4");
    set_size(&p, 0);
    p.gpus_per_node = 6;
    sized = lh_schedule_params(schedule_called("usp"), &p);
    ck_assert_uint_eq(lh_heads_size(&sized), 2);
    /* Groups of the ring's size: Ulysses. */
    p = make_params(4, 8, 4, LH_PASS_BOTH);
    ck_assert_uint_eq(bytes_of("usp", &p, 3), 2 * 2304);
}
END_TEST

START_TEST(te_a2a_p2p_returns_gradients_with_keys)
{
    LhProgramParams p = make_params(12, 12, 4, LH_PASS_FWD);
    const uint64_t moved = (2 * Q(12) + KV(4)) / 4 * 3;

    ck_assert_uint_eq(bytes_of("te-a2a-p2p", &p, 7), moved + 2 * KV(4));
    ck_assert_uint_eq(flops_of("te-a2a-p2p", &p, 7), 4 * 3 * 16 * (136 + 2 * 128));
    p.pass = LH_PASS_BOTH;
    ck_assert_uint_eq(bytes_of("te-a2a-p2p", &p, 7), 2 * moved + 6 * KV(4));
    for (LhTeVersion version = LH_TE_2_8; version <= LH_TE_2_7; version++) {
        set_option(&p, "te_version", version);
        ck_assert_uint_eq(bytes_of("te-a2a-p2p", &p, 7), 2 * moved + Q(12) / 4 * 3 + 6 * KV(4));
    }
    set_size(&p, 5);
    check_refused("te-a2a-p2p", &p, "1, 2, 4");
}
END_TEST

/* Every legal group size with one key-value head per rank. */
static void
prove_grids(const char *name, uint32_t ranks)
{
    for (uint32_t size = 1; size <= ranks; size++) {
        for (unsigned bits = 0; ranks % size == 0 && bits < 36; bits++) {
            LhProgramParams p = make_params(ranks, 2 * ranks, ranks, passes[bits / 12]);
            g_autoptr(LhVerdict) verdict = NULL;

            if (!test_takes_next(0))
                continue;
            set_size(&p, size);
            p.mask.causal = (bits & 1) != 0;
            set_option(&p, "no_overlap", (bits & 2) == 0);
            set_option(&p, "te_version", bits / 4 % 3);
            set_option(&p, "published_code", bits % 3 == 1);
            verdict = prove(name, &p);
            ck_assert_uint_eq(verdict->ranks, ranks);
        }
    }
}

START_TEST(grids_are_proven)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(proof_ranks); i++) {
        prove_grids("usp", proof_ranks[i]);
        prove_grids("te-a2a-p2p", proof_ranks[i]);
    }
}
END_TEST

static void
run_grids(const char *name, uint32_t ranks)
{
    for (uint32_t size = 1; size <= ranks; size++) {
        for (unsigned i = 0; ranks % size == 0 && i < G_N_ELEMENTS(passes); i++) {
            LhProgramParams p = make_params(ranks, 2 * ranks, ranks, passes[i]);

            if (!test_takes_next(0))
                continue;
            set_size(&p, size);
            check_run(name, &p);
            p.mask.causal = false;
            set_option(&p, "gradient_wire", LH_WIRE_FP32);
            check_run(name, &p);
        }
    }
}

START_TEST(grids_compute_attention)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(run_ranks); i++) {
        run_grids("usp", run_ranks[i]);
        run_grids("te-a2a-p2p", run_ranks[i]);
    }
}
END_TEST

LH_TEST_MAIN("forms_heads", slices_are_dealt_out, saved_tensors_lie_in_the_order_of_tokens,
             copies_reverse_parts, ulysses_sends_a_share_of_everything,
             ulysses_replicates_groups_fewer_than_ranks, ulysses_deals_out_heads_that_do_not_divide,
             ulysses_pads_heads, ulysses_holds_what_it_saves, ulysses_is_proven,
             ulysses_computes_attention, te_a2a_sends_a_share_of_everything,
             te_a2a_needs_its_reversed_copies, te_a2a_is_proven, te_a2a_computes_attention,
             megatron_gathers_and_scatters, megatron_wants_heads_that_divide,
             megatron_replicates_key_value_heads, megatron_is_proven, megatron_computes_attention,
             usp_sends_less_than_a_ring, te_a2a_p2p_returns_gradients_with_keys, grids_are_proven,
             grids_compute_attention)
