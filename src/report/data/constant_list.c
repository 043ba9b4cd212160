/* SPDX-License-Identifier: Apache-2.0 */
#include "report/data/constant_list.h"

#include "report/data/constants.h"

const LhField lh_constant_fields[] = {
    LH_FIELD_ROW(STRING, LhConstantValues, constant, "constant", ALWAYS,
                 .description = "Name of the constant."),
    LH_FIELD_ROW(CHOICE, LhConstantValues, provenance, "provenance", ALWAYS,
                 .choices = lh_provenance_names, .description = "Provenance of the constant."),
    LH_FIELD_ROW(STRING, LhConstantValues, source, "source", ALWAYS,
                 .description = "Source of the constant."),
    { .name = NULL },
};

static void
list_constant(GArray *all, const char *name, int provenance, const char *source)
{
    const LhConstantValues constant = { g_strdup(name), provenance, g_strdup(source) };

    g_array_append_val(all, constant);
}

static void
list_link_constants(GArray *all, const char *name, const LhLinkClass *link)
{
    g_autofree char *latency = g_strconcat(name, " latency", NULL);
    g_autofree char *ctas = g_strconcat(name, " SMs", NULL);

    if (link->bandwidth == 0)
        return;
    list_constant(all, name, link->from.provenance, link->from.source);
    list_constant(all, latency, link->latency_provenance, link->from.source);
    list_constant(all, ctas, link->ctas_provenance, link->from.source);
}

static void
list_tree_constants(GArray *all, const LhPcieTree *tree)
{
    for (uint32_t i = 0; i < lh_pcie_levels_count(tree); i++) {
        const LhPcieLevel *level = &g_array_index(tree->levels, LhPcieLevel, i);
        g_autofree char *name = g_strconcat("pcie ", level->name, NULL);

        if (level->from.source != NULL)
            list_constant(all, name, level->from.provenance, level->from.source);
    }
    if (tree->memory_from.source != NULL)
        list_constant(all, "pcie memory", tree->memory_from.provenance, tree->memory_from.source);
}

static void
list_device_and_links(GArray *all, const LhSetup *setup)
{
    const LhDevice *d = setup->device;

    list_constant(all, "memory bandwidth", d->memory_provenance, d->source);
    list_constant(all, "host", d->host_provenance, d->source);
    for (guint i = 0; i < d->kernels->len; i++) {
        const LhKernelRate *rate = &g_array_index(d->kernels, LhKernelRate, i);
        g_autofree char *name =
            g_strdup_printf("%s %s d%" G_GUINT64_FORMAT, rate->kernel,
                            rate->mask != 0 ? "causal" : "full", rate->head_dim);

        list_constant(all, name, rate->from.provenance, rate->from.source);
    }
    for (guint i = 0; d->attention != NULL && i < d->attention->len; i++) {
        const LhAttentionRow *row = &g_array_index(d->attention, LhAttentionRow, i);
        g_autofree char *name = lh_attention_row_name(row);

        list_constant(all, name, row->from.provenance, row->from.source);
    }
    list_link_constants(all, "nvlink", &setup->topology->nvlink);
    list_link_constants(all, "pcie", &setup->topology->pcie);
    list_tree_constants(all, &setup->topology->tree);
    list_link_constants(all, "nic", &setup->topology->nic);
    if (setup->topology->nic_overhead_ps > 0)
        list_constant(all, "nic overhead", setup->topology->nic.latency_provenance,
                      setup->topology->nic.from.source);
}

GArray *
lh_constant_values(const LhSetup *setup)
{
    GArray *all = g_array_new(FALSE, FALSE, sizeof(LhConstantValues));

    if (setup->cost == LH_COST_DEVICE)
        list_device_and_links(all, setup);
    return all;
}
