/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the descriptions of published tables.
 */
#include "papers/paper.h"

#include "base/error.h"
#include "base/files/data_files.h"
#include "scenario/constant.h"

#include <string.h>

#define TEXT_MAX 2000
#define ENTRIES_MAX 1000
#define METRIC_SCALE_MIN 1e-12
#define METRIC_SCALE_MAX 1e12

static const char *const schemas[] = { "longhaul.paper/1", NULL };

const char *const lh_metric_names[] = { "iteration_s",
                                        "tokens_per_s",
                                        "tokens_per_s_per_gpu",
                                        "model_tflops_per_gpu",
                                        "peak_gib",
                                        "longest_tokens",
                                        "tensor_context_bytes",
                                        "heads_ratio",
                                        "attention_s",
                                        "iterations_per_s",
                                        "compute_s",
                                        "communication_s",
                                        "time_over_compute",
                                        "idle_share",
                                        "tflops_per_gpu",
                                        "collective_us",
                                        "collective_left_out_us",
                                        "collective_links_edited_us",
                                        NULL };

G_STATIC_ASSERT(G_N_ELEMENTS(lh_metric_names) == LH_METRICS + 1);

bool
lh_metric_is_step(LhMetric metric)
{
    return metric < LH_METRIC_ATTENTION;
}

bool
lh_metric_is_count(LhMetric metric)
{
    return metric == LH_METRIC_TENSOR_CONTEXT_BYTES || metric == LH_METRIC_HEADS_RATIO;
}

bool
lh_metric_is_collective(LhMetric metric)
{
    return metric >= LH_METRIC_COLLECTIVE && metric <= LH_METRIC_COLLECTIVE_LINKS_EDITED;
}

#define TEXT(owner, key, needed, text)                                                             \
    {                                                                                              \
        .name = #key, .type = LH_FIELD_STRING, .offset = offsetof(owner, key), .flags = (needed),  \
        .min = 1, .max = TEXT_MAX, .description = (text)                                           \
    }
#define TEXTS(owner, key, needed, low, high, text)                                                 \
    {                                                                                              \
        .name = #key, .type = LH_FIELD_STRINGS, .offset = offsetof(owner, key), .flags = (needed), \
        .min = (low), .max = (high), .description = (text)                                         \
    }
#define LIST(owner, key, needed, element, table, init, text)                                       \
    {                                                                                              \
        .name = #key, .type = LH_FIELD_ARRAY, .offset = offsetof(owner, key), .flags = (needed),   \
        .min = 1, .max = ENTRIES_MAX, .fields = (table), .element_size = sizeof(element),          \
        .element_init = (init), .description = (text)                                              \
    }

static const LhField each_fields[] = {
    TEXTS(LhPaperEach, set, LH_FIELD_REQUIRED, 1, ENTRIES_MAX, "Options of this case."),
    { .name = NULL },
};

static const LhField value_fields[] = {
    { .name = "value",
      .type = LH_FIELD_STRING,
      .offset = offsetof(LhPaperValue, value),
      .flags = LH_FIELD_REQUIRED,
      .max = TEXT_MAX,
      .description = "Pattern of the cell; one * in it matches any text." },
    TEXTS(LhPaperValue, where, 0, 1, ENTRIES_MAX,
          "Further conditions of the row, each \"COLUMN=VALUE\", with a * that matches any text."),
    TEXTS(LhPaperValue, set, 0, 0, ENTRIES_MAX,
          "Options that the cell implies, such as \"seq_length=*\"."),
    LIST(LhPaperValue, each, 0, LhPaperEach, each_fields, NULL,
         "Cases of the row, if there are several."),
    TEXT(LhPaperValue, skip, 0, "Why rows with this value are left out."),
    { .name = NULL },
};

static const LhField column_fields[] = {
    TEXT(LhPaperColumn, column, LH_FIELD_REQUIRED, "A column of the table."),
    LIST(LhPaperColumn, values, LH_FIELD_REQUIRED, LhPaperValue, value_fields, NULL,
         "Meanings of its cells; the first value that matches is used."),
    { .name = NULL },
};

#define TOLERANCE(key, most, text)                                                                 \
    {                                                                                              \
        .name = #key, .type = LH_FIELD_DOUBLE, .offset = offsetof(LhPaperTolerance, key),          \
        .min = 0, .max = (most), .description = (text)                                             \
    }

static const LhField tolerance_fields[] = {
    TOLERANCE(mean, LH_PAPER_BOUND_MAX, "Bound of the mean absolute error; 0.02 is 2 %."),
    TOLERANCE(worst, LH_PAPER_BOUND_MAX, "Bound of the worst absolute error."),
    TOLERANCE(pairs, 1, "Least fraction of pairs in the right order."),
    { .name = NULL },
};

static void
init_metric(void *metric)
{
    ((LhPaperMetric *)metric)->scale = 1;
}

static const LhField metric_fields[] = {
    TEXT(LhPaperMetric, name, 0, "Name in summaries; default: the column's name."),
    TEXTS(LhPaperMetric, where, 0, 1, ENTRIES_MAX,
          "Conditions on the rows: each \"COLUMN=VALUE\", \"COLUMN!=VALUE\", \"COLUMN>=NUMBER\" or "
          "\"COLUMN<=NUMBER\"; default: all rows."),
    TEXT(LhPaperMetric, column, LH_FIELD_REQUIRED, "The column of the published values."),
    TEXT(LhPaperMetric, cell, 0,
         "Pattern of its cells; * is the number. Other cells are left out."),
    { .name = "number",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(LhPaperMetric, number),
      .min = METRIC_SCALE_MIN,
      .max = METRIC_SCALE_MAX,
      .description = "The published number, for cells that express it in words." },
    { .name = "metric",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(LhPaperMetric, metric),
      .flags = LH_FIELD_REQUIRED,
      .choices = lh_metric_names,
      .description = "The metric." },
    { .name = "scale",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(LhPaperMetric, scale),
      .min = METRIC_SCALE_MIN,
      .max = METRIC_SCALE_MAX,
      .description = "Factor from the published number to the metric's unit; default 1." },
    { .name = "at_least",
      .type = LH_FIELD_BOOL,
      .offset = offsetof(LhPaperMetric, at_least),
      .description = "Whether the published number is a lower bound, which holds or does not: such "
                     "rows have no error." },
    { .name = "up_to",
      .type = LH_FIELD_BOOL,
      .offset = offsetof(LhPaperMetric, up_to),
      .description = "Whether the published number is the maximum over the row's cases: only the "
                     "largest is judged." },
    TEXTS(LhPaperMetric, set, 0, 0, ENTRIES_MAX, "Options for this column only."),
    TEXTS(LhPaperMetric, against, 0, 1, ENTRIES_MAX,
          "Options of a second case: predicted is its value divided by that of the first."),
    { .name = "granularity",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = offsetof(LhPaperMetric, granularity),
      .min = 1,
      .max = LH_TOKENS_MAX,
      .description = "For the longest sequence: lengths are multiples of this number of tokens; "
                     "default: powers of two." },
    TEXT(LhPaperMetric, gpu, 0,
         "For memory: the GPU, a number from 1 or a formula of columns such as "
         "\"{8*node+worker-8}\"; default: the GPU with the highest peak."),
    { .name = "tolerance",
      .type = LH_FIELD_OBJECT,
      .offset = offsetof(LhPaperMetric, tolerance),
      .fields = tolerance_fields,
      .description = "Error bounds of the judged values of this column." },
    TEXT(LhPaperMetric, not_explained, 0,
         "Why errors of this column exceed the largest bounds allowed: it has no bounds."),
    { .name = NULL },
};

static const LhField fitted_fields[] = {
    TEXTS(LhPaperFitted, where, LH_FIELD_REQUIRED, 1, ENTRIES_MAX,
          "Each \"COLUMN=VALUE\", with a * that matches any text."),
    TEXTS(LhPaperFitted, columns, 0, 1, ENTRIES_MAX,
          "Published columns that constants were fitted to; default: all."),
    TEXTS(LhPaperFitted, metrics, 0, 1, ENTRIES_MAX,
          "Metrics that constants were fitted to; default: all."),
    { .name = NULL },
};

static const LhField contradiction_fields[] = {
    TEXTS(LhPaperContradiction, where, LH_FIELD_REQUIRED, 1, ENTRIES_MAX,
          "Conditions on the rows: each \"COLUMN=VALUE\", with a * that matches any text."),
    TEXTS(LhPaperContradiction, columns, 0, 1, ENTRIES_MAX,
          "Their published columns; default: all."),
    TEXT(LhPaperContradiction, value, LH_FIELD_REQUIRED, "The other number."),
    TEXT(LhPaperContradiction, at, LH_FIELD_REQUIRED,
         "Where the source states it, or what it follows from."),
    { .name = NULL },
};

const LhField lh_paper_fields[] = {
    { .name = "schema",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(LhPaper, schema),
      .flags = LH_FIELD_REQUIRED,
      .choices = schemas,
      .description = "The format and its version." },
    TEXT(LhPaper, name, LH_FIELD_REQUIRED,
         "The table's name, equal to the file's; its rows are in NAME.csv."),
    TEXT(LhPaper, description, LH_FIELD_REQUIRED, "Description of the measurement, one sentence."),
    TEXT(LhPaper, source, LH_FIELD_REQUIRED, "Publication of the table."),
    TEXT(LhPaper, caveat, 0, "Caveats of the comparison."),
    { .name = "serving",
      .type = LH_FIELD_BOOL,
      .offset = offsetof(LhPaper, serving),
      .description = "Whether rows time single attention kernels in a serving system: they are "
                     "then predicted at the rate of a cool device, with the serving system's "
                     "overhead per kernel if the device's row states it." },
    TEXTS(LhPaper, base, 0, 0, ENTRIES_MAX, "Options of all rows."),
    LIST(LhPaper, columns, 0, LhPaperColumn, column_fields, NULL, "Meaning of the columns."),
    LIST(LhPaper, metrics, LH_FIELD_REQUIRED, LhPaperMetric, metric_fields, init_metric,
         "Columns that are predicted."),
    LIST(LhPaper, fitted_on, 0, LhPaperFitted, fitted_fields, NULL,
         "Rows that constants were fitted to; they are not judged."),
    LIST(LhPaper, contradictions, 0, LhPaperContradiction, contradiction_fields, NULL,
         "Rows for which the source states other numbers elsewhere; these are shown too."),
    TEXTS(LhPaper, groups, 0, 1, ENTRIES_MAX,
          "Columns to group by: rows with the same cells in these are also summarised together."),
    { .name = "group_tolerance",
      .type = LH_FIELD_OBJECT,
      .offset = offsetof(LhPaper, group_tolerance),
      .fields = tolerance_fields,
      .description = "Error bounds of the judged values of each group." },
    TEXTS(LhPaper, constants, 0, 1, LH_PAPER_CONSTANTS_MAX,
          "Constants that are fitted to these rows."),
    { .name = "tolerance",
      .type = LH_FIELD_OBJECT,
      .offset = offsetof(LhPaper, tolerance),
      .fields = tolerance_fields,
      .description = "Error bounds of the judged values, over all metrics." },
    TEXT(LhPaper, not_explained, 0,
         "Why errors exceed the largest bounds allowed: the table has no bounds."),
    { .name = NULL },
};

/* --- checks beyond fields
 * ------------------------------------------------------------------------ */

/* Checks that a pattern has at most one '*'. */
static bool
check_pattern(const LhJson *json, const char *path, const char *pattern, GError **error)
{
    const char *star = strchr(pattern, '*');

    if (star == NULL || strchr(star + 1, '*') == NULL)
        return true;
    return lh_json_error(json, path, error, "\"%s\" has more than one *; allowed: one", path);
}

/* @path is the path of the list. */
static bool
check_options(const LhJson *json, const char *path, const GPtrArray *set, GError **error)
{
    for (guint i = 0; set != NULL && i < set->len; i++) {
        const char *text = g_ptr_array_index(set, i);
        g_autofree char *at = g_strdup_printf("%s[%u]", path, i);

        if (*text == '\0' || *text == '=')
            return lh_json_error(
                json, at, error,
                "\"%s\" names no option; allowed: OPTION, OPTION=VALUE, OPTION=", at);
    }
    return true;
}

bool
lh_paper_check_where(const LhJson *json, const char *path, const GPtrArray *where, GError **error)
{
    for (guint i = 0; where != NULL && i < where->len; i++) {
        const char *text = g_ptr_array_index(where, i);
        const char *equals = strchr(text, '=');
        g_autofree char *at = g_strdup_printf("%s[%u]", path, i);

        if (equals == NULL || equals == text)
            return lh_json_error(json, at, error, "\"%s\" must be COLUMN=VALUE", at);
        if (equals[-1] == '>' || equals[-1] == '<') {
            char *end;

            g_ascii_strtod(equals + 1, &end);
            if (equals == text + 1 || end == equals + 1 || *end != '\0')
                return lh_json_error(json, at, error, "\"%s\" must be COLUMN%.2sNUMBER", at,
                                     equals - 1);
        } else if (equals == text + 1 && equals[-1] == '!') {
            return lh_json_error(json, at, error, "\"%s\" must be COLUMN!=VALUE", at);
        } else if (!check_pattern(json, at, equals + 1, error)) {
            return false;
        }
    }
    return true;
}

/* @path is the path of the value. */
static bool
check_each(const LhJson *json, const char *path, const LhPaperValue *value, GError **error)
{
    for (guint i = 0; value->each != NULL && i < value->each->len; i++) {
        g_autofree char *set = g_strdup_printf("%s.each[%u].set", path, i);

        if (!check_options(json, set, g_array_index(value->each, LhPaperEach, i).set, error))
            return false;
    }
    return true;
}

static bool
check_column(const LhJson *json, const LhPaperColumn *column, guint index, GError **error)
{
    for (guint i = 0; i < column->values->len; i++) {
        const LhPaperValue *value = &g_array_index(column->values, LhPaperValue, i);
        g_autofree char *at = g_strdup_printf("columns[%u].values[%u]", index, i);
        g_autofree char *pattern = g_strconcat(at, ".value", NULL);
        g_autofree char *where = g_strconcat(at, ".where", NULL);
        g_autofree char *set = g_strconcat(at, ".set", NULL);

        if (!check_pattern(json, pattern, value->value, error) ||
            !lh_paper_check_where(json, where, value->where, error) ||
            !check_options(json, set, value->set, error) || !check_each(json, at, value, error))
            return false;
        if (value->skip != NULL && (value->set != NULL || value->each != NULL))
            return lh_json_error(json, at, error,
                                 "\"%s\" is left out (\"skip\") but has options (\"%s\")", at,
                                 value->set != NULL ? "set" : "each");
    }
    return true;
}

#define BOUNDS_AND_REASON "\"%s\" has bounds (\"tolerance\") but is \"not_explained\""

static bool
has_bounds(const LhPaperTolerance *t)
{
    return t->mean > 0 || t->worst > 0 || t->pairs > 0;
}

/* Checks that the number is either in the cell or given here, and that there is one kind of
 * judgement. */
static bool
check_judgement(const LhJson *json, const LhPaperMetric *metric, const char *at, GError **error)
{
    g_autofree char *cell = g_strconcat(at, ".cell", NULL);
    const bool in_cell = metric->cell == NULL || strchr(metric->cell, '*') != NULL;

    if (metric->number == 0 && !in_cell)
        return lh_json_error(json, cell, error, "\"%s\" has no * for the number", cell);
    if (metric->number != 0 && in_cell)
        return lh_json_error(json, at, error,
                             "\"%s\" has \"number\" and a cell with a number; allowed: \"number\" "
                             "with a \"cell\" without *",
                             at);
    if (metric->at_least && metric->up_to)
        return lh_json_error(json, at, error,
                             "\"%s\" is \"at_least\" and \"up_to\"; allowed: one of them", at);
    return true;
}

static bool
check_metric(const LhJson *json, const LhPaperMetric *metric, guint index, GError **error)
{
    g_autofree char *at = g_strdup_printf("metrics[%u]", index);
    g_autofree char *cell = g_strconcat(at, ".cell", NULL);
    g_autofree char *set = g_strconcat(at, ".set", NULL);
    g_autofree char *against = g_strconcat(at, ".against", NULL);
    g_autofree char *where = g_strconcat(at, ".where", NULL);

    if (!check_judgement(json, metric, at, error))
        return false;
    if (metric->granularity != 0 && metric->metric != LH_METRIC_LONGEST_TOKENS)
        return lh_json_error(json, at, error, "\"%s\": \"granularity\" applies only to %s", at,
                             lh_metric_names[LH_METRIC_LONGEST_TOKENS]);
    if (metric->not_explained != NULL && has_bounds(&metric->tolerance))
        return lh_json_error(json, at, error, BOUNDS_AND_REASON, at);
    if (metric->gpu != NULL && metric->metric != LH_METRIC_PEAK_GIB)
        return lh_json_error(json, at, error, "\"%s\": \"gpu\" applies only to %s", at,
                             lh_metric_names[LH_METRIC_PEAK_GIB]);
    return (metric->cell == NULL || check_pattern(json, cell, metric->cell, error)) &&
           lh_paper_check_where(json, where, metric->where, error) &&
           check_options(json, set, metric->set, error) &&
           check_options(json, against, metric->against, error);
}

static bool
check_constants(const LhJson *json, const GPtrArray *names, GError **error)
{
    for (guint i = 0; names != NULL && i < names->len; i++) {
        g_autofree char *at = g_strdup_printf("constants[%u]", i);
        g_autofree char *all = NULL;

        if (lh_constant_find(g_ptr_array_index(names, i)) != LH_CONSTANTS)
            continue;
        all = g_strjoinv(", ", (char **)lh_constant_names);
        return lh_json_error(json, at, error, "\"%s\" must be one of %s", at, all);
    }
    return true;
}

static bool
check_fitted(const LhJson *json, const LhPaperFitted *fitted, guint index, GError **error)
{
    g_autofree char *where = g_strdup_printf("fitted_on[%u].where", index);

    for (guint i = 0; fitted->metrics != NULL && i < fitted->metrics->len; i++) {
        g_autofree char *at = g_strdup_printf("fitted_on[%u].metrics[%u]", index, i);
        g_autofree char *all = NULL;

        if (g_strv_contains(lh_metric_names, g_ptr_array_index(fitted->metrics, i)))
            continue;
        all = g_strjoinv(", ", (char **)lh_metric_names);
        return lh_json_error(json, at, error, "\"%s\" must be one of %s", at, all);
    }
    return lh_paper_check_where(json, where, fitted->where, error);
}

static bool
check_paper(const LhJson *json, const LhPaper *paper, GError **error)
{
    if (lh_json_has(json, "group_tolerance") && paper->groups == NULL)
        return lh_json_error(json, "group_tolerance", error,
                             "\"group_tolerance\" needs \"groups\"");
    if (paper->not_explained != NULL &&
        (has_bounds(&paper->tolerance) || has_bounds(&paper->group_tolerance)))
        return lh_json_error(json, "not_explained", error, BOUNDS_AND_REASON, "not_explained");
    if (!check_options(json, "base", paper->base, error) ||
        !check_constants(json, paper->constants, error))
        return false;
    for (guint i = 0; paper->columns != NULL && i < paper->columns->len; i++) {
        if (!check_column(json, &g_array_index(paper->columns, LhPaperColumn, i), i, error))
            return false;
    }
    for (guint i = 0; i < paper->metrics->len; i++) {
        if (!check_metric(json, &g_array_index(paper->metrics, LhPaperMetric, i), i, error))
            return false;
    }
    for (guint i = 0; paper->fitted_on != NULL && i < paper->fitted_on->len; i++) {
        if (!check_fitted(json, &g_array_index(paper->fitted_on, LhPaperFitted, i), i, error))
            return false;
    }
    for (guint i = 0; paper->contradictions != NULL && i < paper->contradictions->len; i++) {
        g_autofree char *where = g_strdup_printf("contradictions[%u].where", i);

        if (!lh_paper_check_where(
                json, where, g_array_index(paper->contradictions, LhPaperContradiction, i).where,
                error))
            return false;
    }
    return true;
}

/* --- reading ------------------------------------------------------------------------------------
 */

static LhPaper *
read_paper(const char *path, const LhJson *json, GError **error)
{
    g_autoptr(LhPaper) paper = g_new0(LhPaper, 1);

    if (!lh_json_decode(json, lh_paper_fields, paper, false, error) ||
        !check_paper(json, paper, error))
        return NULL;
    paper->path = g_strdup(path);
    return g_steal_pointer(&paper);
}

LhPaper *
lh_paper_parse(const char *file, const char *text, gsize length, GError **error)
{
    g_autoptr(LhJson) json = lh_json_parse(file, text, length, error);

    return json == NULL ? NULL : read_paper(file, json, error);
}

char **
lh_paper_list(void)
{
    return lh_data_list("scenarios/papers");
}

LhPaper *
lh_paper_load(const char *name, GError **error)
{
    g_autofree char *path = lh_data_find("scenarios/papers", name, error);
    g_autoptr(LhJson) json = path == NULL ? NULL : lh_json_load(path, error);

    return json == NULL ? NULL : read_paper(path, json, error);
}

void
lh_paper_free(LhPaper *paper)
{
    if (paper == NULL)
        return;
    lh_json_clear(lh_paper_fields, paper);
    g_free(paper->path);
    g_free(paper);
}

char *
lh_paper_rows_path(const LhPaper *paper, const char *folder)
{
    g_autofree char *own = g_path_get_dirname(paper->path);
    g_autofree char *file = g_strconcat(paper->name, ".csv", NULL);

    if (folder != NULL && g_file_test(folder, G_FILE_TEST_IS_REGULAR))
        return g_strdup(folder);
    return g_build_filename(folder != NULL ? folder : own, file, NULL);
}

LhCsv *
lh_paper_rows(const LhPaper *paper, const char *folder, GError **error)
{
    g_autofree char *path = lh_paper_rows_path(paper, folder);
    g_autoptr(LhCsv) rows = lh_csv_load(path, error);

    if (rows == NULL)
        return NULL;
    for (guint i = 0; paper->columns != NULL && i < paper->columns->len; i++) {
        if (lh_csv_column(rows, g_array_index(paper->columns, LhPaperColumn, i).column, error) < 0)
            return NULL;
    }
    for (guint i = 0; i < paper->metrics->len; i++) {
        if (lh_csv_column(rows, g_array_index(paper->metrics, LhPaperMetric, i).column, error) < 0)
            return NULL;
    }
    for (guint i = 0; paper->groups != NULL && i < paper->groups->len; i++) {
        if (lh_csv_column(rows, g_ptr_array_index(paper->groups, i), error) < 0)
            return NULL;
    }
    return g_steal_pointer(&rows);
}

char *
lh_paper_match(const char *pattern, const char *text)
{
    const char *star = strchr(pattern, '*');
    const gsize before = star == NULL ? 0 : (gsize)(star - pattern);
    const gsize after = star == NULL ? 0 : strlen(star + 1);
    const gsize length = strlen(text);

    if (star == NULL)
        return strcmp(pattern, text) == 0 ? g_strdup("") : NULL;
    if (length < before + after || strncmp(text, pattern, before) != 0 ||
        strcmp(text + length - after, star + 1) != 0)
        return NULL;
    return g_strndup(text + before, length - before - after);
}
