/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots of all counts of a run, so that what was counted since can be added again for skipped
 * periods.
 */
#pragma once

#include "sim/sim_private.h"

/* All counts of a run that are integers: sums of integers do not depend on their order. */
typedef struct {
    uint64_t events, ops;
    LhTime *host_ps;
    LhTime (*exposed_ps)[LH_EXPOSED_DIMENSIONS]; /* [ranks] */
    LhRankResult *ranks;                         /* including time not yet accounted for */
    LhWide *links;
    LhApart apart[LH_APARTS]; /* `fold` is not set */
    uint64_t *whole_bytes;
} LhRunCounts;

/* Takes a snapshot of the counts of @e, replacing that in @c. */
void lh_run_counts_take(LhRunCounts *c, const LhEngine *e);
void lh_run_counts_clear(LhRunCounts *c);

/* Adds what @e has counted since @before @times more. */
void lh_run_counts_grow(LhEngine *e, const LhRunCounts *before, uint64_t times);
