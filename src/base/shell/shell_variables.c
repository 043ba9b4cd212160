/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables: their values, and the effect of undecided branches on them.
 */
#include "base/shell/shell_private.h"

#include <string.h>

LhShellVariable *
lh_shell_set_variable(const LhShell *sh, const char *name)
{
    LhShellVariable *variable = g_hash_table_lookup(sh->variables, name);

    if (variable != NULL)
        variable->named = true;
    return variable;
}

LhShellVariable *
lh_shell_variable(const LhShell *sh, const char *name)
{
    LhShellVariable *variable = lh_shell_set_variable(sh, name);

    if (variable != NULL)
        variable->used = true;
    return variable;
}

/* The mark of a text that an undecided branch sets. Caller frees. */
static char *
leave_open(LhShell *sh, const char *name, const char *text, const LhShellWord *where)
{
    LhShellWord *open = lh_shell_word_new(text, where->line, where->column);

    open->open_line = sh->open_line;
    open->open_variable = g_intern_string(sh->open_variable[0] != '\0' ? sh->open_variable : name);
    open->unknown = g_strdup(open->open_variable);
    sh->bytes += open->text->len + LH_SHELL_BYTES_OF_OPEN;
    g_ptr_array_add(sh->opens, open);
    return g_strdup_printf("%c%u%c", LH_SHELL_OPENS, sh->opens->len - 1, LH_SHELL_CLOSES);
}

/* Length of the common prefix that ends at a blank in both. */
static gsize
common_length(const char *a, const char *b)
{
    gsize length = 0, whole = 0;

    for (;; length++) {
        if ((a[length] == '\0' || g_ascii_isspace(a[length])) &&
            (b[length] == '\0' || g_ascii_isspace(b[length])))
            whole = length;
        if (a[length] == '\0' || a[length] != b[length])
            return whole;
    }
}

/* Whether it contains options, also in its open texts. */
static bool
has_option(const LhShell *sh, const char *text)
{
    bool whole;
    LhShellWord *word = lh_shell_word_new(text, 1, 1);
    LhShellWord *plain = lh_shell_word_plain(sh, word, &whole);
    const char *all = plain->text->str;
    const bool has = all[strspn(all, " \t\n")] == '-' || strstr(all, " -") != NULL;

    lh_shell_word_free(word);
    lh_shell_word_free(plain);
    return has;
}

/* A word that an undecided branch sets: the common prefix, then, as open text, the rest of both
 * values. If these are not options but a value, it is unknown. */
static LhShellWord *
open_word(LhShell *sh, const char *name, const char *before, const LhShellWord *set)
{
    const gsize common = common_length(before, set->text->str);
    const char *one = before + common, *other = set->text->str + common;
    const bool options = has_option(sh, one) || has_option(sh, other);
    g_autofree char *text =
        options ? g_strdup_printf("%s %s", one, other) : g_strdup_printf("$%s", name);
    g_autofree char *mark = leave_open(sh, name, text, set);
    LhShellWord *word = lh_shell_word_copy(set);

    g_string_truncate(word->text, common);
    g_string_append_printf(word->text, "%s%s", common > 0 ? " " : "", mark);
    g_free(word->unknown);
    word->unknown = g_strdup(sh->open_variable[0] != '\0' ? sh->open_variable : name);
    return word;
}

/* Words that an undecided branch sets are open. */
static GPtrArray *
open_words(LhShell *sh, const char *name, const GPtrArray *before, const GPtrArray *set, bool list)
{
    GPtrArray *words = g_ptr_array_new_with_free_func(lh_shell_word_free);
    const guint had = before != NULL ? before->len : 0;
    guint same = 0;

    if (!list) {
        const LhShellWord *first = had > 0 ? g_ptr_array_index(before, 0) : NULL;
        LhShellWord *none = lh_shell_word_new("", 1, 1);

        g_ptr_array_add(words, open_word(sh, name, first != NULL ? first->text->str : "",
                                         set->len > 0 ? g_ptr_array_index(set, 0) : none));
        lh_shell_word_free(none);
        return words;
    }
    while (same < MIN(had, set->len) &&
           strcmp(((LhShellWord *)g_ptr_array_index(before, same))->text->str,
                  ((LhShellWord *)g_ptr_array_index(set, same))->text->str) == 0)
        same++;
    for (guint i = 0; i < had + set->len - same; i++) {
        LhShellWord *word = lh_shell_word_copy(i < had ? g_ptr_array_index(before, i)
                                                       : g_ptr_array_index(set, i - had + same));

        if (i >= same) {
            g_autofree char *mark = leave_open(sh, name, word->text->str, word);

            g_string_assign(word->text, mark);
        }
        g_ptr_array_add(words, word);
    }
    return words;
}

static bool
has_words(const LhShellVariable *variable, const GPtrArray *words)
{
    if (variable == NULL || variable->words->len != words->len)
        return false;
    for (guint i = 0; i < words->len; i++) {
        const LhShellWord *a = g_ptr_array_index(words, i);
        const LhShellWord *b = g_ptr_array_index(variable->words, i);

        if (strcmp(a->text->str, b->text->str) != 0)
            return false;
    }
    return true;
}

void
lh_shell_set(LhShell *sh, const char *name, GPtrArray *words, bool list)
{
    LhShellVariable *variable = lh_shell_set_variable(sh, name);
    const bool used = variable != NULL && variable->used;

    if (sh->mode == LH_SHELL_SKIPS || (variable != NULL && variable->given) ||
        (sh->mode == LH_SHELL_MAY_RUN && has_words(variable, words))) {
        g_ptr_array_unref(words);
        return;
    }
    if (sh->mode == LH_SHELL_MAY_RUN) {
        GPtrArray *open =
            open_words(sh, name, variable != NULL ? variable->words : NULL, words, list);

        g_ptr_array_unref(words);
        words = open;
    }
    variable = g_new0(LhShellVariable, 1);
    *variable = (LhShellVariable){ .words = words, .list = list, .used = used };
    g_hash_table_replace(sh->variables, g_strdup(name), variable);
}

/* "$1", "$2"; NULL: none. Those of the script itself are unknown, but may be given. */
static const LhShellWord *
argument_of(const LhShell *sh, const char *name)
{
    const guint64 index = g_ascii_strtoull(name, NULL, 10);

    return index >= 1 && index <= sh->arguments->len
               ? g_ptr_array_index(sh->arguments, (guint)index - 1)
               : NULL;
}

const LhShellWord *
lh_shell_value_of(const LhShell *sh, const char *name, guint index)
{
    const LhShellVariable *variable = lh_shell_variable(sh, name);

    if (g_ascii_isdigit(name[0]) && argument_of(sh, name) != NULL)
        return argument_of(sh, name);
    return variable != NULL && index < variable->words->len
               ? g_ptr_array_index(variable->words, index)
               : NULL;
}
