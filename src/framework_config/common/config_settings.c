/* SPDX-License-Identifier: Apache-2.0 */
#include "framework_config/common/config_settings.h"

#include <inttypes.h>
#include <string.h>

void
lh_config_setting_free(gpointer data)
{
    LhConfigSetting *setting = data;

    g_free(setting->value);
    g_free(setting);
}

void
lh_config_set(LhConfig *config, const LhSettingsEntry *entry, unsigned part, const char *field,
              const char *value)
{
    LhConfigSetting *setting = g_new(LhConfigSetting, 1);

    *setting =
        (LhConfigSetting){ .part = part, .field = field, .value = g_strdup(value), .entry = entry };
    g_ptr_array_add(config->settings, setting);
}

void
lh_config_set_count(LhConfig *config, const LhSettingsEntry *entry, unsigned part,
                    const char *field, uint64_t value)
{
    g_autofree char *text = g_strdup_printf("%" PRIu64, value);

    lh_config_set(config, entry, part, field, text);
}

bool
lh_config_set_framework(LhConfig *config, const char *key, const char *text)
{
    const char *has = config->framework != NULL ? lh_framework_text(config->framework, key) : NULL;
    g_autofree char *before = g_strdup(has);

    if (config->framework == NULL || strcmp(before, text) == 0)
        return false;
    if (!lh_framework_set(config->framework, key, text, config->entries->file))
        g_assert_not_reached();
    if (strcmp(before, lh_framework_text(config->framework, key)) == 0)
        return false;
    g_ptr_array_add(config->framework_values, g_strdup_printf("%s=%s", key, text));
    return true;
}
