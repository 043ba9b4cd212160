/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topology files: every shipped one, and broken ones; links and routes, by hand and by invariants
 * of all.
 */
#include "data_files.h"
#include "share.h"
#include "sim/cost/device.h"
#include "sim/network/collectives/measured.h"
#include "sim/network/network.h"
#include "sim/network/network_private.h"
#include "sim/network/topology_change.h"
#include "sim/network/topology_schema.h"

#include <glib/gstdio.h>

START_TEST(topology_files_are_valid)
{
    g_auto(GStrv) names = lh_data_list("topologies");

    ck_assert_uint_ge(g_strv_length(names), 12);
    for (char **name = names; *name != NULL; name++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(LhTopology) topology = lh_topology_load(*name, &error);
        g_autoptr(LhDevice) device = NULL;
        g_autofree char *path = lh_data_find("topologies", *name, NULL);

        ck_assert_msg(topology != NULL, "%s", error != NULL ? error->message : *name);
        ck_assert_str_eq(topology->name, *name);
        ck_assert_ptr_nonnull(topology->description);
        ck_assert_uint_eq(strlen(topology->sha256), 64);
        device = lh_device_load(topology->device_name, &error);
        ck_assert_msg(device != NULL, "%s", error != NULL ? error->message : *name);
        check_round_trip(path, lh_topology_fields, sizeof(LhTopology));
    }
}
END_TEST

/* --- routes by hand ----------------------------------------------------------------------------
 */

#define LINK(latency, ctas)                                                                        \
    "\"latency\": \"" latency "\", \"ctas\": " ctas                                                \
    ", \"provenance\": \"assumed\", \"source\": \"s\"}"
#define NVSWITCH                                                                                   \
    "\"scale_up\": {\"kind\": \"nvswitch\", \"bandwidth\": \"200GB/s\", " LINK("2us", "16")
#define PAIRS "\"scale_up\": {\"kind\": \"pairs\", \"bandwidth\": \"200GB/s\", " LINK("2us", "16")
#define NONE "\"scale_up\": {\"kind\": \"none\"}"
#define PCIE ", \"pcie\": {\"bandwidth\": \"24GB/s\", " LINK("1us", "4")
#define NICS(count)                                                                                \
    ", \"nics\": {\"count\": " count ", \"bandwidth\": \"10GB/s\", " LINK("5us", "2")
#define TOPOLOGY(gpus, node, rest)                                                                 \
    "{\"schema\": \"longhaul.topology/1\", \"name\": \"t\", \"source\": \"s\",\n"                  \
    " \"device\": \"a100-sxm-80g\",\n"                                                             \
    " \"node\": {\"gpus\": " gpus ", " node "}" rest "}\n"
#define RAIL ",\n \"fabric\": {\"kind\": \"rail\", \"switch_latency\": \"500ns\"}"
#define TREE                                                                                       \
    ",\n \"fabric\": {\"kind\": \"fat-tree\", \"nodes_per_leaf\": 2, \"oversubscription\": 2.5, "  \
    "\"switch_latency\": \"500ns\"}"

static LhTopology *
parse(const char *text, GError **error)
{
    return lh_topology_parse("dir/t.json", text, strlen(text), error);
}

/* The communicator of all ranks. */
static LhGroup
everyone(const LhNetwork *network)
{
    return (LhGroup){ .stride = 1, .count = network->ranks, .outer_count = 1 };
}

/* Formats e.g. "nvlink up 0.1, nic up 0.0, ...: 5 us nic 2": each link with its node and index,
 * and the SMs held by messages of the communicator of all ranks. Caller frees. */
static char *
describe_route(const LhNetwork *network, uint32_t src, uint32_t dst)
{
    GString *text = g_string_new(NULL);
    g_autofree char *latency = NULL;
    const LhGroup all = everyone(network);
    LhRoute route;

    lh_network_route(network, src, dst, &route);
    for (uint32_t i = 0; i < route.links_count; i++) {
        const LhLink link = lh_network_link(network, route.links[i]);

        g_string_append_printf(text, "%s%s %s %u.%u", i == 0 ? "" : ", ", lh_tier_names[link.tier],
                               link.up ? "up" : "down", link.node, link.index);
    }
    latency = lh_format_time(route.latency_ps);
    g_string_append_printf(
        text, ": %s %s %u", latency, lh_tier_names[route.tier],
        lh_network_ctas(network, route.source, route.destination, lh_network_span(network, &all)));
    return g_string_free(text, FALSE);
}

typedef struct {
    uint32_t src;
    uint32_t dst;
    const char *route;
} ExpectedRoute;

static void
check_routes(const char *text, uint32_t nodes, const ExpectedRoute *expected, gsize count)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhTopology) topology = parse(text, &error);
    LhNetwork network;

    ck_assert_msg(topology != NULL, "%s", error != NULL ? error->message : text);
    ck_assert(lh_network_init(&network, topology, nodes, nodes * (uint32_t)topology->gpus_per_node,
                              NULL, NULL));
    for (gsize i = 0; i < count; i++) {
        g_autofree char *found = describe_route(&network, expected[i].src, expected[i].dst);

        ck_assert_str_eq(found, expected[i].route);
    }
}

#define CHECK_ROUTES(text, nodes, ...)                                                             \
    do {                                                                                           \
        static const ExpectedRoute expected[] = { __VA_ARGS__ };                                   \
                                                                                                   \
        check_routes(text, nodes, expected, G_N_ELEMENTS(expected));                               \
    } while (0)

START_TEST(topology_routes_over_nvswitch)
{
    CHECK_ROUTES(TOPOLOGY("4", NVSWITCH PCIE NICS("2"), ""), 1,
                 { 0, 3, "nvlink up 0.0, nvlink down 0.3: 2 us nvlink 16" },
                 { 3, 0, "nvlink up 0.3, nvlink down 0.0: 2 us nvlink 16" });
    /* Across nodes the whole communicator uses the network's channels. */
    CHECK_ROUTES(TOPOLOGY("4", NVSWITCH PCIE NICS("2"), ""), 3,
                 { 4, 5, "nvlink up 1.0, nvlink down 1.1: 2 us nvlink 2" },
                 { 1, 6, "pcie up 0.1, nic up 0.0, nic down 1.1, pcie down 1.2: 6 us nic 2" },
                 { 11, 0, "pcie up 2.3, nic up 2.1, nic down 0.0, pcie down 0.0: 6 us nic 2" });
    CHECK_ROUTES(TOPOLOGY("8", NVSWITCH NICS("1"), ""), 2,
                 { 7, 8, "nvlink up 0.7, nic up 0.0, nic down 1.0, nvlink down 1.0: 7 us nic 2" });
    CHECK_ROUTES(TOPOLOGY("3", NVSWITCH NICS("3"), ""), 2,
                 { 2, 4, "nvlink up 0.2, nic up 0.2, nic down 1.1, nvlink down 1.1: 7 us nic 2" });
}
END_TEST

/* Messages within a node hold the link's own SMs if their communicator is within the node. */
START_TEST(topology_spans_decide_the_sms)
{
    static const struct {
        LhGroup group;
        LhSpan span;
    } cases[] = {
        { { 0, 1, 4, 0, 1 }, LH_SPAN_NODE },  { { 4, 1, 4, 9, 1 }, LH_SPAN_NODE },
        { { 3, 1, 2, 0, 1 }, LH_SPAN_NODES }, { { 1, 4, 3, 0, 1 }, LH_SPAN_NODES },
        { { 5, 9, 1, 1, 3 }, LH_SPAN_NODE },  { { 4, 1, 2, 4, 2 }, LH_SPAN_NODES },
        { { 11, 1, 1, 0, 1 }, LH_SPAN_NODE },
    };
    g_autoptr(LhTopology) topology = parse(TOPOLOGY("4", NVSWITCH PCIE NICS("2"), ""), NULL);
    g_autoptr(LhTopology) pairs = parse(TOPOLOGY("4", PAIRS PCIE NICS("1"), ""), NULL);
    LhNetwork network;
    LhRoute route;

    ck_assert(lh_network_init(&network, topology, 3, 12, NULL, NULL));
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        ck_assert_int_eq(lh_network_span(&network, &cases[i].group), cases[i].span);
    ck_assert_uint_eq(lh_network_ctas(&network, 4, 5, LH_SPAN_NODE), 16);
    ck_assert_uint_eq(lh_network_ctas(&network, 4, 5, LH_SPAN_NODES), 2);
    ck_assert_uint_eq(lh_network_ctas(&network, 4, 8, LH_SPAN_NODES), 2);
    ck_assert(lh_network_init(&network, pairs, 2, 8, NULL, NULL));
    lh_network_route(&network, 5, 6, &route);
    ck_assert_uint_eq(route.tier, LH_TIER_PCIE);
    ck_assert_uint_eq(lh_network_ctas(&network, 5, 6, LH_SPAN_NODE), 4);
    ck_assert_uint_eq(lh_network_ctas(&network, 5, 6, LH_SPAN_NODES), 2);
}
END_TEST

START_TEST(topology_routes_over_pairs)
{
    CHECK_ROUTES(TOPOLOGY("4", PAIRS PCIE NICS("1"), ""), 2,
                 { 0, 1, "nvlink up 0.0, nvlink down 0.1: 2 us nvlink 2" },
                 { 3, 2, "nvlink up 0.3, nvlink down 0.2: 2 us nvlink 2" },
                 { 1, 2, "pcie up 0.1, pcie down 0.2: 1 us pcie 2" },
                 { 5, 6, "pcie up 1.1, pcie down 1.2: 1 us pcie 2" },
                 { 7, 0, "pcie up 1.3, nic up 1.0, nic down 0.0, pcie down 0.0: 6 us nic 2" });
    CHECK_ROUTES(TOPOLOGY("2", PAIRS NICS("2"), ""), 2,
                 { 0, 1, "nvlink up 0.0, nvlink down 0.1: 2 us nvlink 2" },
                 { 1, 2, "nvlink up 0.1, nic up 0.1, nic down 1.0, nvlink down 1.0: 7 us nic 2" });
}
END_TEST

START_TEST(topology_routes_without_scale_up)
{
    CHECK_ROUTES(TOPOLOGY("4", NONE PCIE NICS("4"), ""), 2,
                 { 0, 3, "pcie up 0.0, pcie down 0.3: 1 us pcie 2" },
                 { 3, 6, "pcie up 0.3, nic up 0.3, nic down 1.2, pcie down 1.2: 6 us nic 2" });
    CHECK_ROUTES(TOPOLOGY("1", NONE NICS("1"), ""), 3,
                 { 2, 1, "nic up 2.0, nic down 1.0: 5 us nic 2" });
    CHECK_ROUTES(TOPOLOGY("1", NONE PCIE NICS("1"), ""), 3,
                 { 0, 2, "pcie up 0.0, nic up 0.0, nic down 2.0, pcie down 2.0: 6 us nic 2" });
}
END_TEST

START_TEST(topology_routes_on_rails)
{
    CHECK_ROUTES(
        TOPOLOGY("4", NVSWITCH PCIE NICS("4"), RAIL), 3,
        { 1, 3, "nvlink up 0.1, nvlink down 0.3: 2 us nvlink 2" },
        { 1, 5, "pcie up 0.1, nic up 0.1, nic down 1.1, pcie down 1.1: 6.5 us nic 2" },
        { 1, 10,
          "nvlink up 0.1, nvlink down 0.2, pcie up 0.2, nic up 0.2, nic down 2.2, pcie down 2.2: "
          "8.5 us nic 2" });
    /* Two GPUs per NIC: 0 and 1 share a rail, so that 0 -> 1 of another node needs no relay. */
    CHECK_ROUTES(
        TOPOLOGY("4", NVSWITCH PCIE NICS("2"), RAIL), 2,
        { 0, 5, "pcie up 0.0, nic up 0.0, nic down 1.0, pcie down 1.1: 6.5 us nic 2" },
        { 0, 7,
          "nvlink up 0.0, nvlink down 0.3, pcie up 0.3, nic up 0.1, nic down 1.1, pcie down 1.3: "
          "8.5 us nic 2" });
    CHECK_ROUTES(TOPOLOGY("2", NVSWITCH NICS("2"), RAIL), 2,
                 { 0, 2, "nvlink up 0.0, nic up 0.0, nic down 1.0, nvlink down 1.0: 7.5 us nic 2" },
                 { 2, 1,
                   "nvlink up 1.0, nvlink down 1.1, nvlink up 1.1, nic up 1.1, nic down 0.1, "
                   "nvlink down 0.1: "
                   "7.5 us nic 2" });
    CHECK_ROUTES(TOPOLOGY("2", NONE PCIE NICS("1"), RAIL), 2,
                 { 0, 3, "pcie up 0.0, nic up 0.0, nic down 1.0, pcie down 1.1: 6.5 us nic 2" });
}
END_TEST

START_TEST(topology_routes_over_fat_tree)
{
    const char *tree = TOPOLOGY("2", NVSWITCH PCIE NICS("1"), TREE);
    g_autoptr(LhTopology) topology = parse(tree, NULL);
    LhNetwork network;

    CHECK_ROUTES(
        tree, 5, { 0, 1, "nvlink up 0.0, nvlink down 0.1: 2 us nvlink 2" },
        { 1, 2, "pcie up 0.1, nic up 0.0, nic down 1.0, pcie down 1.0: 6.5 us nic 2" },
        { 3, 4,
          "pcie up 1.1, nic up 1.0, fabric up 0.0, fabric down 1.0, nic down 2.0, pcie down 2.0: "
          "7.5 us fabric 2" },
        { 9, 0,
          "pcie up 4.1, nic up 4.0, fabric up 2.0, fabric down 0.0, nic down 0.0, pcie down 0.0: "
          "7.5 us fabric 2" });
    /* a single leaf needs no trunk */
    CHECK_ROUTES(tree, 2,
                 { 1, 2, "pcie up 0.1, nic up 0.0, nic down 1.0, pcie down 1.0: 6.5 us nic 2" });

    /* a trunk: 2 nodes x 1 NIC x 10 GB/s / 2.5 */
    ck_assert(lh_network_init(&network, topology, 5, 10, NULL, NULL));
    ck_assert_uint_eq(network.links_count, 2 * (10 + 10 + 5 + 3));
    ck_assert_double_eq(lh_network_link(&network, network.fabric_first).bandwidth_bytes_per_s, 8e9);
    ck_assert(lh_network_init(&network, topology, 2, 4, NULL, NULL));
    ck_assert_uint_eq(network.links_count, network.fabric_first);
}
END_TEST

START_TEST(topology_bench_platform)
{
    g_autoptr(LhTopology) topology = lh_topology_load("bench-platform", NULL);
    LhNetwork network;
    LhRoute route;

    ck_assert(lh_network_init(&network, topology, 8192, 65536, NULL, NULL));
    ck_assert_uint_eq(network.links_count, 2 * (65536 + 8192));
    lh_network_route(&network, 0, 7, &route);
    ck_assert_int_eq(route.latency_ps, 2000000);
    lh_network_route(&network, 65535, 0, &route);
    ck_assert_int_eq(route.latency_ps, 5000000);
    ck_assert_uint_eq(route.links_count, 4);
    ck_assert_double_eq(lh_network_link(&network, route.links[0]).bandwidth_bytes_per_s, 300e9);
    ck_assert_double_eq(lh_network_link(&network, route.links[1]).bandwidth_bytes_per_s, 12.5e9);
}
END_TEST

/* Small messages have measured latencies: 15 to 20 us over InfiniBand, 40 to 60 us over TCP. */
START_TEST(topology_latencies_are_those_measured)
{
    static const struct {
        const char *name;
        int64_t low_us, high_us;
    } cases[] = {
        { "dgx-a100-40g", 15, 20 },    { "dgx-a100-80g", 15, 20 },  { "dfa-2node", 15, 20 },
        { "hgx-h100", 15, 20 },        { "hgx-h200", 15, 20 },      { "nvl72", 15, 20 },
        { "lasp-dgx", 15, 20 },        { "fat-tree-a100", 15, 20 }, { "azure-nc96-a100", 40, 60 },
        { "azure-nc40-h100", 40, 60 },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(LhTopology) topology = lh_topology_load(cases[i].name, NULL);
        const uint32_t gpus = (uint32_t)topology->gpus_per_node;
        LhNetwork network;
        LhRoute route;

        ck_assert(lh_network_init(&network, topology, 2, 2 * gpus, NULL, NULL));
        lh_network_route(&network, 0, gpus, &route);
        ck_assert_int_ge(route.latency_ps, cases[i].low_us * 1000000);
        ck_assert_int_le(route.latency_ps, cases[i].high_us * 1000000);
        ck_assert_uint_eq(lh_network_ctas(&network, 0, gpus, LH_SPAN_NODES), 2);
    }
}
END_TEST

/* --- invariants of every route
 * ------------------------------------------------------------------- */

static void
check_ends(const LhNetwork *network, const LhRoute *route, uint32_t src, uint32_t dst)
{
    const LhLink first = lh_network_link(network, route->links[0]);
    const LhLink last = lh_network_link(network, route->links[route->links_count - 1]);

    ck_assert(first.up);
    ck_assert(!last.up);
    ck_assert_uint_eq(first.node, src / network->gpus_per_node);
    ck_assert_uint_eq(last.node, dst / network->gpus_per_node);
    if (first.tier != LH_TIER_NIC)
        ck_assert_uint_eq(first.index, src % network->gpus_per_node);
    if (last.tier != LH_TIER_NIC)
        ck_assert_uint_eq(last.index, dst % network->gpus_per_node);
}

static void
check_route(const LhNetwork *network, uint32_t src, uint32_t dst)
{
    LhRoute route;
    LhRoute back;
    unsigned tier = 0;

    lh_network_route(network, src, dst, &route);
    lh_network_route(network, dst, src, &back);
    ck_assert_uint_ge(route.links_count, 2);
    ck_assert_uint_le(route.links_count, LH_ROUTE_MAX);
    ck_assert_uint_eq(back.links_count, route.links_count);
    ck_assert_int_eq(back.latency_ps, route.latency_ps);
    check_ends(network, &route, src, dst);
    for (uint32_t i = 0; i < route.links_count; i++) {
        const LhLink link = lh_network_link(network, route.links[i]);

        tier = MAX(tier, link.tier);
        ck_assert_double_gt(link.bandwidth_bytes_per_s, 0);
        for (uint32_t k = 0; k < i; k++)
            ck_assert_uint_ne(route.links[i], route.links[k]);
    }
    ck_assert_uint_eq(route.tier, tier);
}

static void
check_links(const LhNetwork *network)
{
    for (uint32_t id = 0; id < network->links_count; id += 2) {
        const LhLink up = lh_network_link(network, id);
        const LhLink down = lh_network_link(network, id + 1);

        ck_assert(up.up);
        ck_assert(!down.up);
        ck_assert_uint_eq(up.tier, down.tier);
        ck_assert_uint_eq(up.node, down.node);
        ck_assert_uint_eq(up.index, down.index);
        if (id > 0)
            ck_assert_uint_ge(up.tier, lh_network_link(network, id - 1).tier);
    }
}

START_TEST(topology_every_route_is_sound)
{
    g_auto(GStrv) names = lh_data_list("topologies");

    for (char **name = names; *name != NULL; name++) {
        g_autoptr(LhTopology) topology = lh_topology_load(*name, NULL);
        const uint32_t first = (uint32_t)(name - names);
        const uint32_t nodes = topology->max_nodes == 1 ? 1 : topology->gpus_per_node > 8 ? 2 : 9;
        const uint32_t ranks = nodes * (uint32_t)topology->gpus_per_node;
        LhNetwork network;

        ck_assert(lh_network_init(&network, topology, nodes, ranks, NULL, NULL));
        check_links(&network);
        for (uint32_t src = 0; src < ranks; src++) {
            for (uint32_t dst = 0; dst < ranks; dst++) {
                if (src != dst && test_takes_of(first + src, 8))
                    check_route(&network, src, dst);
            }
        }
    }
}
END_TEST

/* Limits of a pair of GPUs apply between nodes only, and only below the rate of the NIC. */
START_TEST(topology_limits_pairs_of_gpus)
{
    static const struct {
        double limit, expected, between;
    } cases[] = { { 0, 0, 10e9 }, { 4e9, 4e9, 4e9 }, { 10e9, 0, 10e9 } };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(LhTopology) topology = parse(TOPOLOGY("2", NVSWITCH PCIE NICS("1"), TREE), NULL);
        LhNetwork network;
        LhRoute route;

        topology->nic.pair_p2p = cases[i].limit;
        ck_assert(lh_network_init(&network, topology, 4, 8, NULL, NULL));
        lh_network_route(&network, 2, 7, &route);
        ck_assert_double_eq(route.flow_bandwidth_bytes_per_s, cases[i].expected);
        ck_assert_uint_eq(route.source, 2);
        ck_assert_uint_eq(route.destination, 7);
        ck_assert_double_eq(lh_network_route_bandwidth(&network, &route),
                            cases[i].between == 10e9 ? 8e9 : cases[i].between);
        lh_network_route(&network, 2, 0, &route);
        ck_assert_double_eq(lh_network_route_bandwidth(&network, &route), cases[i].between);
        lh_network_route(&network, 2, 3, &route);
        ck_assert_double_eq(route.flow_bandwidth_bytes_per_s, 0);
        ck_assert_double_eq(lh_network_route_bandwidth(&network, &route), 200e9);
    }
}
END_TEST

/* Messages and hops of collectives have separate limits. */
START_TEST(topology_limits_hops_of_collectives_apart)
{
    g_autoptr(LhTopology) topology = parse(TOPOLOGY("2", NVSWITCH PCIE NICS("1"), TREE), NULL);
    LhNetwork network;
    LhRoute message, hop;

    topology->nic.pair_p2p = 2e9;
    topology->nic.pair_collective = 3e9;
    ck_assert(lh_network_init(&network, topology, 4, 8, NULL, NULL));
    lh_network_route(&network, 2, 7, &message);
    lh_network_collective_route(&network, 2, 7, &hop);
    ck_assert_double_eq(lh_network_route_bandwidth(&network, &message), 2e9);
    ck_assert_double_eq(lh_network_route_bandwidth(&network, &hop), 3e9);
    ck_assert(!message.of_collective && hop.of_collective);
    lh_network_collective_route(&network, 2, 3, &hop);
    ck_assert_double_eq(hop.flow_bandwidth_bytes_per_s, 0);
    topology->nic.pair_collective = 0;
    ck_assert(lh_network_init(&network, topology, 4, 8, NULL, NULL));
    lh_network_collective_route(&network, 2, 0, &hop);
    ck_assert_double_eq(hop.flow_bandwidth_bytes_per_s, 0);
}
END_TEST

/* Sockets have a limit; InfiniBand and RoCE do not. */
START_TEST(topology_limits_pairs_over_tcp)
{
    g_auto(GStrv) names = lh_data_list("topologies");

    for (char **name = names; *name != NULL; name++) {
        g_autoptr(LhTopology) topology = lh_topology_load(*name, NULL);

        ck_assert_double_eq(topology->nic.pair_p2p,
                            g_str_has_prefix(*name, "azure-nc") ? 1.7e9 : 0);
        ck_assert_double_eq(topology->nic.pair_collective,
                            g_str_has_prefix(*name, "azure-nc") ? topology->nic.bandwidth : 0);
    }
}
END_TEST

/* The provenance of a number matches its source text. */
START_TEST(topology_labels_are_true)
{
    static const char *const latencies[] = { "latency assumed", "latency as ",
                                             "latency and channels", ": as of ", NULL };
    g_auto(GStrv) names = lh_data_list("topologies");
    guint from_source = 0, assumed = 0;

    for (char **name = names; *name != NULL; name++) {
        g_autoptr(LhTopology) t = lh_topology_load(*name, NULL);
        const LhLinkClass *const links[] = { &t->nvlink, &t->pcie, &t->nic };

        for (gsize i = 0; i < G_N_ELEMENTS(links); i++) {
            const LhLinkClass *link = links[i];

            if (link->bandwidth == 0)
                continue;
            /* NCCL's constants are neither our fit nor a measurement. */
            if (strstr(link->from.source, "src/graph/topo.h") != NULL) {
                from_source++;
                ck_assert_msg(link->from.provenance >= LH_PROVENANCE_DATASHEET, "%s: %s", *name,
                              link->from.source);
            }
            for (const char *const *word = latencies; *word != NULL; word++) {
                if (strstr(link->from.source, *word) == NULL)
                    continue;
                assumed++;
                ck_assert_msg(link->latency_provenance == LH_PROVENANCE_ASSUMED, "%s: %s", *name,
                              link->from.source);
            }
            if (strstr(link->from.source, "per peer assumed") != NULL ||
                strstr(link->from.source, "channels as") != NULL)
                ck_assert_msg(link->ctas_provenance == LH_PROVENANCE_ASSUMED, "%s: %s", *name,
                              link->from.source);
        }
    }
    ck_assert_uint_gt(from_source, 30);
    ck_assert_uint_gt(assumed, 15);
}
END_TEST

START_TEST(topology_link_names)
{
    g_autoptr(LhTopology) topology = parse(TOPOLOGY("2", NVSWITCH PCIE NICS("1"), TREE), NULL);
    g_autofree char *nic = NULL;
    g_autofree char *trunk = NULL;
    LhNetwork network;

    ck_assert(lh_network_init(&network, topology, 4, 8, NULL, NULL));
    nic = lh_network_link_name(&network, network.nic_first + 6);
    trunk = lh_network_link_name(&network, network.fabric_first + 3);
    ck_assert_str_eq(nic, "nic up, node 3, index 0");
    ck_assert_str_eq(trunk, "fabric down, leaf 1");
}
END_TEST

/* --- faults and sizes --------------------------------------------------------------------------
 */

START_TEST(topology_faults_slow_links)
{
    g_autoptr(LhTopology) topology = parse(TOPOLOGY("2", NVSWITCH PCIE NICS("1"), TREE), NULL);
    g_autoptr(GArray) faults = g_array_new(FALSE, TRUE, sizeof(LhLinkFault));
    const LhLinkFault given[] = { { LH_TIER_NIC, 1, 0.5 },
                                  { LH_TIER_NIC, 1, 0.25 },
                                  { LH_TIER_NVLINK, 0, 0 },
                                  { LH_TIER_FABRIC, 1, 0.1 } };
    LhNetwork network;

    g_array_append_vals(faults, given, G_N_ELEMENTS(given));
    ck_assert(lh_network_init(&network, topology, 4, 8, faults, NULL));
    for (uint32_t id = 0; id < network.links_count; id++) {
        const LhLink link = lh_network_link(&network, id);
        const double whole = (const double[]){ 200e9, 24e9, 10e9, 8e9 }[link.tier];
        double factor = 1;

        if (link.tier == LH_TIER_NIC && link.node == 1)
            factor = 0.25;
        if (link.tier == LH_TIER_NVLINK && link.node == 0)
            factor = 0;
        if (link.tier == LH_TIER_FABRIC && link.node == 1)
            factor = 0.1;
        ck_assert_double_eq_tol(link.bandwidth_bytes_per_s, whole * factor, 1e-3);
    }
}
END_TEST

START_TEST(topology_rejects_impossible_networks)
{
    static const struct {
        const char *text;
        uint32_t nodes, ranks;
        LhLinkFault fault;
        const char *message;
    } cases[] = {
        { TOPOLOGY("4", NVSWITCH NICS("1"), ""),
          2,
          9,
          { LH_TIER_NIC, 0, 1 },
          "topology t: 9 ranks do not fit on 2 nodes of 4 GPUs" },
        { TOPOLOGY("4", NVSWITCH NICS("1"), ""),
          2,
          0,
          { LH_TIER_NIC, 0, 1 },
          "topology t: a network needs at least one node and one rank" },
        { TOPOLOGY("4", NVSWITCH NICS("1"), ", \"max_nodes\": 2"),
          3,
          9,
          { LH_TIER_NIC, 0, 1 },
          "topology t: 3 nodes; allowed: at most 2" },
        { TOPOLOGY("4", NVSWITCH NICS("1"), ""),
          G_MAXUINT32,
          9,
          { LH_TIER_NIC, 0, 1 },
          "topology t: 4294967295 nodes have 42949672950 links; allowed: up to 2147483647" },
        { TOPOLOGY("4", NVSWITCH NICS("1"), ""),
          2,
          8,
          { LH_TIER_PCIE, 0, 1 },
          "link fault: topology t with 2 nodes has no pcie links" },
        { TOPOLOGY("4", NVSWITCH NICS("1"), TREE),
          2,
          8,
          { LH_TIER_FABRIC, 0, 1 },
          "link fault: topology t with 2 nodes has no fabric links" },
        { TOPOLOGY("4", NVSWITCH NICS("1"), TREE),
          5,
          8,
          { LH_TIER_FABRIC, 3, 1 },
          "link fault: leaf 3; allowed: 0 to 2" },
        { TOPOLOGY("4", NVSWITCH NICS("1"), ""),
          2,
          8,
          { LH_TIER_NIC, 2, 1 },
          "link fault: node 2; allowed: 0 to 1" },
        { TOPOLOGY("4", NVSWITCH NICS("1"), ""),
          2,
          8,
          { LH_TIER_NIC, 1, 1.5 },
          "link fault: factor 1.5; allowed: 0 to 1" },
        { TOPOLOGY("4", NVSWITCH NICS("1"), ""),
          2,
          8,
          { LH_TIERS, 1, 1 },
          "link fault: unknown tier 4" },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(LhTopology) topology = parse(cases[i].text, NULL);
        g_autoptr(GArray) faults = g_array_new(FALSE, TRUE, sizeof(LhLinkFault));
        LhNetwork network;

        g_array_append_val(faults, cases[i].fault);
        ck_assert(
            !lh_network_init(&network, topology, cases[i].nodes, cases[i].ranks, faults, &error));
        check_message(error, cases[i].message);
    }
}
END_TEST

/* --- broken files ------------------------------------------------------------------------------
 */

static const char *const topology_text = "{\n"
                                         "  \"schema\": \"longhaul.topology/1\",\n"
                                         "  \"name\": \"t\",\n"
                                         "  \"source\": \"s\",\n"
                                         "  \"device\": \"a100-sxm-80g\",\n"
                                         "  \"node\": {\n"
                                         "    \"gpus\": 8,\n"
                                         "    \"scale_up\": {\n"
                                         "      \"kind\": \"nvswitch\",\n"
                                         "      \"bandwidth\": \"240GB/s\",\n"
                                         "      \"latency\": \"9.8us\",\n"
                                         "      \"ctas\": 32,\n"
                                         "      \"provenance\": \"fitted\",\n"
                                         "      \"source\": \"s\"\n"
                                         "    },\n"
                                         "    \"nics\": {\n"
                                         "      \"count\": 8,\n"
                                         "      \"bandwidth\": \"24GB/s\",\n"
                                         "      \"latency\": \"17us\",\n"
                                         "      \"ctas\": 2,\n"
                                         "      \"provenance\": \"fitted\",\n"
                                         "      \"source\": \"s\"\n"
                                         "    }\n"
                                         "  },\n"
                                         "  \"fabric\": {\n"
                                         "    \"kind\": \"ideal\"\n"
                                         "  }\n"
                                         "}\n";

#define BANDWIDTH_ALLOWED                                                                          \
    "allowed: a number, then bps, Kbps, Mbps, Gbps, Tbps (bits), B/s, kB/s, MB/s, GB/s, TB/s, "    \
    "KiB/s, MiB/s, GiB/s or TiB/s"

static void
check_broken(const BrokenInput *broken, gsize count)
{
    for (gsize i = 0; i < count; i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *bad = break_text(topology_text, &broken[i]);

        ck_assert_ptr_null(parse(bad, &error));
        check_message(error, broken[i].message);
    }
}

/* Latency and SMs have the provenance of the rate unless they have their own. */
START_TEST(topology_links_have_three_provenances)
{
    static const BrokenInput same = { "\"provenance\": \"fitted\"", "\"provenance\": \"fitted\"",
                                      NULL };
    static const BrokenInput own = {
        "\"provenance\": \"fitted\"",
        "\"provenance\": \"measured\", \"latency_provenance\": \"datasheet\"", NULL
    };
    g_autofree char *same_text = break_text(topology_text, &same);
    g_autofree char *own_text = break_text(topology_text, &own);
    g_autoptr(LhTopology) a = parse(same_text, NULL), b = parse(own_text, NULL);
    LhLinkClass link = { .from.provenance = LH_PROVENANCE_MEASURED,
                         .latency_provenance = LH_PROVENANCE_ASSUMED,
                         .ctas_provenance = LH_PROVENANCE_DATASHEET };

    ck_assert_int_eq(a->nvlink.latency_provenance, LH_PROVENANCE_FITTED);
    ck_assert_int_eq(a->nvlink.ctas_provenance, LH_PROVENANCE_FITTED);
    ck_assert_int_eq(b->nvlink.from.provenance, LH_PROVENANCE_MEASURED);
    ck_assert_int_eq(b->nvlink.latency_provenance, LH_PROVENANCE_DATASHEET);
    ck_assert_int_eq(b->nvlink.ctas_provenance, LH_PROVENANCE_MEASURED);
    /* a link that takes no time is not used */
    ck_assert_int_eq(lh_link_provenance(&link), LH_PROVENANCE_MEASURED);
    link.ctas = 1;
    ck_assert_int_eq(lh_link_provenance(&link), LH_PROVENANCE_DATASHEET);
    link.latency_ps = 1;
    ck_assert_int_eq(lh_link_provenance(&link), LH_PROVENANCE_ASSUMED);
}
END_TEST

/* A row of times with @bytes and @us, beside the scale-up link. */
#define TIMES(ranks, bytes, us)                                                                    \
    "\"gpus\": 8, \"collective_times\": [{\"op\": \"all-gather\", \"ranks\": " ranks               \
    ", \"bytes\": [" bytes "], \"us\": [" us                                                       \
    "], \"provenance\": \"measured\", \"source\": \"s\"}]"
#define TWICE(nccl, other)                                                                         \
    "\"gpus\": 8, \"collective_times\": [{\"op\": \"all-reduce\", \"ranks\": 2, \"nccl\": \"" nccl \
    "\", \"bytes\": [1, 2], \"us\": [1, 2], \"provenance\": \"measured\", \"source\": \"s\"},\n"   \
    "{\"op\": \"all-reduce\", \"ranks\": 2, \"nccl\": \"" other                                    \
    "\", \"bytes\": [1, 2], \"us\": [1, 2], \"provenance\": \"measured\", \"source\": \"s\"}]"
#define LL_LINE "{\"base\": \"1us\", \"hop\": \"1us\"}"
#define LINES(op, low, high)                                                                       \
    "{\"op\": \"" op "\", \"ll\": " LL_LINE ", \"ll128\": " LL_LINE ", \"simple\": " LL_LINE       \
    ", \"ll_bytes\": " low ", \"ll128_bytes\": " high                                              \
    ", \"provenance\": \"fitted\", \"source\": \"s\"}"

START_TEST(topology_rejects_broken_collectives)
{
    static const BrokenInput broken[] = {
        { "\"gpus\": 8", TIMES("16", "1, 2", "3, 4"),
          "dir/t.json:7:67: error: \"node.collective_times[0].ranks\" is 16; allowed: 2 to 8, the "
          "GPUs of a node" },
        { "\"gpus\": 8", TIMES("1", "1, 2", "3, 4"),
          "dir/t.json:7:67: error: \"node.collective_times[0].ranks\" is out of range: found the "
          "number 1; allowed: 2 to 4096" },
        { "\"gpus\": 8", TIMES("8", "1", "3"),
          "dir/t.json:7:79: error: \"node.collective_times[0].bytes\" has 1 elements; allowed: 2 "
          "to 256" },
        { "\"gpus\": 8", TIMES("8", "1, 2, 3", "3, 4"),
          "dir/t.json:7:37: error: \"node.collective_times[0]\" has 3 sizes (\"bytes\") and 2 "
          "times "
          "(\"us\"); allowed: the same number of both" },
        { "\"gpus\": 8", TIMES("8", "1, 4, 4", "3, 4, 5"),
          "dir/t.json:7:86: error: \"node.collective_times[0].bytes[2]\" is 4; allowed: 5 to "
          "1000000000000000, since sizes must ascend" },
        { "\"gpus\": 8", TIMES("8", "0, 4", "3, 4"),
          "dir/t.json:7:80: error: \"node.collective_times[0].bytes[0]\" is 0; allowed: 1 to "
          "1000000000000000, since sizes must ascend" },
        { "\"gpus\": 8", TIMES("8", "1, 4, 8", "3, 0, 5"),
          "dir/t.json:7:100: error: \"node.collective_times[0].us[1]\" is 0; allowed: more than 0, "
          "up to 1e+09 microseconds" },
        { "\"gpus\": 8", TIMES("8", "1, 4, 8", "3, 5, 5"),
          "dir/t.json:7:37: error: \"node.collective_times[0]\": the time of the last size, 5 us, "
          "does not exceed the 5 us of the one before: larger sizes could not be extrapolated" },
        { "\"gpus\": 8", TIMES("8", "1, 2", "3, \"4us\""),
          "dir/t.json:7:97: error: \"node.collective_times[0].us[1]\" must be a number; found the "
          "string \"4us\"" },
        { "\"gpus\": 8",
          "\"gpus\": 8, \"collective_times\": [{\"op\": \"all-reduce\", \"ranks\": 2, \"bytes\": "
          "[1, "
          "2], \"us\": [1, 2], \"provenance\": \"measured\", \"source\": \"s\"},\n{\"op\": "
          "\"all-reduce\", \"ranks\": 2, \"bytes\": [1, 2], \"us\": [1, 2], \"provenance\": "
          "\"measured\", \"source\": \"s\"}]",
          "dir/t.json:8:1: error: \"node.collective_times[1]\": all-reduce on 2 GPUs occurs "
          "twice, without different versions in \"nccl\"" },
        { "\"gpus\": 8", TWICE("2.27.3, 2.29.2", "2.23, 2.27.3"),
          "dir/t.json:8:1: error: \"node.collective_times[1]\": all-reduce on 2 GPUs occurs "
          "twice, without different versions in \"nccl\"" },
        { "\"gpus\": 8", "\"gpus\": 8, \"collective_lines\": [" LINES("all-gather", "2", "1") "]",
          "dir/t.json:7:37: error: \"node.collective_lines[0]\": \"ll_bytes\", 2, exceeds "
          "\"ll128_bytes\", 1" },
        { "\"gpus\": 8",
          "\"gpus\": 8, \"collective_lines\": [" LINES("all-gather", "1",
                                                       "1") ",\n" LINES("all-gather", "1", "1") "]",
          "dir/t.json:8:1: error: \"node.collective_lines[1]\": all-gather occurs twice" },
    };

    check_broken(broken, G_N_ELEMENTS(broken));
}
END_TEST

START_TEST(topology_rejects_broken_values)
{
    static const BrokenInput broken[] = {
        { "\"240GB/s\"", "\"240\"",
          "dir/t.json:10:20: error: \"node.scale_up.bandwidth\": \"240\" is not a bandwidth such "
          "as "
          "100Gbps, 300GB/s or 12.5GiB/s: it has no unit; " BANDWIDTH_ALLOWED },
        { "\"240GB/s\"", "240",
          "dir/t.json:10:20: error: \"node.scale_up.bandwidth\" must be a bandwidth such as "
          "100Gbps, "
          "300GB/s or 12.5GiB/s; found the number 240" },
        { "\"240GB/s\"", "\"-240GB/s\"",
          "dir/t.json:10:20: error: \"node.scale_up.bandwidth\": \"-240GB/s\" is not a bandwidth "
          "such as 100Gbps, 300GB/s or 12.5GiB/s: it does not start with a "
          "digit; " BANDWIDTH_ALLOWED },
        { "\"240GB/s\"", "\"240us\"",
          "dir/t.json:10:20: error: \"node.scale_up.bandwidth\": \"240us\" is not a bandwidth such "
          "as 100Gbps, 300GB/s or 12.5GiB/s: its unit is unknown; " BANDWIDTH_ALLOWED },
        { "\"240GB/s\"", "\"0GB/s\"",
          "dir/t.json:10:20: error: \"node.scale_up.bandwidth\" is out of range: found the string "
          "\"0GB/s\"; allowed: 1 B/s to 1000 TB/s" },
        { "\"9.8us\"", "\"9.8GB/s\"",
          "dir/t.json:11:18: error: \"node.scale_up.latency\": \"9.8GB/s\" is not a time such as "
          "2us, 1.5ms or 300ns: its unit is unknown; allowed: a number, then ps, ns, us, ms or s" },
        { "\"9.8us\"", "\"9.8s\"",
          "dir/t.json:11:18: error: \"node.scale_up.latency\" is out of range: found the string "
          "\"9.8s\"; allowed: 0 ps to 1 s" },
        { "\"nvswitch\"", "\"nvswitsh\"",
          "dir/t.json:9:15: error: \"node.scale_up.kind\" must be one of none, nvswitch, pairs, "
          "memory "
          "(did "
          "you mean \"nvswitch\"?); found the string \"nvswitsh\"" },
        { "\"gpus\": 8", "\"gpus\": 0",
          "dir/t.json:7:13: error: \"node.gpus\" is out of range: found the number 0; allowed: 1 "
          "to "
          "4096" },
        { "\"ctas\": 32", "\"ctas\": -1",
          "dir/t.json:12:15: error: \"node.scale_up.ctas\" is out of range: found the number -1; "
          "allowed: 0 to 1024" },
        { "\"count\": 8", "\"count\": 9",
          "dir/t.json:17:16: error: \"node.nics.count\" is 9, more than \"node.gpus\" 8; allowed: "
          "at most one NIC per GPU" },
        { "\"24GB/s\"", "\"24GB\"",
          "dir/t.json:18:20: error: \"node.nics.bandwidth\": \"24GB\" is not a bandwidth such as "
          "100Gbps, 300GB/s or 12.5GiB/s: its unit is unknown; " BANDWIDTH_ALLOWED },
        { "\"24GB/s\"", "\"24GB/s\", \"pair_p2p\": \"25GB/s\"",
          "dir/t.json:18:42: error: \"node.nics.pair_p2p\" is 25 GB/s, more than the bandwidth "
          "of a NIC; allowed: up to 24 GB/s, or none" },
        { "\"24GB/s\"", "\"24GB/s\", \"pair_p2p\": \"0GB/s\"",
          "dir/t.json:18:42: error: \"node.nics.pair_p2p\" is out of range: found the string "
          "\"0GB/s\"; allowed: 1 B/s to 1000 TB/s" },
        { "\"240GB/s\"", "\"240GB/s\", \"pair_p2p\": \"25GB/s\"",
          "dir/t.json:10:31: error: unknown field \"pair_p2p\" in \"node.scale_up\"; "
          "allowed: kind, bandwidth, latency, ctas, provenance, "
          "latency_provenance, ctas_provenance, source" },
        { "\"ideal\"", "\"torus\"",
          "dir/t.json:26:13: error: \"fabric.kind\" must be one of ideal, rail, fat-tree; found "
          "the "
          "string \"torus\"" },
        { "\"ideal\"", "\"fat-tree\", \"nodes_per_leaf\": 4, \"oversubscription\": 0.5",
          "dir/t.json:26:66: error: \"fabric.oversubscription\" is out of range: found the number "
          "0.5; allowed: 1 to 1000" },
    };

    check_broken(broken, G_N_ELEMENTS(broken));
}
END_TEST

START_TEST(topology_rejects_broken_structure)
{
    static const BrokenInput broken[] = {
        { "\"bandwidth\"", "\"bandwith\"",
          "dir/t.json:10:7: error: unknown field \"bandwith\" in \"node.scale_up\"; did you mean "
          "\"bandwidth\"? allowed: kind, bandwidth, latency, ctas, provenance, "
          "latency_provenance, ctas_provenance, source" },
        { "      \"ctas\": 32,\n", "",
          "dir/t.json:8:17: error: missing field \"ctas\" in \"node.scale_up\": required for "
          "kind \"nvswitch\"" },
        { "      \"ctas\": 2,\n", "",
          "dir/t.json:16:13: error: missing field \"ctas\" in \"node.nics\"; it must be a "
          "non-negative integer" },
        { "\"nvswitch\"", "\"none\"",
          "dir/t.json:10:20: error: \"node.scale_up.bandwidth\" has no meaning for kind \"none\"" },
        { "\"nvswitch\"", "\"pairs\"",
          "dir/t.json:6:11: error: missing field \"pcie\" in \"node\": with 8 GPUs and scale-up "
          "kind "
          "\"pairs\" some GPUs could not reach each other" },
        { "\"gpus\": 8,\n    \"scale_up\": {\n      \"kind\": \"nvswitch\"",
          "\"gpus\": 7,\n    \"scale_up\": {\n      \"kind\": \"pairs\"",
          "dir/t.json:7:13: error: \"node.gpus\" is 7; allowed with scale-up kind \"pairs\": an "
          "even "
          "number" },
        { "\"ideal\"", "\"ideal\", \"nodes_per_leaf\": 4",
          "dir/t.json:26:40: error: \"fabric.nodes_per_leaf\" has no meaning for kind \"ideal\"" },
        { "\"ideal\"", "\"ideal\", \"switch_latency\": \"1us\"",
          "dir/t.json:26:40: error: \"fabric.switch_latency\" has no meaning for kind \"ideal\"" },
        { "\"ideal\"", "\"rail\", \"oversubscription\": 2",
          "dir/t.json:26:41: error: \"fabric.oversubscription\" has no meaning for kind \"rail\"" },
        { "\"ideal\"", "\"fat-tree\"",
          "dir/t.json:25:13: error: missing field \"nodes_per_leaf\" in \"fabric\": required "
          "for kind \"fat-tree\"" },
        { "\"schema\": \"longhaul.topology/1\",\n", "",
          "dir/t.json:1:1: error: missing field \"schema\" at the top level; it must be one of "
          "longhaul.topology/1, longhaul.topology/2" },
        { "\"name\": \"t\"", "\"name\": \"t\", \"name\": \"u\"",
          "dir/t.json:3:16: error: the key \"name\" appears here for the second time" },
    };

    check_broken(broken, G_N_ELEMENTS(broken));
}
END_TEST

START_TEST(topology_rejects_broken_wholes)
{
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        { TOPOLOGY("4", NVSWITCH, ""),
          "dir/t.json:3:10: error: without \"node.nics\" there can be only one node; give "
          "\"max_nodes\": 1, or \"node.nics\"" },
        { TOPOLOGY("4", NVSWITCH, ",\n \"max_nodes\": 2"),
          "dir/t.json:4:15: error: without \"node.nics\" there can be only one node; give "
          "\"max_nodes\": 1, or \"node.nics\"" },
        { TOPOLOGY("4", NVSWITCH, ", \"max_nodes\": 1" RAIL),
          "dir/t.json:4:12: error: \"fabric\" has no meaning without \"node.nics\"" },
        { TOPOLOGY("4", PAIRS PCIE NICS("2"), RAIL),
          "dir/t.json:4:21: error: \"fabric.kind\" is \"rail\", which needs \"node.scale_up.kind\" "
          "\"nvswitch\" to cross rails; found \"pairs\"" },
        { TOPOLOGY("2", NONE NICS("2"), ""), "dir/t.json:3:10: error: missing field \"pcie\" in "
                                             "\"node\": with 2 GPUs and scale-up kind "
                                             "\"none\" some GPUs could not reach each other" },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;

        ck_assert_ptr_null(parse(cases[i].text, &error));
        check_message(error, cases[i].message);
    }
}
END_TEST

START_TEST(topology_rejects_unknown_device)
{
    static const BrokenInput by_name = { "a100-sxm-80g", "a100-sxm-80", NULL };
    static const BrokenInput by_path = { "a100-sxm-80g", "no/such.json", NULL };
    g_autofree char *bad_name = break_text(topology_text, &by_name);
    g_autofree char *bad_path = break_text(topology_text, &by_path);
    g_autofree char *dir = lh_data_dir();
    g_autofree char *expected =
        g_strdup_printf("dir/t.json:5:13: error: \"device\": no file \"a100-sxm-80.json\" in "
                        "%s/devices; did you mean \"a100-sxm-80g\"? available: ",
                        dir);
    g_autoptr(GError) error = NULL;

    ck_assert_ptr_null(parse(bad_name, &error));
    ck_assert_msg(g_str_has_prefix(error->message, expected), "%s", error->message);
    g_clear_error(&error);
    ck_assert_ptr_null(parse(bad_path, &error));
    check_message(error, "dir/t.json:5:13: error: \"device\": no file \"dir/no/such.json\"");
}
END_TEST

/* A device path is relative to the file that names it, in any working directory. */
START_TEST(topology_device_is_beside_its_file)
{
    g_autofree char *folder = g_dir_make_tmp("lh-XXXXXX", NULL);
    g_autofree char *data = lh_data_dir();
    g_autofree char *from = g_build_filename(data, "devices", "a100-sxm-80g.json", NULL);
    g_autofree char *device = g_build_filename(folder, "mine.json", NULL);
    g_autofree char *file = g_build_filename(folder, "t.json", NULL);
    static const BrokenInput beside = { "a100-sxm-80g", "./mine.json", NULL };
    g_autofree char *text = break_text(topology_text, &beside);
    g_autofree char *copy = NULL;
    g_autoptr(LhTopology) topology = NULL;
    g_autoptr(LhDevice) loaded = NULL;
    g_autoptr(GError) error = NULL;

    ck_assert(g_file_get_contents(from, &copy, NULL, NULL));
    ck_assert(g_file_set_contents(device, copy, -1, NULL));
    ck_assert(g_file_set_contents(file, text, -1, NULL));
    topology = lh_topology_load(file, &error);
    ck_assert_msg(topology != NULL, "%s", error != NULL ? error->message : "");
    loaded = lh_device_load(topology->device_name, &error);
    ck_assert_msg(loaded != NULL, "%s", error != NULL ? error->message : "");
    g_remove(device);
    g_remove(file);
    g_remove(folder);
}
END_TEST

/* --- the links that collectives were measured on ------------------------------------------------
 */

typedef struct {
    const char *find, *replacement; /* the first one; NULL: end */
} Edit;

/* The file of @name, edited; returns the error, or NULL if it is valid. */
static char *
error_of_edited(const char *name, const Edit *edits)
{
    g_autofree char *path = lh_data_find("topologies", name, NULL);
    g_autofree char *text = NULL;
    g_autoptr(LhTopology) t = NULL;
    g_autoptr(GError) error = NULL;

    ck_assert(g_file_get_contents(path, &text, NULL, NULL));
    for (; edits->find != NULL; edits++) {
        const char *at = strstr(text, edits->find);
        char *edited;

        ck_assert_msg(at != NULL, "%s lacks %s", name, edits->find);
        edited = g_strdup_printf("%.*s%s%s", (int)(at - text), text, edits->replacement,
                                 at + strlen(edits->find));
        g_free(text);
        text = edited;
    }
    t = lh_topology_parse("t.json", text, strlen(text), &error);
    ck_assert((t == NULL) == (error != NULL));
    return error == NULL ? NULL : g_strdup(error->message);
}

#define H100_ON                                                                                    \
    "\"measured_on\": {\"scale_up\": {\"bandwidth\": \"371GB/s\", \"latency\": \"3us\"}},"

START_TEST(topology_says_what_collectives_were_measured_on)
{
    static const Edit old = { "longhaul.topology/2", "longhaul.topology/1" };
    static const Edit unsaid = { H100_ON, "" };
    static const Edit slower = { "\"371GB/s\"", "\"185GB/s\"" };
    static const Edit faster = { "\"371GB/s\"", "\"400GB/s\"" };
    static const Edit other = { "\"us\": [", "\"us\": [0.1, " };
    static const Edit of_row = {
        "\"op\": \"all-gather\",",
        "\"op\": \"all-gather\", \"measured_on\": {\"scale_up\": {\"bandwidth\": "
        "\"100GB/s\", \"latency\": \"3us\"}},"
    };
    static const Edit none = { NULL, NULL };
    const struct {
        Edit edits[4];
        const char *words; /* NULL: valid */
    } cases[] = {
        { { none }, NULL },
        { { slower, none }, NULL }, /* the rows are still those of 371 GB/s */
        { { faster, none }, NULL },
        { { old, unsaid, none }, NULL },
        { { old, none }, "\"node.measured_on\" requires \"longhaul.topology/2\"" },
        { { unsaid, none }, "missing field \"node.measured_on.scale_up\"" },
        { { old, unsaid, slower, none }, "allow no less than" },
        { { old, unsaid, faster, none },
          "is a row of hgx-h100, which was measured on links of 371 GB/s, but the links here "
          "have 400 GB/s" },
        { { of_row, none }, "node.collective_times[0]" },
        { { other, none }, "sizes" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *error = error_of_edited("hgx-h100", cases[i].edits);

        if (cases[i].words == NULL)
            ck_assert_msg(error == NULL, "case %zu: %s", i, error);
        else
            ck_assert_msg(error != NULL && strstr(error, cases[i].words) != NULL, "case %zu: %s", i,
                          error);
    }
}
END_TEST

/* A fifth faster than measured, on the links of the measurement: an efficiency that no link has. */
START_TEST(topology_refuses_times_that_no_link_allows)
{
    static const char *const names[] = { "dgx-a100-80g", "hgx-h100", "hgx-b200", "nvl72" };
    unsigned refused = 0, rows = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(LhTopology) t = lh_topology_load(names[i], NULL);
        g_autoptr(LhJson) json = lh_json_parse("t.json", "{}", 2, NULL);

        for (guint k = 0; k < t->collective_times->len; k++, rows++) {
            GArray *us = g_array_index(t->collective_times, LhCollectiveTimes, k).us;
            g_autoptr(GError) error = NULL;

            ck_assert(lh_measured_check(json, "node.collective_times", t, NULL));
            for (guint j = 0; j < us->len; j++)
                g_array_index(us, double, j) *= 0.7;
            refused += !lh_measured_check(json, "node.collective_times", t, &error);
            if (error != NULL)
                ck_assert_ptr_nonnull(strstr(error->message, "one of the two is wrong"));
            for (guint j = 0; j < us->len; j++)
                g_array_index(us, double, j) /= 0.7;
        }
    }
    ck_assert_uint_gt(refused, rows / 2);
}
END_TEST

/* --- overrides of a scenario
 * --------------------------------------------------------------------- */

START_TEST(topology_changes_what_is_given)
{
    const LhTopologyChange change = { 4, 25e9, 200e9, 4 };
    g_autoptr(LhTopology) t = lh_topology_load("fat-tree-a100", NULL);
    const LhTime latency = t->nic.latency_ps;
    const char *field;

    ck_assert_ptr_null(lh_topology_change_refusal(&change, t, &field));
    lh_topology_change(t, &change);
    ck_assert_uint_eq(t->nics_per_node, 4);
    ck_assert_double_eq(t->nic.bandwidth, 25e9);
    ck_assert_int_eq(t->nic.from.provenance, LH_PROVENANCE_ASSUMED);
    ck_assert_int_eq(t->nic.latency_ps, latency);
    ck_assert_msg(g_str_has_prefix(t->nic.from.source, "bandwidth: --nic-rate 25 GB/s; else: "),
                  "%s", t->nic.from.source);
    ck_assert_double_eq(t->nvlink.bandwidth, 200e9);
    ck_assert_double_eq(t->oversubscription, 4);
}
END_TEST

/* An empty change has no effect, and limits of a pair below the new rate stay. */
START_TEST(topology_keeps_what_is_not_given)
{
    const LhTopologyChange none = { 0 }, faster = { .nic_rate = 50e9 },
                           slower = { .nic_rate = 1e9 };
    g_autoptr(LhTopology) t = lh_topology_load("azure-nc96-a100", NULL);
    const double pair = t->nic.pair_p2p; /* nocheck:unit: bytes/s */

    ck_assert(lh_topology_change_is_empty(&none));
    ck_assert(!lh_topology_change_is_empty(&faster));
    lh_topology_change(t, &faster);
    ck_assert_double_eq(t->nic.pair_p2p, pair);
    lh_topology_change(t, &slower);
    ck_assert_double_eq(t->nic.pair_p2p, 1e9);
}
END_TEST

static const struct {
    const char *topology;
    LhTopologyChange change;
    const char *field, *reason;
} refusals[] = {
    { "hgx-h100",
      { .nics = 9 },
      "nics",
      "9 NICs are more than the 8 GPUs of a node; allowed: at most one per GPU" },
    { "pcie-l40s", { .nics = 2 }, "nics", "pcie-l40s has no NICs: its file describes a single" },
    { "pcie-l40s", { .nic_rate = 1e9 }, "nic_rate", "pcie-l40s has no NICs" },
    { "lasp-dgx",
      { .nic_rate = 1e9 },
      "nic_rate",
      "collectives between nodes of lasp-dgx reach 3.9 GB/s independent of its NICs" },
    { "pcie-l40s", { .nvlink_rate = 1e9 }, "nvlink_rate", "the GPUs of pcie-l40s have no NVLink" },
    { "this-machine", { .nvlink_rate = 1e9 }, "nvlink_rate", "the GPUs of this-machine have no" },
    { "hgx-h100",
      { .oversubscription = 2 },
      "oversubscription",
      "hgx-h100 has no leaf switches with uplinks" },
};

START_TEST(topology_refuses_what_it_has_no_place_for)
{
    for (gsize i = 0; i < G_N_ELEMENTS(refusals); i++) {
        g_autoptr(LhTopology) t = lh_topology_load(refusals[i].topology, NULL);
        const char *field;
        g_autofree char *reason = lh_topology_change_refusal(&refusals[i].change, t, &field);

        ck_assert_ptr_nonnull(reason);
        ck_assert_str_eq(field, refusals[i].field);
        ck_assert_msg(g_str_has_prefix(reason, refusals[i].reason), "%s", reason);
    }
}
END_TEST

/* As in files: pairs cannot cross rails. */
START_TEST(topology_refuses_rails_without_a_switch)
{
    const LhTopologyChange two = { .nics = 2 }, one = { .nics = 1 };
    g_autoptr(LhTopology) t = lh_topology_load("azure-nc96-a100", NULL);
    const char *field;
    g_autofree char *reason = NULL;

    ck_assert_ptr_null(lh_topology_change_refusal(&two, t, &field));
    t->fabric = LH_FABRIC_RAIL;
    ck_assert_ptr_null(lh_topology_change_refusal(&one, t, &field));
    reason = lh_topology_change_refusal(&two, t, &field);
    ck_assert_ptr_nonnull(reason);
    ck_assert_str_eq(field, "nics");
    ck_assert_ptr_nonnull(strstr(reason, "only an NVSwitch crosses rails"));
}
END_TEST

START_TEST(topology_refuses_other_rates_of_slower_nodes)
{
    const LhTopologyChange change = { .nic_rate = 50e9 };
    const LhSlowerNode slow = { 1, 1e9 };
    g_autoptr(LhTopology) t = lh_topology_load("hgx-h100", NULL);
    const char *field;
    g_autofree char *reason = NULL;

    t->slower_nodes = g_array_new(FALSE, FALSE, sizeof(LhSlowerNode));
    g_array_append_val(t->slower_nodes, slow);
    reason = lh_topology_change_refusal(&change, t, &field);
    ck_assert_str_eq(field, "nic_rate");
    ck_assert_ptr_nonnull(strstr(reason, "lists nodes with slower NICs"));
}
END_TEST

/* The node's link that collectives share is crossed between nodes only, and only by their hops. */
START_TEST(collectives_share_a_link)
{
    g_autoptr(LhTopology) topology = lh_topology_load("lasp-dgx", NULL);
    LhNetwork network;
    LhRoute plain, hop;
    g_autofree char *name = NULL;

    ck_assert(lh_network_init(&network, topology, 2, 16, NULL, NULL));
    lh_network_route(&network, 0, 15, &plain);
    lh_network_collective_route(&network, 0, 15, &hop);
    ck_assert_uint_eq(hop.links_count, plain.links_count + 2);
    ck_assert(hop.latency_ps == plain.latency_ps);
    ck_assert_double_eq(lh_network_route_bandwidth(&network, &plain), topology->nic.bandwidth);
    ck_assert_double_eq(lh_network_route_bandwidth(&network, &hop), topology->collective_bandwidth);
    name = lh_network_link_name(&network, hop.links[hop.links_count - 1]);
    ck_assert_str_eq(name, "nic down, node 1, collectives");
    lh_network_collective_route(&network, 8, 1, &plain);
    ck_assert_uint_ne(plain.links[plain.links_count - 1], hop.links[hop.links_count - 1]);
    lh_network_collective_route(&network, 1, 2, &hop);
    ck_assert_uint_eq(hop.links_count, 2);
}
END_TEST

LH_TEST_MAIN("topology", topology_files_are_valid, topology_routes_over_nvswitch,
             topology_spans_decide_the_sms, topology_routes_over_pairs,
             topology_routes_without_scale_up, topology_routes_on_rails,
             topology_routes_over_fat_tree, topology_bench_platform,
             topology_latencies_are_those_measured, topology_every_route_is_sound,
             topology_limits_pairs_of_gpus, topology_limits_hops_of_collectives_apart,
             topology_limits_pairs_over_tcp, topology_labels_are_true,
             topology_links_have_three_provenances, topology_link_names, topology_faults_slow_links,
             topology_rejects_impossible_networks, topology_rejects_broken_values,
             topology_rejects_broken_collectives, topology_rejects_broken_structure,
             topology_rejects_broken_wholes, topology_rejects_unknown_device,
             topology_device_is_beside_its_file, topology_says_what_collectives_were_measured_on,
             topology_refuses_times_that_no_link_allows, topology_changes_what_is_given,
             topology_keeps_what_is_not_given, topology_refuses_other_rates_of_slower_nodes,
             topology_refuses_rails_without_a_switch, topology_refuses_what_it_has_no_place_for,
             collectives_share_a_link)
