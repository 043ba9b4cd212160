/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Norms of rows, with weights: y = x / sqrt(mean(x^2) + epsilon) w (rms_norm); layer_norm subtracts
 * the mean of x first and adds a bias, which follows w in the same operand. Gradients recompute the
 * row's statistics from x.
 */
#include "kernels/layer.h"

/* Elements of x or of the weights; those of layer_norm are w and then the bias. */
static uint64_t
rms_elements(const LhKernelArgs *a, bool is_weights)
{
    return is_weights ? a->rows.width : lh_rows_elements(a);
}

static uint64_t
layer_elements(const LhKernelArgs *a, bool is_weights)
{
    return is_weights ? 2 * a->rows.width : lh_rows_elements(a);
}

/* Operands: forward x, w, y; backward x, w, dy, dx, and dw unless the weights are frozen. */
static uint64_t
rms_norm_elements(const LhKernelArgs *a, unsigned operand)
{
    return rms_elements(a, operand == 1 || operand == 4);
}

static uint64_t
layer_norm_elements(const LhKernelArgs *a, unsigned operand)
{
    return layer_elements(a, operand == 1 || operand == 4);
}

/* Additions to the previous dx. */
static uint64_t
added(const LhKernelArgs *a)
{
    return a->rows.adds ? lh_rows_elements(a) : 0;
}

/* Per element: square and sum, two factors; per row: mean, epsilon and root. */
static uint64_t
rms_norm_flops(const LhKernelArgs *a)
{
    return 4 * lh_rows_elements(a) + 3 * a->rows.rows;
}

/* The same statistics; then dy w, x r, sum of their products, r (dy w - x r c); dw. */
static uint64_t
rms_norm_bwd_flops(const LhKernelArgs *a)
{
    return 11 * lh_rows_elements(a) + 4 * a->rows.rows + added(a);
}

/* Without dw: two operations per element. */
static uint64_t
rms_norm_dgrad_flops(const LhKernelArgs *a)
{
    return rms_norm_bwd_flops(a) - 2 * lh_rows_elements(a);
}

static uint64_t
layer_norm_flops(const LhKernelArgs *a)
{
    return 7 * lh_rows_elements(a) + 4 * a->rows.rows;
}

static uint64_t
layer_norm_bwd_flops(const LhKernelArgs *a)
{
    return 17 * lh_rows_elements(a) + 6 * a->rows.rows + added(a);
}

/* Without the gradients of w and bias: three operations per element. */
static uint64_t
layer_norm_dgrad_flops(const LhKernelArgs *a)
{
    return layer_norm_bwd_flops(a) - 3 * lh_rows_elements(a);
}

#define NORM(word, what, of, ...)                                                                  \
    LH_LAYER_BYTES(word)                                                                           \
    const LhKernel lh_kernel_##word = {                                                            \
        .name = #word,                                                                             \
        .summary = what,                                                                           \
        .args = LH_ARGS_ROWS,                                                                      \
        .effect = LH_EFFECT_LAYER,                                                                 \
        .cost = LH_COST_MEMORY,                                                                    \
        .operands = { LH_HIDDEN("x", READ), LH_OF_WEIGHTS("w", READ, WEIGHT), __VA_ARGS__,         \
                      LH_OPERANDS_END },                                                           \
        .flops = word##_flops,                                                                     \
        .memory_bytes = word##_bytes,                                                              \
        .operand_elements = of##_elements,                                                         \
    };

NORM(rms_norm, "y = x w / root mean square of its row", rms_norm, LH_HIDDEN("y", WRITE))
NORM(rms_norm_bwd, "dx and dw += gradients of rms_norm", rms_norm, LH_HIDDEN("dy", READ),
     LH_HIDDEN("dx", UPDATE), LH_OF_WEIGHTS("dw", UPDATE, GRADIENT))
NORM(rms_norm_dgrad, "dx += gradient of rms_norm whose weights are frozen", rms_norm,
     LH_HIDDEN("dy", READ), LH_HIDDEN("dx", UPDATE))
NORM(layer_norm, "y = (x - row mean) / row deviation times w, plus bias", layer_norm,
     LH_HIDDEN("y", WRITE))
NORM(layer_norm_bwd, "dx and dw += gradients of layer_norm", layer_norm, LH_HIDDEN("dy", READ),
     LH_HIDDEN("dx", UPDATE), LH_OF_WEIGHTS("dw", UPDATE, GRADIENT))
NORM(layer_norm_dgrad, "dx += gradient of layer_norm whose weights are frozen", layer_norm,
     LH_HIDDEN("dy", READ), LH_HIDDEN("dx", UPDATE))
