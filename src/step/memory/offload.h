/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offload of activations to host memory.
 */
#pragma once

#include "step/step_private.h"

/* Lets activations of offloaded layers wait in host memory, in all recorded lists. */
void lh_step_offload(LhStepPlan *plan);

/* Bytes that a copy of @tensor, of the host, moves beside it. */
uint64_t lh_step_beside_bytes(const LhStepPlan *plan, const LhStepList *list, uint32_t tensor);
