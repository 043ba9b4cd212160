/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What communication of one rank takes at least, from when the rank starts it: its own bytes over
 * the links next to it and those on the way, all of which carry nothing else, and one latency.
 * Whatever model of the network and of collectives there is, no simulation is faster.
 */
#pragma once

#include "sim/network/collectives/collectives.h"

/* What the messages of one op put on links; reused from op to op. */
typedef struct _LhLinkLoads LhLinkLoads;

/* @network is borrowed. Caller frees. */
LhLinkLoads *lh_link_loads_new(const LhNetwork *network, LhNetworkModel model);
void lh_link_loads_free(LhLinkLoads *loads);

/* An exchange of @rank with these parts. */
LhTime lh_exchange_least(LhLinkLoads *loads, uint32_t rank, const LhPart *parts,
                         uint32_t parts_count);

/* Collective @op of @rank of @program, with the lists of its buffer. Ops of a rank come in program
 * order. 0 where nothing is known. */
LhTime lh_collective_least(LhCollectives *cs, LhLinkLoads *loads, const LhProgram *program,
                           uint32_t rank, const LhOp *op, const uint32_t *counts);
