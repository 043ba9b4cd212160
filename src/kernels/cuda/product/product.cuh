/* SPDX-License-Identifier: Apache-2.0 */
// Common code of both product kernels: the tile of the product that a block computes, and the
// position of its factors.
#pragma once

#include "kernels/cuda/attention/mask.cuh"
#include "kernels/cuda/matrix.cuh"
#include "kernels/cuda/product/product.h"

namespace lh
{

// Work of a block: a tile of the result of one product.
struct Work {
    uint32_t sequence, head, tile;
    uint32_t first_item, items; // of the tile
    uint32_t row, column;       // first ones of the result
    uint32_t rows, columns;     // of the whole product
};

__device__ inline uint32_t
extent(const LhCudaExtent &e, const Work &w)
{
    return e.tiled ? w.items : e.size;
}

__device__ inline void
find_items(const LhCudaProduct &p, Work &w)
{
    if (p.firsts != nullptr) {
        w.first_item = static_cast<uint32_t>(p.firsts[w.tile]);
        w.items = static_cast<uint32_t>(p.firsts[w.tile + 1]) - w.first_item;
    } else {
        w.first_item = w.tile * p.tile_items;
        w.items = min(p.tile_items, p.items - w.first_item);
    }
}

// Finds the work of a block when tiles are unequal: their blocks of rows are consecutive, tile by
// tile. Returns false beyond the last.
__device__ inline bool
find_uneven_rows(const LhCudaProduct &p, uint32_t block, uint32_t size, Work &w)
{
    for (w.tile = 0; w.tile < p.tiles; w.tile++) {
        find_items(p, w);
        const uint32_t blocks = (w.items + size - 1) / size;

        if (block < blocks) {
            w.row = block * size;
            return true;
        }
        block -= blocks;
    }
    return false;
}

// Returns the blocks along @e in each head, or in each tile.
__host__ __device__ inline uint32_t
blocks_of(const LhCudaExtent &e, const LhCudaProduct &p, uint32_t size)
{
    const uint32_t most = e.tiled ? (p.firsts != nullptr ? p.items : p.tile_items) : e.size;

    return (most + size - 1) / size;
}

__host__ __device__ inline bool
has_uneven_rows(const LhCudaProduct &p)
{
    return p.rows.tiled && p.firsts != nullptr;
}

// Row blocks count fastest: consecutive ones share the columns of b.
__host__ __device__ inline uint32_t
row_blocks_of(const LhCudaProduct &p, uint32_t size)
{
    return blocks_of(p.rows, p, size) + (has_uneven_rows(p) ? p.tiles : 0);
}

__device__ inline bool
find_work(const LhCudaProduct &p, uint32_t block, uint32_t rows, uint32_t columns, Work &w)
{
    const uint32_t row_blocks = row_blocks_of(p, rows);
    const uint32_t column_blocks = blocks_of(p.columns, p, columns);
    uint32_t product = block / row_blocks / column_blocks;
    bool found = true;

    w.row = block % row_blocks * rows;
    w.column = block / row_blocks % column_blocks * columns;
    if (has_uneven_rows(p)) {
        found = find_uneven_rows(p, block % row_blocks, rows, w);
    } else {
        w.tile = product % p.tiles;
        product /= p.tiles;
        find_items(p, w);
    }
    w.head = product % p.heads;
    w.sequence = product / p.heads;
    w.rows = extent(p.rows, w);
    w.columns = extent(p.columns, w);
    return found && w.row < w.rows && w.column < w.columns;
}

// Byte offset and first row of a factor in a block's product.
__device__ inline uint64_t
offset_of(const LhCudaFactor &f, const Work &w)
{
    return w.sequence * f.of_sequence + w.head / f.share * f.of_head + w.tile * f.of_tile;
}

__device__ inline uint32_t
first_row_of(const LhCudaFactor &f, const Work &w)
{
    return f.first + (f.by_items ? w.first_item : w.tile * f.tile_rows);
}

// Position in the steps of depth of all terms and repeats.
struct Steps {
    uint32_t term, repeat, step;
};

__device__ inline bool
is_over(const LhCudaProduct &p, const Steps &s)
{
    return s.term >= p.terms_count;
}

// Moves to the next term that has steps.
__device__ inline void
skip_empty(const LhCudaProduct &p, const Work &w, Steps &s)
{
    while (s.term < p.terms_count && extent(p.terms[s.term].depth, w) == 0)
        s.term++;
}

__device__ inline Steps
begin(const LhCudaProduct &p, const Work &w)
{
    Steps s = { 0, 0, 0 };

    skip_empty(p, w, s);
    return s;
}

template <uint32_t STRIDE>
__device__ inline void
go_on(const LhCudaProduct &p, const Work &w, Steps &s)
{
    s.step += STRIDE;
    if (s.step < extent(p.terms[s.term].depth, w))
        return;
    s.step = 0;
    if (++s.repeat < p.terms[s.term].repeats)
        return;
    s.repeat = 0;
    s.term++;
    skip_empty(p, w, s);
}

// Returns the keys that a row of pairs sees.
__device__ inline Interval
seen_by(const LhCudaPairs &pairs, uint32_t row)
{
    return keys_of(pairs.mask, place_of(pairs.mask.q, pairs.row + row));
}

// Applies the mask and the decay to a pair.
__device__ inline float
weigh_pair(const LhCudaPairs &pairs, const Interval &seen, uint32_t row, uint32_t column, float x)
{
    const int32_t place = place_of(pairs.mask.k, pairs.column + column);
    const int32_t distance =
        static_cast<int32_t>(pairs.row + row) - static_cast<int32_t>(pairs.column + column);

    if (place < seen.first || place > seen.last)
        return 0.F;
    return pairs.decay == 0.F ? x : x * exp2f(pairs.decay * static_cast<float>(distance));
}

// Stores a group of a row of the result, as far as it exists. Adjacent groups of a warp's lanes
// fill whole sectors, whatever the type.
__device__ inline void
store(const LhCudaProduct &p, const Work &w, uint32_t row, uint32_t column, float (&x)[FP32_GROUP])
{
    LhCudaMatrix c = p.c.matrix;
    const uint32_t place = first_row_of(p.c, w) + row;

    if (row >= w.rows || column >= w.columns)
        return;
    const int count = count_at<FP32_GROUP>(column, w.columns);

    c.data += offset_of(p.c, w);
    if (p.keep != 0.F) {
        float before[FP32_GROUP];

        get_columns(c, place, column, count, before);
#pragma unroll
        for (int i = 0; i < FP32_GROUP; i++)
            x[i] = fmaf(p.keep, before[i], x[i]);
    }
    put_columns(c, place, column, count, x);
}

} // namespace lh
