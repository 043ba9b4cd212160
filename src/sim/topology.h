/*
 * Clusters: nodes of GPUs, the links inside and between them, and the route between any two GPUs.
 * Routes and links are computed from the description, never tabulated, so a cluster costs O(1)
 * memory whatever its size. Every link is full duplex: two directed links.
 */
#pragma once

#include "base/json.h"
#include "sim/device.h"

#define LH_ROUTE_MAX 8

/* Where a link stands; the columns of "exposed communication" and "bytes per tier". */
typedef enum {
    LH_TIER_NVLINK, /* GPU to GPU inside a node or NVLink domain */
    LH_TIER_PCIE,   /* GPU to PCIe switch or host */
    LH_TIER_NIC,    /* node to fabric */
    LH_TIER_FABRIC, /* between switches */
    LH_TIERS
} LhTier;

/* "nvlink", "pcie", "nic", "fabric"; NULL-terminated. */
extern const char *const lh_tier_names[];

/* One link class as a topology file states it (each direction). */
typedef struct {
    /* Bytes/s that a transfer reaches (not the wire's). */
    double bandwidth; /* nocheck:unit: named as in the file */
    /* NICs: the most that all messages from one GPU to another reach together; 0: no limit. */
    double flow_bandwidth; /* nocheck:unit: named as in the file */
    LhTime latency_ps;     /* of the whole hop, counted once per route */
    uint64_t ctas;  /* SMs that a running send/receive kernel occupies on this class of link */
    int provenance; /* LhProvenance */
    char *source;
} LhLinkClass;

typedef enum {
    LH_SCALE_UP_NONE,   /* GPUs of a node meet over PCIe only */
    LH_SCALE_UP_SWITCH, /* NVSwitch: every GPU one up and one down link into a non-blocking switch
                         */
    LH_SCALE_UP_PAIRS,  /* NVLink bridges join GPUs 2i and 2i+1; other pairs go over PCIe */
} LhScaleUp;

typedef enum {
    LH_FABRIC_IDEAL, /* full bisection: only the NICs limit */
    LH_FABRIC_RAIL,  /* NIC i of every node on rail switch i; across rails through the local GPU of
                        that rail (PXN) */
    LH_FABRIC_FAT_TREE, /* leaf switches of nodes_per_leaf nodes under a spine, oversubscribed */
} LhFabric;

typedef struct {
    char *name;
    char *description;
    char *source;
    char *device_name; /* of devices/ */
    uint64_t gpus_per_node;
    uint64_t max_nodes;     /* 0: no limit */
    int scale_up;           /* LhScaleUp */
    LhLinkClass nvlink;     /* scale_up != none */
    LhLinkClass pcie;       /* bandwidth 0: GPUs reach their NIC through the scale-up link */
    uint64_t nics_per_node; /* divides gpus_per_node; 0 only for a single node */
    LhLinkClass nic;
    int fabric; /* LhFabric */
    uint64_t nodes_per_leaf;
    double oversubscription;  /* leaf downlink over uplink bandwidth; >= 1 */
    LhTime switch_latency_ps; /* per fabric switch crossed */
    char *sha256;
    int schema; /* version of longhaul.topology, from 0 */
} LhTopology;

/* Reads @name: a word (a file of topologies/) or a path. */
LhTopology *lh_topology_load(const char *name, GError **error);
LhTopology *lh_topology_parse(const char *file, const char *text, gsize length, GError **error);
void lh_topology_free(LhTopology *topology);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhTopology, lh_topology_free)

extern const LhField lh_topology_fields[];

/* A slow or failed link, by scenario: every link of @tier on @node (LH_TIER_FABRIC: on leaf @node)
 * runs at @factor. */
typedef struct {
    int tier; /* LhTier */
    uint64_t node;
    double factor; /* (0, 1]: share of its bandwidth; 0: failed */
} LhLinkFault;

/* The kinds of route there are: what all routes of a kind have in common. */
typedef enum {
    LH_ROUTE_NVLINK,     /* one node, over the scale-up link */
    LH_ROUTE_PCIE,       /* one node, over PCIe */
    LH_ROUTE_NETWORK,    /* two nodes, no fabric link in between */
    LH_ROUTE_CROSS_RAIL, /* two nodes, through the local GPU on the destination's rail */
    LH_ROUTE_CROSS_LEAF, /* two nodes, through the spine */
    LH_ROUTE_CLASSES
} LhRouteKind;

typedef struct {
    LhTime latency_ps;
    uint16_t ctas;
    uint8_t tier; /* LhTier */
} LhRouteClass;

/* A topology with a number of nodes, holding `ranks` ranks: rank r on GPU r % gpus_per_node of node
 * r / gpus_per_node. */
typedef struct {
    const LhTopology *topology; /* borrowed */
    uint32_t nodes;
    uint32_t ranks;
    const GArray *faults; /* of LhLinkFault; borrowed; may be NULL */
    /* Layout of link ids, filled by lh_network_init. */
    uint32_t links_count;
    uint32_t pcie_first, nic_first, fabric_first;
    /* What lh_network_route needs, worked out once by lh_network_init. */
    uint32_t gpus_per_node, nics_per_node, gpus_per_nic, nodes_per_leaf;
    uint32_t access_first; /* links from a GPU towards its NIC; UINT32_MAX: none in between */
    double flow_bandwidth_bytes_per_s; /* of a pair of GPUs in two nodes; 0: no limit */
    LhRouteClass classes[LH_ROUTE_CLASSES];
    uint32_t group; /* of lh_network_set_groups; 0: all ranks */
} LhNetwork;

typedef struct {
    double bandwidth_bytes_per_s; /* 0: failed */
    uint8_t tier;                 /* LhTier */
    uint32_t node;                /* or leaf */
    uint32_t index;               /* GPU or NIC within the node */
    bool up;                      /* towards the fabric */
} LhLink;

typedef struct {
    uint32_t links[LH_ROUTE_MAX];
    uint32_t links_count;
    LhTime latency_ps; /* of the whole route */
    uint8_t tier;      /* highest tier crossed */
    uint16_t ctas;     /* SMs occupied at each end */
    /* What all messages from source to destination reach together; 0: what the links give. A route
     * with such a limit has fewer than LH_ROUTE_MAX links. */
    double flow_bandwidth_bytes_per_s;
    uint32_t source, destination;
} LhRoute;

/* False (LH_ERROR_INPUT) if the ranks do not fit on the nodes or the topology cannot have so many.
 */
bool lh_network_init(LhNetwork *network, const LhTopology *topology, uint32_t nodes, uint32_t ranks,
                     const GArray *faults, GError **error);

/* Ranks only talk within groups of @group consecutive ones, which have communicators of their own:
 * where each lies within a node, none spans nodes. */
void lh_network_set_groups(LhNetwork *network, uint32_t group);

/* The properties of directed link @id < links_count. */
LhLink lh_network_link(const LhNetwork *network, uint32_t id);

/* The route from @src to @dst, src != dst, both < ranks. O(1). */
void lh_network_route(const LhNetwork *network, uint32_t src, uint32_t dst, LhRoute *route);

/* What a message reaches alone on @route: its narrowest link, or the limit of its pair. */
double lh_network_route_bandwidth(const LhNetwork *network, const LhRoute *route);

/* "nic up, node 3, index 0"; caller frees. */
char *lh_network_link_name(const LhNetwork *network, uint32_t id);
