/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routing around the products of experts: the router's choice, dispatch of rows to experts, and
 * combine. Each row chooses `choices` of `experts` experts. Dispatched rows are grouped by expert;
 * within an expert they are in the order of the rows that chose it, then of one row's choices. None
 * is dropped or padded, so there are `choices` times as many as rows. `route` holds two numbers per
 * choice, the expert and its weight, from which each expert's number of rows follows.
 */
#include "kernels/layer.h"

static uint64_t
choices_of(const LhKernelArgs *a)
{
    return a->experts.rows * a->experts.choices;
}

/* Elements of: logits of all experts (or their gradients); `route`; one number per choice. */
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

/* Elements of rows before dispatch, and after it. */
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

/*
 * Softmax of the chosen logits: difference, exponential, sum, quotient; comparisons count no flops.
 * Its gradient: product, sum, difference, product.
 */
static uint64_t
softmax_flops(const LhKernelArgs *a)
{
    return 4 * choices_of(a);
}

/* The first of several terms is no sum, unless the target already has a value. */
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

EXPERTS(route, "picks the experts with the largest logits; weights are their softmax",
        softmax_flops, route_fwd_elements, LH_HIDDEN("logits", READ), LH_ROUTE("route", WRITE))
EXPERTS(route_bwd, "gradient of all experts' logits in route", softmax_flops, route_bwd_elements,
        LH_ROUTE("route", READ), LH_ROUTE("dweights", READ), LH_HIDDEN("dlogits", WRITE))
EXPERTS(dispatch, "copies each row to its experts, sorted by expert", lh_no_flops,
        dispatch_elements, LH_HIDDEN("x", READ), LH_ROUTE("route", READ), LH_HIDDEN("y", WRITE))
EXPERTS(dispatch_bwd, "dx += sum of the gradients of each row's copies", sum_flops,
        dispatch_bwd_elements, LH_HIDDEN("dy", READ), LH_ROUTE("route", READ),
        LH_HIDDEN("dx", UPDATE))
EXPERTS(combine, "y = weighted sum of the experts' outputs for each row", weighed_sum_flops,
        combine_elements, LH_HIDDEN("x", READ), LH_ROUTE("route", READ), LH_HIDDEN("y", WRITE))
EXPERTS(combine_bwd, "gradients of x and of the weights in combine", weighed_sum_bwd_flops,
        combine_bwd_elements, LH_HIDDEN("x", READ), LH_ROUTE("route", READ), LH_HIDDEN("dy", READ),
        LH_HIDDEN("dx", WRITE), LH_ROUTE("dweights", WRITE))
