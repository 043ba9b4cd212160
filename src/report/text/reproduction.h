/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Published tables beside predictions, for people.
 */
#pragma once

#include "papers/reproduce.h"
#include "report/base/table.h"
#include "report/data/result_json.h"

/* One line for each table, and for each of its metrics if there are several. Caller frees. */
LhTable *lh_describe_reproduction(const GPtrArray *tables);

/* How many judged numbers of all tables are within the error bars of their predictions. */
void lh_describe_error_bars(const GPtrArray *tables, GString *out);

/* The sentences before the numbers of one table: what it is, its caveat, its constants. */
void lh_describe_reproduced(const LhReproducedTable *table, GString *out);

/* Its numbers but those that are left out, one line for each, with the options in which they
 * differ. Caller frees. */
LhTable *lh_reproduced_cases(const LhReproducedTable *table);

/* How many are left out and why, a line for each reason; nothing if none is. */
void lh_describe_left_out_cases(const LhReproducedTable *table, GString *out);
