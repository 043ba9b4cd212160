/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads settings from JSON, scanned as strictly as all JSON: no duplicate keys, nothing after the
 * document.
 */
#include "base/settings/settings_file.h"

#include "base/json/json_private.h"

#include <string.h>

typedef struct {
    LhSettingsFile *entries;
    const char *text;
    gsize at, line_start; /* of the last position requested, and of its line */
    guint line;
    GError **error;
} JsonReader;

static bool take_json_value(JsonReader *r, const char *path, const cJSON *value);

/* The column of byte @offset, in r->line. Offsets must be requested in ascending order. Columns
 * count characters, from 1. */
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

/* A string, number, boolean or null, as text; caller frees. */
static char *
scalar(const JsonReader *r, const cJSON *value)
{
    const gsize at = lh_json_place(value);

    return cJSON_IsString(value) ? g_strdup(value->valuestring)
                                 : g_strndup(r->text + at, lh_json_end(r->text, at) - at);
}

static bool
is_container(const cJSON *value)
{
    return cJSON_IsObject(value) || cJSON_IsArray(value);
}

/* Whether it is a list of scalars. */
static bool
is_flat(const cJSON *value)
{
    if (!cJSON_IsArray(value))
        return false;
    for (const cJSON *item = value->child; item != NULL; item = item->next) {
        if (is_container(item))
            return false;
    }
    return true;
}

static bool
add_json_value(JsonReader *r, const char *path, LhSettingsKind kind, const cJSON *value)
{
    const guint column = move_to(r, lh_json_place(value));
    LhSettingsEntry *entry = lh_settings_add(r->entries, path, kind, r->line, column, r->error);

    if (entry == NULL)
        return false;
    if (kind == LH_SETTINGS_LIST) {
        for (const cJSON *item = value->child; item != NULL; item = item->next)
            g_ptr_array_add(entry->values, scalar(r, item));
    } else if (kind != LH_SETTINGS_NONE) {
        g_ptr_array_add(entry->values, scalar(r, value));
    }
    return true;
}

/* The scan bounds the depth. */
/* NOLINTBEGIN(misc-no-recursion) */
static bool
take_members(JsonReader *r, const char *path, const cJSON *container)
{
    guint index = 0;

    for (const cJSON *item = container->child; item != NULL; item = item->next) {
        g_autofree char *inner =
            cJSON_IsArray(container)
                ? g_strdup_printf("%s[%u]", path, index++)
                : g_strconcat(path, path[0] != '\0' ? "." : "", item->string, NULL);

        if (!take_json_value(r, inner, item))
            return false;
    }
    return true;
}

static bool
take_json_value(JsonReader *r, const char *path, const cJSON *value)
{
    if (is_flat(value))
        return add_json_value(r, path, LH_SETTINGS_LIST, value);
    if (is_container(value))
        return lh_settings_take(r->entries, path, r->line, move_to(r, lh_json_place(value)),
                                r->error) &&
               take_members(r, path, value);
    if (cJSON_IsNull(value))
        return add_json_value(r, path, LH_SETTINGS_NONE, value);
    return add_json_value(r, path, cJSON_IsString(value) ? LH_SETTINGS_WORD : LH_SETTINGS_PLAIN,
                          value);
}
/* NOLINTEND(misc-no-recursion) */

LhSettingsFile *
lh_settings_json(const char *file, const char *text, gsize length, GError **error)
{
    g_autoptr(LhSettingsFile) e = lh_settings_new(file, text, length, false, error);
    g_autoptr(LhJson) json = e == NULL ? NULL : lh_json_parse(file, text, length, error);
    JsonReader r = { .entries = e, .line = 1, .error = error };

    if (json == NULL)
        return NULL;
    r.text = json->text;
    if (!cJSON_IsObject(lh_json_root(json))) {
        lh_settings_fail(e, 1, 1, error, "settings are an object, { ... }");
        return NULL;
    }
    return take_members(&r, "", lh_json_root(json)) ? g_steal_pointer(&e) : NULL;
}
