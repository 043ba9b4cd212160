/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces settings_yaml.c in builds without libyaml. */
#include "base/settings/settings_file.h"

#include "base/error.h"

LhSettingsFile *
lh_settings_yaml(const char *file, const char *text, gsize length, GError **error)
{
    (void)text;
    (void)length;
    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                "%s: this program was built without libyaml and cannot read YAML", file);
    return NULL;
}
