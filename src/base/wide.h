/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 128-bit totals. Values of one op or one rank (bytes, flops, pairs, picoseconds) fit 64 bits:
 * programs that exceed this are rejected (program/program.h). Sums over ranks, links or programs
 * are LhWide, which holds 2^64 times as much, so such sums, and their products with a number of
 * ranks, are exact. Their text is exact, too.
 */
#pragma once

#include <stdint.h>

__extension__ typedef __int128 LhWide;

/* Enough for any text below. */
#define LH_WIDE_TEXT_SIZE 64

/* The functions below write @buffer (LH_WIDE_TEXT_SIZE) and return it. */

/* Decimal digits, with a sign if negative. */
char *lh_wide_text(LhWide value, char *buffer);

/*
 * @value / @divisor with @decimals decimal places (0 to 12), rounded half away from zero. @divisor
 * is positive and at most 2^80.
 */
char *lh_wide_quotient(LhWide value, LhWide divisor, int decimals, char *buffer);

/* An exact number of picoseconds as decimal seconds without trailing zeros, "0.0015". */
char *lh_wide_seconds(LhWide time_ps, char *buffer);
