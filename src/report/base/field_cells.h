/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns and cells of a table made from a table of fields, so that CSV and JSON have the same
 * fields in the same order. A missing value is an empty cell.
 */
#pragma once

#include "base/json/field.h"
#include "report/base/table.h"

/* Adds a column for each field, before the first row. Fields of objects have no column, except
 * MEMBERS and ARRAYs of numbers and choices. Optional fields (IF_ANY) have one if they have a value
 * in
 * @of, a row of the table; NULL: none. */
void lh_field_columns(const LhField *fields, const void *of, LhTable *table);

/* Adds the cells of @of to the last row. */
void lh_field_cells(const LhField *fields, const void *of, LhTable *table);

/* Appends the names of the columns to @keys, and the texts of the cells to @texts (copies). */
void lh_field_keys(const LhField *fields, const void *of, GPtrArray *keys);
void lh_field_texts(const LhField *fields, const void *of, GPtrArray *texts);

/* Whether the cells of the field are texts rather than numbers, also where they are empty. */
bool lh_field_is_text(const LhField *field);
