/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster with a number of nodes: its links, and the route between any two GPUs. Both are
 * computed from the topology, never tabulated, so a cluster of any size costs O(1) memory.
 */
#pragma once

#include "program/group.h"
#include "sim/network/topology.h"

#define LH_ROUTE_MAX 16
#define LH_NESTS_MAX 4

typedef enum {
    LH_NETWORK_FAIR,       /* flows share links max-min fairly */
    LH_NETWORK_ALPHA_BETA, /* every message is alone: latency + bytes / narrowest link */
    LH_NETWORK_FIFO,       /* a link carries one message after another, in order of posting */
} LhNetworkModel;

/* How collectives run; docs/reference/model.md, "Collectives". */
typedef enum {
    LH_COLLECTIVES_RING,     /* rings and chains of messages; all-to-all: all messages at once */
    LH_COLLECTIVES_TREE,     /* all-reduce by a double binary tree; others as RING */
    LH_COLLECTIVES_PAIRWISE, /* all-to-all by pairwise exchanges, step by step; others as RING */
    LH_COLLECTIVES_DIRECT,   /* directly to every destination; broadcasts in an unpipelined chain */
    LH_COLLECTIVES_NCCL,     /* NCCL's own time model; all-to-all: all messages at once */
    LH_COLLECTIVES_CLOSED_FORM, /* the formulas of rings on an idle network */
    LH_COLLECTIVES_FLUID,       /* rings as flows that share links; others as RING */
    LH_COLLECTIVES_AUTO,        /* RING; FLUID for more than LH_RING_MEMBERS_MAX members */
} LhCollectiveModel;

/* Rings with more members are fluids by default, since they take O(n^2) messages otherwise. */
#define LH_RING_MEMBERS_MAX 64

/* "fair", "alpha-beta", "fifo"; "ring", "tree", "pairwise", "direct", "nccl", "closed-form",
 * "fluid", "auto"; each NULL-terminated. */
extern const char *const lh_network_model_names[];
extern const char *const lh_collective_model_names[];

/* A slow or failed link, from the scenario: every link of @tier on @node (LH_TIER_FABRIC: of group
 * @node) runs at @factor of its bandwidth. */
typedef struct {
    int tier; /* LhTier */
    uint64_t node;
    double factor; /* (0, 1]: fraction of its bandwidth; 0: failed */
    uint64_t part; /* LH_TIER_FABRIC: the level of the group; else the host within the node */
} LhLinkFault;

#define LH_FAULT_OF_ALL UINT64_MAX /* all hosts of the node; fabric: leaves */

/* Kinds of routes; routes of a kind share their properties. */
typedef enum {
    LH_ROUTE_NVLINK,     /* one node, over the scale-up link */
    LH_ROUTE_PCIE,       /* one node, over PCIe */
    LH_ROUTE_NETWORK,    /* two nodes, no fabric link between them */
    LH_ROUTE_CROSS_RAIL, /* two nodes, through the local GPU on the destination's rail */
    LH_ROUTE_CROSS_LEAF, /* two nodes, through levels above the leaves */
    LH_ROUTE_CLASSES
} LhRouteKind;

/* Placement of the ranks of a communicator; it determines how many SMs NCCL uses for its
 * messages. */
typedef enum {
    LH_SPAN_NODE,  /* all ranks in one node */
    LH_SPAN_NODES, /* ranks in several nodes */
    LH_SPANS
} LhSpan;

/* Trunks of a level: one up and one down for each group of @nodes nodes. */
typedef struct {
    uint32_t first, nodes;
} LhTrunks;

typedef struct {
    LhTime latency_ps;
    uint16_t ctas[LH_SPANS];
    uint8_t tier; /* LhTier */
} LhRouteClass;

/* Layout of the links of the nodes' PCIe trees: @per_node of them per node, starting at @first.
 * Within a node: for each level with links those of its groups, up and down; then those of each GPU
 * to memory, up and down; then memories. */
typedef struct {
    uint32_t first, per_node;
    uint32_t levels[LH_PCIE_LEVELS_MAX + 1]; /* offset within @per_node; the last: GPUs to memory */
    uint32_t memories, memory_gpus;          /* likewise; number of GPUs per memory */
    bool is_plain; /* messages over PCIe cross the links of both GPUs only */
} LhPcieLinks;

/* A topology with a number of nodes and `ranks` ranks: rank r is on GPU r % gpus_per_node of node r
 * / gpus_per_node. */
typedef struct {
    const LhTopology *topology; /* borrowed */
    uint32_t nodes;
    uint32_t ranks;
    const GArray *faults; /* of LhLinkFault; borrowed; may be NULL */
    /* Layout of link ids, filled by lh_network_init. */
    uint32_t links_count;
    uint32_t pcie_first, nic_first, fabric_first, collective_first;
    LhPcieLinks tree; /* between the links of PCIe and those of NICs */
    /* For lh_network_route, computed once by lh_network_init. */
    uint32_t gpus_per_node, nics_per_node, hosts_per_node, gpus_per_host;
    uint32_t trunk_levels; /* levels whose groups are smaller than the cluster */
    LhTrunks trunks[LH_FABRIC_LEVELS_MAX];
    LhTime level_latency_ps;    /* latency of each level of trunks beyond the first */
    const uint64_t *nic_of_gpu; /* by GPU of a node; NULL: consecutive */
    uint32_t access_first;      /* links from a GPU to its NIC; UINT32_MAX: none */
    /* Limits of a pair of GPUs in two nodes: of its messages, of its hops of collectives; 0:
     * none. */
    double pair_p2p_bytes_per_s, pair_collective_bytes_per_s;
    /* Fraction of link bandwidth that a message between GPUs of a node reaches (sends.h). */
    double sends[LH_TIER_PCIE + 1];
    /* For measured collectives on other links than those of their rows: LhLinkSlowdown. */
    double protocols_on_links;
    int collectives_end;
    LhRouteClass classes[LH_ROUTE_CLASSES];
} LhNetwork;

typedef struct {
    double bandwidth_bytes_per_s; /* 0: failed */
    uint8_t tier;                 /* LhTier */
    uint32_t node;                /* or group of nodes */
    uint32_t index; /* GPU or NIC within the node; beyond the NICs: shared by all collectives;
                       beyond the GPUs: PCIe tree; fabric: the level */
    bool up;        /* towards the fabric */
} LhLink;

typedef struct {
    uint32_t links[LH_ROUTE_MAX];
    uint32_t links_count;
    LhTime latency_ps; /* of the whole route */
    uint8_t tier;      /* highest tier crossed */
    /* Limit shared by all messages from source to destination, or by all hops of collectives; 0:
     * none beyond the links. A route with such a limit has fewer than LH_ROUTE_MAX links. */
    double flow_bandwidth_bytes_per_s;
    uint32_t source, destination;
    bool of_collective; /* a hop of a ring, tree or chain */
    /* Limit of this message alone, even on idle links (0: none beyond the links), and the tiers of
     * the links that would have to be faster to raise it, a bit for each LhTier. */
    double own_bytes_per_s;
    uint8_t own_tiers;
} LhRoute;

/* False (LH_ERROR_INPUT) if the ranks do not fit on the nodes or the topology does not allow so
 * many nodes. */
bool lh_network_init(LhNetwork *network, const LhTopology *topology, uint32_t nodes, uint32_t ranks,
                     const GArray *faults, GError **error);

/* The placement of the ranks of @group. */
LhSpan lh_network_span(const LhNetwork *network, const LhGroup *group);

/* SMs that a message from @src to @dst occupies at each end; its communicator is placed like
 * @span. */
uint16_t lh_network_ctas(const LhNetwork *network, uint32_t src, uint32_t dst, LhSpan span);

/* Sizes of groups of consecutive GPUs that reach each other faster than the rest of their node,
 * outermost first. Returns their number. Each size divides the one before. */
uint32_t lh_network_nests(const LhNetwork *network, uint32_t sizes[LH_NESTS_MAX]);

/* The NIC of @rank, numbered through the cluster like the links of NICs; the first GPU of a node
 * whose NIC is @nic. */
uint32_t lh_network_nic(const LhNetwork *network, uint32_t rank);
uint32_t lh_network_gpu_at_nic(const LhNetwork *network, uint32_t nic);

/* The properties of directed link @id < links_count. */
LhLink lh_network_link(const LhNetwork *network, uint32_t id);

/* The route from @src to @dst, src != dst, both < ranks. O(1). */
void lh_network_route(const LhNetwork *network, uint32_t src, uint32_t dst, LhRoute *route);

/* The route of a hop of a ring, tree or chain of a collective. Between nodes it has the pair limit
 * for collectives and also crosses the link shared by all collectives of a node
 * (LhTopology.collective_bandwidth). All-to-all consists of messages between pairs and uses
 * lh_network_route(). */
void lh_network_collective_route(const LhNetwork *network, uint32_t src, uint32_t dst,
                                 LhRoute *route);

/*
 * Adapts an unmodified @route to the communicator @group. The two functions above assume a
 * communicator of more than two GPUs of a node; where the topology says so ("p2p_two"), two GPUs
 * that are its only ones of a node reach each other directly. The communicator of a program's
 * messages is the group of ranks that runs the program, as for their SMs.
 */
void lh_network_route_in(const LhNetwork *network, const LhGroup *group, LhRoute *route);

/* The tier that the pair limit of a route belongs to: the NICs between nodes, else the route's
 * tier. A bit for each LhTier. */
static inline uint8_t
lh_pair_tier_bit(const LhRoute *route)
{
    return (uint8_t)(1u << MIN(route->tier, LH_TIER_NIC));
}

/* The rate limit of a message on the route beyond its links; INFINITY: none. */
double lh_route_limit(const LhRoute *route);

/* The rate of a message alone on @route: minimum of its links and its limits. */
double lh_network_route_bandwidth(const LhNetwork *network, const LhRoute *route);

/* "nic up, node 3, index 0"; caller frees. */
char *lh_network_link_name(const LhNetwork *network, uint32_t id);
