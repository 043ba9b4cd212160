/* SPDX-License-Identifier: Apache-2.0 */
#include "calibrate/cluster_topology.h"

#include <math.h>

void
lh_cluster_write_unit(LhJsonWriter *w, const char *key, char *text)
{
    lh_jsonw_string(w, key, text);
    g_free(text);
}

/* The fields of a link class; with @alpha_s in place of the line's own. */
static void
write_line(LhJsonWriter *w, const LhClusterLine *line, double alpha_s, const char *source)
{
    g_autofree char *text = g_strdup_printf(
        "%s; residuals: median %.1f %%, worst %.1f %%, held out %.1f %%", source,
        100 * line->residuals.median, 100 * line->residuals.worst, 100 * line->residuals.holdout);

    lh_cluster_write_unit(w, "bandwidth", lh_format_bandwidth(line->bytes_per_s));
    lh_cluster_write_unit(w, "latency",
                          lh_format_time(lh_time_from_ps(alpha_s * (double)LH_PS_PER_S)));
    lh_jsonw_uint(w, "ctas", 0);
    lh_jsonw_string(w, "provenance", "fitted");
    lh_jsonw_string(w, "source", text);
}

static void
write_nics(LhJsonWriter *w, const LhCluster *c, const char *source)
{
    bool alike = true;

    for (uint32_t n = 0; n < c->nodes; n++)
        alike = alike && c->node_bytes_per_s[n] == 0;
    lh_jsonw_object_begin(w, "nics");
    lh_jsonw_uint(w, "count", c->nics);
    /* A route also has the latency of the way to the adapter. */
    write_line(w, &c->nic, fmax(c->nic.alpha_s - c->memory.alpha_s, 0), source);
    if (c->pair_bytes_per_s > 0)
        lh_cluster_write_unit(w, "pair_p2p", lh_format_bandwidth(c->pair_bytes_per_s));
    if (c->overhead_s > 0)
        lh_cluster_write_unit(w, "overhead",
                              lh_format_time(lh_time_from_ps(c->overhead_s * (double)LH_PS_PER_S)));
    if (!alike) {
        lh_jsonw_array_begin(w, "slower");
        for (uint32_t n = 0; n < c->nodes; n++) {
            if (c->node_bytes_per_s[n] == 0)
                continue;
            lh_jsonw_object_begin(w, NULL);
            lh_jsonw_uint(w, "node", n);
            lh_cluster_write_unit(w, "bandwidth", lh_format_bandwidth(c->node_bytes_per_s[n]));
            lh_jsonw_object_end(w);
        }
        lh_jsonw_array_end(w);
    }
    lh_jsonw_object_end(w);
}

/* "4 ranks on 2 hosts: node0, node1; ..."; caller frees. */
static char *
describe_cluster(const LhCluster *c)
{
    g_autofree char *hosts = g_strjoinv(", ", c->hosts);

    return g_strdup_printf("%u rank%s on each of %u host%s%s; nodes told apart by %s", c->per_node,
                           c->per_node == 1 ? "" : "s", c->nodes,
                           c->nodes == 1 ? ": " : "s: ", hosts,
                           c->by_times      ? "the times of messages"
                           : c->times_agree ? "names, and by the times of messages"
                                            : "names alone");
}

void
lh_cluster_write(const LhCluster *c, const char *name, const char *source, GString *out)
{
    g_autoptr(LhJsonWriter) w = lh_jsonw_new(out, false);
    g_autofree char *description = describe_cluster(c);

    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "schema", "longhaul.topology/2");
    lh_jsonw_string(w, "name", name);
    lh_jsonw_string(w, "description", description);
    lh_jsonw_string(w, "source", source);
    lh_jsonw_string(w, "device", "this-cpu");
    lh_jsonw_object_begin(w, "node");
    lh_jsonw_uint(w, "gpus", c->per_node);
    lh_jsonw_object_begin(w, "scale_up");
    lh_jsonw_string(w, "kind", c->per_node > 1 ? "memory" : "none");
    if (c->per_node > 1)
        write_line(w, &c->memory, c->memory.alpha_s, source);
    lh_jsonw_object_end(w);
    if (c->nodes > 1)
        write_nics(w, c, source);
    lh_jsonw_object_end(w);
    lh_jsonw_uint(w, "max_nodes", c->nodes);
    lh_jsonw_object_end(w);
}
