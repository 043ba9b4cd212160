/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention of a block in fp32, forward and backward, with plain multiply-adds: tensor cores round
 * fp32 to 10 bits. A block has 32 rows of one head (queries; keys for dk and dv) and iterates over
 * tiles of 32 rows of the other side. Its 128 threads are 8 x 16: a thread has 4 rows, and of
 * products every 16th column, or every 16th chunk of 4 columns.
 */
#include "kernels/cuda/attention/tiles.cuh"

namespace
{
using namespace lh;

constexpr int TILE_ROWS = 32;
constexpr int WEIGHTS = TILE_ROWS + 4; /* floats of a row of weights, padded against bank
                                          conflicts */

/* A thread's part of the block. */
struct Place {
    uint32_t row;    /* first of 4 rows in the tile */
    uint32_t column; /* first column; the second is + 16 */
};

__device__ inline Place
own_place(void)
{
    return { threadIdx.x / 16 * 4, threadIdx.x % 16 };
}

/* Returns the position in floats of chunk @chunk of a row of a tile. */
template <int D>
__device__ inline uint32_t
floats_at(uint32_t row, uint32_t chunk)
{
    return row * D + ((chunk ^ (row & 7)) << 2);
}

/* Starts copying rows [@first, @first + 32); zeros beyond the last row and column. */
template <int D>
__device__ inline void
load_floats(float *tile, const LhCudaAttention &a, const LhCudaRows &t, uint32_t sequence,
            uint32_t head, uint32_t first, uint32_t rows)
{
    constexpr uint32_t CHUNKS = D / 4;

#pragma unroll 1
    for (uint32_t i = threadIdx.x; i < TILE_ROWS * CHUNKS; i += THREADS) {
        const uint32_t row = i / CHUNKS, chunk = i % CHUNKS;
        const float *from =
            (const float *)row_at(t, sequence, min(first + row, rows - 1), head, 4 * a.dim);
        float *const to = tile + floats_at<D>(row, chunk);
        const bool valid = first + row < rows;

        if (a.chunks) {
            const bool inside = valid && 4 * chunk < a.dim;

            copy16(shared_address(to), inside ? from + 4 * chunk : from, inside);
        } else {
            for (uint32_t e = 0; e < 4; e++)
                to[e] = valid && 4 * chunk + e < a.dim ? from[4 * chunk + e] : 0;
        }
    }
}

/*
 * s = x y^T for this thread's rows of x and columns, which are rows of y. Four partial sums per
 * element limit the accumulated error.
 */
template <int D>
__device__ inline void
multiply_floats(float (&s)[4][2], const float *x, const float *y, Place at)
{
    float4 sums[4][2] = {};

#pragma unroll 2
    for (uint32_t chunk = 0; chunk < D / 4; chunk++) {
        float4 b[2];

#pragma unroll
        for (uint32_t j = 0; j < 2; j++)
            b[j] = *(const float4 *)(y + floats_at<D>(at.column + 16 * j, chunk));
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) {
            const float4 a = *(const float4 *)(x + floats_at<D>(at.row + i, chunk));

#pragma unroll
            for (uint32_t j = 0; j < 2; j++) {
                sums[i][j].x = fmaf(a.x, b[j].x, sums[i][j].x);
                sums[i][j].y = fmaf(a.y, b[j].y, sums[i][j].y);
                sums[i][j].z = fmaf(a.z, b[j].z, sums[i][j].z);
                sums[i][j].w = fmaf(a.w, b[j].w, sums[i][j].w);
            }
        }
    }
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
#pragma unroll
        for (uint32_t j = 0; j < 2; j++)
            s[i][j] = (sums[i][j].x + sums[i][j].y) + (sums[i][j].z + sums[i][j].w);
    }
}

/* A thread's rows and every 16th chunk of columns. */
template <int D> struct Sums {
    float4 of[4][D / 64];
};

/* o += p y. The threads that share rows of p have written them. */
template <int D>
__device__ inline void
add_weighted(Sums<D> &o, const float *p, const float *y, Place at)
{
#pragma unroll 2
    for (uint32_t key = 0; key < TILE_ROWS; key++) {
#pragma unroll
        for (uint32_t c = 0; c < D / 64; c++) {
            const float4 v = *(const float4 *)(y + floats_at<D>(key, at.column + 16 * c));

#pragma unroll
            for (uint32_t i = 0; i < 4; i++) {
                const float w = p[(at.row + i) * WEIGHTS + key];

                o.of[i][c].x = fmaf(w, v.x, o.of[i][c].x);
                o.of[i][c].y = fmaf(w, v.y, o.of[i][c].y);
                o.of[i][c].z = fmaf(w, v.z, o.of[i][c].z);
                o.of[i][c].w = fmaf(w, v.w, o.of[i][c].w);
            }
        }
    }
}

__device__ inline void
put_weights(float *p, const float (&s)[4][2], Place at)
{
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        p[(at.row + i) * WEIGHTS + at.column] = s[i][0];
        p[(at.row + i) * WEIGHTS + at.column + 16] = s[i][1];
    }
}

/* Sums over the 16 threads that share a row. */
__device__ inline float
sum_of_row(float x)
{
    for (unsigned step = 8; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffff, x, step);
    return x;
}

__device__ inline float
top_of_row(float x)
{
    for (unsigned step = 8; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, step));
    return x;
}

/* Stores this thread's columns of row @row of a result: keep times the old values plus come o. */
template <int D>
__device__ inline void
store_sums(const float4 (&o)[D / 64], const LhCudaResult &r, const LhCudaAttention &a,
           uint32_t sequence, uint32_t row, uint32_t head, uint32_t column, float2 by)
{
    float *const to = (float *)row_at(r.rows, sequence, row, head, 4 * a.dim);

#pragma unroll
    for (uint32_t c = 0; c < D / 64; c++) {
        const uint32_t at = 4 * (column + 16 * c);
        const float numbers[4] = { o[c].x, o[c].y, o[c].z, o[c].w };

        if (at < a.dim)
            store_numbers(to + at, numbers, a.dim - at, r.chunks, by.x, by.y);
    }
}

/* Computes what this thread's rows see. */
template <Interval (*SEES)(const LhCudaMask &, int32_t)>
__device__ inline void
own_sights(RowSight (&sights)[4], const LhCudaMask &mask, const LhCudaPlaces &places,
           uint32_t first, uint32_t last)
{
#pragma unroll
    for (uint32_t i = 0; i < 4; i++)
        sights[i] = row_sight<SEES>(mask, places, min(first + i, last));
}

/* Whether this thread's rows see its columns of a tile, as bits 2 i + j. */
__device__ inline uint32_t
seen_pairs(const RowSight (&sights)[4], const TileWalk<TILE_ROWS> &tile, const LhCudaPlaces &places,
           Place at)
{
    uint32_t seen = 0;

#pragma unroll
    for (uint32_t j = 0; j < 2; j++) {
        const uint32_t column = tile.tile * TILE_ROWS + at.column + 16 * j;
        const int32_t place = column < tile.rows ? place_of(places, column) : NOWHERE;

#pragma unroll
        for (uint32_t i = 0; i < 4; i++)
            seen |= (sights[i].sees(place) ? 1U : 0U) << (2 * i + j);
    }
    return seen;
}

template <int D> struct Memory {
    static constexpr int TILE = D * TILE_ROWS, WEIGHT = WEIGHTS * TILE_ROWS; /* floats */
};

template <int D>
__global__ void
__launch_bounds__(THREADS, 1) attention_forward_fp32(const __grid_constant__ LhCudaForward f)
{
    extern __shared__ __align__(128) float floats[];
    float *const q = floats, *const k = q + Memory<D>::TILE, *const v = k + Memory<D>::TILE;
    float *const p = v + Memory<D>::TILE;
    const LhCudaAttention &a = f.a;
    const Place at = own_place();
    const uint32_t head = blockIdx.y, b = blockIdx.z, group = head / (a.heads / a.groups);
    const uint32_t q0 = (gridDim.x - 1 - blockIdx.x) * TILE_ROWS;
    const uint32_t last = min(q0 + TILE_ROWS, a.nq) - 1;
    const Sight sight = sight_of<keys_of>(a.mask, a.mask.q, q0, last);
    const float scale = a.scale * LOG2E;
    TileWalk<TILE_ROWS> keys = { .rows = a.nk };
    RowSight sights[4];
    Sums<D> o = {};
    float top[4], sum[4] = {};

    own_sights<keys_of>(sights, a.mask, a.mask.q, q0 + at.row, last);
    for (uint32_t i = 0; i < 4; i++)
        top[i] = -CUDART_INF_F;
    load_floats<D>(q, a, f.q, b, head, q0, a.nq);
    for (keys.seek(a.mask.k, sight, 0); keys.more(); keys.seek(a.mask.k, sight, keys.tile + 1)) {
        float s[4][2];

        __syncthreads(); /* all threads are done with the previous tile */
        load_floats<D>(k, a, f.k, b, group, keys.tile * TILE_ROWS, a.nk);
        load_floats<D>(v, a, f.v, b, group, keys.tile * TILE_ROWS, a.nk);
        copies_commit();
        copies_wait<0>();
        __syncthreads();
        multiply_floats<D>(s, q, k, at);

        const uint32_t seen =
            keys.seen_by(sight) ? UINT32_MAX : seen_pairs(sights, keys, a.mask.k, at);

#pragma unroll
        for (uint32_t i = 0; i < 4; i++) {
            const float x = (seen >> 2 * i & 1) != 0 ? s[i][0] * scale : -CUDART_INF_F;
            const float y = (seen >> (2 * i + 1) & 1) != 0 ? s[i][1] * scale : -CUDART_INF_F;
            const float most = top_of_row(fmaxf(top[i], fmaxf(x, y)));
            const float base = most == -CUDART_INF_F ? 0 : most;
            const float factor = exp2f(top[i] - base);

            s[i][0] = exp2f(x - base);
            s[i][1] = exp2f(y - base);
            sum[i] = sum[i] * factor + s[i][0] + s[i][1];
            top[i] = most;
#pragma unroll
            for (uint32_t c = 0; c < D / 64; c++) {
                o.of[i][c].x *= factor;
                o.of[i][c].y *= factor;
                o.of[i][c].z *= factor;
                o.of[i][c].w *= factor;
            }
        }
        put_weights(p, s, at);
        __syncwarp();
        add_weighted<D>(o, p, v, at);
    }
    copies_commit();
    copies_wait<0>();
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t row = q0 + at.row + i;
        float2 by = make_float2(top[i] * LN2, sum_of_row(sum[i]));

        if (at.column == 0 && row < a.nq)
            by = finish_row(f, by, b, row, head);
        by.x = __shfl_sync(0xffffffff, by.x, 0, 16);
        by.y = __shfl_sync(0xffffffff, by.y, 0, 16);
        if (row < a.nq)
            store_sums<D>(o.of[i], f.o, a, b, row, head, at.column, by);
    }
}

/* ds of a pair without the scale; @w is its weight. */
__device__ inline float
gradient(float w, float dp, float delta)
{
    return w * (dp - delta);
}

template <int D>
__global__ void
__launch_bounds__(THREADS, 1) attention_backward_keys_fp32(const __grid_constant__ LhCudaBackward w)
{
    extern __shared__ __align__(128) float floats[];
    float *const k = floats, *const v = k + Memory<D>::TILE, *const q = v + Memory<D>::TILE;
    float *const dout = q + Memory<D>::TILE, *const p = dout + Memory<D>::TILE;
    float *const ds = p + Memory<D>::WEIGHT;
    float *const lse = ds + Memory<D>::WEIGHT, *const delta = lse + TILE_ROWS;
    const LhCudaAttention &a = w.a;
    const Place at = own_place();
    const uint32_t group = blockIdx.y, b = blockIdx.z, share = a.heads / a.groups;
    const uint32_t j0 = blockIdx.x * TILE_ROWS, last = min(j0 + TILE_ROWS, a.nk) - 1;
    const Sight sight = sight_of<queries_of>(a.mask, a.mask.k, j0, last);
    TileWalk<TILE_ROWS> queries = { .rows = a.nq };
    RowSight sights[4];
    Sums<D> dk = {}, dv = {};

    own_sights<queries_of>(sights, a.mask, a.mask.k, j0 + at.row, last);
    load_floats<D>(k, a, w.k, b, group, j0, a.nk);
    load_floats<D>(v, a, w.v, b, group, j0, a.nk);
    for (uint32_t head = group * share; head < (group + 1) * share; head++) {
        for (queries.seek(a.mask.q, sight, 0); queries.more();
             queries.seek(a.mask.q, sight, queries.tile + 1)) {
            const uint32_t first = queries.tile * TILE_ROWS;
            float s[4][2], dp[4][2];

            __syncthreads(); /* all threads are done with the previous tiles */
            load_floats<D>(q, a, w.q, b, head, first, a.nq);
            load_floats<D>(dout, a, w.dout, b, head, first, a.nq);
            if (threadIdx.x < TILE_ROWS) {
                const uint32_t row = min(first + threadIdx.x, a.nq - 1);

                copy4(shared_address(lse + threadIdx.x), stat_at(w.lse, b, row, head), true);
                copy4(shared_address(delta + threadIdx.x), stat_at(w.delta, b, row, head), true);
            }
            copies_commit();
            copies_wait<0>();
            __syncthreads();
            multiply_floats<D>(s, k, q, at);
            multiply_floats<D>(dp, v, dout, at);

            const uint32_t seen =
                queries.seen_by(sight) ? UINT32_MAX : seen_pairs(sights, queries, a.mask.q, at);

#pragma unroll
            for (uint32_t j = 0; j < 2; j++) {
                const uint32_t column = at.column + 16 * j;

#pragma unroll
                for (uint32_t i = 0; i < 4; i++) {
                    const bool there = (seen >> (2 * i + j) & 1) != 0;

                    s[i][j] = there ? expf(fmaf(s[i][j], a.scale, -lse[column])) : 0;
                    dp[i][j] = there ? gradient(s[i][j], dp[i][j], delta[column]) : 0;
                }
            }
            put_weights(p, s, at);
            put_weights(ds, dp, at);
            __syncwarp();
            add_weighted<D>(dv, p, dout, at);
            add_weighted<D>(dk, ds, q, at);
        }
    }
    copies_commit();
    copies_wait<0>();
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t row = j0 + at.row + i;
        const float keep = w.load ? 1 : 0;

        if (row < a.nk) {
            store_sums<D>(dk.of[i], w.dk, a, b, row, group, at.column, make_float2(keep, a.scale));
            store_sums<D>(dv.of[i], w.dv, a, b, row, group, at.column, make_float2(keep, 1));
        }
    }
}

template <int D>
__global__ void
__launch_bounds__(THREADS, 1)
    attention_backward_queries_fp32(const __grid_constant__ LhCudaBackward w)
{
    extern __shared__ __align__(128) float floats[];
    float *const q = floats, *const dout = q + Memory<D>::TILE, *const k = dout + Memory<D>::TILE;
    float *const v = k + Memory<D>::TILE, *const ds = v + Memory<D>::TILE;
    const LhCudaAttention &a = w.a;
    const Place at = own_place();
    const uint32_t head = blockIdx.y, b = blockIdx.z, group = head / (a.heads / a.groups);
    const uint32_t q0 = (gridDim.x - 1 - blockIdx.x) * TILE_ROWS;
    const uint32_t last = min(q0 + TILE_ROWS, a.nq) - 1;
    const Sight sight = sight_of<keys_of>(a.mask, a.mask.q, q0, last);
    TileWalk<TILE_ROWS> keys = { .rows = a.nk };
    RowSight sights[4];
    float lse[4], delta[4];
    Sums<D> dq = {};

    own_sights<keys_of>(sights, a.mask, a.mask.q, q0 + at.row, last);
    for (uint32_t i = 0; i < 4; i++) {
        lse[i] = *stat_at(w.lse, b, min(q0 + at.row + i, last), head);
        delta[i] = *stat_at(w.delta, b, min(q0 + at.row + i, last), head);
    }
    load_floats<D>(q, a, w.q, b, head, q0, a.nq);
    load_floats<D>(dout, a, w.dout, b, head, q0, a.nq);
    for (keys.seek(a.mask.k, sight, 0); keys.more(); keys.seek(a.mask.k, sight, keys.tile + 1)) {
        float s[4][2], dp[4][2];

        __syncthreads(); /* all threads are done with the previous tiles */
        load_floats<D>(k, a, w.k, b, group, keys.tile * TILE_ROWS, a.nk);
        load_floats<D>(v, a, w.v, b, group, keys.tile * TILE_ROWS, a.nk);
        copies_commit();
        copies_wait<0>();
        __syncthreads();
        multiply_floats<D>(s, q, k, at);
        multiply_floats<D>(dp, dout, v, at);

        const uint32_t seen =
            keys.seen_by(sight) ? UINT32_MAX : seen_pairs(sights, keys, a.mask.k, at);

#pragma unroll
        for (uint32_t i = 0; i < 4; i++) {
#pragma unroll
            for (uint32_t j = 0; j < 2; j++) {
                const bool there = (seen >> (2 * i + j) & 1) != 0;
                const float weight = there ? expf(fmaf(s[i][j], a.scale, -lse[i])) : 0;

                s[i][j] = there ? gradient(weight, dp[i][j], delta[i]) : 0;
            }
        }
        put_weights(ds, s, at);
        __syncwarp();
        add_weighted<D>(dq, ds, k, at);
    }
    copies_commit();
    copies_wait<0>();
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t row = q0 + at.row + i;

        if (row < a.nq)
            store_sums<D>(dq.of[i], w.dq, a, b, row, head, at.column,
                          make_float2(w.load ? 1 : 0, a.scale));
    }
}

/* Bytes of tiles of 32 x D floats, of 32 x 32 weights, and of statistics of 32 rows. */
template <int D>
constexpr unsigned
shared_bytes(unsigned tiles, unsigned weights, unsigned stats)
{
    return 4 * (tiles * Memory<D>::TILE + weights * Memory<D>::WEIGHT + stats * TILE_ROWS);
}

/* Grid: one block per tile of rows of every head. */
dim3
grid_of(const LhCudaAttention &a, uint32_t rows, uint32_t heads)
{
    return dim3((rows + TILE_ROWS - 1) / TILE_ROWS, heads, a.batch);
}
} // namespace

enum lh_status
lh_cuda_forward_fp32(const LhCudaForward *f, void *stream)
{
    return with_columns<64, 128, 256>(f->a.dim, [=](auto columns) {
        constexpr int D = decltype(columns)::value;

        return launch(attention_forward_fp32<D>, grid_of(f->a, f->a.nq, f->a.heads),
                      shared_bytes<D>(3, 1, 0), f, stream);
    });
}

enum lh_status
lh_cuda_backward_keys_fp32(const LhCudaBackward *w, void *stream)
{
    return with_columns<64, 128, 256>(w->a.dim, [=](auto columns) {
        constexpr int D = decltype(columns)::value;

        return launch(attention_backward_keys_fp32<D>, grid_of(w->a, w->a.nk, w->a.groups),
                      shared_bytes<D>(4, 2, 2), w, stream);
    });
}

enum lh_status
lh_cuda_backward_queries_fp32(const LhCudaBackward *w, void *stream)
{
    return with_columns<64, 128, 256>(w->a.dim, [=](auto columns) {
        constexpr int D = decltype(columns)::value;

        return launch(attention_backward_queries_fp32<D>, grid_of(w->a, w->a.nq, w->a.heads),
                      shared_bytes<D>(4, 1, 0), w, stream);
    });
}
