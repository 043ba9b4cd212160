/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/network/saturated_links.h"

#include "sim/network/flows_private.h"
#include "sim/network/path.h"

/* The load of a link. */
typedef struct {
    double load, fastest; /* bytes/s: of all flows, of the fastest */
    uint64_t round;       /* in which it was computed */
} Load;

struct _LhSaturatedLinks {
    const LhNetwork *network;
    const LhFlows *flows;
    bool shared;
    Load *loads; /* by link */
    uint32_t loads_count;
    uint64_t round;
};

LhSaturatedLinks *
lh_saturated_links_new(const LhNetwork *network, const LhFlows *flows, bool shared)
{
    LhSaturatedLinks *b = g_new0(LhSaturatedLinks, 1);

    b->network = network;
    b->flows = flows;
    b->shared = shared;
    b->round = 1;
    return b;
}

void
lh_saturated_links_free(LhSaturatedLinks *b)
{
    g_free(b->loads);
    g_free(b);
}

void
lh_saturated_links_refresh(LhSaturatedLinks *b)
{
    b->round++;
}

static uint8_t
tier_bit(const LhNetwork *n, uint32_t link)
{
    return (uint8_t)(1u << lh_network_link(n, link).tier);
}

/* The tiers of link @id. Links beyond those of the network are limits of pairs. */
static uint8_t
tiers_of(const LhSaturatedLinks *b, uint32_t id)
{
    const LhFlowLink *link = &b->flows->links[id];
    LhRoute route;

    if (id < b->network->links_count)
        return tier_bit(b->network, id);
    lh_network_route(b->network, link->pair.source, link->pair.destination / 2, &route);
    return lh_pair_tier_bit(&route);
}

static const Load *
load_of(LhSaturatedLinks *b, uint32_t id)
{
    const LhFlowLink *link = &b->flows->links[id];
    Load *load;

    if (id >= b->loads_count) {
        b->loads = g_renew(Load, b->loads, b->flows->links_capacity);
        for (; b->loads_count < b->flows->links_capacity; b->loads_count++)
            b->loads[b->loads_count] = (Load){ 0 };
    }
    load = &b->loads[id];
    if (load->round == b->round)
        return load;
    *load = (Load){ .round = b->round };
    for (uint32_t i = 0; i < link->entries_count; i++) {
        const double rate = lh_flow(b->flows, link->entries[i] >> LH_HOP_BITS)->rate;

        load->load += rate;
        load->fastest = MAX(load->fastest, rate);
    }
    return load;
}

uint8_t
lh_saturated_links_of_flow(LhSaturatedLinks *b, uint32_t index)
{
    const LhFlow *flow = lh_flow(b->flows, index);
    uint8_t tiers = 0;

    if (!b->shared || flow->links_count == 0 || flow->rate <= 0)
        return 0;
    if (flow->rate * LH_WHAT_IF_FACTOR > flow->own_rate)
        tiers = flow->own_tiers;
    if (flow->bottleneck != LH_OWN_LIMIT)
        tiers |= tiers_of(b, flow->bottleneck);
    for (uint32_t i = 0; i < flow->links_count; i++) {
        const Load *load = load_of(b, flow->hops[i].link);

        if (load->load * LH_WHAT_IF_FACTOR > b->flows->links[flow->hops[i].link].capacity &&
            load->fastest < flow->rate * LH_WHAT_IF_FACTOR)
            tiers |= tiers_of(b, flow->hops[i].link);
    }
    return tiers;
}

uint8_t
lh_saturated_links_of_route(const LhNetwork *n, const LhRoute *route)
{
    const double limit = lh_network_route_bandwidth(n, route) * LH_WHAT_IF_FACTOR;
    uint8_t tiers = 0;

    if (route->flow_bandwidth_bytes_per_s > 0 && route->flow_bandwidth_bytes_per_s < limit)
        tiers = lh_pair_tier_bit(route);
    if (route->own_bytes_per_s > 0 && route->own_bytes_per_s < limit)
        tiers |= route->own_tiers;
    for (uint32_t i = 0; i < route->links_count; i++)
        if (lh_network_link(n, route->links[i]).bandwidth_bytes_per_s < limit)
            tiers |= tier_bit(n, route->links[i]);
    return tiers;
}
