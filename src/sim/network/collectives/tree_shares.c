/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links by the edges that are open on them. What a pair of GPUs reaches together is a link like any
 * other. An edge's share follows from the numbers of open edges alone: in what order they open and
 * close in one instant makes no difference.
 */
#include "sim/network/collectives/tree_shares.h"

#include "sim/network/path.h"

#include <math.h>

/* A link, or a pair's limit, that open edges cross. */
typedef struct {
    double bytes_per_s;
    uint8_t tier;  /* a bit for an LhTier; 0: of a pair */
    bool changed;  /* since shares were settled */
    GArray *edges; /* uint32_t: those that are open */
} Link;

typedef struct {
    Link **links; /* these are borrowed */
    uint32_t flow;
    uint8_t links_count; /* 0: not open */
    uint8_t pair_tier;   /* of what limits a pair, a bit */
} OpenEdge;

struct _LhTreeShares {
    const LhNetwork *network;
    OpenEdge *edges;
    uint32_t edges_count;
    GHashTable *links;        /* by id, of pairs by their ends -> Link, owned */
    GPtrArray *changed_links; /* of Link: since shares were settled */
    GPtrArray *changed;       /* of LhTreeShares: where this is if there are such; borrowed */
};

static void
link_free(gpointer data)
{
    Link *link = data;

    g_array_unref(link->edges);
    g_free(link);
}

LhTreeShares *
lh_tree_shares_new(const LhNetwork *network, uint32_t edges_count, GPtrArray *changed)
{
    LhTreeShares *s = g_new0(LhTreeShares, 1);

    s->network = network;
    s->edges = g_new0(OpenEdge, edges_count);
    s->edges_count = edges_count;
    for (uint32_t i = 0; i < edges_count; i++)
        s->edges[i].flow = LH_TREE_NO_FLOW;
    s->links = g_hash_table_new_full(NULL, NULL, NULL, link_free);
    s->changed_links = g_ptr_array_new();
    s->changed = changed;
    return s;
}

void
lh_tree_shares_free(LhTreeShares *s)
{
    if (s == NULL)
        return;
    g_ptr_array_remove_fast(s->changed, s);
    g_ptr_array_unref(s->changed_links);
    g_hash_table_unref(s->links);
    for (uint32_t i = 0; i < s->edges_count; i++)
        g_free(s->edges[i].links);
    g_free(s->edges);
    g_free(s);
}

static Link *
link_at(LhTreeShares *s, gsize key, double bytes_per_s, uint8_t tier)
{
    Link *link = g_hash_table_lookup(s->links, GSIZE_TO_POINTER(key));

    if (link != NULL)
        return link;
    link = g_new(Link, 1);
    *link = (Link){ .bytes_per_s = bytes_per_s,
                    .tier = tier,
                    .edges = g_array_new(FALSE, FALSE, sizeof(uint32_t)) };
    g_hash_table_insert(s->links, GSIZE_TO_POINTER(key), link);
    return link;
}

/* Behind the ids of links, which have 32 bits. */
static gsize
key_of_pair(const LhRoute *route)
{
    return ((gsize)route->source + 1) << 32 | route->destination;
}

static void
note_change(LhTreeShares *s, Link *link)
{
    if (s->changed_links->len == 0)
        g_ptr_array_add(s->changed, s);
    if (!link->changed)
        g_ptr_array_add(s->changed_links, link);
    link->changed = true;
}

static void
add_link(LhTreeShares *s, uint32_t index, Link *link)
{
    OpenEdge *edge = &s->edges[index];

    edge->links[edge->links_count++] = link;
    g_array_append_val(link->edges, index);
    note_change(s, link);
}

static void
add_links(LhTreeShares *s, uint32_t index, const LhRoute *route)
{
    OpenEdge *edge = &s->edges[index];

    edge->links = g_new(Link *, route->links_count + 1);
    edge->pair_tier = lh_pair_tier_bit(route);
    for (uint32_t i = 0; i < route->links_count; i++) {
        const LhLink link = lh_network_link(s->network, route->links[i]);

        add_link(
            s, index,
            link_at(s, route->links[i], link.bandwidth_bytes_per_s, (uint8_t)(1u << link.tier)));
    }
    if (route->flow_bandwidth_bytes_per_s > 0)
        add_link(s, index, link_at(s, key_of_pair(route), route->flow_bandwidth_bytes_per_s, 0));
}

void
lh_tree_shares_open(LhTreeShares *s, uint32_t index, const LhGroup *group, uint32_t from,
                    uint32_t to)
{
    LhRoute route;

    g_assert(s->edges[index].links_count == 0);
    lh_network_collective_route(s->network, (uint32_t)lh_group_member(group, from),
                                (uint32_t)lh_group_member(group, to), &route);
    lh_network_route_in(s->network, group, &route);
    add_links(s, index, &route);
}

static void
remove_edge(Link *link, uint32_t index)
{
    guint at = 0;

    while (g_array_index(link->edges, uint32_t, at) != index)
        at++;
    g_array_remove_index_fast(link->edges, at);
}

void
lh_tree_shares_close(LhTreeShares *s, uint32_t index)
{
    OpenEdge *edge = &s->edges[index];

    for (uint32_t i = 0; i < edge->links_count; i++) {
        remove_edge(edge->links[i], index);
        note_change(s, edge->links[i]);
    }
    edge->links_count = 0;
    g_clear_pointer(&edge->links, g_free);
}

static double
share_of_link(const Link *link)
{
    return link->bytes_per_s / link->edges->len;
}

LhRingShare
lh_tree_shares_of(const LhTreeShares *s, uint32_t index)
{
    const OpenEdge *edge = &s->edges[index];
    LhRingShare share = { .bytes_per_s = INFINITY };

    for (uint32_t i = 0; i < edge->links_count; i++)
        share.bytes_per_s = fmin(share.bytes_per_s, share_of_link(edge->links[i]));
    for (uint32_t i = 0; i < edge->links_count; i++)
        if (share_of_link(edge->links[i]) < share.bytes_per_s * LH_WHAT_IF_FACTOR)
            share.tiers |= edge->links[i]->tier;
    if (share.tiers == 0)
        share.tiers = edge->pair_tier;
    return share;
}

void
lh_tree_shares_move(LhTreeShares *s, uint32_t index, uint32_t flow)
{
    s->edges[index].flow = flow;
}

void
lh_tree_shares_settle(LhTreeShares *s, void (*limit)(void *data, uint32_t flow, LhRingShare share),
                      void *data)
{
    for (guint i = 0; i < s->changed_links->len; i++) {
        Link *link = s->changed_links->pdata[i];

        link->changed = false;
        for (guint k = 0; k < link->edges->len; k++) {
            const uint32_t index = g_array_index(link->edges, uint32_t, k);

            if (s->edges[index].flow != LH_TREE_NO_FLOW)
                limit(data, s->edges[index].flow, lh_tree_shares_of(s, index));
        }
    }
    g_ptr_array_set_size(s->changed_links, 0);
}
