/* SPDX-License-Identifier: Apache-2.0 */
/* The topology file. Fields that have their default are left out. */
#include "import/cluster/topology_private.h"

#include "base/json/json_writer.h"
#include "sim/network/fabric.h"

/* Takes @text over: a number with its unit. */
static void
write_text(LhJsonWriter *w, const char *key, char *text)
{
    lh_jsonw_string(w, key, text);
    g_free(text);
}

static void
write_provenance(LhJsonWriter *w, const char *key, int provenance)
{
    lh_jsonw_string(w, key, lh_provenance_names[provenance]);
}

static void
write_link(LhJsonWriter *w, const LhLinkClass *link)
{
    write_text(w, "bandwidth", lh_format_bandwidth(link->bandwidth));
    if (link->pair_p2p > 0)
        write_text(w, "pair_p2p", lh_format_bandwidth(link->pair_p2p));
    if (link->pair_collective > 0)
        write_text(w, "pair_collective", lh_format_bandwidth(link->pair_collective));
    write_text(w, "latency", lh_format_time(link->latency_ps));
    lh_jsonw_uint(w, "ctas", link->ctas);
    write_provenance(w, "provenance", link->from.provenance);
    write_provenance(w, "latency_provenance", link->latency_provenance);
    write_provenance(w, "ctas_provenance", link->ctas_provenance);
    lh_jsonw_string(w, "source", link->from.source);
}

/* @numbers: of uint64_t; NULL: left out. */
static void
write_numbers(LhJsonWriter *w, const char *key, const GArray *numbers)
{
    if (numbers == NULL)
        return;
    lh_jsonw_array_begin(w, key);
    for (guint i = 0; i < numbers->len; i++)
        lh_jsonw_uint(w, NULL, g_array_index(numbers, uint64_t, i));
    lh_jsonw_array_end(w);
}

static void
write_level(LhJsonWriter *w, const LhPcieLevel *level)
{
    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "name", level->name);
    if (level->of_gpu == NULL)
        lh_jsonw_uint(w, "gpus", level->gpus);
    write_numbers(w, "of_gpu", level->of_gpu);
    if (level->up > 0)
        write_text(w, "up", lh_format_bandwidth(level->up));
    if (level->latency_ps > 0)
        write_text(w, "latency", lh_format_time(level->latency_ps));
    if (level->from.source != NULL) {
        lh_evidence_write(w, &level->from);
    }
    lh_jsonw_object_end(w);
}

static void
write_tree(LhJsonWriter *w, const LhPcieTree *tree)
{
    if (tree->levels != NULL) {
        lh_jsonw_array_begin(w, "levels");
        for (guint i = 0; i < tree->levels->len; i++)
            write_level(w, &g_array_index(tree->levels, LhPcieLevel, i));
        lh_jsonw_array_end(w);
    }
    if (tree->p2p != NULL)
        lh_jsonw_string(w, "p2p", tree->p2p);
    if (tree->p2p_two)
        lh_jsonw_bool(w, "p2p_two", true);
    if (tree->memory_from.source == NULL)
        return;
    lh_jsonw_object_begin(w, "host");
    if (tree->per_gpu > 0)
        write_text(w, "per_gpu", lh_format_bandwidth(tree->per_gpu));
    if (tree->memory > 0)
        write_text(w, "bandwidth", lh_format_bandwidth(tree->memory));
    if (tree->memory_gpus > 0)
        lh_jsonw_uint(w, "gpus", tree->memory_gpus);
    lh_evidence_write(w, &tree->memory_from);
    lh_jsonw_object_end(w);
}

static void
write_nics(LhJsonWriter *w, const LhTopology *t)
{
    if (t->nics_per_node == 0)
        return;
    lh_jsonw_object_begin(w, "nics");
    lh_jsonw_uint(w, "count", t->nics_per_node);
    write_numbers(w, "of_gpu", t->nic_of_gpu);
    write_link(w, &t->nic);
    if (t->nic_overhead_ps > 0)
        write_text(w, "overhead", lh_format_time(t->nic_overhead_ps));
    if (t->slower_nodes != NULL) {
        lh_jsonw_array_begin(w, "slower");
        for (guint i = 0; i < t->slower_nodes->len; i++) {
            const LhSlowerNode *node = &g_array_index(t->slower_nodes, LhSlowerNode, i);

            lh_jsonw_object_begin(w, NULL);
            lh_jsonw_uint(w, "node", node->node);
            write_text(w, "bandwidth", lh_format_bandwidth(node->bandwidth));
            lh_jsonw_object_end(w);
        }
        lh_jsonw_array_end(w);
    }
    lh_jsonw_object_end(w);
}

static void
write_collectives(LhJsonWriter *w, const LhTopology *t)
{
    if (t->collective_bandwidth == 0)
        return;
    lh_jsonw_object_begin(w, "collectives");
    write_text(w, "bandwidth", lh_format_bandwidth(t->collective_bandwidth));
    lh_evidence_write(w, &t->collective_from);
    lh_jsonw_object_end(w);
}

static void
write_times(LhJsonWriter *w, const GArray *rows, const LhMeasuredOn *here)
{
    if (rows->len == 0)
        return;
    lh_jsonw_array_begin(w, "collective_times");
    for (guint i = 0; i < rows->len; i++)
        lh_collective_times_write(w, g_array_index(rows, const LhCollectiveTimes *, i), here);
    lh_jsonw_array_end(w);
}

static void
write_line(LhJsonWriter *w, const char *key, const LhCollectiveLine *line)
{
    lh_jsonw_object_begin(w, key);
    write_text(w, "base", lh_format_time(line->base_ps));
    write_text(w, "hop", lh_format_time(line->hop_ps));
    if (line->bandwidth > 0)
        write_text(w, "bandwidth", lh_format_bandwidth(line->bandwidth));
    if (line->copy > 0)
        write_text(w, "copy", lh_format_bandwidth(line->copy));
    lh_jsonw_object_end(w);
}

static void
write_lines(LhJsonWriter *w, const GArray *rows, const LhMeasuredOn *here)
{
    if (rows == NULL)
        return;
    lh_jsonw_array_begin(w, "collective_lines");
    for (guint i = 0; i < rows->len; i++) {
        const LhCollectiveLines *row = &g_array_index(rows, LhCollectiveLines, i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "op", lh_times_op_names[row->op]);
        write_line(w, "ll", &row->ll);
        write_line(w, "ll128", &row->ll128);
        write_line(w, "simple", &row->simple);
        lh_jsonw_uint(w, "ll_bytes", row->ll_bytes);
        lh_jsonw_uint(w, "ll128_bytes", row->ll128_bytes);
        lh_measured_on_write(w, &row->on, here);
        lh_evidence_write(w, &row->from);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

static void
write_slowdown(LhJsonWriter *w, const LhTopology *t)
{
    if (t->product_slowdown == 0)
        return;
    lh_jsonw_object_begin(w, "slowdown");
    lh_jsonw_double(w, "products", t->product_slowdown);
    lh_jsonw_double(w, "attention", t->attention_slowdown);
    lh_evidence_write(w, &t->slowdown_from);
    lh_jsonw_object_end(w);
}

static void
write_node(LhJsonWriter *w, const LhToolDraft *draft)
{
    static const char *const kinds[] = { "none", "nvswitch", "pairs", "memory" };
    const LhTopology *t = &draft->t;
    /* What was told was measured on what was told. */
    const LhMeasuredOn here = { .scale_up = { t->nvlink.bandwidth, t->nvlink.latency_ps },
                                .pcie = { t->pcie.bandwidth, t->pcie.latency_ps },
                                .tree = t->tree.rates };

    lh_jsonw_object_begin(w, "node");
    lh_jsonw_uint(w, "gpus", t->gpus_per_node);
    if (lh_topology_hosts(t) > 1)
        lh_jsonw_uint(w, "hosts", t->hosts);
    lh_jsonw_object_begin(w, "scale_up");
    lh_jsonw_string(w, "kind", kinds[t->scale_up]);
    if (t->scale_up != LH_SCALE_UP_NONE)
        write_link(w, &t->nvlink);
    lh_jsonw_object_end(w);
    if (t->pcie.bandwidth > 0) {
        lh_jsonw_object_begin(w, "pcie");
        write_link(w, &t->pcie);
        write_tree(w, &t->tree);
        lh_jsonw_object_end(w);
    }
    write_nics(w, t);
    write_collectives(w, t);
    if (draft->times->len > 0 || t->collective_lines != NULL)
        lh_measured_on_write(w, &here, NULL);
    write_times(w, draft->times, &here);
    write_lines(w, t->collective_lines, &here);
    write_slowdown(w, t);
    lh_jsonw_object_end(w);
}

static void
write_levels(LhJsonWriter *w, const LhTopology *t)
{
    lh_jsonw_array_begin(w, "levels");
    for (uint32_t i = 0; i < lh_fabric_levels_count(t); i++) {
        const LhFabricLevel level = lh_fabric_level(t, i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_uint(w, "nodes", level.nodes);
        lh_jsonw_double(w, "oversubscription", level.oversubscription);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

static void
write_fabric(LhJsonWriter *w, const LhTopology *t)
{
    static const char *const kinds[] = { "ideal", "rail", "fat-tree" };

    if (t->fabric == LH_FABRIC_IDEAL || t->nics_per_node == 0)
        return;
    lh_jsonw_object_begin(w, "fabric");
    lh_jsonw_string(w, "kind", kinds[t->fabric]);
    if (t->fabric_levels != NULL) {
        write_levels(w, t);
    } else if (t->fabric == LH_FABRIC_FAT_TREE) {
        lh_jsonw_uint(w, "nodes_per_leaf", t->nodes_per_leaf);
        lh_jsonw_double(w, "oversubscription", t->oversubscription);
    }
    write_text(w, "switch_latency", lh_format_time(t->switch_latency_ps));
    lh_jsonw_object_end(w);
}

void
lh_tool_write(const LhToolDraft *draft, GString *out)
{
    g_autoptr(LhJsonWriter) w = lh_jsonw_new(out, false);
    const LhTopology *t = &draft->t;

    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "schema", "longhaul.topology/2");
    lh_jsonw_string(w, "name", t->name);
    lh_jsonw_string(w, "description", t->description);
    lh_jsonw_string(w, "source", t->source);
    lh_jsonw_string(w, "device", t->device_name);
    write_node(w, draft);
    write_fabric(w, t);
    if (t->max_nodes > 0)
        lh_jsonw_uint(w, "max_nodes", t->max_nodes);
    lh_jsonw_object_end(w);
}
