/* SPDX-License-Identifier: Apache-2.0 */
/* Digits are written last first. */
#include "base/wide.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>

#define PS_DECIMALS 12
#define DIVISOR_BITS 80

__extension__ typedef unsigned __int128 Magnitude;

static Magnitude
magnitude_of(LhWide value)
{
    return value < 0 ? -(Magnitude)value : (Magnitude)value;
}

static Magnitude
power_of_ten(int exponent)
{
    Magnitude power = 1;

    for (; exponent > 0; exponent--)
        power *= 10;
    return power;
}

/* Takes the last digit off. Nearly all values fit 64 bits, which divide much faster. */
static char
take_digit(Magnitude *value)
{
    const uint64_t low = (uint64_t)*value;
    const unsigned digit = (unsigned)(low == *value ? low % 10 : *value % 10);

    *value = low == *value ? low / 10 : *value / 10;
    return (char)('0' + digit);
}

/* Writes @scaled / 10^decimals. */
static char *
write_fixed(bool negative, Magnitude scaled, int decimals, char *buffer)
{
    char *p = buffer + LH_WIDE_TEXT_SIZE - 1;
    size_t length;

    *p = '\0';
    for (int digit = 0; scaled > 0 || digit <= decimals; digit++) {
        if (digit == decimals && decimals > 0)
            *--p = '.';
        *--p = take_digit(&scaled);
    }
    if (negative)
        *--p = '-';
    length = strlen(p);
    memmove(buffer, p, length + 1);
    return buffer;
}

char *
lh_wide_text(LhWide value, char *buffer)
{
    return write_fixed(value < 0, magnitude_of(value), 0, buffer);
}

char *
lh_wide_quotient(LhWide value, LhWide divisor, int decimals, char *buffer)
{
    const Magnitude top = magnitude_of(value), bottom = (Magnitude)divisor;
    const Magnitude scale = power_of_ten(decimals);
    Magnitude scaled;

    g_assert(divisor > 0 && bottom >> DIVISOR_BITS <= 1);
    g_assert(decimals >= 0 && decimals <= PS_DECIMALS);
    /* The rest is below 2^80 and the scale below 2^40, so nothing here overflows. */
    scaled = top / bottom * scale + (top % bottom * scale + bottom / 2) / bottom;
    return write_fixed(value < 0 && scaled > 0, scaled, decimals, buffer);
}

char *
lh_wide_seconds(LhWide time_ps, char *buffer)
{
    char *end;

    write_fixed(time_ps < 0, magnitude_of(time_ps), PS_DECIMALS, buffer);
    end = buffer + strlen(buffer);
    while (end[-1] == '0')
        *--end = '\0';
    if (end[-1] == '.')
        end[-1] = '\0';
    return buffer;
}
