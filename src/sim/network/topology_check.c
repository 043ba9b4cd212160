/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of topology files that go beyond single fields.
 */
#include "sim/network/network_private.h"
#include "sim/network/topology_schema.h"

#include "sim/network/fabric.h"
#include "sim/network/topology_change.h"

/* Checks that the fields in `names`, of the object at `place`, are present (or absent), as its kind
 * requires. */
static bool
check_fields_of_kind(const LhJson *json, const char *place, const char *const *names,
                     const char *kind, bool needed, GError **error)
{
    for (; *names != NULL; names++) {
        g_autofree char *path = g_strdup_printf("%s.%s", place, *names);

        if (lh_json_has(json, path) == needed)
            continue;
        if (needed)
            return lh_json_error(json, place, error,
                                 "missing field \"%s\" in \"%s\": required for kind \"%s\"", *names,
                                 place, kind);
        return lh_json_error(json, path, error, "\"%s\" has no meaning for kind \"%s\"", path,
                             kind);
    }
    return true;
}

static bool
check_node(const LhJson *json, LhTopology *t, GError **error)
{
    static const char *const link_fields[] = { "bandwidth",  "latency", "ctas",
                                               "provenance", "source",  NULL };
    static const char *const link_options[] = { "latency_provenance", "ctas_provenance", NULL };
    const char *kind = lh_topology_scale_ups[t->scale_up];
    const bool joined = t->scale_up == LH_SCALE_UP_SWITCH || t->scale_up == LH_SCALE_UP_MEMORY ||
                        t->gpus_per_node == 1 ||
                        (t->scale_up == LH_SCALE_UP_PAIRS && t->gpus_per_node == 2);

    if (!check_fields_of_kind(json, "node.scale_up", link_fields, kind,
                              t->scale_up != LH_SCALE_UP_NONE, error) ||
        (t->scale_up == LH_SCALE_UP_NONE &&
         !check_fields_of_kind(json, "node.scale_up", link_options, kind, false, error)))
        return false;
    if (t->scale_up == LH_SCALE_UP_PAIRS && t->gpus_per_node % 2 != 0)
        return lh_json_error(json, "node.gpus", error,
                             "\"node.gpus\" is %" G_GUINT64_FORMAT
                             "; allowed with scale-up kind \"pairs\": an even number",
                             t->gpus_per_node);
    if (!joined && t->pcie.bandwidth == 0)
        return lh_json_error(json, "node", error,
                             "missing field \"pcie\" in \"node\": with %" G_GUINT64_FORMAT
                             " GPUs and scale-up kind \"%s\" some GPUs could not reach each other",
                             t->gpus_per_node, kind);
    return lh_pcie_tree_check(json, &t->tree, t->gpus_per_node, joined, error);
}

static bool
check_pair(const LhJson *json, const LhLinkClass *nic, const char *name, double limit,
           GError **error)
{
    g_autofree char *path = g_strconcat("node.nics.", name, NULL);
    g_autofree char *found = lh_format_bandwidth(limit);
    g_autofree char *whole = lh_format_bandwidth(nic->bandwidth);

    return limit <= nic->bandwidth ||
           lh_json_error(
               json, path, error,
               "\"%s\" is %s, more than the bandwidth of a NIC; allowed: up to %s, or none", path,
               found, whole);
}

/* Checks nodes with slower NICs. Formulas that assume one bandwidth for all nodes become lower
 * bounds then. */
static bool
check_slower(const LhJson *json, const LhTopology *t, GError **error)
{
    g_autofree char *whole = lh_format_bandwidth(t->nic.bandwidth);

    for (guint i = 0; t->slower_nodes != NULL && i < t->slower_nodes->len; i++) {
        const LhSlowerNode *row = &g_array_index(t->slower_nodes, LhSlowerNode, i);
        g_autofree char *path = g_strdup_printf("node.nics.slower[%u].bandwidth", i);
        g_autofree char *node_path = g_strdup_printf("node.nics.slower[%u].node", i);
        g_autofree char *found = lh_format_bandwidth(row->bandwidth);

        if (row->bandwidth > t->nic.bandwidth)
            return lh_json_error(
                json, path, error,
                "\"%s\" is %s, more than the bandwidth of the other nodes; allowed: up to %s", path,
                found, whole);
        if (i > 0 && row->node <= row[-1].node)
            return lh_json_error(json, node_path, error,
                                 "\"%s\" is %" G_GUINT64_FORMAT " after node %" G_GUINT64_FORMAT
                                 "; allowed: nodes in ascending order, each once",
                                 node_path, row->node, row[-1].node);
    }
    return true;
}

/* Checks the limit of collectives. A route has room for only one such limit. */
static bool
check_collectives(const LhJson *json, const LhTopology *t, GError **error)
{
    if (t->collective_bandwidth == 0)
        return true;
    if (t->nics_per_node == 0)
        return lh_json_error(json, "node.collectives", error,
                             "\"node.collectives\" has no meaning without \"node.nics\"");
    return t->nic.pair_collective == 0 ||
           lh_json_error(json, "node.collectives", error,
                         "\"node.collectives\" and \"node.nics.pair_collective\" cannot both be "
                         "given");
}

/* Checks the number of hosts. GPUs of several hosts communicate only over NVSwitch. */
static bool
check_hosts(const LhJson *json, const LhTopology *t, GError **error)
{
    g_autofree char *divisors = lh_topology_divisors(t->gpus_per_node);

    if (lh_topology_hosts(t) == 1)
        return true;
    if (t->scale_up != LH_SCALE_UP_SWITCH)
        return lh_json_error(json, "node.hosts", error,
                             "\"node.hosts\" is %" G_GUINT64_FORMAT
                             ", but \"node.scale_up.kind\" is \"%s\" and only \"nvswitch\" "
                             "connects GPUs of several hosts; allowed: 1",
                             t->hosts, lh_topology_scale_ups[t->scale_up]);
    if (t->gpus_per_node % t->hosts != 0)
        return lh_json_error(json, "node.hosts", error,
                             "\"node.hosts\" is %" G_GUINT64_FORMAT
                             ", which does not divide \"node.gpus\" %" G_GUINT64_FORMAT
                             "; allowed: %s",
                             t->hosts, t->gpus_per_node, divisors);
    return t->nics_per_node % t->hosts == 0 ||
           lh_json_error(json, "node.nics.count", error,
                         "\"node.nics.count\" is %" G_GUINT64_FORMAT
                         ", not a multiple of the %" G_GUINT64_FORMAT
                         " hosts; allowed: the same number for each host",
                         t->nics_per_node, t->hosts);
}

/* The first of the node's NICs that no GPU uses; the number of NICs if all are used. */
static uint64_t
unused_nic(const LhTopology *t)
{
    g_autofree bool *used = g_new0(bool, t->nics_per_node);
    uint64_t nic = 0;

    for (guint i = 0; i < t->nic_of_gpu->len; i++)
        used[g_array_index(t->nic_of_gpu, uint64_t, i)] = true;
    while (nic < t->nics_per_node && used[nic])
        nic++;
    return nic;
}

/* Checks the NIC of each GPU. NICs that no GPU uses, such as those of storage, carry nothing and
 * are not allowed. */
static bool
check_nic_of_gpu(const LhJson *json, const LhTopology *t, GError **error)
{
    static const char path[] = "node.nics.of_gpu";

    if (t->nic_of_gpu == NULL)
        return true;
    if (t->nic_of_gpu->len != t->gpus_per_node)
        return lh_json_error(json, path, error,
                             "\"%s\" has %u numbers; allowed: one for each of the %" //
                             G_GUINT64_FORMAT " GPUs",
                             path, t->nic_of_gpu->len, t->gpus_per_node);
    for (guint i = 0; i < t->nic_of_gpu->len; i++) {
        const uint64_t nic = g_array_index(t->nic_of_gpu, uint64_t, i);
        g_autofree char *place = g_strdup_printf("%s[%u]", path, i);

        if (nic >= t->nics_per_node)
            return lh_json_error(json, place, error,
                                 "\"%s\" is %" G_GUINT64_FORMAT "; allowed: 0 to %"  //
                                 G_GUINT64_FORMAT ", since \"node.nics.count\" is %" //
                                 G_GUINT64_FORMAT,
                                 place, nic, t->nics_per_node - 1, t->nics_per_node);
        if (nic * lh_topology_hosts(t) / t->nics_per_node != i / lh_topology_gpus_per_host(t))
            return lh_json_error(json, place, error,
                                 "\"%s\" is %" G_GUINT64_FORMAT ", a NIC of host %" G_GUINT64_FORMAT
                                 ", and GPU %u is on host %" //
                                 G_GUINT64_FORMAT "; allowed: NICs of the GPU's host",
                                 place, nic, nic * t->hosts / t->nics_per_node, i,
                                 i / lh_topology_gpus_per_host(t));
    }
    return unused_nic(t) == t->nics_per_node ||
           lh_json_error(
               json, path, error,
               "\"%s\": NIC %" G_GUINT64_FORMAT " is used by no GPU; allowed: each of the %" //
               G_GUINT64_FORMAT
               " NICs at least once; do not include NICs without GPU traffic in \"count\"",
               path, unused_nic(t), t->nics_per_node);
}

static bool
check_nics(const LhJson *json, const LhTopology *t, GError **error)
{
    if (t->nics_per_node == 0 && t->max_nodes == 1)
        return check_hosts(json, t, error);
    if (t->nics_per_node == 0)
        return lh_json_error(json, t->max_nodes == 0 ? "node" : "max_nodes", error,
                             "without \"node.nics\" there can be only one node; give "
                             "\"max_nodes\": 1, or \"node.nics\"");
    if (t->nics_per_node > t->gpus_per_node)
        return lh_json_error(json, "node.nics.count", error,
                             "\"node.nics.count\" is %" G_GUINT64_FORMAT
                             ", more than \"node.gpus\" %" G_GUINT64_FORMAT
                             "; allowed: at most one NIC per GPU",
                             t->nics_per_node, t->gpus_per_node);
    return check_hosts(json, t, error) && check_nic_of_gpu(json, t, error) &&
           check_pair(json, &t->nic, "pair_p2p", t->nic.pair_p2p, error) &&
           check_pair(json, &t->nic, "pair_collective", t->nic.pair_collective, error) &&
           check_slower(json, t, error);
}

static bool
check_fabric(const LhJson *json, LhTopology *t, GError **error)
{
    static const char *const tree_needs[] = { "nodes_per_leaf", NULL };
    static const char *const tree_only[] = { "nodes_per_leaf", "oversubscription", "levels", NULL };
    static const char *const not_ideal[] = { "switch_latency", NULL };
    const char *kind = lh_topology_fabrics[t->fabric];

    if (lh_json_has(json, "fabric") && t->nics_per_node == 0)
        return lh_json_error(json, "fabric", error,
                             "\"fabric\" has no meaning without \"node.nics\"");
    if (t->fabric == LH_FABRIC_FAT_TREE)
        return t->fabric_levels != NULL
                   ? lh_fabric_read_levels(json, t, error)
                   : check_fields_of_kind(json, "fabric", tree_needs, kind, true, error);
    if (!check_fields_of_kind(json, "fabric", tree_only, kind, false, error))
        return false;
    if (t->fabric == LH_FABRIC_IDEAL)
        return check_fields_of_kind(json, "fabric", not_ideal, kind, false, error);
    if (t->nics_per_node > 1 && t->scale_up != LH_SCALE_UP_SWITCH)
        return lh_json_error(json, "fabric.kind", error,
                             "\"fabric.kind\" is \"rail\", which needs \"node.scale_up.kind\" "
                             "\"nvswitch\" to cross rails; found \"%s\"",
                             lh_topology_scale_ups[t->scale_up]);
    return true;
}

/* Rejects fields that the first version of the format does not have. */
static bool
check_version(const LhJson *json, const LhTopology *t, GError **error)
{
    static const char *const paths[] = {
        "node.measured_on",  "node.pcie.levels", "node.pcie.p2p",
        "node.pcie.p2p_two", "node.pcie.host",   "node.nics.of_gpu"
    };

    for (gsize i = 0; t->schema == 0 && i < G_N_ELEMENTS(paths); i++) {
        if (lh_json_has(json, paths[i]))
            return lh_json_error(
                json, paths[i], error,
                "\"%s\" requires \"longhaul.topology/2\", but \"schema\" is \"%s\"", paths[i],
                lh_topology_schemas[t->schema]);
    }
    return true;
}

bool
lh_topology_check(const LhJson *json, LhTopology *topology, GError **error)
{
    return check_version(json, topology, error) && check_node(json, topology, error) &&
           check_nics(json, topology, error) && check_collectives(json, topology, error) &&
           check_fabric(json, topology, error);
}

bool
lh_topology_check_measured_on(const LhJson *json, const LhTopology *t, GError **error)
{
    const bool has_rows = t->collective_times != NULL || t->collective_lines != NULL;
    const struct {
        const char *path;
        bool is_there, is_needed;
    } links[] = {
        { "node.measured_on.scale_up", t->nvlink.bandwidth > 0, t->scale_up != LH_SCALE_UP_NONE },
        { "node.measured_on.pcie", t->pcie.bandwidth > 0,
          t->scale_up == LH_SCALE_UP_NONE || t->scale_up == LH_SCALE_UP_PAIRS },
    };

    if (t->schema == 0)
        return true;
    for (gsize i = 0; i < G_N_ELEMENTS(links); i++) {
        const bool said = lh_json_has(json, links[i].path);

        if (said && !links[i].is_there)
            return lh_json_error(json, links[i].path, error,
                                 "\"%s\" has no meaning: the node has no such links",
                                 links[i].path);
        if (!said && links[i].is_there && links[i].is_needed && has_rows)
            return lh_json_error(json, "node", error,
                                 "missing field \"%s\": measured times of collectives need the "
                                 "links they were measured on",
                                 links[i].path);
    }
    return true;
}
