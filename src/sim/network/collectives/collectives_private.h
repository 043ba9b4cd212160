/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of collectives: the algorithms, and all collectives of a run.
 */
#pragma once

#include "sim/network/collectives/collectives.h"
#include "sim/network/collectives/communicator.h"

extern const LhAlgorithm lh_algorithm_ring;     /* all-gather, reduce-scatter, all-reduce */
extern const LhAlgorithm lh_algorithm_fluid;    /* likewise */
extern const LhAlgorithm lh_algorithm_chain;    /* broadcast */
extern const LhAlgorithm lh_algorithm_tree;     /* all-reduce */
extern const LhAlgorithm lh_algorithm_one_shot; /* all except broadcast */
extern const LhAlgorithm lh_algorithm_pairwise; /* all-to-all */

/* Extra time of rings of pieces over flows in their place, on an otherwise idle network. @hops by
 * ring and place. */
LhTime lh_fluid_delay(const LhCollective *c, const LhRingHop *hops);

/* The order of trees for collectives like @c, on its rings; caller frees. Then the initial rounds
 * of @c by such an order, which is borrowed; caller frees. */
LhTreeOrder *lh_tree_order_of(const LhNetwork *network, const LhCollective *c);
LhTreeRounds *lh_tree_rounds_of(const LhTreeOrder *order, const LhCollective *c);

/* A call of a collective between its issue and its start. */
typedef struct {
    LhCommunicator *communicator;
    LhCollectiveKind kind;
    uint32_t turn, position;
    uint64_t bytes;
    uint64_t *pieces; /* uneven all-to-all: bytes to each member; owned */
} LhTicket;

struct _LhCollectives {
    const LhNetwork *network;
    const LhDevice *device;
    LhCollectiveModel model;
    bool shared;                  /* the messages of an instant share links */
    const LhSymmetryGroups *fold; /* NULL: none */
    GHashTable *communicators;    /* a set */
    LhTicket *tickets;
    uint32_t tickets_count, tickets_capacity;
    uint32_t *free; /* tickets */
    uint32_t free_count;
};
