/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the products of experts and the rows around them make of `route`.
 */
#pragma once

#include "kernels/cuda/product/experts.h"
#include "kernels/cuda/scratch.h"

/* Choices of a call: grids have no more blocks. */
#define LH_CUDA_CHOICES_MAX ((UINT64_C(1) << 31) - 1)

/* Memory for the order of @count numbers up to @most. */
LhCudaSort lh_cuda_take_order(LhCudaScratch *s, uint32_t count, uint32_t most);

/* Enqueues what finds the firsts of experts, and with @places the place of each choice, in
 * @scratch. */
typedef struct {
    uint64_t choices;
    uint32_t experts;
    bool places, firsts;
} LhCudaRouteParams;
enum lh_status lh_cuda_find_route(const LhCall *call, unsigned operand,
                                  const LhCudaRouteParams *params, LhCudaScratch *scratch,
                                  LhCudaRoute *route, void *stream);

/* Counts what that takes. */
void lh_cuda_take_route(const LhCudaRouteParams *params, LhCudaScratch *scratch,
                        LhCudaRoute *route);
