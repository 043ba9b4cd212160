/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configurations into scenarios: the fields that a file sets, and what neither it nor an option
 * says.
 */
#pragma once

#include "framework_config/common/system_config.h"
#include "scenario/scenario.h"

/* Sets these fields of @scenario, which is a step then. Messages about them name the file's line.
 */
bool lh_config_apply(const LhConfig *config, unsigned parts, LhScenario *scenario, GError **error);

/* Refuses (LH_ERROR_INPUT) a file that says no model, if @scenario, made of it, has none either:
 * what is missing is named. */
bool lh_config_check_model(const LhConfig *config, const LhScenario *scenario, GError **error);

/* Refuses (LH_ERROR_INPUT) a file that leaves to another file how it trains, if that is asked and
 * neither an option nor a value of a sweep says it. */
bool lh_config_check_way(const LhConfig *config, unsigned parts, const LhScenario *scenario,
                         GError **error);

/* Adds notes on what is taken because neither the file nor an option says it. */
void lh_config_note_unsaid(LhConfig *config, unsigned parts, const LhScenario *scenario);
