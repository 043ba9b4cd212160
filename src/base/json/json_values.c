/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes scalar fields: numbers, booleans, strings, units and choices.
 */
#include "base/error.h"
#include "base/json/json_private.h"

#include <math.h>
#include <string.h>

static bool
is_number(const LhJsonDecoder *d, const cJSON *value)
{
    const char *text = lh_json_text_of(d, value);

    return g_ascii_isdigit(text[*text == '-' ? 1 : 0]);
}

bool
lh_json_fail_value(LhJsonDecoder *d, const cJSON *value, const char *format, ...)
{
    g_autofree char *message = NULL;
    va_list args;

    va_start(args, format);
    message = lh_error_text(format, args);
    va_end(args);
    return lh_json_fail_at(d->json->name, d->json->text, lh_json_place(value), d->error, "%s",
                           message);
}

char *
lh_json_describe_found(const LhJsonDecoder *d, const cJSON *item)
{
    const char *text = lh_json_text_of(d, item);

    if (cJSON_IsString(item)) {
        const char *string = item->valuestring;
        g_autofree char *shown = g_utf8_substring(string, 0, MIN(g_utf8_strlen(string, -1), 40));
        g_autofree char *escaped = g_strescape(shown, NULL);

        return g_strdup_printf("the string \"%s%s\"", escaped,
                               strlen(shown) < strlen(string) ? "..." : "");
    }
    if (is_number(d, item))
        return g_strdup_printf("the number %.*s", (int)strspn(text, "+-.0123456789eE"), text);
    if (*text == '{' || *text == '[')
        return g_strdup(*text == '{' ? "an object" : "an array");
    return g_strndup(text, strspn(text, "-truefalsnINity"));
}

bool
lh_json_fail_type(LhJsonDecoder *d, const cJSON *item, const char *expected)
{
    g_autofree char *found = lh_json_describe_found(d, item);

    return lh_json_fail_value(d, item, "\"%s\" must be %s; found %s", d->path->str, expected,
                              found);
}

bool
lh_json_fail_field_type(LhJsonDecoder *d, const cJSON *item, const LhField *field)
{
    g_autofree char *expected = lh_field_expected(field);

    return lh_json_fail_type(d, item, expected);
}

bool
lh_json_check_range(LhJsonDecoder *d, const cJSON *item, const LhField *field, double value,
                    const char *measure)
{
    g_autofree char *found = NULL;
    g_autofree char *allowed = NULL;

    if (lh_field_allows(field, value))
        return true;
    allowed = lh_field_bounds(field);
    if (measure != NULL)
        return lh_json_fail_value(d, item, "\"%s\" has %g %s; allowed: %s", d->path->str, value,
                                  measure, allowed);
    found = lh_json_describe_found(d, item);
    return lh_json_fail_value(d, item, "\"%s\" is out of range: found %s; allowed: %s",
                              d->path->str, found, allowed);
}

/* The exact integer value of a JSON number, as sign and magnitude. */
typedef enum {
    INTEGER_OK,
    INTEGER_FRACTION,  /* 1.5, 1e-3 */
    INTEGER_TOO_LARGE, /* beyond 64 bits */
} IntegerResult;

static bool
append_digit(uint64_t *value, unsigned digit)
{
    return g_uint64_checked_mul(value, *value, 10) && g_uint64_checked_add(value, *value, digit);
}

/*
 * `text` obeys the JSON grammar and has at most 60 characters. The number is digits * 10^exponent;
 * trailing zeros are counted in `zeros` until a digit follows, so that 1.000 and 1000e-3 are
 * integers.
 */
static IntegerResult
read_integer(const char *text, bool *negative, uint64_t *magnitude)
{
    gint64 exponent = 0;
    int zeros = 0;
    bool fraction = false;
    const char *p = text;
    bool fits = true;

    *magnitude = 0;
    *negative = *p == '-';
    if (*negative)
        p++;
    for (; g_ascii_isdigit(*p) || *p == '.'; p++) {
        if (*p == '.') {
            fraction = true;
            continue;
        }
        exponent -= fraction ? 1 : 0;
        zeros++;
        if (*p == '0')
            continue;
        for (; zeros > 1; zeros--)
            fits = fits && append_digit(magnitude, 0);
        fits = fits && append_digit(magnitude, (unsigned)(*p - '0'));
        zeros = 0;
    }
    if (*p == 'e' || *p == 'E')
        exponent += CLAMP(g_ascii_strtoll(p + 1, NULL, 10), -1000000, 1000000);
    exponent += zeros;
    if (fits && *magnitude == 0)
        return INTEGER_OK;
    if (exponent < 0)
        return INTEGER_FRACTION;
    for (; fits && exponent > 0; exponent--)
        fits = append_digit(magnitude, 0);
    return fits ? INTEGER_OK : INTEGER_TOO_LARGE;
}

static bool
fail_integer_range(LhJsonDecoder *d, const cJSON *item, const LhField *field, const char *widest)
{
    g_autofree char *found = lh_json_describe_found(d, item);
    g_autofree char *bounds = lh_field_bounds(field);

    return lh_json_fail_value(d, item, "\"%s\" is out of range: found %s; allowed: %s",
                              d->path->str, found, bounds != NULL ? bounds : widest);
}

/* Reads any 64-bit integer, signed or unsigned; @widest describes the range of the field's type. */
static bool
decode_integer(LhJsonDecoder *d, const cJSON *item, const LhField *field, const char *widest,
               bool *negative, uint64_t *magnitude)
{
    IntegerResult result = INTEGER_FRACTION;

    if (is_number(d, item))
        result = read_integer(lh_json_text_of(d, item), negative, magnitude);
    if (result == INTEGER_FRACTION)
        return lh_json_fail_field_type(d, item, field);
    return result == INTEGER_OK || fail_integer_range(d, item, field, widest);
}

bool
lh_json_decode_uint(LhJsonDecoder *d, const cJSON *item, const LhField *field, void *value)
{
    static const char widest[] = "0 to 18446744073709551615";
    bool negative = false;
    uint64_t magnitude = 0;

    if (!decode_integer(d, item, field, widest, &negative, &magnitude))
        return false;
    if (negative && magnitude > 0)
        return fail_integer_range(d, item, field, widest);
    if (!lh_json_check_range(d, item, field, (double)magnitude, NULL))
        return false;
    *(uint64_t *)value = magnitude;
    return true;
}

bool
lh_json_decode_int(LhJsonDecoder *d, const cJSON *item, const LhField *field, void *value)
{
    static const char widest[] = "-9223372036854775808 to 9223372036854775807";
    bool negative = false;
    uint64_t magnitude = 0;
    int64_t number;

    if (!decode_integer(d, item, field, widest, &negative, &magnitude))
        return false;
    if (magnitude > (uint64_t)INT64_MAX + (negative ? 1 : 0))
        return fail_integer_range(d, item, field, widest);
    number = negative && magnitude > 0 ? -(int64_t)(magnitude - 1) - 1 : (int64_t)magnitude;
    if (!lh_json_check_range(d, item, field, (double)number, NULL))
        return false;
    *(int64_t *)value = number;
    return true;
}

bool
lh_json_decode_double(LhJsonDecoder *d, const cJSON *item, const LhField *field, void *value)
{
    double number;

    if (!is_number(d, item))
        return lh_json_fail_field_type(d, item, field);
    number = g_ascii_strtod(lh_json_text_of(d, item), NULL);
    if (!lh_json_check_range(d, item, field, number, NULL))
        return false;
    *(double *)value = number;
    return true;
}

bool
lh_json_decode_bool(LhJsonDecoder *d, const cJSON *item, const LhField *field, void *value)
{
    if (!cJSON_IsBool(item))
        return lh_json_fail_field_type(d, item, field);
    *(bool *)value = cJSON_IsTrue(item);
    return true;
}

bool
lh_json_decode_string(LhJsonDecoder *d, const cJSON *item, const LhField *field, void *value)
{
    if (!cJSON_IsString(item))
        return lh_json_fail_field_type(d, item, field);
    if (!lh_json_check_range(d, item, field, (double)g_utf8_strlen(item->valuestring, -1),
                             "characters"))
        return false;
    *(char **)value = g_strdup(item->valuestring);
    return true;
}

bool
lh_json_decode_unit(LhJsonDecoder *d, const cJSON *item, const LhField *field, void *value)
{
    const bool plain_allowed = field->unit == LH_UNIT_COUNT || field->unit == LH_UNIT_BYTES;
    g_autoptr(GError) reason = NULL;
    union {
        uint64_t count;
        double rate;
        LhTime time_ps;
    } parsed;
    double number;

    if (plain_allowed && is_number(d, item))
        return lh_json_decode_uint(d, item, field, value);
    if (!cJSON_IsString(item))
        return lh_json_fail_field_type(d, item, field);
    if (!lh_unit_parse(item->valuestring, field->unit, &parsed, &reason))
        return lh_json_fail_value(d, item, "\"%s\": %s", d->path->str, reason->message);
    if (plain_allowed)
        number = (double)parsed.count;
    else if (field->unit == LH_UNIT_TIME)
        number = (double)parsed.time_ps / (double)LH_PS_PER_S;
    else
        number = parsed.rate;
    if (!lh_json_check_range(d, item, field, number, NULL))
        return false;
    memcpy(value, &parsed, sizeof(parsed));
    return true;
}

bool
lh_json_decode_choice(LhJsonDecoder *d, const cJSON *item, const LhField *field, void *value)
{
    g_autofree char *expected = NULL;
    g_autofree char *advice = NULL;
    const char *nearest;

    if (!cJSON_IsString(item))
        return lh_json_fail_field_type(d, item, field);
    for (int i = 0; field->choices[i] != NULL; i++) {
        if (strcmp(item->valuestring, field->choices[i]) == 0) {
            *(int *)value = i;
            return true;
        }
    }
    nearest = lh_nearest_word(item->valuestring, field->choices);
    expected = lh_field_expected(field);
    if (nearest != NULL)
        advice = g_strdup_printf("%s (did you mean \"%s\"?)", expected, nearest);
    return lh_json_fail_type(d, item, advice != NULL ? advice : expected);
}
