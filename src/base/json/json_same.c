/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two documents value by value, in order. */
#include "base/json/json_same.h"

#include "base/escape.h"
#include "base/json/json_private.h"

#include <string.h>

#define VALUE_SHOWN_MAX 80 /* bytes of a value shown in a difference */

typedef struct {
    const LhJson *a, *b;
    bool (*counts)(const char *path);
    GString *path; /* of the values being compared */
    LhJsonDifference *found;
} Pair;

/* The value as messages show it, without spaces. Caller frees. */
static char *
quote_value(const LhJson *json, const cJSON *value)
{
    g_autofree char *start = NULL;
    g_autofree char *valid = NULL;
    gsize at;

    if (value == NULL)
        return g_strdup("nothing");
    if (cJSON_IsObject(value) || cJSON_IsArray(value))
        return g_strdup(cJSON_IsObject(value) ? "an object" : "a list");
    at = lh_json_place(value);
    start = g_strndup(json->text + at, MIN(lh_json_end(json->text, at) - at, VALUE_SHOWN_MAX));
    valid = g_utf8_make_valid(start, -1);
    return lh_escaped_line(valid);
}

/* @a, @b: NULL if there is none. */
static bool
differs(const Pair *p, const cJSON *a, const cJSON *b)
{
    *p->found = (LhJsonDifference){ .path = g_strdup(p->path->str),
                                    .a = quote_value(p->a, a),
                                    .b = quote_value(p->b, b) };
    return false;
}

static bool same_values(Pair *p, const cJSON *a, const cJSON *b);

/* Sets the path after its first @length bytes to @item's key, or to index @index of an array. */
static void
go_to(Pair *p, gsize length, const cJSON *item, guint index)
{
    g_string_truncate(p->path, length);
    if (item->string == NULL)
        g_string_append_printf(p->path, "[%u]", index);
    else
        g_string_append_printf(p->path, "%s%s", length > 0 ? "." : "", item->string);
}

/* Members must be in the same order, as in documents of one writer. */
static bool
same_containers(Pair *p, const cJSON *a, const cJSON *b)
{
    const gsize length = p->path->len;
    const cJSON *x = a->child, *y = b->child;

    for (guint index = 0; x != NULL || y != NULL; index++) {
        go_to(p, length, x != NULL ? x : y, index);
        if (x == NULL || y == NULL || g_strcmp0(x->string, y->string) != 0)
            return differs(p, x, x == NULL ? y : NULL);
        if (p->counts(p->path->str) && !same_values(p, x, y))
            return false;
        x = x->next;
        y = y->next;
    }
    g_string_truncate(p->path, length);
    return true;
}

static bool
begins_number(char c)
{
    return c == '-' || g_ascii_isdigit(c);
}

/* Compares numbers that are written differently: "1" and "1.0". Two integers, which may exceed a
 * double's exact range, differ if their digits do. */
static bool
same_numbers(const char *a, const char *b)
{
    char *end_a, *end_b;
    const double x = g_ascii_strtod(a, &end_a), y = g_ascii_strtod(b, &end_b);
    const gsize digits_a = strspn(a, "-0123456789"), digits_b = strspn(b, "-0123456789");

    return x >= y && x <= y && (a + digits_a < end_a || b + digits_b < end_b);
}

static bool
same_values(Pair *p, const cJSON *a, const cJSON *b)
{
    const gsize at_a = lh_json_place(a), at_b = lh_json_place(b);
    const char *x = p->a->text + at_a, *y = p->b->text + at_b;
    gsize length;

    if ((cJSON_IsObject(a) && cJSON_IsObject(b)) || (cJSON_IsArray(a) && cJSON_IsArray(b)))
        return same_containers(p, a, b);
    length = lh_json_end(p->a->text, at_a) - at_a;
    if (length == lh_json_end(p->b->text, at_b) - at_b && memcmp(x, y, length) == 0)
        return true;
    if (begins_number(*x) && begins_number(*y) && same_numbers(x, y))
        return true;
    return differs(p, a, b);
}

bool
lh_json_same(const LhJson *a, const LhJson *b, bool (*counts)(const char *path),
             LhJsonDifference *difference)
{
    g_autoptr(GString) path = g_string_new(NULL);
    Pair p = { .a = a, .b = b, .counts = counts, .path = path, .found = difference };

    *difference = (LhJsonDifference){ NULL };
    return same_values(&p, lh_json_root(a), lh_json_root(b));
}

void
lh_json_difference_clear(LhJsonDifference *difference)
{
    g_free(difference->path);
    g_free(difference->a);
    g_free(difference->b);
}
