/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lower bounds of collectives and messages on one network, for any program. Those of collectives
 * are kept.
 */
#pragma once

#include "sim/sim.h"

/* For one thread at a time. */
typedef struct _LhLowerBoundCalls LhLowerBoundCalls;

/* For the network of @params, its models and its device, which are borrowed. Caller frees. */
LhLowerBoundCalls *lh_lower_bound_calls_new(const LhSimParams *params);
void lh_lower_bound_calls_free(LhLowerBoundCalls *calls);

/* Lower bound of an exchange of @rank with these parts, from the start of its later end. */
LhTime lh_lower_bound_calls_exchange(LhLowerBoundCalls *calls, uint32_t rank, const LhPart *parts,
                                     uint32_t parts_count);

/* Lower bound of collective @op of @rank of @program, with the lists of its buffer. */
LhTime lh_lower_bound_calls_collective(LhLowerBoundCalls *calls, const LhProgram *program,
                                       uint32_t rank, const LhOp *op, const uint32_t *counts);
