/* SPDX-License-Identifier: Apache-2.0 */
// Products of 16-bit matrices with tensor cores (mma.sync, sm_80 and up), summed in fp32. A block
// of 4 warps has 128 x 64 of the result, a warp 64 x 32 of it. Stages of 32 steps of depth are
// copied to shared memory two stages ahead.
//
// A factor's tile keeps the layout of its rows, in chunks of 16 bytes. If rows are lanes with 32
// steps each, chunk c of row r is at c ^ (r / 2 & 3); if rows are steps with all lanes each, at c ^
// (r & 7). The 8 rows of a loaded matrix are then in different banks.
#pragma once

#include "kernels/cuda/product/product.cuh"
#include "kernels/cuda/ptx.cuh"

namespace lh
{

constexpr uint32_t THREADS = 128, STAGES = 3, STEPS = 32, CHUNK = 16;
constexpr uint32_t ROWS = 128, COLUMNS = 64;          // of a block
constexpr uint32_t WARP_ROWS = 64, WARP_COLUMNS = 32; // of a warp
constexpr uint32_t ROW_TILES = WARP_ROWS / 16, COLUMN_TILES = WARP_COLUMNS / 8;
constexpr uint32_t A_BYTES = ROWS * STEPS * 2, B_BYTES = COLUMNS * STEPS * 2;

// Copies the first @bytes of a chunk; the others become 0.
__device__ inline void
copy_chunk(uint32_t to, const void *from, uint32_t bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from), "r"(bytes)
                 : "memory");
}

template <bool OF_STEPS, uint32_t LANES>
__device__ inline uint32_t
chunk_at(uint32_t row, uint32_t chunk)
{
    if (OF_STEPS)
        return row * LANES * 2 + ((chunk ^ (row & 7)) * CHUNK);
    return row * STEPS * 2 + ((chunk ^ (row / 2 & 3)) * CHUNK);
}

// A factor for a block: lanes are rows of a, or columns of b.
template <bool OF_STEPS, uint32_t LANES> struct Source {
    static constexpr uint32_t CHUNKS = (OF_STEPS ? LANES : STEPS) / GROUP; // of a row
    static constexpr uint32_t SHARE = LANES * STEPS / GROUP / THREADS;     // of a thread

    const LhCudaFactor &factor;
    unsigned char *data;
    uint32_t first_row, lane, lanes, depth;
    int64_t offsets[OF_STEPS ? 1 : SHARE]; // of rows; constant if rows are lanes

    __device__
    Source(const LhCudaFactor &f, const Work &w, uint32_t lane, uint32_t lanes, uint32_t depth)
        : factor(f), data(f.matrix.data + offset_of(f, w)), first_row(first_row_of(f, w)),
          lane(lane), lanes(lanes), depth(depth)
    {
#pragma unroll
        for (uint32_t i = 0; i < (OF_STEPS ? 1 : SHARE); i++)
            offsets[i] = OF_STEPS ? 0 : row_offset(f.matrix, min(row_of(i), last_row()));
    }

    __device__ uint32_t
    row_of(uint32_t i) const
    {
        return first_row + (OF_STEPS ? 0 : lane) + (threadIdx.x + i * THREADS) / CHUNKS;
    }

    __device__ uint32_t
    last_row() const
    {
        return first_row + lanes - 1;
    }

    // Copies the tile at @step to @stage.
    __device__ void
    copy(uint32_t stage, uint32_t repeat, uint32_t step) const
    {
        const unsigned char *from = data + repeat * factor.of_repeat;
        const uint32_t rows = OF_STEPS ? depth : lanes, columns = OF_STEPS ? lanes : depth;

#pragma unroll
        for (uint32_t i = 0; i < SHARE; i++) {
            const uint32_t index = threadIdx.x + i * THREADS;
            const uint32_t row = index / CHUNKS, chunk = index % CHUNKS;
            const uint32_t at = row + (OF_STEPS ? step : lane);
            const uint32_t column = chunk * GROUP + (OF_STEPS ? lane : step);
            const bool there = at < rows && column < columns;
            const uint32_t bytes = there ? 2 * min(columns - column, GROUP) : 0;
            const int64_t offset =
                OF_STEPS ? row_offset(factor.matrix, first_row + (there ? at : 0)) : offsets[i];
            const uint32_t place = there ? column : 0;
            const uint32_t slice = divide(place, factor.matrix.column);

            copy_chunk(stage + chunk_at<OF_STEPS, LANES>(row, chunk),
                       from + offset + slice * factor.matrix.column.stride +
                           2 * (place - slice * factor.matrix.column.size),
                       bytes);
        }
    }
};

// Loads the 16 x 16 of a at row @lane and step @step of a stage.
template <bool OF_STEPS>
__device__ inline void
load_a(uint32_t stage, uint32_t row, uint32_t step, uint32_t (&x)[4])
{
    const uint32_t lane = threadIdx.x % WARP;

    if (OF_STEPS)
        load_matrices_transposed(x, stage + chunk_at<true, ROWS>(step + lane / 16 * 8 + lane % 8,
                                                                 row / 8 + lane / 8 % 2));
    else
        load_matrices(x, stage + chunk_at<false, ROWS>(row + lane % 16, step / 8 + lane / 16));
}

// Loads the 16 x 16 of b at step @step and column @column: two words for its first 8 columns, two
// for the others.
template <bool OF_STEPS>
__device__ inline void
load_b(uint32_t stage, uint32_t column, uint32_t step, uint32_t (&x)[4])
{
    const uint32_t lane = threadIdx.x % WARP;

    if (OF_STEPS)
        load_matrices_transposed(
            x, stage + chunk_at<true, COLUMNS>(step + lane % 16, column / 8 + lane / 16));
    else
        load_matrices(x, stage + chunk_at<false, COLUMNS>(column + lane / 16 * 8 + lane % 8,
                                                          step / 8 + lane / 8 % 2));
}

template <typename T, bool A_OF_STEPS, bool B_OF_STEPS>
__device__ inline void
multiply_stage(uint32_t stage, uint32_t row, uint32_t column,
               float (&sums)[ROW_TILES][COLUMN_TILES][4])
{
#pragma unroll
    for (uint32_t step = 0; step < STEPS; step += 16) {
        uint32_t a[ROW_TILES][4], b[COLUMN_TILES / 2][4];

#pragma unroll
        for (uint32_t i = 0; i < ROW_TILES; i++)
            load_a<A_OF_STEPS>(stage, row + 16 * i, step, a[i]);
#pragma unroll
        for (uint32_t j = 0; j < COLUMN_TILES / 2; j++)
            load_b<B_OF_STEPS>(stage + A_BYTES, column + 16 * j, step, b[j]);
#pragma unroll
        for (uint32_t i = 0; i < ROW_TILES; i++)
#pragma unroll
            for (uint32_t j = 0; j < COLUMN_TILES; j++)
                multiply<T>(sums[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
}

// Stores a row. A thread has two numbers in either of two tiles of 8 columns; it exchanges one pair
// with its neighbour and then has a group of one tile. Even threads get the first tile.
__device__ inline void
store_row(const LhCudaProduct &p, const Work &w, uint32_t row, uint32_t column,
          const float (&sums)[COLUMN_TILES][4], uint32_t half)
{
    const uint32_t lane = threadIdx.x % WARP;
    const bool odd = lane % 2 != 0;

#pragma unroll
    for (uint32_t j = 0; j < COLUMN_TILES; j += 2) {
        const float *first = &sums[j][2 * half], *second = &sums[j + 1][2 * half];
        const float low = __shfl_xor_sync(ALL_LANES, odd ? first[0] : second[0], 1);
        const float high = __shfl_xor_sync(ALL_LANES, odd ? first[1] : second[1], 1);
        float x[FP32_GROUP] = { odd ? low : first[0], odd ? high : first[1], odd ? second[0] : low,
                                odd ? second[1] : high };

        store(p, w, row, column + 8 * (j + (odd ? 1 : 0)) + lane % 4 / 2 * FP32_GROUP, x);
    }
}

template <typename T, bool A_OF_STEPS, bool B_OF_STEPS>
__global__ void
__launch_bounds__(THREADS, 3) product(const __grid_constant__ LhCudaProduct p)
{
    __shared__ __align__(128) unsigned char memory[STAGES * (A_BYTES + B_BYTES)];
    const uint32_t stages = shared_address(memory), lane = threadIdx.x % WARP;
    const uint32_t warp = threadIdx.x / WARP, across = COLUMNS / WARP_COLUMNS;
    const uint32_t row = warp / across * WARP_ROWS, column = warp % across * WARP_COLUMNS;
    float sums[ROW_TILES][COLUMN_TILES][4] = {};
    Work w;

    if (!find_work(p, blockIdx.x, ROWS, COLUMNS, w))
        return;
    const uint32_t depth = extent(p.terms[0].depth, w);
    const Source<A_OF_STEPS, ROWS> a(p.terms[0].a, w, w.row, w.rows, depth);
    const Source<B_OF_STEPS, COLUMNS> b(p.terms[0].b, w, w.column, w.columns, depth);
    const uint32_t tiles = (depth + STEPS - 1) / STEPS, count = tiles * p.terms[0].repeats;

    for (uint32_t i = 0; i < count + STAGES - 1; i++) {
        if (i >= STAGES - 1) {
            copies_wait<STAGES - 2>();
            __syncthreads(); // the copies are visible to all threads, and the previous stage has
                             // been read
        }
        if (i < count) {
            const uint32_t stage = stages + i % STAGES * (A_BYTES + B_BYTES);

            a.copy(stage, i / tiles, i % tiles * STEPS);
            b.copy(stage + A_BYTES, i / tiles, i % tiles * STEPS);
        }
        copies_commit();
        if (i >= STAGES - 1)
            multiply_stage<T, A_OF_STEPS, B_OF_STEPS>(
                stages + (i - (STAGES - 1)) % STAGES * (A_BYTES + B_BYTES), row, column, sums);
    }
#pragma unroll
    for (uint32_t i = 0; i < ROW_TILES; i++)
#pragma unroll
        for (uint32_t half = 0; half < 2; half++)
            store_row(p, w, w.row + row + 16 * i + 8 * half + lane / 4, w.column + column, sums[i],
                      half);
}

template <typename T>
enum lh_status
multiply_mma(const LhCudaProduct &p, void *stream)
{
    const cudaStream_t s = static_cast<cudaStream_t>(stream);
    const uint64_t tiles = has_uneven_rows(p) ? 1 : p.tiles;
    const uint64_t blocks = static_cast<uint64_t>(row_blocks_of(p, ROWS)) *
                            blocks_of(p.columns, p, COLUMNS) * p.sequences * p.heads * tiles;
    const uint32_t grid = static_cast<uint32_t>(blocks);

    if (blocks > INT32_MAX || (p.terms[0].a_transposed && p.terms[0].b_transposed))
        return LH_STATUS_UNSUPPORTED;
    if (blocks == 0)
        return LH_STATUS_OK;
    if (p.terms[0].a_transposed)
        product<T, true, true><<<grid, THREADS, 0, s>>>(p);
    else if (p.terms[0].b_transposed)
        product<T, false, false><<<grid, THREADS, 0, s>>>(p);
    else
        product<T, false, true><<<grid, THREADS, 0, s>>>(p);
    return launched();
}
} // namespace lh
