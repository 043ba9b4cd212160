/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Costs of the hops of a group's rings: latencies, and time per byte where hops share links.
 */
#pragma once

#include "sim/network/collectives/rings.h"

/* Cost of a hop of a ring on an otherwise idle network, per byte of the ring: together with the
 * hops of all rings, and alone. */
typedef struct {
    double latency_s, s_per_byte, alone_s_per_byte;
    uint8_t tier;
    uint8_t tiers; /* of the links that limit it together with the others, a bit for each LhTier */
} LhRingHop;

/*
 * Rate limit of a hop of a ring: its share of its links while all hops of all rings are in flight.
 * So rings of one collective never take bandwidth from each other, and a delay of one does not
 * change the others' times. @tiers: of the links that set it, a bit for each LhTier.
 */
typedef struct {
    double bytes_per_s; /* 0: no limit beyond the links */
    uint8_t tiers;
} LhRingShare;

/* Number of hops from one member to the next, in all rings; the route of one of them. */
uint64_t lh_ring_hops_count(const LhRings *rings);
LhRoute lh_ring_hop_route(const LhNetwork *network, const LhGroup *group, const LhRings *rings,
                          uint64_t hop);

/* Costs of all hops of the rings of @group, by ring and place; caller frees. */
LhRingHop *lh_ring_hops_new(const LhNetwork *network, const LhGroup *group, const LhRings *rings);
