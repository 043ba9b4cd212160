/* SPDX-License-Identifier: Apache-2.0 */
// Element addresses in lines, see operands.h.
#pragma once

#include "kernels/cuda/values.cuh"

namespace lh
{

__device__ inline unsigned char *
element_at(const LhCudaLine &l, uint64_t index)
{
    uint64_t part = 0;

    if (index >= l.cut)
        part = index <= UINT32_MAX ? static_cast<uint32_t>(index) / static_cast<uint32_t>(l.cut)
                                   : index / l.cut;
    index -= part * l.cut;
    if (l.reversed)
        part = l.parts - 1 - part;
    return l.data + part * l.part_bytes + index * size_of(l.storage);
}

// Groups that may cross the end of a part are accessed element by element.
template <int N>
__device__ inline void
load(const LhCudaLine &l, uint64_t index, int count, float (&x)[N])
{
    if (l.grouped) {
        get_some(element_at(l, index), l.storage, count, count >= N, x);
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        x[i] = i < count ? get(element_at(l, index + i), l.storage) : 0.F;
}

template <int N>
__device__ inline void
store(const LhCudaLine &l, uint64_t index, int count, const float (&x)[N])
{
    if (l.grouped) {
        put_some(element_at(l, index), l.storage, count, count >= N, x);
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        if (i < count)
            put(element_at(l, index + i), l.storage, x[i]);
}

} // namespace lh
