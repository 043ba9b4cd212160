/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells of numbers: rounded in tables, exact in CSV and JSON.
 */
#pragma once

#include "compare/error_bar.h"
#include "report/base/table.h"

#include <stdint.h>

/* A share as percent with one decimal, without the sign %. */
void lh_cell_percent(LhTable *table, double share);

/* Likewise for an error, with its sign. */
void lh_cell_error(LhTable *table, double share);

/* @value with its unit as @text, which is taken over. */
void lh_cell_unit(LhTable *table, char *text, double value);

/* "1.5 ms". */
void lh_cell_time(LhTable *table, double seconds);

/* @bytes / @ranks in MiB; exact if @ranks is 1. */
void lh_cell_mib(LhTable *table, LhWide bytes, uint32_t ranks);

/* "1,500,000". */
void lh_cell_count(LhTable *table, LhWide count);

/* "0.27-0.39 s": error bar of a time of @seconds with the error @error, in a suitable unit. "-"
 * without one. */
void lh_cell_error_bar(LhTable *table, double seconds, LhTimeError error);

/* Heading of peaks in @unit with the error @error, 0 if exact: "MiB +-5 %". Written into @buffer
 * (of LH_CELL_HEADING), which is returned. */
#define LH_CELL_HEADING 32
const char *lh_cell_peak_heading(const char *unit, double error, char *buffer);

/* Formats a number in @buffer (of LH_SHARE_TEXT), which is returned: "3.4 %"; for an error "-3.4
 * %", "0.0 %"; "0.01234", four digits. */
#define LH_SHARE_TEXT 64
const char *lh_share_text(double share, char *buffer);
const char *lh_share_signed(double share, char *buffer);
const char *lh_four_digits(double value, char *buffer);
