/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CSV tables. A table that is read has UTF-8 cells in rows as long as the first one; written again
 * with every cell quoted, it is the same table.
 */
#include "fuzz.h"

#include "base/files/csv.h"

#include <string.h>

static const char *
cell_of(const LhCsv *csv, guint row, guint column)
{
    return row == 0 ? lh_csv_column_name(csv, column) : lh_csv_cell(csv, row - 1, column);
}

static void
write_cell(GString *out, const char *cell)
{
    g_assert(g_utf8_validate(cell, -1, NULL));
    g_string_append_c(out, '"');
    for (const char *c = cell; *c != '\0'; c++)
        g_string_append_printf(out, "%s%c", *c == '"' ? "\"" : "", *c);
    g_string_append_c(out, '"');
}

/* Caller frees. */
static GString *
write_table(const LhCsv *csv)
{
    GString *out = g_string_new(NULL);

    for (guint row = 0; row <= lh_csv_rows(csv); row++) {
        for (guint column = 0; column < lh_csv_columns(csv); column++) {
            write_cell(out, cell_of(csv, row, column));
            g_string_append(out, column + 1 < lh_csv_columns(csv) ? "," : "\r\n");
        }
    }
    return out;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhCsv) csv = lh_csv_parse(FUZZ_NAME, (const char *)data, size, &error);
    g_autoptr(LhCsv) again = NULL;
    g_autoptr(GString) text = NULL;

    fuzz_check(csv != NULL, error, FUZZ_NAME ":");
    if (csv == NULL)
        return 0;
    text = write_table(csv);
    again = lh_csv_parse(FUZZ_NAME, text->str, text->len, &error);
    g_assert(again != NULL && lh_csv_columns(again) == lh_csv_columns(csv) &&
             lh_csv_rows(again) == lh_csv_rows(csv));
    for (guint row = 0; row <= lh_csv_rows(csv); row++) {
        g_assert(row == 0 || lh_csv_line(csv, row - 1) >= row);
        for (guint column = 0; column < lh_csv_columns(csv); column++)
            g_assert(strcmp(cell_of(csv, row, column), cell_of(again, row, column)) == 0);
    }
    return 0;
}
