/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON documents: their text, read whole and scanned strictly (json_scan.c), and the way from value
 * to value in it. Nothing is built from the text: decoding (json_decode.c) walks it, so that a
 * document costs its size.
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

/* @text, of @length and a NUL behind it, is the document's from now on. */
static LhJson *
take_text(const char *name, char *text, gsize length, bool python, GError **error)
{
    g_autoptr(LhJson) json = g_new0(LhJson, 1);

    json->name = g_strdup(name);
    json->text = text;
    json->length = length;
    if (!check_length(name, length, error) || !lh_json_scan(name, text, length, python, error))
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

/* --- walking --- */

static bool
is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Of a number, true, false or null. */
static bool
ends_word(char c)
{
    return c == ',' || c == ']' || c == '}' || c == '\0' || is_space(c);
}

static gsize
skip_space(const char *text, gsize at)
{
    while (is_space(text[at]))
        at++;
    return at;
}

/* Behind the closing quote of the string at @at. */
static gsize
skip_string(const char *text, gsize at)
{
    for (at++; text[at] != '"'; at++)
        at += text[at] == '\\' ? 1 : 0;
    return at + 1;
}

/* Behind the closing bracket of the object or array at @at. */
static gsize
skip_container(const char *text, gsize at)
{
    unsigned depth = 0;

    do {
        const char c = text[at];

        if (c == '"') {
            at = skip_string(text, at);
            continue;
        }
        if (c == '{' || c == '[')
            depth++;
        else if (c == '}' || c == ']')
            depth--;
        at++;
    } while (depth > 0);
    return at;
}

gsize
lh_json_skip(const char *text, gsize value)
{
    switch (text[value]) {
    case '"':
        return skip_string(text, value);
    case '{':
    case '[':
        return skip_container(text, value);
    default:
        while (!ends_word(text[value]))
            value++;
        return value;
    }
}

/* The item that begins at @at, a key or a value. */
static void
item_at(const char *text, gsize at, bool in_object, LhJsonItem *item)
{
    item->key = at;
    item->value = at;
    if (in_object)
        item->value = skip_space(text, skip_space(text, skip_string(text, at)) + 1);
}

bool
lh_json_first(const char *text, gsize container, LhJsonItem *item)
{
    const gsize at = skip_space(text, container + 1);

    if (text[at] == '}' || text[at] == ']')
        return false;
    item_at(text, at, text[container] == '{', item);
    return true;
}

bool
lh_json_next(const char *text, LhJsonItem *item)
{
    const gsize at = skip_space(text, lh_json_skip(text, item->value));

    if (text[at] != ',')
        return false;
    item_at(text, skip_space(text, at + 1), item->key != item->value, item);
    return true;
}

gsize
lh_json_count(const char *text, gsize array)
{
    LhJsonItem item;
    gsize count = 0;

    for (bool more = lh_json_first(text, array, &item); more; more = lh_json_next(text, &item))
        count++;
    return count;
}

/* The character that \uXXXX stands for, of two if the first is half of a pair; *at moves from the
 * first digit behind the last. */
static gunichar
unicode_escape(const char *text, gsize *at)
{
    gunichar code[2] = { 0 };
    const bool pair = g_ascii_tolower(text[*at]) == 'd' && g_ascii_xdigit_value(text[*at + 1]) >= 8;

    for (int half = 0; half < (pair ? 2 : 1); half++) {
        if (half == 1)
            *at += 2;
        for (int i = 0; i < 4; i++)
            code[half] = code[half] * 16 + (gunichar)g_ascii_xdigit_value(text[(*at)++]);
    }
    return pair ? 0x10000 + ((code[0] - 0xd800) << 10) + (code[1] - 0xdc00) : code[0];
}

char *
lh_json_string(const char *text, gsize quote)
{
    static const char escapes[] = "bfnrt", meant[] = "\b\f\n\r\t";
    const gsize end = skip_string(text, quote) - 1;
    GString *out = g_string_sized_new(end - quote);

    for (gsize at = quote + 1; at < end;) {
        const char *escape;

        if (text[at] != '\\') {
            g_string_append_c(out, text[at++]);
            continue;
        }
        at += 2;
        escape = strchr(escapes, text[at - 1]);
        if (text[at - 1] == 'u')
            g_string_append_unichar(out, unicode_escape(text, &at));
        else
            g_string_append_c(out, escape != NULL ? meant[escape - escapes] : text[at - 1]);
    }
    return g_string_free(out, FALSE);
}

/* The string at @quote as it stands in the text if it has no escapes, or else @made. */
static const char *
plain_string(const char *text, gsize quote, gsize *length, char **made)
{
    *length = skip_string(text, quote) - quote - 2;
    *made = NULL;
    if (memchr(text + quote + 1, '\\', *length) == NULL)
        return text + quote + 1;
    *made = lh_json_string(text, quote);
    *length = strlen(*made);
    return *made;
}

static int
compare(const char *a, gsize a_length, const char *b, gsize b_length)
{
    const int order = memcmp(a, b, MIN(a_length, b_length));

    return order != 0 ? order : a_length < b_length ? -1 : a_length > b_length;
}

bool
lh_json_is(const char *text, gsize quote, const char *word)
{
    g_autofree char *made = NULL;
    gsize length;
    const char *string = plain_string(text, quote, &length, &made);

    return compare(string, length, word, strlen(word)) == 0;
}

int
lh_json_compare(const char *text, gsize a, gsize b)
{
    g_autofree char *made_a = NULL, *made_b = NULL;
    gsize a_length, b_length;
    const char *string_a = plain_string(text, a, &a_length, &made_a);
    const char *string_b = plain_string(text, b, &b_length, &made_b);

    return compare(string_a, a_length, string_b, b_length);
}

/* --- paths --- */

/* One step of a path such as "ranks[3].after", from *value on; false if there is no such value, or
 * no such step: a file's own keys, which may be of any characters, are in paths, too. `*path` moves
 * on. */
static bool
step(const char *text, gsize *value, const char **path)
{
    const bool indexed = **path == '[';
    const gsize length = strcspn(*path, ".[");
    g_autofree char *key = g_strndup(*path, length);
    char *end = NULL;
    const guint64 index = indexed ? g_ascii_strtoull(*path + 1, &end, 10) : 0;
    guint64 i = 0;
    LhJsonItem item;
    bool more;

    if (indexed && (end == *path + 1 || *end != ']'))
        return false;
    more = text[*value] == (indexed ? '[' : '{') && lh_json_first(text, *value, &item);
    *path = indexed ? end + 1 : *path + length;
    while (more && (indexed ? i++ != index : !lh_json_is(text, item.key, key)))
        more = lh_json_next(text, &item);
    if (more)
        *value = item.value;
    return more;
}

bool
lh_json_find(const LhJson *json, const char *path, gsize *value)
{
    *value = skip_space(json->text, 0);
    while (*path != '\0') {
        if (*path == '.')
            path++;
        if (!step(json->text, value, &path))
            return false;
    }
    return true;
}

bool
lh_json_has(const LhJson *json, const char *path)
{
    gsize value;

    return lh_json_find(json, path, &value) && json->text[value] != 'n';
}

char
lh_json_kind(const LhJson *json, const char *path)
{
    gsize value;
    char first;

    if (!lh_json_find(json, path, &value))
        return '\0';
    first = json->text[value];
    if (first == '-')
        first = json->text[value + 1];
    return (char)(g_ascii_isdigit(first) ? '0' : first);
}

char *
lh_json_text(const LhJson *json, const char *path)
{
    GString *text = g_string_new(NULL);
    gsize value;

    if (!lh_json_find(json, path, &value))
        return g_string_free(text, FALSE);
    for (gsize at = value, end = lh_json_skip(json->text, value); at < end; at++) {
        if (!is_space(json->text[at]))
            g_string_append_c(text, json->text[at]);
    }
    return g_string_free(text, FALSE);
}

char *
lh_json_string_at(const LhJson *json, const char *path)
{
    gsize value;

    if (!lh_json_find(json, path, &value) || json->text[value] != '"')
        return NULL;
    return lh_json_string(json->text, value);
}

GPtrArray *
lh_json_keys(const LhJson *json, const char *path)
{
    GPtrArray *keys = g_ptr_array_new_with_free_func(g_free);
    LhJsonItem item;
    gsize object;
    bool more;

    if (!lh_json_find(json, path, &object) || json->text[object] != '{')
        return keys;
    for (more = lh_json_first(json->text, object, &item); more;
         more = lh_json_next(json->text, &item))
        g_ptr_array_add(keys, lh_json_string(json->text, item.key));
    return keys;
}

bool
lh_json_error(const LhJson *json, const char *path, GError **error, const char *format, ...)
{
    g_autofree char *message = NULL;
    gsize nearest;
    va_list args;

    va_start(args, format);
    message = g_strdup_vprintf(format, args);
    va_end(args);
    lh_json_find(json, path, &nearest);
    return lh_json_fail_at(json->name, json->text, nearest, error, "%s", message);
}
