/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums over the ranks of a simulation.
 */
#pragma once

#include "sim/sim.h"

/* Exact sums over the ranks of a result. */
typedef struct {
    LhWide span_ps; /* ranks x makespan */
    LhWide busy_ps;
    LhWide idle_ps[LH_IDLE_PARTS]; /* busy + sum(idle) = span */
    LhWide exposed_ps;             /* communication tiers of idle_ps */
    LhWide sent_bytes;
    LhWide tier_bytes[LH_TIERS];
    LhWide flops;
    uint64_t sent_bytes_max; /* largest of one rank */
    uint64_t peak_bytes;     /* largest of one rank */
    uint32_t peak_rank;
} LhTotals;

void lh_totals(const LhSimResult *result, LhTotals *totals);
