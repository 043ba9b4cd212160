/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the edges of a collective's trees move at, at most. An edge is open from its first piece to
 * its last one, and has an equal share of each of its links among the edges that are open on it,
 * even when these wait. If edges took what others leave, whoever is late by a picosecond would make
 * another one early, by up to twice as much with every piece.
 */
#pragma once

#include "sim/network/collectives/ring_hops.h"

#define LH_TREE_NO_FLOW UINT32_MAX

typedef struct _LhTreeShares LhTreeShares;

/* Of edges 0 to @edges_count - 1. Shares that are not settled are in @changed, once each: whoever
 * settles them takes them off. Both are borrowed. Caller frees. */
LhTreeShares *lh_tree_shares_new(const LhNetwork *network, uint32_t edges_count,
                                 GPtrArray *changed);
void lh_tree_shares_free(LhTreeShares *shares);

/* The edge, which is not open yet, has a first piece, from one of @group's positions to another. */
void lh_tree_shares_open(LhTreeShares *shares, uint32_t edge, const LhGroup *group, uint32_t from,
                         uint32_t to);

/* Its last piece has left. */
void lh_tree_shares_close(LhTreeShares *shares, uint32_t edge);

/* The share of an edge that is open, by those that are open now. */
LhRingShare lh_tree_shares_of(const LhTreeShares *shares, uint32_t edge);

/* @flow moves the edge's piece from now on; LH_TREE_NO_FLOW: none does. */
void lh_tree_shares_move(LhTreeShares *shares, uint32_t edge, uint32_t flow);

/* Tells @limit of each flow whose edge may have another share than when this was called last. */
void lh_tree_shares_settle(LhTreeShares *shares,
                           void (*limit)(void *data, uint32_t flow, LhRingShare share), void *data);
