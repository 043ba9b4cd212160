/* SPDX-License-Identifier: Apache-2.0 */
/* Common part of the readers; each syntax has a file of its own. */
#include "base/settings/settings_file.h"

#include "base/error.h"
#include "base/files/file_input.h"

#include <string.h>

void
lh_settings_entry_free(gpointer data)
{
    LhSettingsEntry *entry = data;

    g_free(entry->path);
    g_free(entry->open_variable);
    g_ptr_array_unref(entry->values);
    g_free(entry);
}

static bool
check_text(LhSettingsFile *e, const char *text, gsize length, GError **error)
{
    const char *end = NULL;
    const char *line_start = text;
    guint line = 1, column;

    if (length > LH_SETTINGS_BYTES_MAX)
        return lh_settings_fail(e, 1, 1, error, "the file has more than %d bytes",
                                LH_SETTINGS_BYTES_MAX);
    if (g_utf8_validate(text, (gssize)length, &end))
        return true;
    for (const char *at = text; at < end; at++) {
        if (*at == '\n') {
            line++;
            line_start = at + 1;
        }
    }
    column = (guint)g_utf8_strlen(line_start, end - line_start) + 1;
    return lh_settings_fail(e, line, column, error,
                            "found the byte 0x%02x; allowed: UTF-8 without NUL",
                            (unsigned)(unsigned char)*end);
}

LhSettingsFile *
lh_settings_new(const char *file, const char *text, gsize length, bool again, GError **error)
{
    g_autoptr(LhSettingsFile) e = g_new0(LhSettingsFile, 1);

    e->file = g_strdup(file);
    e->entries = g_ptr_array_new_with_free_func(lh_settings_entry_free);
    e->unused = g_ptr_array_new_with_free_func(lh_settings_entry_free);
    if (!again)
        e->taken = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    if (!check_text(e, text, length, error))
        return NULL;
    e->sha256 = g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)text, length);
    return g_steal_pointer(&e);
}

void
lh_settings_free(LhSettingsFile *entries)
{
    if (entries == NULL)
        return;
    g_ptr_array_unref(entries->entries);
    g_ptr_array_unref(entries->unused);
    g_clear_pointer(&entries->taken, g_hash_table_unref);
    g_clear_pointer(&entries->operands, g_ptr_array_unref);
    g_clear_pointer(&entries->programs, g_ptr_array_unref);
    g_clear_pointer(&entries->written, g_hash_table_unref);
    g_free(entries->sha256);
    g_free(entries->file);
    g_free(entries);
}

bool
lh_settings_take(LhSettingsFile *entries, const char *path, guint line, guint column,
                 GError **error)
{
    g_autofree char *shown = NULL;

    if (strlen(path) > LH_SETTINGS_PATH_MAX)
        return lh_settings_fail(entries, line, column, error,
                                "the name of a setting has more than %d bytes",
                                LH_SETTINGS_PATH_MAX);
    if (entries->taken == NULL || g_hash_table_add(entries->taken, g_strdup(path)))
        return true;
    shown = g_strescape(path, NULL);
    return lh_settings_fail(entries, line, column, error, "\"%.80s\" is set twice", shown);
}

LhSettingsEntry *
lh_settings_add(LhSettingsFile *entries, const char *path, LhSettingsKind kind, guint line,
                guint column, GError **error)
{
    LhSettingsEntry *entry;

    if (!lh_settings_take(entries, path, line, column, error))
        return NULL;
    if (entries->entries->len >= LH_SETTINGS_MAX) {
        lh_settings_fail(entries, line, column, error, "the file has more than %d settings",
                         LH_SETTINGS_MAX);
        return NULL;
    }
    entry = g_new0(LhSettingsEntry, 1);
    *entry = (LhSettingsEntry){ .path = g_strdup(path),
                                .kind = kind,
                                .values = g_ptr_array_new_with_free_func(g_free),
                                .line = line,
                                .column = column };
    g_ptr_array_add(entries->entries, entry);
    return entry;
}

bool
lh_settings_fail(const LhSettingsFile *entries, guint line, guint column, GError **error,
                 const char *format, ...)
{
    g_autofree char *message = NULL;
    va_list args;

    va_start(args, format);
    message = lh_error_text(format, args);
    va_end(args);
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "%s:%u:%u: error: %s", entries->file, line, column,
                message);
    return false;
}

LhSettingsFile *
lh_settings_load(const char *path, LhSettingsFileReader *reader, GError **error)
{
    gsize length;
    g_autofree char *text = lh_input_read(path, LH_SETTINGS_BYTES_MAX, &length, error);

    return text != NULL ? reader(path, text, length, error) : NULL;
}

const LhSettingsEntry *
lh_settings_find(const LhSettingsFile *entries, const char *path)
{
    for (guint i = entries->entries->len; i-- > 0;) {
        const LhSettingsEntry *entry = g_ptr_array_index(entries->entries, i);

        if (strcmp(entry->path, path) == 0)
            return entry;
    }
    return NULL;
}

const char *
lh_settings_entry_value(const LhSettingsEntry *entry)
{
    return entry->values->len == 1 ? g_ptr_array_index(entry->values, 0) : NULL;
}

char *
lh_settings_entry_text(const LhSettingsEntry *entry)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < entry->values->len; i++)
        g_string_append_printf(text, "%s%s", i > 0 ? " " : "",
                               (const char *)g_ptr_array_index(entry->values, i));
    return g_string_free(text, FALSE);
}
