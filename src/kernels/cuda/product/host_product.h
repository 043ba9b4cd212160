/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Factors of products that are tensors of attention: for the C files of this folder.
 */
#pragma once

#include "kernels/cuda/host_operands.h"
#include "kernels/cuda/product/product.h"

/* The rows of @rows, of which a product with @heads heads has one matrix each. What has more heads
 * than the product has them one after the other, in repeats; what has fewer shares them. False if
 * device code does not know the element type or so many rows. */
bool lh_cuda_factor_of_rows(LhCudaFactor *f, const LhRows *rows, uint32_t heads);

/* Of fp32 matrices one behind the other, by sequence, head and tile: @rows of @columns each. */
typedef struct {
    unsigned char *data;
    uint32_t rows, columns, tiles, heads;
} LhCudaStack;
LhCudaFactor lh_cuda_factor_of_stack(const LhCudaStack *stack, uint32_t heads);

/* A product whose parts are not cut into tiles; its factors are yet to come. */
LhCudaProduct lh_cuda_product(uint32_t sequences, uint32_t heads, uint64_t rows, uint64_t columns);
