/* SPDX-License-Identifier: Apache-2.0 */
#include "calibrate/cluster_topology.h"

#include "sim/network/topology.h"

#include <math.h>

/* The link class of @line, with @alpha_s in place of the line's latency. Its source is owned by the
 * caller. */
static LhLinkClass
link_of(const LhClusterLine *line, double alpha_s, const char *source)
{
    return (LhLinkClass){
        .bandwidth = line->bytes_per_s,
        .latency_ps = lh_time_from_ps(alpha_s * (double)LH_PS_PER_S),
        .from = { LH_PROVENANCE_FITTED,
                  g_strdup_printf("%s; residuals: median %.1f %%, worst %.1f %%, held out %.1f %%",
                                  source, 100 * line->residuals.median, 100 * line->residuals.worst,
                                  100 * line->residuals.holdout) },
        .latency_provenance = -1,
        .ctas_provenance = -1,
    };
}

/* The slower nodes; NULL if all are equal. */
static GArray *
slower_nodes(const LhCluster *c)
{
    GArray *slower = NULL;

    for (uint32_t n = 0; n < c->nodes; n++) {
        const LhSlowerNode node = { n, c->node_bytes_per_s[n] };

        if (node.bandwidth == 0)
            continue;
        if (slower == NULL)
            slower = g_array_new(FALSE, FALSE, sizeof(LhSlowerNode));
        g_array_append_val(slower, node);
    }
    return slower;
}

static void
fill_nics(const LhCluster *c, const char *source, LhTopology *t)
{
    t->nics_per_node = c->nics;
    /* A route's latency already includes the path to the adapter. */
    t->nic = link_of(&c->nic, fmax(c->nic.alpha_s - c->memory.alpha_s, 0), source);
    t->nic.pair_p2p = fmax(c->pair_bytes_per_s, 0);
    t->nic_overhead_ps = lh_time_from_ps(fmax(c->overhead_s, 0) * (double)LH_PS_PER_S);
    t->slower_nodes = slower_nodes(c);
}

/* "4 ranks on 2 hosts: node0, node1; ..."; caller frees. */
static char *
describe_cluster(const LhCluster *c)
{
    g_autofree char *hosts = g_strjoinv(", ", c->hosts);

    return g_strdup_printf("%u rank%s on each of %u host%s%s; nodes identified by %s", c->per_node,
                           c->per_node == 1 ? "" : "s", c->nodes,
                           c->nodes == 1 ? ": " : "s: ", hosts,
                           c->by_times      ? "message times"
                           : c->times_agree ? "host names and by message times"
                                            : "host names alone");
}

void
lh_cluster_write(const LhCluster *c, const char *name, const char *source, GString *out)
{
    g_autofree char *description = describe_cluster(c);
    static char device[] = "this-cpu";
    LhTopology t = lh_topology_nothing;

    t.schema = LH_TOPOLOGY_SCHEMA;
    t.name = (char *)(guintptr)name;
    t.description = description;
    t.source = (char *)(guintptr)source;
    t.device_name = device;
    t.gpus_per_node = c->per_node;
    t.scale_up = c->per_node > 1 ? LH_SCALE_UP_MEMORY : LH_SCALE_UP_NONE;
    t.max_nodes = c->nodes;
    if (c->per_node > 1)
        t.nvlink = link_of(&c->memory, c->memory.alpha_s, source);
    if (c->nodes > 1)
        fill_nics(c, source, &t);
    lh_topology_write(&t, out);
    g_clear_pointer(&t.slower_nodes, g_array_unref);
    g_free(t.nvlink.from.source);
    g_free(t.nic.from.source);
}
