/* SPDX-License-Identifier: Apache-2.0 */
// Elements of the three storage types, one or a group at a time, converted from and to fp32.
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/operands.h"

#include <math_constants.h>
#include <type_traits>

namespace lh
{

// Consecutive elements per thread: 16 bytes of the widest operand's. The requests of a warp, each
// for a line of such groups, then cover whole sectors of all operands.
constexpr int GROUP = LH_CUDA_GROUP, FP32_GROUP = 4;
constexpr unsigned ALL_LANES = 0xffffffffU;

__device__ inline uint32_t
size_of(uint32_t storage)
{
    return storage == LH_STORAGE_FP32 ? 4 : 2;
}

__device__ inline float
get(const unsigned char *at, uint32_t storage)
{
    if (storage == LH_STORAGE_FP32)
        return *reinterpret_cast<const float *>(at);
    if (storage == LH_STORAGE_BF16)
        return __bfloat162float(*reinterpret_cast<const __nv_bfloat16 *>(at));
    return __half2float(*reinterpret_cast<const __half *>(at));
}

__device__ inline void
put(unsigned char *at, uint32_t storage, float x)
{
    if (storage == LH_STORAGE_FP32)
        *reinterpret_cast<float *>(at) = x;
    else if (storage == LH_STORAGE_BF16)
        *reinterpret_cast<__nv_bfloat16 *>(at) = __float2bfloat16_rn(x);
    else
        *reinterpret_cast<__half *>(at) = __float2half_rn(x);
}

__device__ inline float2
unpack(uint32_t pair, uint32_t storage)
{
    if (storage == LH_STORAGE_BF16)
        return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000U));
    return __half22float2(*reinterpret_cast<const __half2 *>(&pair));
}

__device__ inline uint32_t
pack(float low, float high, uint32_t storage)
{
    if (storage == LH_STORAGE_BF16) {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);

        return *reinterpret_cast<const uint32_t *>(&pair);
    }
    const __half2 pair = __floats2half2_rn(low, high);

    return *reinterpret_cast<const uint32_t *>(&pair);
}

// Reads a whole group, aligned to its bytes; fp32 has FP32_GROUPs only.
template <int N>
__device__ inline void
get_group(const unsigned char *at, uint32_t storage, float (&x)[N])
{
    uint32_t pairs[N / 2];

    if constexpr (N == GROUP) {
        const uint4 all = *reinterpret_cast<const uint4 *>(at);

        pairs[0] = all.x, pairs[1] = all.y, pairs[2] = all.z, pairs[3] = all.w;
    } else if (storage == LH_STORAGE_FP32) {
        const float4 all = *reinterpret_cast<const float4 *>(at);

        x[0] = all.x, x[1] = all.y, x[2] = all.z, x[3] = all.w;
        return;
    } else {
        const uint2 all = *reinterpret_cast<const uint2 *>(at);

        pairs[0] = all.x, pairs[1] = all.y;
    }
#pragma unroll
    for (int i = 0; i < N / 2; i++) {
        const float2 pair = unpack(pairs[i], storage);

        x[2 * i] = pair.x;
        x[2 * i + 1] = pair.y;
    }
}

template <int N>
__device__ inline void
put_group(unsigned char *at, uint32_t storage, const float (&x)[N])
{
    if constexpr (N == GROUP)
        *reinterpret_cast<uint4 *>(at) =
            make_uint4(pack(x[0], x[1], storage), pack(x[2], x[3], storage),
                       pack(x[4], x[5], storage), pack(x[6], x[7], storage));
    else if (storage == LH_STORAGE_FP32)
        *reinterpret_cast<float4 *>(at) = make_float4(x[0], x[1], x[2], x[3]);
    else
        *reinterpret_cast<uint2 *>(at) =
            make_uint2(pack(x[0], x[1], storage), pack(x[2], x[3], storage));
}

// Read and write the first @count elements of a contiguous group; the others read as 0 and are not
// written. @whole: the group is complete and aligned.
template <int N>
__device__ inline void
get_some(const unsigned char *at, uint32_t storage, int count, bool whole, float (&x)[N])
{
    const uint32_t size = size_of(storage);

    if (whole) {
        get_group(at, storage, x);
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        x[i] = i < count ? get(at + i * size, storage) : 0.F;
}

template <int N>
__device__ inline void
put_some(unsigned char *at, uint32_t storage, int count, bool whole, const float (&x)[N])
{
    const uint32_t size = size_of(storage);

    if (whole) {
        put_group(at, storage, x);
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        if (i < count)
            put(at + i * size, storage, x[i]);
}

// Returns the number of elements, at most a group, from @first to @size.
template <int N, typename Size>
__device__ inline int
count_at(Size first, Size size)
{
    return static_cast<int>(min(size - first, static_cast<Size>(N)));
}

// Calls @call with the group size as an integral constant: FP32_GROUP if an operand is fp32.
template <typename Call>
inline enum lh_status
with_group(bool any_fp32, Call call)
{
    return any_fp32 ? call(std::integral_constant<int, FP32_GROUP>())
                    : call(std::integral_constant<int, GROUP>());
}

inline bool
is_fp32(uint32_t storage)
{
    return storage == LH_STORAGE_FP32;
}

// Sums and maxima over a block, in a fixed order; all of its threads get the result.
enum Fold { SUM, MAXIMUM };

__device__ inline float
fold(Fold how, float a, float b)
{
    return how == SUM ? a + b : fmaxf(a, b);
}

template <unsigned THREADS, Fold HOW>
__device__ inline float
over_block(float x)
{
    __shared__ float of_warps[THREADS / WARP];
    const unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;

#pragma unroll
    for (unsigned step = WARP / 2; step > 0; step /= 2)
        x = fold(HOW, x, __shfl_xor_sync(ALL_LANES, x, step));
    __syncthreads(); // of_warps may still be read by an earlier call
    if (lane == 0)
        of_warps[warp] = x;
    __syncthreads();
    x = of_warps[0];
#pragma unroll
    for (unsigned i = 1; i < THREADS / WARP; i++)
        x = fold(HOW, x, of_warps[i]);
    return x;
}

template <unsigned THREADS>
__device__ inline float
block_sum(float x)
{
    return over_block<THREADS, SUM>(x);
}

template <unsigned THREADS>
__device__ inline float
block_max(float x)
{
    return over_block<THREADS, MAXIMUM>(x);
}

} // namespace lh
