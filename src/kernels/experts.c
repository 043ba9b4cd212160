/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands around the products of experts: the router's choice, rows on their way to experts and
 * back. Each row chooses `choices` of `experts` experts. The rows of all experts stand one behind
 * the other, those of one expert in the order of the rows that chose it, and of one row's choices:
 * so none is dropped, none is padded, and there are `choices` times as many as rows. Which expert
 * has how many, the numbers of `route` say: two for each choice, the expert and its weight.
 */
#include "kernels/layer.h"

static uint64_t
choices_of(const LhKernelArgs *a)
{
    return a->experts.rows * a->experts.choices;
}

/* The logits of all experts, or their gradients; what `route` holds; one number for each choice. */
static uint64_t
logits_elements(const LhKernelArgs *a)
{
    return a->experts.rows * a->experts.experts;
}

static uint64_t
route_elements(const LhKernelArgs *a)
{
    return LH_ROUTE_NUMBERS * choices_of(a);
}

/* Rows before experts, and those that experts have. */
static uint64_t
rows_elements(const LhKernelArgs *a)
{
    return a->experts.rows * a->experts.width;
}

static uint64_t
sorted_elements(const LhKernelArgs *a)
{
    return choices_of(a) * a->experts.width;
}

typedef uint64_t (*Elements)(const LhKernelArgs *a);

#define OF_OPERANDS(word, ...)                                                                     \
    static uint64_t word##_elements(const LhKernelArgs *a, unsigned operand)                       \
    {                                                                                              \
        static const Elements of[] = { __VA_ARGS__ };                                              \
                                                                                                   \
        return of[operand](a);                                                                     \
    }

OF_OPERANDS(route_fwd, logits_elements, route_elements)
OF_OPERANDS(route_bwd, route_elements, choices_of, logits_elements)
OF_OPERANDS(dispatch, rows_elements, route_elements, sorted_elements)
OF_OPERANDS(dispatch_bwd, sorted_elements, route_elements, rows_elements)
OF_OPERANDS(combine, sorted_elements, route_elements, rows_elements)
OF_OPERANDS(combine_bwd, sorted_elements, route_elements, rows_elements, sorted_elements,
            choices_of)

/* A softmax of the chosen logits: difference, exponential, sum, quotient; comparisons are no flops.
 * Its gradient: product, sum, difference, product. */
static uint64_t
softmax_flops(const LhKernelArgs *a)
{
    return 4 * choices_of(a);
}

/* The first of several terms is no sum, unless there is something already. */
static uint64_t
sum_flops(const LhKernelArgs *a)
{
    return sorted_elements(a) - (a->first ? rows_elements(a) : 0);
}

static uint64_t
weighed_sum_flops(const LhKernelArgs *a)
{
    return 2 * sorted_elements(a) - rows_elements(a);
}

/* dx = weight dy; dweight = the sum of x dy. */
static uint64_t
weighed_sum_bwd_flops(const LhKernelArgs *a)
{
    return 3 * sorted_elements(a);
}

#define EXPERTS(word, what, counted, elements, ...)                                                \
    LH_LAYER_BYTES(word)                                                                           \
    const LhKernel lh_kernel_##word = {                                                            \
        .name = #word,                                                                             \
        .summary = what,                                                                           \
        .args = LH_ARGS_EXPERTS,                                                                   \
        .effect = LH_EFFECT_LAYER,                                                                 \
        .cost = LH_COST_MEMORY,                                                                    \
        .operands = { __VA_ARGS__, LH_OPERANDS_END },                                              \
        .flops = counted,                                                                          \
        .memory_bytes = word##_bytes,                                                              \
        .operand_elements = elements,                                                              \
    };

EXPERTS(route, "each row's experts: those of the largest logits, weighed by their softmax",
        softmax_flops, route_fwd_elements, LH_HIDDEN("logits", READ), LH_ROUTE("route", WRITE))
EXPERTS(route_bwd, "gradient of the logits of all experts in route", softmax_flops,
        route_bwd_elements, LH_ROUTE("route", READ), LH_ROUTE("dweights", READ),
        LH_HIDDEN("dlogits", WRITE))
EXPERTS(dispatch, "copies each row to the experts that it chose, sorted by expert", lh_no_flops,
        dispatch_elements, LH_HIDDEN("x", READ), LH_ROUTE("route", READ), LH_HIDDEN("y", WRITE))
EXPERTS(dispatch_bwd, "dx += what comes back of the copies of each row", sum_flops,
        dispatch_bwd_elements, LH_HIDDEN("dy", READ), LH_ROUTE("route", READ),
        LH_HIDDEN("dx", UPDATE))
EXPERTS(combine, "y = the weighed sum of what its experts made of each row", weighed_sum_flops,
        combine_elements, LH_HIDDEN("x", READ), LH_ROUTE("route", READ), LH_HIDDEN("y", WRITE))
EXPERTS(combine_bwd, "gradients of x and of the weights in combine", weighed_sum_bwd_flops,
        combine_bwd_elements, LH_HIDDEN("x", READ), LH_ROUTE("route", READ), LH_HIDDEN("dy", READ),
        LH_HIDDEN("dx", WRITE), LH_ROUTE("dweights", WRITE))
