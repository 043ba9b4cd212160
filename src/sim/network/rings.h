/*
 * The rings of a group. A ring carries a part of every shard through all members, node by node, and
 * leaves and enters each node by another NIC than the other rings, as NCCL's channels do.
 */
#pragma once

#include "sim/network/network.h"

#define LH_RINGS_MAX 64 /* NCCL's channels: NVIDIA/nccl src/include/device.h, MAXCHANNELS */

typedef struct {
    uint32_t count, size;
    uint32_t *members; /* positions in the group in order of ranks; NULL: the same */
    uint32_t *places;  /* the inverse */
    /* With several rings: the node of a place; of each node the first place (and the end), and how
     * far behind that the NIC of each ring begins. */
    uint32_t *nodes, *firsts, *entries;
    uint32_t *nexts; /* by position and ring */
} LhRings;

/* One ring in group order. */
void lh_rings_init_plain(LhRings *rings, uint32_t size);

/*
 * In order of ranks, which is by node: as many rings as each of several nodes has NICs that its
 * members use, at most LH_RINGS_MAX; else one.
 */
void lh_rings_init(LhRings *rings, const LhNetwork *network, const LhGroup *group);
void lh_rings_clear(LhRings *rings);

/* Where the member at @position of the group stands in a ring, and the reverse. */
uint32_t lh_rings_place(const LhRings *rings, uint32_t ring, uint32_t position);
uint32_t lh_rings_member(const LhRings *rings, uint32_t ring, uint32_t place);

/* The next member of the ring, and the one before, by position. */
uint32_t lh_rings_next(const LhRings *rings, uint32_t ring, uint32_t position);
uint32_t lh_rings_previous(const LhRings *rings, uint32_t ring, uint32_t position);

/* The group's ranks in ascending order; caller frees. */
uint32_t *lh_sorted_ranks(const LhGroup *group);
