/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What messages of exchanges and hops of collectives share: from the moment both ends are ready to
 * their arrival.
 */
#include "sim/sim_private.h"

#include "base/error.h"

#include <math.h>

void
lh_transfer_refuse(LhEngine *e, uint32_t source, uint32_t destination, uint32_t link)
{
    g_autofree char *name = lh_network_link_name(e->network, link);

    if (e->error == NULL)
        g_set_error(&e->error, LH_ERROR, LH_ERROR_RUNTIME,
                    "rank %u cannot send to rank %u: link %s has failed", source, destination,
                    name);
}

bool
lh_transfer_is_open(LhEngine *e, uint32_t source, uint32_t destination, const LhRoute *route)
{
    for (uint32_t i = 0; i < route->links_count; i++)
        if (lh_network_link(e->network, route->links[i]).bandwidth_bytes_per_s <= 0) {
            lh_transfer_refuse(e, source, destination, route->links[i]);
            return false;
        }
    return true;
}

void
lh_transfer_differ(LhEngine *e, bool row)
{
    if (e->error == NULL)
        g_set_error(&e->error, LH_ERROR, LH_ERROR_RUNTIME, "ranks do not do the same");
    e->differ = true;
    e->row = row;
}

void
lh_transfer_count_apart(LhEngine *e, const LhSymmetricMembers *likes, const LhRoute *route,
                        uint64_t bytes)
{
    const LhApart *apart = lh_transfer_apart(e, likes);

    apart->sent_bytes[route->source * LH_TIERS + route->tier] += bytes;
    for (uint32_t i = 0; i < route->links_count; i++)
        apart->link_bytes[route->links[i]] += bytes;
}

void
lh_transfer_begin(LhEngine *e, const LhEnds *ends, uint64_t bytes, uint32_t late)
{
    e->tiers_used |= 1u << ends->tier;
    for (uint32_t i = 0; i < 2; i++) {
        LhSimRank *rank = &e->ranks[ends->ranks[i]];
        LhNode *node;

        if (!lh_engine_plays(e, ends->ranks[i]))
            continue;
        node = lh_node(&rank->nodes, ends->nodes[i]);
        node->tier = node->tier == LH_TIERS ? ends->tier : MAX(node->tier, ends->tier);
        if (i == 0)
            node->bytes += bytes;
        if (e->transits != NULL)
            lh_transit_leaves(e, rank, node->stream);
        lh_transfer_end_wait(e, rank, late);
        if (rank->moving[ends->tier]++ == 0 && rank->account.why != LH_BUSY)
            lh_engine_classify(e, rank);
    }
}

/*
 * Checks that folding is still exact. It is not if hops of a collective that are all simulated,
 * because they differ among members, share the network with folded messages.
 */
static void
check_shared(LhEngine *e, const LhEnds *ends)
{
    e->moving.under_way[ends->whole]++;
    if (e->folded && e->moving.under_way[0] > 0 && e->moving.under_way[1] > 0)
        lh_transfer_differ(e, e->fold.of.row > 1);
}

/* Starts a flow that takes @share of its time. */
static uint32_t
begin_flow(LhEngine *e, const LhRoute *route, uint64_t bytes, double share)
{
    LhRoute shorter;

    if (e->params->time_share == NULL)
        return lh_flows_start(e->moving.flows, e->now, route, bytes);
    shorter = *route;
    shorter.latency_ps = lh_time_from_ps((double)route->latency_ps * share);
    return lh_flows_start(e->moving.flows, e->now, &shorter,
                          (uint64_t)llround((double)bytes * share));
}

uint32_t
lh_transfer_start(LhEngine *e, const LhEnds *ends, const LhRoute *route, uint64_t bytes,
                  double share)
{
    LhMoving *moving = &e->moving;
    const uint32_t flow = begin_flow(e, route, bytes, share);

    if (flow >= moving->count) {
        moving->count = MAX(64, moving->count * 2);
        moving->ends = g_renew(LhEnds, moving->ends, moving->count);
    }
    moving->ends[flow] = *ends;
    check_shared(e, ends);
    if (e->repeat != NULL)
        lh_fast_forward_note_flow(e, LH_EVENT_FLOW_STARTS, flow);
    if (e->causes != NULL) {
        const LhFlowEnds of = { { ends->ranks[0], ends->ranks[1] },
                                { ends->nodes[0], ends->nodes[1] },
                                ends->of != LH_ENDS_MESSAGE };

        lh_path_recorder_flow_starts(e->causes, flow, route, &of, e->now);
    }
    return flow;
}

void
lh_transfer_set_hop(LhEngine *e, uint32_t flow, const LhMovingHop *hop)
{
    LhMoving *moving = &e->moving;

    if (flow >= moving->hops_count) {
        moving->hops_count = moving->count;
        moving->hops = g_renew(LhMovingHop, moving->hops, moving->hops_count);
    }
    moving->hops[flow] = *hop;
}

void
lh_transfer_deliver(LhEngine *e, const LhEnds *ends, uint32_t pieces)
{
    e->events += ends->stands;
    for (uint32_t i = 0; i < 2; i++) {
        LhSimRank *rank = &e->ranks[ends->ranks[i]];
        LhNode *node;

        if (e->causes != NULL)
            lh_path_recorder_delivered(e->causes, rank->index, ends->nodes[i]);
        if (!lh_engine_plays(e, ends->ranks[i]))
            continue;
        node = lh_node(&rank->nodes, ends->nodes[i]);
        rank->moving[ends->tier]--;
        if (e->transits != NULL)
            lh_transit_arrives(e, rank, node->stream);
        node->pending -= pieces;
        if (node->pending == 0) {
            lh_engine_complete(e, rank, ends->nodes[i]);
            lh_news_add(e, ends->ranks[i]);
        } else if (rank->moving[ends->tier] == 0 && rank->account.why != LH_BUSY) {
            lh_engine_classify(e, rank);
        }
    }
}
