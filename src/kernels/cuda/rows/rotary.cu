/* SPDX-License-Identifier: Apache-2.0 */
// Conversion between rows and heads. A thread has a group of a head's elements and, if they are
// rotated, the group half a head further on that forms pairs with it.
//
// An angle is a position times a frequency, in 2^-64 of a circle. Overflow of 64 bits drops whole
// circles, so angles are as exact at a position of 10^9 as at 0.
#include "kernels/cuda/matrix.cuh"
#include "kernels/cuda/rows/rotary.h"

namespace
{
using namespace lh;

constexpr uint32_t THREADS = 256;

__device__ inline uint64_t
position_of(const LhCudaTurn &t, uint32_t row)
{
    const uint32_t member = row / t.member_rows / t.batch;

    return t.start +
           (static_cast<uint64_t>(member) * t.member_rows + row % t.member_rows) * t.stride;
}

__device__ inline float
sigmoid(float x)
{
    return __fdividef(1.F, 1.F + expf(-x));
}

template <int N>
__device__ inline void
apply_silu(float (&x)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        x[i] *= sigmoid(x[i]);
}

// Gradient of silu at the forward pass's group.
template <int N>
__device__ inline void
apply_silu_bwd(const LhCudaTurn &t, uint32_t row, uint32_t column, int count, float (&x)[N])
{
    float before[N];

    get_columns(t.forward, row, t.forward_column + column, count, before);
#pragma unroll
    for (int i = 0; i < N; i++) {
        const float s = sigmoid(before[i]);

        x[i] *= s * (1.F + before[i] * (1.F - s));
    }
}

template <int N>
__device__ inline void
turn_group(const LhCudaTurn &t, uint64_t position, uint32_t first, int count, float (&x)[N],
           float (&y)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        const uint64_t turns = i < count ? position * t.frequencies[first + i] : 0;
        float sine, cosine;

        sincospif(static_cast<float>(static_cast<int32_t>(turns >> 32)) * 0x1p-31F, &sine, &cosine);
        sine = t.back ? -sine : sine;
        const float a = x[i], b = y[i];

        x[i] = a * cosine - b * sine;
        y[i] = b * cosine + a * sine;
    }
}

template <int N>
__global__ void
__launch_bounds__(THREADS) turn(const __grid_constant__ LhCudaTurn t)
{
    const uint32_t half = t.turns ? t.dim / 2 : t.dim;
    const uint32_t groups = (half + N - 1) / N;
    const uint64_t index = static_cast<uint64_t>(blockIdx.x) * THREADS + threadIdx.x;
    const uint32_t first = static_cast<uint32_t>(index % groups) * N;
    const uint32_t head = static_cast<uint32_t>(index / groups % t.heads);
    const uint32_t column = head * t.dim + first;
    const uint64_t row = index / groups / t.heads;
    const int count = count_at<N>(first, half);
    float x[N], y[N] = {};

    if (row >= t.rows)
        return;
    const uint32_t r = static_cast<uint32_t>(row);

    get_columns(t.from, r, t.from_column + column, count, x);
    if (t.turns)
        get_columns(t.from, r, t.from_column + column + half, count, y);
    if (t.silu && !t.gradient) {
        apply_silu(x);
        apply_silu(y);
    }
    if (t.turns)
        turn_group(t, position_of(t, r), first, count, x, y);
    if (t.silu && t.gradient) {
        apply_silu_bwd(t, r, column, count, x);
        if (t.turns)
            apply_silu_bwd(t, r, column + half, count, y);
    }
    put_columns(t.to, r, t.to_column + column, count, x);
    if (t.turns)
        put_columns(t.to, r, t.to_column + column + half, count, y);
}

template <int N>
enum lh_status
launch(const LhCudaTurn &t, cudaStream_t stream)
{
    const uint64_t half = t.turns ? t.dim / 2 : t.dim;
    const uint64_t threads = t.rows * static_cast<uint64_t>(t.heads) * ((half + N - 1) / N);
    const uint64_t blocks = (threads + THREADS - 1) / THREADS;

    if (blocks > INT32_MAX)
        return LH_STATUS_UNSUPPORTED;
    if (blocks > 0)
        turn<N><<<static_cast<uint32_t>(blocks), THREADS, 0, stream>>>(t);
    return launched();
}
} // namespace

enum lh_status
lh_cuda_turn(const LhCudaTurn *t, void *stream)
{
    const bool any_fp32 = is_fp32(t->from.storage) || is_fp32(t->to.storage) ||
                          (t->gradient && is_fp32(t->forward.storage));

    return with_group(any_fp32, [=](auto group) {
        return launch<decltype(group)::value>(*t, static_cast<cudaStream_t>(stream));
    });
}
