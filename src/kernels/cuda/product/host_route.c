/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cuda/product/host_route.h"

#include "kernels/cuda/host_operands.h"
#include "kernels/layer.h"

LhCudaSort
lh_cuda_take_order(LhCudaScratch *s, uint32_t count, uint32_t most)
{
    const uint64_t chunks = ((uint64_t)count + LH_CUDA_SORT_CHUNK - 1) / LH_CUDA_SORT_CHUNK;
    const uint64_t bytes = count * sizeof(uint32_t);
    LhCudaSort o = { .count = count, .most = most };

    o.keys = lh_cuda_take(s, bytes);
    o.order = lh_cuda_take(s, bytes);
    o.spare = lh_cuda_take(s, bytes);
    o.ranks = lh_cuda_take(s, bytes);
    o.counts = lh_cuda_take(s, (chunks + 1) * LH_CUDA_SORT_BINS * sizeof(uint32_t));
    return o;
}

void
lh_cuda_take_route(const LhCudaRouteParams *params, LhCudaScratch *scratch, LhCudaRoute *route)
{
    *route = (LhCudaRoute){ .experts = params->experts };
    route->order = lh_cuda_take_order(scratch, (uint32_t)params->choices, params->experts);
    route->keys = (uint32_t *)(uintptr_t)route->order.keys;
    if (params->places)
        route->places = lh_cuda_take(scratch, params->choices * sizeof(uint32_t));
    if (params->firsts)
        route->firsts = lh_cuda_take(scratch, (params->experts + UINT64_C(1)) * sizeof(uint64_t));
}

enum lh_status
lh_cuda_find_route(const LhCall *call, unsigned operand, const LhCudaRouteParams *params,
                   LhCudaScratch *scratch, LhCudaRoute *route, void *stream)
{
    LhCudaMatrix matrix;

    if (params->choices > LH_CUDA_CHOICES_MAX ||
        !lh_cuda_flat_matrix(&matrix, call, operand, params->choices, LH_ROUTE_NUMBERS))
        return LH_STATUS_UNSUPPORTED;
    lh_cuda_take_route(params, scratch, route);
    route->route = matrix;
    return lh_cuda_route(route, stream);
}
