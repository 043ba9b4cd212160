/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Behaviour of frameworks in a training step.
 */
#pragma once

#include "step/step.h"

/* Values of options: the copy of 16-bit weights that the optimizer updates, and the element type of
 * both of Adam's moments. */
typedef enum { LH_MAIN_PARAMS_FP32, LH_MAIN_PARAMS_NONE } LhMainParams;
typedef enum { LH_EXP_AVG_FP32, LH_EXP_AVG_BF16, LH_EXP_AVG_FP16, LH_EXP_AVG_8BIT } LhExpAvg;

/* NULL-terminated, indexed by the enums above. */
extern const char *const lh_main_params_names[];
extern const char *const lh_exp_avg_names[];

/* Behaviour of @framework with weights sharded by @shard and activations of @dtype. */
LhStepBehaviour lh_step_behaviour(const LhFramework *framework, LhShard shard, LhDtype dtype);

/* Replaces the framework's kernels of the loss by one fused kernel. */
void lh_step_fuse_loss(LhStepBehaviour *behaviour);
