/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expands "${NAME}" with its subscripts and operators.
 */
#include "base/shell/shell_private.h"

#include <fnmatch.h>
#include <string.h>

#define WORK_OF_BYTE 16 /* bytes compared per byte kept */

/* Parts of "${NAME...}". */
typedef struct {
    char *name;
    char subscript; /* '@', '*', 'i': an index, '\0': none */
    guint index;
    bool counts;            /* "${#NAME}" */
    const char *rest, *end; /* ":-value", up to "}" */
} Parameter;

/* The "}" that matches the "{" before @at, or NULL. */
static const char *
find_brace(const LhShell *sh, const char *at)
{
    unsigned depth = 1;

    for (; at < sh->here.end; at++) {
        if (*at == '\\' && at + 1 < sh->here.end)
            at++;
        else if (*at == '{')
            depth++;
        else if (*at == '}' && --depth == 0)
            return at;
    }
    return NULL;
}

static bool
read_parameter(const char *at, const char *end, Parameter *p)
{
    gsize length;
    char *behind;

    *p = (Parameter){ .end = end };
    p->counts = *at == '#' && at + 1 < end;
    at += p->counts ? 1 : 0;
    length = lh_shell_name_length(at);
    if (length == 0)
        length = MIN(strspn(at, "0123456789"), (gsize)(end - at));
    if (length == 0 || at + length > end)
        return false;
    p->name = g_strndup(at, length);
    at += length;
    if (at < end && *at == '[') {
        p->subscript = at[1] == '@' || at[1] == '*' ? at[1] : 'i';
        p->index = (guint)g_ascii_strtoull(at + 1, &behind, 10);
        at = p->subscript == 'i' ? behind : at + 2;
        if (at >= end || *at != ']')
            return false;
        at++;
    }
    p->rest = at;
    return true;
}

/* Applies "%.sh", "##*x" and the like: removes the shortest or longest part of the text that
 * matches the pattern. */
static void
trim(LhShellWord *word, const char *pattern, bool front, bool longest)
{
    const gsize length = word->text->len;

    for (gsize i = 0; i <= length; i++) {
        const gsize taken = longest ? length - i : i;
        g_autofree char *part =
            front ? g_strndup(word->text->str, taken) : g_strdup(word->text->str + length - taken);

        if (fnmatch(pattern, part, 0) != 0)
            continue;
        if (front)
            g_string_erase(word->text, 0, (gssize)taken);
        else
            g_string_truncate(word->text, length - taken);
        return;
    }
}

/* Applies operators that change text; false if it is another operator. The work of trying every
 * length is charged as bytes. */
static bool
add_changed(LhShell *sh, LhShellMaking *m, const Parameter *p, const LhShellWord *value,
            bool quoted)
{
    g_autofree char *rest = g_strndup(p->rest, (gsize)(p->end - p->rest));
    LhShellWord *copy;
    const bool twice = rest[0] != '\0' && rest[1] == rest[0];

    if (strchr("%#,^", rest[0]) == NULL || strpbrk(rest, "$`'\"\\") != NULL ||
        strchr(value->text->str, LH_SHELL_OPENS) != NULL ||
        ((rest[0] == ',' || rest[0] == '^') && rest[2] != '\0'))
        return false;
    sh->bytes += value->text->len * (value->text->len / WORK_OF_BYTE + strlen(rest));
    if (sh->bytes > LH_SHELL_BYTES_MAX)
        return false;
    copy = lh_shell_word_copy(value);
    if (rest[0] == '%' || rest[0] == '#') {
        trim(copy, rest + (twice ? 2 : 1), rest[0] == '#', twice);
    } else {
        for (gsize i = 0; i < (twice ? copy->text->len : MIN(copy->text->len, 1)); i++)
            copy->text->str[i] = rest[0] == ',' ? g_ascii_tolower(copy->text->str[i])
                                                : g_ascii_toupper(copy->text->str[i]);
    }
    lh_shell_add_value(sh, m, copy, quoted);
    lh_shell_word_free(copy);
    return true;
}

/* Reads the text between two places of the script as part of the word. */
static bool
take_range(LhShell *sh, LhShellMaking *m, const char *from, const char *to, bool quoted)
{
    const LhShellPlace here = sh->here;
    bool ok;

    if (sh->depth >= LH_SHELL_DEPTH_MAX)
        return lh_shell_fail(sh, here.line, here.column, "variables are nested too deeply");
    sh->depth++;
    sh->here.at = from;
    sh->here.end = to;
    ok = lh_shell_take_up_to(sh, m, quoted, NULL);
    sh->depth--;
    sh->here = here;
    return ok;
}

/* Applies "${NAME:-value}" and the other operators that choose; *@taken: whether it was one. */
static bool
take_choice(LhShell *sh, LhShellMaking *m, const Parameter *p, const LhShellWord *value,
            bool quoted, bool *taken)
{
    const char *rest = p->rest;
    const bool colon = *rest == ':' && rest + 1 < p->end && strchr("-=+?", rest[1]) != NULL;
    const char sign = colon ? rest[1] : *rest;
    const bool there = value != NULL && (!colon || value->text->len > 0);

    *taken = rest < p->end && strchr("-=+?", sign) != NULL;
    if (!*taken)
        return true;
    rest += colon ? 2 : 1;
    if (sign == '+')
        return !there || take_range(sh, m, rest, p->end, quoted);
    if (there) {
        lh_shell_add_value(sh, m, value, quoted);
        return true;
    }
    if (sign == '?')
        return true;
    if (sign == '=' && !g_ascii_isdigit(p->name[0])) {
        GPtrArray *words = g_ptr_array_new_with_free_func(lh_shell_word_free);
        LhShellMaking inner = { .words = words, .line = m->line, .column = m->column };

        if (!take_range(sh, &inner, rest, p->end, true)) {
            g_ptr_array_unref(words);
            return false;
        }
        lh_shell_begin_word(&inner, m->line, m->column);
        lh_shell_finish_word(&inner);
        lh_shell_set(sh, p->name, words, false);
    }
    return take_range(sh, m, rest, p->end, quoted);
}

static void
add_count(const LhShell *sh, LhShellMaking *m, const Parameter *p)
{
    const LhShellVariable *variable = lh_shell_variable(sh, p->name);
    const LhShellWord *value = lh_shell_value_of(sh, p->name, 0);
    g_autofree char *text =
        g_strdup_printf("%u", p->subscript != '\0' ? (variable != NULL ? variable->words->len : 0)
                                                   : (value != NULL ? (guint)value->text->len : 0));

    lh_shell_add_text(m, text);
}

static bool
take_parameter(LhShell *sh, LhShellMaking *m, const Parameter *p, const char *from, bool quoted)
{
    const LhShellVariable *variable = lh_shell_variable(sh, p->name);
    const LhShellWord *value = lh_shell_value_of(sh, p->name, p->subscript == 'i' ? p->index : 0);
    bool taken = false, ok;

    if (p->counts) {
        add_count(sh, m, p);
        return true;
    }
    if (p->rest == p->end && (p->subscript == '@' || p->subscript == '*')) {
        if (variable != NULL)
            lh_shell_add_list(sh, m, variable->words, quoted, p->subscript == '*');
        return true;
    }
    ok = take_choice(sh, m, p, value, quoted, &taken);
    if (!ok || taken)
        return ok;
    if (value != NULL && p->rest == p->end)
        lh_shell_add_value(sh, m, value, quoted);
    else if (value == NULL || !add_changed(sh, m, p, value, quoted))
        lh_shell_add_unknown(m, from, p->end + 1, value == NULL ? p->name : value->unknown);
    return true;
}

bool
lh_shell_take_braced(LhShell *sh, LhShellMaking *m, bool quoted)
{
    const char *from = sh->here.at, *end = find_brace(sh, from + 2);
    Parameter p;
    bool ok = true;

    if (end == NULL)
        return lh_shell_fail(sh, sh->here.line, sh->here.column, "the \"${\" has no end");
    if (read_parameter(from + 2, end, &p))
        ok = take_parameter(sh, m, &p, from, quoted);
    else
        lh_shell_add_unknown(m, from, end + 1, "");
    g_free(p.name);
    while (ok && sh->here.at <= end)
        lh_shell_step(sh);
    return ok;
}
