/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rings of a group. A ring carries a part of every shard through all members, node by node. It
 * leaves and enters each node by a different NIC than the other rings, like NCCL's channels.
 */
#pragma once

#include "sim/network/network.h"

#define LH_RINGS_MAX 64 /* NCCL's channels: NVIDIA/nccl src/include/device.h, MAXCHANNELS */

typedef struct {
    uint32_t count, size;
    bool pairs;        /* hops represent messages between any two members: all-to-all */
    bool is_chain;     /* the member at position 0, the root of a broadcast, receives nothing */
    uint32_t *members; /* positions in the group, in order of ranks; NULL: identical */
    uint32_t *places;  /* the inverse */
    /* With several rings: the node of each place; the first place of each node (and the end); and
     * per node and ring, the offset of the first place at the ring's NIC. */
    uint32_t *nodes, *firsts, *entries;
    /* Per node and nest, the number of members of each group; UINT32_MAX: not equal. */
    uint32_t nests, *units;
    uint32_t *nexts; /* by position and ring */
} LhRings;

/* One ring in group order. */
void lh_rings_init_plain(LhRings *rings, uint32_t size, bool pairs);

/*
 * Rings in order of ranks, hence node by node. With several nodes, as many rings as each node has
 * NICs used by its members, at most LH_RINGS_MAX; else one. On one node whose PCIe groups are not
 * consecutive, in the order of these groups if that is faster. On several nodes whose GPUs share
 * NICs non-consecutively, in the order of NICs likewise.
 */
void lh_rings_init(LhRings *rings, const LhNetwork *network, const LhGroup *group);
void lh_rings_clear(LhRings *rings);

/* The place of the member at @position of the group in a ring, and the inverse. */
uint32_t lh_rings_place(const LhRings *rings, uint32_t ring, uint32_t position);
uint32_t lh_rings_member(const LhRings *rings, uint32_t ring, uint32_t place);

/* The next member of the ring, and the previous one, by position. */
uint32_t lh_rings_next(const LhRings *rings, uint32_t ring, uint32_t position);
uint32_t lh_rings_previous(const LhRings *rings, uint32_t ring, uint32_t position);

/* For each of @ranks, which are node by node, whether it is the first of its node at its NIC;
 * caller frees. */
bool *lh_first_at_nics(const LhNetwork *network, const uint32_t *ranks, uint64_t count);

/* The group's ranks in ascending order; caller frees. */
uint32_t *lh_sorted_ranks(const LhGroup *group);
