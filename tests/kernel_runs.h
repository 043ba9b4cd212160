/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs kernels on data, for tests: operands of a case, with poisoned outputs and guards around
 * every buffer, and calls of a version of its kernel.
 */
#pragma once

#include "base/rng.h"
#include "checking.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/kernels.h"

#include <glib.h>
#include <math.h>
#include <string.h>

#define GUARD_BYTES 64U
#define GUARD 0xa5

/* Kinds of input data. */
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
    bool one_key; /* every query sees one key only */
} Case;

/* The operands of a case: inputs, and buffers for the results of a run. */
typedef struct {
    const Case *c;
    LhKernelId id;
    const LhKernel *kernel;
    LhCall call;
    uint64_t bytes[LH_KERNEL_OPERANDS_MAX];
    unsigned char *memory[LH_KERNEL_OPERANDS_MAX]; /* with guards */
    unsigned char *scratch;
    unsigned count;
} Run;

#define SEED 7

static uint64_t drawn;

static inline double
uniform(void)
{
    return lh_rng_uniform(SEED, 0, drawn++);
}

static inline double
normal(void)
{
    return sqrt(-2 * log(1 - uniform())) * cos(2 * G_PI * uniform());
}

/* Whether a kind is one of k and v, or of dk and dv. */
static inline bool
is_half(LhTensorKind kind)
{
    return kind == LH_TENSOR_K || kind == LH_TENSOR_V || kind == LH_TENSOR_DK ||
           kind == LH_TENSOR_DV;
}

/* Whether a kind is scores or similar, cut into parts by keys too. */
static inline bool
is_scores(LhTensorKind kind)
{
    return kind == LH_TENSOR_SCORES || kind == LH_TENSOR_PROBS || kind == LH_TENSOR_DSCORES;
}

static inline bool
is_keys(const Case *c, LhTensorKind kind)
{
    return kind == LH_TENSOR_KV || kind == LH_TENSOR_DKV || is_half(kind) ||
           (kind == LH_TENSOR_HIDDEN && strcmp(c->kernel, "expand_kv") == 0) ||
           (kind == LH_TENSOR_ANY && c->args.nq == 0);
}

static inline bool
is_stat(LhTensorKind kind)
{
    return kind == LH_TENSOR_LSE || kind == LH_TENSOR_DELTA;
}

static inline bool
is_state(const Case *c, LhTensorKind kind)
{
    return kind == LH_TENSOR_STATE || kind == LH_TENSOR_DSTATE ||
           (kind == LH_TENSOR_ANY && g_str_has_prefix(c->kernel, "linear_"));
}

/* Number of states in an operand, one per part; several if they are summed. */
static inline uint32_t
states_of(const Case *c, unsigned operand)
{
    return operand == 0 && strcmp(c->kernel, "linear_prefix") == 0 ? c->args.states : 1;
}

/* Index of the statistics beside o: (m, l), or lse if o is normalised. */
static inline unsigned
stats_of(LhTensorKind kind)
{
    return kind == LH_TENSOR_ACC ? 2 : kind == LH_TENSOR_OUT ? 1 : 0;
}

/* Total over all parts of an operand. */
static inline uint64_t
elements_of(const Case *c, unsigned operand)
{
    const LhKernel *kernel = lh_kernels[lh_kernel_find(c->kernel)];
    const LhTensorKind kind = kernel->operands[operand].kind;
    const LhKernelArgs *a = &c->args;

    if (kernel->operand_elements != NULL)
        return kernel->operand_elements(a, operand);
    if (is_state(c, kind))
        return (uint64_t)states_of(c, operand) * a->batch * a->heads * a->head_dim * a->head_dim;
    if (is_stat(kind))
        return a->batch * a->nq * a->heads;
    if (is_scores(kind))
        return a->batch * a->nq * a->heads * a->nk;
    if (is_keys(c, kind))
        return (is_half(kind) ? 1 : 2) * a->batch * a->nk * a->groups * a->head_dim;
    return a->batch * a->nq * a->heads * a->head_dim;
}

static inline enum lh_storage
storage_of(const Case *c, unsigned operand, LhElementRule rule)
{
    if (rule == LH_ELEMENT_FP32)
        return LH_STORAGE_FP32;
    if (rule == LH_ELEMENT_INT8)
        return LH_STORAGE_INT8;
    if (rule == LH_ELEMENT_EITHER && !c->narrow)
        return c->storage == LH_STORAGE_FP64 ? LH_STORAGE_FP64 : LH_STORAGE_FP32;
    if (rule == LH_ELEMENT_OTHER && c->narrow && operand > 0)
        return LH_STORAGE_FP32;
    return c->storage;
}

/* Element @i of an operand whose parts hold @per elements each. */
static inline unsigned char *
element_at(const LhView *view, uint64_t per, uint64_t i)
{
    return view->data + i / per * view->part_bytes + i % per * lh_storage_bytes(view->storage);
}

static inline float *
stat_at(const LhView *view, uint64_t per, uint64_t rows, uint64_t i)
{
    return (float *)(void *)(view->data + i / rows * view->part_bytes +
                             per * lh_storage_bytes(view->storage)) +
           i % rows;
}

/* Fills an operand. Tokens are integers, a few of them beyond the vocabulary; sums of squares and
 * of exponentials are positive. */
static inline void
fill_element(const Case *c, LhTensorKind kind, void *at, enum lh_storage storage)
{
    const bool positive = kind == LH_TENSOR_NUMBERS || kind == LH_TENSOR_MOMENTS;

    if (kind == LH_TENSOR_TOKENS)
        *(uint32_t *)at = (uint32_t)(uniform() * 1.1 * (double)c->args.rows.vocabulary);
    else
        lh_element_put(at, storage, 0, positive ? 0.5 + uniform() : normal());
}

/* Whether an operand assigns rows to experts: pairs of an expert and a weight. */
static inline bool
is_route(const LhOperand *o)
{
    return strcmp(o->name, "route") == 0;
}

static inline double
random_expert(const LhKernel *kernel, const LhKernelArgs *a)
{
    return floor(uniform() *
                 (kernel->args == LH_ARGS_EXPERTS ? a->experts.experts : a->product.experts));
}

static inline void
fill_view(Run *r, unsigned operand)
{
    const LhTensorKind kind = r->kernel->operands[operand].kind;
    const LhView *view = &r->call.operands[operand];
    const uint64_t count = elements_of(r->c, operand), per = count / view->parts;
    const unsigned stats = stats_of(kind);
    const uint64_t rows = r->c->args.batch * r->c->args.nq * r->c->args.heads;

    for (uint64_t i = 0; i < count; i++)
        fill_element(r->c, kind, element_at(view, per, i), view->storage);
    for (uint64_t i = 0; i < count && is_route(&r->kernel->operands[operand]); i += 2)
        lh_element_put(element_at(view, per, i), view->storage, 0,
                       random_expert(r->kernel, &r->c->args));
    /* m and l, or lse, part by part: sums are positive, some rows have no key. */
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

static inline const LhOperand *
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

static inline void
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

static inline void
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
                           15 / lh_attention_scale(c->args.scale, c->args.head_dim));
        for (uint64_t row = 1; row < c->args.nk && c->variant == EQUAL_LOGITS; row++)
            memcpy(lh_rows_at(&keys, 0, row, h), lh_rows_at(&keys, 0, 0, h),
                   keys.dim * (size_t)lh_storage_bytes(keys.storage));
    }
}

static inline unsigned char *
guarded(uint64_t bytes, unsigned char **memory)
{
    *memory = g_aligned_alloc(1, bytes + 2 * GUARD_BYTES, LH_SCRATCH_ALIGN);
    memset(*memory, GUARD, bytes + 2 * GUARD_BYTES);
    return *memory + GUARD_BYTES;
}

static inline void
check_guards(const unsigned char *memory, uint64_t bytes)
{
    for (unsigned i = 0; i < GUARD_BYTES; i++) {
        ck_assert_uint_eq(memory[i], GUARD);
        ck_assert_uint_eq(memory[GUARD_BYTES + bytes + i], GUARD);
    }
}

static inline void
poison(void *data, uint64_t bytes)
{
    memset(data, 0xff, bytes); /* a NaN in every type */
}

static inline void
add_operand(Run *r, const LhOperand *o)
{
    const Case *c = r->c;
    const unsigned i = r->count++;
    LhView *view = &r->call.operands[i];
    const uint64_t rows = c->args.batch * c->args.nq * c->args.heads;

    view->storage = storage_of(c, i, o->element);
    view->parts = is_state(c, o->kind)                        ? states_of(c, i)
                  : is_keys(c, o->kind) || is_scores(o->kind) ? c->k_parts
                                                              : c->q_parts;
    view->part_bytes = (elements_of(c, i) * lh_storage_bytes(view->storage) +
                        stats_of(o->kind) * rows * sizeof(float)) /
                       view->parts;
    r->bytes[i] = view->part_bytes * view->parts;
    view->data = guarded(r->bytes[i], &r->memory[i]);
    if (lh_operand_is_overwritten(r->kernel, &c->args, i))
        poison(view->data, r->bytes[i]);
    else
        fill_view(r, i);
}

typedef enum { REFERENCE, FAST } Version;

static inline void
run_kernel(LhKernelId id, Version version, LhCall *call)
{
    const LhCpuKernel *kernel = lh_cpu_kernels[id];
    const uint64_t bytes = lh_cpu_scratch_bytes(id, call->args);
    unsigned char *memory;

    call->scratch = guarded(bytes, &memory);
    poison(call->scratch, bytes);
    ck_assert_int_eq((version == FAST ? kernel->fast : kernel->reference)(call), LH_STATUS_OK);
    check_guards(memory, bytes);
    g_aligned_free(memory);
}

/* Fills the o, lse and delta that belong to a backward kernel's inputs. */
static inline void
derive_inputs(Run *r)
{
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
    run_kernel(LH_KERNEL_ID_attention, REFERENCE, &forward);
    if (operand_of(r, "delta", &of_delta) != NULL) {
        const LhCall of_rows = { .args = &args,
                                 .operands = { r->call.operands[dout], forward.operands[2],
                                               r->call.operands[of_delta] } };

        ck_assert_int_eq(lh_cpu_kernels[LH_KERNEL_ID_delta]->reference(&of_rows), LH_STATUS_OK);
    }
    g_aligned_free(memory);
}

static inline void
run_init(Run *r, const Case *c)
{
    const LhKernelId id = lh_kernel_find(c->kernel);

    *r = (Run){ .c = c, .id = id, .kernel = lh_kernels[id] };
    r->call.args = &c->args;
    for (unsigned i = 0; i < LH_KERNEL_OPERANDS_MAX; i++)
        r->call.operands[i].parts = 1;
    for (const LhOperand *o = r->kernel->operands; o->access != LH_OPERAND_END; o++)
        add_operand(r, o);
    make_extreme(r);
    derive_inputs(r);
}

static inline void
run_clear(Run *r)
{
    for (unsigned i = 0; i < r->count; i++) {
        check_guards(r->memory[i], r->bytes[i]);
        g_aligned_free(r->memory[i]);
    }
}

/* Copies a set of operands. */
static inline void
run_copy(Run *r, const Run *from)
{
    *r = *from;
    for (unsigned i = 0; i < r->count; i++) {
        r->call.operands[i].data = guarded(r->bytes[i], &r->memory[i]);
        memcpy(r->call.operands[i].data, from->call.operands[i].data, r->bytes[i]);
    }
}

static const LhKernelArgs plain_args = { .nq = 70,
                                         .nk = 90,
                                         .batch = 1,
                                         .heads = 2,
                                         .groups = 1,
                                         .head_dim = 24,
                                         .mask = LH_MASK_FULL,
                                         .first = true };

static inline void
attention_init(Run *r, Case *c, const LhKernelArgs *args)
{
    *c = (Case){ .kernel = "attention", .args = *args, .q_parts = 1, .k_parts = 1 };
    run_init(r, c);
}

static inline void
on_levels(void (*check)(void))
{
    for (const LhCpuLevel *const *level = lh_cpu_levels; *level != NULL; level++) {
        if (lh_cpu_set(*level))
            check();
    }
    lh_cpu_set(NULL);
}

static inline LhView
view_of(void *data, uint64_t bytes)
{
    return (LhView){ .data = data, .parts = 1, .part_bytes = bytes, .storage = LH_STORAGE_FP32 };
}

static inline double
loss(const double *weights, const double *o, uint64_t count)
{
    double sum = 0;

    for (uint64_t i = 0; i < count; i++)
        sum += weights[i] * o[i];
    return sum;
}
