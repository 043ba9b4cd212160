/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Masks by tiles, for the fast versions. Whatever the mask, a query sees an interval of positions:
 * of the sequence's tokens under LH_MASK_POSITIONS, of the call's key rows under the others. The
 * intervals of a tile's queries and the positions of its keys are found once a call, so that a pair
 * of tiles is judged by four comparisons.
 */
#pragma once

#include "kernels/cpu/rows.h"

#define LH_TILE 64 /* rows of queries and of keys worked on at a time */

/* Positions fit 31 bits: sequences have at most 2^31 tokens. */
typedef struct {
    int32_t first[LH_TILE], last[LH_TILE]; /* what each query sees; nothing if first > last */
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
    LH_TILE_PARTLY, /* some may */
    LH_TILE_SEEN,   /* all queries see all keys */
} LhTileSight;

uint64_t lh_tile_mask_bytes(const LhKernelArgs *args);

/* The mask of a call with operands like @q and @k, in @memory of as many bytes. */
LhTileMask lh_tile_mask(const LhKernelArgs *args, const LhRows *q, const LhRows *k, void *memory);

static inline LhTileSight
lh_tile_sight(const LhTileQueries *q, const LhTileKeys *k)
{
    if (k->min > q->last_max || k->max < q->first_min)
        return LH_TILE_HIDDEN;
    return k->min >= q->first_max && k->max <= q->last_min ? LH_TILE_SEEN : LH_TILE_PARTLY;
}
