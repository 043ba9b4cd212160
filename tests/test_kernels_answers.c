/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of softmax attention against results known without a reference: rows without keys, equal
 * values, sums of blocks and parts, finite differences, materialised scores.
 */
#include "kernel_runs.h"
#include "run_tests.h"

/* Rows with no key: o = 0 and lse = -inf; values of 1: o = 1; key order does not matter. */
static void
check_known(void)
{
    LhKernelArgs args = plain_args;
    Case c, permuted_case;
    Run r, permuted;
    float *o, *v, *other;

    args.mask = LH_MASK_CAUSAL;
    args.shift = -1;
    attention_init(&r, &c, &args);
    v = (float *)(void *)r.call.operands[1].data + args.nk * args.head_dim;
    for (uint64_t i = 0; i < args.nk * args.head_dim; i++)
        v[i] = 1;
    run_kernel(r.id, FAST, &r.call);
    o = (float *)(void *)r.call.operands[2].data;
    for (uint64_t i = 0; i < args.nq * args.heads * args.head_dim; i++)
        ck_assert_double_eq_tol((double)o[i], i < args.heads * args.head_dim ? 0 : 1, 2e-6);
    ck_assert(((float *)(void *)r.call.operands[3].data)[0] == -INFINITY);
    run_clear(&r);

    attention_init(&r, &c, &plain_args);
    permuted_case = c;
    run_copy(&permuted, &r);
    permuted.c = &permuted_case;
    for (uint64_t j = 0; j < 2 * args.nk; j++) {
        const uint64_t of_tensor = j / args.nk, from = (j % args.nk * 7 + 3) % args.nk;

        memcpy(permuted.call.operands[1].data + j * args.head_dim * sizeof(float),
               r.call.operands[1].data +
                   (of_tensor * args.nk + from) * args.head_dim * sizeof(float),
               args.head_dim * sizeof(float));
    }
    run_kernel(r.id, FAST, &r.call);
    run_kernel(permuted.id, FAST, &permuted.call);
    o = (float *)(void *)r.call.operands[2].data;
    other = (float *)(void *)permuted.call.operands[2].data;
    for (uint64_t i = 0; i < args.nq * args.heads * args.head_dim; i++)
        ck_assert_double_eq_tol((double)o[i], (double)other[i], 2e-6);
    run_clear(&permuted);
    run_clear(&r);
}

START_TEST(kernels_know_simple_answers)
{
    on_levels(check_known);
}
END_TEST

/* ---- blocks and parts ---- */

/* Keys [begin, end) as a separate operand. */
static LhView
slice_keys(const LhView *kv, const LhKernelArgs *a, uint64_t begin, uint64_t end)
{
    const uint64_t row = a->groups * a->head_dim * sizeof(float), bytes = (end - begin) * row;
    unsigned char *data = g_malloc(2 * bytes);

    memcpy(data, kv->data + begin * row, bytes);
    memcpy(data + bytes, kv->data + (a->nk + begin) * row, bytes);
    return view_of(data, 2 * bytes);
}

/* Three blocks of keys, accumulated, or merged and then normalised, equal one call. */
static void
check_carry(void)
{
    const uint64_t ends[] = { 0, 17, 81, 90 }, rows = 140, bytes = rows * (24 + 2) * sizeof(float);
    g_autofree unsigned char *acc = g_malloc(bytes), *block = g_malloc(bytes);
    g_autofree unsigned char *o = g_malloc(bytes), *lse = g_malloc(rows * sizeof(float));
    Case c;
    Run r;

    attention_init(&r, &c, &plain_args);
    run_kernel(r.id, FAST, &r.call);
    for (unsigned merged = 0; merged < 2; merged++) {
        LhKernelArgs args = plain_args, of_rows = plain_args;
        LhCall end = { .args = &of_rows,
                       .operands = { view_of(acc, bytes), view_of(o, rows * 24 * sizeof(float)),
                                     view_of(lse, rows * sizeof(float)) } };

        of_rows.nk = 0;
        for (unsigned i = 0; i < 3; i++) {
            LhCall call = { .args = &args,
                            .operands = {
                                r.call.operands[0],
                                slice_keys(&r.call.operands[1], &plain_args, ends[i], ends[i + 1]),
                                view_of(merged ? block : acc, bytes) } };
            LhCall fold = { .args = &of_rows,
                            .operands = { view_of(block, bytes), view_of(acc, bytes) } };

            args.nk = ends[i + 1] - ends[i];
            args.first = merged || i == 0;
            of_rows.first = i == 0;
            run_kernel(LH_KERNEL_ID_attention_fwd, FAST, &call);
            if (merged)
                run_kernel(LH_KERNEL_ID_merge, FAST, &fold);
            g_free(call.operands[1].data);
        }
        run_kernel(LH_KERNEL_ID_normalise, FAST, &end);
        for (uint64_t i = 0; i < rows * 24; i++)
            ck_assert_double_eq_tol((double)((float *)(void *)o)[i],
                                    (double)((float *)(void *)r.call.operands[2].data)[i], 2e-6);
        for (uint64_t i = 0; i < rows; i++)
            ck_assert_double_eq_tol((double)((float *)(void *)lse)[i],
                                    (double)((float *)(void *)r.call.operands[3].data)[i], 2e-6);
    }
    run_clear(&r);
}

START_TEST(kernels_carry_blocks)
{
    on_levels(check_carry);
}
END_TEST

/* The same rows in one part and in two give identical bits. */
static void
check_parts(void)
{
    LhKernelArgs args = plain_args;
    const uint64_t half = args.nk / 2 * args.head_dim * sizeof(float);
    Case c, c2;
    Run one, two;

    args.nq = args.nk;
    args.mask = LH_MASK_CAUSAL;
    attention_init(&one, &c, &args);
    run_copy(&two, &one);
    c2 = c;
    two.c = &c2;
    for (unsigned i = 0; i < two.count; i++) {
        two.call.operands[i].parts = 2;
        two.call.operands[i].part_bytes /= 2;
    }
    /* k0 k1 v0 v1 becomes k0 v0 k1 v1; other operands keep their order. */
    memcpy(two.call.operands[1].data + half, one.call.operands[1].data + 2 * half, half);
    memcpy(two.call.operands[1].data + 2 * half, one.call.operands[1].data + half, half);
    run_kernel(one.id, FAST, &one.call);
    run_kernel(two.id, FAST, &two.call);
    ck_assert_mem_eq(one.call.operands[2].data, two.call.operands[2].data, one.bytes[2]);
    ck_assert_mem_eq(one.call.operands[3].data, two.call.operands[3].data, one.bytes[3]);
    run_clear(&two);
    run_clear(&one);
}

START_TEST(kernels_join_parts)
{
    on_levels(check_parts);
}
END_TEST

/* The loss sum(do o) as a function of q, k, v, its gradient by attention_bwd_o. All fp64. */
START_TEST(kernels_attention_gradient_is_finite_difference)
{
    const double step = 1e-4;
    Case c = { .kernel = "attention_bwd_o",
               .args = { .nq = 5,
                         .nk = 6,
                         .batch = 2,
                         .heads = 4,
                         .groups = 2,
                         .head_dim = 3,
                         .mask = LH_MASK_CAUSAL,
                         .shift = -1,
                         .first = true },
               .storage = LH_STORAGE_FP64,
               .q_parts = 1,
               .k_parts = 2 };
    const uint64_t count = elements_of(&c, 0);
    g_autofree double *o = g_new(double, count);
    g_autofree float *lse = g_new(float, count);
    LhCall forward = { .args = &c.args };
    Run r;

    run_init(&r, &c);
    run_kernel(r.id, REFERENCE, &r.call);
    forward.operands[0] = r.call.operands[0];
    forward.operands[1] = r.call.operands[4];
    forward.operands[2] = r.call.operands[2];
    forward.operands[2].data = (unsigned char *)o;
    forward.operands[3] = r.call.operands[3];
    forward.operands[3].data = (unsigned char *)lse;
    for (unsigned input = 0; input < 2; input++) {
        double *x = (double *)(void *)r.call.operands[input == 0 ? 0 : 4].data;
        const double *gradient = (double *)(void *)r.call.operands[5 + input].data;
        const double *dout = (double *)(void *)r.call.operands[1].data;

        for (uint64_t i = 0; i < r.bytes[5 + input] / sizeof(double); i++) {
            const double before = x[i];
            double up, down;

            x[i] = before + step;
            run_kernel(LH_KERNEL_ID_attention, REFERENCE, &forward);
            up = loss(dout, o, count);
            x[i] = before - step;
            run_kernel(LH_KERNEL_ID_attention, REFERENCE, &forward);
            down = loss(dout, o, count);
            x[i] = before;
            ck_assert_double_eq_tol((up - down) / (2 * step), gradient[i], 2e-6);
        }
    }
    run_clear(&r);
}
END_TEST

/* ---- materialised scores ---- */

/* Tensors of one call in fp32, keys in PARTS parts. */
enum { SCORES_NQ = 70, SCORES_NK = 90, SCORES_PARTS = 3, SCORES_D = 24 };
typedef struct {
    float q[SCORES_NQ * 2 * SCORES_D], kv[2][SCORES_NK * SCORES_D];
    float dout[SCORES_NQ * 2 * SCORES_D], o[SCORES_NQ * 2 * SCORES_D], dq[SCORES_NQ * 2 * SCORES_D];
    float lse[SCORES_NQ * 2], delta[SCORES_NQ * 2], dkv[2][SCORES_NK * SCORES_D];
    float scores[SCORES_NQ * 2 * SCORES_NK], probs[SCORES_NQ * 2 * SCORES_NK];
    float dscores[SCORES_NQ * 2 * SCORES_NK];
} Scores;

static void
call_views(const char *name, const LhKernelArgs *args, LhView a, LhView b, LhView c)
{
    LhCall call = { .args = args, .operands = { a, b, c } };

    run_kernel(lh_kernel_find(name), FAST, &call);
}

static LhView
in_parts(void *data, uint64_t bytes)
{
    LhView view = view_of(data, bytes / SCORES_PARTS);

    view.parts = SCORES_PARTS;
    return view;
}

#define WHOLE(x) view_of(x, sizeof(x))
#define PARTS(x) in_parts(x, sizeof(x))

/* Forward and backward through scores, in place where allowed. */
static void
run_scores(Scores *s, const LhKernelArgs *mask)
{
    LhKernelArgs all = *mask;

    all.mask = LH_MASK_FULL;
    all.first = true;
    call_views("scores", &all, WHOLE(s->q), PARTS(s->kv[0]), PARTS(s->scores));
    call_views("scores_softmax", mask, PARTS(s->scores), PARTS(s->probs), WHOLE(s->lse));
    call_views("scores_o", &all, PARTS(s->probs), PARTS(s->kv[1]), WHOLE(s->o));
    call_views("scores_dv", &all, PARTS(s->probs), WHOLE(s->dout), PARTS(s->dkv[1]));
    call_views("scores_dp", &all, WHOLE(s->dout), PARTS(s->kv[1]), PARTS(s->dscores));
    call_views("scores_softmax_bwd", &all, PARTS(s->probs), PARTS(s->dscores), PARTS(s->dscores));
    call_views("scores_dk", &all, PARTS(s->dscores), WHOLE(s->q), PARTS(s->dkv[0]));
    call_views("scores_dq", &all, PARTS(s->dscores), PARTS(s->kv[0]), WHOLE(s->dq));
}

static void
run_attention(Scores *s, const LhKernelArgs *mask)
{
    LhCall fwd = { .args = mask,
                   .operands = { WHOLE(s->q), WHOLE(s->kv), WHOLE(s->o), WHOLE(s->lse) } };
    LhCall bwd = { .args = mask,
                   .operands = { WHOLE(s->q), WHOLE(s->dout), WHOLE(s->delta), WHOLE(s->lse),
                                 WHOLE(s->kv), WHOLE(s->dq), WHOLE(s->dkv) } };

    run_kernel(LH_KERNEL_ID_attention, REFERENCE, &fwd);
    call_views("delta", mask, WHOLE(s->dout), WHOLE(s->o), WHOLE(s->delta));
    run_kernel(LH_KERNEL_ID_attention_bwd, REFERENCE, &bwd);
}

static void
check_equal(const float *a, const float *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ck_assert(a[i] == b[i] || fabsf(a[i] - b[i]) <= 1e-5F * (1 + fabsf(b[i])));
}

/* Materialised scores equal attention, forward and backward, under all kinds of masks; two heads
 * share keys. */
static void
check_scores(void)
{
    g_autofree Scores *got = g_new0(Scores, 1), *want = g_new(Scores, 1);
    const LhMaskRule rule = { .causal = true, .window = 37 };
    LhKernelArgs masks[3] = { plain_args, plain_args, plain_args };

    masks[1].mask = LH_MASK_CAUSAL;
    masks[1].shift = -1; /* no key for the first query */
    masks[2].mask = LH_MASK_POSITIONS;
    masks[2].rule = &rule;
    masks[2].q_at.start = masks[2].k_at.start = 5;
    masks[2].stride = 1;
    for (unsigned m = 0; m < G_N_ELEMENTS(masks); m++) {
        for (unsigned i = 0; i < G_N_ELEMENTS(got->q); i++)
            got->q[i] = (float)normal(), got->dout[i] = (float)normal();
        for (unsigned i = 0; i < G_N_ELEMENTS(got->kv[0]); i++)
            got->kv[0][i] = (float)normal(), got->kv[1][i] = (float)normal();
        *want = *got;
        run_attention(want, &masks[m]);
        if (masks[m].mask == LH_MASK_POSITIONS)
            masks[m].k_at.part_step = SCORES_NK / SCORES_PARTS;
        run_scores(got, &masks[m]);
        check_equal(got->o, want->o, G_N_ELEMENTS(got->o));
        check_equal(got->lse, want->lse, G_N_ELEMENTS(got->lse));
        check_equal(got->dq, want->dq, G_N_ELEMENTS(got->dq));
        for (unsigned i = 0; i < 2; i++)
            check_equal(got->dkv[i], want->dkv[i], G_N_ELEMENTS(got->dkv[i]));
    }
}

START_TEST(kernels_scores_are_attention)
{
    on_levels(check_scores);
}
END_TEST

/* k and v separate, their gradients combined, in parts. */
START_TEST(kernels_take_keys_apart)
{
    enum { HALF = 6 * 4 };
    float kv[3][2][HALF / 3], k[HALF], v[HALF], dkv[3][2][HALF / 3];
    const LhKernelArgs args = { .nk = 6, .batch = 1, .heads = 2, .groups = 1, .head_dim = 4 };

    for (unsigned i = 0; i < 2 * HALF; i++)
        ((float *)kv)[i] = (float)i;
    call_views("take_k", &args, PARTS(kv), PARTS(k), (LhView){ 0 });
    call_views("take_v", &args, PARTS(kv), WHOLE(v), (LhView){ 0 });
    for (unsigned i = 0; i < HALF; i++) {
        const unsigned from = i / 8 * 16 + i % 8;

        ck_assert(k[i] == (float)from);
        ck_assert(v[i] == (float)(from + 8));
    }
    call_views("join_dkv", &args, PARTS(k), WHOLE(v), PARTS(dkv));
    ck_assert_mem_eq(dkv, kv, sizeof(kv));
}
END_TEST

/* Two query heads for each of two key-value heads; a part has k of two tokens, then v. */
START_TEST(kernels_expand_keys)
{
    float kv[SCORES_PARTS][2][2][2][4], out[SCORES_PARTS][2][2][4][4];
    const LhKernelArgs args = {
        .nk = 2 * SCORES_PARTS, .batch = 1, .heads = 4, .groups = 2, .head_dim = 4
    };

    for (unsigned i = 0; i < sizeof(kv) / sizeof(float); i++)
        ((float *)kv)[i] = (float)i;
    call_views("expand_kv", &args, PARTS(kv), PARTS(out), (LhView){ 0 });
    for (unsigned i = 0; i < SCORES_PARTS * 2 * 2 * 4; i++) {
        const unsigned part = i / 16, half = i / 8 % 2, token = i / 4 % 2, head = i % 4;

        ck_assert_mem_eq(out[part][half][token][head], kv[part][half][token][head / 2],
                         sizeof(out[0][0][0][0]));
    }
}
END_TEST

/* ---- outside attention ---- */

/* A matrix that moves column j to (j + 1) % n and doubles it; rows in two parts. */
START_TEST(kernels_multiply_and_add_matrices)
{
    enum { M = 18, N = 5 };
    float x[M * N], w[N * N] = { 0 }, y[M * N], z[M * N];
    const LhKernelArgs product = { .product = { M, N, N } }, all = { .elements = { M * N } };
    LhView in_halves = view_of(x, sizeof(x) / 2);

    in_halves.parts = 2;
    for (unsigned i = 0; i < M * N; i++)
        x[i] = (float)normal();
    for (unsigned j = 0; j < N; j++)
        w[j * N + (j + 1) % N] = 2;
    call_views("product", &product, in_halves, WHOLE(w), WHOLE(y));
    for (unsigned i = 0; i < M; i++) {
        for (unsigned j = 0; j < N; j++)
            ck_assert(y[i * N + (j + 1) % N] == 2 * x[i * N + j]);
    }
    call_views("residual", &all, WHOLE(x), WHOLE(y), WHOLE(z));
    for (unsigned i = 0; i < M * N; i++)
        ck_assert(z[i] == x[i] + y[i]);
}
END_TEST

LH_TEST_MAIN("kernels_answers", kernels_know_simple_answers, kernels_carry_blocks,
             kernels_join_parts, kernels_attention_gradient_is_finite_difference,
             kernels_scores_are_attention, kernels_take_keys_apart, kernels_expand_keys,
             kernels_multiply_and_add_matrices)
