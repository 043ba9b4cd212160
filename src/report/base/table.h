/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text tables: one set of rows, printed for people, as CSV or as Markdown. A cell has a text for
 * people and, if that is rounded, an exact value for programs (CSV).
 */
#pragma once

#include "base/json/field.h"

#include <glib.h>
#include <stdbool.h>

typedef enum {
    LH_FORMAT_TABLE,
    LH_FORMAT_JSON,
    LH_FORMAT_CSV,
    LH_FORMAT_MD,
} LhFormat;

/* "table", "json", "csv", "md"; NULL-terminated. */
extern const char *const lh_format_names[];

typedef struct _LhTable LhTable;

LhTable *lh_table_new(void);
void lh_table_free(LhTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhTable, lh_table_free)

/*
 * Adds a column, before the first row. @key names it in CSV; @title and @unit are the two lines of
 * its heading (@unit may be NULL). Text columns are left-aligned, @number columns right-aligned.
 */
void lh_table_column(LhTable *table, const char *key, const char *title, const char *unit,
                     bool number);

/* Starts a row; cells are filled from the left, missing ones are empty. */
void lh_table_row(LhTable *table);
/* Adds a cell. @exact may be NULL: CSV then has @text as well. */
void lh_table_cell(LhTable *table, const char *text, const char *exact);
void lh_table_cell_printf(LhTable *table, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Adds a note to the row: printed in place of its empty cells, or after the last one; in CSV,
 * column "note". */
void lh_table_note(LhTable *table, const char *text);

/* Appends the table in @format, other than JSON. */
void lh_table_print(const LhTable *table, LhFormat format, GString *out);

/* Appends the table as HTML; it scrolls on its own if it is too wide. @caption is its title. */
void lh_table_html(const LhTable *table, const char *caption, GString *out);

/* Escapes the sentences of @out from byte @from on, which may contain file names, for @format. */
void lh_table_words(LhFormat format, GString *out, gsize from);

/* Appends the first cell of each row, one per line. */
void lh_table_names(const LhTable *table, GString *out);

/* Rows as structs of STRINGs written by @fields, which has a field for the key of every column, and
 * for "note" if there is one; NULL where the row has no such cell. The texts are the table's.
 * Caller unrefs. */
GPtrArray *lh_table_texts(const LhTable *table, const LhField *fields);
