/* SPDX-License-Identifier: Apache-2.0 */
// Time on a GPU. One thread waits, which leaves the SMs to concurrent kernels.
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/pace.h"

namespace
{
using namespace lh;

constexpr uint64_t REST_NS = 1000; // longest sleep, to limit the overshoot of the deadline

__device__ inline uint64_t
clock_ns()
{
    uint64_t ns;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

__global__ void
stamp_clock(uint64_t *cell)
{
    *cell = clock_ns();
}

// nanosleep may take twice the requested time, so each sleep is at most half of the rest.
__global__ void
pace(const __grid_constant__ LhCudaPace p)
{
    const uint64_t begun = *p.begun, others = *p.epoch + p.others_ns;
    const uint64_t until = (begun > others ? begun : others) + p.took_ns;

    for (uint64_t now = clock_ns(); now < until; now = clock_ns()) {
        const uint64_t half = (until - now) / 2;

        __nanosleep(static_cast<unsigned>(half < REST_NS ? half : REST_NS));
    }
}
} // namespace

enum lh_status
lh_cuda_stamp(uint64_t *cell, void *stream)
{
    stamp_clock<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(cell);
    return launched();
}

enum lh_status
lh_cuda_pace(const LhCudaPace *p, void *stream)
{
    pace<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(*p);
    return launched();
}
