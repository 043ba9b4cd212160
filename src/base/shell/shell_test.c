/*
 * Conditions of a script: arithmetic, and what "[" and "[[" ask. See the header.
 */
#include "base/shell/shell_private.h"

#include <fnmatch.h>
#include <string.h>

/* ---- arithmetic ---- */

typedef struct {
    const LhShell *sh;
    const char *at;
    const char *unknown; /* interned; NULL: all is known */
    unsigned depth;
    bool ok;
} Sum;

static gint64 take_sum(Sum *s, unsigned level);

/* Binary operators, the loosest first; longer ones of a level before those that they begin with. */
static const char *const levels[][5] = { { "||" },       { "&&" },
                                         { "==", "!=" }, { "<=", ">=", "<", ">" },
                                         { "+", "-" },   { "*", "/", "%" } };

static void
skip_spaces(Sum *s)
{
    while (g_ascii_isspace(*s->at))
        s->at++;
}

static gint64
apply(Sum *s, const char *sign, gint64 a, gint64 b)
{
    gint64 result = 0;
    bool over = false;

    if (strcmp(sign, "+") == 0)
        over = __builtin_add_overflow(a, b, &result);
    else if (strcmp(sign, "-") == 0)
        over = __builtin_sub_overflow(a, b, &result);
    else if (strcmp(sign, "*") == 0)
        over = __builtin_mul_overflow(a, b, &result);
    else if (sign[0] == '/' || sign[0] == '%')
        over = b == 0 || (a == G_MININT64 && b == -1);
    if (over) {
        s->ok = false;
        return 0;
    }
    switch (sign[0]) {
    case '/':
        return a / b;
    case '%':
        return a % b;
    case '|':
        return a != 0 || b != 0;
    case '&':
        return a != 0 && b != 0;
    case '=':
        return a == b;
    case '!':
        return a != b;
    case '<':
        return sign[1] == '=' ? a <= b : a < b;
    case '>':
        return sign[1] == '=' ? a >= b : a > b;
    default:
        return result;
    }
}

/* A variable: what it has must be a number. */
static gint64
take_name(Sum *s, gsize length)
{
    g_autofree char *name = g_strndup(s->at, length);
    const LhShellVariable *variable = lh_shell_variable(s->sh, name);
    const LhShellWord *word = variable != NULL && variable->words->len == 1
                                  ? g_ptr_array_index(variable->words, 0)
                                  : NULL;
    gint64 value = 0;

    s->at += length;
    if (word != NULL && word->unknown == NULL &&
        g_ascii_string_to_signed(word->text->str, 10, G_MININT64, G_MAXINT64, &value, NULL))
        return value;
    s->unknown = g_intern_string(word != NULL && word->unknown != NULL ? word->unknown : name);
    return 0;
}

/* "NAME", "$NAME", "${NAME}", "12", "(...)", "-x", "!x". */
static gint64
take_number(Sum *s)
{
    gint64 value = 0;
    gsize length;
    char *end;

    skip_spaces(s);
    if (*s->at == '(' || *s->at == '-' || *s->at == '!' || *s->at == '+') {
        const char sign = *s->at++;

        value = sign == '(' ? take_sum(s, 0) : take_number(s);
        skip_spaces(s);
        if (sign == '(' && *s->at++ != ')')
            s->ok = false;
        return sign == '-' && value != G_MININT64 ? -value : sign == '!' ? value == 0 : value;
    }
    if (g_ascii_isdigit(*s->at)) {
        value = g_ascii_strtoll(s->at, &end, 10);
        s->at = end;
        return value;
    }
    s->at += *s->at == '$' ? 1 : 0;
    if (*s->at == '{') {
        s->at++;
        length = lh_shell_name_length(s->at);
        value = take_name(s, length);
        s->ok = s->ok && length > 0 && *s->at == '}';
        s->at += *s->at == '}' ? 1 : 0;
        return value;
    }
    length = lh_shell_name_length(s->at);
    s->ok = s->ok && length > 0;
    return length > 0 ? take_name(s, length) : 0;
}

static gint64
take_sum(Sum *s, unsigned level) /* NOLINT(misc-no-recursion): its depth is bounded */
{
    gint64 value;
    bool more = true;

    if (level >= G_N_ELEMENTS(levels) || ++s->depth > 8 * LH_SHELL_DEPTH_MAX) {
        s->ok = s->ok && level >= G_N_ELEMENTS(levels);
        return s->ok ? take_number(s) : 0;
    }
    value = take_sum(s, level + 1);
    while (more && s->ok) {
        more = false;
        skip_spaces(s);
        for (guint i = 0; !more && levels[level][i] != NULL; i++) {
            const char *sign = levels[level][i];

            if (!g_str_has_prefix(s->at, sign))
                continue;
            s->at += strlen(sign);
            value = apply(s, sign, value, take_sum(s, level + 1));
            more = true;
        }
    }
    s->depth--;
    return value;
}

bool
lh_shell_arithmetic(const LhShell *sh, const char *text, gint64 *value, const char **unknown)
{
    Sum s = { .sh = sh, .at = text, .ok = true };

    if (strlen(text) > 1000)
        return false;
    *value = take_sum(&s, 0);
    skip_spaces(&s);
    *unknown = s.unknown != NULL ? s.unknown : "";
    return s.ok && s.unknown == NULL && *s.at == '\0';
}

/* ---- "[" ---- */

typedef struct {
    const GPtrArray *words;
    guint at;
    bool ok;
    const char *unknown; /* interned: what would decide it; NULL: nothing is open */
} Test;

void
lh_shell_leave_open(LhShell *sh, guint line, const char *variable)
{
    sh->status = LH_SHELL_OPEN;
    sh->status_line = line;
    sh->status_variable = g_intern_string(variable != NULL ? variable : "");
}

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
