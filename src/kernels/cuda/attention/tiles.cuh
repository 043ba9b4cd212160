/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiles of attention in shared memory, 16-bit elements, and warp-level operations on them.
 *
 * A tile has D columns, of which the head has `dim`; the others, and rows beyond the last, are
 * zeros. Rows are consecutive, in chunks of 16 bytes, swizzled within a row so that the same chunk
 * of 8 consecutive rows covers every bank once. Results go through a tile of fp32.
 */
#pragma once

#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/mask.cuh"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/ptx.cuh"

#include <math_constants.h>
#include <type_traits>

namespace lh
{

constexpr int WARPS = 4, THREADS = 32 * WARPS;
constexpr float LOG2E = 1.4426950408889634F, LN2 = 0.6931471805599453F;

/* Groups of 16 rows per warp (M), and keys per tile, limited by registers. */
template <int TIMES, int COUNT> struct TileShape {
    static constexpr int M = TIMES, KEYS = COUNT;
};

/* Returns the byte position of chunk @chunk of row @row of a tile. */
template <int D>
__device__ inline uint32_t
chunk_at(uint32_t row, uint32_t chunk)
{
    constexpr uint32_t CHUNKS = D / 8;
    static_assert(CHUNKS % 4 == 0, "a row is a multiple of 64 bytes");

    return row * 2 * D + ((chunk ^ (CHUNKS % 8 == 0 ? row & 7 : row >> 1 & 3)) << 4);
}

/*
 * Returns the position in floats of column @column, a multiple of 4, in a row of an fp32 tile.
 * Chunks are swizzled so that a warp's results, pairs of 4 columns of 8 rows, have no bank
 * conflicts.
 */
template <int D>
__device__ inline uint32_t
float_at(uint32_t row, uint32_t column)
{
    static_assert(D % 32 == 0, "a row is a multiple of 128 bytes");

    return row * D + (((column >> 2) ^ ((row & 3) << 1)) << 2) + (column & 3);
}

/* Iterates over rows of a tensor without a division per row. */
struct RowWalk {
    uint32_t part, local;

    __device__ inline void
    to(const LhCudaRows &t, uint32_t row)
    {
        part = row / t.part_rows;
        local = row - part * t.part_rows;
    }

    __device__ inline void
    step(const LhCudaRows &t, uint32_t rows)
    {
        for (local += rows; local >= t.part_rows; local -= t.part_rows)
            part++;
    }

    __device__ inline unsigned char *
    at(const LhCudaRows &t, uint32_t sequence, uint32_t head, uint32_t bytes) const
    {
        return t.data + part * t.part_bytes +
               (((uint64_t)sequence * t.part_rows + local) * t.heads + head) * bytes;
    }
};

/* Four elements of BYTES each, as one access to memory. */
template <unsigned BYTES> struct Chunk;

template <> struct Chunk<2> {
    typedef uint2 Type;
};

template <> struct Chunk<4> {
    typedef uint4 Type;
};

/* Gathers 16-bit elements [0, count) at @from, count <= 8, in a chunk, padded with zeros. */
__device__ inline uint4
gather(const unsigned short *from, uint32_t count)
{
    uint32_t words[4] = {};

#pragma unroll
    for (uint32_t i = 0; i < 8; i++) {
        if (i < count)
            words[i / 2] |= (uint32_t)from[i] << 16 * (i % 2);
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
}

/* Starts copying rows [@first, @first + ROWS) of a tensor with @rows rows to the tile at @tile. */
template <int D, int ROWS>
__device__ inline void
load_tile(uint32_t tile, const LhCudaAttention &a, const LhCudaRows &t, uint32_t sequence,
          uint32_t head, uint32_t first, uint32_t rows)
{
    constexpr uint32_t CHUNKS = D / 8, AT_A_TIME = THREADS / CHUNKS;
    const uint32_t chunk = threadIdx.x % CHUNKS;
    const uint32_t elements = a.dim > 8 * chunk ? a.dim - 8 * chunk : 0;
    RowWalk walk;

    if (AT_A_TIME * CHUNKS < THREADS && threadIdx.x >= AT_A_TIME * CHUNKS)
        return;
    walk.to(t, min(first + threadIdx.x / CHUNKS, rows - 1));
    if (a.chunks) {
#pragma unroll
        for (uint32_t row = threadIdx.x / CHUNKS; row < ROWS; row += AT_A_TIME) {
            const bool valid = first + row < rows && elements > 0;
            const unsigned char *from = walk.at(t, sequence, head, 2 * a.dim);

            copy16(tile + chunk_at<D>(row, chunk), valid ? from + 16 * chunk : t.data, valid);
            if (first + row + AT_A_TIME < rows)
                walk.step(t, AT_A_TIME);
        }
        return;
    }
#pragma unroll 1
    for (uint32_t row = threadIdx.x / CHUNKS; row < ROWS; row += AT_A_TIME) {
        const unsigned short *from = (const unsigned short *)walk.at(t, sequence, head, 2 * a.dim);
        const uint4 x = gather(from + 8 * chunk, first + row < rows ? min(elements, 8U) : 0);

        store_words(tile + chunk_at<D>(row, chunk), x);
        if (first + row + AT_A_TIME < rows)
            walk.step(t, AT_A_TIME);
    }
}

/* ---- products: each warp has its own 16 rows of the result ---- */

/* Loads an A operand: rows [row, row + 16) and columns [column, column + 16) of a tile. */
template <int D>
__device__ inline void
load_a(uint32_t (&a)[4], uint32_t tile, uint32_t row, uint32_t column)
{
    const uint32_t lane = threadIdx.x % WARP;

    load_matrices(a, tile + chunk_at<D>(row + lane % 16, column / 8 + lane / 16));
}

/*
 * Loads two B operands: rows [row, row + 16) are twice 8 columns of the product, and columns
 * [column, column + 16) are summed over.
 */
template <int D>
__device__ inline void
load_b(uint32_t (&b)[4], uint32_t tile, uint32_t row, uint32_t column)
{
    const uint32_t lane = threadIdx.x % WARP;

    load_matrices(b, tile + chunk_at<D>(row + lane / 16 * 8 + lane % 8, column / 8 + lane / 8 % 2));
}

/* The same with rows and columns of the tile exchanged. */
template <int D>
__device__ inline void
load_b_transposed(uint32_t (&b)[4], uint32_t tile, uint32_t row, uint32_t column)
{
    const uint32_t lane = threadIdx.x % WARP;

    load_matrices_transposed(b, tile + chunk_at<D>(row + lane % 16, column / 8 + lane / 16));
}

/*
 * s += x y^T for M times 16 rows of the tile at @x, from @row on, and N rows of the tile at @y,
 * over D columns.
 */
template <typename T, int D, int M, int N>
__device__ inline void
multiply_rows(float (&s)[M][N / 8][4], uint32_t x, uint32_t row, uint32_t y)
{
#pragma unroll
    for (int k = 0; k < D; k += 16) {
        uint32_t a[M][4];

#pragma unroll
        for (int m = 0; m < M; m++)
            load_a<D>(a[m], x, row + 16 * m, k);
#pragma unroll
        for (int n = 0; n < N / 16; n++) {
            uint32_t b[4];

            load_b<D>(b, y, 16 * n, k);
#pragma unroll
            for (int m = 0; m < M; m++) {
                multiply<T>(s[m][2 * n], a[m], b[0], b[1]);
                multiply<T>(s[m][2 * n + 1], a[m], b[2], b[3]);
            }
        }
    }
}

/*
 * o += p y for M times 16 rows of p, in registers as products leave them, and columns [@column,
 * @column + C) of the N rows of the tile at @y.
 */
template <typename T, int D, int C, int M, int N>
__device__ inline void
multiply_weights(float (&o)[M][C / 8][4], const float (&p)[M][N / 8][4], uint32_t y,
                 uint32_t column)
{
#pragma unroll
    for (int k = 0; k < N / 16; k++) {
        uint32_t a[M][4];

#pragma unroll
        for (int m = 0; m < M; m++) {
#pragma unroll
            for (int i = 0; i < 4; i++)
                a[m][i] =
                    pack<T>(p[m][2 * k + i / 2][i % 2 * 2], p[m][2 * k + i / 2][i % 2 * 2 + 1]);
        }
#pragma unroll
        for (int n = 0; n < C / 16; n++) {
            uint32_t b[4];

            load_b_transposed<D>(b, y, 16 * k, column + 16 * n);
#pragma unroll
            for (int m = 0; m < M; m++) {
                multiply<T>(o[m][2 * n], a[m], b[0], b[1]);
                multiply<T>(o[m][2 * n + 1], a[m], b[2], b[3]);
            }
        }
    }
}

/* ---- results ---- */

/* Stores a warp's M times 16 result rows, from row @row on, in a tile of fp32. */
template <int C, int M>
__device__ inline void
put_result(uint32_t tile, uint32_t row, const float (&o)[M][C / 8][4])
{
    const uint32_t lane = threadIdx.x % WARP;

#pragma unroll
    for (int m = 0; m < M; m++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
#pragma unroll
            for (int n = 0; n < C / 8; n++)
                store_pair(
                    tile + 4 * float_at<C>(row + 16 * m + 8 * h + lane / 4, 8 * n + lane % 4 * 2),
                    o[m][n][2 * h], o[m][n][2 * h + 1]);
        }
    }
}

/* Updates up to 4 numbers at @at: y = keep y + come x. */
template <typename Y>
__device__ inline void
store_numbers(Y *at, const float (&x)[4], uint32_t count, bool chunk, float keep, float come)
{
    alignas(4 * sizeof(Y)) Y y[4];

    if (chunk && keep != 0)
        *(typename Chunk<sizeof(Y)>::Type *)y = *(const typename Chunk<sizeof(Y)>::Type *)at;
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        if (!chunk && keep != 0 && i < count)
            y[i] = at[i];
        y[i] = from_float<Y>(come * x[i] + (keep != 0 ? keep * to_float(y[i]) : 0));
        if (!chunk && i < count)
            at[i] = y[i];
    }
    if (chunk)
        *(typename Chunk<sizeof(Y)>::Type *)at = *(const typename Chunk<sizeof(Y)>::Type *)y;
}

/*
 * Stores a tile of ROWS x C results as rows [@first, ..) of a tensor with @rows rows, from column
 * @column on. @factors(row) returns the factors of the old numbers (0: they are not read) and of
 * the new ones.
 */
template <typename T, int C, int ROWS, typename Factors>
__device__ inline void
store_tile(const float *tile, const LhCudaResult &r, const LhCudaAttention &a, uint32_t sequence,
           uint32_t head, uint32_t first, uint32_t rows, uint32_t column, Factors factors)
{
    constexpr uint32_t GROUPS = C / 4, AT_A_TIME = THREADS / GROUPS;
    const uint32_t at = threadIdx.x % GROUPS * 4;
    const uint32_t bytes = r.storage == LH_STORAGE_FP32 ? 4 : 2;
    uint32_t row = threadIdx.x / GROUPS;
    RowWalk walk;

    if (row >= AT_A_TIME || first + row >= rows || column + at >= a.dim)
        return;
    walk.to(r.rows, first + row);
    for (;;) {
        const float4 x = *(const float4 *)(tile + float_at<C>(row, at));
        const float numbers[4] = { x.x, x.y, x.z, x.w };
        const float2 by = factors(row);
        unsigned char *to = walk.at(r.rows, sequence, head, bytes * a.dim) + bytes * (column + at);

        if (bytes == 4)
            store_numbers((float *)to, numbers, a.dim - column - at, r.chunks, by.x, by.y);
        else
            store_numbers((T *)to, numbers, a.dim - column - at, r.chunks, by.x, by.y);
        row += AT_A_TIME;
        if (row >= ROWS || first + row >= rows)
            return;
        walk.step(r.rows, AT_A_TIME);
    }
}

/*
 * Merges and stores the statistics of row @row; @block is the block's (m, l). Returns the factors
 * of o's old and new numbers.
 */
__device__ inline float2
finish_row(const LhCudaForward &f, float2 block, uint32_t b, uint32_t row, uint32_t head)
{
    float keep = 0, come = 1, top = block.x, sum = block.y, by = 1;

    if (f.load) {
        const float before = *stat_at(f.m, b, row, head);

        top = fmaxf(before, block.x);
        keep = before == -CUDART_INF_F ? 0 : expf(before - top);
        come = block.x == -CUDART_INF_F ? 0 : expf(block.x - top);
        sum = keep * *stat_at(f.l, b, row, head) + come * block.y;
    }
    if (f.m.data != nullptr) {
        *stat_at(f.m, b, row, head) = top;
        *stat_at(f.l, b, row, head) = sum;
    }
    if (f.lse.data != nullptr)
        *stat_at(f.lse, b, row, head) = sum > 0 ? top + logf(sum) : -CUDART_INF_F;
    if (f.normalise && sum > 0)
        by = 1 / sum;
    return make_float2(keep * by, come * by);
}

/* ---- masks of tiles ---- */

/* Intervals seen by the rows of a tile. */
struct Sight {
    Interval least, most; /* of the row at the first place, and of that at the last */

    __device__ inline bool
    misses(const Interval &places) const
    {
        return places.first > most.last || places.last < least.first;
    }

    __device__ inline bool
    sees_all(const Interval &places) const
    {
        return places.first >= most.first && places.last <= least.last;
    }
};

/* Interval seen by one row, in a form that needs one comparison per place. */
struct RowSight {
    uint32_t first, count;

    __device__ inline bool
    sees(int32_t place) const
    {
        return (uint32_t)place - first < count;
    }
};

/* Computes what rows [from, to], queries or keys at @places, see of the other side. */
template <Interval (*SEES)(const LhCudaMask &, int32_t)>
__device__ inline Sight
sight_of(const LhCudaMask &mask, const LhCudaPlaces &places, uint32_t from, uint32_t to)
{
    const Interval at = places_of(places, from, to);

    return { SEES(mask, at.first), SEES(mask, at.last) };
}

template <Interval (*SEES)(const LhCudaMask &, int32_t)>
__device__ inline RowSight
row_sight(const LhCudaMask &mask, const LhCudaPlaces &places, uint32_t row)
{
    const Interval seen = SEES(mask, place_of(places, row));

    return { (uint32_t)seen.first,
             seen.last < seen.first ? 0 : (uint32_t)seen.last - (uint32_t)seen.first + 1 };
}

/*
 * Iterates over the tiles of the other side, in order, and skips those of which @sight sees
 * nothing. Whole parts of which it sees nothing are skipped at once.
 */
template <int N> struct TileWalk {
    uint32_t tile;   /* the current one; none if tile * N >= rows */
    uint32_t rows;   /* of the other side */
    Interval places; /* of its rows */

    __device__ inline bool
    more(void) const
    {
        return tile * N < rows;
    }

    /* Whether all rows of @sight see all of it. */
    __device__ inline bool
    seen_by(const Sight &sight) const
    {
        return rows - tile * N >= N && sight.sees_all(places);
    }

    /* Writes the places of the tile's rows to @to; needs at least N threads. */
    __device__ inline void
    write_places(int32_t *to, const LhCudaPlaces &p) const
    {
        const uint32_t row = tile * N + threadIdx.x;

        if (threadIdx.x < N)
            to[threadIdx.x] = row < rows ? place_of(p, row) : NOWHERE;
    }

    /* Moves to the first tile from @from on of which something is seen. */
    __device__ inline void
    seek(const LhCudaPlaces &p, const Sight &sight, uint32_t from)
    {
        for (tile = from; tile * N < rows;) {
            const uint32_t first = tile * N, part = first / p.part_rows;
            uint32_t next = (part + 1) * p.part_rows;

            places = places_of(p, first, min(first + N, rows) - 1);
            if (!sight.misses(places))
                return;
            if (places.last < sight.least.first && p.stride > 0)
                next = min(next,
                           first + (uint32_t)(sight.least.first - place_of(p, first)) / p.stride);
            tile = max(tile + 1, next / N);
        }
    }
};

/*
 * Sets scores of M times 16 rows and N of the other side, and companions of the same shape, to @by
 * where a row does not see a place.
 */
template <int M, int N, typename... Scores>
__device__ inline void
hide(const RowSight *sights, const int32_t *places, float by, Scores &...scores)
{
    const uint32_t lane = threadIdx.x % WARP;

#pragma unroll
    for (int m = 0; m < M; m++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const RowSight sight = sights[16 * m + 8 * h + lane / 4];

#pragma unroll
            for (int n = 0; n < N / 8; n++) {
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    if (!sight.sees(places[8 * n + lane % 4 * 2 + e]))
                        ((scores[m][n][2 * h + e] = by), ...);
                }
            }
        }
    }
}

/* ---- launches ---- */

/*
 * Calls @call with the first of these numbers of columns, in ascending order, that holds heads of
 * @dim elements, as an integral constant.
 */
template <int D, int... MORE, typename Call>
enum lh_status
with_columns(uint32_t dim, Call call)
{
    if constexpr (sizeof...(MORE) > 0) {
        if (dim > D)
            return with_columns<MORE...>(dim, call);
    }
    return dim <= D ? call(std::integral_constant<int, D>()) : LH_STATUS_UNSUPPORTED;
}

/* Whether the current GPU allows @bytes of shared memory per block. */
inline enum lh_status
has_shared(uint32_t bytes)
{
    int device, most;

    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) !=
            cudaSuccess)
        return launched();
    return bytes <= (uint32_t)most ? LH_STATUS_OK : LH_STATUS_UNSUPPORTED;
}

/* Launches the kernel, or with `asks` in @args only checks that it can be launched. */
template <typename Args>
enum lh_status
launch(void (*kernel)(Args), dim3 grid, uint32_t shared_bytes, const Args *args, void *stream)
{
    const enum lh_status status = has_shared(shared_bytes);

    if (status != LH_STATUS_OK || args->a.asks)
        return status;
    if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             (int)shared_bytes) == cudaSuccess)
        kernel<<<grid, THREADS, shared_bytes, (cudaStream_t)stream>>>(*args);
    return launched();
}

} // namespace lh
