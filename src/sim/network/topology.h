/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents of a topology file: nodes of GPUs, and the links inside and between them. Every link
 * is full duplex: two directed links.
 */
#pragma once

#include "base/json/json.h"
#include "sim/cost/host_link.h"
#include "sim/cost/provenance.h"
#include "sim/network/collectives/collective_table.h"
#include "sim/network/pcie.h"

#define LH_FABRIC_LEVELS_MAX 4
#define LH_SLOWDOWN_MAX 10 /* limit of the slowdown of a cluster's kernels */

/* Tier of a link; the columns of "exposed communication" and "bytes per tier". */
typedef enum {
    LH_TIER_NVLINK, /* GPU to GPU inside a node or NVLink domain */
    LH_TIER_PCIE,   /* GPU to PCIe switch or host */
    LH_TIER_NIC,    /* node to fabric */
    LH_TIER_FABRIC, /* between switches */
    LH_TIERS
} LhTier;

/* "nvlink", "pcie", "nic", "fabric"; NULL-terminated. */
extern const char *const lh_tier_names[];

/* A link class of a topology file; rates are per direction. */
typedef struct {
    /* Bytes/s of transfers (not the wire rate). */
    double bandwidth; /* nocheck:unit: named as in the file */
    /* NICs: limit of all sends of a program from one GPU to another together, and of all hops of
     * its rings, trees and chains; 0: none. */
    double pair_p2p;        /* nocheck:unit: named as in the file */
    double pair_collective; /* nocheck:unit: named as in the file */
    LhTime latency_ps;      /* of the whole hop, counted once per route */
    uint64_t ctas;   /* SMs that a running send/receive kernel occupies on this class of link */
    LhEvidence from; /* provenance of the rates */
    int latency_provenance, ctas_provenance; /* LhProvenance of the other two */
} LhLinkClass;

typedef enum {
    LH_SCALE_UP_NONE,   /* GPUs of a node communicate over PCIe only */
    LH_SCALE_UP_SWITCH, /* NVSwitch: one up and one down link per GPU into a non-blocking switch */
    LH_SCALE_UP_PAIRS,  /* NVLink bridges between GPUs 2i and 2i+1; other pairs use PCIe */
    LH_SCALE_UP_MEMORY, /* as a switch, but not NVLink: ranks that share the memory of a host */
} LhScaleUp;

typedef enum {
    LH_FABRIC_IDEAL, /* full bisection: only the NICs limit */
    LH_FABRIC_RAIL,  /* NIC i of every node on rail switch i; across rails through the local GPU on
                        that rail (PXN) */
    LH_FABRIC_FAT_TREE, /* leaf switches of nodes_per_leaf nodes under a spine, oversubscribed;
                           possibly further levels between */
} LhFabric;

/* Groups of nodes whose uplinks in a fat tree are oversubscribed. */
typedef struct {
    uint64_t nodes;
    double oversubscription; /* bandwidth below over above; >= 1 */
} LhFabricLevel;

/* A node whose NICs are slower than those of the others. */
typedef struct {
    uint64_t node;
    double bandwidth; /* bytes/s; nocheck:unit: named as in the file */
} LhSlowerNode;

typedef struct {
    char *name;
    char *description;
    char *source;
    char *device_name; /* of devices/ */
    uint64_t gpus_per_node;
    uint64_t hosts;         /* number per node, each with consecutive GPUs and NICs; 0: 1 */
    uint64_t max_nodes;     /* 0: no limit */
    int scale_up;           /* LhScaleUp */
    LhLinkClass nvlink;     /* scale_up != none */
    LhLinkClass pcie;       /* bandwidth 0: GPUs reach their NIC through the scale-up link */
    LhPcieTree tree;        /* everything above the GPUs' own PCIe links */
    LhHostLink host_link;   /* bandwidth 0: none, so that nothing can be offloaded */
    LhHostCpu host_cpu;     /* bandwidth 0: not known, so that no optimizer can be offloaded */
    uint64_t host_memory;   /* bytes of a node's hosts that offload may use; 0: not known */
    uint64_t nics_per_node; /* at most gpus_per_node; 0 only for a single node */
    GArray *nic_of_gpu; /* of uint64_t: the NIC of each GPU; NULL: GPU i uses NIC i * NICs / GPUs */
    LhLinkClass nic;
    GArray *slower_nodes; /* of LhSlowerNode, by node; NULL: none */
    /* Overhead of each further message that a rank sends to other nodes at the same time, in a
     * collective made of messages (the overhead o of LogP: Culler and others 1993). */
    LhTime nic_overhead_ps;
    int fabric; /* LhFabric */
    uint64_t nodes_per_leaf;
    double oversubscription;                       /* leaf downlink over uplink bandwidth; >= 1 */
    LhFabricLevel above[LH_FABRIC_LEVELS_MAX - 1]; /* next levels; 0 nodes: no more */
    GArray *fabric_levels;    /* of LhFabricLevel: all levels as in the file; NULL: leaves only */
    LhTime switch_latency_ps; /* per fabric switch crossed */
    /* Limit of the rings of several nodes together, at one node in each direction, bytes/s; 0: the
     * NICs' rate. */
    double collective_bandwidth; /* nocheck:unit: named as in the file */
    LhEvidence collective_from;
    GArray *collective_times; /* of LhCollectiveTimes; NULL: nothing was measured within a node */
    GArray *collective_lines; /* of LhCollectiveLines; NULL: no formulas */
    LhMeasuredOn measured_on; /* links that rows without their own were measured on (measured.h) */
    /* Factor on kernel times in long runs on this cluster, relative to the device file; 0: none. */
    double product_slowdown, attention_slowdown;
    LhEvidence slowdown_from;
    char *sha256;
    int schema; /* version of longhaul.topology, less 1 */
    /* By link class: rate of messages in a profile over the rate in the file; 0: none
     * (scenario/profile_links.h). */
    double found[LH_TIERS];
} LhTopology;

/* Reads @name: a name (a file of topologies/) or a path. */
LhTopology *lh_topology_load(const char *name, GError **error);
LhTopology *lh_topology_parse(const char *file, const char *text, gsize length, GError **error);

/* An empty topology; links that are missing in a topology are as here. */
extern const LhTopology lh_topology_nothing;

/* Appends the document. @topology begins with lh_topology_nothing, and its schema is
 * LH_TOPOLOGY_SCHEMA. */
void lh_topology_write(const LhTopology *topology, GString *out);
#define LH_TOPOLOGY_SCHEMA 1

void lh_topology_free(LhTopology *topology);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhTopology, lh_topology_free)

/* Whether the file has times of collectives but not the links they were measured on; the topology's
 * own links are assumed then. */
bool lh_topology_assumes_own_links(const LhTopology *topology);

/* The weakest provenance of what determines the time of a transfer over such a link. */
int lh_link_provenance(const LhLinkClass *link);

/* Number of hosts of a node; of GPUs of a host. */
static inline uint64_t
lh_topology_hosts(const LhTopology *topology)
{
    return MAX(topology->hosts, 1);
}

static inline uint64_t
lh_topology_gpus_per_host(const LhTopology *topology)
{
    return topology->gpus_per_node / lh_topology_hosts(topology);
}

/* The name of the links of @tier: "NVLink", "PCIe", "NIC", "fabric"; "memory" for
 * LH_SCALE_UP_MEMORY. */
const char *lh_topology_link_name(const LhTopology *topology, LhTier tier);
