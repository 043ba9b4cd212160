/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of an op start with the op or later, and the op ends when all have arrived. So each
 * message takes at least its bytes over its narrowest link, and each link takes at least all bytes
 * that it carries of them, unless the network model treats every message as alone.
 */
#include "sim/network/collectives/collective_least.h"

#include "sim/network/collectives/collective_measured.h"
#include "sim/network/collectives/collectives_private.h"

#include <math.h>

/* Loss by rounding to picoseconds, per start and end of a message. */
#define ROUNDING_PS 2

struct _LhLinkLoads {
    const LhNetwork *network;
    bool shared;       /* messages of an op share links */
    double *seconds;   /* by link: time of the messages so far */
    GArray *touched;   /* of uint32_t: links with messages */
    double slowest_s;  /* the slowest message, alone */
    LhTime latency_ps; /* the smallest of a route so far */
    uint64_t messages;
};

LhLinkLoads *
lh_link_loads_new(const LhNetwork *network, LhNetworkModel model)
{
    LhLinkLoads *loads = g_new0(LhLinkLoads, 1);

    loads->network = network;
    loads->shared = model != LH_NETWORK_ALPHA_BETA;
    loads->seconds = g_new0(double, network->links_count);
    loads->touched = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    loads->latency_ps = LH_TIME_NEVER;
    return loads;
}

void
lh_link_loads_free(LhLinkLoads *loads)
{
    if (loads == NULL)
        return;
    g_free(loads->seconds);
    g_array_unref(loads->touched);
    g_free(loads);
}

/* Adds @messages with @bytes in total, one after another. A failed link is ignored here and ends
 * the run elsewhere. */
static void
add_messages(LhLinkLoads *loads, const LhRoute *route, double bytes, uint32_t messages)
{
    const double alone = lh_network_route_bandwidth(loads->network, route);

    loads->messages += messages;
    loads->latency_ps = MIN(loads->latency_ps, route->latency_ps);
    if (alone > 0)
        loads->slowest_s = fmax(loads->slowest_s, bytes / alone);
    for (uint32_t i = 0; loads->shared && i < route->links_count; i++) {
        const double rate = lh_network_link(loads->network, route->links[i]).bandwidth_bytes_per_s;

        if (loads->seconds[route->links[i]] <= 0)
            g_array_append_val(loads->touched, route->links[i]);
        loads->seconds[route->links[i]] += rate > 0 ? bytes / rate : 0;
    }
}

/* Returns the lower bound of what was added, and resets. */
static LhTime
take_longest(LhLinkLoads *loads)
{
    double longest_s = loads->slowest_s;
    LhTime lost_ps = (LhTime)(loads->messages + 1) * ROUNDING_PS, time_ps;

    for (guint i = 0; i < loads->touched->len; i++) {
        double *seconds = &loads->seconds[g_array_index(loads->touched, uint32_t, i)];

        longest_s = fmax(longest_s, *seconds);
        *seconds = 0;
    }
    time_ps = loads->messages == 0
                  ? 0
                  : lh_time_from_ps(longest_s * (double)LH_PS_PER_S) + loads->latency_ps - lost_ps;
    g_array_set_size(loads->touched, 0);
    loads->slowest_s = 0;
    loads->latency_ps = LH_TIME_NEVER;
    loads->messages = 0;
    return MAX(time_ps, 0);
}

LhTime
lh_exchange_least(LhLinkLoads *loads, uint32_t rank, const LhPart *parts, uint32_t parts_count)
{
    for (uint32_t i = 0; i < parts_count; i++) {
        const uint32_t from = parts[i].send ? rank : parts[i].peer;
        const uint32_t to = parts[i].send ? parts[i].peer : rank;
        /* Alone in their communicator the two may take less time, and never more. */
        const LhGroup pair = { MIN(from, to), MAX(from, to) - MIN(from, to), 2, 0, 1 };
        LhRoute route;

        lh_network_route(loads->network, from, to, &route);
        lh_network_route_in(loads->network, &pair, &route);
        add_messages(loads, &route, (double)parts[i].wire_bytes, 1);
    }
    return take_longest(loads);
}

/* A member of rings passes on as many pieces as it receives. */
static LhTime
rings_least(LhLinkLoads *loads, const LhCollective *c, uint32_t position)
{
    const LhGroup *group = lh_collective_group(c);

    for (uint32_t ring = 0; ring < c->rings->count; ring++) {
        const double bytes =
            (double)c->steps * (double)lh_piece_bytes(c->shard_bytes, ring, c->rings->count);
        const uint32_t rank = (uint32_t)lh_group_member(group, position);
        const uint32_t next = lh_rings_next(c->rings, ring, position);
        const uint32_t previous = lh_rings_previous(c->rings, ring, position);
        LhRoute route;

        lh_network_collective_route(loads->network, rank, (uint32_t)lh_group_member(group, next),
                                    &route);
        lh_network_route_in(loads->network, group, &route);
        add_messages(loads, &route, bytes, c->steps);
        lh_network_collective_route(loads->network, (uint32_t)lh_group_member(group, previous),
                                    rank, &route);
        lh_network_route_in(loads->network, group, &route);
        add_messages(loads, &route, bytes, c->steps);
    }
    return take_longest(loads);
}

/*
 * Fluid rings: flows start when all members have arrived, and all members end @c's delay after the
 * last arrival. The busiest link of a hop carries the bytes of all hops over it; of uneven pieces
 * the smallest is used for all.
 */
static LhTime
fluid_least(const LhCollectives *cs, const LhLinkLoads *loads, const LhCollective *c)
{
    const LhRingHop *hops = lh_collectives_hops(cs, c);
    const uint64_t piece_bytes = c->shard_bytes / c->rings->count;
    const double bytes = (double)c->steps * (double)piece_bytes;
    const uint64_t count = lh_ring_hops_count(c->rings);
    double slowest_s_per_byte = 0, latency_s = INFINITY;
    LhTime time_ps;

    for (uint64_t i = 0; i < count; i++) {
        const double s_per_byte = loads->shared ? hops[i].s_per_byte : hops[i].alone_s_per_byte;

        if (isfinite(s_per_byte)) /* a failed link ends the run elsewhere */
            slowest_s_per_byte = fmax(slowest_s_per_byte, s_per_byte);
        latency_s = fmin(latency_s, hops[i].latency_s);
    }
    time_ps = lh_time_from_ps((bytes * slowest_s_per_byte + latency_s) * (double)LH_PS_PER_S);
    return MAX(time_ps + c->delay_ps - (LhTime)(count + 1) * ROUNDING_PS, 0);
}

/* One piece to every other member, and one from each if all pieces are equal. */
static LhTime
pairs_least(LhLinkLoads *loads, const LhCollective *c, uint32_t position)
{
    const LhGroup *group = lh_collective_group(c);
    const uint32_t rank = (uint32_t)lh_group_member(group, position);

    for (uint32_t other = 0; other < c->size; other++) {
        const uint32_t peer = (uint32_t)lh_group_member(group, other);
        LhRoute route;

        if (other == position)
            continue;
        lh_network_route(loads->network, rank, peer, &route);
        lh_network_route_in(loads->network, group, &route);
        add_messages(loads, &route, (double)lh_collective_piece(c, position, other), 1);
        if (c->pieces != NULL)
            continue;
        lh_network_route(loads->network, peer, rank, &route);
        lh_network_route_in(loads->network, group, &route);
        add_messages(loads, &route, (double)lh_collective_piece(c, other, position), 1);
    }
    return take_longest(loads);
}

/* Known times: the time from the last arrival on. 0 for uneven pieces, since those of other members
 * are unknown. */
static LhTime
meeting_least(LhCollectives *cs, LhCollective *c)
{
    int provenance;

    return c->pieces != NULL ? 0 : lh_collectives_duration(cs, c, &provenance);
}

LhTime
lh_collective_least(LhCollectives *cs, LhLinkLoads *loads, const LhProgram *program, uint32_t rank,
                    const LhOp *op, const uint32_t *counts)
{
    const uint32_t ticket = lh_collectives_issue(cs, program, rank, op, counts);
    uint32_t position;
    LhCollective *c;
    LhTime least_ps = 0;

    if (ticket == UINT32_MAX)
        return 0;
    c = lh_collectives_join(cs, ticket, op->id, &position);
    if (c == NULL)
        return 0;
    if (c->algorithm == NULL || c->algorithm == &lh_algorithm_measured)
        least_ps = meeting_least(cs, c);
    else if (c->size > 1 && c->algorithm == &lh_algorithm_fluid)
        least_ps = fluid_least(cs, loads, c);
    else if (c->size > 1 && c->algorithm == &lh_algorithm_ring)
        least_ps = rings_least(loads, c, position);
    else if (c->size > 1 && c->kind == LH_COLL_ALL_TO_ALL)
        least_ps = pairs_least(loads, c, position);
    /* No other member will join. */
    c->joined = c->size;
    c->ends_left = 0;
    lh_collective_settle(c);
    return least_ps;
}
