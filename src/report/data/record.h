/*
 * The fields of a case and of a result, for machines. CSV has them as its columns and JSON as
 * members, from one list, always the same fields in the same order: what there is none of is an
 * empty cell in CSV and null in JSON.
 */
#pragma once

#include "base/json/json_writer.h"
#include "compare/compare.h"
#include "report/base/table.h"

typedef struct _LhValues LhValues;

LhValues *lh_values_new(void);
void lh_values_free(LhValues *values);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhValues, lh_values_free)

/* Each adds one field; @key is static. Integers and seconds are exact. */
void lh_values_text(LhValues *values, const char *key, const char *text);
void lh_values_integer(LhValues *values, const char *key, LhWide value);
void lh_values_seconds(LhValues *values, const char *key, LhWide time_ps);
void lh_values_real(LhValues *values, const char *key, double value);
void lh_values_none(LhValues *values, const char *key);

/* How many there are; makes those from the @first on empty. */
guint lh_values_count(const LhValues *values);
void lh_values_blank(LhValues *values, guint first);

/* Adds the structs of @field, an array of numbers and choices, of which @list (NULL: none) has
 * some: in CSV as text, "3:2;5:1.5"; in JSON as objects. Both are borrowed. */
void lh_values_list(LhValues *values, const LhField *field, const GArray *list);

/* Adds the options that @p has set, as one field: as text in CSV, as an object in JSON. @p is
 * borrowed. Heads that are not those of @attention count as options. */
void lh_values_options(LhValues *values, const char *key, const LhProgramParams *p,
                       const LhAttention *attention);

/* The keys of all fields; borrowed: the caller frees the array alone. */
const char **lh_values_keys(const LhValues *values);
/* What CSV has of each field. Caller frees. */
char **lh_values_texts(const LhValues *values);
/* Whether field @index is a text, and no number, also where it is empty. */
bool lh_values_is_text(const LhValues *values, guint index);

/* Adds the fields to the open object. */
void lh_values_json(const LhValues *values, LhJsonWriter *w);

/* Adds the fields to @table, as columns (before the first row) or as cells of the last row. */
void lh_values_columns(const LhValues *values, LhTable *table);
void lh_values_cells(const LhValues *values, LhTable *table);
