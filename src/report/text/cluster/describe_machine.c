/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of calibrate and validate. */
#include "report/text/cluster/describe_machine.h"

#include "base/files/data_files.h"
#include "report/base/text.h"
#include "report/data/describe_options.h"
#include "report/text/number_cells.h"

#include <math.h>

/* ---- calibrate ---- */

static void
residual_columns(LhTable *table)
{
    lh_table_column(table, "residual_median", "median", "% error", true);
    lh_table_column(table, "residual_worst", "worst", "% error", true);
    lh_table_column(table, "residual_holdout", "held out", "% error", true);
}

static void
residual_cells(LhTable *table, const LhFitResiduals *r)
{
    lh_cell_percent(table, r->median);
    lh_cell_percent(table, r->worst);
    lh_cell_percent(table, r->holdout);
}

LhTable *
lh_describe_rates(const LhCalibration *c)
{
    LhTable *table = lh_table_new();
    const bool queries = !c->gpus; /* GPUs account for them by tiles */

    lh_table_column(table, "kernel", "attention kernel", NULL, false);
    lh_table_column(table, "mask", "mask", NULL, false);
    lh_table_column(table, "head_dim", "d", NULL, true);
    lh_table_column(table, "rate", "R_inf", NULL, true);
    lh_table_column(table, "half_length", "s0", "tokens", true);
    if (queries)
        lh_table_column(table, "query_half_length", "s1", "tokens", true);
    residual_columns(table);
    for (guint i = 0; i < c->device.kernels->len; i++) {
        const LhKernelRate *rate = &g_array_index(c->device.kernels, LhKernelRate, i);

        lh_table_row(table);
        lh_table_cell(table, rate->kernel, NULL);
        lh_table_cell(table, rate->mask == 1 ? "causal" : "full", NULL);
        lh_table_cell_printf(table, "%" G_GUINT64_FORMAT, rate->head_dim);
        lh_cell_unit(table, lh_format_flops(rate->rate), rate->rate);
        lh_table_cell_printf(table, "%.1f", rate->half_length);
        if (queries)
            lh_table_cell_printf(table, "%.1f", rate->query_half_length);
        residual_cells(table, &rate->residuals);
    }
    return table;
}

LhTable *
lh_describe_elementwise(const LhCalibration *c)
{
    LhTable *table = lh_table_new();

    lh_table_column(table, "kernel", "elementwise kernel", NULL, false);
    lh_table_column(table, "bandwidth", "bandwidth", NULL, true);
    residual_columns(table);
    for (guint i = 0; i < c->device.elementwise->len; i++) {
        const LhKernelTraffic *traffic = &g_array_index(c->device.elementwise, LhKernelTraffic, i);

        lh_table_row(table);
        lh_table_cell(table, traffic->kernel, NULL);
        lh_cell_unit(table, lh_format_bandwidth(traffic->bandwidth), traffic->bandwidth);
        residual_cells(table, &traffic->residuals);
    }
    return table;
}

static void
call_rows(LhTable *table, const LhCallCosts *calls)
{
    lh_table_row(table);
    lh_table_cell(table, "host, launch of an empty op", NULL);
    lh_cell_time(table, calls->op);
    lh_table_row(table);
    lh_table_cell(table, "host, a wait for it", NULL);
    lh_cell_time(table, calls->wait);
    if (calls->group <= 0)
        return;
    lh_table_row(table);
    lh_table_cell(table, "host, for a group of messages", NULL);
    lh_cell_time(table, calls->group);
}

static void
link_rows(LhTable *table, const char *what, const LhLinkClass *link,
          const LhFitResiduals *residuals)
{
    g_autofree char *latency = g_strdup_printf("%s, latency", what);
    g_autofree char *bandwidth = g_strdup_printf("%s, bandwidth", what);

    if (link->bandwidth == 0)
        return; /* for a cluster, or not measured */
    lh_table_row(table);
    lh_table_cell(table, latency, NULL);
    lh_cell_time(table, (double)link->latency_ps / (double)LH_PS_PER_S);
    lh_cell_percent(table, residuals->median);
    lh_cell_percent(table, residuals->worst);
    lh_table_row(table);
    lh_table_cell(table, bandwidth, NULL);
    lh_cell_unit(table, lh_format_bandwidth(link->bandwidth), link->bandwidth);
    if (link->ctas == 0)
        return;
    lh_table_row(table);
    lh_table_cell_printf(table, "%s, SMs held by messages", what);
    lh_table_cell_printf(table, "%" G_GUINT64_FORMAT, link->ctas);
}

/* Rows on how ranks and messages share the CPU's cores. */
static void
core_rows(LhTable *table, const LhCalibration *c)
{
    if (c->device.messages_hold > 0) {
        lh_table_row(table);
        lh_table_cell(table, "speed that a rank loses to messages", NULL);
        lh_table_cell_printf(table, "%.0f %%", 100 * c->device.messages_hold);
    }
    if (c->device.machine_ranks == 0)
        return;
    lh_table_row(table);
    lh_table_cell(table, "ranks of a machine", NULL);
    lh_table_cell_printf(table, "%" G_GUINT64_FORMAT, c->device.machine_ranks);
    lh_table_row(table);
    lh_table_cell(table, "cores that they share", NULL);
    lh_table_cell_printf(table, "%" G_GUINT64_FORMAT, c->device.machine_cores);
}

LhTable *
lh_describe_executor(const LhCalibration *c)
{
    LhTable *table = lh_table_new();

    lh_table_column(table, "what", "executor", NULL, false);
    lh_table_column(table, "value", "value", NULL, true);
    lh_table_column(table, "residual_median", "median", "% error", true);
    lh_table_column(table, "residual_worst", "worst", "% error", true);
    lh_table_row(table);
    lh_table_cell(table, "host, to issue an op", NULL);
    lh_cell_time(table, (double)c->device.kernel_launch_ps / (double)LH_PS_PER_S);
    lh_table_row(table);
    lh_table_cell(table, "host, to go on after a sync", NULL);
    lh_cell_time(table, (double)c->device.stream_sync_ps / (double)LH_PS_PER_S);
    if (c->gpus)
        call_rows(table, &c->calls);
    link_rows(table, c->gpus ? "NVLink" : "message", &c->link, &c->link_residuals);
    link_rows(table, "PCIe", &c->pcie, &c->pcie_residuals);
    link_rows(table, "NIC", &c->nic, &c->nic_residuals);
    core_rows(table, c);
    return table;
}

static void
line_rows(LhTable *table, const char *what, const LhClusterLine *line)
{
    g_autofree char *latency = g_strdup_printf("%s, latency", what);
    g_autofree char *bandwidth = g_strdup_printf("%s, bandwidth", what);

    lh_table_row(table);
    lh_table_cell(table, latency, NULL);
    lh_cell_time(table, line->alpha_s);
    residual_cells(table, &line->residuals);
    lh_table_row(table);
    lh_table_cell(table, bandwidth, NULL);
    lh_cell_unit(table, lh_format_bandwidth(line->bytes_per_s), line->bytes_per_s);
}

LhTable *
lh_describe_cluster(const LhCluster *c)
{
    LhTable *table = lh_table_new();

    lh_table_column(table, "what", "cluster", NULL, false);
    lh_table_column(table, "value", "value", NULL, true);
    residual_columns(table);
    lh_table_row(table);
    lh_table_cell(table, "nodes", NULL);
    lh_table_cell_printf(table, "%u", c->nodes);
    lh_table_row(table);
    lh_table_cell(table, "ranks of a node", NULL);
    lh_table_cell_printf(table, "%u", c->per_node);
    if (c->per_node > 1)
        line_rows(table, "memory of a node", &c->memory);
    if (c->nodes == 1)
        return table;
    lh_table_row(table);
    lh_table_cell(table, "adapters of a node", NULL);
    lh_table_cell_printf(table, "%u", c->nics);
    line_rows(table, "adapter", &c->nic);
    if (c->pair_bytes_per_s > 0) {
        lh_table_row(table);
        lh_table_cell(table, "adapter, bandwidth of one rank", NULL);
        lh_cell_unit(table, lh_format_bandwidth(c->pair_bytes_per_s), c->pair_bytes_per_s);
    }
    if (c->overhead_s > 0) {
        lh_table_row(table);
        lh_table_cell(table, "adapter, each further message", NULL);
        lh_cell_time(table, c->overhead_s);
    }
    for (uint32_t n = 0; n < c->nodes; n++) {
        g_autofree char *what = g_strdup_printf("adapter of %s, bandwidth", c->hosts[n]);

        if (c->node_bytes_per_s[n] == 0)
            continue;
        lh_table_row(table);
        lh_table_cell(table, what, NULL);
        lh_cell_unit(table, lh_format_bandwidth(c->node_bytes_per_s[n]), c->node_bytes_per_s[n]);
    }
    return table;
}

LhTable *
lh_describe_collectives(const GArray *checks)
{
    LhTable *table = lh_table_new();

    lh_table_column(table, "collective", "collective", NULL, false);
    lh_table_column(table, "ranks", "ranks", NULL, true);
    lh_table_column(table, "vector_bytes", "vector", NULL, true);
    lh_table_column(table, "measured_s", "measured", NULL, true);
    lh_table_column(table, "predicted_s", "predicted", NULL, true);
    lh_table_column(table, "error", "error", "%", true);
    for (guint i = 0; i < checks->len; i++) {
        const LhCollectiveCheck *c = &g_array_index(checks, LhCollectiveCheck, i);

        lh_table_row(table);
        lh_table_cell(table, lh_collective_names[c->kind], NULL);
        lh_table_cell_printf(table, "%u", c->members);
        lh_cell_unit(table, lh_format_bytes(c->vector_bytes), (double)c->vector_bytes);
        lh_cell_time(table, c->measured_s);
        lh_cell_time(table, c->predicted_s);
        lh_cell_error(table, c->predicted_s / c->measured_s - 1);
    }
    return table;
}

/* ---- validate ---- */

/* Whether ranks ran alone. */
static bool
are_alone(const GPtrArray *validations)
{
    for (guint i = 0; i < validations->len; i++) {
        const LhValidation *v = g_ptr_array_index(validations, i);

        if (v->rank >= 0)
            return true;
    }
    return false;
}

LhTable *
lh_describe_makespans(const GPtrArray *validations, double tolerance)
{
    LhTable *table = lh_table_new();
    const bool alone = are_alone(validations);

    lh_table_column(table, "schedule", "schedule", NULL, false);
    if (alone)
        lh_table_column(table, "rank", "rank", NULL, true);
    lh_table_column(table, "measured_s", "measured", NULL, true);
    lh_table_column(table, "predicted_s", "predicted", NULL, true);
    lh_table_column(table, "makespan_error", "error", "%", true);
    lh_table_column(table, "op_error", "median op", "% error", true);
    lh_table_column(table, "spread", "spread", "%", true);
    lh_table_column(table, "start_s", "start", NULL, true);
    lh_table_column(table, "rest_error", "error after it", "%", true);
    lh_table_column(table, "within", "within", NULL, false);
    for (guint i = 0; i < validations->len; i++) {
        const LhValidation *v = g_ptr_array_index(validations, i);

        lh_table_row(table);
        lh_table_cell(table, v->schedule, NULL);
        if (v->refused != NULL) {
            lh_table_note(table, v->refused);
            continue;
        }
        if (alone)
            lh_table_cell_printf(table, "%" G_GINT64_FORMAT, v->rank);
        lh_cell_time(table, v->measured_s);
        lh_cell_time(table, v->predicted_s);
        lh_cell_error(table, lh_validation_error(v));
        lh_cell_percent(table, v->op_error);
        lh_cell_percent(table, v->spread);
        lh_cell_time(table, v->start_s);
        lh_cell_error(table, v->predicted_s / (v->measured_s - v->start_s) - 1);
        lh_table_cell(table, lh_validation_within(v, tolerance) ? "yes" : "NO", NULL);
    }
    return table;
}

static void
kernel_row(LhTable *table, const LhValidation *v, const LhKernelErrors *row, double tolerance)
{
    const bool judged = lh_validation_judges(v, row);

    lh_table_row(table);
    lh_table_cell(table, v->schedule, NULL);
    lh_table_cell(table, row->kernel, NULL);
    lh_table_cell_printf(table, "%" G_GUINT64_FORMAT, row->ops);
    lh_cell_time(table, row->measured_s / (double)row->ops);
    lh_cell_time(table, row->predicted_s / (double)row->ops);
    lh_cell_percent(table, row->share);
    lh_cell_error(table, row->error_median);
    lh_cell_error(table, row->error_worst);
    lh_table_cell(table, !judged ? "-" : fabs(row->error_median) <= tolerance ? "yes" : "NO", NULL);
}

LhTable *
lh_describe_kernel_errors(const GPtrArray *validations, double tolerance)
{
    LhTable *table = lh_table_new();

    lh_table_column(table, "schedule", "schedule", NULL, false);
    lh_table_column(table, "kernel", "kernel", NULL, false);
    lh_table_column(table, "ops", "ops", NULL, true);
    lh_table_column(table, "measured_s", "measured", "mean", true);
    lh_table_column(table, "predicted_s", "predicted", "mean", true);
    lh_table_column(table, "share", "of compute", "%", true);
    lh_table_column(table, "error_median", "median error", "%", true);
    lh_table_column(table, "error_worst", "worst error", "%", true);
    lh_table_column(table, "within", "within", NULL, false);
    for (guint i = 0; i < validations->len; i++) {
        const LhValidation *v = g_ptr_array_index(validations, i);

        for (guint k = 0; k < v->kernels->len; k++)
            kernel_row(table, v, &g_array_index(v->kernels, LhKernelErrors, k), tolerance);
    }
    return table;
}

LhTable *
lh_describe_tier_errors(const GPtrArray *validations)
{
    LhTable *table = lh_table_new();

    lh_table_column(table, "schedule", "schedule", NULL, false);
    lh_table_column(table, "tier", "exchanges over", NULL, false);
    lh_table_column(table, "ops", "ops", NULL, true);
    lh_table_column(table, "measured_s", "measured", "mean", true);
    lh_table_column(table, "predicted_s", "predicted", "mean", true);
    lh_table_column(table, "error_sum", "error", "%", true);
    lh_table_column(table, "error_median", "median error", "%", true);
    for (guint i = 0; i < validations->len; i++) {
        const LhValidation *v = g_ptr_array_index(validations, i);

        for (guint k = 0; k < v->tiers->len; k++) {
            const LhKernelErrors *row = &g_array_index(v->tiers, LhKernelErrors, k);

            lh_table_row(table);
            lh_table_cell(table, v->schedule, NULL);
            lh_table_cell(table, row->kernel, NULL);
            lh_table_cell_printf(table, "%" G_GUINT64_FORMAT, row->ops);
            lh_cell_time(table, row->measured_s / (double)row->ops);
            lh_cell_time(table, row->predicted_s / (double)row->ops);
            lh_cell_error(table, row->predicted_s / row->measured_s - 1);
            lh_cell_error(table, row->error_median);
        }
    }
    return table;
}

LhTable *
lh_describe_explained(const LhAttributed *e)
{
    LhTable *table = lh_table_new();

    lh_table_column(table, "constant", "constants", NULL, false);
    lh_table_column(table, "scale", "best fitting scale", NULL, true);
    lh_table_column(table, "error", "error", "%", true);
    lh_table_column(table, "left", "error left", "%", true);
    lh_table_column(table, "gone", "removed", "%", true);
    for (int i = 0; i < LH_ATTRIBUTION_CLASSES; i++) {
        const LhAttribution *x = &e->classes[i];

        lh_table_row(table);
        lh_table_cell(table, lh_attribution_names[i], NULL);
        if (!x->applies) {
            lh_table_note(table, "nothing that ran depends on them");
            continue;
        }
        lh_table_cell_printf(table, "%.3f", x->scale);
        lh_cell_percent(table, e->error);
        lh_cell_percent(table, x->error);
        lh_cell_percent(table, e->error > 0 ? fmax(1 - x->error / e->error, 0) : 0);
    }
    return table;
}

void
lh_describe_cause(const LhAttributed *e, GString *out)
{
    if (e->best < 0) {
        g_string_append(
            out, "Scaling any one class of constants removes less than a fifth of the error.\n");
        return;
    }
    g_string_append_printf(
        out,
        "%s explain most of the error: with %.3f times the prediction, %.1f of %.1f %% remain.\n",
        lh_attribution_names[e->best], e->classes[e->best].scale, 100 * e->classes[e->best].error,
        100 * e->error);
    if (e->alike)
        g_string_append_printf(out,
                               "%s would do nearly as well: these runs cannot tell them apart.\n",
                               lh_attribution_names[e->second]);
}

static const LhHostTimes *
host_times(const LhSlowHosts *hosts, guint index)
{
    return &g_array_index(hosts->times, LhHostTimes, index);
}

LhTable *
lh_describe_hosts(const LhSlowHosts *hosts)
{
    LhTable *table = lh_table_new();

    lh_table_column(table, "host", "host", NULL, false);
    lh_table_column(table, "what", "what", NULL, false);
    lh_table_column(table, "measured_s", "measured", NULL, true);
    lh_table_column(table, "predicted_s", "predicted", NULL, true);
    lh_table_column(table, "error", "error", "%", true);
    lh_table_column(table, "slow", "slow", NULL, false);
    for (guint i = 0; i < hosts->times->len; i++) {
        const LhHostTimes *t = host_times(hosts, i);
        const bool messages = t->node != t->peer;

        if (t->measured_s <= 0)
            continue;
        lh_table_row(table);
        lh_table_cell(table, hosts->names[t->node], NULL);
        lh_table_cell_printf(table, "%s%s", messages ? "messages with " : "kernels",
                             messages ? hosts->names[t->peer] : "");
        lh_cell_time(table, t->measured_s);
        lh_cell_time(table, t->predicted_s);
        lh_cell_error(table, t->predicted_s / t->measured_s - 1);
        lh_table_cell(table, t->slow ? "YES" : "-", NULL);
    }
    return table;
}

/* Appends the range of slowdowns of the messages of @node: "take 3.1 to 9.8 times as long". */
static void
describe_adapter(const LhSlowHosts *hosts, uint32_t node, GString *out)
{
    double least = INFINITY, most = 0;

    for (guint i = hosts->nodes; i < hosts->times->len; i++) {
        const LhHostTimes *t = host_times(hosts, i);

        if (t->node != node && t->peer != node)
            continue;
        least = fmin(least, t->measured_s / t->predicted_s);
        most = fmax(most, t->measured_s / t->predicted_s);
    }
    g_string_append_printf(out,
                           "Slow: the network of host %s: its messages take %.3g to %.3g times as "
                           "long as predicted.\n",
                           hosts->names[node], least, most);
}

void
lh_describe_slow(const LhSlowHosts *hosts, GString *out)
{
    const gsize before = out->len;

    for (uint32_t n = 0; n < hosts->nodes; n++) {
        const LhHostTimes *t = host_times(hosts, n);

        if (t->slow)
            g_string_append_printf(out,
                                   "Slow: host %s: its kernels take %.3g times as long as "
                                   "predicted, those of the median host %.3g times.\n",
                                   hosts->names[n], t->measured_s / t->predicted_s, hosts->usual);
        if (lh_slow_hosts_adapter_is_slow(hosts, n))
            describe_adapter(hosts, n, out);
    }
    for (guint i = hosts->nodes; i < hosts->times->len; i++) {
        const LhHostTimes *t = host_times(hosts, i);

        if (t->slow && !lh_slow_hosts_adapter_is_slow(hosts, t->node) &&
            !lh_slow_hosts_adapter_is_slow(hosts, t->peer))
            g_string_append_printf(out,
                                   "Slow: the link between hosts %s and %s: a message takes %.3g "
                                   "times as long as predicted.\n",
                                   hosts->names[t->node], hosts->names[t->peer],
                                   t->measured_s / t->predicted_s);
    }
    if (out->len == before)
        g_string_append_printf(out,
                               "No host and no link takes more than %g times as long as "
                               "predicted.\n",
                               LH_HOSTS_SLOW);
}
