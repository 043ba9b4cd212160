/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A step that is the forward pass alone (--step --pass fwd).
 */
#pragma once

#include "scenario/scenario.h"
#include "step/step.h"

/* Rejects fields that mean nothing in a forward pass alone, if the scenario's step is one. */
bool lh_setup_check_prefill(const LhScenario *scenario, GError **error);

/* What the step shares: as given, else as @framework does. The framework's sharding serves its
 * optimizer: a forward pass alone has whole weights. */
LhShard lh_setup_step_shard(const LhScenario *scenario, const LhFramework *framework);

/* Leaves out what @framework says of the loss and of recomputation. */
void lh_setup_prefill(LhStepParams *params);
