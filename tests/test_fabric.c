/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network between nodes: which NIC a GPU uses, levels of trunks, and hosts. Routes, shares and
 * bounds by hand, invalid files, and random networks on which no simulated collective beats its
 * lower bound.
 */
#include "data_files.h"
#include "hand_networks.h"
#include "run_tests.h"
#include "share.h"
#include "sim/network/collectives/nccl_model.h"
#include "sim/network/collectives/ring_hops.h"
#include "sim/network/fabric.h"
#include "sim/network/levers.h"
#include "sim/network/network.h"
#include "sim/network/topology_change.h"

#include <math.h>

#define GIGA 1e9

#define LINK(latency)                                                                              \
    "\"latency\": \"" latency "\", \"ctas\": 2, \"provenance\": \"assumed\", \"source\": \"s\"}"
#define SWITCH                                                                                     \
    "\"scale_up\": {\"kind\": \"nvswitch\", \"bandwidth\": \"400GB/s\", " LINK(                    \
        "3us") ", \"pcie\": {\"bandwidth\": \"50GB/s\", " LINK("2us")
#define NONE                                                                                       \
    "\"scale_up\": {\"kind\": \"none\"}, \"pcie\": {\"bandwidth\": \"50GB/s\", " LINK("2us")
#define CLUSTER(gpus, links, nics, rest)                                                           \
    "{\"schema\": \"longhaul.topology/2\", \"name\": \"t\", \"source\": \"s\",\n"                  \
    " \"device\": \"h100-sxm\",\n"                                                                 \
    " \"node\": {\"gpus\": " gpus ", " links ",\n"                                                 \
    "  \"nics\": {" nics ", \"bandwidth\": \"20GB/s\", " LINK("10us") "}" rest "}"
#define RAIL ",\n \"fabric\": {\"kind\": \"rail\", \"switch_latency\": \"1us\"}"
#define SIX(rest) CLUSTER("6", SWITCH, "\"count\": 4, \"of_gpu\": [0, 0, 1, 2, 2, 3]", rest)

static LhGroup
all_of(const LhNetwork *n)
{
    return (LhGroup){ 0, 1, n->ranks, 0, 1 };
}

/* ---- by hand ---- */

static void
check_route(const LhNetwork *n, uint32_t from, uint32_t to, const char *expected)
{
    g_autofree char *found = describe(n, from, to);

    ck_assert_str_eq(found, expected);
}

START_TEST(nics_are_shared_unevenly)
{
    g_autoptr(LhTopology) t = parse(SIX(""));
    const Pair both[] = { { 0, 6 }, { 1, 8 } }, alone[] = { { 2, 8 }, { 0, 6 } };
    LhNetwork n;
    LhGroup all;

    network_of(&n, t, 2);
    all = all_of(&n);
    ck_assert_double_eq(rate_of_first(&n, both, 2), 10 * GIGA);
    ck_assert_double_eq(rate_of_first(&n, alone, 2), 20 * GIGA);
    /* Rings leave a node by four NICs. */
    ck_assert_double_eq_tol(
        12e9 * lh_link_bound_s_per_byte(&n, &all, LH_COLL_ALL_GATHER, LH_ALGORITHM_DEFAULT),
        11e9 / 4 / 20e9, 1e-9);
    check_route(&n, 4, 8,
                "pcie up, node 0, index 4; nic up, node 0, index 2; nic down, node 1, index 1; "
                "pcie down, node 1, index 2: 12 us");
}
END_TEST

/* NICs and GPUs whose numbers do not divide, in order. */
START_TEST(nics_are_spread_in_a_row)
{
    static const uint32_t counts[][8] = {
        { 0, 0, 0, 1, 1, 1, 2, 2 }, /* 3 of 8 GPUs */
        { 0, 0, 1, 1, 2, 3, 3, 4 }, /* 5 */
        { 0, 0, 1, 2, 3, 4, 5, 6 }, /* 7 */
    };
    g_autoptr(LhTopology) t = lh_topology_load("hgx-h100", NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(counts); i++) {
        const uint32_t nics = 3 + 2 * (uint32_t)i;
        LhNetwork n;

        t->nics_per_node = nics;
        network_of(&n, t, 2);
        for (uint32_t gpu = 0; gpu < 8; gpu++) {
            ck_assert_uint_eq(lh_network_nic(&n, gpu), counts[i][gpu]);
            ck_assert_uint_eq(lh_network_nic(&n, 8 + gpu), nics + counts[i][gpu]);
        }
        for (uint32_t nic = 0; nic < nics; nic++) {
            const uint32_t gpu = lh_network_gpu_at_nic(&n, nic);

            ck_assert_uint_eq(counts[i][gpu], nic);
            ck_assert(gpu == 0 || counts[i][gpu - 1] != nic);
        }
    }
}
END_TEST

/* A rail is entered by the GPU at the destination's position. */
START_TEST(rails_go_by_nics)
{
    g_autoptr(LhTopology) t = parse(SIX(RAIL));
    LhNetwork n;

    network_of(&n, t, 2);
    check_route(&n, 0, 7,
                "pcie up, node 0, index 0; nic up, node 0, index 0; nic down, node 1, index 0; "
                "pcie down, node 1, index 1: 13 us");
    check_route(&n, 0, 10,
                "nvlink up, node 0, index 0; nvlink down, node 0, index 4; pcie up, node 0, index "
                "4; nic up, node 0, index 2; nic down, node 1, index 2; pcie down, node 1, index "
                "4: 16 us");
}
END_TEST

/* Asserts that each of @nics NICs carries one ring out of each node and one into it. */
static void
check_rings(const char *text, uint32_t nodes, uint32_t nics)
{
    g_autoptr(LhTopology) t = parse(text);
    LhNetwork n;
    LhGroup all;
    LhRings rings = { 0 };
    g_autofree uint32_t *crossings = NULL;

    network_of(&n, t, nodes);
    all = all_of(&n);
    crossings = g_new0(uint32_t, n.links_count);
    lh_rings_init(&rings, &n, &all);
    ck_assert_uint_eq(rings.count, nics);
    for (uint64_t hop = 0; hop < lh_ring_hops_count(&rings); hop++) {
        const LhRoute route = lh_ring_hop_route(&n, &all, &rings, hop);

        for (uint32_t i = 0; i < route.links_count; i++)
            crossings[route.links[i]]++;
    }
    for (uint32_t id = n.nic_first; id < n.fabric_first; id++)
        ck_assert_msg(crossings[id] == 1, "%s: %u rings over NIC link %u", text, crossings[id],
                      id - n.nic_first);
    lh_rings_clear(&rings);
}

START_TEST(rings_leave_by_each_nic_once)
{
    check_rings(SIX(""), 2, 4);
    check_rings(SIX(""), 5, 4);
    check_rings(CLUSTER("4", SWITCH, "\"count\": 2, \"of_gpu\": [0, 1, 1, 0]", ""), 3, 2);
    check_rings(CLUSTER("4", SWITCH, "\"count\": 2, \"of_gpu\": [0, 1, 0, 1]", ""), 4, 2);
    check_rings(CLUSTER("8", NONE, "\"count\": 3, \"of_gpu\": [2, 0, 1, 1, 0, 2, 2, 0]", ""), 2, 3);
    check_rings(CLUSTER("8", SWITCH, "\"count\": 5", RAIL), 3, 5);
}
END_TEST

/* NCCL counts the NICs near its ranks, not the changes of NIC along them. */
START_TEST(nccl_counts_nics)
{
    static const char *const orders[] = { "[0, 0, 1, 1]", "[0, 1, 0, 1]", "[1, 0, 0, 1]" };
    g_autoptr(LhDevice) device = lh_device_load("h100-sxm", NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(orders); i++) {
        g_autofree char *nics = g_strdup_printf("\"count\": 2, \"of_gpu\": %s", orders[i]);
        g_autoptr(GString) text = g_string_new(CLUSTER("4", SWITCH, "NICS", ""));
        g_autoptr(LhTopology) t = NULL;
        LhNetwork n;
        LhGroup all;
        LhNcclGroup *g;

        g_string_replace(text, "NICS", nics, 1);
        t = parse(text->str);
        network_of(&n, t, 3);
        all = all_of(&n);
        g = lh_nccl_group_new(&n, device, &all);
        ck_assert_double_eq_tol(lh_nccl_seconds(g, LH_COLL_ALL_GATHER, UINT64_C(1) << 36, NULL),
                                lh_nccl_latency_s(g, LH_COLL_ALL_GATHER, UINT64_C(1) << 36,
                                                  (LhNcclChoice){ LH_NCCL_RING, LH_NCCL_SIMPLE }) +
                                    11.0 * (double)(UINT64_C(1) << 36) / 40e9,
                                1e-6);
        lh_nccl_group_free(g);
    }
}
END_TEST

/* --nics sets the number, not the position: the file's own number keeps the file's positions. */
START_TEST(other_nics_are_in_a_row)
{
    const LhTopologyChange same = { .nics = 4 }, other = { .nics = 5 }, many = { .nics = 7 };
    g_autoptr(LhTopology) t = parse(SIX(""));
    const char *field;
    g_autofree char *reason = lh_topology_change_refusal(&many, t, &field);
    LhNetwork n;

    ck_assert_str_eq(field, "nics");
    ck_assert_str_eq(reason,
                     "7 NICs are more than the 6 GPUs of a node; allowed: at most one per GPU");
    lh_topology_change(t, &same);
    network_of(&n, t, 2);
    ck_assert_uint_eq(lh_network_nic(&n, 1), 0);
    ck_assert_uint_eq(lh_network_nic(&n, 3), 2);
    ck_assert_ptr_null(lh_topology_change_refusal(&other, t, &field));
    lh_topology_change(t, &other);
    network_of(&n, t, 2);
    ck_assert_uint_eq(lh_network_nic(&n, 1), 0);
    ck_assert_uint_eq(lh_network_nic(&n, 5), 4);
}
END_TEST

typedef struct {
    const char *text, *message;
} Refused;

static void
check_refused(const Refused *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(LhTopology) t =
            lh_topology_parse("t.json", cases[i].text, strlen(cases[i].text), &error);

        ck_assert_ptr_null(t);
        check_message(error, cases[i].message);
    }
}

START_TEST(nics_that_cannot_be)
{
    static const Refused cases[] = {
        { CLUSTER("4", SWITCH, "\"count\": 2, \"of_gpu\": [0, 1]", ""),
          "t.json:4:34: error: \"node.nics.of_gpu\" has 2 numbers; allowed: one for each of the 4 "
          "GPUs" },
        { CLUSTER("4", SWITCH, "\"count\": 2, \"of_gpu\": [0, 1, 2, 0]", ""),
          "t.json:4:41: error: \"node.nics.of_gpu[2]\" is 2; allowed: 0 to 1, since "
          "\"node.nics.count\" is 2" },
        { CLUSTER("4", SWITCH, "\"count\": 3, \"of_gpu\": [0, 0, 2, 0]", ""),
          "t.json:4:34: error: \"node.nics.of_gpu\": NIC 1 is used by no GPU; allowed: each of "
          "the 3 NICs at least once; do not include NICs without GPU traffic in \"count\"" },
        { CLUSTER("4", SWITCH, "\"count\": 5", ""),
          "t.json:4:21: error: \"node.nics.count\" is 5, more than \"node.gpus\" 4; allowed: at "
          "most one NIC per GPU" },
    };

    check_refused(cases, G_N_ELEMENTS(cases));
}
END_TEST

/* ---- levels ---- */

#define SMALL(rest) CLUSTER("1", NONE, "\"count\": 1", rest)
#define LEVELS(levels)                                                                             \
    ",\n \"fabric\": {\"kind\": \"fat-tree\", \"levels\": [" levels                                \
    "], \"switch_latency\": \"1us\"}"
#define LEAF "{\"nodes\": 2, \"oversubscription\": 2}"
#define POD "{\"nodes\": 4, \"oversubscription\": 3}"

START_TEST(levels_multiply)
{
    g_autoptr(LhTopology) t = parse(SMALL(LEVELS(LEAF ", " POD)));
    const Pair leaf[] = { { 0, 2 }, { 1, 3 } }, pod[] = { { 0, 4 }, { 1, 5 }, { 2, 6 }, { 3, 7 } };
    LhNetwork n;

    network_of(&n, t, 8);
    ck_assert_double_eq(rate_of_first(&n, leaf, 2), 10e9);
    ck_assert_double_eq_tol(rate_of_first(&n, pod, 4), 20e9 * 4 / 6 / 4, 1);
    check_route(&n, 0, 1,
                "pcie up, node 0, index 0; nic up, node 0, index 0; nic down, node 1, index 0; "
                "pcie down, node 1, index 0: 13 us");
    check_route(&n, 2, 1,
                "pcie up, node 2, index 0; nic up, node 2, index 0; fabric up, leaf 1; fabric "
                "down, leaf 0; nic down, node 1, index 0; pcie down, node 1, index 0: 15 us");
    check_route(&n, 7, 1,
                "pcie up, node 7, index 0; nic up, node 7, index 0; fabric up, leaf 3; fabric up, "
                "group 1 of 4 nodes; fabric down, group 0 of 4 nodes; fabric down, leaf 0; nic "
                "down, node 1, index 0; pcie down, node 1, index 0: 17 us");
    ck_assert_uint_eq(n.collective_first - n.fabric_first, 2 * (4 + 2));
    /* There are no trunks above a group of all nodes. */
    network_of(&n, t, 4);
    ck_assert_uint_eq(n.collective_first - n.fabric_first, 2 * 2);
    network_of(&n, t, 2);
    ck_assert_uint_eq(n.collective_first, n.fabric_first);
    /* The last group may have fewer nodes than its trunk could carry. */
    network_of(&n, t, 5);
    ck_assert_uint_eq(n.collective_first - n.fabric_first, 2 * (3 + 2));
}
END_TEST

/* One level is equivalent to the older fields. */
START_TEST(one_level_is_leaves)
{
    g_autoptr(LhTopology) levels = parse(SMALL(LEVELS(LEAF)));
    g_autoptr(LhTopology) leaves = parse(SMALL(",\n \"fabric\": {\"kind\": \"fat-tree\", "
                                               "\"nodes_per_leaf\": 2, \"oversubscription\": 2, "
                                               "\"switch_latency\": \"1us\"}"));
    LhNetwork a, b;

    network_of(&a, levels, 7);
    network_of(&b, leaves, 7);
    ck_assert_uint_eq(a.links_count, b.links_count);
    for (uint32_t id = 0; id < a.links_count; id++)
        ck_assert_double_eq(lh_network_link(&a, id).bandwidth_bytes_per_s,
                            lh_network_link(&b, id).bandwidth_bytes_per_s);
    for (uint32_t to = 1; to < 7; to++) {
        g_autofree char *of_levels = describe(&a, 0, to), *of_leaves = describe(&b, 0, to);

        ck_assert_str_eq(of_levels, of_leaves);
    }
}
END_TEST

START_TEST(levels_fail_one_by_one)
{
    const LhLinkFault given[] = { { LH_TIER_FABRIC, 1, 0.5, LH_FAULT_OF_ALL },
                                  { LH_TIER_FABRIC, 1, 0.25, 1 } };
    const LhLinkFault beyond = { LH_TIER_FABRIC, 2, 0.5, 1 }, above = { LH_TIER_FABRIC, 0, 1, 2 };
    g_autoptr(LhTopology) t = parse(SMALL(LEVELS(LEAF ", " POD)));
    g_autoptr(GArray) faults = g_array_new(FALSE, TRUE, sizeof(LhLinkFault));
    g_autoptr(GError) error = NULL;
    LhNetwork n;

    g_array_append_vals(faults, given, 2);
    ck_assert(lh_network_init(&n, t, 8, 8, faults, NULL));
    for (uint32_t id = n.fabric_first; id < n.collective_first; id++) {
        const LhLink link = lh_network_link(&n, id);
        const double whole = link.index == 0 ? 20e9 : 80e9 / 6;
        const double factor = link.node != 1 ? 1 : link.index == 0 ? 0.5 : 0.25;

        ck_assert_double_eq_tol(link.bandwidth_bytes_per_s, whole * factor, 1e-3);
    }
    g_array_index(faults, LhLinkFault, 0) = beyond;
    ck_assert(!lh_network_init(&n, t, 8, 8, faults, &error));
    check_message(error, "link fault: group 2; allowed: 0 to 1");
    g_clear_error(&error);
    g_array_index(faults, LhLinkFault, 0) = above;
    ck_assert(!lh_network_init(&n, t, 8, 8, faults, &error));
    check_message(error,
                  "link fault: level 2 of the fabric; allowed: 0 to 1, the levels with trunks "
                  "among 8 nodes");
}
END_TEST

/* The first level's lever scales every trunk, the others' the trunks of their level and above. */
START_TEST(levels_are_levers)
{
    static const char *const paths[] = { "fabric.levels[0].oversubscription",
                                         "fabric.levels[1].oversubscription" };
    g_autoptr(LhTopology) t = parse(SMALL(LEVELS(LEAF ", " POD)));
    g_autoptr(GPtrArray) levers = lh_topology_levers(t);
    guint found = 0;

    for (guint i = 0; i < levers->len; i++) {
        const LhLever *lever = g_ptr_array_index(levers, i);
        LhTopology changed = *t;

        if (lever->kind != LH_LEVER_SHARE)
            continue;
        ck_assert_str_eq(lever->path, paths[found]);
        lh_lever_scale(&changed, lever, 1.25);
        for (uint32_t level = 0; level < 2; level++)
            ck_assert_double_eq_tol(lh_fabric_trunk(&changed, level),
                                    lh_fabric_trunk(t, level) * (level >= found ? 1.25 : 1), 1);
        found++;
    }
    ck_assert_uint_eq(found, 2);
}
END_TEST

#define SHARED                                                                                     \
    ", \"collectives\": {\"bandwidth\": \"3GB/s\", \"provenance\": \"assumed\", \"source\": "      \
    "\"s\"}"
#define SAID "\"provenance\": \"fitted\", \"source\": \"s\"}"
#define STEP(gpus, up, latency)                                                                    \
    "{\"name\": \"of-" gpus "\", \"gpus\": " gpus ", \"up\": \"" up "\", \"latency\": \"" latency  \
    "\", " SAID

/* Each lever scales the field it names. */
START_TEST(levers_are_their_fields)
{
    static const char text[] = CLUSTER(
        "16",
        "\"scale_up\": {\"kind\": \"pairs\", \"bandwidth\": \"101GB/s\", " LINK(
            "1us") ", \"pcie\": {\"bandwidth\": \"51GB/s\", "
                   "\"levels\": [" STEP("1", "41GB/s", "11ns") ", " STEP(
                       "2", "42GB/s",
                       "12ns") ", " STEP("4", "43GB/s",
                                         "13ns") ", " STEP("8", "44GB/s",
                                                           "14ns") "], "
                                                                   "\"p2p\": \"none\", \"host\": "
                                                                   "{\"per_gpu\": \"31GB/s\", "
                                                                   "\"bandwidth\": "
                                                                   "\"61GB/s\", " SAID
                                                                   ", " LINK("2us"),
        "\"count\": 2, \"pair_p2p\": \"4GB/s\", \"pair_collective\": \"5GB/s\", \"overhead\": "
        "\"3us\"",
        LEVELS(
            "{\"nodes\": 2, \"oversubscription\": 1.5}, {\"nodes\": 4, \"oversubscription\": 2.5}, "
            "{\"nodes\": 8, \"oversubscription\": 3.5}, {\"nodes\": 16, \"oversubscription\": "
            "4.5}"));
    static const struct {
        const char *path;
        double value;
    } fields[] = { { "node.scale_up.bandwidth", 101e9 },
                   { "node.scale_up.latency", 1e-6 },
                   { "node.pcie.bandwidth", 51e9 },
                   { "node.pcie.latency", 2e-6 },
                   { "node.pcie.levels[0].up", 41e9 },
                   { "node.pcie.levels[0].latency", 11e-9 },
                   { "node.pcie.levels[1].up", 42e9 },
                   { "node.pcie.levels[1].latency", 12e-9 },
                   { "node.pcie.levels[2].up", 43e9 },
                   { "node.pcie.levels[2].latency", 13e-9 },
                   { "node.pcie.levels[3].up", 44e9 },
                   { "node.pcie.levels[3].latency", 14e-9 },
                   { "node.pcie.host.per_gpu", 31e9 },
                   { "node.pcie.host.bandwidth", 61e9 },
                   { "node.nics.bandwidth", 20e9 },
                   { "node.nics.pair_p2p", 4e9 },
                   { "node.nics.pair_collective", 5e9 },
                   { "node.nics.latency", 10e-6 },
                   { "node.nics.overhead", 3e-6 },
                   { "fabric.levels[0].oversubscription", 1.5 },
                   { "fabric.levels[1].oversubscription", 2.5 },
                   { "fabric.levels[2].oversubscription", 3.5 },
                   { "fabric.levels[3].oversubscription", 4.5 },
                   { "fabric.switch_latency", 1e-6 } };
    g_autoptr(LhTopology) t = parse(text);
    g_autoptr(GPtrArray) levers = lh_topology_levers(t);

    ck_assert_uint_eq(levers->len, G_N_ELEMENTS(fields));
    for (guint i = 0; i < levers->len; i++) {
        const LhLever *lever = g_ptr_array_index(levers, i);

        ck_assert_str_eq(lever->path, fields[i].path);
        ck_assert_double_eq_tol(lh_lever_value(t, lever), fields[i].value, 1e-12 * fields[i].value);
    }
}
END_TEST

START_TEST(levels_that_cannot_be)
{
    static const Refused cases[] = {
        { SMALL(LEVELS(POD ", " LEAF)), "t.json:5:91: error: \"fabric.levels[1].nodes\" is 2; "
                                        "allowed: a larger multiple of the 4 nodes "
                                        "of the level before" },
        { SMALL(LEVELS("{\"nodes\": 2}, {\"nodes\": 2}")),
          "t.json:5:68: error: \"fabric.levels[1].nodes\" is 2; allowed: a larger multiple of the "
          "2 nodes "
          "of the level before" },
        { SMALL(LEVELS("{\"nodes\": 2}, {\"nodes\": 5}")),
          "t.json:5:68: error: \"fabric.levels[1].nodes\" is 5; allowed: a larger multiple of the "
          "2 nodes "
          "of the level before" },
        { SMALL(LEVELS("{\"nodes\": 2}, {\"nodes\": 4}") ", \"max_nodes\": 4"),
          "t.json:5:68: error: \"fabric.levels[1].nodes\" is 4, and \"max_nodes\" 4: a group of "
          "all nodes has no uplinks; allowed: fewer nodes, or no such level" },
        { SMALL(LEVELS("{\"nodes\": 2, \"oversubscription\": 0.5}")),
          "t.json:5:77: error: \"fabric.levels[0].oversubscription\" is out of range: found the "
          "number 0.5; allowed: 1 to 1000" },
        { SMALL(",\n \"fabric\": {\"kind\": \"rail\", \"levels\": [{\"nodes\": 2}]}"),
          "t.json:5:39: error: \"fabric.levels\" has no meaning for kind \"rail\"" },
        { SMALL(",\n \"fabric\": {\"kind\": \"fat-tree\", \"nodes_per_leaf\": 2, \"levels\": "
                "[{\"nodes\": 2}]}"),
          "t.json:5:51: error: \"fabric.nodes_per_leaf\" and \"fabric.levels\" cannot both be "
          "given: "
          "the first level states it" },
        { SMALL(",\n \"fabric\": {\"kind\": \"fat-tree\", \"levels\": [{\"nodes\": 2}], "
                "\"oversubscription\": 2}"),
          "t.json:5:79: error: \"fabric.oversubscription\" and \"fabric.levels\" cannot both be "
          "given: the first level states it" },
    };

    check_refused(cases, G_N_ELEMENTS(cases));
}
END_TEST

/* The longest possible route, with room for a limit: the GPU's link, a NIC, trunks of all levels,
 * and the link shared by collectives. */
START_TEST(longest_route_has_room_for_a_limit)
{
    g_autoptr(LhTopology) t =
        parse(CLUSTER("1", NONE SHARED, "\"count\": 1, \"pair_p2p\": \"2GB/s\"",
                      LEVELS("{\"nodes\": 1}, {\"nodes\": 2}, {\"nodes\": 4}, {\"nodes\": 8, "
                             "\"oversubscription\": 64}")));
    LhNetwork n;
    LhRoute route;

    network_of(&n, t, 16);
    lh_network_route(&n, 0, 15, &route);
    ck_assert_uint_eq(route.links_count, 4 + 2 * LH_FABRIC_LEVELS_MAX);
    ck_assert_double_eq(rate_of_routes(&n, &route, 1), 2e9);
    lh_network_collective_route(&n, 0, 15, &route);
    ck_assert_uint_eq(route.links_count, 6 + 2 * LH_FABRIC_LEVELS_MAX);
    ck_assert_uint_lt(route.links_count, LH_ROUTE_MAX);
    ck_assert_double_eq(rate_of_routes(&n, &route, 1), 20e9 * 8 / 64);
    route.flow_bandwidth_bytes_per_s = 1e9;
    ck_assert_double_eq(rate_of_routes(&n, &route, 1), 1e9);
}
END_TEST

/* ---- hosts ---- */

/* Four hosts of two GPUs and a NIC each. */
#define HOSTS(rest) CLUSTER("8, \"hosts\": 4", SWITCH, "\"count\": 4" rest, "")

START_TEST(hosts_meet_on_nvlink)
{
    static const char *const names[] = { "nvl72", "gb300-nvl72" };
    const Pair far[] = { { 0, 70 } };

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(LhTopology) t = lh_topology_load(names[i], NULL);
        LhNetwork n;

        network_of(&n, t, 2);
        ck_assert_uint_eq(n.hosts_per_node, 18);
        ck_assert_uint_eq(n.gpus_per_host, 4);
        ck_assert_double_eq(rate_of_first(&n, far, 1), t->nvlink.bandwidth);
        check_route(&n, 0, 70, "nvlink up, node 0, index 0; nvlink down, node 0, index 70: 3 us");
    }
}
END_TEST

/* One host of a node fails, or all do. */
START_TEST(hosts_fail_one_by_one)
{
    const LhLinkFault given[] = { { LH_TIER_NIC, 1, 0.5, 2 },
                                  { LH_TIER_NVLINK, 0, 0.25, 3 },
                                  { LH_TIER_PCIE, 1, 0, LH_FAULT_OF_ALL } };
    const LhLinkFault beyond = { LH_TIER_NIC, 0, 0.5, 4 };
    g_autoptr(LhTopology) t = parse(HOSTS(""));
    g_autoptr(GArray) faults = g_array_new(FALSE, TRUE, sizeof(LhLinkFault));
    g_autoptr(GError) error = NULL;
    LhNetwork n;

    g_array_append_vals(faults, given, G_N_ELEMENTS(given));
    ck_assert(lh_network_init(&n, t, 2, 16, faults, NULL));
    for (uint32_t id = 0; id < n.links_count; id++) {
        const LhLink link = lh_network_link(&n, id);
        const double whole = (const double[]){ 400e9, 50e9, 20e9 }[link.tier];
        double factor = 1;

        if (link.tier == LH_TIER_NIC && link.node == 1 && link.index == 2)
            factor = 0.5;
        if (link.tier == LH_TIER_NVLINK && link.node == 0 && link.index / 2 == 3)
            factor = 0.25;
        if (link.tier == LH_TIER_PCIE && link.node == 1)
            factor = 0;
        ck_assert_double_eq(link.bandwidth_bytes_per_s, whole * factor);
    }
    g_array_append_val(faults, beyond);
    ck_assert(!lh_network_init(&n, t, 2, 16, faults, &error));
    check_message(error, "link fault: host 4 of a node; allowed: 0 to 3, since a node of t has 4");
}
END_TEST

START_TEST(hosts_that_cannot_be)
{
    static const Refused cases[] = {
        { CLUSTER("8, \"hosts\": 3", SWITCH, "\"count\": 4", ""),
          "t.json:3:31: error: \"node.hosts\" is 3, which does not divide \"node.gpus\" 8; "
          "allowed: "
          "1, 2, 4, 8" },
        { CLUSTER("8, \"hosts\": 4", NONE, "\"count\": 4", ""),
          "t.json:3:31: error: \"node.hosts\" is 4, but \"node.scale_up.kind\" is \"none\" and "
          "only \"nvswitch\" connects GPUs of several hosts; allowed: 1" },
        { CLUSTER("8, \"hosts\": 4", SWITCH, "\"count\": 6", ""),
          "t.json:4:21: error: \"node.nics.count\" is 6, not a multiple of the 4 hosts; "
          "allowed: the same number for each host" },
        { HOSTS(", \"of_gpu\": [0, 0, 1, 1, 2, 3, 3, 3]"),
          "t.json:4:50: error: \"node.nics.of_gpu[5]\" is 3, a NIC of host 3, and GPU 5 is on host "
          "2; allowed: NICs of the GPU's host" },
    };
    const LhTopologyChange odd = { .nics = 6 };
    g_autoptr(LhTopology) t = parse(HOSTS(", \"of_gpu\": [0, 0, 1, 1, 2, 2, 3, 3]"));
    const char *field;
    g_autofree char *reason = lh_topology_change_refusal(&odd, t, &field);

    check_refused(cases, G_N_ELEMENTS(cases));
    ck_assert_str_eq(reason,
                     "6 NICs of a node do not divide among its 4 hosts; allowed: a multiple "
                     "of the hosts");
}
END_TEST

/* ---- random networks ---- */

/* NICs in any order, each near some GPU. */
static char *
random_nics(uint32_t gpus, uint64_t *drawn)
{
    GString *text = g_string_new(NULL);
    const uint32_t count = 1 + (uint32_t)below(drawn, gpus);
    g_autofree uint32_t *of = g_new(uint32_t, gpus);

    g_string_append_printf(text, "\"count\": %u", count);
    if (below(drawn, 3) == 0)
        return g_string_free(text, FALSE);
    for (uint32_t i = 0; i < gpus; i++)
        of[i] = i < count ? i : (uint32_t)below(drawn, count);
    for (uint32_t i = gpus - 1; i > 0; i--) {
        const uint32_t other = (uint32_t)below(drawn, i + 1), nic = of[i];

        of[i] = of[other];
        of[other] = nic;
    }
    for (uint32_t i = 0; i < gpus; i++)
        g_string_append_printf(text, "%s%u", i == 0 ? ", \"of_gpu\": [" : ", ", of[i]);
    g_string_append(text, "]");
    return g_string_free(text, FALSE);
}

static LhTopology *
random_cluster(uint64_t *drawn)
{
    const uint32_t gpus = 1 + (uint32_t)below(drawn, 6);
    g_autoptr(GString) text = g_string_new(CLUSTER("GPUS", "LINKS", "NICS", "REST"));
    g_autofree char *count = g_strdup_printf("%u", gpus);
    g_autofree char *nics = random_nics(gpus, drawn);
    g_autofree char *tree = NULL;
    const uint64_t kind = below(drawn, 4);
    uint64_t nodes = 1 + below(drawn, 2);

    if (kind > 1) {
        g_autoptr(GString) levels = g_string_new(NULL);

        for (uint64_t i = 0; i <= below(drawn, 3); i++, nodes *= 2)
            g_string_append_printf(levels, "%s{\"nodes\": %u, \"oversubscription\": %u.5}",
                                   i > 0 ? ", " : "", (unsigned)nodes,
                                   1 + (unsigned)below(drawn, 3));
        tree = g_strdup_printf(LEVELS("%s"), levels->str);
    }
    g_string_replace(text, "GPUS", count, 1);
    g_string_replace(text, "LINKS", kind == 1 || below(drawn, 2) == 0 ? SWITCH : NONE, 1);
    g_string_replace(text, "NICS", nics, 1);
    g_string_replace(text, "REST", kind > 1 ? tree : kind == 1 ? RAIL : "", 1);
    return parse(text->str);
}

START_TEST(random_networks_are_no_faster_than_they_allow)
{
    const uint64_t cases = MAX(test_share(400), 50);
    uint64_t drawn = UINT64_C(1) << 32, near = 0;

    for (uint64_t i = 0; i < cases; i++) {
        g_autoptr(LhTopology) t = random_cluster(&drawn);
        const uint32_t nodes = 2 + (uint32_t)below(&drawn, 8);
        const uint32_t ranks = nodes * (uint32_t)t->gpus_per_node;
        const Played p = random_played(ranks, &drawn);
        double bound, played;
        LhNetwork n;

        network_of(&n, t, nodes);
        check_symmetric(&n, &drawn);
        played = play(t, &p, &bound);
        near += bound > 0.5 * played;
    }
    ck_assert_uint_gt(near, cases / 2);
}
END_TEST

LH_TEST_MAIN("fabric", nics_are_shared_unevenly, nics_are_spread_in_a_row, rails_go_by_nics,
             rings_leave_by_each_nic_once, nccl_counts_nics, other_nics_are_in_a_row,
             nics_that_cannot_be, levels_multiply, one_level_is_leaves, levels_fail_one_by_one,
             levels_are_levers, levers_are_their_fields, longest_route_has_room_for_a_limit,
             levels_that_cannot_be, hosts_meet_on_nvlink, hosts_fail_one_by_one,
             hosts_that_cannot_be, random_networks_are_no_faster_than_they_allow)
