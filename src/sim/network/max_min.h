/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Max-min fair shares: attaches flows to links and solves their rates.
 */
#pragma once

#include "sim/network/flows_private.h"

/* Adds flow @index, whose route is set, to the lists of its links. Returns true if a link is tight
 * now. */
bool lh_max_min_attach(LhFlows *flows, uint32_t index);

/*
 * Adds a new flow to the set, for its share of its tight links. Also adds flows that are faster
 * than an equal share, since they will hardly keep their rate; this saves rounds and does not
 * affect the result.
 */
void lh_max_min_claim(LhFlows *flows, uint32_t index);

/* A flow has started outside the set, at its narrowest rate. Needed if the set has flows: else no
 * bound of the rates outside is known (LhLinkOutside). */
void lh_max_min_joins_outside(LhFlows *flows, const LhFlow *flow);

/* Takes the flow off its links; the flows that those links held back join the set. */
void lh_max_min_detach(LhFlows *flows, uint32_t index);

/* Computes next_rate and next_bottleneck of every flow of the set. The set may grow. */
void lh_max_min_solve(LhFlows *flows);

/* Finishes a solve: empties the set. */
void lh_max_min_end(LhFlows *flows);
