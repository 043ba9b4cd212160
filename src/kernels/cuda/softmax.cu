// Softmax of rows of scores: a block has a row, and goes through it for the maximum, for the sum
// and for the result. A row that is read again comes from the cache.
#include "kernels/cuda/mask.cuh"
#include "kernels/cuda/matrix.cuh"
#include "kernels/cuda/softmax.h"
#include "kernels/cuda/tensor.cuh"

namespace
{
using namespace lh;

constexpr uint32_t THREADS = 128;

__device__ inline int
count_at(const LhCudaSoftmax &s, uint32_t column)
{
    return static_cast<int>(min(s.keys - column, static_cast<uint32_t>(GROUP)));
}

// Logits in base e; -inf of what the row does not see, or has not.
__device__ inline void
get_logits(const LhCudaSoftmax &s, const Interval &seen, uint32_t column, float (&x)[GROUP])
{
    const int count = count_at(s, column);

    get_columns(s.scores, blockIdx.x, column, count, x);
#pragma unroll
    for (int i = 0; i < GROUP; i++) {
        const int32_t place = i < count ? place_of(s.mask.k, column + i) : NOWHERE;

        x[i] =
            i < count && place >= seen.first && place <= seen.last ? x[i] * s.scale : -CUDART_INF_F;
    }
}

__global__ void
__launch_bounds__(THREADS) softmax(const __grid_constant__ LhCudaSoftmax s)
{
    const Place row = place_of(static_cast<uint64_t>(blockIdx.x), s.queries, s.heads);
    const Interval seen = keys_of(s.mask, place_of(s.mask.q, static_cast<uint32_t>(row.row)));
    const uint32_t first = threadIdx.x * GROUP, step = THREADS * GROUP;
    float most = -CUDART_INF_F, sum = 0.F, x[GROUP];

    for (uint32_t column = first; column < s.keys; column += step) {
        get_logits(s, seen, column, x);
#pragma unroll
        for (int i = 0; i < GROUP; i++)
            most = fmaxf(most, x[i]);
    }
    most = block_max<THREADS>(most);
    const float base = most == -CUDART_INF_F ? 0.F : most;

    for (uint32_t column = first; column < s.keys; column += step) {
        get_logits(s, seen, column, x);
#pragma unroll
        for (int i = 0; i < GROUP; i++)
            sum += expf(x[i] - base);
    }
    sum = block_sum<THREADS>(sum);
    const float share = sum > 0.F ? 1.F / sum : 0.F;

    for (uint32_t column = first; column < s.keys; column += step) {
        get_logits(s, seen, column, x);
#pragma unroll
        for (int i = 0; i < GROUP; i++)
            x[i] = expf(x[i] - base) * share;
        put_columns(s.probs, blockIdx.x, column, count_at(s, column), x);
    }
    if (threadIdx.x == 0)
        stat_at(s.lse, row) = sum > 0.F ? most + logf(sum) : -CUDART_INF_F;
}

// May work in place: a thread has read what it overwrites.
__global__ void
__launch_bounds__(THREADS) softmax_bwd(const __grid_constant__ LhCudaSoftmax s)
{
    const uint32_t first = threadIdx.x * GROUP, step = THREADS * GROUP;
    float sum = 0.F, p[GROUP], dp[GROUP];

    for (uint32_t column = first; column < s.keys; column += step) {
        get_columns(s.probs, blockIdx.x, column, count_at(s, column), p);
        get_columns(s.scores, blockIdx.x, column, count_at(s, column), dp);
#pragma unroll
        for (int i = 0; i < GROUP; i++)
            sum = fmaf(p[i], dp[i], sum);
    }
    sum = block_sum<THREADS>(sum);
    for (uint32_t column = first; column < s.keys; column += step) {
        get_columns(s.probs, blockIdx.x, column, count_at(s, column), p);
        get_columns(s.scores, blockIdx.x, column, count_at(s, column), dp);
#pragma unroll
        for (int i = 0; i < GROUP; i++)
            dp[i] = s.scale * p[i] * (dp[i] - sum);
        put_columns(s.dscores, blockIdx.x, column, count_at(s, column), dp);
    }
}
} // namespace

enum lh_status
lh_cuda_softmax(const LhCudaSoftmax *s, void *stream)
{
    if (s->rows > 0)
        softmax<<<s->rows, THREADS, 0, static_cast<cudaStream_t>(stream)>>>(*s);
    return launched();
}

enum lh_status
lh_cuda_softmax_bwd(const LhCudaSoftmax *s, void *stream)
{
    if (s->rows > 0)
        softmax_bwd<<<s->rows, THREADS, 0, static_cast<cudaStream_t>(stream)>>>(*s);
    return launched();
}
