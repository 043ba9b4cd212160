/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Position of the reader, and tests of what is next.
 */
#include "base/shell/shell_private.h"

#include "base/error.h"

#include <stdarg.h>
#include <string.h>

bool
lh_shell_fail(const LhShell *sh, guint line, guint column, const char *format, ...)
{
    g_autofree char *message = NULL;
    va_list args;

    va_start(args, format);
    message = lh_error_text(format, args);
    va_end(args);
    g_set_error(sh->error, LH_ERROR, LH_ERROR_INPUT, "%s:%u:%u: error: %s", sh->file, line, column,
                message);
    return false;
}

char
lh_shell_look(const LhShell *sh)
{
    return sh->here.at < sh->here.end ? *sh->here.at : '\0';
}

bool
lh_shell_sees(const LhShell *sh, const char *text)
{
    const gsize length = strlen(text);

    return (gsize)(sh->here.end - sh->here.at) >= length && strncmp(sh->here.at, text, length) == 0;
}

void
lh_shell_step(LhShell *sh)
{
    const char c = lh_shell_look(sh);

    if (sh->here.at >= sh->here.end)
        return;
    sh->here.at++;
    if (sh->within)
        return;
    if (c == '\n') {
        sh->here.line++;
        sh->here.column = 1;
    } else {
        sh->here.column += ((unsigned char)lh_shell_look(sh) & 0xc0) != 0x80;
    }
}

bool
lh_shell_ends_word(char c)
{
    return c == '\0' || strchr(" \t\r\n;&|()<>", c) != NULL;
}

gsize
lh_shell_name_length(const char *text)
{
    gsize length = 0;

    while (g_ascii_isalpha(text[length]) || text[length] == '_' ||
           (length > 0 && g_ascii_isdigit(text[length])))
        length++;
    return length;
}

static void
skip_line(LhShell *sh)
{
    while (sh->here.at < sh->here.end && lh_shell_look(sh) != '\n')
        lh_shell_step(sh);
}

/* Skips the here-documents after this line end. */
static void
skip_documents(LhShell *sh)
{
    if (sh->behind.at == NULL)
        return;
    sh->here = sh->behind;
    sh->behind.at = NULL;
}

void
lh_shell_skip(LhShell *sh, bool lines)
{
    while (sh->here.at < sh->here.end) {
        const char c = lh_shell_look(sh);

        if (c == ' ' || c == '\t' || c == '\r') {
            lh_shell_step(sh);
        } else if (lh_shell_sees(sh, "\\\n") || lh_shell_sees(sh, "\\\r\n")) {
            lh_shell_step(sh);
            if (lh_shell_look(sh) == '\r')
                lh_shell_step(sh);
            lh_shell_step(sh);
        } else if (c == '#') {
            skip_line(sh);
        } else if (c == '\n' && lines) {
            lh_shell_step(sh);
            skip_documents(sh);
        } else {
            return;
        }
    }
}

bool
lh_shell_sees_word(const LhShell *sh, const char *word)
{
    const char *behind = sh->here.at + strlen(word);

    return lh_shell_sees(sh, word) && (behind >= sh->here.end || lh_shell_ends_word(*behind));
}

void
lh_shell_step_over(LhShell *sh, const char *word)
{
    for (gsize i = 0; i < strlen(word); i++)
        lh_shell_step(sh);
}
