/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of schedules (program/option.h) as fields of scenarios.
 */
#pragma once

#include "scenario/scenario.h"

/* Reads the value of an option. Sets @error at its place if it is invalid (a grid is written
 * "4x8"). Sizes are returned as given. */
bool lh_scenario_option(const LhScenario *scenario, const LhOption *option, LhOptionValue *value,
                        GError **error);

/* The field for @option, number @index of lh_schedule_options(). Its description is never freed. */
LhField lh_scenario_option_field(const LhOption *option, unsigned index);
