/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Efficiency of messages between the GPUs of a node. Without measured times of sends, it is
 * estimated from those of collectives. Also lists contradictions in a table of measured times.
 */
#pragma once

#include "sim/network/network.h"

/* Fraction of link bandwidth that a message reaches, with its error bar [@least, @most]. */
typedef struct {
    double share, least, most;
    const LhCollectiveTimes
        *row; /* row of measured times that it is based on; borrowed. NULL: none; all are 1 */
} LhSends;

/* For messages over links of @tier in a node of which @gpus GPUs are used. */
LhSends lh_sends_of(const LhTopology *topology, LhTier tier, uint64_t gpus);

/* Limits the rate of a message on @route if its fraction of link bandwidth is below 1. */
void lh_sends_limit(const LhNetwork *network, LhRoute *route);

/* Sets the fractions of all tiers of @network to an end of their error bars (@most: the upper), for
 * a run at that end. False, with nothing changed, if they are known exactly. */
bool lh_sends_assume(LhNetwork *network, bool most);

/* Warnings about @topology's measured times if @gpus GPUs of a node are used: of char *, sentences.
 * Caller frees. */
GPtrArray *lh_measured_doubts(const LhTopology *topology, uint64_t gpus);
