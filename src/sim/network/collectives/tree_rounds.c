/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The links that the edges of trees cross. The limit of a pair of GPUs is treated as a link.
 */
#include "sim/network/collectives/tree_rounds.h"

#include "sim/network/path.h"

#include <math.h>

/* A link, or a pair's limit, that edges cross. */
typedef struct {
    double bytes_per_s;
    uint8_t tier;  /* a bit for an LhTier; 0: limit of a pair */
    GArray *edges; /* uint32_t */
} Link;

typedef struct {
    uint32_t tree, first_round;
    uint32_t links_first; /* in LhTreeOrder.crossed */
    uint8_t links_count;
    uint8_t pair_tier; /* tier of the pair's limit, a bit */
} OrderedEdge;

struct _LhTreeOrder {
    OrderedEdge *edges;
    uint32_t trees_count;
    GArray *links;       /* Link */
    GArray *crossed;     /* uint32_t: the links of each edge, by index */
    GHashTable *indices; /* by link id, or for pairs by their ends: 1 + index of a link */
};

/* The round that a link carries; all zero: no round is left. */
typedef struct {
    uint32_t round;
    uint32_t pieces, left;
} Turn;

struct _LhTreeRounds {
    const LhTreeOrder *order;
    LhTreeLoad *loads; /* by tree */
    Turn *turns;       /* by link */
};

static void
link_clear(gpointer data)
{
    g_array_unref(((Link *)data)->edges);
}

LhTreeOrder *
lh_tree_order_new(uint32_t edges_count, uint32_t trees_count)
{
    LhTreeOrder *o = g_new0(LhTreeOrder, 1);

    o->edges = g_new0(OrderedEdge, edges_count);
    o->trees_count = trees_count;
    o->links = g_array_new(FALSE, FALSE, sizeof(Link));
    g_array_set_clear_func(o->links, link_clear);
    o->crossed = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    o->indices = g_hash_table_new(NULL, NULL);
    return o;
}

void
lh_tree_order_free(LhTreeOrder *o)
{
    if (o == NULL)
        return;
    g_hash_table_unref(o->indices);
    g_array_unref(o->crossed);
    g_array_unref(o->links);
    g_free(o->edges);
    g_free(o);
}

static Link *
link_of(const LhTreeOrder *o, uint32_t index)
{
    return &g_array_index(o->links, Link, index);
}

/* Returns the index of a link; adds the link with these properties if it is new. */
static uint32_t
index_of_link(LhTreeOrder *o, gsize key, double bytes_per_s, uint8_t tier)
{
    const guint known = GPOINTER_TO_UINT(g_hash_table_lookup(o->indices, GSIZE_TO_POINTER(key)));
    Link link = { .bytes_per_s = bytes_per_s, .tier = tier };

    if (known > 0)
        return known - 1;
    link.edges = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_array_append_val(o->links, link);
    g_hash_table_insert(o->indices, GSIZE_TO_POINTER(key), GUINT_TO_POINTER(o->links->len));
    return o->links->len - 1;
}

/* Larger than link ids, which have 32 bits. */
static gsize
key_of_pair(const LhRoute *route)
{
    return ((gsize)route->source + 1) << 32 | route->destination;
}

static void
add_link(LhTreeOrder *o, uint32_t edge, uint32_t link)
{
    g_array_append_val(o->crossed, link);
    g_array_append_val(link_of(o, link)->edges, edge);
    o->edges[edge].links_count++;
}

void
lh_tree_order_add(LhTreeOrder *o, const LhNetwork *network, uint32_t edge, uint32_t tree,
                  const LhRoute *route, uint32_t first_round)
{
    g_assert(o->edges[edge].links_count == 0 && route->links_count > 0);
    o->edges[edge] = (OrderedEdge){ .tree = tree,
                                    .first_round = first_round,
                                    .links_first = o->crossed->len,
                                    .pair_tier = lh_pair_tier_bit(route) };
    for (uint32_t i = 0; i < route->links_count; i++) {
        const LhLink link = lh_network_link(network, route->links[i]);

        add_link(o, edge,
                 index_of_link(o, route->links[i], link.bandwidth_bytes_per_s,
                               (uint8_t)(1u << link.tier)));
    }
    if (route->flow_bandwidth_bytes_per_s > 0)
        add_link(o, edge,
                 index_of_link(o, key_of_pair(route), route->flow_bandwidth_bytes_per_s, 0));
}

/* ---- of one collective ---- */

static uint32_t
round_of_piece(const LhTreeRounds *r, uint32_t edge, uint32_t piece)
{
    const OrderedEdge *e = &r->order->edges[edge];

    return e->first_round + r->loads[e->tree].later + piece;
}

/* The first round of the edge, starting at @from; false: none. */
static bool
find_round(const LhTreeRounds *r, uint32_t edge, uint32_t from, uint32_t *round)
{
    const uint32_t first = round_of_piece(r, edge, 0);

    *round = MAX(first, from);
    return *round - first < r->loads[r->order->edges[edge].tree].pieces;
}

/* The first round, starting at @from, in which the link carries pieces. */
static Turn
find_turn(const LhTreeRounds *r, const Link *link, uint32_t from)
{
    Turn turn = { 0 };

    for (guint i = 0; i < link->edges->len; i++) {
        uint32_t round;

        if (!find_round(r, g_array_index(link->edges, uint32_t, i), from, &round))
            continue;
        if (turn.pieces == 0 || round < turn.round)
            turn = (Turn){ .round = round };
        turn.pieces += round == turn.round;
    }
    return turn;
}

LhTreeRounds *
lh_tree_rounds_new(const LhTreeOrder *order, const LhTreeLoad *loads)
{
    LhTreeRounds *r = g_new0(LhTreeRounds, 1);

    r->order = order;
    r->loads = g_memdup2(loads, order->trees_count * sizeof *loads);
    r->turns = g_new(Turn, order->links->len);
    for (guint i = 0; i < order->links->len; i++)
        r->turns[i] = find_turn(r, link_of(order, i), 0);
    return r;
}

void
lh_tree_rounds_free(LhTreeRounds *r)
{
    if (r == NULL)
        return;
    g_free(r->turns);
    g_free(r->loads);
    g_free(r);
}

/* The indices of the edge's links. */
static const uint32_t *
links_of(const LhTreeRounds *r, uint32_t edge, uint32_t *count)
{
    const OrderedEdge *e = &r->order->edges[edge];

    *count = e->links_count;
    return (const uint32_t *)(const void *)r->order->crossed->data + e->links_first;
}

bool
lh_tree_rounds_may_start(const LhTreeRounds *r, uint32_t edge, uint32_t piece)
{
    uint32_t count;
    const uint32_t *links = links_of(r, edge, &count);
    const uint32_t round = round_of_piece(r, edge, piece);

    for (uint32_t i = 0; i < count; i++)
        if (r->turns[links[i]].round != round)
            return false;
    return true;
}

static double
share_of_link(const LhTreeRounds *r, uint32_t link)
{
    return link_of(r->order, link)->bytes_per_s / r->turns[link].pieces;
}

LhRingShare
lh_tree_rounds_share(const LhTreeRounds *r, uint32_t edge)
{
    uint32_t count;
    const uint32_t *links = links_of(r, edge, &count);
    LhRingShare share = { .bytes_per_s = INFINITY };

    for (uint32_t i = 0; i < count; i++)
        share.bytes_per_s = fmin(share.bytes_per_s, share_of_link(r, links[i]));
    for (uint32_t i = 0; i < count; i++)
        if (share_of_link(r, links[i]) < share.bytes_per_s * LH_WHAT_IF_FACTOR)
            share.tiers |= link_of(r->order, links[i])->tier;
    if (share.tiers == 0)
        share.tiers = r->order->edges[edge].pair_tier;
    return share;
}

static void
tell_turn(const LhTreeRounds *r, uint32_t link, void (*turn)(void *data, uint32_t edge), void *data)
{
    const GArray *edges = link_of(r->order, link)->edges;
    const uint32_t now = r->turns[link].round;

    for (guint i = 0; i < edges->len; i++) {
        const uint32_t edge = g_array_index(edges, uint32_t, i);
        uint32_t round;

        if (find_round(r, edge, now, &round) && round == now)
            turn(data, edge);
    }
}

void
lh_tree_rounds_leave(LhTreeRounds *r, uint32_t edge, void (*turn)(void *data, uint32_t edge),
                     void *data)
{
    uint32_t count;
    const uint32_t *links = links_of(r, edge, &count);

    for (uint32_t i = 0; i < count; i++) {
        Turn *now = &r->turns[links[i]];

        if (++now->left < now->pieces)
            continue;
        *now = find_turn(r, link_of(r->order, links[i]), now->round + 1);
        if (now->pieces > 0)
            tell_turn(r, links[i], turn, data);
    }
}
