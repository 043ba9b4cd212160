/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What unfused kernels keep for the backward pass of a layer beside what the tables keep: as many
 * bytes as the framework says. They are one tensor that lives as long as the input of the layer's
 * second norm.
 */
#pragma once

#include "step/step_private.h"

/* Bytes of a layer and micro-batch on a rank; 0: none. */
uint64_t lh_step_layer_beside_bytes(const LhStepPlan *plan, uint32_t layer);
