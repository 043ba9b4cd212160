/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the topology file, without fields that the draft does not have. */
#include "import/cluster/topology_private.h"

#include "sim/network/fabric.h"

static void
drop_links(LhTopology *t)
{
    if (t->scale_up == LH_SCALE_UP_NONE)
        t->nvlink = lh_topology_nothing.nvlink;
    if (t->pcie.bandwidth == 0) {
        t->pcie = lh_topology_nothing.pcie;
        t->tree = lh_topology_nothing.tree;
    }
    if (t->tree.memory_from.source == NULL) {
        t->tree.per_gpu = t->tree.memory = 0;
        t->tree.memory_gpus = 0;
        t->tree.memory_from.provenance = 0;
    }
    if (t->host_link.bandwidth == 0)
        t->host_link = lh_topology_nothing.host_link;
    if (t->host_cpu.bandwidth == 0)
        t->host_cpu = lh_topology_nothing.host_cpu;
    if (t->nics_per_node == 0) {
        t->nic = lh_topology_nothing.nic;
        t->nic_of_gpu = t->slower_nodes = NULL;
        t->nic_overhead_ps = 0;
    }
}

static void
drop_rest(LhTopology *t)
{
    const LhEvidence none = { 0, NULL };

    if (t->hosts == 1)
        t->hosts = 0;
    if (t->collective_bandwidth == 0)
        t->collective_from = none;
    if (t->product_slowdown == 0) {
        t->attention_slowdown = 0;
        t->slowdown_from = none;
    }
    if (t->fabric == LH_FABRIC_IDEAL || t->nics_per_node == 0) {
        t->fabric = LH_FABRIC_IDEAL;
        t->fabric_levels = NULL;
        t->switch_latency_ps = lh_topology_nothing.switch_latency_ps;
    }
    if (t->fabric != LH_FABRIC_FAT_TREE || t->fabric_levels != NULL) {
        t->nodes_per_leaf = 0;
        t->oversubscription = 0;
    }
}

/* ---- rows ---- */

static void
clear_row_times(gpointer row)
{
    g_clear_pointer(&((LhCollectiveTimes *)row)->on.levels, g_array_unref);
}

static void
clear_row_lines(gpointer row)
{
    g_clear_pointer(&((LhCollectiveLines *)row)->on.levels, g_array_unref);
}

/* Rows for the file; those measured on other links than @here name them. NULL: no rows. */
static GArray *
times_of(const GArray *rows, const LhMeasuredOn *here)
{
    GArray *times;

    if (rows->len == 0)
        return NULL;
    times = g_array_new(FALSE, FALSE, sizeof(LhCollectiveTimes));
    g_array_set_clear_func(times, clear_row_times);
    for (guint i = 0; i < rows->len; i++) {
        LhCollectiveTimes row = *g_array_index(rows, const LhCollectiveTimes *, i);

        row.on = lh_measured_on_said(&row.on, here);
        g_array_append_val(times, row);
    }
    return times;
}

static GArray *
lines_of(const GArray *rows, const LhMeasuredOn *here)
{
    GArray *lines;

    if (rows == NULL)
        return NULL;
    lines = g_array_new(FALSE, FALSE, sizeof(LhCollectiveLines));
    g_array_set_clear_func(lines, clear_row_lines);
    for (guint i = 0; i < rows->len; i++) {
        LhCollectiveLines row = g_array_index(rows, LhCollectiveLines, i);

        row.on = lh_measured_on_said(&row.on, here);
        g_array_append_val(lines, row);
    }
    return lines;
}

static GArray *
levels_of(const LhTopology *t)
{
    GArray *levels = g_array_new(FALSE, FALSE, sizeof(LhFabricLevel));

    for (uint32_t i = 0; i < lh_fabric_levels_count(t); i++) {
        const LhFabricLevel level = lh_fabric_level(t, i);

        g_array_append_val(levels, level);
    }
    return levels;
}

void
lh_tool_write(const LhToolDraft *draft, GString *out)
{
    LhTopology t = draft->t;
    /* The draft's own rows were measured on the draft's links. */
    const LhMeasuredOn here = { .scale_up = { t.nvlink.bandwidth, t.nvlink.latency_ps },
                                .pcie = { t.pcie.bandwidth, t.pcie.latency_ps },
                                .tree = t.tree.rates };
    g_autoptr(GArray) times = times_of(draft->times, &here);
    g_autoptr(GArray) lines = lines_of(t.collective_lines, &here);
    g_autoptr(GArray) levels = t.fabric_levels == NULL ? NULL : levels_of(&t);

    t.schema = LH_TOPOLOGY_SCHEMA;
    t.fabric_levels = levels;
    t.collective_times = times;
    t.collective_lines = lines;
    if (times != NULL || lines != NULL)
        t.measured_on = lh_measured_on_said(&here, NULL);
    drop_links(&t);
    drop_rest(&t);
    lh_topology_write(&t, out);
    g_clear_pointer(&t.measured_on.levels, g_array_unref);
}
