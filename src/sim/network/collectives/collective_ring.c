/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings and chains. A member passes piece k on once both ends have arrived and the sender has the
 * piece. It sends the pieces of a ring one after another, each as soon as the last byte of the
 * previous one has left, without waiting for its latency (NCCL keeps up to eight pieces in flight).
 * Rings are independent of each other, like NCCL's channels, and interact only through shared
 * links. If pieces that are ready at the same time were sent as one, a picosecond would decide what
 * waits for what.
 *
 * Ring: piece 0 is the ring's part of the member's own shard, piece k is what it received as piece
 * k - 1. All-gather and reduce-scatter take n - 1 pieces each; all-reduce is one after the other.
 * Chain, in group order: the root sends all pieces, the others pass on what they receive, the last
 * one keeps it. With `direct` it is one piece.
 */
#include "sim/network/collectives/collectives_private.h"
#include "sim/network/collectives/script.h"

typedef struct {
    uint32_t started, left, received; /* pieces */
} RingMember;                         /* state in one ring; the ring is a hop's lane */

static RingMember *
member_of(const LhCollective *c, uint32_t ring, uint32_t position)
{
    return (RingMember *)c->state + (size_t)position * c->rings->count + ring;
}

static uint32_t
pieces_count(const LhCollective *c)
{
    if (c->kind != LH_COLL_BROADCAST)
        return c->steps;
    return c->model == LH_COLLECTIVES_DIRECT ? 1 : lh_pipeline_pieces(c->shard_bytes);
}

static bool
is_ready(const LhCollective *c, const RingMember *m, uint32_t position)
{
    const uint32_t count = pieces_count(c);
    const uint32_t available = c->kind != LH_COLL_BROADCAST ? m->received + 1
                               : position == 0              ? count
                                                            : m->received;

    return m->started < MIN(available, count);
}

static uint64_t
piece_bytes(const LhCollective *c, const RingMember *m, uint32_t ring)
{
    return c->kind == LH_COLL_BROADCAST
               ? lh_piece_bytes(c->shard_bytes, m->started, pieces_count(c))
               : lh_piece_bytes(c->shard_bytes, ring, c->rings->count);
}

/* Sends the member's next piece of @ring if the previous one has left. */
static void
pass_on(LhCollective *c, uint32_t ring, uint32_t position)
{
    RingMember *m = member_of(c, ring, position);
    uint32_t next;

    if (m->started > m->left || !is_ready(c, m, position))
        return;
    next = lh_rings_next(c->rings, ring, position);
    if (!lh_collective_both(c, position, next) || (c->kind == LH_COLL_BROADCAST && next == 0))
        return;
    lh_collective_send_hop(c, (LhHop){ .from = position,
                                       .to = next,
                                       .lane = ring,
                                       .pieces = 1,
                                       .bytes = piece_bytes(c, m, ring),
                                       .share = lh_collective_share(c, position, ring) });
    m->started++;
}

static void
ring_joined(LhCollective *c, uint32_t position)
{
    for (uint32_t ring = 0; ring < c->rings->count && c->size > 1; ring++) {
        pass_on(c, ring, position);
        pass_on(c, ring, lh_rings_previous(c->rings, ring, position));
    }
}

static void
ring_left(LhCollective *c, const LhHop *hop)
{
    const uint32_t ring = hop->lane;

    member_of(c, ring, hop->from)->left++;
    pass_on(c, ring, hop->from);
}

static void
ring_arrived(LhCollective *c, const LhHop *hop)
{
    const uint32_t ring = hop->lane;

    member_of(c, ring, hop->to)->received++;
    pass_on(c, ring, hop->to);
}

static uint32_t
ring_ends(const LhCollective *c, uint32_t position)
{
    (void)position;
    return 2 * pieces_count(c) * c->rings->count;
}

static uint32_t
chain_ends(const LhCollective *c, uint32_t position)
{
    const bool first = position == 0, last = position + 1 == c->size;

    return first && last ? 0 : (first || last ? 1 : 2) * pieces_count(c);
}

/* ---- scripts ---- */

/* The rings in which a member has the same neighbour, on one side. */
typedef struct {
    uint32_t peer;
    uint64_t lanes;
    uint64_t bytes; /* of one piece of each ring */
    uint32_t last;  /* the latest message to or from it */
} Side;

/* Finds the next members, or the previous ones; returns their number. */
static uint32_t
find_sides(const LhCollective *c, uint32_t position, bool next, Side sides[LH_RINGS_MAX])
{
    uint32_t count = 0, at;

    for (uint32_t r = 0; r < c->rings->count; r++) {
        const uint32_t peer =
            next ? lh_rings_next(c->rings, r, position) : lh_rings_previous(c->rings, r, position);

        for (at = 0; at < count && sides[at].peer != peer; at++)
            continue;
        if (at == count)
            sides[count++] = (Side){ .peer = peer, .last = LH_SCRIPT_NONE };
        sides[at].lanes |= UINT64_C(1) << r;
        sides[at].bytes += lh_piece_bytes(c->shard_bytes, r, c->rings->count);
    }
    return count;
}

/* One piece of each ring: passes on what arrived last, after the previous send. */
static void
script_step(LhScript *script, Side *nexts, uint32_t nexts_count, Side *before,
            uint32_t before_count)
{
    uint32_t after[LH_RINGS_MAX + 1];

    for (uint32_t i = 0; i < nexts_count; i++) {
        uint32_t count = 0;

        after[count++] = nexts[i].last;
        for (uint32_t k = 0; k < before_count; k++)
            if ((before[k].lanes & nexts[i].lanes) != 0)
                after[count++] = before[k].last;
        nexts[i].last =
            lh_script_add(script, LH_SCRIPT_SEND, nexts[i].peer, nexts[i].bytes, after, count);
    }
    for (uint32_t k = 0; k < before_count; k++)
        before[k].last = lh_script_add(script, LH_SCRIPT_RECEIVE, before[k].peer, before[k].bytes,
                                       &before[k].last, 1);
}

static void
ring_script(const LhCollective *c, uint32_t position, LhScript *script)
{
    Side nexts[LH_RINGS_MAX], before[LH_RINGS_MAX];
    uint32_t nexts_count, before_count;

    if (c->size == 1)
        return;
    nexts_count = find_sides(c, position, true, nexts);
    before_count = find_sides(c, position, false, before);
    for (uint32_t k = 0; k < c->steps; k++)
        script_step(script, nexts, nexts_count, before, before_count);
}

static void
chain_script(const LhCollective *c, uint32_t position, LhScript *script)
{
    const uint32_t count = pieces_count(c);
    uint32_t after[2] = { LH_SCRIPT_NONE,
                          LH_SCRIPT_NONE }; /* the latest receive, the latest send */

    for (uint32_t k = 0; k < count && c->size > 1; k++) {
        const uint64_t bytes = lh_piece_bytes(c->shard_bytes, k, count);

        if (position > 0)
            after[0] = lh_script_add(script, LH_SCRIPT_RECEIVE, position - 1, bytes, &after[0], 1);
        if (position + 1 < c->size)
            after[1] = lh_script_add(script, LH_SCRIPT_SEND, position + 1, bytes, after, 2);
    }
}

const LhAlgorithm lh_algorithm_ring = { .member_size = sizeof(RingMember),
                                        .ends = ring_ends,
                                        .joined = ring_joined,
                                        .left = ring_left,
                                        .arrived = ring_arrived,
                                        .script = ring_script };

const LhAlgorithm lh_algorithm_chain = { .member_size = sizeof(RingMember),
                                         .ends = chain_ends,
                                         .joined = ring_joined,
                                         .left = ring_left,
                                         .arrived = ring_arrived,
                                         .script = chain_script };
