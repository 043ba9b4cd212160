/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closed forms of offload, from the model, the tables and the policy alone.
 */
#pragma once

#include "step/step.h"

/* Bytes that a layer of one micro-batch keeps on a rank of its stage for the backward pass, with
 * what unfused kernels keep. */
uint64_t lh_step_layer_kept_bytes(const LhProgram *program, uint32_t layer);

/* Bytes that a rank copies to the host in a step, and back. */
uint64_t lh_step_offloaded_bytes(const LhProgram *program, uint32_t rank);
