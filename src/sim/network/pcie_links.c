/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message crosses the uplinks of the groups that contain only its source, and the downlinks of
 * those that contain only its destination. Through memory it also crosses the links of both GPUs to
 * memory, and once the memory itself, that of its source.
 */
#include "sim/network/pcie_links.h"

/* Links up and down at both ends of a message: of GPUs, of levels, to memory, and one memory. */
G_STATIC_ASSERT(2 + 2 * LH_PCIE_LEVELS_MAX + 2 + 1 < LH_ROUTE_MAX);

void
lh_pcie_links_init(LhPcieLinks *links, const LhTopology *topology)
{
    const LhPcieTree *tree = &topology->tree;
    const uint32_t gpus = (uint32_t)topology->gpus_per_node, levels = lh_pcie_levels_count(tree);
    uint32_t next = 0;
    bool has_latency = false;

    *links =
        (LhPcieLinks){ .memory_gpus =
                           tree->rates.memory_gpus > 0 ? (uint32_t)tree->rates.memory_gpus : gpus };
    for (uint32_t i = 0; i <= LH_PCIE_LEVELS_MAX; i++) {
        links->levels[i] = next;
        if (i < levels && tree->rates.up[i] > 0)
            next += 2 * lh_pcie_groups_count(tree, i, gpus);
        has_latency |= i < levels && tree->rates.latency_ps[i] > 0;
    }
    if (tree->rates.per_gpu > 0)
        next += 2 * gpus;
    links->memories = next;
    if (tree->rates.memory > 0)
        next += gpus / links->memory_gpus;
    links->per_node = next;
    links->is_plain = next == 0 && !has_latency;
}

/* The level of link @place of a node's tree; LH_PCIE_LEVELS_MAX: memory. */
static uint32_t
level_of(const LhPcieLinks *links, uint32_t place)
{
    uint32_t level = LH_PCIE_LEVELS_MAX;

    while (place < links->levels[level])
        level--;
    return level;
}

LhLink
lh_pcie_link(const LhNetwork *network, uint32_t id)
{
    const LhPcieLinks *links = &network->tree;
    const LhPcieRates *rates = &network->topology->tree.rates;
    const uint32_t place = (id - links->first) % links->per_node;
    const uint32_t level = level_of(links, place);
    const bool is_memory = place >= links->memories;

    return (LhLink){
        .bandwidth_bytes_per_s = is_memory                     ? rates->memory
                                 : level == LH_PCIE_LEVELS_MAX ? rates->per_gpu
                                                               : rates->up[level],
        .tier = LH_TIER_PCIE,
        .node = (id - links->first) / links->per_node,
        .index = network->gpus_per_node +
                 (is_memory ? place - links->memories / 2
                            : place / 2), /* both directions have the same index */
        .up = is_memory || ((place - links->levels[level]) & 1) == 0,
    };
}

char *
lh_pcie_link_name(const LhNetwork *network, uint32_t id)
{
    const LhPcieLinks *links = &network->tree;
    const LhLink link = lh_pcie_link(network, id);
    const uint32_t place = (id - links->first) % links->per_node;
    const uint32_t level = level_of(links, place);
    const char *direction = link.up ? "up" : "down";

    if (place >= links->memories && links->per_node - links->memories == 1)
        return g_strdup_printf("memory, node %u", link.node);
    if (place >= links->memories)
        return g_strdup_printf("memory %u, node %u", place - links->memories, link.node);
    if (level == LH_PCIE_LEVELS_MAX)
        return g_strdup_printf("memory %s, node %u, index %u", direction, link.node,
                               (place - links->levels[level]) / 2);
    return g_strdup_printf("%s %u %s, node %u", network->topology->tree.rates.names[level],
                           (place - links->levels[level]) / 2, direction, link.node);
}

void
lh_pcie_route(const LhNetwork *network, bool directly, LhRoute *route)
{
    const LhPcieTree *tree = &network->topology->tree;
    const LhPcieLinks *at = &network->tree;
    const uint32_t node = route->source / network->gpus_per_node;
    const uint32_t from = route->source % network->gpus_per_node;
    const uint32_t to = route->destination % network->gpus_per_node;
    const uint32_t first = at->first + node * at->per_node;
    const uint32_t common = lh_pcie_common_level(tree, from, to);
    const uint32_t last = route->links[1]; /* the receiver's own link */
    uint32_t *links = route->links;
    uint32_t count = 1;

    for (uint32_t i = 0; i < common; i++) {
        route->latency_ps += tree->rates.latency_ps[i];
        if (tree->rates.up[i] == 0)
            continue;
        links[count++] = first + at->levels[i] + 2 * lh_pcie_group(tree, i, from);
        links[count++] = first + at->levels[i] + 2 * lh_pcie_group(tree, i, to) + 1;
    }
    if (!directly && lh_pcie_is_through_memory(&tree->rates, common)) {
        if (tree->rates.per_gpu > 0) {
            links[count++] = first + at->levels[LH_PCIE_LEVELS_MAX] + 2 * from;
            links[count++] = first + at->levels[LH_PCIE_LEVELS_MAX] + 2 * to + 1;
        }
        if (tree->rates.memory > 0)
            links[count++] = first + at->memories + from / at->memory_gpus;
    }
    links[count++] = last;
    route->links_count = count;
}
