/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fits constants by least squares of the logarithms of predicted over published, over the
 * logarithms of the constants, with Levenberg-Marquardt steps. Slopes are finite differences of one
 * constant each. Constants stay within the range that files allow.
 */
#include "papers/paper_fit.h"

#include "base/dot.h"
#include "scenario/setup.h"

#include <math.h>
#include <string.h>

#define FIT_SLOPE_STEP 0.01
#define FIT_STEP_MAX 0.5      /* of a logarithm */
#define FIT_LEAST_SLOPE 1e-12 /* keeps a constant unchanged that nothing depends on */
#define FIT_LAST_GAIN 1e-4    /* relative, of the sum of squares */
#define FIT_ROUNDS_MAX 20
#define FIT_DAMPING_FIRST 1e-2
#define FIT_DAMPING_FACTOR 10.0
#define FIT_DAMPING_MAX 1e3
#define FIT_FROM_NOTHING 0.1 /* start value of a constant that is 0 in the files */

typedef struct {
    const LhPaper *paper;
    const GPtrArray *cases; /* the cases to fit */
    guint jobs;
    GError *error; /* the first error; all later losses are infinite */
} Fit;

/* log(predicted / published); 0 if either is missing, or if published is a lower bound that
 * holds. */
static double
residual_of(const Fit *fit, const LhPaperCase *c)
{
    const bool both = c->state == LH_CASE_FITTED && c->published_fits && c->predicted_fits;
    const bool bound = g_array_index(fit->paper->metrics, LhPaperMetric, c->metric).at_least;

    if (!both || c->predicted <= 0 || (bound && c->predicted >= c->published))
        return 0;
    return log(c->predicted / c->published);
}

/* Computes the residuals of all cases with @constants. Returns the sum of their squares. */
static double
residuals_of(Fit *fit, const LhConstants *constants, double *residuals)
{
    double sum = 0;

    if (fit->error != NULL ||
        !lh_paper_run(fit->paper, fit->cases, constants, fit->jobs, &fit->error))
        return INFINITY;
    for (guint i = 0; i < fit->cases->len; i++) {
        residuals[i] = residual_of(fit, g_ptr_array_index(fit->cases, i));
        sum += residuals[i] * residuals[i];
    }
    return sum;
}

/* Residuals at the present constants, and their slopes over the logarithm of each constant. */
typedef struct {
    double sum;                                  /* of the squares */
    double *residuals;                           /* by case, owned */
    double *slopes[LH_PAPER_CONSTANTS_MAX];      /* of each constant, by case, owned */
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

/* Whether the constant is at an end of its range and would improve beyond it. */
static bool
leaves_range(const Slopes *s, guint k, guint cases, double value)
{
    const LhConstantRange *range = &lh_constant_ranges[s->constant[k]];
    /* Half the slope of the squares. */
    const double slope = lh_dot(s->slopes[k], s->residuals, cases);

    return (value <= range->least && slope > 0) || (value >= range->most && slope < 0);
}

/* Computes the slopes. A constant that would leave its range is held, as if nothing depended on
 * it. */
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

/* Solves the normal equations with their diagonal raised by @damping: @change is the change of the
 * constants' logarithms. The matrix is positive definite, so elimination needs no pivoting. */
static void
solve_step(const Slopes *s, guint cases, double damping, double *change)
{
    double m[LH_PAPER_CONSTANTS_MAX][LH_PAPER_CONSTANTS_MAX + 1];
    const guint n = s->constants;

    for (guint i = 0; i < n; i++) {
        for (guint k = 0; k < n; k++)
            m[i][k] = lh_dot(s->slopes[i], s->slopes[k], cases);
        m[i][n] = -lh_dot(s->slopes[i], s->residuals, cases);
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

/* Tries steps with increasing damping; true if one is better, which is then taken and the damping
 * reduced. */
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

/* Reads the value that the files of a case give. */
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

/* The constants that the paper names, with the value of the first fitted case whose files have
 * them: not every framework has a framework's constants. Caller unrefs. */
static GArray *
read_constants(const LhPaper *paper, const GPtrArray *cases, GError **error)
{
    g_autoptr(GArray) constants = g_array_new(FALSE, TRUE, sizeof(LhFittedConstant));

    for (guint i = 0; i < paper->constants->len; i++) {
        LhFittedConstant constant = {
            .constant = lh_constant_find(g_ptr_array_index(paper->constants, i)),
        };

        for (guint k = 0; k < cases->len && constant.value == 0; k++) {
            if (!read_value(g_ptr_array_index(cases, k), &constant, error))
                return NULL;
        }
        g_array_append_val(constants, constant);
    }
    return g_steal_pointer(&constants);
}

static GPtrArray *
find_fitted_cases(const GPtrArray *cases)
{
    GPtrArray *fitted = g_ptr_array_new();

    for (guint i = 0; i < cases->len; i++) {
        LhPaperCase *c = g_ptr_array_index(cases, i);

        if (c->state == LH_CASE_FITTED)
            g_ptr_array_add(fitted, c);
    }
    return fitted;
}

bool
lh_paper_fit(const LhPaper *paper, const GPtrArray *cases, guint jobs, GArray **fitted,
             GError **error)
{
    g_autoptr(GPtrArray) own = find_fitted_cases(cases);
    g_autoptr(GArray) found = NULL;
    Fit fit = { .paper = paper, .cases = own, .jobs = jobs };
    LhConstants constants = { 0 };

    *fitted = NULL;
    if (own->len == 0 || paper->constants == NULL)
        return true;
    found = read_constants(paper, own, error);
    if (found == NULL)
        return false;
    for (guint i = 0; i < found->len; i++) {
        const LhFittedConstant *c = &g_array_index(found, LhFittedConstant, i);

        constants.value[c->constant] = c->value > 0 ? c->value : FIT_FROM_NOTHING;
    }
    descend(&fit, &constants, found);
    if (fit.error != NULL) {
        g_propagate_error(error, fit.error);
        return false;
    }
    for (guint i = 0; i < found->len; i++) {
        LhFittedConstant *c = &g_array_index(found, LhFittedConstant, i);

        c->fitted = constants.value[c->constant];
    }
    *fitted = g_steal_pointer(&found);
    return true;
}

LhConstants
lh_fitted_constants(const GArray *fitted)
{
    LhConstants constants = { 0 };

    for (guint i = 0; fitted != NULL && i < fitted->len; i++) {
        const LhFittedConstant *c = &g_array_index(fitted, LhFittedConstant, i);

        constants.value[c->constant] = c->fitted;
    }
    return constants;
}
