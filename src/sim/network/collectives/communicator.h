/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communicators of collectives: members, rings, and collectives in progress.
 */
#pragma once

#include "sim/network/collectives/collective.h"
#include "sim/network/collectives/nccl_measured.h"
#include "sim/network/collectives/ring_hops.h"

/* The rings of a communicator, of one kind. */
typedef struct {
    bool made;
    LhRings rings;
    LhNeighbours neighbours;
    LhRingHop *hops; /* by ring and place; NULL: not computed yet */
    LhRingHop
        *slowest; /* the slowest of @hops by tier, per byte of a shard; NULL: not computed yet */
    LhRingShare *shares;     /* by position and ring; likewise NULL */
    LhTreeOrder *tree_order; /* of the trees on these rings; likewise NULL */
    GArray *delays;          /* memoised delays of equal collectives; likewise NULL */
} LhWays;

struct _LhCommunicator {
    LhCommunicatorKey key;
    uint32_t number; /* from 0, in order of first use */
    uint32_t size;
    LhSpan span;
    uint32_t *turns;                   /* by position: number of collectives issued so far */
    LhWays pairs;                      /* one ring in group order: all-to-all */
    LhWays chain;                      /* likewise: broadcast */
    LhWays rails;                      /* a ring for each NIC of a node: all others */
    LhNcclMeasured *native;            /* NULL: not computed yet */
    LhTraffic *traffic[LH_COLL_KINDS]; /* of measured collectives; likewise NULL */
    LhSymmetricMembers *likes;         /* NULL: every member is simulated */
    LhCollective *open;
};

/* @whole: the group whose channels this communicator shares, see lh_collectives_issue(). @fold:
 * folding of ranks; NULL: none. Caller frees. */
LhCommunicator *lh_communicator_new(const LhNetwork *network, const LhSymmetryGroups *fold,
                                    const LhCommunicatorKey *key, const LhGroup *whole);
void lh_communicator_free(LhCommunicator *communicator);

/* The rings used by collectives of a kind. */
LhWays *lh_communicator_ways(const LhNetwork *network, LhCommunicator *c, LhCollectiveKind kind);

/* Costs of hops, by ring and place; rate limits of hops, by position and ring. Borrowed. */
const LhRingHop *lh_communicator_hops(const LhNetwork *network, const LhCommunicator *c,
                                      LhWays *ways);
const LhRingShare *lh_communicator_shares(const LhNetwork *network, const LhCommunicator *c,
                                          LhWays *ways);

/* The order in which the pieces of trees like those of @of, which uses these rings, cross links.
 * Borrowed. */
const LhTreeOrder *lh_communicator_tree_order(const LhNetwork *network, LhWays *ways,
                                              const LhCollective *of);

/* Extra time of the rings of @of over flows in their place (lh_fluid_delay()). */
LhTime lh_communicator_fluid_delay(const LhNetwork *network, const LhCommunicator *c, LhWays *ways,
                                   const LhCollective *of);

/* NCCL's times on this communicator. Borrowed. */
LhNcclMeasured *lh_communicator_native(const LhNetwork *network, const LhDevice *device,
                                       LhCommunicator *c);
