/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that a configuration names.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* Lays the files that settings name under them; refuses one without which nothing can be said. */
bool lh_config_take_beside(LhSettingsFile *entries, GError **error);
