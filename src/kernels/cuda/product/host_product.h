/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors of attention as factors of products, for the C files of this folder.
 */
#pragma once

#include "kernels/cuda/host_operands.h"
#include "kernels/cuda/product/product.h"

/*
 * Sets @f to the tensor @rows in a product with @heads heads, one matrix per head. A tensor with
 * more heads has several per head of the product, as repeats; one with fewer is shared. Returns
 * false if device code does not support the element type or the number of rows.
 */
bool lh_cuda_factor_of_rows(LhCudaFactor *f, const LhRows *rows, uint32_t heads);

/* A factor of consecutive fp32 matrices, by sequence, head and tile: @rows of @columns each. */
typedef struct {
    unsigned char *data;
    uint32_t rows, columns, tiles, heads;
} LhCudaStack;
LhCudaFactor lh_cuda_factor_of_stack(const LhCudaStack *stack, uint32_t heads);

/* Returns a product without tiles; the caller sets its factors. */
LhCudaProduct lh_cuda_product(uint32_t sequences, uint32_t heads, uint64_t rows, uint64_t columns);
