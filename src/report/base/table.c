/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of text.
 */
#include "report/base/table.h"

#include "base/escape.h"

#include <string.h>

#define COLUMN_GAP 3 /* spaces between columns */
#define NOTE "note"  /* the column of notes */

const char *const lh_format_names[] = { "table", "json", "csv", "md", NULL };

typedef struct {
    char *key, *title, *unit;
    bool number;
} Column;

typedef struct {
    GPtrArray *texts, *exacts; /* of char *; an exact is NULL where it equals the text */
    char *note;
} Row;

struct _LhTable {
    GArray *columns; /* of Column */
    GPtrArray *rows; /* of Row * */
};

static void
column_clear(gpointer data)
{
    Column *column = data;

    g_free(column->key);
    g_free(column->title);
    g_free(column->unit);
}

static void
row_free(gpointer data)
{
    Row *row = data;

    g_ptr_array_unref(row->texts);
    g_ptr_array_unref(row->exacts);
    g_free(row->note);
    g_free(row);
}

LhTable *
lh_table_new(void)
{
    LhTable *table = g_new0(LhTable, 1);

    table->columns = g_array_new(FALSE, TRUE, sizeof(Column));
    g_array_set_clear_func(table->columns, column_clear);
    table->rows = g_ptr_array_new_with_free_func(row_free);
    return table;
}

void
lh_table_free(LhTable *table)
{
    if (table == NULL)
        return;
    g_array_unref(table->columns);
    g_ptr_array_unref(table->rows);
    g_free(table);
}

void
lh_table_column(LhTable *table, const char *key, const char *title, const char *unit, bool number)
{
    const Column column = { g_strdup(key), g_strdup(title), g_strdup(unit != NULL ? unit : ""),
                            number };

    g_assert(table->rows->len == 0);
    g_array_append_val(table->columns, column);
}

void
lh_table_row(LhTable *table)
{
    Row *row = g_new0(Row, 1);

    row->texts = g_ptr_array_new_with_free_func(g_free);
    row->exacts = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(table->rows, row);
}

static Row *
last_row(LhTable *table)
{
    g_assert(table->rows->len > 0);
    return g_ptr_array_index(table->rows, table->rows->len - 1);
}

void
lh_table_cell(LhTable *table, const char *text, const char *exact)
{
    Row *row = last_row(table);

    g_assert(row->texts->len < table->columns->len);
    g_ptr_array_add(row->texts, g_strdup(text));
    g_ptr_array_add(row->exacts, g_strdup(exact));
}

void
lh_table_cell_printf(LhTable *table, const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list args;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    lh_table_cell(table, text, NULL);
}

void
lh_table_note(LhTable *table, const char *text)
{
    Row *row = last_row(table);

    g_free(row->note);
    row->note = g_strdup(text);
}

static const Column *
column_at(const LhTable *table, guint index)
{
    return &g_array_index(table->columns, Column, index);
}

static bool
has_notes(const LhTable *table)
{
    for (guint i = 0; i < table->rows->len; i++) {
        if (((const Row *)g_ptr_array_index(table->rows, i))->note != NULL)
            return true;
    }
    return false;
}

/* --- for people ---------------------------------------------------------------------------------
 */

static glong
width_of(const char *text)
{
    return g_utf8_strlen(text, -1);
}

static glong
column_width(const LhTable *table, guint index)
{
    const Column *column = column_at(table, index);
    glong width = MAX(width_of(column->title), width_of(column->unit));

    for (guint i = 0; i < table->rows->len; i++) {
        const Row *row = g_ptr_array_index(table->rows, i);

        if (index < row->texts->len) {
            g_autofree char *shown = lh_escaped_line(g_ptr_array_index(row->texts, index));

            width = MAX(width, width_of(shown));
        }
    }
    return width;
}

static void
append_padded(GString *out, const char *text, glong width, bool right)
{
    const int pad = (int)MAX(0, width - width_of(text));

    if (right)
        g_string_append_printf(out, "%*s", pad, "");
    g_string_append(out, text);
    if (!right)
        g_string_append_printf(out, "%*s", pad, "");
}

static void
end_line(GString *out)
{
    while (out->len > 0 && out->str[out->len - 1] == ' ')
        g_string_truncate(out, out->len - 1);
    g_string_append_c(out, '\n');
}

static void
print_headings(const LhTable *table, const glong *widths, bool units, GString *out)
{
    for (guint i = 0; i < table->columns->len; i++) {
        const Column *column = column_at(table, i);

        g_string_append_printf(out, "%*s", i > 0 ? COLUMN_GAP : 0, "");
        append_padded(out, units ? column->unit : column->title, widths[i], column->number);
    }
    end_line(out);
}

static void
print_text_row(const LhTable *table, const Row *row, const glong *widths, GString *out)
{
    for (guint i = 0; i < row->texts->len; i++) {
        g_autofree char *shown = lh_escaped_line(g_ptr_array_index(row->texts, i));

        g_string_append_printf(out, "%*s", i > 0 ? COLUMN_GAP : 0, "");
        append_padded(out, shown, widths[i], column_at(table, i)->number);
    }
    if (row->note != NULL) {
        g_string_append_printf(out, "%*s", COLUMN_GAP, "");
        lh_escape_line(out, row->note);
    }
    end_line(out);
}

static void
print_text(const LhTable *table, GString *out)
{
    g_autofree glong *widths = g_new0(glong, table->columns->len);
    bool units = false;

    for (guint i = 0; i < table->columns->len; i++) {
        widths[i] = column_width(table, i);
        units = units || column_at(table, i)->unit[0] != '\0';
    }
    print_headings(table, widths, false, out);
    if (units)
        print_headings(table, widths, true, out);
    for (guint i = 0; i < table->rows->len; i++)
        print_text_row(table, g_ptr_array_index(table->rows, i), widths, out);
}

/* --- for programs -------------------------------------------------------------------------------
 */

static const char *
exact_cell(const Row *row, guint index)
{
    const char *exact;

    if (index >= row->texts->len)
        return "";
    exact = g_ptr_array_index(row->exacts, index);
    return exact != NULL ? exact : g_ptr_array_index(row->texts, index);
}

static void
print_csv(const LhTable *table, GString *out)
{
    const bool notes = has_notes(table);

    for (guint i = 0; i < table->columns->len; i++) {
        g_string_append(out, i > 0 ? "," : "");
        lh_escape_csv(out, column_at(table, i)->key, false);
    }
    g_string_append(out, notes ? "," NOTE "\n" : "\n");
    for (guint i = 0; i < table->rows->len; i++) {
        const Row *row = g_ptr_array_index(table->rows, i);

        for (guint j = 0; j < table->columns->len; j++) {
            g_string_append(out, j > 0 ? "," : "");
            lh_escape_csv(out, exact_cell(row, j), column_at(table, j)->number);
        }
        if (notes) {
            g_string_append_c(out, ',');
            lh_escape_csv(out, row->note != NULL ? row->note : "", false);
        }
        g_string_append_c(out, '\n');
    }
}

static void
append_md(GString *out, const char *text)
{
    g_string_append_c(out, ' ');
    lh_escape_md_cell(out, text);
    g_string_append(out, " |");
}

static void
print_md_headings(const LhTable *table, bool notes, GString *out)
{
    g_string_append_c(out, '|');
    for (guint i = 0; i < table->columns->len; i++) {
        const Column *column = column_at(table, i);
        g_autofree char *heading =
            g_strjoin(column->title[0] != '\0' && column->unit[0] != '\0' ? " " : "", column->title,
                      column->unit, NULL);

        append_md(out, heading);
    }
    g_string_append(out, notes ? " note |\n|" : "\n|");
    for (guint i = 0; i < table->columns->len; i++)
        g_string_append(out, column_at(table, i)->number ? " ---: |" : " --- |");
    g_string_append(out, notes ? " --- |\n" : "\n");
}

static void
print_md(const LhTable *table, GString *out)
{
    const bool notes = has_notes(table);

    print_md_headings(table, notes, out);
    for (guint i = 0; i < table->rows->len; i++) {
        const Row *row = g_ptr_array_index(table->rows, i);

        g_string_append_c(out, '|');
        for (guint j = 0; j < table->columns->len; j++)
            append_md(out, j < row->texts->len ? g_ptr_array_index(row->texts, j) : "");
        if (notes)
            append_md(out, row->note != NULL ? row->note : "");
        g_string_append_c(out, '\n');
    }
}

static void
append_html_cell(GString *out, const char *class, const char *text)
{
    g_string_append_printf(out, *class != '\0' ? "<td class=\"%s\">" : "<td>", class);
    lh_escape_html(out, text);
    g_string_append(out, "</td>");
}

static void
append_html_headings(const LhTable *table, bool notes, GString *out)
{
    g_string_append(out, "<thead><tr>");
    for (guint i = 0; i < table->columns->len; i++) {
        const Column *column = column_at(table, i);

        g_string_append(out,
                        column->number ? "<th scope=\"col\" class=\"n\">" : "<th scope=\"col\">");
        lh_escape_html(out, column->title);
        if (column->unit[0] != '\0') {
            g_string_append(out, " <small>");
            lh_escape_html(out, column->unit);
            g_string_append(out, "</small>");
        }
        g_string_append(out, "</th>");
    }
    g_string_append(out, notes ? "<th scope=\"col\">note</th></tr></thead>\n<tbody>\n"
                               : "</tr></thead>\n<tbody>\n");
}

void
lh_table_html(const LhTable *table, const char *caption, GString *out)
{
    const bool notes = has_notes(table);

    g_string_append(out, "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"");
    lh_escape_html(out, caption);
    g_string_append(out, "\">\n<table><caption>");
    lh_escape_html(out, caption);
    g_string_append(out, "</caption>\n");
    append_html_headings(table, notes, out);
    for (guint i = 0; i < table->rows->len; i++) {
        const Row *row = g_ptr_array_index(table->rows, i);

        g_string_append(out, "<tr>");
        for (guint j = 0; j < table->columns->len; j++)
            append_html_cell(out, column_at(table, j)->number ? "n" : "",
                             j < row->texts->len ? g_ptr_array_index(row->texts, j) : "");
        if (notes)
            append_html_cell(out, "note", row->note != NULL ? row->note : "");
        g_string_append(out, "</tr>\n");
    }
    g_string_append(out, "</tbody></table></div>\n");
}

void
lh_table_print(const LhTable *table, LhFormat format, GString *out)
{
    switch (format) {
    case LH_FORMAT_TABLE:
        print_text(table, out);
        return;
    case LH_FORMAT_CSV:
        print_csv(table, out);
        return;
    case LH_FORMAT_MD:
        print_md(table, out);
        return;
    case LH_FORMAT_JSON:
        break;
    }
    g_assert_not_reached();
}

void
lh_table_words(LhFormat format, GString *out, gsize from)
{
    g_autofree char *words = g_strdup(out->str + from);

    g_string_truncate(out, from);
    if (format == LH_FORMAT_MD)
        lh_escape_md(out, words);
    else
        lh_escape_lines(out, words);
}

void
lh_table_names(const LhTable *table, GString *out)
{
    for (guint i = 0; i < table->rows->len; i++)
        g_string_append_printf(out, "%s\n", exact_cell(g_ptr_array_index(table->rows, i), 0));
}

/* NULL: none. */
static const char *
text_of(const LhTable *table, const Row *row, const char *key)
{
    for (guint j = 0; j < row->texts->len; j++) {
        if (strcmp(column_at(table, j)->key, key) == 0)
            return exact_cell(row, j);
    }
    return strcmp(key, NOTE) == 0 ? row->note : NULL;
}

static const LhField *
field_of(const LhField *fields, const char *key)
{
    while (fields->name != NULL && strcmp(fields->name, key) != 0)
        fields++;
    return fields->name != NULL ? fields : NULL;
}

GPtrArray *
lh_table_texts(const LhTable *table, const LhField *fields)
{
    GPtrArray *rows = g_ptr_array_new_with_free_func(g_free);
    gsize size = 0;

    for (const LhField *f = fields; f->name != NULL; f++)
        size = MAX(size, f->offset + sizeof(char *));
    for (guint j = 0; j < table->columns->len; j++)
        g_assert(field_of(fields, column_at(table, j)->key) != NULL);
    g_assert(!has_notes(table) || field_of(fields, NOTE) != NULL);
    for (guint i = 0; i < table->rows->len; i++) {
        char *texts = g_malloc0(size);

        for (const LhField *f = fields; f->name != NULL; f++)
            *(const char **)(void *)(texts + f->offset) =
                text_of(table, g_ptr_array_index(table->rows, i), f->name);
        g_ptr_array_add(rows, texts);
    }
    return rows;
}
