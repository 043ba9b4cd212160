/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each setting of a configuration is to a prediction: a field of the scenario, a value of
 * the framework, not modelled, without effect, or not understood.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* Sorts the settings by what they are: counts and lists them, and takes those of the framework. */
bool lh_config_sort(LhConfig *config, GError **error);

/* Takes the settings whose value is that of a field, as @system's table has them. */
bool lh_config_take_keys(LhConfig *config, const LhConfigSystem *system, GError **error);
