/*
 * Errors are shares in JSON and CSV, and per cent for people.
 */
#include "report/text/reproduction.h"

#include "report/text/describe_checklist.h"
#include "report/text/number_cells.h"

#include <string.h>

static const LhPaperMetric *
metric_at(const LhReproducedTable *table, guint index)
{
    return &g_array_index(table->paper->metrics, LhPaperMetric, index);
}

static const LhReproducedTable *
table_at(const GPtrArray *tables, guint index)
{
    return g_ptr_array_index(tables, index);
}

/* --- one line a table ---------------------------------------------------------------------------
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

/* @in_part: some of the numbers have no bound, since they are not explained. */
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

/* The bounds that a table's line answers for: its own, or else those of its metrics. */
static LhPaperTolerance
bounds_of(const LhReproducedTable *table)
{
    LhPaperTolerance bounds = table->paper->tolerance;

    for (guint i = 0; i < table->metrics->len; i++) {
        bounds.mean = MAX(bounds.mean, metric_at(table, i)->tolerance.mean);
        bounds.worst = MAX(bounds.worst, metric_at(table, i)->tolerance.worst);
        bounds.pairs = MAX(bounds.pairs, metric_at(table, i)->tolerance.pairs);
    }
    return bounds;
}

/* Whether some of it is not explained. */
static bool
is_unexplained(const LhReproducedTable *table)
{
    bool any = table->paper->not_explained != NULL;

    for (guint i = 0; i < table->metrics->len; i++)
        any = any || metric_at(table, i)->not_explained != NULL;
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
    lh_table_column(t, "mean_abs_error", "mean", "off", true);
    lh_table_column(t, "worst_abs_error", "worst", "off", true);
    lh_table_column(t, "bias", "bias", NULL, true);
    lh_table_column(t, "within_bars", "within", "error bars", true);
    lh_table_column(t, "pairs", "pairs", "in order", true);
    lh_table_column(t, "claims", "claims", "held", true);
    lh_table_column(t, "memory", "fits or not", "right", true);
    lh_table_column(t, "left_out", "left", "out", true);
    lh_table_column(t, "not_predicted", "not", "predicted", true);
    lh_table_column(t, "within", "within", "bounds", false);
    for (guint i = 0; i < tables->len; i++) {
        const LhReproducedTable *table = table_at(tables, i);
        const LhPaperTolerance bounds = bounds_of(table);

        add_summary(t, table->paper->name, &table->all, &bounds, is_unexplained(table));
        for (guint j = 0; table->metrics->len > 1 && j < table->metrics->len; j++) {
            const LhPaperMetric *metric = metric_at(table, j);
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
                           "%u of %u judged numbers are within the error bars of their predictions "
                           "(%u %%; right are 70 to 90 %%).\n",
                           within, judged, judged > 0 ? 100 * within / judged : 0);
}

/* --- one table ----------------------------------------------------------------------------------
 */

/* What constants are that are fitted to the rows that are judged, and how far off the others are by
 * them. */
static void
describe_cross_fit(const LhReproducedTable *table, GString *out)
{
    char refitted[LH_SHARE_TEXT], own[LH_SHARE_TEXT];

    g_string_append(out, "Fitted to the rows that are judged:");
    for (guint i = 0; i < table->cross_constants->len; i++) {
        const LhFittedConstant *c = &g_array_index(table->cross_constants, LhFittedConstant, i);
        char before[LH_SHARE_TEXT], after[LH_SHARE_TEXT];

        g_string_append_printf(out, "%s %s %s (%s)", i > 0 ? "," : "",
                               lh_constant_names[c->constant], lh_four_digits(c->fitted, after),
                               lh_four_digits(c->value, before));
    }
    g_string_append_printf(out,
                           ". By them the %u numbers that the files' were fitted to are %s off in "
                           "the mean, and by the files' %s.\n",
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
        const LhPaperMetric *metric = metric_at(table, i);

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

/* "96 numbers are left out: longhaul has no such schedule." for each reason, in order of the rows.
 */
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
        g_string_append_printf(out, "%s%u of the numbers left out: %s.",
                               reasons->len > 1 ? "\n" : "", count, c->reason);
    }
    if (reasons->len > 0)
        g_string_append_c(out, '\n');
}

/* Whether several cases all say the same of the option. Of rows that are left out not all is known.
 */
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

/* The options of @c that not all cases share; caller frees. */
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

/* Whether there is something that the number may be off. */
static bool
is_compared(const LhPaperCase *c)
{
    return lh_paper_case_is_asked(c) && c->state != LH_CASE_LESS && c->published_fits &&
           c->predicted_fits;
}

/* Of a bound, which has no error: whether it holds; NULL of others. */
static const char *
bound_text(const LhPaperCase *c)
{
    return !c->bound || !is_compared(c) ? NULL : c->error >= 0 ? "held" : "not held";
}

/* What a case is: its state, or what became of a bound that is judged. */
static const char *
state_text(const LhPaperCase *c)
{
    const char *bound = bound_text(c);

    return c->state == LH_CASE_JUDGED && bound != NULL ? bound : lh_case_state_names[c->state];
}

/* Why it is not predicted, and what else the source says; NULL: neither. Caller frees. */
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
    lh_table_column(t, "error", "off", NULL, true);
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
        lh_table_cell_printf(t, "%s%s", lh_metric_names[metric_at(table, c->metric)->metric],
                             c->against != NULL ? ", ratio" : "");
        add_value(t, true, c->published_fits, c->published);
        add_value(t, lh_paper_case_is_asked(c), c->predicted_fits, c->predicted);
        lh_table_cell(t, is_compared(c) ? lh_share_signed(c->error, buffer) : "", NULL);
        lh_table_cell(t, state_text(c), NULL);
        note = remark_on(c);
        if (note != NULL)
            lh_table_note(t, note);
    }
    return t;
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
    const LhPaperMetric *metric = metric_at(table, c->metric);
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
    add_exact(t, is_compared(c) && !c->bound, c->error);
    add_exact(t, predicted, c->error_bar);
    lh_table_cell(t, c->state == LH_CASE_LEFT_OUT ? "" : c->published_fits ? "yes" : "no", NULL);
    lh_table_cell(t, !lh_paper_case_is_asked(c) ? "" : c->predicted_fits ? "yes" : "no", NULL);
    lh_table_cell(t, options, NULL);
    lh_table_cell(t, c->reason != NULL ? c->reason : "", NULL);
    lh_table_cell(t, c->contradicted != NULL ? c->contradicted : "", NULL);
    lh_table_cell(t, bound_text(c) != NULL ? bound_text(c) : "", NULL);
    add_exact(t, is_compared(c) && c->bound, c->error);
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
        const LhReproducedTable *table = table_at(tables, i);

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
    const LhPaperMetric *metric = metric_at(table, c->metric);
    const bool published = c->state != LH_CASE_LEFT_OUT;
    const bool predicted = lh_paper_case_is_asked(c);

    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_uint(w, "line", c->line);
    lh_jsonw_string(w, "column", metric->column);
    lh_jsonw_string(w, "metric", lh_metric_names[metric->metric]);
    lh_jsonw_string(w, "state", lh_case_state_names[c->state]);
    write_real(w, "published", published && c->published_fits, c->published);
    write_real(w, "predicted", predicted && c->predicted_fits, c->predicted);
    write_real(w, "error", is_compared(c) && !c->bound, c->error);
    lh_jsonw_string(w, "bound", bound_text(c));
    write_real(w, "above_bound", is_compared(c) && c->bound, c->error);
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
        const LhPaperMetric *metric = metric_at(table, i);

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

    lh_stamp_json(w, "longhaul.reproduction/1", stamp, NULL);
    lh_jsonw_bool(w, "within", lh_reproduced_within(tables));
    lh_jsonw_array_begin(w, "tables");
    for (guint i = 0; i < tables->len; i++)
        write_table(w, table_at(tables, i));
    lh_jsonw_array_end(w);
    lh_checklist_json(w, checklist);
    lh_jsonw_object_end(w);
}
