/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layout of the links of a network. Checks that the ranks fit and that faults name existing links.
 */
#include "sim/network/network_private.h"

#include "base/error.h"
#include "sim/network/fabric.h"
#include "sim/network/pcie_links.h"

static bool fail(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

static bool
fail(GError **error, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (error != NULL)
        *error = g_error_new_valist(LH_ERROR, LH_ERROR_INPUT, format, args);
    va_end(args);
    return false;
}

static bool
check_size(const LhTopology *t, uint32_t nodes, uint32_t ranks, GError **error)
{
    const uint64_t gpus = (uint64_t)nodes * t->gpus_per_node;

    if (nodes == 0 || ranks == 0)
        return fail(error, "topology %s: a network needs at least one node and one rank", t->name);
    if (t->max_nodes != 0 && nodes > t->max_nodes)
        return fail(error, "topology %s: %u nodes; allowed: at most %" G_GUINT64_FORMAT, t->name,
                    nodes, t->max_nodes);
    if (nodes > 1 && t->nics_per_node == 0)
        return fail(error, "topology %s: %u nodes, but a node has no NIC", t->name, nodes);
    if (ranks > gpus)
        return fail(error,
                    "topology %s: %u ranks do not fit on %u nodes of %" G_GUINT64_FORMAT " GPUs",
                    t->name, ranks, nodes, t->gpus_per_node);
    return true;
}

/* Number of groups of nodes with a trunk at a level. */
static uint64_t
trunks_at(const LhTopology *t, uint64_t nodes, uint32_t level)
{
    const uint64_t group =
        level < lh_fabric_levels_count(t) ? lh_fabric_level(t, level).nodes : nodes;

    g_assert(group > 0);
    return nodes <= group ? 0 : (nodes + group - 1) / group;
}

static uint64_t
all_trunks(const LhTopology *t, uint64_t nodes)
{
    uint64_t count = 0;

    for (uint32_t level = 0; level < LH_FABRIC_LEVELS_MAX; level++)
        count += trunks_at(t, nodes, level);
    return count;
}

/* Number of places with links of `tier`: GPUs, NICs or groups of nodes of the cluster. */
static uint64_t
places(const LhTopology *t, uint64_t nodes, LhTier tier)
{
    switch (tier) {
    case LH_TIER_NVLINK:
        return t->scale_up == LH_SCALE_UP_NONE ? 0 : nodes * t->gpus_per_node;
    case LH_TIER_PCIE:
        return t->pcie.bandwidth == 0 ? 0 : nodes * t->gpus_per_node;
    case LH_TIER_NIC:
        return nodes * t->nics_per_node;
    case LH_TIER_FABRIC:
        return all_trunks(t, nodes);
    case LH_TIERS:
        break;
    }
    g_assert_not_reached();
}

static void
lay_out_trunks(LhNetwork *n)
{
    const LhTopology *t = n->topology;
    uint32_t first = n->fabric_first;

    for (uint32_t level = 0; trunks_at(t, n->nodes, level) > 0; level++) {
        n->trunks[level] = (LhTrunks){ first, (uint32_t)lh_fabric_level(t, level).nodes };
        first += 2 * (uint32_t)trunks_at(t, n->nodes, level);
        n->trunk_levels = level + 1;
    }
    n->level_latency_ps = LH_SWITCHES_OF_LEVEL * t->switch_latency_ps;
}

static bool
lay_out(LhNetwork *n, GError **error)
{
    const LhTopology *t = n->topology;
    uint64_t first[LH_TIERS + 1] = { 0 }, links;

    lh_pcie_links_init(&n->tree, t);
    for (unsigned tier = 0; tier < LH_TIERS; tier++) {
        first[tier + 1] = first[tier] + 2 * places(t, n->nodes, (LhTier)tier);
        if (tier == LH_TIER_PCIE)
            first[tier + 1] += (uint64_t)n->nodes * n->tree.per_node;
    }
    links = first[LH_TIERS] + (t->collective_bandwidth > 0 ? 2 * (uint64_t)n->nodes : 0);
    if (links > G_MAXINT32)
        return fail(error,
                    "topology %s: %u nodes have %" G_GUINT64_FORMAT " links; allowed: up to %d",
                    t->name, n->nodes, links, G_MAXINT32);
    n->pcie_first = (uint32_t)first[LH_TIER_PCIE];
    n->nic_first = (uint32_t)first[LH_TIER_NIC];
    n->tree.first = n->nic_first - n->nodes * n->tree.per_node;
    n->fabric_first = (uint32_t)first[LH_TIER_FABRIC];
    n->collective_first = (uint32_t)first[LH_TIERS];
    n->links_count = (uint32_t)links;
    lay_out_trunks(n);
    return true;
}

static bool
check_part(const LhNetwork *n, const LhLinkFault *fault, GError **error)
{
    const bool fabric = fault->tier == LH_TIER_FABRIC;

    if (fault->part == LH_FAULT_OF_ALL ||
        fault->part < (fabric ? n->trunk_levels : n->hosts_per_node))
        return true;
    return fabric ? fail(error,
                         "link fault: level %" G_GUINT64_FORMAT
                         " of the fabric; allowed: 0 to %u, the levels with trunks among %u nodes",
                         fault->part, n->trunk_levels - 1, n->nodes)
                  : fail(error,
                         "link fault: host %" G_GUINT64_FORMAT
                         " of a node; allowed: 0 to %u, since a node of %s has %u",
                         fault->part, n->hosts_per_node - 1, n->topology->name, n->hosts_per_node);
}

static bool
check_fault(const LhNetwork *n, const LhLinkFault *fault, GError **error)
{
    const LhTopology *t = n->topology;
    uint64_t limit = n->nodes;

    if (fault->tier < 0 || fault->tier >= LH_TIERS)
        return fail(error, "link fault: unknown tier %d", fault->tier);
    if (places(t, n->nodes, (LhTier)fault->tier) == 0)
        return fail(error, "link fault: topology %s with %u nodes has no %s links", t->name,
                    n->nodes, lh_tier_names[fault->tier]);
    if (!check_part(n, fault, error))
        return false;
    if (fault->tier == LH_TIER_FABRIC)
        limit = trunks_at(t, n->nodes, lh_link_fault_level(fault));
    if (fault->node >= limit)
        return fail(error, "link fault: %s %" G_GUINT64_FORMAT "; allowed: 0 to %" G_GUINT64_FORMAT,
                    fault->tier != LH_TIER_FABRIC     ? "node"
                    : lh_link_fault_level(fault) == 0 ? "leaf"
                                                      : "group",
                    fault->node, limit - 1);
    if (!(fault->factor >= 0 && fault->factor <= 1))
        return fail(error, "link fault: factor %g; allowed: 0 to 1", fault->factor);
    return true;
}

static bool
check_faults(const LhNetwork *n, GError **error)
{
    for (guint i = 0; n->faults != NULL && i < n->faults->len; i++) {
        if (!check_fault(n, &g_array_index(n->faults, LhLinkFault, i), error))
            return false;
    }
    return true;
}

bool
lh_network_lay_out(LhNetwork *network, GError **error)
{
    return check_size(network->topology, network->nodes, network->ranks, error) &&
           lay_out(network, error) && check_faults(network, error);
}
