/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How well messages between the GPUs of a node use its links, of which nothing is known but what
 * collectives did there, if nobody has timed them; and what such a table of times contradicts.
 */
#pragma once

#include "sim/network/network.h"

/* Of what links let through, what a message reaches: surely between @least and @most. */
typedef struct {
    double share, least, most;
    const LhCollectiveTimes *row; /* that says so; borrowed. NULL: none does, and all are 1 */
} LhSends;

/* Of messages over links of @tier in a node in which @gpus of its GPUs take part. */
LhSends lh_sends_of(const LhTopology *topology, LhTier tier, uint64_t gpus);

/* Of a message on @route what it may reach, where that is less than what links let through. */
void lh_sends_limit(const LhNetwork *network, LhRoute *route);

/* How well sends may use links of any tier of @network at best and at worst: it is then that of a
 * run at that end. False, and nothing changed, if they are known. */
bool lh_sends_assume(LhNetwork *network, bool most);

/* What to know of @topology's measured times where @gpus GPUs of a node take part: of char *,
 * sentences. Caller frees. */
GPtrArray *lh_measured_doubts(const LhTopology *topology, uint64_t gpus);
