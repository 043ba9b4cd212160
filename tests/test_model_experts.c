/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference mixture of experts that executed steps are compared with: gradients against finite
 * differences, and outputs in closed form where all experts are equal.
 */
#include "base/rng.h"
#include "reference/model_experts.h"
#include "reference/model_math.h"
#include "run_tests.h"

#include <glib.h>
#include <math.h>

enum {
    ROWS = 7,
    HIDDEN = 5,
    FFN = 3,
    EXPERTS = 4,
    CHOICES = 2,
    MATRIX = EXPERTS * 2 * HIDDEN * FFN
};

#define STEP 1e-5

/* Tensors large enough for both kinds of MLP. */
typedef struct {
    double router[HIDDEN * EXPERTS], up[MATRIX], down[MATRIX];
    double drouter[HIDDEN * EXPERTS], dup[MATRIX], ddown[MATRIX];
    double x[ROWS * HIDDEN], dy[ROWS * HIDDEN];
    LhModelTensor tensors[3];
    LhMixture mixture;
    LhModelReference model; /* without noise */
} World;

static void
fill(double *numbers, uint64_t count, uint64_t stream)
{
    for (uint64_t i = 0; i < count; i++)
        numbers[i] = 2 * lh_rng_uniform(1, stream, i) - 1;
}

static void
open_world(World *w, bool gated)
{
    *w = (World){ .mixture = { ROWS, HIDDEN, FFN, EXPERTS, CHOICES, gated, 1, NULL, NULL, NULL } };
    fill(w->router, G_N_ELEMENTS(w->router), 2);
    fill(w->up, MATRIX, 4);
    fill(w->down, MATRIX, 6);
    fill(w->x, G_N_ELEMENTS(w->x), 8);
    fill(w->dy, G_N_ELEMENTS(w->dy), 10);
    w->tensors[0] = (LhModelTensor){ .value = w->router, .gradient = w->drouter };
    w->tensors[1] = (LhModelTensor){ .value = w->up, .gradient = w->dup };
    w->tensors[2] = (LhModelTensor){ .value = w->down, .gradient = w->ddown };
    w->mixture.model = &w->model;
    w->mixture.router = &w->tensors[0];
    w->mixture.up = &w->tensors[1];
    w->mixture.down = &w->tensors[2];
}

/* The sum of all outputs weighted by dy. */
static double
weighed_output(const World *w)
{
    double y[ROWS * HIDDEN] = { 0 }, sum = 0;
    LhMixturePass pass;

    lh_mixture_forward(&w->mixture, w->x, y, &pass);
    lh_mixture_clear(&pass);
    for (unsigned i = 0; i < ROWS * HIDDEN; i++)
        sum += y[i] * w->dy[i];
    return sum;
}

static void
check_differences(const World *w, double *numbers, const double *gradient, uint64_t count,
                  const char *what)
{
    for (uint64_t i = 0; i < count; i++) {
        const double before = numbers[i];
        double above, below;

        numbers[i] = before + STEP;
        above = weighed_output(w);
        numbers[i] = before - STEP;
        below = weighed_output(w);
        numbers[i] = before;
        ck_assert_msg(fabs((above - below) / (2 * STEP) - gradient[i]) < 1e-8, "%s %u: %g, not %g",
                      what, (unsigned)i, gradient[i], (above - below) / (2 * STEP));
    }
}

static void
check_gradients(bool gated)
{
    double y[ROWS * HIDDEN] = { 0 }, dx[ROWS * HIDDEN] = { 0 };
    LhMixturePass pass;
    World w;

    open_world(&w, gated);
    lh_mixture_forward(&w.mixture, w.x, y, &pass);
    lh_mixture_backward(&w.mixture, &pass, w.x, w.dy, dx);
    lh_mixture_clear(&pass);
    check_differences(&w, w.x, dx, G_N_ELEMENTS(w.x), "x");
    check_differences(&w, w.router, w.drouter, G_N_ELEMENTS(w.router), "router");
    check_differences(&w, w.up, w.dup, gated ? MATRIX : MATRIX / 2, "up");
    check_differences(&w, w.down, w.ddown, MATRIX / 2, "down");
}

START_TEST(mixture_gradients_are_finite_differences)
{
    check_gradients(true);
    check_gradients(false);
}
END_TEST

/* Weights of the chosen experts add up to 1, so equal experts give one MLP whichever are chosen. */
START_TEST(mixture_of_equal_experts_is_an_mlp)
{
    double y[ROWS * HIDDEN] = { 0 }, want[ROWS * HIDDEN] = { 0 };
    double inner[ROWS * 2 * FFN] = { 0 }, p[ROWS * FFN] = { 0 };
    const LhMathProduct up = { ROWS, HIDDEN, 2 * FFN, 1 }, down = { ROWS, FFN, HIDDEN, 1 };
    LhMixturePass pass;
    World w;

    open_world(&w, true);
    for (unsigned i = 0; i < MATRIX; i++) {
        w.up[i] = w.up[i % (HIDDEN * 2 * FFN)];
        w.down[i] = w.down[i % (FFN * HIDDEN)];
    }
    lh_mixture_forward(&w.mixture, w.x, y, &pass);
    lh_mixture_clear(&pass);
    lh_math_product(&up, w.x, w.up, inner);
    lh_math_activate(ROWS, FFN, true, inner, p);
    lh_math_product(&down, p, w.down, want);
    for (unsigned i = 0; i < ROWS * HIDDEN; i++)
        ck_assert_double_eq_tol(y[i], want[i], 1e-14);
}
END_TEST

LH_TEST_MAIN("model_experts", mixture_gradients_are_finite_differences,
             mixture_of_equal_experts_is_an_mlp)
