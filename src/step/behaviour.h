/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What frameworks do in a step.
 */
#pragma once

#include "step/step.h"

/* How @framework does it, with weights cut as @shard says and activations of @dtype. */
LhStepBehaviour lh_step_behaviour(const LhFramework *framework, LhShard shard, LhDtype dtype);
