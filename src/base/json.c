/*
 * JSON documents and their decoding by tables. The text is scanned strictly (json_scan.c), then
 * parsed by cJSON, then both are walked in step, so that every cJSON item knows its place in the
 * text. Integers are read from the text: cJSON holds doubles only.
 */
#include "base/json.h"

#include "base/error.h"
#include "base/json_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- parsing --- */

const LhJsonPlace *
lh_json_place(const LhJson *json, const cJSON *item)
{
    guint index = GPOINTER_TO_UINT(g_hash_table_lookup(json->indices, item));

    return &g_array_index(json->places, LhJsonPlace, index);
}

static bool
check_duplicate_keys(const LhJson *json, const cJSON *object, GError **error)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);

    for (const cJSON *child = object->child; child != NULL; child = child->next) {
        g_autofree char *escaped = NULL;

        if (g_hash_table_add(seen, child->string))
            continue;
        escaped = g_strescape(child->string, NULL);
        return lh_json_fail_at(json->name, json->text, lh_json_place(json, child)->key_offset,
                               error, "the key \"%.60s\" appears here for the second time",
                               escaped);
    }
    return true;
}

/* Numbers the items in the order of the text, which is the order of the places. */
static bool
index_items(LhJson *json, const cJSON *item, GError **error)
{
    guint index = g_hash_table_size(json->indices);

    g_assert(index < json->places->len);
    g_hash_table_insert(json->indices, (gpointer)item, GUINT_TO_POINTER(index));
    for (const cJSON *child = item->child; child != NULL; child = child->next) {
        if (!index_items(json, child, error))
            return false;
    }
    return !cJSON_IsObject(item) || check_duplicate_keys(json, item, error);
}

static bool
parse(LhJson *json, GError **error)
{
    const char *end = NULL;

    if (!lh_json_scan(json->name, json->text, json->length, json->places, error))
        return false;
    json->root = cJSON_ParseWithLengthOpts(json->text, json->length + 1, &end, 1);
    if (json->root == NULL)
        return lh_json_fail_at(json->name, json->text, end == NULL ? 0 : (gsize)(end - json->text),
                               error, "not understood as JSON");
    if (!index_items(json, json->root, error))
        return false;
    g_assert(g_hash_table_size(json->indices) == json->places->len);
    return true;
}

LhJson *
lh_json_parse(const char *name, const char *text, gsize length, GError **error)
{
    g_autoptr(LhJson) json = NULL;

    if (length > LH_JSON_BYTES_MAX) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "%s: error: larger than 256 MiB", name);
        return NULL;
    }
    json = g_new0(LhJson, 1);
    json->name = g_strdup(name);
    json->text = g_malloc(length + 1);
    if (length > 0)
        memcpy(json->text, text, length);
    json->text[length] = '\0';
    json->length = length;
    json->sha256 =
        g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)json->text, length);
    json->places = g_array_new(FALSE, FALSE, sizeof(LhJsonPlace));
    json->indices = g_hash_table_new(NULL, NULL);
    if (!parse(json, error))
        return NULL;
    return g_steal_pointer(&json);
}

/* Reads in pieces: the size of a pipe is not known, and /dev/zero has none. */
static bool
read_all(FILE *file, GByteArray *bytes)
{
    guint8 piece[16384];
    gsize count;

    while ((count = fread(piece, 1, sizeof(piece), file)) > 0) {
        g_byte_array_append(bytes, piece, (guint)count);
        if (bytes->len > LH_JSON_BYTES_MAX)
            return true;
    }
    return ferror(file) == 0;
}

LhJson *
lh_json_load(const char *path, GError **error)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    FILE *file = fopen(path, "rb");
    bool ok = false;
    int cause;

    if (file != NULL) {
        ok = read_all(file, bytes);
        cause = errno;
        fclose(file);
    } else {
        cause = errno;
    }
    if (!ok) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "%s: error: cannot be read: %s", path,
                    g_strerror(cause));
        return NULL;
    }
    return lh_json_parse(path, (const char *)bytes->data, bytes->len, error);
}

void
lh_json_free(LhJson *json)
{
    if (json == NULL)
        return;
    cJSON_Delete(json->root);
    g_hash_table_unref(json->indices);
    g_array_unref(json->places);
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

/* One step of a path such as "ranks[3].after"; NULL if there is no such value. `*path` moves on. */
static const cJSON *
step(const cJSON *item, const char **path)
{
    if (**path == '[') {
        char *end = NULL;
        guint64 index = g_ascii_strtoull(*path + 1, &end, 10);

        g_assert(end != *path + 1 && *end == ']');
        *path = end + 1;
        return index > G_MAXINT ? NULL : cJSON_GetArrayItem(item, (int)index);
    } else {
        const gsize length = strcspn(*path, ".[");
        g_autofree char *key = g_strndup(*path, length);

        *path += length;
        return cJSON_GetObjectItemCaseSensitive(item, key);
    }
}

const cJSON *
lh_json_find(const LhJson *json, const char *path, const cJSON **nearest)
{
    const cJSON *item = json->root;

    if (nearest != NULL)
        *nearest = item;
    while (*path != '\0') {
        if (*path == '.')
            path++;
        item = step(item, &path);
        if (item == NULL)
            return NULL;
        if (nearest != NULL)
            *nearest = item;
    }
    return item;
}

bool
lh_json_has(const LhJson *json, const char *path)
{
    const cJSON *item = lh_json_find(json, path, NULL);

    return item != NULL && !cJSON_IsNull(item);
}

bool
lh_json_error(const LhJson *json, const char *path, GError **error, const char *format, ...)
{
    g_autofree char *message = NULL;
    const cJSON *nearest = NULL;
    va_list args;

    va_start(args, format);
    message = g_strdup_vprintf(format, args);
    va_end(args);
    lh_json_find(json, path, &nearest);
    return lh_json_fail_at(json->name, json->text, lh_json_place(json, nearest)->value_offset,
                           error, "%s", message);
}
