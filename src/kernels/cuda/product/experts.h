/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dispatch of rows to experts, combine, and tables of rows, which are indexed by a sorted order.
 */
#pragma once

#include "kernels/cuda/operands.h"
#include "kernels/cuda/product/sort.h"

/*
 * Results computed from route: the order of choices by expert, and from it the place of each
 * choice.
 */
typedef struct {
    LhCudaMatrix route; /* an expert and a weight per choice */
    LhCudaSort order;
    uint32_t *keys;   /* of the order: the expert of each choice */
    uint32_t *places; /* of each choice; NULL: not needed */
    uint64_t *firsts; /* first row of each expert, then the end; NULL: not needed */
    uint32_t experts;
} LhCudaRoute;

typedef struct {
    LhCudaMatrix rows, sorted, route, result, weights; /* result: gradients of sorted rows */
    const uint32_t *places;
    uint32_t count, choices, width;
    bool weighed, adds;
} LhCudaWay;

typedef struct {
    LhCudaMatrix logits, route, dweights;
    uint32_t count, experts, choices;
} LhCudaChoice;

typedef struct {
    LhCudaMatrix tokens, table, rows;
    LhCudaSort order; /* of the gradient: rows by token */
    uint32_t *keys;
    uint64_t first, vocabulary;
    uint32_t count, rows_count, width;
    bool starts;
} LhCudaEmbedding;

#ifdef __cplusplus
extern "C" {
#endif

enum lh_status lh_cuda_route(const LhCudaRoute *r, void *stream);
enum lh_status lh_cuda_dispatch(const LhCudaWay *w, void *stream);
/* rows = the sum of their copies, weighted or not. */
enum lh_status lh_cuda_collect(const LhCudaWay *w, void *stream);
enum lh_status lh_cuda_collect_bwd(const LhCudaWay *w, void *stream);
enum lh_status lh_cuda_choose(const LhCudaChoice *c, void *stream);
enum lh_status lh_cuda_choose_bwd(const LhCudaChoice *c, void *stream);
enum lh_status lh_cuda_embed(const LhCudaEmbedding *e, void *stream);
enum lh_status lh_cuda_embed_bwd(const LhCudaEmbedding *e, void *stream);

#ifdef __cplusplus
}
#endif
