/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of activations with weights, outside attention: y = x w, and the gradients of x and w.
 * For attention's output, the tensor by heads takes the place of x. For experts, each has a part of
 * the rows, given by `route` (experts.c).
 */
#include "kernels/layer.h"

static uint64_t
product_flops(const LhKernelArgs *a)
{
    return 2 * a->product.m * a->product.n * a->product.k;
}

/* Elements of x, w and y, and of their gradients. */
static uint64_t
x_elements(const LhKernelArgs *a)
{
    return a->product.m * a->product.k;
}

static uint64_t
w_elements(const LhKernelArgs *a)
{
    return lh_product_matrices(a) * a->product.k * a->product.n;
}

static uint64_t
y_elements(const LhKernelArgs *a)
{
    return a->product.m * a->product.n;
}

/* Elements of the router's choices for the rows. */
static uint64_t
router_elements(const LhKernelArgs *a)
{
    return LH_ROUTE_NUMBERS * a->product.m;
}

static uint64_t
forward_elements(const LhKernelArgs *a, unsigned operand)
{
    return (operand == 0   ? x_elements
            : operand == 1 ? w_elements
            : operand == 2 ? y_elements
                           : router_elements)(a);
}

static uint64_t
dgrad_elements(const LhKernelArgs *a, unsigned operand)
{
    return (operand == 0   ? y_elements
            : operand == 1 ? w_elements
            : operand == 2 ? x_elements
                           : router_elements)(a);
}

static uint64_t
wgrad_elements(const LhKernelArgs *a, unsigned operand)
{
    return (operand == 0   ? x_elements
            : operand == 1 ? y_elements
            : operand == 2 ? w_elements
                           : router_elements)(a);
}

#define PRODUCT(word, what, which, result, elements, ...)                                          \
    LH_LAYER_BYTES(word)                                                                           \
    const LhKernel lh_kernel_##word = {                                                            \
        .name = #word,                                                                             \
        .summary = what,                                                                           \
        .args = LH_ARGS_PRODUCT,                                                                   \
        .effect = which,                                                                           \
        .cost = LH_COST_PRODUCT,                                                                   \
        .operands = { __VA_ARGS__, LH_OPERANDS_END },                                              \
        .flops = product_flops,                                                                    \
        .memory_bytes = word##_bytes,                                                              \
        .operand_elements = elements,                                                              \
        .product = result,                                                                         \
    };

PRODUCT(product, "y = x w, matrices m x k and k x n", LH_EFFECT_DERIVE, LH_PRODUCT_Y,
        forward_elements, LH_HIDDEN("x", READ), LH_OF_WEIGHTS("w", READ, WEIGHT),
        LH_HIDDEN("y", WRITE))
PRODUCT(product_dgrad, "dx += dy w^T, the gradient of x in y = x w", LH_EFFECT_LAYER, LH_PRODUCT_DX,
        dgrad_elements, LH_HIDDEN("dy", READ), LH_OF_WEIGHTS("w", READ, WEIGHT),
        LH_HIDDEN("dx", UPDATE))
PRODUCT(product_wgrad, "dw += x^T dy, the gradient of w in y = x w", LH_EFFECT_LAYER, LH_PRODUCT_DW,
        wgrad_elements, LH_HIDDEN("x", READ), LH_HIDDEN("dy", READ),
        LH_OF_WEIGHTS("dw", UPDATE, GRADIENT))
PRODUCT(out_product, "y = o w, attention's output by heads", LH_EFFECT_LAYER, LH_PRODUCT_Y,
        forward_elements, LH_BY_HEADS("o", READ, O, ACTIVATION), LH_OF_WEIGHTS("w", READ, WEIGHT),
        LH_HIDDEN("y", WRITE))
PRODUCT(out_product_dgrad, "do += dy w^T, the gradient of o in y = o w", LH_EFFECT_LAYER,
        LH_PRODUCT_DX, dgrad_elements, LH_HIDDEN("dy", READ), LH_OF_WEIGHTS("w", READ, WEIGHT),
        LH_BY_HEADS("do", UPDATE, DO, ACTIVATION))
PRODUCT(out_product_wgrad, "dw += o^T dy, the gradient of w in y = o w", LH_EFFECT_LAYER,
        LH_PRODUCT_DW, wgrad_elements, LH_BY_HEADS("o", READ, O, ACTIVATION), LH_HIDDEN("dy", READ),
        LH_OF_WEIGHTS("dw", UPDATE, GRADIENT))
PRODUCT(expert_product, "y = x w, with a matrix for the rows of each expert", LH_EFFECT_LAYER,
        LH_PRODUCT_Y, forward_elements, LH_HIDDEN("x", READ), LH_OF_WEIGHTS("w", READ, WEIGHT),
        LH_HIDDEN("y", WRITE), LH_ROUTE("route", READ))
PRODUCT(expert_product_dgrad, "dx += dy w^T, the gradient of x in expert_product", LH_EFFECT_LAYER,
        LH_PRODUCT_DX, dgrad_elements, LH_HIDDEN("dy", READ), LH_OF_WEIGHTS("w", READ, WEIGHT),
        LH_HIDDEN("dx", UPDATE), LH_ROUTE("route", READ))
PRODUCT(expert_product_wgrad, "dw += x^T dy, the gradient of w in expert_product", LH_EFFECT_LAYER,
        LH_PRODUCT_DW, wgrad_elements, LH_HIDDEN("x", READ), LH_HIDDEN("dy", READ),
        LH_OF_WEIGHTS("dw", UPDATE, GRADIENT), LH_ROUTE("route", READ))
