/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention of a block, forward, 16-bit elements, with tensor cores by mma.sync, which every GPU
 * from sm_80 on has. A block of 4 warps has 64 M query rows of one head, a warp 16 M of them. It
 * iterates over the tiles of keys that they see and copies the next tile's k and v meanwhile.
 * Scores stay in registers and are the A operand of the second product. Earlier blocks' o, m and l
 * are merged at the end, when the results are written.
 *
 * Reads q once, and k and v once for each tile of queries of every head: 4 d bytes a key row, from
 * the L2, for 256 M d flops.
 */
#include "kernels/cuda/attention/tiles.cuh"

namespace
{
using namespace lh;

/* Groups of 16 rows per warp (M), and keys per tile, limited by registers. */
template <int D> struct Shape;

template <> struct Shape<64> : TileShape<2, 64> {
};
template <> struct Shape<96> : TileShape<2, 64> {
};
template <> struct Shape<128> : TileShape<2, 32> {
};
template <> struct Shape<256> : TileShape<1, 32> {
};

/* The block's shared memory. The result overwrites the tiles. */
template <int D> struct Layout {
    static constexpr int M = Shape<D>::M, KEYS = Shape<D>::KEYS, ROWS = 16 * M * WARPS;
    static constexpr uint32_t TILE = 2 * D * KEYS; /* bytes of a tile of keys */
    static constexpr uint32_t K = 2 * D * ROWS, V = K + 2 * TILE, PLACES = V + 2 * TILE;
    static constexpr uint32_t SIGHTS = PLACES + 2 * 4 * KEYS, BYTES = SIGHTS + 8 * ROWS;

    static_assert(4 * D * ROWS <= PLACES, "the result fits");
};

/* Per row, logits in units of log 2: maximum so far, and sum over this thread's columns. */
template <int M> struct Softmax {
    float top[M][2], sum[M][2];
};

/* Turns scores into weights; rescales o and the sums to the new maximum. */
template <int D, int M, int KEYS>
__device__ inline void
soften(Softmax<M> &x, float (&s)[M][KEYS / 8][4], float (&o)[M][D / 8][4], float scale)
{
#pragma unroll
    for (int m = 0; m < M; m++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float top = x.top[m][h], sum = 0;

#pragma unroll
            for (int n = 0; n < KEYS / 8; n++)
                top = fmaxf(top, fmaxf(s[m][n][2 * h], s[m][n][2 * h + 1]));
            top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, 1));
            top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, 2));

            const float base = top == -CUDART_INF_F ? 0 : __fmul_rn(top, scale);
            const float factor =
                exp2_fast(__fmul_rn(x.top[m][h], scale) - base); /* 0 for a row's first keys */

#pragma unroll
            for (int n = 0; n < KEYS / 8; n++) {
#pragma unroll
                for (int e = 2 * h; e < 2 * h + 2; e++) {
                    s[m][n][e] = exp2_fast(fmaf(s[m][n][e], scale, -base));
                    sum += s[m][n][e];
                }
            }
            x.top[m][h] = top;
            x.sum[m][h] = x.sum[m][h] * factor + sum;
#pragma unroll
            for (int n = 0; n < D / 8; n++) {
                o[m][n][2 * h] *= factor;
                o[m][n][2 * h + 1] *= factor;
            }
        }
    }
}

template <typename T, int D>
__global__ void
__launch_bounds__(THREADS) attention_forward(const __grid_constant__ LhCudaForward f)
{
    typedef Layout<D> At;
    constexpr int M = At::M, KEYS = At::KEYS;
    extern __shared__ __align__(128) unsigned char memory[];
    const uint32_t tiles = shared_address(memory);
    int32_t *const places = (int32_t *)(memory + At::PLACES);
    RowSight *const sights = (RowSight *)(memory + At::SIGHTS);
    const LhCudaAttention &a = f.a;
    const uint32_t lane = threadIdx.x % WARP, warp_row = threadIdx.x / WARP * 16 * M;
    const uint32_t head = blockIdx.y, b = blockIdx.z, group = head / (a.heads / a.groups);
    const uint32_t q0 = (gridDim.x - 1 - blockIdx.x) * At::ROWS; /* longest rows first */
    const uint32_t last = min(q0 + At::ROWS, a.nq) - 1;
    const Sight sight = sight_of<keys_of>(a.mask, a.mask.q, q0, last);
    const Sight own = sight_of<keys_of>(a.mask, a.mask.q, min(q0 + warp_row, last),
                                        min(q0 + warp_row + 16 * M - 1, last));
    const float scale = a.scale * LOG2E;
    TileWalk<KEYS> keys = { .rows = a.nk };
    float o[M][D / 8][4] = {};
    Softmax<M> softmax;

#pragma unroll
    for (int m = 0; m < M; m++) {
        softmax.top[m][0] = softmax.top[m][1] = -CUDART_INF_F;
        softmax.sum[m][0] = softmax.sum[m][1] = 0;
    }
    keys.seek(a.mask.k, sight, 0);
    if (keys.more()) {
        load_tile<D, At::ROWS>(tiles, a, f.q, b, head, q0, a.nq);
        load_tile<D, KEYS>(tiles + At::K, a, f.k, b, group, keys.tile * KEYS, a.nk);
        load_tile<D, KEYS>(tiles + At::V, a, f.v, b, group, keys.tile * KEYS, a.nk);
        copies_commit();
        keys.write_places(places, a.mask.k);
        if (threadIdx.x < At::ROWS)
            sights[threadIdx.x] = row_sight<keys_of>(a.mask, a.mask.q, min(q0 + threadIdx.x, last));
    }
    for (uint32_t turn = 0; keys.more(); turn ^= 1) {
        TileWalk<KEYS> next = keys;

        next.seek(a.mask.k, sight, keys.tile + 1);
        copies_wait<0>();
        __syncthreads(); /* this tile is complete, and all threads are done with the previous one */
        if (next.more()) {
            const uint32_t to = (turn ^ 1) * At::TILE;

            load_tile<D, KEYS>(tiles + At::K + to, a, f.k, b, group, next.tile * KEYS, a.nk);
            load_tile<D, KEYS>(tiles + At::V + to, a, f.v, b, group, next.tile * KEYS, a.nk);
            copies_commit();
            next.write_places(places + (turn ^ 1) * KEYS, a.mask.k);
        }
        if (q0 + warp_row < a.nq && !own.misses(keys.places)) {
            float s[M][KEYS / 8][4] = {};

            multiply_rows<T, D, M, KEYS>(s, tiles, warp_row, tiles + At::K + turn * At::TILE);
            if (!keys.seen_by(own))
                hide<M, KEYS>(sights + warp_row, places + turn * KEYS, -CUDART_INF_F, s);
            soften<D, M, KEYS>(softmax, s, o, scale);
            multiply_weights<T, D, D, M, KEYS>(o, s, tiles + At::V + turn * At::TILE, 0);
        }
        keys = next;
    }

    float *const result = (float *)memory;
    float2 *const rows = (float2 *)(memory + At::SIGHTS);

    __syncthreads();
    put_result<D, M>(tiles, warp_row, o);
#pragma unroll
    for (int m = 0; m < M; m++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float sum = softmax.sum[m][h];

            sum += __shfl_xor_sync(0xffffffff, sum, 1);
            sum += __shfl_xor_sync(0xffffffff, sum, 2);
            if (lane % 4 == 0)
                rows[warp_row + 16 * m + 8 * h + lane / 4] =
                    make_float2(softmax.top[m][h] * (scale * LN2), sum);
        }
    }
    __syncthreads();
    if (threadIdx.x < At::ROWS && q0 + threadIdx.x < a.nq)
        rows[threadIdx.x] = finish_row(f, rows[threadIdx.x], b, q0 + threadIdx.x, head);
    __syncthreads();
    store_tile<T, D, At::ROWS>(result, f.o, a, b, head, q0, a.nq, 0,
                               [rows](uint32_t row) { return rows[row]; });
}

template <typename T>
enum lh_status
launch_forward(const LhCudaForward *f, void *stream)
{
    return with_columns<64, 96, 128, 256>(f->a.dim, [=](auto columns) {
        constexpr int D = decltype(columns)::value;
        const dim3 grid((f->a.nq + Layout<D>::ROWS - 1) / Layout<D>::ROWS, f->a.heads, f->a.batch);

        return launch(attention_forward<T, D>, grid, Layout<D>::BYTES, f, stream);
    });
}
} // namespace

enum lh_status
lh_cuda_forward(const LhCudaForward *f, void *stream)
{
    return f->a.storage == LH_STORAGE_BF16 ? launch_forward<__nv_bfloat16>(f, stream)
                                           : launch_forward<__half>(f, stream);
}
