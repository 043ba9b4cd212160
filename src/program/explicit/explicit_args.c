/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes kernel arguments in the explicit JSON form. Attention arguments default to the
 * program's values. All others follow the table of argument kinds: an absent field that the
 * kernel's kind has reads as 0, which is invalid where the field is required.
 */
#include "program/explicit/explicit_args.h"

#include "base/error.h"
#include "kernels/layer.h"
#include "program/explicit/explicit_ops.h"

#include <math.h>
#include <string.h>

#define SOFTMAX_TRAFFIC_MAX 64U

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
                            "q_start, q_part_step, k_start and k_part_step are allowed only "
                            "with the mask \"positions\"");
    if (form->mask == LH_MASK_POSITIONS && form->pairs == LH_FORM_ABSENT)
        return lh_form_fail(r, "mask", "the mask \"positions\" requires pairs");
    return true;
}

/* Whether arguments are given that only attention kernels take. */
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

/* Only softmax kernels have their traffic stated. It is limited so that byte counts stay within
 * the range of other kernels'. */
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
    return true;
}

/* ---- all other kernels ---- */

typedef enum {
    UINT,
    SHARED, /* UINT that attention also has; may be absent or 0 there */
    STRIDE, /* also an attention argument; 1 if absent */
    REAL,
    FLAG,
} FieldType;

typedef struct {
    const char *name; /* the member's name, the same in all kinds of arguments */
    FieldType type;
    size_t offset;
} FormField;

#define FIELD(word, of)                                                                            \
    {                                                                                              \
        .name = #word, .type = of, .offset = offsetof(LhFormOp, word)                              \
    }

/* Ordered: the first field present that a kernel does not take is the one reported. */
static const FormField form_fields[] = {
    FIELD(m, UINT),          FIELD(n, UINT),          FIELD(k, UINT),
    FIELD(experts, UINT),    FIELD(batch, SHARED),    FIELD(members, UINT),
    FIELD(elements, UINT),   FIELD(traffic, UINT),    FIELD(rows, UINT),
    FIELD(width, UINT),      FIELD(vocabulary, UINT), FIELD(first_row, UINT),
    FIELD(count, UINT),      FIELD(tokens, UINT),     FIELD(epsilon, REAL),
    FIELD(adds, FLAG),       FIELD(heads, SHARED),    FIELD(groups, SHARED),
    FIELD(head_dim, SHARED), FIELD(start, UINT),      FIELD(stride, STRIDE),
    FIELD(base, REAL),       FIELD(choices, UINT),    FIELD(learning_rate, REAL),
    FIELD(beta1, REAL),      FIELD(beta2, REAL),      FIELD(weight_decay, REAL),
    FIELD(clip, REAL),       FIELD(bytes, UINT),      FIELD(beside, UINT),
    FIELD(halves, UINT),     FIELD(slices, UINT),     FIELD(replicas, UINT),
    FIELD(slice, UINT),      FIELD(by_rows, FLAG),    FIELD(a, REAL),
    FIELD(b, REAL),          FIELD(c, REAL),          FIELD(factor, REAL),
    FIELD(fp32, FLAG),
};

static const FormField *
find_field(const LhArgMember *member)
{
    for (size_t i = 0; i < G_N_ELEMENTS(form_fields); i++) {
        if (strcmp(form_fields[i].name, member->name) == 0)
            return &form_fields[i];
    }
    g_assert_not_reached();
}

static const void *
within(const LhFormOp *form, const FormField *f)
{
    return (const char *)form + f->offset;
}

static uint64_t
form_number(const FormField *f, const LhFormOp *form)
{
    const uint64_t value = *(const uint64_t *)within(form, f);

    return f->type == SHARED && value == LH_FORM_ABSENT ? 0 : value;
}

static bool
is_present(const FormField *f, const LhFormOp *form)
{
    switch (f->type) {
    case REAL:
        return *(const double *)within(form, f) != 0;
    case FLAG:
        return *(const bool *)within(form, f);
    case SHARED:
        return *(const uint64_t *)within(form, f) != LH_FORM_ABSENT;
    case STRIDE:
        return *(const int64_t *)within(form, f) != LH_FORM_NO_POSITION;
    case UINT:
    default:
        return form_number(f, form) != 0;
    }
}

static void
take(const FormField *f, const LhArgMember *member, const LhFormOp *form, LhKernelArgs *args)
{
    switch (f->type) {
    case UINT:
    case SHARED:
        lh_arg_put_uint(member, args, form_number(f, form));
        break;
    case STRIDE:
        lh_arg_put_uint(member, args, (uint64_t)given_position(form->stride, 1));
        break;
    case REAL:
        lh_arg_put_real(member, args, *(const double *)within(form, f));
        break;
    case FLAG:
        lh_arg_put_uint(member, args, *(const bool *)within(form, f));
        break;
    }
}

/* Rejects arguments of other kinds than the kernel's own, which would be lost silently. */
static bool
check_kind_of_args(const LhFormReader *r, const LhFormOp *form, LhArgsKind kind)
{
    if (kind != LH_ARGS_ATTENTION && has_attention_args(form))
        return lh_form_fail(r, "kernel", "%s takes no attention arguments such as nq",
                            form->kernel);
    for (size_t i = 0; i < G_N_ELEMENTS(form_fields); i++) {
        const FormField *f = &form_fields[i];

        if (is_present(f, form) && lh_args_member(kind, f->name) == NULL)
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

    for (const LhArgMember *m = lh_args_rows[kind].members; m->name != NULL; m++) {
        if (!m->needed)
            continue;
        if (last != NULL)
            g_string_append_printf(text, "%s%s", text->len > 0 ? ", " : "", last);
        last = m->name;
    }
    g_string_append_printf(text, "%s%s", text->len > 0 ? " and " : "", last);
    return g_string_free(text, FALSE);
}

static bool
read_other_args(const LhFormReader *r, const LhFormOp *form, LhArgsKind kind, LhKernelArgs *args)
{
    for (const LhArgMember *m = lh_args_rows[kind].members; m->name != NULL; m++) {
        const FormField *f = find_field(m);

        if (m->needed && form_number(f, form) == 0) {
            g_autofree char *needed = needed_text(kind);

            return lh_form_fail(r, f->name, "%s needs %s", form->kernel, needed);
        }
        take(f, m, form, args);
    }
    return true;
}

/* Checks that flops and bytes can be counted, and that only kernels of experts have experts. */
static bool
check_size(const LhFormReader *r, const LhKernel *kernel, const LhKernelArgs *args)
{
    const LhArgsRow *row = &lh_args_rows[kernel->args];

    if (row->fits != NULL && !row->fits(args))
        return lh_form_fail(r, row->limited, "%s", row->limit);
    return kernel->args != LH_ARGS_PRODUCT || lh_product_is_of_experts(kernel) ||
           args->product.experts <= 1 ||
           lh_form_fail(r, "experts", "%s has one matrix; expert_product has several",
                        kernel->name);
}

bool
lh_form_has_args(const LhFormOp *form)
{
    bool has = has_attention_args(form) || form->first;

    for (size_t i = 0; i < G_N_ELEMENTS(form_fields) && !has; i++)
        has = is_present(&form_fields[i], form);
    return has;
}

bool
lh_form_read_args(const LhFormReader *r, const LhFormOp *form, LhOp *op)
{
    const LhKernel *kernel = lh_kernels[op->compute.kernel];
    LhKernelArgs *args = &op->compute.args;

    args->first = form->first;
    if (!check_kind_of_args(r, form, kernel->args))
        return false;
    return (kernel->args == LH_ARGS_ATTENTION ? read_attention_args(r, form, args)
                                              : read_other_args(r, form, kernel->args, args)) &&
           check_size(r, kernel, args);
}

/* ---- writing ---- */

static uint64_t
unless(uint64_t value, uint64_t usual)
{
    return value == usual ? LH_FORM_ABSENT : value;
}

static int64_t
position_unless(int64_t value, int64_t usual)
{
    return value == usual ? LH_FORM_NO_POSITION : value;
}

static void
note_pairs(const LhKernelArgs *args, LhFormOp *form)
{
    form->pairs = args->pairs;
    if (args->mask != LH_MASK_POSITIONS) {
        form->pairs = unless(args->pairs, lh_explicit_pairs((LhMaskKind)args->mask, args->shift,
                                                            args->nq, args->nk));
        return;
    }
    form->q_start = args->q_at.start;
    form->q_part_step = position_unless(args->q_at.part_step, 0);
    form->k_start = args->k_at.start;
    form->k_part_step = position_unless(args->k_at.part_step, 0);
    form->stride = position_unless((int64_t)args->stride, 1);
}

static void
note_attention_args(const LhProgram *program, const LhKernelArgs *args, LhFormOp *form)
{
    const LhAttention *a = &program->params.attention;

    form->mask = args->mask == LH_MASK_EMPTY ? LH_FORM_NO_CHOICE : args->mask;
    form->shift = args->shift == 0 ? LH_FORM_NO_SHIFT : args->shift;
    form->nq = unless(args->nq, 0);
    form->nk = unless(args->nk, 0);
    note_pairs(args, form);
    form->batch = unless(args->batch, a->batch);
    form->heads = unless(args->heads, a->heads / MAX(program->head_slices, 1));
    form->groups = unless(args->groups, a->groups / MAX(program->kv_slices, 1));
    form->head_dim = unless(args->head_dim, a->head_dim);
    form->reversed = args->reversed;
    form->states = args->states;
    form->traffic = args->traffic;
    form->scale = args->scale == a->scale ? (double)NAN : args->scale;
    form->decay = args->decay == 0 ? (double)NAN : args->decay;
}

static void
note(const FormField *f, const LhArgMember *member, const LhKernelArgs *args, LhFormOp *form)
{
    void *at = (char *)form + f->offset;

    switch (f->type) {
    case UINT:
        *(uint64_t *)at = lh_arg_uint(member, args);
        break;
    case SHARED:
        *(uint64_t *)at = unless(lh_arg_uint(member, args), 0);
        break;
    case STRIDE:
        form->stride = position_unless((int64_t)lh_arg_uint(member, args), 1);
        break;
    case REAL:
        *(double *)at = lh_arg_real(member, args);
        break;
    case FLAG:
        *(bool *)at = lh_arg_uint(member, args) != 0;
        break;
    }
}

static void
note_other_args(LhArgsKind kind, const LhKernelArgs *args, LhFormOp *form)
{
    for (const LhArgMember *m = lh_args_rows[kind].members; m->name != NULL; m++)
        note(find_field(m), m, args, form);
}

void
lh_form_note_args(const LhProgram *program, const LhOp *op, LhFormOp *form)
{
    const LhArgsKind kind = lh_kernels[op->compute.kernel]->args;
    const LhKernelArgs *args = &op->compute.args;

    if (kind == LH_ARGS_ATTENTION)
        note_attention_args(program, args, form);
    else
        note_other_args(kind, args, form);
    form->first = args->first;
}

/* ---- order of the written fields ---- */

static void
add_row(LhFormRows *rows, const LhField *field)
{
    g_assert(rows->count < LH_FORM_ROWS_MAX);
    rows->fields[rows->count++] = *field;
}

static const LhField *
op_field(const char *name)
{
    const LhField *field = lh_form_rank_fields->fields;

    while (strcmp(field->name, name) != 0)
        field++;
    return field;
}

/* Appends the rows from @first up to @end, exclusive. */
static void
add_rows(LhFormRows *rows, const LhField *first, const LhField *end)
{
    for (; first != end; first++)
        add_row(rows, first);
}

static void
add_args(LhFormRows *rows, LhArgsKind kind)
{
    for (const LhArgMember *m = lh_args_rows[kind].members; m->name != NULL; m++)
        if (m->type != LH_ARG_RULE) /* taken from the program */
            add_row(rows, op_field(m->name));
    add_row(rows, op_field("first"));
}

void
lh_form_order_init(LhFormOrder *order)
{
    const LhField *all = lh_form_rank_fields->fields, *end = all;
    const LhField *args = op_field("mask"), *messages = op_field("messages");

    while (end->name != NULL)
        end++;
    memset(order, 0, sizeof(*order));
    lh_form_rank_fields->element_init(&order->usual);
    for (unsigned kind = 0; kind < LH_ARGS_KINDS; kind++) {
        add_args(&order->of_args[kind], (LhArgsKind)kind);
        add_rows(&order->of_compute[kind], all, args);
        add_args(&order->of_compute[kind], (LhArgsKind)kind);
    }
    for (unsigned kind = 0; kind < LH_OP_KINDS; kind++)
        add_rows(&order->of_op[kind], all, args);
    add_row(&order->of_op[LH_OP_EXCHANGE], messages);
    add_rows(&order->of_op[LH_OP_COLLECTIVE], messages + 1, end);
}

const LhField *
lh_form_order_of(const LhFormOrder *order, const LhOp *op)
{
    return op->kind == LH_OP_COMPUTE
               ? order->of_compute[lh_kernels[op->compute.kernel]->args].fields
               : order->of_op[op->kind].fields;
}
