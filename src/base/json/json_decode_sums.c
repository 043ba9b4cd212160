/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exact sums: integers of up to 128 bits, and times, which are picoseconds in memory and seconds in
 * a file. Numbers are read digit by digit: a double would round them.
 */
#include "base/json/json_private.h"

#include "base/wide.h"

#define PS_DECIMALS 12
#define EXPONENT_MAX                                                                               \
    1000000 /* with a larger one, what is not 0 is too fine or too large anyway                    \
             */

__extension__ typedef unsigned __int128 Magnitude;

#define WIDE_MAX ((LhWide)(~(Magnitude)0 >> 1))

typedef enum {
    SUM_OK,
    SUM_TOO_FINE,  /* more decimals than allowed */
    SUM_TOO_LARGE, /* beyond 128 bits */
} SumResult;

/* The text of the number at @item; NULL if it is not a number. The only access to the document
 * here. */
static const char *
number_text(const LhJsonDecoder *d, const cJSON *item)
{
    const char *text = lh_json_text_of(d, item);

    return g_ascii_isdigit(text[*text == '-' ? 1 : 0]) ? text : NULL;
}

/* Multiplies @value by 10^places; false if it does not fit. */
static bool
shift(Magnitude *value, gint64 places)
{
    for (; places > 0 && *value > 0; places--)
        if (__builtin_mul_overflow(*value, (Magnitude)10, value))
            return false;
    return true;
}

/*
 * Reads the digits at @text and advances it: they are @value times 10^@exponent. Trailing zeros are
 * counted until a digit follows, so that 1.000 is an integer. False on overflow.
 */
static bool
read_digits(const char **text, Magnitude *value, gint64 *exponent)
{
    bool fraction = false, fits = true;
    gint64 places = 0; /* after the last digit that is not 0 */

    *value = 0;
    *exponent = 0;
    for (; g_ascii_isdigit(**text) || **text == '.'; ++*text) {
        fraction = fraction || **text == '.';
        if (**text == '.')
            continue;
        *exponent -= fraction ? 1 : 0;
        places++;
        if (**text == '0')
            continue;
        fits = fits && shift(value, places) &&
               !__builtin_add_overflow(*value, (Magnitude)(**text - '0'), value);
        places = 0;
    }
    *exponent += places;
    return fits;
}

/* Sets @value to the magnitude of the number, which is in JSON syntax, times 10^decimals. */
static SumResult
read_sum(const char *text, int decimals, Magnitude *value)
{
    const char *p = *text == '-' ? text + 1 : text;
    gint64 exponent;
    const bool fits = read_digits(&p, value, &exponent);

    if (*p == 'e' || *p == 'E')
        exponent += CLAMP(g_ascii_strtoll(p + 1, NULL, 10), -EXPONENT_MAX, EXPONENT_MAX);
    exponent += decimals;
    if (fits && *value == 0)
        return SUM_OK;
    if (exponent < 0)
        return SUM_TOO_FINE;
    return fits && shift(value, exponent) ? SUM_OK : SUM_TOO_LARGE;
}

/* Range of the field's type, without the value that means none. */
static void
find_limits(const LhField *field, LhWide *low, LhWide *high)
{
    const int reserved = (field->flags & LH_FIELD_REQUIRED) == 0 ? 1 : 0;

    if (field->type == LH_FIELD_UINT) {
        *low = 0;
        *high = (LhWide)UINT64_MAX - reserved;
    } else if (field->type == LH_FIELD_INT) {
        *low = (LhWide)INT64_MIN + reserved;
        *high = INT64_MAX;
    } else {
        *low = -WIDE_MAX;
        *high = WIDE_MAX;
    }
}

static bool
fail_range(LhJsonDecoder *d, const cJSON *item, const LhField *field)
{
    const bool time = (field->flags & LH_FIELD_PICOSECONDS) != 0;
    g_autofree char *found = lh_json_describe_found(d, item);
    g_autofree char *bounds = lh_field_bounds(field);
    char first[LH_WIDE_TEXT_SIZE], last[LH_WIDE_TEXT_SIZE];
    LhWide low, high;

    find_limits(field, &low, &high);
    if (bounds == NULL)
        bounds = g_strdup_printf("%s to %s", (time ? lh_wide_seconds : lh_wide_text)(low, first),
                                 (time ? lh_wide_seconds : lh_wide_text)(high, last));
    return lh_json_fail_value(d, item, "\"%s\" is out of range: found %s; allowed: %s",
                              d->path->str, found, bounds);
}

static void
store(const LhField *field, LhWide sum, void *value)
{
    if (field->type == LH_FIELD_UINT)
        *(uint64_t *)value = (uint64_t)sum;
    else if (field->type == LH_FIELD_INT)
        *(int64_t *)value = (int64_t)sum;
    else
        *(LhWide *)value = sum;
}

/* Whether the field allows @sum. */
static bool
check_sum(LhJsonDecoder *d, const cJSON *item, const LhField *field, LhWide sum)
{
    const bool time = (field->flags & LH_FIELD_PICOSECONDS) != 0;
    LhWide low, high;

    find_limits(field, &low, &high);
    if (sum < low || sum > high)
        return fail_range(d, item, field);
    return lh_json_check_range(d, item, field, (double)sum / (time ? (double)LH_PS_PER_S : 1),
                               NULL);
}

bool
lh_json_decode_sum(LhJsonDecoder *d, const cJSON *item, const LhField *field, void *value)
{
    const bool time = (field->flags & LH_FIELD_PICOSECONDS) != 0;
    const char *text = number_text(d, item);
    Magnitude magnitude;
    SumResult result;
    LhWide sum;

    g_assert(field->type == LH_FIELD_UINT || field->type == LH_FIELD_INT ||
             field->type == LH_FIELD_WIDE);
    if (text == NULL)
        return lh_json_fail_field_type(d, item, field);
    result = read_sum(text, time ? PS_DECIMALS : 0, &magnitude);
    if (result == SUM_TOO_FINE)
        return lh_json_fail_field_type(d, item, field);
    if (result == SUM_TOO_LARGE || magnitude > (Magnitude)WIDE_MAX)
        return fail_range(d, item, field);
    sum = *text == '-' ? -(LhWide)magnitude : (LhWide)magnitude;
    if (!check_sum(d, item, field, sum))
        return false;
    store(field, sum, value);
    return true;
}
