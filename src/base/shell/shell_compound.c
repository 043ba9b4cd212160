/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compound commands: if, case, for, while, groups and conditions, and lists of commands.
 */
#include "base/shell/shell_private.h"

#include <fnmatch.h>
#include <string.h>

static bool run_command(LhShell *sh);

static bool
sees_any(const LhShell *sh, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (lh_shell_sees_word(sh, *words) ||
            (strcmp(*words, ";;") == 0 && lh_shell_sees(sh, ";;")) ||
            (strcmp(*words, ")") == 0 && lh_shell_look(sh) == ')'))
            return true;
    }
    return false;
}

/* "[[ ... ]]", whose words include "&&", "||", "(" and "<". */
static bool
run_brackets(LhShell *sh)
{
    static const char *const signs[] = { "&&", "||", "(", ")", "<", ">", NULL };
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(lh_shell_word_free);
    const LhShellPlace start = sh->here;

    lh_shell_step_over(sh, "[[");
    for (lh_shell_skip(sh, true); !lh_shell_sees_word(sh, "]]"); lh_shell_skip(sh, true)) {
        guint i = 0;

        if (sh->here.at >= sh->here.end)
            return lh_shell_fail(sh, start.line, start.column, "the \"[[\" has no end");
        while (signs[i] != NULL && !lh_shell_sees(sh, signs[i]))
            i++;
        if (signs[i] != NULL) {
            g_ptr_array_add(words, lh_shell_word_new(signs[i], sh->here.line, sh->here.column));
            lh_shell_step_over(sh, signs[i]);
        } else if (lh_shell_ends_word(lh_shell_look(sh))) {
            lh_shell_step(sh);
        } else if (!lh_shell_take_word(sh, false, words)) {
            return false;
        }
    }
    lh_shell_step_over(sh, "]]");
    if (sh->mode != LH_SHELL_SKIPS)
        lh_shell_test(sh, words, start.line);
    return true;
}

/* "((...))". */
static bool
run_arithmetic(LhShell *sh)
{
    const LhShellPlace start = sh->here;
    g_autoptr(GString) text = g_string_new(NULL);
    g_autofree char *inner = NULL;
    const char *unknown = "";
    gint64 value;

    if (!lh_shell_take_parentheses(sh, text))
        return false;
    inner = g_strndup(text->str + 2, text->len - MIN(text->len, 4));
    if (sh->mode == LH_SHELL_SKIPS)
        return true;
    if (lh_shell_arithmetic(sh, inner, &value, &unknown))
        sh->status = value != 0 ? LH_SHELL_YES : LH_SHELL_NO;
    else
        lh_shell_leave_open(sh, start.line, unknown);
    return true;
}

/* Skips @word, which must be next. */
static bool
expect(LhShell *sh, const char *word, const LhShellPlace *start, const char *what)
{
    lh_shell_skip(sh, true);
    while (lh_shell_look(sh) == ';' && !lh_shell_sees(sh, ";;")) {
        lh_shell_step(sh);
        lh_shell_skip(sh, true);
    }
    if (!lh_shell_sees_word(sh, word))
        return lh_shell_fail(sh, start->line, start->column, "\"%s\" has no \"%s\"", what, word);
    lh_shell_step_over(sh, word);
    return true;
}

/* Runs a branch, after "if" or "elif": *@left is the mode of what follows. */
static bool
run_branch(LhShell *sh, const LhShellPlace *start, LhShellMode *left)
{
    static const char *const thens[] = { "then", NULL };
    static const char *const ends[] = { "elif", "else", "fi", NULL };
    const LhShellMode before = lh_shell_enter_mode(sh, *left);
    LhShellMode taken;

    if (!lh_shell_run_list(sh, thens) || !expect(sh, "then", start, "if"))
        return false;
    taken = lh_shell_mode_after(sh, LH_SHELL_YES);
    *left = lh_shell_mode_after(sh, LH_SHELL_NO);
    if (sh->mode == LH_SHELL_MAY_RUN) {
        taken = taken == LH_SHELL_RUNS ? LH_SHELL_MAY_RUN : taken;
        *left = *left == LH_SHELL_RUNS ? LH_SHELL_MAY_RUN : *left;
    }
    lh_shell_enter_mode(sh, taken);
    if (!lh_shell_run_list(sh, ends))
        return false;
    sh->mode = before;
    return true;
}

static bool
run_if(LhShell *sh)
{
    static const char *const ends[] = { "fi", NULL };
    const LhShellPlace start = sh->here;
    const LhShellMode before = sh->mode;
    const guint line = sh->open_line;
    const char *variable = sh->open_variable;
    LhShellMode left = sh->mode;

    lh_shell_step_over(sh, "if");
    for (;;) {
        if (!run_branch(sh, &start, &left))
            return false;
        if (!lh_shell_sees_word(sh, "elif"))
            break;
        lh_shell_step_over(sh, "elif");
    }
    if (lh_shell_sees_word(sh, "else")) {
        lh_shell_step_over(sh, "else");
        lh_shell_enter_mode(sh, left);
        if (!lh_shell_run_list(sh, ends))
            return false;
    }
    sh->mode = before;
    sh->open_line = line;
    sh->open_variable = variable;
    sh->status = LH_SHELL_YES;
    return expect(sh, "fi", &start, "if");
}

/* Reads the patterns up to ")"; decides whether one matches @word. */
static bool
take_patterns(LhShell *sh, const LhShellWord *word, const LhShellPlace *start, LhShellStatus *fits)
{
    *fits = LH_SHELL_NO;
    lh_shell_skip(sh, true);
    if (lh_shell_look(sh) == '(')
        lh_shell_step(sh);
    for (lh_shell_skip(sh, false); lh_shell_look(sh) != ')'; lh_shell_skip(sh, false)) {
        g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(lh_shell_word_free);

        if (lh_shell_look(sh) == '|') {
            lh_shell_step(sh);
            continue;
        }
        if (sh->here.at >= sh->here.end || lh_shell_ends_word(lh_shell_look(sh)))
            return lh_shell_fail(sh, start->line, start->column, "\"case\" has no \"esac\"");
        if (!lh_shell_take_word(sh, false, words))
            return false;
        if (word->unknown != NULL)
            *fits = LH_SHELL_OPEN;
        else if (fnmatch(lh_shell_text_at(words, 0), word->text->str, 0) == 0)
            *fits = LH_SHELL_YES;
    }
    lh_shell_step(sh);
    return true;
}

static bool
run_cases(LhShell *sh, const LhShellWord *word, const LhShellPlace *start)
{
    static const char *const ends[] = { ";;", "esac", NULL };
    const LhShellMode before = sh->mode;
    bool found = before == LH_SHELL_SKIPS;

    for (lh_shell_skip(sh, true); !lh_shell_sees_word(sh, "esac"); lh_shell_skip(sh, true)) {
        LhShellStatus fits;

        if (!take_patterns(sh, word, start, &fits))
            return false;
        sh->status = fits;
        sh->status_line = start->line;
        sh->status_variable = g_intern_string(word->unknown != NULL ? word->unknown : "");
        lh_shell_enter_mode(sh, found ? LH_SHELL_SKIPS : lh_shell_mode_after(sh, LH_SHELL_YES));
        found = found || fits == LH_SHELL_YES;
        if (!lh_shell_run_list(sh, ends))
            return false;
        sh->mode = before;
        while (lh_shell_look(sh) == ';')
            lh_shell_step(sh);
    }
    lh_shell_step_over(sh, "esac");
    return true;
}

static bool
run_case(LhShell *sh)
{
    const LhShellPlace start = sh->here;
    const guint line = sh->open_line;
    const char *variable = sh->open_variable;
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(lh_shell_word_free);
    bool ok;

    lh_shell_step_over(sh, "case");
    lh_shell_skip(sh, false);
    if (!lh_shell_take_word(sh, false, words) || !expect(sh, "in", &start, "case"))
        return false;
    ok = run_cases(sh, g_ptr_array_index(words, 0), &start);
    sh->open_line = line;
    sh->open_variable = variable;
    sh->status = LH_SHELL_YES;
    return ok;
}

/* Runs a loop's body once at most. run_times() calls it for each value of the variable. */
static bool
run_body(LhShell *sh, const LhShellPlace *start, LhShellMode mode)
{
    static const char *const ends[] = { "done", NULL };
    const LhShellMode before = lh_shell_enter_mode(sh, mode);
    bool ok = lh_shell_run_list(sh, ends);

    sh->mode = before;
    return ok && expect(sh, "done", start, "do");
}

static bool
run_times(LhShell *sh, const char *name, GPtrArray *values, const LhShellPlace *start)
{
    const LhShellVariable *given = lh_shell_set_variable(sh, name);
    const guint times = given != NULL && given->given ? 1 : values->len;
    const LhShellPlace body = sh->here;

    if (times == 0 || sh->mode == LH_SHELL_SKIPS)
        return run_body(sh, start, LH_SHELL_SKIPS);
    for (guint i = 0; i < times; i++) {
        if (i < values->len) {
            GPtrArray *words = g_ptr_array_new_with_free_func(lh_shell_word_free);

            g_ptr_array_add(words, lh_shell_word_copy(g_ptr_array_index(values, i)));
            lh_shell_set(sh, name, words, false);
        }
        sh->here = body;
        sh->status_line = start->line;
        sh->status_variable = g_intern_string(name);
        if (!run_body(sh, start, times > 1 ? LH_SHELL_MAY_RUN : sh->mode))
            return false;
    }
    return true;
}

static bool
run_for(LhShell *sh)
{
    const LhShellPlace start = sh->here;
    g_autoptr(GPtrArray) values = g_ptr_array_new_with_free_func(lh_shell_word_free);
    g_autofree char *name = NULL;
    gsize length;

    lh_shell_step_over(sh, "for");
    lh_shell_skip(sh, false);
    if (lh_shell_look(sh) == '(') { /* for ((...)) */
        g_autoptr(GString) text = g_string_new(NULL);

        return lh_shell_take_parentheses(sh, text) && expect(sh, "do", &start, "for") &&
               (lh_shell_leave_open(sh, start.line, NULL),
                run_body(sh, &start, lh_shell_mode_after(sh, LH_SHELL_YES)));
    }
    length = lh_shell_name_length(sh->here.at);
    name = g_strndup(sh->here.at, length);
    lh_shell_step_over(sh, name);
    lh_shell_skip(sh, true);
    if (lh_shell_sees_word(sh, "in")) {
        lh_shell_step_over(sh, "in");
        for (lh_shell_skip(sh, false); !lh_shell_ends_word(lh_shell_look(sh));
             lh_shell_skip(sh, false)) {
            if (!lh_shell_take_word(sh, true, values))
                return false;
        }
    }
    return expect(sh, "do", &start, "for") && run_times(sh, name, values, &start);
}

static bool
run_while(LhShell *sh)
{
    static const char *const dos[] = { "do", NULL };
    const LhShellPlace start = sh->here;
    const bool until = lh_shell_sees_word(sh, "until");
    LhShellMode mode;

    lh_shell_step_over(sh, until ? "until" : "while");
    if (!lh_shell_run_list(sh, dos) || !expect(sh, "do", &start, "while"))
        return false;
    mode = lh_shell_mode_after(sh, until ? LH_SHELL_NO : LH_SHELL_YES);
    return run_body(sh, &start, mode);
}

/* Runs "(...)" or "{ ...; }". */
static bool
run_group(LhShell *sh, const char *end)
{
    const char *const ends[] = { end, NULL };

    lh_shell_step(sh);
    if (!lh_shell_run_list(sh, ends))
        return false;
    if (lh_shell_look(sh) == end[0])
        lh_shell_step(sh);
    return true;
}

static bool
run_function(LhShell *sh)
{
    g_autofree char *name = NULL;

    lh_shell_step_over(sh, "function");
    lh_shell_skip(sh, false);
    name = g_strndup(sh->here.at, lh_shell_name_length(sh->here.at));
    lh_shell_step_over(sh, name);
    lh_shell_skip(sh, false);
    if (lh_shell_sees(sh, "()"))
        lh_shell_step_over(sh, "()");
    return lh_shell_define(sh, name);
}

static bool
run_negated(LhShell *sh)
{
    lh_shell_step(sh);
    lh_shell_skip(sh, false);
    if (!run_command(sh))
        return false;
    if (sh->status != LH_SHELL_OPEN)
        sh->status = sh->status == LH_SHELL_YES ? LH_SHELL_NO : LH_SHELL_YES;
    return true;
}

static bool
run_any(LhShell *sh)
{
    static const struct {
        const char *word;
        bool (*run)(LhShell *sh);
    } compounds[] = { { "if", run_if },       { "case", run_case },   { "for", run_for },
                      { "while", run_while }, { "until", run_while }, { "function", run_function },
                      { "!", run_negated },   { "[[", run_brackets } };

    for (guint i = 0; i < G_N_ELEMENTS(compounds); i++) {
        if (lh_shell_sees_word(sh, compounds[i].word))
            return compounds[i].run(sh);
    }
    if (lh_shell_sees(sh, "(("))
        return run_arithmetic(sh);
    if (lh_shell_look(sh) == '(')
        return run_group(sh, ")");
    if (lh_shell_sees_word(sh, "{"))
        return run_group(sh, "}");
    return lh_shell_run_simple(sh);
}

static bool
run_command(LhShell *sh)
{
    bool ok;

    if (sh->depth >= LH_SHELL_DEPTH_MAX)
        return lh_shell_fail(sh, sh->here.line, sh->here.column, "commands are nested too deeply");
    sh->depth++;
    ok = run_any(sh);
    sh->depth--;
    return ok;
}

bool
lh_shell_run_list(LhShell *sh, const char *const *ends)
{
    const LhShellMode before = sh->mode;
    const guint line = sh->open_line;
    const char *variable = sh->open_variable;

    for (lh_shell_skip(sh, true); sh->here.at < sh->here.end && !sees_any(sh, ends);
         lh_shell_skip(sh, true)) {
        const char *at = sh->here.at;

        if (lh_shell_sees(sh, "&&") || lh_shell_sees(sh, "||")) {
            const bool both = lh_shell_look(sh) == '&';

            lh_shell_step_over(sh, "&&");
            lh_shell_enter_mode(sh, lh_shell_mode_after(sh, both ? LH_SHELL_YES : LH_SHELL_NO));
            continue;
        }
        if (strchr(";&|)", lh_shell_look(sh)) != NULL) {
            lh_shell_step(sh);
            sh->mode = before;
            continue;
        }
        if (!run_command(sh))
            return false;
        if (sh->here.at == at)
            lh_shell_step(sh);
        lh_shell_skip(sh, false);
        if (!lh_shell_sees(sh, "&&") && !lh_shell_sees(sh, "||"))
            sh->mode = before;
    }
    sh->mode = before;
    sh->open_line = line;
    sh->open_variable = variable;
    return true;
}
