/* SPDX-License-Identifier: Apache-2.0 */
#include "report/data/sweep_values.h"

#include "report/data/document.h"
#include "report/data/result_values.h"

#include <math.h>
#include <string.h>

/* ---- the cells of a comparison ---- */

/* NULL: neither, as for the fastest one and those that did not run. Equal times are not told apart,
 * also where constants are no machine's. */
static const char *
told_apart(const LhComparison *c, guint index)
{
    const LhCompareRow *row = g_ptr_array_index(c->rows, index);

    if (index == 0 || row->state != LH_ROW_RAN)
        return NULL;
    return row->tied || row->result->makespan_ps == lh_best_ps(c) ? "no" : "yes";
}

/* The row's fields; caller frees. */
static LhRecord *
values_of(const LhSetup *setup, const LhComparison *c, guint index)
{
    LhRecord *values = lh_row_values(setup, g_ptr_array_index(c->rows, index), lh_best_ps(c));

    lh_record_text(values, "told_apart_from_best", told_apart(c, index));
    return values;
}

/* Fields of a row that says nothing; caller frees. */
static LhRecord *
empty_values(const LhSetup *setup)
{
    const LhCompareRow none = { .name = "", .state = LH_ROW_REFUSED };
    LhRecord *values = lh_row_values(setup, &none, 0);

    lh_record_text(values, "told_apart_from_best", NULL);
    return values;
}

static char **
columns(const LhSetup *setup)
{
    g_autoptr(GStrvBuilder) keys = g_strv_builder_new();
    g_autoptr(LhRecord) of_case = lh_case_values(setup);
    g_autoptr(LhRecord) of_row = empty_values(setup);
    g_autofree const char **first = lh_record_keys(of_case);
    g_autofree const char **then = lh_record_keys(of_row);

    g_strv_builder_addv(keys, first);
    g_strv_builder_addv(keys, then);
    return g_strv_builder_end(keys);
}

static GPtrArray *
rows(const LhSetup *setup, const LhComparison *comparison)
{
    GPtrArray *rows = g_ptr_array_new_with_free_func((GDestroyNotify)g_strfreev);
    g_autoptr(LhRecord) of_case = lh_case_values(setup);
    g_auto(GStrv) first = lh_record_texts(of_case);

    for (guint i = 0; i < comparison->rows->len; i++) {
        g_autoptr(GStrvBuilder) cells = g_strv_builder_new();
        g_autoptr(LhRecord) of_row = values_of(setup, comparison, i);
        g_auto(GStrv) then = lh_record_texts(of_row);

        g_strv_builder_addv(cells, (const char **)(void *)first);
        g_strv_builder_addv(cells, (const char **)(void *)then);
        g_ptr_array_add(rows, g_strv_builder_end(cells));
    }
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

    /* Those that ran and fit are first, in order of time. */
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

/* Which axis has the values of the column @key; G_MAXUINT: none. */
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

/* Whether the axis is of no field of the case, and has a column of its own. */
static bool
is_extra(const LhSweep *sweep, guint axis)
{
    const LhScenarioAxis *a = g_ptr_array_index(sweep->axes, axis);

    return !g_strv_contains((const char *const *)sweep->columns, a->field->name);
}

/* What the row says in a column, or else what was asked for: of what is refused nothing else is
 * known. */
static const char *
said(const LhSweep *sweep, const LhSweepPoint *point, char **row, guint column)
{
    const guint axis = axis_of(sweep, sweep->columns[column]);

    return row[column][0] == '\0' && axis != G_MAXUINT ? point->values[axis] : row[column];
}

/* Of a point that was not looked at. Caller frees. */
static char **
missing_row(const LhSweep *sweep)
{
    const guint count = g_strv_length(sweep->columns), state = lh_sweep_column(sweep, "state"),
                reason = lh_sweep_column(sweep, "reason");
    g_autoptr(GStrvBuilder) cells = g_strv_builder_new();

    for (guint i = 0; i < count; i++)
        g_strv_builder_add(cells, i == state    ? "interrupted"
                                  : i == reason ? "the sweep ended before it did"
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

/* Calls @add for every row, and for one of each point that was not looked at. */
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

/* Where the rows go, and which columns are texts. */
typedef struct {
    LhJsonWriter *w;
    bool *is_text;
} Json;

static bool
is_number(const char *text)
{
    char *end;

    g_ascii_strtod(text, &end);
    return (g_ascii_isdigit(text[0]) || text[0] == '-') && *end == '\0';
}

static void
write_cell(LhJsonWriter *w, const char *key, const char *text, bool is_text)
{
    if (text[0] == '\0')
        lh_jsonw_string(w, key, NULL);
    else if (is_text || !is_number(text))
        lh_jsonw_string(w, key, text);
    else
        lh_jsonw_number(w, key, text);
}

static void
write_point(const LhSweep *sweep, guint index, char **row, void *data)
{
    const LhSweepPoint *point = g_ptr_array_index(sweep->points, index);
    const Json *json = data;

    lh_jsonw_object_begin(json->w, NULL);
    lh_jsonw_uint(json->w, "point", index);
    for (guint i = 0; i < sweep->axes->len; i++) {
        const LhScenarioAxis *axis = g_ptr_array_index(sweep->axes, i);

        if (is_extra(sweep, i))
            lh_jsonw_string(json->w, axis->field->name, point->values[i]);
    }
    for (guint i = 0; sweep->columns[i] != NULL; i++)
        write_cell(json->w, sweep->columns[i], said(sweep, point, row, i), json->is_text[i]);
    lh_jsonw_object_end(json->w);
}

static void
write_axes(LhJsonWriter *w, const LhSweep *sweep)
{
    lh_jsonw_array_begin(w, "sweep");
    for (guint i = 0; i < sweep->axes->len; i++) {
        const LhScenarioAxis *axis = g_ptr_array_index(sweep->axes, i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "field", axis->field->name);
        lh_jsonw_array_begin(w, "values");
        for (guint k = 0; k < axis->values->len; k++)
            lh_jsonw_string(w, NULL, g_ptr_array_index(axis->values, k));
        lh_jsonw_array_end(w);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

static void
find_texts(const LhSweep *sweep, bool *is_text)
{
    g_autoptr(LhRecord) of_case = lh_case_values(sweep->setup);
    g_autoptr(LhRecord) of_row = empty_values(sweep->setup);
    const guint count = lh_record_count(of_case);

    for (guint i = 0; sweep->columns[i] != NULL; i++)
        is_text[i] =
            i < count ? lh_record_is_text(of_case, i) : lh_record_is_text(of_row, i - count);
}

void
lh_sweep_json(const LhSweep *sweep, const LhStamp *stamp, GString *out)
{
    g_autoptr(LhJsonWriter) w = lh_jsonw_new(out, false);
    g_autofree bool *is_text = g_new0(bool, g_strv_length(sweep->columns));
    Json json = { w, is_text };

    find_texts(sweep, is_text);
    lh_document_begin(w, LH_SWEEP_SCHEMA, stamp, sweep->setup, true);
    lh_jsonw_string(w, "query_sha256", sweep->query_sha256);
    lh_jsonw_bool(w, "interrupted", sweep->interrupted);
    write_axes(w, sweep);
    lh_jsonw_uint(w, "points", sweep->points->len);
    lh_jsonw_uint(w, "points_refused", sweep->refused);
    lh_jsonw_array_begin(w, "rows");
    each_row(sweep, write_point, &json);
    lh_jsonw_array_end(w);
    lh_jsonw_object_end(w);
}
