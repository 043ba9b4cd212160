/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells of numbers: short in a table, exact in CSV and JSON.
 */
#pragma once

#include "compare/error_bar.h"
#include "report/base/table.h"

#include <stdint.h>

/* A share as percent with one decimal; under a heading that says so. */
void lh_cell_percent(LhTable *table, double share);

/* The same of an error, with its sign. */
void lh_cell_error(LhTable *table, double share);

/* @text, which is taken over, for @value with its unit. */
void lh_cell_unit(LhTable *table, char *text, double value);

/* "1.5 ms". */
void lh_cell_time(LhTable *table, double seconds);

/* @bytes / @ranks as MiB; exact where @ranks is 1. */
void lh_cell_mib(LhTable *table, LhWide bytes, uint32_t ranks);

/* "1,500,000". */
void lh_cell_count(LhTable *table, LhWide count);

/* "0.27-0.39 s": the error bar of a time of @seconds, which is good to @error; with the unit that
 * fits. "-" without one. */
void lh_cell_error_bar(LhTable *table, double seconds, LhTimeError error);

/* The heading of peaks in @unit that are good to @error, 0 of what is exact: "MiB +-5 %". It is
 * written into @buffer (of LH_CELL_HEADING) and returned. */
#define LH_CELL_HEADING 32
const char *lh_cell_peak_heading(const char *unit, double error, char *buffer);

/* Texts written into @buffer (of LH_SHARE_TEXT), which is returned: "3.4 %"; "-3.4 %", "0.0 %", of
 * an error; "0.01234", four digits of a number. */
#define LH_SHARE_TEXT 64
const char *lh_share_text(double share, char *buffer);
const char *lh_share_signed(double share, char *buffer);
const char *lh_four_digits(double value, char *buffer);
