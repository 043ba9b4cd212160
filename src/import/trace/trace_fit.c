/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gauss-Newton method on logarithms. It minimises the squares of log(measured / simulated), which
 * weigh a message of 20 us like a kernel of 20 ms, with less weight for outliers (Huber).
 * Derivatives come from simulations with each constant slightly larger. A constant is determined if
 * the samples depend on it differently than on the constants before it: from blocks of one length,
 * rate and half length are one number.
 */
#include "import/trace/trace_fit.h"

#include "base/dot.h"
#include "base/error.h"
#include "import/trace/trace_fit_constants.h"
#include "measure/fit.h"
#include "program/timeline.h"

#include <math.h>
#include <string.h>

#define ROUNDS_MAX 12
#define STEP 0.01      /* relative step of a derivative */
#define CHANGE_MAX 0.7 /* of a logarithm, per iteration */
#define CONVERGED 1e-5
#define HUBER 0.1
#define DEPENDS_MIN 0.3       /* least elasticity of a sample to count for a constant */
#define APART_MIN 0.1         /* least part of a column that earlier constants do not explain */
#define APART_ELASTICITY 0.03 /* least size of that part, per sample */

const char *const lh_trace_fit_names[] = { "rate", "bandwidth", "half length", "latency", NULL };

typedef struct {
    LhSetup *setup;
    const LhProgram *program;
    const LhTraceAlignment *match;
    LhTraceFit *tuning;
    guint constants, samples;
    double *measured;  /* [samples]: logarithms of times */
    double *simulated; /* [samples]: likewise, with the current values */
    double *slopes;    /* [constants][samples] */
} TuneJob;

static const LhSample *
sample_at(const TuneJob *job, guint index)
{
    return &g_array_index(job->match->samples, LhSample, index);
}

/* --- simulation
 * --------------------------------------------------------------------------------- */

/* Logarithms of the samples' simulated times with the current values. */
static bool
simulate(TuneJob *job, double *logs, LhTime *makespan_ps, GError **error)
{
    const LhNetwork *had = &job->setup->network;
    LhNetwork network;

    if (!lh_network_init(&network, job->setup->topology, had->nodes, had->ranks, had->faults,
                         error) ||
        !lh_trace_alignment_simulate(job->setup, job->program, &network, job->tuning->records,
                                     makespan_ps, error))
        return false;
    for (guint i = 0; i < job->samples; i++) {
        const double seconds =
            lh_sample_seconds(job->match, sample_at(job, i), job->tuning->records);

        logs[i] = seconds > 0 ? log(seconds) : NAN;
    }
    return true;
}

/* Derivatives of these logarithms by the logarithms of the constants. */
static bool
differentiate(TuneJob *job, GError **error)
{
    LhTime makespan_ps;

    for (guint c = 0; c < job->constants; c++) {
        const LhTraceFitted *constant = lh_trace_fit_constant(job->tuning, c);
        double *column = job->slopes + (gsize)c * job->samples;
        bool ok;

        lh_trace_fit_set(job->setup, constant, constant->value * (1 + STEP));
        ok = simulate(job, column, &makespan_ps, error);
        lh_trace_fit_set(job->setup, constant, constant->value);
        if (!ok)
            return false;
        for (guint i = 0; i < job->samples; i++) {
            const double slope = (column[i] - job->simulated[i]) / log1p(STEP);

            column[i] = isfinite(slope) ? slope : 0;
        }
    }
    return true;
}

/* --- determined constants
 * ----------------------------------------------------------------------- */

static guint
depends_on(const double *column, guint count, double least)
{
    guint n = 0;

    for (guint i = 0; i < count; i++)
        n += fabs(column[i]) >= least;
    return n;
}

/* Whether @rest, the part of @column that other constants do not explain, is large enough. */
static bool
tells(const LhTraceFitted *c, const double *column, const double *rest, guint samples)
{
    const double norm = sqrt(lh_dot(column, column, samples));
    const double apart = sqrt(lh_dot(rest, rest, samples));
    const guint on = depends_on(column, samples, APART_ELASTICITY / 3);

    if (on == 0 || apart < APART_MIN * norm)
        return false;
    return c->kind <= LH_TRACE_FIT_BANDWIDTH ? depends_on(column, samples, DEPENDS_MIN) > 0
                                             : apart / sqrt(on) >= APART_ELASTICITY;
}

/* Finds the determined constants by the Gram-Schmidt process, rates and bandwidths first. */
static void
find_determined(TuneJob *job)
{
    const guint n = job->samples;
    g_autofree double *basis = g_new(double, (gsize)job->constants *n);
    guint count = 0;

    for (int kind = 0; kind < LH_TRACE_FIT_KINDS; kind++) {
        for (guint c = 0; c < job->constants; c++) {
            LhTraceFitted *constant = lh_trace_fit_constant(job->tuning, c);
            const double *column = job->slopes + (gsize)c * n;
            double *rest = basis + (gsize)count * n;
            double norm;

            if ((int)constant->kind != kind)
                continue;
            memcpy(rest, column, n * sizeof(double));
            for (guint b = 0; b < count; b++) {
                const double part = lh_dot(rest, basis + (gsize)b * n, n);

                for (guint i = 0; i < n; i++)
                    rest[i] -= part * basis[(gsize)b * n + i];
            }
            constant->determined = tells(constant, column, rest, n);
            if (!constant->determined)
                continue;
            norm = sqrt(lh_dot(rest, rest, n));
            for (guint i = 0; i < n; i++)
                rest[i] /= norm;
            count++;
        }
    }
}

/* --- an iteration
 * ------------------------------------------------------------------------------- */

/* log(measured / simulated), and the weight of the sample. */
static double
rest_of(const TuneJob *job, guint sample, double *weight)
{
    const double rest = job->measured[sample] - job->simulated[sample];

    if (!isfinite(rest)) {
        *weight = 0;
        return 0;
    }
    *weight = fmin(1, HUBER / fmax(fabs(rest), HUBER));
    return rest;
}

/* Normal equations of the constants @which: [count][count + 1]. */
static void
make_equations(const TuneJob *job, const guint *which, guint count, double *rows)
{
    const guint width = count + 1;

    memset(rows, 0, (gsize)count * width * sizeof(double));
    for (guint i = 0; i < job->samples; i++) {
        double weight;
        const double rest = rest_of(job, i, &weight);

        for (guint a = 0; a < count; a++) {
            const double slope = weight * job->slopes[(gsize)which[a] * job->samples + i];

            for (guint b = 0; b < count; b++)
                rows[a * width + b] += slope * job->slopes[(gsize)which[b] * job->samples + i];
            rows[a * width + count] += slope * rest;
        }
    }
}

static void
swap_rows(double *a, double *b, guint width)
{
    for (guint i = 0; i < width; i++) {
        const double kept = a[i];

        a[i] = b[i];
        b[i] = kept;
    }
}

/* Solves the equations in place, into the last column; 0 where there is no pivot. */
static void
solve(double *rows, guint count)
{
    const guint width = count + 1;

    for (guint c = 0; c < count; c++) {
        guint best = c;

        for (guint r = c + 1; r < count; r++) {
            if (fabs(rows[r * width + c]) > fabs(rows[best * width + c]))
                best = r;
        }
        swap_rows(rows + c * width, rows + best * width, width);
        for (guint r = 0; r < count; r++) {
            const double factor = r == c || fabs(rows[c * width + c]) < 1e-12
                                      ? 0
                                      : rows[r * width + c] / rows[c * width + c];

            for (guint i = c; factor != 0 && i < width; i++)
                rows[r * width + i] -= factor * rows[c * width + i];
        }
    }
    for (guint c = 0; c < count; c++) {
        const double pivot = rows[c * width + c];

        rows[c * width + count] = fabs(pivot) < 1e-12 ? 0 : rows[c * width + count] / pivot;
    }
}

/* Updates the determined constants; returns the largest change of a logarithm. */
static double
move_constants(TuneJob *job)
{
    g_autofree guint *which = g_new(guint, job->constants);
    g_autofree double *rows = g_new(double, (gsize)job->constants *(job->constants + 1));
    double largest = 0;
    guint count = 0;

    for (guint c = 0; c < job->constants; c++) {
        if (lh_trace_fit_constant(job->tuning, c)->determined)
            which[count++] = c;
    }
    make_equations(job, which, count, rows);
    solve(rows, count);
    for (guint a = 0; a < count; a++) {
        LhTraceFitted *c = lh_trace_fit_constant(job->tuning, which[a]);
        const double change = fmax(fmin(rows[a * (count + 1) + count], CHANGE_MAX), -CHANGE_MAX);

        largest = fmax(largest, fabs(change));
        c->value *= exp(change);
        lh_trace_fit_set(job->setup, c, c->value);
    }
    return largest;
}

static bool
fit(TuneJob *job, GError **error)
{
    LhTraceFit *t = job->tuning;
    double change = INFINITY;

    if (!simulate(job, job->simulated, &t->before_ps, error))
        return false;
    for (t->rounds = 0; t->rounds < ROUNDS_MAX && change > CONVERGED; t->rounds++) {
        if (!differentiate(job, error))
            return false;
        find_determined(job);
        change = move_constants(job);
        if (!simulate(job, job->simulated, &t->makespan_ps, error))
            return false;
    }
    return true;
}

/* --- residuals
 * ---------------------------------------------------------------------------------- */

/* Residuals of the samples that depend on constant @index. @before: simulated before the fit. */
static void
judge(TuneJob *job, guint index, const double *before)
{
    LhTraceFitted *c = lh_trace_fit_constant(job->tuning, index);
    const double *column = job->slopes + (gsize)index * job->samples;
    g_autofree double *off = g_new(double, job->samples);
    g_autofree double *off_before = g_new(double, job->samples);
    const double least = c->kind <= LH_TRACE_FIT_BANDWIDTH ? DEPENDS_MIN : APART_ELASTICITY;

    c->samples = 0;
    for (guint i = 0; i < job->samples; i++) {
        const LhSample *s = sample_at(job, i);

        if (fabs(column[i]) < least)
            continue;
        off[c->samples] = fabs(expm1(job->simulated[i] - job->measured[i]));
        off_before[c->samples] = fabs(expm1(before[i] - job->measured[i]));
        c->off_worst = fmax(c->off_worst, off[c->samples]);
        c->length_min = c->samples == 0 ? s->keys : fmin(c->length_min, s->keys);
        c->length_max = fmax(c->length_max, s->keys);
        c->samples++;
    }
    if (c->samples == 0)
        return;
    c->off_median = lh_median(off, c->samples);
    c->off_before = lh_median(off_before, c->samples);
}

static bool
check(const TuneJob *job, GError **error)
{
    const LhDevice *device = job->setup->device;
    bool any = false;

    for (guint i = 0; i < job->constants; i++) {
        const LhTraceFitted *c = lh_trace_fit_constant(job->tuning, i);

        any = any || c->determined;
        if (c->kind == LH_TRACE_FIT_RATE && c->determined && c->value > device->matrix_rate) {
            g_autofree char *found = lh_format_flops(c->value);
            g_autofree char *peak = lh_format_flops(device->matrix_rate);

            g_set_error(error, LH_ERROR, LH_ERROR_NO,
                        "%s took so little time that its rate would be %s, above the peak of the "
                        "%s, %s: the traces are of fewer heads or a shorter sequence than the "
                        "simulated case, or of another device",
                        lh_kernels[c->kernel]->name, found, device->name, peak);
            return false;
        }
    }
    if (!any)
        g_set_error(error, LH_ERROR, LH_ERROR_NO,
                    "the traces determine no constant: they contain neither attention nor "
                    "communication of the program");
    return any;
}

LhTraceFit *
lh_trace_fit(LhSetup *setup, const LhProgram *program, const LhTraceAlignment *match,
             GError **error)
{
    g_autoptr(LhTraceFit) t = g_new0(LhTraceFit, 1);
    TuneJob job = { .setup = setup, .program = program, .match = match, .tuning = t };
    g_autofree double *measured = NULL;
    g_autofree double *simulated = NULL;
    g_autofree double *before = NULL;
    g_autofree double *slopes = NULL;

    t->constants = g_array_new(FALSE, FALSE, sizeof(LhTraceFitted));
    t->records = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord));
    t->head_dim = setup->params.attention.head_dim;
    job.samples = match->samples->len;
    lh_trace_fit_find(t, setup, match);
    job.constants = t->constants->len;
    job.measured = measured = g_new(double, job.samples + 1);
    job.simulated = simulated = g_new(double, job.samples + 1);
    before = g_new(double, job.samples + 1);
    job.slopes = slopes = g_new0(double, (gsize)job.constants *job.samples + 1);
    for (guint i = 0; i < job.samples; i++)
        measured[i] = log(sample_at(&job, i)->measured_s);
    if (!simulate(&job, before, &t->before_ps, error) || !fit(&job, error) || !check(&job, error))
        return NULL;
    for (guint i = 0; i < job.constants; i++)
        judge(&job, i, before);
    return g_steal_pointer(&t);
}

void
lh_trace_fit_free(LhTraceFit *t)
{
    if (t == NULL)
        return;
    g_array_unref(t->constants);
    g_array_unref(t->records);
    g_free(t);
}
