/*
 * Gauss and Newton's method on logarithms: what is minimised are the squares of log(measured /
 * simulated), which weigh a message of 20 us as much as a kernel of 20 ms, and less of those that
 * are far off (Huber). Derivatives are taken by simulating with each constant a little larger. A
 * constant is determined if what was seen depends on it, and in another way than on those before
 * it: of blocks of one length, rate and length of half rate are one number.
 */
#include "import/trace/trace_fit.h"

#include "base/dot.h"
#include "base/error.h"
#include "base/json/json_writer.h"
#include "measure/fit.h"
#include "program/timeline.h"
#include "scenario/profile.h"
#include "sim/network/collectives/measured.h"

#include <math.h>
#include <string.h>

#define ROUNDS_MAX 12
#define STEP 0.01      /* of a derivative */
#define CHANGE_MAX 0.7 /* of a logarithm, in a round */
#define CONVERGED 1e-5
#define HUBER 0.1
#define DEPENDS_MIN 0.3       /* elasticity from which on a sample is one of a constant's */
#define APART_MIN 0.1         /* share of a column that is not explained by those before it */
#define APART_ELASTICITY 0.03 /* what that must be, at least, per sample */
#define ROOFLINE_SHARE 0.6    /* of the peak: a first guess where there is no curve */
#define ROOFLINE_TOKENS 200

const char *const lh_trace_fit_names[] = { "rate", "bandwidth", "half length", "latency", NULL };

typedef struct {
    LhSetup *setup;
    const LhProgram *program;
    const LhTraceAlignment *match;
    LhTraceFit *tuning;
    guint constants, samples;
    double *measured;  /* [samples]: logarithms */
    double *simulated; /* [samples], likewise: with the present values */
    double *slopes;    /* [constants][samples] */
} TuneJob;

static LhTraceFitted *
constant_at(const LhTraceFit *t, guint index)
{
    return &g_array_index(t->constants, LhTraceFitted, index);
}

static const LhSample *
sample_at(const TuneJob *job, guint index)
{
    return &g_array_index(job->match->samples, LhSample, index);
}

/* --- where constants are ------------------------------------------------------------------------
 */

static LhKernelRate *
curve_of(const LhSetup *setup, const LhTraceFitted *c)
{
    const GArray *curves = setup->device->kernels;
    const uint64_t head_dim = setup->params.attention.head_dim;

    for (guint i = 0; i < curves->len; i++) {
        LhKernelRate *curve = &g_array_index(curves, LhKernelRate, i);

        if (strcmp(curve->kernel, lh_kernels[c->kernel]->name) == 0 && curve->mask == c->mask &&
            curve->head_dim == head_dim)
            return curve;
    }
    g_assert_not_reached();
}

static LhLinkClass *
link_of(LhTopology *topology, int tier)
{
    return tier == LH_TIER_NVLINK ? &topology->nvlink
           : tier == LH_TIER_PCIE ? &topology->pcie
                                  : &topology->nic;
}

static double
get_value(const LhSetup *setup, const LhTraceFitted *c)
{
    switch (c->kind) {
    case LH_TRACE_FIT_RATE:
        return curve_of(setup, c)->rate;
    case LH_TRACE_FIT_HALF_LENGTH:
        return curve_of(setup, c)->half_length;
    case LH_TRACE_FIT_BANDWIDTH:
        return link_of(setup->topology, c->tier)->bandwidth;
    default:
        return (double)link_of(setup->topology, c->tier)->latency_ps / (double)LH_PS_PER_S;
    }
}

/* Of links that collectives were measured on, too, if they are these: their times stay. */
static void
set_link(LhTopology *topology, const LhTraceFitted *c, double value)
{
    const LhTopology before = *topology;
    LhLinkClass *link = link_of(topology, c->tier);

    if (c->kind == LH_TRACE_FIT_BANDWIDTH)
        link->bandwidth = value;
    else
        link->latency_ps = lh_time_from_ps(value * (double)LH_PS_PER_S);
    lh_measured_follow(topology, &before);
}

static void
set_value(LhSetup *setup, const LhTraceFitted *c, double value)
{
    if (c->kind == LH_TRACE_FIT_RATE)
        curve_of(setup, c)->rate = value;
    else if (c->kind == LH_TRACE_FIT_HALF_LENGTH)
        curve_of(setup, c)->half_length = value;
    else
        set_link(setup->topology, c, value);
}

/* --- which constants there are ------------------------------------------------------------------
 */

static void
add_constant(LhTraceFit *t, LhTraceFitKind kind, LhKernelId kernel, int mask, int tier)
{
    const LhTraceFitted c = { .kind = kind, .kernel = kernel, .mask = mask, .tier = tier };

    g_array_append_val(t->constants, c);
}

/* A curve of its own for a kernel: that which the device has, or a guess. */
static void
seed_curve(LhSetup *setup, LhKernelId kernel, int mask)
{
    const char *name = lh_kernels[kernel]->name;
    const uint32_t head_dim = setup->params.attention.head_dim;
    LhDevice *device = setup->device;
    LhKernelRate curve;

    if (!lh_device_rate(device, name, mask == 1, head_dim, &curve))
        curve = (LhKernelRate){ .rate = ROOFLINE_SHARE * device->matrix_rate,
                                .half_length = ROOFLINE_TOKENS,
                                .provenance = LH_PROVENANCE_ASSUMED };
    else if (strcmp(curve.kernel, name) == 0 && curve.mask == mask && curve.head_dim == head_dim)
        return;
    curve.kernel = g_strdup(name);
    curve.source = g_strdup(curve.source != NULL ? curve.source : "a first guess");
    curve.mask = mask;
    curve.head_dim = head_dim;
    g_array_append_val(device->kernels, curve);
}

/* The curves of kernels that were seen, and the links of tiers that messages crossed. */
static void
find_constants(TuneJob *job)
{
    LhTraceFit *t = job->tuning;
    bool curves[LH_KERNELS_COUNT][2] = { { false } };
    bool attends = false;

    for (guint i = 0; i < job->samples; i++) {
        const LhSample *s = sample_at(job, i);

        if (s->kind == LH_OP_COMPUTE)
            curves[s->kernel][s->triangle] = attends = true;
    }
    for (uint32_t k = 0; k < LH_KERNELS_COUNT; k++) {
        for (int mask = 0; mask < 2; mask++) {
            if (!curves[k][mask])
                continue;
            seed_curve(job->setup, (LhKernelId)k, mask);
            add_constant(t, LH_TRACE_FIT_RATE, (LhKernelId)k, mask, 0);
            add_constant(t, LH_TRACE_FIT_HALF_LENGTH, (LhKernelId)k, mask, 0);
        }
    }
    if (attends) /* as when a profile is laid over the device */
        lh_device_use_library(job->setup->device, NULL);
    for (int tier = LH_TIER_NVLINK; tier <= LH_TIER_NIC; tier++) {
        if (link_of(job->setup->topology, tier)->bandwidth <= 0)
            continue;
        add_constant(t, LH_TRACE_FIT_BANDWIDTH, (LhKernelId)0, 0, tier);
        add_constant(t, LH_TRACE_FIT_LATENCY, (LhKernelId)0, 0, tier);
    }
    job->constants = t->constants->len;
    for (guint i = 0; i < job->constants; i++) {
        LhTraceFitted *c = constant_at(t, i);

        c->before = c->value = get_value(job->setup, c);
    }
}

/* --- simulating ---------------------------------------------------------------------------------
 */

/* Logarithms of the samples' times with the values that are set. */
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

/* Derivatives of the logarithms by the logarithms of the constants. */
static bool
differentiate(TuneJob *job, GError **error)
{
    LhTime makespan_ps;

    for (guint c = 0; c < job->constants; c++) {
        const LhTraceFitted *constant = constant_at(job->tuning, c);
        double *column = job->slopes + (gsize)c * job->samples;
        bool ok;

        set_value(job->setup, constant, constant->value * (1 + STEP));
        ok = simulate(job, column, &makespan_ps, error);
        set_value(job->setup, constant, constant->value);
        if (!ok)
            return false;
        for (guint i = 0; i < job->samples; i++) {
            const double slope = (column[i] - job->simulated[i]) / log1p(STEP);

            column[i] = isfinite(slope) ? slope : 0;
        }
    }
    return true;
}

/* --- what is determined -------------------------------------------------------------------------
 */

static guint
depends_on(const double *column, guint count, double least)
{
    guint n = 0;

    for (guint i = 0; i < count; i++)
        n += fabs(column[i]) >= least;
    return n;
}

/* Whether @rest, what of @column is not explained by other constants, is enough to tell. */
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

/* Rates and bandwidths first: Gram and Schmidt's method. */
static void
find_determined(TuneJob *job)
{
    const guint n = job->samples;
    g_autofree double *basis = g_new(double, (gsize)job->constants *n);
    guint count = 0;

    for (int kind = 0; kind < LH_TRACE_FIT_KINDS; kind++) {
        for (guint c = 0; c < job->constants; c++) {
            LhTraceFitted *constant = constant_at(job->tuning, c);
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

/* --- a round ------------------------------------------------------------------------------------
 */

/* log(measured / simulated), and how much a sample counts. */
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

/* The normal equations of the constants @which: [count][count + 1]. */
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

/* Solves them in place, into the last column; where there is no pivot, the answer is 0. */
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

/* Moves the constants that are determined; the largest change of a logarithm. */
static double
move_constants(TuneJob *job)
{
    g_autofree guint *which = g_new(guint, job->constants);
    g_autofree double *rows = g_new(double, (gsize)job->constants *(job->constants + 1));
    double largest = 0;
    guint count = 0;

    for (guint c = 0; c < job->constants; c++) {
        if (constant_at(job->tuning, c)->determined)
            which[count++] = c;
    }
    make_equations(job, which, count, rows);
    solve(rows, count);
    for (guint a = 0; a < count; a++) {
        LhTraceFitted *c = constant_at(job->tuning, which[a]);
        const double change = fmax(fmin(rows[a * (count + 1) + count], CHANGE_MAX), -CHANGE_MAX);

        largest = fmax(largest, fabs(change));
        c->value *= exp(change);
        set_value(job->setup, c, c->value);
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

/* --- how good it is -----------------------------------------------------------------------------
 */

/* Of the samples that depend on constant @index. @before: simulated before. */
static void
judge(TuneJob *job, guint index, const double *before)
{
    LhTraceFitted *c = constant_at(job->tuning, index);
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
        const LhTraceFitted *c = constant_at(job->tuning, i);

        any = any || c->determined;
        if (c->kind == LH_TRACE_FIT_RATE && c->determined && c->value > device->matrix_rate) {
            g_autofree char *found = lh_format_flops(c->value);
            g_autofree char *peak = lh_format_flops(device->matrix_rate);

            g_set_error(error, LH_ERROR, LH_ERROR_NO,
                        "%s took so little time that its rate would be %s, above the peak of the "
                        "%s, %s: the traces are of fewer heads or a shorter sequence than the case "
                        "that is simulated, or of another device",
                        lh_kernels[c->kernel]->name, found, device->name, peak);
            return false;
        }
    }
    if (!any)
        g_set_error(error, LH_ERROR, LH_ERROR_NO,
                    "what was seen determines no constant: there is neither attention nor "
                    "communication of the program in it");
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
    find_constants(&job);
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

/* --- the profile --------------------------------------------------------------------------------
 */

/* With more digits than people read, so that what is read back is what was found. */
static void
write_scaled(LhJsonWriter *w, const char *key, double value, const char *unit)
{
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    g_autofree char *text = NULL;

    g_ascii_formatd(number, sizeof(number), "%.6f", value);
    text = g_strconcat(number, unit, NULL);
    lh_jsonw_string(w, key, text);
}

static const LhTraceFitted *
find_constant(const LhTraceFit *t, const LhTraceFitted *like, LhTraceFitKind kind)
{
    for (guint i = 0; i < t->constants->len; i++) {
        const LhTraceFitted *c = constant_at(t, i);

        if (c->kind == kind && c->kernel == like->kernel && c->mask == like->mask &&
            c->tier == like->tier)
            return c;
    }
    g_assert_not_reached();
}

static void
write_curve(const LhTraceFit *t, const LhSetup *setup, const LhTraceFitted *c, const char *source,
            LhJsonWriter *w)
{
    const LhTraceFitted *half = find_constant(t, c, LH_TRACE_FIT_HALF_LENGTH);
    const double of_queries = curve_of(setup, c)->query_half_length; /* as it was while tuning */

    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "kernel", lh_kernels[c->kernel]->name);
    lh_jsonw_string(w, "mask", c->mask == 1 ? "causal" : "full");
    lh_jsonw_uint(w, "head_dim", t->head_dim);
    if (c->value >= 1e12)
        write_scaled(w, "rate", c->value / 1e12, "TFLOP/s");
    else
        write_scaled(w, "rate", c->value / 1e9, "GFLOP/s");
    lh_jsonw_double(w, "half_length", half->value);
    if (of_queries > 0)
        lh_jsonw_double(w, "query_half_length", of_queries);
    lh_jsonw_uint(w, "length_min", (uint64_t)fmax(floor(c->length_min), 1));
    lh_jsonw_uint(w, "length_max", (uint64_t)fmax(ceil(c->length_max), 1));
    lh_jsonw_string(w, "provenance", lh_provenance_names[LH_PROVENANCE_FITTED]);
    lh_jsonw_string(w, "source", source);
    lh_jsonw_object_begin(w, "residuals");
    lh_jsonw_double(w, "median", c->off_median);
    lh_jsonw_double(w, "worst", c->off_worst);
    lh_jsonw_object_end(w);
    lh_jsonw_object_end(w);
}

static void
write_tuned_link(const LhTraceFit *t, const LhTraceFitted *c, const LhSetup *setup,
                 const char *source, LhJsonWriter *w)
{
    const LhTraceFitted *latency = find_constant(t, c, LH_TRACE_FIT_LATENCY);
    g_autofree char *text =
        g_strdup_printf("%s; latency %s; residuals: median %.1f %%, worst %.1f %%", source,
                        latency->determined ? "likewise" : "as in the topology, not determined",
                        100 * c->off_median, 100 * c->off_worst);

    lh_jsonw_object_begin(w, lh_tier_names[c->tier]);
    write_scaled(w, "bandwidth", c->value / 1e9, "GB/s");
    write_scaled(w, "latency", latency->value * 1e6, "us");
    lh_jsonw_uint(w, "ctas", link_of(setup->topology, c->tier)->ctas);
    lh_jsonw_string(w, "provenance", lh_provenance_names[LH_PROVENANCE_FITTED]);
    lh_jsonw_string(w, "source", text);
    lh_jsonw_object_end(w);
}

void
lh_trace_fit_write(const LhTraceFit *t, const LhSetup *setup, const char *name, const char *source,
                   GString *out)
{
    LhJsonWriter *w = lh_jsonw_new(out, false);
    g_autofree char *description =
        g_strdup_printf("Constants of %s on %s, fitted to traces of a run.", setup->device->name,
                        setup->topology->name);

    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "schema", "longhaul.profile/2");
    lh_jsonw_string(w, "name", name);
    lh_jsonw_string(w, "description", description);
    lh_jsonw_string(w, "source", source);
    lh_jsonw_array_begin(w, "kernels");
    for (guint i = 0; i < t->constants->len; i++) {
        const LhTraceFitted *c = constant_at(t, i);

        if (c->kind == LH_TRACE_FIT_RATE && c->determined)
            write_curve(t, setup, c, source, w);
    }
    lh_jsonw_array_end(w);
    for (guint i = 0; i < t->constants->len; i++) {
        const LhTraceFitted *c = constant_at(t, i);

        if (c->kind == LH_TRACE_FIT_BANDWIDTH && c->determined)
            write_tuned_link(t, c, setup, source, w);
    }
    lh_jsonw_object_end(w);
    lh_jsonw_free(w);
}
