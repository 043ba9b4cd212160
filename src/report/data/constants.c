/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The constants of a device and a topology, with their provenance.
 */
#include "report/data/constants.h"

#include "sim/network/collectives/collective_table.h"

#include "base/escape.h"
#include "compare/error_bar.h"
#include "compare/totals.h"
#include "report/base/text.h"
#include "scenario/setting.h"
#include "sim/cost/device_fields.h"
#include "sim/cost/provenance.h"

#include <string.h>

#define LONGEST_PS 9e18 /* below the maximum of LhTime */

/* ---- most important constants ---- */

/* Tiers whose links the topology does not name. */
static const char *const tier_rates[] = {
    [LH_TIER_PCIE] = "PCIe",
    [LH_TIER_NIC] = "the NICs",
    [LH_TIER_FABRIC] = "the fabric",
};

static const char *
link_name(const LhSetup *setup, int tier)
{
    return tier == LH_TIER_NVLINK ? lh_topology_link_name(setup->topology, LH_TIER_NVLINK)
                                  : tier_rates[tier];
}

/* A kind of constants in words, and the tool that measures them. */
static const struct {
    const char *name; /* of links and collectives: before the name of the link */
    bool of_link, of_cluster;
} constant_kinds[LH_CONSTANT_KINDS] = {
    [LH_CONSTANT_OF_LINK] = { "the bandwidth of ", true, true },
    [LH_CONSTANT_OF_COLLECTIVES] = { "NCCL's collectives over ", true, true },
    [LH_CONSTANT_OF_FORWARD] = { "forward attention kernels", false, false },
    [LH_CONSTANT_OF_BACKWARD] = { "backward attention kernels", false, false },
    [LH_CONSTANT_OF_GEMM] = { "matrix products within attention", false, false },
    [LH_CONSTANT_OF_PRODUCTS] = { "matrix products with weights", false, false },
    [LH_CONSTANT_OF_CPU] = { "the memory bandwidth of the hosts' CPUs", false, false },
    [LH_CONSTANT_OF_MEMORY] = { "memory-bound kernels", false, false },
    [LH_CONSTANT_OF_HOST] = { "kernel launches and host synchronisation", false, false },
    [LH_CONSTANT_OF_SENDS] = { "the share of link bandwidth that messages reach", false, true },
};

static void
append_constant(const LhSetup *setup, const LhSensitivity *c, GString *out)
{
    g_string_append(out, constant_kinds[c->kind].name);
    if (constant_kinds[c->kind].of_link)
        g_string_append(out, link_name(setup, c->tier));
}

static const LhSensitivity *
constant_at(const LhSensitivities *s, guint index)
{
    return &g_array_index(s->constants, LhSensitivity, index);
}

/* "the bandwidth of NVLink and matrix products with weights" */
static void
append_constant_names(const LhSetup *setup, const LhSensitivities *s, guint from, guint to,
                      GString *out)
{
    for (guint i = from; i < to; i++) {
        g_string_append(out, i == from ? "" : i + 1 == to ? " and " : ", ");
        append_constant(setup, constant_at(s, i), out);
    }
}

static bool
is_measured(const LhSensitivity *c)
{
    return c->error <= lh_provenance_error(LH_PROVENANCE_MEASURED);
}

/* The measurement that narrows the error bar most, and those that would halve it. */
static void
append_remedy(const LhSetup *setup, const LhSensitivities *s, GString *out)
{
    const LhSensitivity *first = constant_at(s, 0);
    const guint halve = lh_sensitivities_to_halve(s);
    char text[LH_TEXT_SIZE];

    if (is_measured(first)) {
        g_string_append(out, "; every constant that matters is measured");
        return;
    }
    g_string_append_printf(
        out, "; %s would %s it to %s",
        first->kind == LH_CONSTANT_OF_CPU        ? "a measured host_cpu in the topology's file"
        : constant_kinds[first->kind].of_cluster ? "longhaul calibrate on this cluster"
                                                 : "longhaul calibrate on one such device",
        halve == 1 ? "halve" : "narrow", lh_text_percent(lh_sensitivities_measured(s, 1), text));
    if (halve == 0)
        g_string_append_printf(
            out, ", and measuring every constant to %s",
            lh_text_percent(lh_sensitivities_measured(s, s->constants->len), text));
    if (halve < 2)
        return;
    g_string_append(out, "; measuring ");
    append_constant_names(setup, s, 1, halve, out);
    g_string_append_printf(out, " as well would halve it (%s)",
                           lh_text_percent(lh_sensitivities_measured(s, halve), text));
}

void
lh_describe_sensitivities(const LhSetup *setup, const LhSensitivities *s, GString *out)
{
    const LhSensitivity *first = s != NULL && s->constants->len > 0 ? constant_at(s, 0) : NULL;
    char share[LH_TEXT_SIZE], error[LH_TEXT_SIZE], moves[LH_TEXT_SIZE], bar[LH_TEXT_SIZE];

    if (s == NULL) {
        g_string_append(
            out, "least certain: nothing; these are the times of a cost model, not of a machine");
        return;
    }
    if (first == NULL) {
        g_string_append_printf(out,
                               "least certain: the model itself; no constant adds to its error bar "
                               "of %s",
                               lh_text_percent(s->bar, bar));
        return;
    }
    g_string_append(out, "least certain: ");
    append_constant(setup, first, out);
    g_string_append_printf(
        out, " (%s, within %s); %s of the time depends on %s: %s of an error bar of %s",
        lh_provenance_names[first->provenance], lh_text_percent(first->error, error),
        lh_text_percent(first->share, share),
        first->kind == LH_CONSTANT_OF_LINK || first->kind == LH_CONSTANT_OF_SENDS ||
                first->kind == LH_CONSTANT_OF_CPU
            ? "it"
            : "them",
        lh_text_percent(first->moves, moves), lh_text_percent(s->bar, bar));
    append_remedy(setup, s, out);
}

void
lh_describe_trust(const LhSetup *setup, const LhCompareRow *row, const char *where, GString *out)
{
    const LhErrorParts parts = lh_error_parts(setup, row->result);
    g_autoptr(LhSensitivities) s =
        lh_sensitivities(setup, row->program, &parts, row->time_error.above);

    lh_describe_sensitivities(setup, s, out);
    if (s != NULL)
        g_string_append_printf(out, ". All constants: %s", where);
    g_string_append_c(out, '\n');
}

void
lh_describe_good_to(const LhSetup *setup, double error, int most, GString *out)
{
    static const char *const words[] = { [LH_ERROR_KERNELS] = "kernels",
                                         [LH_ERROR_HOST] = "kernel launches and waits",
                                         [LH_ERROR_SLOWER] = "the bandwidth that is reached" };
    char text[LH_TEXT_SIZE];

    g_string_append_printf(out, "the error bar of their ratio is %s", lh_text_percent(error, text));
    if (most == LH_ERROR_PARTS)
        return;
    if (most < LH_TIERS)
        g_string_append_printf(out, ", most of it the bandwidth of %s", link_name(setup, most));
    else
        g_string_append_printf(out, ", most of it %s", words[most]);
}

void
lh_describe_interval(const LhSetup *setup, const LhCompareRow *row, GString *out)
{
    const double time_ps = lh_row_seconds(setup, row) * (double)LH_PS_PER_S;
    g_autofree char *low = NULL, *high = NULL;

    if (row->time_error.above <= 0)
        return;
    low = lh_format_time((LhTime)(time_ps / (1 + row->time_error.below)));
    high = lh_format_time((LhTime)MIN(time_ps * (1 + row->time_error.above), LONGEST_PS));
    g_string_append_printf(out, "error bar: %s takes %s to %s", row->name, low, high);
    if (lh_memory_error(setup) > 0) {
        g_autofree char *least = NULL, *most = NULL;
        LhTotals totals;

        lh_totals(row->result, &totals);
        least =
            lh_format_bytes((uint64_t)((double)totals.peak_bytes / (1 + lh_memory_error(setup))));
        most =
            lh_format_bytes((uint64_t)((double)totals.peak_bytes * (1 + lh_memory_error(setup))));
        g_string_append_printf(out, ", with %s to %s of memory,", least, most);
    }
    g_string_append(out, " in four measurements of five\n");
}

static void
append_beyond(GString *out, const char *which, double point, double used)
{
    g_autofree char *fitted = lh_format_count((uint64_t)point);
    g_autofree char *length = lh_format_count((uint64_t)used);

    g_string_append_printf(out, "from %s tokens, the %s block of the fit, to %s", fitted, which,
                           length);
}

void
lh_describe_extrapolation(const LhExtrapolation *beyond, GString *out)
{
    if (beyond->shortest <= 0 && beyond->longest <= 0)
        return;
    g_string_append(out, "attention curves are extrapolated ");
    if (beyond->shortest > 0)
        append_beyond(out, "shortest", beyond->fitted_from, beyond->shortest);
    if (beyond->shortest > 0 && beyond->longest > 0)
        g_string_append(out, ", and ");
    if (beyond->longest > 0)
        append_beyond(out, "longest", beyond->fitted_to, beyond->longest);
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
    g_autofree char *rate = NULL, *latency = NULL, *ctas = NULL;
    g_autofree char *latency_name = g_strconcat(name, " latency", NULL);
    g_autofree char *ctas_name = g_strconcat(name, " SMs", NULL);
    g_autoptr(GString) value = NULL;

    if (link->bandwidth == 0)
        return;
    rate = lh_format_bandwidth(link->bandwidth);
    latency = lh_format_time(link->latency_ps);
    ctas = g_strdup_printf("%" G_GUINT64_FORMAT, link->ctas);
    value = g_string_new(rate);
    lh_describe_pair_limits(link, " (GPU to GPU ", ")", value);
    add_constant(table, name, value->str, link->from.provenance, link->from.source);
    add_constant(table, latency_name, latency, link->latency_provenance, link->from.source);
    add_constant(table, ctas_name, ctas, link->ctas_provenance, link->from.source);
}

/* Adds the constants of links above the GPUs' own. */
static void
add_tree_constants(LhTable *table, const LhPcieTree *tree)
{
    g_autofree char *per_gpu = lh_format_bandwidth(tree->rates.per_gpu);
    g_autofree char *whole = lh_format_bandwidth(tree->rates.memory);
    g_autoptr(GString) memory = g_string_new(NULL);

    for (uint32_t i = 0; i < lh_pcie_levels_count(tree); i++) {
        const LhPcieLevel *level = &g_array_index(tree->levels, LhPcieLevel, i);
        g_autofree char *name = g_strconcat("pcie ", level->name, NULL);
        g_autofree char *up = lh_format_bandwidth(tree->rates.up[i]);
        g_autofree char *latency = lh_format_time(tree->rates.latency_ps[i]);
        g_autofree char *both = g_strdup_printf("%s, %s", up, latency);

        if (tree->rates.up[i] > 0 || tree->rates.latency_ps[i] > 0)
            add_constant(table, name,
                         tree->rates.latency_ps[i] == 0 ? up
                         : tree->rates.up[i] == 0       ? latency
                                                        : both,
                         level->from.provenance, level->from.source);
    }
    if (tree->rates.per_gpu > 0)
        g_string_append_printf(memory, "%s a GPU%s", per_gpu, tree->rates.memory > 0 ? ", " : "");
    if (tree->rates.memory > 0)
        g_string_append_printf(memory, "%s in all", whole);
    if (memory->len > 0)
        add_constant(table, "pcie memory", memory->str, tree->memory_from.provenance,
                     tree->memory_from.source);
}

/* Adds the overhead of NICs, with the provenance of their latency. */
static void
add_overhead(LhTable *table, const LhTopology *t)
{
    g_autofree char *overhead = lh_format_time(t->nic_overhead_ps);

    if (t->nic_overhead_ps > 0)
        add_constant(table, "nic overhead", overhead, t->nic.latency_provenance,
                     t->nic.from.source);
}

static bool
is_of_profile(const LhDevice *d, const char *name)
{
    guint i = 0;

    while (strcmp(lh_device_fields[i].name, name) != 0)
        i++;
    return (d->profile_rows >> i & 1) != 0;
}

/* Where the device's constant @name comes from: the profile that gave it, or the device file. */
static const char *
source_of(const LhDevice *d, const char *name)
{
    return is_of_profile(d, name) ? d->profile_source : d->source;
}

/* A device file vouches for optional constants as for the times of hosts, unless a profile has
 * replaced these and what the file says of them. */
static int
optional_provenance(const LhDevice *d, const char *name)
{
    if (is_of_profile(d, name))
        return LH_PROVENANCE_MEASURED;
    return is_of_profile(d, "kernel_launch") ? LH_PROVENANCE_ASSUMED : d->host_provenance;
}

/* Optional constants of a device, each under its name in the file. */
static void
add_optional_constants(LhTable *table, const LhDevice *d)
{
    static const char nothing[sizeof(uint64_t)] = { 0 };

    for (const LhField *row = lh_device_fields; row->name != NULL; row++) {
        const char *value = (const char *)d + row->offset;
        const gsize size = lh_field_number_size(row);

        if (row->type == LH_FIELD_CHOICE || size == 0 || (row->flags & LH_FIELD_SHARED) == 0 ||
            (row->flags & LH_FIELD_REQUIRED) != 0 || memcmp(value, nothing, size) == 0)
            continue;
        g_autofree char *name = g_strdelimit(g_strdup(row->name), "_", ' ');
        g_autoptr(GPtrArray) texts = lh_setting_texts(row, d);
        const char *text = g_ptr_array_index(texts, 0);

        add_constant(table, name, text, optional_provenance(d, row->name), source_of(d, row->name));
    }
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
        GString *value = g_string_new(NULL);

        g_string_printf(value, "%s / (1 + %.0f / s", flops, rate->half_length);
        if (rate->query_half_length > 0)
            g_string_append_printf(value, " + %.0f / q", rate->query_half_length);
        g_string_append_c(value, ')');
        add_constant(table, name, value->str, rate->from.provenance, rate->from.source);
        g_string_free(value, TRUE);
    }
}

char *
lh_attention_row_name(const LhAttentionRow *row)
{
    GString *name = g_string_new(row->library);

    g_string_append(name, row->direction == LH_ATTENTION_BWD ? " bwd" : " fwd");
    for (guint i = 0; i < row->masks->len; i++)
        g_string_append_printf(name, " %s", (const char *)g_ptr_array_index(row->masks, i));
    g_string_append_printf(name, " d%" G_GUINT64_FORMAT, row->head_dim);
    return g_string_free(name, FALSE);
}

static void
add_attention_constants(LhTable *table, const LhDevice *d)
{
    for (guint i = 0; d->attention != NULL && i < d->attention->len; i++) {
        const LhAttentionRow *row = &g_array_index(d->attention, LhAttentionRow, i);
        g_autofree char *name = lh_attention_row_name(row);
        g_autofree char *rate = lh_format_flops(row->sustained_rate);
        g_autofree char *cool = lh_format_flops(row->rate);
        g_autofree char *value = g_strdup_printf(
            "%s (cool %s) in tiles of %" G_GUINT64_FORMAT " x %" G_GUINT64_FORMAT " + %g, %s", rate,
            cool, row->tiling.rows, row->tiling.columns, row->tiling.prologue,
            row->tiling.order == LH_TILES_LINEAR ? "linear" : "longest first");

        add_constant(table, name, value, row->from.provenance, row->from.source);
    }
}

/* Adds "all-gather 2, 4, 8, reduce-scatter 2, 4, 8": operations in the order of the file, with
 * numbers of GPUs. */
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
            g_string_append_printf(value, "%s ", lh_times_op_names[row->op]);
        g_string_append_printf(value, "%" G_GUINT64_FORMAT, row->ranks);
        op = row->op;
        weakest = MAX(weakest, row->from.provenance);
    }
    g_string_append(value, " GPUs");
    add_constant(table, "collectives", value->str, weakest,
                 g_array_index(times, LhCollectiveTimes, 0).from.source);
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
    add_attention_constants(table, d);
    add_constant(table, "memory", memory, d->memory_provenance, source_of(d, "memory_bandwidth"));
    add_constant(table, "host", host, d->host_provenance, source_of(d, "kernel_launch"));
    add_optional_constants(table, d);
    add_link_constant(table, "nvlink", &setup->topology->nvlink);
    add_link_constant(table, "pcie", &setup->topology->pcie);
    add_tree_constants(table, &setup->topology->tree);
    add_link_constant(table, "nic", &setup->topology->nic);
    add_overhead(table, setup->topology);
    add_collective_times(table, setup->topology->collective_times);
    return table;
}
