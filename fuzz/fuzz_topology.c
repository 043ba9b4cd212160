/* SPDX-License-Identifier: Apache-2.0 */
/* Topology files. An accepted one has a route between any two ranks and can be simulated. */
#include "fuzz.h"

#define RANKS_TRIED 9

static void
check_route(const LhNetwork *network, uint32_t src, uint32_t dst)
{
    LhRoute route;

    lh_network_route(network, src, dst, &route);
    g_assert(route.links_count >= 1 && route.links_count <= LH_ROUTE_MAX);
    g_assert(route.latency_ps >= 0 && route.tier < LH_TIERS);
    for (uint32_t i = 0; i < route.links_count; i++) {
        LhLink link;
        g_autofree char *name = NULL;

        g_assert(route.links[i] < network->links_count);
        link = lh_network_link(network, route.links[i]);
        name = lh_network_link_name(network, route.links[i]);
        g_assert(link.bandwidth_bytes_per_s > 0);
        g_assert(link.tier <= route.tier);
        g_assert(g_utf8_validate(name, -1, NULL));
    }
}

static void
check_network(const LhTopology *topology, uint32_t nodes)
{
    const uint64_t gpus = nodes * topology->gpus_per_node;
    const uint32_t ranks = (uint32_t)MIN(gpus, UINT32_C(1) << 20);
    const uint32_t stride = MAX(ranks / RANKS_TRIED, 1);
    g_autoptr(GError) error = NULL;
    LhNetwork network;
    bool ok = lh_network_init(&network, topology, nodes, ranks, NULL, &error);

    fuzz_check(ok, error, NULL);
    for (uint32_t src = 0; ok && src < ranks; src += stride) {
        for (uint32_t dst = 0; dst < ranks; dst += stride) {
            if (src != dst)
                check_route(&network, src, dst);
        }
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t nodes[] = { 1, 2, 3, 64, 65535 };
    g_autoptr(GError) error = NULL;
    g_autoptr(LhTopology) topology = lh_topology_parse(FUZZ_NAME, (const char *)data, size, &error);
    g_autoptr(LhDevice) device = NULL;

    fuzz_check_file(topology != NULL, error);
    if (topology == NULL)
        return 0;
    g_assert(topology->sha256 != NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(nodes); i++)
        check_network(topology, nodes[i]);
    device = fuzz_device();
    fuzz_play_ring(topology, device);
    return 0;
}
