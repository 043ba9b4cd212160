/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single words, and the marks of open text in them.
 */
#include "base/shell/shell_private.h"

#include <string.h>

void
lh_shell_word_free(gpointer data)
{
    LhShellWord *word = data;

    g_string_free(word->text, TRUE);
    g_free(word->unknown);
    g_free(word);
}

LhShellWord *
lh_shell_word_new(const char *text, guint line, guint column)
{
    LhShellWord *word = g_new0(LhShellWord, 1);

    word->text = g_string_new(text);
    word->line = line;
    word->column = column;
    return word;
}

LhShellWord *
lh_shell_word_copy(const LhShellWord *word)
{
    LhShellWord *copy = lh_shell_word_new(word->text->str, word->line, word->column);

    copy->unknown = g_strdup(word->unknown);
    copy->open_line = word->open_line;
    copy->open_variable = word->open_variable;
    copy->open_from = word->open_from;
    return copy;
}

void
lh_shell_taint(LhShellWord *word, const char *unknown)
{
    if (unknown != NULL && (word->unknown == NULL || word->unknown[0] == '\0')) {
        g_free(word->unknown);
        word->unknown = g_strdup(unknown);
    }
}

void
lh_shell_taint_open(LhShellWord *word, const LhShellWord *value)
{
    if (value->open_line == 0 || word->open_line != 0)
        return;
    word->open_from = word->text->len;
    word->open_line = value->open_line;
    word->open_variable = value->open_variable;
}

const LhShellWord *
lh_shell_open_at(const LhShell *sh, const char *at, const char **behind)
{
    char *end;
    guint64 number;

    if (*at != LH_SHELL_OPENS || !g_ascii_isdigit(at[1]))
        return NULL;
    number = g_ascii_strtoull(at + 1, &end, 10);
    if (*end != LH_SHELL_CLOSES || number >= sh->opens->len)
        return NULL;
    *behind = end + 1;
    return g_ptr_array_index(sh->opens, (guint)number);
}

/* NOLINTBEGIN(misc-no-recursion): open text contains only marks of earlier open text, and all of it
 * has at most LH_SHELL_BYTES_MAX bytes */

/* Appends @text to @plain, at most *@left bytes and marks. */
static void
add_plain(const LhShell *sh, LhShellWord *plain, const char *text, gsize *left)
{
    for (const char *at = text; *at != '\0' && *left > 0; at++) {
        const char *behind;
        const LhShellWord *open = lh_shell_open_at(sh, at, &behind);

        --*left;
        if (open == NULL) {
            g_string_append_c(plain->text, *at);
            continue;
        }
        lh_shell_taint_open(plain, open);
        add_plain(sh, plain, open->text->str, left);
        at = behind - 1;
    }
}

/* NOLINTEND(misc-no-recursion) */

LhShellWord *
lh_shell_word_plain(const LhShell *sh, const LhShellWord *word, bool *whole)
{
    LhShellWord *plain = lh_shell_word_new("", word->line, word->column);
    gsize left = LH_SHELL_WORD_BYTES_MAX;

    add_plain(sh, plain, word->text->str, &left);
    *whole = left > 0;
    lh_shell_taint(plain, word->unknown);
    lh_shell_taint_open(plain, word);
    return plain;
}

char *
lh_shell_marked(LhShell *sh, const LhShellWord *word)
{
    if (word->open_line == 0)
        return g_strdup(word->text->str);
    sh->bytes += word->text->len + LH_SHELL_BYTES_OF_OPEN;
    g_ptr_array_add(sh->opens, lh_shell_word_copy(word));
    return g_strdup_printf("%c%u%c", LH_SHELL_OPENS, sh->opens->len - 1, LH_SHELL_CLOSES);
}
