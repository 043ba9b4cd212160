/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates expressions: "$((...))", "((...))" and expr.
 */
#include "base/shell/shell_private.h"

#include <string.h>

typedef struct {
    const LhShell *sh;
    const char *at;
    const char *unknown; /* interned; NULL: everything is known */
    unsigned depth;
    bool ok;
} Sum;

static gint64 take_sum(Sum *s, unsigned level);

/* Binary operators, lowest precedence first; in a level, longer ones before their prefixes. */
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

/* Reads a variable, whose value must be a number. */
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

/* Reads "NAME", "$NAME", "${NAME}", "12", "(...)", "-x", "!x". */
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
