/* SPDX-License-Identifier: Apache-2.0 */
// Element addresses in matrices, see operands.h.
#pragma once

#include "kernels/cuda/values.cuh"

namespace lh
{

__device__ inline uint32_t
divide(uint32_t x, const LhCudaDigit &by)
{
    return (__umulhi(x, by.factor) + x) >> by.shift;
}

// Returns the byte offset of a row; 0 with `cut`.
__device__ inline int64_t
row_offset(const LhCudaMatrix &m, uint32_t row)
{
    int64_t offset = 0;

    if (m.cut != 0)
        return 0;
#pragma unroll
    for (int i = 0; i < LH_CUDA_ROW_DIGITS; i++) {
        const uint32_t rest = divide(row, m.rows[i]);

        offset += static_cast<int64_t>(row - rest * m.rows[i].size) * m.rows[i].stride;
        row = rest;
    }
    return offset + row * m.rest;
}

// Returns the address of an element; @row_offset is that of its row.
__device__ inline unsigned char *
element_at(const LhCudaMatrix &m, int64_t row_offset, uint32_t row, uint32_t column)
{
    if (m.cut != 0) {
        const uint64_t index = row * m.width + column, part = index / m.cut;

        return m.data + part * m.part_bytes + (index - part * m.cut) * size_of(m.storage);
    }
    const uint32_t slice = divide(column, m.column);

    return m.data + row_offset + slice * m.column.stride +
           (column - slice * m.column.size) * size_of(m.storage);
}

// Reads up to a group of columns from @column on, of which @count exist.
template <int N>
__device__ inline void
get_columns(const LhCudaMatrix &m, uint32_t row, uint32_t column, int count, float (&x)[N])
{
    const int64_t offset = row_offset(m, row);

    if (m.grouped && column % N == 0) {
        get_some(element_at(m, offset, row, column), m.storage, count, count >= N, x);
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        x[i] = i < count ? get(element_at(m, offset, row, column + i), m.storage) : 0.F;
}

template <int N>
__device__ inline void
put_columns(const LhCudaMatrix &m, uint32_t row, uint32_t column, int count, const float (&x)[N])
{
    const int64_t offset = row_offset(m, row);

    if (m.grouped && column % N == 0) {
        put_some(element_at(m, offset, row, column), m.storage, count, count >= N, x);
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        if (i < count)
            put(element_at(m, offset, row, column + i), m.storage, x[i]);
}

} // namespace lh
