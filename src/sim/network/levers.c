/* SPDX-License-Identifier: Apache-2.0 */
/* Table of levers: one row each. */
#include "sim/network/levers.h"

#include <math.h>

#define LEVER(name, what, of_tier, member)                                                         \
    {                                                                                              \
        .path = (name), .kind = (what), .tier = (of_tier), .offset = offsetof(LhTopology, member)  \
    }

/* The levers of a level of a PCIe tree. */
#define TREE_LEVEL(level)                                                                          \
    LEVER("node.pcie.levels[" #level "].up", LH_LEVER_RATE, LH_TIER_PCIE, tree.rates.up[level]),   \
        LEVER("node.pcie.levels[" #level "].latency", LH_LEVER_LATENCY, LH_TIER_PCIE,              \
              tree.rates.latency_ps[level])

/* Oversubscription of a level of the fabric. That of the first level scales all trunks
 * proportionally. */
#define FABRIC_LEVEL(name, of_tier, member)                                                        \
    {                                                                                              \
        .path = (name), .kind = LH_LEVER_SHARE, .tier = (of_tier), .of_levels = true,              \
        .offset = offsetof(LhTopology, member)                                                     \
    }

/* Each level has its own rows. */
G_STATIC_ASSERT(LH_PCIE_LEVELS_MAX == 4 && LH_FABRIC_LEVELS_MAX == 4);

const LhLever lh_levers[] = {
    LEVER("node.scale_up.bandwidth", LH_LEVER_RATE, LH_TIER_NVLINK, nvlink.bandwidth),
    LEVER("node.scale_up.latency", LH_LEVER_LATENCY, LH_TIER_NVLINK, nvlink.latency_ps),
    LEVER("node.pcie.bandwidth", LH_LEVER_RATE, LH_TIER_PCIE, pcie.bandwidth),
    LEVER("node.pcie.latency", LH_LEVER_LATENCY, LH_TIER_PCIE, pcie.latency_ps),
    TREE_LEVEL(0),
    TREE_LEVEL(1),
    TREE_LEVEL(2),
    TREE_LEVEL(3),
    LEVER("node.pcie.host.per_gpu", LH_LEVER_RATE, LH_TIER_PCIE, tree.rates.per_gpu),
    LEVER("node.pcie.host.bandwidth", LH_LEVER_RATE, LH_TIER_PCIE, tree.rates.memory),
    LEVER("node.nics.bandwidth", LH_LEVER_RATE, LH_TIER_NIC, nic.bandwidth),
    LEVER("node.nics.pair_p2p", LH_LEVER_RATE, LH_TIER_NIC, nic.pair_p2p),
    LEVER("node.nics.pair_collective", LH_LEVER_RATE, LH_TIER_NIC, nic.pair_collective),
    LEVER("node.nics.latency", LH_LEVER_LATENCY, LH_TIER_NIC, nic.latency_ps),
    LEVER("node.nics.overhead", LH_LEVER_LATENCY, LH_TIER_NIC, nic_overhead_ps),
    LEVER("node.collectives.bandwidth", LH_LEVER_RATE, LH_LEVER_NO_TIER, collective_bandwidth),
    LEVER("fabric.oversubscription", LH_LEVER_SHARE, LH_TIER_FABRIC, oversubscription),
    FABRIC_LEVEL("fabric.levels[0].oversubscription", LH_TIER_FABRIC, oversubscription),
    FABRIC_LEVEL("fabric.levels[1].oversubscription", LH_LEVER_NO_TIER, above[0].oversubscription),
    FABRIC_LEVEL("fabric.levels[2].oversubscription", LH_LEVER_NO_TIER, above[1].oversubscription),
    FABRIC_LEVEL("fabric.levels[3].oversubscription", LH_LEVER_NO_TIER, above[2].oversubscription),
    LEVER("fabric.switch_latency", LH_LEVER_LATENCY, LH_TIER_FABRIC, switch_latency_ps),
    { .path = NULL },
};

/* Whether such links exist: a file may state a class that nothing crosses. */
static bool
has_links(const LhTopology *t, const LhLever *lever)
{
    if (lever->tier == LH_TIER_NVLINK)
        return t->scale_up != LH_SCALE_UP_NONE;
    if (lever->tier == LH_TIER_PCIE)
        return t->pcie.bandwidth > 0;
    if (lever->kind == LH_LEVER_SHARE)
        return t->fabric == LH_FABRIC_FAT_TREE && (t->fabric_levels != NULL) == lever->of_levels;
    return t->nics_per_node > 0;
}

static void *
lever_place(LhTopology *t, const LhLever *lever)
{
    return (char *)t + lever->offset;
}

GPtrArray *
lh_topology_levers(const LhTopology *topology)
{
    GPtrArray *there = g_ptr_array_new();

    for (const LhLever *lever = lh_levers; lever->path != NULL; lever++) {
        if (has_links(topology, lever) && lh_lever_value(topology, lever) > 0)
            g_ptr_array_add(there, (gpointer)lever);
    }
    return there;
}

double
lh_lever_value(const LhTopology *topology, const LhLever *lever)
{
    const char *place = (const char *)topology + lever->offset;

    return lever->kind == LH_LEVER_LATENCY
               ? (double)*(const LhTime *)(const void *)place / (double)LH_PS_PER_S
               : *(const double *)(const void *)place;
}

void
lh_lever_scale(LhTopology *topology, const LhLever *lever, double factor)
{
    void *place = lever_place(topology, lever);
    LhTime *time_ps = place;
    double *value = place;

    if (lever->kind == LH_LEVER_LATENCY)
        *time_ps = lh_time_from_ps((double)*time_ps / factor);
    else if (lever->kind == LH_LEVER_RATE)
        *value = round(*value * factor);
    else
        *value /= factor;
}

void
lh_levers_scale(LhTopology *topology, LhLeverKind kind, unsigned tiers, double factor)
{
    g_autoptr(GPtrArray) levers = lh_topology_levers(topology);

    for (guint i = 0; i < levers->len; i++) {
        const LhLever *lever = g_ptr_array_index(levers, i);

        if (lever->kind == kind && tiers >> lever->tier & 1u)
            lh_lever_scale(topology, lever, factor);
    }
}
