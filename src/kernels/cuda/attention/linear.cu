/* SPDX-License-Identifier: Apache-2.0 */
// Scan of the states of tiles: a thread has one element of a state and iterates over the tiles.
#include "kernels/cuda/attention/linear.h"
#include "kernels/cuda/device.cuh"

namespace
{
using namespace lh;

constexpr uint32_t THREADS = 256;

__global__ void
__launch_bounds__(THREADS) scan(const __grid_constant__ LhCudaScan s)
{
    const uint64_t index = static_cast<uint64_t>(blockIdx.x) * THREADS + threadIdx.x;

    if (index >= s.stacks * s.elements)
        return;
    const uint64_t stack = index / s.elements, element = index - stack * s.elements;
    float *states = s.states + stack * s.tiles * s.elements + element;
    float sum = 0.F;

    for (uint32_t i = 0; i < s.tiles; i++) {
        float *state = states + (s.backward ? s.tiles - 1 - i : i) * s.elements;
        // The last tile's own state is unused and not computed.
        const float own = i + 1 < s.tiles ? *state : 0.F;

        *state = sum;
        sum = s.factor * sum + own;
    }
}
} // namespace

enum lh_status
lh_cuda_scan(const LhCudaScan *s, void *stream)
{
    const uint64_t blocks = (s->stacks * s->elements + THREADS - 1) / THREADS;

    if (blocks > INT32_MAX)
        return LH_STATUS_UNSUPPORTED;
    if (blocks > 0)
        scan<<<static_cast<uint32_t>(blocks), THREADS, 0, static_cast<cudaStream_t>(stream)>>>(*s);
    return launched();
}
