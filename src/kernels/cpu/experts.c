/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU versions of kernels/experts.c. Sums are in fp64. An expert's rows are in the order of the
 * rows that chose it, so counting the choices in order gives the place of each.
 */
#include "kernels/cpu/experts.h"

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/kernels.h"
#include "kernels/layer.h"

#include <math.h>

#define BLOCK 512U

enum { EXPERT, WEIGHT };

bool
lh_route(LhMatrix *route, const LhCall *call, unsigned operand, uint64_t choices)
{
    return lh_matrix_flat(route, call, operand, choices, LH_ROUTE_NUMBERS);
}

bool
lh_route_firsts(const LhMatrix *route, uint64_t choices, uint32_t experts, uint64_t *firsts)
{
    for (uint32_t e = 0; e <= experts; e++)
        firsts[e] = 0;
    for (uint64_t i = 0; i < choices; i++) {
        const double expert = lh_matrix_get(route, i, EXPERT);

        if (!(expert >= 0 && expert < experts))
            return false;
        firsts[(uint32_t)expert + 1]++;
    }
    for (uint32_t e = 0; e < experts; e++)
        firsts[e + 1] += firsts[e];
    return true;
}

/* ---- the choice ---- */

static bool
is_among(const uint32_t *chosen, uint32_t count, uint32_t expert)
{
    for (uint32_t i = 0; i < count; i++) {
        if (chosen[i] == expert)
            return true;
    }
    return false;
}

/* Returns the expert with the largest logit not yet chosen; of equal ones the first. */
static uint32_t
choose(const double *logits, uint32_t experts, const uint32_t *chosen, uint32_t count)
{
    uint32_t best = experts;

    for (uint32_t e = 0; e < experts; e++) {
        if (!is_among(chosen, count, e) && (best == experts || logits[e] > logits[best]))
            best = e;
    }
    return best;
}

static void
route_row(const LhKernelArgs *a, const double *logits, uint32_t *chosen, const LhMatrix *route,
          uint64_t row)
{
    const uint32_t choices = a->experts.choices;
    double sum = 0;

    for (uint32_t j = 0; j < choices; j++) {
        chosen[j] = choose(logits, a->experts.experts, chosen, j);
        sum += exp(logits[chosen[j]] - logits[chosen[0]]);
    }
    for (uint32_t j = 0; j < choices; j++) {
        lh_matrix_put(route, row * choices + j, EXPERT, chosen[j]);
        lh_matrix_put(route, row * choices + j, WEIGHT,
                      exp(logits[chosen[j]] - logits[chosen[0]]) / sum);
    }
}

static bool
is_possible(const LhKernelArgs *a)
{
    return a->experts.choices > 0 && a->experts.choices <= a->experts.experts;
}

static enum lh_status
route(const LhCall *call)
{
    const LhKernelArgs *a = call->args;
    double *line = call->scratch;
    uint32_t *chosen = (uint32_t *)(void *)(line + a->experts.experts);
    LhMatrix logits, routes;

    if (!is_possible(a) || !lh_matrix_flat(&logits, call, 0, a->experts.rows, a->experts.experts) ||
        !lh_route(&routes, call, 1, a->experts.rows * a->experts.choices))
        return LH_STATUS_UNSUPPORTED;
    for (uint64_t row = 0; row < a->experts.rows; row++) {
        lh_matrix_load64(&logits, row, 0, a->experts.experts, line);
        route_row(a, line, chosen, &routes, row);
    }
    return LH_STATUS_OK;
}

/* dlogit = weight (dweight - the sum of weight dweight) of the chosen, and 0 of all others. */
static void
route_row_bwd(const LhKernelArgs *a, const LhMatrix *route, const LhMatrix *dweights, uint64_t row,
              double *line)
{
    const uint32_t choices = a->experts.choices;
    double sum = 0;

    for (uint32_t e = 0; e < a->experts.experts; e++)
        line[e] = 0;
    for (uint64_t i = row * choices; i < (row + 1) * choices; i++)
        sum += lh_matrix_get(route, i, WEIGHT) * lh_matrix_get(dweights, i, 0);
    for (uint64_t i = row * choices; i < (row + 1) * choices; i++)
        line[(uint32_t)lh_matrix_get(route, i, EXPERT)] +=
            lh_matrix_get(route, i, WEIGHT) * (lh_matrix_get(dweights, i, 0) - sum);
}

static enum lh_status
route_bwd(const LhCall *call)
{
    const LhKernelArgs *a = call->args;
    const uint64_t choices = a->experts.rows * a->experts.choices;
    LhMatrix routes, dweights, dlogits;

    if (!is_possible(a) || !lh_route(&routes, call, 0, choices) ||
        !lh_matrix_flat(&dweights, call, 1, choices, 1) ||
        !lh_matrix_flat(&dlogits, call, 2, a->experts.rows, a->experts.experts) ||
        !lh_route_firsts(&routes, choices, a->experts.experts, call->scratch))
        return LH_STATUS_UNSUPPORTED;
    for (uint64_t row = 0; row < a->experts.rows; row++) {
        route_row_bwd(a, &routes, &dweights, row, call->scratch);
        lh_matrix_store64(&dlogits, row, 0, a->experts.experts, call->scratch);
    }
    return LH_STATUS_OK;
}

/* ---- dispatch and combine ---- */

/* Rows, and the same rows sorted by expert; `next` is the next place of each expert. */
typedef struct {
    LhMatrix rows, sorted, route;
    uint32_t choices;
    uint64_t count, width;
    uint64_t *next;
} Way;

static bool
prepare(Way *w, const LhCall *call, unsigned rows, unsigned sorted)
{
    const LhKernelArgs *a = call->args;
    const uint64_t choices = a->experts.rows * a->experts.choices;

    w->choices = a->experts.choices;
    w->count = a->experts.rows;
    w->width = a->experts.width;
    w->next = call->scratch;
    return is_possible(a) &&
           lh_matrix_flat(&w->rows, call, rows, a->experts.rows, a->experts.width) &&
           lh_matrix_flat(&w->sorted, call, sorted, choices, a->experts.width) &&
           lh_route(&w->route, call, 1, choices) &&
           lh_route_firsts(&w->route, choices, a->experts.experts, w->next);
}

/* Returns the place of choice @choice; call it for all choices in order. */
static uint64_t
next_place(Way *w, uint64_t choice)
{
    return w->next[(uint32_t)lh_matrix_get(&w->route, choice, EXPERT)]++;
}

static uint64_t
block_of(const Way *w, uint64_t first)
{
    return w->width - first < BLOCK ? w->width - first : BLOCK;
}

static void
copy_row(const Way *w, uint64_t row, uint64_t place)
{
    double x[BLOCK];

    for (uint64_t first = 0; first < w->width; first += BLOCK) {
        lh_matrix_load64(&w->rows, row, first, block_of(w, first), x);
        lh_matrix_store64(&w->sorted, place, first, block_of(w, first), x);
    }
}

static enum lh_status
dispatch(const LhCall *call)
{
    Way w;

    if (!prepare(&w, call, 0, 2))
        return LH_STATUS_UNSUPPORTED;
    for (uint64_t i = 0; i < w.count * w.choices; i++)
        copy_row(&w, i / w.choices, next_place(&w, i));
    return LH_STATUS_OK;
}

/*
 * Sets a row to the sum of its copies at @places, each times its weight if @weighed; @adds adds to
 * its contents.
 */
static void
sum_row(const Way *w, uint64_t row, const uint64_t *places, bool weighed, bool adds)
{
    double x[BLOCK], sum[BLOCK];

    for (uint64_t first = 0; first < w->width; first += BLOCK) {
        const uint64_t count = block_of(w, first);

        for (uint64_t i = 0; i < count; i++)
            sum[i] = 0;
        if (adds)
            lh_matrix_load64(&w->rows, row, first, count, sum);
        for (uint32_t j = 0; j < w->choices; j++) {
            const double factor =
                weighed ? lh_matrix_get(&w->route, row * w->choices + j, WEIGHT) : 1;

            lh_matrix_load64(&w->sorted, places[j], first, count, x);
            for (uint64_t i = 0; i < count; i++)
                sum[i] += factor * x[i];
        }
        lh_matrix_store64(&w->rows, row, first, count, sum);
    }
}

static enum lh_status
sum_rows(const LhCall *call, bool weighed, bool adds)
{
    uint64_t *places;
    Way w;

    if (!prepare(&w, call, 2, 0))
        return LH_STATUS_UNSUPPORTED;
    places = w.next + call->args->experts.experts + 1;
    for (uint64_t row = 0; row < w.count; row++) {
        for (uint32_t j = 0; j < w.choices; j++)
            places[j] = next_place(&w, row * w.choices + j);
        sum_row(&w, row, places, weighed, adds);
    }
    return LH_STATUS_OK;
}

static enum lh_status
combine(const LhCall *call)
{
    return sum_rows(call, true, false);
}

static enum lh_status
dispatch_bwd(const LhCall *call)
{
    return sum_rows(call, false, !call->args->first);
}

/*
 * Computes the gradient of the copy at @place from the row's dy; returns the gradient of the copy's
 * weight.
 */
static double
weigh_row_bwd(const Way *w, const LhMatrix *dx, uint64_t choice, uint64_t place)
{
    const double weight = lh_matrix_get(&w->route, choice, WEIGHT);
    double x[BLOCK], dy[BLOCK], dweight = 0;

    for (uint64_t first = 0; first < w->width; first += BLOCK) {
        const uint64_t count = block_of(w, first);

        lh_matrix_load64(&w->rows, choice / w->choices, first, count, dy);
        lh_matrix_load64(&w->sorted, place, first, count, x);
        for (uint64_t i = 0; i < count; i++) {
            dweight += x[i] * dy[i];
            x[i] = weight * dy[i];
        }
        lh_matrix_store64(dx, place, first, count, x);
    }
    return dweight;
}

static enum lh_status
combine_bwd(const LhCall *call)
{
    const LhKernelArgs *a = call->args;
    const uint64_t choices = a->experts.rows * a->experts.choices;
    LhMatrix dx, dweights;
    Way w;

    if (!prepare(&w, call, 2, 0) || !lh_matrix_flat(&dx, call, 3, choices, a->experts.width) ||
        !lh_matrix_flat(&dweights, call, 4, choices, 1))
        return LH_STATUS_UNSUPPORTED;
    for (uint64_t i = 0; i < choices; i++)
        lh_matrix_put(&dweights, i, 0, weigh_row_bwd(&w, &dx, i, next_place(&w, i)));
    return LH_STATUS_OK;
}

/* One number per expert, one more, and one per choice of a row. */
static uint64_t
scratch_bytes(const LhKernelArgs *a)
{
    return ((uint64_t)a->experts.experts + 1 + a->experts.choices) * sizeof(uint64_t);
}

#define EXPERTS(word)                                                                              \
    const LhCpuKernel lh_cpu_kernel_##word = {                                                     \
        .reference = word,                                                                         \
        .fast = word,                                                                              \
        .scratch_bytes = scratch_bytes,                                                            \
    };

EXPERTS(route)
EXPERTS(route_bwd)
EXPERTS(dispatch)
EXPERTS(dispatch_bwd)
EXPERTS(combine)
EXPERTS(combine_bwd)
