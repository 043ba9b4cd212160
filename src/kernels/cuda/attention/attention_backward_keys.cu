/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradients of keys and values of a block, 16-bit elements; bitwise reproducible, without atomics.
 * A block of 4 warps has 64 keys of one key-value head, a warp 16 of them. It iterates over the
 * query heads that share the keys, and over the tiles of queries that see them. Scores are
 * transposed, in registers: they are the A operand of the products with do and q.
 *
 * If dk and dv of a warp do not fit in registers, a block computes only some of their columns.
 */
#include "kernels/cuda/attention/tiles.cuh"

namespace
{
using namespace lh;

constexpr int KEYS = 16 * WARPS;

/* Queries per tile, and columns of dk and dv per block. */
template <int D> struct Shape;

template <> struct Shape<64> {
    static constexpr int ROWS = 64, COLUMNS = 64;
};

template <> struct Shape<96> {
    static constexpr int ROWS = 32, COLUMNS = 96;
};

template <> struct Shape<128> {
    static constexpr int ROWS = 32, COLUMNS = 128;
};

template <> struct Shape<256> {
    static constexpr int ROWS = 32, COLUMNS = 128;
};

template <int D> struct Layout {
    static constexpr int ROWS = Shape<D>::ROWS, COLUMNS = Shape<D>::COLUMNS;
    static constexpr uint32_t TILE = 2 * D * ROWS; /* bytes of a tile of queries */
    static constexpr uint32_t V = 2 * D * KEYS, Q = 2 * V, DOUT = Q + 2 * TILE;
    static constexpr uint32_t LSE = DOUT + 2 * TILE, DELTA = LSE + 2 * 4 * ROWS;
    static constexpr uint32_t PLACES = DELTA + 2 * 4 * ROWS, SIGHTS = PLACES + 2 * 4 * ROWS;
    static constexpr uint32_t BYTES = SIGHTS + 8 * KEYS;

    static_assert(4 * COLUMNS * KEYS <= LSE, "a result fits");
};

/* A step: a tile of queries of one head. */
template <int N> struct Step {
    uint32_t head;
    TileWalk<N> queries;
};

/* Starts copying the operands of a step. */
template <int D>
__device__ inline void
load_step(const LhCudaBackward &w, uint32_t tiles, unsigned char *memory,
          const Step<Layout<D>::ROWS> &step, uint32_t b, uint32_t turn)
{
    typedef Layout<D> At;
    const LhCudaAttention &a = w.a;
    const uint32_t first = step.queries.tile * At::ROWS;

    load_tile<D, At::ROWS>(tiles + At::Q + turn * At::TILE, a, w.q, b, step.head, first, a.nq);
    load_tile<D, At::ROWS>(tiles + At::DOUT + turn * At::TILE, a, w.dout, b, step.head, first,
                           a.nq);
    if (threadIdx.x < At::ROWS) {
        const uint32_t row = min(first + threadIdx.x, a.nq - 1), at = turn * At::ROWS + threadIdx.x;

        copy4(tiles + At::LSE + 4 * at, stat_at(w.lse, b, row, step.head), true);
        copy4(tiles + At::DELTA + 4 * at, stat_at(w.delta, b, row, step.head), true);
    }
    copies_commit();
    step.queries.write_places((int32_t *)(memory + At::PLACES) + turn * At::ROWS, a.mask.q);
}

/* Turns scores into weights, and dp = v do^T into ds without the scale. */
template <int N>
__device__ inline void
weigh(float (&s)[1][N / 8][4], float (&dp)[1][N / 8][4], const float *lse, const float *delta,
      float scale)
{
    const uint32_t lane = threadIdx.x % WARP;

#pragma unroll
    for (int n = 0; n < N / 8; n++) {
        const float2 x = *(const float2 *)(lse + 8 * n + lane % 4 * 2);
        const float2 y = *(const float2 *)(delta + 8 * n + lane % 4 * 2);

#pragma unroll
        for (int i = 0; i < 4; i++) {
            s[0][n][i] = exp2_fast(fmaf(s[0][n][i], scale, (i % 2 == 0 ? x.x : x.y) * -LOG2E));
            dp[0][n][i] = s[0][n][i] * (dp[0][n][i] - (i % 2 == 0 ? y.x : y.y));
        }
    }
}

template <typename T, int D>
__global__ void
__launch_bounds__(THREADS) attention_backward_keys(const __grid_constant__ LhCudaBackward w)
{
    typedef Layout<D> At;
    constexpr int ROWS = At::ROWS, COLUMNS = At::COLUMNS;
    constexpr uint32_t SLICES = D / COLUMNS;
    extern __shared__ __align__(128) unsigned char memory[];
    const uint32_t tiles = shared_address(memory);
    RowSight *const sights = (RowSight *)(memory + At::SIGHTS);
    const LhCudaAttention &a = w.a;
    const uint32_t warp_row = threadIdx.x / WARP * 16, share = a.heads / a.groups;
    const uint32_t group = blockIdx.y, b = blockIdx.z / SLICES;
    const uint32_t column = blockIdx.z % SLICES * COLUMNS;
    const uint32_t j0 = blockIdx.x * KEYS, last = min(j0 + KEYS, a.nk) - 1;
    const Sight sight = sight_of<queries_of>(a.mask, a.mask.k, j0, last);
    const Sight own = sight_of<queries_of>(a.mask, a.mask.k, min(j0 + warp_row, last),
                                           min(j0 + warp_row + 15, last));
    float dk[1][COLUMNS / 8][4] = {}, dv[1][COLUMNS / 8][4] = {};
    Step<ROWS> step = { group * share, { .rows = a.nq } };

    step.queries.seek(a.mask.q, sight, 0);
    const uint32_t first = step.queries.tile;
    const bool any = step.queries.more();

    if (any) {
        load_tile<D, KEYS>(tiles, a, w.k, b, group, j0, a.nk);
        load_tile<D, KEYS>(tiles + At::V, a, w.v, b, group, j0, a.nk);
        load_step<D>(w, tiles, memory, step, b, 0);
        if (threadIdx.x < KEYS)
            sights[threadIdx.x] =
                row_sight<queries_of>(a.mask, a.mask.k, min(j0 + threadIdx.x, last));
    }
    for (uint32_t turn = 0; any && step.head < (group + 1) * share; turn ^= 1) {
        Step<ROWS> next = step;

        next.queries.seek(a.mask.q, sight, step.queries.tile + 1);
        if (!next.queries.more()) {
            next.head++;
            next.queries.seek(a.mask.q, sight, first);
        }
        copies_wait<0>();
        __syncthreads(); /* this step's tiles are complete, and all threads are done with the
                            previous ones */
        if (next.head < (group + 1) * share)
            load_step<D>(w, tiles, memory, next, b, turn ^ 1);
        if (j0 + warp_row < a.nk && !own.misses(step.queries.places)) {
            const uint32_t q = tiles + At::Q + turn * At::TILE;
            const uint32_t dout = tiles + At::DOUT + turn * At::TILE;
            float s[1][ROWS / 8][4] = {}, ds[1][ROWS / 8][4] = {};

            multiply_rows<T, D, 1, ROWS>(s, tiles, warp_row, q);
            multiply_rows<T, D, 1, ROWS>(ds, tiles + At::V, warp_row, dout);
            weigh<ROWS>(s, ds, (const float *)(memory + At::LSE) + turn * ROWS,
                        (const float *)(memory + At::DELTA) + turn * ROWS, a.scale * LOG2E);
            if (!step.queries.seen_by(own))
                hide<1, ROWS>(sights + warp_row,
                              (const int32_t *)(memory + At::PLACES) + turn * ROWS, 0, s, ds);
            multiply_weights<T, D, COLUMNS, 1, ROWS>(dv, s, dout, column);
            multiply_weights<T, D, COLUMNS, 1, ROWS>(dk, ds, q, column);
        }
        step = next;
    }

    float *const result = (float *)memory;
    const float keep = w.load ? 1 : 0, scale = a.scale;

    __syncthreads();
    put_result<COLUMNS, 1>(tiles, warp_row, dk);
    __syncthreads();
    store_tile<T, COLUMNS, KEYS>(result, w.dk, a, b, group, j0, a.nk, column,
                                 [keep, scale](uint32_t) { return make_float2(keep, scale); });
    __syncthreads();
    put_result<COLUMNS, 1>(tiles, warp_row, dv);
    __syncthreads();
    store_tile<T, COLUMNS, KEYS>(result, w.dv, a, b, group, j0, a.nk, column,
                                 [keep](uint32_t) { return make_float2(keep, 1); });
}

template <typename T>
enum lh_status
launch_keys(const LhCudaBackward *w, void *stream)
{
    return with_columns<64, 96, 128, 256>(w->a.dim, [=](auto columns) {
        constexpr int D = decltype(columns)::value, SLICES = D / Layout<D>::COLUMNS;
        const dim3 grid((w->a.nk + KEYS - 1) / KEYS, w->a.groups, w->a.batch * SLICES);

        return launch(attention_backward_keys<T, D>, grid, Layout<D>::BYTES, w, stream);
    });
}
} // namespace

enum lh_status
lh_cuda_backward_keys(const LhCudaBackward *w, void *stream)
{
    return w->a.storage == LH_STORAGE_BF16 ? launch_keys<__nv_bfloat16>(w, stream)
                                           : launch_keys<__half>(w, stream);
}
