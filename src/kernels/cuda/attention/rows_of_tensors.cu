/* SPDX-License-Identifier: Apache-2.0 */
// Combines rows of attention's tensors. A team of lanes has a row of a head: each lane reads the
// row's statistics and processes groups of its elements; the first writes the new statistics. Bound
// by memory: rows with factor 0 are not read.
#include "kernels/cuda/attention/rows_of_tensors.h"
#include "kernels/cuda/tensor.cuh"

namespace
{
using namespace lh;

constexpr unsigned THREADS = 256;
#define NONE (-CUDART_INF_F)

struct Factors {
    float target, source;
    float stats[2]; // new statistics of the target
};

__device__ inline float
exp_or_zero(float x, float less)
{
    return x == NONE ? 0.F : expf(x - less);
}

// A source with m = -inf and an empty target have weight 0; -inf - -inf is never computed.
__device__ inline Factors
merge(const LhCudaCombination &c, const Place &p)
{
    const float source = stat_at(c.source_stat[0], p);
    const float before = c.first ? NONE : stat_at(c.target_stat[0], p);
    const float maximum = fmaxf(before, source);
    Factors f = { exp_or_zero(before, maximum), exp_or_zero(source, maximum), { maximum, 0.F } };

    if (f.target != 0.F)
        f.stats[1] += f.target * stat_at(c.target_stat[1], p);
    if (f.source != 0.F)
        f.stats[1] +=
            f.source * (c.source_stat[1].data == nullptr ? 1.F : stat_at(c.source_stat[1], p));
    return f;
}

// A block without keys changes nothing; an empty target is replaced. Otherwise the factors are
// sigmoids of the difference and of its negative.
__device__ inline Factors
merge_lse(const LhCudaCombination &c, const Place &p)
{
    const float block = stat_at(c.source_stat[0], p);
    const float out = c.first ? NONE : stat_at(c.target_stat[0], p);

    if (block == NONE || out == NONE)
        return { out == NONE ? 0.F : 1.F, block == NONE ? 0.F : 1.F, { fmaxf(block, out) } };
    const float smaller = expf(-fabsf(block - out));
    const float larger_share = 1.F / (1.F + smaller), smaller_share = smaller * larger_share;
    const bool grows = block > out;

    return { grows ? smaller_share : larger_share,
             grows ? larger_share : smaller_share,
             { fmaxf(block, out) + log1pf(smaller) } };
}

__device__ inline Factors
normalise(const LhCudaCombination &c, const Place &p)
{
    const float m = stat_at(c.source_stat[0], p), l = stat_at(c.source_stat[1], p);

    return { 0.F, l > 0.F ? 1.F / l : 0.F, { l > 0.F ? m + logf(l) : NONE } };
}

__device__ inline Factors
factors_of(const LhCudaCombination &c, const Place &p)
{
    switch (c.way) {
    case LH_CUDA_MERGE:
        return merge(c, p);
    case LH_CUDA_MERGE_LSE:
    case LH_CUDA_MERGE_STAT:
        return merge_lse(c, p);
    case LH_CUDA_NORMALISE:
        return normalise(c, p);
    case LH_CUDA_WEIGH:
        return { c.first ? 0.F : 1.F,
                 exp_or_zero(stat_at(c.source_stat[0], p), stat_at(c.source_stat[1], p)) };
    case LH_CUDA_ROUND: {
        const float lse = stat_at(c.source_stat[0], p);

        return { 0.F, lse == NONE ? 0.F : 1.F, { lse } };
    }
    default:
        return { 0.F, 1.F };
    }
}

template <int N>
__device__ inline void
combine_elements(const LhCudaCombination &c, const Factors &f, const Place &from, const Place &to,
                 uint32_t lane)
{
    const unsigned char *source = row_at(c.source, from);
    unsigned char *target = row_at(c.target, to);
    const bool whole = c.source.grouped && c.target.grouped;

    for (uint32_t column = lane * N; column < c.target.dim; column += c.lanes * N) {
        const int count = count_at<N>(column, c.target.dim);
        float x[N] = {}, y[N] = {};

        if (f.target != 0.F)
            get_some(target + column * size_of(c.target.storage), c.target.storage, count, whole,
                     y);
        if (f.source != 0.F)
            get_some(source + column * size_of(c.source.storage), c.source.storage, count, whole,
                     x);
#pragma unroll
        for (int i = 0; i < N; i++)
            y[i] = f.target * y[i] + f.source * x[i];
        put_some(target + column * size_of(c.target.storage), c.target.storage, count, whole, y);
    }
}

template <int N>
__global__ void
__launch_bounds__(THREADS) combine(const __grid_constant__ LhCudaCombination c)
{
    const uint64_t thread = static_cast<uint64_t>(blockIdx.x) * THREADS + threadIdx.x;
    const uint64_t index = thread / c.lanes;
    const uint32_t lane = threadIdx.x % c.lanes;
    const bool there = index < c.batch * c.rows * c.heads;
    const Place to = place_of(there ? index : 0, c.rows, c.heads);
    const Place from = { to.sequence, to.row, to.head / c.share };
    const Factors f = factors_of(c, to);

    __syncwarp(); // all lanes have read the statistics before the first overwrites them
    if (!there)
        return;
    if (c.target.data != nullptr)
        combine_elements<N>(c, f, from, to, lane);
    if (lane == 0 && c.target_stat[0].data != nullptr)
        stat_at(c.target_stat[0], to) = f.stats[0];
    if (lane == 0 && c.target_stat[1].data != nullptr)
        stat_at(c.target_stat[1], to) = f.stats[1];
}

// Least power of 2 of lanes, up to a warp, with at least a lane per group.
uint32_t
lanes_for(uint32_t dim, uint32_t group)
{
    uint32_t lanes = 1;

    while (lanes < WARP && lanes * group < dim)
        lanes *= 2;
    return lanes;
}

template <int N>
enum lh_status
launch(LhCudaCombination c, cudaStream_t stream)
{
    c.lanes = c.target.data == nullptr ? 1 : lanes_for(c.target.dim, N);

    const uint64_t threads = c.batch * c.rows * c.heads * c.lanes;
    const uint64_t blocks = (threads + THREADS - 1) / THREADS;

    if (blocks > INT32_MAX)
        return LH_STATUS_UNSUPPORTED;
    if (blocks > 0)
        combine<N><<<static_cast<uint32_t>(blocks), THREADS, 0, stream>>>(c);
    return launched();
}
} // namespace

enum lh_status
lh_cuda_combine(const LhCudaCombination *c, void *stream)
{
    return with_group(is_fp32(c->source.storage) || is_fp32(c->target.storage), [=](auto group) {
        return launch<decltype(group)::value>(*c, static_cast<cudaStream_t>(stream));
    });
}
