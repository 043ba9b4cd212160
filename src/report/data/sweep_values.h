/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sweep as fields for machines: CSV has a row for each schedule of each point, in the columns of
 * `compare`, and the point and what the sweep varies in front of them.
 */
#pragma once

#include "compare/sweep.h"
#include "report/base/table.h"
#include "report/data/result_json.h"

#define LH_SWEEP_SCHEMA "longhaul.sweep/1"

/* The fields of `compare`, and whether a row is told apart from the fastest one of its point. */
extern const LhSweepCells lh_sweep_cells;

/* Of longhaul.sweep/1. */
extern const LhField lh_sweep_fields[];

LhTable *lh_sweep_table(const LhSweep *sweep);
void lh_sweep_json(const LhSweep *sweep, const LhStamp *stamp, GString *out);

/* What @row, one of the point's, has in the column @key. */
const char *lh_sweep_cell(const LhSweep *sweep, char **row, const char *key);

/* The same as a number; NAN if the cell is empty. */
double lh_sweep_number(const LhSweep *sweep, char **row, const char *key);

/* The row of the point's fastest schedule that fits (0), or of one of the next; NULL: there is
 * none. */
char **lh_sweep_place(const LhSweep *sweep, const LhSweepPoint *point, guint place);

/* How long a row takes: a step, or a module of attention. In seconds. */
double lh_sweep_seconds(const LhSweep *sweep, char **row);

/* What the sweep calls value @index of axis @axis, for people. Caller frees. */
char *lh_sweep_value_text(const LhSweep *sweep, guint axis, const char *value);
