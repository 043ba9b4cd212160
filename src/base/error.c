/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error domain of the whole tree, and suggestions for misspelt words.
 */
#include "base/error.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

G_DEFINE_QUARK(lh_error_quark, lh_error)
G_DEFINE_QUARK(lh_waited_quark, lh_waited)

void
lh_error_read(const char *path, int cause, GError **error)
{
    /* Not g_strerror: it prints errors of its own translation. */
    if (cause == ENOMEM)
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "out of memory: %s cannot be read", path);
    else
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "%s: error: cannot be read: %s", path,
                    strerror(cause));
}

char *
lh_error_text(const char *format, va_list args)
{
    char *text = g_strdup_vprintf(format, args);
    char *valid;

    if (g_utf8_validate(text, -1, NULL))
        return text;
    valid = g_utf8_make_valid(text, -1);
    g_free(text);
    return valid;
}

static guint
min3(guint a, guint b, guint c)
{
    return MIN(a, MIN(b, c));
}

static bool
letters_swapped(const char *a, const char *b, gsize i, gsize j)
{
    return i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
}

/*
 * Optimal string alignment distance: insert, delete, replace, swap two neighbours. Three rows of
 * the table are enough; `work` holds them.
 */
static guint
edit_distance(const char *a, gsize a_length, const char *b, gsize b_length, guint *work)
{
    guint *before = work;
    guint *above = before + b_length + 1;
    guint *row = above + b_length + 1;

    for (gsize j = 0; j <= b_length; j++)
        row[j] = (guint)j;
    for (gsize i = 1; i <= a_length; i++) {
        guint *recycled = before;

        before = above;
        above = row;
        row = recycled;
        row[0] = (guint)i;
        for (gsize j = 1; j <= b_length; j++) {
            guint replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);

            row[j] = min3(above[j] + 1, row[j - 1] + 1, replaced);
            if (letters_swapped(a, b, i, j))
                row[j] = MIN(row[j], before[j - 2] + 1);
        }
    }
    return row[b_length];
}

const char *
lh_nearest_word(const char *word, const char *const *candidates)
{
    const gsize length = strlen(word);
    const guint limit = MAX((guint)MIN(length, 1000) / 3, 1);
    const char *nearest = NULL;
    guint nearest_distance = limit + 1;

    for (const char *const *c = candidates; *c != NULL; c++) {
        const gsize c_length = strlen(*c);
        g_autofree guint *work = NULL;
        guint distance;

        if (MAX(length, c_length) - MIN(length, c_length) > limit)
            continue;
        work = g_new(guint, 3 * (c_length + 1));
        distance = edit_distance(word, length, *c, c_length, work);
        if (distance < nearest_distance) {
            nearest_distance = distance;
            nearest = *c;
        }
    }
    return nearest;
}
