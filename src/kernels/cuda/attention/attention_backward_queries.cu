/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradients of the queries of a block, 16-bit elements. As the forward kernel, but a tile of k is
 * used twice: scores, dp = do v^T, then dq += ds k.
 */
#include "kernels/cuda/attention/tiles.cuh"

namespace
{
using namespace lh;

/* Groups of 16 rows per warp (M), and keys per tile. */
template <int D> struct Shape;

template <> struct Shape<64> : TileShape<2, 32> {
};
template <> struct Shape<96> : TileShape<2, 32> {
};
template <> struct Shape<128> : TileShape<1, 64> {
};
template <> struct Shape<256> : TileShape<1, 32> {
};

template <int D> struct Layout {
    static constexpr int M = Shape<D>::M, KEYS = Shape<D>::KEYS, ROWS = 16 * M * WARPS;
    static constexpr uint32_t TILE = 2 * D * KEYS; /* bytes of a tile of keys */
    static constexpr uint32_t DOUT = 2 * D * ROWS, K = 2 * DOUT, V = K + 2 * TILE;
    static constexpr uint32_t PLACES = V + 2 * TILE, SIGHTS = PLACES + 2 * 4 * KEYS;
    static constexpr uint32_t BYTES = SIGHTS + 8 * ROWS;

    static_assert(4 * D * ROWS <= PLACES, "the result fits");
};

/* Statistics of this thread's rows. */
template <int M> struct Statistics {
    float lse[M][2], delta[M][2]; /* lse in units of log 2 */
};

/* Turns scores and dp into ds without the scale; 0 where a row does not see a key. */
template <int M, int KEYS>
__device__ inline void
weigh(float (&s)[M][KEYS / 8][4], const float (&dp)[M][KEYS / 8][4], const Statistics<M> &x,
      float scale)
{
#pragma unroll
    for (int m = 0; m < M; m++) {
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++) {
#pragma unroll
            for (int i = 0; i < 4; i++)
                s[m][n][i] = exp2_fast(fmaf(s[m][n][i], scale, -x.lse[m][i / 2])) *
                             (dp[m][n][i] - x.delta[m][i / 2]);
        }
    }
}

template <typename T, int D>
__global__ void
__launch_bounds__(THREADS) attention_backward_queries(const __grid_constant__ LhCudaBackward w)
{
    typedef Layout<D> At;
    constexpr int M = At::M, KEYS = At::KEYS;
    extern __shared__ __align__(128) unsigned char memory[];
    const uint32_t tiles = shared_address(memory);
    int32_t *const places = (int32_t *)(memory + At::PLACES);
    RowSight *const sights = (RowSight *)(memory + At::SIGHTS);
    const LhCudaAttention &a = w.a;
    const uint32_t lane = threadIdx.x % WARP, warp_row = threadIdx.x / WARP * 16 * M;
    const uint32_t head = blockIdx.y, b = blockIdx.z, group = head / (a.heads / a.groups);
    const uint32_t q0 = (gridDim.x - 1 - blockIdx.x) * At::ROWS; /* longest rows first */
    const uint32_t last = min(q0 + At::ROWS, a.nq) - 1;
    const Sight sight = sight_of<keys_of>(a.mask, a.mask.q, q0, last);
    const Sight own = sight_of<keys_of>(a.mask, a.mask.q, min(q0 + warp_row, last),
                                        min(q0 + warp_row + 16 * M - 1, last));
    TileWalk<KEYS> keys = { .rows = a.nk };
    float dq[M][D / 8][4] = {};
    Statistics<M> statistics;

    keys.seek(a.mask.k, sight, 0);
    if (keys.more()) {
        load_tile<D, At::ROWS>(tiles, a, w.q, b, head, q0, a.nq);
        load_tile<D, At::ROWS>(tiles + At::DOUT, a, w.dout, b, head, q0, a.nq);
        load_tile<D, KEYS>(tiles + At::K, a, w.k, b, group, keys.tile * KEYS, a.nk);
        load_tile<D, KEYS>(tiles + At::V, a, w.v, b, group, keys.tile * KEYS, a.nk);
        copies_commit();
        keys.write_places(places, a.mask.k);
        if (threadIdx.x < At::ROWS)
            sights[threadIdx.x] = row_sight<keys_of>(a.mask, a.mask.q, min(q0 + threadIdx.x, last));
    }
#pragma unroll
    for (int i = 0; i < 2 * M; i++) {
        const uint32_t row = min(q0 + warp_row + 8 * i + lane / 4, last);

        statistics.lse[i / 2][i % 2] = *stat_at(w.lse, b, row, head) * LOG2E;
        statistics.delta[i / 2][i % 2] = *stat_at(w.delta, b, row, head);
    }
    for (uint32_t turn = 0; keys.more(); turn ^= 1) {
        TileWalk<KEYS> next = keys;

        next.seek(a.mask.k, sight, keys.tile + 1);
        copies_wait<0>();
        __syncthreads(); /* this tile is complete, and all threads are done with the previous one */
        if (next.more()) {
            const uint32_t to = (turn ^ 1) * At::TILE;

            load_tile<D, KEYS>(tiles + At::K + to, a, w.k, b, group, next.tile * KEYS, a.nk);
            load_tile<D, KEYS>(tiles + At::V + to, a, w.v, b, group, next.tile * KEYS, a.nk);
            copies_commit();
            next.write_places(places + (turn ^ 1) * KEYS, a.mask.k);
        }
        if (q0 + warp_row < a.nq && !own.misses(keys.places)) {
            const uint32_t k = tiles + At::K + turn * At::TILE;
            float s[M][KEYS / 8][4] = {}, dp[M][KEYS / 8][4] = {};

            multiply_rows<T, D, M, KEYS>(s, tiles, warp_row, k);
            multiply_rows<T, D, M, KEYS>(dp, tiles + At::DOUT, warp_row,
                                         tiles + At::V + turn * At::TILE);
            weigh<M, KEYS>(s, dp, statistics, a.scale * LOG2E);
            if (!keys.seen_by(own))
                hide<M, KEYS>(sights + warp_row, places + turn * KEYS, 0, s);
            multiply_weights<T, D, D, M, KEYS>(dq, s, k, 0);
        }
        keys = next;
    }

    float *const result = (float *)memory;
    const float keep = w.load ? 1 : 0, scale = a.scale;

    __syncthreads();
    put_result<D, M>(tiles, warp_row, dq);
    __syncthreads();
    store_tile<T, D, At::ROWS>(result, w.dq, a, b, head, q0, a.nq, 0,
                               [keep, scale](uint32_t) { return make_float2(keep, scale); });
}

template <typename T>
enum lh_status
launch_queries(const LhCudaBackward *w, void *stream)
{
    return with_columns<64, 96, 128, 256>(w->a.dim, [=](auto columns) {
        constexpr int D = decltype(columns)::value;
        const dim3 grid((w->a.nq + Layout<D>::ROWS - 1) / Layout<D>::ROWS, w->a.heads, w->a.batch);

        return launch(attention_backward_queries<T, D>, grid, Layout<D>::BYTES, w, stream);
    });
}
} // namespace

enum lh_status
lh_cuda_backward_queries(const LhCudaBackward *w, void *stream)
{
    return w->a.storage == LH_STORAGE_BF16 ? launch_queries<__nv_bfloat16>(w, stream)
                                           : launch_queries<__half>(w, stream);
}
