/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formatting of numbers.
 */
#pragma once

#include "base/units.h"

#define LH_TEXT_SIZE 48

#define LH_PS_PER_MS INT64_C(1000000000)
#define LH_MIB 1048576                       /* bytes */
#define LH_GIB ((double)(UINT64_C(1) << 30)) /* bytes */

/* A common unit and number of decimals for all times of a table. */
typedef struct {
    const char *unit; /* "us", "ms", "s" */
    LhTime unit_ps;
    LhTime quantum_ps; /* of the last decimal digit */
    int decimals;
} LhTimeScale;

/* Returns the scale that shows @longest_ps with four or five digits. */
LhTimeScale lh_text_scale(LhTime longest_ps);

/* Formats @quanta of the scale as a decimal number in @buffer (LH_TEXT_SIZE), which it returns. */
char *lh_text_scaled(LhTimeScale scale, int64_t quanta, char *buffer);

/*
 * Rounds parts[i] / divisor to whole quanta so that the rounded parts add up to the rounded sum:
 * printed parts of a time add up to the printed time. @count is at most 16.
 */
void lh_text_round_parts(LhTimeScale scale, const LhWide *parts, int count, uint32_t divisor,
                         int64_t *quanta, int64_t *sum_quanta);

/* Appends @value with seven digits and a space, as one number of a figure's data. */
void lh_text_append(GString *out, double value);

/* Formats "3.4 %", "12 %" in @buffer (LH_TEXT_SIZE), which it returns. */
char *lh_text_percent(double share, char *buffer);
