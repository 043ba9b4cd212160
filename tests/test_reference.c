/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocked fp64 reference: equal to attention written out from its definition, at every
 * instruction level of the CPU, and bit-identical for any selection of rows and any memory limit.
 */
#include "kernels/cpu/cpu.h"
#include "plain_reference.h"
#include "reference/numerics.h"
#include "run_tests.h"
#include "share.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DOCUMENTS 4

typedef struct {
    LhAttention attention;
    LhMaskRule mask;
    LhInputKind inputs;
} Case;

static const uint64_t documents[DOCUMENTS] = { 1, 60, 61, 150 };

#define SHAPE(B, N, h, g, d) .batch = B, .seq_length = N, .heads = h, .groups = g, .head_dim = d

static const Case cases[] = {
    { { SHAPE(1, 1, 1, 1, 1), .dtype = LH_DTYPE_FP32 }, { .causal = true }, LH_INPUTS_NORMAL },
    { { SHAPE(2, 7, 3, 1, 2), .dtype = LH_DTYPE_BF16 }, { .causal = true }, LH_INPUTS_NORMAL },
    { { SHAPE(1, 64, 2, 2, 32), .dtype = LH_DTYPE_BF16 }, { .causal = false }, LH_INPUTS_NORMAL },
    { { SHAPE(1, 130, 4, 2, 17), .dtype = LH_DTYPE_FP16 }, { .causal = true }, LH_INPUTS_LOGITS4 },
    { { SHAPE(1, 130, 2, 1, 24), .dtype = LH_DTYPE_FP32 },
      { .causal = false },
      LH_INPUTS_LOGITS20 },
    { { SHAPE(1, 200, 2, 2, 40), .dtype = LH_DTYPE_BF16 },
      { .causal = true, .window = 70 },
      LH_INPUTS_KEY60 },
    { { SHAPE(1, 200, 1, 1, 9), .dtype = LH_DTYPE_BF16 },
      { .causal = true, .window = 1 },
      LH_INPUTS_NORMAL },
    { { SHAPE(1, 129, 2, 1, 64), .dtype = LH_DTYPE_BF16 }, { .causal = true }, LH_INPUTS_EQUAL },
    { { SHAPE(2, 150, 2, 2, 16), .dtype = LH_DTYPE_FP32 },
      { .causal = true, .document_ends = documents, .documents_count = DOCUMENTS },
      LH_INPUTS_NORMAL },
    { { SHAPE(1, 150, 2, 2, 16), .dtype = LH_DTYPE_FP32 },
      { .document_ends = documents, .documents_count = DOCUMENTS },
      LH_INPUTS_LOGITS20 },
    { { SHAPE(1, 150, 4, 2, 16), .dtype = LH_DTYPE_FP32, .linear = true },
      { .causal = true },
      LH_INPUTS_NORMAL },
    { { SHAPE(2, 70, 2, 1, 12), .dtype = LH_DTYPE_BF16, .linear = true, .decay = 0.9 },
      { .causal = true },
      LH_INPUTS_NORMAL },
    { { SHAPE(1, 130, 2, 2, 8), .dtype = LH_DTYPE_BF16, .scale = -0.3 },
      { .causal = true },
      LH_INPUTS_NORMAL },
};

static LhNumerics *
numerics_of(const Case *c)
{
    const LhProgramParams params = {
        .attention = c->attention, .mask = c->mask, .ranks = 1, .pass = LH_PASS_BOTH
    };

    return lh_numerics_new(&params, 11, c->inputs);
}

static void
copy_inputs(LhReference *to, const LhReference *from)
{
    const uint64_t q = lh_reference_q_rows(&from->attention) * from->stride;
    const uint64_t k = lh_reference_k_rows(&from->attention) * from->stride;

    lh_reference_init(to, &from->attention, &from->mask);
    memcpy(to->q, from->q, q * sizeof(double));
    memcpy(to->dout, from->dout, q * sizeof(double));
    memcpy(to->k, from->k, k * sizeof(double));
    memcpy(to->v, from->v, k * sizeof(double));
}

/* Rows must agree to 1e-12 of the magnitude of their terms. */
typedef struct {
    const char *name;
    const double *found, *want, *size2; /* of all rows; squared magnitudes */
    uint64_t rows;
} Compared;

static void
check_rows(int index, const Compared *c, uint32_t stride)
{
    for (uint64_t row = 0; row < c->rows; row++) {
        double error2 = 0;

        for (uint32_t i = 0; i < stride; i++) {
            const double error = c->found[row * stride + i] - c->want[row * stride + i];

            error2 += error * error;
        }
        ck_assert_msg(error2 <= 1e-24 * c->size2[row] + 1e-200,
                      "case %d, %s: row %d has an error of %g of %g", index, c->name, (int)row,
                      sqrt(error2), sqrt(c->size2[row]));
    }
}

static void
check_sizes(int index, const LhReference *found, const LhReference *want)
{
    const uint64_t q = lh_reference_q_rows(&want->attention);
    const uint64_t k = lh_reference_k_rows(&want->attention);
    const struct {
        const char *name;
        const double *found, *want;
        uint64_t rows;
    } sizes[] = { { "o", found->o_size2, want->o_size2, q },
                  { "dq", found->dq_size2, want->dq_size2, q },
                  { "dk", found->dk_size2, want->dk_size2, k },
                  { "dv", found->dv_size2, want->dv_size2, k },
                  { "delta", found->delta_size2, want->delta_size2, q },
                  { "dq by delta", found->dq_delta2, want->dq_delta2, q },
                  { "dk by delta", found->dk_delta2, want->dk_delta2, k } };

    for (unsigned s = 0; s < G_N_ELEMENTS(sizes); s++) {
        for (uint64_t row = 0; row < sizes[s].rows; row++) {
            const double x = sizes[s].found[row], y = sizes[s].want[row];

            ck_assert_msg(fabs(x - y) <= 1e-9 * y + 1e-200,
                          "case %d, size of %s: row %d is %g, not %g", index, sizes[s].name,
                          (int)row, x, y);
        }
    }
}

static void
check_case(int index)
{
    g_autoptr(LhNumerics) n = numerics_of(&cases[index]);
    const LhReference *r = &n->reference;
    const uint64_t q = lh_reference_q_rows(&r->attention), k = lh_reference_k_rows(&r->attention);
    LhReference plain;

    copy_inputs(&plain, r);
    plain_reference_run(&plain);
    check_rows(index, &(Compared){ "o", r->o, plain.o, r->o_size2, q }, r->stride);
    check_rows(index, &(Compared){ "dq", r->dq, plain.dq, r->dq_size2, q }, r->stride);
    check_rows(index, &(Compared){ "dk", r->dk, plain.dk, r->dk_size2, k }, r->stride);
    check_rows(index, &(Compared){ "dv", r->dv, plain.dv, r->dv_size2, k }, r->stride);
    for (uint64_t row = 0; row < q && !r->attention.linear; row++)
        ck_assert_double_eq_tol(r->lse[row], plain.lse[row], 1e-12 * (1 + r->logit_size));
    for (uint64_t row = 0; row < q; row++)
        ck_assert_double_eq_tol(r->delta[row], plain.delta[row],
                                1e-10 * (1 + fabs(plain.delta[row])));
    check_sizes(index, r, &plain);
    lh_reference_clear(&plain);
}

START_TEST(reference_is_attention)
{
    for (unsigned level = 0; lh_cpu_levels[level] != NULL; level++) {
        if (lh_cpu_set(lh_cpu_levels[level]))
            check_case(_i);
    }
    lh_cpu_set(NULL);
}
END_TEST

/* Checks that the fields of queries (or of keys) are bit-identical in the rows @wanted (NULL:
 * all). */
static void
check_bits(const LhReference *found, const LhReference *want, bool keys, const uint8_t *wanted)
{
    const struct {
        const char *name;
        const double *found, *want;
        uint32_t numbers;
        bool keys;
    } fields[] = { { "o", found->o, want->o, want->stride, false },
                   { "lse", found->lse, want->lse, 1, false },
                   { "peak", found->peak, want->peak, 1, false },
                   { "delta", found->delta, want->delta, 1, false },
                   { "dq", found->dq, want->dq, want->stride, false },
                   { "size of o", found->o_size2, want->o_size2, 1, false },
                   { "size of dq", found->dq_size2, want->dq_size2, 1, false },
                   { "size of delta", found->delta_size2, want->delta_size2, 1, false },
                   { "dq by delta", found->dq_delta2, want->dq_delta2, 1, false },
                   { "dk", found->dk, want->dk, want->stride, true },
                   { "dv", found->dv, want->dv, want->stride, true },
                   { "size of dk", found->dk_size2, want->dk_size2, 1, true },
                   { "size of dv", found->dv_size2, want->dv_size2, 1, true },
                   { "dk by delta", found->dk_delta2, want->dk_delta2, 1, true } };
    const uint64_t rows =
        keys ? lh_reference_k_rows(&want->attention) : lh_reference_q_rows(&want->attention);

    for (unsigned f = 0; f < G_N_ELEMENTS(fields); f++) {
        for (uint64_t row = 0; fields[f].keys == keys && row < rows; row++) {
            const uint64_t at = row * fields[f].numbers;

            ck_assert_msg((wanted != NULL && !wanted[row]) ||
                              memcmp(fields[f].found + at, fields[f].want + at,
                                     fields[f].numbers * sizeof(double)) == 0,
                          "%s: bits of row %d differ", fields[f].name, (int)row);
        }
    }
}

/* Computes every third row, as a process does that owns some tiles; other rows' results come
 * from @all. */
static void
check_some_rows(const LhReference *all, uint64_t room_bytes)
{
    const uint64_t q = lh_reference_q_rows(&all->attention);
    const uint64_t k = lh_reference_k_rows(&all->attention);
    g_autofree uint8_t *queries = g_new0(uint8_t, q), *keys = g_new0(uint8_t, k);
    const LhReferenceWork work = {
        .queries = queries, .keys = keys, .threads = 2, .room_bytes = room_bytes
    };
    LhReference some;

    for (uint64_t row = 0; row < q; row++)
        queries[row] = row % 3 == 1;
    for (uint64_t row = 0; row < k; row++)
        keys[row] = row % 3 == 1;
    copy_inputs(&some, all);
    lh_reference_queries(&some, &work);
    check_bits(&some, all, false, queries);
    for (uint64_t row = 0; row < q; row++) {
        some.lse[row] = all->lse[row];
        some.peak[row] = all->peak[row];
        some.delta[row] = all->delta[row];
        some.delta_size2[row] = all->delta_size2[row];
    }
    lh_reference_keys(&some, &work);
    check_bits(&some, all, true, keys);
    lh_reference_clear(&some);
}

/* Forward pass alone, which does not compute dq. */
static void
check_forward(const LhReference *all, uint64_t room_bytes)
{
    const uint64_t q = lh_reference_q_rows(&all->attention);
    LhReference forward;

    copy_inputs(&forward, all);
    lh_reference_run(&forward, &(LhReferenceWork){ .forward = true, .room_bytes = room_bytes });
    memcpy(forward.dq, all->dq, q * all->stride * sizeof(double));
    memcpy(forward.dq_size2, all->dq_size2, q * sizeof(double));
    memcpy(forward.dq_delta2, all->dq_delta2, q * sizeof(double));
    check_bits(&forward, all, false, NULL);
    lh_reference_clear(&forward);
}

/* With memory for no tile's pairs, for a few tiles' and for all; twice each. */
static void
check_all_rows(const LhReference *once, unsigned threads)
{
    static const uint64_t rooms[] = { 1, UINT64_C(128) << 10, UINT64_C(512) << 10, 0 };

    for (unsigned i = 0; i < G_N_ELEMENTS(rooms); i++) {
        LhReference again;

        copy_inputs(&again, once);
        for (unsigned times = 0; times < 2; times++) {
            lh_reference_run(&again,
                             &(LhReferenceWork){ .threads = threads, .room_bytes = rooms[i] });
            check_bits(&again, once, false, NULL);
            check_bits(&again, once, true, NULL);
        }
        lh_reference_clear(&again);
    }
}

START_TEST(reference_is_the_same_however_it_is_computed)
{
    for (unsigned level = 0; lh_cpu_levels[level] != NULL; level++) {
        g_autoptr(LhNumerics) n = NULL;

        if (!lh_cpu_set(lh_cpu_levels[level]))
            continue;
        if (!test_takes_of(level + (unsigned)_i, 7))
            continue;
        n = numerics_of(&cases[_i]);
        check_some_rows(&n->reference, 0);
        check_some_rows(&n->reference, 1);
        check_forward(&n->reference, 0);
        check_forward(&n->reference, 1);
        check_all_rows(&n->reference, 1);
        check_all_rows(&n->reference, 5);
    }
    lh_cpu_set(NULL);
}
END_TEST

/* All-gather of two processes: the second call also receives the data of the first. */
static bool
share(void *control, const GByteArray *mine, gsize limit, GByteArray *all, GError **error)
{
    GByteArray *told = control;

    (void)error;
    g_byte_array_append(told, mine->data, mine->len);
    g_byte_array_append(all, told->data, told->len);
    ck_assert_uint_le(mine->len, limit);
    return true;
}

START_TEST(processes_tell_all_that_keys_need)
{
    const LhControl table = { .share = share };
    g_autoptr(GByteArray) told = g_byte_array_new();
    const LhOpenControl control = { .table = &table, .state = told };
    g_autoptr(LhNumerics) first = numerics_of(&cases[3]);
    g_autoptr(LhNumerics) second = numerics_of(&cases[3]);
    LhReference *r = &second->reference;
    const uint64_t q = lh_reference_q_rows(&r->attention);
    g_autofree uint8_t *known = g_new0(uint8_t, q), *none = g_new0(uint8_t, q);

    for (uint64_t row = 0; row < q; row++) {
        known[row] = row % 2 == 0 ? LH_KNOWS_BOTH : 0;
        if (row % 2 == 0)
            r->lse[row] = r->peak[row] = r->delta[row] = r->delta_size2[row] = 0;
    }
    ck_assert(lh_numerics_tell(first, known, &control, NULL));
    ck_assert(lh_numerics_tell(second, none, &control, NULL));
    check_bits(r, &first->reference, false, NULL);
    ck_assert(memcmp(known, none, q) == 0);
}
END_TEST

LH_TEST_MAIN_OF_LOOPS("reference", { reference_is_attention, G_N_ELEMENTS(cases) },
                      { reference_is_the_same_however_it_is_computed, G_N_ELEMENTS(cases) },
                      { processes_tell_all_that_keys_need, 1 })
