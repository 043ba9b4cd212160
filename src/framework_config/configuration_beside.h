/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads files that a configuration names.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* Inserts the settings of files that settings name before the others; fails if an essential file is
 * missing. */
bool lh_config_take_beside(LhSettingsFile *entries, GError **error);
