/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assignments: "NAME=", "NAME+=", "NAME[1]=", and lists.
 */
#include "base/shell/shell_private.h"

#include <string.h>

bool
lh_shell_sees_assignment(const LhShell *sh)
{
    const char *at = sh->here.at;
    const gsize length = lh_shell_name_length(at);

    at += length;
    if (length > 0 && *at == '[') {
        while (at < sh->here.end && *at != ']' && !lh_shell_ends_word(*at))
            at++;
        at += *at == ']' ? 1 : 0;
    }
    return length > 0 && at < sh->here.end &&
           (*at == '=' || (*at == '+' && at + 1 < sh->here.end && at[1] == '='));
}

/* Reads the elements in "(...)". */
static bool
take_elements(LhShell *sh, GPtrArray *words)
{
    const LhShellPlace start = sh->here;

    lh_shell_step(sh);
    for (lh_shell_skip(sh, true); lh_shell_look(sh) != ')'; lh_shell_skip(sh, true)) {
        const char *before = sh->here.at;

        if (sh->here.at >= sh->here.end)
            return lh_shell_fail(sh, start.line, start.column, "the list has no end");
        if (lh_shell_look(sh) == '(') { /* invalid in a shell, but people write it */
            LhShellWord *word = lh_shell_word_new("", sh->here.line, sh->here.column);

            g_ptr_array_add(words, word);
            if (!lh_shell_take_parentheses(sh, word->text))
                return false;
            continue;
        }
        if (!lh_shell_take_word(sh, true, words))
            return false;
        if (sh->here.at == before)
            lh_shell_step(sh);
    }
    lh_shell_step(sh);
    return true;
}

/* Prepends the variable's present value to @words. */
static void
prepend(const LhShell *sh, const char *name, GPtrArray *words, bool *list)
{
    const LhShellVariable *variable = lh_shell_set_variable(sh, name);
    LhShellWord *first = NULL;

    if (variable == NULL)
        return;
    if (!*list && variable->words->len > 0) { /* text is appended to the first element */
        const LhShellWord *added = g_ptr_array_index(words, 0);

        first = lh_shell_word_copy(g_ptr_array_index(variable->words, 0));
        g_string_append(first->text, added->text->str);
        if (first->unknown == NULL)
            first->unknown = g_strdup(added->unknown);
        g_ptr_array_remove_index(words, 0);
    }
    for (guint i = 0; i < variable->words->len; i++)
        g_ptr_array_insert(words, (int)i,
                           i == 0 && first != NULL
                               ? first
                               : lh_shell_word_copy(g_ptr_array_index(variable->words, i)));
    *list = *list || variable->list;
}

/* Replaces element @index by the word in @words. */
static void
replace_element(const LhShell *sh, const char *name, guint index, GPtrArray *words)
{
    const LhShellVariable *variable = lh_shell_set_variable(sh, name);
    const guint count = variable != NULL ? variable->words->len : 0;

    for (guint i = 0; i < MIN(index, count); i++)
        g_ptr_array_insert(words, (int)i,
                           lh_shell_word_copy(g_ptr_array_index(variable->words, i)));
    for (guint i = index + 1; i < count; i++)
        g_ptr_array_add(words, lh_shell_word_copy(g_ptr_array_index(variable->words, i)));
}

bool
lh_shell_run_assignment(LhShell *sh)
{
    const gsize length = lh_shell_name_length(sh->here.at);
    g_autofree char *name = g_strndup(sh->here.at, length);
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(lh_shell_word_free);
    guint64 index = G_MAXUINT64;
    bool adds, list = false, ok;

    lh_shell_step_over(sh, name);
    if (lh_shell_look(sh) == '[')
        index = g_ascii_strtoull(sh->here.at + 1, NULL, 10);
    while (lh_shell_look(sh) != '=' && lh_shell_look(sh) != '+')
        lh_shell_step(sh);
    adds = lh_shell_look(sh) == '+';
    lh_shell_step_over(sh, adds ? "+=" : "=");
    list = lh_shell_look(sh) == '(';
    ok = list ? take_elements(sh, words) : lh_shell_take_word(sh, false, words);
    if (!ok)
        return false;
    if (adds)
        prepend(sh, name, words, &list);
    else if (index != G_MAXUINT64 && !list) {
        replace_element(sh, name, (guint)MIN(index, G_MAXUINT16), words);
        list = true;
    }
    lh_shell_set(sh, name, g_steal_pointer(&words), list);
    return true;
}
