/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of ops by kernel and by tier, of makespans, and of the order of schedules. */
#include "validate/validate_private.h"

#include "measure/fit.h"

#include <math.h>

typedef struct {
    LhKernelErrors row;
    GArray *errors; /* of double */
} Bin;

static void
add_to_bin(Bin *bin, const char *name, double measured_s, double predicted_s)
{
    const double error = predicted_s / measured_s - 1;

    if (bin->errors == NULL)
        bin->errors = g_array_new(FALSE, FALSE, sizeof(double));
    bin->row.kernel = name;
    bin->row.ops++;
    bin->row.measured_s += measured_s;
    bin->row.predicted_s += predicted_s;
    if (fabs(error) > fabs(bin->row.error_worst))
        bin->row.error_worst = error;
    g_array_append_val(bin->errors, error);
}

static int
kernels_by_time(gconstpointer a, gconstpointer b)
{
    const LhKernelErrors *x = a;
    const LhKernelErrors *y = b;

    return x->measured_s < y->measured_s ? 1 : x->measured_s > y->measured_s ? -1 : 0;
}

/* Bins: all kernels, then exchanges and collectives, then exchanges by tier. */
enum {
    EXCHANGES = LH_KERNELS_COUNT,
    COLLECTIVES,
    TIERS,
    BINS = TIERS + LH_TIERS,
};

static void
take_bins(LhValidation *v, Bin *bins)
{
    double compute_s = 0;

    for (size_t i = 0; i < LH_KERNELS_COUNT; i++)
        compute_s += bins[i].row.measured_s;
    for (size_t i = 0; i < BINS; i++) {
        Bin *bin = &bins[i];

        if (i == EXCHANGES)
            g_array_sort(v->kernels, kernels_by_time);
        if (bin->errors == NULL)
            continue;
        bin->row.error_median = lh_median((double *)(void *)bin->errors->data, bin->errors->len);
        bin->row.share = i >= EXCHANGES ? 0 : bin->row.measured_s / compute_s;
        g_array_append_val(*(i >= TIERS ? &v->tiers : &v->kernels), bin->row);
        g_array_unref(bin->errors);
    }
}

static void
compare_ops(LhValidation *v, LhJoinedRuns *j, const LhValidateJob *job)
{
    const LhTopology *topology = job->setup->topology;
    Bin bins[BINS] = { 0 };
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(double));

    for (guint i = 0; i < j->predicted->len; i++) {
        const LhTimelineRecord *p = lh_joined_record(j->predicted, i);
        const double measured_s = lh_statistic(
            job->params->statistic, &g_array_index(j->times, double, i * j->repeat), v->runs);
        const double predicted_s = lh_joined_took(j, j->predicted, i);
        const double off = fabs(predicted_s / measured_s - 1);

        if (p->kind != LH_OP_COMPUTE) {
            const bool exchange = p->kind == LH_OP_EXCHANGE;

            add_to_bin(&bins[exchange ? EXCHANGES : COLLECTIVES],
                       exchange ? "exchange" : "collective", measured_s, predicted_s);
            if (exchange && p->tier < LH_TIERS)
                add_to_bin(&bins[TIERS + p->tier], lh_topology_link_name(topology, (LhTier)p->tier),
                           measured_s, predicted_s);
            continue;
        }
        if (job->validated->hosts != NULL)
            lh_slow_hosts_add_kernel(job->validated->hosts,
                                     p->rank / job->setup->network.gpus_per_host, measured_s,
                                     predicted_s);
        add_to_bin(&bins[p->kernel], lh_kernels[p->kernel]->name, measured_s, predicted_s);
        g_array_append_val(all, off);
    }
    take_bins(v, bins);
    if (all->len > 0)
        v->op_error = lh_median((double *)(void *)all->data, all->len);
}

/* Start-up time of the run whose makespan is closest to @makespan. */
static double
start_of(const LhJoinedRuns *j, double makespan)
{
    guint nearest = 0;

    for (guint i = 1; i < j->makespans->len; i++) {
        if (fabs(g_array_index(j->makespans, double, i) - makespan) <
            fabs(g_array_index(j->makespans, double, nearest) - makespan))
            nearest = i;
    }
    return g_array_index(j->starts, double, nearest);
}

static void
compare_case(const LhValidateJob *job, LhValidateCase *c)
{
    LhValidation *v = c->row;
    LhJoinedRuns *j = &c->joined;
    g_autofree double *sorted = g_memdup2(j->makespans->data, v->runs * sizeof(double));

    v->measured_s = lh_statistic(job->params->statistic, sorted, v->runs);
    v->spread = sorted[v->runs - 1] / sorted[0] - 1; /* sorted by lh_statistic() */
    v->start_s = start_of(j, v->measured_s);
    compare_ops(v, j, job);
}

static int
by_measured(const void *a, const void *b)
{
    const LhValidation *x = *(LhValidation *const *)a, *y = *(LhValidation *const *)b;

    return x->measured_s < y->measured_s ? -1 : x->measured_s > y->measured_s;
}

static int
by_predicted(const void *a, const void *b)
{
    const LhValidation *x = *(LhValidation *const *)a, *y = *(LhValidation *const *)b;

    return x->predicted_s < y->predicted_s ? -1 : x->predicted_s > y->predicted_s;
}

/* Position of @row in @order, from 0; equal rows get their mean position. */
static double
place_in(LhValidation **order, size_t count, const LhValidation *row,
         int (*compare_rows)(const void *, const void *))
{
    size_t before = 0, equal = 0;

    for (size_t i = 0; i < count; i++) {
        const int sign = compare_rows(&order[i], &row);

        before += sign < 0;
        equal += sign == 0;
    }
    return (double)before + ((double)equal - 1) / 2;
}

/* Spearman's rank correlation: the correlation of the positions. */
static double
correlate(LhValidation **rows, size_t count)
{
    const double mean = ((double)count - 1) / 2;
    double both = 0, measured = 0, predicted = 0;

    for (size_t i = 0; i < count; i++) {
        const double m = place_in(rows, count, rows[i], by_measured) - mean;
        const double p = place_in(rows, count, rows[i], by_predicted) - mean;

        both += m * p;
        measured += m * m;
        predicted += p * p;
    }
    return measured > 0 && predicted > 0 ? both / sqrt(measured * predicted) : NAN;
}

void
lh_validate_sum_up(LhValidateJob *job)
{
    LhValidated *validated = job->validated;
    g_autofree LhValidation **rows = g_new(LhValidation *, MAX(job->cases->len, 1));
    g_autofree double *off = g_new(double, MAX(job->cases->len, 1));
    size_t count = 0;

    validated->error_median = validated->error_worst = validated->rank_correlation = NAN;
    for (guint i = 0; i < job->cases->len; i++) {
        LhValidateCase *c = g_ptr_array_index(job->cases, i);

        if (c->row->runs == 0) {
            c->row->refused =
                g_strdup(validated->interrupted ? "not run: interrupted" : "not run: budget spent");
            continue;
        }
        compare_case(job, c);
        rows[count] = c->row;
        off[count++] = fabs(lh_validation_error(c->row));
    }
    if (count == 0)
        return;
    validated->error_median = lh_median(off, count);
    validated->error_worst = off[count - 1]; /* sorted by lh_median() */
    validated->rank_correlation = correlate(rows, count);
}
