/* SPDX-License-Identifier: Apache-2.0 */
#include "report/text/reproduction_values.h"

#include "report/text/describe_checklist.h"

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

/* --- for machines -------------------------------------------------------------------------------
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

static void
write_null(LhJsonWriter *w, const char *key)
{
    lh_jsonw_string(w, key, NULL);
}

static void
write_real(LhJsonWriter *w, const char *key, bool known, double value)
{
    if (known)
        lh_jsonw_double(w, key, value);
    else
        write_null(w, key);
}

static void
write_tolerance(LhJsonWriter *w, const LhPaperTolerance *tolerance)
{
    write_real(w, "tolerance_mean", tolerance->mean > 0, tolerance->mean);
    write_real(w, "tolerance_worst", tolerance->worst > 0, tolerance->worst);
    write_real(w, "tolerance_pairs", tolerance->pairs > 0, tolerance->pairs);
}

static void
write_paper_summary(LhJsonWriter *w, const LhPaperSummary *s, const LhPaperTolerance *tolerance)
{
    lh_jsonw_uint(w, "numbers", s->cases);
    lh_jsonw_uint(w, "judged", s->judged);
    lh_jsonw_uint(w, "fitted", s->fitted);
    lh_jsonw_uint(w, "left_out", s->left_out);
    lh_jsonw_uint(w, "not_predicted", s->unpredicted);
    write_real(w, "mean_abs_error", s->judged > 0, s->mean_abs_error);
    write_real(w, "worst_abs_error", s->judged > 0, s->worst_abs_error);
    write_real(w, "bias", s->judged > 0, s->bias);
    lh_jsonw_uint(w, "within_error_bars", s->within_bars);
    lh_jsonw_uint(w, "pairs", s->pairs);
    lh_jsonw_uint(w, "pairs_in_order", s->pairs_in_order);
    lh_jsonw_uint(w, "bounds", s->bounds);
    lh_jsonw_uint(w, "bounds_held", s->bounds_held);
    write_real(w, "worst_below_bound", s->bounds > 0, s->worst_missed);
    lh_jsonw_uint(w, "memory_judged", s->memory_judged);
    lh_jsonw_uint(w, "memory_right", s->memory_right);
    write_tolerance(w, tolerance);
    lh_jsonw_bool(w, "within", !s->beyond);
}

/* The options as an object of texts; flags are true. */
static void
write_options(LhJsonWriter *w, const char *key, const LhPaperOptions *options)
{
    lh_jsonw_object_begin(w, key);
    for (guint i = 0; i < options->names->len; i++) {
        const char *value = g_ptr_array_index(options->values, i);

        if (value != NULL)
            lh_jsonw_string(w, g_ptr_array_index(options->names, i), value);
        else
            lh_jsonw_bool(w, g_ptr_array_index(options->names, i), true);
    }
    lh_jsonw_object_end(w);
}

static void
write_paper_case(LhJsonWriter *w, const LhReproducedTable *table, const LhPaperCase *c)
{
    const LhPaperMetric *metric = lh_reproduced_metric(table, c->metric);
    const bool published = c->state != LH_CASE_LEFT_OUT;
    const bool predicted = lh_paper_case_is_asked(c);

    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_uint(w, "line", c->line);
    lh_jsonw_string(w, "column", metric->column);
    lh_jsonw_string(w, "metric", lh_metric_names[metric->metric]);
    lh_jsonw_string(w, "state", lh_case_state_names[c->state]);
    write_real(w, "published", published && c->published_fits, c->published);
    write_real(w, "predicted", predicted && c->predicted_fits, c->predicted);
    write_real(w, "error", lh_reproduced_is_compared(c) && !c->bound, c->error);
    lh_jsonw_string(w, "bound", lh_reproduced_bound(c));
    write_real(w, "above_bound", lh_reproduced_is_compared(c) && c->bound, c->error);
    write_real(w, "error_bar", predicted && c->predicted_fits, c->error_bar);
    if (published)
        lh_jsonw_bool(w, "published_fits", c->published_fits);
    else
        write_null(w, "published_fits");
    if (predicted)
        lh_jsonw_bool(w, "predicted_fits", c->predicted_fits);
    else
        write_null(w, "predicted_fits");
    write_options(w, "options", c->options);
    if (c->against != NULL)
        write_options(w, "against", c->against);
    else
        write_null(w, "against");
    lh_jsonw_string(w, "reason", c->reason);
    lh_jsonw_string(w, "contradicted", c->contradicted);
    lh_jsonw_object_end(w);
}

static void
write_metrics(LhJsonWriter *w, const LhReproducedTable *table)
{
    lh_jsonw_array_begin(w, "metrics");
    for (guint i = 0; i < table->metrics->len; i++) {
        const LhPaperMetric *metric = lh_reproduced_metric(table, i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "column", metric->column);
        lh_jsonw_string(w, "metric", lh_metric_names[metric->metric]);
        write_paper_summary(w, &g_array_index(table->metrics, LhPaperSummary, i),
                            &metric->tolerance);
        lh_jsonw_string(w, "not_explained", metric->not_explained);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

static void
write_groups(LhJsonWriter *w, const LhReproducedTable *table)
{
    lh_jsonw_array_begin(w, "groups");
    for (guint i = 0; i < table->groups->len; i++) {
        const LhPaperGroup *group = &g_array_index(table->groups, LhPaperGroup, i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "group", group->name);
        write_paper_summary(w, &group->summary, &table->paper->group_tolerance);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

static void
write_fitted_constants(LhJsonWriter *w, const char *key, const GArray *constants)
{
    lh_jsonw_array_begin(w, key);
    for (guint i = 0; constants != NULL && i < constants->len; i++) {
        const LhFittedConstant *c = &g_array_index(constants, LhFittedConstant, i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "constant", lh_constant_names[c->constant]);
        lh_jsonw_double(w, "value", c->value);
        lh_jsonw_double(w, "fitted", c->fitted);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

static void
write_cross_fit(LhJsonWriter *w, const LhReproducedTable *table)
{
    if (table->cross_constants == NULL) {
        write_null(w, "cross_fit");
        return;
    }
    lh_jsonw_object_begin(w, "cross_fit");
    write_fitted_constants(w, "constants", table->cross_constants);
    lh_jsonw_uint(w, "judged", table->cross.judged);
    write_real(w, "mean_abs_error", table->cross.judged > 0, table->cross.mean_abs_error);
    write_real(w, "worst_abs_error", table->cross.judged > 0, table->cross.worst_abs_error);
    write_real(w, "own_mean_abs_error", table->own.judged > 0, table->own.mean_abs_error);
    lh_jsonw_object_end(w);
}

static void
write_table(LhJsonWriter *w, const LhReproducedTable *table)
{
    const LhPaper *paper = table->paper;

    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "table", paper->name);
    lh_jsonw_string(w, "description", paper->description);
    lh_jsonw_string(w, "source", paper->source);
    lh_jsonw_string(w, "caveat", paper->caveat);
    lh_jsonw_string(w, "sha256", lh_csv_sha256(table->csv));
    lh_jsonw_uint(w, "rows", lh_csv_rows(table->csv));
    write_paper_summary(w, &table->all, &paper->tolerance);
    lh_jsonw_string(w, "not_explained", paper->not_explained);
    write_metrics(w, table);
    write_groups(w, table);
    write_fitted_constants(w, "constants", table->constants);
    write_cross_fit(w, table);
    lh_jsonw_array_begin(w, "cases");
    for (guint i = 0; i < table->cases->len; i++)
        write_paper_case(w, table, g_ptr_array_index(table->cases, i));
    lh_jsonw_array_end(w);
    lh_jsonw_object_end(w);
}

void
lh_reproduction_json(const GPtrArray *tables, const GArray *checklist, const LhStamp *stamp,
                     GString *out)
{
    g_autoptr(LhJsonWriter) w = lh_jsonw_new(out, false);

    lh_document_begin(w, "longhaul.reproduction/1", stamp, NULL, false);
    lh_jsonw_bool(w, "within", lh_reproduced_within(tables));
    lh_jsonw_array_begin(w, "tables");
    for (guint i = 0; i < tables->len; i++)
        write_table(w, lh_reproduced_at(tables, i));
    lh_jsonw_array_end(w);
    lh_checklist_json(w, checklist);
    lh_jsonw_object_end(w);
}
