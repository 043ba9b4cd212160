/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order and places of rows, computed from `route` for the products of experts and for dispatch and
 * combine.
 */
#pragma once

#include "kernels/cuda/product/experts.h"
#include "kernels/cuda/scratch.h"

/* Maximum number of choices of a call, the limit of a grid's blocks. */
#define LH_CUDA_CHOICES_MAX ((UINT64_C(1) << 31) - 1)

/* Allocates memory for the order of @count numbers up to @most. */
LhCudaSort lh_cuda_take_order(LhCudaScratch *s, uint32_t count, uint32_t most);

/*
 * Enqueues the kernels that compute, in @scratch, the first row of each expert (@firsts) and the
 * place of each choice (@places).
 */
typedef struct {
    uint64_t choices;
    uint32_t experts;
    bool places, firsts;
} LhCudaRouteParams;
enum lh_status lh_cuda_find_route(const LhCall *call, unsigned operand,
                                  const LhCudaRouteParams *params, LhCudaScratch *scratch,
                                  LhCudaRoute *route, void *stream);

/* Counts the scratch memory of lh_cuda_find_route(). */
void lh_cuda_take_route(const LhCudaRouteParams *params, LhCudaScratch *scratch,
                        LhCudaRoute *route);
