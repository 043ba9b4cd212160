/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the model that a scenario names, or builds one from its sizes.
 */
#pragma once

#include "model/model.h"
#include "scenario/scenario.h"

/* The named model, or the default. Where sizes of attention are given without a model, a model of
 * these sizes alone. Caller frees. */
LhModel *lh_setup_load_model(const LhScenario *scenario, GError **error);

/* Whether sizes of attention are given; whether neither model nor sizes are, so that the default
 * model is used (every output states this first). */
bool lh_setup_has_sizes(const LhScenario *scenario);
bool lh_setup_takes_default_model(const LhScenario *scenario);
