/* SPDX-License-Identifier: Apache-2.0 */
#include "papers/reproduce.h"

#include "base/error.h"
#include "papers/paper_pairs.h"

#include <math.h>
#include <string.h>

/* --- summaries ----------------------------------------------------------------------------------
 */

static bool
is_within_bar(const LhPaperCase *c)
{
    const double off = 1 + c->error;

    return off <= 1 + c->error_bar && off * (1 + c->error_bar) >= 1;
}

static void
add_bound(LhPaperSummary *s, const LhPaperCase *c)
{
    s->bounds++;
    s->bounds_held += c->error >= 0;
    s->worst_missed = MAX(s->worst_missed, -c->error);
}

void
lh_paper_summary_add(LhPaperSummary *s, const LhPaperCase *c)
{
    s->cases++;
    s->fitted += c->state == LH_CASE_FITTED;
    s->left_out += c->state == LH_CASE_LEFT_OUT;
    s->unpredicted += c->state == LH_CASE_UNPREDICTED;
    if (c->state != LH_CASE_JUDGED)
        return;
    if (!c->published_fits || !c->predicted_fits) {
        s->memory_judged++;
        s->memory_right += c->published_fits == c->predicted_fits;
        return;
    }
    if (c->bound) {
        add_bound(s, c);
        return;
    }
    s->judged++;
    s->mean_abs_error += fabs(c->error);
    s->worst_abs_error = MAX(s->worst_abs_error, fabs(c->error));
    s->bias += c->error;
    s->within_bars += is_within_bar(c);
}

void
lh_paper_summary_finish(LhPaperSummary *s)
{
    if (s->judged > 0) {
        s->mean_abs_error /= s->judged;
        s->bias /= s->judged;
    }
}

static void
judge_summary(LhPaperSummary *s, const LhPaperTolerance *tolerance)
{
    lh_paper_summary_finish(s);
    if (tolerance->mean == 0 && tolerance->worst == 0 && tolerance->pairs == 0)
        return;
    s->beyond =
        (tolerance->mean > 0 && s->mean_abs_error > tolerance->mean) ||
        (tolerance->worst > 0 && MAX(s->worst_abs_error, s->worst_missed) > tolerance->worst) ||
        s->pairs_in_order < tolerance->pairs * s->pairs || s->memory_right < s->memory_judged;
}

/* The summary of the case's group; starts it for the first case. */
static LhPaperSummary *
summary_of_group(LhReproducedTable *table, const LhPaperCase *c)
{
    const LhPaperGroup group = { .name = c->group };

    for (guint i = table->groups->len; i-- > 0;) {
        LhPaperGroup *known = &g_array_index(table->groups, LhPaperGroup, i);

        if (strcmp(known->name, c->group) == 0)
            return &known->summary;
    }
    g_array_append_val(table->groups, group);
    return &g_array_index(table->groups, LhPaperGroup, table->groups->len - 1).summary;
}

static void
finish_groups(LhReproducedTable *table)
{
    for (guint i = 0; i < table->groups->len; i++) {
        LhPaperSummary *summary = &g_array_index(table->groups, LhPaperGroup, i).summary;

        judge_summary(summary, &table->paper->group_tolerance);
        table->all.beyond = table->all.beyond || summary->beyond;
    }
}

static void
summarize(LhReproducedTable *table)
{
    const GArray *metrics = table->paper->metrics;

    memset(&table->all, 0, sizeof(table->all));
    g_array_set_size(table->metrics, 0);
    g_array_set_size(table->metrics, metrics->len);
    g_array_set_size(table->groups, 0);
    for (guint i = 0; i < table->cases->len; i++) {
        const LhPaperCase *c = g_ptr_array_index(table->cases, i);

        lh_paper_summary_add(&table->all, c);
        lh_paper_summary_add(&g_array_index(table->metrics, LhPaperSummary, c->metric), c);
        if (c->group != NULL)
            lh_paper_summary_add(summary_of_group(table, c), c);
    }
    lh_paper_pairs(table->paper, table->cases, -1, &table->all.pairs, &table->all.pairs_in_order);
    judge_summary(&table->all, &table->paper->tolerance);
    for (guint i = 0; i < metrics->len; i++) {
        LhPaperSummary *summary = &g_array_index(table->metrics, LhPaperSummary, i);

        lh_paper_pairs(table->paper, table->cases, (int)i, &summary->pairs,
                       &summary->pairs_in_order);
        judge_summary(summary, &g_array_index(metrics, LhPaperMetric, i).tolerance);
        table->all.beyond = table->all.beyond || summary->beyond;
    }
    finish_groups(table);
}

/* --- fitting ------------------------------------------------------------------------------------
 */

static bool
fit_table(LhReproducedTable *table, guint jobs, GError **error)
{
    LhConstants constants;

    if (!lh_paper_fit(table->paper, table->cases, jobs, &table->constants, error))
        return false;
    if (table->constants == NULL)
        return true;
    constants = lh_fitted_constants(table->constants);
    if (!lh_paper_run(table->paper, table->cases, &constants, jobs, error))
        return false;
    summarize(table);
    return true;
}

/* Swaps the judged and the fitted cases. */
static void
swap_fitted(const GPtrArray *cases)
{
    for (guint i = 0; i < cases->len; i++) {
        LhPaperCase *c = g_ptr_array_index(cases, i);

        if (c->state == LH_CASE_FITTED)
            c->state = LH_CASE_JUDGED;
        else if (c->state == LH_CASE_JUDGED)
            c->state = LH_CASE_FITTED;
    }
}

/* Predicts with @constants (NULL: the files' values) and summarises the judged cases. */
static bool
sum_up_by(LhReproducedTable *table, const LhConstants *constants, guint jobs,
          LhPaperSummary *summary, GError **error)
{
    if (!lh_paper_run(table->paper, table->cases, constants, jobs, error))
        return false;
    for (guint i = 0; i < table->cases->len; i++)
        lh_paper_summary_add(summary, g_ptr_array_index(table->cases, i));
    lh_paper_summary_finish(summary);
    return true;
}

/* Must run before the table is predicted, since it overwrites predictions. */
static bool
cross_fit(LhReproducedTable *table, guint jobs, GError **error)
{
    LhConstants constants;

    if (table->paper->constants == NULL)
        return true;
    swap_fitted(table->cases);
    if (!lh_paper_fit(table->paper, table->cases, jobs, &table->cross_constants, error))
        return false;
    constants = lh_fitted_constants(table->cross_constants);
    if (table->cross_constants != NULL &&
        (!sum_up_by(table, NULL, jobs, &table->own, error) ||
         !sum_up_by(table, &constants, jobs, &table->cross, error)))
        return false;
    swap_fitted(table->cases);
    return true;
}

/* --- tables -------------------------------------------------------------------------------------
 */

static void
table_free(gpointer data)
{
    LhReproducedTable *table = data;

    lh_paper_free(table->paper);
    g_free(table->rows_path);
    lh_csv_free(table->csv);
    g_clear_pointer(&table->cases, g_ptr_array_unref);
    g_clear_pointer(&table->metrics, g_array_unref);
    g_clear_pointer(&table->groups, g_array_unref);
    g_clear_pointer(&table->constants, g_array_unref);
    g_clear_pointer(&table->cross_constants, g_array_unref);
    g_free(table);
}

/* Takes over @paper. */
static bool
add_table(GPtrArray *tables, LhPaper *paper, const LhReproduceParams *params, GError **error)
{
    LhReproducedTable *table = g_new0(LhReproducedTable, 1);

    g_ptr_array_add(tables, table);
    table->paper = paper;
    table->rows_path = lh_paper_rows_path(paper, params->folder);
    table->metrics = g_array_new(FALSE, TRUE, sizeof(LhPaperSummary));
    table->groups = g_array_new(FALSE, TRUE, sizeof(LhPaperGroup));
    table->csv = lh_paper_rows(paper, params->folder, error);
    if (table->csv == NULL)
        return false;
    table->cases = lh_paper_cases(paper, table->csv, error);
    if (table->cases == NULL)
        return false;
    if ((params->cross_fit && !cross_fit(table, params->jobs, error)) ||
        !lh_paper_run(paper, table->cases, NULL, params->jobs, error))
        return false;
    summarize(table);
    return !params->fit || fit_table(table, params->jobs, error);
}

/* Whether @place, a folder or a file, has the rows of the table, by name. */
static bool
has_table_rows(const LhPaper *paper, const char *place)
{
    g_autofree char *path = lh_paper_rows_path(paper, place);
    g_autofree char *file = g_path_get_basename(path);
    g_autofree char *wanted = g_strconcat(paper->name, ".csv", NULL);

    return strcmp(file, wanted) == 0 && g_file_test(path, G_FILE_TEST_EXISTS);
}

/* Adds all tables. If a folder is given, tables without rows in it are skipped. */
static bool
add_all(GPtrArray *tables, const LhReproduceParams *params, GError **error)
{
    g_auto(GStrv) names = lh_paper_list();

    for (guint i = 0; names[i] != NULL; i++) {
        LhPaper *paper = lh_paper_load(names[i], error);

        if (paper == NULL)
            return false;
        if (params->folder != NULL && !has_table_rows(paper, params->folder)) {
            lh_paper_free(paper);
            continue;
        }
        if (!add_table(tables, paper, params, error))
            return false;
    }
    if (tables->len > 0)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "%s: error: no known table; see %s",
                params->folder != NULL ? params->folder : "scenarios/papers",
                "longhaul list tables");
    return false;
}

GPtrArray *
lh_reproduce(const LhReproduceParams *params, GError **error)
{
    g_autoptr(GPtrArray) tables = g_ptr_array_new_with_free_func(table_free);
    const guint named = params->names == NULL ? 0 : params->names->len;

    for (guint i = 0; i < named; i++) {
        LhPaper *paper = lh_paper_load(g_ptr_array_index(params->names, i), error);

        if (paper == NULL || !add_table(tables, paper, params, error))
            return NULL;
    }
    if (named == 0 && !add_all(tables, params, error))
        return NULL;
    return g_steal_pointer(&tables);
}

void
lh_reproduced_bars(const GPtrArray *tables, guint *within, guint *judged)
{
    *within = *judged = 0;
    for (guint i = 0; i < tables->len; i++) {
        const LhReproducedTable *table = g_ptr_array_index(tables, i);

        *within += table->all.within_bars;
        *judged += table->all.judged;
    }
}

bool
lh_reproduced_bars_hold(guint within, guint judged)
{
    return 10 * (uint64_t)within >= 7 * (uint64_t)judged &&
           10 * (uint64_t)within <= 9 * (uint64_t)judged;
}

bool
lh_reproduced_within(const GPtrArray *tables)
{
    for (guint i = 0; i < tables->len; i++) {
        if (((const LhReproducedTable *)g_ptr_array_index(tables, i))->all.beyond)
            return false;
    }
    return true;
}
