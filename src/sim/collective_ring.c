/*
 * Rings and chain. Piece k goes from a member to the next one once both are there and the sender
 * has it; in each ring a member sends its pieces one after another, each as soon as the last byte
 * of the one before has left (its latency is not waited for: NCCL keeps up to eight pieces under
 * way).
 *
 * Ring: piece 0 is the ring's part of the member's own shard, piece k what it received as piece
 * k - 1. All-gather and reduce-scatter take n - 1 pieces each, all-reduce is one after the other.
 * Chain, in group order: the root sends all pieces, the others pass on what they receive; the last
 * keeps it.
 */
#include "sim/collective.h"

typedef struct {
    uint32_t started, left, received; /* pieces */
} Member;

static Member *
member_of(const LhCollective *c, uint32_t ring, uint32_t position)
{
    return (Member *)c->state + (size_t)position * c->rings->count + ring;
}

static uint32_t
pieces_count(const LhCollective *c)
{
    if (c->kind == LH_COLL_BROADCAST)
        return lh_pipeline_pieces(c->shard_bytes);
    return (c->kind == LH_COLL_ALL_REDUCE ? 2 : 1) * (c->size - 1);
}

/* Sends the member's next piece in a ring, if it has it and its last one has left. */
static void
pass_on(LhCollective *c, uint32_t ring, uint32_t position)
{
    const bool chain = c->kind == LH_COLL_BROADCAST;
    const uint32_t count = pieces_count(c);
    Member *m = member_of(c, ring, position);
    const uint32_t available = !chain ? m->received + 1 : position == 0 ? count : m->received;
    uint32_t next;

    if (m->started > m->left || m->started == count || m->started >= available)
        return;
    next = lh_rings_next(c->rings, ring, position);
    if (!lh_collective_both(c, position, next) || (chain && next == 0))
        return;
    lh_collective_send(c, position, next, ring,
                       chain ? lh_piece_bytes(c->shard_bytes, m->started, count)
                             : lh_piece_bytes(c->shard_bytes, ring, c->rings->count));
    m->started++;
}

static void
joined(LhCollective *c, uint32_t position)
{
    for (uint32_t ring = 0; ring < c->rings->count && c->size > 1; ring++) {
        pass_on(c, ring, position);
        pass_on(c, ring, lh_rings_previous(c->rings, ring, position));
    }
}

static void
left(LhCollective *c, const LhHop *hop)
{
    member_of(c, hop->lane, hop->from)->left++;
    pass_on(c, hop->lane, hop->from);
}

static void
arrived(LhCollective *c, const LhHop *hop)
{
    member_of(c, hop->lane, hop->to)->received++;
    pass_on(c, hop->lane, hop->to);
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

const LhAlgorithm lh_algorithm_ring = { .member_size = sizeof(Member),
                                        .ends = ring_ends,
                                        .joined = joined,
                                        .left = left,
                                        .arrived = arrived };

const LhAlgorithm lh_algorithm_chain = { .member_size = sizeof(Member),
                                         .ends = chain_ends,
                                         .joined = joined,
                                         .left = left,
                                         .arrived = arrived };
