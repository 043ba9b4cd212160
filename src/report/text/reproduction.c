/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors are shares in JSON and CSV, and percentages for people.
 */
#include "report/text/reproduction.h"

#include "report/text/number_cells.h"
#include "report/text/reproduction_values.h"

/* --- one row per table --------------------------------------------------------------------------
 */

static void
add_count(LhTable *t, guint count)
{
    if (count > 0)
        lh_table_cell_printf(t, "%u", count);
    else
        lh_table_cell(t, "", NULL);
}

static void
add_share(LhTable *t, guint count, guint of)
{
    if (of > 0)
        lh_table_cell_printf(t, "%u of %u", count, of);
    else
        lh_table_cell(t, "", NULL);
}

/* @in_part: some of the values have no bound, since their error is not explained. */
static const char *
bounds_verdict(const LhPaperSummary *s, const LhPaperTolerance *bounds, bool in_part)
{
    const bool bounded = bounds->mean > 0 || bounds->worst > 0 || bounds->pairs > 0;

    if (s->judged + s->bounds + s->memory_judged == 0)
        return "";
    if (!bounded)
        return in_part ? "not explained" : "";
    return s->beyond ? "no" : in_part ? "in part" : "yes";
}

static void
add_summary(LhTable *t, const char *name, const LhPaperSummary *s, const LhPaperTolerance *bounds,
            bool in_part)
{
    char buffer[LH_SHARE_TEXT];
    const bool any = s->judged > 0;

    lh_table_row(t);
    lh_table_cell(t, name, NULL);
    lh_table_cell_printf(t, "%u", s->cases);
    add_count(t, s->fitted);
    add_count(t, s->judged);
    lh_table_cell(t, any ? lh_share_text(s->mean_abs_error, buffer) : "", NULL);
    lh_table_cell(t, any ? lh_share_text(s->worst_abs_error, buffer) : "", NULL);
    lh_table_cell(t, any ? lh_share_signed(s->bias, buffer) : "", NULL);
    add_share(t, s->within_bars, s->judged);
    add_share(t, s->pairs_in_order, s->pairs);
    add_share(t, s->bounds_held, s->bounds);
    add_share(t, s->memory_right, s->memory_judged);
    add_count(t, s->left_out);
    add_count(t, s->unpredicted);
    lh_table_cell(t, bounds_verdict(s, bounds, in_part), NULL);
}

/* The bounds a table is judged by: its own, or those of its metrics. */
static LhPaperTolerance
bounds_of(const LhReproducedTable *table)
{
    LhPaperTolerance bounds = table->paper->tolerance;

    for (guint i = 0; i < table->metrics->len; i++) {
        bounds.mean = MAX(bounds.mean, lh_reproduced_metric(table, i)->tolerance.mean);
        bounds.worst = MAX(bounds.worst, lh_reproduced_metric(table, i)->tolerance.worst);
        bounds.pairs = MAX(bounds.pairs, lh_reproduced_metric(table, i)->tolerance.pairs);
    }
    return bounds;
}

/* Whether the error of some values is not explained. */
static bool
is_unexplained(const LhReproducedTable *table)
{
    bool any = table->paper->not_explained != NULL;

    for (guint i = 0; i < table->metrics->len; i++)
        any = any || lh_reproduced_metric(table, i)->not_explained != NULL;
    return any;
}

LhTable *
lh_describe_reproduction(const GPtrArray *tables)
{
    LhTable *t = lh_table_new();

    lh_table_column(t, "table", "table", NULL, false);
    lh_table_column(t, "cases", "numbers", NULL, true);
    lh_table_column(t, "fitted", "fitted", NULL, true);
    lh_table_column(t, "judged", "judged", NULL, true);
    lh_table_column(t, "mean_abs_error", "mean", "error", true);
    lh_table_column(t, "worst_abs_error", "worst", "error", true);
    lh_table_column(t, "bias", "bias", NULL, true);
    lh_table_column(t, "within_bars", "within", "error bars", true);
    lh_table_column(t, "pairs", "pairs", "in order", true);
    lh_table_column(t, "claims", "claims", "held", true);
    lh_table_column(t, "memory", "fits or not", "right", true);
    lh_table_column(t, "left_out", "left", "out", true);
    lh_table_column(t, "not_predicted", "not", "predicted", true);
    lh_table_column(t, "within", "within", "bounds", false);
    for (guint i = 0; i < tables->len; i++) {
        const LhReproducedTable *table = lh_reproduced_at(tables, i);
        const LhPaperTolerance bounds = bounds_of(table);

        add_summary(t, table->paper->name, &table->all, &bounds, is_unexplained(table));
        for (guint j = 0; table->metrics->len > 1 && j < table->metrics->len; j++) {
            const LhPaperMetric *metric = lh_reproduced_metric(table, j);
            g_autofree char *name =
                g_strconcat("- ", metric->name != NULL ? metric->name : metric->column, NULL);

            add_summary(t, name, &g_array_index(table->metrics, LhPaperSummary, j),
                        &metric->tolerance, metric->not_explained != NULL);
        }
        for (guint j = 0; j < table->groups->len; j++) {
            const LhPaperGroup *group = &g_array_index(table->groups, LhPaperGroup, j);
            g_autofree char *name = g_strconcat("- ", group->name, NULL);

            add_summary(t, name, &group->summary, &table->paper->group_tolerance, false);
        }
    }
    return t;
}

void
lh_describe_error_bars(const GPtrArray *tables, GString *out)
{
    guint within, judged;

    lh_reproduced_bars(tables, &within, &judged);
    g_string_append_printf(out,
                           "%u of %u judged values are within the error bars of their predictions "
                           "(%u %%; expected 70 to 90 %%).\n",
                           within, judged, judged > 0 ? 100 * within / judged : 0);
}

/* --- one table ----------------------------------------------------------------------------------
 */

/* Describes the constants fitted to the judged rows, and the errors of the other rows with them. */
static void
describe_cross_fit(const LhReproducedTable *table, GString *out)
{
    char refitted[LH_SHARE_TEXT], own[LH_SHARE_TEXT];

    g_string_append(out, "Fitted to the judged rows:");
    for (guint i = 0; i < table->cross_constants->len; i++) {
        const LhFittedConstant *c = &g_array_index(table->cross_constants, LhFittedConstant, i);
        char before[LH_SHARE_TEXT], after[LH_SHARE_TEXT];

        g_string_append_printf(out, "%s %s %s (%s)", i > 0 ? "," : "",
                               lh_constant_names[c->constant], lh_four_digits(c->fitted, after),
                               lh_four_digits(c->value, before));
    }
    g_string_append_printf(out,
                           ". With them the mean error of the %u values used by the fit of the "
                           "files' constants is %s, with the files' constants %s.\n",
                           table->cross.judged,
                           lh_share_text(table->cross.mean_abs_error, refitted),
                           lh_share_text(table->own.mean_abs_error, own));
}

void
lh_describe_reproduced(const LhReproducedTable *table, GString *out)
{
    const LhPaper *paper = table->paper;

    g_string_append_printf(out, "%s: %s Source: %s.\n", paper->name, paper->description,
                           paper->source);
    if (paper->caveat != NULL)
        g_string_append_printf(out, "%s\n", paper->caveat);
    if (paper->not_explained != NULL)
        g_string_append_printf(out, "Not explained: %s\n", paper->not_explained);
    for (guint i = 0; i < table->metrics->len; i++) {
        const LhPaperMetric *metric = lh_reproduced_metric(table, i);

        if (metric->not_explained != NULL)
            g_string_append_printf(out, "Not explained, %s: %s\n",
                                   metric->name != NULL ? metric->name : metric->column,
                                   metric->not_explained);
    }
    for (guint i = 0; table->constants != NULL && i < table->constants->len; i++) {
        const LhFittedConstant *c = &g_array_index(table->constants, LhFittedConstant, i);
        char before[LH_SHARE_TEXT], after[LH_SHARE_TEXT];

        g_string_append_printf(out, "Fitted: %s %s, in the files %s.\n",
                               lh_constant_names[c->constant], lh_four_digits(c->fitted, after),
                               lh_four_digits(c->value, before));
    }
    if (table->cross_constants != NULL)
        describe_cross_fit(table, out);
}

/* Appends "96 numbers are left out: longhaul has no such schedule." for each reason, in the order
 * of the rows. */
void
lh_describe_left_out_cases(const LhReproducedTable *table, GString *out)
{
    g_autoptr(GPtrArray) reasons = g_ptr_array_new();

    for (guint i = 0; i < table->cases->len; i++) {
        const LhPaperCase *c = g_ptr_array_index(table->cases, i);
        guint count = 0;

        if (c->state != LH_CASE_LEFT_OUT ||
            g_ptr_array_find_with_equal_func(reasons, c->reason, g_str_equal, NULL))
            continue;
        g_ptr_array_add(reasons, c->reason);
        for (guint j = i; j < table->cases->len; j++) {
            const LhPaperCase *other = g_ptr_array_index(table->cases, j);

            count += other->state == LH_CASE_LEFT_OUT && g_str_equal(other->reason, c->reason);
        }
        g_string_append_printf(out, "%s%u of the values left out: %s.",
                               reasons->len > 1 ? "\n" : "", count, c->reason);
    }
    if (reasons->len > 0)
        g_string_append_c(out, '\n');
}

/* Whether all of several cases have the same value of the option. Rows that are left out are
 * ignored, since not all of their options are known. */
static bool
is_common(const LhReproducedTable *table, const char *name)
{
    const LhPaperCase *first = NULL;
    bool several = false;

    for (guint i = 0; i < table->cases->len; i++) {
        const LhPaperCase *c = g_ptr_array_index(table->cases, i);
        bool has;

        if (c->state == LH_CASE_LEFT_OUT)
            continue;
        first = first == NULL ? c : first;
        several = several || c != first;
        has = g_ptr_array_find_with_equal_func(c->options->names, name, g_str_equal, NULL);
        if (!has || g_strcmp0(lh_paper_option(c->options, name),
                              lh_paper_option(first->options, name)) != 0)
            return false;
    }
    return several;
}

/* Options of @c that differ between cases; caller frees. */
static char *
own_options(const LhReproducedTable *table, const LhPaperCase *c, GHashTable *common)
{
    g_autoptr(GString) text = g_string_new(NULL);

    for (guint i = 0; i < c->options->names->len; i++) {
        const char *name = g_ptr_array_index(c->options->names, i);
        const char *value = g_ptr_array_index(c->options->values, i);

        if (!g_hash_table_contains(common, name))
            g_hash_table_insert(common, (gpointer)name, GINT_TO_POINTER(is_common(table, name)));
        if (GPOINTER_TO_INT(g_hash_table_lookup(common, name)))
            continue;
        g_string_append_printf(text, "%s%s%s%s", text->len > 0 ? ", " : "", name,
                               value != NULL ? "=" : "", value != NULL ? value : "");
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static void
add_value(LhTable *t, bool known, bool fits, double value)
{
    char buffer[LH_SHARE_TEXT];

    lh_table_cell(t, !known ? "" : fits ? lh_four_digits(value, buffer) : "OOM", NULL);
}

/* State of a case, or the result of a judged bound. */
static const char *
state_text(const LhPaperCase *c)
{
    const char *bound = lh_reproduced_bound(c);

    return c->state == LH_CASE_JUDGED && bound != NULL ? bound : lh_case_state_names[c->state];
}

/* Why it is not predicted, and further remarks of the source; NULL: none. Caller frees. */
static char *
remark_on(const LhPaperCase *c)
{
    if (c->contradicted == NULL)
        return g_strdup(c->reason);
    return g_strconcat(c->reason != NULL ? c->reason : "", c->reason != NULL ? "; " : "",
                       "the source also says ", c->contradicted, NULL);
}

LhTable *
lh_reproduced_cases(const LhReproducedTable *table)
{
    LhTable *t = lh_table_new();
    g_autoptr(GHashTable) common = g_hash_table_new(g_str_hash, g_str_equal);
    char buffer[LH_SHARE_TEXT];

    lh_table_column(t, "line", "line", NULL, true);
    lh_table_column(t, "options", "options", NULL, false);
    lh_table_column(t, "metric", "metric", NULL, false);
    lh_table_column(t, "published", "published", NULL, true);
    lh_table_column(t, "predicted", "predicted", NULL, true);
    lh_table_column(t, "error", "error", NULL, true);
    lh_table_column(t, "state", "", NULL, false);
    for (guint i = 0; i < table->cases->len; i++) {
        const LhPaperCase *c = g_ptr_array_index(table->cases, i);
        g_autofree char *options = NULL;
        g_autofree char *note = NULL;

        if (c->state == LH_CASE_LEFT_OUT)
            continue;
        options = own_options(table, c, common);
        lh_table_row(t);
        lh_table_cell_printf(t, "%u", c->line);
        lh_table_cell(t, options, NULL);
        lh_table_cell_printf(t, "%s%s",
                             lh_metric_names[lh_reproduced_metric(table, c->metric)->metric],
                             c->against != NULL ? ", ratio" : "");
        add_value(t, true, c->published_fits, c->published);
        add_value(t, lh_paper_case_is_asked(c), c->predicted_fits, c->predicted);
        lh_table_cell(t, lh_reproduced_is_compared(c) ? lh_share_signed(c->error, buffer) : "",
                      NULL);
        lh_table_cell(t, state_text(c), NULL);
        note = remark_on(c);
        if (note != NULL)
            lh_table_note(t, note);
    }
    return t;
}
