/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A class of links is measured by two ranks alone (calibrate/calibrate_gpu.c): rank 0 and the first
 * rank that it reaches over such links; for NICs, one of another node.
 */
#include "scenario/profile_links.h"

#include "sim/network/sends.h"

/* Measured over predicted rate of sound links. */
#define SOUND_LEAST 0.9
#define SOUND_MOST 1.1

/* The first rank that rank 0 reaches over links of @tier; 0: none. */
static uint32_t
peer_over_links(const LhNetwork *network, LhTier tier, LhRoute *route)
{
    for (uint32_t r = 1; r < network->ranks; r++) {
        lh_network_route(network, 0, r, route);
        if (MIN(route->tier, LH_TIER_NIC) == tier)
            return r;
    }
    return 0;
}

/* Rate that @topology predicts for messages between two ranks alone over links of @tier; the link's
 * own bandwidth if no two ranks are connected by such links. */
static double
predicted_rate(const LhTopology *topology, LhTier tier, const LhLinkClass *link)
{
    const uint32_t nodes = topology->nics_per_node > 0 && topology->max_nodes != 1 ? 2 : 1;
    LhNetwork network;
    LhRoute route;

    if (!lh_network_init(&network, topology, nodes, nodes * (uint32_t)topology->gpus_per_node, NULL,
                         NULL) ||
        peer_over_links(&network, tier, &route) == 0)
        return link->bandwidth;
    return lh_network_route_bandwidth(&network, &route) *
           (tier < LH_TIER_NIC ? lh_sends_of(topology, tier, 2).share : 1);
}

static void
change_rate(double *bytes_per_s, double measured, double predicted)
{
    *bytes_per_s = *bytes_per_s == predicted ? measured : *bytes_per_s * (measured / predicted);
}

static void
change_class(LhLinkClass *link, const LhLinkClass *measured, double predicted)
{
    const double rate = measured->bandwidth;
    LhLinkClass changed = *measured;

    changed.bandwidth = link->bandwidth;
    changed.pair_p2p = link->pair_p2p;
    changed.pair_collective = link->pair_collective;
    change_rate(&changed.bandwidth, rate, predicted);
    change_rate(&changed.pair_p2p, rate, predicted);
    change_rate(&changed.pair_collective, rate, predicted);
    changed.from.source = g_strdup(measured->from.source);
    changed.latency_provenance = changed.ctas_provenance = changed.from.provenance;
    g_free(link->from.source);
    *link = changed;
}

void
lh_profile_apply_links(const LhProfile *p, LhTopology *t)
{
    const struct {
        const char *name;
        const LhLinkClass *measured;
        LhLinkClass *link;
    } classes[] = { [LH_TIER_NVLINK] = { "nvlink", &p->nvlink, &t->nvlink },
                    [LH_TIER_PCIE] = { "pcie", &p->pcie, &t->pcie },
                    [LH_TIER_NIC] = { "nic", &p->nic, &t->nic } };
    double predicted[G_N_ELEMENTS(classes)];

    for (gsize i = 0; i < G_N_ELEMENTS(classes); i++)
        predicted[i] = predicted_rate(t, (LhTier)i, classes[i].link);
    for (gsize i = 0; i < G_N_ELEMENTS(classes); i++) {
        if (!lh_json_has(p->json, classes[i].name))
            continue;
        t->found[i] = classes[i].measured->bandwidth / predicted[i];
        change_class(classes[i].link, classes[i].measured, predicted[i]);
    }
    if (t->found[LH_TIER_PCIE] > 0)
        lh_pcie_scale_rates(&t->tree.rates, t->found[LH_TIER_PCIE]);
    if (t->found[LH_TIER_NIC] > 0) {
        t->collective_bandwidth *= t->found[LH_TIER_NIC];
        t->nic_overhead_ps = 0; /* the measured latency includes it */
    }
}

GPtrArray *
lh_profile_link_notes(const LhTopology *t)
{
    GPtrArray *notes = g_ptr_array_new_with_free_func(g_free);

    for (int tier = 0; tier <= LH_TIER_NIC; tier++) {
        if (t->found[tier] == 0 || (t->found[tier] >= SOUND_LEAST && t->found[tier] <= SOUND_MOST))
            continue;
        g_ptr_array_add(notes,
                        g_strdup_printf("messages over %s reached %.2f times the rate that the "
                                        "file of %s predicts, according to the profile: its links "
                                        "and the times of its collectives are scaled by this",
                                        lh_topology_link_name(t, (LhTier)tier), t->found[tier],
                                        t->name));
    }
    return notes;
}
