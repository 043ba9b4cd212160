/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds words from variables, commands and quotes.
 */
#include "base/shell/shell_private.h"

#include <string.h>

LhShellWord *
lh_shell_begin_word(LhShellMaking *m, guint line, guint column)
{
    if (m->word == NULL)
        m->word = lh_shell_word_new("", line, column);
    return m->word;
}

void
lh_shell_finish_word(LhShellMaking *m)
{
    if (m->word != NULL)
        g_ptr_array_add(m->words, g_steal_pointer(&m->word));
}

/* NOLINTBEGIN(misc-no-recursion): open text contains only marks of earlier open text, and all of it
 * has at most LH_SHELL_BYTES_MAX bytes */

void
lh_shell_add_open(const LhShell *sh, LhShellMaking *m, const LhShellWord *open, const char *mark,
                  gsize length, bool quoted)
{
    if (!quoted && m->splits) {
        m->opened += open->text->len + 1;
        if (m->opened <= LH_SHELL_BYTES_MAX)
            lh_shell_add_value(sh, m, open, false);
        return;
    }
    g_string_append_len(lh_shell_begin_word(m, m->line, m->column)->text, mark, (gssize)length);
    lh_shell_taint(m->word, open->unknown);
}

void
lh_shell_add_value(const LhShell *sh, LhShellMaking *m, const LhShellWord *value, bool quoted)
{
    const guint line = value->line, column = value->column;

    if (m->word != NULL && m->word->text->len == 0) { /* the word begins here */
        m->word->line = line;
        m->word->column = column;
    }
    for (const char *at = value->text->str; *at != '\0'; at++) {
        const char *behind;
        const LhShellWord *open = lh_shell_open_at(sh, at, &behind);

        if (!quoted && m->splits && strchr(" \t\n", *at) != NULL) {
            lh_shell_finish_word(m);
            continue;
        }
        if (open != NULL) {
            lh_shell_add_open(sh, m, open, at, (gsize)(behind - at), quoted);
            at = behind - 1;
            continue;
        }
        lh_shell_taint_open(lh_shell_begin_word(m, line, column), value);
        lh_shell_taint(m->word, value->unknown);
        g_string_append_c(m->word->text, *at);
        if (m->word->text->len > LH_SHELL_WORD_BYTES_MAX)
            return;
    }
}

/* NOLINTEND(misc-no-recursion) */

void
lh_shell_add_text(LhShellMaking *m, const char *text)
{
    g_string_append(lh_shell_begin_word(m, m->line, m->column)->text, text);
}

void
lh_shell_add_unknown(LhShellMaking *m, const char *from, const char *to, const char *variable)
{
    g_string_append_len(lh_shell_begin_word(m, m->line, m->column)->text, from, to - from);
    lh_shell_taint(m->word, variable);
}

void
lh_shell_add_list(const LhShell *sh, LhShellMaking *m, const GPtrArray *words, bool quoted,
                  bool star)
{
    for (guint i = 0; i < words->len; i++) {
        const LhShellWord *word = g_ptr_array_index(words, i);

        if (i > 0 && m->splits && !(quoted && star))
            lh_shell_finish_word(m);
        else if (i > 0)
            lh_shell_add_text(m, " ");
        if (quoted && m->splits && !star)
            lh_shell_begin_word(m, word->line, word->column);
        lh_shell_add_value(sh, m, word, quoted);
    }
}
