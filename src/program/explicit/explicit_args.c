/*
 * The arguments of kernels in the explicit JSON form, read and written. Those of attention have
 * defaults that the program decides; all others are a table: where a kernel's kind of arguments has
 * a field of the form, what is absent is 0, which the field cannot be where it is needed.
 */
#include "program/explicit/explicit_args.h"

#include "base/error.h"
#include "base/json/json_writer.h"
#include "kernels/layer.h"
#include "program/explicit/explicit_ops.h"

#include <math.h>
#include <string.h>

#define SOFTMAX_TRAFFIC_MAX 64U
#define CALL_MAX (UINT64_C(1) << 60) /* flops of a product: its traffic fits 64 bits */
#define ELEMENTS_MAX                                                                               \
    (UINT64_C(1) << 48) /* of an operand: so do flops and bytes of each element                    \
                         */

/* ---- attention ---- */

static uint64_t
given(uint64_t value, uint64_t otherwise)
{
    return value == LH_FORM_ABSENT ? otherwise : value;
}

static int64_t
given_position(int64_t value, int64_t otherwise)
{
    return value == LH_FORM_NO_POSITION ? otherwise : value;
}

static void
fill_positions(const LhFormReader *r, const LhFormOp *form, LhKernelArgs *args)
{
    args->q_at.start = given_position(form->q_start, 0);
    args->q_at.part_step = given_position(form->q_part_step, 0);
    args->k_at.start = given_position(form->k_start, 0);
    args->k_at.part_step = given_position(form->k_part_step, 0);
    args->stride = (uint64_t)given_position(form->stride, 1);
    args->rule = &r->program->params.mask;
}

static void
fill_attention_args(const LhFormReader *r, const LhFormOp *form, LhKernelArgs *args)
{
    const LhProgram *program = r->program;
    const LhAttention *a = &program->params.attention;

    args->nq = given(form->nq, 0);
    args->nk = given(form->nk, 0);
    args->batch = (uint32_t)given(form->batch, a->batch);
    args->heads = (uint32_t)given(form->heads, a->heads / program->head_slices);
    args->groups = (uint32_t)given(form->groups, a->groups / program->kv_slices);
    args->head_dim = (uint32_t)given(form->head_dim, a->head_dim);
    args->mask = (uint8_t)(form->mask == LH_FORM_NO_CHOICE ? LH_MASK_EMPTY : form->mask);
    args->shift = (int8_t)(form->shift == LH_FORM_NO_SHIFT ? 0 : form->shift);
    args->reversed = form->reversed;
    args->states = (uint32_t)form->states;
    args->traffic = (uint32_t)form->traffic;
    args->scale = isnan(form->scale) ? a->scale : form->scale;
    args->decay = isnan(form->decay) ? 0 : form->decay;
    args->pairs = given(form->pairs,
                        lh_explicit_pairs((LhMaskKind)args->mask, args->shift, args->nq, args->nk));
    if (args->mask == LH_MASK_POSITIONS)
        fill_positions(r, form, args);
}

static bool
has_positions(const LhFormOp *form)
{
    return form->q_start != LH_FORM_NO_POSITION || form->q_part_step != LH_FORM_NO_POSITION ||
           form->k_start != LH_FORM_NO_POSITION || form->k_part_step != LH_FORM_NO_POSITION ||
           form->stride != LH_FORM_NO_POSITION;
}

static bool
check_positions(const LhFormReader *r, const LhFormOp *form)
{
    if (form->mask != LH_MASK_POSITIONS && has_positions(form))
        return lh_form_fail(r, "mask",
                            "only the mask \"positions\" takes q_start, k_start and the like");
    if (form->mask == LH_MASK_POSITIONS && form->pairs == LH_FORM_ABSENT)
        return lh_form_fail(r, "mask", "with the mask \"positions\" an op says its pairs");
    return true;
}

/* The flops and bytes of one call, whatever the kernel, fit 63 bits: a state has d^2 elements. */
static bool
check_attention_size(const LhFormReader *r, const LhKernelArgs *args)
{
    const uint64_t rows = MAX(args->nq, args->nk);
    const uint64_t heads = MAX(args->heads, args->groups);
    const uint64_t row = (uint64_t)args->head_dim + 8;
    uint64_t width, flops, bytes, states, scores;

    if (__builtin_mul_overflow(args->nq, args->nk, &scores) ||
        __builtin_mul_overflow((uint64_t)args->batch * heads, row, &width) ||
        __builtin_mul_overflow(width, 16, &flops) ||
        __builtin_mul_overflow(flops, MAX(args->pairs, scores), &flops) ||
        __builtin_mul_overflow(width, 64 * rows, &bytes) ||
        __builtin_mul_overflow(width, 16 * row, &states) ||
        __builtin_mul_overflow(states, rows + args->states + 1, &states) || flops > INT64_MAX ||
        bytes > INT64_MAX || states > INT64_MAX)
        return lh_form_fail(r, "nq", "the flops or bytes of this call do not fit 63 bits");
    return true;
}

/* Those that no other kind has. */
static bool
has_attention_args(const LhFormOp *form)
{
    return form->mask != LH_FORM_NO_CHOICE || form->shift != LH_FORM_NO_SHIFT ||
           form->nq != LH_FORM_ABSENT || form->nk != LH_FORM_ABSENT ||
           form->pairs != LH_FORM_ABSENT || form->q_start != LH_FORM_NO_POSITION ||
           form->q_part_step != LH_FORM_NO_POSITION || form->k_start != LH_FORM_NO_POSITION ||
           form->k_part_step != LH_FORM_NO_POSITION || form->reversed || form->states != 0 ||
           !isnan(form->scale) || !isnan(form->decay);
}

/* Softmax alone is told what it moves, so little that bytes fit wherever other kernels' do. */
static bool
check_softmax_traffic(const LhFormReader *r, const LhFormOp *form)
{
    const LhEffect effect = lh_kernels[lh_kernel_find(form->kernel)]->effect;

    if (form->traffic == 0)
        return true;
    if (effect != LH_EFFECT_SOFTMAX && effect != LH_EFFECT_SOFTMAX_GRAD)
        return lh_form_fail(r, "traffic", "%s takes no traffic", form->kernel);
    return form->traffic <= SOFTMAX_TRAFFIC_MAX ||
           lh_form_fail(r, "traffic",
                        "softmax moves %" G_GUINT64_FORMAT " bytes for each score; allowed: up to "
                        "%u",
                        form->traffic, SOFTMAX_TRAFFIC_MAX);
}

static bool
read_attention_args(const LhFormReader *r, const LhFormOp *form, LhKernelArgs *args)
{
    if (!check_positions(r, form) || !check_softmax_traffic(r, form))
        return false;
    fill_attention_args(r, form, args);
    return check_attention_size(r, args);
}

/* ---- all others ---- */

typedef enum {
    U64,    /* of uint64_t, in the form too */
    U32,    /* of uint64_t in the form */
    SHARED, /* U32; with attention, where it may be absent and 0 both */
    STRIDE, /* U64; shared with attention, and 1 if absent */
    F64,
    FLAG,
} ArgType;

typedef struct {
    LhArgsKind kind;
    const char *name;
    ArgType type;
    size_t in_form, in_args;
    bool needed;
} ArgField;

#define ARG(kind, type, in_form, in_args, needed)                                                  \
    {                                                                                              \
        LH_ARGS_##kind, #in_form, type, offsetof(LhFormOp, in_form),                               \
            offsetof(LhKernelArgs, in_args), needed                                                \
    }

static const ArgField arg_fields[] = {
    ARG(PRODUCT, U64, m, product.m, true),
    ARG(PRODUCT, U64, n, product.n, true),
    ARG(PRODUCT, U64, k, product.k, true),
    ARG(PRODUCT, U32, experts, product.experts, false),
    ARG(PRODUCT, SHARED, batch, product.layout.batch, false),
    ARG(PRODUCT, U32, members, product.layout.members, false),
    ARG(ELEMENTS, U64, elements, elements.count, true),
    ARG(ELEMENTS, U32, traffic, elements.traffic, false),
    ARG(ROWS, U64, rows, rows.rows, true),
    ARG(ROWS, U64, width, rows.width, true),
    ARG(ROWS, U64, vocabulary, rows.vocabulary, false),
    ARG(ROWS, U64, first_row, rows.first, false),
    ARG(ROWS, U64, count, rows.count, false),
    ARG(ROWS, U64, tokens, rows.tokens, false),
    ARG(ROWS, F64, epsilon, rows.epsilon, false),
    ARG(ROWS, U32, traffic, rows.traffic, false),
    ARG(ROWS, FLAG, adds, rows.adds, false),
    ARG(HEADS, U64, rows, to_heads.rows, true),
    ARG(HEADS, SHARED, batch, to_heads.layout.batch, true),
    ARG(HEADS, U32, members, to_heads.layout.members, true),
    ARG(HEADS, SHARED, heads, to_heads.heads, true),
    ARG(HEADS, SHARED, groups, to_heads.groups, true),
    ARG(HEADS, SHARED, head_dim, to_heads.head_dim, true),
    ARG(HEADS, U64, start, to_heads.start, false),
    ARG(HEADS, STRIDE, stride, to_heads.stride, false),
    ARG(HEADS, F64, base, to_heads.base, false),
    ARG(HEADS, U32, traffic, to_heads.traffic, false),
    ARG(EXPERTS, U64, rows, experts.rows, true),
    ARG(EXPERTS, U64, width, experts.width, true),
    ARG(EXPERTS, U32, experts, experts.experts, true),
    ARG(EXPERTS, U32, choices, experts.choices, true),
    ARG(OPTIMIZER, U64, elements, optimizer.count, true),
    ARG(OPTIMIZER, F64, learning_rate, optimizer.learning_rate, false),
    ARG(OPTIMIZER, F64, beta1, optimizer.beta1, false),
    ARG(OPTIMIZER, F64, beta2, optimizer.beta2, false),
    ARG(OPTIMIZER, F64, epsilon, optimizer.epsilon, false),
    ARG(OPTIMIZER, F64, weight_decay, optimizer.weight_decay, false),
    ARG(OPTIMIZER, F64, clip, optimizer.clip, false),
    ARG(OPTIMIZER, U32, traffic, optimizer.traffic, false),
};

/* Bytes of a field within a form or arguments. */
static void *
within(const void *whole, size_t offset)
{
    return (char *)(uintptr_t)whole + offset;
}

static uint64_t
form_number(const ArgField *f, const LhFormOp *form)
{
    const uint64_t value = *(const uint64_t *)within(form, f->in_form);

    return f->type == SHARED && value == LH_FORM_ABSENT ? 0 : value;
}

static bool
is_present(const ArgField *f, const LhFormOp *form)
{
    switch (f->type) {
    case F64:
        return *(const double *)within(form, f->in_form) != 0;
    case FLAG:
        return *(const bool *)within(form, f->in_form);
    case SHARED:
        return *(const uint64_t *)within(form, f->in_form) != LH_FORM_ABSENT;
    case STRIDE:
        return *(const int64_t *)within(form, f->in_form) != LH_FORM_NO_POSITION;
    case U64:
    case U32:
    default:
        return form_number(f, form) != 0;
    }
}

static void
take(const ArgField *f, const LhFormOp *form, LhKernelArgs *args)
{
    void *to = within(args, f->in_args);

    switch (f->type) {
    case U64:
        *(uint64_t *)to = form_number(f, form);
        break;
    case U32:
    case SHARED:
        *(uint32_t *)to = (uint32_t)form_number(f, form);
        break;
    case STRIDE:
        *(uint64_t *)to = (uint64_t)given_position(form->stride, 1);
        break;
    case F64:
        *(double *)to = *(const double *)within(form, f->in_form);
        break;
    case FLAG:
        *(bool *)to = *(const bool *)within(form, f->in_form);
        break;
    }
}

static bool
takes(LhArgsKind kind, const char *name)
{
    static const char *const of_attention[] = { "batch",  "heads",   "groups", "head_dim",
                                                "stride", "traffic", NULL };

    if (kind == LH_ARGS_ATTENTION)
        return g_strv_contains(of_attention, name);
    for (size_t i = 0; i < G_N_ELEMENTS(arg_fields); i++) {
        if (arg_fields[i].kind == kind && strcmp(arg_fields[i].name, name) == 0)
            return true;
    }
    return false;
}

/* A kernel is given its own kind of arguments: others would be silently lost. */
static bool
check_kind_of_args(const LhFormReader *r, const LhFormOp *form, LhArgsKind kind)
{
    if (kind != LH_ARGS_ATTENTION && has_attention_args(form))
        return lh_form_fail(r, "kernel", "%s takes no arguments of attention, such as nq",
                            form->kernel);
    for (size_t i = 0; i < G_N_ELEMENTS(arg_fields); i++) {
        const ArgField *f = &arg_fields[i];

        if (is_present(f, form) && !takes(kind, f->name))
            return lh_form_fail(r, f->name, "%s takes no %s", form->kernel, f->name);
    }
    return !form->first || kind != LH_ARGS_NONE ||
           lh_form_fail(r, "first", "%s takes no first", form->kernel);
}

/* "m, n and k" */
static char *
needed_text(LhArgsKind kind)
{
    GString *text = g_string_new(NULL);
    const char *last = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(arg_fields); i++) {
        if (arg_fields[i].kind != kind || !arg_fields[i].needed)
            continue;
        if (last != NULL)
            g_string_append_printf(text, "%s%s", text->len > 0 ? ", " : "", last);
        last = arg_fields[i].name;
    }
    g_string_append_printf(text, "%s%s", text->len > 0 ? " and " : "", last);
    return g_string_free(text, FALSE);
}

/* Products that stay within @most; a factor of 0 counts as 1. */
static bool
is_within(uint64_t most, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t product;

    return !__builtin_mul_overflow(MAX(a, 1), MAX(b, 1), &product) &&
           !__builtin_mul_overflow(product, MAX(c, 1), &product) && product <= most;
}

static bool
check_size(const LhFormReader *r, const LhKernel *kernel, const LhKernelArgs *a)
{
    const uint64_t width =
        ((uint64_t)a->to_heads.heads + 2 * (uint64_t)a->to_heads.groups) * a->to_heads.head_dim;

    switch (kernel->args) {
    case LH_ARGS_PRODUCT:
        if (!is_within(CALL_MAX / 2, a->product.m, a->product.n, a->product.k))
            return lh_form_fail(r, "m", "a call may have 2^60 flops at most");
        return lh_product_is_of_experts(kernel) || a->product.experts <= 1 ||
               lh_form_fail(r, "experts", "%s has one matrix; expert_product has several",
                            kernel->name);
    case LH_ARGS_ROWS:
        return (is_within(ELEMENTS_MAX, a->rows.rows, a->rows.width, 2) &&
                is_within(ELEMENTS_MAX, a->rows.count, a->rows.width, 2) &&
                is_within(ELEMENTS_MAX, a->rows.vocabulary / MAX(a->rows.width, 1), a->rows.rows,
                          4)) ||
               lh_form_fail(r, "rows", "a call may have 2^48 elements in an operand at most");
    case LH_ARGS_EXPERTS:
        return (is_within(ELEMENTS_MAX, a->experts.rows, a->experts.experts, 1) &&
                is_within(ELEMENTS_MAX, a->experts.rows, a->experts.width, a->experts.choices)) ||
               lh_form_fail(r, "rows", "a call may have 2^48 elements in an operand at most");
    case LH_ARGS_HEADS:
        return (is_within(UINT64_MAX, a->to_heads.heads + 2 * (uint64_t)a->to_heads.groups,
                          a->to_heads.head_dim, 1) &&
                is_within(ELEMENTS_MAX, width, a->to_heads.rows, a->to_heads.layout.batch)) ||
               lh_form_fail(r, "rows", "a call may have 2^48 elements in an operand at most");
    default:
        return true;
    }
}

static bool
read_other_args(const LhFormReader *r, const LhFormOp *form, const LhKernel *kernel,
                LhKernelArgs *args)
{
    const LhArgsKind kind = kernel->args;

    for (size_t i = 0; i < G_N_ELEMENTS(arg_fields); i++) {
        const ArgField *f = &arg_fields[i];

        if (f->kind != kind)
            continue;
        if (f->needed && form_number(f, form) == 0) {
            g_autofree char *needed = needed_text(kind);

            return lh_form_fail(r, f->name, "%s needs %s", form->kernel, needed);
        }
        take(f, form, args);
    }
    return check_size(r, kernel, args);
}

bool
lh_form_has_args(const LhFormOp *form)
{
    bool has = has_attention_args(form) || form->first;

    for (size_t i = 0; i < G_N_ELEMENTS(arg_fields) && !has; i++)
        has = is_present(&arg_fields[i], form);
    return has;
}

bool
lh_form_read_args(const LhFormReader *r, const LhFormOp *form, LhOp *op)
{
    const LhArgsKind kind = lh_kernels[op->compute.kernel]->args;
    LhKernelArgs *args = &op->compute.args;

    args->first = form->first;
    if (!check_kind_of_args(r, form, kind))
        return false;
    if (kind == LH_ARGS_ATTENTION)
        return read_attention_args(r, form, args);
    return read_other_args(r, form, lh_kernels[op->compute.kernel], args);
}

/* ---- writing ---- */

static void
write_position(LhJsonWriter *w, const char *key, int64_t value, int64_t usual)
{
    if (value != usual)
        lh_jsonw_int(w, key, value);
}

static void
write_pairs(LhJsonWriter *w, const LhKernelArgs *args)
{
    if (args->mask != LH_MASK_POSITIONS) {
        lh_jsonw_uint_unless(
            w, "pairs", args->pairs,
            lh_explicit_pairs((LhMaskKind)args->mask, args->shift, args->nq, args->nk));
        return;
    }
    lh_jsonw_uint(w, "pairs", args->pairs);
    lh_jsonw_int(w, "q_start", args->q_at.start);
    write_position(w, "q_part_step", args->q_at.part_step, 0);
    lh_jsonw_int(w, "k_start", args->k_at.start);
    write_position(w, "k_part_step", args->k_at.part_step, 0);
    write_position(w, "stride", (int64_t)args->stride, 1);
}

static void
write_attention_args(LhJsonWriter *w, const LhProgram *program, const LhKernelArgs *args)
{
    const LhAttention *a = &program->params.attention;

    if (args->mask != LH_MASK_EMPTY)
        lh_jsonw_string(w, "mask", lh_mask_names[args->mask]);
    if (args->shift != 0)
        lh_jsonw_int(w, "shift", args->shift);
    lh_jsonw_uint_unless(w, "nq", args->nq, 0);
    lh_jsonw_uint_unless(w, "nk", args->nk, 0);
    write_pairs(w, args);
    lh_jsonw_uint_unless(w, "batch", args->batch, a->batch);
    lh_jsonw_uint_unless(w, "heads", args->heads, a->heads / MAX(program->head_slices, 1));
    lh_jsonw_uint_unless(w, "groups", args->groups, a->groups / MAX(program->kv_slices, 1));
    lh_jsonw_uint_unless(w, "head_dim", args->head_dim, a->head_dim);
    if (args->reversed)
        lh_jsonw_bool(w, "reversed", true);
    lh_jsonw_uint_unless(w, "states", args->states, 0);
    lh_jsonw_uint_unless(w, "traffic", args->traffic, 0);
    if (args->scale != a->scale)
        lh_jsonw_double(w, "scale", args->scale);
    if (args->decay != 0)
        lh_jsonw_double(w, "decay", args->decay);
}

static void
write_arg(LhJsonWriter *w, const ArgField *f, const LhKernelArgs *args)
{
    const void *from = within(args, f->in_args);

    switch (f->type) {
    case U64:
        lh_jsonw_uint_unless(w, f->name, *(const uint64_t *)from, 0);
        break;
    case U32:
    case SHARED:
        lh_jsonw_uint_unless(w, f->name, *(const uint32_t *)from, 0);
        break;
    case STRIDE:
        lh_jsonw_uint_unless(w, f->name, *(const uint64_t *)from, 1);
        break;
    case F64:
        if (*(const double *)from != 0)
            lh_jsonw_double(w, f->name, *(const double *)from);
        break;
    case FLAG:
        if (*(const bool *)from)
            lh_jsonw_bool(w, f->name, true);
        break;
    }
}

void
lh_form_write_args(LhJsonWriter *w, const LhProgram *program, const LhOp *op)
{
    const LhArgsKind kind = lh_kernels[op->compute.kernel]->args;
    const LhKernelArgs *args = &op->compute.args;

    if (kind == LH_ARGS_ATTENTION)
        write_attention_args(w, program, args);
    for (size_t i = 0; i < G_N_ELEMENTS(arg_fields); i++) {
        if (arg_fields[i].kind == kind)
            write_arg(w, &arg_fields[i], args);
    }
    if (args->first)
        lh_jsonw_bool(w, "first", true);
}
