/* SPDX-License-Identifier: Apache-2.0 */
#include "framework_config/configuration_sort.h"

#include "framework_config/common/config_messages.h"
#include "framework_config/common/config_names.h"
#include "framework_config/common/config_settings.h"
#include "framework_config/common/config_values.h"
#include "framework_config/configuration_launch.h"
#include "framework_config/deepspeed/deepspeed.h"

#include <string.h>

#define ENVIRONMENT "ENV_VARS." /* prefix in test files of Megatron-LM */

/* The key of a setting from DeepSpeed's file that another file names. */
static const LhConfigKey *
find_beside_key(const char *name)
{
    static const char prefix[] = "deepspeed-config.";

    return g_str_has_prefix(name, prefix)
               ? lh_config_find_key(&lh_config_deepspeed, name + strlen(prefix))
               : NULL;
}

static const LhConfigKey *
find_launch_key(const char *name)
{
    const LhConfigKey *key = lh_config_launch_keys;

    while (key->name != NULL && strcmp(key->name, name) != 0)
        key++;
    return key->name != NULL ? key : NULL;
}

/* Sets a field to a setting's value. */
static bool
take_key(LhConfig *config, const LhConfigKey *key, GError **error)
{
    const unsigned part = key->kind == LH_KEY_WAY ? LH_CONFIG_WAY : LH_CONFIG_QUESTION;
    const LhSettingsEntry *entry = lh_config_entry(config, key->name);
    uint64_t number = 0;

    if (entry == NULL)
        return true;
    if (!lh_config_count(config, key->name, &number, error))
        return false;
    if (number == 0)
        return lh_config_refuse(config, entry, "at least 1", error);
    lh_config_set_count(config, entry, part, key->field, number);
    return true;
}

bool
lh_config_take_keys(LhConfig *config, const LhConfigSystem *system, GError **error)
{
    for (const LhConfigKey *key = system->keys; key->name != NULL; key++) {
        if ((key->kind == LH_KEY_WAY || key->kind == LH_KEY_QUESTION) &&
            !take_key(config, key, error))
            return false;
    }
    return system->base == NULL || lh_config_take_keys(config, system->base, error);
}

/* Rejects contradicting settings, where settings are known by their last component. */
static bool
check_twice(const LhConfig *config, guint index, GError **error)
{
    const LhSettingsEntry *entry = g_ptr_array_index(config->entries->entries, index);
    const char *name = g_ptr_array_index(config->names, index);
    const LhSettingsEntry *last = lh_config_entry(config, name);
    g_autofree char *one = lh_settings_entry_text(entry);
    g_autofree char *other = last != NULL ? lh_settings_entry_text(last) : NULL;

    if (config->entries->taken == NULL || last == NULL || entry->kind == LH_SETTINGS_NONE ||
        strcmp(one, other) == 0)
        return true;
    return lh_config_fail(config, last, error,
                          "\"%s\" is \"" LH_CONFIG_SHOWN "\" here and \"" LH_CONFIG_SHOWN "\" in "
                          "line %u",
                          name, other, one, entry->line);
}

/* The setting's value as the tables write it: a flag is "true". Caller frees. */
static char *
said_text(const LhConfig *config, const LhSettingsEntry *entry)
{
    const char *value = lh_config_value(config, entry);

    if (entry->kind == LH_SETTINGS_FLAG)
        return g_strdup("true");
    return value != NULL && entry->values->len == 1 ? g_strdup(value)
                                                    : lh_settings_entry_text(entry);
}

/* Overrides values of the framework file by the setting's. */
static bool
take_framework(LhConfig *config, const LhSettingsEntry *entry, const LhConfigKey *key,
               GError **error)
{
    g_autofree char *said = said_text(config, entry);
    g_auto(GStrv) rows = g_strsplit(key->field, " ", -1);
    g_autoptr(GString) allowed = g_string_new(NULL);
    bool differs = false;

    for (guint i = 0; rows[i] != NULL; i++) {
        const gsize length = strcspn(rows[i], ":");
        g_auto(GStrv) effects = NULL;

        g_string_append_printf(allowed, "%s%.*s", i > 0 ? ", " : "", (int)length, rows[i]);
        if (strlen(said) != length || g_ascii_strncasecmp(said, rows[i], length) != 0)
            continue;
        effects = g_strsplit(rows[i] + length + 1, ",", -1);
        for (guint k = 0; effects[k] != NULL && effects[k][0] != '\0'; k++) {
            g_autofree char *name = g_strndup(effects[k], strcspn(effects[k], "="));

            differs |= lh_config_set_framework(config, name, strchr(effects[k], '=') + 1);
        }
        if (differs)
            config->read++;
        else
            g_ptr_array_add(config->elsewhere, (gpointer)entry);
        return true;
    }
    return lh_config_refuse(config, entry, allowed->str, error);
}

static void
take_not_modelled(LhConfig *config, const LhSettingsEntry *entry, const LhConfigKey *key)
{
    g_autofree char *said = said_text(config, entry);
    g_autofree char *shown = g_strescape(said, NULL);
    g_auto(GStrv) usual = g_strsplit(key->field, ",", -1);

    for (guint i = 0; usual[i] != NULL && entry->open_line == 0; i++) {
        if (g_ascii_strcasecmp(usual[i], said) == 0) {
            g_ptr_array_add(config->elsewhere, (gpointer)entry);
            return;
        }
    }
    config->not_modelled++;
    if (entry->open_line != 0)
        lh_config_note(config, entry,
                       "not modelled: %s, which depends on the condition in line %u: %s", key->name,
                       entry->open_line, key->reason);
    else
        lh_config_note(config, entry, "not modelled: %s " LH_CONFIG_SHOWN ": %s", key->name, shown,
                       key->reason);
}

/* Rejects a setting under a condition that cannot be decided; names the variable that decides
 * it. */
static bool
fail_open(const LhConfig *config, const LhSettingsEntry *entry, GError **error)
{
    g_autofree char *path = g_strescape(entry->path, NULL);

    if (entry->open_variable[0] == '\0')
        return lh_config_fail(
            config, entry, error,
            "\"" LH_CONFIG_SHOWN
            "\" depends on the condition in line %u, which only a shell can decide: supply the "
            "variables that it sets by --set VAR=value, or remove the other branch",
            path, entry->open_line);
    return lh_config_fail(config, entry, error,
                          "\"" LH_CONFIG_SHOWN "\" depends on the condition in line %u, which the "
                          "file does not decide: give --set %s=value",
                          path, entry->open_line, entry->open_variable);
}

/* Whether the setting only affects the number of processes, which is compared with the cluster. */
static bool
is_only_compared(const char *name)
{
    static const char *const names[] = { "nnodes", "nproc-per-node", "world-size", NULL };

    return lh_config_index(names, name) >= 0;
}

static bool
take_open(LhConfig *config, const char *name, LhSettingsEntry *entry, GError **error)
{
    if (!is_only_compared(name))
        return fail_open(config, entry, error);
    lh_config_note(config, entry,
                   "%s depends on the condition in line %u: the number of processes is unknown",
                   name, entry->open_line);
    entry->kind = LH_SETTINGS_NONE;
    return true;
}

bool
lh_config_sort(LhConfig *config, GError **error)
{
    const GPtrArray *entries = config->entries->entries;

    for (guint i = 0; i < entries->len; i++) {
        LhSettingsEntry *entry = g_ptr_array_index(entries, i);
        const LhConfigKey *key =
            lh_config_find_key(config->system, g_ptr_array_index(config->names, i));

        if (key == NULL)
            key = find_beside_key(g_ptr_array_index(config->names, i));
        if (key == NULL && (config->arguments || config->system->base != NULL))
            key = find_launch_key(g_ptr_array_index(config->names, i));
        if (g_str_has_prefix(entry->path, ENVIRONMENT))
            config->without_effect++;
        else if (key == NULL)
            g_ptr_array_add(config->unknown, entry);
        else if (entry->kind == LH_SETTINGS_NONE || key->kind == LH_KEY_NOTHING)
            config->without_effect++;
        else if (lh_config_entry(config, g_ptr_array_index(config->names, i)) != entry &&
                 config->entries->taken == NULL)
            config->without_effect++; /* overridden by a later one */
        else if (entry->open_line != 0 && key->kind != LH_KEY_NOT_MODELLED) {
            if (!take_open(config, g_ptr_array_index(config->names, i), entry, error))
                return false;
        } else if (key->kind == LH_KEY_NOT_MODELLED)
            take_not_modelled(config, entry, key);
        else if (key->kind == LH_KEY_FRAMEWORK) {
            if (!take_framework(config, entry, key, error))
                return false;
        } else if (check_twice(config, i, error))
            config->read++;
        else
            return false;
    }
    return true;
}
