/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classifies the settings of a configuration: field of the scenario, value of the framework, not
 * modelled, without effect, or not understood.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* Classifies, counts and lists the settings; applies those of the framework. */
bool lh_config_sort(LhConfig *config, GError **error);

/* Applies the settings that set a field, by @system's table. */
bool lh_config_take_keys(LhConfig *config, const LhConfigSystem *system, GError **error);
