/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounding of what the reference's optimizer stores between steps: moments in 16 bits or in 8-bit
 * blocks, and weights without an fp32 copy. Written from the definitions in kernels/sizes.h, in
 * fp64, without the kernels' code.
 */
#pragma once

#include "reference/model_reference.h"

/* Rounds the weight and the moments of @tensor as @states says, after a step. */
void lh_model_round_states(const LhModelStates *states, const LhModelTensor *tensor);
