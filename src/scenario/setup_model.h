/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model that a scenario names, or whose sizes it gives.
 */
#pragma once

#include "model/model.h"
#include "scenario/scenario.h"

/* The model that the scenario names, or the default; where sizes of attention are given and no
 * model, they alone are it. Caller frees. */
LhModel *lh_setup_load_model(const LhScenario *scenario, GError **error);

/* Whether sizes of attention are given; whether nothing is said of a model, so that the default is
 * taken, which every output says first. */
bool lh_setup_has_sizes(const LhScenario *scenario);
bool lh_setup_takes_default_model(const LhScenario *scenario);
