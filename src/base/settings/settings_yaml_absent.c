/* SPDX-License-Identifier: Apache-2.0 */
/* In place of settings_yaml.c where libyaml is absent. */
#include "base/settings/settings_file.h"

#include "base/error.h"

LhSettingsFile *
lh_settings_yaml(const char *file, const char *text, gsize length, GError **error)
{
    (void)text;
    (void)length;
    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                "%s: this program was built without libyaml, so it reads no YAML", file);
    return NULL;
}
