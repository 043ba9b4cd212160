/* SPDX-License-Identifier: Apache-2.0 */
/* Two documents beside each other, value by value in their order. */
#include "base/json/json_same.h"

#include "base/escape.h"
#include "base/json/json_private.h"

#include <string.h>

#define VALUE_SHOWN_MAX 80 /* bytes of a value in a difference */

typedef struct {
    const LhJson *a, *b;
    bool (*counts)(const char *path);
    GString *path; /* of the values that are looked at */
    LhJsonDifference *found;
} Pair;

static bool
opens_container(char c)
{
    return c == '{' || c == '[';
}

/* Without space, as messages show it. Caller frees. */
static char *
quote_value(const char *text, gsize value)
{
    const gsize length = lh_json_skip(text, value) - value;
    g_autofree char *start = NULL;
    g_autofree char *valid = NULL;

    if (opens_container(text[value]))
        return g_strdup(text[value] == '{' ? "an object" : "a list");
    start = g_strndup(text + value, MIN(length, VALUE_SHOWN_MAX));
    valid = g_utf8_make_valid(start, -1);
    return lh_escaped_line(valid);
}

static bool
differs(const Pair *p, gsize a, bool has_a, gsize b, bool has_b)
{
    *p->found = (LhJsonDifference){ .path = g_strdup(p->path->str),
                                    .a = has_a ? quote_value(p->a->text, a) : g_strdup("nothing"),
                                    .b = has_b ? quote_value(p->b->text, b) : g_strdup("nothing") };
    return false;
}

static bool same_values(Pair *p, gsize a, gsize b);

/* Behind @length bytes of the path comes what leads to @item, or the @index-th of an array. */
static void
go_to(Pair *p, gsize length, const char *text, const LhJsonItem *item, guint index)
{
    g_autofree char *key = item->key != item->value ? lh_json_string(text, item->key) : NULL;

    g_string_truncate(p->path, length);
    if (key == NULL)
        g_string_append_printf(p->path, "[%u]", index);
    else
        g_string_append_printf(p->path, "%s%s", length > 0 ? "." : "", key);
}

static bool
same_keys(const Pair *p, const LhJsonItem *a, const LhJsonItem *b)
{
    g_autofree char *word = a->key != a->value ? lh_json_string(p->a->text, a->key) : NULL;

    return word == NULL ? b->key == b->value
                        : b->key != b->value && lh_json_is(p->b->text, b->key, word);
}

/* Members stand in the same order: documents of one writer do. */
static bool
same_containers(Pair *p, gsize a, gsize b)
{
    const gsize length = p->path->len;
    LhJsonItem x, y;
    bool more_a = lh_json_first(p->a->text, a, &x), more_b = lh_json_first(p->b->text, b, &y);

    for (guint index = 0; more_a || more_b; index++) {
        const bool both = more_a && more_b && same_keys(p, &x, &y);

        go_to(p, length, more_a ? p->a->text : p->b->text, more_a ? &x : &y, index);
        if (!both)
            return differs(p, x.value, more_a, y.value, more_b && !more_a);
        if (p->counts(p->path->str) && !same_values(p, x.value, y.value))
            return false;
        more_a = lh_json_next(p->a->text, &x);
        more_b = lh_json_next(p->b->text, &y);
    }
    g_string_truncate(p->path, length);
    return true;
}

static bool
begins_number(char c)
{
    return c == '-' || g_ascii_isdigit(c);
}

/* Written differently: "1" and "1.0". Integers, which may be larger than a double is exact, are
 * only written in one way. */
static bool
same_numbers(const char *a, const char *b)
{
    char *end_a, *end_b;
    const double x = g_ascii_strtod(a, &end_a), y = g_ascii_strtod(b, &end_b);
    const gsize digits_a = strspn(a, "-0123456789"), digits_b = strspn(b, "-0123456789");

    return x >= y && x <= y && (a + digits_a < end_a || b + digits_b < end_b);
}

static bool
same_values(Pair *p, gsize a, gsize b)
{
    const char *x = p->a->text + a, *y = p->b->text + b;
    const gsize length = lh_json_skip(p->a->text, a) - a;

    if (opens_container(*x) && *x == *y)
        return same_containers(p, a, b);
    if (length == lh_json_skip(p->b->text, b) - b && memcmp(x, y, length) == 0)
        return true;
    if (begins_number(*x) && begins_number(*y) && same_numbers(x, y))
        return true;
    return differs(p, a, true, b, true);
}

bool
lh_json_same(const LhJson *a, const LhJson *b, bool (*counts)(const char *path),
             LhJsonDifference *difference)
{
    g_autoptr(GString) path = g_string_new(NULL);
    Pair p = { .a = a, .b = b, .counts = counts, .path = path, .found = difference };
    gsize root_a, root_b;

    *difference = (LhJsonDifference){ NULL };
    lh_json_find(a, "", &root_a);
    lh_json_find(b, "", &root_b);
    return same_values(&p, root_a, root_b);
}

void
lh_json_difference_clear(LhJsonDifference *difference)
{
    g_free(difference->path);
    g_free(difference->a);
    g_free(difference->b);
}
