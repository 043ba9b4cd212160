/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ring self-attention: bytes, flops and memory worked out by hand, masks that save nothing, proofs,
 * and the verifier's findings on wrong scores.
 */
#include "base/error.h"
#include "options.h"
#include "recording.h"
#include "run_tests.h"
#include "sched/common/pass.h"
#include "verify/verify.h"

#include <string.h>

/* B 2, n 6, h 8, g 2, d 16, 2 bytes. */
#define Q UINT64_C(3072)
#define KV UINT64_C(1536)
#define S UINT64_C(384)
#define PRODUCT UINT64_C(512)  /* flops of a pair: 2 B h d */
#define BLOCK UINT64_C(576)    /* scores of a rank with one rank's keys: 2 * 8 * 6 * 6 */
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
make(const LhProgramParams *p)
{
    g_autoptr(GError) error = NULL;
    LhProgram *program = lh_program_new(lh_schedule_find("rsa", NULL), p, &error);

    ck_assert_msg(program != NULL, "%s", error == NULL ? "" : error->message);
    return program;
}

/* The proof itself compares its counts with the closed forms. */
static LhVerdict *
prove(const LhProgramParams *p)
{
    g_autoptr(LhProgram) program = make(p);
    LhVerdict *verdict = lh_verify(program);

    if (verdict->findings_total > 0)
        ck_abort_msg("P %u, g %u, pass %d, window %u, %u documents%s: %s", p->ranks,
                     p->attention.groups, (int)p->pass, (unsigned)p->mask.window,
                     p->mask.documents_count, p->mask.causal ? ", causal" : "",
                     g_array_index(verdict->findings, LhFinding, 0).message);
    return verdict;
}

typedef struct {
    uint32_t ranks;
    LhPass pass;
    uint64_t bytes, flops, peak;
    LhWireDtype wire;
    bool full;
} Row;

START_TEST(forms_rsa_count)
{
    static const Row rows[] = {
        /* k and v three times; 4 blocks of 36 pairs, in two products; softmax between fp32 scores
         * and probabilities of 2 bytes. */
        { 4, LH_PASS_FWD, 3 * KV, 2 * 4 * 36 * PRODUCT, .peak = FWD_IO + KV + 6 * 4 * BLOCK },
        { 4, LH_PASS_FWD, 3 * KV, 2 * 4 * 36 * PRODUCT, .peak = FWD_IO + KV + 6 * 4 * BLOCK,
          .full = true },
        /* Two all-reduces of 4 KV/2; k a third time, for scores. Two-byte dscores, dk and dv of all
         * keys, and the sum of dq. */
        { 4, LH_PASS_BWD, 3 * KV / 2 + 3 * KV + 2 * 6 * KV / 2, 5 * 4 * 36 * PRODUCT,
          .peak = BWD_IO + KV + 2 * 4 * BLOCK + 4 * KV + 2 * Q },
        { 4, LH_PASS_BWD, 3 * KV / 2 + 3 * KV + 2 * 6 * KV, 5 * 4 * 36 * PRODUCT,
          .peak = BWD_IO + KV + 2 * 4 * BLOCK + 8 * KV + 2 * Q, .wire = LH_WIRE_FP32 },
        { 4, LH_PASS_BOTH, 3 * KV + 3 * KV + 2 * 6 * KV / 2, 6 * 4 * 36 * PRODUCT,
          .peak = BWD_IO + KV + 2 * 4 * BLOCK + 4 * KV + 2 * Q },
        /* With more keys softmax has the largest peak; backward alone repeats it. */
        { 16, LH_PASS_BWD, 15 * KV / 2 + 15 * KV + 2 * 30 * KV / 2, 5 * 16 * 36 * PRODUCT,
          .peak = BWD_IO + KV + 6 * 16 * BLOCK + S },
        { 2, LH_PASS_FWD, KV, 2 * 2 * 36 * PRODUCT, .peak = FWD_IO + KV + 2 * 2 * BLOCK + 2 * Q },
        { 1, LH_PASS_FWD, 0, 2 * 21 * PRODUCT, .peak = FWD_IO },
        { 1, LH_PASS_BWD, 0, 5 * 21 * PRODUCT, .peak = BWD_IO },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        LhProgramParams p = make_params(rows[i].ranks, rows[i].pass);
        g_autoptr(LhVerdict) verdict = NULL;

        set_option(&p, "gradient_wire", rows[i].wire);
        p.mask.causal = !rows[i].full;
        verdict = prove(&p);
        for (uint32_t rank = 0; rank < p.ranks; rank++) {
            ck_assert_msg(verdict->bytes_sent[rank] == rows[i].bytes, "row %u: %lu bytes", i,
                          (gulong)verdict->bytes_sent[rank]);
            ck_assert_msg(verdict->flops[rank] == rows[i].flops, "row %u: %lu flops", i,
                          (gulong)verdict->flops[rank]);
            ck_assert_msg(verdict->peak_bytes[rank] == rows[i].peak,
                          "row %u: peak memory %lu bytes", i, (gulong)verdict->peak_bytes[rank]);
        }
    }
}
END_TEST

/* LLaMA-7B's attention on 8 ranks, 64K tokens: scores of 32 heads, 8K rows and 64K keys are 2^34
 * numbers, 64 GiB in fp32 and half of that as probabilities; dfa-balanced needs less than 1 GiB. */
START_TEST(forms_rsa_fill_a_device)
{
    const LhProgramParams p = { .attention = { .batch = 1,
                                               .seq_length = 65536,
                                               .heads = 32,
                                               .groups = 32,
                                               .head_dim = 128,
                                               .dtype = LH_DTYPE_BF16 },
                                .ranks = 8,
                                .mask.causal = true,
                                .pass = LH_PASS_FWD };
    const LhSchedule *rsa = lh_schedule_find("rsa", NULL);
    const LhSchedule *dfa = lh_schedule_find("dfa-balanced", NULL);
    const uint64_t mib = 1 << 20;

    /* q, o 64 MiB each, kv and the ring's buffers 128 each, lse 1. */
    ck_assert_uint_eq(rsa->closed.peak_bytes(&p, 0), (96 * 1024 + 2 * 64 + 2 * 128 + 1) * mib);
    ck_assert_uint_lt(dfa->closed.peak_bytes(&p, 0), 1024 * mib);
}
END_TEST

/* Windows and documents apply in softmax: every rank computes as much as without them. */
START_TEST(forms_rsa_ignore_masks)
{
    static const uint64_t ends[] = { 5, 24 };

    for (unsigned i = 0; i < 8; i++) {
        LhProgramParams p = make_params(4, i % 2 == 0 ? LH_PASS_BOTH : LH_PASS_BWD);
        g_autoptr(LhVerdict) verdict = NULL;

        p.mask.causal = i < 6;
        p.mask.window = i / 2 == 1 ? 7 : 0;
        p.mask.document_ends = i / 2 >= 2 ? ends : NULL;
        p.mask.documents_count = i / 2 >= 2 ? 2 : 0;
        verdict = prove(&p);
        ck_assert_uint_eq(verdict->flops[1], (i % 2 == 0 ? 6U : 5U) * 4 * 36 * PRODUCT);
    }
}
END_TEST

START_TEST(forms_rsa_are_proven)
{
    for (uint32_t ranks = 1; ranks <= 9; ranks++) {
        for (unsigned bits = 0; bits < 8; bits++) {
            LhProgramParams p = make_params(ranks, (LhPass)(1 + (ranks + bits) % 3));

            p.mask.causal = bits % 2 != 0;
            set_option(&p, "published_code", bits / 2 % 2 != 0);
            p.attention.groups = bits / 4 % 2 != 0 ? 8 : 2;
            lh_verdict_free(prove(&p));
        }
    }
}
END_TEST

/* Rank 1's op @nth that calls @kernel. */
static LhOp *
find_op(const Recording *recording, LhKernelId kernel, uint32_t nth)
{
    for (uint32_t id = 0; id < recording_count(recording, 1); id++) {
        LhOp *op = recording_op(recording, 1, id);

        if (op->kind == LH_OP_COMPUTE && op->compute.kernel == kernel && nth-- == 0)
            return op;
    }
    ck_abort_msg("there is no such op");
}

static void
check_found(const Recording *recording, const char *words)
{
    g_autoptr(LhVerdict) verdict = lh_verify(&recording->program);

    ck_assert_msg(verdict->findings_total > 0, "no finding, expected \"%s\"", words);
    ck_assert_msg(strstr(g_array_index(verdict->findings, LhFinding, 0).message, words) != NULL,
                  "\"%s\" does not contain \"%s\"",
                  g_array_index(verdict->findings, LhFinding, 0).message, words);
}

/* A change to an op of a program of four ranks, under the full mask, whose softmax ignores
 * positions, or under the causal one. */
typedef struct {
    LhKernelId kernel;
    uint32_t nth, operand;
    int32_t part, count; /* added to the operand's region */
    bool causal;
    const char *words;
} Change;

START_TEST(forms_rsa_scores_are_followed)
{
    static const Change changes[] = {
        /* The own block where that of rank 0's keys belongs. */
        { LH_KERNEL_ID_scores, 1, 2, 1, 0, false, "which has not been written" },
        { LH_KERNEL_ID_scores_softmax, 0, 0, 0, -1, false,
          "takes 4 parts of slot probs; needed: 3" },
        { LH_KERNEL_ID_scores_o, 1, 0, 1, 0, false, "needs the rows of segment 1" },
        { LH_KERNEL_ID_scores_dp, 1, 2, 1, 0, false, "which has not been written" },
        { LH_KERNEL_ID_scores_dq, 1, 0, 1, 0, true, "needs the rows of segment 1" },
        { LH_KERNEL_ID_scores_dk, 0, 2, 0, -1, true, "takes 3 parts of slot dk_all; needed: 4" },
        { LH_KERNEL_ID_join_dkv, 0, 0, -1, 0, true, "beside rows of" },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(changes); i++) {
        const Change *c = &changes[i];
        LhProgramParams p = make_params(4, LH_PASS_BOTH);
        g_autoptr(LhProgram) program = NULL;
        Recording *recording;
        LhRegion *region;

        p.mask.causal = c->causal;
        program = make(&p);
        recording = recording_new(program);
        region = &find_op(recording, c->kernel, c->nth)->compute.regions[c->operand];
        region->part = (uint32_t)((int32_t)region->part + c->part);
        region->count = (uint32_t)((int32_t)region->count + c->count);
        check_found(recording, c->words);
        recording_free(recording);
    }
}
END_TEST

/* Without softmax's gradient, dscores are gradients of probabilities; applying it twice is
 * meaningless. */
START_TEST(forms_rsa_softmax_is_asked_for)
{
    const LhProgramParams p = make_params(4, LH_PASS_BOTH);
    g_autoptr(LhProgram) program = make(&p);
    Recording *recording = recording_new(program);
    LhOp *op = find_op(recording, LH_KERNEL_ID_scores_softmax_bwd, 0);

    op->kind = LH_OP_SYNC;
    check_found(recording, "takes slot dscores before softmax has been applied to it");
    recording_free(recording);

    recording = recording_new(program);
    op = find_op(recording, LH_KERNEL_ID_scores_softmax, 0);
    op->compute.args.mask = LH_MASK_CAUSAL;
    check_found(recording, "needs the program's mask by positions");
    op->compute.args.mask = LH_MASK_POSITIONS;
    op->compute.args.k_at.part_step--;
    check_found(recording, "for the tokens from 5 on");
    recording_free(recording);
}
END_TEST

LH_TEST_MAIN("forms_rsa", forms_rsa_count, forms_rsa_fill_a_device, forms_rsa_ignore_masks,
             forms_rsa_are_proven, forms_rsa_scores_are_followed, forms_rsa_softmax_is_asked_for)
