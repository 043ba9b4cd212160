/*
 * Ring and chain. Piece k goes from a member to the next one in group order once both are there and
 * the sender has it; a member sends its pieces one after another, each as soon as the last byte of
 * the one before has left (its latency is not waited for: NCCL keeps up to eight pieces under way).
 *
 * Ring: piece 0 is the member's own, piece k what it received as piece k - 1. All-gather and
 * reduce-scatter take n - 1 pieces of a shard each, all-reduce is one after the other.
 * Chain: the root sends all pieces, the others pass on what they receive; the last keeps it.
 * Left out: rings of several channels, and any order but the group's.
 */
#include "sim/collective.h"

typedef struct {
    uint32_t started, left, received; /* pieces */
} Member;

static uint32_t
pieces_count(const LhCollective *c)
{
    if (c->kind == LH_COLL_BROADCAST)
        return lh_pipeline_pieces(c->shard_bytes);
    return (c->kind == LH_COLL_ALL_REDUCE ? 2 : 1) * (c->size - 1);
}

/* Sends the member's next piece, if it has it and its last one has left. */
static void
pass_on(LhCollective *c, uint32_t position)
{
    const bool ring = c->kind != LH_COLL_BROADCAST;
    const uint32_t next = position + 1 < c->size ? position + 1 : 0, count = pieces_count(c);
    Member *m = (Member *)c->state + position;
    const uint32_t available = ring ? m->received + 1 : position == 0 ? count : m->received;

    if (m->started > m->left || m->started == count || m->started >= available ||
        !lh_collective_both(c, position, next) || (!ring && next == 0))
        return;
    lh_collective_send(c, position, next, 0,
                       ring ? c->shard_bytes : lh_piece_bytes(c->shard_bytes, m->started, count));
    m->started++;
}

static void
joined(LhCollective *c, uint32_t position)
{
    if (c->size == 1)
        return;
    pass_on(c, position);
    pass_on(c, position > 0 ? position - 1 : c->size - 1);
}

static void
left(LhCollective *c, const LhHop *hop)
{
    ((Member *)c->state)[hop->from].left++;
    pass_on(c, hop->from);
}

static void
arrived(LhCollective *c, const LhHop *hop)
{
    ((Member *)c->state)[hop->to].received++;
    pass_on(c, hop->to);
}

static uint32_t
ring_ends(const LhCollective *c, uint32_t position)
{
    (void)position;
    return 2 * pieces_count(c);
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
