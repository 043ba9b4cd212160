/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives whose duration comes from measurements: one flow for each link that they load.
 */
#include "sim/sim_private.h"

#include "sim/network/collectives/collective_measured.h"
#include "sim/network/traffic.h"

void
lh_measured_arrived(LhEngine *e, LhCollective *c, const LhEnds *ends)
{
    const uint8_t tier = c->neighbours->tier;

    for (uint32_t i = 0; i < 2 && e->causes != NULL; i++)
        lh_path_recorder_delivered(e->causes, ends->ranks[i], ends->nodes[i]);
    if (--c->flows_left > 0)
        return;
    for (uint32_t i = 0; i < c->size; i++) {
        LhSimRank *rank = &e->ranks[c->members[i].rank];

        if (!lh_engine_plays(e, rank->index))
            continue;
        e->events += lh_engine_weight(e, rank->index);
        rank->moving[tier]--;
        if (e->transits != NULL)
            lh_transit_arrives(e, rank, lh_node(&rank->nodes, c->members[i].op)->stream);
    }
    lh_members_end(e, c, ends->ranks[1]);
    lh_collective_settle(c);
}

/* Counts what the member at @position sends in a measured collective. */
static void
count_measured(LhEngine *e, const LhCollective *c, const LhTraffic *traffic,
               const uint64_t *part_bytes, uint32_t position)
{
    const LhMember *m = &c->members[position];

    for (uint32_t tier = 0; tier < LH_TIERS; tier++) {
        const uint64_t bytes = traffic->tiers & 1u << tier
                                   ? lh_traffic_sent_bytes(traffic, part_bytes, position, tier)
                                   : 0;

        if (bytes == 0)
            continue;
        e->tiers_used |= 1u << tier;
        if (lh_engine_plays(e, m->rank))
            lh_node(&e->ranks[m->rank].nodes, m->op)->bytes += bytes;
        if (c->likes == NULL)
            lh_transfer_count_sent(e, m->rank, (uint8_t)tier, bytes);
        else
            lh_transfer_apart(e, c->likes)->sent_bytes[m->rank * LH_TIERS + tier] += bytes;
    }
}

/* The route of a flow with its own rate limit over @link, and possibly its other direction. */
static LhRoute
route_of_link(const LhCollective *c, const LhTrafficLink *link, uint32_t like, uint64_t bytes,
              LhMeasuredTime time)
{
    const double takes_s = (double)MAX(time.links_ps, 1) / (double)LH_PS_PER_S;

    return (LhRoute){ .links = { like, like ^ 1 },
                      .links_count = link->leads ? 2 : 1,
                      .latency_ps = time.floor_ps,
                      .tier = c->neighbours->tier,
                      .own_bytes_per_s = (double)bytes / takes_s,
                      .own_tiers = time.tiers };
}

/* Starts all traffic of the collective over @link as one flow. */
static void
start_link(LhEngine *e, LhCollective *c, const LhTrafficLink *link, uint64_t bytes,
           LhMeasuredTime time)
{
    const LhMember *from = &c->members[link->from], *to = &c->members[link->to];
    const uint32_t like =
        e->folded && !c->whole ? lh_symmetry_link(&e->fold, e->network, link->id) : link->id;
    const LhEnds ends = { { lh_engine_like(e, from->rank), lh_engine_like(e, to->rank) },
                          { from->op, to->op },
                          c->neighbours->tier,
                          LH_ENDS_MEASURED,
                          c->whole,
                          1 };
    LhRoute route;
    uint32_t flow;

    if (c->likes != NULL) {
        lh_transfer_apart(e, c->likes)->link_bytes[link->id] += bytes;
        if (like != link->id)
            return; /* represented by the flow of another link */
        e->whole_bytes[like] += bytes;
    }
    if (link->follows)
        return;
    route = route_of_link(c, link, like, bytes, time);
    route.source = ends.ranks[0];
    route.destination = ends.ranks[1];
    flow = lh_transfer_start(e, &ends, &route, bytes, lh_members_share(e, c));
    lh_transfer_set_hop(e, flow, &(LhMovingHop){ .collective = c });
    c->flows_left++;
}

void
lh_measured_start(LhEngine *e, LhCollective *c, uint32_t late)
{
    const LhTraffic *traffic = lh_collective_traffic(e->collectives, c);
    uint64_t part_bytes[LH_RINGS_MAX];
    LhMeasuredTime time;
    int provenance;

    lh_traffic_parts(traffic, c, part_bytes);
    for (guint i = 0; i < traffic->links->len; i++) {
        const LhTrafficLink *link = &g_array_index(traffic->links, LhTrafficLink, i);

        if (link->bandwidth_bytes_per_s <= 0 && lh_traffic_link_bytes(traffic, part_bytes, i) > 0) {
            lh_transfer_refuse(e, c->members[link->from].rank, c->members[link->to].rank, link->id);
            return;
        }
    }
    time = lh_collective_measured(e->collectives, c, part_bytes, &provenance);
    e->cost.provenance = MAX(e->cost.provenance, (LhProvenance)provenance);
    lh_members_gather(e, c);
    for (uint32_t i = 0; i < c->size; i++) {
        count_measured(e, c, traffic, part_bytes, i);
        lh_members_meet(e, c, i, late);
    }
    for (guint i = 0; i < traffic->links->len; i++) {
        const LhTrafficLink *link = &g_array_index(traffic->links, LhTrafficLink, i);
        const uint64_t bytes = lh_traffic_link_bytes(traffic, part_bytes, i);

        if (bytes > 0 || time.links_ps == 0)
            start_link(e, c, link, bytes, time);
    }
}
