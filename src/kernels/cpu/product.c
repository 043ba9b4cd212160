/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU versions of kernels/product.c. All are one matrix product with different operands as factors.
 * Experts are consecutive products, each of the expert's rows.
 */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/experts.h"
#include "kernels/cpu/kernels.h"
#include "kernels/layer.h"

#define ROUTE 3 /* operand of experts' products that maps rows to experts */

/*
 * Shape of an operand: rows and columns over all experts, and which factor it is. With attention's
 * output, x is by heads.
 */
typedef struct {
    uint64_t rows, width;
    bool is_x, is_w;
} Shape;

static void
describe(const LhKernelArgs *a, LhProductResult result, Shape shapes[3])
{
    const Shape x = { .rows = a->product.m, .width = a->product.k, .is_x = true };
    const Shape w = { .rows = lh_product_matrices(a) * a->product.k,
                      .width = a->product.n,
                      .is_w = true };
    const Shape y = { .rows = a->product.m, .width = a->product.n };

    shapes[0] = result == LH_PRODUCT_DX ? y : x;
    shapes[1] = result == LH_PRODUCT_DW ? y : w;
    shapes[2] = result == LH_PRODUCT_Y ? y : result == LH_PRODUCT_DX ? x : w;
}

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
prepare(const LhCall *call, const LhKernel *kernel, LhMatrix operands[3], Shape shapes[3])
{
    const LhKernelArgs *a = call->args;
    const uint64_t experts = lh_product_matrices(a);
    const bool by_heads = lh_product_is_by_heads(kernel);
    const LhByHeads heads = { a->product.layout, segments_of(call, kernel->product), 1, 0 };

    if (!lh_product_is_of_experts(kernel) && experts > 1)
        return false;
    describe(a, kernel->product, shapes);
    for (unsigned i = 0; i < 3; i++) {
        const Shape *s = &shapes[i];

        if (!(by_heads && s->is_x
                  ? lh_matrix_by_heads(&operands[i], call, i, &heads, s->rows, s->width)
                  : lh_matrix_flat(&operands[i], call, i, s->rows, s->width)))
            return false;
    }
    return true;
}

/* Finds the first row of each expert and, last, the number of rows. */
static bool
find_firsts(const LhCall *call, const LhKernel *kernel, uint64_t *firsts)
{
    const uint64_t m = call->args->product.m, experts = lh_product_matrices(call->args);
    LhMatrix route;

    if (lh_product_is_of_experts(kernel))
        return lh_route(&route, call, ROUTE, m) &&
               lh_route_firsts(&route, m, (uint32_t)experts, firsts);
    firsts[0] = 0;
    firsts[1] = m;
    return true;
}

/* Rounded up to whole scratch lines. */
static uint64_t
firsts_bytes(const LhKernelArgs *a)
{
    const uint64_t bytes = (lh_product_matrices(a) + 1) * sizeof(uint64_t);

    return (bytes + LH_SCRATCH_ALIGN - 1) / LH_SCRATCH_ALIGN * LH_SCRATCH_ALIGN;
}

/*
 * Points the product at the rows of an expert, from its entry of @firsts to the next. Returns their
 * number.
 */
static uint64_t
place_expert(LhGemm *g, const LhKernelArgs *a, LhProductResult result, const Shape shapes[3],
             const uint64_t *firsts, uint64_t expert)
{
    const uint64_t w = expert * a->product.k, first = firsts[expert];
    const uint64_t rows = firsts[expert + 1] - first;

    g->a_row = shapes[0].is_w ? w : first;
    g->b_row = shapes[1].is_w ? w : first;
    g->c_row = shapes[2].is_w ? w : first;
    *(result == LH_PRODUCT_DW ? &g->depth : &g->rows) = rows;
    return rows;
}

static enum lh_status
multiply(const LhCall *call, const LhKernel *kernel, void (*gemm)(const LhGemm *g))
{
    const LhProductShape shape = lh_product_shape(kernel, call->args);
    LhMatrix operands[3];
    Shape shapes[3];
    LhGemm g = { .a = &operands[0],
                 .b = &operands[1],
                 .c = &operands[2],
                 .rows = shape.rows,
                 .columns = shape.columns,
                 .depth = shape.depth,
                 .a_transposed = kernel->product == LH_PRODUCT_DW,
                 .b_transposed = kernel->product == LH_PRODUCT_DX,
                 .add = kernel->product != LH_PRODUCT_Y && !call->args->first,
                 .scratch = (unsigned char *)call->scratch + firsts_bytes(call->args) };
    uint64_t *firsts = call->scratch;

    if (!prepare(call, kernel, operands, shapes) || !find_firsts(call, kernel, firsts))
        return LH_STATUS_UNSUPPORTED;
    for (uint64_t e = 0; e < shape.matrices; e++) {
        const uint64_t rows = place_expert(&g, call->args, kernel->product, shapes, firsts, e);

        /* A sum of no rows is 0. */
        (rows == 0 ? lh_gemm_reference : gemm)(&g);
    }
    return LH_STATUS_OK;
}

static uint64_t
scratch_bytes(const LhKernelArgs *a, const LhKernel *kernel)
{
    LhKernelArgs alone = *a; /* one expert may have all rows */
    LhProductShape shape;

    alone.product.experts = 1;
    shape = lh_product_shape(kernel, &alone);
    return firsts_bytes(a) + lh_gemm_scratch_bytes(shape.rows, shape.columns, shape.depth);
}

#define PRODUCT(word)                                                                              \
    extern const LhKernel lh_kernel_##word;                                                        \
    static enum lh_status word##_reference(const LhCall *call)                                     \
    {                                                                                              \
        return multiply(call, &lh_kernel_##word, lh_gemm_reference);                               \
    }                                                                                              \
    static enum lh_status word##_fast(const LhCall *call)                                          \
    {                                                                                              \
        return multiply(call, &lh_kernel_##word, lh_cpu()->gemm);                                  \
    }                                                                                              \
    static uint64_t word##_scratch(const LhKernelArgs *a)                                          \
    {                                                                                              \
        return scratch_bytes(a, &lh_kernel_##word);                                                \
    }                                                                                              \
    const LhCpuKernel lh_cpu_kernel_##word = {                                                     \
        .reference = word##_reference,                                                             \
        .fast = word##_fast,                                                                       \
        .scratch_bytes = word##_scratch,                                                           \
    };

PRODUCT(product)
PRODUCT(product_dgrad)
PRODUCT(product_wgrad)
PRODUCT(out_product)
PRODUCT(out_product_dgrad)
PRODUCT(out_product_wgrad)
PRODUCT(expert_product)
PRODUCT(expert_product_dgrad)
PRODUCT(expert_product_wgrad)
