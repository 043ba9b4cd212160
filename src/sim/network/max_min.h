/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fair shares of links, max-min: how flows take their places on links, and what the solve gives
 * them.
 */
#pragma once

#include "sim/network/flows_private.h"

/* Puts flow @index, whose route is set, into the lists of its links; true if one is tight now. */
bool lh_max_min_attach(LhFlows *flows, uint32_t index);

/*
 * A new flow wants its share of its tight links. Flows that are faster than an equal share will
 * hardly keep their rate: taking them along at once saves rounds (not needed for the result).
 */
void lh_max_min_claim(LhFlows *flows, uint32_t index);

/* Takes the flow off its links; the flows that those links held back join the set. */
void lh_max_min_detach(LhFlows *flows, uint32_t index);

/* Gives every flow of the set, which may grow for it, its next_rate and next_bottleneck. */
void lh_max_min_solve(LhFlows *flows);

/* Ends what the solve has been for: the set is empty. */
void lh_max_min_end(LhFlows *flows);
