/*
 * Texts that a script holds for its commands: documents ("<<END"), and files that it writes by
 * them. See the header.
 */
#include "base/shell/shell_private.h"

#include <string.h>

void
lh_shell_text_free(gpointer data)
{
    LhShellText *text = data;

    if (text == NULL)
        return;
    g_free(text->text);
    g_free(text);
}

/* The line here without its end, and over both; caller frees. */
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

/* To where the next line begins, over what "\" joins. */
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

/* Over the lines up to @end; returns where they stop. */
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

/* Without the tabs that lines begin with. Caller frees. */
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

LhShellText *
lh_shell_text_new(const char *text, const LhShellWord *word)
{
    LhShellText *made = g_new0(LhShellText, 1);

    made->text = g_strdup(text);
    made->line = word->line;
    made->column = word->column;
    return made;
}

/* ---- files ---- */

static const char *
plain_path(const char *path)
{
    while (g_str_has_prefix(path, "./"))
        path += strlen("./");
    return path;
}

void
lh_shell_write(LhShell *sh, const char *path, LhShellText *text, bool appends)
{
    const LhShellText *before = lh_shell_written(sh, path);

    if (sh->mode == LH_SHELL_SKIPS || sh->ended) {
        lh_shell_text_free(text);
        return;
    }
    if (appends && before != NULL) {
        char *whole = g_strconcat(before->text, text->text, NULL);

        g_free(text->text);
        text->text = whole;
        text->line = before->line;
        text->column = before->column;
        text->lines = false;
        text->open = before->open;
    }
    if (sh->mode == LH_SHELL_MAY_RUN)
        text->open = (LhShellOpen){ sh->open_line, sh->open_variable };
    g_hash_table_replace(sh->files, g_strdup(plain_path(path)), text);
}

LhShellText *
lh_shell_written(const LhShell *sh, const char *path)
{
    return g_hash_table_lookup(sh->files, plain_path(path));
}

LhShellText *
lh_shell_text_copy(const LhShellText *text)
{
    LhShellText *copy = text != NULL ? g_memdup2(text, sizeof(*text)) : NULL;

    if (copy != NULL)
        copy->text = g_strdup(text->text);
    return copy;
}
