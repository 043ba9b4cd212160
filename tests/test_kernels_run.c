/*
 * Kernels with data: every fast version on every level of this processor against its reference in
 * fp64; which pairs a mask by position allows; conversions; what kernels refuse.
 * test_kernels_answers.c and test_kernels_linear.c hold them against what can be known without the
 * references.
 */
#include "kernel_runs.h"
#include "run_tests.h"
#include "share.h"

static double
tolerance(const Case *c, enum lh_storage storage)
{
    const double by_storage[] = { [LH_STORAGE_FP32] = 1e-5,
                                  [LH_STORAGE_BF16] = 4e-3,
                                  [LH_STORAGE_FP16] = 1e-3,
                                  [LH_STORAGE_FP64] = 1e-12 };

    /* Logits of 80 and more have an absolute error of their own last place. */
    return by_storage[storage] * (c->variant == LOGITS_20 && storage == LH_STORAGE_FP32 ? 3 : 1);
}

static char *
shape_text(const Run *r)
{
    const LhKernelArgs *a = &r->c->args;

    if (r->kernel->args == LH_ARGS_PRODUCT)
        return g_strdup_printf("m %lu n %lu k %lu", (gulong)a->product.m, (gulong)a->product.n,
                               (gulong)a->product.k);
    if (r->kernel->args == LH_ARGS_ELEMENTS)
        return g_strdup_printf("%lu elements", (gulong)a->elements.count);
    if (r->kernel->args == LH_ARGS_ROWS)
        return g_strdup_printf("%lu rows of %lu, first %d", (gulong)a->rows.rows,
                               (gulong)a->rows.width, a->first);
    if (r->kernel->args != LH_ARGS_ATTENTION)
        return g_strdup_printf("kind %d", (int)r->kernel->args);
    return g_strdup_printf("nq %lu nk %lu B %u h %u g %u d %u mask %d shift %d first %d decay %g "
                           "q at %ld + %ld k at %ld + %ld stride %lu",
                           (gulong)a->nq, (gulong)a->nk, a->batch, a->heads, a->groups, a->head_dim,
                           a->mask, a->shift, a->first, a->decay, (glong)a->q_at.start,
                           (glong)a->q_at.part_step, (glong)a->k_at.start, (glong)a->k_at.part_step,
                           (gulong)a->stride);
}

static void
describe(const Run *r, const char *level, unsigned operand, double error)
{
    g_autofree char *shape = shape_text(r);

    ck_abort_msg("%s %s operand %s: error %g; %s storage %d narrow %d parts %u %u variant %d",
                 level, r->c->kernel, r->kernel->operands[operand].name, error, shape,
                 (int)r->c->storage, r->c->narrow, r->c->q_parts, r->c->k_parts,
                 (int)r->c->variant);
}

/* How many elements are judged together, at the least. */
static uint64_t
row_width(const Run *r, unsigned operand)
{
    const LhTensorKind kind = r->kernel->operands[operand].kind;

    if (r->kernel->args == LH_ARGS_PRODUCT)
        return lh_product_shape(r->kernel, &r->c->args).columns;
    if (r->kernel->args != LH_ARGS_ATTENTION || is_stat(kind))
        return 1;
    return is_scores(kind) ? r->c->args.nk / r->call.operands[operand].parts : r->c->args.head_dim;
}

/* rel-L2 of the elements, and every row on its own, so that one wrong row cannot hide. */
static void
compare_elements(const Run *got, const Run *want, const char *level, unsigned operand)
{
    const LhView *a = &got->call.operands[operand], *b = &want->call.operands[operand];
    const uint64_t count = elements_of(got->c, operand), per = count / a->parts;
    const uint64_t width = row_width(got, operand);
    const double limit = tolerance(got->c, a->storage);
    /* Gradients vanish where one key takes all and where all keys are equal: they are differences
     * of numbers around 1. */
    const double least = got->c->variant >= ONE_KEY_60 || got->c->one_key ? (double)width : 0;
    double error = 0, norm = 0, worst = 0;

    for (uint64_t row = 0; row < count; row += width) {
        double row_error = 0, row_norm = least;

        for (uint64_t i = row; i < row + width; i++) {
            const double x = lh_element_get(element_at(a, per, i), a->storage, 0);
            const double y = lh_element_get(element_at(b, per, i), b->storage, 0);

            if (x == y)
                row_norm += isfinite(y) ? y * y : 0;
            else
                row_error += (x - y) * (x - y), row_norm += y * y;
        }
        error += row_error;
        norm += row_norm;
        worst = fmax(worst, isnan(row_error) ? INFINITY : row_error / (row_norm + 1e-3));
    }
    if (!(sqrt(error) <= limit * sqrt(norm)))
        describe(got, level, operand, sqrt(error / norm));
    if (!(sqrt(worst) <= 30 * limit))
        describe(got, level, operand, sqrt(worst));
}

static void
compare_stats(const Run *got, const Run *want, const char *level, unsigned operand)
{
    const LhView *a = &got->call.operands[operand], *b = &want->call.operands[operand];
    const LhTensorKind kind = got->kernel->operands[operand].kind;
    const uint64_t per = elements_of(got->c, operand) / a->parts;
    const uint64_t stats =
        stats_of(kind) * got->c->args.batch * got->c->args.nq * got->c->args.heads;

    for (uint64_t i = 0; i < stats; i++) {
        const double x = (double)*stat_at(a, per, stats / a->parts, i);
        const double y = (double)*stat_at(b, per, stats / b->parts, i);

        if (x != y && !(fabs(x - y) <= 1e-5 * (1 + fabs(y))))
            describe(got, level, operand, fabs(x - y));
    }
}

static void
compare(const Run *got, const Run *want, const char *level)
{
    for (unsigned i = 0; i < got->count; i++) {
        if (got->kernel->operands[i].access == LH_OPERAND_READ) {
            if (memcmp(got->call.operands[i].data, want->call.operands[i].data, got->bytes[i]) != 0)
                describe(got, level, i, -1);
            continue;
        }
        compare_elements(got, want, level, i);
        compare_stats(got, want, level, i);
    }
}

/* Reference and all levels, each of them twice with equal bits. */
static void
check_case(const Case *c)
{
    Run input, want, got, again;

    run_init(&input, c);
    run_copy(&want, &input);
    run_kernel(want.id, REFERENCE, &want.call);
    for (const LhCpuLevel *const *level = lh_cpu_levels; *level != NULL; level++) {
        if (!lh_cpu_set(*level))
            continue;
        run_copy(&got, &input);
        run_copy(&again, &input);
        run_kernel(got.id, FAST, &got.call);
        run_kernel(again.id, FAST, &again.call);
        compare(&got, &want, (*level)->name);
        for (unsigned i = 0; i < got.count; i++)
            ck_assert_mem_eq(got.call.operands[i].data, again.call.operands[i].data, got.bytes[i]);
        run_clear(&got);
        run_clear(&again);
    }
    lh_cpu_set(NULL);
    run_clear(&want);
    run_clear(&input);
}

static bool
is_linear(const char *name)
{
    return g_str_has_prefix(name, "linear_");
}

static bool
has_pairs(const char *name)
{
    return g_str_has_prefix(name, "attention") || g_str_has_prefix(name, "linear_intra") ||
           g_str_has_prefix(name, "scores");
}

/* A shape made fit for a kernel: elementwise ones work on queries or on keys. */
static void
check_shape(const Case *shape, const char *name)
{
    const LhOperand *operands = lh_kernels[lh_kernel_find(name)]->operands;
    Case c = *shape;

    c.kernel = name;
    c.args.states = 1;
    if (is_linear(name) && c.args.mask == LH_MASK_CAUSAL)
        c.args.decay = 0.97;
    for (unsigned first = 0; first < 2; first++) {
        c.args.first = first != 0;
        if (has_pairs(name) || g_str_has_prefix(name, "linear")) {
            check_case(&c);
            continue;
        }
        c.args.nk = is_keys(&c, operands[0].kind) ? shape->args.nk : 0;
        check_case(&c);
        if (operands[0].kind != LH_TENSOR_ANY)
            continue;
        c.args.nk = shape->args.nk;
        c.args.nq = 0;
        check_case(&c);
        c.args.nq = shape->args.nq;
    }
}

static const Case shapes[] = {
    { .args = { .nq = 64,
                .nk = 64,
                .batch = 1,
                .heads = 1,
                .groups = 1,
                .head_dim = 64,
                .mask = LH_MASK_CAUSAL },
      .q_parts = 1,
      .k_parts = 1 },
    { .args = { .nq = 100,
                .nk = 100,
                .batch = 2,
                .heads = 4,
                .groups = 1,
                .head_dim = 80,
                .mask = LH_MASK_CAUSAL,
                .shift = -1 },
      .q_parts = 2,
      .k_parts = 2,
      .narrow = true },
    { .args = { .nq = 66,
                .nk = 132,
                .batch = 1,
                .heads = 4,
                .groups = 2,
                .head_dim = 96,
                .mask = LH_MASK_FULL,
                .scale = 0.2 },
      .q_parts = 1,
      .k_parts = 2 },
    { .args = { .nq = 130,
                .nk = 5,
                .batch = 1,
                .heads = 2,
                .groups = 2,
                .head_dim = 128,
                .mask = LH_MASK_CAUSAL },
      .q_parts = 2,
      .k_parts = 1,
      .narrow = true },
    { .args = { .nq = 3,
                .nk = 150,
                .batch = 2,
                .heads = 8,
                .groups = 1,
                .head_dim = 5,
                .mask = LH_MASK_FULL },
      .q_parts = 1,
      .k_parts = 1 },
    { .args = { .nq = 70,
                .nk = 140,
                .batch = 1,
                .heads = 2,
                .groups = 1,
                .head_dim = 33,
                .mask = LH_MASK_CAUSAL },
      .q_parts = 1,
      .k_parts = 1 },
    /* Several tiles of linear attention, which parts cut across. */
    { .args = { .nq = 270,
                .nk = 270,
                .batch = 1,
                .heads = 2,
                .groups = 1,
                .head_dim = 9,
                .mask = LH_MASK_CAUSAL },
      .q_parts = 2,
      .k_parts = 3,
      .narrow = true },
    { .args = { .nq = 256,
                .nk = 256,
                .batch = 1,
                .heads = 1,
                .groups = 1,
                .head_dim = 17,
                .mask = LH_MASK_CAUSAL },
      .q_parts = 1,
      .k_parts = 1 },
    { .args = { .nq = 2,
                .nk = 2,
                .batch = 1,
                .heads = 1,
                .groups = 1,
                .head_dim = 1,
                .mask = LH_MASK_EMPTY },
      .q_parts = 1,
      .k_parts = 1 },
};

/* Sizes around the rows that are taken at a time, and around blocks of elements. */
static const Case others[] = {
    { .kernel = "product", .args.product = { 1, 1, 1 }, .q_parts = 1 },
    { .kernel = "product", .args.product = { 8, 16, 32 }, .q_parts = 1 },
    { .kernel = "product", .args.product = { 37, 19, 53 }, .q_parts = 1 },
    { .kernel = "product", .args.product = { 24, 40, 36 }, .q_parts = 2 },
    { .kernel = "product", .args.product = { 9, 65, 3 }, .q_parts = 3 },
    /* Several blocks each way; parts that cut rows. */
    { .kernel = "product", .args.product = { 300, 530, 270 }, .q_parts = 1 },
    { .kernel = "product", .args.product = { 36, 17, 33 }, .q_parts = 3 },
    { .kernel = "product_dgrad", .args.product = { 37, 19, 53 }, .q_parts = 1 },
    { .kernel = "product_dgrad", .args.product = { 40, 520, 300 }, .q_parts = 4 },
    { .kernel = "product_dgrad",
      .args = { .product = { 40, 520, 300 }, .first = true },
      .q_parts = 4 },
    { .kernel = "out_product_dgrad",
      .args = { .product = { 48, 19, 40, 1, { 1, 1 } }, .first = true },
      .q_parts = 1 },
    { .kernel = "product_dgrad", .args.product = { 36, 17, 33 }, .q_parts = 1 },
    { .kernel = "product_wgrad", .args.product = { 37, 19, 53 }, .q_parts = 1 },
    { .kernel = "product_wgrad", .args.product = { 600, 64, 50 }, .q_parts = 2 },
    { .kernel = "product_wgrad",
      .args = { .product = { 36, 17, 33 }, .first = true },
      .q_parts = 1 },
    { .kernel = "out_product", .args.product = { 48, 19, 40, 1, { 2, 2 } }, .q_parts = 4 },
    { .kernel = "out_product_dgrad", .args.product = { 48, 19, 40, 1, { 2, 4 } }, .q_parts = 4 },
    { .kernel = "out_product_wgrad", .args.product = { 48, 20, 40, 1, { 3, 1 } }, .q_parts = 2 },
    { .kernel = "out_product_wgrad",
      .args = { .product = { 48, 19, 40, 1, { 1, 1 } }, .first = true },
      .q_parts = 1 },
    /* More experts than some have rows for; more rows than a block. */
    { .kernel = "expert_product", .args.product = { 36, 17, 33, .experts = 4 }, .q_parts = 3 },
    { .kernel = "expert_product", .args.product = { 700, 40, 24, .experts = 2 }, .q_parts = 1 },
    { .kernel = "expert_product_dgrad",
      .args = { .product = { 20, 17, 33, .experts = 16 }, .first = true },
      .q_parts = 1 },
    { .kernel = "expert_product_dgrad",
      .args.product = { 600, 40, 24, .experts = 3 },
      .q_parts = 2 },
    { .kernel = "expert_product_wgrad",
      .args = { .product = { 20, 17, 33, .experts = 16 }, .first = true },
      .q_parts = 1 },
    { .kernel = "expert_product_wgrad",
      .args.product = { 600, 40, 24, .experts = 3 },
      .q_parts = 2 },
    { .kernel = "route", .args.experts = { 30, 8, 7, 3 }, .q_parts = 3 },
    { .kernel = "route_bwd", .args.experts = { 30, 8, 7, 3 }, .q_parts = 3 },
    { .kernel = "dispatch", .args.experts = { 30, 700, 7, 2 }, .q_parts = 2 },
    { .kernel = "dispatch_bwd", .args.experts = { 30, 700, 7, 2 }, .q_parts = 3 },
    { .kernel = "dispatch_bwd",
      .args = { .experts = { 30, 6, 7, 2 }, .first = true },
      .q_parts = 1 },
    { .kernel = "combine", .args.experts = { 30, 700, 7, 2 }, .q_parts = 2 },
    { .kernel = "combine_bwd", .args.experts = { 30, 700, 7, 2 }, .q_parts = 2 },
    { .kernel = "add_hidden", .args.elements = { 1026 }, .q_parts = 2 },
    { .kernel = "add_hidden", .args = { .elements = { 700 }, .first = true }, .q_parts = 1 },
    { .kernel = "accumulate", .args.elements = { 1500 }, .q_parts = 3 },
    { .kernel = "cast_hidden", .args.elements = { 1030 }, .q_parts = 2 },
    { .kernel = "embed", .args.rows = { 30, 600, 50, 10, 30 }, .q_parts = 3 },
    { .kernel = "embed_bwd", .args.rows = { 40, 24, 12, 2, 8 }, .q_parts = 2 },
    { .kernel = "embed_bwd",
      .args = { .rows = { 40, 600, 12, 0, 12 }, .first = true },
      .q_parts = 1 },
    { .kernel = "rms_norm", .args.rows = { 6, 34, .epsilon = 1e-5 }, .q_parts = 2 },
    { .kernel = "rms_norm_bwd", .args.rows = { 6, 34, .epsilon = 1e-5 }, .q_parts = 2 },
    { .kernel = "rms_norm_bwd",
      .args = { .rows = { 4, 700, .epsilon = 1e-5, .adds = true }, .first = true },
      .q_parts = 1 },
    { .kernel = "layer_norm", .args.rows = { 6, 34, .epsilon = 1e-5 }, .q_parts = 2 },
    { .kernel = "layer_norm_bwd", .args.rows = { 6, 34, .epsilon = 1e-5 }, .q_parts = 2 },
    { .kernel = "rotary_q",
      .args.to_heads = { 12, 100, 3, 10000, { 2, 2 }, 8, 4, 6 },
      .q_parts = 2 },
    { .kernel = "rotary_kv",
      .args.to_heads = { 12, 100, 3, 10000, { 2, 2 }, 8, 4, 6 },
      .q_parts = 2,
      .k_parts = 4 },
    { .kernel = "rotary_q_bwd", .args.to_heads = { 12, 0, 1, 0, { 1, 4 }, 8, 2, 5 }, .q_parts = 4 },
    { .kernel = "rotary_kv_bwd",
      .args.to_heads = { 12, 0, 1, 0, { 1, 4 }, 8, 2, 5 },
      .q_parts = 4,
      .k_parts = 1 },
    { .kernel = "silu_q", .args.to_heads = { 12, 100, 3, 10000, { 2, 2 }, 8, 4, 6 }, .q_parts = 2 },
    { .kernel = "silu_kv",
      .args.to_heads = { 12, 0, 1, 0, { 1, 4 }, 8, 2, 5 },
      .q_parts = 4,
      .k_parts = 2 },
    { .kernel = "silu_q_bwd",
      .args.to_heads = { 12, 100, 3, 10000, { 2, 2 }, 8, 4, 6 },
      .q_parts = 2 },
    { .kernel = "silu_kv_bwd",
      .args.to_heads = { 12, 100, 3, 10000, { 2, 2 }, 8, 4, 6 },
      .q_parts = 2,
      .k_parts = 4 },
    { .kernel = "from_heads", .args.to_heads = { 12, 0, 1, 0, { 2, 2 }, 8, 4, 6 }, .q_parts = 2 },
    { .kernel = "from_heads_bwd",
      .args.to_heads = { 12, 0, 1, 0, { 1, 4 }, 8, 2, 5 },
      .q_parts = 4 },
    { .kernel = "glu", .args.rows = { 6, 300 }, .q_parts = 3 },
    { .kernel = "glu_bwd", .args.rows = { 6, 300 }, .q_parts = 2 },
    { .kernel = "gelu", .args.rows = { 6, 300 }, .q_parts = 3 },
    { .kernel = "gelu_bwd", .args.rows = { 6, 300 }, .q_parts = 2 },
    { .kernel = "gate", .args.rows = { 6, 300 }, .q_parts = 3 },
    { .kernel = "gate_bwd", .args.rows = { 6, 300 }, .q_parts = 2 },
    { .kernel = "loss_stats", .args.rows = { 6, 600, 1200, 600, .tokens = 24 }, .q_parts = 2 },
    { .kernel = "loss", .args.rows = { 6, 600, 1200, 600, .tokens = 24 }, .q_parts = 1 },
    { .kernel = "grad_norm", .args.optimizer = { 1300 }, .q_parts = 1 },
    { .kernel = "adam", .args.optimizer = { 1300, 1e-3, 0.9, 0.95, 1e-8, 0.1, 1 }, .q_parts = 1 },
    { .kernel = "adam_fp32",
      .args.optimizer = { 1300, 1e-3, 0.9, 0.95, 1e-8, 0.1, 1 },
      .q_parts = 1 },
    { .kernel = "residual", .args.elements = { 1 }, .q_parts = 1 },
    { .kernel = "residual", .args.elements = { 512 }, .q_parts = 1 },
    { .kernel = "residual", .args.elements = { 1026 }, .q_parts = 2 },
    { .kernel = "residual", .args.elements = { 1500 }, .q_parts = 3 },
};

/* 16-bit types differ from fp32 in loads and stores alone: each kernel has a third of the shapes.
 */
static void
check_kernels(enum lh_storage storage)
{
    for (unsigned s = 0; s < G_N_ELEMENTS(shapes); s++) {
        for (unsigned k = 0; k < LH_KERNELS_COUNT; k++) {
            Case c = shapes[s];

            c.storage = storage;
            if (lh_kernels[k]->args == LH_ARGS_ATTENTION && test_takes(s + k))
                check_shape(&c, lh_kernels[k]->name);
        }
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(others); i++) {
        Case c = others[i];

        c.storage = storage;
        check_case(&c);
        c.narrow = true;
        check_case(&c);
    }
}

/* Those of attention are run by shape, and what lies outside not at all. */
START_TEST(kernels_are_all_run)
{
    for (unsigned k = 0; k < LH_KERNELS_COUNT; k++) {
        bool run = lh_kernels[k]->args == LH_ARGS_ATTENTION || lh_kernels[k]->args == LH_ARGS_NONE;

        for (unsigned i = 0; i < G_N_ELEMENTS(others); i++)
            run |= strcmp(others[i].kernel, lh_kernels[k]->name) == 0;
        ck_assert_msg(run, "%s is not run", lh_kernels[k]->name);
    }
}
END_TEST

START_TEST(kernels_run_fp32)
{
    check_kernels(LH_STORAGE_FP32);
}
END_TEST

START_TEST(kernels_run_bf16)
{
    check_kernels(LH_STORAGE_BF16);
}
END_TEST

START_TEST(kernels_run_fp16)
{
    check_kernels(LH_STORAGE_FP16);
}
END_TEST

START_TEST(kernels_run_on_extreme_inputs)
{
    const char *const names[] = { "attention", "attention_fwd", "attention_block", "attention_bwd",
                                  "attention_bwd_o" };

    for (unsigned variant = LOGITS_4; variant < VARIANTS; variant++) {
        for (unsigned k = 0; k < G_N_ELEMENTS(names); k++) {
            Case c = shapes[0];

            c.variant = (enum variant)variant;
            c.args.nq = c.args.nk = 90;
            c.args.mask = k % 2 == 0 ? LH_MASK_CAUSAL : LH_MASK_FULL;
            check_shape(&c, names[k]);
            c.storage = LH_STORAGE_BF16;
            check_shape(&c, names[k]);
        }
    }
}
END_TEST

/* ---- masks by position ---- */

/* Where the rows of a call stand, in parts of so many rows. */
typedef struct {
    LhRowsPosition q_at, k_at;
    uint64_t stride;
    uint32_t q_parts, k_parts;
    uint64_t q_rows, k_rows;
} Layout;

/* No part is a whole number of tiles: tiles cross the borders of parts. */
static const Layout layouts[] = {
    { { 100, 0 }, { 30, 0 }, 1, 1, 1, 130, 170 },     /* two overlapping chunks */
    { { 70, 0 }, { 70, 0 }, 1, 1, 1, 70, 70 },        /* a chunk on itself */
    { { 2, 0 }, { 3, 0 }, 4, 1, 1, 90, 75 },          /* striped */
    { { 30, 150 }, { 60, 90 }, 1, 2, 2, 30, 30 },     /* zigzag: ranks 1 and 2 of 4 */
    { { 180, -150 }, { 0, 210 }, 1, 2, 2, 30, 30 },   /* the later half-chunk first */
    { { 1, 4 }, { 0, 1 }, 8, 2, 3, 35, 40 },          /* rows and columns of a grid of 8 ranks */
    { { 320, -160 }, { 400, -100 }, 1, 3, 5, 45, 33 } /* gathered in reverse */
};

static const uint64_t document_ends[] = { 1, 40, 103, 104, 260, 600 };

static const LhMaskRule rules[] = {
    { .causal = true },
    { .causal = false },
    { .causal = true, .window = 1 },
    { .causal = true, .window = 37 },
    { .causal = true, .window = 1000 },
    { .causal = true, .document_ends = document_ends, .documents_count = 6 },
    { .causal = false, .document_ends = document_ends, .documents_count = 6 },
    { .causal = true, .window = 20, .document_ends = document_ends, .documents_count = 6 },
};

static Case
positions_case(const char *kernel, const Layout *l, const LhMaskRule *rule)
{
    return (Case){ .kernel = kernel,
                   .args = { .nq = l->q_parts * l->q_rows,
                             .nk = l->k_parts * l->k_rows,
                             .batch = 1,
                             .heads = 2,
                             .groups = 1,
                             .head_dim = 20,
                             .mask = LH_MASK_POSITIONS,
                             .q_at = l->q_at,
                             .k_at = l->k_at,
                             .stride = l->stride,
                             .rule = rule,
                             .first = true },
                   .q_parts = l->q_parts,
                   .k_parts = l->k_parts };
}

START_TEST(kernels_run_under_masks_by_position)
{
    const char *const names[] = { "attention", "attention_fwd", "attention_block", "attention_bwd",
                                  "attention_bwd_o" };
    unsigned turn = 0;

    for (unsigned l = 0; l < G_N_ELEMENTS(layouts); l++) {
        for (unsigned r = 0; r < G_N_ELEMENTS(rules); r++) {
            for (unsigned k = 0; k < G_N_ELEMENTS(names); k++, turn++) {
                Case c = positions_case(names[k], &layouts[l], &rules[r]);

                c.storage = (enum lh_storage)(turn % 3);
                c.narrow = turn % 2 != 0;
                c.one_key = rules[r].window == 1;
                check_shape(&c, names[k]);
            }
        }
    }
}
END_TEST

static uint64_t
position_of(const LhRowsPosition *at, uint64_t stride, uint64_t part_rows, uint64_t row)
{
    uint64_t position = (uint64_t)at->start;

    for (; row >= part_rows; row -= part_rows)
        position += (uint64_t)at->part_step;
    return position + row * stride;
}

/* With q = 0 every key that is seen weighs the same: o is the mean of their values, lse the
 * logarithm of their number, and with do = 1 dv is the sum of the weights. */
static void
check_equal_weights(const Layout *l, const LhMaskRule *rule)
{
    const Case c = positions_case("attention_bwd_o", l, rule);
    const LhKernelArgs *a = &c.args;
    g_autofree double *weights = g_new0(double, a->nk);
    LhRows q, dout, o, lse, v, dv;
    Run r;

    run_init(&r, &c);
    q = lh_rows_q(&r.call, 0);
    dout = lh_rows_q(&r.call, 1);
    o = lh_rows_q(&r.call, 2);
    lse = lh_rows_stat(&r.call, 3);
    v = lh_rows_v(&r.call, 4);
    dv = lh_rows_v(&r.call, 6);
    memset(q.data, 0, r.bytes[0]);
    for (uint64_t i = 0; i < a->nq * a->heads * a->head_dim; i++)
        ((float *)(void *)dout.data)[i] = 1;
    derive_inputs(&r);
    run_kernel(r.id, REFERENCE, &r.call);
    for (uint64_t i = 0; i < a->nq; i++) {
        const uint64_t at = position_of(&l->q_at, l->stride, l->q_rows, i);
        uint64_t seen = 0;
        double sum = 0;

        for (unsigned again = 0; again < 2; again++) {
            for (uint64_t j = 0; j < a->nk; j++) {
                if (!lh_mask_sees(rule, at, position_of(&l->k_at, l->stride, l->k_rows, j)))
                    continue;
                if (again)
                    weights[j] += a->heads / (double)seen;
                else
                    sum += (double)*(float *)lh_rows_at(&v, 0, j, 0), seen++;
            }
        }
        ck_assert_double_eq_tol((double)*(float *)lh_rows_at(&o, 0, i, 1),
                                seen > 0 ? sum / (double)seen : 0, 1e-6);
        if (seen == 0)
            ck_assert(*lh_stat_at(&lse, 0, i, 1) == -INFINITY);
        else
            ck_assert_double_eq_tol((double)*lh_stat_at(&lse, 0, i, 1), log((double)seen), 1e-6);
    }
    for (uint64_t j = 0; j < a->nk; j++)
        ck_assert_double_eq_tol((double)*(float *)lh_rows_at(&dv, 0, j, 0), weights[j], 1e-5);
    run_clear(&r);
}

START_TEST(kernels_see_what_the_rule_allows)
{
    for (unsigned l = 0; l < G_N_ELEMENTS(layouts); l++) {
        for (unsigned r = 0; r < G_N_ELEMENTS(rules); r++)
            check_equal_weights(&layouts[l], &rules[r]);
    }
}
END_TEST

/* ---- conversions ---- */

/* Every 16-bit number survives fp32; numbers between two round to nearest even. */
START_TEST(kernels_convert_exactly)
{
    for (uint32_t i = 0; i < 65536; i++) {
        const float b = lh_bf16_to_float((uint16_t)i), h = lh_fp16_to_float((uint16_t)i);

        if (!isnan(b))
            ck_assert_uint_eq(lh_bf16_from_float(b), i);
        if (!isnan(h))
            ck_assert_uint_eq(lh_fp16_from_float(h), i);
        if (isfinite(h) && (i & 0x7fff) < 0x7bff && (i & 0x8000) == 0) {
            const float next = lh_fp16_to_float((uint16_t)(i + 1)), middle = (h + next) / 2;

            ck_assert_uint_eq(lh_fp16_from_float(middle), i + (i & 1));
            ck_assert_uint_eq(lh_fp16_from_float(nextafterf(middle, h)), i);
            ck_assert_uint_eq(lh_fp16_from_float(nextafterf(middle, next)), i + 1);
        }
    }
    ck_assert_uint_eq(lh_bf16_from_float(1.00390625F), 0x3f80); /* ties to even */
    ck_assert_uint_eq(lh_bf16_from_float(1.01171875F), 0x3f82);
    ck_assert(isnan(lh_bf16_to_float(lh_bf16_from_float(NAN))));
    ck_assert(isnan(lh_fp16_to_float(lh_fp16_from_float(NAN))));
    ck_assert_uint_eq(lh_fp16_from_float(65519), 0x7bff);
    ck_assert_uint_eq(lh_fp16_from_float(65520), 0x7c00);
}
END_TEST

/* The same bits on all levels, at lengths around the vectors'. */
static void
check_conversion(void)
{
    for (uint64_t count = 0; count < 40; count++) {
        float source[40], back[40];
        uint16_t bf16[40], fp16[40];

        for (uint64_t i = 0; i < count; i++)
            source[i] = (float)(normal() * exp(8 * normal()));
        lh_cpu()->from_fp32(bf16, LH_STORAGE_BF16, source, count);
        lh_cpu()->from_fp32(fp16, LH_STORAGE_FP16, source, count);
        for (uint64_t i = 0; i < count; i++) {
            ck_assert_uint_eq(bf16[i], lh_bf16_from_float(source[i]));
            ck_assert_uint_eq(fp16[i], lh_fp16_from_float(source[i]));
        }
        lh_cpu()->to_fp32(back, fp16, LH_STORAGE_FP16, count);
        for (uint64_t i = 0; i < count; i++)
            ck_assert(back[i] == lh_fp16_to_float(fp16[i]));
    }
}

START_TEST(kernels_convert_the_same_on_levels)
{
    on_levels(check_conversion);
}
END_TEST

/* ---- what is refused ---- */

/* Every row has both versions; parts that do not divide the rows are refused, outputs untouched. */
START_TEST(kernels_refuse_what_they_cannot)
{
    float o[12] = { 0 };
    const LhKernelArgs args = { .nq = 3, .batch = 1, .heads = 1, .groups = 1, .head_dim = 4 };
    const LhCall call = { .args = &args,
                          .operands = {
                              { .data = (unsigned char *)o, .parts = 2, .part_bytes = 24 },
                              { .data = (unsigned char *)o, .parts = 2, .part_bytes = 24 } } };

    for (unsigned i = 0; i < LH_KERNELS_COUNT; i++) {
        ck_assert(lh_cpu_kernels[i]->reference != NULL);
        ck_assert(lh_cpu_kernels[i]->fast != NULL);
    }
    ck_assert_int_eq(lh_cpu_kernels[LH_KERNEL_ID_copy]->fast(&call), LH_STATUS_UNSUPPORTED);
    ck_assert_int_eq(lh_cpu_kernels[LH_KERNEL_ID_merge]->fast(&call), LH_STATUS_UNSUPPORTED);
    ck_assert_int_eq(lh_cpu_kernels[LH_KERNEL_ID_zero]->reference(&call), LH_STATUS_UNSUPPORTED);
}
END_TEST

/* An empty accumulator has m = -inf and l = 0. */
START_TEST(kernels_zero_makes_empty_accumulators)
{
    float acc[4 + 2] = { 1, 1, 1, 1, 1, 1 };
    const LhKernelArgs args = { .nq = 1, .batch = 1, .heads = 1, .groups = 1, .head_dim = 4 };
    const LhCall call = { .args = &args,
                          .operands = {
                              { .data = (unsigned char *)acc, .parts = 1, .part_bytes = 24 } } };

    ck_assert_int_eq(lh_cpu_kernels[LH_KERNEL_ID_zero]->fast(&call), LH_STATUS_OK);
    ck_assert(acc[0] == 0 && acc[3] == 0 && acc[4] == -INFINITY && acc[5] == 0);
}
END_TEST

LH_TEST_MAIN("kernels_run", kernels_are_all_run, kernels_run_fp32, kernels_run_bf16,
             kernels_run_fp16, kernels_run_on_extreme_inputs, kernels_run_under_masks_by_position,
             kernels_see_what_the_rule_allows, kernels_convert_exactly,
             kernels_convert_the_same_on_levels, kernels_refuse_what_they_cannot,
             kernels_zero_makes_empty_accumulators)
