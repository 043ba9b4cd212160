/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lower bound of a collective's time from its links: the bytes that its algorithm puts on the most
 * loaded link, over the bandwidth of that link. A table of measured times tells how well a
 * collective used the links it was measured on; this bound tells what those links, and others,
 * allow.
 */
#pragma once

#include "program/op.h"
#include "sim/network/network.h"

/* How a collective's bytes travel. */
typedef enum {
    LH_ALGORITHM_DEFAULT, /* pairs of an all-to-all, else rings */
    LH_ALGORITHM_RING,    /* from each member to the next; a chain for a broadcast */
    LH_ALGORITHM_NVLS,    /* reduced by an NVSwitch: all data once up and once down */
    LH_ALGORITHM_PAIRS,   /* directly from each member to every other one */
} LhLinkAlgorithm;

/* "default", "ring", "nvls", "pairs"; NULL-terminated. */
extern const char *const lh_link_algorithm_names[];

/*
 * Lower bound of the seconds per byte of a collective of @group, which has at least two members.
 * Bytes are the size that nccl-tests prints (collective_table.h); the bound is linear in them.
 * NVLS: members of one node, on an NVSwitch. LH_TIMES_OF_SENDS counts as a ring. Infinite if a link
 * of a route has failed.
 */
double lh_link_bound_s_per_byte(const LhNetwork *network, const LhGroup *group,
                                LhCollectiveKind kind, LhLinkAlgorithm algorithm);

/* Fraction of the printed bytes that crosses every hop of a single ring or chain; also for
 * LH_TIMES_OF_SENDS. */
double lh_ring_share(LhCollectiveKind kind, double members);

/* The longest latency of a hop between members that are adjacent in order of ranks. */
LhTime lh_link_bound_latency_ps(const LhNetwork *network, const LhGroup *group);

/* The load of a link in a collective. */
typedef struct {
    uint32_t link;     /* LH_LINK_OF_PAIR: limit of one pair of GPUs, independent of the links */
    double s_per_byte; /* seconds of the link per printed byte */
} LhLinkLoad;

#define LH_LINK_OF_PAIR UINT32_MAX

/*
 * The loads of all links that carry data of the collective, the largest, which is the bound, first;
 * the second function: of messages of a printed size from each member to the next, as in
 * sendrecv_perf. Of LhLinkLoad; caller unrefs.
 */
GArray *lh_link_loads(const LhNetwork *network, const LhGroup *group, LhCollectiveKind kind,
                      LhLinkAlgorithm algorithm);
GArray *lh_link_loads_of_sends(const LhNetwork *network, const LhGroup *group);
