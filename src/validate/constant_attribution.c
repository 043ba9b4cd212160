/* SPDX-License-Identifier: Apache-2.0 */
/* The error is the average of three mean errors: compute ops, exchanges and collectives, and
 * makespans. Each is the absolute logarithm of predicted / measured, so that twice and half count
 * alike. */
#include "validate/constant_attribution.h"

#include "calibrate/fit_call.h"
#include "scenario/setup_simulate.h"
#include "sim/network/collectives/measured.h"
#include "sim/network/levers.h"

#include <math.h>

#define SCALE_MAX 4.0
#define SCALE_STEPS 8 /* grid steps from 1 to SCALE_MAX, and as many downwards */
#define SCALE_REFINEMENTS 12
/* Explanations whose errors differ by less than this part of the predicted one are alike. */
#define ALIKE 0.1
#define TIMES_LEAST_S 1e-12

const char *const lh_attribution_names[] = { "kernels",     "latency",      "bandwidth", "host",
                                             "collectives", "interference", NULL };
G_STATIC_ASSERT(G_N_ELEMENTS(lh_attribution_names) == LH_ATTRIBUTION_CLASSES + 1);

/* A machine with scalable constants. */
typedef struct {
    LhDevice device;
    LhTopology topology;
    LhNetwork network;
} Machine;

typedef struct {
    const LhSetup *setup;
    const LhAttributionCase *cases;
    uint32_t count;
} ExplainJob;

/* ---- scaling ---- */

static void
scale_kernels(Machine *m, double scale)
{
    LhDevice *d = &m->device;

    for (guint i = 0; i < d->kernels->len; i++)
        g_array_index(d->kernels, LhKernelRate, i).rate /= scale;
    for (guint i = 0; d->elementwise != NULL && i < d->elementwise->len; i++)
        g_array_index(d->elementwise, LhKernelTraffic, i).bandwidth /= scale;
    for (guint i = 0; d->attention != NULL && i < d->attention->len; i++) {
        g_array_index(d->attention, LhAttentionRow, i).rate /= scale;
        g_array_index(d->attention, LhAttentionRow, i).sustained_rate /= scale;
    }
    d->memory_bandwidth /= scale;
    d->matrix_rate /= scale;
}

static LhTime
scaled(LhTime time_ps, double scale)
{
    return lh_time_from_ps((double)time_ps * scale);
}

static void
scale_latency(Machine *m, double scale)
{
    lh_levers_scale(&m->topology, LH_LEVER_LATENCY, LH_LEVERS_ALL, 1 / scale);
}

/* Scales bandwidths. Slower NICs of single nodes are not levers, so they are scaled separately;
 * oversubscribed switches follow the links below them. */
static void
scale_bandwidth(Machine *m, double scale)
{
    GArray *slower = m->topology.slower_nodes;

    lh_levers_scale(&m->topology, LH_LEVER_RATE, LH_LEVERS_ALL, 1 / scale);
    for (guint i = 0; slower != NULL && i < slower->len; i++)
        g_array_index(slower, LhSlowerNode, i).bandwidth /= scale;
}

static void
scale_host(Machine *m, double scale)
{
    m->device.kernel_launch_ps = scaled(m->device.kernel_launch_ps, scale);
    m->device.stream_sync_ps = scaled(m->device.stream_sync_ps, scale);
}

/* Scales times only, not the sizes of the rows. */
static void
scale_collectives(Machine *m, double scale)
{
    GArray *times = m->topology.collective_times;

    for (guint i = 0; times != NULL && i < times->len; i++) {
        const GArray *us = g_array_index(times, LhCollectiveTimes, i).us;

        for (guint k = 0; k < us->len; k++)
            g_array_index(us, double, k) *= scale;
    }
}

static uint64_t
scaled_ctas(uint64_t ctas, double scale)
{
    return (uint64_t)llround((double)ctas * scale);
}

static void
scale_interference(Machine *m, double scale)
{
    LhTopology *t = &m->topology;

    t->nvlink.ctas = scaled_ctas(t->nvlink.ctas, scale);
    t->pcie.ctas = scaled_ctas(t->pcie.ctas, scale);
    t->nic.ctas = scaled_ctas(t->nic.ctas, scale);
}

static void (*const scales[LH_ATTRIBUTION_CLASSES])(Machine *m, double scale) = {
    scale_kernels, scale_latency,     scale_bandwidth,
    scale_host,    scale_collectives, scale_interference,
};

/* ---- machines ---- */

static GArray *
copy_of(GArray *array)
{
    return array == NULL ? NULL : g_array_copy(array);
}

static void
clear_machine(Machine *m)
{
    GArray *times = m->topology.collective_times;

    g_clear_pointer(&m->device.kernels, g_array_unref);
    g_clear_pointer(&m->device.elementwise, g_array_unref);
    g_clear_pointer(&m->device.attention, g_array_unref);
    g_clear_pointer(&m->topology.slower_nodes, g_array_unref);
    for (guint i = 0; times != NULL && i < times->len; i++)
        g_array_unref(g_array_index(times, LhCollectiveTimes, i).us);
    g_clear_pointer(&m->topology.collective_times, g_array_unref);
    g_clear_pointer(&m->topology.collective_lines, g_array_unref);
}

/* Copies the setup's machine and scales one class of its constants. Strings are borrowed. */
static bool
prepare(Machine *m, const LhSetup *setup, LhAttributionClass class, double scale, GError **error)
{
    const LhNetwork *n = &setup->network;

    m->device = *setup->device;
    m->topology = *setup->topology;
    m->device.kernels = copy_of(setup->device->kernels);
    m->device.elementwise = copy_of(setup->device->elementwise);
    m->device.attention = copy_of(setup->device->attention);
    m->topology.slower_nodes = copy_of(setup->topology->slower_nodes);
    m->topology.collective_times = copy_of(setup->topology->collective_times);
    for (guint i = 0; m->topology.collective_times != NULL && i < m->topology.collective_times->len;
         i++) {
        LhCollectiveTimes *row = &g_array_index(m->topology.collective_times, LhCollectiveTimes, i);

        row->us = g_array_copy(row->us);
    }
    m->topology.collective_lines = copy_of(setup->topology->collective_lines);
    scales[class](m, scale);
    /* Scaling corrects what is known of the links; it does not replace them. Where collectives were
     * measured on these links, their measured times stay. */
    lh_measured_follow(&m->topology, setup->topology);
    return lh_network_init(&m->network, &m->topology, n->nodes, n->ranks, n->faults, error);
}

/* ---- errors ---- */

void
lh_attribution_collect(void *data, const LhTimelineRecord *record)
{
    if (record->kind == LH_OP_COMPUTE || record->kind == LH_OP_EXCHANGE ||
        record->kind == LH_OP_COLLECTIVE)
        g_array_append_vals(data, record, 1);
}

/* Sum and number of errors. */
typedef struct {
    double sum;
    uint64_t count;
} Mean;

static void
add_error(Mean *mean, double predicted_s, double measured_s)
{
    mean->sum += fabs(log(fmax(predicted_s, TIMES_LEAST_S) / fmax(measured_s, TIMES_LEAST_S)));
    mean->count++;
}

static bool
add_case_errors(const ExplainJob *job, const LhAttributionCase *c, const Machine *m, Mean means[3],
                GError **error)
{
    g_autoptr(GArray) records = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord));
    const LhHooks hooks = { .timeline = lh_attribution_collect, .timeline_data = records };
    g_autoptr(LhSimResult) sim =
        lh_setup_simulate(job->setup, c->program, &m->network, &m->device, &hooks, error);

    if (sim == NULL)
        return false;
    g_array_sort(records, lh_timeline_by_rank_and_op);
    for (guint i = 0; i < records->len; i++) {
        const bool compute = g_array_index(records, LhTimelineRecord, i).kind == LH_OP_COMPUTE;

        add_error(&means[compute ? 0 : 1],
                  (double)lh_pairing_took(c->meetings, records, i) / (double)LH_PS_PER_S,
                  c->took_s[i]);
    }
    add_error(&means[2], (double)sim->makespan_ps / (double)LH_PS_PER_S, c->makespan_s);
    return true;
}

static bool
error_with(const ExplainJob *job, LhAttributionClass class, double scale, double *off,
           GError **error)
{
    Machine m = { 0 };
    Mean means[3] = { { 0 } };
    bool ok = prepare(&m, job->setup, class, scale, error);
    unsigned kinds = 0;

    for (uint32_t i = 0; ok && i < job->count; i++)
        ok = add_case_errors(job, &job->cases[i], &m, means, error);
    clear_machine(&m);
    *off = 0;
    for (unsigned i = 0; i < G_N_ELEMENTS(means); i++) {
        if (means[i].count == 0)
            continue;
        *off += means[i].sum / (double)means[i].count;
        kinds++;
    }
    *off /= MAX(kinds, 1);
    return ok;
}

/* ---- the search ---- */

static double
grid_scale(int step)
{
    return pow(SCALE_MAX, (double)CLAMP(step, -SCALE_STEPS, SCALE_STEPS) / SCALE_STEPS);
}

static bool
search(const ExplainJob *job, LhAttributionClass class, LhAttribution *found, GError **error)
{
    double low, high, off, least = INFINITY, most = 0;
    int best = 0;

    for (int i = -SCALE_STEPS; i <= SCALE_STEPS; i++) {
        if (!error_with(job, class, grid_scale(i), &off, error))
            return false;
        most = fmax(most, off);
        if (off < least || (off == least && ABS(i) < ABS(best))) {
            least = off;
            best = i;
        }
    }
    *found = (LhAttribution){ .applies = most > least, .scale = grid_scale(best), .error = least };
    low = log(grid_scale(best - 1));
    high = log(grid_scale(best + 1));
    for (int i = 0; found->applies && i < SCALE_REFINEMENTS; i++) {
        const double a = high - LH_GOLDEN * (high - low), b = low + LH_GOLDEN * (high - low);
        double off_a, off_b;

        if (!error_with(job, class, exp(a), &off_a, error) ||
            !error_with(job, class, exp(b), &off_b, error))
            return false;
        if (fmin(off_a, off_b) < found->error)
            *found = (LhAttribution){ true, exp(off_a <= off_b ? a : b), fmin(off_a, off_b) };
        if (off_a <= off_b)
            high = b;
        else
            low = a;
    }
    return true;
}

static void
choose_class(LhAttributed *e)
{
    e->best = e->second = -1;
    for (int i = 0; i < LH_ATTRIBUTION_CLASSES; i++) {
        if (!e->classes[i].applies)
            continue;
        if (e->best < 0 || e->classes[i].error < e->classes[e->best].error) {
            e->second = e->best;
            e->best = i;
        } else if (e->second < 0 || e->classes[i].error < e->classes[e->second].error) {
            e->second = i;
        }
    }
    if (e->best >= 0 && e->classes[e->best].error > (1 - LH_ATTRIBUTION_SHARE) * e->error)
        e->best = -1;
    e->alike = e->best >= 0 && e->second >= 0 &&
               e->classes[e->second].error - e->classes[e->best].error < ALIKE * e->error;
}

bool
lh_attribution(const LhSetup *setup, const LhAttributionCase *cases, uint32_t count,
               LhAttributed *explained, GError **error)
{
    const ExplainJob job = { setup, cases, count };

    *explained = (LhAttributed){ .best = -1, .second = -1 };
    if (!error_with(&job, LH_ATTRIBUTION_KERNELS, 1, &explained->error, error))
        return false;
    for (int i = 0; i < LH_ATTRIBUTION_CLASSES; i++) {
        if (!search(&job, (LhAttributionClass)i, &explained->classes[i], error))
            return false;
    }
    choose_class(explained);
    return true;
}
