/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closed forms of the offload of optimizer states and weights, from the model and the policy alone:
 * the builder's choice (host_states.c) is not used.
 */
#pragma once

#include "step/step.h"

/* Bytes of states that a rank has in host memory: weights, and the optimizer's; and the bytes of
 * the latter that the device has. */
typedef struct {
    uint64_t weights, optimizer, device_optimizer;
} LhStepHostStates;
LhStepHostStates lh_step_host_states(const LhProgram *program, uint32_t rank);

/* Bytes of gradients, weights and norms that a rank copies to the host in a step, and back. */
void lh_step_host_state_copies(const LhProgram *program, uint32_t rank, uint64_t *to_host,
                               uint64_t *from_host);
