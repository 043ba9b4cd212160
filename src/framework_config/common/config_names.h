/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How settings are called: a name for what each system writes in ways of its own, and the row of
 * its table that says what the setting is.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* The name of the setting at @path, in lower case and with '-' for '_'. Which of a list it is
 * ("datasets[0].path") is no part of it. Caller frees. */
char *lh_config_name_of(const LhConfigSystem *system, const char *path);

/* The name of @path that is the system's own, if it has one; else @path. */
const char *lh_config_own_path(const LhConfigSystem *system, const char *path);

/* The row of the system's table, or of the one that it builds on; NULL: there is none. */
const LhConfigKey *lh_config_find_key(const LhConfigSystem *system, const char *name);
