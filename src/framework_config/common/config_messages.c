/* SPDX-License-Identifier: Apache-2.0 */
#include "framework_config/common/config_messages.h"

#include "base/error.h"

#include <stdarg.h>
#include <string.h>

char *
lh_config_place(const LhConfig *config, const LhSettingsEntry *entry)
{
    const char *file = entry != NULL && entry->file != NULL ? entry->file : config->entries->file;

    return g_strdup_printf("%s:%u:%u", file, entry != NULL ? entry->line : 1,
                           entry != NULL ? entry->column : 1);
}

void
lh_config_note(LhConfig *config, const LhSettingsEntry *entry, const char *format, ...)
{
    g_autofree char *where = lh_config_place(config, entry);
    g_autofree char *message = NULL;
    va_list args;

    va_start(args, format);
    message = lh_error_text(format, args);
    va_end(args);
    g_ptr_array_add(config->notes, g_strdup_printf("%s: warning: %s", where, message));
}

bool
lh_config_fail(const LhConfig *config, const LhSettingsEntry *entry, GError **error,
               const char *format, ...)
{
    g_autofree char *where = lh_config_place(config, entry);
    g_autofree char *message = NULL;
    va_list args;

    va_start(args, format);
    message = lh_error_text(format, args);
    va_end(args);
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "%s: error: %s", where, message);
    return false;
}

void
lh_config_lacks_model(LhConfig *config, const LhSettingsEntry *entry, const char *format, ...)
{
    va_list args;

    g_free(config->no_model);
    va_start(args, format);
    config->no_model = lh_error_text(format, args);
    va_end(args);
    config->no_model_at = entry;
}

void
lh_config_lack_free(gpointer data)
{
    LhConfigLack *lack = data;

    g_free(lack->why);
    g_free(lack);
}

void
lh_config_lacks(LhConfig *config, const LhSettingsEntry *entry, const char *field,
                const char *format, ...)
{
    LhConfigLack *lack = g_new(LhConfigLack, 1);
    va_list args;

    va_start(args, format);
    *lack = (LhConfigLack){ entry, LH_CONFIG_WAY, field, lh_error_text(format, args) };
    va_end(args);
    g_ptr_array_add(config->lacks, lack);
}

void
lh_config_unsaid(LhConfig *config, unsigned part, const char *field, const char *format, ...)
{
    LhConfigLack *lack = g_new(LhConfigLack, 1);
    va_list args;

    va_start(args, format);
    *lack = (LhConfigLack){ NULL, part, field, lh_error_text(format, args) };
    va_end(args);
    g_ptr_array_add(config->unsaid, lack);
}

bool
lh_config_refuse(const LhConfig *config, const LhSettingsEntry *entry, const char *allowed,
                 GError **error)
{
    g_autofree char *text = lh_settings_entry_text(entry);
    g_autofree char *shown = g_strescape(text, NULL);
    g_autofree char *path = g_strescape(entry->path, NULL);

    return lh_config_fail(config, entry, error,
                          "\"" LH_CONFIG_SHOWN "\": found \"" LH_CONFIG_SHOWN "\"; allowed: %s%s",
                          path, shown, allowed,
                          strchr(text, '$') != NULL ? "; the file does not set this variable" : "");
}
