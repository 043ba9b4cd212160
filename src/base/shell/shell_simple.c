/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simple commands: words, functions, scripts within the script, and the few commands whose effect
 * on variables is followed.
 */
#include "base/shell/shell_private.h"

#include <string.h>

bool
lh_shell_define(LhShell *sh, const char *name)
{
    static const char *const ends[] = { "}", NULL };
    LhShellMode before;
    LhShellPlace *body;

    lh_shell_skip(sh, true);
    if (lh_shell_look(sh) != '{')
        return true; /* another kind of body is run in place */
    lh_shell_step(sh);
    body = g_memdup2(&sh->here, sizeof(sh->here));
    before = lh_shell_enter_mode(sh, LH_SHELL_SKIPS);
    if (!lh_shell_run_list(sh, ends)) {
        g_free(body);
        return false;
    }
    sh->mode = before;
    if (sh->mode != LH_SHELL_SKIPS)
        g_hash_table_replace(sh->functions, g_strdup(name), body);
    else
        g_free(body);
    if (lh_shell_look(sh) == '}')
        lh_shell_step(sh);
    return true;
}

/* Runs the text at @from with @arguments. */
static bool
run_elsewhere(LhShell *sh, const LhShellPlace *from, const GPtrArray *arguments, guint first)
{
    static const char *const ends[] = { "}", NULL };
    const LhShellPlace back = sh->here, behind = sh->behind;
    GPtrArray *before = sh->arguments;
    bool ok;

    if (sh->depth >= LH_SHELL_DEPTH_MAX)
        return lh_shell_fail(sh, back.line, back.column, "commands are nested too deeply");
    sh->arguments = g_ptr_array_new_with_free_func(lh_shell_word_free);
    for (guint i = first; i < arguments->len; i++)
        g_ptr_array_add(sh->arguments, lh_shell_word_copy(g_ptr_array_index(arguments, i)));
    sh->depth++;
    sh->here = *from;
    sh->behind.at = NULL;
    ok = lh_shell_run_list(sh, ends);
    sh->depth--;
    sh->here = back;
    sh->behind = behind;
    g_ptr_array_unref(sh->arguments);
    sh->arguments = before;
    return ok;
}

/* Runs @text as a script, with the words from @first on as its arguments. */
static bool
run_text(LhShell *sh, const LhShellText *text, const GPtrArray *words, guint first)
{
    char *kept = g_strdup(text->text);
    const LhShellPlace from = { kept, kept + strlen(kept), text->line, text->column };
    const bool within = sh->within;
    bool ok;

    g_ptr_array_add(sh->kept, kept);
    sh->within = within || !text->lines;
    ok = run_elsewhere(sh, &from, words, first);
    sh->within = within;
    return ok;
}

static bool
is_any(const char *word, const char *const *words)
{
    return g_strv_contains(words, word);
}

static bool
tell(LhShell *sh, const GPtrArray *words)
{
    const LhShellOpen open = { sh->mode == LH_SHELL_MAY_RUN ? sh->open_line : 0,
                               sh->open_variable };

    g_autoptr(GPtrArray) plain = g_ptr_array_new_with_free_func(lh_shell_word_free);

    for (guint i = 0; i < words->len; i++) {
        const LhShellWord *word = g_ptr_array_index(words, i);
        bool whole;

        g_ptr_array_add(plain, lh_shell_word_plain(sh, word, &whole));
        if (!whole)
            return lh_shell_fail(sh, word->line, word->column, "a word has more than %d bytes",
                                 LH_SHELL_WORD_BYTES_MAX);
    }
    return sh->asked->call(sh->asked->data, plain, open, sh->error);
}

static void
run_test(LhShell *sh, GPtrArray *words)
{
    const LhShellWord *first = g_ptr_array_index(words, 0);
    const guint line = first->line;

    if (words->len > 1 && strcmp(lh_shell_text_at(words, words->len - 1), "]") == 0)
        g_ptr_array_remove_index(words, words->len - 1);
    g_ptr_array_remove_index(words, 0);
    lh_shell_test(sh, words, line);
}

/* Runs it under its own undecided condition, if it has one. */
static bool
run_as_open(LhShell *sh, const LhShellText *text, const GPtrArray *words, guint first)
{
    const LhShellMode before = sh->mode;
    const LhShellOpen open = { sh->open_line, sh->open_variable };
    bool ok;

    if (text->open.line != 0) {
        sh->mode = LH_SHELL_MAY_RUN;
        sh->open_line = text->open.line;
        sh->open_variable = text->open.variable;
    }
    ok = run_text(sh, text, words, first);
    sh->mode = before;
    sh->open_line = open.line;
    sh->open_variable = open.variable;
    return ok;
}

static bool
run_eval(LhShell *sh, const GPtrArray *words)
{
    const LhShellWord *word = g_ptr_array_index(words, 0);
    g_autoptr(GString) text = g_string_new(NULL);

    for (guint i = 1; i < words->len; i++) {
        g_autofree char *marked = lh_shell_marked(sh, g_ptr_array_index(words, i));

        g_string_append_printf(text, "%s ", marked);
    }
    return run_as_open(
        sh, &(LhShellText){ .text = text->str, .line = word->line, .column = word->column },
        sh->arguments, 0);
}

/* Runs a script within a command; its "exit" ends only itself. */
static bool
run_inner(LhShell *sh, GPtrArray *words, const LhShellInner *inner)
{
    g_autoptr(GPtrArray) own = g_ptr_array_new();
    const bool ended = sh->ended;
    bool ok;

    for (guint i = 0; i < inner->own; i++)
        g_ptr_array_add(own, g_ptr_array_index(words, i));
    if (own->len > 0 && !tell(sh, own))
        return false;
    ok = run_as_open(sh, inner->text, words, inner->first);
    if (!inner->within) {
        sh->ended = ended;
        sh->ended_line = 0;
    }
    return ok;
}

static void
set_text(LhShell *sh, const char *name, const char *text, const LhShellText *from)
{
    GPtrArray *value = g_ptr_array_new_with_free_func(lh_shell_word_free);

    g_ptr_array_add(value, lh_shell_word_new(text, from->line, from->column));
    lh_shell_set(sh, name, value, false);
}

/* "read -r A B": splits a line at blanks or at the characters of IFS; the last variable gets the
 * rest. With "-d ''" it gets the whole text. */
static void
run_read(LhShell *sh, const GPtrArray *words, const LhShellText *input)
{
    const LhShellVariable *between = lh_shell_variable(sh, "IFS");
    const LhShellWord *own =
        between != NULL && between->words->len > 0 ? g_ptr_array_index(between->words, 0) : NULL;
    const bool alone = /* "IFS=, read A B" applies to this command only */
        own != NULL && own->line == ((const LhShellWord *)g_ptr_array_index(words, 0))->line;
    g_autofree char *signs = g_strdup(own != NULL && own->text->len > 0 ? own->text->str : " \t");
    g_autofree char *text = input != NULL ? g_strstrip(g_strdup(input->text)) : NULL;
    char *at = text;
    bool all = false;
    guint i = 1;

    for (; lh_shell_text_at(words, i)[0] == '-'; i++) {
        all = g_str_has_suffix(lh_shell_text_at(words, i), "d");
        i += all ? 1 : 0;
    }
    if (text == NULL)
        return;
    if (!all)
        text[strcspn(text, "\n")] = '\0';
    for (; i < words->len; i++) {
        const bool last = i + 1 == words->len;
        const gsize length = last || all ? strlen(at) : strcspn(at, signs);
        g_autofree char *part = g_strndup(at, length);
        const char *name = lh_shell_text_at(words, i);

        if (name[0] != '\0' && name[lh_shell_name_length(name)] == '\0')
            set_text(sh, name, part, input);
        at += length + (at[length] != '\0' ? 1 : 0);
    }
    if (alone)
        g_hash_table_remove(sh->variables, "IFS");
}

/* Runs a command with its words, unless it is skipped. */
static bool
run_words(LhShell *sh, GPtrArray *words, const LhShellText *input)
{
    static const char *const tests[] = { "[", "test", NULL };
    static const char *const unsure[] = { "grep", "which", "command", "cmp",        "diff",
                                          "type", "pgrep", "read",    "mountpoint", "getopts",
                                          "curl", "ping",  NULL };
    const LhShellWord *first = g_ptr_array_index(words, 0);
    const char *name = first->text->str;
    const LhShellPlace *body = g_hash_table_lookup(sh->functions, name);
    LhShellInner inner;
    bool ok;

    sh->status = LH_SHELL_YES;
    if (is_any(name, tests)) {
        run_test(sh, words);
        return true;
    }
    if (body != NULL) {
        const LhShellPlace from = *body;

        return run_elsewhere(sh, &from, words, 1);
    }
    if (strcmp(name, "eval") == 0)
        return run_eval(sh, words);
    if (strcmp(name, "exit") == 0 && sh->mode == LH_SHELL_RUNS) {
        const char *status = lh_shell_text_at(words, 1);

        sh->ended = true;
        sh->ended_line = status[0] != '\0' && strcmp(status, "0") != 0 ? first->line : 0;
    }
    if (strcmp(name, "false") == 0)
        sh->status = LH_SHELL_NO;
    if (strcmp(name, "shift") == 0 && sh->arguments->len > 0 && sh->mode == LH_SHELL_RUNS)
        g_ptr_array_remove_index(sh->arguments, 0);
    if (is_any(name, unsure))
        lh_shell_leave_open(sh, first->line, NULL);
    if (strcmp(name, "read") == 0)
        run_read(sh, words, input);
    if (!lh_shell_find_inner(sh, words, input, &inner))
        return tell(sh, words);
    ok = run_inner(sh, words, &inner);
    lh_shell_text_free(inner.text);
    return ok;
}

static bool
take_operand(LhShell *sh, GPtrArray *words, LhShellStreams *streams)
{
    static const char *const declare[] = {
        "export", "local", "declare", "typeset", "readonly", NULL
    };

    if (lh_shell_sees_redirection(sh)) {
        guint64 number = 0;
        const bool given = g_ascii_isdigit(lh_shell_look(sh));

        for (; g_ascii_isdigit(lh_shell_look(sh)); lh_shell_step(sh))
            number = MIN(10 * number + (guint64)(lh_shell_look(sh) - '0'), G_MAXUINT16);
        return lh_shell_take_redirection(sh,
                                         given                      ? number
                                         : lh_shell_look(sh) == '<' ? 0
                                                                    : 1,
                                         streams);
    }
    if (lh_shell_sees_assignment(sh) &&
        (words->len == 0 || is_any(lh_shell_text_at(words, 0), declare)))
        return lh_shell_run_assignment(sh);
    if (lh_shell_look(sh) == '(') {
        LhShellWord *word = lh_shell_word_new("", sh->here.line, sh->here.column);

        g_ptr_array_add(words, word);
        return lh_shell_take_parentheses(sh, word->text);
    }
    return lh_shell_take_word(sh, true, words);
}

/* Whether "()" follows the only word. */
static bool
sees_definition(LhShell *sh, const GPtrArray *words)
{
    return words->len == 1 && lh_shell_sees(sh, "()") &&
           lh_shell_name_length(lh_shell_text_at(words, 0)) > 0;
}

/* Reads the words of a command; none are left if it defines a function. */
static bool
take_simple(LhShell *sh, GPtrArray *words, LhShellStreams *streams)
{
    while (lh_shell_skip(sh, false), sh->here.at < sh->here.end) {
        if (sees_definition(sh, words)) {
            g_autofree char *name = g_strdup(lh_shell_text_at(words, 0));

            g_ptr_array_set_size(words, 0);
            lh_shell_step_over(sh, "()");
            return lh_shell_define(sh, name);
        }
        if (strchr("\n;|)", lh_shell_look(sh)) != NULL ||
            (lh_shell_look(sh) == '&' && !lh_shell_sees(sh, "&>")))
            break;
        if (!take_operand(sh, words, streams))
            return false;
    }
    return true;
}

bool
lh_shell_run_simple(LhShell *sh)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(lh_shell_word_free);
    LhShellStreams streams = { .input = g_steal_pointer(&sh->piped) };
    bool ok = take_simple(sh, words, &streams);

    if (ok && sh->mode != LH_SHELL_SKIPS && !sh->ended && words->len > 0) {
        LhShellText *output = lh_shell_output_of(sh, words, streams.input);

        if (output != NULL && streams.output != NULL)
            lh_shell_write(sh, streams.output, lh_shell_text_copy(output), streams.appends);
        ok = run_words(sh, words, streams.input);
        lh_shell_text_free(sh->piped);
        sh->piped = NULL;
        if (ok && lh_shell_look(sh) == '|' && !lh_shell_sees(sh, "||"))
            sh->piped = g_steal_pointer(&output);
        lh_shell_text_free(output);
    } else if (ok && words->len == 0 && sh->mode != LH_SHELL_SKIPS && !sh->ended) {
        sh->status = LH_SHELL_YES;
    }
    lh_shell_text_free(streams.input);
    g_free(streams.output);
    return ok;
}
