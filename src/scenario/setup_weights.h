/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a setup's weights, and the memory limit of a rank.
 */
#pragma once

#include "scenario/setup.h"

/* Bytes of the model's weights in the element type of the run. 0: unknown (explicit program, or
 * heads that are not the model's). UINT64_MAX: overflow. */
uint64_t lh_setup_weight_bytes(const LhSetup *setup);

/* Even share of these per rank, rounded up: a lower bound for the fullest rank. */
uint64_t lh_setup_weight_bytes_per_rank(const LhSetup *setup);

/*
 * Memory limit of a rank. For a program that accounts for all memory: the usable memory of the GPU.
 * For attention alone: its capacity less the weights' share above, so that only what cannot fit is
 * rejected. 1 if nothing is left; 0: no limit, where the cost model has no device.
 */
uint64_t lh_setup_memory_limit_bytes(const LhSetup *setup, const LhProgram *program);
