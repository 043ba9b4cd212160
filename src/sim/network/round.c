/*
 * Rings that have the network for themselves: their hops as messages, from the moment when all
 * members start to the last arrival, without ranks, ops or accounts.
 */
#include "sim/network/collective.h"

#include "sim/network/flows.h"

/* Times come in turns, of a node or two. A pace is that of whole turns, of the second half
 * of those that are played. */
#define TURN_PIECES 8

typedef struct {
    const LhRound *round;
    LhCollective collective;
    LhHeap heap;
    LhFlows *flows;
    LhHop *hops; /* by flow */
    uint32_t hops_capacity;
    LhTime now;
} Play;

static void
play_init(Play *play, const LhRound *round, const LhAlgorithm *algorithm, uint32_t steps)
{
    const uint32_t size = round->rings->size;

    *play = (Play){ .round = round,
                    .collective = { .kind = LH_COLL_ALL_GATHER, /* or another that goes round */
                                    .size = size,
                                    .steps = steps,
                                    .shard_bytes = round->shard_bytes,
                                    .algorithm = algorithm,
                                    .rings = round->rings,
                                    .members = g_new0(LhMember, size) } };
    play->collective.state =
        g_malloc0_n((gsize)size * round->rings->count, MAX(1, algorithm->member_size));
    play->flows = lh_flows_new(round->network, LH_NETWORK_FAIR, &play->heap, 0);
}

static void
play_clear(Play *play)
{
    lh_flows_free(play->flows);
    lh_heap_clear(&play->heap);
    g_free(play->hops);
    g_free(play->collective.hops);
    g_free(play->collective.members);
    g_free(play->collective.state);
}

static void
play_hop(Play *play, const LhHop *hop)
{
    const LhMember *members = play->collective.members;
    LhRoute route;
    uint32_t flow;

    lh_network_collective_route(play->round->network, members[hop->from].rank,
                                members[hop->to].rank, &route);
    lh_network_route_in(play->round->network, play->round->group, &route);
    flow = lh_flows_start(play->flows, play->now, &route, hop->bytes);
    if (flow >= play->hops_capacity) {
        play->hops_capacity = MAX(64, play->hops_capacity * 2);
        play->hops = g_renew(LhHop, play->hops, play->hops_capacity);
    }
    play->hops[flow] = *hop;
}

static void
play_hops(Play *play)
{
    LhCollective *c = &play->collective;

    for (uint32_t i = 0; i < c->hops_count; i++)
        play_hop(play, &c->hops[i]);
    c->hops_count = 0;
}

static void
start(Play *play)
{
    LhCollective *c = &play->collective;

    for (uint32_t i = 0; i < c->size; i++) {
        const uint32_t rank = (uint32_t)lh_group_member(play->round->group, i);

        c->members[i] = (LhMember){ rank, 0, true };
        c->joined++;
        c->algorithm->joined(c, i);
        play_hops(play);
    }
    lh_flows_settle(play->flows, play->now);
}

static void
play_instant(Play *play)
{
    LhCollective *c = &play->collective;
    uint32_t flow;

    while (lh_heap_time(&play->heap) == play->now) {
        flow = lh_heap_pop(&play->heap);
        if (!lh_flows_event(play->flows, flow, play->now))
            continue;
        lh_collective_left(c, &play->hops[flow]);
        play_hops(play);
    }
    if (lh_flows_next_arrival(play->flows) == play->now) {
        while (lh_flows_arrive(play->flows, play->now, &flow)) {
            lh_flows_release(play->flows, flow);
            lh_collective_arrived(c, &play->hops[flow]);
            play_hops(play);
        }
    }
    lh_flows_settle(play->flows, play->now);
}

double
lh_round_seconds(const LhRound *round, const LhAlgorithm *algorithm, uint32_t steps)
{
    LhTime next = 0;
    Play play;

    play_init(&play, round, algorithm, steps);
    for (start(&play); next < LH_TIME_LONGEST; play_instant(&play)) {
        next = MIN(lh_heap_time(&play.heap), lh_flows_next_arrival(play.flows));
        if (next == LH_TIME_NEVER)
            break;
        play.now = next;
    }
    play_clear(&play);
    return (double)play.now / (double)LH_PS_PER_S;
}

double
lh_round_pieces_seconds(const LhRound *round, uint32_t steps, uint64_t hops_max)
{
    const uint64_t turns_max = hops_max / lh_ring_hops_count(round->rings) / (4 * TURN_PIECES);
    const uint64_t half = 2 * MAX(turns_max, 1) * TURN_PIECES, most = 2 * half;
    double first, all;

    if (steps <= most)
        return lh_round_seconds(round, &lh_algorithm_ring, steps);
    first = lh_round_seconds(round, &lh_algorithm_ring, (uint32_t)half);
    all = lh_round_seconds(round, &lh_algorithm_ring, (uint32_t)most);
    return all + (double)(steps - most) * (all - first) / (double)half;
}
