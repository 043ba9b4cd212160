/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lower bound of the time of a rank's communication, from its start: its own bytes over the links
 * next to it and along the route, which carry nothing else, plus one latency. It holds for every
 * model of network and collectives.
 */
#pragma once

#include "sim/network/collectives/collectives.h"

/* Load of the messages of one op on links; reused from op to op. */
typedef struct _LhLinkLoads LhLinkLoads;

/* @network is borrowed. Caller frees. */
LhLinkLoads *lh_link_loads_new(const LhNetwork *network, LhNetworkModel model);
void lh_link_loads_free(LhLinkLoads *loads);

/* Lower bound of an exchange of @rank with these parts. */
LhTime lh_exchange_least(LhLinkLoads *loads, uint32_t rank, const LhPart *parts,
                         uint32_t parts_count);

/* Lower bound of collective @op of @rank of @program, with the lists of its buffer. Ops of a rank
 * come in program order. 0 if no bound is known. */
LhTime lh_collective_least(LhCollectives *cs, LhLinkLoads *loads, const LhProgram *program,
                           uint32_t rank, const LhOp *op, const uint32_t *counts);
