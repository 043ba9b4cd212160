/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Here-documents ("<<END"): their position and contents.
 */
#include "base/shell/shell_private.h"

#include <string.h>

/* Reads a line without its line end, and skips the line end; caller frees. */
static char *
take_line(LhShell *sh)
{
    const char *from = sh->here.at;
    const char *to;

    while (sh->here.at < sh->here.end && lh_shell_look(sh) != '\n')
        lh_shell_step(sh);
    to = sh->here.at;
    lh_shell_step(sh);
    return g_strndup(from, (gsize)(to - from - (to > from && to[-1] == '\r' ? 1 : 0)));
}

/* Moves to the start of the next line; lines joined by "\" count as one. */
static void
skip_to_line(LhShell *sh)
{
    while (sh->here.at < sh->here.end && lh_shell_look(sh) != '\n') {
        const bool joins = lh_shell_sees(sh, "\\\n");

        lh_shell_step(sh);
        if (joins)
            lh_shell_step(sh);
    }
    lh_shell_step(sh);
}

/* Skips the lines up to @end; returns where they end. */
static const char *
skip_body(LhShell *sh, const char *end, bool tabs)
{
    const char *stop = sh->here.at;
    bool more = true;

    while (more && sh->here.at < sh->here.end) {
        g_autofree char *line = NULL;

        stop = sh->here.at;
        line = take_line(sh);
        more = strcmp(line + (tabs ? strspn(line, "\t") : 0), end) != 0;
    }
    return more ? sh->here.end : stop;
}

/* Removes leading tabs from all lines. Caller frees. */
static char *
without_tabs(const char *text)
{
    GString *lines = g_string_new(NULL);
    bool begins = true;

    for (; *text != '\0'; text++) {
        if (!begins || *text != '\t') {
            g_string_append_c(lines, *text);
            begins = *text == '\n';
        }
    }
    return g_string_free(lines, FALSE);
}

static guint
count_lines(const char *text, gsize length)
{
    guint count = 0;

    for (gsize i = 0; i < length; i++)
        count += text[i] == '\n' ? 1 : 0;
    return count;
}

LhShellText *
lh_shell_take_body(LhShell *sh, const char *end, bool tabs, bool expands)
{
    const LhShellPlace back = sh->here;
    LhShellPlace from;
    g_autoptr(LhShellText) text = g_new0(LhShellText, 1);
    const char *stop;

    if (sh->behind.at != NULL)
        sh->here = sh->behind;
    else
        skip_to_line(sh);
    from = sh->here;
    stop = skip_body(sh, end, tabs);
    sh->behind = sh->here;
    sh->here = back;
    if (!expands || sh->mode == LH_SHELL_SKIPS)
        text->text = g_strndup(from.at, (gsize)(stop - from.at));
    else if (!lh_shell_take_document(sh, &from, stop, text))
        return NULL;
    text->line = from.line;
    text->column = from.column;
    text->lines = !sh->within && count_lines(text->text, strlen(text->text)) ==
                                     count_lines(from.at, (gsize)(stop - from.at));
    if (tabs) {
        char *plain = without_tabs(text->text);

        g_free(text->text);
        text->text = plain;
    }
    return g_steal_pointer(&text);
}

bool
lh_shell_take_cat(LhShell *sh, LhShellMaking *m, bool quoted, bool *taken)
{
    const LhShellPlace back = sh->here;
    g_autoptr(GPtrArray) ends = g_ptr_array_new_with_free_func(lh_shell_word_free);
    g_autoptr(LhShellText) text = NULL;
    g_autofree char *written = NULL;
    const LhShellPlace behind = sh->behind;
    const char *from;
    bool tabs, quotes;

    *taken = false;
    if (!lh_shell_sees(sh, "(cat <<") || lh_shell_sees(sh, "(cat <<<"))
        return true;
    for (gsize i = 0; i < strlen("(cat <<"); i++)
        lh_shell_step(sh);
    tabs = lh_shell_look(sh) == '-';
    if (tabs)
        lh_shell_step(sh);
    lh_shell_skip(sh, false);
    from = sh->here.at;
    if (!lh_shell_take_word(sh, false, ends))
        return false;
    written = g_strndup(from, (gsize)(sh->here.at - from));
    quotes = strpbrk(written, "\"'\\") != NULL;
    lh_shell_skip(sh, false);
    if (lh_shell_look(sh) == '\n') {
        sh->behind.at = NULL;
        text = lh_shell_take_body(sh, ((LhShellWord *)g_ptr_array_index(ends, 0))->text->str, tabs,
                                  !quotes);
        if (text == NULL)
            return false;
        sh->here = sh->behind;
        lh_shell_skip(sh, true);
        *taken = lh_shell_look(sh) == ')';
    }
    sh->behind = behind;
    if (*taken) {
        LhShellWord *word = lh_shell_word_new(g_strchomp(text->text), text->line, text->column);

        lh_shell_step(sh);
        lh_shell_add_value(sh, m, word, quoted);
        lh_shell_word_free(word);
    } else {
        sh->here = back;
    }
    return true;
}

bool
lh_shell_take_document(LhShell *sh, const LhShellPlace *from, const char *end, LhShellText *out)
{
    const LhShellPlace back = sh->here;
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(lh_shell_word_free);
    LhShellMaking m = {
        .words = words, .document = true, .line = from->line, .column = from->column
    };
    bool ok;

    sh->here = *from;
    sh->here.end = end;
    lh_shell_begin_word(&m, m.line, m.column);
    ok = lh_shell_take_up_to(sh, &m, true, NULL);
    lh_shell_finish_word(&m);
    sh->here = back;
    out->text = g_strdup(((LhShellWord *)g_ptr_array_index(words, 0))->text->str);
    sh->bytes += strlen(out->text);
    return ok;
}
