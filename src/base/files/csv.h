/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict reader of CSV tables (RFC 4180): a line of column names, then rows with as many cells.
 * Cells are UTF-8 without control characters except tabs and line breaks; cells with commas, quotes
 * or line breaks are entirely in double quotes. Lines end with LF or CR LF. Empty lines, and lines
 * that begin with '#', are skipped.
 *
 * Messages read "path:line: error: ...", or "path:line:column: error: ..." with the column of the
 * text, LH_ERROR_INPUT. A row that spans lines is reported at its first.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct _LhCsv LhCsv;

/* Parses @text (need not be NUL-terminated). @file appears in messages. Caller frees. */
LhCsv *lh_csv_parse(const char *file, const char *text, gsize length, GError **error);

/* Reads and parses a file of at most 64 MiB. Caller frees. */
LhCsv *lh_csv_load(const char *path, GError **error);

void lh_csv_free(LhCsv *csv);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhCsv, lh_csv_free)

/* SHA-256 of the text as read, in lower-case hex; borrowed. */
const char *lh_csv_sha256(const LhCsv *csv);

guint lh_csv_rows(const LhCsv *csv);
guint lh_csv_columns(const LhCsv *csv);
const char *lh_csv_column_name(const LhCsv *csv, guint column);

/* The index of the column @name; -1 if it is missing, and @error lists the columns. */
int lh_csv_column(const LhCsv *csv, const char *name, GError **error);

/* A cell, borrowed; and the line of its row in the file, from 1. */
const char *lh_csv_cell(const LhCsv *csv, guint row, guint column);
guint lh_csv_line(const LhCsv *csv, guint row);

/* Sets @error to "file:line: error: <message>" for a row. Returns false. */
bool lh_csv_error(const LhCsv *csv, guint row, GError **error, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

/* Reads a cell that is a finite number, "1.5", "-3", "2e6". False, with @error at the row, if it is
 * not. */
bool lh_csv_number(const LhCsv *csv, guint row, guint column, double *value, GError **error);
