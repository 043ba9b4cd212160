/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PCIe as a tree: routes, shares and bounds by hand, rejected files, the hardware that collectives
 * were measured on, and random trees on which no simulation is faster than its lower bound.
 */
#include "hand_networks.h"
#include "run_tests.h"
#include "share.h"
#include "sim/network/collectives/collective_times.h"
#include "sim/network/collectives/measured.h"
#include "sim/network/collectives/nccl_model.h"
#include "sim/network/collectives/rings.h"
#include "sim/network/network.h"
#include "sim/network/sends.h"

#include <math.h>

#define GIGA 1e9
#define S_PER_PS 1e-12

#define LINK(latency)                                                                              \
    "\"latency\": \"" latency "\", \"ctas\": 2, \"provenance\": \"assumed\", \"source\": \"s\""
#define SAID ", \"provenance\": \"fitted\", \"source\": \"s\""
#define SWITCH "{\"name\": \"switch\", \"gpus\": 2, \"up\": \"24GB/s\"" SAID "}"
#define SOCKET                                                                                     \
    "{\"name\": \"socket\", \"gpus\": 4, \"up\": \"20GB/s\", \"latency\": \"500ns\"" SAID "}"
#define LEVELS "\"levels\": [" SWITCH ", " SOCKET "]"
#define HOST "\"host\": {\"per_gpu\": \"16GB/s\", \"bandwidth\": \"60GB/s\", \"gpus\": 4" SAID "}"
#define SCALE_UP_NONE "\"scale_up\": {\"kind\": \"none\"}"
#define BOX(scale_up, tree)                                                                        \
    "{\"schema\": \"longhaul.topology/2\", \"name\": \"t\", \"source\": \"s\", \"device\": "       \
    "\"l20\", \"node\": {\"gpus\": 8, " scale_up ", \"pcie\": {\"bandwidth\": \"24GB/s\", " LINK(  \
        "1us") ", " tree                                                                           \
               "}, \"nics\": {\"count\": 4, \"bandwidth\": \"10GB/s\", " LINK("5us") "}}}"
#define USUAL BOX(SCALE_UP_NONE, LEVELS ", \"p2p\": \"switch\", " HOST)
#define BRIDGES                                                                                    \
    BOX("\"scale_up\": {\"kind\": \"pairs\", \"bandwidth\": \"100GB/s\", " LINK("9us") "}",        \
        LEVELS ", \"p2p\": \"switch\", " HOST)

/* ---- by hand ---- */

START_TEST(tree_shares_links)
{
    static const struct {
        const char *text;
        Pair pairs[8];
        size_t count;
        double gbps;
    } cases[] = {
        { USUAL, { { 0, 1 } }, 1, 24 },           /* one switch: peer to peer */
        { USUAL, { { 0, 2 } }, 1, 16 },           /* two switches: through memory */
        { USUAL, { { 0, 2 }, { 1, 3 } }, 2, 12 }, /* limited by a switch's uplink */
        { USUAL,
          { { 0, 4 }, { 1, 5 }, { 2, 6 }, { 3, 7 } },
          4,
          5 }, /* limited by a socket's link */
        /* Memory of a socket: not used by messages within a switch, nor by those of the other
         * socket. */
        { USUAL, { { 0, 2 }, { 1, 3 }, { 2, 0 }, { 3, 1 } }, 4, 12 },
        { BOX(SCALE_UP_NONE, "\"p2p\": \"none\", " HOST),
          { { 0, 1 }, { 1, 2 }, { 2, 3 }, { 3, 0 }, { 4, 5 }, { 5, 6 }, { 6, 7 }, { 7, 4 } },
          8,
          15 },
        { BOX(SCALE_UP_NONE, "\"p2p\": \"none\", " HOST), { { 0, 5 }, { 1, 2 } }, 2, 16 },
        { BRIDGES, { { 2, 3 } }, 1, 100 }, /* bridges join pairs */
        { BRIDGES, { { 1, 2 } }, 1, 16 },
        { USUAL, { { 0, 8 }, { 1, 10 } }, 2, 5 }, /* to other nodes: through NICs, not the tree */
        { USUAL, { { 0, 8 }, { 2, 10 }, { 4, 12 } }, 3, 10 },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(LhTopology) t = parse(cases[i].text);
        LhNetwork n;
        double gbps;

        network_of(&n, t, 2);
        gbps = rate_of_first(&n, cases[i].pairs, cases[i].count) / GIGA;
        ck_assert_msg(fabs(gbps / cases[i].gbps - 1) < 1e-12, "case %zu: %g, not %g", i, gbps,
                      cases[i].gbps);
    }
}
END_TEST

#define LEVEL(name, gpus) "{\"name\": \"" name "\", \"gpus\": " gpus ", \"up\": \"24GB/s\"" SAID "}"

/* A route through all levels and memory still has room for the message's own limit. */
START_TEST(longest_route_of_a_tree_has_room_for_a_limit)
{
    g_autoptr(GString) text = g_string_new(
        BOX(SCALE_UP_NONE, "\"levels\": [" LEVEL("a", "1") ", " LEVEL("b", "2") ", " LEVEL(
                               "c", "4") ", " LEVEL("d", "8") "], \"p2p\": \"none\", " HOST));
    g_autoptr(LhTopology) t = NULL;
    LhNetwork n;
    LhRoute route;

    ck_assert_uint_eq(
        g_string_replace(text, "\"node\": {\"gpus\": 8", "\"node\": {\"gpus\": 16", 1), 1);
    t = parse(text->str);
    network_of(&n, t, 2);
    lh_network_route(&n, 16, 31, &route);
    ck_assert_uint_eq(route.links_count, 2 + 2 * LH_PCIE_LEVELS_MAX + 3);
    ck_assert_uint_lt(route.links_count, LH_ROUTE_MAX);
    ck_assert_double_eq(rate_of_routes(&n, &route, 1), 16e9);
    n.sends[LH_TIER_PCIE] = 0.25;
    lh_sends_limit(&n, &route);
    ck_assert_double_eq(rate_of_routes(&n, &route, 1), 4e9);
}
END_TEST

START_TEST(tree_names_its_links)
{
    static const struct {
        uint32_t from, to;
        const char *route;
    } cases[] = {
        { 0, 1, "pcie up, node 0, index 0; pcie down, node 0, index 1: 1 us" },
        { 9, 10,
          "pcie up, node 1, index 1; switch 0 up, node 1; switch 1 down, node 1; "
          "memory up, node 1, index 1; memory down, node 1, index 2; memory 0, node 1; "
          "pcie down, node 1, index 2: 1 us" },
        { 15, 8,
          "pcie up, node 1, index 7; switch 3 up, node 1; switch 0 down, node 1; "
          "socket 1 up, node 1; socket 0 down, node 1; memory up, node 1, index 7; "
          "memory down, node 1, index 0; memory 1, node 1; pcie down, node 1, index 0: 1.5 us" },
        { 0, 8,
          "pcie up, node 0, index 0; nic up, node 0, index 0; nic down, node 1, index 0; "
          "pcie down, node 1, index 0: 6 us" },
    };
    g_autoptr(LhTopology) t = parse(USUAL);
    g_autoptr(LhTopology) one = parse(BOX(SCALE_UP_NONE, "\"p2p\": \"none\", \"host\": "
                                                         "{\"bandwidth\": \"60GB/s\"" SAID "}"));
    g_autofree char *memory = NULL;
    LhNetwork n;

    network_of(&n, t, 2);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *found = describe(&n, cases[i].from, cases[i].to);

        ck_assert_str_eq(found, cases[i].route);
    }
    network_of(&n, one, 2);
    memory = describe(&n, 12, 9);
    ck_assert_str_eq(memory, "pcie up, node 1, index 4; memory, node 1; pcie down, node 1, index "
                             "1: 1 us");
}
END_TEST

static double
bound_s(const LhNetwork *n, LhGroup group, LhCollectiveKind kind, double bytes)
{
    return lh_link_bound_s_per_byte(n, &group, kind, LH_ALGORITHM_DEFAULT) * bytes;
}

/* Groups of non-consecutive GPUs: a ring visits all of one group, then the other. */
#define CROSSED                                                                                    \
    "\"levels\": [{\"name\": \"socket\", \"of_gpu\": [0, 1, 0, 1, 0, 1, 0, 1], \"up\": "           \
    "\"20GB/s\"" SAID "}]"

START_TEST(tree_bounds_collectives)
{
    g_autoptr(LhTopology) t = parse(USUAL);
    g_autoptr(LhTopology) crossed = parse(BOX(SCALE_UP_NONE, CROSSED));
    const LhGroup all = { 0, 1, 8, 0, 1 };
    LhRings rings;
    LhNetwork n;

    network_of(&n, t, 1);
    /* 16 of 56 pieces of 1 GB leave each socket. */
    ck_assert_double_eq_tol(bound_s(&n, all, LH_COLL_ALL_TO_ALL, 8e9), 16 / 20.0, 1e-12);
    /* A ring: one hop leaves each socket and each switch, through memory. */
    ck_assert_double_eq_tol(bound_s(&n, all, LH_COLL_ALL_GATHER, 8e9), 7 / 16.0, 1e-12);
    network_of(&n, crossed, 1);
    ck_assert_double_eq_tol(bound_s(&n, all, LH_COLL_ALL_GATHER, 8e9), 7 / 20.0, 1e-12);
    ck_assert_double_eq_tol(bound_s(&n, all, LH_COLL_ALL_TO_ALL, 8e9), 16 / 20.0, 1e-12);
    lh_rings_init(&rings, &n, &all);
    for (uint32_t place = 0; place < 8; place++)
        ck_assert_uint_eq(lh_rings_member(&rings, 0, place),
                          place < 4 ? 2 * place : 2 * (place - 4) + 1);
    lh_rings_clear(&rings);
}
END_TEST

/* Bridges across sockets: a closed ring is faster group by group, an open chain in order of
 * ranks. */
START_TEST(tree_bounds_chains_in_any_order)
{
    static const char text[] =
        "{\"schema\": \"longhaul.topology/2\", \"name\": \"t\", \"source\": \"s\", \"device\": "
        "\"l20\", "
        "\"max_nodes\": 1, \"node\": {\"gpus\": 16, \"scale_up\": {\"kind\": \"pairs\", "
        "\"bandwidth\": "
        "\"100GB/s\", " LINK("2us") "}, \"pcie\": {\"bandwidth\": \"14GB/s\", " LINK(
            "1us") ", \"levels\": ["
                   "{\"name\": \"board\", \"of_gpu\": [0, 1, 0, 3, 2, 2, 3, 1, 2, 0, 0, 1, 3, 3, "
                   "2, 1], "
                   "\"up\": \"12GB/s\"" SAID "}, "
                   "{\"name\": \"socket\", \"of_gpu\": [0, 0, 0, 1, 1, 1, 1, 0, 1, 0, 0, 0, 1, 1, "
                   "1, 0], "
                   "\"up\": \"9GB/s\"" SAID "}]}}}";
    g_autoptr(LhTopology) t = parse(text);
    LhNetwork n;

    network_of(&n, t, 1);
    /* The hops 1-2, 3-4 and 5-6 cross boards; the bridges carry the rest. */
    ck_assert_double_eq_tol(bound_s(&n, first_ranks(7), LH_COLL_BROADCAST, 1e9), 1 / 12.0, 1e-12);
}
END_TEST

/* Peer-to-peer links apply to a communicator with exactly two GPUs of a node, whatever it has in
 * other nodes. */
START_TEST(tree_joins_two_directly)
{
    static const struct {
        LhGroup group;
        bool directly;
    } cases[] = {
        { { 0, 4, 2, 0, 1 }, true },  { { 0, 4, 4, 0, 1 }, true }, /* two nodes, two GPUs each */
        { { 0, 1, 8, 0, 1 }, false }, { { 0, 2, 3, 0, 1 }, false }, { { 0, 4, 2, 1, 2 }, false },
    };
    g_autoptr(LhTopology) t =
        parse(BOX(SCALE_UP_NONE, LEVELS ", \"p2p\": \"switch\", \"p2p_two\": true, " HOST));
    LhNetwork n;

    network_of(&n, t, 2);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        LhRoute route;

        lh_network_route(&n, 0, 4, &route);
        ck_assert_double_eq(lh_network_route_bandwidth(&n, &route), 16e9);
        lh_network_route_in(&n, &cases[i].group, &route);
        ck_assert_double_eq(lh_network_route_bandwidth(&n, &route),
                            cases[i].directly ? 20e9 : 16e9);
        ck_assert_int_eq(route.latency_ps, 1500000);
        ck_assert_uint_eq(route.links_count, cases[i].directly ? 6 : 9);
        lh_network_route(&n, 0, 8, &route); /* routes between nodes do not change */
        lh_network_route_in(&n, &cases[i].group, &route);
        ck_assert_uint_eq(route.links_count, 4);
    }
}
END_TEST

/* For messages of a program the communicator is its group of ranks. */
START_TEST(tree_joins_programs_of_two)
{
    static const char text[] =
        BOX(SCALE_UP_NONE, "\"p2p\": \"none\", \"p2p_two\": true, \"host\": {\"per_gpu\": "
                           "\"12GB/s\"" SAID "}");
    static const Line lines[] = {
        { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { true, 1, 0, 24000000 } } },
        { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 0, 24000000 } } },
    };
    g_autoptr(LhTopology) t = parse(text);

    for (uint32_t ranks = 2; ranks <= 3; ranks++) {
        Script script = { .lines = lines, .count = G_N_ELEMENTS(lines) };
        g_autoptr(LhSimResult) result = NULL;
        World w;

        script_init(&w, &script, ranks);
        w.topology = *t;
        result = world_run(&w);
        ck_assert_int_eq(result->makespan_ps, (ranks == 2 ? MS : 2 * MS) + US);
        ck_assert_uint_eq((uint64_t)result->link_bytes[LH_TIER_PCIE], 48000000);
        world_clear(&w);
    }
}
END_TEST

/* For a collective the communicator is the collective's group, whatever else runs. */
START_TEST(tree_joins_collectives_of_two)
{
    g_autoptr(LhTopology) t =
        parse(BOX(SCALE_UP_NONE, "\"p2p\": \"none\", \"p2p_two\": true, "
                                 "\"host\": {\"per_gpu\": \"12GB/s\"" SAID "}"));
    static const LhCollectiveModel models[] = { LH_COLLECTIVES_RING, LH_COLLECTIVES_FLUID,
                                                LH_COLLECTIVES_DIRECT };

    for (uint32_t count = 2; count <= 3; count++) {
        for (size_t m = 0; m < G_N_ELEMENTS(models); m++) {
            g_autoptr(LhSimResult) result = NULL;
            double rate;
            Single s;
            World w;

            single_init(&s, LH_COLL_ALL_GATHER, first_ranks(count), 240000000, 0, 0);
            script_init(&w, &s.script, 4);
            w.topology = *t;
            w.device.memory_bandwidth = INFINITY;
            w.params.collectives = models[m];
            result = world_run(&w);
            rate = 240000000.0 * (count - 1) / ((double)result->makespan_ps * S_PER_PS) / GIGA;
            ck_assert_double_eq_tol(rate, count == 2 ? 24 : 12, 0.01);
            world_clear(&w);
        }
    }
}
END_TEST

/* NCCL's model uses the joint bandwidth of its rings. */
START_TEST(tree_limits_the_rings_of_nccl)
{
    static const struct {
        const char *text;
        uint32_t ranks;
        double gbps;
    } cases[] = {
        { USUAL, 8, 16 },
        { USUAL, 2, 24 },
        { BOX(SCALE_UP_NONE, "\"p2p\": \"none\", " HOST), 8, 15 },
        { BOX(SCALE_UP_NONE, CROSSED), 8, 20 },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(LhTopology) t = parse(cases[i].text);
        const LhDevice device = { .compute_capability = 89 };
        const LhGroup group = first_ranks(cases[i].ranks);
        LhNcclGroup *nccl;
        LhNetwork n;

        network_of(&n, t, 2);
        nccl = lh_nccl_group_new(&n, &device, &group);
        ck_assert_msg(fabs(nccl->bus_gbps / cases[i].gbps - 1) < 1e-12, "case %zu: %g", i,
                      nccl->bus_gbps);
        lh_nccl_group_free(nccl);
    }
}
END_TEST

START_TEST(tree_fails_with_pcie)
{
    g_autoptr(LhTopology) t = parse(USUAL);
    g_autoptr(GArray) faults = g_array_new(FALSE, TRUE, sizeof(LhLinkFault));
    const LhLinkFault fault = { LH_TIER_PCIE, 1, 0.5 };
    LhNetwork sound, faulty;

    g_array_append_val(faults, fault);
    network_of(&sound, t, 2);
    ck_assert(lh_network_init(&faulty, t, 2, 16, faults, NULL));
    for (uint32_t id = 0; id < sound.links_count; id++) {
        const LhLink link = lh_network_link(&sound, id);
        const bool slow = link.tier == LH_TIER_PCIE && link.node == 1;

        ck_assert_double_eq(lh_network_link(&faulty, id).bandwidth_bytes_per_s,
                            link.bandwidth_bytes_per_s * (slow ? 0.5 : 1));
    }
    /* Per node: up and down links of 8 GPUs, of 4 switches, of 2 sockets, and so on. */
    ck_assert_uint_eq(sound.links_count, 2 * (2 * 8 + 2 * 4 + 2 * 2 + 2 * 8 + 2 + 2 * 4));
}
END_TEST

/* ---- files ---- */

START_TEST(tree_refuses_what_cannot_be)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        { BOX(SCALE_UP_NONE, "\"levels\": []"), "\"node.pcie.levels\" has 0 elements" },
        { BOX(SCALE_UP_NONE, "\"levels\": [{\"name\": \"a b\", \"gpus\": 2}]"),
          "\"node.pcie.levels[0].name\" is \"a b\"; allowed: letters, digits, - and _" },
        { BOX(SCALE_UP_NONE, "\"levels\": [{\"name\": \"none\", \"gpus\": 2}]"),
          "is \"none\", which is a reserved value of \"node.pcie.p2p\"" },
        { BOX(SCALE_UP_NONE, "\"levels\": [{\"name\": \"a\", \"gpus\": 2}, {\"name\": \"a\", "
                             "\"gpus\": 4}]"),
          "\"node.pcie.levels[1].name\" is \"a\", the name of level 0" },
        { BOX(SCALE_UP_NONE, "\"levels\": [{\"name\": \"a\", \"gpus\": 3}]"),
          "\"node.pcie.levels[0].gpus\" is 3 of the 8 GPUs of a node; allowed: 1, 2, 4, or "
          "\"of_gpu\"" },
        { BOX(SCALE_UP_NONE, "\"levels\": [{\"name\": \"a\", \"gpus\": 8}]"), "allowed: 1, 2, 4" },
        { BOX(SCALE_UP_NONE, "\"levels\": [{\"name\": \"a\"}]"),
          "\"node.pcie.levels[0]\" has no \"gpus\" or \"of_gpu\"" },
        { BOX(SCALE_UP_NONE, "\"levels\": [{\"name\": \"a\", \"gpus\": 2, \"of_gpu\": [0]}]"),
          "has \"gpus\" and \"of_gpu\"" },
        { BOX(SCALE_UP_NONE, "\"levels\": [{\"name\": \"a\", \"of_gpu\": [0, 1]}]"),
          "\"node.pcie.levels[0].of_gpu\" has 2 numbers; allowed: one for each of the 8 GPUs" },
        { BOX(SCALE_UP_NONE,
              "\"levels\": [{\"name\": \"a\", \"of_gpu\": [0, 0, 0, 0, 0, 0, 0, 8]}]"),
          "GPU 7 is of group 8; allowed: 0 to 7" },
        { BOX(SCALE_UP_NONE,
              "\"levels\": [{\"name\": \"a\", \"of_gpu\": [0, 0, 0, 0, 2, 2, 2, 2]}]"),
          "no GPU is of group 1, and some are of group 2" },
        { BOX(SCALE_UP_NONE,
              "\"levels\": [{\"name\": \"a\", \"of_gpu\": [0, 0, 0, 0, 0, 0, 0, 0]}]"),
          "has all GPUs in one group" },
        { BOX(SCALE_UP_NONE, "\"levels\": [{\"name\": \"a\", \"of_gpu\": [0, 0, 0, 1, 1, 1, 2, "
                             "2]}, {\"name\": \"b\", \"gpus\": 4}]"),
          "\"node.pcie.levels[1]\": GPUs 3 and 4 are in one a but in two groups of b; allowed: "
          "levels from the inside out" },
        { BOX(SCALE_UP_NONE,
              "\"levels\": [{\"name\": \"a\", \"gpus\": 4}, {\"name\": \"b\", \"gpus\": 2}]"),
          "GPUs 0 and 2 are in one a but in two groups of b" },
        { BOX(SCALE_UP_NONE,
              "\"levels\": [{\"name\": \"a\", \"gpus\": 4}, {\"name\": \"b\", \"gpus\": 4}]"),
          "\"node.pcie.levels[1]\" has the same groups as a" },
        { BOX(SCALE_UP_NONE, "\"levels\": [{\"name\": \"a\", \"gpus\": 4, \"up\": \"1GB/s\"}]"),
          "missing field \"provenance\" in \"node.pcie.levels[0]\"" },
        { BOX(SCALE_UP_NONE, "\"levels\": [{\"name\": \"a\", \"gpus\": 4" SAID "}]"),
          "\"node.pcie.levels[0].provenance\" has no meaning without \"up\" or \"latency\"" },
        { BOX(SCALE_UP_NONE, LEVELS ", \"p2p\": \"board\""),
          "\"node.pcie.p2p\" is \"board\"; allowed: none, switch, socket, node" },
        { BOX(SCALE_UP_NONE, LEVELS ", " HOST),
          "\"node.pcie.host\" has no meaning where all GPUs reach each other directly" },
        { BOX(SCALE_UP_NONE, LEVELS ", \"p2p\": \"node\", \"p2p_two\": true"),
          "\"node.pcie.p2p_two\" has no meaning" },
        { BOX(SCALE_UP_NONE, "\"p2p\": \"none\", \"host\": {\"gpus\": 4" SAID "}"),
          "\"node.pcie.host\" has no rate" },
        { BOX(SCALE_UP_NONE,
              "\"p2p\": \"none\", \"host\": {\"per_gpu\": \"1GB/s\", \"gpus\": 4" SAID "}"),
          "\"node.pcie.host.gpus\" has no meaning without \"bandwidth\"" },
        { BOX(SCALE_UP_NONE,
              "\"p2p\": \"none\", \"host\": {\"bandwidth\": \"1GB/s\", \"gpus\": 3" SAID "}"),
          "\"node.pcie.host.gpus\" is 3, which does not divide \"node.gpus\" 8; allowed: 1, 2, 4, "
          "8" },
        { BOX("\"scale_up\": {\"kind\": \"nvswitch\", \"bandwidth\": \"1GB/s\", " LINK("1us") "}",
              LEVELS),
          "\"node.pcie.levels\" has no meaning: the GPUs of a node do not communicate over PCIe" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(LhTopology) t =
            lh_topology_parse("t.json", cases[i].text, strlen(cases[i].text), &error);

        ck_assert_msg(t == NULL, "case %zu is taken", i);
        ck_assert_msg(strstr(error->message, cases[i].words) != NULL, "case %zu: %s", i,
                      error->message);
        ck_assert(g_str_has_prefix(error->message, "t.json:1:"));
    }
}
END_TEST

#define ROW                                                                                        \
    "\"collective_times\": [{\"op\": \"all-gather\", \"ranks\": 8, \"bytes\": [1000, 1000000000]," \
    " \"us\": [10, 100000]" SAID "}], "
#define MEASURED(tree)                                                                             \
    ROW "\"measured_on\": {\"pcie\": {\"bandwidth\": \"24GB/s\", \"latency\": \"1us\"" tree        \
        "}}, " SCALE_UP_NONE
#define WHOLE                                                                                      \
    ", \"levels\": [{\"name\": \"switch\", \"up\": \"24GB/s\"}, {\"name\": \"socket\", \"up\": "   \
    "\"20GB/s\", \"latency\": \"500ns\"}], \"p2p\": \"switch\", \"host\": {\"per_gpu\": "          \
    "\"16GB/s\", \"bandwidth\": \"60GB/s\", \"gpus\": 4}"
#define NO_SOCKET                                                                                  \
    ", \"levels\": [{\"name\": \"switch\", \"up\": \"24GB/s\"}], \"p2p\": \"switch\", \"host\": "  \
    "{\"per_gpu\": \"16GB/s\", \"bandwidth\": \"60GB/s\", \"gpus\": 4}"
#define MEASURED_USUAL(on) BOX(MEASURED(on), LEVELS ", \"p2p\": \"switch\", " HOST)

#define CARRIED(scale_up)                                                                          \
    BOX("\"collective_times\": [{\"op\": \"%s\", \"ranks\": 2, \"bytes\": [1000, "                 \
        "1000000000], \"us\": [10, 1000000], \"algorithm\": \"%s\"" SAID "}], \"measured_on\": "   \
        "{\"pcie\": {\"bandwidth\": \"24GB/s\", \"latency\": \"1us\"}" scale_up,                   \
        "\"latency_provenance\": \"assumed\"")
#define ON_NVLINK(kind)                                                                            \
    CARRIED(", \"scale_up\": {\"bandwidth\": \"100GB/s\", \"latency\": \"9us\"}}, "                \
            "\"scale_up\": {\"kind\": \"" kind "\", \"bandwidth\": \"100GB/s\", " LINK("9us") "}")

/* Checks whether a row of @op measured with @algorithm is accepted: only those of @allowed are. */
static void
check_carried(const char *box, const char *op, const char *algorithm, const char *allowed)
{
    g_auto(GStrv) words = g_strsplit(allowed, ", ", -1);
    g_autofree char *expected = g_strdup_printf(
        "\"node.collective_times[0].algorithm\" is \"%s\"; allowed for %s%s: %s", algorithm, op,
        strcmp(op, "all-reduce") == 0 ? " without an NVSwitch" : "", allowed);
    g_autoptr(GString) text = g_string_new(box);
    g_autoptr(LhTopology) t = NULL;
    g_autoptr(GError) error = NULL;

    g_string_replace(text, "%s", op, 1);
    g_string_replace(text, "%s", algorithm, 1);
    t = lh_topology_parse("t.json", text->str, text->len, &error);
    if (g_strv_contains((const char *const *)words, algorithm))
        ck_assert_msg(t != NULL, "%s", error == NULL ? "" : error->message);
    else
        ck_assert_msg(error != NULL && strstr(error->message, expected) != NULL, "%s",
                      error == NULL ? expected : error->message);
}

START_TEST(rows_are_of_what_can_carry_them)
{
    static const char no_switch[] = "default, ring, pairs", no_rings[] = "default, pairs";
    static const char no_pairs[] = "default, ring", all[] = "default, ring, nvls, pairs";
    static const char *const without[] = { CARRIED("}, " SCALE_UP_NONE), ON_NVLINK("pairs") };
    static const char on_switch[] = ON_NVLINK("nvswitch");
    static const struct {
        const char *op, *without, *with; /* for a node with a switch */
    } cases[] = { { "all-gather", no_switch, no_switch },     { "all-reduce", no_switch, all },
                  { "reduce-scatter", no_switch, no_switch }, { "broadcast", no_pairs, no_pairs },
                  { "all-to-all", no_rings, no_rings },       { "sendrecv", no_pairs, no_pairs } };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        for (unsigned k = 0; lh_link_algorithm_names[k] != NULL; k++) {
            const char *name = lh_link_algorithm_names[k];

            for (size_t box = 0; box < G_N_ELEMENTS(without); box++)
                check_carried(without[box], cases[i].op, name, cases[i].without);
            check_carried(on_switch, cases[i].op, name, cases[i].with);
        }
    }
}
END_TEST

/* Measured times need a record of the PCIe that they were measured on, whatever the node has. */
START_TEST(tree_needs_what_it_was_measured_on)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        { MEASURED_USUAL(WHOLE), NULL },
        { MEASURED_USUAL(""), "missing field \"node.measured_on.pcie.p2p\"" },
        { MEASURED_USUAL(", \"p2p\": \"switch\""), "\"node.measured_on.pcie.host\"" },
        { MEASURED_USUAL(", \"p2p\": \"switch\", \"host\": {\"per_gpu\": \"16GB/s\"}"),
          "\"node.measured_on.pcie.host.bandwidth\"" },
        { MEASURED_USUAL(
              ", \"p2p\": \"switch\", \"host\": {\"per_gpu\": \"16GB/s\", \"bandwidth\": "
              "\"60GB/s\"}"),
          "\"node.measured_on.pcie.host.gpus\"" },
        { MEASURED_USUAL(", \"p2p\": \"switch\", \"levels\": [{\"name\": \"switch\", \"up\": "
                         "\"24GB/s\"}, {\"name\": \"socket\", \"up\": \"20GB/s\", \"latency\": "
                         "\"500ns\"}], \"host\": {\"per_gpu\": \"16GB/s\", \"bandwidth\": "
                         "\"60GB/s\", \"gpus\": 3}"),
          "\"node.measured_on.pcie.host.gpus\" is 3, which does not divide" },
        { MEASURED_USUAL(NO_SOCKET),
          "missing field \"up\" of level \"socket\" in \"node.measured_on.pcie.levels\"" },
        { MEASURED_USUAL(", \"levels\": [{\"name\": \"board\"}]"),
          "\"node.measured_on.pcie.levels[0].name\" is \"board\"" },
        { MEASURED_USUAL(", \"levels\": [{\"name\": \"switch\"}, {\"name\": \"switch\"}]"),
          "levels[1].name\" is \"switch\", which occurs twice" },
        { MEASURED_USUAL(", \"p2p\": \"rack\", \"host\": {\"per_gpu\": \"16GB/s\", "
                         "\"bandwidth\": \"60GB/s\", \"gpus\": 4}, \"levels\": [{\"name\": "
                         "\"switch\", \"up\": "
                         "\"24GB/s\"}, {\"name\": \"socket\", \"up\": \"20GB/s\", \"latency\": "
                         "\"500ns\"}]"),
          "\"node.measured_on.pcie.p2p\" is \"rack\"" },
        /* The node's PCIe has changed since the measurement. */
        { BOX(MEASURED(WHOLE), LEVELS), NULL },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(LhTopology) t =
            lh_topology_parse("t.json", cases[i].text, strlen(cases[i].text), &error);

        if (cases[i].words == NULL)
            ck_assert_msg(t != NULL, "case %zu: %s", i, error != NULL ? error->message : "");
        else
            ck_assert_msg(t == NULL && strstr(error->message, cases[i].words) != NULL,
                          "case %zu: %s", i, error != NULL ? error->message : "is taken");
    }
}
END_TEST

/* A row's bound is that of the PCIe tree it was measured on, whatever the node has now. */
START_TEST(tree_keeps_what_it_was_measured_on)
{
    g_autoptr(LhTopology) through = parse(MEASURED_USUAL(WHOLE));
    g_autoptr(LhTopology) direct = parse(BOX(MEASURED(WHOLE), LEVELS));
    const LhTopology *const topologies[] = { through, direct };

    for (size_t i = 0; i < G_N_ELEMENTS(topologies); i++) {
        const LhCollectiveTimes *row =
            &g_array_index(topologies[i]->collective_times, LhCollectiveTimes, 0);
        LhTopology reference;

        ck_assert_double_eq_tol(row->bound_s_per_byte * GIGA, 7.0 / 8 / 16, 1e-12);
        lh_measured_topology(topologies[i], &row->on, &reference);
        ck_assert_uint_eq(reference.tree.rates.reach, LH_PCIE_FIRST_LEVEL);
        ck_assert_double_eq(reference.tree.rates.memory, 60e9);
        ck_assert_int_eq(reference.tree.rates.latency_ps[1], 500000);
    }
}
END_TEST

/* Two numbers explain every row on more than two GPUs of a public measurement. */
START_TEST(tree_explains_a_measured_box)
{
    g_autoptr(LhTopology) t = lh_topology_load("pcie-rtx-pro-6000", NULL);
    unsigned rows = 0;

    for (guint i = 0; i < t->collective_times->len; i++) {
        const LhCollectiveTimes *row = &g_array_index(t->collective_times, LhCollectiveTimes, i);
        uint64_t bytes;
        const double efficiency = lh_collective_times_efficiency(row, &bytes);

        if (row->ranks == 2)
            continue;
        rows++;
        ck_assert_msg(efficiency >= 0.885 && efficiency <= 1.005, "%s on %u: %g",
                      lh_collective_names[row->op], (unsigned)row->ranks, efficiency);
    }
    ck_assert_uint_eq(rows, 8);
}
END_TEST

/* ---- random trees ---- */

static void
add_rate(GString *text, const char *name, uint64_t *drawn)
{
    g_string_append_printf(text, "\"%s\": \"%uGB/s\"", name, 1 + (unsigned)below(drawn, 60));
}

/* Levels over GPUs in random order; each level pairs the groups of the one below. */
static uint32_t
add_levels(GString *text, uint32_t gpus, uint64_t *drawn)
{
    g_autofree uint32_t *seats = g_new(uint32_t, gpus);
    const bool in_row = below(drawn, 2) == 0;
    uint32_t count = 0;

    for (uint32_t i = 0; i < gpus; i++)
        seats[i] = i;
    for (uint32_t i = gpus - 1; i > 0 && !in_row; i--) {
        const uint32_t other = (uint32_t)below(drawn, i + 1), seat = seats[i];

        seats[i] = seats[other];
        seats[other] = seat;
    }
    for (uint32_t size = 2; size < gpus && below(drawn, 3) > 0; size *= 2) {
        g_string_append_printf(text, "%s{\"name\": \"l%u\", ",
                               count == 0 ? ", \"levels\": [" : ", ", count);
        if (in_row)
            g_string_append_printf(text, "\"gpus\": %u", size);
        for (uint32_t i = 0; i < gpus && !in_row; i++)
            g_string_append_printf(text, "%s%u", i == 0 ? "\"of_gpu\": [" : ", ", seats[i] / size);
        g_string_append(text, in_row ? "" : "]");
        if (below(drawn, 4) > 0) {
            g_string_append(text, ", ");
            add_rate(text, "up", drawn);
            g_string_append_printf(text, ", \"latency\": \"%uns\"" SAID,
                                   (unsigned)below(drawn, 900));
        }
        g_string_append(text, "}");
        count++;
    }
    g_string_append(text, count > 0 ? "]" : "");
    return count;
}

static LhTopology *
random_box(uint64_t *drawn)
{
    const uint32_t gpus = 4u << below(drawn, 3);
    g_autoptr(GString) text = g_string_new(NULL);
    uint32_t levels, reach;

    g_string_append_printf(
        text,
        "{\"schema\": \"longhaul.topology/2\", \"name\": \"t\", \"source\": \"s\", \"device\": "
        "\"l20\", \"node\": {\"gpus\": %u, \"scale_up\": {\"kind\": \"%s}, \"nics\": {\"count\": "
        "%u, \"bandwidth\": \"%uGB/s\", " LINK("5us") "}, \"pcie\": {" LINK("1us") ", ",
        gpus,
        below(drawn, 3) > 0
            ? "none\""
            : "pairs\", \"bandwidth\": \"100GB/s\", \"latency\": \"2us\", \"ctas\": 2" SAID,
        1u << below(drawn, 3), 1 + (unsigned)below(drawn, 50));
    add_rate(text, "bandwidth", drawn);
    levels = add_levels(text, gpus, drawn);
    reach = (uint32_t)below(drawn, levels + 2);
    if (reach == 0)
        g_string_append(text, ", \"p2p\": \"none\"");
    else if (reach <= levels)
        g_string_append_printf(text, ", \"p2p\": \"l%u\"", reach - 1);
    if (reach <= levels) {
        g_string_append_printf(text, ", \"p2p_two\": %s, \"host\": {",
                               below(drawn, 2) == 0 ? "true" : "false");
        add_rate(text, "per_gpu", drawn);
        g_string_append(text, ", ");
        add_rate(text, "bandwidth", drawn);
        g_string_append_printf(text, ", \"gpus\": %u" SAID "}", gpus >> below(drawn, 3));
    }
    g_string_append(text, "}}}");
    return parse(text->str);
}

START_TEST(random_trees_are_no_faster_than_they_allow)
{
    const uint64_t cases = MAX(test_share(400), 50);
    uint64_t drawn = 0, near = 0;

    for (uint64_t i = 0; i < cases; i++) {
        g_autoptr(LhTopology) t = random_box(&drawn);
        const uint32_t gpus = (uint32_t)t->gpus_per_node;
        const uint32_t ranks =
            below(&drawn, 3) > 0 ? 2 + (uint32_t)below(&drawn, gpus - 1) : 2 * gpus;
        const Played p = random_played(ranks, &drawn);
        LhTopology raised = *t;
        double bound, bound_raised, played;
        LhNetwork n;

        network_of(&n, t, ranks > gpus ? 2 : 1);
        check_symmetric(&n, &drawn);
        played = play(t, &p, &bound);
        near += bound > 0.5 * played;
        /* Twice the bandwidth of all of PCIe: never slower, and bytes in proportion. */
        raised.pcie.bandwidth *= 2;
        lh_pcie_scale_rates(&raised.tree.rates, 2);
        ck_assert_double_le(play(&raised, &p, &bound_raised), played * (1 + 1e-9));
        if (ranks <= gpus && t->scale_up == LH_SCALE_UP_NONE)
            ck_assert_double_eq_tol(bound_raised * 2, bound, bound * 1e-12);
    }
    ck_assert_uint_gt(near, cases / 2);
}
END_TEST

LH_TEST_MAIN("pcie", tree_shares_links, longest_route_of_a_tree_has_room_for_a_limit,
             tree_names_its_links, tree_bounds_collectives, tree_bounds_chains_in_any_order,
             tree_joins_two_directly, tree_joins_programs_of_two, tree_joins_collectives_of_two,
             tree_limits_the_rings_of_nccl, tree_fails_with_pcie, tree_refuses_what_cannot_be,
             rows_are_of_what_can_carry_them, tree_needs_what_it_was_measured_on,
             tree_keeps_what_it_was_measured_on, tree_explains_a_measured_box,
             random_trees_are_no_faster_than_they_allow)
