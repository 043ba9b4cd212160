/* SPDX-License-Identifier: Apache-2.0 */
// Rows of attention's tensors. A team of lanes, one lane per group of elements, processes one row
// of one head at a time.
#pragma once

#include "kernels/cuda/values.cuh"

namespace lh
{

// A row of a call: sequence, token row, head.
struct Place {
    uint64_t sequence, row;
    uint32_t head;
};

// Splits @index: heads count first, then rows, then sequences. Most calls fit in 32 bits, which
// divide faster.
__device__ inline Place
place_of(uint64_t index, uint64_t rows, uint32_t heads)
{
    if (index <= UINT32_MAX && rows <= UINT32_MAX) {
        const uint32_t i = static_cast<uint32_t>(index), n = static_cast<uint32_t>(rows);

        return { i / heads / n, i / heads % n, i % heads };
    }
    return { index / heads / rows, index / heads % rows, static_cast<uint32_t>(index % heads) };
}

__device__ inline unsigned char *
row_at(const LhCudaTensor &t, const Place &p)
{
    const uint64_t part = p.row < t.part_rows ? 0 : p.row / t.part_rows;
    const uint64_t local = p.row - part * t.part_rows;
    const uint64_t row = (p.sequence * t.part_rows + local) * t.heads + p.head;

    return t.data + part * t.part_bytes + row * t.dim * size_of(t.storage);
}

__device__ inline float &
stat_at(const LhCudaTensor &t, const Place &p)
{
    return *reinterpret_cast<float *>(row_at(t, p));
}

} // namespace lh
