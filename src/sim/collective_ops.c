/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives, from the start of a member's op to the arrival of its last hop.
 */
#include "sim/sim_private.h"

#include "base/error.h"
#include "sim/network/collectives/collective_measured.h"

/* Maps the receiver to its representative, and the links of the route to those that represent
 * them. */
static void
fold_hop(const LhEngine *e, LhEnds *ends, LhRoute *route)
{
    ends->ranks[1] = lh_engine_like(e, ends->ranks[1]);
    for (uint32_t i = 0; i < route->links_count; i++)
        route->links[i] = lh_symmetry_link(&e->fold, e->network, route->links[i]);
}

/* Counts what a hop sends of a collective all of whose hops are simulated. */
static void
count_whole(LhEngine *e, const LhSymmetricMembers *likes, const LhRoute *route, uint64_t bytes)
{
    lh_transfer_count_apart(e, likes, route, bytes);
    for (uint32_t i = 0; i < route->links_count; i++)
        e->whole_bytes[route->links[i]] += bytes;
}

/* The number of messages that a hop of @rank represents. If all hops are simulated, of those of
 * equivalent communicators: the members that are simulated stand for the members of all. */
static uint32_t
messages_of_hop(const LhEngine *e, LhCollective *c, uint32_t rank)
{
    uint32_t members = 0;

    if (!c->whole)
        return lh_engine_weight(e, rank);
    g_assert(c->size > 0);
    for (uint32_t i = 0; i < c->size && c->stands == 0; i++)
        if (lh_engine_plays(e, c->members[i].rank))
            members += lh_engine_weight(e, c->members[i].rank);
    c->stands = MAX(c->stands, members / c->size);
    return c->stands;
}

static void
start_hop(LhEngine *e, LhCollective *c, const LhHop *hop, uint32_t late)
{
    const LhMember *from = &c->members[hop->from], *to = &c->members[hop->to];
    LhEnds ends = { { from->rank, to->rank }, { from->op, to->op }, 0, LH_ENDS_HOP, c->whole, 1 };
    LhRoute route;
    uint32_t flow;

    lh_transfer_hop_route(e, c, from->rank, to->rank, &route);
    if (!lh_transfer_check_route(e, from->rank, to->rank, &route))
        return;
    if (e->folded && !c->whole)
        fold_hop(e, &ends, &route);
    ends.tier = route.tier;
    ends.stands = messages_of_hop(e, c, from->rank);
    if (c->whole)
        count_whole(e, c->likes, &route, hop->bytes);
    else
        lh_transfer_count_sent(e, from->rank, route.tier, hop->bytes);
    lh_transfer_begin(e, &ends, hop->bytes, late);
    route.latency_ps += hop->delay_ps;
    route.own_bytes_per_s = hop->share.bytes_per_s;
    route.own_tiers = hop->share.tiers;
    flow =
        lh_transfer_start(e, &ends, &route, hop->bytes, lh_transfer_share(e, from->rank, from->op));
    lh_transfer_set_hop(e, flow, &(LhMovingHop){ c, *hop });
}

/* Starts the hops that the collective has found ready because of something that @late did. */
static void
start_hops(LhEngine *e, LhCollective *c, uint32_t late)
{
    for (uint32_t i = 0; i < c->hops_count; i++)
        start_hop(e, c, &c->hops[i], late);
    c->hops_count = 0;
}

void
lh_hop_left(LhEngine *e, uint32_t flow)
{
    LhCollective *c = e->moving.hops[flow].collective;

    lh_collective_left(c, &e->moving.hops[flow].hop);
    start_hops(e, c, lh_engine_like(e, e->moving.ends[flow].ranks[0]));
}

void
lh_hop_arrived(LhEngine *e, uint32_t flow)
{
    LhMoving *moving = &e->moving;
    LhCollective *c = moving->hops[flow].collective;
    const uint32_t pieces = moving->hops[flow].hop.pieces;
    const uint32_t late = lh_engine_like(e, moving->ends[flow].ranks[1]);

    lh_collective_arrived(c, &moving->hops[flow].hop);
    start_hops(e, c, late);
    lh_transfer_deliver(e, &moving->ends[flow], pieces);
    if (c->algorithm->together && c->ends_left == c->size)
        lh_members_end(e, c, late);
    lh_collective_settle(c);
}

static void
refuse_collective(LhEngine *e, const LhSimRank *rank, uint32_t id)
{
    if (e->error == NULL)
        g_set_error(&e->error, LH_ERROR, LH_ERROR_RUNTIME,
                    "rank %u, op %u: another rank calls a different collective here; all ranks "
                    "of a communicator must call the same collectives in the same order",
                    rank->index, id + rank->skipped_ops);
}

void
lh_collective_start(LhEngine *e, LhSimRank *rank, uint32_t id)
{
    LhNode *node = lh_node(&rank->nodes, id);
    uint32_t position;
    LhCollective *c;
    bool row;

    if (e->folded && lh_collectives_differ(e->collectives, node->posts, &row)) {
        lh_transfer_differ(e, row);
        return;
    }
    c = lh_collectives_join(e->collectives, node->posts, id, &position);

    if (c == NULL) {
        refuse_collective(e, rank, id);
        return;
    }
    if (e->causes != NULL && (c->algorithm == NULL || c->algorithm == &lh_algorithm_measured))
        lh_path_recorder_joins(e->causes);
    if (e->contention) {
        node->ctas = MAX(c->neighbours->ctas, lh_transfer_ctas_min(e));
        lh_share_hold(e, rank, (int32_t)node->ctas);
    }
    if (c->algorithm == NULL) {
        lh_closed_form_count(e, node, c, position);
        if (c->joined == c->size && e->error == NULL)
            lh_closed_form_finish(e, c, rank->index);
        return;
    }
    node->pending = c->algorithm->ends(c, position);
    if (c->algorithm == &lh_algorithm_measured) {
        node->tier = c->neighbours->tier;
        if (c->joined == c->size && e->error == NULL)
            lh_measured_start(e, c, rank->index);
        return;
    }
    if (node->pending == 0)
        lh_engine_complete(e, rank, id);
    if (c->algorithm->together && c->joined == c->size)
        lh_members_gather(e, c);
    start_hops(e, c, rank->index);
    lh_collective_settle(c);
}
