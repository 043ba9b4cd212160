/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State shared by the collectives of one communicator, computed on first use.
 */
#include "sim/network/collectives/communicator.h"

#include "sim/network/collectives/collectives_private.h"
#include "sim/network/collectives/ring_hops.h"
#include "sim/network/traffic.h"

/* Memoised LhCollective.delay_ps of equal collectives. */
typedef struct {
    uint32_t steps;
    uint64_t shard_bytes;
    LhTime ps;
} Delay;

LhCommunicator *
lh_communicator_new(const LhNetwork *network, const LhSymmetryGroups *fold,
                    const LhCommunicatorKey *key, const LhGroup *whole)
{
    LhCommunicator *c = g_new0(LhCommunicator, 1);

    c->key = *key;
    c->size = (uint32_t)lh_group_size(&c->key.group);
    c->span = lh_network_span(network, whole);
    c->turns = g_new0(uint32_t, c->size);
    c->likes = lh_symmetric_members_new(fold, network, &c->key.group);
    return c;
}

static void
ways_clear(LhWays *ways)
{
    lh_rings_clear(&ways->rings);
    g_free(ways->hops);
    g_free(ways->slowest);
    g_free(ways->shares);
    lh_tree_order_free(ways->tree_order);
    g_clear_pointer(&ways->delays, g_array_unref);
}

void
lh_communicator_free(LhCommunicator *communicator)
{
    while (communicator->open != NULL) {
        LhCollective *c = communicator->open;

        communicator->open = c->next;
        lh_collective_free(c);
    }
    lh_nccl_measured_free(communicator->native);
    for (uint32_t kind = 0; kind < LH_COLL_KINDS; kind++)
        lh_traffic_free(communicator->traffic[kind]);
    lh_symmetric_members_free(communicator->likes);
    ways_clear(&communicator->pairs);
    ways_clear(&communicator->chain);
    ways_clear(&communicator->rails);
    g_free(communicator->turns);
    g_free(communicator);
}

static LhNeighbours
neighbours(const LhNetwork *network, const LhCommunicator *c, const LhWays *ways)
{
    LhNeighbours hops = { 0 };

    for (uint64_t i = 0; i < lh_ring_hops_count(&ways->rings); i++) {
        const LhRoute route = lh_ring_hop_route(network, &c->key.group, &ways->rings, i);

        hops.tier = MAX(hops.tier, route.tier);
        hops.ctas =
            MAX(hops.ctas, lh_network_ctas(network, route.source, route.destination, c->span));
    }
    return hops;
}

static LhWays *
place_of_ways(LhCommunicator *c, LhCollectiveKind kind)
{
    switch (kind) {
    case LH_COLL_ALL_TO_ALL:
        return &c->pairs;
    case LH_COLL_BROADCAST:
        return &c->chain;
    default:
        return &c->rails;
    }
}

LhWays *
lh_communicator_ways(const LhNetwork *network, LhCommunicator *c, LhCollectiveKind kind)
{
    LhWays *ways = place_of_ways(c, kind);

    if (ways->made)
        return ways;
    if (ways == &c->rails)
        lh_rings_init(&ways->rings, network, &c->key.group);
    else
        lh_rings_init_plain(&ways->rings, c->size, ways == &c->pairs);
    ways->neighbours = neighbours(network, c, ways);
    ways->made = true;
    return ways;
}

const LhRingHop *
lh_communicator_hops(const LhNetwork *network, const LhCommunicator *c, LhWays *ways)
{
    if (ways->hops == NULL)
        ways->hops = lh_ring_hops_new(network, &c->key.group, &ways->rings);
    return ways->hops;
}

const LhRingShare *
lh_communicator_shares(const LhNetwork *network, const LhCommunicator *c, LhWays *ways)
{
    const LhRings *rings = &ways->rings;
    const LhRingHop *hops = lh_communicator_hops(network, c, ways);

    if (ways->shares != NULL)
        return ways->shares;
    ways->shares = g_new0(LhRingShare, (gsize)rings->size * rings->count);
    for (uint32_t ring = 0; ring < rings->count && rings->size > 1; ring++)
        for (uint32_t i = 0; i < rings->size; i++) {
            const LhRingHop *hop =
                &hops[(gsize)ring * rings->size + lh_rings_place(rings, ring, i)];

            ways->shares[(gsize)i * rings->count + ring] =
                (LhRingShare){ 1 / hop->s_per_byte, hop->tiers };
        }
    return ways->shares;
}

const LhTreeOrder *
lh_communicator_tree_order(const LhNetwork *network, LhWays *ways, const LhCollective *of)
{
    if (ways->tree_order == NULL)
        ways->tree_order = lh_tree_order_of(network, of);
    return ways->tree_order;
}

LhTime
lh_communicator_fluid_delay(const LhNetwork *network, const LhCommunicator *c, LhWays *ways,
                            const LhCollective *of)
{
    Delay delay = { of->steps, of->shard_bytes, 0 };

    if (ways->delays == NULL)
        ways->delays = g_array_new(FALSE, FALSE, sizeof(Delay));
    for (guint i = 0; i < ways->delays->len; i++) {
        const Delay *known = &g_array_index(ways->delays, Delay, i);

        if (known->steps == of->steps && known->shard_bytes == of->shard_bytes)
            return known->ps;
    }
    delay.ps = lh_fluid_delay(of, lh_communicator_hops(network, c, ways));
    g_array_append_val(ways->delays, delay);
    return delay.ps;
}

LhNcclMeasured *
lh_communicator_native(const LhNetwork *network, const LhDevice *device, LhCommunicator *c)
{
    if (c->native == NULL)
        c->native = lh_nccl_measured_new(network, device, &c->key.group);
    return c->native;
}
