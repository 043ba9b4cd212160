/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recomputation of a step, from a scenario's fields.
 */
#pragma once

#include "model/framework.h"
#include "model/recomputation.h"
#include "scenario/scenario.h"

/* Sets *@checkpoint and *@recompute from the scenario, and from the framework what it does not
 * give. */
bool lh_setup_recomputation(const LhScenario *scenario, const LhFramework *framework,
                            LhCheckpoint *checkpoint, LhRecompute *recompute, GError **error);

/* Whether the scenario's fields leave room for this policy. */
bool lh_setup_recomputation_allows(const LhScenario *scenario, LhCheckpoint checkpoint);
