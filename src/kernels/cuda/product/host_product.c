/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cuda/product/host_product.h"

static void
share_heads(LhCudaFactor *f, uint64_t of_head, uint32_t own, uint32_t heads)
{
    f->share = own < heads ? heads / own : 1;
    f->of_head = own > heads ? own / heads * of_head : of_head;
    f->of_repeat = own > heads ? of_head : 0;
}

bool
lh_cuda_factor_of_rows(LhCudaFactor *f, const LhRows *rows, uint32_t heads)
{
    LhCudaOffsets offsets;

    *f = (LhCudaFactor){ .share = 1 };
    if (rows->storage == LH_STORAGE_FP64 || !lh_cuda_matrix_of_rows(&f->matrix, rows, &offsets))
        return false;
    f->of_sequence = offsets.sequence;
    share_heads(f, offsets.head, rows->heads, heads);
    return true;
}

LhCudaFactor
lh_cuda_factor_of_stack(const LhCudaStack *stack, uint32_t heads)
{
    const uint64_t tile = (uint64_t)stack->rows * stack->columns * sizeof(float);
    const LhRows rows = { .data = stack->data,
                          .part_rows = stack->rows,
                          .heads = 1,
                          .dim = stack->columns,
                          .storage = LH_STORAGE_FP32 };
    LhCudaFactor f = { .of_tile = tile, .of_sequence = stack->heads * stack->tiles * tile };
    LhCudaOffsets offsets;

    lh_cuda_matrix_of_rows(&f.matrix, &rows, &offsets);
    share_heads(&f, stack->tiles * tile, stack->heads, heads);
    return f;
}

LhCudaProduct
lh_cuda_product(uint32_t sequences, uint32_t heads, uint64_t rows, uint64_t columns)
{
    return (LhCudaProduct){ .terms_count = 1,
                            .terms = { { .repeats = 1 }, { .repeats = 1 } },
                            .rows = { (uint32_t)rows, false },
                            .columns = { (uint32_t)columns, false },
                            .sequences = sequences,
                            .heads = heads,
                            .tiles = 1 };
}
