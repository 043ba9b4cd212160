/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of Muon in fp64 against their definitions: which element of which slice goes where,
 * norms, products of every matrix, momenta with and without Nesterov's mixture, and updates.
 */
#include "base/rng.h"
#include "kernels/cpu/kernels.h"
#include "run_tests.h"

#include <glib.h>
#include <math.h>

#define EPSILON 1e-12

static double
draw(uint64_t i)
{
    return 2 * lh_rng_uniform(11, 0, i) - 1;
}

static double *
drawn(uint64_t count, uint64_t from)
{
    double *numbers = g_new(double, count);

    for (uint64_t i = 0; i < count; i++)
        numbers[i] = draw(from + i);
    return numbers;
}

/* @parts parts of an operand of @count numbers. */
static LhView
view(double *numbers, uint64_t count, uint32_t parts)
{
    return (LhView){ .data = (unsigned char *)numbers,
                     .parts = parts,
                     .part_bytes = (count + parts - 1) / parts * sizeof(double),
                     .storage = LH_STORAGE_FP64 };
}

/* Both versions, which work in fp64 here unless the fast one has vectors of fp32. */
static void
call(const char *name, const LhKernelArgs *args, const LhView views[3])
{
    const LhKernelId id = lh_kernel_find(name);
    g_autofree char *scratch = g_malloc0(lh_cpu_scratch_bytes(id, args) + LH_SCRATCH_ALIGN);
    const uintptr_t at = ((uintptr_t)scratch + LH_SCRATCH_ALIGN - 1) & ~(uintptr_t)63;
    LhCall c = { .args = args, .scratch = (void *)at };

    for (unsigned i = 0; i < 3 && lh_kernels[id]->operands[i].access != LH_OPERAND_END; i++)
        c.operands[i] = views[i];
    ck_assert_int_eq(lh_cpu_kernels[id]->reference(&c), LH_STATUS_OK);
}

/* ---- slices ---- */

/* Element (row, column) of matrix (expert, half) is in slice *@slice, at the returned place. */
static uint64_t
place_of(const LhKernelArgs *a, uint64_t expert, uint64_t half, uint64_t row, uint64_t column,
         uint64_t *slice)
{
    const uint64_t rows = a->muon.rows / a->muon.experts, columns = a->muon.width / a->muon.halves;
    const uint64_t cuts = a->muon.slices / a->muon.replicas;

    if (a->muon.by_rows) {
        *slice = row / (rows / cuts);
        return (expert * rows / cuts + row % (rows / cuts)) * a->muon.width + half * columns +
               column;
    }
    *slice = column / (columns / cuts);
    return (expert * rows + row) * (a->muon.width / cuts) + half * columns / cuts +
           column % (columns / cuts);
}

/* Elements of matrix @m are those of the slices, over their norm. */
static void
check_joined(const LhKernelArgs *a, uint64_t m, const double *slices, uint64_t stride,
             const double *x)
{
    const uint64_t rows = a->muon.rows / a->muon.experts, columns = a->muon.width / a->muon.halves;
    double squares = 0;

    for (uint64_t i = 0; i < 2 * rows * columns; i++) {
        const uint64_t in = i % (rows * columns), row = in / columns, column = in % columns;
        uint64_t slice,
            at = place_of(a, m / a->muon.halves, m % a->muon.halves, row, column, &slice);
        const double want = slices[slice * a->muon.replicas * stride + at];

        at = m * rows * columns + (rows > columns ? column * rows + row : in);
        if (i < rows * columns)
            squares += want * want;
        else
            ck_assert_double_eq_tol(x[at], want / sqrt(squares), EPSILON);
    }
}

static void
check_slices(LhKernelArgs a, uint32_t pieces)
{
    const uint64_t rows = a.muon.rows / a.muon.experts, columns = a.muon.width / a.muon.halves;
    const uint64_t all = a.muon.rows * a.muon.width;
    const uint32_t cuts = a.muon.slices / a.muon.replicas;
    const uint64_t count = all / cuts, stride = (count + pieces - 1) / pieces * pieces;
    g_autofree double *slices = drawn(a.muon.slices * stride, 0), *x = drawn(all, 7);
    g_autofree double *out = drawn(stride, 9);

    call("muon_join", &a,
         (LhView[3]){ { .data = (unsigned char *)slices,
                        .parts = a.muon.slices * pieces,
                        .part_bytes = stride / pieces * sizeof(double),
                        .storage = LH_STORAGE_FP64 },
                      view(x, all, 1) });
    for (uint64_t m = 0; m < (uint64_t)a.muon.experts * a.muon.halves; m++)
        check_joined(&a, m, slices, stride, x);
    for (a.muon.slice = 0; a.muon.slice < cuts; a.muon.slice++) {
        call("muon_split", &a, (LhView[3]){ view(x, all, 1), view(out, count, pieces) });
        for (uint64_t i = 0; i < all; i++) {
            const uint64_t m = i / (rows * columns), in = i % (rows * columns);
            const uint64_t row = in / columns, column = in % columns;
            uint64_t slice,
                at = place_of(&a, m / a.muon.halves, m % a.muon.halves, row, column, &slice);

            if (slice == a.muon.slice)
                ck_assert_double_eq_tol(
                    out[at],
                    3 * x[m * rows * columns + (rows > columns ? column * rows + row : in)],
                    EPSILON);
        }
    }
}

START_TEST(slices_are_joined_and_split)
{
    static const LhKernelArgs args[] = {
        { .muon = { 6, 10, 1, 1, 1, 1, .factor = 3 } },
        { .muon = { 6, 8, 1, 2, 2, 1, .factor = 3 } },
        { .muon = { 12, 8, 1, 2, 4, 2, .factor = 3 } },
        { .muon = { 12, 5, 1, 1, 3, 1, .by_rows = true, .factor = 3 } },
        { .muon = { 12, 8, 3, 2, 2, 1, .factor = 3 } },
        { .muon = { 24, 3, 2, 1, 4, 1, .by_rows = true, .factor = 3 } },
        { .muon = { 4, 6, 1, 1, 2, 2, .factor = 3 } },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(args); i++) {
        for (uint32_t pieces = 1; pieces <= 4; pieces++)
            check_slices(args[i], pieces);
    }
}
END_TEST

/* ---- a step ---- */

/* Element of X of matrix @m, whose rows are the shorter side. */
static double
element(const double *x, LhProductShape s, uint64_t m, uint64_t row, uint64_t column)
{
    return x[(m * s.rows + row) * s.columns + column];
}

START_TEST(steps_are_polynomials)
{
    static const LhKernelArgs args[] = {
        { .muon = { 5, 9, 1, 1, 1, 1, .a = 2, .b = -1.5, .c = 0.5 } },
        { .muon = { 18, 8, 2, 2, 1, 1, .a = 3.4445, .b = -4.775, .c = 2.0315 } },
    };

    for (unsigned k = 0; k < G_N_ELEMENTS(args); k++) {
        const LhKernelArgs *a = &args[k];
        const LhProductShape s = lh_muon_matrices(a);
        const uint64_t all = a->muon.rows * a->muon.width, r = s.rows;
        const uint64_t grams = s.matrices * r * r;
        g_autofree double *x = drawn(all, 3), *gram = drawn(grams, 0), *p = drawn(grams, 1);
        g_autofree double *y = drawn(all, 5);

        call("muon_gram", a, (LhView[3]){ view(x, all, 1), view(gram, grams, 1) });
        call("muon_square", a, (LhView[3]){ view(gram, grams, 1), view(p, grams, 1) });
        call("muon_step", a, (LhView[3]){ view(p, grams, 1), view(x, all, 1), view(y, all, 1) });
        for (uint64_t i = 0; i < s.matrices * r; i++) {
            const uint64_t m = i / r, row = i % r;

            for (uint64_t j = 0; j < r; j++) {
                double product = 0, square = 0;

                for (uint64_t l = 0; l < s.columns; l++)
                    product += element(x, s, m, row, l) * element(x, s, m, j, l);
                ck_assert_double_eq_tol(gram[i * r + j], product, EPSILON);
                for (uint64_t l = 0; l < r; l++)
                    square += gram[i * r + l] * gram[(m * r + l) * r + j];
                ck_assert_double_eq_tol(p[i * r + j], a->muon.b * product + a->muon.c * square,
                                        10 * EPSILON);
            }
            for (uint64_t j = 0; j < s.columns; j++) {
                double sum = a->muon.a * element(x, s, m, row, j);

                for (uint64_t l = 0; l < r; l++)
                    sum += p[i * r + l] * element(x, s, m, l, j);
                ck_assert_double_eq_tol(element(y, s, m, row, j), sum, 100 * EPSILON);
            }
        }
    }
}
END_TEST

/* Five quintic steps bring the singular values of a matrix near 1. */
START_TEST(results_are_nearly_orthogonal)
{
    static const double of[5][3] = { { 4.0848, -6.8946, 2.9270 },
                                     { 3.9505, -6.3029, 2.6377 },
                                     { 3.7418, -5.5913, 2.3037 },
                                     { 2.8769, -3.1427, 1.2046 },
                                     { 2.8366, -3.0525, 1.2012 } };
    LhKernelArgs a = { .muon = { 8, 40, 1, 1, 1, 1, .factor = 1 } };
    g_autofree double *x = drawn(320, 1), *y = drawn(320, 2), *gram = drawn(64, 0);
    g_autofree double *p = drawn(64, 0);

    call("muon_join", &a, (LhView[3]){ view(x, 320, 1), view(y, 320, 1) });
    for (unsigned i = 0; i < 5; i++) {
        double *swap = x;

        a.muon.a = of[i][0];
        a.muon.b = of[i][1];
        a.muon.c = of[i][2];
        x = y;
        y = swap;
        call("muon_gram", &a, (LhView[3]){ view(x, 320, 1), view(gram, 64, 1) });
        call("muon_square", &a, (LhView[3]){ view(gram, 64, 1), view(p, 64, 1) });
        call("muon_step", &a, (LhView[3]){ view(p, 64, 1), view(x, 320, 1), view(y, 320, 1) });
    }
    call("muon_gram", &a, (LhView[3]){ view(y, 320, 1), view(gram, 64, 1) });
    for (unsigned i = 0; i < 64; i++)
        ck_assert_double_eq_tol(gram[i], i % 9 == 0 ? 1 : 0, 0.1);
}
END_TEST

/* ---- passes ---- */

START_TEST(momenta_and_updates_are_their_formulas)
{
    enum { COUNT = 700 };
    const LhKernelArgs momentum = { .optimizer = { COUNT, 0, 0.9, 0.8, .clip = 2 } };
    const LhKernelArgs update = { .optimizer = { COUNT, 0.1, .weight_decay = 0.5 } };
    g_autofree double *g = drawn(COUNT, 0), *m = drawn(COUNT, 800), *u = drawn(COUNT, 1600);
    g_autofree double *w = drawn(COUNT, 9), *rounded = drawn(COUNT, 10);
    double norm = 16; /* the square of twice the clip */

    for (int step = 0; step < 2; step++) {
        g_autofree double *before = g_memdup2(m, COUNT * sizeof(double));
        LhCall c = { .args = &momentum,
                     .operands = { view(g, COUNT, 2), view(&norm, 1, 1), view(m, COUNT, 1),
                                   view(u, COUNT, 3) } };

        ck_assert_int_eq(lh_cpu_kernels[LH_KERNEL_ID_muon_momentum]->fast(&c), LH_STATUS_OK);
        for (unsigned i = 0; i < COUNT; i++) {
            const double want = 0.9 * before[i] + 0.1 * g[i] / 2;

            ck_assert_double_eq_tol(m[i], want, EPSILON);
            ck_assert_double_eq_tol(u[i], 0.8 * want + 0.2 * g[i] / 2, EPSILON);
        }
    }
    for (int direct = 0; direct < 2; direct++) {
        g_autofree double *before = g_memdup2(w, COUNT * sizeof(double));

        call(direct ? "muon_update_direct" : "muon_update", &update,
             (LhView[3]){ view(u, COUNT, 1), view(w, COUNT, 1), view(rounded, COUNT, 1) });
        for (unsigned i = 0; i < COUNT; i++) {
            ck_assert_double_eq_tol(w[i], before[i] - 0.1 * (u[i] + 0.5 * before[i]), EPSILON);
            ck_assert(direct || rounded[i] == w[i]);
        }
    }
}
END_TEST

LH_TEST_MAIN("kernels_muon", slices_are_joined_and_split, steps_are_polynomials,
             results_are_nearly_orthogonal, momenta_and_updates_are_their_formulas)
