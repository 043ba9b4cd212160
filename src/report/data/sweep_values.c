/* SPDX-License-Identifier: Apache-2.0 */
#include "report/data/sweep_values.h"

#include "base/json/json_decode.h"
#include "report/base/field_cells.h"
#include "report/data/document.h"
#include "report/data/result_values.h"

#include <math.h>
#include <string.h>

/* ---- cells of a comparison ---- */

/* Whether a row is not tied with the fastest: NULL for the fastest and for rows that did not run.
 * Equal times are tied, even if the constants are no machine's. */
static const char *
told_apart(const LhComparison *c, guint index)
{
    const LhCompareRow *row = g_ptr_array_index(c->rows, index);

    if (index == 0 || row->state != LH_ROW_RAN)
        return NULL;
    return row->tied || row->result->makespan_ps == lh_best_ps(c) ? "no" : "yes";
}

/* Fields of a row of a comparison, and whether it is tied with the fastest. */
typedef struct {
    LhRowValues row;
    char *told_apart_from_best;
} Cells;

static const LhField told_apart_fields[] = {
    LH_FIELD_ROW(STRING, Cells, told_apart_from_best, "told_apart_from_best", OR_NULL,
                 .description = "Whether it differs from the fastest of its point by more than "
                                "their error bar (else they are tied); null for the fastest."),
    { .name = NULL },
};

static char **
strv_of(GPtrArray *texts)
{
    g_ptr_array_add(texts, NULL);
    return (char **)g_ptr_array_free(texts, FALSE);
}

static char **
columns(const LhSetup *setup)
{
    GPtrArray *keys = g_ptr_array_new();
    g_autofree LhField *of_case = lh_case_columns(NULL);

    (void)setup; /* equal for all; what a case need not have is swept, or among what was asked */
    lh_field_keys(of_case, NULL, keys);
    lh_field_keys(lh_row_fields, NULL, keys);
    lh_field_keys(told_apart_fields, NULL, keys);
    return strv_of(keys);
}

static char **
cells_of(const LhSetup *setup, const LhCaseValues *of_case, const LhComparison *c, guint index)
{
    GPtrArray *texts = g_ptr_array_new();
    const Cells cells = {
        .row = lh_row_values(setup, g_ptr_array_index(c->rows, index), lh_best_ps(c)),
        .told_apart_from_best = (char *)told_apart(c, index),
    };
    g_autofree LhField *columns = lh_case_columns(NULL);
    LhRowValues row = cells.row;

    lh_field_texts(columns, of_case, texts);
    lh_field_texts(lh_row_fields, &cells.row, texts);
    lh_field_texts(told_apart_fields, &cells, texts);
    lh_row_values_clear(&row);
    return strv_of(texts);
}

static GPtrArray *
rows(const LhSetup *setup, const LhComparison *comparison)
{
    GPtrArray *rows = g_ptr_array_new_with_free_func((GDestroyNotify)g_strfreev);
    g_auto(LhCaseValues) of_case = lh_case_values(setup);

    for (guint i = 0; i < comparison->rows->len; i++)
        g_ptr_array_add(rows, cells_of(setup, &of_case, comparison, i));
    return rows;
}

const LhSweepCells lh_sweep_cells = { .columns = columns, .rows = rows };

/* ---- cells ---- */

const char *
lh_sweep_cell(const LhSweep *sweep, char **row, const char *key)
{
    return row[lh_sweep_column(sweep, key)];
}

double
lh_sweep_number(const LhSweep *sweep, char **row, const char *key)
{
    const char *text = lh_sweep_cell(sweep, row, key);

    return text[0] != '\0' ? g_ascii_strtod(text, NULL) : NAN;
}

char **
lh_sweep_place(const LhSweep *sweep, const LhSweepPoint *point, guint place)
{
    char **row = point->rows != NULL && place < point->rows->len
                     ? g_ptr_array_index(point->rows, place)
                     : NULL;

    /* Rows that ran and fit come first, sorted by time. */
    return row != NULL && !isnan(lh_sweep_number(sweep, row, "vs_best")) ? row : NULL;
}

double
lh_sweep_seconds(const LhSweep *sweep, char **row)
{
    const double step = lh_sweep_number(sweep, row, "iteration_s");

    return isnan(step) ? lh_sweep_number(sweep, row, "makespan_s") : step;
}

char *
lh_sweep_value_text(const LhSweep *sweep, guint axis, const char *value)
{
    const LhScenarioAxis *a = g_ptr_array_index(sweep->axes, axis);
    guint64 count;
    double rate;

    if (a->field->type == LH_FIELD_UNIT &&
        (a->field->unit == LH_UNIT_BANDWIDTH || a->field->unit == LH_UNIT_PORT) &&
        lh_unit_parse(value, a->field->unit, &rate, NULL))
        return lh_format_bandwidth(rate);
    if (a->field->type == LH_FIELD_UNIT && a->field->unit == LH_UNIT_COUNT &&
        g_ascii_string_to_unsigned(value, 10, 0, G_MAXUINT64, &count, NULL))
        return lh_format_count(count);
    return g_strdup(value);
}

/* ---- fields ---- */

/* Index of the axis with the values of column @key; G_MAXUINT: none. */
static guint
axis_of(const LhSweep *sweep, const char *key)
{
    for (guint i = 0; i < sweep->axes->len; i++) {
        const LhScenarioAxis *axis = g_ptr_array_index(sweep->axes, i);

        if (strcmp(axis->field->name, key) == 0)
            return i;
    }
    return G_MAXUINT;
}

/* Whether the axis is not a field of the case, so it has a column of its own. */
static bool
is_extra(const LhSweep *sweep, guint axis)
{
    const LhScenarioAxis *a = g_ptr_array_index(sweep->axes, axis);

    return !g_strv_contains((const char *const *)sweep->columns, a->field->name);
}

/* The row's cell, or else the value given by the sweep: a refused row has no other. */
static const char *
said(const LhSweep *sweep, const LhSweepPoint *point, char **row, guint column)
{
    const guint axis = axis_of(sweep, sweep->columns[column]);

    return row[column][0] == '\0' && axis != G_MAXUINT ? point->values[axis] : row[column];
}

/* Row of a point that was not run. Caller frees. */
static char **
missing_row(const LhSweep *sweep)
{
    const guint count = g_strv_length(sweep->columns), state = lh_sweep_column(sweep, "state"),
                reason = lh_sweep_column(sweep, "reason");
    g_autoptr(GStrvBuilder) cells = g_strv_builder_new();

    for (guint i = 0; i < count; i++)
        g_strv_builder_add(cells, i == state    ? "interrupted"
                                  : i == reason ? "the sweep ended before this point"
                                                : "");
    return g_strv_builder_end(cells);
}

typedef void (*AddRow)(const LhSweep *sweep, guint point, char **row, void *data);

static void
add_missing(const LhSweep *sweep, guint point, AddRow add, void *data)
{
    g_auto(GStrv) row = missing_row(sweep);

    add(sweep, point, row, data);
}

/* Calls @add for every row, and for a placeholder row of each point that was not run. */
static void
each_row(const LhSweep *sweep, AddRow add, void *data)
{
    for (guint i = 0; i < sweep->points->len; i++) {
        const LhSweepPoint *point = g_ptr_array_index(sweep->points, i);

        if (point->rows == NULL)
            add_missing(sweep, i, add, data);
        for (guint k = 0; point->rows != NULL && k < point->rows->len; k++)
            add(sweep, i, g_ptr_array_index(point->rows, k), data);
    }
}

static void
add_table_row(const LhSweep *sweep, guint index, char **row, void *data)
{
    const LhSweepPoint *point = g_ptr_array_index(sweep->points, index);
    LhTable *table = data;

    lh_table_row(table);
    lh_table_cell_printf(table, "%u", index);
    for (guint i = 0; i < sweep->axes->len; i++) {
        if (is_extra(sweep, i))
            lh_table_cell(table, point->values[i], NULL);
    }
    for (guint i = 0; sweep->columns[i] != NULL; i++)
        lh_table_cell(table, said(sweep, point, row, i), NULL);
}

LhTable *
lh_sweep_table(const LhSweep *sweep)
{
    LhTable *table = lh_table_new();

    lh_table_column(table, "point", "", NULL, false);
    for (guint i = 0; i < sweep->axes->len; i++) {
        const LhScenarioAxis *axis = g_ptr_array_index(sweep->axes, i);

        if (is_extra(sweep, i))
            lh_table_column(table, axis->field->name, "", NULL, false);
    }
    for (guint i = 0; sweep->columns[i] != NULL; i++)
        lh_table_column(table, sweep->columns[i], "", NULL, false);
    each_row(sweep, add_table_row, table);
    return table;
}

/* ---- JSON ---- */

typedef struct {
    char *field;
    GPtrArray *values;
} Axis;

static const LhField axis_fields[] = {
    LH_FIELD_ROW(STRING, Axis, field, "field", ALWAYS,
                 .description = "Name of the field in a scenario."),
    LH_FIELD_ROW(STRINGS, Axis, values, "values", ALWAYS,
                 .description = "Its values, as written in options."),
    { .name = NULL },
};

typedef struct {
    LhDocumentHead head;
    char *query_sha256;
    bool interrupted;
    GArray *axes; /* of Axis */
    uint64_t points, points_refused;
} SweepDocument;

static const char *const sweep_schema[] = { LH_SWEEP_SCHEMA, NULL };

const LhField lh_sweep_fields[] = {
    LH_DOCUMENT_HEAD_OF_SETUP(SweepDocument, head, sweep_schema),
    LH_DOCUMENT_ASKED(SweepDocument, head),
    LH_FIELD_ROW(STRING, SweepDocument, query_sha256, "query_sha256", OR_NULL,
                 .description = "SHA-256 of the query and of all files that affect the answer."),
    LH_FIELD_ROW(BOOL, SweepDocument, interrupted, "interrupted", ALWAYS,
                 .description = "Whether points are missing."),
    LH_FIELD_ROW(ARRAY, SweepDocument, axes, "sweep", ALWAYS, .fields = axis_fields,
                 .element_size = sizeof(Axis), .description = "The fields that vary."),
    LH_FIELD_ROW(UINT, SweepDocument, points, "points", ALWAYS,
                 .description = "Number of combinations."),
    LH_FIELD_ROW(UINT, SweepDocument, points_refused, "points_refused", ALWAYS,
                 .description = "Refused points; they have one row."),
    LH_FIELD_ROW(ROWS, SweepDocument, head, "rows", ALWAYS,
                 .description =
                     "A row for each schedule at each point, the fastest of a point first."),
    { .name = NULL },
};

static GArray *
find_axes(const LhSweep *sweep)
{
    GArray *axes = g_array_new(FALSE, FALSE, sizeof(Axis));

    for (guint i = 0; i < sweep->axes->len; i++) {
        const LhScenarioAxis *of = g_ptr_array_index(sweep->axes, i);
        const Axis axis = { g_strdup(of->field->name), g_ptr_array_ref(of->values) };

        g_array_append_val(axes, axis);
    }
    return axes;
}

static bool
is_number(const char *text)
{
    char *end;

    g_ascii_strtod(text, &end);
    return (g_ascii_isdigit(text[0]) || text[0] == '-') && *end == '\0';
}

/* Receiver of rows. */
typedef struct {
    LhJsonWriter *w;
    GHashTable *numbers; /* numeric columns, if the cell is not a word */
} Rows;

static void
add_numbers(GHashTable *numbers, const LhField *fields)
{
    for (const LhField *field = fields; field->name != NULL; field++)
        if (!lh_field_is_text(field))
            g_hash_table_add(numbers, (gpointer)field->name);
}

static void
write_member(LhJsonWriter *w, const char *key, const char *text, bool number)
{
    const LhField field = { .name = key,
                            .type = number && is_number(text) ? LH_FIELD_LITERAL : LH_FIELD_STRING,
                            .flags = LH_FIELD_OR_NULL };
    const char *value = text[0] != '\0' ? text : NULL;

    lh_json_encode_member(w, &field, &value, NULL);
}

static void
write_point(const LhSweep *sweep, guint index, char **row, void *data)
{
    const LhSweepPoint *point = g_ptr_array_index(sweep->points, index);
    const Rows *rows = data;
    g_autofree char *place = g_strdup_printf("%u", index);

    lh_jsonw_object_begin(rows->w, NULL);
    write_member(rows->w, "point", place, true);
    for (guint i = 0; i < sweep->axes->len; i++) {
        const LhScenarioAxis *axis = g_ptr_array_index(sweep->axes, i);

        if (is_extra(sweep, i))
            write_member(rows->w, axis->field->name, point->values[i], false);
    }
    for (guint i = 0; sweep->columns[i] != NULL; i++)
        write_member(rows->w, sweep->columns[i], said(sweep, point, row, i),
                     g_hash_table_contains(rows->numbers, sweep->columns[i]));
    lh_jsonw_object_end(rows->w);
}

/* Written as a stream, since there may be very many rows. */
static void
write_rows(LhJsonWriter *w, const LhSweep *sweep)
{
    g_autoptr(GHashTable) numbers = g_hash_table_new(g_str_hash, g_str_equal);
    Rows rows = { w, numbers };

    add_numbers(numbers, lh_case_fields);
    add_numbers(numbers, lh_row_fields);
    lh_jsonw_array_begin(w, "rows");
    each_row(sweep, write_point, &rows);
    lh_jsonw_array_end(w);
}

void
lh_sweep_json(const LhSweep *sweep, const LhStamp *stamp, GString *out)
{
    g_autoptr(LhJsonWriter) w = lh_jsonw_new(out, false);
    SweepDocument document = {
        .head = lh_document_head(sweep_schema[0], stamp, sweep->setup),
        .query_sha256 = g_strdup(sweep->query_sha256),
        .interrupted = sweep->interrupted,
        .axes = find_axes(sweep),
        .points = sweep->points->len,
        .points_refused = sweep->refused,
    };

    lh_jsonw_object_begin(w, NULL);
    for (const LhField *field = lh_sweep_fields; field->type != LH_FIELD_ROWS; field++)
        lh_json_encode_member(w, field, &document, NULL);
    write_rows(w, sweep);
    lh_jsonw_object_end(w);
    lh_json_clear(lh_sweep_fields, &document);
    lh_document_head_clear(&document.head);
}
