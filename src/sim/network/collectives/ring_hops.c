/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/network/collectives/ring_hops.h"

#include "sim/network/path.h"

#include <math.h>

uint64_t
lh_ring_hops_count(const LhRings *rings)
{
    return rings->size > 1 ? (uint64_t)rings->size * rings->count : 0;
}

LhRoute
lh_ring_hop_route(const LhNetwork *network, const LhGroup *group, const LhRings *rings,
                  uint64_t hop)
{
    const uint32_t ring = (uint32_t)(hop / rings->size), position = (uint32_t)(hop % rings->size);
    const uint32_t from = (uint32_t)lh_group_member(group, position);
    const uint32_t to = (uint32_t)lh_group_member(group, lh_rings_next(rings, ring, position));
    LhRoute route;

    if (rings->pairs)
        lh_network_route(network, from, to, &route);
    else
        lh_network_collective_route(network, from, to, &route);
    lh_network_route_in(network, group, &route);
    return route;
}

/* Number of hops of all rings that cross each link in one step. */
static GHashTable *
link_loads(const LhNetwork *network, const LhGroup *group, const LhRings *rings)
{
    GHashTable *loads = g_hash_table_new(NULL, NULL);

    for (uint64_t i = 0; i < lh_ring_hops_count(rings); i++) {
        const LhRoute route = lh_ring_hop_route(network, group, rings, i);

        if (rings->is_chain && route.destination == lh_group_member(group, 0))
            continue;
        for (uint32_t k = 0; k < route.links_count; k++) {
            const gpointer link = GUINT_TO_POINTER(route.links[k]);
            const guint load = GPOINTER_TO_UINT(g_hash_table_lookup(loads, link));

            g_hash_table_insert(loads, link, GUINT_TO_POINTER(load + 1));
        }
    }
    return loads;
}

/* The costs of a hop over @route. @pair: number of hops that share the limit of the pair. */
static LhRingHop
hop_of(const LhNetwork *network, const LhRoute *route, GHashTable *loads, uint32_t pair)
{
    LhRingHop hop = { .latency_s = (double)route->latency_ps / (double)LH_PS_PER_S,
                      .alone_s_per_byte = 1 / lh_network_route_bandwidth(network, route),
                      .tier = route->tier };
    double s_per_byte[LH_ROUTE_MAX];
    uint8_t tiers[LH_ROUTE_MAX];

    if (route->flow_bandwidth_bytes_per_s > 0)
        hop.s_per_byte = pair / route->flow_bandwidth_bytes_per_s;
    for (uint32_t k = 0; k < route->links_count; k++) {
        const LhLink link = lh_network_link(network, route->links[k]);
        const gpointer load = g_hash_table_lookup(loads, GUINT_TO_POINTER(route->links[k]));

        s_per_byte[k] = GPOINTER_TO_UINT(load) / link.bandwidth_bytes_per_s;
        tiers[k] = (uint8_t)(1u << link.tier);
        hop.s_per_byte = fmax(hop.s_per_byte, s_per_byte[k]);
    }
    for (uint32_t k = 0; k < route->links_count; k++)
        if (s_per_byte[k] * LH_WHAT_IF_FACTOR > hop.s_per_byte)
            hop.tiers |= tiers[k];
    if (hop.tiers == 0)
        hop.tiers = lh_pair_tier_bit(route);
    return hop;
}

/* Number of rings that go from one member to the other. */
static uint32_t
rings_between(const LhRings *rings, uint32_t position, uint32_t next)
{
    uint32_t count = 0;

    for (uint32_t ring = 0; ring < rings->count; ring++)
        count += lh_rings_next(rings, ring, position) == next;
    return count;
}

LhRingHop *
lh_ring_hops_new(const LhNetwork *network, const LhGroup *group, const LhRings *rings)
{
    g_autoptr(GHashTable) loads = link_loads(network, group, rings);
    LhRingHop *hops = g_new(LhRingHop, lh_ring_hops_count(rings));

    for (uint64_t i = 0; i < lh_ring_hops_count(rings); i++) {
        const LhRoute route = lh_ring_hop_route(network, group, rings, i);
        const uint32_t ring = (uint32_t)(i / rings->size), position = (uint32_t)(i % rings->size);
        const uint32_t next = lh_rings_next(rings, ring, position);

        hops[(gsize)ring * rings->size + lh_rings_place(rings, ring, position)] =
            hop_of(network, &route, loads,
                   route.flow_bandwidth_bytes_per_s > 0 ? rings_between(rings, position, next) : 1);
    }
    return hops;
}
