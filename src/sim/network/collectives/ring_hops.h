/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the hops of a group's rings cost: latencies, and the time of a byte where hops share links.
 */
#pragma once

#include "sim/network/collectives/rings.h"

/* What a hop of a ring costs on a network that carries nothing else, by byte of what the ring
 * carries: beside the hops of all rings, and by itself. */
typedef struct {
    double latency_s, s_per_byte, alone_s_per_byte;
    uint8_t tier;
    uint8_t tiers; /* of the links that set its time beside the others, a bit for each LhTier */
} LhRingHop;

/*
 * What a hop of a ring moves at, at most: what its links give it while all hops of all rings are
 * under way. So rings of one collective never take from each other, and what one of them is late by
 * does not change the others' times. @tiers: of the links that set it, a bit for each LhTier.
 */
typedef struct {
    double bytes_per_s; /* 0: what its links give */
    uint8_t tiers;
} LhRingShare;

/* How many hops there are from one member to the next, in all rings; the route of one of them. */
uint64_t lh_ring_hops_count(const LhRings *rings);
LhRoute lh_ring_hop_route(const LhNetwork *network, const LhGroup *group, const LhRings *rings,
                          uint64_t hop);

/* All hops of the rings of @group, by ring and place; caller frees. */
LhRingHop *lh_ring_hops_new(const LhNetwork *network, const LhGroup *group, const LhRings *rings);
