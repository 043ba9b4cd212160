/* SPDX-License-Identifier: Apache-2.0 */
#include "framework_config/common/config_values.h"

#include "framework_config/common/config_messages.h"

#include <string.h>

#define COUNT_MAX (UINT64_C(1) << 40)

const LhSettingsEntry *
lh_config_entry(const LhConfig *config, const char *name)
{
    for (guint i = config->names->len; i-- > 0;) {
        const LhSettingsEntry *entry = g_ptr_array_index(config->entries->entries, i);

        if (strcmp(g_ptr_array_index(config->names, i), name) == 0)
            return entry->kind == LH_SETTINGS_NONE ? NULL : entry;
    }
    return NULL;
}

const char *
lh_config_value(const LhConfig *config, const LhSettingsEntry *entry)
{
    const bool arguments = config->arguments;

    return arguments && entry->values->len > 0 ? g_ptr_array_index(entry->values, 0)
                                               : lh_settings_entry_value(entry);
}

/* Removes the underscores between digits that YAML and TOML allow ("500_000"). Caller frees. */
static char *
without_underscores(const char *text)
{
    GString *digits = g_string_new(NULL);

    for (const char *at = text; *at != '\0'; at++) {
        if (*at != '_' || at == text || !g_ascii_isdigit(at[-1]) || !g_ascii_isdigit(at[1]))
            g_string_append_c(digits, *at);
    }
    return g_string_free(digits, FALSE);
}

bool
lh_config_count(const LhConfig *config, const char *name, uint64_t *value, GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(config, name);
    const char *said = entry != NULL ? lh_config_value(config, entry) : NULL;
    g_autofree char *text =
        said != NULL && !config->arguments ? without_underscores(said) : g_strdup(said);
    guint64 number;

    if (entry == NULL)
        return true;
    if (text == NULL || !g_ascii_string_to_unsigned(text, 10, 0, COUNT_MAX, &number, NULL))
        return lh_config_refuse(config, entry, "a whole number", error);
    *value = number;
    return true;
}

bool
lh_config_flag(const LhConfig *config, const char *name, bool *value, GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(config, name);
    const char *text = entry != NULL ? lh_config_value(config, entry) : NULL;
    const bool arguments = config->arguments;

    if (entry == NULL)
        return true;
    if (arguments && (text == NULL || strcmp(text, "false") != 0))
        *value = true; /* a word after a flag is not its value */
    else if (text != NULL && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0))
        *value = strcmp(text, "true") == 0;
    else
        return lh_config_refuse(config, entry, "true, false", error);
    return true;
}

bool
lh_config_word(const LhConfig *config, const char *name, const char **value, GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(config, name);

    if (entry == NULL)
        return true;
    if (lh_config_value(config, entry) == NULL)
        return lh_config_refuse(config, entry, "one word", error);
    *value = lh_config_value(config, entry);
    return true;
}

int
lh_config_index(const char *const *words, const char *word)
{
    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], word) == 0)
            return i;
    }
    return -1;
}
