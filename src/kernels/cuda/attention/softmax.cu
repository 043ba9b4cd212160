/* SPDX-License-Identifier: Apache-2.0 */
// Softmax of rows of scores: one block per row, with one pass each for maximum, sum and result.
// Repeated reads hit the cache.
#include "kernels/cuda/attention/mask.cuh"
#include "kernels/cuda/attention/softmax.h"
#include "kernels/cuda/matrix.cuh"
#include "kernels/cuda/tensor.cuh"

namespace
{
using namespace lh;

constexpr uint32_t THREADS = 128;

// Reads logits in base e; -inf for keys that are masked or beyond the row.
template <int N>
__device__ inline void
get_logits(const LhCudaSoftmax &s, const Interval &seen, uint32_t column, float (&x)[N])
{
    const int count = count_at<N>(column, s.keys);

    get_columns(s.scores, blockIdx.x, column, count, x);
#pragma unroll
    for (int i = 0; i < N; i++) {
        const int32_t place = i < count ? place_of(s.mask.k, column + i) : NOWHERE;

        x[i] =
            i < count && place >= seen.first && place <= seen.last ? x[i] * s.scale : -CUDART_INF_F;
    }
}

template <int N>
__global__ void
__launch_bounds__(THREADS, 1) softmax(const __grid_constant__ LhCudaSoftmax s)
{
    const Place row = place_of(static_cast<uint64_t>(blockIdx.x), s.queries, s.heads);
    const Interval seen = keys_of(s.mask, place_of(s.mask.q, static_cast<uint32_t>(row.row)));
    const uint32_t first = threadIdx.x * N, step = THREADS * N;
    float most = -CUDART_INF_F, sum = 0.F, x[N];

    for (uint32_t column = first; column < s.keys; column += step) {
        get_logits(s, seen, column, x);
#pragma unroll
        for (int i = 0; i < N; i++)
            most = fmaxf(most, x[i]);
    }
    most = block_max<THREADS>(most);
    const float base = most == -CUDART_INF_F ? 0.F : most;

    for (uint32_t column = first; column < s.keys; column += step) {
        get_logits(s, seen, column, x);
#pragma unroll
        for (int i = 0; i < N; i++)
            sum += expf(x[i] - base);
    }
    sum = block_sum<THREADS>(sum);
    const float share = sum > 0.F ? 1.F / sum : 0.F;

    for (uint32_t column = first; column < s.keys; column += step) {
        get_logits(s, seen, column, x);
#pragma unroll
        for (int i = 0; i < N; i++)
            x[i] = expf(x[i] - base) * share;
        put_columns(s.probs, blockIdx.x, column, count_at<N>(column, s.keys), x);
    }
    if (threadIdx.x == 0)
        stat_at(s.lse, row) = sum > 0.F ? most + logf(sum) : -CUDART_INF_F;
}

// May work in place: a thread reads its elements before it overwrites them.
template <int N>
__global__ void
__launch_bounds__(THREADS) softmax_bwd(const __grid_constant__ LhCudaSoftmax s)
{
    const uint32_t first = threadIdx.x * N, step = THREADS * N;
    float sum = 0.F, p[N], dp[N];

    for (uint32_t column = first; column < s.keys; column += step) {
        get_columns(s.probs, blockIdx.x, column, count_at<N>(column, s.keys), p);
        get_columns(s.scores, blockIdx.x, column, count_at<N>(column, s.keys), dp);
#pragma unroll
        for (int i = 0; i < N; i++)
            sum = fmaf(p[i], dp[i], sum);
    }
    sum = block_sum<THREADS>(sum);
    for (uint32_t column = first; column < s.keys; column += step) {
        get_columns(s.probs, blockIdx.x, column, count_at<N>(column, s.keys), p);
        get_columns(s.scores, blockIdx.x, column, count_at<N>(column, s.keys), dp);
#pragma unroll
        for (int i = 0; i < N; i++)
            dp[i] = s.scale * p[i] * (dp[i] - sum);
        put_columns(s.dscores, blockIdx.x, column, count_at<N>(column, s.keys), dp);
    }
}

enum lh_status
launch(void (*kernel)(LhCudaSoftmax), const LhCudaSoftmax &s, void *stream)
{
    if (s.rows > 0)
        kernel<<<s.rows, THREADS, 0, static_cast<cudaStream_t>(stream)>>>(s);
    return launched();
}
} // namespace

enum lh_status
lh_cuda_softmax(const LhCudaSoftmax *s, void *stream)
{
    return with_group(is_fp32(s->scores.storage) || is_fp32(s->probs.storage), [=](auto group) {
        return launch(softmax<decltype(group)::value>, *s, stream);
    });
}

enum lh_status
lh_cuda_softmax_bwd(const LhCudaSoftmax *s, void *stream)
{
    const bool any_fp32 =
        is_fp32(s->scores.storage) || is_fp32(s->probs.storage) || is_fp32(s->dscores.storage);

    return with_group(any_fp32, [=](auto group) {
        return launch(softmax_bwd<decltype(group)::value>, *s, stream);
    });
}
