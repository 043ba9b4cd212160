/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict scanner of JSON text. It builds nothing: it checks the grammar, in which cJSON is lenient,
 * and words every such error.
 */
#include "base/json/json_private.h"

#include "base/error.h"

#include <math.h>
#include <string.h>

/* Longer than any number a file needs; keeps sums of exponents small. */
#define NUMBER_LENGTH_MAX 60

typedef struct {
    const char *name;
    const char *text; /* NUL-terminated: peeking one character ahead is always safe */
    gsize length;
    gsize at;
    unsigned depth;
    bool python; /* allow Python's numbers */
    GError **error;
} Scanner;

static bool scan_value(Scanner *s, const char *before);

/* Columns count characters, as editors do, from 1. */
static void
locate(const char *text, gsize offset, guint *line, guint *column)
{
    *line = 1;
    *column = 1;
    for (gsize i = 0; i < offset; i++) {
        if (text[i] == '\n') {
            ++*line;
            *column = 1;
        } else if (((unsigned char)text[i] & 0xc0) != 0x80) {
            ++*column;
        }
    }
}

bool
lh_json_fail_at(const char *name, const char *text, gsize offset, GError **error,
                const char *format, ...)
{
    g_autofree char *message = NULL;
    guint line, column;
    va_list args;

    va_start(args, format);
    message = lh_error_text(format, args);
    va_end(args);
    locate(text, offset, &line, &column);
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "%s:%u:%u: error: %s", name, line, column,
                message);
    return false;
}

static G_GNUC_PRINTF(3, 4) bool fail_at(Scanner *s, gsize offset, const char *format, ...)
{
    g_autofree char *message = NULL;
    va_list args;

    va_start(args, format);
    message = lh_error_text(format, args);
    va_end(args);
    return lh_json_fail_at(s->name, s->text, offset, s->error, "%s", message);
}

static bool
at_end(const Scanner *s)
{
    return s->at >= s->length;
}

/* The next byte after white space; NUL at the end. */
static char
next_byte(Scanner *s)
{
    s->at = lh_json_skip_space(s->text, s->at);
    return s->text[s->at];
}

/* Describes the text at the cursor, for "... but found %s". */
static char *
describe_next(const Scanner *s)
{
    const char *p = s->text + s->at;
    const unsigned char c = (unsigned char)*p;
    gsize word = 0;

    if (at_end(s))
        return g_strdup("the end of the file");
    while (word < 20 && (g_ascii_isalnum(p[word]) || p[word] == '_'))
        word++;
    if (word > 0)
        return g_strdup_printf("\"%.*s\"", (int)word, p);
    if (g_ascii_isprint((char)c))
        return g_strdup_printf("'%c'", c);
    if (c >= 0x80) {
        gunichar character = g_utf8_get_char_validated(p, (gssize)MIN(s->length - s->at, 6));

        if (character < 0x110000)
            return g_strdup_printf("the character U+%04X", character);
    }
    return g_strdup_printf("the byte 0x%02x", c);
}

static bool
fail_expected(Scanner *s, const char *expected)
{
    g_autofree char *found = describe_next(s);
    const char c = s->text[s->at];
    const char *hint = "";

    if (c == '\'')
        hint = " (JSON strings need double quotes)";
    else if (c == '/' || c == '#')
        hint = " (JSON has no comments)";
    else if ((c == '}' || c == ']') && g_str_has_suffix(expected, "','"))
        hint = " (JSON has no trailing comma)";
    return fail_at(s, s->at, "expected %s but found %s%s", expected, found, hint);
}

/* --- numbers --- */

static bool
scan_digits(Scanner *s, const char *after)
{
    g_autofree char *expected = NULL;

    if (g_ascii_isdigit(s->text[s->at])) {
        while (g_ascii_isdigit(s->text[s->at]))
            s->at++;
        return true;
    }
    expected = g_strdup_printf("a digit after %s", after);
    return fail_expected(s, expected);
}

static bool
scan_number(Scanner *s)
{
    const gsize start = s->at;

    if (s->text[s->at] == '-')
        s->at++;
    if (s->text[s->at] == '0' && g_ascii_isdigit(s->text[s->at + 1]))
        return fail_at(s, start, "a number must not start with a superfluous 0");
    if (!scan_digits(s, "'-'"))
        return false;
    if (s->text[s->at] == '.') {
        s->at++;
        if (!scan_digits(s, "the decimal point"))
            return false;
    }
    if (s->text[s->at] == 'e' || s->text[s->at] == 'E') {
        s->at++;
        if (s->text[s->at] == '+' || s->text[s->at] == '-')
            s->at++;
        if (!scan_digits(s, "the exponent sign"))
            return false;
    }
    if (s->at - start > NUMBER_LENGTH_MAX)
        return fail_at(s, start, "a number of more than %d characters", NUMBER_LENGTH_MAX);
    if (!isfinite(g_ascii_strtod(s->text + start, NULL)))
        return fail_at(s, start, "the number %.*s is too large", (int)(s->at - start),
                       s->text + start);
    return true;
}

/* --- strings --- */

static bool
scan_hex4(Scanner *s, guint *code)
{
    *code = 0;
    for (int i = 0; i < 4; i++, s->at++) {
        int digit = g_ascii_xdigit_value(s->text[s->at]);

        if (digit < 0)
            return fail_expected(s, "four hexadecimal digits after \\u");
        *code = *code * 16 + (guint)digit;
    }
    return true;
}

/* At the 'u' of \uXXXX. */
static bool
scan_unicode_escape(Scanner *s)
{
    const gsize start = s->at - 1;
    guint high;
    guint low;

    s->at++;
    if (!scan_hex4(s, &high))
        return false;
    if (high == 0)
        return fail_at(s, start, "\\u0000 is not allowed in a string");
    if (high < 0xd800 || high > 0xdfff)
        return true;
    if (high > 0xdbff || s->text[s->at] != '\\' || s->text[s->at + 1] != 'u')
        return fail_at(s, start, "half of a surrogate pair in a string");
    s->at += 2;
    if (!scan_hex4(s, &low))
        return false;
    if (low < 0xdc00 || low > 0xdfff)
        return fail_at(s, start, "half of a surrogate pair in a string");
    return true;
}

static bool
scan_escape(Scanner *s)
{
    s->at++;
    if (s->text[s->at] == 'u')
        return scan_unicode_escape(s);
    if (at_end(s) || s->text[s->at] == '\0' || strchr("\"\\/bfnrt", s->text[s->at]) == NULL)
        return fail_expected(s, "one of \" \\ / b f n r t u after a backslash");
    s->at++;
    return true;
}

/* One character that is neither quote nor escape. */
static bool
scan_character(Scanner *s, gsize start)
{
    const unsigned char c = (unsigned char)s->text[s->at];
    gunichar character;

    if (c == '\n' || c == '\r')
        return fail_at(s, start, "a string is not closed before the end of its line");
    if (c < 0x20)
        return fail_at(s, s->at, "control character 0x%02x in a string; write it as \\u%04x", c, c);
    if (c < 0x80) {
        s->at++;
        return true;
    }
    character = g_utf8_get_char_validated(s->text + s->at, (gssize)MIN(s->length - s->at, 6));
    if (character >= 0x110000)
        return fail_at(s, s->at, "the byte 0x%02x is not valid UTF-8", c);
    s->at = (gsize)(g_utf8_next_char(s->text + s->at) - s->text);
    return true;
}

static bool
scan_string(Scanner *s)
{
    const gsize start = s->at++;

    while (!at_end(s) && s->text[s->at] != '"') {
        if (s->text[s->at] == '\\' ? !scan_escape(s) : !scan_character(s, start))
            return false;
    }
    if (at_end(s))
        return fail_at(s, start, "a string is not closed before the end of the file");
    s->at++;
    return true;
}

/* --- values --- */

static bool
scan_member(Scanner *s, const char *expected)
{
    if (s->text[s->at] != '"')
        return fail_expected(s, expected);
    if (!scan_string(s))
        return false;
    if (next_byte(s) != ':')
        return fail_expected(s, "':' after the key");
    s->at++;
    return scan_value(s, "':'");
}

/* After the opening bracket. `closer` is '}' or ']'. */
static bool
scan_elements(Scanner *s, char closer)
{
    const bool object = closer == '}';
    const char *key = "a key in double quotes or '}'", *before = NULL;

    if (next_byte(s) == closer)
        return true;
    for (;;) {
        if (object ? !scan_member(s, key) : !scan_value(s, before))
            return false;
        if (next_byte(s) == closer)
            return true;
        if (s->text[s->at] != ',')
            return fail_expected(s, object ? "',' or '}'" : "',' or ']'");
        s->at++;
        next_byte(s);
        key = "a key in double quotes after ','";
        before = "','";
    }
}

static bool
scan_container(Scanner *s)
{
    const char closer = s->text[s->at] == '{' ? '}' : ']';

    if (s->depth == LH_JSON_DEPTH_MAX)
        return fail_at(s, s->at, "nested more than %d levels deep", LH_JSON_DEPTH_MAX);
    s->depth++;
    s->at++;
    if (!scan_elements(s, closer))
        return false;
    s->depth--;
    s->at++;
    return true;
}

/* Skips @word if it stands at the cursor and no letter or digit follows. */
static bool
skip_word(Scanner *s, const char *word)
{
    const gsize length = strlen(word);

    if (strncmp(s->text + s->at, word, length) != 0)
        return false;
    if (g_ascii_isalnum(s->text[s->at + length]) || s->text[s->at + length] == '_')
        return false;
    s->at += length;
    return true;
}

/* Python's spelling of floating-point values that JSON does not have. */
static bool
skip_python_number(Scanner *s)
{
    return skip_word(s, "Infinity") || skip_word(s, "-Infinity") || skip_word(s, "NaN");
}

/* `before` is the token that requires the value; NULL where ']' is allowed, too. */
static bool
scan_value(Scanner *s, const char *before)
{
    g_autofree char *expected = NULL;

    switch (next_byte(s)) {
    case '{':
    case '[':
        return scan_container(s);
    case '"':
        return scan_string(s);
    case '+':
        return fail_at(s, s->at, "a number must not start with '+'");
    case '.':
        return fail_at(s, s->at, "a number must have a digit before its decimal point");
    default:
        break;
    }
    if (s->python && skip_python_number(s))
        return true;
    if (s->text[s->at] == '-' || g_ascii_isdigit(s->text[s->at]))
        return scan_number(s);
    if (skip_word(s, "true") || skip_word(s, "false") || skip_word(s, "null"))
        return true;
    expected = before == NULL    ? g_strdup("a value or ']'")
               : *before == '\0' ? g_strdup("a JSON value")
                                 : g_strdup_printf("a value after %s", before);
    return fail_expected(s, expected);
}

bool
lh_json_scan(const char *name, const char *text, gsize length, bool python, GError **error)
{
    Scanner s = { .name = name, .text = text, .length = length, .python = python, .error = error };

    g_assert(length <= LH_JSON_BYTES_MAX);
    if (g_str_has_prefix(text, "\xef\xbb\xbf"))
        return fail_at(&s, 0,
                       "the file starts with a byte order mark; save it as UTF-8 without one");
    next_byte(&s);
    if (at_end(&s))
        return fail_at(&s, 0, "the file is empty");
    if (!scan_value(&s, ""))
        return false;
    next_byte(&s);
    if (!at_end(&s))
        return fail_expected(&s, "the end of the file");
    return true;
}
