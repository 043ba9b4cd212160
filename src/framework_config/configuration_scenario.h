/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies a configuration to a scenario: sets its fields, and reports what neither the file nor an
 * option sets.
 */
#pragma once

#include "framework_config/common/system_config.h"
#include "scenario/scenario.h"

/* Sets the fields of @parts in @scenario, which becomes a training step. Messages about them name
 * the file's line. */
bool lh_config_apply(const LhConfig *config, unsigned parts, LhScenario *scenario, GError **error);

/* LH_ERROR_INPUT if neither the file nor @scenario, built from it, names a model; the error names
 * what is missing. */
bool lh_config_check_model(const LhConfig *config, const LhScenario *scenario, GError **error);

/* LH_ERROR_INPUT if another file states how to train, this is needed, and neither an option nor a
 * sweep sets it. */
bool lh_config_check_way(const LhConfig *config, unsigned parts, const LhScenario *scenario,
                         GError **error);

/* Adds notes on defaults of fields that neither the file nor an option sets. */
void lh_config_note_unsaid(LhConfig *config, unsigned parts, const LhScenario *scenario);
