/* SPDX-License-Identifier: Apache-2.0 */
#include "report/text/reproduction_values.h"

#include "base/json/json_decode.h"
#include "report/data/document.h"
#include "report/text/describe_checklist.h"

#include <math.h>

const LhPaperMetric *
lh_reproduced_metric(const LhReproducedTable *table, guint index)
{
    return &g_array_index(table->paper->metrics, LhPaperMetric, index);
}

const LhReproducedTable *
lh_reproduced_at(const GPtrArray *tables, guint index)
{
    return g_ptr_array_index(tables, index);
}

/* --- one table ----------------------------------------------------------------------------------
 */

bool
lh_reproduced_is_compared(const LhPaperCase *c)
{
    return lh_paper_case_is_asked(c) && c->state != LH_CASE_LESS && c->published_fits &&
           c->predicted_fits;
}

const char *
lh_reproduced_bound(const LhPaperCase *c)
{
    return !c->bound || !lh_reproduced_is_compared(c) ? NULL : c->error >= 0 ? "held" : "not held";
}

/* --- CSV and JSON -------------------------------------------------------------------------------
 */

static void
add_exact(LhTable *t, bool known, double value)
{
    char buffer[G_ASCII_DTOSTR_BUF_SIZE];

    lh_table_cell(t, known ? lh_double_to_text(value, buffer) : "", NULL);
}

static void
add_case(LhTable *t, const LhReproducedTable *table, const LhPaperCase *c)
{
    const LhPaperMetric *metric = lh_reproduced_metric(table, c->metric);
    const bool published = c->state != LH_CASE_LEFT_OUT && c->published_fits;
    const bool predicted = lh_paper_case_is_asked(c) && c->predicted_fits;
    g_autofree char *options = lh_paper_options_text(c->options);

    lh_table_row(t);
    lh_table_cell(t, table->paper->name, NULL);
    lh_table_cell_printf(t, "%u", c->line);
    lh_table_cell(t, metric->column, NULL);
    lh_table_cell(t, lh_metric_names[metric->metric], NULL);
    lh_table_cell(t, lh_case_state_names[c->state], NULL);
    add_exact(t, published, c->published);
    add_exact(t, predicted, c->predicted);
    add_exact(t, lh_reproduced_is_compared(c) && !c->bound, c->error);
    add_exact(t, predicted, c->error_bar);
    lh_table_cell(t, c->state == LH_CASE_LEFT_OUT ? "" : c->published_fits ? "yes" : "no", NULL);
    lh_table_cell(t, !lh_paper_case_is_asked(c) ? "" : c->predicted_fits ? "yes" : "no", NULL);
    lh_table_cell(t, options, NULL);
    lh_table_cell(t, c->reason != NULL ? c->reason : "", NULL);
    lh_table_cell(t, c->contradicted != NULL ? c->contradicted : "", NULL);
    lh_table_cell(t, lh_reproduced_bound(c) != NULL ? lh_reproduced_bound(c) : "", NULL);
    add_exact(t, lh_reproduced_is_compared(c) && c->bound, c->error);
}

LhTable *
lh_reproduction_table(const GPtrArray *tables)
{
    static const struct {
        const char *key;
        bool number;
    } columns[] = {
        { "table", false },          { "line", true },
        { "column", false },         { "metric", false },
        { "state", false },          { "published", true },
        { "predicted", true },       { "error", true },
        { "error_bar", true },       { "published_fits", false },
        { "predicted_fits", false }, { "options", false },
        { "reason", false },         { "contradicted", false },
        { "bound", false },          { "above_bound", true },
    };
    LhTable *t = lh_table_new();

    for (gsize i = 0; i < G_N_ELEMENTS(columns); i++)
        lh_table_column(t, columns[i].key, columns[i].key, NULL, columns[i].number);
    for (guint i = 0; i < tables->len; i++) {
        const LhReproducedTable *table = lh_reproduced_at(tables, i);

        for (guint j = 0; j < table->cases->len; j++)
            add_case(t, table, g_ptr_array_index(table->cases, j));
    }
    return t;
}

/* ---- as JSON: errors ---- */

typedef struct {
    uint64_t numbers, judged, fitted, left_out, not_predicted;
    double mean_abs_error, worst_abs_error, bias; /* NAN: none is judged */
    uint64_t within_error_bars;
    uint64_t pairs, pairs_in_order;
    uint64_t bounds, bounds_held;
    double worst_below_bound; /* NAN: there is no bound */
    uint64_t memory_judged, memory_right;
    double tolerance_mean, tolerance_worst, tolerance_pairs; /* NAN: none */
    bool within;
} ReproducedSummary;

/* The rows of `member`, a ReproducedSummary of the struct `of`. */
#define REPRODUCED_SUMMARY(of, member)                                                             \
    LH_FIELD_ROW(UINT, of, member.numbers, "numbers", ALWAYS,                                      \
                 .description = "Published numbers."),                                             \
        LH_FIELD_ROW(UINT, of, member.judged, "judged", ALWAYS,                                    \
                     .description = "Judged numbers: those that have an error."),                  \
        LH_FIELD_ROW(UINT, of, member.fitted, "fitted", ALWAYS,                                    \
                     .description = "Numbers used to fit constants."),                             \
        LH_FIELD_ROW(UINT, of, member.left_out, "left_out", ALWAYS,                                \
                     .description = "Numbers excluded by the table's description."),               \
        LH_FIELD_ROW(UINT, of, member.not_predicted, "not_predicted", ALWAYS,                      \
                     .description = "Numbers not predicted, or refused."),                         \
        LH_FIELD_ROW(DOUBLE, of, member.mean_abs_error, "mean_abs_error", OR_NULL,                 \
                     .description = "Mean of |predicted / published - 1|; null: none is judged."), \
        LH_FIELD_ROW(DOUBLE, of, member.worst_abs_error, "worst_abs_error", OR_NULL,               \
                     .description = "Largest |predicted / published - 1|."),                       \
        LH_FIELD_ROW(DOUBLE, of, member.bias, "bias", OR_NULL,                                     \
                     .description = "Bias: mean of predicted / published - 1."),                   \
        LH_FIELD_ROW(UINT, of, member.within_error_bars, "within_error_bars", ALWAYS,              \
                     .description = "Judged numbers within the prediction's error bar."),          \
        LH_FIELD_ROW(UINT, of, member.pairs, "pairs", ALWAYS,                                      \
                     .description =                                                                \
                         "Pairs of numbers that differ only in schedule or framework."),           \
        LH_FIELD_ROW(UINT, of, member.pairs_in_order, "pairs_in_order", ALWAYS,                    \
                     .description = "Pairs predicted in the published order."),                    \
        LH_FIELD_ROW(UINT, of, member.bounds, "bounds", ALWAYS,                                    \
                     .description = "Published lower bounds, which have no error."),               \
        LH_FIELD_ROW(UINT, of, member.bounds_held, "bounds_held", ALWAYS,                          \
                     .description = "Bounds that hold."),                                          \
        LH_FIELD_ROW(                                                                              \
            DOUBLE, of, member.worst_below_bound, "worst_below_bound", OR_NULL,                    \
            .description =                                                                         \
                "Largest relative distance of a prediction below its bound; null: no bounds."),    \
        LH_FIELD_ROW(UINT, of, member.memory_judged, "memory_judged", ALWAYS,                      \
                     .description = "Numbers out of memory as published or as predicted."),        \
        LH_FIELD_ROW(UINT, of, member.memory_right, "memory_right", ALWAYS,                        \
                     .description = "Numbers of these out of memory in both."),                    \
        LH_FIELD_ROW(DOUBLE, of, member.tolerance_mean, "tolerance_mean", OR_NULL,                 \
                     .description = "Limit of mean_abs_error; null: none."),                       \
        LH_FIELD_ROW(DOUBLE, of, member.tolerance_worst, "tolerance_worst", OR_NULL,               \
                     .description = "Limit of worst_abs_error; null: none."),                      \
        LH_FIELD_ROW(DOUBLE, of, member.tolerance_pairs, "tolerance_pairs", OR_NULL,               \
                     .description = "Limit of pairs_in_order / pairs; null: none."),               \
        LH_FIELD_ROW(BOOL, of, member.within, "within", ALWAYS,                                    \
                     .description = "Whether the limits are kept.")

static double
known_or_nan(bool known, double value)
{
    return known ? value : NAN;
}

static ReproducedSummary
reproduced_summary(const LhPaperSummary *s, const LhPaperTolerance *tolerance)
{
    return (ReproducedSummary){
        .numbers = s->cases,
        .judged = s->judged,
        .fitted = s->fitted,
        .left_out = s->left_out,
        .not_predicted = s->unpredicted,
        .mean_abs_error = known_or_nan(s->judged > 0, s->mean_abs_error),
        .worst_abs_error = known_or_nan(s->judged > 0, s->worst_abs_error),
        .bias = known_or_nan(s->judged > 0, s->bias),
        .within_error_bars = s->within_bars,
        .pairs = s->pairs,
        .pairs_in_order = s->pairs_in_order,
        .bounds = s->bounds,
        .bounds_held = s->bounds_held,
        .worst_below_bound = known_or_nan(s->bounds > 0, s->worst_missed),
        .memory_judged = s->memory_judged,
        .memory_right = s->memory_right,
        .tolerance_mean = known_or_nan(tolerance->mean > 0, tolerance->mean),
        .tolerance_worst = known_or_nan(tolerance->worst > 0, tolerance->worst),
        .tolerance_pairs = known_or_nan(tolerance->pairs > 0, tolerance->pairs),
        .within = !s->beyond,
    };
}

typedef struct {
    char *column;
    int metric; /* LhMetric */
    ReproducedSummary summary;
    char *not_explained;
} ReproducedMetric;

static const LhField reproduced_metric_fields[] = {
    LH_FIELD_ROW(STRING, ReproducedMetric, column, "column", ALWAYS,
                 .description = "Column of the published values."),
    LH_FIELD_ROW(CHOICE, ReproducedMetric, metric, "metric", ALWAYS, .choices = lh_metric_names,
                 .description = "Metric of the values."),
    REPRODUCED_SUMMARY(ReproducedMetric, summary),
    LH_FIELD_ROW(STRING, ReproducedMetric, not_explained, "not_explained", OR_NULL,
                 .description = "Why the error may exceed its limits; null: it may not."),
    { .name = NULL },
};

static GArray *
reproduced_metrics(const LhReproducedTable *table)
{
    GArray *metrics = g_array_new(FALSE, FALSE, sizeof(ReproducedMetric));

    for (guint i = 0; i < table->metrics->len; i++) {
        const LhPaperMetric *metric = lh_reproduced_metric(table, i);
        const ReproducedMetric values = {
            .column = g_strdup(metric->column),
            .metric = metric->metric,
            .summary = reproduced_summary(&g_array_index(table->metrics, LhPaperSummary, i),
                                          &metric->tolerance),
            .not_explained = g_strdup(metric->not_explained),
        };

        g_array_append_val(metrics, values);
    }
    return metrics;
}

typedef struct {
    char *group;
    ReproducedSummary summary;
} ReproducedGroup;

static const LhField reproduced_group_fields[] = {
    LH_FIELD_ROW(STRING, ReproducedGroup, group, "group", ALWAYS,
                 .description = "Cells of the columns by which rows are grouped."),
    REPRODUCED_SUMMARY(ReproducedGroup, summary),
    { .name = NULL },
};

static GArray *
reproduced_groups(const LhReproducedTable *table)
{
    GArray *groups = g_array_new(FALSE, FALSE, sizeof(ReproducedGroup));

    for (guint i = 0; i < table->groups->len; i++) {
        const LhPaperGroup *group = &g_array_index(table->groups, LhPaperGroup, i);
        const ReproducedGroup values = {
            .group = g_strdup(group->name),
            .summary = reproduced_summary(&group->summary, &table->paper->group_tolerance),
        };

        g_array_append_val(groups, values);
    }
    return groups;
}

/* ---- as JSON: constants ---- */

typedef struct {
    int constant; /* LhConstant */
    double value, fitted;
} ReproducedConstant;

static const LhField reproduced_constant_fields[] = {
    LH_FIELD_ROW(CHOICE, ReproducedConstant, constant, "constant", ALWAYS,
                 .choices = lh_constant_names, .description = "The constant."),
    LH_FIELD_ROW(DOUBLE, ReproducedConstant, value, "value", ALWAYS,
                 .description = "Value in the files."),
    LH_FIELD_ROW(DOUBLE, ReproducedConstant, fitted, "fitted", ALWAYS,
                 .description = "Fitted value."),
    { .name = NULL },
};

/* @fitted: of LhFittedConstant; NULL: none. */
static GArray *
reproduced_constants(const GArray *fitted)
{
    GArray *constants = g_array_new(FALSE, FALSE, sizeof(ReproducedConstant));

    for (guint i = 0; fitted != NULL && i < fitted->len; i++) {
        const LhFittedConstant *c = &g_array_index(fitted, LhFittedConstant, i);
        const ReproducedConstant values = { (int)c->constant, c->value, c->fitted };

        g_array_append_val(constants, values);
    }
    return constants;
}

typedef struct {
    GArray *constants; /* of ReproducedConstant */
    uint64_t judged;
    double mean_abs_error, worst_abs_error, own_mean_abs_error; /* NAN: none is judged */
} ReproducedCross;

static const LhField reproduced_cross_fields[] = {
    LH_FIELD_ROW(ARRAY, ReproducedCross, constants, "constants", ALWAYS,
                 .fields = reproduced_constant_fields, .element_size = sizeof(ReproducedConstant),
                 .description = "Constants fitted to the judged rows."),
    LH_FIELD_ROW(UINT, ReproducedCross, judged, "judged", ALWAYS,
                 .description = "Number of the other rows, by which these constants are judged."),
    LH_FIELD_ROW(DOUBLE, ReproducedCross, mean_abs_error, "mean_abs_error", OR_NULL,
                 .description = "Mean absolute error of the other rows with these constants."),
    LH_FIELD_ROW(DOUBLE, ReproducedCross, worst_abs_error, "worst_abs_error", OR_NULL,
                 .description = "Worst absolute error of the other rows with these constants."),
    LH_FIELD_ROW(DOUBLE, ReproducedCross, own_mean_abs_error, "own_mean_abs_error", OR_NULL,
                 .description =
                     "Mean absolute error of the same rows with the constants of the files."),
    { .name = NULL },
};

static ReproducedCross
reproduced_cross(const LhReproducedTable *table)
{
    const LhPaperSummary *cross = &table->cross, *own = &table->own;

    return (ReproducedCross){
        .constants = reproduced_constants(table->cross_constants),
        .judged = cross->judged,
        .mean_abs_error = known_or_nan(cross->judged > 0, cross->mean_abs_error),
        .worst_abs_error = known_or_nan(cross->judged > 0, cross->worst_abs_error),
        .own_mean_abs_error = known_or_nan(own->judged > 0, own->mean_abs_error),
    };
}

/* ---- as JSON: numbers ---- */

typedef struct {
    uint64_t line;
    char *column;
    int metric, state;           /* LhMetric, LhCaseState */
    double published, predicted; /* NAN: none, like all that follow */
    double error;
    char *bound;
    double above_bound, error_bar;
    int published_fits, predicted_fits;
    GArray *options, *against; /* of LhFieldMember */
    char *reason, *contradicted;
} ReproducedCase;

static const LhField reproduced_options[] = {
    { .name = "text", .type = LH_FIELD_STRING },
    { .name = "flag", .type = LH_FIELD_BOOL },
    { .name = NULL },
};

static const char *const reproduced_bounds[] = { "held", "not held", NULL };

static const LhField reproduced_case_fields[] = {
    LH_FIELD_ROW(UINT, ReproducedCase, line, "line", ALWAYS,
                 .description = "Line of the table's file."),
    LH_FIELD_ROW(STRING, ReproducedCase, column, "column", ALWAYS,
                 .description = "Column of the table's file."),
    LH_FIELD_ROW(CHOICE, ReproducedCase, metric, "metric", ALWAYS, .choices = lh_metric_names,
                 .description = "Metric of the value."),
    LH_FIELD_ROW(CHOICE, ReproducedCase, state, "state", ALWAYS, .choices = lh_case_state_names,
                 .description = "Whether it is judged, and if not, why."),
    LH_FIELD_ROW(DOUBLE, ReproducedCase, published, "published", OR_NULL,
                 .description =
                     "Published value in the metric's unit; null: left out, or out of memory."),
    LH_FIELD_ROW(DOUBLE, ReproducedCase, predicted, "predicted", OR_NULL,
                 .description = "Predicted value; null: not predicted, or out of memory."),
    LH_FIELD_ROW(DOUBLE, ReproducedCase, error, "error", OR_NULL,
                 .description = "predicted / published - 1; null: none, as for bounds."),
    LH_FIELD_ROW(STRING, ReproducedCase, bound, "bound", OR_NULL, .choices = reproduced_bounds,
                 .description = "For a lower bound: whether it holds."),
    LH_FIELD_ROW(DOUBLE, ReproducedCase, above_bound, "above_bound", OR_NULL,
                 .description = "For a lower bound: predicted / published - 1."),
    LH_FIELD_ROW(DOUBLE, ReproducedCase, error_bar, "error_bar", OR_NULL,
                 .description = "Error bar e: four of five published numbers are expected between "
                                "predicted / (1 + e) and predicted * (1 + e)."),
    LH_FIELD_ROW(TRUTH, ReproducedCase, published_fits, "published_fits", OR_NULL,
                 .description = "false: published as out of memory."),
    LH_FIELD_ROW(TRUTH, ReproducedCase, predicted_fits, "predicted_fits", OR_NULL,
                 .description = "false: predicted as out of memory."),
    LH_FIELD_ROW(MEMBERS, ReproducedCase, options, "options", ALWAYS, .fields = reproduced_options,
                 .description = "Options of the row, as texts; a flag is true."),
    LH_FIELD_ROW(MEMBERS, ReproducedCase, against, "against", OR_NULL, .fields = reproduced_options,
                 .description = "Options of the base of a ratio; null: not a ratio."),
    LH_FIELD_ROW(STRING, ReproducedCase, reason, "reason", OR_NULL,
                 .description = "Why it is left out or not predicted."),
    LH_FIELD_ROW(STRING, ReproducedCase, contradicted, "contradicted", OR_NULL,
                 .description =
                     "Other values in the source for the same number, with their places."),
    { .name = NULL },
};

/* NULL: none. */
static GArray *
members_of_options(const LhPaperOptions *options)
{
    GArray *members;

    if (options == NULL)
        return NULL;
    members = g_array_new(FALSE, TRUE, sizeof(LhFieldMember));
    for (guint i = 0; i < options->names->len; i++) {
        const char *value = g_ptr_array_index(options->values, i);
        LhFieldMember member = { .field = { .name = g_ptr_array_index(options->names, i),
                                            .type = LH_FIELD_BOOL,
                                            .flags = LH_FIELD_REQUIRED },
                                 .value.flag = true };

        if (value != NULL) {
            member.field.type = LH_FIELD_STRING;
            member.value.string = g_strdup(value);
        }
        g_array_append_val(members, member);
    }
    return members;
}

static ReproducedCase
reproduced_case(const LhReproducedTable *table, const LhPaperCase *c)
{
    const LhPaperMetric *metric = lh_reproduced_metric(table, c->metric);
    const bool published = c->state != LH_CASE_LEFT_OUT, predicted = lh_paper_case_is_asked(c);
    const bool compared = lh_reproduced_is_compared(c);

    return (ReproducedCase){
        .line = c->line,
        .column = g_strdup(metric->column),
        .metric = metric->metric,
        .state = (int)c->state,
        .published = known_or_nan(published && c->published_fits, c->published),
        .predicted = known_or_nan(predicted && c->predicted_fits, c->predicted),
        .error = known_or_nan(compared && !c->bound, c->error),
        .bound = g_strdup(lh_reproduced_bound(c)),
        .above_bound = known_or_nan(compared && c->bound, c->error),
        .error_bar = known_or_nan(predicted && c->predicted_fits, c->error_bar),
        .published_fits = published ? c->published_fits : -1,
        .predicted_fits = predicted ? c->predicted_fits : -1,
        .options = members_of_options(c->options),
        .against = members_of_options(c->against),
        .reason = g_strdup(c->reason),
        .contradicted = g_strdup(c->contradicted),
    };
}

static GArray *
reproduced_cases(const LhReproducedTable *table)
{
    GArray *cases = g_array_new(FALSE, FALSE, sizeof(ReproducedCase));

    for (guint i = 0; i < table->cases->len; i++) {
        const ReproducedCase values = reproduced_case(table, g_ptr_array_index(table->cases, i));

        g_array_append_val(cases, values);
    }
    return cases;
}

/* ---- as JSON: tables, and the document ---- */

typedef struct {
    char *table, *description, *source, *caveat, *sha256;
    uint64_t rows;
    ReproducedSummary all;
    char *not_explained;
    GArray *metrics, *groups,
        *constants;               /* of ReproducedMetric, ReproducedGroup, ReproducedConstant */
    const ReproducedCross *cross; /* NULL: not fitted; else ... */
    ReproducedCross crossed;      /* ... this */
    GArray *cases;                /* of ReproducedCase */
} ReproducedTable;

static const LhField reproduced_table_fields[] = {
    LH_FIELD_ROW(STRING, ReproducedTable, table, "table", ALWAYS,
                 .description = "Name of the table."),
    LH_FIELD_ROW(STRING, ReproducedTable, description, "description", ALWAYS,
                 .description = "What was measured."),
    LH_FIELD_ROW(STRING, ReproducedTable, source, "source", ALWAYS, .description = "Publication."),
    LH_FIELD_ROW(STRING, ReproducedTable, caveat, "caveat", OR_NULL,
                 .description = "Caveat on the comparison."),
    LH_FIELD_ROW(STRING, ReproducedTable, sha256, "sha256", ALWAYS,
                 .description = "SHA-256 of the file of rows."),
    LH_FIELD_ROW(UINT, ReproducedTable, rows, "rows", ALWAYS, .description = "Number of rows."),
    REPRODUCED_SUMMARY(ReproducedTable, all),
    LH_FIELD_ROW(STRING, ReproducedTable, not_explained, "not_explained", OR_NULL,
                 .description = "Why the error may exceed its limits; null: it may not."),
    LH_FIELD_ROW(ARRAY, ReproducedTable, metrics, "metrics", ALWAYS,
                 .fields = reproduced_metric_fields, .element_size = sizeof(ReproducedMetric),
                 .description = "Summary of each metric."),
    LH_FIELD_ROW(ARRAY, ReproducedTable, groups, "groups", ALWAYS,
                 .fields = reproduced_group_fields, .element_size = sizeof(ReproducedGroup),
                 .description = "Summaries of groups of rows, if there are any."),
    LH_FIELD_ROW(ARRAY, ReproducedTable, constants, "constants", ALWAYS,
                 .fields = reproduced_constant_fields, .element_size = sizeof(ReproducedConstant),
                 .description = "Constants fitted anew, as requested by --fit."),
    LH_FIELD_ROW(
        POINTER, ReproducedTable, cross, "cross_fit", OR_NULL, .fields = reproduced_cross_fields,
        .description =
            "Holdout errors with constants fitted to the judged rows; null: none were fitted."),
    LH_FIELD_ROW(ARRAY, ReproducedTable, cases, "cases", ALWAYS, .fields = reproduced_case_fields,
                 .element_size = sizeof(ReproducedCase), .description = "All published numbers."),
    { .name = NULL },
};

/* Its pointers are into itself. */
static void
fill_reproduced(ReproducedTable *values, const LhReproducedTable *table)
{
    const LhPaper *paper = table->paper;

    *values = (ReproducedTable){
        .table = g_strdup(paper->name),
        .description = g_strdup(paper->description),
        .source = g_strdup(paper->source),
        .caveat = g_strdup(paper->caveat),
        .sha256 = g_strdup(lh_csv_sha256(table->csv)),
        .rows = lh_csv_rows(table->csv),
        .all = reproduced_summary(&table->all, &paper->tolerance),
        .not_explained = g_strdup(paper->not_explained),
        .metrics = reproduced_metrics(table),
        .groups = reproduced_groups(table),
        .constants = reproduced_constants(table->constants),
        .cases = reproduced_cases(table),
    };
    if (table->cross_constants == NULL)
        return;
    values->crossed = reproduced_cross(table);
    values->cross = &values->crossed;
}

typedef struct {
    LhDocumentHead head;
    bool within;
    GArray *tables;    /* of ReproducedTable */
    GArray *checklist; /* from lh_checklist_values() */
} Reproduction;

static const char *const reproduction_schema[] = { "longhaul.reproduction/1", NULL };

const LhField lh_reproduction_fields[] = {
    LH_DOCUMENT_HEAD(Reproduction, head, reproduction_schema),
    LH_FIELD_ROW(BOOL, Reproduction, within, "within", ALWAYS,
                 .description = "Whether every table is within its tolerance."),
    LH_FIELD_ROW(ARRAY, Reproduction, tables, "tables", ALWAYS, .fields = reproduced_table_fields,
                 .element_size = sizeof(ReproducedTable), .description = "Published tables."),
    LH_FIELD_ROW(
        ARRAY, Reproduction, checklist, "checklist", OR_NULL, .fields = lh_checklist_line_fields,
        .description = "Claims of papers, line by line; null: no checklist was requested."),
    { .name = NULL },
};

static GArray *
reproduced_tables(const GPtrArray *tables)
{
    GArray *values = g_array_sized_new(FALSE, TRUE, sizeof(ReproducedTable), tables->len);

    g_array_set_size(values, tables->len);
    for (guint i = 0; i < tables->len; i++)
        fill_reproduced(&g_array_index(values, ReproducedTable, i), lh_reproduced_at(tables, i));
    return values;
}

static void
clear_reproduction(Reproduction *document)
{
    for (guint i = 0; i < document->tables->len; i++)
        lh_json_clear(reproduced_cross_fields,
                      &g_array_index(document->tables, ReproducedTable, i).crossed);
    lh_document_head_clear(&document->head);
    lh_json_clear(lh_reproduction_fields, document);
}

void
lh_reproduction_json(const GPtrArray *tables, const GArray *checklist, const LhStamp *stamp,
                     GString *out)
{
    Reproduction document = {
        .head = lh_document_head(reproduction_schema[0], stamp, NULL),
        .within = lh_reproduced_within(tables),
        .tables = reproduced_tables(tables),
        .checklist = lh_checklist_values(checklist),
    };

    lh_json_encode_text(lh_reproduction_fields, &document, out);
    clear_reproduction(&document);
}
