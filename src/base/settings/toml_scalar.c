/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grammar of numbers (TOML 1.0, "Integer" and "Float") and of dates and times (RFC 3339, as
 * restricted by TOML). Integers are signed 64-bit; larger ones are rejected, as TOML requires.
 */
#include "base/settings/toml_scalar.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>

/* ---- numbers ---- */

static bool
is_digit_of(char c, unsigned base)
{
    const int digit = g_ascii_xdigit_value(c);

    return digit >= 0 && (unsigned)digit < base;
}

/* Reads digits with single underscores between them; appends the digits. */
static bool
take_digits(const char **at, unsigned base, GString *out)
{
    if (!is_digit_of(**at, base))
        return false;
    for (;;) {
        while (is_digit_of(**at, base))
            g_string_append_c(out, *(*at)++);
        if (**at != '_')
            return true;
        if (!is_digit_of((*at)[1], base))
            return false;
        (*at)++;
    }
}

static const char *const too_large =
    "does not fit into 64 bits; allowed: -9223372036854775808 to 9223372036854775807";

/* Reads 0xff, 0o17, 0b11; @at is after the prefix. */
static char *
based_integer(const char *at, unsigned base, const char **reason)
{
    g_autoptr(GString) digits = g_string_new(NULL);
    guint64 number;

    if (!take_digits(&at, base, digits) || *at != '\0')
        return NULL;
    if (g_ascii_string_to_unsigned(digits->str, base, 0, G_MAXINT64, &number, NULL))
        return g_strdup_printf("%" G_GUINT64_FORMAT, number);
    *reason = too_large;
    return NULL;
}

/* Reads ".5" and "e-3" after the digits of a number, either or both; false if they are invalid. */
static bool
take_fraction(const char **at, GString *out)
{
    if (**at == '.') {
        g_string_append_c(out, *(*at)++);
        if (!take_digits(at, 10, out))
            return false;
    }
    if (**at == 'e' || **at == 'E') {
        g_string_append_c(out, *(*at)++);
        if (**at == '+' || **at == '-')
            g_string_append_c(out, *(*at)++);
        return take_digits(at, 10, out);
    }
    return true;
}

static char *
decimal_number(const char *word, const char **reason)
{
    const char *digits = word + (word[0] == '+' || word[0] == '-');
    const char *at = digits;
    g_autoptr(GString) text = g_string_new(word[0] == '-' ? "-" : "");
    gint64 number;
    bool whole;

    if (!take_digits(&at, 10, text))
        return NULL;
    whole = *at == '\0';
    if (!take_fraction(&at, text) || *at != '\0')
        return NULL;
    if (digits[0] == '0' && (g_ascii_isdigit(digits[1]) || digits[1] == '_')) {
        *reason =
            "begins with a zero; allowed: a number without it, or with the prefix 0x, 0o or 0b";
        return NULL;
    }
    if (whole && !g_ascii_string_to_signed(text->str, 10, G_MININT64, G_MAXINT64, &number, NULL)) {
        *reason = too_large;
        return NULL;
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static char *
number_of(const char *word, const char **reason)
{
    if (g_str_has_prefix(word, "0x"))
        return based_integer(word + strlen("0x"), 16, reason);
    if (g_str_has_prefix(word, "0o"))
        return based_integer(word + strlen("0o"), 8, reason);
    if (g_str_has_prefix(word, "0b"))
        return based_integer(word + strlen("0b"), 2, reason);
    return decimal_number(word, reason);
}

/* ---- dates and times ---- */

/* Reads a number with @digits digits, followed by @after if that is not NUL. */
static bool
take_part(const char **at, unsigned digits, char after, unsigned *value)
{
    *value = 0;
    for (unsigned i = 0; i < digits; i++, (*at)++) {
        if (!g_ascii_isdigit(**at))
            return false;
        *value = *value * 10 + (unsigned)g_ascii_digit_value(**at);
    }
    if (after == '\0')
        return true;
    if (**at != after)
        return false;
    (*at)++;
    return true;
}

static unsigned
days_of(unsigned year, unsigned month)
{
    static const unsigned days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month - 1] + (month == 2 && leap);
}

/* 1979-05-27 */
static bool
take_day(const char **at, bool *real)
{
    unsigned year, month, day;

    if (!take_part(at, 4, '-', &year) || !take_part(at, 2, '-', &month) ||
        !take_part(at, 2, '\0', &day))
        return false;
    *real = month >= 1 && month <= 12 && day >= 1 && day <= days_of(year, month);
    return true;
}

/* 07:32:00.5; a minute may have a leap second. */
static bool
take_clock(const char **at, bool *real)
{
    unsigned hour, minute, second;

    if (!take_part(at, 2, ':', &hour) || !take_part(at, 2, ':', &minute) ||
        !take_part(at, 2, '\0', &second))
        return false;
    *real = *real && hour <= 23 && minute <= 59 && second <= 60;
    if (**at != '.')
        return true;
    (*at)++;
    if (!g_ascii_isdigit(**at))
        return false;
    while (g_ascii_isdigit(**at))
        (*at)++;
    return true;
}

/* Z, +01:00, or nothing. */
static bool
take_zone(const char **at, bool *real)
{
    unsigned hour, minute;

    if (**at == 'Z' || **at == 'z') {
        (*at)++;
        return true;
    }
    if (**at != '+' && **at != '-')
        return true;
    (*at)++;
    if (!take_part(at, 2, ':', &hour) || !take_part(at, 2, '\0', &minute))
        return false;
    *real = *real && hour <= 23 && minute <= 59;
    return true;
}

/* Reads a date, a time, or both, and an optional zone. */
static bool
is_date(const char *word, const char **reason)
{
    const char *at = word;
    bool real = true;
    const bool day = take_day(&at, &real);

    if (!day) {
        at = word;
        real = true;
    }
    if (!day || *at == 'T' || *at == 't' || *at == ' ') {
        at += day;
        if (!take_clock(&at, &real) || (day && !take_zone(&at, &real)))
            return false;
    }
    if (*at != '\0')
        return false;
    if (!real)
        *reason = "is not in the calendar or on the clock; allowed: an existing date and time";
    return real;
}

char *
lh_toml_scalar(const char *word, const char **reason)
{
    static const char *const words[] = { "true", "false", "inf",  "nan", "+inf",
                                         "-inf", "+nan",  "-nan", NULL };

    *reason = NULL;
    if (g_strv_contains(words, word) || is_date(word, reason))
        return g_strdup(word);
    return *reason == NULL ? number_of(word, reason) : NULL;
}
