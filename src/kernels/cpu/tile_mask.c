/* SPDX-License-Identifier: Apache-2.0 */
/* Intervals of keys by tiles of queries. */
#include "kernels/cpu/tile_mask.h"

#define TOKENS_MAX (UINT64_C(1) << 31)

static uint64_t
tiles_of(uint64_t rows)
{
    return (rows + LH_TILE - 1) / LH_TILE;
}

uint64_t
lh_tile_mask_bytes(const LhKernelArgs *a)
{
    return tiles_of(a->nq) * sizeof(LhTileQueries) + tiles_of(a->nk) * sizeof(LhTileKeys);
}

/* Positions [first, last] that query row @i sees. */
typedef struct {
    int32_t first, last;
} Sight;

static Sight
sight_of(const LhKernelArgs *a, const LhRows *q, uint64_t i)
{
    LhInterval keys;

    switch (a->mask) {
    case LH_MASK_POSITIONS:
        keys = lh_mask_keys(a->rule, lh_row_position(&a->q_at, a->stride, q, i), TOKENS_MAX);
        return (Sight){ (int32_t)keys.first, (int32_t)(keys.end - 1) };
    case LH_MASK_CAUSAL:
        return (Sight){ 0, (int32_t)((int64_t)i + a->shift) };
    case LH_MASK_FULL:
        return (Sight){ 0, INT32_MAX };
    default:
        return (Sight){ INT32_MAX, -1 };
    }
}

static int32_t
least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static int32_t
most(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static void
find_queries(LhTileQueries *tile, const LhKernelArgs *a, const LhRows *q, uint64_t first)
{
    *tile = (LhTileQueries){ .first_min = INT32_MAX, .last_min = INT32_MAX, .last_max = -1 };
    for (uint64_t r = 0; r < LH_TILE && first + r < a->nq; r++) {
        const Sight sight = sight_of(a, q, first + r);

        tile->first[r] = sight.first;
        tile->last[r] = sight.last;
        tile->first_min = least(tile->first_min, sight.first);
        tile->first_max = most(tile->first_max, sight.first);
        tile->last_min = least(tile->last_min, sight.last);
        tile->last_max = most(tile->last_max, sight.last);
    }
}

static void
find_keys(LhTileKeys *tile, const LhKernelArgs *a, const LhRows *k, uint64_t first)
{
    *tile = (LhTileKeys){ .min = INT32_MAX };
    for (uint64_t r = 0; r < LH_TILE && first + r < a->nk; r++) {
        const uint64_t row = first + r;

        tile->at[r] =
            (int32_t)(a->mask == LH_MASK_POSITIONS ? lh_row_position(&a->k_at, a->stride, k, row)
                                                   : row);
        tile->min = least(tile->min, tile->at[r]);
        tile->max = most(tile->max, tile->at[r]);
    }
}

LhTileMask
lh_tile_mask(const LhKernelArgs *a, const LhRows *q, const LhRows *k, void *memory)
{
    LhTileMask mask = { .queries = memory };

    mask.keys = (LhTileKeys *)(mask.queries + tiles_of(a->nq));
    for (uint64_t i = 0; i < a->nq; i += LH_TILE)
        find_queries(&mask.queries[i / LH_TILE], a, q, i);
    for (uint64_t j = 0; j < a->nk; j += LH_TILE)
        find_keys(&mask.keys[j / LH_TILE], a, k, j);
    return mask;
}
