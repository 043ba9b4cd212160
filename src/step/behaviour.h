/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Behaviour of frameworks in a training step.
 */
#pragma once

#include "step/step.h"

/* Behaviour of @framework with weights sharded by @shard and activations of @dtype. */
LhStepBehaviour lh_step_behaviour(const LhFramework *framework, LhShard shard, LhDtype dtype);

/* Replaces the framework's kernels of the loss by one fused kernel. */
void lh_step_fuse_loss(LhStepBehaviour *behaviour);
