/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes numbers from a launch's arguments to device memory.
 */
#include "kernels/cuda/attention/mask.h"
#include "kernels/cuda/device.cuh"

namespace
{
constexpr unsigned THREADS = 256;

__global__ void
__launch_bounds__(THREADS) write_numbers(const __grid_constant__ LhCudaNumbers n)
{
    const uint32_t i = blockIdx.x * THREADS + threadIdx.x;

    if (i < n.count)
        n.to[i] = n.numbers[i];
}
} // namespace

enum lh_status
lh_cuda_write_numbers(const LhCudaNumbers *numbers, void *stream)
{
    const unsigned blocks = (numbers->count + THREADS - 1) / THREADS;

    write_numbers<<<blocks, THREADS, 0, (cudaStream_t)stream>>>(*numbers);
    return lh::launched();
}
