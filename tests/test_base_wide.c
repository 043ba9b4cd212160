/* SPDX-License-Identifier: Apache-2.0 */
/* Decimal text of 128-bit totals, compared with arithmetic on decimal digits. */
#include "base/rng.h"
#include "base/wide.h"

#include "run_tests.h"

#include <string.h>

#define TRIALS 2000

/* A number as decimal digits, least significant first. */
typedef struct {
    unsigned char digits[64];
} Decimal;

static void
add_shifted(Decimal *number, unsigned factor, unsigned carry)
{
    for (unsigned i = 0; i < sizeof(number->digits); i++) {
        carry += number->digits[i] * factor;
        number->digits[i] = (unsigned char)(carry % 10);
        carry /= 10;
    }
    ck_assert_uint_eq(carry, 0);
}

/* The decimal digits of high 2^64 + low, bit by bit. */
static char *
slow_text(uint64_t high, uint64_t low, char *buffer)
{
    Decimal number = { { 0 } };
    int top = (int)sizeof(number.digits) - 1;
    char *p = buffer;

    for (int bit = 127; bit >= 0; bit--)
        add_shifted(&number, 2, (unsigned)((bit >= 64 ? high >> (bit - 64) : low >> bit) & 1));
    while (top > 0 && number.digits[top] == 0)
        top--;
    for (; top >= 0; top--)
        *p++ = (char)('0' + number.digits[top]);
    *p = '\0';
    return buffer;
}

START_TEST(wide_text_has_every_digit)
{
    char fast[LH_WIDE_TEXT_SIZE], slow[80];

    for (uint64_t trial = 0; trial < TRIALS; trial++) {
        const uint64_t high = lh_rng_bits(1, trial, 0) >> (1 + trial % 63);
        const uint64_t low = lh_rng_bits(1, trial, 1) >> (trial % 3 == 0 ? trial % 64 : 0);
        const LhWide value = ((LhWide)high << 64) + low;

        ck_assert_str_eq(lh_wide_text(value, fast), slow_text(high, low, slow));
        if (value == 0)
            continue;
        ck_assert_int_eq(lh_wide_text(-value, fast)[0], '-');
        ck_assert_str_eq(fast + 1, slow);
    }
    ck_assert_str_eq(lh_wide_text(0, fast), "0");
}
END_TEST

/* The value of a text times 10^decimals. */
static LhWide
read_scaled(const char *text, int decimals)
{
    const char *point = strchr(text, '.');
    LhWide value = 0;

    ck_assert_int_eq(decimals == 0 ? -1 : decimals, point == NULL ? -1 : (int)strlen(point + 1));
    for (const char *p = text; *p != '\0'; p++) {
        if (*p != '.')
            value = 10 * value + (*p - '0');
    }
    return value;
}

/* |text - value / divisor| is at most half a unit of the last digit. */
START_TEST(wide_quotient_is_the_nearest)
{
    char text[LH_WIDE_TEXT_SIZE];

    for (uint64_t trial = 0; trial < TRIALS; trial++) {
        const LhWide value = ((LhWide)(lh_rng_bits(2, trial, 0) >> (44 + trial % 20)) << 64) +
                             lh_rng_bits(2, trial, 1);
        const LhWide divisor = 1 + (lh_rng_bits(2, trial, 2) >> (14 + trial % 50));
        const int decimals = (int)(trial % 7);
        LhWide scale = 1, miss;

        for (int i = 0; i < decimals; i++)
            scale *= 10;
        miss = value * scale -
               read_scaled(lh_wide_quotient(value, divisor, decimals, text), decimals) * divisor;
        ck_assert(2 * (miss < 0 ? -miss : miss) <= divisor);
    }
    ck_assert_str_eq(lh_wide_quotient(1, 2, 0, text), "1");
    ck_assert_str_eq(lh_wide_quotient(-1, 2, 0, text), "-1");
    ck_assert_str_eq(lh_wide_quotient(-1, 300, 2, text), "0.00");
    ck_assert_str_eq(lh_wide_quotient(1999, 1000, 2, text), "2.00");
    ck_assert_str_eq(lh_wide_quotient(5, 100, 3, text), "0.050");
}
END_TEST

START_TEST(wide_seconds_are_exact)
{
    static const struct {
        int64_t time_ps;
        int64_t times; /* repetitions */
        const char *text;
    } rows[] = {
        { 0, 1, "0" },
        { 1, 1, "0.000000000001" },
        { 1500000000000, 1, "1.5" },
        { 10000000000000, 1, "10" },
        { 123456789012345, 1, "123.456789012345" },
        { INT64_MAX, 1, "9223372.036854775807" },
        { INT64_MAX, 1 << 20, "9671406556917.033396600832" },
        { INT64_MIN, 1, "-9223372.036854775808" },
        { -250000000000, 1, "-0.25" },
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char buffer[LH_WIDE_TEXT_SIZE];

        ck_assert_str_eq(lh_wide_seconds((LhWide)rows[i].time_ps * rows[i].times, buffer),
                         rows[i].text);
    }
}
END_TEST

LH_TEST_MAIN("base_wide", wide_text_has_every_digit, wide_quotient_is_the_nearest,
             wide_seconds_are_exact)
