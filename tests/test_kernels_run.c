/*
 * Kernels with data: every fast version on every level of this processor against its reference in
 * fp64, with poisoned outputs and guards around every buffer; and the references against what can
 * be known without them: finite differences, sums of parts, rows without keys.
 */
#include "kernels/cpu.h"
#include "kernels/elementwise.h"
#include "run_tests.h"

#include "base/rng.h"

#include <glib.h>
#include <math.h>
#include <string.h>

#define GUARD_BYTES 64U
#define GUARD 0xa5

/* What inputs look like. */
enum variant {
    NORMAL,
    LOGITS_4,
    LOGITS_20,
    ONE_KEY_60,
    EQUAL_LOGITS,
    VARIANTS,
};

typedef struct {
    const char *kernel;
    LhKernelArgs args;
    enum lh_storage storage;
    bool narrow; /* EITHER means the activation's type, not fp32 */
    uint32_t q_parts, k_parts;
    enum variant variant;
    bool one_key; /* is all that a query sees */
} Case;

/* A case's operands: inputs, and room for the results of a run. */
typedef struct {
    const Case *c;
    const LhKernel *kernel;
    LhCall call;
    uint64_t bytes[LH_KERNEL_OPERANDS_MAX];
    unsigned char *memory[LH_KERNEL_OPERANDS_MAX]; /* with guards */
    unsigned char *scratch;
    unsigned count;
} Run;

#define SEED 7

static uint64_t drawn;

static double
uniform(void)
{
    return lh_rng_uniform(SEED, 0, drawn++);
}

static double
normal(void)
{
    return sqrt(-2 * log(1 - uniform())) * cos(2 * G_PI * uniform());
}

/* Either of k and v, or of dk and dv. */
static bool
is_half(LhTensorKind kind)
{
    return kind == LH_TENSOR_K || kind == LH_TENSOR_V || kind == LH_TENSOR_DK ||
           kind == LH_TENSOR_DV;
}

/* Cut into parts by keys, too. */
static bool
is_scores(LhTensorKind kind)
{
    return kind == LH_TENSOR_SCORES || kind == LH_TENSOR_PROBS || kind == LH_TENSOR_DSCORES;
}

static bool
is_keys(const Case *c, LhTensorKind kind)
{
    return kind == LH_TENSOR_KV || kind == LH_TENSOR_DKV || is_half(kind) ||
           (kind == LH_TENSOR_ANY && c->args.nq == 0);
}

static bool
is_stat(LhTensorKind kind)
{
    return kind == LH_TENSOR_LSE || kind == LH_TENSOR_DELTA;
}

static bool
is_state(const Case *c, LhTensorKind kind)
{
    return kind == LH_TENSOR_STATE || kind == LH_TENSOR_DSTATE ||
           (kind == LH_TENSOR_ANY && g_str_has_prefix(c->kernel, "linear_"));
}

/* Statistics of an accumulator: (m, l), or lse where blocks are normalised. */
static unsigned
stats_of(const Case *c, LhTensorKind kind)
{
    static const char *const normalised[] = {
        "attention_block", "merge_lse", "merge_stat", "weigh_out", "round_out", "copy_out", NULL
    };

    if (kind != LH_TENSOR_ACC)
        return 0;
    return g_strv_contains(normalised, c->kernel) ? 1 : 2;
}

static uint64_t
elements_of(const Case *c, LhTensorKind kind)
{
    const LhKernelArgs *a = &c->args;

    if (is_state(c, kind))
        return (uint64_t)a->batch * a->heads * a->head_dim * a->head_dim;
    if (is_stat(kind))
        return a->batch * a->nq * a->heads;
    if (is_scores(kind))
        return a->batch * a->nq * a->heads * a->nk;
    if (is_keys(c, kind))
        return (is_half(kind) ? 1 : 2) * a->batch * a->nk * a->groups * a->head_dim;
    return a->batch * a->nq * a->heads * a->head_dim;
}

static enum lh_storage
storage_of(const Case *c, unsigned operand, LhElementRule rule)
{
    if (rule == LH_ELEMENT_FP32)
        return LH_STORAGE_FP32;
    if (rule == LH_ELEMENT_EITHER && !c->narrow)
        return c->storage == LH_STORAGE_FP64 ? LH_STORAGE_FP64 : LH_STORAGE_FP32;
    if (rule == LH_ELEMENT_OTHER && c->narrow && operand > 0)
        return LH_STORAGE_FP32;
    return c->storage;
}

/* Element @i of an operand whose parts hold @per each. */
static unsigned char *
element_at(const LhView *view, uint64_t per, uint64_t i)
{
    return view->data + i / per * view->part_bytes + i % per * lh_storage_bytes(view->storage);
}

static float *
stat_at(const LhView *view, uint64_t per, uint64_t rows, uint64_t i)
{
    return (float *)(void *)(view->data + i / rows * view->part_bytes +
                             per * lh_storage_bytes(view->storage)) +
           i % rows;
}

static void
fill_view(Run *r, unsigned operand, LhTensorKind kind)
{
    const LhView *view = &r->call.operands[operand];
    const uint64_t count = elements_of(r->c, kind), per = count / view->parts;
    const unsigned stats = stats_of(r->c, kind);
    const uint64_t rows = r->c->args.batch * r->c->args.nq * r->c->args.heads;

    for (uint64_t i = 0; i < count; i++)
        lh_element_put(element_at(view, per, i), view->storage, 0, normal());
    /* m and l, or lse, of parts one after another: sums are positive, some rows have no key. */
    for (uint64_t part = 0; part < view->parts && stats > 0; part++) {
        for (uint64_t i = 0; i < rows / view->parts; i++) {
            float *first = stat_at(view, per, rows / view->parts, part * (rows / view->parts) + i);
            const bool empty = i % 5 == 3;

            first[0] = empty ? -INFINITY : (float)normal();
            if (stats == 2)
                first[rows / view->parts] = empty ? 0 : (float)(0.5 + uniform());
            for (uint32_t d = 0; empty && d < r->c->args.head_dim; d++)
                lh_element_put(view->data + part * view->part_bytes, view->storage,
                               i * r->c->args.head_dim + d, 0);
        }
    }
}

static const LhOperand *
operand_of(const Run *r, const char *name, unsigned *index)
{
    for (unsigned i = 0; i < r->count; i++) {
        if (strcmp(r->kernel->operands[i].name, name) == 0) {
            *index = i;
            return &r->kernel->operands[i];
        }
    }
    return NULL;
}

static void
scale_rows(const LhRows *t, const Case *c, double factor)
{
    for (uint64_t b = 0; b < c->args.batch; b++) {
        for (uint64_t row = 0; row < c->args.nq; row++) {
            for (uint32_t h = 0; h < t->heads; h++) {
                void *at = lh_rows_at(t, b, row, h);

                for (uint32_t d = 0; d < t->dim; d++)
                    lh_element_put(at, t->storage, d, factor * lh_element_get(at, t->storage, d));
            }
        }
    }
}

static void
make_extreme(Run *r)
{
    const Case *c = r->c;
    unsigned q, kv;
    LhRows rows, keys;

    if (operand_of(r, "q", &q) == NULL || operand_of(r, "kv", &kv) == NULL || c->args.nk == 0)
        return;
    rows = lh_rows_q(&r->call, q);
    keys = lh_rows_k(&r->call, kv);
    if (c->variant == LOGITS_4 || c->variant == LOGITS_20)
        scale_rows(&rows, c, c->variant == LOGITS_4 ? 4 : 20);
    for (uint64_t row = 0; row < c->args.nq && c->variant == ONE_KEY_60; row++) {
        for (uint32_t h = 0; h < c->args.heads; h++)
            lh_element_put(lh_rows_at(&rows, 0, row, h), rows.storage, 0, 4);
    }
    for (uint32_t h = 0; h < c->args.groups; h++) {
        if (c->variant == ONE_KEY_60)
            lh_element_put(lh_rows_at(&keys, 0, c->args.nk / 2, h), keys.storage, 0,
                           15 / lh_attention_scale(&c->args));
        for (uint64_t row = 1; row < c->args.nk && c->variant == EQUAL_LOGITS; row++)
            memcpy(lh_rows_at(&keys, 0, row, h), lh_rows_at(&keys, 0, 0, h),
                   keys.dim * (size_t)lh_storage_bytes(keys.storage));
    }
}

static unsigned char *
guarded(uint64_t bytes, unsigned char **memory)
{
    *memory = g_aligned_alloc(1, bytes + 2 * GUARD_BYTES, LH_SCRATCH_ALIGN);
    memset(*memory, GUARD, bytes + 2 * GUARD_BYTES);
    return *memory + GUARD_BYTES;
}

static void
check_guards(const unsigned char *memory, uint64_t bytes)
{
    for (unsigned i = 0; i < GUARD_BYTES; i++) {
        ck_assert_uint_eq(memory[i], GUARD);
        ck_assert_uint_eq(memory[GUARD_BYTES + bytes + i], GUARD);
    }
}

static void
poison(void *data, uint64_t bytes)
{
    memset(data, 0xff, bytes); /* a NaN in every type */
}

static void
add_operand(Run *r, const LhOperand *o)
{
    const Case *c = r->c;
    const unsigned i = r->count++;
    LhView *view = &r->call.operands[i];
    const uint64_t rows = c->args.batch * c->args.nq * c->args.heads;

    view->storage = storage_of(c, i, o->element);
    view->parts = is_state(c, o->kind)                        ? 1
                  : is_keys(c, o->kind) || is_scores(o->kind) ? c->k_parts
                                                              : c->q_parts;
    view->part_bytes = (elements_of(c, o->kind) * lh_storage_bytes(view->storage) +
                        stats_of(c, o->kind) * rows * sizeof(float)) /
                       view->parts;
    r->bytes[i] = view->part_bytes * view->parts;
    view->data = guarded(r->bytes[i], &r->memory[i]);
    if (o->access == LH_OPERAND_WRITE || (o->access == LH_OPERAND_UPDATE && c->args.first))
        poison(view->data, r->bytes[i]);
    else
        fill_view(r, i, o->kind);
}

static void
run_kernel(const LhKernel *kernel, LhKernelRun version, LhCall *call)
{
    const uint64_t bytes = lh_kernel_scratch_bytes(kernel, call->args);
    unsigned char *memory;

    call->scratch = guarded(bytes, &memory);
    poison(call->scratch, bytes);
    ck_assert_int_eq(version(call), LH_STATUS_OK);
    check_guards(memory, bytes);
    g_aligned_free(memory);
}

/* Backward kernels need the o, lse and delta that belong to their inputs. */
static void
derive_inputs(Run *r)
{
    const LhKernel *attention = lh_kernels[LH_KERNEL_ID_attention];
    const LhKernel *delta = lh_kernels[LH_KERNEL_ID_delta];
    unsigned q = 0, kv = 0, o, lse, dout, of_delta;
    unsigned char *memory = NULL;
    LhKernelArgs args = r->c->args;
    LhCall forward = { .args = &args };

    if (operand_of(r, "do", &dout) == NULL || operand_of(r, "lse", &lse) == NULL)
        return;
    operand_of(r, "q", &q);
    operand_of(r, "kv", &kv);
    forward.operands[0] = r->call.operands[q];
    forward.operands[1] = r->call.operands[kv];
    forward.operands[2] = r->call.operands[dout];
    if (operand_of(r, "o", &o) != NULL)
        forward.operands[2] = r->call.operands[o];
    else
        forward.operands[2].data = guarded(r->bytes[dout], &memory);
    forward.operands[3] = r->call.operands[lse];
    run_kernel(attention, attention->reference, &forward);
    if (operand_of(r, "delta", &of_delta) != NULL) {
        const LhCall of_rows = { .args = &args,
                                 .operands = { r->call.operands[dout], forward.operands[2],
                                               r->call.operands[of_delta] } };

        ck_assert_int_eq(delta->reference(&of_rows), LH_STATUS_OK);
    }
    g_aligned_free(memory);
}

static void
run_init(Run *r, const Case *c)
{
    *r = (Run){ .c = c, .kernel = lh_kernels[lh_kernel_find(c->kernel)] };
    r->call.args = &c->args;
    for (const LhOperand *o = r->kernel->operands; o->access != LH_OPERAND_END; o++)
        add_operand(r, o);
    make_extreme(r);
    derive_inputs(r);
}

static void
run_clear(Run *r)
{
    for (unsigned i = 0; i < r->count; i++) {
        check_guards(r->memory[i], r->bytes[i]);
        g_aligned_free(r->memory[i]);
    }
}

/* A second set of operands with the same contents. */
static void
run_copy(Run *r, const Run *from)
{
    *r = *from;
    for (unsigned i = 0; i < r->count; i++) {
        r->call.operands[i].data = guarded(r->bytes[i], &r->memory[i]);
        memcpy(r->call.operands[i].data, from->call.operands[i].data, r->bytes[i]);
    }
}

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

static void
describe(const Run *r, const char *level, unsigned operand, double error)
{
    const LhKernelArgs *a = &r->c->args;

    ck_abort_msg("%s %s operand %s: error %g; nq %lu nk %lu B %u h %u g %u d %u mask %d shift %d "
                 "first %d storage %d narrow %d parts %u %u variant %d decay %g q at %ld + %ld "
                 "k at %ld + %ld stride %lu",
                 level, r->c->kernel, r->kernel->operands[operand].name, error, (gulong)a->nq,
                 (gulong)a->nk, a->batch, a->heads, a->groups, a->head_dim, a->mask, a->shift,
                 a->first, (int)r->c->storage, r->c->narrow, r->c->q_parts, r->c->k_parts,
                 (int)r->c->variant, a->decay, (glong)a->q_at.start, (glong)a->q_at.part_step,
                 (glong)a->k_at.start, (glong)a->k_at.part_step, (gulong)a->stride);
}

/* rel-L2 of the elements, and every row on its own, so that one wrong row cannot hide. */
static void
compare_elements(const Run *got, const Run *want, const char *level, unsigned operand)
{
    const LhView *a = &got->call.operands[operand], *b = &want->call.operands[operand];
    const LhTensorKind kind = got->kernel->operands[operand].kind;
    const uint64_t count = elements_of(got->c, kind), per = count / a->parts;
    const uint64_t width = is_stat(kind)     ? 1
                           : is_scores(kind) ? got->c->args.nk / a->parts
                                             : got->c->args.head_dim;
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
    const uint64_t per = elements_of(got->c, kind) / a->parts;
    const uint64_t stats =
        stats_of(got->c, kind) * got->c->args.batch * got->c->args.nq * got->c->args.heads;

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
    run_kernel(want.kernel, want.kernel->reference, &want.call);
    for (const LhCpuLevel *const *level = lh_cpu_levels; *level != NULL; level++) {
        if (!lh_cpu_set(*level))
            continue;
        run_copy(&got, &input);
        run_copy(&again, &input);
        run_kernel(got.kernel, got.kernel->cpu, &got.call);
        run_kernel(again.kernel, again.kernel->cpu, &again.call);
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
            c.args.last = !c.args.first;
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

/* 16-bit types differ from fp32 in loads and stores alone: each kernel has a third of the shapes.
 */
static void
check_kernels(enum lh_storage storage)
{
    for (unsigned s = 0; s < G_N_ELEMENTS(shapes); s++) {
        for (unsigned k = 0; k < LH_KERNELS_COUNT; k++) {
            Case c = shapes[s];

            c.storage = storage;
            check_shape(&c, lh_kernels[k]->name);
        }
    }
}

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

static const LhKernelArgs plain_args = { .nq = 70,
                                         .nk = 90,
                                         .batch = 1,
                                         .heads = 2,
                                         .groups = 1,
                                         .head_dim = 24,
                                         .mask = LH_MASK_FULL,
                                         .first = true };

static void
attention_init(Run *r, Case *c, const LhKernelArgs *args)
{
    *c = (Case){ .kernel = "attention", .args = *args, .q_parts = 1, .k_parts = 1 };
    run_init(r, c);
}

static void
on_levels(void (*check)(void))
{
    for (const LhCpuLevel *const *level = lh_cpu_levels; *level != NULL; level++) {
        if (lh_cpu_set(*level))
            check();
    }
    lh_cpu_set(NULL);
}

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
    run_kernel(r.kernel, r.kernel->cpu, &r.call);
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
    run_kernel(r.kernel, r.kernel->cpu, &r.call);
    run_kernel(permuted.kernel, permuted.kernel->cpu, &permuted.call);
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
    run_kernel(r.kernel, r.kernel->reference, &r.call);
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

/* ---- blocks and parts ---- */

static LhView
view_of(void *data, uint64_t bytes)
{
    return (LhView){ .data = data, .parts = 1, .part_bytes = bytes, .storage = LH_STORAGE_FP32 };
}

/* Keys [begin, end) as an operand of their own. */
static LhView
slice_keys(const LhView *kv, const LhKernelArgs *a, uint64_t begin, uint64_t end)
{
    const uint64_t row = a->groups * a->head_dim * sizeof(float), bytes = (end - begin) * row;
    unsigned char *data = g_malloc(2 * bytes);

    memcpy(data, kv->data + begin * row, bytes);
    memcpy(data + bytes, kv->data + (a->nk + begin) * row, bytes);
    return view_of(data, 2 * bytes);
}

/* Three blocks of keys, carried, or merged, then normalised, are one call. */
static void
check_carry(void)
{
    const LhKernel *fwd = lh_kernels[LH_KERNEL_ID_attention_fwd];
    const LhKernel *merge = lh_kernels[LH_KERNEL_ID_merge];
    const LhKernel *normalise = lh_kernels[LH_KERNEL_ID_normalise];
    const uint64_t ends[] = { 0, 17, 81, 90 }, rows = 140, bytes = rows * (24 + 2) * sizeof(float);
    g_autofree unsigned char *acc = g_malloc(bytes), *block = g_malloc(bytes);
    g_autofree unsigned char *o = g_malloc(bytes), *lse = g_malloc(rows * sizeof(float));
    Case c;
    Run r;

    attention_init(&r, &c, &plain_args);
    run_kernel(r.kernel, r.kernel->cpu, &r.call);
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
            run_kernel(fwd, fwd->cpu, &call);
            if (merged)
                run_kernel(merge, merge->cpu, &fold);
            g_free(call.operands[1].data);
        }
        run_kernel(normalise, normalise->cpu, &end);
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

/* The same rows in one part and in two: equal bits. */
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
    /* k0 k1 v0 v1 becomes k0 v0 k1 v1; the others lie as they did. */
    memcpy(two.call.operands[1].data + half, one.call.operands[1].data + 2 * half, half);
    memcpy(two.call.operands[1].data + 2 * half, one.call.operands[1].data + half, half);
    run_kernel(one.kernel, one.kernel->cpu, &one.call);
    run_kernel(two.kernel, two.kernel->cpu, &two.call);
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

static double
loss(const double *weights, const double *o, uint64_t count)
{
    double sum = 0;

    for (uint64_t i = 0; i < count; i++)
        sum += weights[i] * o[i];
    return sum;
}

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
    const uint64_t count = elements_of(&c, LH_TENSOR_Q);
    g_autofree double *o = g_new(double, count);
    g_autofree float *lse = g_new(float, count);
    LhCall forward = { .args = &c.args };
    Run r;

    run_init(&r, &c);
    run_kernel(r.kernel, r.kernel->reference, &r.call);
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
            run_kernel(lh_kernels[LH_KERNEL_ID_attention],
                       lh_kernels[LH_KERNEL_ID_attention]->reference, &forward);
            up = loss(dout, o, count);
            x[i] = before - step;
            run_kernel(lh_kernels[LH_KERNEL_ID_attention],
                       lh_kernels[LH_KERNEL_ID_attention]->reference, &forward);
            down = loss(dout, o, count);
            x[i] = before;
            ck_assert_double_eq_tol((up - down) / (2 * step), gradient[i], 2e-6);
        }
    }
    run_clear(&r);
}
END_TEST

/* Linear attention with a state before it: o and the state behind it, fp64 but for the state. */
typedef struct {
    LhKernelArgs args;
    LhView q, kv, o, dout, dq, dkv, before, behind, dstate;
} Linear;

static LhView
filled(uint64_t count, enum lh_storage storage)
{
    const uint64_t bytes = count * lh_storage_bytes(storage);
    LhView view = { .data = g_malloc(bytes), .parts = 1, .part_bytes = bytes, .storage = storage };

    for (uint64_t i = 0; i < count; i++)
        lh_element_put(view.data, storage, i, normal());
    return view;
}

static void
linear_init(Linear *l, const LhKernelArgs *args, enum lh_storage storage)
{
    const uint64_t q = args->batch * args->nq * args->heads * args->head_dim;
    const uint64_t kv = 2 * args->batch * args->nk * args->groups * args->head_dim;
    const uint64_t state = (uint64_t)args->batch * args->heads * args->head_dim * args->head_dim;

    *l = (Linear){ *args,
                   filled(q, storage),
                   filled(kv, storage),
                   filled(q, storage),
                   filled(q, storage),
                   filled(q, storage),
                   filled(kv, storage),
                   filled(state, LH_STORAGE_FP32),
                   filled(state, LH_STORAGE_FP32),
                   filled(state, LH_STORAGE_FP32) };
}

static void
linear_clear(Linear *l)
{
    LhView *const views[] = { &l->q,   &l->kv,     &l->o,      &l->dout,  &l->dq,
                              &l->dkv, &l->before, &l->behind, &l->dstate };

    for (unsigned i = 0; i < G_N_ELEMENTS(views); i++)
        g_free(views[i]->data);
}

static void
call_linear(const char *name, bool fast, const LhKernelArgs *args, bool first,
            const LhView *operands)
{
    const LhKernel *kernel = lh_kernels[lh_kernel_find(name)];
    LhKernelArgs of_call = *args;
    LhCall call = { .args = &of_call };

    of_call.first = first;
    for (unsigned i = 0; kernel->operands[i].access != LH_OPERAND_END; i++)
        call.operands[i] = operands[i];
    run_kernel(kernel, fast ? kernel->cpu : kernel->reference, &call);
}

static void
linear_forward(const Linear *l, bool fast)
{
    const LhKernelArgs *a = &l->args;

    call_linear("linear_intra", fast, a, true, (const LhView[]){ l->q, l->kv, l->o });
    call_linear("linear_inter", fast, a, false, (const LhView[]){ l->q, l->before, l->o });
    call_linear("linear_state", fast, a, true, (const LhView[]){ l->kv, l->behind });
    {
        LhKernelArgs tokens = *a;

        tokens.nk = 0;
        call_linear("linear_carry", fast, &tokens, false, (const LhView[]){ l->before, l->behind });
    }
}

/* dq, dkv, and in place the gradient of the state behind becomes that of the state before. */
static void
linear_backward(const Linear *l, bool fast)
{
    const LhKernelArgs *a = &l->args;

    call_linear("linear_intra_bwd", fast, a, true,
                (const LhView[]){ l->q, l->dout, l->kv, l->dq, l->dkv });
    call_linear("linear_inter_bwd", fast, a, false, (const LhView[]){ l->dout, l->before, l->dq });
    call_linear("linear_state_bwd", fast, a, false, (const LhView[]){ l->kv, l->dstate, l->dkv });
    call_linear("linear_dstate", fast, a, false, (const LhView[]){ l->q, l->dout, l->dstate });
}

static double
linear_loss(const Linear *l, const double *dstate)
{
    const uint64_t state = l->behind.part_bytes / sizeof(float);
    double sum = loss((const double *)(const void *)l->dout.data,
                      (const double *)(const void *)l->o.data, l->o.part_bytes / sizeof(double));

    for (uint64_t i = 0; i < state; i++)
        sum += dstate[i] * (double)((const float *)(const void *)l->behind.data)[i];
    return sum;
}

/* The loss is linear in every single number, so differences over a step of 1 are exact. */
static void
check_linear_gradient(const Linear *l, const LhView *input, const LhView *gradient,
                      const double *dstate)
{
    for (uint64_t i = 0; i < input->part_bytes / lh_storage_bytes(input->storage); i++) {
        const double before = lh_element_get(input->data, input->storage, i);
        double low;

        linear_forward(l, false);
        low = linear_loss(l, dstate);
        lh_element_put(input->data, input->storage, i, before + 1);
        linear_forward(l, false);
        ck_assert_double_eq_tol(linear_loss(l, dstate) - low,
                                lh_element_get(gradient->data, gradient->storage, i), 5e-5);
        lh_element_put(input->data, input->storage, i, before);
    }
}

START_TEST(kernels_linear_gradient_is_difference)
{
    const LhKernelArgs args = { .nq = 4,
                                .nk = 4,
                                .batch = 1,
                                .heads = 4,
                                .groups = 2,
                                .head_dim = 3,
                                .mask = LH_MASK_CAUSAL,
                                .decay = 0.8 };
    double dstate[4 * 3 * 3];
    Linear l;

    linear_init(&l, &args, LH_STORAGE_FP64);
    for (unsigned i = 0; i < G_N_ELEMENTS(dstate); i++)
        dstate[i] = (double)((float *)(void *)l.dstate.data)[i];
    linear_backward(&l, false);
    check_linear_gradient(&l, &l.q, &l.dq, dstate);
    check_linear_gradient(&l, &l.kv, &l.dkv, dstate);
    check_linear_gradient(&l, &l.before, &l.dstate, dstate);
    linear_clear(&l);
}
END_TEST

/* Two halves with the state between them are the whole. */
static void
check_halves(void)
{
    LhKernelArgs args = plain_args;
    LhView parts[2][4];
    uint64_t row;
    Linear l;

    args.nq = args.nk = 130;
    args.mask = LH_MASK_CAUSAL;
    args.decay = 0.9;
    row = args.head_dim * sizeof(float);
    linear_init(&l, &args, LH_STORAGE_FP32);
    linear_forward(&l, true);
    args.nq /= 2;
    for (unsigned half = 0; half < 2; half++) {
        Linear part;

        linear_init(&part,
                    &(LhKernelArgs){ .nq = 65,
                                     .nk = 65,
                                     .batch = 1,
                                     .heads = args.heads,
                                     .groups = 1,
                                     .head_dim = args.head_dim,
                                     .mask = LH_MASK_CAUSAL,
                                     .decay = args.decay },
                    LH_STORAGE_FP32);
        memcpy(part.q.data, l.q.data + half * 65 * args.heads * row, 65 * args.heads * row);
        memcpy(part.kv.data, l.kv.data + half * 65 * row, 65 * row);
        memcpy(part.kv.data + 65 * row, l.kv.data + (130 + half * 65) * row, 65 * row);
        memcpy(part.before.data, half == 0 ? l.before.data : parts[0][0].data,
               part.before.part_bytes);
        linear_forward(&part, true);
        for (uint64_t i = 0; i < 65 * args.heads * args.head_dim; i++)
            ck_assert_double_eq_tol(
                (double)((float *)(void *)part.o.data)[i],
                (double)((float *)(void *)l.o.data)[half * 65 * args.heads * args.head_dim + i],
                1e-4);
        parts[half][0] = part.behind;
        part.behind.data = NULL;
        linear_clear(&part);
    }
    for (uint64_t i = 0; i < l.behind.part_bytes / sizeof(float); i++)
        ck_assert_double_eq_tol((double)((float *)(void *)parts[1][0].data)[i],
                                (double)((float *)(void *)l.behind.data)[i], 1e-4);
    g_free(parts[0][0].data);
    g_free(parts[1][0].data);
    linear_clear(&l);
}

START_TEST(kernels_linear_chunks_join)
{
    on_levels(check_halves);
}
END_TEST

/* ---- scores written out ---- */

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
    const LhKernel *kernel = lh_kernels[lh_kernel_find(name)];
    LhCall call = { .args = args, .operands = { a, b, c } };

    run_kernel(kernel, kernel->cpu, &call);
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

/* Forward and backward through scores, in place where that is allowed. */
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
    const LhKernel *forward = lh_kernels[LH_KERNEL_ID_attention];
    const LhKernel *backward = lh_kernels[LH_KERNEL_ID_attention_bwd];
    LhCall fwd = { .args = mask,
                   .operands = { WHOLE(s->q), WHOLE(s->kv), WHOLE(s->o), WHOLE(s->lse) } };
    LhCall bwd = { .args = mask,
                   .operands = { WHOLE(s->q), WHOLE(s->dout), WHOLE(s->delta), WHOLE(s->lse),
                                 WHOLE(s->kv), WHOLE(s->dq), WHOLE(s->dkv) } };

    run_kernel(forward, forward->reference, &fwd);
    call_views("delta", mask, WHOLE(s->dout), WHOLE(s->o), WHOLE(s->delta));
    run_kernel(backward, backward->reference, &bwd);
}

static void
check_equal(const float *a, const float *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ck_assert(a[i] == b[i] || fabsf(a[i] - b[i]) <= 1e-5F * (1 + fabsf(b[i])));
}

/* Written-out scores are attention, forward and backward, under masks of every kind; two heads
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

/* k and v apart, and their gradients together, in parts. */
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

/* Three states over five tokens each: as carried one by one, from either side. */
START_TEST(kernels_linear_prefix_carries)
{
    enum { STATES = 3, SIZE = 2 * 3 * 4 * 4 };
    float states[STATES][SIZE], found[SIZE], carried[SIZE];
    const LhKernel *prefix = lh_kernels[LH_KERNEL_ID_linear_prefix];
    const LhKernel *carry = lh_kernels[LH_KERNEL_ID_linear_carry];

    for (unsigned i = 0; i < STATES * SIZE; i++)
        states[i / SIZE][i % SIZE] = (float)normal();
    for (unsigned side = 0; side < 2; side++) {
        const LhKernelArgs args = { .nk = side == 0 ? 5 : 0,
                                    .nq = side == 0 ? 0 : 5,
                                    .batch = 2,
                                    .heads = 3,
                                    .groups = 1,
                                    .head_dim = 4,
                                    .decay = 0.9,
                                    .states = STATES };
        LhCall call = { .args = &args,
                        .operands = { view_of(states, sizeof(found)),
                                      view_of(found, sizeof(found)) } };

        call.operands[0].parts = STATES;
        ck_assert_int_eq(prefix->cpu(&call), LH_STATUS_OK);
        memcpy(carried, states[side == 0 ? 0 : 2], sizeof(carried));
        for (unsigned i = 1; i < STATES; i++) {
            float next[SIZE];

            memcpy(next, states[side == 0 ? i : 2 - i], sizeof(next));
            call.operands[0] = view_of(carried, sizeof(carried));
            call.operands[1] = view_of(next, sizeof(next));
            ck_assert_int_eq(carry->cpu(&call), LH_STATUS_OK);
            memcpy(carried, next, sizeof(carried));
        }
        for (unsigned k = 0; k < SIZE; k++)
            ck_assert_double_eq_tol((double)found[k], (double)carried[k], 1e-6);
    }
}
END_TEST

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
        ck_assert(lh_kernels[i]->reference != NULL);
        ck_assert(lh_kernels[i]->cpu != NULL);
    }
    ck_assert_int_eq(lh_kernels[LH_KERNEL_ID_copy]->cpu(&call), LH_STATUS_UNSUPPORTED);
    ck_assert_int_eq(lh_kernels[LH_KERNEL_ID_merge]->cpu(&call), LH_STATUS_UNSUPPORTED);
    ck_assert_int_eq(lh_kernels[LH_KERNEL_ID_zero]->reference(&call), LH_STATUS_UNSUPPORTED);
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

    ck_assert_int_eq(lh_kernels[LH_KERNEL_ID_zero]->cpu(&call), LH_STATUS_OK);
    ck_assert(acc[0] == 0 && acc[3] == 0 && acc[4] == -INFINITY && acc[5] == 0);
}
END_TEST

LH_TEST_MAIN("kernels_run", kernels_run_fp32, kernels_run_bf16, kernels_run_fp16,
             kernels_run_on_extreme_inputs, kernels_run_under_masks_by_position,
             kernels_see_what_the_rule_allows, kernels_know_simple_answers, kernels_carry_blocks,
             kernels_join_parts, kernels_attention_gradient_is_finite_difference,
             kernels_linear_gradient_is_difference, kernels_linear_chunks_join,
             kernels_linear_prefix_carries, kernels_scores_are_attention, kernels_take_keys_apart,
             kernels_convert_exactly, kernels_convert_the_same_on_levels,
             kernels_refuse_what_they_cannot, kernels_zero_makes_empty_accumulators)
