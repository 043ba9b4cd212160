/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON documents: their text, scanned strictly (json_scan.c), the tree that cJSON builds of it
 * (json_tree.c), and paths to its values.
 */
#include "base/json/json.h"

#include "base/allocation.h"
#include "base/error.h"
#include "base/files/file_input.h"
#include "base/json/json_private.h"

#include <string.h>

/* --- reading --- */

static bool
check_length(const char *name, gsize length, GError **error)
{
    if (length <= LH_JSON_BYTES_MAX)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "%s: error: larger than 256 MiB", name);
    return false;
}

/* Takes over @text, of @length and with a NUL after it. */
static LhJson *
take_text(const char *name, char *text, gsize length, bool python, GError **error)
{
    g_autoptr(LhJson) json = g_new0(LhJson, 1);

    json->name = g_strdup(name);
    json->text = text;
    json->length = length;
    json->python = python;
    json->tree = g_new0(LhJsonTree, 1);
    if (!check_length(name, length, error) || !lh_json_scan(name, text, length, python, error) ||
        !lh_json_check_keys(json, error))
        return NULL;
    json->sha256 = g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)text, length);
    return g_steal_pointer(&json);
}

static LhJson *
parse_text(const char *name, const char *text, gsize length, bool python, GError **error)
{
    char *copy = check_length(name, length, error) ? lh_memory_try(length + 1, name, error) : NULL;

    if (copy == NULL)
        return NULL;
    if (length > 0)
        memcpy(copy, text, length);
    copy[length] = '\0';
    return take_text(name, copy, length, python, error);
}

LhJson *
lh_json_parse(const char *name, const char *text, gsize length, GError **error)
{
    return parse_text(name, text, length, false, error);
}

LhJson *
lh_json_parse_python(const char *name, const char *text, gsize length, GError **error)
{
    return parse_text(name, text, length, true, error);
}

LhJson *
lh_json_load(const char *path, GError **error)
{
    gsize length;
    char *text = lh_input_read(path, LH_JSON_BYTES_MAX, &length, error);

    return text != NULL ? take_text(path, text, length, false, error) : NULL;
}

LhJson *
lh_json_load_python(const char *path, GError **error)
{
    gsize length;
    char *text = lh_input_read(path, LH_JSON_BYTES_MAX, &length, error);

    return text != NULL ? take_text(path, text, length, true, error) : NULL;
}

bool
lh_json_check_strict(const LhJson *json, GError **error)
{
    return lh_json_scan(json->name, json->text, json->length, false, error);
}

void
lh_json_free(LhJson *json)
{
    if (json == NULL)
        return;
    lh_json_tree_clear(json->tree);
    g_free(json->tree);
    g_free(json->sha256);
    g_free(json->text);
    g_free(json->name);
    g_free(json);
}

const char *
lh_json_sha256(const LhJson *json)
{
    return json->sha256;
}

/* --- paths --- */

/* Follows one step of a path such as "ranks[3].after" from @value and advances `*path`. NULL if the
 * value or the step does not exist: paths also contain a file's own keys, which may have any
 * characters. */
static const cJSON *
step(const cJSON *value, const char **path)
{
    const bool indexed = **path == '[';
    const gsize length = strcspn(*path, ".[");
    g_autofree char *key = g_strndup(*path, length);
    char *end = NULL;
    const guint64 index = indexed ? g_ascii_strtoull(*path + 1, &end, 10) : 0;

    if (!indexed) {
        *path += length;
        return cJSON_GetObjectItemCaseSensitive(value, key);
    }
    if (end == *path + 1 || *end != ']' || !cJSON_IsArray(value) || index > G_MAXINT)
        return NULL;
    *path = end + 1;
    return cJSON_GetArrayItem(value, (int)index);
}

bool
lh_json_find(const LhJson *json, const char *path, const cJSON **value)
{
    *value = lh_json_root(json);
    while (*path != '\0') {
        const cJSON *next;

        if (*path == '.')
            path++;
        next = step(*value, &path);
        if (next == NULL)
            return false;
        *value = next;
    }
    return true;
}

bool
lh_json_has(const LhJson *json, const char *path)
{
    const cJSON *value;

    return lh_json_find(json, path, &value) && !cJSON_IsNull(value);
}

char
lh_json_kind(const LhJson *json, const char *path)
{
    const cJSON *value;
    const char *text;

    if (!lh_json_find(json, path, &value))
        return '\0';
    text = json->text + lh_json_place(value);
    if (*text == '-')
        text++;
    return (char)(g_ascii_isdigit(*text) ? '0' : *text);
}

char *
lh_json_text(const LhJson *json, const char *path)
{
    GString *text = g_string_new(NULL);
    const cJSON *value;
    gsize at, end;

    if (!lh_json_find(json, path, &value))
        return g_string_free(text, FALSE);
    at = lh_json_place(value);
    end = lh_json_end(json->text, at);
    while ((at = lh_json_skip_space(json->text, at)) < end)
        g_string_append_c(text, json->text[at++]);
    return g_string_free(text, FALSE);
}

char *
lh_json_string_at(const LhJson *json, const char *path)
{
    const cJSON *value;

    return lh_json_find(json, path, &value) ? g_strdup(cJSON_GetStringValue(value)) : NULL;
}

GPtrArray *
lh_json_keys(const LhJson *json, const char *path)
{
    GPtrArray *keys = g_ptr_array_new_with_free_func(g_free);
    const cJSON *object;

    if (!lh_json_find(json, path, &object) || !cJSON_IsObject(object))
        return keys;
    for (const cJSON *member = object->child; member != NULL; member = member->next)
        g_ptr_array_add(keys, g_strdup(member->string));
    return keys;
}

bool
lh_json_error(const LhJson *json, const char *path, GError **error, const char *format, ...)
{
    g_autofree char *message = NULL;
    const cJSON *nearest;
    va_list args;

    va_start(args, format);
    message = lh_error_text(format, args);
    va_end(args);
    lh_json_find(json, path, &nearest);
    return lh_json_fail_at(json->name, json->text, lh_json_place(nearest), error, "%s", message);
}
