/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Published tables and predictions, for people.
 */
#pragma once

#include "papers/reproduce.h"
#include "report/base/table.h"
#include "report/data/result_json.h"

/* A row per table, and per metric if a table has several. Caller frees. */
LhTable *lh_describe_reproduction(const GPtrArray *tables);

/* Appends how many judged values of all tables are within the error bars of their predictions. */
void lh_describe_error_bars(const GPtrArray *tables, GString *out);

/* Appends sentences before the values of one table: its description, caveat and constants. */
void lh_describe_reproduced(const LhReproducedTable *table, GString *out);

/* Values of a table, without those left out, one per row, with the options in which they differ.
 * Caller frees. */
LhTable *lh_reproduced_cases(const LhReproducedTable *table);

/* Appends the number of values left out and why, a line per reason; nothing without any. */
void lh_describe_left_out_cases(const LhReproducedTable *table, GString *out);
