/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What links allow a collective at best: the bytes that its algorithm puts on the most loaded one,
 * over what that one carries. No time may be shorter. A table of measured times says how well a
 * collective used the links that it was measured on; this says what those, and others, allow.
 */
#pragma once

#include "program/op.h"
#include "sim/network/network.h"

/* What carries a collective's bytes. */
typedef enum {
    LH_ALGORITHM_DEFAULT, /* pairs of an all-to-all, else rings */
    LH_ALGORITHM_RING,    /* from each member to the next one; a chain, for a broadcast */
    LH_ALGORITHM_NVLS,    /* summed by an NVSwitch: everything once up, and once down */
    LH_ALGORITHM_PAIRS,   /* straight from each member to each other one */
} LhLinkAlgorithm;

/* "default", "ring", "nvls", "pairs"; NULL-terminated. */
extern const char *const lh_link_algorithm_names[];

/*
 * Seconds that each byte takes at least, of the size that nccl-tests prints (collective_table.h),
 * of a collective of @group, which has at least two members: linear in bytes. NVLS: of members of
 * one node, on an NVSwitch. LH_TIMES_OF_SENDS is a ring. Infinite if a link on the way has failed.
 */
double lh_link_bound_s_per_byte(const LhNetwork *network, const LhGroup *group,
                                LhCollectiveKind kind, LhLinkAlgorithm algorithm);

/* Of each printed byte, what goes over every hop of one ring or chain, if there is only one; of
 * LH_TIMES_OF_SENDS, too. */
double lh_ring_share(LhCollectiveKind kind, double members);

/* The latency of the longest hop between members that are neighbours in order of ranks. */
LhTime lh_link_bound_latency_ps(const LhNetwork *network, const LhGroup *group);

/* What a link carries of a collective. */
typedef struct {
    uint32_t link;     /* LH_LINK_OF_PAIR: what one pair of GPUs reaches, whatever the links */
    double s_per_byte; /* seconds that the bytes on it take, of each printed byte */
} LhLinkLoad;

#define LH_LINK_OF_PAIR UINT32_MAX

/*
 * The loads of all links that carry anything of it, the largest first, which is the bound; and of
 * messages of a printed size from each member to the next one, as sendrecv_perf has them. Of
 * LhLinkLoad; caller unrefs.
 */
GArray *lh_link_loads(const LhNetwork *network, const LhGroup *group, LhCollectiveKind kind,
                      LhLinkAlgorithm algorithm);
GArray *lh_link_loads_of_sends(const LhNetwork *network, const LhGroup *group);
