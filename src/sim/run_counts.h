/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that a run counts, as it was at an instant: so that what it has counted since can be counted
 * again, for what is left out.
 */
#pragma once

#include "sim/sim_private.h"

/* All that is counted. */
typedef struct {
    uint64_t events, ops;
    double spent_s, uncertain_s, judged_s;
    LhTime *host_ps;
    LhRankResult *ranks; /* with what is not accounted for yet */
    LhWide *links;
    LhApart apart[LH_APARTS]; /* without folds */
    uint64_t *whole_bytes;
} LhRunCounts;

/* What @e has counted so far; replaces what @c had. */
void lh_run_counts_take(LhRunCounts *c, const LhEngine *e);
void lh_run_counts_clear(LhRunCounts *c);

/* What @e has counted since @before is counted @times more. */
void lh_run_counts_grow(LhEngine *e, const LhRunCounts *before, uint64_t times);
