/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of an attention kernel as a schedule: each thread block computes one tile of rows
 * against the blocks of the other side that contain any of its pairs, and takes the first free SM.
 * Times are in blocks. Formulas: docs/reference/model.md, "Tiles on SMs".
 */
#pragma once

#include "kernels/kernel.h"

#include <glib.h>

typedef enum {
    LH_TILES_LINEAR, /* head by head, rows in order */
    LH_TILES_LONGEST_FIRST,
} LhTileOrder;

/* "linear", "longest_first"; NULL-terminated. */
extern const char *const lh_tile_orders[];

/* How a kernel partitions its work. */
typedef struct {
    uint64_t rows;    /* per tile */
    uint64_t columns; /* per block */
    bool of_keys;     /* tiles are of keys and blocks of queries, as in backward passes */
    bool pack_groups; /* the query heads of a key-value head share tiles, row by row */
    LhTileOrder order;
    double prologue;   /* cost of a tile beside its blocks, in blocks */
    uint64_t resident; /* thread blocks that share an SM, at most LH_TILES_RESIDENT; 0: 1 */
    double alone;      /* fraction of the SM's rate that a single one of them reaches, (0, 1] */
} LhTiling;

#define LH_TILES_RESIDENT 8

/* Adjacent tiles with the same number of blocks. */
typedef struct {
    uint64_t blocks; /* > 0 */
    uint64_t tiles;  /* > 0 */
} LhTileRun;

/*
 * The tiles of one head (packed: of one key-value head) of one sequence, in the order of their
 * rows: of LhTileRun, without tiles that have no pair. Rows are in @q_parts and @k_parts equal
 * parts laid end to end, which matters only under LH_MASK_POSITIONS; there, keys between those that
 * a tile's rows attend to count as well. O(tiles); with positions O(tiles that differ) times parts,
 * log(tiles) and log(documents).
 * Caller unrefs.
 */
GArray *lh_tiles_runs(const LhTiling *tiling, const LhKernelArgs *args, uint32_t q_parts,
                      uint32_t k_parts);

/* The number of such heads over all sequences. */
uint64_t lh_tiles_copies(const LhTiling *tiling, const LhKernelArgs *args);

/* Splits every tile into @parts (>= 1) that share its blocks equally. Caller unrefs. */
GArray *lh_tiles_split(const GArray *runs, uint64_t parts);

typedef struct {
    double makespan_blocks; /* end of the last tile; 0: no tiles */
    double work_blocks;     /* sum over all tiles */
} LhTileTimes;

/*
 * The makespan of @copies times @runs on @sms SMs (>= 1). Thread blocks that share an SM share its
 * rate; with fewer than `resident` of them the rate is between `alone` and the full one. Exact
 * below LH_TILES_EXACT tiles per SM. Above, longest first is assumed to end half of the shortest
 * tile after the mean; for linear order only the heads with the last LH_TILES_TAIL tiles per SM are
 * scheduled, and earlier ones count with their mean.
 */
LhTileTimes lh_tiles_makespan(const LhTiling *tiling, const GArray *runs, uint64_t copies,
                              uint64_t sms);

#define LH_TILES_EXACT 24
#define LH_TILES_TAIL 12
