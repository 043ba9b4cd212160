/* SPDX-License-Identifier: Apache-2.0 */
// Stable radix sort. For each digit, every chunk counts its values, prefix sums over the chunks
// give each chunk's first place per value, and the numbers move to their places.
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/product/sort.h"

namespace
{
using namespace lh;

constexpr uint32_t BINS = LH_CUDA_SORT_BINS, CHUNK = LH_CUDA_SORT_CHUNK;
constexpr uint32_t NOBODY = UINT32_MAX;

// A pass over one digit. NULL `from`: numbers are in their initial order.
struct Pass {
    LhCudaSort o;
    const uint32_t *from;
    uint32_t *to;
    uint32_t shift, chunks;
};

__device__ inline uint32_t
number_at(const Pass &p, uint32_t index)
{
    return p.from != nullptr ? p.from[index] : index;
}

__device__ inline uint32_t
digit_at(const Pass &p, uint32_t index)
{
    return p.o.keys[number_at(p, index)] >> p.shift & (BINS - 1);
}

// Computes each number's rank: how many before it in its chunk have the same digit. The last one of
// a digit writes the digit's count.
__global__ void
__launch_bounds__(CHUNK) count_chunk(const __grid_constant__ Pass p)
{
    __shared__ uint32_t digits[CHUNK];
    const uint32_t index = blockIdx.x * CHUNK + threadIdx.x;
    const uint32_t digit = index < p.o.count ? digit_at(p, index) : NOBODY;
    uint32_t *counts = p.o.counts + static_cast<uint64_t>(blockIdx.x) * BINS;
    uint32_t rank = 0, later = 0;

    digits[threadIdx.x] = digit;
    if (threadIdx.x < BINS)
        counts[threadIdx.x] = 0;
    __syncthreads();
    for (uint32_t i = 0; i < CHUNK; i++) {
        rank += digits[i] == digit && i < threadIdx.x ? 1 : 0;
        later += digits[i] == digit && i > threadIdx.x ? 1 : 0;
    }
    if (digit == NOBODY)
        return;
    p.o.ranks[index] = rank;
    if (later == 0)
        counts[digit] = rank + 1;
}

// Prefix sums; a thread has a value of the digit. The counts of the chunks become those of all
// earlier chunks; the last row gets the place where the value's numbers begin.
__global__ void
__launch_bounds__(BINS) add_chunks(const __grid_constant__ Pass p)
{
    __shared__ uint32_t sums[BINS];
    uint32_t sum = 0, before = 0;

    for (uint32_t chunk = 0; chunk < p.chunks; chunk++) {
        uint32_t *count = p.o.counts + static_cast<uint64_t>(chunk) * BINS + threadIdx.x;
        const uint32_t own = *count;

        *count = sum;
        sum += own;
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (uint32_t i = 0; i < threadIdx.x; i++)
        before += sums[i];
    p.o.counts[static_cast<uint64_t>(p.chunks) * BINS + threadIdx.x] = before;
}

__global__ void
__launch_bounds__(CHUNK) place(const __grid_constant__ Pass p)
{
    const uint32_t index = blockIdx.x * CHUNK + threadIdx.x;

    if (index >= p.o.count)
        return;
    const uint32_t digit = digit_at(p, index);
    const uint32_t first = p.o.counts[static_cast<uint64_t>(p.chunks) * BINS + digit];
    const uint32_t before = p.o.counts[static_cast<uint64_t>(blockIdx.x) * BINS + digit];

    p.to[first + before + p.o.ranks[index]] = number_at(p, index);
}

uint32_t
passes_of(uint32_t most)
{
    uint32_t passes = 1;

    while (passes < 4 && most >> (8 * passes) != 0)
        passes++;
    return passes;
}
} // namespace

enum lh_status
lh_cuda_sort(const LhCudaSort *o, void *stream)
{
    const cudaStream_t s = static_cast<cudaStream_t>(stream);
    const uint32_t passes = passes_of(o->most);
    Pass p = { *o, nullptr, nullptr, 0, (o->count + CHUNK - 1) / CHUNK };
    enum lh_status status = LH_STATUS_OK;

    for (uint32_t i = 0; i < passes && o->count > 0 && status == LH_STATUS_OK; i++) {
        p.shift = 8 * i;
        p.to = (passes - i) % 2 == 1 ? o->order : o->spare; // the last pass writes to order
        count_chunk<<<p.chunks, CHUNK, 0, s>>>(p);
        add_chunks<<<1, BINS, 0, s>>>(p);
        place<<<p.chunks, CHUNK, 0, s>>>(p);
        p.from = p.to;
        status = launched();
    }
    return status;
}
