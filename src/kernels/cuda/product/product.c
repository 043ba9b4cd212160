/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA versions of kernels/product.c: converts calls to launcher arguments. Experts are tiles of
 * one product; route gives the rows of each.
 */
#include "kernels/cuda/product/product.h"

#include "kernels/cuda/host_operands.h"
#include "kernels/cuda/product/host_route.h"
#include "kernels/cuda/table.h"
#include "kernels/layer.h"

#define ROUTE 3 /* operand of experts' products that maps rows to experts */

/* Role of an operand: x, w or y of the forward product. */
typedef enum { OF_X, OF_W, OF_Y } Role;

static const Role roles[][3] = {
    [LH_PRODUCT_Y] = { OF_X, OF_W, OF_Y },
    [LH_PRODUCT_DX] = { OF_Y, OF_W, OF_X },
    [LH_PRODUCT_DW] = { OF_X, OF_Y, OF_W },
};

/* Segments of y; the operand by heads has as many. */
static uint64_t
segments_of(const LhCall *call, LhProductResult result)
{
    const unsigned y = result == LH_PRODUCT_Y ? 2 : result == LH_PRODUCT_DX ? 0 : 1;
    const uint32_t parts = call->operands[y].parts;
    const uint32_t members = call->args->product.layout.members;

    return members > 0 && parts % members == 0 ? parts / members : 0;
}

static bool
find_factor(LhCudaFactor *f, const LhCall *call, const LhKernel *kernel, unsigned operand)
{
    const LhKernelArgs *a = call->args;
    const Role role = roles[kernel->product][operand];
    const LhByHeads heads = { a->product.layout, segments_of(call, kernel->product), 1, 0 };
    const uint64_t rows = role == OF_W ? lh_product_matrices(a) * a->product.k : a->product.m;
    const uint64_t width = role == OF_X ? a->product.k : a->product.n;
    LhMatrix m;

    *f =
        (LhCudaFactor){ .share = 1, .tile_rows = (uint32_t)a->product.k, .by_items = role != OF_W };
    if (call->operands[operand].storage == LH_STORAGE_FP64)
        return false;
    return (lh_product_is_by_heads(kernel) && role == OF_X
                ? lh_matrix_by_heads(&m, call, operand, &heads, rows, width)
                : lh_matrix_flat(&m, call, operand, rows, width)) &&
           lh_cuda_matrix(&f->matrix, &m, rows);
}

static LhCudaRouteParams
route_params(const LhKernelArgs *a)
{
    return (LhCudaRouteParams){ .choices = a->product.m,
                                .experts = (uint32_t)lh_product_matrices(a),
                                .firsts = true };
}

static uint64_t
expert_scratch(const LhKernelArgs *a)
{
    const LhCudaRouteParams params = route_params(a);
    LhCudaScratch s = { .base = NULL };
    LhCudaRoute r;

    lh_cuda_take_route(&params, &s, &r);
    return s.used;
}

static void
shape(LhCudaProduct *p, const LhKernelArgs *a, LhProductResult result)
{
    const LhCudaExtent m = { (uint32_t)a->product.m, true };
    const LhCudaExtent k = { (uint32_t)a->product.k, false };
    const LhCudaExtent n = { (uint32_t)a->product.n, false };

    p->rows = result == LH_PRODUCT_DW ? k : m;
    p->columns = result == LH_PRODUCT_DX ? k : n;
    p->terms[0].depth = result == LH_PRODUCT_Y ? k : result == LH_PRODUCT_DX ? n : m;
    p->terms[0].a_transposed = result == LH_PRODUCT_DW;
    p->terms[0].b_transposed = result == LH_PRODUCT_DX;
}

static enum lh_status
multiply(const LhCall *call, const LhKernel *kernel, void *stream)
{
    const LhKernelArgs *a = call->args;
    const LhCudaRouteParams params = route_params(a);
    LhCudaScratch scratch = { .base = call->scratch };
    LhCudaProduct p = { .terms_count = 1,
                        .terms[0].repeats = 1,
                        .sequences = 1,
                        .heads = 1,
                        .tiles = (uint32_t)lh_product_matrices(a),
                        .items = (uint32_t)a->product.m,
                        .tile_items = (uint32_t)a->product.m,
                        .keep = kernel->product != LH_PRODUCT_Y && !a->first ? 1 : 0 };

    if ((!lh_product_is_of_experts(kernel) && p.tiles > 1) ||
        !find_factor(&p.terms[0].a, call, kernel, 0) ||
        !find_factor(&p.terms[0].b, call, kernel, 1) || !find_factor(&p.c, call, kernel, 2))
        return LH_STATUS_UNSUPPORTED;
    shape(&p, a, kernel->product);
    if (lh_product_is_of_experts(kernel)) {
        LhCudaRoute route;
        const enum lh_status status =
            lh_cuda_find_route(call, ROUTE, &params, &scratch, &route, stream);

        if (status != LH_STATUS_OK)
            return status;
        p.firsts = route.firsts;
    }
    return lh_cuda_multiply(&p, stream);
}

#define PRODUCT(word, scratch)                                                                     \
    extern const LhKernel lh_kernel_##word;                                                        \
    static enum lh_status word(const LhCall *call, void *stream)                                   \
    {                                                                                              \
        return multiply(call, &lh_kernel_##word, stream);                                          \
    }                                                                                              \
    const LhCudaKernel lh_cuda_kernel_##word = { .run = word, .scratch_bytes = scratch };

PRODUCT(product, NULL)
PRODUCT(product_dgrad, NULL)
PRODUCT(product_wgrad, NULL)
PRODUCT(out_product, NULL)
PRODUCT(out_product_dgrad, NULL)
PRODUCT(out_product_wgrad, NULL)
PRODUCT(expert_product, expert_scratch)
PRODUCT(expert_product_dgrad, expert_scratch)
PRODUCT(expert_product_wgrad, expert_scratch)
