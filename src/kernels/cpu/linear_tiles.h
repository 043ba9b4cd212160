/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear attention among the tokens of a call, in tiles.
 */
#pragma once

#include "kernels/cpu/attention_run.h"

/*
 * The fast version among the tokens of a causal call, in tiles (sizes.h). Scratch in bytes is that
 * of the reference, too.
 */
void lh_linear_forward_tiles(const LhForward *f);
void lh_linear_backward_tiles(const LhBackward *b);
uint64_t lh_linear_forward_scratch(const LhKernelArgs *args);
uint64_t lh_linear_backward_scratch(const LhKernelArgs *args);
