/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings in JSON, which is scanned as all JSON is: no key twice, nothing behind the document.
 */
#include "base/settings/settings_file.h"

#include "base/json/json_private.h"

#include <string.h>

typedef struct {
    LhSettingsFile *entries;
    const char *text;
    gsize at, line_start; /* of the place that was asked for last, and of its line */
    guint line;
    GError **error;
} JsonReader;

static bool take_json_value(JsonReader *r, const char *path, gsize value);

/* The column of byte @offset, in r->line. Places are asked for from the first on. Columns count
 * characters, from 1. */
static guint
move_to(JsonReader *r, gsize offset)
{
    for (; r->at < offset; r->at++) {
        if (r->text[r->at] == '\n') {
            r->line_start = r->at + 1;
            r->line++;
        }
    }
    return (guint)g_utf8_strlen(r->text + r->line_start, (gssize)(offset - r->line_start)) + 1;
}

static bool
is_container(const char *text, gsize value)
{
    return text[value] == '{' || text[value] == '[';
}

/* A string, number, boolean or null, as text; caller frees. */
static char *
scalar(const char *text, gsize value)
{
    return text[value] == '"' ? lh_json_string(text, value)
                              : g_strndup(text + value, lh_json_skip(text, value) - value);
}

/* A list of values that are not lists or objects themselves. */
static bool
is_flat(const char *text, gsize value)
{
    LhJsonItem item;

    if (text[value] != '[')
        return false;
    for (bool more = lh_json_first(text, value, &item); more; more = lh_json_next(text, &item)) {
        if (is_container(text, item.value))
            return false;
    }
    return true;
}

static bool
add_json_value(JsonReader *r, const char *path, LhSettingsKind kind, gsize value)
{
    const guint column = move_to(r, value);
    LhSettingsEntry *entry = lh_settings_add(r->entries, path, kind, r->line, column, r->error);
    LhJsonItem item;

    if (entry == NULL)
        return false;
    if (kind == LH_SETTINGS_LIST) {
        for (bool more = lh_json_first(r->text, value, &item); more;
             more = lh_json_next(r->text, &item))
            g_ptr_array_add(entry->values, scalar(r->text, item.value));
    } else if (kind != LH_SETTINGS_NONE) {
        g_ptr_array_add(entry->values, scalar(r->text, value));
    }
    return true;
}

/* Depths are bounded by the scan. */
/* NOLINTBEGIN(misc-no-recursion) */
static bool
take_members(JsonReader *r, const char *path, gsize container)
{
    const bool list = r->text[container] == '[';
    LhJsonItem item;
    guint index = 0;

    for (bool more = lh_json_first(r->text, container, &item); more;
         more = lh_json_next(r->text, &item)) {
        g_autofree char *key = list ? NULL : lh_json_string(r->text, item.key);
        g_autofree char *inner = list ? g_strdup_printf("%s[%u]", path, index++)
                                      : g_strconcat(path, path[0] != '\0' ? "." : "", key, NULL);

        if (!take_json_value(r, inner, item.value))
            return false;
    }
    return true;
}

static bool
take_json_value(JsonReader *r, const char *path, gsize value)
{
    const char first = r->text[value];

    if (is_flat(r->text, value))
        return add_json_value(r, path, LH_SETTINGS_LIST, value);
    if (is_container(r->text, value))
        return lh_settings_take(r->entries, path, r->line, move_to(r, value), r->error) &&
               take_members(r, path, value);
    if (first == 'n')
        return add_json_value(r, path, LH_SETTINGS_NONE, value);
    return add_json_value(r, path, first == '"' ? LH_SETTINGS_WORD : LH_SETTINGS_PLAIN, value);
}
/* NOLINTEND(misc-no-recursion) */

LhSettingsFile *
lh_settings_json(const char *file, const char *text, gsize length, GError **error)
{
    g_autoptr(LhSettingsFile) e = lh_settings_new(file, text, length, false, error);
    g_autoptr(LhJson) json = e == NULL ? NULL : lh_json_parse(file, text, length, error);
    JsonReader r = { .entries = e, .line = 1, .error = error };
    gsize root;

    if (json == NULL)
        return NULL;
    r.text = json->text;
    root = strspn(r.text, " \t\r\n");
    if (r.text[root] != '{') {
        lh_settings_fail(e, 1, 1, error, "settings are an object, { ... }");
        return NULL;
    }
    return take_members(&r, "", root) ? g_steal_pointer(&e) : NULL;
}
