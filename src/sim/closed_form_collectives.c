/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives by a closed form: all members take the same time from the arrival of the last one.
 */
#include "sim/sim_private.h"

#include "program/collective_semantics.h"

#include <math.h>

/* Counts what the member at @position sends in a closed form, and over which links: those of the
 * rings, or of the pairs. @node: its op if the rank is simulated, else NULL. */
static void
count_member(LhEngine *e, LhNode *node, const LhCollective *c, uint32_t position)
{
    const LhGroup *group = lh_collective_group(c);
    const uint32_t r = c->members[position].rank;
    const bool all_to_all = c->kind == LH_COLL_ALL_TO_ALL;
    const uint32_t peers = all_to_all ? c->size - 1 : c->rings->count;

    for (uint32_t k = 0; k < peers; k++) {
        const uint32_t next =
            all_to_all ? (position + 1 + k) % c->size : lh_rings_next(c->rings, k, position);
        const uint32_t to = (uint32_t)lh_group_member(group, next);
        const uint64_t bytes =
            all_to_all ? lh_collective_piece(c, position, next)
                       : lh_collective_bytes_sent(c->kind, group, r,
                                                  lh_piece_bytes(c->shard_bytes, k, peers));
        LhRoute route;

        if (bytes == 0)
            continue;
        lh_transfer_hop_route(e, c, r, to, &route);
        if (!lh_transfer_check_route(e, r, to, &route))
            return;
        e->tiers_used |= 1u << route.tier;
        if (node != NULL)
            node->bytes += bytes;
        if (c->likes != NULL) {
            lh_transfer_count_apart(e, c->likes, &route, bytes);
            continue;
        }
        lh_transfer_count_sent(e, r, route.tier, bytes);
        lh_flows_count(e->moving.flows, &route, bytes);
    }
}

void
lh_closed_form_count(LhEngine *e, LhNode *node, const LhCollective *c, uint32_t position)
{
    const LhSymmetricMembers *likes = c->likes;

    node->tier = c->neighbours->tier;
    count_member(e, node, c, position);
    for (uint32_t i = likes != NULL ? likes->first[position] : 0;
         likes != NULL && i < likes->first[position + 1]; i++) {
        if (likes->likes[i] != position)
            count_member(e, NULL, c, likes->likes[i]);
    }
}

/* Records what the time of the closed form is spent on: a part that does not depend on the bytes,
 * and the narrowest route from a member to the next. */
static void
record_meeting(LhEngine *e, const LhCollective *c, LhTime end)
{
    const LhGroup *group = lh_collective_group(c);
    LhCollective empty = *c;
    LhRoute narrowest = { 0 }, route;
    double least = INFINITY;
    uint32_t op = c->members[0].op;
    int provenance;

    empty.shard_bytes = 0;
    empty.pieces = NULL;
    for (uint32_t i = 0; i < c->size; i++) {
        lh_transfer_hop_route(e, c, (uint32_t)lh_group_member(group, i),
                              (uint32_t)lh_group_member(group, (i + 1) % c->size), &route);
        if (lh_network_route_bandwidth(e->network, &route) < least) {
            least = lh_network_route_bandwidth(e->network, &route);
            narrowest = route;
            op = c->members[i].there ? c->members[i].op : op;
        }
    }
    lh_path_recorder_meet(e->causes, &narrowest, op, e->now,
                          lh_collectives_duration(e->collectives, &empty, &provenance), end);
}

void
lh_closed_form_finish(LhEngine *e, LhCollective *c, uint32_t late)
{
    int provenance;
    const LhTime alone_ps = lh_collectives_duration(e->collectives, c, &provenance);
    const LhTime takes_ps = e->params->time_share == NULL
                                ? alone_ps
                                : lh_time_from_ps((double)alone_ps * lh_members_share(e, c));
    const LhTime end = e->now + (e->free_network ? 0 : takes_ps);

    if (!e->free_network)
        e->cost.provenance = MAX(e->cost.provenance, (LhProvenance)provenance);
    lh_members_gather(e, c);
    if (e->causes != NULL && end > e->now)
        record_meeting(e, c, end);
    for (uint32_t i = 0; i < c->size; i++) {
        LhSimRank *rank = &e->ranks[c->members[i].rank];
        LhNode *node;

        if (!lh_engine_plays(e, rank->index))
            continue;
        node = lh_node(&rank->nodes, c->members[i].op);
        if (e->causes != NULL)
            lh_path_recorder_join(e->causes, rank->index, c->members[i].op, node);
        lh_members_meet(e, c, i, late);
        node->timed = true;
        lh_heap_set(&e->heap, lh_queue_index(e, rank, node->stream), end);
    }
    lh_collective_settle(c);
}
