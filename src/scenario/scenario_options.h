/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of schedules (program/option.h) as fields of scenarios.
 */
#pragma once

#include "scenario/scenario.h"

/* Sets @error at an option's value if it is none (grids: "4x8"); sizes as they are. */
bool lh_scenario_option(const LhScenario *scenario, const LhOption *option, LhOptionValue *value,
                        GError **error);

/* The field of @option, which is @index of lh_schedule_options(). Its description is never freed.
 */
LhField lh_scenario_option_field(const LhOption *option, unsigned index);
