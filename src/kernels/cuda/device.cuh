/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Common device code of all kernels: rows of tensors, elements, and the status of a launch.
 */
#pragma once

#include "kernels/cuda/rows/rows.h"
#include "kernels/status.h"

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace lh
{

constexpr unsigned WARP = 32;

/* Returns the first element of a row and head; @bytes is the size of its dim elements. */
__device__ inline unsigned char *
row_at(const LhCudaRows &t, uint32_t sequence, uint32_t row, uint32_t head, uint32_t bytes)
{
    const uint32_t part = row / t.part_rows, local = row - part * t.part_rows;

    return t.data + part * t.part_bytes +
           (((uint64_t)sequence * t.part_rows + local) * t.heads + head) * bytes;
}

/* Returns a statistic of a row and head. */
__device__ inline float *
stat_at(const LhCudaRows &t, uint32_t sequence, uint32_t row, uint32_t head)
{
    return (float *)row_at(t, sequence, row, head, sizeof(float));
}

__device__ inline float
to_float(float x)
{
    return x;
}

__device__ inline float
to_float(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}

__device__ inline float
to_float(__half x)
{
    return __half2float(x);
}

/* Rounded to nearest even. */
template <typename T> __device__ inline T from_float(float x);

template <>
__device__ inline float
from_float<float>(float x)
{
    return x;
}

template <>
__device__ inline __nv_bfloat16
from_float<__nv_bfloat16>(float x)
{
    return __float2bfloat16_rn(x);
}

template <>
__device__ inline __half
from_float<__half>(float x)
{
    return __float2half_rn(x);
}

/* Returns the status of the last launch. */
inline enum lh_status
launched(void)
{
    return cudaGetLastError() == cudaSuccess ? LH_STATUS_OK : LH_STATUS_DEVICE;
}

} // namespace lh
