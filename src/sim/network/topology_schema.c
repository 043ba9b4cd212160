/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topology files: their fields and choices.
 */
#include "sim/network/topology_schema.h"

#include "sim/network/collectives/collective_table.h"
#include "sim/network/fabric.h"
#include "sim/network/network_private.h"
#include "sim/network/topology_change.h"

#define CTAS_MAX 1024
#define ROWS_MAX 1000
#define HOST_MEMORY_MAX 1e15 /* bytes */

const char *const lh_topology_schemas[] = { "longhaul.topology/1", "longhaul.topology/2", NULL };
const char *const lh_topology_scale_ups[] = { "none", "nvswitch", "pairs", "memory", NULL };
const char *const lh_topology_fabrics[] = { "ideal", "rail", "fat-tree", NULL };

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

/* The fields of a link class: its rate, and the others. */
#define LINK_RATE(member, needed)                                                                  \
    BANDWIDTH("bandwidth", member.bandwidth, needed,                                               \
              "Bandwidth of transfers in each direction (not the wire rate).")
#define LINK_FIELDS(member, needed)                                                                \
    TIME("latency", member.latency_ps, needed,                                                     \
         "Latency that this kind of link adds to a route, once per route."),                       \
        COUNT("ctas", member.ctas, needed, 0, CTAS_MAX,                                            \
              "SMs that a running send or receive kernel occupies at each end."),                  \
        CHOICE("provenance", member.from.provenance, needed, lh_provenance_names,                  \
               "Provenance of the bandwidth, and of values without their own provenance."),        \
        CHOICE("latency_provenance", member.latency_provenance, 0, lh_provenance_names,            \
               "Provenance of the latency."),                                                      \
        CHOICE("ctas_provenance", member.ctas_provenance, 0, lh_provenance_names,                  \
               "Provenance of the number of SMs."),                                                \
        TEXT("source", member.from.source, needed, "Source of the numbers.")

static const LhField scale_up_fields[] = {
    CHOICE("kind", scale_up, LH_FIELD_REQUIRED, lh_topology_scale_ups,
           "Links between the GPUs of a node: none, a switch, pairs (0-1, 2-3, ..), or the shared "
           "memory of a host for ranks."),
    LINK_RATE(nvlink, 0),
    LINK_FIELDS(nvlink, 0),
    { .name = NULL },
};

static const LhField pcie_fields[] = {
    LINK_RATE(pcie, LH_FIELD_REQUIRED),
    LINK_FIELDS(pcie, LH_FIELD_REQUIRED),
    { .name = "levels",
      .type = LH_FIELD_ARRAY,
      .offset = offsetof(LhTopology, tree.levels),
      .min = 1,
      .max = LH_PCIE_LEVELS_MAX,
      .fields = lh_pcie_level_fields,
      .element_size = sizeof(LhPcieLevel),
      .element_init = lh_pcie_level_init,
      .description = "Groups of GPUs from the inside out, such as those of a switch and those of a "
                     "socket; none if absent." },
    TEXT("p2p", tree.p2p, 0,
         "How far GPUs reach each other directly: \"none\", a level's name (within its groups), or "
         "\"node\" (default). Other messages go through memory."),
    { .name = "p2p_two",
      .type = LH_FIELD_BOOL,
      .offset = offsetof(LhTopology, tree.p2p_two),
      .description =
          "Whether the GPUs of a communicator of exactly two GPUs of a node reach each other "
          "directly regardless of \"p2p\", as with NCCL on AMD hosts; false if absent." },
    { .name = "host",
      .type = LH_FIELD_OBJECT,
      .offset = offsetof(LhTopology, tree),
      .fields = lh_pcie_host_fields,
      .description = "Bandwidths of messages through memory; no additional limit if absent." },
    { .name = NULL },
};

static const LhField slower_fields[] = {
    { .name = "node",
      .type = LH_FIELD_UINT,
      .offset = offsetof(LhSlowerNode, node),
      .flags = LH_FIELD_REQUIRED,
      .min = 0,
      .max = LH_NODES_MAX,
      .description = "Number of the node, from 0." },
    { .name = "bandwidth",
      .type = LH_FIELD_UNIT,
      .offset = offsetof(LhSlowerNode, bandwidth),
      .flags = LH_FIELD_REQUIRED,
      .unit = LH_UNIT_BANDWIDTH,
      .min = LH_BANDWIDTH_MIN,
      .max = LH_BANDWIDTH_MAX,
      .description = "Bandwidth of transfers over one of its NICs in each direction." },
    { .name = NULL },
};

static const LhField nics_fields[] = {
    COUNT("count", nics_per_node, LH_FIELD_REQUIRED, 1, LH_NICS_MAX,
          "NICs per node, at most one per GPU."),
    { .name = "of_gpu",
      .type = LH_FIELD_UINTS,
      .offset = offsetof(LhTopology, nic_of_gpu),
      .min = 1,
      .max = LH_NICS_MAX,
      .description = "The NIC that each GPU uses, from 0; if absent, GPU i uses NIC i * count / "
                     "gpus, rounded down." },
    LINK_RATE(nic, LH_FIELD_REQUIRED),
    BANDWIDTH("pair_p2p", nic.pair_p2p, 0,
              "Bandwidth of all sends and all-to-alls from one GPU to another together, at most "
              "\"bandwidth\"; no such limit if absent."),
    BANDWIDTH("pair_collective", nic.pair_collective, 0,
              "Likewise all hops of rings, trees and chains of collectives."),
    LINK_FIELDS(nic, LH_FIELD_REQUIRED),
    TIME(
        "overhead", nic_overhead_ps, 0,
        "Time that each message beyond the first adds to a collective in which a GPU sends several "
        "at once to other nodes (all-to-all; all-gather and others with \"direct\"); 0 if absent."),
    ROWS("slower", slower_nodes, LhSlowerNode, slower_fields,
         "Nodes whose NICs are slower than \"bandwidth\", by number; none if absent."),
    { .name = NULL },
};

static const LhField collective_fields[] = {
    BANDWIDTH("bandwidth", collective_bandwidth, LH_FIELD_REQUIRED,
              "Bandwidth of all-gathers, reduce-scatters, all-reduces and broadcasts of several "
              "nodes together, at one node in each direction, independent of its NICs."),
    LH_FIELDS_EVIDENCE(LhTopology, collective_from, LH_FIELD_REQUIRED, LH_TOPOLOGY_TEXT_MAX,
                       "the bandwidth", "the number comes"),
    { .name = NULL },
};

#define SLOWDOWN(key, member, text)                                                                \
    {                                                                                              \
        .name = (key), .type = LH_FIELD_DOUBLE, .offset = offsetof(LhTopology, member),            \
        .flags = LH_FIELD_REQUIRED, .min = 1, .max = LH_SLOWDOWN_MAX, .description = (text)        \
    }

static const LhField slowdown_fields[] = {
    SLOWDOWN("products", product_slowdown, "Factor on times of matrix products."),
    SLOWDOWN("attention", attention_slowdown, "Factor on times of attention that has a curve."),
    LH_FIELDS_EVIDENCE(LhTopology, slowdown_from, LH_FIELD_REQUIRED, LH_TOPOLOGY_TEXT_MAX,
                       "the factors", "the factors come"),
    { .name = NULL },
};

static const char *const duplexes[] = { "full", "half", NULL };

static const LhField host_link_fields[] = {
    BANDWIDTH("bandwidth", host_link.bandwidth, LH_FIELD_REQUIRED,
              "Bandwidth of copies in one direction (not the wire rate)."),
    TIME("latency", host_link.latency_ps, 0, "Latency of a copy; 0 if absent."),
    CHOICE("duplex", host_link.duplex, 0, duplexes,
           "Whether both directions have this bandwidth at the same time (full), or share it "
           "(half); full if absent."),
    COUNT("shared_by", host_link.shared_by, 0, 1, LH_NICS_MAX,
          "GPUs that share the bandwidth, such as those behind one uplink of a PCIe switch; 1 if "
          "absent. Each is taken to use its share."),
    CHOICE("latency_provenance", host_link.latency_provenance, 0, lh_provenance_names,
           "Provenance of the latency; that of the bandwidth if absent."),
    LH_FIELDS_EVIDENCE(LhTopology, host_link.from, LH_FIELD_REQUIRED, LH_TOPOLOGY_TEXT_MAX,
                       "the bandwidth", "the numbers come"),
    { .name = NULL },
};

static const LhField host_cpu_fields[] = {
    BANDWIDTH("bandwidth", host_cpu.bandwidth, LH_FIELD_REQUIRED,
              "Memory bandwidth of all CPUs of the node together, as programs reach it. Ranks of "
              "the node share it evenly."),
    LH_FIELDS_EVIDENCE(LhTopology, host_cpu.from, LH_FIELD_REQUIRED, LH_TOPOLOGY_TEXT_MAX,
                       "the bandwidth", "the number comes"),
    { .name = NULL },
};

static const LhField node_fields[] = {
    COUNT("gpus", gpus_per_node, LH_FIELD_REQUIRED, 1, LH_NICS_MAX, "GPUs per node."),
    COUNT("hosts", hosts, 0, 1, LH_NICS_MAX,
          "Hosts per node, connected by one NVSwitch, each with the same number of GPUs and NICs; "
          "1 if absent."),
    OBJECT("scale_up", LH_FIELD_REQUIRED, scale_up_fields, "Links between the GPUs of a node."),
    OBJECT("pcie", 0, pcie_fields,
           "Links from each GPU to its host and NIC; if absent, GPUs reach the NIC over the "
           "scale-up link."),
    OBJECT("host_link", 0, host_link_fields,
           "Link from each GPU to the memory of its host, which offload takes; if absent, nothing "
           "can be offloaded."),
    OBJECT("host_cpu", 0, host_cpu_fields,
           "CPUs of the node, which run an optimizer whose states are in host memory; if absent, "
           "no optimizer can be offloaded."),
    { .name = "host_memory",
      .type = LH_FIELD_UNIT,
      .offset = offsetof(LhTopology, host_memory),
      .unit = LH_UNIT_BYTES,
      .min = 1,
      .max = HOST_MEMORY_MAX,
      .description = "Memory of the node's hosts; no limit of what is offloaded if absent." },
    OBJECT("nics", 0, nics_fields, "Links from a node to the fabric; absent for a single node."),
    OBJECT("collectives", 0, collective_fields,
           "Limit of collectives of several nodes beside that of the NICs; none if absent."),
    { .name = "measured_on",
      .type = LH_FIELD_OBJECT,
      .offset = offsetof(LhTopology, measured_on),
      .fields = lh_measured_on_fields,
      .description = "Links that the rows below were measured on (longhaul.topology/2). Their "
                     "times hold on these links and scale with the links of the node." },
    ROWS("collective_times", collective_times, LhCollectiveTimes, lh_collective_times_fields,
         "Measured times of collectives among GPUs of a node, interpolated linearly in bytes. Used "
         "by default for collectives that have any."),
    ROWS("collective_lines", collective_lines, LhCollectiveLines, lh_collective_lines_fields,
         "Formulas for collectives within a node that were not measured; used by NCCL's model."),
    OBJECT("slowdown", 0, slowdown_fields,
           "Factors on the kernel times of the device file in long runs on this cluster; 1 if "
           "absent."),
    { .name = NULL },
};

static const LhField fabric_fields[] = {
    CHOICE("kind", fabric, LH_FIELD_REQUIRED, lh_topology_fabrics,
           "Kind of fabric: full bisection (ideal), one switch per NIC index (rail), or leaf "
           "switches and a spine (fat-tree)."),
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
      .description =
          "Levels of groups of nodes with their own uplinks (fat-tree), from the inside out; "
          "replaces \"nodes_per_leaf\" and \"oversubscription\", which describe one level." },
    TIME("switch_latency", switch_latency_ps, 0,
         "Latency of each switch on a route (rail, fat-tree); 0 if absent."),
    { .name = NULL },
};

const LhField lh_topology_fields[] = {
    CHOICE("schema", schema, LH_FIELD_REQUIRED, lh_topology_schemas, "The format and its version."),
    TEXT("name", name, LH_FIELD_REQUIRED, "The cluster's name, equal to the file's."),
    TEXT("description", description, 0, "What the cluster is, in a sentence."),
    TEXT("source", source, LH_FIELD_REQUIRED, "Source of the wiring."),
    TEXT("device", device_name, LH_FIELD_REQUIRED,
         "The GPU: a name of devices/, or a path relative to this file."),
    OBJECT("node", LH_FIELD_REQUIRED, node_fields, "One node; all nodes are equal."),
    OBJECT("fabric", 0, fabric_fields, "Network between the nodes; ideal if absent."),
    COUNT("max_nodes", max_nodes, 0, 1, LH_NODES_MAX,
          "Maximum number of nodes; no limit if absent."),
    { .name = NULL },
};
