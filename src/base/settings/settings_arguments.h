/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings as arguments of the commands of a shell script.
 */
#pragma once

#include "base/settings/settings_file.h"

/* lh_settings_arguments() with fixed @variables ("NAME=VALUE"), whatever the script sets; a
 * variable that the script never uses is rejected. */
LhSettingsFile *lh_settings_script(const char *file, const char *text, gsize length,
                                   const GPtrArray *variables, GError **error);
