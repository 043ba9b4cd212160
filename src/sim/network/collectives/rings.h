/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rings of a group. A ring carries a part of every shard through all members, node by node, and
 * leaves and enters each node by another NIC than the other rings, as NCCL's channels do.
 */
#pragma once

#include "sim/network/network.h"

#define LH_RINGS_MAX 64 /* NCCL's channels: NVIDIA/nccl src/include/device.h, MAXCHANNELS */

typedef struct {
    uint32_t count, size;
    bool pairs;        /* hops stand for messages between any two: all-to-all */
    bool is_chain;     /* nothing goes to the member at position 0, where a broadcast begins */
    uint32_t *members; /* positions in the group in order of ranks; NULL: the same */
    uint32_t *places;  /* the inverse */
    /* With several rings: the node of a place; of each node the first place (and the end), and how
     * far behind that the NIC of each ring begins. */
    uint32_t *nodes, *firsts, *entries;
    /* Of each node, how many members the groups of each nest have;
     * UINT32_MAX: unlike numbers. */
    uint32_t nests, *units;
    uint32_t *nexts; /* by position and ring */
} LhRings;

/* One ring in group order. */
void lh_rings_init_plain(LhRings *rings, uint32_t size, bool pairs);

/*
 * In order of ranks, which is by node: as many rings as each of several nodes has NICs that its
 * members use, at most LH_RINGS_MAX; else one. On one node whose groups of PCIe are not in a row,
 * in the order of these if that is faster; on several whose GPUs share NICs crosswise, in that of
 * NICs likewise.
 */
void lh_rings_init(LhRings *rings, const LhNetwork *network, const LhGroup *group);
void lh_rings_clear(LhRings *rings);

/* Where the member at @position of the group stands in a ring, and the reverse. */
uint32_t lh_rings_place(const LhRings *rings, uint32_t ring, uint32_t position);
uint32_t lh_rings_member(const LhRings *rings, uint32_t ring, uint32_t place);

/* The next member of the ring, and the one before, by position. */
uint32_t lh_rings_next(const LhRings *rings, uint32_t ring, uint32_t position);
uint32_t lh_rings_previous(const LhRings *rings, uint32_t ring, uint32_t position);

/* Of each of @ranks, which are node by node, whether it is the first one of its node at its NIC;
 * caller frees. */
bool *lh_first_at_nics(const LhNetwork *network, const uint32_t *ranks, uint64_t count);

/* The group's ranks in ascending order; caller frees. */
uint32_t *lh_sorted_ranks(const LhGroup *group);
