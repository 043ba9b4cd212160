/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batched products of matrices: c = keep c + the sum of one or two terms a b. Tensors of attention
 * have one matrix per sequence and head. Outside attention there is one sequence and head.
 *
 * A product may also be batched over tiles: its rows, columns or depth are then those of a tile,
 * and the operands begin at the tile. Tiles are equal parts of some number of items, or (experts)
 * end at positions in device memory.
 */
#pragma once

#include "kernels/cuda/attention/mask.h"
#include "kernels/cuda/operands.h"
#include "kernels/status.h"

/* A factor, and the offsets of the matrix of a sequence, head, tile and repeat. */
typedef struct {
    LhCudaMatrix matrix;
    uint64_t of_sequence, of_head, of_tile, of_repeat; /* distances in bytes */
    uint32_t share;     /* consecutive heads of the product that share one of the operand */
    uint32_t first;     /* first row, for all tiles */
    uint32_t tile_rows; /* distance of tiles in rows ... */
    bool by_items;      /* ... or in items */
} LhCudaFactor;

/* Weight of row i of a as stored: 2^(by (from + i)), or with `falls`, 2^(by (from - i)). */
typedef struct {
    bool falls;
    int32_t from;
    float by;
} LhCudaWeights;

/* A size; with @tiled, the items of a tile. */
typedef struct {
    uint32_t size;
    bool tiled;
} LhCudaExtent;

/*
 * The sum over `repeats` of a b. Rows of a transposed a are steps of depth; rows of a transposed b
 * are columns of the result.
 */
typedef struct {
    LhCudaFactor a, b;
    LhCudaExtent depth;
    uint32_t repeats;
    bool a_transposed, b_transposed;
    bool weighed;
    LhCudaWeights weights;
} LhCudaTerm;

/*
 * For products that are pairs of queries and keys: masked pairs become 0, the others are multiplied
 * by 2^(decay (i - j)). `row` and `column` are the query and key of the product's first element.
 */
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
    const uint64_t *firsts; /* starts of unequal tiles, then the end of the last; otherwise NULL */
    float keep;             /* 0: c is not read */
    LhCudaPairs pairs;
} LhCudaProduct;

#ifdef __cplusplus
extern "C" {
#endif

enum lh_status lh_cuda_multiply(const LhCudaProduct *p, void *stream);
/*
 * The same with tensor cores, for one term without weights and mask whose factors have this type
 * and are grouped; at most one of them is transposed.
 */
enum lh_status lh_cuda_multiply_bf16(const LhCudaProduct *p, void *stream);
enum lh_status lh_cuda_multiply_fp16(const LhCudaProduct *p, void *stream);

#ifdef __cplusplus
}
#endif
