/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Masks by tiles, for the fast versions. Under any mask a query sees an interval of positions:
 * token positions under LH_MASK_POSITIONS, key rows of the call under the others. The intervals of
 * a tile's queries and the positions of its keys are computed once per call; four comparisons then
 * classify a pair of tiles.
 */
#pragma once

#include "kernels/cpu/rows.h"

#define LH_TILE 64 /* query and key rows per tile */

/* Positions fit in 31 bits: sequences have at most 2^31 tokens. */
typedef struct {
    int32_t first[LH_TILE], last[LH_TILE]; /* interval that each query sees; empty if first >
                                              last */
    int32_t first_min, first_max, last_min, last_max;
} LhTileQueries;

typedef struct {
    int32_t at[LH_TILE];
    int32_t min, max;
} LhTileKeys;

typedef struct {
    LhTileQueries *queries; /* by tile */
    LhTileKeys *keys;
} LhTileMask;

typedef enum {
    LH_TILE_HIDDEN, /* no query sees a key */
    LH_TILE_PARTLY, /* some queries may see some keys */
    LH_TILE_SEEN,   /* all queries see all keys */
} LhTileSight;

uint64_t lh_tile_mask_bytes(const LhKernelArgs *args);

/* Builds the mask of a call with operands like @q and @k in @memory of lh_tile_mask_bytes(). */
LhTileMask lh_tile_mask(const LhKernelArgs *args, const LhRows *q, const LhRows *k, void *memory);

static inline LhTileSight
lh_tile_sight(const LhTileQueries *q, const LhTileKeys *k)
{
    if (k->min > q->last_max || k->max < q->first_min)
        return LH_TILE_HIDDEN;
    return k->min >= q->first_max && k->max <= q->last_min ? LH_TILE_SEEN : LH_TILE_PARTLY;
}
