/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives with a known total time: measured, or by a formula.
 */
#pragma once

#include "sim/network/collectives/collectives.h"

extern const LhAlgorithm lh_algorithm_measured; /* has no hops */

/* A known total time: the part that bytes take on otherwise idle links, and the rest. @tiers: the
 * tiers of the links that limit the former, a bit for each LhTier. */
typedef struct {
    LhTime links_ps, floor_ps;
    uint8_t tiers;
} LhMeasuredTime;

/* Splits @seconds, of which @floor_s does not depend on bytes; the result is at least the lower
 * bound of the links. */
LhMeasuredTime lh_measured_time(const LhTraffic *traffic, const uint64_t *part_bytes,
                                double seconds, double floor_s);

/* Measured collectives: their traffic by links and parts (traffic.h). For uneven ones all members
 * must have arrived. Borrowed. */
const LhTraffic *lh_collective_traffic(LhCollectives *cs, LhCollective *c);

/* Measured collectives: the time on an idle network. Sets @provenance to that of the times or
 * constants used, without the links. */
LhMeasuredTime lh_collective_measured(LhCollectives *cs, LhCollective *c,
                                      const uint64_t *part_bytes, int *provenance);
