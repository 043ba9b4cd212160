/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Totals. What one op or one rank has (bytes, flops, pairs, picoseconds) fits 64 bits: programs for
 * which it would not are refused (program/program.h). What is summed over ranks, links or programs
 * is LhWide: 2^64 times as much fits, so such sums, and their products with a number of ranks, are
 * exact. Text of it is exact, too.
 */
#pragma once

#include <stdint.h>

__extension__ typedef __int128 LhWide;

/* Enough for any text below. */
#define LH_WIDE_TEXT_SIZE 64

/* The functions write @buffer (LH_WIDE_TEXT_SIZE) and return it. */

/* Decimal digits, with a sign if negative. */
char *lh_wide_text(LhWide value, char *buffer);

/*
 * @value / @divisor with @decimals digits behind the point (0 to 12), rounded half away from zero.
 * @divisor is positive and at most 2^80.
 */
char *lh_wide_quotient(LhWide value, LhWide divisor, int decimals, char *buffer);

/* An exact number of picoseconds as decimal seconds without zeros at the end, "0.0015". */
char *lh_wide_seconds(LhWide time_ps, char *buffer);
