/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of a case and of a result, for machines. CSV has them as its columns and JSON as
 * members, from one list, always the same fields in the same order: what there is none of is an
 * empty cell in CSV and null in JSON.
 */
#pragma once

#include "base/json/json_writer.h"
#include "compare/compare.h"
#include "report/base/table.h"

typedef struct _LhRecord LhRecord;

LhRecord *lh_record_new(void);
void lh_record_free(LhRecord *values);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhRecord, lh_record_free)

/* Each adds one field; @key is static. Integers and seconds are exact. */
void lh_record_text(LhRecord *values, const char *key, const char *text);
void lh_record_integer(LhRecord *values, const char *key, LhWide value);
void lh_record_seconds(LhRecord *values, const char *key, LhWide time_ps);
void lh_record_real(LhRecord *values, const char *key, double value);
void lh_record_none(LhRecord *values, const char *key);

/* How many there are; makes those from the @first on empty. */
guint lh_record_count(const LhRecord *values);
void lh_record_blank(LhRecord *values, guint first);

/* Adds the structs of @field, an array of numbers and choices, of which @list (NULL: none) has
 * some: in CSV as text, "3:2;5:1.5"; in JSON as objects. Both are borrowed. */
void lh_record_list(LhRecord *values, const LhField *field, const GArray *list);

/* Adds the options that @p has set, as one field: as text in CSV, as an object in JSON. @p is
 * borrowed. Heads that are not those of @attention count as options. */
void lh_record_options(LhRecord *values, const char *key, const LhProgramParams *p,
                       const LhAttention *attention);

/* The keys of all fields; borrowed: the caller frees the array alone. */
const char **lh_record_keys(const LhRecord *values);
/* What CSV has of each field. Caller frees. */
char **lh_record_texts(const LhRecord *values);
/* Whether field @index is a text, and no number, also where it is empty. */
bool lh_record_is_text(const LhRecord *values, guint index);

/* Adds the fields to the open object. */
void lh_record_json(const LhRecord *values, LhJsonWriter *w);

/* Adds the fields to @table, as columns (before the first row) or as cells of the last row. */
void lh_record_columns(const LhRecord *values, LhTable *table);
void lh_record_cells(const LhRecord *values, LhTable *table);
