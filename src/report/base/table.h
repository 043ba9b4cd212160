/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of text: one set of rows, printed for people, as CSV or as Markdown. A cell has a text for
 * people and, where they differ, an exact value for machines (CSV).
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
 * Adds a column, before the first row. @key names it in CSV; @title and @unit are its two lines of
 * heading (@unit may be NULL). Columns of text are aligned left, of numbers right.
 */
void lh_table_column(LhTable *table, const char *key, const char *title, const char *unit,
                     bool number);

/* Starts a row; cells follow from the left. Cells that are not given are empty. */
void lh_table_row(LhTable *table);
/* @exact may be NULL: then CSV has @text too. */
void lh_table_cell(LhTable *table, const char *text, const char *exact);
void lh_table_cell_printf(LhTable *table, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* A remark on the row: printed in place of the empty cells, or after the last one; in CSV, column
 * "note". */
void lh_table_note(LhTable *table, const char *text);

/* Appends the table in @format, which is not JSON. */
void lh_table_print(const LhTable *table, LhFormat format, GString *out);

/* Appends the table as one of HTML, which scrolls by itself where it is too wide; @caption is what
 * it is a table of. */
void lh_table_html(const LhTable *table, const char *caption, GString *out);

/* Makes the sentences that @out has from byte @from on, and which names of files may be in, safe
 * for
 * @format. */
void lh_table_words(LhFormat format, GString *out, gsize from);

/* Appends the first cell of each row, one on a line. */
void lh_table_names(const LhTable *table, GString *out);

/* Each row as a struct that @fields write, all of them STRINGs, of which every column, and "note"
 * if there is one, has one under its key; NULL where the row has no such cell. The texts are the
 * table's. Caller unrefs. */
GPtrArray *lh_table_texts(const LhTable *table, const LhField *fields);
