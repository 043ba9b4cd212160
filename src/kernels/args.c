/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of kinds of arguments.
 */
#include "kernels/args.h"

#include "base/mix.h"
#include "kernels/layer.h"

#include <glib.h>
#include <string.h>

#define CALL_MAX (UINT64_C(1) << 60) /* flops of a product; its traffic then fits in 64 bits */
#define ELEMENTS_MAX                                                                               \
    (UINT64_C(1) << 48) /* of an operand; flops and bytes per element then fit in 64 bits */
#define ELEMENTS_LIMIT "an operand of a call may have at most 2^48 elements"

/* ---- sizes ---- */

/* For any kernel: a state has d^2 elements. */
static bool
attention_fits(const LhKernelArgs *args)
{
    const uint64_t rows = MAX(args->nq, args->nk);
    const uint64_t heads = MAX(args->heads, args->groups);
    const uint64_t row = (uint64_t)args->head_dim + 8;
    uint64_t width, flops, bytes, states, scores;

    return !__builtin_mul_overflow(args->nq, args->nk, &scores) &&
           !__builtin_mul_overflow((uint64_t)args->batch * heads, row, &width) &&
           !__builtin_mul_overflow(width, 16, &flops) &&
           !__builtin_mul_overflow(flops, MAX(args->pairs, scores), &flops) &&
           !__builtin_mul_overflow(width, 64 * rows, &bytes) &&
           !__builtin_mul_overflow(width, 16 * row, &states) &&
           !__builtin_mul_overflow(states, rows + args->states + 1, &states) &&
           flops <= INT64_MAX && bytes <= INT64_MAX && states <= INT64_MAX;
}

/* Whether a product of factors is at most @most; a factor of 0 counts as 1. */
static bool
is_within(uint64_t most, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t product;

    return !__builtin_mul_overflow(MAX(a, 1), MAX(b, 1), &product) &&
           !__builtin_mul_overflow(product, MAX(c, 1), &product) && product <= most;
}

static bool
product_fits(const LhKernelArgs *a)
{
    return is_within(CALL_MAX / 2, a->product.m, a->product.n, a->product.k);
}

static bool
rows_fit(const LhKernelArgs *a)
{
    return is_within(ELEMENTS_MAX, a->rows.rows, a->rows.width, 2) &&
           is_within(ELEMENTS_MAX, a->rows.count, a->rows.width, 2) &&
           is_within(ELEMENTS_MAX, a->rows.vocabulary / MAX(a->rows.width, 1), a->rows.rows, 4);
}

static bool
heads_fit(const LhKernelArgs *a)
{
    const uint64_t heads = a->to_heads.heads + 2 * (uint64_t)a->to_heads.groups;

    return is_within(UINT64_MAX, heads, a->to_heads.head_dim, 1) &&
           is_within(ELEMENTS_MAX, heads * a->to_heads.head_dim, a->to_heads.rows,
                     a->to_heads.layout.batch);
}

static bool
experts_fit(const LhKernelArgs *a)
{
    return is_within(ELEMENTS_MAX, a->experts.rows, a->experts.experts, 1) &&
           is_within(ELEMENTS_MAX, a->experts.rows, a->experts.width, a->experts.choices);
}

/* Flops of the largest product; elements of all slices. */
static bool
muon_fits(const LhKernelArgs *a)
{
    const LhProductShape m = lh_muon_matrices(a);
    uint64_t rows;

    return !__builtin_mul_overflow(m.matrices, m.rows, &rows) &&
           is_within(CALL_MAX / 4, rows, m.rows, m.columns) &&
           is_within(ELEMENTS_MAX, a->muon.rows, a->muon.width, a->muon.slices);
}

/* ---- elements that traffic applies to ---- */

static uint64_t
elements_count(const LhKernelArgs *a)
{
    return a->elements.count;
}

static uint64_t
optimizer_count(const LhKernelArgs *a)
{
    return a->optimizer.count;
}

/* ---- the table ---- */

#define AT(member) offsetof(LhKernelArgs, member)
#define TYPE(member)                                                                               \
    _Generic(((const LhKernelArgs *)NULL)->member,                                                 \
        uint64_t: LH_ARG_U64,                                                                      \
        int64_t: LH_ARG_I64,                                                                       \
        uint32_t: LH_ARG_U32,                                                                      \
        uint8_t: LH_ARG_U8,                                                                        \
        int8_t: LH_ARG_I8,                                                                         \
        bool: LH_ARG_BOOL,                                                                         \
        double: LH_ARG_F64,                                                                        \
        const LhMaskRule *: LH_ARG_RULE)
#define ARG(name, member)                                                                          \
    {                                                                                              \
        name, TYPE(member), AT(member), false                                                      \
    }
#define NEEDED(name, member)                                                                       \
    {                                                                                              \
        name, TYPE(member), AT(member), true                                                       \
    }
#define END                                                                                        \
    {                                                                                              \
        .name = NULL                                                                               \
    }

const LhArgsRow lh_args_rows[LH_ARGS_KINDS] = {
    [LH_ARGS_ATTENTION] = {
        .members = (const LhArgMember[]){
            ARG("mask", mask),
            ARG("shift", shift),
            ARG("nq", nq),
            ARG("nk", nk),
            ARG("pairs", pairs),
            ARG("q_start", q_at.start),
            ARG("q_part_step", q_at.part_step),
            ARG("k_start", k_at.start),
            ARG("k_part_step", k_at.part_step),
            ARG("stride", stride),
            ARG("batch", batch),
            ARG("heads", heads),
            ARG("groups", groups),
            ARG("head_dim", head_dim),
            ARG("reversed", reversed),
            ARG("states", states),
            ARG("traffic", traffic),
            ARG("scale", scale),
            ARG("decay", decay),
            ARG("rule", rule),
            END,
        },
        .fits = attention_fits,
        .limited = "nq",
        .limit = "the flops or bytes of this call do not fit in 63 bits",
    },
    [LH_ARGS_PRODUCT] = {
        .members = (const LhArgMember[]){
            NEEDED("m", product.m),
            NEEDED("n", product.n),
            NEEDED("k", product.k),
            ARG("experts", product.experts),
            ARG("batch", product.layout.batch),
            ARG("members", product.layout.members),
            ARG("fp32", product.fp32),
            END,
        },
        .fits = product_fits,
        .limited = "m",
        .limit = "a call may have at most 2^60 flops",
    },
    [LH_ARGS_ELEMENTS] = {
        .members = (const LhArgMember[]){
            NEEDED("elements", elements.count),
            ARG("traffic", elements.traffic),
            END,
        },
        .traffic = AT(elements.traffic),
        .traffic_elements = elements_count,
    },
    [LH_ARGS_ROWS] = {
        .members = (const LhArgMember[]){
            NEEDED("rows", rows.rows),
            NEEDED("width", rows.width),
            ARG("vocabulary", rows.vocabulary),
            ARG("first_row", rows.first),
            ARG("count", rows.count),
            ARG("tokens", rows.tokens),
            ARG("epsilon", rows.epsilon),
            ARG("traffic", rows.traffic),
            ARG("adds", rows.adds),
            END,
        },
        .fits = rows_fit,
        .limited = "rows",
        .limit = ELEMENTS_LIMIT,
        .traffic = AT(rows.traffic),
        .traffic_elements = lh_rows_elements,
    },
    [LH_ARGS_HEADS] = {
        .members = (const LhArgMember[]){
            NEEDED("rows", to_heads.rows),
            NEEDED("batch", to_heads.layout.batch),
            NEEDED("members", to_heads.layout.members),
            NEEDED("heads", to_heads.heads),
            NEEDED("groups", to_heads.groups),
            NEEDED("head_dim", to_heads.head_dim),
            ARG("start", to_heads.start),
            ARG("stride", to_heads.stride),
            ARG("base", to_heads.base),
            ARG("traffic", to_heads.traffic),
            END,
        },
        .fits = heads_fit,
        .limited = "rows",
        .limit = ELEMENTS_LIMIT,
        .traffic = AT(to_heads.traffic),
    },
    [LH_ARGS_EXPERTS] = {
        .members = (const LhArgMember[]){
            NEEDED("rows", experts.rows),
            NEEDED("width", experts.width),
            NEEDED("experts", experts.experts),
            NEEDED("choices", experts.choices),
            END,
        },
        .fits = experts_fit,
        .limited = "rows",
        .limit = ELEMENTS_LIMIT,
    },
    [LH_ARGS_OPTIMIZER] = {
        .members = (const LhArgMember[]){
            NEEDED("elements", optimizer.count),
            ARG("learning_rate", optimizer.learning_rate),
            ARG("beta1", optimizer.beta1),
            ARG("beta2", optimizer.beta2),
            ARG("epsilon", optimizer.epsilon),
            ARG("weight_decay", optimizer.weight_decay),
            ARG("clip", optimizer.clip),
            ARG("traffic", optimizer.traffic),
            END,
        },
        .traffic = AT(optimizer.traffic),
        .traffic_elements = optimizer_count,
    },
    [LH_ARGS_MUON] = {
        .members = (const LhArgMember[]){
            NEEDED("rows", muon.rows),
            NEEDED("width", muon.width),
            ARG("experts", muon.experts),
            ARG("halves", muon.halves),
            ARG("slices", muon.slices),
            ARG("replicas", muon.replicas),
            ARG("slice", muon.slice),
            ARG("by_rows", muon.by_rows),
            ARG("a", muon.a),
            ARG("b", muon.b),
            ARG("c", muon.c),
            ARG("factor", muon.factor),
            END,
        },
        .fits = muon_fits,
        .limited = "rows",
        .limit = "a call may have at most 2^60 flops",
    },
    [LH_ARGS_COPY] = {
        .members = (const LhArgMember[]){
            NEEDED("bytes", copy.bytes),
            ARG("beside", copy.beside),
            END,
        },
    },
    [LH_ARGS_NONE] = { .members = (const LhArgMember[]){ END } },
};

const LhArgMember *
lh_args_member(LhArgsKind kind, const char *name)
{
    for (const LhArgMember *m = lh_args_rows[kind].members; m->name != NULL; m++) {
        if (strcmp(m->name, name) == 0)
            return m;
    }
    return NULL;
}

/* ---- one member ---- */

static const void *
at(const LhArgMember *member, const LhKernelArgs *args)
{
    return (const char *)args + member->offset;
}

static const LhMaskRule *
rule_at(const LhArgMember *member, const LhKernelArgs *args)
{
    return *(const LhMaskRule *const *)at(member, args);
}

uint64_t
lh_args_traffic(LhArgsKind kind, const LhKernelArgs *args)
{
    const LhArgMember member = { .type = LH_ARG_U32, .offset = lh_args_rows[kind].traffic };

    return member.offset > 0 ? lh_arg_uint(&member, args) : 0;
}

uint64_t
lh_arg_uint(const LhArgMember *member, const LhKernelArgs *args)
{
    const void *from = at(member, args);

    switch (member->type) {
    case LH_ARG_U32:
        return *(const uint32_t *)from;
    case LH_ARG_U8:
        return *(const uint8_t *)from;
    case LH_ARG_BOOL:
        return *(const bool *)from;
    default:
        return *(const uint64_t *)from;
    }
}

void
lh_arg_put_uint(const LhArgMember *member, LhKernelArgs *args, uint64_t value)
{
    void *to = (char *)args + member->offset;

    switch (member->type) {
    case LH_ARG_U32:
        *(uint32_t *)to = (uint32_t)value;
        break;
    case LH_ARG_U8:
        *(uint8_t *)to = (uint8_t)value;
        break;
    case LH_ARG_BOOL:
        *(bool *)to = value != 0;
        break;
    default:
        *(uint64_t *)to = value;
        break;
    }
}

double
lh_arg_real(const LhArgMember *member, const LhKernelArgs *args)
{
    return *(const double *)at(member, args);
}

void
lh_arg_put_real(const LhArgMember *member, LhKernelArgs *args, double value)
{
    *(double *)(void *)((char *)args + member->offset) = value;
}

/* ---- all members ---- */

/* Returns the bits of a member. */
static uint64_t
word_of(const LhArgMember *member, const LhKernelArgs *args)
{
    const void *from = at(member, args);
    uint64_t word = 0;

    switch (member->type) {
    case LH_ARG_U32:
        return *(const uint32_t *)from;
    case LH_ARG_U8:
    case LH_ARG_I8:
    case LH_ARG_BOOL:
        return *(const uint8_t *)from;
    case LH_ARG_RULE:
        return (uintptr_t)rule_at(member, args);
    default:
        memcpy(&word, from, sizeof(word));
        return word;
    }
}

static bool
rules_equal(const LhMaskRule *a, const LhMaskRule *b)
{
    return a == b || (a != NULL && b != NULL && lh_mask_rules_equal(a, b));
}

static bool
members_equal(const LhArgMember *member, const LhKernelArgs *a, const LhKernelArgs *b)
{
    switch (member->type) {
    case LH_ARG_F64:
        return lh_arg_real(member, a) <= lh_arg_real(member, b) &&
               lh_arg_real(member, a) >= lh_arg_real(member, b);
    case LH_ARG_RULE:
        return rules_equal(rule_at(member, a), rule_at(member, b));
    default:
        return word_of(member, a) == word_of(member, b);
    }
}

bool
lh_kernel_args_equal(LhArgsKind kind, const LhKernelArgs *a, const LhKernelArgs *b)
{
    bool equal = a->first == b->first;

    for (const LhArgMember *m = lh_args_rows[kind].members; equal && m->name != NULL; m++)
        equal = members_equal(m, a, b);
    return equal;
}

uint64_t
lh_kernel_args_mix(uint64_t hash, LhArgsKind kind, const LhKernelArgs *args)
{
    hash = lh_mix(hash, args->first);
    for (const LhArgMember *m = lh_args_rows[kind].members; m->name != NULL; m++)
        hash = lh_mix(hash, word_of(m, args));
    return hash;
}
