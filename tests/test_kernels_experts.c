/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of experts on data: the router's choice, the placement of rows, products of experts
 * against plain ones, gradients against finite differences. Storage is fp64 where the table allows
 * it; `route`, `dweights` and the weights are fp32.
 */
#include "kernel_runs.h"
#include "run_tests.h"

#define STEP 1e-3 /* of fp32 weights; the functions are linear in most varied inputs */

/* ---- calls ---- */

static LhView
fp64(double *data, uint64_t count)
{
    return (LhView){ .data = (unsigned char *)data,
                     .parts = 1,
                     .part_bytes = count * sizeof(double),
                     .storage = LH_STORAGE_FP64 };
}

static LhView
fp32(float *data, uint64_t count)
{
    return (LhView){ .data = (unsigned char *)data,
                     .parts = 1,
                     .part_bytes = count * sizeof(float),
                     .storage = LH_STORAGE_FP32 };
}

static void
fill(double *data, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        data[i] = normal();
}

static void
check_close(double got, double want, double tolerance, const char *what, uint64_t i)
{
    ck_assert_msg(fabs(got - want) <= tolerance * (1 + fabs(want)), "%s %lu: %.15g, expected %.15g",
                  what, (gulong)i, got, want);
}

/* ---- the choice ---- */

enum { ROWS = 6, EXPERTS = 5, CHOICES = 2, CHOSEN = ROWS * CHOICES, WIDTH = 3, INNER = 4 };

static const LhKernelArgs of_rows = { .experts = { ROWS, WIDTH, EXPERTS, CHOICES } };

static void
run_route(double *logits, float *route)
{
    LhCall call = { .args = &of_rows,
                    .operands = { fp64(logits, ROWS * EXPERTS), fp32(route, 2 * CHOSEN) } };

    run_kernel(LH_KERNEL_ID_route, FAST, &call);
}

/* The two largest logits, the first of equal ones; their softmax. */
START_TEST(experts_are_those_of_the_largest_logits)
{
    double logits[ROWS * EXPERTS] = {
        0,         1,  2,         3,  4, /* */
        5,         1,  2,         9,  4, /* */
        1,         1,  1,         1,  1, /* all equal */
        0,         7,  3,         7,  3, /* the first and the second are equal */
        3,         0,  7,         0,  3, /* */
        -INFINITY, -2, -INFINITY, -1, -INFINITY,
    };
    static const unsigned want[ROWS][CHOICES] = { { 4, 3 }, { 3, 0 }, { 0, 1 },
                                                  { 1, 3 }, { 2, 0 }, { 3, 1 } };
    float route[2 * CHOSEN];

    run_route(logits, route);
    for (unsigned row = 0; row < ROWS; row++) {
        const double first = logits[row * EXPERTS + want[row][0]];
        const double second = logits[row * EXPERTS + want[row][1]];

        for (unsigned j = 0; j < CHOICES; j++)
            ck_assert_uint_eq((unsigned)route[2 * (row * CHOICES + j)], want[row][j]);
        check_close(route[2 * row * CHOICES + 1], 1 / (1 + exp(second - first)), 1e-7, "first",
                    row);
        check_close(route[2 * row * CHOICES + 3], 1 / (1 + exp(first - second)), 1e-7, "second",
                    row);
    }
}
END_TEST

/* Gradient of the weighted sum of the weights by each logit; the choice stays the same. */
START_TEST(experts_route_gradient_is_a_finite_difference)
{
    double logits[ROWS * EXPERTS], dlogits[ROWS * EXPERTS];
    float route[2 * CHOSEN], changed[2 * CHOSEN], dweights[CHOSEN];
    LhCall call = { .args = &of_rows,
                    .operands = { fp32(route, 2 * CHOSEN), fp32(dweights, CHOSEN),
                                  fp64(dlogits, ROWS * EXPERTS) } };

    for (unsigned i = 0; i < ROWS * EXPERTS; i++)
        logits[i] = 0.5 * (i * 7 % 5) + 0.01 * i; /* well separated in each row */
    for (unsigned i = 0; i < CHOSEN; i++)
        dweights[i] = (float)normal();
    run_route(logits, route);
    run_kernel(LH_KERNEL_ID_route_bwd, FAST, &call);
    for (unsigned i = 0; i < ROWS * EXPERTS; i++) {
        double difference = 0;

        for (int sign = -1; sign <= 1; sign += 2) {
            const double before = logits[i];

            logits[i] += sign * STEP;
            run_route(logits, changed);
            logits[i] = before;
            for (unsigned k = 0; k < CHOSEN; k++) {
                ck_assert_uint_eq((unsigned)changed[2 * k], (unsigned)route[2 * k]);
                difference += sign * (double)changed[2 * k + 1] * (double)dweights[k];
            }
        }
        check_close(dlogits[i], difference / (2 * STEP), 1e-3, "dlogits", i);
    }
}
END_TEST

/* ---- placement ---- */

/* Nobody chooses expert 3. */
static float chosen[2 * CHOSEN] = { 4, 0.75F, 0, 0.25F, 1, 0.5F, 0, 0.5F, 2, 0.9F, 1, 0.1F,
                                    4, 0.6F,  2, 0.4F,  0, 0.3F, 4, 0.7F, 2, 1,    1, 0 };
/* Position of each choice's copy: expert 0 has rows 0 to 2, 1 has 3 to 5, 2 has 6 to 8, 4 the
 * rest. */
static const unsigned places[CHOSEN] = { 9, 0, 3, 1, 6, 4, 10, 7, 2, 11, 8, 5 };
static const unsigned firsts[EXPERTS + 1] = { 0, 3, 6, 9, 9, 12 };

START_TEST(experts_get_the_rows_that_chose_them)
{
    double x[ROWS * WIDTH], y[CHOSEN * WIDTH];
    LhCall call = { .args = &of_rows,
                    .operands = { fp64(x, ROWS * WIDTH), fp32(chosen, 2 * CHOSEN),
                                  fp64(y, CHOSEN * WIDTH) } };

    fill(x, ROWS * WIDTH);
    run_kernel(LH_KERNEL_ID_dispatch, FAST, &call);
    for (unsigned i = 0; i < CHOSEN * WIDTH; i++)
        ck_assert(y[places[i / WIDTH] * WIDTH + i % WIDTH] ==
                  x[i / WIDTH / CHOICES * WIDTH + i % WIDTH]);
}
END_TEST

START_TEST(experts_dispatch_gradient_is_a_sum)
{
    double dy[CHOSEN * WIDTH], dx[ROWS * WIDTH];

    fill(dy, CHOSEN * WIDTH);
    for (unsigned first = 0; first < 2; first++) {
        const LhKernelArgs args = { .experts = of_rows.experts, .first = first };
        LhCall call = { .args = &args,
                        .operands = { fp64(dy, CHOSEN * WIDTH), fp32(chosen, 2 * CHOSEN),
                                      fp64(dx, ROWS * WIDTH) } };

        for (unsigned i = 0; i < ROWS * WIDTH; i++)
            dx[i] = first ? (double)NAN : 2;
        run_kernel(LH_KERNEL_ID_dispatch_bwd, FAST, &call);
        for (unsigned i = 0; i < ROWS * WIDTH; i++) {
            const unsigned *place = &places[i / WIDTH * CHOICES];

            check_close(dx[i],
                        (first ? 0 : 2) + dy[place[0] * WIDTH + i % WIDTH] +
                            dy[place[1] * WIDTH + i % WIDTH],
                        1e-15, "dx", i);
        }
    }
}
END_TEST

START_TEST(experts_combine_by_weights)
{
    double x[CHOSEN * WIDTH], y[ROWS * WIDTH], dy[ROWS * WIDTH], dx[CHOSEN * WIDTH];
    float dweights[CHOSEN];
    LhCall call = { .args = &of_rows,
                    .operands = { fp64(x, CHOSEN * WIDTH), fp32(chosen, 2 * CHOSEN),
                                  fp64(y, ROWS * WIDTH) } };
    LhCall back = { .args = &of_rows,
                    .operands = { fp64(x, CHOSEN * WIDTH), fp32(chosen, 2 * CHOSEN),
                                  fp64(dy, ROWS * WIDTH), fp64(dx, CHOSEN * WIDTH),
                                  fp32(dweights, CHOSEN) } };

    fill(x, CHOSEN * WIDTH);
    fill(dy, ROWS * WIDTH);
    run_kernel(LH_KERNEL_ID_combine, FAST, &call);
    run_kernel(LH_KERNEL_ID_combine_bwd, FAST, &back);
    for (unsigned i = 0; i < ROWS * WIDTH; i++) {
        double want = 0;

        for (unsigned j = i / WIDTH * CHOICES; j < (i / WIDTH + 1) * CHOICES; j++)
            want += (double)chosen[2 * j + 1] * x[places[j] * WIDTH + i % WIDTH];
        check_close(y[i], want, 1e-15, "y", i);
    }
    for (unsigned choice = 0; choice < CHOSEN; choice++) {
        double want = 0;

        for (unsigned c = 0; c < WIDTH; c++) {
            const unsigned at = places[choice] * WIDTH + c;
            const double gradient = dy[choice / CHOICES * WIDTH + c];

            check_close(dx[at], (double)chosen[2 * choice + 1] * gradient, 1e-15, "dx", at);
            want += x[at] * gradient;
        }
        check_close(dweights[choice], want, 1e-6, "dweights", choice);
    }
}
END_TEST

/* ---- products ---- */

typedef struct {
    double x[CHOSEN * WIDTH], w[EXPERTS * WIDTH * INNER], y[CHOSEN * INNER];
} Product;

/* Calls a product of experts, or, for @expert, the plain product of that expert's rows. */
static void
run_product(Product *p, LhKernelId of_experts, LhKernelId plain, int expert, bool first,
            Version version)
{
    const unsigned from = expert < 0 ? 0 : firsts[expert];
    const unsigned rows = expert < 0 ? CHOSEN : firsts[expert + 1] - from;
    const LhKernelArgs args = {
        .product = { rows, INNER, WIDTH, .experts = expert < 0 ? EXPERTS : 0 }, .first = first
    };
    const LhProductResult result = lh_kernels[plain]->product;
    const unsigned matrices = expert < 0 ? EXPERTS : 1, skipped = expert < 0 ? 0 : (unsigned)expert;
    const LhView x = fp64(p->x + from * WIDTH, rows * WIDTH);
    const LhView w = fp64(p->w + skipped * WIDTH * INNER, matrices * WIDTH * INNER);
    const LhView y = fp64(p->y + from * INNER, rows * INNER);
    LhCall call = { .args = &args,
                    .operands = { result == LH_PRODUCT_DX ? y : x, result == LH_PRODUCT_DW ? y : w,
                                  result == LH_PRODUCT_Y    ? y
                                  : result == LH_PRODUCT_DX ? x
                                                            : w,
                                  fp32(chosen, 2 * CHOSEN) } };

    if (rows > 0)
        run_kernel(expert < 0 ? of_experts : plain, version, &call);
}

/* Each expert's rows are multiplied as if alone. An expert without rows leaves its gradient
 * unchanged, or zero in a first call. */
START_TEST(experts_multiply_their_own_rows)
{
    static const LhKernelId kernels[][2] = {
        { LH_KERNEL_ID_expert_product, LH_KERNEL_ID_product },
        { LH_KERNEL_ID_expert_product_dgrad, LH_KERNEL_ID_product_dgrad },
        { LH_KERNEL_ID_expert_product_wgrad, LH_KERNEL_ID_product_wgrad },
    };

    for (unsigned k = 0; k < 3; k++) {
        for (unsigned how = 0; how < 4; how++) {
            const Version version = how % 2 == 0 ? REFERENCE : FAST;
            const bool first = how / 2 != 0;
            Product together, apart;

            fill(together.x, CHOSEN * WIDTH);
            fill(together.w, EXPERTS * WIDTH * INNER);
            fill(together.y, CHOSEN * INNER);
            apart = together;
            run_product(&together, kernels[k][0], kernels[k][1], -1, first, version);
            for (int e = 0; e < EXPERTS; e++)
                run_product(&apart, kernels[k][0], kernels[k][1], e, first, version);
            for (unsigned i = 0; k == 2 && first && i < WIDTH * INNER; i++)
                apart.w[3 * WIDTH * INNER + i] = 0;
            ck_assert_mem_eq(together.x, apart.x, sizeof(apart.x));
            ck_assert_mem_eq(together.y, apart.y, sizeof(apart.y));
            for (unsigned i = 0; i < EXPERTS * WIDTH * INNER; i++)
                ck_assert(together.w[i] == apart.w[i]);
        }
    }
}
END_TEST

/* ---- costs ---- */

/* Rows that do not divide evenly among experts: flops are exact, time is that of the largest
 * share. */
START_TEST(experts_cost_what_their_rows_do)
{
    const LhKernelArgs product = { .product = { 10, 3, 4, .experts = 4 } };
    const LhProductShape shape =
        lh_product_shape(lh_kernels[LH_KERNEL_ID_expert_product], &product);
    const LhKernel *kernel = lh_kernels[LH_KERNEL_ID_expert_product];
    const LhKernel *combine = lh_kernels[LH_KERNEL_ID_combine];

    ck_assert_uint_eq(kernel->flops(&product), 2 * 10 * 3 * 4);
    ck_assert(shape.matrices == 4 && shape.rows == 3 && shape.columns == 3 && shape.depth == 4);
    /* x, w of all experts, y; an expert and a weight per row. */
    ck_assert_uint_eq(kernel->memory_bytes(&product, 2),
                      2 * (10 * 4 + 4 * 4 * 3 + 10 * 3) + 10 * 2 * 4);
    ck_assert_uint_eq(combine->flops(&of_rows), 2 * CHOSEN * WIDTH - ROWS * WIDTH);
    ck_assert_uint_eq(combine->memory_bytes(&of_rows, 2),
                      2 * (CHOSEN * WIDTH + ROWS * WIDTH) + 2 * CHOSEN * 4);
}
END_TEST

/* ---- rejected calls ---- */

static void
refuse(LhKernelId id, const LhKernelArgs *args, float *route)
{
    const LhKernel *kernel = lh_kernels[id];
    static double data[64];
    static uint64_t scratch[256];
    LhCall call = { .args = args, .scratch = scratch };

    for (unsigned i = 0; kernel->operands[i].access != LH_OPERAND_END; i++)
        call.operands[i] = is_route(&kernel->operands[i]) ? fp32(route, 2 * CHOSEN)
                                                          : fp64(data, G_N_ELEMENTS(data));
    ck_assert_int_eq(lh_cpu_kernels[id]->fast(&call), LH_STATUS_UNSUPPORTED);
    for (unsigned i = 0; i < G_N_ELEMENTS(data); i++)
        ck_assert(data[i] == 0);
}

/* Nonexistent experts, and more choices than experts. */
START_TEST(experts_that_are_none_are_refused)
{
    static const LhKernelId readers[] = { LH_KERNEL_ID_route_bwd, LH_KERNEL_ID_dispatch,
                                          LH_KERNEL_ID_dispatch_bwd, LH_KERNEL_ID_combine,
                                          LH_KERNEL_ID_combine_bwd };
    static const float none[] = { EXPERTS, -1, NAN, INFINITY };
    const LhKernelArgs product = { .product = { CHOSEN, INNER, WIDTH, .experts = EXPERTS } };
    const LhKernelArgs too_many = { .experts = { 1, 1, EXPERTS, EXPERTS + 1 } };

    for (unsigned i = 0; i < G_N_ELEMENTS(none); i++) {
        float route[2 * CHOSEN];

        memcpy(route, chosen, sizeof(route));
        route[2 * (CHOSEN - 1)] = none[i];
        for (unsigned k = 0; k < G_N_ELEMENTS(readers); k++)
            refuse(readers[k], &of_rows, route);
        refuse(LH_KERNEL_ID_expert_product, &product, route);
    }
    refuse(LH_KERNEL_ID_route, &too_many, chosen);
    refuse(LH_KERNEL_ID_dispatch, &too_many, chosen);
}
END_TEST

LH_TEST_MAIN("kernels_experts", experts_are_those_of_the_largest_logits,
             experts_route_gradient_is_a_finite_difference, experts_get_the_rows_that_chose_them,
             experts_dispatch_gradient_is_a_sum, experts_combine_by_weights,
             experts_multiply_their_own_rows, experts_cost_what_their_rows_do,
             experts_that_are_none_are_refused)
