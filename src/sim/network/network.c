/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A topology with a number of nodes: its links, and the links that a message crosses. Everything is
 * arithmetic on rank numbers: rank r is on GPU r of the cluster, its node is r / gpus_per_node, its
 * NIC is the one that this GPU uses within the node. Link ids come in pairs per place, up first,
 * then down: scale-up links of all GPUs; PCIe links of all GPUs; those of the nodes' PCIe trees
 * (pcie_links.c; a memory has only one); NICs; trunks of the leaf switches, then of the next levels
 * (fabric.h); and one place per node shared by all of its collectives. Rail switches and the spine
 * are non-blocking.
 */
#include "sim/network/network.h"

#include "sim/network/collectives/collective_table.h"
#include "sim/network/fabric.h"
#include "sim/network/network_private.h"
#include "sim/network/pcie_links.h"
#include "sim/network/sends.h"

#include <math.h>

const char *const lh_network_model_names[] = { "fair", "alpha-beta", "fifo", NULL };

const char *const lh_collective_model_names[] = { "ring",   "tree", "pairwise",
                                                  "direct", "nccl", "closed-form",
                                                  "fluid",  "auto", NULL };

/*
 * A communicator that spans nodes gives every peer, also those in the same node, the channel count
 * of its slowest path (NCCL takes the minimum over all ranks).
 */
static LhRouteClass
local_class(const LhNetwork *n, const LhLinkClass *link, LhTier tier)
{
    return (LhRouteClass){
        .latency_ps = link->latency_ps,
        .ctas = { [LH_SPAN_NODE] = (uint16_t)link->ctas,
                  [LH_SPAN_NODES] = (uint16_t)MIN(link->ctas, n->topology->nic.ctas) },
        .tier = (uint8_t)tier,
    };
}

static LhRouteClass
network_class(const LhNetwork *n, LhTime latency_ps, LhTier tier)
{
    const uint16_t ctas = (uint16_t)n->topology->nic.ctas;

    return (
        LhRouteClass){ .latency_ps = latency_ps, .ctas = { ctas, ctas }, .tier = (uint8_t)tier };
}

static void
set_classes(LhNetwork *n)
{
    const LhTopology *t = n->topology;
    const LhTime access_ps = t->pcie.bandwidth > 0             ? t->pcie.latency_ps
                             : t->scale_up != LH_SCALE_UP_NONE ? t->nvlink.latency_ps
                                                               : 0;
    const LhTime hop_ps = t->fabric == LH_FABRIC_IDEAL ? 0 : t->switch_latency_ps;
    const LhTime near_ps = access_ps + t->nic.latency_ps + LH_SWITCHES_NEAR * hop_ps;
    const LhTime relay_ps = t->pcie.bandwidth > 0 ? t->nvlink.latency_ps : 0;

    n->classes[LH_ROUTE_NVLINK] = local_class(n, &t->nvlink, LH_TIER_NVLINK);
    n->classes[LH_ROUTE_PCIE] = local_class(n, &t->pcie, LH_TIER_PCIE);
    n->classes[LH_ROUTE_NETWORK] = network_class(n, near_ps, LH_TIER_NIC);
    n->classes[LH_ROUTE_CROSS_RAIL] = network_class(n, near_ps + relay_ps, LH_TIER_NIC);
    n->classes[LH_ROUTE_CROSS_LEAF] =
        network_class(n, near_ps + LH_SWITCHES_OF_LEVEL * hop_ps, LH_TIER_FABRIC);
}

bool
lh_network_init(LhNetwork *network, const LhTopology *topology, uint32_t nodes, uint32_t ranks,
                const GArray *faults, GError **error)
{
    LhNetwork n = { .topology = topology, .nodes = nodes, .ranks = ranks, .faults = faults };

    n.hosts_per_node = (uint32_t)lh_topology_hosts(topology);
    n.gpus_per_host = (uint32_t)lh_topology_gpus_per_host(topology);
    if (!lh_network_lay_out(&n, error))
        return false;
    n.gpus_per_node = (uint32_t)topology->gpus_per_node;
    n.nics_per_node = (uint32_t)topology->nics_per_node;
    if (topology->nic_of_gpu != NULL)
        n.nic_of_gpu = (const uint64_t *)(const void *)topology->nic_of_gpu->data;
    if (topology->pcie.bandwidth > 0)
        n.access_first = n.pcie_first;
    else
        n.access_first = topology->scale_up != LH_SCALE_UP_NONE ? 0 : UINT32_MAX;
    /* A larger limit has no effect: the NIC is slower. */
    if (topology->nic.pair_p2p < topology->nic.bandwidth)
        n.pair_p2p_bytes_per_s = topology->nic.pair_p2p;
    if (topology->nic.pair_collective < topology->nic.bandwidth)
        n.pair_collective_bytes_per_s = topology->nic.pair_collective;
    n.protocols_on_links = LH_PROTOCOLS_ON_LINKS;
    for (int tier = 0; tier <= LH_TIER_PCIE; tier++)
        n.sends[tier] = lh_sends_of(topology, (LhTier)tier, MIN(n.ranks, n.gpus_per_node)).share;
    set_classes(&n);
    *network = n;
    return true;
}

/* Ranks of a node are consecutive, so the first member and the last one decide. */
LhSpan
lh_network_span(const LhNetwork *network, const LhGroup *group)
{
    const uint64_t last = group->base + (uint64_t)group->stride * (group->count - 1) +
                          (uint64_t)group->outer_stride * (group->outer_count - 1);

    return group->base / network->gpus_per_node == last / network->gpus_per_node ? LH_SPAN_NODE
                                                                                 : LH_SPAN_NODES;
}

uint32_t
lh_network_nests(const LhNetwork *network, uint32_t sizes[LH_NESTS_MAX])
{
    if (network->topology->scale_up != LH_SCALE_UP_PAIRS)
        return 0;
    sizes[0] = 2;
    return 1;
}

/* By default GPUs share NICs in consecutive groups, as even as the numbers allow. */
static inline uint32_t
nic_of(const LhNetwork *n, uint32_t node, uint32_t gpu)
{
    return node * n->nics_per_node + (n->nic_of_gpu != NULL
                                          ? (uint32_t)n->nic_of_gpu[gpu]
                                          : gpu * n->nics_per_node / n->gpus_per_node);
}

uint32_t
lh_network_nic(const LhNetwork *network, uint32_t rank)
{
    return nic_of(network, rank / network->gpus_per_node, rank % network->gpus_per_node);
}

uint32_t
lh_network_gpu_at_nic(const LhNetwork *network, uint32_t nic)
{
    uint32_t gpu = 0;

    if (network->nic_of_gpu == NULL)
        return (nic * network->gpus_per_node + network->nics_per_node - 1) / network->nics_per_node;
    while (network->nic_of_gpu[gpu] != nic)
        gpu++;
    return gpu;
}

/* For links that belong to no single host. */
#define NO_HOST UINT32_MAX

/* The worst fault that applies; @part: as in LhLinkFault. */
static double
fault_factor(const GArray *faults, LhTier tier, uint32_t node, uint32_t part)
{
    double factor = 1;

    for (guint i = 0; faults != NULL && i < faults->len; i++) {
        const LhLinkFault *fault = &g_array_index(faults, LhLinkFault, i);

        const bool of_part = tier == LH_TIER_FABRIC
                                 ? lh_link_fault_level(fault) == part
                                 : fault->part == LH_FAULT_OF_ALL || fault->part == part;

        if (fault->tier == (int)tier && fault->node == node && of_part)
            factor = MIN(factor, fault->factor);
    }
    return factor;
}

/* Bandwidth of each NIC of @node without faults. */
static double
nic_bandwidth(const LhTopology *t, uint32_t node)
{
    for (guint i = 0; t->slower_nodes != NULL && i < t->slower_nodes->len; i++) {
        const LhSlowerNode *row = &g_array_index(t->slower_nodes, LhSlowerNode, i);

        if (row->node == node)
            return fmin(row->bandwidth, t->nic.bandwidth);
    }
    return t->nic.bandwidth;
}

static LhLink
collective_link(const LhNetwork *n, uint32_t id)
{
    const uint32_t node = (id - n->collective_first) / 2;
    const uint32_t part = n->hosts_per_node == 1 ? 0 : NO_HOST;

    return (LhLink){
        .bandwidth_bytes_per_s =
            n->topology->collective_bandwidth * fault_factor(n->faults, LH_TIER_NIC, node, part),
        .tier = LH_TIER_NIC,
        .node = node,
        .index = n->nics_per_node,
        .up = ((id - n->collective_first) & 1) == 0,
    };
}

static LhLink
trunk_link(const LhNetwork *n, uint32_t id)
{
    uint32_t level = 0;
    LhLink link;

    while (level + 1 < n->trunk_levels && id >= n->trunks[level + 1].first)
        level++;
    link = (LhLink){
        .bandwidth_bytes_per_s = lh_fabric_trunk(n->topology, level),
        .tier = LH_TIER_FABRIC,
        .node = (id - n->trunks[level].first) / 2,
        .index = level,
        .up = ((id - n->trunks[level].first) & 1) == 0,
    };
    link.bandwidth_bytes_per_s *= fault_factor(n->faults, LH_TIER_FABRIC, link.node, level);
    return link;
}

LhLink
lh_network_link(const LhNetwork *network, uint32_t id)
{
    const LhTopology *t = network->topology;
    const struct {
        uint32_t first;
        uint32_t per_node;
        double bandwidth;
    } tiers[LH_TIER_FABRIC] = {
        [LH_TIER_NVLINK] = { 0, network->gpus_per_node, t->nvlink.bandwidth },
        [LH_TIER_PCIE] = { network->pcie_first, network->gpus_per_node, t->pcie.bandwidth },
        [LH_TIER_NIC] = { network->nic_first, network->nics_per_node, t->nic.bandwidth },
    };
    unsigned tier = LH_TIER_NIC;
    uint32_t place;
    LhLink link;

    g_assert(id < network->links_count);
    if (id >= network->collective_first)
        return collective_link(network, id);
    if (id >= network->fabric_first)
        return trunk_link(network, id);
    if (id >= network->tree.first && id < network->nic_first) {
        link = lh_pcie_link(network, id);
        link.bandwidth_bytes_per_s *= fault_factor(network->faults, LH_TIER_PCIE, link.node, 0);
        return link;
    }
    while (id < tiers[tier].first)
        tier--;
    place = (id - tiers[tier].first) / 2;
    link = (LhLink){
        .bandwidth_bytes_per_s = tiers[tier].bandwidth,
        .tier = (uint8_t)tier,
        .node = place / tiers[tier].per_node,
        .index = place % tiers[tier].per_node,
        .up = ((id - tiers[tier].first) & 1) == 0,
    };
    if (tier == LH_TIER_NIC)
        link.bandwidth_bytes_per_s = nic_bandwidth(t, link.node);
    link.bandwidth_bytes_per_s *=
        fault_factor(network->faults, (LhTier)tier, link.node,
                     link.index * network->hosts_per_node / tiers[tier].per_node);
    return link;
}

char *
lh_network_link_name(const LhNetwork *network, uint32_t id)
{
    const LhLink link = lh_network_link(network, id);
    const char *direction = link.up ? "up" : "down";

    if (link.tier == LH_TIER_FABRIC && link.index > 0)
        return g_strdup_printf("%s %s, group %u of %u nodes", lh_tier_names[link.tier], direction,
                               link.node, network->trunks[link.index].nodes);
    if (link.tier == LH_TIER_FABRIC)
        return g_strdup_printf("%s %s, leaf %u", lh_tier_names[link.tier], direction, link.node);
    if (id >= network->collective_first)
        return g_strdup_printf("%s %s, node %u, collectives", lh_tier_names[link.tier], direction,
                               link.node);
    if (id >= network->tree.first && id < network->nic_first)
        return lh_pcie_link_name(network, id);
    return g_strdup_printf("%s %s, node %u, index %u", lh_tier_names[link.tier], direction,
                           link.node, link.index);
}

static inline uint32_t
up(uint32_t first, uint32_t place)
{
    return first + 2 * place;
}

static inline uint32_t
down(uint32_t first, uint32_t place)
{
    return first + 2 * place + 1;
}

static inline void
set_class(LhRoute *route, const LhRouteClass *class)
{
    route->latency_ps = class->latency_ps;
    route->tier = class->tier;
}

/* Whether two GPUs of a node reach each other over the scale-up link. Pairs are GPUs 2i and 2i+1.
 * Nodes with pairs have an even number of GPUs, so rank numbers suffice. */
static inline bool
has_nvlink(const LhNetwork *n, uint32_t src, uint32_t dst)
{
    return n->topology->scale_up == LH_SCALE_UP_SWITCH ||
           n->topology->scale_up == LH_SCALE_UP_MEMORY ||
           (n->topology->scale_up == LH_SCALE_UP_PAIRS && (src ^ dst) == 1);
}

/* @directly: never through memory. */
static void
route_within_node(const LhNetwork *n, uint32_t src, uint32_t dst, bool directly, LhRoute *route)
{
    const bool nvlink = has_nvlink(n, src, dst);
    const uint32_t first = nvlink ? 0 : n->pcie_first;

    route->links[0] = up(first, src);
    route->links[1] = down(first, dst);
    route->links_count = 2;
    route->flow_bandwidth_bytes_per_s = 0;
    set_class(route, &n->classes[nvlink ? LH_ROUTE_NVLINK : LH_ROUTE_PCIE]);
    if (!nvlink && !n->tree.is_plain)
        lh_pcie_route(n, directly, route);
}

/* Number of levels of trunks between two nodes: those below the innermost group that contains
 * both. */
static inline uint32_t
levels_between(const LhNetwork *n, uint32_t src_node, uint32_t dst_node)
{
    uint32_t level = 0;

    while (level < n->trunk_levels &&
           src_node / n->trunks[level].nodes != dst_node / n->trunks[level].nodes)
        level++;
    return level;
}

/* Appends trunks; returns the new length of @links. */
static uint32_t
add_trunks(const LhNetwork *n, uint32_t levels, uint32_t src_node, uint32_t dst_node,
           uint32_t *links, uint32_t count)
{
    for (uint32_t i = 0; i < levels; i++)
        links[count++] = up(n->trunks[i].first, src_node / n->trunks[i].nodes);
    for (uint32_t i = levels; i-- > 0;)
        links[count++] = down(n->trunks[i].first, dst_node / n->trunks[i].nodes);
    return count;
}

/* Links of GPUs and NICs, trunks, the link shared by collectives, and one for the limit of a pair.
 * Rails, whose routes cross links of other GPUs, have no trunks. */
G_STATIC_ASSERT(4 + 2 * LH_FABRIC_LEVELS_MAX + 2 < LH_ROUTE_MAX);

static void
route_between_nodes(const LhNetwork *n, uint32_t src, uint32_t dst, uint32_t src_node,
                    uint32_t dst_node, LhRoute *route)
{
    uint32_t src_nic = nic_of(n, src_node, src - src_node * n->gpus_per_node);
    const uint32_t dst_nic = nic_of(n, dst_node, dst - dst_node * n->gpus_per_node);
    const uint32_t dst_rail = dst_nic - dst_node * n->nics_per_node;
    const uint32_t levels = levels_between(n, src_node, dst_node);
    LhRouteKind kind = LH_ROUTE_NETWORK;
    uint32_t sender = src; /* the GPU whose NIC is used */
    uint32_t count = 0;

    if (n->topology->fabric == LH_FABRIC_RAIL &&
        src_nic - src_node * n->nics_per_node != dst_rail) {
        sender = src_node * n->gpus_per_node + (dst - dst_node * n->gpus_per_node);
        src_nic = src_node * n->nics_per_node + dst_rail;
        route->links[count++] = up(0, src);
        route->links[count++] = down(0, sender);
        kind = LH_ROUTE_CROSS_RAIL;
    }
    if (n->access_first != UINT32_MAX)
        route->links[count++] = up(n->access_first, sender);
    route->links[count++] = up(n->nic_first, src_nic);
    if (levels > 0) {
        count = add_trunks(n, levels, src_node, dst_node, route->links, count);
        kind = LH_ROUTE_CROSS_LEAF;
    }
    route->links[count++] = down(n->nic_first, dst_nic);
    if (n->access_first != UINT32_MAX)
        route->links[count++] = down(n->access_first, dst);
    route->links_count = count;
    route->flow_bandwidth_bytes_per_s = n->pair_p2p_bytes_per_s;
    set_class(route, &n->classes[kind]);
    if (levels > 1)
        route->latency_ps += (levels - 1) * n->level_latency_ps;
}

void
lh_network_route(const LhNetwork *network, uint32_t src, uint32_t dst, LhRoute *route)
{
    const uint32_t src_node = src / network->gpus_per_node;
    const uint32_t dst_node = dst / network->gpus_per_node;

    g_assert(src != dst && src < network->ranks && dst < network->ranks);
    route->source = src;
    route->destination = dst;
    route->of_collective = false;
    route->own_bytes_per_s = 0;
    route->own_tiers = 0;
    if (src_node == dst_node)
        route_within_node(network, src, dst, false, route);
    else
        route_between_nodes(network, src, dst, src_node, dst_node, route);
}

/* Kinds of routes between nodes do not differ in this. */
uint16_t
lh_network_ctas(const LhNetwork *network, uint32_t src, uint32_t dst, LhSpan span)
{
    LhRouteKind kind = LH_ROUTE_NETWORK;

    if (src / network->gpus_per_node == dst / network->gpus_per_node)
        kind = has_nvlink(network, src, dst) ? LH_ROUTE_NVLINK : LH_ROUTE_PCIE;
    return network->classes[kind].ctas[span];
}

void
lh_network_collective_route(const LhNetwork *network, uint32_t src, uint32_t dst, LhRoute *route)
{
    const uint32_t src_node = src / network->gpus_per_node;
    const uint32_t dst_node = dst / network->gpus_per_node;

    lh_network_route(network, src, dst, route);
    route->of_collective = true;
    if (src_node == dst_node)
        return;
    route->flow_bandwidth_bytes_per_s = network->pair_collective_bytes_per_s;
    if (network->topology->collective_bandwidth == 0)
        return;
    g_assert(route->links_count + 2 <= LH_ROUTE_MAX);
    route->links[route->links_count++] = up(network->collective_first, src_node);
    route->links[route->links_count++] = down(network->collective_first, dst_node);
}

/* Number of members on the node of @rank. */
static uint32_t
members_on_node(const LhNetwork *n, const LhGroup *group, uint32_t rank)
{
    const uint32_t node = rank / n->gpus_per_node;
    uint32_t count = 0;

    for (uint64_t i = 0; i < lh_group_size(group); i++)
        count += (uint32_t)lh_group_member(group, i) / n->gpus_per_node == node;
    return count;
}

void
lh_network_route_in(const LhNetwork *network, const LhGroup *group, LhRoute *route)
{
    if (!network->topology->tree.rates.p2p_two || route->tier != LH_TIER_PCIE ||
        members_on_node(network, group, route->source) != 2)
        return;
    route_within_node(network, route->source, route->destination, true, route);
}

double
lh_route_limit(const LhRoute *route)
{
    const double pair =
        route->flow_bandwidth_bytes_per_s > 0 ? route->flow_bandwidth_bytes_per_s : INFINITY;

    return route->own_bytes_per_s > 0 ? fmin(pair, route->own_bytes_per_s) : pair;
}

double
lh_network_route_bandwidth(const LhNetwork *network, const LhRoute *route)
{
    double narrowest = lh_route_limit(route);

    for (uint32_t i = 0; i < route->links_count; i++)
        narrowest =
            fmin(narrowest, lh_network_link(network, route->links[i]).bandwidth_bytes_per_s);
    return narrowest;
}
