/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of matrices, many at a time: c = keep c + the sum of one or two terms a b. Attention's
 * tensors are matrices of one sequence and head each. Outside attention there is one of both.
 *
 * What a product has of sequences and heads it may have of tiles, too: its rows, columns or depth
 * are then those of a tile, and operands begin where it does. Tiles are equal parts of some number
 * of items, or (experts) end where the device's memory says.
 */
#pragma once

#include "kernels/cuda/attention/mask.h"
#include "kernels/cuda/operands.h"
#include "kernels/status.h"

/* Where the matrix of a sequence, head, tile and repetition begins. */
typedef struct {
    LhCudaMatrix matrix;
    uint64_t of_sequence, of_head, of_tile, of_repeat; /* bytes from one to the next */
    uint32_t share;     /* heads of the product, of which so many have one of the operand's */
    uint32_t first;     /* row of all tiles */
    uint32_t tile_rows; /* rows from one tile to the next ... */
    bool by_items;      /* ... or as many as tiles have items */
} LhCudaFactor;

/* What row i of a, as it lies in memory, is multiplied by: 2^(by (from + i)), or with `falls`,
 * (from - i). */
typedef struct {
    bool falls;
    int32_t from;
    float by;
} LhCudaWeights;

/* A size, or with @tiled the items of a tile. */
typedef struct {
    uint32_t size;
    bool tiled;
} LhCudaExtent;

/* The sum over `repeats` of a b. Rows of a transposed factor are steps of a, columns of b's result.
 */
typedef struct {
    LhCudaFactor a, b;
    LhCudaExtent depth;
    uint32_t repeats;
    bool a_transposed, b_transposed;
    bool weighed;
    LhCudaWeights weights;
} LhCudaTerm;

/* Of products that are pairs of queries and keys: what the mask hides is 0, and what it does not is
 * multiplied by 2^(decay (i - j)). Row 0 and column 0 of a product are row and column of these. */
typedef struct {
    LhCudaMask mask;
    bool masked;
    uint32_t row, column;
    float decay;
} LhCudaPairs;

#define LH_CUDA_PRODUCT_TERMS 2

typedef struct {
    LhCudaFactor c;
    LhCudaTerm terms[LH_CUDA_PRODUCT_TERMS];
    uint32_t terms_count;
    LhCudaExtent rows, columns;
    uint32_t sequences, heads, tiles;
    uint32_t items, tile_items;
    const uint64_t
        *firsts; /* of tiles that are not equal, and where the last one ends; else NULL */
    float keep;  /* 0: c is not read */
    LhCudaPairs pairs;
} LhCudaProduct;

#ifdef __cplusplus
extern "C" {
#endif

enum lh_status lh_cuda_multiply(const LhCudaProduct *p, void *stream);
/* The same by tensor cores, of one term without weights and mask, whose factors are both of this
 * type and lie in groups; not both of them are transposed. */
enum lh_status lh_cuda_multiply_bf16(const LhCudaProduct *p, void *stream);
enum lh_status lh_cuda_multiply_fp16(const LhCudaProduct *p, void *stream);

#ifdef __cplusplus
}
#endif
