/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "$(command)", which is not run except for "expr", and "$((1 + 2))".
 */
#include "base/shell/shell_private.h"

#include <inttypes.h>
#include <string.h>

bool
lh_shell_take_parentheses(LhShell *sh, GString *out)
{
    const LhShellPlace start = sh->here;
    unsigned depth = 0;
    char quote = '\0';

    do {
        const char c = lh_shell_look(sh);

        if (sh->here.at >= sh->here.end)
            return lh_shell_fail(sh, start.line, start.column, "the \"(\" has no end");
        if (quote != '\0')
            quote = c == quote ? '\0' : quote;
        else if (c == '\'' || c == '"')
            quote = c;
        else if (c == '(')
            depth++;
        else if (c == ')')
            depth--;
        g_string_append_c(out, c);
        lh_shell_step(sh);
    } while (depth > 0);
    return true;
}

/* The expression of "expr A / B"; NULL: another command. Caller frees. */
static char *
sum_of_expr(const char *inner)
{
    g_auto(GStrv) words = NULL;

    inner += strspn(inner, " \t");
    if (!g_str_has_prefix(inner, "expr "))
        return NULL;
    words = g_strsplit(inner + strlen("expr "), "\\", -1); /* "\*" means "*" */
    return g_strjoinv("", words);
}

static bool
add_sum(LhShell *sh, LhShellMaking *m, const char *sum, const char **unknown)
{
    g_autofree char *number = NULL;
    gint64 value;

    if (!lh_shell_arithmetic(sh, sum, &value, unknown))
        return false;
    number = g_strdup_printf("%" PRIi64, value);
    lh_shell_add_text(m, number);
    return true;
}

bool
lh_shell_take_substitution(LhShell *sh, LhShellMaking *m)
{
    const bool arithmetic = lh_shell_sees(sh, "((");
    g_autoptr(GString) text = g_string_new("$");
    g_autofree char *inner = NULL;
    g_autofree char *sum = NULL;
    const char *unknown = "";

    if (!lh_shell_take_parentheses(sh, text))
        return false;
    inner = g_strndup(text->str + 2, text->len - 3);
    if (arithmetic && g_str_has_suffix(text->str, "))"))
        sum = g_strndup(text->str + 3, text->len - 5);
    else
        sum = sum_of_expr(inner);
    if (sum != NULL && add_sum(sh, m, sum, &unknown))
        return true;
    lh_shell_add_unknown(m, text->str, text->str + text->len, unknown);
    return true;
}

bool
lh_shell_take_backquotes(LhShell *sh, LhShellMaking *m)
{
    const LhShellPlace start = sh->here;
    g_autofree char *inner = NULL;
    g_autofree char *sum = NULL;
    const char *unknown = "";

    do {
        lh_shell_step(sh);
        if (sh->here.at >= sh->here.end)
            return lh_shell_fail(sh, start.line, start.column, "the quote has no end");
    } while (lh_shell_look(sh) != '`');
    inner = g_strndup(start.at + 1, (gsize)(sh->here.at - start.at - 1));
    sum = sum_of_expr(inner);
    lh_shell_step(sh);
    if (sum == NULL || !add_sum(sh, m, sum, &unknown))
        lh_shell_add_unknown(m, start.at, sh->here.at, unknown);
    return true;
}
