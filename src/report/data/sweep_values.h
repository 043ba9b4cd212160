/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of a sweep for programs: CSV has a row per point and schedule, with the columns of
 * `compare` after the point and the sweep's fields.
 */
#pragma once

#include "compare/sweep.h"
#include "report/base/table.h"
#include "report/data/result_json.h"

#define LH_SWEEP_SCHEMA "longhaul.sweep/1"

/* The fields of `compare`, and whether a row is tied with the fastest of its point. */
extern const LhSweepCells lh_sweep_cells;

/* Fields of longhaul.sweep/1. */
extern const LhField lh_sweep_fields[];

LhTable *lh_sweep_table(const LhSweep *sweep);
void lh_sweep_json(const LhSweep *sweep, const LhStamp *stamp, GString *out);

/* Cell of @row, a row of a point, in the column @key. */
const char *lh_sweep_cell(const LhSweep *sweep, char **row, const char *key);

/* The same as a number; NAN if the cell is empty. */
double lh_sweep_number(const LhSweep *sweep, char **row, const char *key);

/* Row of the point's @place-th fastest schedule that fits, from 0; NULL: none. */
char **lh_sweep_place(const LhSweep *sweep, const LhSweepPoint *point, guint place);

/* Time of a row in seconds: of a step, or of an attention module. */
double lh_sweep_seconds(const LhSweep *sweep, char **row);

/* Value @value of axis @axis, for people. Caller frees. */
char *lh_sweep_value_text(const LhSweep *sweep, guint axis, const char *value);
