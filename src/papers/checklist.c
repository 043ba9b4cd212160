/* SPDX-License-Identifier: Apache-2.0 */
#include "papers/checklist.h"

#include "base/files/data_files.h"

#include <string.h>

#define CHECKLIST_TEXT_MAX 2000
#define CHECKLIST_LINES_MAX 1000

static const char *const checklist_schemas[] = { "longhaul.checklist/1", NULL };

#define LINE_TEXT(owner, key, needed, text)                                                        \
    {                                                                                              \
        .name = #key, .type = LH_FIELD_STRING, .offset = offsetof(owner, key), .flags = (needed),  \
        .min = 1, .max = CHECKLIST_TEXT_MAX, .description = (text)                                 \
    }
#define LINE_TEXTS(owner, key, text)                                                               \
    {                                                                                              \
        .name = #key, .type = LH_FIELD_STRINGS, .offset = offsetof(owner, key), .min = 1,          \
        .max = CHECKLIST_LINES_MAX, .description = (text)                                          \
    }

static const LhField checklist_rows_fields[] = {
    LINE_TEXT(LhChecklistRows, table, LH_FIELD_REQUIRED,
              "A published table: its name, or the path of its description."),
    LINE_TEXTS(LhChecklistRows, where,
               "Conditions on its rows: each \"COLUMN=VALUE\", \"COLUMN!=VALUE\", "
               "\"COLUMN>=NUMBER\" or \"COLUMN<=NUMBER\"; default: all rows."),
    LINE_TEXTS(LhChecklistRows, columns, "Published columns to use; default: all."),
    LINE_TEXTS(LhChecklistRows, metrics,
               "Metrics to use, by their names in summaries; default: all."),
    { .name = NULL },
};

static const LhField checklist_line_fields[] = {
    LINE_TEXT(LhChecklistLine, paper, LH_FIELD_REQUIRED, "The paper, with its identifier."),
    LINE_TEXT(LhChecklistLine, what, LH_FIELD_REQUIRED,
              "The claim, and where the paper states it."),
    { .name = "rows",
      .type = LH_FIELD_ARRAY,
      .offset = offsetof(LhChecklistLine, rows),
      .min = 1,
      .max = CHECKLIST_LINES_MAX,
      .fields = checklist_rows_fields,
      .element_size = sizeof(LhChecklistRows),
      .description = "Published numbers behind the claim." },
    LINE_TEXT(LhChecklistLine, command, 0,
              "A command that shows the claim; default: `longhaul reproduce` of the first table."),
    LINE_TEXTS(LhChecklistLine, held, "Tests that check the claim."),
    LINE_TEXT(LhChecklistLine, reason, 0, "Why the claim, or part of it, is not predicted."),
    { .name = NULL },
};

const LhField lh_checklist_fields[] = {
    { .name = "schema",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(LhChecklist, schema),
      .flags = LH_FIELD_REQUIRED,
      .choices = checklist_schemas,
      .description = "The format and its version." },
    LINE_TEXT(LhChecklist, description, LH_FIELD_REQUIRED, "Description of the list."),
    { .name = "lines",
      .type = LH_FIELD_ARRAY,
      .offset = offsetof(LhChecklist, lines),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = CHECKLIST_LINES_MAX,
      .fields = checklist_line_fields,
      .element_size = sizeof(LhChecklistLine),
      .description = "Claims of papers, in the order of the output." },
    { .name = NULL },
};

static bool
check_line(const LhJson *json, const LhChecklistLine *line, guint index, GError **error)
{
    g_autofree char *at = g_strdup_printf("lines[%u]", index);

    if (line->rows == NULL && line->held == NULL && line->reason == NULL)
        return lh_json_error(json, at, error,
                             "\"%s\" is empty; allowed: \"rows\" of tables, tests that it is "
                             "\"held\" by, or the \"reason\" why it is not predicted",
                             at);
    for (guint i = 0; line->rows != NULL && i < line->rows->len; i++) {
        g_autofree char *where = g_strdup_printf("%s.rows[%u].where", at, i);

        if (!lh_paper_check_where(json, where, g_array_index(line->rows, LhChecklistRows, i).where,
                                  error))
            return false;
    }
    return true;
}

/* Takes over @json. */
static LhChecklist *
read_checklist(LhJson *json, GError **error)
{
    g_autoptr(LhChecklist) checklist = g_new0(LhChecklist, 1);

    checklist->json = json;
    if (!lh_json_decode(json, lh_checklist_fields, checklist, false, error))
        return NULL;
    for (guint i = 0; i < checklist->lines->len; i++) {
        if (!check_line(json, &g_array_index(checklist->lines, LhChecklistLine, i), i, error))
            return NULL;
    }
    return g_steal_pointer(&checklist);
}

LhChecklist *
lh_checklist_parse(const char *file, const char *text, gsize length, GError **error)
{
    LhJson *json = lh_json_parse(file, text, length, error);

    return json == NULL ? NULL : read_checklist(json, error);
}

LhChecklist *
lh_checklist_load(const char *name, GError **error)
{
    g_autofree char *path = lh_data_find("scenarios/checklists", name, error);
    LhJson *json = path == NULL ? NULL : lh_json_load(path, error);

    return json == NULL ? NULL : read_checklist(json, error);
}

void
lh_checklist_free(LhChecklist *checklist)
{
    if (checklist == NULL)
        return;
    lh_json_clear(lh_checklist_fields, checklist);
    lh_json_free(checklist->json);
    g_free(checklist);
}

GPtrArray *
lh_checklist_tables(const LhChecklist *checklist)
{
    GPtrArray *tables = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; i < checklist->lines->len; i++) {
        const GArray *rows = g_array_index(checklist->lines, LhChecklistLine, i).rows;

        for (guint k = 0; rows != NULL && k < rows->len; k++) {
            const char *table = g_array_index(rows, LhChecklistRows, k).table;

            if (!g_ptr_array_find_with_equal_func(tables, table, g_str_equal, NULL))
                g_ptr_array_add(tables, g_strdup(table));
        }
    }
    return tables;
}

/* --- lines and tables
 * --------------------------------------------------------------------------- */

static const LhReproducedTable *
find_table(const GPtrArray *tables, const char *name)
{
    for (guint i = 0; i < tables->len; i++) {
        const LhReproducedTable *table = g_ptr_array_index(tables, i);

        if (strcmp(table->paper->name, name) == 0 || strcmp(table->paper->path, name) == 0)
            return table;
    }
    return NULL;
}

void
lh_checklist_sort(const LhChecklist *checklist, GPtrArray *tables)
{
    g_autoptr(GPtrArray) names = lh_checklist_tables(checklist);
    guint sorted = 0;

    for (guint i = 0; i < names->len; i++) {
        const LhReproducedTable *table = find_table(tables, g_ptr_array_index(names, i));
        guint at;

        if (table == NULL || !g_ptr_array_find(tables, table, &at))
            continue;
        g_ptr_array_insert(tables, (int)sorted++, g_ptr_array_steal_index(tables, at));
    }
}

/* Whether @list contains @name. NULL contains everything; no other list contains a NULL name. */
static bool
is_listed(GPtrArray *list, const char *name)
{
    return list == NULL ||
           (name != NULL && g_ptr_array_find_with_equal_func(list, name, g_str_equal, NULL));
}

static bool
selects(const LhChecklistRows *rows, const LhReproducedTable *table, const LhPaperCase *c)
{
    const LhPaperMetric *metric = &g_array_index(table->paper->metrics, LhPaperMetric, c->metric);

    return lh_paper_row_matches(table->csv, c->row, rows->where) &&
           is_listed(rows->columns, metric->column) && is_listed(rows->metrics, metric->name);
}

static void
show_case(LhCheckedLine *checked, const LhPaperCase *c, const LhPaperMetric *metric)
{
    const LhPaperCase *shown = checked->shown;
    const bool bound = shown != NULL && metric->at_least && checked->metric->at_least &&
                       c->published == shown->published;

    if (c->state == LH_CASE_LESS || (bound && c->predicted >= shown->predicted))
        return;
    checked->several = checked->several || (shown != NULL && !bound);
    checked->shown = checked->several ? NULL : c;
    checked->metric = metric;
}

static void
add_rows(LhCheckedLine *checked, const LhChecklistRows *rows, const LhReproducedTable *table)
{
    for (guint i = 0; i < table->cases->len; i++) {
        const LhPaperCase *c = g_ptr_array_index(table->cases, i);

        if (!selects(rows, table, c))
            continue;
        show_case(checked, c, &g_array_index(table->paper->metrics, LhPaperMetric, c->metric));
        lh_paper_summary_add(&checked->summary, c);
    }
}

static bool
check_rows(const LhChecklist *checklist, guint index, const GPtrArray *tables,
           LhCheckedLine *checked, GError **error)
{
    const GArray *rows = checked->line->rows;

    for (guint i = 0; rows != NULL && i < rows->len; i++) {
        const LhChecklistRows *some = &g_array_index(rows, LhChecklistRows, i);
        const LhReproducedTable *table = find_table(tables, some->table);
        const guint before = checked->summary.cases;
        g_autofree char *at = g_strdup_printf("lines[%u].rows[%u]", index, i);

        if (table != NULL)
            add_rows(checked, some, table);
        if (checked->summary.cases == before)
            return lh_json_error(checklist->json, at, error,
                                 "\"%s\" selects no number of the table %s", at, some->table);
    }
    lh_paper_summary_finish(&checked->summary);
    return true;
}

GArray *
lh_checklist_check(const LhChecklist *checklist, const GPtrArray *tables, GError **error)
{
    g_autoptr(GArray) all = g_array_new(FALSE, TRUE, sizeof(LhCheckedLine));

    for (guint i = 0; i < checklist->lines->len; i++) {
        LhCheckedLine checked = { .line = &g_array_index(checklist->lines, LhChecklistLine, i) };

        if (!check_rows(checklist, i, tables, &checked, error))
            return NULL;
        g_array_append_val(all, checked);
    }
    return g_steal_pointer(&all);
}
