/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks of topologies written by hand in tests: routes as text, bandwidth shared by messages,
 * and collectives simulated alone, which never beat their lower bound.
 */
#pragma once

#include "base/rng.h"
#include "sim/network/collectives/collective_times.h"
#include "sim/network/flows.h"
#include "sim/network/link_bound.h"
#include "sim_single.h"

#include <math.h>

static inline LhTopology *
parse(const char *text)
{
    g_autoptr(GError) error = NULL;
    LhTopology *t = lh_topology_parse("t.json", text, strlen(text), &error);

    ck_assert_msg(t != NULL, "%s", error != NULL ? error->message : text);
    return t;
}

/* Builds the network with one rank per GPU. */
static inline void
network_of(LhNetwork *n, const LhTopology *t, uint32_t nodes)
{
    ck_assert(lh_network_init(n, t, nodes, nodes * (uint32_t)t->gpus_per_node, NULL, NULL));
}

/* ---- by hand ---- */

typedef struct {
    uint32_t from, to;
} Pair;

/* Bandwidth of the first of several simultaneous messages, bytes/s. */
static inline double
rate_of_routes(const LhNetwork *n, const LhRoute *routes, size_t count)
{
    LhHeap heap = { 0 };
    LhFlows *flows = lh_flows_new(n, LH_NETWORK_FAIR, &heap, 0);
    const uint32_t first = lh_flows_start(flows, 0, &routes[0], 1000000);
    double rate;

    for (size_t i = 1; i < count; i++)
        lh_flows_start(flows, 0, &routes[i], 1000000);
    lh_flows_settle(flows, 0);
    rate = lh_flows_rate(flows, first);
    lh_flows_free(flows);
    lh_heap_clear(&heap);
    return rate;
}

static inline double
rate_of_first(const LhNetwork *n, const Pair *pairs, size_t count)
{
    g_autofree LhRoute *routes = g_new(LhRoute, count);

    for (size_t i = 0; i < count; i++)
        lh_network_route(n, pairs[i].from, pairs[i].to, &routes[i]);
    return rate_of_routes(n, routes, count);
}

/* A route as text, such as "pcie up, node 0, index 0; nic up, node 0, index 0; ..: 12 us"; caller
 * frees. */
static inline char *
describe(const LhNetwork *n, uint32_t from, uint32_t to)
{
    GString *text = g_string_new(NULL);
    g_autofree char *latency = NULL;
    LhRoute route;

    lh_network_route(n, from, to, &route);
    for (uint32_t i = 0; i < route.links_count; i++) {
        g_autofree char *name = lh_network_link_name(n, route.links[i]);

        g_string_append_printf(text, "%s%s", i > 0 ? "; " : "", name);
    }
    latency = lh_format_time(route.latency_ps);
    g_string_append_printf(text, ": %s", latency);
    return g_string_free(text, FALSE);
}

/* ---- at random ---- */

static inline uint64_t
below(uint64_t *drawn, uint64_t limit)
{
    return lh_rng_bits(41, (*drawn)++, 0) % limit;
}

/* Asserts that a random route and its reverse cross the same number of links of equal bandwidth,
 * each once. */
static inline void
check_symmetric(const LhNetwork *n, uint64_t *drawn)
{
    const uint32_t from = (uint32_t)below(drawn, n->ranks);
    const uint32_t to = (from + 1 + (uint32_t)below(drawn, n->ranks - 1)) % n->ranks;
    LhRoute there, back;

    lh_network_route(n, from, to, &there);
    lh_network_route(n, to, from, &back);
    ck_assert_uint_eq(there.links_count, back.links_count);
    ck_assert_int_eq(there.latency_ps, back.latency_ps);
    ck_assert_double_eq(lh_network_route_bandwidth(n, &there),
                        lh_network_route_bandwidth(n, &back));
    for (uint32_t i = 0; i < there.links_count; i++) {
        ck_assert_uint_lt(there.links[i], n->links_count);
        for (uint32_t k = 0; k < i; k++)
            ck_assert_uint_ne(there.links[i], there.links[k]);
    }
}

/* A collective of the first ranks of a cluster. */
typedef struct {
    LhCollectiveKind kind;
    LhCollectiveModel model;
    uint32_t ranks;
    uint64_t shard_bytes;
} Played;

/* Draws one whose algorithm the bound covers. */
static inline Played
random_played(uint32_t ranks, uint64_t *drawn)
{
    static const LhCollectiveModel of_pairs[] = { LH_COLLECTIVES_RING, LH_COLLECTIVES_PAIRWISE,
                                                  LH_COLLECTIVES_DIRECT };
    static const LhCollectiveModel of_rings[] = { LH_COLLECTIVES_RING, LH_COLLECTIVES_FLUID };
    const LhCollectiveKind kind = (LhCollectiveKind)below(drawn, LH_COLL_KINDS);

    return (Played){ .kind = kind,
                     .model = kind == LH_COLL_ALL_TO_ALL
                                  ? of_pairs[below(drawn, G_N_ELEMENTS(of_pairs))]
                                  : of_rings[below(drawn, G_N_ELEMENTS(of_rings))],
                     .ranks = ranks,
                     .shard_bytes = 1000000 + below(drawn, 100000000) };
}

/* Returns its simulated time alone on @t in seconds, asserting that it is at least its bound, which
 * goes to *@bound_s. */
static inline double
play(const LhTopology *t, const Played *p, double *bound_s)
{
    const LhGroup group = first_ranks(p->ranks);
    g_autoptr(LhSimResult) result = NULL;
    double played_s;
    Single s;
    World w;

    single_init(&s, p->kind, group, p->shard_bytes, 0, 0);
    script_init(&w, &s.script, p->ranks);
    w.topology = *t;
    w.device.memory_bandwidth = INFINITY;
    w.params.collectives = p->model;
    result = world_run(&w);
    *bound_s = lh_link_bound_s_per_byte(&w.network, &group, p->kind, LH_ALGORITHM_DEFAULT) *
               lh_collective_printed_bytes(p->kind, p->ranks, (double)p->shard_bytes);
    played_s = (double)result->makespan_ps * 1e-12;
    ck_assert_double_le(result->busiest_link_utilisation, 1 + 1e-9);
    ck_assert_msg(*bound_s <= played_s * (1 + 1e-9), "%s on %u: %g s, bound %g s",
                  lh_collective_names[p->kind], p->ranks, played_s, *bound_s);
    world_clear(&w);
    return played_s;
}
