/*
 * Clusters from files. A file describes one node and the fabric between nodes; how many nodes there
 * are is said by whoever uses it. Left out: mixed nodes and GPUs of several NICs.
 */
#include "sim/network/topology.h"

#include "base/error.h"
#include "base/files/data_files.h"
#include "sim/network/collectives/measured.h"
#include "sim/network/fabric.h"
#include "sim/network/topology_change.h"

#include <string.h>

#define CTAS_MAX 1024
#define ROWS_MAX 1000

const char *const lh_tier_names[] = { "nvlink", "pcie", "nic", "fabric", NULL };

const char *
lh_topology_link_name(const LhTopology *topology, LhTier tier)
{
    static const char *const names[] = { "NVLink", "PCIe", "NIC", "fabric" };

    if (tier == LH_TIER_NVLINK && topology->scale_up == LH_SCALE_UP_MEMORY)
        return "memory";
    return names[tier];
}

static const char *const topology_schemas[] = { "longhaul.topology/1", "longhaul.topology/2",
                                                NULL };
static const char *const scale_up_kinds[] = { "none", "nvswitch", "pairs", "memory", NULL };
static const char *const fabric_kinds[] = { "ideal", "rail", "fat-tree", NULL };

/* Nested objects are decoded into the flat LhTopology: their own offset is 0. */
#define OBJECT(key, needed, table, text)                                                           \
    {                                                                                              \
        .name = (key), .type = LH_FIELD_OBJECT, .offset = 0, .flags = (needed), .fields = (table), \
        .description = (text)                                                                      \
    }

#define ROWS(key, member, element, table, text)                                                    \
    {                                                                                              \
        .name = (key), .type = LH_FIELD_ARRAY, .offset = offsetof(LhTopology, member), .min = 1,   \
        .max = ROWS_MAX, .fields = (table), .element_size = sizeof(element), .description = (text) \
    }

#define TEXT(key, member, needed, text)                                                            \
    {                                                                                              \
        .name = (key), .type = LH_FIELD_STRING, .offset = offsetof(LhTopology, member),            \
        .flags = (needed), .min = 1, .max = LH_TOPOLOGY_TEXT_MAX, .description = (text)            \
    }

#define COUNT(key, member, needed, low, high, text)                                                \
    {                                                                                              \
        .name = (key), .type = LH_FIELD_UINT, .offset = offsetof(LhTopology, member),              \
        .flags = (needed), .min = (low), .max = (high), .description = (text)                      \
    }

#define CHOICE(key, member, needed, words, text)                                                   \
    {                                                                                              \
        .name = (key), .type = LH_FIELD_CHOICE, .offset = offsetof(LhTopology, member),            \
        .flags = (needed), .choices = (words), .description = (text)                               \
    }

#define TIME(key, member, needed, text)                                                            \
    {                                                                                              \
        .name = (key), .type = LH_FIELD_UNIT, .offset = offsetof(LhTopology, member),              \
        .flags = (needed), .unit = LH_UNIT_TIME, .min = 0, .max = LH_LATENCY_MAX_S,                \
        .description = (text)                                                                      \
    }

#define BANDWIDTH(key, member, needed, text)                                                       \
    {                                                                                              \
        .name = (key), .type = LH_FIELD_UNIT, .offset = offsetof(LhTopology, member),              \
        .flags = (needed), .unit = LH_UNIT_BANDWIDTH, .min = LH_BANDWIDTH_MIN,                     \
        .max = LH_BANDWIDTH_MAX, .description = (text)                                             \
    }

/* The fields of a link class. */
#define LINK_FIELDS(member, needed)                                                                \
    BANDWIDTH("bandwidth", member.bandwidth, needed,                                               \
              "What transfers reach in each direction (not the wire's rate)."),                    \
        TIME("latency", member.latency_ps, needed,                                                 \
             "What this kind of link adds to the latency of a route, once per route."),            \
        COUNT("ctas", member.ctas, needed, 0, CTAS_MAX,                                            \
              "SMs that a running send or receive kernel occupies at each end."),                  \
        CHOICE("provenance", member.provenance, needed, lh_provenance_names,                       \
               "How far the bandwidth can be trusted, and what has no provenance of its own."),    \
        CHOICE("latency_provenance", member.latency_provenance, 0, lh_provenance_names,            \
               "How far the latency can be trusted."),                                             \
        CHOICE("ctas_provenance", member.ctas_provenance, 0, lh_provenance_names,                  \
               "How far the number of SMs can be trusted."),                                       \
        TEXT("source", member.source, needed, "Where the numbers come from.")

static const LhField scale_up_fields[] = {
    CHOICE("kind", scale_up, LH_FIELD_REQUIRED, scale_up_kinds,
           "How the GPUs of a node are joined: not at all, by a switch, in pairs (0-1, 2-3, ..), "
           "or as "
           "ranks that share the memory of a host."),
    LINK_FIELDS(nvlink, 0),
    { .name = NULL },
};

static const LhField pcie_fields[] = {
    LINK_FIELDS(pcie, LH_FIELD_REQUIRED),
    { .name = "levels",
      .type = LH_FIELD_ARRAY,
      .offset = offsetof(LhTopology, tree.levels),
      .min = 1,
      .max = LH_PCIE_LEVELS_MAX,
      .fields = lh_pcie_level_fields,
      .element_size = sizeof(LhPcieLevel),
      .description = "Groups of GPUs from the inside out, such as those of a switch and those of a "
                     "socket; none if absent." },
    TEXT("p2p", tree.p2p, 0,
         "How far GPUs reach each other directly: \"none\", within a level's groups (its name), or "
         "\"node\", also if absent. Farther messages go through memory."),
    { .name = "p2p_two",
      .type = LH_FIELD_BOOL,
      .offset = offsetof(LhTopology, tree.p2p_two),
      .description =
          "Whether communicators of exactly two GPUs of a node reach each other directly "
          "whatever \"p2p\" says, as NCCL has it on hosts of AMD; false if absent." },
    { .name = "host",
      .type = LH_FIELD_OBJECT,
      .offset = offsetof(LhTopology, tree),
      .fields = lh_pcie_host_fields,
      .description = "What messages reach that go through memory; not less than elsewhere if "
                     "absent." },
    { .name = NULL },
};

static const LhField slower_fields[] = {
    { .name = "node",
      .type = LH_FIELD_UINT,
      .offset = offsetof(LhSlowerNode, node),
      .flags = LH_FIELD_REQUIRED,
      .min = 0,
      .max = LH_NODES_MAX,
      .description = "Its number, from 0." },
    { .name = "bandwidth",
      .type = LH_FIELD_UNIT,
      .offset = offsetof(LhSlowerNode, bandwidth),
      .flags = LH_FIELD_REQUIRED,
      .unit = LH_UNIT_BANDWIDTH,
      .min = LH_BANDWIDTH_MIN,
      .max = LH_BANDWIDTH_MAX,
      .description = "What transfers over one of its NICs reach in each direction." },
    { .name = NULL },
};

static const LhField nics_fields[] = {
    COUNT("count", nics_per_node, LH_FIELD_REQUIRED, 1, LH_NICS_MAX,
          "NICs per node, at most as many as GPUs."),
    { .name = "of_gpu",
      .type = LH_FIELD_UINTS,
      .offset = offsetof(LhTopology, nic_of_gpu),
      .min = 1,
      .max = LH_NICS_MAX,
      .description = "The NIC that each GPU uses, from 0; if absent, GPU i uses NIC i * count / "
                     "gpus, rounded down." },
    LINK_FIELDS(nic, LH_FIELD_REQUIRED),
    BANDWIDTH("pair_p2p", nic.pair_p2p, 0,
              "What all sends and all-to-alls from one GPU to another reach together in each "
              "direction, at most \"bandwidth\"; no such limit if absent."),
    BANDWIDTH("pair_collective", nic.pair_collective, 0,
              "Likewise all hops of rings, trees and chains of collectives."),
    TIME(
        "overhead", nic_overhead_ps, 0,
        "What each message beyond the first adds to a collective in which a GPU sends several at "
        "once to other nodes (all-to-all; all-gather and others with \"direct\"); none if absent."),
    ROWS("slower", slower_nodes, LhSlowerNode, slower_fields,
         "Nodes whose NICs are slower than \"bandwidth\", by number; none if absent."),
    { .name = NULL },
};

static const LhField collective_fields[] = {
    BANDWIDTH(
        "bandwidth", collective_bandwidth, LH_FIELD_REQUIRED,
        "What all-gathers, reduce-scatters, all-reduces and broadcasts of several nodes reach "
        "together at one node, in each direction, whatever its NICs give."),
    CHOICE("provenance", collective_provenance, LH_FIELD_REQUIRED, lh_provenance_names,
           "How far the bandwidth can be trusted."),
    TEXT("source", collective_source, LH_FIELD_REQUIRED, "Where the number comes from."),
    { .name = NULL },
};

#define SLOWDOWN(key, member, text)                                                                \
    {                                                                                              \
        .name = (key), .type = LH_FIELD_DOUBLE, .offset = offsetof(LhTopology, member),            \
        .flags = LH_FIELD_REQUIRED, .min = 1, .max = LH_SLOWDOWN_MAX, .description = (text)        \
    }

static const LhField slowdown_fields[] = {
    SLOWDOWN("products", product_slowdown, "Times of matrix products are so many times as long."),
    SLOWDOWN("attention", attention_slowdown, "Likewise those of attention that has a curve."),
    CHOICE("provenance", slowdown_provenance, LH_FIELD_REQUIRED, lh_provenance_names,
           "How far the factors can be trusted."),
    TEXT("source", slowdown_source, LH_FIELD_REQUIRED, "Where the factors come from."),
    { .name = NULL },
};

static const LhField node_fields[] = {
    COUNT("gpus", gpus_per_node, LH_FIELD_REQUIRED, 1, LH_NICS_MAX, "GPUs per node."),
    COUNT(
        "hosts", hosts, 0, 1, LH_NICS_MAX,
        "Hosts of a node whose GPUs meet on one NVSwitch, each with as many of the GPUs and NICs; "
        "1 if absent."),
    OBJECT("scale_up", LH_FIELD_REQUIRED, scale_up_fields, "Links between the GPUs of a node."),
    OBJECT(
        "pcie", 0, pcie_fields,
        "Links from each GPU to its host and NIC; if absent, the NIC hangs on the scale-up link."),
    OBJECT("nics", 0, nics_fields, "Links from a node to the fabric; absent for a single node."),
    OBJECT(
        "collectives", 0, collective_fields,
        "A limit that collectives of several nodes have beside that of the NICs; none if absent."),
    { .name = "measured_on",
      .type = LH_FIELD_OBJECT,
      .offset = offsetof(LhTopology, measured_on),
      .fields = lh_measured_on_fields,
      .description = "The links that the rows below were measured on, from longhaul.topology/2 on: "
                     "the times of these rows hold there, and change with the links of the node." },
    ROWS(
        "collective_times", collective_times, LhCollectiveTimes, lh_collective_times_fields,
        "Measured times of collectives among GPUs of a node, straight lines in bytes between them; "
        "by default collectives take these times where there are any."),
    ROWS("collective_lines", collective_lines, LhCollectiveLines, lh_collective_lines_fields,
         "Formulas for collectives in a node that were not measured, by which NCCL's model goes."),
    OBJECT("slowdown", 0, slowdown_fields,
           "How much longer the kernels of the device's file take in long runs on this cluster; no "
           "longer if absent."),
    { .name = NULL },
};

static const LhField fabric_fields[] = {
    CHOICE(
        "kind", fabric, LH_FIELD_REQUIRED, fabric_kinds,
        "What joins the nodes: full bisection, one switch per NIC index, or leaves and a spine."),
    COUNT("nodes_per_leaf", nodes_per_leaf, 0, 1, LH_NODES_MAX,
          "Nodes under one leaf switch (fat-tree)."),
    { .name = "oversubscription",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(LhTopology, oversubscription),
      .min = 1,
      .max = LH_OVERSUBSCRIPTION_MAX,
      .description =
          "Bandwidth below a leaf switch over bandwidth above it (fat-tree); 1 if absent." },
    { .name = "levels",
      .type = LH_FIELD_ARRAY,
      .offset = offsetof(LhTopology, fabric_levels),
      .min = 1,
      .max = LH_FABRIC_LEVELS_MAX,
      .fields = lh_fabric_level_fields,
      .element_size = sizeof(LhFabricLevel),
      .element_init = lh_fabric_level_init,
      .description = "Groups of nodes with links of their own to the rest (fat-tree), from the "
                     "inside out, in place of \"nodes_per_leaf\" and \"oversubscription\", which "
                     "say one level." },
    TIME("switch_latency", switch_latency_ps, 0,
         "What each switch on the way adds to the latency (rail, fat-tree); 0 if absent."),
    { .name = NULL },
};

const LhField lh_topology_fields[] = {
    CHOICE("schema", schema, LH_FIELD_REQUIRED, topology_schemas, "The format and its version."),
    TEXT("name", name, LH_FIELD_REQUIRED, "The cluster's name, equal to the file's."),
    TEXT("description", description, 0, "What the cluster is, in a sentence."),
    TEXT("source", source, LH_FIELD_REQUIRED, "Where the wiring comes from."),
    TEXT("device", device_name, LH_FIELD_REQUIRED,
         "The GPU: a name of devices/, or a path, relative to this file."),
    OBJECT("node", LH_FIELD_REQUIRED, node_fields, "One node; all are alike."),
    OBJECT("fabric", 0, fabric_fields, "What joins the nodes; ideal if absent."),
    COUNT("max_nodes", max_nodes, 0, 1, LH_NODES_MAX, "Nodes at most; no limit if absent."),
    { .name = NULL },
};

/* A path is relative to the file that has it. */
static void
place_device(const char *file, LhTopology *t)
{
    g_autofree char *folder = g_path_get_dirname(file);
    char *path;

    if ((strchr(t->device_name, '/') == NULL && !g_str_has_suffix(t->device_name, ".json")) ||
        g_path_is_absolute(t->device_name) || strcmp(folder, ".") == 0)
        return;
    path = g_build_filename(folder, t->device_name, NULL);
    g_free(t->device_name);
    t->device_name = path;
}

static bool
check_device(const LhJson *json, const LhTopology *t, GError **error)
{
    g_autoptr(GError) reason = NULL;
    g_autofree char *path = lh_data_find("devices", t->device_name, &reason);

    if (path == NULL)
        return lh_json_error(json, "device", error, "\"device\": %s", reason->message);
    if (!g_file_test(path, G_FILE_TEST_EXISTS))
        return lh_json_error(json, "device", error, "\"device\": no file \"%.200s\"", path);
    return true;
}

/* The fields in `names`, of the object at `place`, are needed (or have no meaning) because of its
 * kind. */
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
                                 "missing field \"%s\" in \"%s\": kind \"%s\" needs it", *names,
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
    const char *kind = scale_up_kinds[t->scale_up];
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
           lh_json_error(json, path, error,
                         "\"%s\" is %s, more than a NIC; allowed: up to %s, or none", path, found,
                         whole);
}

/* Formulas that know one bandwidth for all nodes are bounds then. */
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
            return lh_json_error(json, path, error,
                                 "\"%s\" is %s, more than that of the other nodes; allowed: up to "
                                 "%s",
                                 path, found, whole);
        if (i > 0 && row->node <= row[-1].node)
            return lh_json_error(json, node_path, error,
                                 "\"%s\" is %" G_GUINT64_FORMAT " behind node %" G_GUINT64_FORMAT
                                 "; allowed: nodes in ascending order, each once",
                                 node_path, row->node, row[-1].node);
    }
    return true;
}

/* A route has place for one such limit. */
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

/* GPUs of several hosts meet on NVSwitch alone. */
static bool
check_hosts(const LhJson *json, const LhTopology *t, GError **error)
{
    g_autofree char *divisors = lh_topology_divisors(t->gpus_per_node);

    if (lh_topology_hosts(t) == 1)
        return true;
    if (t->scale_up != LH_SCALE_UP_SWITCH)
        return lh_json_error(json, "node.hosts", error,
                             "\"node.hosts\" is %" G_GUINT64_FORMAT
                             ", and GPUs of several hosts meet on \"nvswitch\" alone; "
                             "\"node.scale_up.kind\" is \"%s\"; allowed: 1",
                             t->hosts, scale_up_kinds[t->scale_up]);
    if (t->gpus_per_node % t->hosts != 0)
        return lh_json_error(json, "node.hosts", error,
                             "\"node.hosts\" is %" G_GUINT64_FORMAT
                             ", which does not divide \"node.gpus\" %" G_GUINT64_FORMAT
                             "; allowed: %s",
                             t->hosts, t->gpus_per_node, divisors);
    return t->nics_per_node % t->hosts == 0 ||
           lh_json_error(json, "node.nics.count", error,
                         "\"node.nics.count\" is %" G_GUINT64_FORMAT
                         ", and each of the %" G_GUINT64_FORMAT
                         " hosts has as many; allowed: a multiple of these",
                         t->nics_per_node, t->hosts);
}

/* The first of the node's NICs that no GPU uses; their number if all are used. */
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

/* NICs that no GPU uses, such as those of storage, carry nothing. */
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
           lh_json_error(json, path, error,
                         "\"%s\": NIC %" G_GUINT64_FORMAT " is no GPU's; allowed: each of the %" //
                         G_GUINT64_FORMAT " NICs at least once; leave out of \"count\" what "
                         "carries no traffic of GPUs",
                         path, unused_nic(t), t->nics_per_node);
}

static bool
check_nics(const LhJson *json, const LhTopology *t, GError **error)
{
    if (t->nics_per_node == 0 && t->max_nodes == 1)
        return check_hosts(json, t, error);
    if (t->nics_per_node == 0)
        return lh_json_error(
            json, t->max_nodes == 0 ? "node" : "max_nodes", error,
            "without \"node.nics\" there can be only one node; give \"max_nodes\": "
            "1, or the NICs");
    if (t->nics_per_node > t->gpus_per_node)
        return lh_json_error(json, "node.nics.count", error,
                             "\"node.nics.count\" is %" G_GUINT64_FORMAT
                             ", more than \"node.gpus\" %" G_GUINT64_FORMAT
                             "; allowed: a NIC for each GPU at most",
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
    const char *kind = fabric_kinds[t->fabric];

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
                             scale_up_kinds[t->scale_up]);
    return true;
}

/* What the first version of the format does not have. */
static bool
check_version(const LhJson *json, const LhTopology *t, GError **error)
{
    static const char *const paths[] = {
        "node.measured_on",  "node.pcie.levels", "node.pcie.p2p",
        "node.pcie.p2p_two", "node.pcie.host",   "node.nics.of_gpu"
    };

    for (gsize i = 0; t->schema == 0 && i < G_N_ELEMENTS(paths); i++) {
        if (lh_json_has(json, paths[i]))
            return lh_json_error(json, paths[i], error,
                                 "\"%s\" is of \"longhaul.topology/2\", and \"schema\" is \"%s\"",
                                 paths[i], topology_schemas[t->schema]);
    }
    return true;
}

/* Which links collectives were measured on must be said of those that they go over, where the
 * format can say it. */
static bool
check_measured_on(const LhJson *json, const LhTopology *t, GError **error)
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
                                 "missing field \"%s\": times of collectives need the links that "
                                 "they were measured on",
                                 links[i].path);
    }
    return true;
}

/* What has no provenance of its own has that of the rates. */
static void
fill_provenances(LhLinkClass *link)
{
    if (link->latency_provenance < 0)
        link->latency_provenance = link->provenance;
    if (link->ctas_provenance < 0)
        link->ctas_provenance = link->provenance;
}

int
lh_link_provenance(const LhLinkClass *link)
{
    int weakest = link->provenance;

    if (link->latency_ps > 0)
        weakest = MAX(weakest, link->latency_provenance);
    if (link->ctas > 0)
        weakest = MAX(weakest, link->ctas_provenance);
    return weakest;
}

static LhTopology *
read_topology(const char *file, const LhJson *json, GError **error)
{
    g_autoptr(LhTopology) t = g_new0(LhTopology, 1);
    LhLinkClass *const links[] = { &t->nvlink, &t->pcie, &t->nic };

    t->oversubscription = 1;
    for (gsize i = 0; i < G_N_ELEMENTS(links); i++)
        links[i]->latency_provenance = links[i]->ctas_provenance = -1;
    if (!lh_json_decode(json, lh_topology_fields, t, false, error) ||
        !check_version(json, t, error) || !check_node(json, t, error) ||
        !check_nics(json, t, error) || !check_collectives(json, t, error) ||
        !check_fabric(json, t, error))
        return NULL;
    place_device(file, t);
    if (!check_device(json, t, error) ||
        !lh_collective_times_check(json, "node.collective_times", t->collective_times,
                                   t->gpus_per_node, t->scale_up == LH_SCALE_UP_SWITCH, error) ||
        !lh_collective_lines_check(json, "node.collective_lines", t->collective_lines, error) ||
        !check_measured_on(json, t, error) || !lh_measured_read(json, t, error))
        return NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(links); i++)
        fill_provenances(links[i]);
    lh_measured_bind(t);
    if (!lh_measured_check(json, "node.collective_times", t, error))
        return NULL;
    t->sha256 = g_strdup(lh_json_sha256(json));
    return g_steal_pointer(&t);
}

uint64_t
lh_topology_hosts(const LhTopology *topology)
{
    return MAX(topology->hosts, 1);
}

uint64_t
lh_topology_gpus_per_host(const LhTopology *topology)
{
    return topology->gpus_per_node / lh_topology_hosts(topology);
}

bool
lh_topology_assumes_own_links(const LhTopology *topology)
{
    return topology->schema == 0 &&
           (topology->collective_times != NULL || topology->collective_lines != NULL);
}

/* Files of the first version could not say what rows of another cluster were measured on. */
static bool
check_copied(const LhJson *json, const LhTopology *t, GError **error)
{
    g_auto(GStrv) names = lh_topology_assumes_own_links(t) ? lh_data_list("topologies") : NULL;

    for (char **name = names; name != NULL && *name != NULL; name++) {
        g_autoptr(LhTopology) shipped = lh_topology_load(*name, NULL);

        if (shipped != NULL && shipped->schema > 0 &&
            !lh_measured_check_copied(json, t, shipped, error))
            return false;
    }
    return true;
}

/* All of a file. */
static LhTopology *
read_file(const char *file, const LhJson *json, GError **error)
{
    g_autoptr(LhTopology) t = read_topology(file, json, error);

    return t != NULL && check_copied(json, t, error) ? g_steal_pointer(&t) : NULL;
}

LhTopology *
lh_topology_parse(const char *file, const char *text, gsize length, GError **error)
{
    g_autoptr(LhJson) json = lh_json_parse(file, text, length, error);

    return json == NULL ? NULL : read_file(file, json, error);
}

LhTopology *
lh_topology_load(const char *name, GError **error)
{
    g_autofree char *path = lh_data_find("topologies", name, error);
    g_autoptr(LhJson) json = path == NULL ? NULL : lh_json_load(path, error);

    return json == NULL ? NULL : read_file(path, json, error);
}

void
lh_topology_free(LhTopology *topology)
{
    if (topology == NULL)
        return;
    lh_json_clear(lh_topology_fields, topology);
    g_free(topology->sha256);
    g_free(topology);
}
