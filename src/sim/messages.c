/*
 * Messages on the network, those of exchanges and those that collectives are made of: from the
 * moment when both ends are there to their arrival. A posted group holds its SMs while it waits, as
 * NCCL's kernels do.
 */
#include "sim/engine.h"

#include "base/error.h"
#include "program/collective_semantics.h"
#include "sim/network/collectives/collective_measured.h"
#include "sim/network/sends.h"
#include "sim/network/traffic.h"

#include <math.h>

static void
route_failed(LhEngine *e, uint32_t source, uint32_t destination, uint32_t link)
{
    g_autofree char *name = lh_network_link_name(e->network, link);

    if (e->error == NULL)
        g_set_error(&e->error, LH_ERROR, LH_ERROR_RUNTIME,
                    "rank %u cannot send to rank %u: link %s has failed", source, destination,
                    name);
}

/* False, and the run is over, if a link on the way has failed. */
static bool
check_route(LhEngine *e, uint32_t source, uint32_t destination, const LhRoute *route)
{
    if (e->network->faults == NULL)
        return true;
    for (uint32_t i = 0; i < route->links_count; i++)
        if (lh_network_link(e->network, route->links[i]).bandwidth_bytes_per_s <= 0) {
            route_failed(e, source, destination, route->links[i]);
            return false;
        }
    return true;
}

/* The run is to be played again, with less of it folded. */
static void
differ(LhEngine *e, bool row)
{
    if (e->error == NULL)
        g_set_error(&e->error, LH_ERROR, LH_ERROR_RUNTIME, "ranks do not do the same");
    e->differ = true;
    e->row = row;
}

static void
count_sent(LhEngine *e, uint32_t r, uint8_t tier, uint64_t bytes)
{
    e->results[r].bytes_sent += bytes;
    e->results[r].bytes_by_tier[tier] += bytes;
}

/* Where bytes of members of a collective are counted whose likes in it may send as much by other
 * ways. */
static const LhApart *
apart_of(const LhEngine *e, const LhSymmetricMembers *likes)
{
    return &e->apart[!likes->rows        ? LH_APART_SHIFTS
                     : likes->shifts > 1 ? LH_APART_BOTH
                                         : LH_APART_ROWS];
}

static void
count_apart(LhEngine *e, const LhSymmetricMembers *likes, const LhRoute *route, uint64_t bytes)
{
    const LhApart *apart = apart_of(e, likes);

    apart->sent_bytes[route->source * LH_TIERS + route->tier] += bytes;
    for (uint32_t i = 0; i < route->links_count; i++)
        apart->link_bytes[route->links[i]] += bytes;
}

/* Nothing moved for the rank until @late came: what has it been idle for? */
static inline void
end_wait(LhEngine *e, LhSimRank *rank, uint32_t late)
{
    if (rank->account.why == LH_IDLE_IMBALANCE && rank->index != late)
        lh_idle_accounting_wait(&rank->account, &e->ranks[late].account, e->now);
}

/* Both ends learn that @bytes move from now on, for which they have waited for @late. */
static void
set_moving(LhEngine *e, const LhEnds *ends, uint64_t bytes, uint32_t late)
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
        end_wait(e, rank, late);
        if (rank->moving[ends->tier]++ == 0 && rank->account.why != LH_BUSY)
            lh_engine_classify(e, rank);
    }
}

/*
 * The run as folded is not what would happen: hops of a collective that are all simulated, because
 * they are not the same for all members, share the network with messages that are not.
 */
static void
check_shared(LhEngine *e, const LhEnds *ends)
{
    e->moving.under_way[ends->whole]++;
    if (e->folded && e->moving.under_way[0] > 0 && e->moving.under_way[1] > 0)
        differ(e, e->fold.of.row > 1);
}

/* Of its time it takes @share. */
static uint32_t
begin_flow(LhEngine *e, const LhRoute *route, uint64_t bytes, double share)
{
    LhRoute shorter = *route;

    if (e->params->time_share == NULL)
        return lh_flows_start(e->moving.flows, e->now, route, bytes);
    shorter.latency_ps = lh_time_from_ps((double)route->latency_ps * share);
    return lh_flows_start(e->moving.flows, e->now, &shorter,
                          (uint64_t)llround((double)bytes * share));
}

/* What the op takes of its time: LhSimParams.time_share. */
static double
share_of_op(const LhEngine *e, uint32_t rank, uint32_t op)
{
    return e->params->time_share == NULL ? 1 : lh_node(&e->ranks[rank].nodes, op)->share;
}

static uint32_t
start_flow(LhEngine *e, const LhEnds *ends, const LhRoute *route, uint64_t bytes, double share)
{
    LhMoving *moving = &e->moving;
    const uint32_t flow = begin_flow(e, route, bytes, share);

    if (flow >= moving->count) {
        moving->count = MAX(64, moving->count * 2);
        moving->ends = g_renew(LhEnds, moving->ends, moving->count);
        moving->hops = g_renew(LhMovingHop, moving->hops, moving->count);
    }
    moving->ends[flow] = *ends;
    check_shared(e, ends);
    if (e->repeat != NULL)
        lh_fast_forward_note_flow(e, LH_EVENT_FLOW_STARTS, flow);
    if (e->causes != NULL)
        lh_path_recorder_flow_starts(e->causes, flow, route, ends->nodes,
                                     ends->of != LH_ENDS_MESSAGE, e->now);
    return flow;
}

/* The message has arrived: so many less to wait for at both ends. */
static void
deliver(LhEngine *e, const LhEnds *ends, uint32_t pieces)
{
    e->events += ends->whole ? 1 : lh_engine_weight(e, ends->ranks[0]);
    for (uint32_t i = 0; i < 2; i++) {
        LhSimRank *rank = &e->ranks[ends->ranks[i]];
        LhNode *node;

        if (!lh_engine_plays(e, ends->ranks[i]))
            continue;
        node = lh_node(&rank->nodes, ends->nodes[i]);
        if (e->causes != NULL)
            lh_path_recorder_delivered(e->causes, rank->index, ends->nodes[i]);
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

/* ---- exchanges ---- */

static void
route_of_message(const LhEngine *e, uint32_t from, uint32_t to, LhRoute *route)
{
    lh_network_route(e->network, from, to, route);
    if (e->network->topology->tree.rates.p2p_two) {
        const LhGroup group = lh_program_group(e->program, from);

        lh_network_route_in(e->network, &group, route);
    }
    lh_sends_limit(e->network, route);
}

/* Both ends are there: the message starts to move. */
static void
start_message(LhEngine *e, const LhPost *sender, const LhPost *receiver, uint32_t late)
{
    LhEnds ends = { { sender->rank, receiver->rank },
                    { sender->node, receiver->node },
                    0,
                    LH_ENDS_MESSAGE,
                    false };
    LhRoute route;

    route_of_message(e, sender->rank, receiver->rank, &route);
    if (!check_route(e, sender->rank, receiver->rank, &route))
        return;
    ends.tier = route.tier;
    count_sent(e, sender->rank, route.tier, sender->bytes);
    set_moving(e, &ends, sender->bytes, late);
    if (e->free_network && e->causes != NULL)
        for (uint32_t i = 0; i < 2; i++)
            lh_path_recorder_gather(e->causes, ends.ranks[i], ends.nodes[i], i == 0);
    if (e->free_network)
        deliver(e, &ends, 1);
    else
        start_flow(e, &ends, &route, sender->bytes, share_of_op(e, sender->rank, sender->node));
}

/* What a message counts for where it is known what all messages of a rank hold together. */
static uint16_t
ctas_at_least(const LhEngine *e)
{
    return e->params->device->messages_hold > 0 ? 1 : 0;
}

/* The SMs that the op's kernel holds from now on, waiting or not. Its communicator spans the ranks
 * of the rank's group. */
static void
hold_sms(LhEngine *e, LhSimRank *rank, LhNode *node)
{
    const LhGroup group = lh_program_group(e->program, rank->index);
    const LhSpan span = lh_network_span(e->network, &group);
    const LhPost *posts = e->matcher.posts;
    LhRoute route;

    node->ctas = ctas_at_least(e);
    for (uint32_t i = node->posts; i != LH_NO_POST; i = posts[i].next) {
        lh_network_route(e->network, lh_post_source(&posts[i]), lh_post_destination(&posts[i]),
                         &route);
        node->ctas = MAX(node->ctas, route.ctas[span]);
    }
    lh_share_hold(e, rank, (int32_t)node->ctas);
}

/* Messages enter the network in the order of the op; `next` is read first because a match frees the
 * post. */
void
lh_exchange_start(LhEngine *e, LhSimRank *rank, uint32_t id)
{
    LhNode *node = lh_node(&rank->nodes, id);
    uint32_t index = node->posts;

    if (e->contention)
        hold_sms(e, rank, node);
    while (index != LH_NO_POST) {
        const LhPost *post = &e->matcher.posts[index];
        const uint32_t next = post->next;
        const LhPost *other = lh_matcher_post(&e->matcher, index);

        if (other != NULL)
            start_message(e, post->send ? post : other, post->send ? other : post, post->rank);
        index = next;
    }
}

/* ---- collectives ---- */

static void
route_of_hop(const LhEngine *e, const LhCollective *c, uint32_t from, uint32_t to, LhRoute *route)
{
    if (c->kind == LH_COLL_ALL_TO_ALL)
        lh_network_route(e->network, from, to, route);
    else
        lh_network_collective_route(e->network, from, to, route);
    lh_network_route_in(e->network, lh_collective_group(c), route);
}

/* To who stands for the receiver, over the links next to it. */
static void
fold_hop(const LhEngine *e, LhEnds *ends, LhRoute *route)
{
    ends->ranks[1] = lh_engine_like(e, ends->ranks[1]);
    for (uint32_t i = 0; i < route->links_count; i++)
        route->links[i] = lh_symmetry_link(&e->fold, e->network, route->links[i]);
}

/* What a hop of a collective sends all of whose hops are simulated. */
static void
count_whole(LhEngine *e, const LhSymmetricMembers *likes, const LhRoute *route, uint64_t bytes)
{
    count_apart(e, likes, route, bytes);
    for (uint32_t i = 0; i < route->links_count; i++)
        e->whole_bytes[route->links[i]] += bytes;
}

static void
start_hop(LhEngine *e, LhCollective *c, const LhHop *hop, uint32_t late)
{
    const LhMember *from = &c->members[hop->from], *to = &c->members[hop->to];
    LhEnds ends = { { from->rank, to->rank }, { from->op, to->op }, 0, LH_ENDS_HOP, c->whole };
    LhRoute route;
    uint32_t flow;

    route_of_hop(e, c, from->rank, to->rank, &route);
    if (!check_route(e, from->rank, to->rank, &route))
        return;
    if (e->folded && !c->whole)
        fold_hop(e, &ends, &route);
    ends.tier = route.tier;
    if (c->whole)
        count_whole(e, c->likes, &route, hop->bytes);
    else
        count_sent(e, from->rank, route.tier, hop->bytes);
    set_moving(e, &ends, hop->bytes, late);
    route.latency_ps += hop->delay_ps;
    route.own_bytes_per_s = hop->share.bytes_per_s;
    route.own_tiers = hop->share.tiers;
    flow = start_flow(e, &ends, &route, hop->bytes, share_of_op(e, from->rank, from->op));
    e->moving.hops[flow] = (LhMovingHop){ c, *hop };
    lh_collective_started(c, hop, flow);
}

/* Of a flow that may have another one by now. */
static void
limit_hop(void *data, uint32_t flow, LhRingShare share)
{
    lh_flows_limit(((LhEngine *)data)->moving.flows, flow, share.bytes_per_s, share.tiers);
}

void
lh_hops_settle(LhEngine *e)
{
    lh_collectives_settle_shares(e->collectives, limit_hop, e);
    lh_flows_settle(e->moving.flows, e->now);
}

/* Starts what the collective has found to be ready because of something that @late did. */
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

/* What happens next to the collective waits for all of its members. */
static void
gather_members(LhEngine *e, const LhCollective *c)
{
    bool first = true;

    for (uint32_t i = 0; i < c->size && e->causes != NULL; i++) {
        if (!lh_engine_plays(e, c->members[i].rank))
            continue;
        lh_path_recorder_gather(e->causes, c->members[i].rank, c->members[i].op, first);
        first = false;
    }
}

/* All members of the collective are through, because of the last message, to rank @late. */
static void
end_together(LhEngine *e, LhCollective *c, uint32_t late)
{
    gather_members(e, c);
    for (uint32_t i = 0; i < c->size; i++) {
        LhSimRank *rank = &e->ranks[c->members[i].rank];

        if (!lh_engine_plays(e, rank->index))
            continue;
        end_wait(e, rank, late);
        if (e->causes != NULL)
            lh_path_recorder_delivered(e->causes, rank->index, c->members[i].op);
        lh_engine_complete(e, rank, c->members[i].op);
        lh_news_add(e, rank->index);
    }
    c->ends_left = 0;
}

/* One of the flows of a collective whose time is known has arrived. */
static void
measured_arrived(LhEngine *e, LhCollective *c, const LhEnds *ends)
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
    end_together(e, c, ends->ranks[1]);
    lh_collective_settle(c);
}

static void
hop_arrived(LhEngine *e, uint32_t flow)
{
    LhMoving *moving = &e->moving;
    LhCollective *c = moving->hops[flow].collective;
    const uint32_t pieces = moving->hops[flow].hop.pieces;
    const uint32_t late = lh_engine_like(e, moving->ends[flow].ranks[1]);

    lh_collective_arrived(c, &moving->hops[flow].hop);
    start_hops(e, c, late);
    deliver(e, &moving->ends[flow], pieces);
    if (c->algorithm->together && c->ends_left == c->size)
        end_together(e, c, late);
    lh_collective_settle(c);
}

void
lh_flow_arrived(LhEngine *e, uint32_t flow)
{
    if (e->causes != NULL)
        lh_path_recorder_flow_arrived(e->causes, flow, e->now);
    if (e->repeat != NULL)
        lh_fast_forward_note_flow(e, LH_EVENT_FLOW_ARRIVES, flow);
    lh_flows_release(e->moving.flows, flow);
    e->moving.under_way[e->moving.ends[flow].whole]--;
    if (e->moving.ends[flow].of == LH_ENDS_HOP)
        hop_arrived(e, flow);
    else if (e->moving.ends[flow].of == LH_ENDS_MEASURED)
        measured_arrived(e, e->moving.hops[flow].collective, &e->moving.ends[flow]);
    else
        deliver(e, &e->moving.ends[flow], 1);
}

/* ---- times that are known as a whole ---- */

/* What the op of the collective takes of its time: the most that it may spare. */
static double
share_of_members(const LhEngine *e, const LhCollective *c)
{
    double share = 1;

    for (uint32_t i = 0; i < c->size && e->params->time_share != NULL; i++)
        share = MIN(share, share_of_op(e, c->members[i].rank, c->members[i].op));
    return share;
}

/* The member at @position and all others have met: @late was the last. */
static void
set_meeting(LhEngine *e, const LhCollective *c, uint32_t position, uint32_t late)
{
    LhSimRank *rank = &e->ranks[c->members[position].rank];

    if (!lh_engine_plays(e, rank->index))
        return;
    rank->moving[c->neighbours->tier]++;
    if (e->transits != NULL)
        lh_transit_leaves(e, rank, lh_node(&rank->nodes, c->members[position].op)->stream);
    end_wait(e, rank, late);
    lh_news_add(e, rank->index);
}

/* What the member at @position sends of a measured collective. */
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
            count_sent(e, m->rank, (uint8_t)tier, bytes);
        else
            apart_of(e, c->likes)->sent_bytes[m->rank * LH_TIERS + tier] += bytes;
    }
}

/* The route of a flow with a limit of its own over @link, and perhaps its other direction. */
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

/* Everything of the collective that crosses @link, as one flow. */
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
                          c->whole };
    LhRoute route;
    uint32_t flow;

    if (c->likes != NULL) {
        apart_of(e, c->likes)->link_bytes[link->id] += bytes;
        if (like != link->id)
            return; /* another one's stands for it */
        e->whole_bytes[like] += bytes;
    }
    if (link->follows)
        return;
    route = route_of_link(c, link, like, bytes, time);
    route.source = ends.ranks[0];
    route.destination = ends.ranks[1];
    flow = start_flow(e, &ends, &route, bytes, share_of_members(e, c));
    e->moving.hops[flow] = (LhMovingHop){ .collective = c };
    c->flows_left++;
}

/* All members are there, @late as the last one. */
static void
start_measured(LhEngine *e, LhCollective *c, uint32_t late)
{
    const LhTraffic *traffic = lh_collective_traffic(e->collectives, c);
    uint64_t part_bytes[LH_RINGS_MAX];
    LhMeasuredTime time;
    int provenance;

    lh_traffic_parts(traffic, c, part_bytes);
    for (guint i = 0; i < traffic->links->len; i++) {
        const LhTrafficLink *link = &g_array_index(traffic->links, LhTrafficLink, i);

        if (link->bandwidth_bytes_per_s <= 0 && lh_traffic_link_bytes(traffic, part_bytes, i) > 0) {
            route_failed(e, c->members[link->from].rank, c->members[link->to].rank, link->id);
            return;
        }
    }
    time = lh_collective_measured(e->collectives, c, part_bytes, &provenance);
    e->cost.provenance = MAX(e->cost.provenance, (LhProvenance)provenance);
    gather_members(e, c);
    for (uint32_t i = 0; i < c->size; i++) {
        count_measured(e, c, traffic, part_bytes, i);
        set_meeting(e, c, i, late);
    }
    for (guint i = 0; i < traffic->links->len; i++) {
        const LhTrafficLink *link = &g_array_index(traffic->links, LhTrafficLink, i);
        const uint64_t bytes = lh_traffic_link_bytes(traffic, part_bytes, i);

        if (bytes > 0 || time.links_ps == 0)
            start_link(e, c, link, bytes, time);
    }
}

/* ---- closed forms ---- */

/* What the member at @position sends by a closed form, and over which links: as the rings or the
 * pairs would. @node: the op of a rank that is simulated; NULL: it is none. */
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
        route_of_hop(e, c, r, to, &route);
        if (!check_route(e, r, to, &route))
            return;
        e->tiers_used |= 1u << route.tier;
        if (node != NULL)
            node->bytes += bytes;
        if (c->likes != NULL) {
            count_apart(e, c->likes, &route, bytes);
            continue;
        }
        count_sent(e, r, route.tier, bytes);
        lh_flows_count(e->moving.flows, &route, bytes);
    }
}

/* The same of the rank and of all members that it stands for. */
static void
count_closed_form(LhEngine *e, LhNode *node, const LhCollective *c, uint32_t position)
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

/* What the time of the closed form goes to: a part of its own, which bytes do not change, and the
 * narrowest way from a member to the next. */
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
        route_of_hop(e, c, (uint32_t)lh_group_member(group, i),
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

/* Closed form: @late was the last to arrive and decides when all are through. */
static void
finish_meeting(LhEngine *e, LhCollective *c, uint32_t late)
{
    int provenance;
    const LhTime alone_ps = lh_collectives_duration(e->collectives, c, &provenance);
    const LhTime takes_ps = e->params->time_share == NULL
                                ? alone_ps
                                : lh_time_from_ps((double)alone_ps * share_of_members(e, c));
    const LhTime end = e->now + (e->free_network ? 0 : takes_ps);

    if (!e->free_network)
        e->cost.provenance = MAX(e->cost.provenance, (LhProvenance)provenance);
    gather_members(e, c);
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
        set_meeting(e, c, i, late);
        node->timed = true;
        lh_heap_set(&e->heap, lh_queue_index(e, rank, node->stream), end);
    }
    lh_collective_settle(c);
}

static void
refuse_collective(LhEngine *e, const LhSimRank *rank, uint32_t id)
{
    if (e->error == NULL)
        g_set_error(&e->error, LH_ERROR, LH_ERROR_RUNTIME,
                    "rank %u, op %u: another rank calls another collective in its place; all ranks "
                    "of a communicator call the same ones in one order",
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
        differ(e, row);
        return;
    }
    c = lh_collectives_join(e->collectives, node->posts, id, &position);

    if (c == NULL) {
        refuse_collective(e, rank, id);
        return;
    }
    if (e->contention) {
        node->ctas = MAX(c->neighbours->ctas, ctas_at_least(e));
        lh_share_hold(e, rank, (int32_t)node->ctas);
    }
    if (c->algorithm == NULL) {
        count_closed_form(e, node, c, position);
        if (c->joined == c->size && e->error == NULL)
            finish_meeting(e, c, rank->index);
        return;
    }
    node->pending = c->algorithm->ends(c, position);
    if (c->algorithm == &lh_algorithm_measured) {
        node->tier = c->neighbours->tier;
        if (c->joined == c->size && e->error == NULL)
            start_measured(e, c, rank->index);
        return;
    }
    if (node->pending == 0)
        lh_engine_complete(e, rank, id);
    if (c->algorithm->together && c->joined == c->size)
        gather_members(e, c);
    start_hops(e, c, rank->index);
    lh_collective_settle(c);
}
