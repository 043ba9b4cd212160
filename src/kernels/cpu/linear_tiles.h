/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear attention among the tokens of a call, in tiles.
 */
#pragma once

#include "kernels/cpu/attention_run.h"

/*
 * Fast version for causal calls, in tiles (sizes.h). The scratch bytes also suffice for the
 * reference.
 */
void lh_linear_forward_tiles(const LhForward *f);
void lh_linear_backward_tiles(const LhBackward *b);
uint64_t lh_linear_forward_scratch(const LhKernelArgs *args);
uint64_t lh_linear_backward_scratch(const LhKernelArgs *args);
