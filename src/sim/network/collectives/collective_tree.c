/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All-reduce by a double binary tree (Sanders, Speck, Träff 2009; NCCL's trees, NVIDIA/nccl
 * src/graph/trees.cc): two binary trees over the group, each of which reduces one half of the
 * vector to its root and broadcasts it, in pieces. Inner members of one tree are leaves of the
 * other, so that together they send what a ring sends. A piece goes up when the member has it from
 * all of its children, down when it has it from its parent (the root: from its children), and on
 * each edge one piece after another. There is such a pair of trees for every ring that the group
 * has, over the members in that ring's order. The order of pieces on a link does not depend on
 * rates (tree_rounds.h). Not modelled: trees of nodes with chains inside them; the trees here are
 * over ranks.
 */
#include "sim/network/collectives/collectives_private.h"
#include "sim/network/collectives/script.h"

#define TREES 2 /* per ring */
#define CHILDREN 2
#define NOBODY UINT32_MAX

/* Rounds from one hop of a piece to the next: a link carries another round while the piece's
 * latency passes. If there is one piece, the second tree of a pair has the rounds in between. */
#define ROUNDS_A_HOP 2

/* Pieces that went one way along one edge. */
typedef struct {
    uint32_t started, left, arrived;
} Edge;

/* A member's edges in one tree: to its parent, and from its parent. */
typedef struct {
    Edge up, down;
} Place;

static uint32_t
trees_count(const LhCollective *c)
{
    return TREES * c->rings->count;
}

/* The second tree of a pair is the first one mirrored (n even) or shifted by one (n odd): leaves
 * become inner members. */
static uint32_t
swap(const LhCollective *c, uint32_t tree, uint32_t place, bool forth)
{
    const uint32_t n = c->size;

    if (tree % TREES == 0)
        return place;
    if (n % 2 == 0)
        return n - 1 - place;
    return (place + (forth ? n - 1 : 1)) % n;
}

/* The index of a member in a tree, and the inverse. */
static uint32_t
index_of(const LhCollective *c, uint32_t tree, uint32_t position)
{
    return swap(c, tree, lh_rings_place(c->rings, tree / TREES, position), true);
}

static uint32_t
member_at(const LhCollective *c, uint32_t tree, uint32_t index)
{
    return lh_rings_member(c->rings, tree / TREES, swap(c, tree, index, false));
}

static uint32_t
lowest_bit(uint32_t x)
{
    return x & (~x + 1);
}

/* The children of inner member x, with lowest bit b, are x - b/2 and x + b/2; 0 is the root. */
static uint32_t
parent_of(const LhCollective *c, uint32_t tree, uint32_t position)
{
    const uint32_t x = index_of(c, tree, position), bit = lowest_bit(x);
    const uint32_t above = (x ^ bit) | bit << 1;

    if (x == 0)
        return NOBODY;
    return member_at(c, tree, above < c->size ? above : x ^ bit);
}

static uint32_t
child_of(const LhCollective *c, uint32_t tree, uint32_t position, uint32_t child)
{
    const uint32_t x = index_of(c, tree, position);
    uint32_t half = lowest_bit(x) >> 1;

    if (x == 0) {
        for (half = 1; half < c->size; half <<= 1)
            continue;
        half >>= 1;
        return child == 0 && half > 0 ? member_at(c, tree, half) : NOBODY;
    }
    if (child == 0)
        return half > 0 ? member_at(c, tree, x - half) : NOBODY;
    while (half > 0 && x + half >= c->size)
        half >>= 1;
    return half > 0 ? member_at(c, tree, x + half) : NOBODY;
}

static uint64_t
tree_bytes(const LhCollective *c, uint32_t tree)
{
    return lh_piece_bytes(c->shard_bytes * c->size, tree, trees_count(c));
}

static Place *
place_of(const LhCollective *c, uint32_t tree, uint32_t position)
{
    return (Place *)c->state + (size_t)position * trees_count(c) + tree;
}

/* Number of pieces that the member has from all of its children. */
static uint32_t
gathered(const LhCollective *c, uint32_t tree, uint32_t position)
{
    uint32_t count = lh_pipeline_pieces(tree_bytes(c, tree));

    for (uint32_t i = 0; i < CHILDREN; i++) {
        const uint32_t child = child_of(c, tree, position, i);

        if (child != NOBODY)
            count = MIN(count, place_of(c, tree, child)->up.arrived);
    }
    return count;
}

/* ---- rounds ---- */

/* The number of the edge of a hop: in each tree every member has one to its parent and one from
 * it. */
static uint32_t
number_of_edge(const LhCollective *c, uint32_t from, uint32_t to, uint32_t lane)
{
    return (lane % 2 == 0 ? from : to) * 2 * trees_count(c) + lane;
}

static uint32_t
depth_of(const LhCollective *c, uint32_t tree, uint32_t position)
{
    uint32_t depth = 0;

    while ((position = parent_of(c, tree, position)) != NOBODY)
        depth++;
    return depth;
}

/* Height of the root. */
static uint32_t
height_of_trees(const LhCollective *c)
{
    return g_bit_storage(c->size - 1);
}

/* The maximum number of hops of a piece before it crosses the edge. Upwards that is the height of
 * the member below the edge, whose left half is always full. */
static uint32_t
hops_before(const LhCollective *c, uint32_t lane, uint32_t position)
{
    const uint32_t tree = lane / 2;

    if (lane % 2 == 0)
        return (uint32_t)g_bit_nth_lsf(index_of(c, tree, position), -1);
    return height_of_trees(c) + depth_of(c, tree, position) - 1;
}

static void
order_edge(LhTreeOrder *order, const LhNetwork *network, const LhCollective *c, uint32_t lane,
           uint32_t position)
{
    const LhGroup *group = lh_collective_group(c);
    const uint32_t tree = lane / 2, parent = parent_of(c, tree, position);
    const uint32_t from = lane % 2 == 0 ? position : parent;
    const uint32_t to = lane % 2 == 0 ? parent : position;
    LhRoute route;

    if (parent == NOBODY)
        return;
    lh_network_collective_route(network, (uint32_t)lh_group_member(group, from),
                                (uint32_t)lh_group_member(group, to), &route);
    lh_network_route_in(network, group, &route);
    lh_tree_order_add(order, network, number_of_edge(c, from, to, lane), tree, &route,
                      ROUNDS_A_HOP * hops_before(c, lane, position));
}

LhTreeOrder *
lh_tree_order_of(const LhNetwork *network, const LhCollective *c)
{
    LhTreeOrder *order = lh_tree_order_new(c->size * 2 * trees_count(c), trees_count(c));

    for (uint32_t position = 0; position < c->size; position++)
        for (uint32_t lane = 0; lane < 2 * trees_count(c); lane++)
            order_edge(order, network, c, lane, position);
    return order;
}

LhTreeRounds *
lh_tree_rounds_of(const LhTreeOrder *order, const LhCollective *c)
{
    g_autofree LhTreeLoad *loads = g_new(LhTreeLoad, trees_count(c));

    for (uint32_t tree = 0; tree < trees_count(c); tree++) {
        const uint32_t pieces = lh_pipeline_pieces(tree_bytes(c, tree));

        loads[tree] = (LhTreeLoad){ pieces, pieces == 1 ? tree % TREES : 0 };
    }
    return lh_tree_rounds_new(order, loads);
}

/* ---- pieces ---- */

/* Sends the edge's next piece if it is available and its round has come. */
static void
send_piece(LhCollective *c, Edge *edge, uint32_t from, uint32_t to, uint32_t lane,
           uint32_t available)
{
    const uint64_t bytes = tree_bytes(c, lane / 2);
    const uint32_t number = number_of_edge(c, from, to, lane);
    LhRingShare share = { 0 };

    if (edge->started > edge->left || edge->started >= available ||
        !lh_collective_both(c, from, to))
        return;
    if (c->tree_rounds != NULL) {
        if (!lh_tree_rounds_may_start(c->tree_rounds, number, edge->started))
            return;
        share = lh_tree_rounds_share(c->tree_rounds, number);
    }
    lh_collective_send_hop(
        c, (LhHop){ .from = from,
                    .to = to,
                    .lane = lane,
                    .pieces = 1,
                    .bytes = lh_piece_bytes(bytes, edge->started, lh_pipeline_pieces(bytes)),
                    .share = share });
    edge->started++;
}

/* Pieces that the member may send down. */
static uint32_t
returned(const LhCollective *c, uint32_t tree, uint32_t position)
{
    return parent_of(c, tree, position) == NOBODY ? gathered(c, tree, position)
                                                  : place_of(c, tree, position)->down.arrived;
}

/* Lanes: 2 tree upwards, 2 tree + 1 downwards. */
static void
advance_tree(LhCollective *c, uint32_t tree, uint32_t position)
{
    const uint32_t parent = parent_of(c, tree, position);
    Place *place = place_of(c, tree, position);
    const uint32_t down = returned(c, tree, position);

    if (parent != NOBODY)
        send_piece(c, &place->up, position, parent, 2 * tree, gathered(c, tree, position));
    for (uint32_t i = 0; i < CHILDREN; i++) {
        const uint32_t child = child_of(c, tree, position, i);

        if (child != NOBODY)
            send_piece(c, &place_of(c, tree, child)->down, position, child, 2 * tree + 1, down);
    }
}

static void
tree_joined(LhCollective *c, uint32_t position)
{
    for (uint32_t tree = 0; tree < trees_count(c); tree++) {
        const uint32_t parent = parent_of(c, tree, position);

        advance_tree(c, tree, position);
        if (parent != NOBODY)
            advance_tree(c, tree, parent);
        for (uint32_t i = 0; i < CHILDREN; i++) {
            const uint32_t child = child_of(c, tree, position, i);

            if (child != NOBODY)
                advance_tree(c, tree, child);
        }
    }
}

static Edge *
edge_of(LhCollective *c, const LhHop *hop)
{
    const uint32_t tree = hop->lane / 2;

    return hop->lane % 2 == 0 ? &place_of(c, tree, hop->from)->up
                              : &place_of(c, tree, hop->to)->down;
}

/* A link of the edge has come to a round in which the edge has a piece. */
static void
advance_edge(void *data, uint32_t number)
{
    LhCollective *c = data;
    const uint32_t lanes = 2 * trees_count(c);
    const uint32_t position = number / lanes, lane = number % lanes, tree = lane / 2;
    Place *place = place_of(c, tree, position);
    Edge *edge = lane % 2 == 0 ? &place->up : &place->down;
    uint32_t parent;

    if (!lh_tree_rounds_may_start(c->tree_rounds, number, edge->started))
        return; /* cheaper to check than the available pieces */
    parent = parent_of(c, tree, position);
    if (lane % 2 == 0)
        send_piece(c, edge, position, parent, lane, gathered(c, tree, position));
    else
        send_piece(c, edge, parent, position, lane, returned(c, tree, parent));
}

static void
tree_left(LhCollective *c, const LhHop *hop)
{
    edge_of(c, hop)->left++;
    if (c->tree_rounds != NULL)
        lh_tree_rounds_leave(c->tree_rounds, number_of_edge(c, hop->from, hop->to, hop->lane),
                             advance_edge, c);
    else
        advance_tree(c, hop->lane / 2, hop->from);
}

static void
tree_arrived(LhCollective *c, const LhHop *hop)
{
    edge_of(c, hop)->arrived++;
    advance_tree(c, hop->lane / 2, hop->to);
}

static uint32_t
tree_ends(const LhCollective *c, uint32_t position)
{
    uint32_t count = 0;

    for (uint32_t tree = 0; tree < trees_count(c) && c->size > 1; tree++) {
        const uint32_t pieces = lh_pipeline_pieces(tree_bytes(c, tree));

        count += parent_of(c, tree, position) != NOBODY ? 2 * pieces : 0;
        for (uint32_t i = 0; i < CHILDREN; i++)
            count += child_of(c, tree, position, i) != NOBODY ? 2 * pieces : 0;
    }
    return count;
}

/* ---- scripts ---- */

/* A member's neighbours in a tree, and the latest message from and to each, by direction. */
typedef struct {
    uint32_t parent, children[CHILDREN];
    uint32_t to_parent, from_parent, to_children[CHILDREN], from_children[CHILDREN];
} Branch;

static Branch
branch_of(const LhCollective *c, uint32_t tree, uint32_t position)
{
    Branch b = { .parent = parent_of(c, tree, position),
                 .to_parent = LH_SCRIPT_NONE,
                 .from_parent = LH_SCRIPT_NONE };

    for (uint32_t i = 0; i < CHILDREN; i++) {
        b.children[i] = child_of(c, tree, position, i);
        b.to_children[i] = b.from_children[i] = LH_SCRIPT_NONE;
    }
    return b;
}

static void
script_children(LhScript *script, Branch *b, uint64_t bytes, bool send)
{
    for (uint32_t i = 0; i < CHILDREN; i++) {
        /* The root sends on what it has received from all of its children. */
        const bool root = b->parent == NOBODY;
        const uint32_t after[] = { b->to_children[i], root ? b->from_children[0] : b->from_parent,
                                   root ? b->from_children[1] : LH_SCRIPT_NONE };

        if (b->children[i] == NOBODY)
            continue;
        if (send)
            b->to_children[i] = lh_script_add(script, LH_SCRIPT_SEND, b->children[i], bytes, after,
                                              G_N_ELEMENTS(after));
        else
            b->from_children[i] = lh_script_add(script, LH_SCRIPT_RECEIVE, b->children[i], bytes,
                                                &b->from_children[i], 1);
    }
}

/* A piece goes from the children to the parent, and back. */
static void
script_piece(LhScript *script, Branch *b, uint64_t bytes)
{
    script_children(script, b, bytes, false);
    if (b->parent != NOBODY) {
        const uint32_t after[] = { b->to_parent, b->from_children[0], b->from_children[1] };

        b->to_parent =
            lh_script_add(script, LH_SCRIPT_SEND, b->parent, bytes, after, G_N_ELEMENTS(after));
        b->from_parent =
            lh_script_add(script, LH_SCRIPT_RECEIVE, b->parent, bytes, &b->from_parent, 1);
    }
    script_children(script, b, bytes, true);
}

static void
tree_script(const LhCollective *c, uint32_t position, LhScript *script)
{
    for (uint32_t tree = 0; tree < trees_count(c) && c->size > 1; tree++) {
        const uint64_t bytes = tree_bytes(c, tree);
        const uint32_t pieces = lh_pipeline_pieces(bytes);
        Branch branch = branch_of(c, tree, position);

        for (uint32_t piece = 0; piece < pieces; piece++)
            script_piece(script, &branch, lh_piece_bytes(bytes, piece, pieces));
    }
}

const LhAlgorithm lh_algorithm_tree = { .member_size = sizeof(Place[TREES]),
                                        .ends = tree_ends,
                                        .joined = tree_joined,
                                        .left = tree_left,
                                        .arrived = tree_arrived,
                                        .script = tree_script };
