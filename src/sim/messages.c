/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of exchanges, which start when both ends are posted, and arrivals of all flows. A posted
 * group holds its SMs while it waits, as NCCL's kernels do.
 */
#include "sim/sim_private.h"

#include "sim/network/sends.h"

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

/* Starts a matched message. Posts may move when it begins. */
static void
start_message(LhEngine *e, const LhPost *sender, const LhPost *receiver, uint32_t late)
{
    const uint64_t bytes = sender->bytes;
    LhEnds ends = { { sender->rank, receiver->rank },
                    { sender->node, receiver->node },
                    0,
                    LH_ENDS_MESSAGE,
                    false,
                    lh_engine_weight(e, sender->rank) };
    LhRoute route;

    route_of_message(e, sender->rank, receiver->rank, &route);
    if (!lh_transfer_check_route(e, sender->rank, receiver->rank, &route))
        return;
    ends.tier = route.tier;
    lh_transfer_count_sent(e, sender->rank, route.tier, bytes);
    lh_transfer_begin(e, &ends, bytes, late);
    if (e->free_network && e->causes != NULL)
        for (uint32_t i = 0; i < 2; i++)
            lh_path_recorder_gather(e->causes, ends.ranks[i], ends.nodes[i], i == 0);
    if (e->free_network)
        lh_transfer_deliver(e, &ends, 1);
    else
        lh_transfer_start(e, &ends, &route, bytes,
                          lh_transfer_share(e, ends.ranks[0], ends.nodes[0]));
}

/* Takes the SMs that the op's kernel holds from now on, waiting or not. Its communicator spans the
 * ranks of the rank's group. */
static void
hold_sms(LhEngine *e, LhSimRank *rank, LhNode *node)
{
    const LhGroup group = lh_program_group(e->program, rank->index);
    const LhSpan span = lh_network_span(e->network, &group);
    const LhPost *posts = e->matcher.posts;

    node->ctas = lh_transfer_ctas_min(e);
    for (uint32_t i = node->posts; i != LH_NO_POST; i = posts[i].next) {
        const uint16_t ctas = lh_network_ctas(e->network, posts[i].rank, posts[i].peer, span);

        node->ctas = MAX(node->ctas, ctas);
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
        lh_hop_arrived(e, flow);
    else if (e->moving.ends[flow].of == LH_ENDS_MEASURED)
        lh_measured_arrived(e, e->moving.hops[flow].collective, &e->moving.ends[flow]);
    else
        lh_transfer_deliver(e, &e->moving.ends[flow], 1);
}
