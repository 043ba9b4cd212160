/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions of a script: "[" and "[[".
 */
#include "base/shell/shell_private.h"

#include <fnmatch.h>
#include <string.h>

typedef struct {
    const GPtrArray *words;
    guint at;
    bool ok;
    const char *unknown; /* interned: variable that would decide it; NULL: decided */
} Test;

static const LhShellWord *
peek(const Test *t)
{
    return t->at < t->words->len ? g_ptr_array_index(t->words, t->at) : NULL;
}

static bool
peek_is(const Test *t, const char *one, const char *other)
{
    const LhShellWord *word = peek(t);

    return word != NULL &&
           (strcmp(word->text->str, one) == 0 || strcmp(word->text->str, other) == 0);
}

static LhShellStatus
open_for(Test *t, const LhShellWord *word)
{
    if (word != NULL && word->unknown != NULL && (t->unknown == NULL || t->unknown[0] == '\0'))
        t->unknown = g_intern_string(word->unknown);
    else if (t->unknown == NULL)
        t->unknown = "";
    return LH_SHELL_OPEN;
}

static LhShellStatus
status_of(bool yes)
{
    return yes ? LH_SHELL_YES : LH_SHELL_NO;
}

/* "a = b", "1 -lt 2". */
static LhShellStatus
ask_compare(Test *t, const LhShellWord *a, const char *sign, const LhShellWord *b)
{
    static const char *const numbers[] = { "-eq", "-ne", "-lt", "-le", "-gt", "-ge", NULL };
    gint64 x, y;

    if (a->unknown != NULL || b->unknown != NULL)
        return open_for(t, a->unknown != NULL ? a : b);
    if (strcmp(sign, "=") == 0 || strcmp(sign, "==") == 0 || strcmp(sign, "!=") == 0)
        return status_of((fnmatch(b->text->str, a->text->str, 0) == 0) == (sign[0] == '='));
    for (guint i = 0; numbers[i] != NULL; i++) {
        if (strcmp(sign, numbers[i]) != 0)
            continue;
        if (!g_ascii_string_to_signed(a->text->str, 10, G_MININT64, G_MAXINT64, &x, NULL) ||
            !g_ascii_string_to_signed(b->text->str, 10, G_MININT64, G_MAXINT64, &y, NULL))
            return open_for(t, NULL);
        return status_of(i == 0   ? x == y
                         : i == 1 ? x != y
                         : i == 2 ? x < y
                         : i == 3 ? x <= y
                         : i == 4 ? x > y
                                  : x >= y);
    }
    return open_for(t, NULL);
}

static LhShellStatus
ask_one(Test *t)
{
    const LhShellWord *first = peek(t), *second;

    if (first == NULL)
        return LH_SHELL_NO;
    t->at++;
    second = peek(t);
    if (second != NULL &&
        (strcmp(first->text->str, "-z") == 0 || strcmp(first->text->str, "-n") == 0)) {
        t->at++;
        if (second->unknown != NULL)
            return open_for(t, second);
        return status_of((second->text->len == 0) == (first->text->str[1] == 'z'));
    }
    if (second != NULL && first->text->str[0] == '-' && first->text->len == 2 &&
        strchr("fdexsrwLhpvbcgkOGNSut", first->text->str[1]) != NULL) {
        t->at++;
        return open_for(t, second->unknown != NULL ? second : NULL);
    }
    if (second != NULL && !peek_is(t, "-a", "&&") && !peek_is(t, "-o", "||") &&
        t->at + 1 < t->words->len && !peek_is(t, ")", ")")) {
        const LhShellWord *third = g_ptr_array_index(t->words, t->at + 1);

        t->at += 2;
        return ask_compare(t, first, second->text->str, third);
    }
    return first->unknown != NULL ? open_for(t, first) : status_of(first->text->len > 0);
}

static LhShellStatus
join(LhShellStatus a, LhShellStatus b, LhShellStatus decisive)
{
    if (a == decisive || b == decisive)
        return decisive;
    return a == LH_SHELL_OPEN || b == LH_SHELL_OPEN ? LH_SHELL_OPEN : a;
}

static LhShellStatus ask_any(Test *t, unsigned depth);

static LhShellStatus
ask_not(Test *t, unsigned depth)
{
    bool negated = false;
    LhShellStatus status;

    for (; peek_is(t, "!", "!"); t->at++)
        negated = !negated;
    if (peek_is(t, "(", "(") && depth < LH_SHELL_DEPTH_MAX) {
        t->at++;
        status = ask_any(t, depth + 1);
        t->at += peek_is(t, ")", ")") ? 1 : 0;
    } else {
        status = ask_one(t);
    }
    if (!negated || status == LH_SHELL_OPEN)
        return status;
    return status_of(status == LH_SHELL_NO);
}

static LhShellStatus
ask_any(Test *t, unsigned depth)
{
    LhShellStatus any = LH_SHELL_NO;
    bool more = true;

    while (more) {
        LhShellStatus all = ask_not(t, depth);

        for (; peek_is(t, "-a", "&&");) {
            t->at++;
            all = join(all, ask_not(t, depth), LH_SHELL_NO);
        }
        any = join(any, all, LH_SHELL_YES);
        more = peek_is(t, "-o", "||");
        t->at += more ? 1 : 0;
    }
    return any;
}

void
lh_shell_test(LhShell *sh, const GPtrArray *words, guint line)
{
    Test t = { .words = words };

    sh->status = ask_any(&t, 0);
    if (t.at < words->len)
        sh->status = LH_SHELL_OPEN;
    if (sh->status == LH_SHELL_OPEN)
        lh_shell_leave_open(sh, line, t.unknown);
}
