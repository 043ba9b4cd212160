/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA versions of kernels/experts.c and kernels/embed.c: converts calls to launcher arguments.
 * Choices of experts that do not exist have no rows.
 */
#include "kernels/cuda/product/experts.h"

#include "kernels/cuda/host_operands.h"
#include "kernels/cuda/product/host_route.h"
#include "kernels/cuda/table.h"
#include "kernels/layer.h"

#define RUNS(word, scratch)                                                                        \
    const LhCudaKernel lh_cuda_kernel_##word = { .run = word, .scratch_bytes = scratch };

/* ---- the choice ---- */

static bool
is_possible(const LhKernelArgs *a)
{
    return a->experts.choices > 0 && a->experts.choices <= a->experts.experts;
}

static uint64_t
choices_of(const LhKernelArgs *a)
{
    return a->experts.rows * a->experts.choices;
}

static bool
find_choice(const LhCall *call, unsigned logits, unsigned route, LhCudaChoice *c)
{
    const LhKernelArgs *a = call->args;

    *c = (LhCudaChoice){ .count = (uint32_t)a->experts.rows,
                         .experts = a->experts.experts,
                         .choices = a->experts.choices };
    return is_possible(a) && choices_of(a) <= LH_CUDA_CHOICES_MAX &&
           lh_cuda_flat_matrix(&c->logits, call, logits, a->experts.rows, a->experts.experts) &&
           lh_cuda_flat_matrix(&c->route, call, route, choices_of(a), LH_ROUTE_NUMBERS);
}

static enum lh_status
route(const LhCall *call, void *stream)
{
    LhCudaChoice c;

    return find_choice(call, 0, 1, &c) ? lh_cuda_choose(&c, stream) : LH_STATUS_UNSUPPORTED;
}

static enum lh_status
route_bwd(const LhCall *call, void *stream)
{
    LhCudaChoice c;

    return find_choice(call, 2, 0, &c) &&
                   lh_cuda_flat_matrix(&c.dweights, call, 1, choices_of(call->args), 1)
               ? lh_cuda_choose_bwd(&c, stream)
               : LH_STATUS_UNSUPPORTED;
}

RUNS(route, NULL)
RUNS(route_bwd, NULL)

/* ---- dispatch and combine ---- */

static LhCudaRouteParams
route_params(const LhKernelArgs *a)
{
    return (LhCudaRouteParams){ .choices = choices_of(a),
                                .experts = a->experts.experts,
                                .places = true };
}

static uint64_t
way_scratch(const LhKernelArgs *a)
{
    const LhCudaRouteParams params = route_params(a);
    LhCudaScratch s = { .base = NULL };
    LhCudaRoute r;

    lh_cuda_take_route(&params, &s, &r);
    return s.used;
}

/* Finds the operands, and enqueues the kernels that compute places. */
static enum lh_status
prepare(const LhCall *call, unsigned rows, unsigned sorted, LhCudaWay *w, void *stream)
{
    const LhKernelArgs *a = call->args;
    const LhCudaRouteParams params = route_params(a);
    LhCudaScratch scratch = { .base = call->scratch };
    enum lh_status status;
    LhCudaRoute r;

    *w = (LhCudaWay){ .count = (uint32_t)a->experts.rows,
                      .choices = a->experts.choices,
                      .width = (uint32_t)a->experts.width };
    if (!is_possible(a) ||
        !lh_cuda_flat_matrix(&w->rows, call, rows, a->experts.rows, a->experts.width) ||
        !lh_cuda_flat_matrix(&w->sorted, call, sorted, choices_of(a), a->experts.width))
        return LH_STATUS_UNSUPPORTED;
    status = lh_cuda_find_route(call, 1, &params, &scratch, &r, stream);
    if (status != LH_STATUS_OK)
        return status;
    w->route = r.route;
    w->places = r.places;
    return LH_STATUS_OK;
}

static enum lh_status
dispatch(const LhCall *call, void *stream)
{
    LhCudaWay w;
    const enum lh_status status = prepare(call, 0, 2, &w, stream);

    return status != LH_STATUS_OK ? status : lh_cuda_dispatch(&w, stream);
}

static enum lh_status
dispatch_bwd(const LhCall *call, void *stream)
{
    LhCudaWay w;
    const enum lh_status status = prepare(call, 2, 0, &w, stream);

    w.adds = !call->args->first;
    return status != LH_STATUS_OK ? status : lh_cuda_collect(&w, stream);
}

static enum lh_status
combine(const LhCall *call, void *stream)
{
    LhCudaWay w;
    const enum lh_status status = prepare(call, 2, 0, &w, stream);

    w.weighed = true;
    return status != LH_STATUS_OK ? status : lh_cuda_collect(&w, stream);
}

static enum lh_status
combine_bwd(const LhCall *call, void *stream)
{
    const LhKernelArgs *a = call->args;
    LhCudaMatrix result, weights;
    enum lh_status status;
    LhCudaWay w;

    if (!lh_cuda_flat_matrix(&result, call, 3, choices_of(a), a->experts.width) ||
        !lh_cuda_flat_matrix(&weights, call, 4, choices_of(a), 1))
        return LH_STATUS_UNSUPPORTED;
    status = prepare(call, 2, 0, &w, stream);
    w.result = result;
    w.weights = weights;
    return status != LH_STATUS_OK ? status : lh_cuda_collect_bwd(&w, stream);
}

RUNS(dispatch, way_scratch)
RUNS(dispatch_bwd, way_scratch)
RUNS(combine, way_scratch)
RUNS(combine_bwd, way_scratch)

/* ---- embeddings ---- */

static bool
find_embedding(const LhCall *call, unsigned table, unsigned rows, LhCudaEmbedding *e)
{
    const LhKernelArgs *a = call->args;

    *e = (LhCudaEmbedding){ .first = a->rows.first,
                            .vocabulary = a->rows.vocabulary,
                            .count = (uint32_t)a->rows.count,
                            .rows_count = (uint32_t)a->rows.rows,
                            .width = (uint32_t)a->rows.width,
                            .starts = a->first };
    return lh_cuda_flat_matrix(&e->tokens, call, 0, a->rows.rows, 1) &&
           lh_cuda_flat_matrix(&e->table, call, table, a->rows.count, a->rows.width) &&
           lh_cuda_flat_matrix(&e->rows, call, rows, a->rows.rows, a->rows.width);
}

static enum lh_status
embed(const LhCall *call, void *stream)
{
    LhCudaEmbedding e;

    return find_embedding(call, 1, 2, &e) ? lh_cuda_embed(&e, stream) : LH_STATUS_UNSUPPORTED;
}

static void
take_embedding(const LhKernelArgs *a, LhCudaScratch *scratch, LhCudaEmbedding *e)
{
    e->order = lh_cuda_take_order(scratch, (uint32_t)a->rows.rows, (uint32_t)a->rows.count);
    e->keys = (uint32_t *)(uintptr_t)e->order.keys;
}

static uint64_t
embed_bwd_scratch(const LhKernelArgs *a)
{
    LhCudaScratch s = { .base = NULL };
    LhCudaEmbedding e;

    take_embedding(a, &s, &e);
    return s.used;
}

static enum lh_status
embed_bwd(const LhCall *call, void *stream)
{
    LhCudaScratch scratch = { .base = call->scratch };
    LhCudaEmbedding e;

    if (!find_embedding(call, 2, 1, &e))
        return LH_STATUS_UNSUPPORTED;
    take_embedding(call->args, &scratch, &e);
    return lh_cuda_embed_bwd(&e, stream);
}

RUNS(embed, NULL)
RUNS(embed_bwd, embed_bwd_scratch)
