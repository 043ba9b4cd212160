/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bound of rings is the slowest of their hops (rings.h), which share links. Bytes are those of
 * every hop in a whole collective.
 */
#include "sim/network/link_bound.h"

#include "sim/network/collectives/ring_hops.h"

#include <math.h>

/* Up to this many members, the messages between all pairs are counted link by link. In larger
 * groups those of one member represent all: only groups on a switch are so large. */
#define PAIRS_MEMBERS_MAX 128

const char *const lh_link_algorithm_names[] = { "default", "ring", "nvls", "pairs", NULL };

/* All-reduce counts as a reduce-scatter and an all-gather. */
static double
rounds_of(LhCollectiveKind kind)
{
    return kind == LH_COLL_ALL_REDUCE ? 2 : 1;
}

double
lh_ring_share(LhCollectiveKind kind, double members)
{
    return kind == LH_COLL_BROADCAST || kind == LH_TIMES_OF_SENDS
               ? 1
               : rounds_of(kind) * (members - 1) / members;
}

/* Consumes @rings. */
static double
bound_of_rings(const LhNetwork *network, const LhGroup *group, LhCollectiveKind kind,
               LhRings *rings)
{
    g_autofree LhRingHop *hops = NULL;
    double slowest = 0, share;

    rings->is_chain = kind == LH_COLL_BROADCAST;
    hops = lh_ring_hops_new(network, group, rings);
    for (uint64_t i = 0; i < lh_ring_hops_count(rings); i++)
        slowest = fmax(slowest, hops[i].s_per_byte);
    share = lh_ring_share(kind, rings->size) / rings->count;
    lh_rings_clear(rings);
    return slowest * share;
}

/* A chain may also go in group order. */
static double
ring_bound(const LhNetwork *network, const LhGroup *group, LhCollectiveKind kind)
{
    LhRings rings, plain;
    double bound;

    lh_rings_init(&rings, network, group);
    bound = bound_of_rings(network, group, kind, &rings);
    if (kind != LH_COLL_BROADCAST)
        return bound;
    lh_rings_init_plain(&plain, (uint32_t)lh_group_size(group), false);
    return fmin(bound, bound_of_rings(network, group, kind, &plain));
}

static LhRoute
route_between(const LhNetwork *network, const LhGroup *group, uint32_t from, uint32_t to)
{
    LhRoute route;

    lh_network_route(network, from, to, &route);
    lh_network_route_in(network, group, &route);
    return route;
}

/* The bytes of a member over its own links. */
static double
nvls_bound(const LhNetwork *network, const LhGroup *group, const uint32_t *ranks, uint64_t members)
{
    double least = INFINITY;

    for (uint64_t i = 0; i < members; i++) {
        const LhRoute route = route_between(network, group, ranks[i], ranks[(i + 1) % members]);

        least = fmin(least, lh_network_route_bandwidth(network, &route));
    }
    return (1 + 1 / (double)members) / least;
}

/* Adds one to the load of each link of the route. */
static void
load_route(const LhRoute *route, GHashTable *loads)
{
    for (uint32_t k = 0; k < route->links_count; k++) {
        const gpointer link = GUINT_TO_POINTER(route->links[k]);
        const guint load = GPOINTER_TO_UINT(g_hash_table_lookup(loads, link));

        g_hash_table_insert(loads, link, GUINT_TO_POINTER(load + 1));
    }
}

/* In each round a member sends a part of its bytes to every other member. */
static double
pairs_bound(const LhNetwork *network, const LhGroup *group, LhCollectiveKind kind,
            const uint32_t *ranks, uint64_t members)
{
    g_autoptr(GHashTable) loads = g_hash_table_new(NULL, NULL);
    const uint64_t senders = members <= PAIRS_MEMBERS_MAX || !network->tree.is_plain ? members : 1;
    GHashTableIter iter;
    gpointer id, load;
    double slowest = 0;

    for (uint64_t i = 0; i < senders; i++) {
        for (uint64_t j = 0; j < members; j++) {
            LhRoute route;

            if (i == j)
                continue;
            route = route_between(network, group, ranks[i], ranks[j]);
            load_route(&route, loads);
        }
    }
    g_hash_table_iter_init(&iter, loads);
    while (g_hash_table_iter_next(&iter, &id, &load)) {
        const LhLink link = lh_network_link(network, GPOINTER_TO_UINT(id));

        slowest = fmax(slowest, GPOINTER_TO_UINT(load) / link.bandwidth_bytes_per_s);
    }
    return rounds_of(kind) * slowest / (double)members;
}

double
lh_link_bound_s_per_byte(const LhNetwork *network, const LhGroup *group, LhCollectiveKind kind,
                         LhLinkAlgorithm algorithm)
{
    const uint64_t members = lh_group_size(group);
    g_autofree uint32_t *ranks = lh_sorted_ranks(group);

    g_assert(members > 1);
    if (algorithm == LH_ALGORITHM_NVLS)
        return nvls_bound(network, group, ranks, members);
    if (algorithm == LH_ALGORITHM_PAIRS ||
        (algorithm == LH_ALGORITHM_DEFAULT && kind == LH_COLL_ALL_TO_ALL))
        return pairs_bound(network, group, kind, ranks, members);
    return ring_bound(network, group, kind);
}

LhTime
lh_link_bound_latency_ps(const LhNetwork *network, const LhGroup *group)
{
    const uint64_t members = lh_group_size(group);
    g_autofree uint32_t *ranks = lh_sorted_ranks(group);
    LhTime longest_ps = 0;

    for (uint64_t i = 0; i + 1 < members; i++)
        longest_ps =
            MAX(longest_ps, route_between(network, group, ranks[i], ranks[i + 1]).latency_ps);
    return longest_ps;
}

/* ---- per link ---- */

/* Loads by link, and the time per byte of the slowest pair that has a limit. */
typedef struct {
    const LhNetwork *network;
    GHashTable *crossings; /* link -> routes that cross it */
    double slowest_pair_s_per_byte;
} Loads;

static void
load_pair(Loads *loads, const LhRoute *route)
{
    load_route(route, loads->crossings);
    if (route->flow_bandwidth_bytes_per_s > 0)
        loads->slowest_pair_s_per_byte =
            fmax(loads->slowest_pair_s_per_byte, 1 / route->flow_bandwidth_bytes_per_s);
}

/* Loads the hops of all rings; returns the share of the bytes that each hop carries. */
static double
load_rings(Loads *loads, const LhGroup *group, LhCollectiveKind kind)
{
    LhRings rings = { .count = 0 };
    double share;

    lh_rings_init(&rings, loads->network, group);
    for (uint64_t i = 0; i < lh_ring_hops_count(&rings); i++) {
        const LhRoute route = lh_ring_hop_route(loads->network, group, &rings, i);

        load_pair(loads, &route);
    }
    share = lh_ring_share(kind, rings.size) / rings.count;
    lh_rings_clear(&rings);
    return share;
}

/* Loads messages from each member to the next, or to all others. */
static void
load_messages(Loads *loads, const LhGroup *group, bool to_all)
{
    const uint64_t members = lh_group_size(group);

    for (uint64_t i = 0; i < members; i++) {
        for (uint64_t j = 1; j < (to_all ? members : 2); j++) {
            const LhRoute route =
                route_between(loads->network, group, (uint32_t)lh_group_member(group, i),
                              (uint32_t)lh_group_member(group, (i + j) % members));

            load_pair(loads, &route);
        }
    }
}

static int
by_load(gconstpointer a, gconstpointer b)
{
    const LhLinkLoad *x = a, *y = b;

    if (x->s_per_byte != y->s_per_byte)
        return x->s_per_byte > y->s_per_byte ? -1 : 1;
    return x->link < y->link ? -1 : x->link > y->link;
}

/* Converts crossings to loads, each of @share of the printed bytes. Consumes the crossings. */
static GArray *
conclude_loads(Loads *loads, double share)
{
    GArray *all = g_array_new(FALSE, FALSE, sizeof(LhLinkLoad));
    LhLinkLoad load = { LH_LINK_OF_PAIR, loads->slowest_pair_s_per_byte * share };
    GHashTableIter iter;
    gpointer id, crossings;

    if (load.s_per_byte > 0)
        g_array_append_val(all, load);
    g_hash_table_iter_init(&iter, loads->crossings);
    while (g_hash_table_iter_next(&iter, &id, &crossings)) {
        load.link = GPOINTER_TO_UINT(id);
        load.s_per_byte = GPOINTER_TO_UINT(crossings) * share /
                          lh_network_link(loads->network, load.link).bandwidth_bytes_per_s;
        g_array_append_val(all, load);
    }
    g_hash_table_unref(loads->crossings);
    g_array_sort(all, by_load);
    return all;
}

GArray *
lh_link_loads(const LhNetwork *network, const LhGroup *group, LhCollectiveKind kind,
              LhLinkAlgorithm algorithm)
{
    Loads loads = { network, g_hash_table_new(NULL, NULL), 0 };
    const double members = (double)lh_group_size(group);
    double share;

    g_assert(members > 1);
    if (algorithm == LH_ALGORITHM_NVLS) {
        load_messages(&loads, group, false);
        share = 1 + 1 / members;
    } else if (algorithm == LH_ALGORITHM_PAIRS ||
               (algorithm == LH_ALGORITHM_DEFAULT && kind == LH_COLL_ALL_TO_ALL)) {
        load_messages(&loads, group, true);
        share = rounds_of(kind) / members;
    } else {
        share = load_rings(&loads, group, kind);
    }
    return conclude_loads(&loads, share);
}

GArray *
lh_link_loads_of_sends(const LhNetwork *network, const LhGroup *group)
{
    Loads loads = { network, g_hash_table_new(NULL, NULL), 0 };

    load_messages(&loads, group, false);
    return conclude_loads(&loads, 1);
}
