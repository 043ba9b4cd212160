/*
 * See the header. Constants are fitted to the least squares of the logarithms of predicted over
 * published, over the logarithms of the constants, by the steps of Levenberg and Marquardt: slopes
 * are those of a small change of one constant. Constants stay within what files may say of them.
 */
#include "plan/reproduce.h"

#include "base/error.h"
#include "plan/paper_pairs.h"
#include "plan/setup.h"

#include <math.h>
#include <string.h>

#define FIT_SLOPE_STEP 0.01
#define FIT_STEP_MAX 0.5      /* of a logarithm */
#define FIT_LEAST_SLOPE 1e-12 /* keeps a constant that nothing depends on where it is */
#define FIT_LAST_GAIN 1e-4    /* of the sum of squares */
#define FIT_ROUNDS_MAX 20
#define FIT_DAMPING_FIRST 1e-2
#define FIT_DAMPING_FACTOR 10.0
#define FIT_DAMPING_MAX 1e3
#define FIT_FROM_NOTHING 0.1 /* where a constant is 0 in the files */

/* --- summaries ----------------------------------------------------------------------------------
 */

static bool
is_within_bar(const LhPaperCase *c)
{
    const double off = 1 + c->error;

    return off <= 1 + c->error_bar && off * (1 + c->error_bar) >= 1;
}

static void
count_case(LhPaperSummary *s, const LhPaperCase *c)
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
    s->judged++;
    s->mean_abs_error += fabs(c->error);
    s->worst_abs_error = MAX(s->worst_abs_error, fabs(c->error));
    s->bias += c->error;
    s->within_bars += is_within_bar(c);
}

static void
finish_summary(LhPaperSummary *s, const LhPaperTolerance *tolerance)
{
    if (s->judged > 0) {
        s->mean_abs_error /= s->judged;
        s->bias /= s->judged;
    }
    if (tolerance->mean == 0 && tolerance->worst == 0 && tolerance->pairs == 0)
        return;
    s->beyond = (tolerance->mean > 0 && s->mean_abs_error > tolerance->mean) ||
                (tolerance->worst > 0 && s->worst_abs_error > tolerance->worst) ||
                s->pairs_in_order < tolerance->pairs * s->pairs ||
                s->memory_right < s->memory_judged;
}

/* The summary of the case's group, which is begun if it is the first one. */
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

        finish_summary(summary, &table->paper->group_tolerance);
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

        count_case(&table->all, c);
        count_case(&g_array_index(table->metrics, LhPaperSummary, c->metric), c);
        if (c->group != NULL)
            count_case(summary_of_group(table, c), c);
    }
    lh_paper_pairs(table->paper, table->cases, -1, &table->all.pairs, &table->all.pairs_in_order);
    finish_summary(&table->all, &table->paper->tolerance);
    for (guint i = 0; i < metrics->len; i++) {
        LhPaperSummary *summary = &g_array_index(table->metrics, LhPaperSummary, i);

        lh_paper_pairs(table->paper, table->cases, (int)i, &summary->pairs,
                       &summary->pairs_in_order);
        finish_summary(summary, &g_array_index(metrics, LhPaperMetric, i).tolerance);
        table->all.beyond = table->all.beyond || summary->beyond;
    }
    finish_groups(table);
}

/* --- fitting ------------------------------------------------------------------------------------
 */

typedef struct {
    const LhReproducedTable *table;
    GPtrArray *cases; /* those to fit, borrowed */
    guint jobs;
    GError *error; /* the first; all losses from then on are infinite */
} Fit;

/* Of each case the logarithm of predicted over published; 0 if there are not both. Returns the sum
 * of the squares. */
static double
residuals_of(Fit *fit, const LhConstants *constants, double *residuals)
{
    double sum = 0;

    if (fit->error != NULL ||
        !lh_paper_run(fit->table->paper, fit->cases, constants, fit->jobs, &fit->error))
        return INFINITY;
    for (guint i = 0; i < fit->cases->len; i++) {
        const LhPaperCase *c = g_ptr_array_index(fit->cases, i);
        const bool both = c->state == LH_CASE_FITTED && c->published_fits && c->predicted_fits;

        residuals[i] = both && c->predicted > 0 ? log(c->predicted / c->published) : 0;
        sum += residuals[i] * residuals[i];
    }
    return sum;
}

/* What is known where the constants are: of each case the residual, and how it changes with the
 * logarithm of each constant. */
typedef struct {
    double sum;                                  /* of the squares */
    double *residuals;                           /* by case, owned */
    double *slopes[LH_PAPER_CONSTANTS_MAX];      /* likewise, of each constant */
    LhConstant constant[LH_PAPER_CONSTANTS_MAX]; /* which one */
    guint constants;
} Slopes;

static void
slopes_clear(Slopes *s)
{
    g_free(s->residuals);
    for (guint k = 0; k < s->constants; k++)
        g_free(s->slopes[k]);
}

static double
dot_product(const double *a, const double *b, guint count)
{
    double sum = 0;

    for (guint i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Whether the constant is at an end of its range, and would be better beyond it. */
static bool
leaves_range(const Slopes *s, guint k, guint cases, double value)
{
    const LhConstantRange *range = &lh_constant_ranges[s->constant[k]];
    const double slope = dot_product(s->slopes[k], s->residuals, cases); /* of the squares, half */

    return (value <= range->least && slope > 0) || (value >= range->most && slope < 0);
}

/* A constant that would leave its range stays where it is, as if nothing depended on it. */
static void
find_slopes(Fit *fit, const LhConstants *at, Slopes *s)
{
    s->sum = residuals_of(fit, at, s->residuals);
    for (guint k = 0; k < s->constants; k++) {
        const LhConstantRange *range = &lh_constant_ranges[s->constant[k]];
        const double here = at->value[s->constant[k]], above = here * (1 + FIT_SLOPE_STEP);
        const double there = above <= range->most ? above : here / (1 + FIT_SLOPE_STEP);
        LhConstants near = *at;

        near.value[s->constant[k]] = there;
        residuals_of(fit, &near, s->slopes[k]);
        for (guint i = 0; i < fit->cases->len; i++)
            s->slopes[k][i] = (s->slopes[k][i] - s->residuals[i]) / log(there / here);
        if (leaves_range(s, k, fit->cases->len, here))
            memset(s->slopes[k], 0, fit->cases->len * sizeof(double));
    }
}

/* Solves the normal equations, their diagonal raised by @damping: in @change what the logarithms of
 * the constants change by. They are positive definite: plain elimination. */
static void
solve_step(const Slopes *s, guint cases, double damping, double *change)
{
    double m[LH_PAPER_CONSTANTS_MAX][LH_PAPER_CONSTANTS_MAX + 1];
    const guint n = s->constants;

    for (guint i = 0; i < n; i++) {
        for (guint k = 0; k < n; k++)
            m[i][k] = dot_product(s->slopes[i], s->slopes[k], cases);
        m[i][n] = -dot_product(s->slopes[i], s->residuals, cases);
        m[i][i] = m[i][i] * (1 + damping) + FIT_LEAST_SLOPE;
    }
    for (guint i = 0; i < n; i++) {
        for (guint row = i + 1; row < n; row++) {
            const double factor = m[row][i] / m[i][i];

            for (guint k = i; k <= n; k++)
                m[row][k] -= factor * m[i][k];
        }
    }
    for (guint i = n; i-- > 0;) {
        change[i] = m[i][n];
        for (guint k = i + 1; k < n; k++)
            change[i] -= m[i][k] * change[k];
        change[i] /= m[i][i];
    }
}

/* Tries the step of ever more damping; true if one is better, which is then taken. @damping is less
 * for the next. */
static bool
improve(Fit *fit, LhConstants *constants, const Slopes *s, double *damping)
{
    g_autofree double *residuals = g_new(double, fit->cases->len);

    for (; *damping <= FIT_DAMPING_MAX; *damping *= FIT_DAMPING_FACTOR) {
        double change[LH_PAPER_CONSTANTS_MAX];
        LhConstants tried = *constants;

        solve_step(s, fit->cases->len, *damping, change);
        for (guint k = 0; k < s->constants; k++) {
            const LhConstantRange *range = &lh_constant_ranges[s->constant[k]];
            double *value = &tried.value[s->constant[k]];

            *value *= exp(CLAMP(change[k], -FIT_STEP_MAX, FIT_STEP_MAX));
            *value = CLAMP(*value, range->least, range->most);
        }
        if (residuals_of(fit, &tried, residuals) < s->sum * (1 - FIT_LAST_GAIN)) {
            *constants = tried;
            *damping /= FIT_DAMPING_FACTOR;
            return true;
        }
    }
    return false;
}

static void
descend(Fit *fit, LhConstants *constants, const GArray *fitted)
{
    Slopes s = { .residuals = g_new0(double, fit->cases->len), .constants = fitted->len };
    double damping = FIT_DAMPING_FIRST;

    for (guint k = 0; k < s.constants; k++) {
        s.constant[k] = g_array_index(fitted, LhFittedConstant, k).constant;
        s.slopes[k] = g_new0(double, fit->cases->len);
    }
    for (guint round = 0; round < FIT_ROUNDS_MAX; round++) {
        find_slopes(fit, constants, &s);
        if (!improve(fit, constants, &s, &damping))
            break;
    }
    slopes_clear(&s);
}

/* The value that the files of a case have. */
static bool
read_value(const LhPaperCase *c, LhFittedConstant *constant, GError **error)
{
    const char *name = lh_paper_option(c->options, "framework");
    g_autoptr(LhScenario) scenario = lh_paper_options_scenario(c->options, error);
    g_autoptr(LhSetup) setup = scenario == NULL ? NULL : lh_setup_new(scenario, error);
    g_autoptr(LhFramework) framework = NULL;

    if (setup == NULL)
        return false;
    if (name != NULL) {
        framework = lh_framework_load(name, error);
        if (framework == NULL)
            return false;
    }
    constant->value =
        lh_constant_value(constant->constant, setup->device, setup->topology, framework);
    return true;
}

/* The constants that the table names, as the files of the first fitted case have them whose files
 * have them at all: those of a framework are not every framework's. */
static bool
read_constants(LhReproducedTable *table, const GPtrArray *cases, GError **error)
{
    const GPtrArray *names = table->paper->constants;

    table->constants = g_array_new(FALSE, TRUE, sizeof(LhFittedConstant));
    for (guint i = 0; i < names->len; i++) {
        LhFittedConstant constant = { .constant = lh_constant_find(g_ptr_array_index(names, i)) };

        for (guint k = 0; k < cases->len && constant.value == 0; k++) {
            if (!read_value(g_ptr_array_index(cases, k), &constant, error))
                return false;
        }
        g_array_append_val(table->constants, constant);
    }
    return true;
}

/* Fits what can be fitted; a table whose fitted cases cannot be predicted stays as it is. */
static bool
fit_table(LhReproducedTable *table, guint jobs, GError **error)
{
    g_autoptr(GPtrArray) cases = g_ptr_array_new();
    Fit fit = { .table = table, .cases = cases, .jobs = jobs };
    LhConstants constants = { 0 };

    for (guint i = 0; i < table->cases->len; i++) {
        LhPaperCase *c = g_ptr_array_index(table->cases, i);

        if (c->state == LH_CASE_FITTED)
            g_ptr_array_add(cases, c);
    }
    if (cases->len == 0 || table->paper->constants == NULL)
        return true;
    if (!read_constants(table, cases, error))
        return false;
    for (guint i = 0; i < table->constants->len; i++) {
        const LhFittedConstant *c = &g_array_index(table->constants, LhFittedConstant, i);

        constants.value[c->constant] = c->value > 0 ? c->value : FIT_FROM_NOTHING;
    }
    descend(&fit, &constants, table->constants);
    if (fit.error != NULL) {
        g_propagate_error(error, fit.error);
        return false;
    }
    for (guint i = 0; i < table->constants->len; i++) {
        LhFittedConstant *c = &g_array_index(table->constants, LhFittedConstant, i);

        c->fitted = constants.value[c->constant];
    }
    if (!lh_paper_run(table->paper, table->cases, &constants, jobs, error))
        return false;
    summarize(table);
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
    g_free(table->rows_sha256);
    g_clear_pointer(&table->cases, g_ptr_array_unref);
    g_clear_pointer(&table->metrics, g_array_unref);
    g_clear_pointer(&table->groups, g_array_unref);
    g_clear_pointer(&table->constants, g_array_unref);
    g_free(table);
}

/* Takes @paper over. */
static bool
add_table(GPtrArray *tables, LhPaper *paper, const LhReproduceParams *params, GError **error)
{
    LhReproducedTable *table = g_new0(LhReproducedTable, 1);
    g_autoptr(LhCsv) rows = NULL;

    g_ptr_array_add(tables, table);
    table->paper = paper;
    table->rows_path = lh_paper_rows_path(paper, params->folder);
    table->metrics = g_array_new(FALSE, TRUE, sizeof(LhPaperSummary));
    table->groups = g_array_new(FALSE, TRUE, sizeof(LhPaperGroup));
    rows = lh_paper_rows(paper, params->folder, error);
    if (rows == NULL)
        return false;
    table->rows = lh_csv_rows(rows);
    table->rows_sha256 = g_strdup(lh_csv_sha256(rows));
    table->cases = lh_paper_cases(paper, rows, error);
    if (table->cases == NULL)
        return false;
    if (!lh_paper_run(paper, table->cases, NULL, params->jobs, error))
        return false;
    summarize(table);
    return !params->fit || fit_table(table, params->jobs, error);
}

/* Whether rows of the table are at @place: in this folder, or this file, by its name. */
static bool
has_table_rows(const LhPaper *paper, const char *place)
{
    g_autofree char *path = lh_paper_rows_path(paper, place);
    g_autofree char *file = g_path_get_basename(path);
    g_autofree char *wanted = g_strconcat(paper->name, ".csv", NULL);

    return strcmp(file, wanted) == 0 && g_file_test(path, G_FILE_TEST_EXISTS);
}

/* Of tables that nobody named, those without rows in the folder are beside the question. */
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
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "%s: error: no table that is known; see %s",
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
