/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows a whole script: sets the given variables, runs it, and reports at its end.
 */
#include "base/shell/shell_private.h"

#include "base/error.h"

#include <string.h>

static void
free_variable(gpointer data)
{
    LhShellVariable *variable = data;

    g_ptr_array_unref(variable->words);
    g_free(variable);
}

static bool
give(LhShell *sh, const char *text)
{
    const char *equals = strchr(text, '=');
    GPtrArray *words;
    LhShellVariable *variable;
    g_autofree char *shown = g_strescape(text, NULL);
    g_autofree char *name = NULL;

    if (equals == NULL || equals == text) {
        g_set_error(sh->error, LH_ERROR, LH_ERROR_USAGE,
                    "--set: found \"%.60s\"; allowed: VAR=value", shown);
        return false;
    }
    name = g_strndup(text, (gsize)(equals - text));
    words = g_ptr_array_new_with_free_func(lh_shell_word_free);
    g_ptr_array_add(words, lh_shell_word_new(equals + 1, 1, 1));
    if (g_ascii_isdigit(name[0])) {
        const guint64 index = g_ascii_strtoull(name, NULL, 10);

        while (sh->arguments->len < MIN(index, LH_SHELL_DEPTH_MAX))
            g_ptr_array_add(sh->arguments, lh_shell_word_new("", 1, 1));
        if (index >= 1 && index <= sh->arguments->len)
            g_string_assign(
                ((LhShellWord *)g_ptr_array_index(sh->arguments, (guint)index - 1))->text,
                equals + 1);
    }
    variable = g_new(LhShellVariable, 1);
    *variable = (LhShellVariable){ .words = words, .given = true };
    g_hash_table_replace(sh->variables, g_steal_pointer(&name), variable);
    return true;
}

/* Rejects a given variable that the script neither uses nor sets. */
static bool
check_given(const LhShell *sh, const GPtrArray *given)
{
    for (guint i = 0; given != NULL && i < given->len; i++) {
        const char *text = g_ptr_array_index(given, i);
        g_autofree char *name = g_strndup(text, (gsize)(strchr(text, '=') - text));
        const LhShellVariable *variable = g_hash_table_lookup(sh->variables, name);
        g_autofree char *shown = g_strescape(name, NULL);

        if (!variable->named && !g_ascii_isdigit(name[0])) {
            g_set_error(sh->error, LH_ERROR, LH_ERROR_INPUT, "--set: %s has no variable %.60s",
                        sh->file, shown);
            return false;
        }
    }
    return true;
}

/* A variable and its first word. */
typedef struct {
    const char *name;
    const LhShellWord *word;
} Unused;

static int
compare_places(gconstpointer a, gconstpointer b)
{
    const LhShellWord *x = ((const Unused *)a)->word, *y = ((const Unused *)b)->word;

    return x->line != y->line ? (x->line < y->line ? -1 : 1) : (x->column < y->column ? -1 : 1);
}

/* Adds a file that the script writes but does not run. */
static void
add_unused_file(GArray *all, GPtrArray *words, const char *name, const LhShellText *text)
{
    const Unused one = { name, lh_shell_word_new("", text->line, text->column) };

    g_ptr_array_add(words, (gpointer)one.word);
    if (!text->used && strstr(text->text, " --") != NULL)
        g_array_append_val(all, one);
}

static void
tell_unused(const LhShell *sh)
{
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(Unused));
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(lh_shell_word_free);
    GHashTableIter each;
    gpointer name, value;

    g_hash_table_iter_init(&each, sh->variables);
    while (g_hash_table_iter_next(&each, &name, &value)) {
        const LhShellVariable *variable = value;
        const LhShellWord *first =
            variable->words->len > 0 ? g_ptr_array_index(variable->words, 0) : NULL;
        const Unused one = { name, first };

        if (!variable->used && !variable->given && first != NULL &&
            g_str_has_prefix(first->text->str + strspn(first->text->str, " \t\n"), "--"))
            g_array_append_val(all, one);
    }
    g_hash_table_iter_init(&each, sh->files);
    while (g_hash_table_iter_next(&each, &name, &value))
        add_unused_file(all, words, name, value);
    g_array_sort(all, compare_places);
    for (guint i = 0; sh->asked->unused != NULL && i < all->len; i++) {
        const Unused *one = &g_array_index(all, Unused, i);

        sh->asked->unused(sh->asked->data, one->name, one->word);
    }
}

static void
tell_written(const LhShell *sh)
{
    GHashTableIter each;
    gpointer path, value;

    g_hash_table_iter_init(&each, sh->files); /* into a table again */
    while (sh->asked->written != NULL && g_hash_table_iter_next(&each, &path, &value)) {
        const LhShellText *text = value;

        if (text->open.line == 0)
            sh->asked->written(sh->asked->data, path, text->text);
    }
}

static bool
run_all(LhShell *sh)
{
    static const char *const ends[] = { NULL };
    const GPtrArray *variables = sh->asked->variables;

    for (guint i = 0; variables != NULL && i < variables->len; i++) {
        if (!give(sh, g_ptr_array_index(variables, i)))
            return false;
    }
    if (!lh_shell_run_list(sh, ends) || !check_given(sh, variables))
        return false;
    tell_unused(sh);
    tell_written(sh);
    if (sh->ended_line != 0 && sh->asked->ended != NULL)
        sh->asked->ended(sh->asked->data, sh->ended_line);
    return true;
}

bool
lh_shell_run(const char *file, const char *text, gsize length, const LhShellAsked *asked,
             GError **error)
{
    g_autofree char *copy = g_strndup(text, length); /* with a terminating NUL */
    LhShell sh = { .file = file,
                   .here = { copy, copy + length, 1, 1 },
                   .variables =
                       g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_variable),
                   .functions = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
                   .files =
                       g_hash_table_new_full(g_str_hash, g_str_equal, g_free, lh_shell_text_free),
                   .arguments = g_ptr_array_new_with_free_func(lh_shell_word_free),
                   .opens = g_ptr_array_new_with_free_func(lh_shell_word_free),
                   .kept = g_ptr_array_new_with_free_func(g_free),
                   .open_variable = "",
                   .status_variable = "",
                   .asked = asked,
                   .error = error };
    const bool ok = run_all(&sh);

    g_hash_table_unref(sh.variables);
    g_hash_table_unref(sh.functions);
    g_hash_table_unref(sh.files);
    g_ptr_array_unref(sh.arguments);
    g_ptr_array_unref(sh.opens);
    g_ptr_array_unref(sh.kept);
    lh_shell_text_free(sh.piped);
    return ok;
}
