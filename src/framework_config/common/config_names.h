/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of settings: one name for the spellings of each framework, and its row in the key table.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* The name of the setting at @path, in lower case and with '-' for '_'. An index in a list
 * ("datasets[0].path") is dropped. Caller frees. */
char *lh_config_name_of(const LhConfigSystem *system, const char *path);

/* The framework's own name for @path, if it has one; else @path. */
const char *lh_config_own_path(const LhConfigSystem *system, const char *path);

/* The row of @name in the framework's table or in its base's; NULL: unknown. */
const LhConfigKey *lh_config_find_key(const LhConfigSystem *system, const char *name);
