/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/network/collectives/collective.h"

#include "sim/network/collectives/collectives_private.h"
#include "sim/network/traffic.h"

/* One of the eight steps of NCCL's 4 MiB buffer (NVIDIA/nccl src/include/device.h). */
#define PIECE_BYTES (UINT64_C(512) << 10)
#define PIECES_MAX 64

void
lh_collective_free(LhCollective *c)
{
    for (uint32_t i = 0; c->pieces != NULL && i < c->size; i++)
        g_free(c->pieces[i]);
    g_free(c->pieces);
    lh_traffic_free(c->traffic);
    lh_tree_rounds_free(c->tree_rounds);
    g_free(c->members);
    g_free(c->state);
    g_free(c->hops);
    g_free(c);
}

/* The hop of the next equivalent member, for a hop of a simulated member. */
static LhHop
shifted_hop(const LhCollective *c, const LhHop *hop)
{
    LhHop next = *hop;

    next.from = c->likes->shifted[hop->from];
    next.to = c->likes->shifted[hop->to];
    return next;
}

/* Number of hops that a simulated hop represents, including itself. */
static uint32_t
likes_of_hop(const LhCollective *c)
{
    return c->likes != NULL && !c->whole ? c->likes->shifts : 1;
}

/* Handles an event of a hop, and of the hops that it represents. */
static void
tell_likes(LhCollective *c, const LhHop *hop, uint32_t likes,
           void (*happened)(LhCollective *c, const LhHop *hop))
{
    LhHop like;

    happened(c, hop);
    for (uint32_t i = 1; i < likes; i++) {
        like = shifted_hop(c, hop);
        hop = &like;
        happened(c, hop);
    }
}

void
lh_collective_left(LhCollective *c, const LhHop *hop)
{
    if (c->algorithm->left != NULL)
        tell_likes(c, hop, likes_of_hop(c), c->algorithm->left);
}

void
lh_collective_arrived(LhCollective *c, const LhHop *hop)
{
    const uint32_t likes = likes_of_hop(c);

    c->ends_left -= UINT64_C(2) * hop->pieces * likes;
    if (c->algorithm->arrived != NULL)
        tell_likes(c, hop, likes, c->algorithm->arrived);
}

void
lh_collective_settle(LhCollective *c)
{
    LhCollective **link = &c->communicator->open;

    if (c->joined < c->size || c->ends_left > 0)
        return;
    while (*link != c)
        link = &(*link)->next;
    *link = c->next;
    lh_collective_free(c);
}

void
lh_collective_send_hop(LhCollective *c, LhHop hop)
{
    if (c->likes != NULL && !c->whole && c->likes->stands[hop.from] != hop.from)
        return; /* represented by another hop */
    if (c->hops_count == c->hops_capacity) {
        c->hops_capacity = MAX(4, c->hops_capacity * 2);
        c->hops = g_renew(LhHop, c->hops, c->hops_capacity);
    }
    c->hops[c->hops_count++] = hop;
}

void
lh_collective_send(LhCollective *c, uint32_t from, uint32_t to, uint32_t lane, uint64_t bytes)
{
    lh_collective_send_hop(
        c, (LhHop){ .from = from, .to = to, .lane = lane, .pieces = 1, .bytes = bytes });
}

uint32_t
lh_pipeline_pieces(uint64_t bytes)
{
    return (uint32_t)CLAMP((bytes + PIECE_BYTES - 1) / PIECE_BYTES, 1, PIECES_MAX);
}

uint64_t
lh_piece_bytes(uint64_t bytes, uint32_t piece, uint32_t count)
{
    return bytes / count + (piece < bytes % count);
}

const LhGroup *
lh_collective_group(const LhCollective *c)
{
    return &c->communicator->key.group;
}
