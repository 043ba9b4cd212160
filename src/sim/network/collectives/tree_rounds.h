/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In which order the pieces of a collective's trees cross links. Piece p of an edge has the round
 * f + p; the first round f follows from the shape of the trees and the number of pieces alone. A
 * link carries one round after another: a piece starts when those of earlier rounds have left all
 * of its links, and moves at most at an equal share of each among the pieces of its round there. So
 * times are sums and maxima of what single pieces take. If pieces took what others leave, or went
 * as they come, whoever is earlier would make another one later, by more than that.
 */
#pragma once

#include "sim/network/collectives/ring_hops.h"

typedef struct _LhTreeOrder LhTreeOrder;   /* of edges, for any collective */
typedef struct _LhTreeRounds LhTreeRounds; /* of a collective that is under way */

/* Of edges 0 to @edges_count - 1 of @trees_count trees. Caller frees. */
LhTreeOrder *lh_tree_order_new(uint32_t edges_count, uint32_t trees_count);
void lh_tree_order_free(LhTreeOrder *order);

/* Edge @edge, of which nothing was said before, is one of tree @tree and goes along @route. Edges
 * of which nothing is said carry nothing. */
void lh_tree_order_add(LhTreeOrder *order, const LhNetwork *network, uint32_t edge, uint32_t tree,
                       const LhRoute *route, uint32_t first_round);

/* What a collective sends along each edge of a tree. */
typedef struct {
    uint32_t pieces; /* at least 1 */
    uint32_t later;  /* rounds, by which those of the tree are later than by the order alone */
} LhTreeLoad;

/* Nothing has left. @loads (copied): by tree. @order is borrowed. Caller frees. */
LhTreeRounds *lh_tree_rounds_new(const LhTreeOrder *order, const LhTreeLoad *loads);
void lh_tree_rounds_free(LhTreeRounds *rounds);

/* Whether all links of the edge have come to the round of its piece @piece. */
bool lh_tree_rounds_may_start(const LhTreeRounds *rounds, uint32_t edge, uint32_t piece);

/* What such a piece moves at, at most. */
LhRingShare lh_tree_rounds_share(const LhTreeRounds *rounds, uint32_t edge);

/* A piece of the edge has left, as many as it has in all. Tells @turn of every edge that has a
 * piece in a round to which a link has come by that. */
void lh_tree_rounds_leave(LhTreeRounds *rounds, uint32_t edge,
                          void (*turn)(void *data, uint32_t edge), void *data);
