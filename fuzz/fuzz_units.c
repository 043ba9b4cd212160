/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers with units. What is read can be written and read again. It matches the pattern that
 * schemas publish; what matches is rejected only for its magnitude.
 */
#include "fuzz.h"

#include "base/units.h"

#include <string.h>

typedef union {
    uint64_t count;
    double rate;
    LhTime time_ps;
} Value;

static bool
is_whole(LhUnit unit)
{
    return unit == LH_UNIT_COUNT || unit == LH_UNIT_BYTES;
}

static double
number_of(LhUnit unit, Value value)
{
    if (is_whole(unit))
        return (double)value.count;
    return unit == LH_UNIT_TIME ? (double)value.time_ps : value.rate;
}

static char *
format(LhUnit unit, Value value)
{
    switch (unit) {
    case LH_UNIT_COUNT:
        return lh_format_count(value.count);
    case LH_UNIT_BYTES:
        return lh_format_bytes(value.count);
    case LH_UNIT_BANDWIDTH:
    case LH_UNIT_PORT:
        return lh_format_bandwidth(value.rate);
    case LH_UNIT_TIME:
        return lh_format_time(value.time_ps);
    case LH_UNIT_FLOPS:
        return lh_format_flops(value.rate);
    }
    g_assert_not_reached();
}

/*
 * Four significant digits survive. Exempt are numbers too large for plain notation, and sizes that
 * rounding left without a whole number of bytes.
 */
static void
check_round_trip(LhUnit unit, Value value)
{
    g_autofree char *text = format(unit, value);
    const double before = number_of(unit, value);
    double after;

    g_assert(g_str_is_ascii(text));
    if (unit == LH_UNIT_COUNT || before > 1e15 || strchr(text, 'e') != NULL)
        return;
    if (!lh_unit_parse(text, unit, &value, NULL)) {
        g_assert(unit == LH_UNIT_BYTES);
        return;
    }
    after = number_of(unit, value);
    g_assert(after >= before * 0.999 - 0.5 && after <= before * 1.001 + 0.5);
}

static void
check_double(double value)
{
    char buffer[G_ASCII_DTOSTR_BUF_SIZE];

    g_assert(g_ascii_strtod(lh_double_to_text(value, buffer), NULL) == value);
}

static bool
matches_pattern(LhUnit unit, const char *text)
{
    static GRegex *patterns[LH_UNIT_FLOPS + 1];

    if (patterns[unit] == NULL) {
        g_autofree char *pattern = lh_unit_pattern(unit);

        patterns[unit] = g_regex_new(pattern, G_REGEX_DOLLAR_ENDONLY, 0, NULL);
    }
    /* PCRE's $ also matches before a final line break; a schema's does not */
    return g_utf8_validate(text, -1, NULL) && !g_str_has_suffix(text, "\n") &&
           g_regex_match(patterns[unit], text, 0, NULL);
}

static void
check_unit(LhUnit unit, const char *text)
{
    g_autoptr(GError) error = NULL;
    Value value = { .count = 0 };
    bool ok = lh_unit_parse(text, unit, &value, &error);

    fuzz_check(ok, error, "\"");
    if (!ok) {
        g_assert(value.count == 0);
        g_assert(!matches_pattern(unit, text) || strstr(error->message, "too ") != NULL ||
                 strstr(error->message, "not a whole number") != NULL);
        return;
    }
    g_assert(number_of(unit, value) >= 0);
    g_assert(matches_pattern(unit, text));
    check_round_trip(unit, value);
    check_double(number_of(unit, value));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);

    for (int unit = 0; unit <= LH_UNIT_FLOPS; unit++)
        check_unit((LhUnit)unit, text);
    return 0;
}
