/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything is sent directly to its destination at once, as in NCCL's grouped ncclSend and
 * ncclRecv and in `longhaul run` with messages: to the next member, the second next and so on. A
 * member has at most 64 sends in flight, since NCCL has 64 channels and a peer takes at least one
 * (NVIDIA/nccl src/include/device.h, MAXCHANNELS). A send whose peer has not arrived yet keeps its
 * slot.
 *
 * All-to-all sends each member its piece, which may be empty; all-gather the whole shard;
 * reduce-scatter the slice that the member reduces. All-reduce is a reduce-scatter and an
 * all-gather: a member begins the second when it has sent and received everything of the first.
 * Messages between nodes are delayed by the overhead of the member's other messages
 * (LhTopology.nic_overhead_ps), and slices of a reduction by the time to reduce them. Not modelled:
 * NCCL's assignment of channels to peers, and its splitting of messages.
 */
#include "sim/network/collectives/collectives_private.h"
#include "sim/network/collectives/script.h"

typedef struct {
    uint32_t round;  /* 1, for all-reduce also 2; 0: not arrived */
    uint32_t posted; /* sends of this round, to the next `posted` members */
    uint32_t left, arrived;
    LhTime delay_ps; /* of its messages to other nodes, by the overhead of the others */
} Member;

static uint32_t
one_shot_ends(const LhCollective *c, uint32_t position)
{
    const uint32_t rounds = c->kind == LH_COLL_ALL_REDUCE ? 2 : 1;

    (void)position;
    return 2 * rounds * (c->size - 1);
}

static bool
are_apart(const LhCollective *c, uint32_t from, uint32_t to)
{
    const LhGroup *group = lh_collective_group(c);

    return lh_group_member(group, from) / c->node_ranks !=
           lh_group_member(group, to) / c->node_ranks;
}

/* Delay of each message of the member to another node, by the overhead of those sent with it. */
static LhTime
delay_of(const LhCollective *c, uint32_t position)
{
    uint32_t away = 0;

    if (c->overhead_ps == 0)
        return 0;
    for (uint32_t i = 0; i < c->size && away < LH_ONE_SHOT_UNDER_WAY; i++)
        away += are_apart(c, position, i);
    return away == 0 ? 0 : (LhTime)(away - 1) * c->overhead_ps;
}

static void
send(LhCollective *c, uint32_t from, uint32_t to)
{
    const bool pieces = c->kind == LH_COLL_ALL_TO_ALL;
    const Member *m = (Member *)c->state + from;
    const LhTime sum_ps =
        m->round == 1 ? c->sum_ps : 0; /* followed by the all-gather of an all-reduce */
    const LhTime others_ps = m->delay_ps > 0 && are_apart(c, from, to) ? m->delay_ps : 0;
    const LhHop hop = { .from = from,
                        .to = to,
                        .pieces = 1,
                        .bytes = pieces ? lh_collective_piece(c, from, to) : c->shard_bytes,
                        .delay_ps = sum_ps + others_ps };

    lh_collective_send_hop(c, hop);
}

static void
post_sends(LhCollective *c, uint32_t position)
{
    Member *members = c->state, *m = &members[position];

    while (m->posted < c->size - 1 && m->posted - m->left < LH_ONE_SHOT_UNDER_WAY) {
        const uint32_t to = lh_collective_further(c, position, ++m->posted);

        if (members[to].round >= m->round)
            send(c, position, to);
    }
}

/* Starts the member's own sends, and sends of others that waited for it. */
static void
begin_round(LhCollective *c, uint32_t position, uint32_t round)
{
    Member *members = c->state;

    g_assert(position < c->size);
    members[position] = (Member){ .round = round, .delay_ps = delay_of(c, position) };
    for (uint32_t distance = 1; distance < c->size; distance++) {
        const uint32_t from = lh_collective_further(c, position, c->size - distance);

        if (members[from].round == round && distance <= members[from].posted)
            send(c, from, position);
    }
    post_sends(c, position);
}

static void
one_shot_joined(LhCollective *c, uint32_t position)
{
    begin_round(c, position, 1);
}

static void
go_to_second_round(LhCollective *c, uint32_t position)
{
    const Member *m = (Member *)c->state + position;

    if (c->kind == LH_COLL_ALL_REDUCE && m->round == 1 && m->left == c->size - 1 &&
        m->arrived == c->size - 1)
        begin_round(c, position, 2);
}

static void
one_shot_left(LhCollective *c, const LhHop *hop)
{
    ((Member *)c->state)[hop->from].left++;
    post_sends(c, hop->from);
    go_to_second_round(c, hop->from);
}

static void
one_shot_arrived(LhCollective *c, const LhHop *hop)
{
    ((Member *)c->state)[hop->to].arrived++;
    go_to_second_round(c, hop->to);
}

/* A send waits for the one whose slot it takes. */
static void
script_round(const LhCollective *c, uint32_t position, LhScript *script)
{
    uint32_t sends[LH_ONE_SHOT_UNDER_WAY];

    for (uint32_t i = 0; i < LH_ONE_SHOT_UNDER_WAY; i++)
        sends[i] = LH_SCRIPT_NONE;
    for (uint32_t distance = 1; distance < c->size; distance++) {
        const uint32_t to = lh_collective_further(c, position, distance);
        const uint32_t from = lh_collective_further(c, position, c->size - distance);
        const bool pieces = c->kind == LH_COLL_ALL_TO_ALL;
        uint32_t *send = &sends[distance % LH_ONE_SHOT_UNDER_WAY];

        *send =
            lh_script_add(script, LH_SCRIPT_SEND, to,
                          pieces ? lh_collective_piece(c, position, to) : c->shard_bytes, send, 1);
        lh_script_add(script, LH_SCRIPT_RECEIVE, from,
                      pieces ? lh_collective_incoming(c, from) : c->shard_bytes, NULL, 0);
    }
}

static void
one_shot_script(const LhCollective *c, uint32_t position, LhScript *script)
{
    script_round(c, position, script);
    if (c->kind != LH_COLL_ALL_REDUCE)
        return;
    lh_script_join(script);
    script_round(c, position, script);
}

const LhAlgorithm lh_algorithm_one_shot = { .member_size = sizeof(Member),
                                            .ends = one_shot_ends,
                                            .joined = one_shot_joined,
                                            .left = one_shot_left,
                                            .arrived = one_shot_arrived,
                                            .script = one_shot_script };
