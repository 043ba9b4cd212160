/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which the pieces of a collective's trees cross links. Piece p of an edge is in round
 * f + p; the first round f depends only on the shape of the trees and the number of pieces. A link
 * carries one round after another: a piece starts when the pieces of earlier rounds have left all
 * of its links, and its rate is at most an equal share of each link among the pieces of its round
 * there. So times are sums and maxima of the times of single pieces. With free sharing or
 * first-come order, an earlier piece could delay others by more than its lead.
 */
#pragma once

#include "sim/network/collectives/ring_hops.h"

typedef struct _LhTreeOrder LhTreeOrder;   /* edges of trees and their links, for any collective */
typedef struct _LhTreeRounds LhTreeRounds; /* state of a collective in progress */

/* For edges 0 to @edges_count - 1 of @trees_count trees. Caller frees. */
LhTreeOrder *lh_tree_order_new(uint32_t edges_count, uint32_t trees_count);
void lh_tree_order_free(LhTreeOrder *order);

/* Adds edge @edge, once, of tree @tree with @route. Edges that are not added carry nothing. */
void lh_tree_order_add(LhTreeOrder *order, const LhNetwork *network, uint32_t edge, uint32_t tree,
                       const LhRoute *route, uint32_t first_round);

/* Pieces of a collective along each edge of a tree. */
typedef struct {
    uint32_t pieces; /* at least 1 */
    uint32_t later;  /* rounds by which the tree is delayed beyond the order of edges */
} LhTreeLoad;

/* Initial state: nothing has left. @loads (copied): by tree. @order is borrowed. Caller frees. */
LhTreeRounds *lh_tree_rounds_new(const LhTreeOrder *order, const LhTreeLoad *loads);
void lh_tree_rounds_free(LhTreeRounds *rounds);

/* Whether all links of the edge have reached the round of piece @piece. */
bool lh_tree_rounds_may_start(const LhTreeRounds *rounds, uint32_t edge, uint32_t piece);

/* Rate limit of such a piece. */
LhRingShare lh_tree_rounds_share(const LhTreeRounds *rounds, uint32_t edge);

/* A piece of the edge has left, at most as many as it has. Calls @turn for every edge with a piece
 * in a round that a link has reached by that. */
void lh_tree_rounds_leave(LhTreeRounds *rounds, uint32_t edge,
                          void (*turn)(void *data, uint32_t edge), void *data);
