/* SPDX-License-Identifier: Apache-2.0 */
#include "framework_config/trainer/trainer_names.h"

#include "framework_config/common/config_messages.h"
#include "framework_config/common/config_values.h"

const char *
lh_config_trainer_find_name(const LhConfig *c, const char *const *names)
{
    for (; *names != NULL; names++) {
        const LhSettingsEntry *entry = lh_config_entry(c, *names);

        if (entry != NULL && g_strcmp0(lh_settings_entry_value(entry), "auto") != 0)
            return *names;
    }
    return NULL;
}

bool
lh_config_trainer_refuse(const LhConfig *c, const char *name, const char *found,
                         const char *allowed, GError **error)
{
    g_autofree char *shown = g_strescape(found, NULL);

    return lh_config_fail(c, lh_config_entry(c, name), error,
                          "\"%s\": found \"%.40s\"; allowed: %s", name, shown, allowed);
}
