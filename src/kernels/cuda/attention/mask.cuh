/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which places a row sees, and which tiles of rows see which tiles of others. A query sees an
 * interval of places, and so is a key seen by one. Both ends of an interval are monotonic in the
 * place, so the first and last place of a tile determine what its rows see.
 */
#pragma once

#include "kernels/cuda/attention/mask.h"

#include <climits>
#include <cstdint>

namespace lh
{

/* Place of rows beyond the last, seen by none. */
constexpr int32_t NOWHERE = -1;

/* Places [first, last]; empty if first > last. */
struct Interval {
    int32_t first, last;
};

__device__ inline int32_t
place_of(const LhCudaPlaces &p, uint32_t row)
{
    const uint32_t part = row / p.part_rows;

    return (int32_t)(p.start + part * p.step + (row - part * p.part_rows) * p.stride);
}

/* Returns the least and the greatest place of rows [@from, @to], to >= from. */
__device__ inline Interval
places_of(const LhCudaPlaces &p, uint32_t from, uint32_t to)
{
    const uint32_t a = from / p.part_rows, b = to / p.part_rows;
    const int32_t begin = place_of(p, from), end = place_of(p, to);

    if (a == b)
        return { begin, end };
    /* The parts in between start and end at places that are monotonic in the part. */
    const int32_t part_end = (int32_t)((p.part_rows - 1) * p.stride);
    const int32_t second = (int32_t)(p.start + (a + 1) * p.step);
    const int32_t last = (int32_t)(p.start + b * p.step);

    return { min(begin, min(second, last)),
             max(end, max(second - (int32_t)p.step, last - (int32_t)p.step) + part_end) };
}

/* Returns the document that holds @place. */
__device__ inline Interval
document_at(const LhCudaMask &m, int32_t place)
{
    uint32_t low = 0, high = m.documents - 1;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (m.document_ends[middle] <= (uint32_t)place)
            low = middle + 1;
        else
            high = middle;
    }
    return { low == 0 ? 0 : (int32_t)m.document_ends[low - 1],
             (int32_t)(m.document_ends[low] - 1) };
}

/* Returns the keys that a query at @place sees. */
__device__ inline Interval
keys_of(const LhCudaMask &m, int32_t place)
{
    Interval keys = { 0, m.empty ? -1 : INT_MAX };

    if (m.documents > 0)
        keys = document_at(m, place);
    if (m.causal) {
        keys.last = min(keys.last, place);
        if (m.window != 0 && (uint32_t)place >= m.window)
            keys.first = max(keys.first, place - (int32_t)m.window + 1);
    }
    return keys;
}

/* Returns the queries that see a key at @place. */
__device__ inline Interval
queries_of(const LhCudaMask &m, int32_t place)
{
    Interval queries = { 0, m.empty ? -1 : INT_MAX };

    if (m.documents > 0)
        queries = document_at(m, place);
    if (m.causal) {
        queries.first = max(queries.first, place);
        if (m.window != 0)
            queries.last = (int32_t)min((uint32_t)queries.last, (uint32_t)place + m.window - 1);
    }
    return queries;
}

} // namespace lh
