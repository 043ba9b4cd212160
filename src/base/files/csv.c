/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of text. The text is read once, character by character: a cell is unquoted, or quoted from
 * its first character to its last.
 */
#include "base/files/csv.h"

#include "base/error.h"
#include "base/escape.h"
#include "base/files/file_input.h"
#include "base/text_reader.h"

#include <math.h>
#include <string.h>

#define FILE_BYTES_MAX (64u << 20)
#define COLUMNS_MAX 1024
#define ROWS_MAX (1u << 20)
#define LONE_RETURN "a carriage return that does not end a line; allowed: LF or CR LF"
#define SHOWN_MAX 60 /* characters of a cell that a message quotes */

struct _LhCsv {
    char *file;
    char *sha256;
    GPtrArray *columns; /* of char * */
    GPtrArray *rows;    /* of GPtrArray * of char *, one per column */
    GArray *lines;      /* of guint: line where each row begins */
};

/* @text on one line, truncated; caller frees. */
static char *
quote_cell(const char *text)
{
    g_autofree char *safe = lh_escaped_line(text);

    return g_utf8_substring(safe, 0, MIN(g_utf8_strlen(safe, -1), SHOWN_MAX));
}

static void
next_line(LhTextReader *r)
{
    r->line++;
    r->line_start = r->at;
}

/* Whether a line ends here: at LF, at CR LF, or at the end of the text. */
static bool
at_line_end(const LhTextReader *r)
{
    return r->at == r->end || *r->at == '\n' ||
           (*r->at == '\r' && r->at + 1 < r->end && r->at[1] == '\n');
}

static void
skip_line_end(LhTextReader *r)
{
    if (r->at == r->end)
        return;
    r->at += *r->at == '\r' ? 2 : 1;
    next_line(r);
}

/* Moves to the next line that has cells; false if there is none. */
static bool
find_row(LhTextReader *r)
{
    while (r->at < r->end) {
        if (*r->at != '#' && !at_line_end(r))
            return true;
        while (!at_line_end(r))
            r->at++;
        skip_line_end(r);
    }
    return false;
}

/* Control characters allowed in a cell: tabs, and in quotes line breaks. */
static bool
check_character(const LhTextReader *r)
{
    const unsigned char c = (unsigned char)*r->at;

    if ((c >= ' ' && c != 0x7f) || c == '\t' || c == '\n' || c == '\r')
        return true;
    return lh_text_fail(
        r, r->at,
        "the control character 0x%02x; a cell may contain tabs, and in quotes line breaks", c);
}

/* Reads a quoted cell, from its opening to its closing quote. */
static bool
read_quoted(LhTextReader *r, GString *cell)
{
    const LhTextReader opened = *r; /* for the message: the quote may be lines above */

    for (r->at++; r->at < r->end; r->at++) {
        if (*r->at == '"' && (r->at + 1 == r->end || r->at[1] != '"'))
            break;
        if (*r->at == '"')
            r->at++;
        if (!check_character(r))
            return false;
        g_string_append_c(cell, *r->at);
        if (*r->at == '\n') {
            r->line++;
            r->line_start = r->at + 1;
        }
    }
    if (r->at == r->end)
        return lh_text_fail(&opened, opened.at, "the quote that begins here has no end");
    r->at++;
    if (at_line_end(r) || *r->at == ',')
        return true;
    return lh_text_fail(
        r, r->at,
        *r->at == '\r' ? LONE_RETURN
                       : "text after a closing quote; allowed: a comma or the end of the line");
}

static bool
read_plain(LhTextReader *r, GString *cell)
{
    for (; !at_line_end(r) && *r->at != ','; r->at++) {
        if (*r->at == '"')
            return lh_text_fail(
                r, r->at,
                "a quote inside a cell; put the whole cell in quotes and double this one");
        if (*r->at == '\r')
            return lh_text_fail(r, r->at, LONE_RETURN);
        if (!check_character(r))
            return false;
        g_string_append_c(cell, *r->at);
    }
    return true;
}

/* Appends the cells of one row. */
static bool
read_row(LhTextReader *r, GPtrArray *cells)
{
    for (;;) {
        g_autoptr(GString) cell = g_string_new(NULL);

        if (cells->len == COLUMNS_MAX)
            return lh_text_fail(r, r->at, "more than %d cells in a row", COLUMNS_MAX);
        if (!(r->at < r->end && *r->at == '"' ? read_quoted(r, cell) : read_plain(r, cell)))
            return false;
        g_ptr_array_add(cells, g_string_free(g_steal_pointer(&cell), FALSE));
        if (at_line_end(r)) {
            skip_line_end(r);
            return true;
        }
        r->at++;
    }
}

static bool
check_columns(const LhTextReader *r, guint line, const GPtrArray *columns)
{
    for (guint i = 0; i < columns->len; i++) {
        const char *name = g_ptr_array_index(columns, i);

        if (*name == '\0') {
            g_set_error(r->error, LH_ERROR, LH_ERROR_INPUT, "%s:%u: error: column %u has no name",
                        r->file, line, i + 1);
            return false;
        }
        for (guint j = 0; j < i; j++) {
            g_autofree char *safe = quote_cell(name);

            if (strcmp(g_ptr_array_index(columns, j), name) != 0)
                continue;
            g_set_error(r->error, LH_ERROR, LH_ERROR_INPUT,
                        "%s:%u: error: columns %u and %u are both called \"%s\"", r->file, line,
                        j + 1, i + 1, safe);
            return false;
        }
    }
    return true;
}

static bool
read_header(LhTextReader *r, LhCsv *csv)
{
    guint line;

    if (!find_row(r)) {
        g_set_error(r->error, LH_ERROR, LH_ERROR_INPUT,
                    "%s: error: there is no line with the names of columns", r->file);
        return false;
    }
    line = r->line;
    return read_row(r, csv->columns) && check_columns(r, line, csv->columns);
}

static bool
read_rows(LhTextReader *r, LhCsv *csv)
{
    while (find_row(r)) {
        g_autoptr(GPtrArray) cells = g_ptr_array_new_with_free_func(g_free);
        const guint line = r->line;

        if (csv->rows->len == ROWS_MAX)
            return lh_text_fail(r, r->at, "more than %u rows", ROWS_MAX);
        if (!read_row(r, cells))
            return false;
        if (cells->len != csv->columns->len) {
            g_set_error(r->error, LH_ERROR, LH_ERROR_INPUT,
                        "%s:%u: error: %u cells in this row, but %u columns have names", r->file,
                        line, cells->len, csv->columns->len);
            return false;
        }
        g_ptr_array_add(csv->rows, g_steal_pointer(&cells));
        g_array_append_val(csv->lines, line);
    }
    return true;
}

/* Checks that the text is UTF-8 without NUL. */
static bool
check_csv_text(LhTextReader *r)
{
    const char *bad;

    if (g_utf8_validate(r->at, r->end - r->at, &bad))
        return true;
    for (const char *at = r->at; at < bad; at++) {
        if (*at == '\n') {
            r->line++;
            r->line_start = at + 1;
        }
    }
    return lh_text_fail(r, bad, *bad == '\0' ? "a NUL byte" : "not UTF-8");
}

static void
free_cells(gpointer cells)
{
    g_ptr_array_unref(cells);
}

LhCsv *
lh_csv_parse(const char *file, const char *text, gsize length, GError **error)
{
    static const char mark[] = "\xef\xbb\xbf"; /* byte order mark that some programs write */
    const gsize skip = length >= 3 && memcmp(text, mark, 3) == 0 ? 3 : 0;
    LhTextReader r = { file, text + skip, text + length, text + skip, 1, error };
    g_autoptr(LhCsv) csv = g_new0(LhCsv, 1);

    csv->file = g_strdup(file);
    csv->columns = g_ptr_array_new_with_free_func(g_free);
    csv->rows = g_ptr_array_new_with_free_func(free_cells);
    csv->lines = g_array_new(FALSE, FALSE, sizeof(guint));
    csv->sha256 = g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)text, length);
    if (!check_csv_text(&r) || !read_header(&r, csv) || !read_rows(&r, csv))
        return NULL;
    return g_steal_pointer(&csv);
}

LhCsv *
lh_csv_load(const char *path, GError **error)
{
    gsize length;
    g_autofree char *text = lh_input_read(path, FILE_BYTES_MAX, &length, error);

    return text != NULL ? lh_csv_parse(path, text, length, error) : NULL;
}

void
lh_csv_free(LhCsv *csv)
{
    if (csv == NULL)
        return;
    g_free(csv->file);
    g_free(csv->sha256);
    g_ptr_array_unref(csv->columns);
    g_ptr_array_unref(csv->rows);
    g_array_unref(csv->lines);
    g_free(csv);
}

const char *
lh_csv_sha256(const LhCsv *csv)
{
    return csv->sha256;
}

guint
lh_csv_rows(const LhCsv *csv)
{
    return csv->rows->len;
}

guint
lh_csv_columns(const LhCsv *csv)
{
    return csv->columns->len;
}

const char *
lh_csv_column_name(const LhCsv *csv, guint column)
{
    return g_ptr_array_index(csv->columns, column);
}

int
lh_csv_column(const LhCsv *csv, const char *name, GError **error)
{
    g_autoptr(GString) all = g_string_new(NULL);
    g_autofree char *wanted = quote_cell(name);

    for (guint i = 0; i < csv->columns->len; i++) {
        const char *column = g_ptr_array_index(csv->columns, i);
        g_autofree char *safe = quote_cell(column);

        if (strcmp(column, name) == 0)
            return (int)i;
        g_string_append_printf(all, "%s%s", i > 0 ? ", " : "", safe);
    }
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "%s: error: no column \"%s\"; columns: %s",
                csv->file, wanted, all->str);
    return -1;
}

const char *
lh_csv_cell(const LhCsv *csv, guint row, guint column)
{
    return g_ptr_array_index((const GPtrArray *)g_ptr_array_index(csv->rows, row), column);
}

guint
lh_csv_line(const LhCsv *csv, guint row)
{
    return g_array_index(csv->lines, guint, row);
}

bool
lh_csv_error(const LhCsv *csv, guint row, GError **error, const char *format, ...)
{
    g_autofree char *message = NULL;
    va_list args;

    va_start(args, format);
    message = lh_error_text(format, args);
    va_end(args);
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "%s:%u: error: %s", csv->file,
                lh_csv_line(csv, row), message);
    return false;
}

bool
lh_csv_number(const LhCsv *csv, guint row, guint column, double *value, GError **error)
{
    const char *cell = lh_csv_cell(csv, row, column);
    g_autofree char *safe = NULL;
    char *end;
    double number;

    number = g_ascii_strtod(cell, &end);
    /* strtod also skips spaces and accepts "inf", "nan" and "0x10", none of which is a
     * measurement. */
    if (*cell != '\0' && *end == '\0' && isfinite(number) &&
        strspn(cell, "+-.0123456789eE") == strlen(cell)) {
        *value = number;
        return true;
    }
    safe = quote_cell(cell);
    return lh_csv_error(csv, row, error, "\"%s\" in column \"%s\" is not a number", safe,
                        lh_csv_column_name(csv, column));
}
