/*
 * The constants of a device and a topology, with where each of them comes from.
 */
#include "report/constants.h"

#include "sim/network/collective_table.h"

#include "base/escape.h"

static int
weakest_kernel(const LhDevice *device)
{
    int weakest = LH_PROVENANCE_MEASURED;

    for (guint i = 0; i < device->kernels->len; i++)
        weakest = MAX(weakest, g_array_index(device->kernels, LhKernelRate, i).provenance);
    return weakest;
}

static int
weakest_link(const LhTopology *t)
{
    int weakest = LH_PROVENANCE_MEASURED;

    if (t->nvlink.bandwidth > 0)
        weakest = MAX(weakest, t->nvlink.provenance);
    if (t->pcie.bandwidth > 0)
        weakest = MAX(weakest, t->pcie.provenance);
    if (t->nic.bandwidth > 0)
        weakest = MAX(weakest, t->nic.provenance);
    return weakest;
}

void
lh_describe_trust(const LhSetup *setup, LhProvenance weakest, GString *out)
{
    g_autofree char *device = NULL;
    g_autofree char *cluster = NULL;

    if (setup->cost != LH_COST_DEVICE) {
        g_string_append(out,
                        "constants: none; these are the times of a cost model, not of a machine\n");
        return;
    }
    device = lh_escaped_line(setup->device->name);
    cluster = lh_escaped_line(setup->topology->name);
    g_string_append_printf(
        out,
        "constants: kernels of %s: %s at worst; links of %s: %s at worst; those used here: %s at "
        "worst; see --provenance\n",
        device, lh_provenance_names[weakest_kernel(setup->device)], cluster,
        lh_provenance_names[weakest_link(setup->topology)], lh_provenance_names[weakest]);
}

static void
append_beyond(GString *out, const char *word, double point, double used)
{
    g_autofree char *fitted = lh_format_count((uint64_t)point);
    g_autofree char *length = lh_format_count((uint64_t)used);

    g_string_append_printf(out, "%s %s tokens, to %s", word, fitted, length);
}

void
lh_describe_extrapolation(const LhExtrapolation *beyond, GString *out)
{
    if (beyond->shortest <= 0 && beyond->longest <= 0)
        return;
    g_string_append(out, "curves of attention are extrapolated ");
    if (beyond->shortest > 0)
        append_beyond(out, "below blocks of", beyond->fitted_from, beyond->shortest);
    if (beyond->shortest > 0 && beyond->longest > 0)
        g_string_append(out, ", and ");
    if (beyond->longest > 0)
        append_beyond(out, "above blocks of", beyond->fitted_to, beyond->longest);
    g_string_append_c(out, '\n');
}

static void
add_constant(LhTable *table, const char *name, const char *value, int provenance,
             const char *source)
{
    lh_table_row(table);
    lh_table_cell(table, name, NULL);
    lh_table_cell(table, value, NULL);
    lh_table_cell(table, lh_provenance_names[provenance], NULL);
    lh_table_cell(table, source != NULL ? source : "", NULL);
}

void
lh_describe_pair_limits(const LhLinkClass *link, const char *before, const char *after,
                        GString *out)
{
    g_autofree char *p2p = lh_format_bandwidth(link->pair_p2p);
    g_autofree char *collective = lh_format_bandwidth(link->pair_collective);

    if (link->pair_p2p == 0 && link->pair_collective == 0)
        return;
    g_string_append(out, before);
    if (link->pair_p2p == link->pair_collective)
        g_string_append(out, p2p);
    else if (link->pair_collective == 0)
        g_string_append_printf(out, "%s in messages", p2p);
    else if (link->pair_p2p == 0)
        g_string_append_printf(out, "%s in collectives", collective);
    else
        g_string_append_printf(out, "%s in messages and %s in collectives", p2p, collective);
    g_string_append(out, after);
}

static void
add_link_constant(LhTable *table, const char *name, const LhLinkClass *link)
{
    g_autofree char *rate = NULL;
    g_autofree char *latency = NULL;
    g_autoptr(GString) value = NULL;

    if (link->bandwidth == 0)
        return;
    rate = lh_format_bandwidth(link->bandwidth);
    latency = lh_format_time(link->latency_ps);
    value = g_string_new(rate);
    lh_describe_pair_limits(link, " (GPU to GPU ", ")", value);
    g_string_append_printf(value, ", %s, %" G_GUINT64_FORMAT " SMs", latency, link->ctas);
    add_constant(table, name, value->str, link->provenance, link->source);
}

static void
add_kernel_constants(LhTable *table, const LhDevice *d)
{
    for (guint i = 0; i < d->kernels->len; i++) {
        const LhKernelRate *rate = &g_array_index(d->kernels, LhKernelRate, i);
        g_autofree char *flops = lh_format_flops(rate->rate);
        g_autofree char *name =
            g_strdup_printf("%s %s d%" G_GUINT64_FORMAT, rate->kernel,
                            rate->mask != 0 ? "causal" : "full", rate->head_dim);
        g_autofree char *value = g_strdup_printf("%s / (1 + %.0f / s)", flops, rate->half_length);

        add_constant(table, name, value, rate->provenance, rate->source);
    }
}

/* "all-gather 2, 4, 8, reduce-scatter 2, 4, 8": operations in the order of the file, by numbers of
 * GPUs. */
static void
add_collective_times(LhTable *table, const GArray *times)
{
    g_autoptr(GString) value = g_string_new(NULL);
    int op = -1, weakest = 0;

    if (times == NULL)
        return;
    for (guint i = 0; i < times->len; i++) {
        const LhCollectiveTimes *row = &g_array_index(times, LhCollectiveTimes, i);

        g_string_append(value, i > 0 ? ", " : "");
        if (row->op != op)
            g_string_append_printf(value, "%s ", lh_collective_names[row->op]);
        g_string_append_printf(value, "%" G_GUINT64_FORMAT, row->ranks);
        op = row->op;
        weakest = MAX(weakest, row->provenance);
    }
    g_string_append(value, " GPUs");
    add_constant(table, "collectives", value->str, weakest,
                 g_array_index(times, LhCollectiveTimes, 0).source);
}

LhTable *
lh_describe_constants(const LhSetup *setup)
{
    const LhDevice *d = setup->device;
    LhTable *table = lh_table_new();
    g_autofree char *peak = lh_format_bandwidth(d->memory_bandwidth);
    g_autofree char *launch = lh_format_time(d->kernel_launch_ps);
    g_autofree char *sync = lh_format_time(d->stream_sync_ps);
    g_autofree char *memory = g_strdup_printf("%s x %.2f", peak, d->memory_efficiency);
    g_autofree char *host = g_strdup_printf("%s an op, %s a wait", launch, sync);

    lh_table_column(table, "constant", "constant", NULL, false);
    lh_table_column(table, "value", "value", NULL, false);
    lh_table_column(table, "provenance", "provenance", NULL, false);
    lh_table_column(table, "source", "source", NULL, false);
    add_kernel_constants(table, d);
    add_constant(table, "memory", memory, d->memory_provenance, d->source);
    add_constant(table, "host", host, LH_PROVENANCE_ASSUMED, d->source);
    add_link_constant(table, "nvlink", &setup->topology->nvlink);
    add_link_constant(table, "pcie", &setup->topology->pcie);
    add_link_constant(table, "nic", &setup->topology->nic);
    add_collective_times(table, setup->topology->collective_times);
    return table;
}
