/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster of so many nodes: its links, and the route between any two GPUs. Both are computed from
 * the topology, never tabulated, so a cluster costs O(1) memory whatever its size.
 */
#pragma once

#include "program/group.h"
#include "sim/network/topology.h"

#define LH_ROUTE_MAX 16
#define LH_NESTS_MAX 4

typedef enum {
    LH_NETWORK_FAIR,       /* flows share links max-min fairly */
    LH_NETWORK_ALPHA_BETA, /* every message alone: latency + bytes / narrowest link */
    LH_NETWORK_FIFO,       /* a link carries one message after another, in order of posting */
} LhNetworkModel;

/* How collectives run; docs/reference/model.md, "Collectives". */
typedef enum {
    LH_COLLECTIVES_RING,        /* rings and chains of messages; all-to-all in one shot */
    LH_COLLECTIVES_TREE,        /* all-reduce by a double binary tree, the rest likewise */
    LH_COLLECTIVES_PAIRWISE,    /* all-to-all by exchanges step by step, the rest likewise */
    LH_COLLECTIVES_DIRECT,      /* straight to every destination; broadcasts in a chain, whole */
    LH_COLLECTIVES_NCCL,        /* NCCL's own model of time; all-to-all in one shot */
    LH_COLLECTIVES_CLOSED_FORM, /* the formulas of rings on an idle network */
    LH_COLLECTIVES_FLUID,       /* rings as flows that share links; the rest as in RING */
    LH_COLLECTIVES_AUTO,        /* RING; FLUID for more than LH_RING_MEMBERS_MAX members */
} LhCollectiveModel;

/* Rings of more members are fluids by default: they take O(n^2) messages otherwise. */
#define LH_RING_MEMBERS_MAX 64

/* "fair", "alpha-beta", "fifo"; "ring", "tree", "pairwise", "direct", "nccl", "closed-form",
 * "fluid", "auto"; each NULL-terminated. */
extern const char *const lh_network_model_names[];
extern const char *const lh_collective_model_names[];

/* A slow or failed link, by scenario: every link of @tier on @node (LH_TIER_FABRIC: of group @node)
 * runs at @factor. */
typedef struct {
    int tier; /* LhTier */
    uint64_t node;
    double factor; /* (0, 1]: share of its bandwidth; 0: failed */
    uint64_t part; /* LH_TIER_FABRIC: the level of the group; else the host, of those of the node */
} LhLinkFault;

#define LH_FAULT_OF_ALL UINT64_MAX /* hosts of the node; of the fabric: of leaves */

/* The kinds of route there are: what all routes of a kind have in common. */
typedef enum {
    LH_ROUTE_NVLINK,     /* one node, over the scale-up link */
    LH_ROUTE_PCIE,       /* one node, over PCIe */
    LH_ROUTE_NETWORK,    /* two nodes, no fabric link in between */
    LH_ROUTE_CROSS_RAIL, /* two nodes, through the local GPU on the destination's rail */
    LH_ROUTE_CROSS_LEAF, /* two nodes, through what is above leaves */
    LH_ROUTE_CLASSES
} LhRouteKind;

/* Where the ranks of a communicator are: it decides how many SMs NCCL takes for its messages. */
typedef enum {
    LH_SPAN_NODE,  /* all in one node */
    LH_SPAN_NODES, /* in several */
    LH_SPANS
} LhSpan;

/* Trunks of a level: of each group of @nodes nodes, up and down. */
typedef struct {
    uint32_t first, nodes;
} LhTrunks;

typedef struct {
    LhTime latency_ps;
    uint16_t ctas[LH_SPANS];
    uint8_t tier; /* LhTier */
} LhRouteClass;

/* Where the links of a node's PCIe tree are: @per_node of them, node by node, behind @first. Of
 * each level that has any the links of its groups, up and down, then those of each GPU through
 * memory, up and down, then memories. */
typedef struct {
    uint32_t first, per_node;
    uint32_t levels[LH_PCIE_LEVELS_MAX + 1]; /* of @per_node; the last: of GPUs through memory */
    uint32_t memories, memory_gpus;          /* likewise; GPUs of a memory */
    bool is_plain; /* messages over PCIe cross the links of both GPUs and nothing else */
} LhPcieLinks;

/* A topology with a number of nodes, holding `ranks` ranks: rank r on GPU r % gpus_per_node of node
 * r / gpus_per_node. */
typedef struct {
    const LhTopology *topology; /* borrowed */
    uint32_t nodes;
    uint32_t ranks;
    const GArray *faults; /* of LhLinkFault; borrowed; may be NULL */
    /* Layout of link ids, filled by lh_network_init. */
    uint32_t links_count;
    uint32_t pcie_first, nic_first, fabric_first, collective_first;
    LhPcieLinks tree; /* between those of PCIe and those of NICs */
    /* What lh_network_route needs, worked out once by lh_network_init. */
    uint32_t gpus_per_node, nics_per_node, hosts_per_node, gpus_per_host;
    uint32_t trunk_levels; /* with more nodes than one group has */
    LhTrunks trunks[LH_FABRIC_LEVELS_MAX];
    LhTime level_latency_ps;    /* of a level of trunks beyond the first */
    const uint64_t *nic_of_gpu; /* of each GPU of a node; NULL: in a row */
    uint32_t access_first;      /* links from a GPU towards its NIC; UINT32_MAX: none in between */
    /* Of a pair of GPUs in two nodes: for its messages, for its hops of collectives; 0: no limit.
     */
    double pair_p2p_bytes_per_s, pair_collective_bytes_per_s;
    /* Of what links between GPUs of a node let through, what a message reaches (sends.h). */
    double sends[LH_TIER_PCIE + 1];
    /* Of measured collectives on other links than those of their rows: LhLinkSlowdown. */
    double protocols_on_links;
    int collectives_end;
    LhRouteClass classes[LH_ROUTE_CLASSES];
} LhNetwork;

typedef struct {
    double bandwidth_bytes_per_s; /* 0: failed */
    uint8_t tier;                 /* LhTier */
    uint32_t node;                /* or group of nodes */
    uint32_t index; /* GPU or NIC within the node; behind the NICs: what all collectives share;
                       behind the GPUs: of the PCIe tree; of the fabric: the level */
    bool up;        /* towards the fabric */
} LhLink;

typedef struct {
    uint32_t links[LH_ROUTE_MAX];
    uint32_t links_count;
    LhTime latency_ps;       /* of the whole route */
    uint8_t tier;            /* highest tier crossed */
    uint16_t ctas[LH_SPANS]; /* SMs occupied at each end */
    /* What all messages from source to destination, or all hops of collectives, reach together; 0:
     * what the links give. A route with such a limit has fewer than LH_ROUTE_MAX links. */
    double flow_bandwidth_bytes_per_s;
    uint32_t source, destination;
    bool of_collective; /* a hop of a ring, tree or chain */
    /* What this message reaches by itself, however idle its links are (0: what they give), and the
     * tiers of the links that would have to be faster for that, a bit for each LhTier. */
    double own_bytes_per_s;
    uint8_t own_tiers;
} LhRoute;

/* False (LH_ERROR_INPUT) if the ranks do not fit on the nodes or the topology cannot have so many.
 */
bool lh_network_init(LhNetwork *network, const LhTopology *topology, uint32_t nodes, uint32_t ranks,
                     const GArray *faults, GError **error);

/* Where the ranks of @group are. */
LhSpan lh_network_span(const LhNetwork *network, const LhGroup *group);

/* Sizes of the groups of GPUs in a row that reach each other faster than the rest of their node,
 * outermost first: how many there are. Each size divides the one before. */
uint32_t lh_network_nests(const LhNetwork *network, uint32_t sizes[LH_NESTS_MAX]);

/* The NIC of @rank, counted through the cluster as NICs' links are; and of GPUs of a node, the
 * first one that has its NIC @nic. */
uint32_t lh_network_nic(const LhNetwork *network, uint32_t rank);
uint32_t lh_network_gpu_at_nic(const LhNetwork *network, uint32_t nic);

/* The properties of directed link @id < links_count. */
LhLink lh_network_link(const LhNetwork *network, uint32_t id);

/* The route from @src to @dst, src != dst, both < ranks. O(1). */
void lh_network_route(const LhNetwork *network, uint32_t src, uint32_t dst, LhRoute *route);

/* The route of a hop of a ring, tree or chain of collectives: between nodes it has the limit that
 * pairs have for those, and also crosses what all of these share at a node
 * (LhTopology.collective_bandwidth). All-to-all is messages between pairs and takes the other one.
 */
void lh_network_collective_route(const LhNetwork *network, uint32_t src, uint32_t dst,
                                 LhRoute *route);

/*
 * Both of these are routes in a communicator of more than two GPUs of a node. Makes of @route, to
 * which nothing was done, the one in the communicator @group: where the topology says so
 * ("p2p_two"), its only two GPUs of a node reach each other directly. The communicator of a
 * program's messages is the group of ranks that runs the program, as for their SMs.
 */
void lh_network_route_in(const LhNetwork *network, const LhGroup *group, LhRoute *route);

/* Of GPUs of different nodes it is the NICs that a limit of a pair is of: a bit for each LhTier. */
static inline uint8_t
lh_pair_tier_bit(const LhRoute *route)
{
    return (uint8_t)(1u << MIN(route->tier, LH_TIER_NIC));
}

/* What a message of the route reaches however fast its links are; INFINITY: no limit. */
double lh_route_limit(const LhRoute *route);

/* What a message reaches alone on @route: its narrowest link, or the limit of its pair. */
double lh_network_route_bandwidth(const LhNetwork *network, const LhRoute *route);

/* "nic up, node 3, index 0"; caller frees. */
char *lh_network_link_name(const LhNetwork *network, uint32_t id);
