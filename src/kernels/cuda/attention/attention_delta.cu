/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delta = rowsum(do * o): one warp per row and head, in fp32. Reads 2 d elements a row and writes
 * one; bound by memory.
 */
#include "kernels/call.h"
#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/device.cuh"

namespace
{
using namespace lh;

constexpr unsigned WARPS = 4, THREADS = WARP * WARPS;

template <typename T>
__global__ void
__launch_bounds__(THREADS) delta_of_rows(const __grid_constant__ LhCudaDelta d)
{
    const uint64_t index = (uint64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    const uint32_t head = (uint32_t)(index % d.heads), lane = threadIdx.x % WARP;
    const uint64_t of_sequence = index / d.heads;
    const uint32_t row = (uint32_t)(of_sequence % d.nq), b = (uint32_t)(of_sequence / d.nq);
    float sum = 0;

    if (b >= d.batch)
        return;
    const T *dout = (const T *)row_at(d.dout, b, row, head, d.dim * sizeof(T));
    const T *o = (const T *)row_at(d.o, b, row, head, d.dim * sizeof(T));

    for (uint32_t c = lane; c < d.dim; c += WARP)
        sum += to_float(dout[c]) * to_float(o[c]);
    for (unsigned step = WARP / 2; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, step);
    if (lane == 0)
        *stat_at(d.delta, b, row, head) = sum;
}

template <typename T>
enum lh_status
launch(const LhCudaDelta *d, void *stream)
{
    const uint64_t rows = (uint64_t)d->batch * d->nq * d->heads,
                   blocks = (rows + WARPS - 1) / WARPS;

    if (blocks > INT32_MAX)
        return LH_STATUS_UNSUPPORTED;
    if (blocks == 0)
        return LH_STATUS_OK;
    delta_of_rows<T><<<(unsigned)blocks, THREADS, 0, (cudaStream_t)stream>>>(*d);
    return launched();
}
} // namespace

enum lh_status
lh_cuda_delta(const LhCudaDelta *d, void *stream)
{
    switch (d->storage) {
    case LH_STORAGE_FP32:
        return launch<float>(d, stream);
    case LH_STORAGE_BF16:
        return launch<__nv_bfloat16>(d, stream);
    case LH_STORAGE_FP16:
        return launch<__half>(d, stream);
    default:
        return LH_STATUS_UNSUPPORTED;
    }
}
