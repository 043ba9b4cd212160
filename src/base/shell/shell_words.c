/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the words of a script: quotes, variables, and their results.
 */
#include "base/shell/shell_private.h"

#include <string.h>

#define BYTES_OF_WORD 8 /* charged per word in addition to its own bytes */

/* ---- "$" ---- */

/* "$@", "$#" and other variables of one character. */
static void
take_special(LhShell *sh, LhShellMaking *m, bool quoted)
{
    const char *at = sh->here.at;
    const char name[] = { at[1], '\0' };
    const LhShellWord *argument = lh_shell_value_of(sh, name, 0);
    g_autofree char *count = g_strdup_printf("%u", sh->arguments->len);

    if (at[1] == '@' || at[1] == '*')
        lh_shell_add_list(sh, m, sh->arguments, quoted, at[1] == '*');
    else if (at[1] == '#')
        lh_shell_add_text(m, count);
    else if (argument != NULL)
        lh_shell_add_value(sh, m, argument, quoted);
    else
        lh_shell_add_unknown(m, at, at + 2, g_ascii_isdigit(at[1]) ? name : "");
    lh_shell_step(sh);
    lh_shell_step(sh);
}

/* "$(command)" and "$((1 + 2))". */
static bool
take_command(LhShell *sh, LhShellMaking *m, bool quoted)
{
    bool taken;

    lh_shell_step(sh);
    if (!lh_shell_take_cat(sh, m, quoted, &taken))
        return false;
    return taken || lh_shell_take_substitution(sh, m);
}

static bool
take_dollar(LhShell *sh, LhShellMaking *m, bool quoted)
{
    const char *at = sh->here.at;
    const gsize length = at + 1 < sh->here.end ? lh_shell_name_length(at + 1) : 0;
    g_autofree char *name = NULL;
    const LhShellWord *value;

    if (lh_shell_sees(sh, "$("))
        return take_command(sh, m, quoted);
    if (lh_shell_sees(sh, "${"))
        return lh_shell_take_braced(sh, m, quoted);
    if (at + 1 < sh->here.end && strchr("@*#?$!0123456789", at[1]) != NULL && at[1] != '\0') {
        take_special(sh, m, quoted);
        return true;
    }
    if (length == 0 || at + 1 + length > sh->here.end) {
        lh_shell_add_text(m, "$");
        lh_shell_step(sh);
        return true;
    }
    name = g_strndup(at + 1, length);
    value = lh_shell_value_of(sh, name, 0);
    if (value != NULL)
        lh_shell_add_value(sh, m, value, quoted);
    else
        lh_shell_add_unknown(m, at, at + 1 + length, name);
    for (gsize i = 0; i <= length; i++)
        lh_shell_step(sh);
    return true;
}

/* ---- quotes ---- */

/* Reads a backslash: it makes the next character literal, or removes a line end. */
static void
take_escaped(LhShell *sh, LhShellMaking *m, bool quoted)
{
    lh_shell_step(sh);
    if (m->document && strchr("$`\\", lh_shell_look(sh)) == NULL) {
        lh_shell_add_text(m, "\\"); /* the next character is read afterwards */
        return;
    }
    if (lh_shell_look(sh) == '\r' && sh->here.at + 1 < sh->here.end && sh->here.at[1] == '\n')
        lh_shell_step(sh);
    if (lh_shell_look(sh) == '\n') {
        lh_shell_step(sh);
        return;
    }
    if (quoted && strchr("$`\"\\", lh_shell_look(sh)) == NULL)
        lh_shell_add_text(m, "\\");
    g_string_append_c(lh_shell_begin_word(m, m->line, m->column)->text, lh_shell_look(sh));
    lh_shell_step(sh);
}

static bool
take_quoted(LhShell *sh, LhShellMaking *m)
{
    const LhShellPlace start = sh->here;
    const char quote[] = { *start.at, '\0' };

    lh_shell_begin_word(m, m->line, m->column);
    lh_shell_step(sh);
    if (quote[0] == '"' && !lh_shell_take_up_to(sh, m, true, quote))
        return false;
    while (quote[0] == '\'' && sh->here.at < sh->here.end && lh_shell_look(sh) != '\'') {
        g_string_append_c(lh_shell_begin_word(m, m->line, m->column)->text, lh_shell_look(sh));
        lh_shell_step(sh);
    }
    if (sh->here.at >= sh->here.end)
        return lh_shell_fail(sh, start.line, start.column, "the quote has no end");
    lh_shell_step(sh);
    return true;
}

/* Reads a mark of open text, where text that contains it is read again. */
static bool
take_mark(LhShell *sh, LhShellMaking *m, bool quoted)
{
    const char *from = sh->here.at, *behind;
    const LhShellWord *open = lh_shell_open_at(sh, from, &behind);

    if (open == NULL)
        return false;
    lh_shell_add_open(sh, m, open, from, (gsize)(behind - from), quoted);
    while (sh->here.at < behind)
        lh_shell_step(sh);
    return true;
}

bool
lh_shell_take_up_to(LhShell *sh, LhShellMaking *m, bool quoted, const char *end)
{
    bool ok = true;

    while (ok && sh->here.at < sh->here.end) {
        const char c = lh_shell_look(sh);

        if (end != NULL && (end[0] != '\0' ? c == end[0] : lh_shell_ends_word(c)))
            return true;
        if (m->word != NULL && m->word->text->len > LH_SHELL_WORD_BYTES_MAX)
            return lh_shell_fail(sh, m->line, m->column, "a word has more than %d bytes",
                                 LH_SHELL_WORD_BYTES_MAX);
        if (c == '$')
            ok = take_dollar(sh, m, quoted);
        else if (take_mark(sh, m, quoted))
            continue;
        else if (c == '\\' && sh->here.at + 1 < sh->here.end)
            take_escaped(sh, m, quoted);
        else if (c == '`')
            ok = lh_shell_take_backquotes(sh, m);
        else if (!quoted && (c == '"' || c == '\''))
            ok = take_quoted(sh, m);
        else {
            g_string_append_c(lh_shell_begin_word(m, m->line, m->column)->text, c);
            lh_shell_step(sh);
        }
    }
    return ok;
}

static bool
check_bytes(LhShell *sh, const LhShellMaking *m, guint from)
{
    for (guint i = from; i < m->words->len; i++) {
        const LhShellWord *word = g_ptr_array_index(m->words, i);

        sh->bytes += word->text->len + BYTES_OF_WORD;
        if (word->text->len > LH_SHELL_WORD_BYTES_MAX)
            return lh_shell_fail(sh, m->line, m->column, "a word has more than %d bytes",
                                 LH_SHELL_WORD_BYTES_MAX);
    }
    return sh->bytes <= LH_SHELL_BYTES_MAX ||
           lh_shell_fail(sh, m->line, m->column,
                         "words up to here exceed %d MiB with their variables replaced",
                         LH_SHELL_BYTES_MAX >> 20);
}

bool
lh_shell_take_word(LhShell *sh, bool splits, GPtrArray *words)
{
    LhShellMaking m = {
        .words = words, .splits = splits, .line = sh->here.line, .column = sh->here.column
    };
    const guint from = words->len;
    const bool ok = lh_shell_take_up_to(sh, &m, false, "");

    if (!splits)
        lh_shell_begin_word(&m, m.line, m.column);
    lh_shell_finish_word(&m);
    sh->bytes += m.opened;
    return ok && check_bytes(sh, &m, from);
}
