/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts that a script provides to its commands, and the files that it writes.
 */
#include "base/shell/shell_private.h"

void
lh_shell_text_free(gpointer data)
{
    LhShellText *text = data;

    if (text == NULL)
        return;
    g_free(text->text);
    g_free(text);
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
