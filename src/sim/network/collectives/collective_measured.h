/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives whose time is known as a whole: measured, or by a formula.
 */
#pragma once

#include "sim/network/collectives/collectives.h"

extern const LhAlgorithm lh_algorithm_measured; /* no hops */

/* A time that is known as a whole: what bytes take if nothing else is on their links, and the rest.
 * @tiers: those whose links allow no less, a bit for each LhTier. */
typedef struct {
    LhTime links_ps, floor_ps;
    uint8_t tiers;
} LhMeasuredTime;

/* Of @seconds, of which no byte takes @floor_s; at least what links allow the bytes. */
LhMeasuredTime lh_measured_time(const LhTraffic *traffic, const uint64_t *part_bytes,
                                double seconds, double floor_s);

/* Measured: what it puts on which links, of parts (traffic.h); of uneven ones all members are
 * there. Borrowed. */
const LhTraffic *lh_collective_traffic(LhCollectives *cs, LhCollective *c);

/* Measured: its time on an idle network. @provenance: of what that is made of, beside the links. */
LhMeasuredTime lh_collective_measured(LhCollectives *cs, LhCollective *c,
                                      const uint64_t *part_bytes, int *provenance);
