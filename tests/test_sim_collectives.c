/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives as messages on the network, compared with what is known of their algorithms: times on
 * an idle symmetric network to the picosecond, dependencies between ranks, bytes on links, and
 * NCCL's model against its formulas by hand and against measurements.
 */
#include "base/error.h"
#include "program/collective_semantics.h"
#include "run_tests.h"
#include "sim/network/collectives/nccl_model.h"
#include "sim/network/collectives/rings.h"
#include "sim/network/collectives/tree_rounds.h"
#include "sim_single.h"

#include <math.h>

/* On the bench platform's NVLink 10.08 us, in 6 pieces of 1.68 us; divisible by 2 .. 8 ranks. */
#define SHARD UINT64_C(3024000)
#define HOP (2 * US)
#define MOVE_NS 10080
#define PIECES 6
#define NS INT64_C(1000)

static const LhCollectiveModel models[] = { LH_COLLECTIVES_RING,     LH_COLLECTIVES_TREE,
                                            LH_COLLECTIVES_PAIRWISE, LH_COLLECTIVES_DIRECT,
                                            LH_COLLECTIVES_NCCL,     LH_COLLECTIVES_CLOSED_FORM,
                                            LH_COLLECTIVES_FLUID };

/* Simulates the script on the bench platform with @ranks ranks and a limit for pairs of GPUs (0:
 * none). Reductions take no time. */
static LhSimResult *
play_limited(Single *s, uint32_t ranks, LhCollectiveModel model, LhNetworkModel network,
             double flow_bandwidth)
{
    LhSimResult *result;
    World w;

    script_init(&w, &s->script, ranks);
    w.params.collectives = model;
    w.params.network_model = network;
    w.topology.nic.pair_p2p = w.topology.nic.pair_collective = flow_bandwidth;
    w.device.memory_bandwidth = INFINITY;
    result = world_run(&w);
    world_clear(&w);
    return result;
}

static LhSimResult *
play(Single *s, uint32_t ranks, LhCollectiveModel model, LhNetworkModel network)
{
    return play_limited(s, ranks, model, network, 0);
}

/* ---- an idle, symmetric network ---- */

/* One message to each other rank, all at once, in nanoseconds. */
static LhTime
at_once_ns(LhTime n, LhTime message_ns, LhNetworkModel network)
{
    return HOP / NS + (network == LH_NETWORK_FAIR ? n - 1 : 1) * message_ns;
}

/* The same for algorithms that send directly to the destination. */
static LhTime
direct_ns(LhCollectiveKind kind, LhTime n, LhNetworkModel network)
{
    if (kind == LH_COLL_BROADCAST)
        return (n - 1) * (HOP / NS + MOVE_NS);
    if (network == LH_NETWORK_FIFO)
        return -1;
    return (kind == LH_COLL_ALL_REDUCE ? 2 : 1) *
           at_once_ns(n, kind == LH_COLL_ALL_TO_ALL ? MOVE_NS / n : MOVE_NS, network);
}

/* Time of every algorithm for one collective of n ranks in one node, in nanoseconds; -1: not
 * known exactly. */
static LhTime
expected_ns(LhCollectiveModel model, LhCollectiveKind kind, LhTime n, LhNetworkModel network)
{
    const LhTime hop = HOP / NS;

    if (n == 1)
        return 0;
    if (model == LH_COLLECTIVES_DIRECT)
        return direct_ns(kind, n, network);
    switch (kind) {
    case LH_COLL_ALL_REDUCE:
        return model == LH_COLLECTIVES_TREE ? -1 : 2 * (n - 1) * (hop + MOVE_NS);
    case LH_COLL_ALL_TO_ALL:
        if (model == LH_COLLECTIVES_PAIRWISE || model == LH_COLLECTIVES_CLOSED_FORM)
            return (n - 1) * (hop + MOVE_NS / n);
        if (network == LH_NETWORK_FIFO)
            return -1;
        return at_once_ns(n, MOVE_NS / n, network);
    case LH_COLL_BROADCAST:
        return (n - 1) * hop + (n - 2 + PIECES) * (MOVE_NS / PIECES);
    default:
        return (n - 1) * (hop + MOVE_NS);
    }
}

static void
check_alone(LhCollectiveModel model, LhCollectiveKind kind, uint32_t n, LhNetworkModel network)
{
    const LhTime expected = expected_ns(model, kind, n, network) * NS;
    g_autoptr(LhSimResult) result = NULL;
    Single s;

    single_init(&s, kind, first_ranks(n), SHARD, 0, 0);
    result = play(&s, n, model, network);
    for (uint32_t r = 0; r < n; r++) {
        uint64_t sent = lh_collective_bytes_sent(kind, &(LhGroup){ 0, 1, n, 0, 1 }, r, SHARD);

        if (model != LH_COLLECTIVES_TREE || kind != LH_COLL_ALL_REDUCE)
            ck_assert_uint_eq(result->ranks[r].bytes_sent, sent);
        ck_assert_uint_eq(result->ranks[r].bytes_by_tier[LH_TIER_NVLINK],
                          result->ranks[r].bytes_sent);
    }
    if (expected < 0)
        return;
    /* Link shares are rounded once if they do not divide the whole. */
    ck_assert_msg(labs(result->makespan_ps - expected) <= 1,
                  "%s, %s, %u ranks, %s: %" G_GINT64_FORMAT " ps instead of %" G_GINT64_FORMAT,
                  lh_collective_model_names[model], lh_collective_names[kind], n,
                  lh_network_model_names[network], result->makespan_ps, expected);
}

START_TEST(collectives_alone_take_their_closed_forms)
{
    for (uint32_t m = 0; m < G_N_ELEMENTS(models); m++)
        for (uint32_t n = 1; n <= 8; n++)
            for (int kind = 0; kind < LH_COLL_KINDS; kind++)
                for (int network = LH_NETWORK_FAIR; network <= LH_NETWORK_FIFO; network++)
                    if (models[m] != LH_COLLECTIVES_NCCL)
                        check_alone(models[m], (LhCollectiveKind)kind, n, (LhNetworkModel)network);
}
END_TEST

/* A tree costs twice its depth without bytes. With few bytes, two ranks send both halves up and
 * down at once; with many, its links carry as much as a ring's. */
START_TEST(collectives_know_the_double_tree)
{
    static const LhTime depths[] = { 0, 0, 1, 2, 2, 3, 3, 3, 3 };
    const LhTime ring = 14 * (HOP + 100 * MOVE_NS * NS);

    for (uint32_t n = 1; n <= 8; n++) {
        g_autoptr(LhSimResult) result = NULL;
        Single s;

        single_init(&s, LH_COLL_ALL_REDUCE, first_ranks(n), 0, 0, 0);
        result = play(&s, n, LH_COLLECTIVES_TREE, LH_NETWORK_FAIR);
        ck_assert_int_eq(result->makespan_ps, 2 * depths[n] * HOP);
    }
    for (uint32_t large = 0; large < 2; large++) {
        g_autoptr(LhSimResult) result = NULL;
        uint64_t sent = 0;
        Single s;

        single_init(&s, LH_COLL_ALL_REDUCE, first_ranks(large ? 8 : 2),
                    large ? 100 * SHARD : 300000, 0, 0);
        result = play(&s, large ? 8 : 2, LH_COLLECTIVES_TREE, LH_NETWORK_FAIR);
        for (uint32_t r = 0; r < result->ranks_count; r++)
            sent += result->ranks[r].bytes_sent;
        ck_assert_uint_eq(sent, large ? UINT64_C(8) * 14 * 100 * SHARD : 4 * 300000);
        if (large)
            ck_assert_double_eq_tol((double)result->makespan_ps / (double)ring, 1.1, 0.1);
        else
            ck_assert_int_eq(result->makespan_ps, 2 * (HOP + 1 * US));
    }
}
END_TEST

/* Ranks of two nodes: every piece crosses a NIC, and latencies overlap. */
START_TEST(collectives_keep_slow_links_busy)
{
    const LhTime nic = 10 * US, latency = 5 * US; /* 125,000 bytes at 12.5 GB/s; 3 + 2 us */
    g_autoptr(LhSimResult) ring = NULL, closed = NULL;
    Single s;

    single_init(&s, LH_COLL_ALL_GATHER, first_ranks(16), 125000, 0, 0);
    ring = play(&s, 16, LH_COLLECTIVES_RING, LH_NETWORK_FAIR);
    closed = play(&s, 16, LH_COLLECTIVES_CLOSED_FORM, LH_NETWORK_FAIR);
    ck_assert_int_eq(ring->makespan_ps, 15 * nic + latency);
    ck_assert_int_eq(closed->makespan_ps, 15 * (nic + latency));
}
END_TEST

/* A ring leaves a node over a single pair of GPUs: every model applies the limit of a pair, and
 * charges it to the NIC. Eight pairs that cross at once share the NIC as usual. */
START_TEST(collectives_keep_to_the_limit_of_a_pair)
{
    const LhTime pair = 25 * US, latency = 5 * US; /* 125,000 bytes at 5 GB/s */

    for (int model = LH_NETWORK_FAIR; model <= LH_NETWORK_FIFO; model++) {
        const LhNetworkModel network = (LhNetworkModel)model;
        g_autoptr(LhSimResult) ring = NULL, closed = NULL, free = NULL, limited = NULL;
        Single s;

        single_init(&s, LH_COLL_ALL_GATHER, first_ranks(16), 125000, 0, 0);
        ring = play_limited(&s, 16, LH_COLLECTIVES_RING, network, 5e9);
        closed = play_limited(&s, 16, LH_COLLECTIVES_CLOSED_FORM, network, 5e9);
        if (network != LH_NETWORK_ALPHA_BETA)
            ck_assert_int_eq(ring->makespan_ps, 15 * pair + latency);
        ck_assert_int_eq(closed->makespan_ps, 15 * (pair + latency));
        ck_assert_int_ge(ring->ranks[7].idle_ps[LH_IDLE_COMM + LH_TIER_NIC], 15 * pair);
        if (network != LH_NETWORK_FAIR)
            continue;
        single_init(&s, LH_COLL_ALL_TO_ALL, first_ranks(16), 2000000, 0, 0);
        free = play(&s, 16, LH_COLLECTIVES_PAIRWISE, network);
        limited = play_limited(&s, 16, LH_COLLECTIVES_PAIRWISE, network, 12.5e9 / 8);
        ck_assert_int_eq(free->makespan_ps, limited->makespan_ps);
    }
}
END_TEST

/* ---- several rings ---- */

/* On a bench platform with this number of NICs per node. */
static LhSimResult *
play_rings(Single *s, uint32_t ranks, LhCollectiveModel model, uint64_t nics, LhFabric fabric)
{
    LhSimResult *result;
    World w;

    script_init(&w, &s->script, ranks);
    w.params.collectives = model;
    w.topology.nics_per_node = nics;
    w.topology.fabric = (int)fabric;
    result = world_run(&w);
    world_clear(&w);
    return result;
}

/* All NICs of a node are busy throughout, with one latency at the end. The formula has one
 * latency per step; so has a ring with one member per node, which has nothing else to send. A
 * member that leaves the node in a ring sends that ring's part of all shards over the NIC. */
static void
check_rings(LhCollectiveKind kind, LhGroup group, uint64_t nics, LhFabric fabric, uint32_t rings)
{
    const LhTime nic = 10 * US, latency = 5 * US; /* 125,000 bytes at 12.5 GB/s; 3 + 2 us */
    const uint64_t steps = (kind == LH_COLL_ALL_REDUCE ? 2 : 1) * (lh_group_size(&group) - 1);
    g_autoptr(LhSimResult) ring = NULL, closed = NULL;
    uint64_t by_nic = 0;
    Single s;

    single_init(&s, kind, group, rings * UINT64_C(125000), 0, 0);
    ring = play_rings(&s, 16, LH_COLLECTIVES_RING, nics, fabric);
    closed = play_rings(&s, 16, LH_COLLECTIVES_CLOSED_FORM, nics, fabric);
    ck_assert_int_eq(ring->makespan_ps,
                     (LhTime)steps * nic +
                         (lh_group_size(&group) == 2 ? (LhTime)steps : 1) * latency);
    ck_assert_int_le(labs(closed->makespan_ps - (LhTime)steps * (nic + latency)), 1);
    for (uint32_t r = 0; r < 16; r++) {
        const LhRankResult *rank = &ring->ranks[r];
        const bool there = lh_group_position(&group, r) != UINT32_MAX;

        ck_assert_uint_eq(rank->bytes_sent, there ? steps * rings * 125000 : 0);
        ck_assert(rank->bytes_by_tier[LH_TIER_NIC] == 0 ||
                  rank->bytes_by_tier[LH_TIER_NIC] == steps * 125000);
        ck_assert_mem_eq(rank->bytes_by_tier, closed->ranks[r].bytes_by_tier,
                         sizeof(rank->bytes_by_tier));
        by_nic += rank->bytes_by_tier[LH_TIER_NIC];
    }
    ck_assert_uint_eq(by_nic, 2 * rings * steps * 125000);
    ck_assert(ring->link_bytes[LH_TIER_NIC] == 2 * by_nic);
}

START_TEST(rings_use_all_nics)
{
    static const struct {
        LhGroup group;
        uint64_t nics;
        uint32_t rings;
    } cases[] = {
        { { 0, 1, 16, 0, 1 }, 8, 8 }, { { 0, 1, 16, 0, 1 }, 4, 4 }, { { 0, 1, 16, 0, 1 }, 1, 1 },
        { { 0, 8, 2, 1, 8 }, 8, 8 }, /* in group order every hop would cross a NIC */
        { { 5, 1, 8, 0, 1 }, 8, 3 }, /* three in node 0, five in node 1 */
        { { 5, 1, 8, 0, 1 }, 4, 2 }, /* two of the three share a NIC */
        { { 1, 4, 4, 0, 1 }, 8, 2 }, /* a column of ranks */
        { { 1, 4, 4, 0, 1 }, 2, 2 },  { { 3, 8, 2, 0, 1 }, 8, 1 },
    };

    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++)
        for (int kind = LH_COLL_ALL_GATHER; kind <= LH_COLL_ALL_REDUCE; kind++)
            for (int fabric = LH_FABRIC_IDEAL; fabric <= LH_FABRIC_RAIL; fabric++)
                check_rings((LhCollectiveKind)kind, cases[i].group, cases[i].nics, (LhFabric)fabric,
                            cases[i].rings);
}
END_TEST

/* Checks the order of members in the rings of @ranks, for two nodes of 4 GPUs in pairs. */
static void
check_pairs(uint64_t nics, uint32_t ranks, const char *const *rings)
{
    g_autoptr(LhTopology) t = lh_topology_load("azure-nc96-a100", NULL);
    const LhGroup group = first_ranks(ranks);
    LhNetwork network;
    LhRings found;

    t->nics_per_node = nics;
    ck_assert(lh_network_init(&network, t, 2, 8, NULL, NULL));
    lh_rings_init(&found, &network, &group);
    for (uint32_t ring = 0; rings[ring] != NULL; ring++) {
        g_autoptr(GString) members = g_string_new(NULL);

        ck_assert_uint_lt(ring, found.count);
        for (uint32_t place = 0; place < ranks; place++) {
            const uint32_t member = lh_rings_member(&found, ring, place);

            g_string_append_printf(members, "%u", member);
            ck_assert_uint_eq(lh_rings_place(&found, ring, member), place);
        }
        ck_assert_str_eq(members->str, rings[ring]);
    }
    lh_rings_clear(&found);
}

/* A ring visits both GPUs of a pair before it leaves the pair, in any node that has whole pairs. */
START_TEST(rings_keep_pairs_together)
{
    static const char *const four[] = { "01237654", "10326745", "23015476", "32104567", NULL };
    static const char *const two[] = { "01237654", "23015476", NULL };
    static const char *const one[] = { "01234567", NULL };
    static const char *const uneven[] = { "0123654", "1032465", "2301546", NULL };

    check_pairs(4, 8, four);
    check_pairs(2, 8, two);
    check_pairs(1, 8, one);
    check_pairs(4, 7, uneven);
}
END_TEST

/* Another NIC never slows a gather: rings that split pairs would cross PCIe twice per node. */
START_TEST(rings_gain_by_another_nic)
{
    LhTime before = LH_TIME_NEVER;

    for (uint64_t nics = 1; nics <= 4; nics *= 2) {
        g_autoptr(LhTopology) t = lh_topology_load("azure-nc96-a100", NULL);
        g_autoptr(LhSimResult) result = NULL;
        Single s;
        World w;

        single_init(&s, LH_COLL_ALL_GATHER, first_ranks(24), 1000000000, 0, 0);
        script_init(&w, &s.script, 24);
        t->nics_per_node = nics;
        t->nic.bandwidth = t->pcie.bandwidth;
        t->nic.pair_p2p = t->nic.pair_collective = 0;
        w.topology = *t;
        result = world_run(&w);
        world_clear(&w);
        ck_assert_int_le(result->makespan_ps, before + (nics == 2 ? 100 * US : 0));
        if (nics == 4)
            ck_assert_int_lt(result->makespan_ps, before / 10 * 6); /* half, and latencies */
        before = result->makespan_ps;
    }
}
END_TEST

/* Byte counts that the rings cannot share evenly, including fewer bytes than rings. */
START_TEST(rings_carry_every_byte)
{
    static const uint64_t shards[] = { 1, 7, 1000003 };

    for (uint32_t i = 0; i < G_N_ELEMENTS(shards); i++)
        for (uint32_t m = 0; m < G_N_ELEMENTS(models); m++) {
            g_autoptr(LhSimResult) result = NULL;
            uint64_t sent = 0;
            Single s;

            single_init(&s, LH_COLL_ALL_REDUCE, first_ranks(16), shards[i], 0, 0);
            result = play_rings(&s, 16, models[m], 8, LH_FABRIC_IDEAL);
            for (uint32_t r = 0; r < 16; r++) {
                if (models[m] != LH_COLLECTIVES_TREE)
                    ck_assert_uint_eq(result->ranks[r].bytes_sent, 30 * shards[i]);
                sent += result->ranks[r].bytes_sent;
            }
            ck_assert_uint_eq(sent, 16 * 30 * shards[i]);
        }
}
END_TEST

/* Between two nodes with one NIC per GPU the time is that of NCCL's model; trees use all NICs,
 * too. */
START_TEST(rings_take_the_time_of_nccl)
{
    static const LhCollectiveModel chosen[] = { LH_COLLECTIVES_RING, LH_COLLECTIVES_CLOSED_FORM };
    const uint64_t shard = UINT64_C(32) << 20;
    g_autoptr(LhSimResult) nccl = NULL, tree = NULL, one = NULL;
    Single s;
    World w;

    single_init(&s, LH_COLL_ALL_GATHER, first_ranks(16), shard, 0, 0);
    for (uint32_t i = 0; i <= G_N_ELEMENTS(chosen); i++) {
        g_autoptr(LhSimResult) result = NULL;
        g_autoptr(LhTopology) dfa = lh_topology_load("dfa-2node", NULL);

        script_init(&w, &s.script, 16);
        w.topology = *dfa;
        w.params.collectives = i > 0 ? chosen[i - 1] : LH_COLLECTIVES_NCCL;
        result = world_run(&w);
        if (i == 0)
            nccl = g_steal_pointer(&result);
        else
            ck_assert_double_eq_tol((double)result->makespan_ps / (double)nccl->makespan_ps, 1,
                                    0.08);
        world_clear(&w);
    }
    single_init(&s, LH_COLL_ALL_REDUCE, first_ranks(16), shard, 0, 0);
    tree = play_rings(&s, 16, LH_COLLECTIVES_TREE, 8, LH_FABRIC_IDEAL);
    one = play_rings(&s, 16, LH_COLLECTIVES_TREE, 1, LH_FABRIC_IDEAL);
    ck_assert_int_lt(4 * tree->makespan_ps, one->makespan_ps);
}
END_TEST

START_TEST(collectives_of_one_rank_cost_nothing)
{
    for (uint32_t m = 0; m < G_N_ELEMENTS(models); m++)
        for (int kind = 0; kind < LH_COLL_KINDS; kind++) {
            g_autoptr(LhSimResult) result = NULL;
            Single s;

            single_init(&s, (LhCollectiveKind)kind, (LhGroup){ 1, 3, 1, 5, 1 }, SHARD, 0, 0);
            result = play(&s, 2, models[m], LH_NETWORK_FAIR);
            ck_assert_int_eq(result->makespan_ps, 0);
            ck_assert_uint_eq(result->ranks[1].bytes_sent, 0);
        }
}
END_TEST

/* ---- waiting for late ranks ---- */

/* Rank 2 of 3 is 50 us late. In a ring everyone needs everyone. Its predecessor's pieces queue
 * up for it; the pieces that it sends are forwarded at once. */
START_TEST(collectives_wait_for_stragglers)
{
    const LhTime step = HOP + MOVE_NS * NS, late = 50 * US;
    g_autoptr(LhSimResult) gather = NULL;
    Single s;

    single_init(&s, LH_COLL_ALL_GATHER, first_ranks(3), SHARD, 2, late);
    gather = play(&s, 3, LH_COLLECTIVES_RING, LH_NETWORK_FAIR);
    /* 1 -> 2 has both pieces by now: the second follows the first without a gap. */
    ck_assert_int_eq(gather->ranks[1].finish_ps, late + 2 * step);
    ck_assert_int_eq(gather->ranks[2].finish_ps, late + 2 * step);
    ck_assert_int_eq(gather->ranks[0].idle_ps[LH_IDLE_IMBALANCE], late - step);
    ck_assert_int_eq(gather->ranks[0].idle_ps[LH_IDLE_COMM], 3 * step);
    ck_assert_int_eq(gather->ranks[1].idle_ps[LH_IDLE_IMBALANCE], late - step);
}
END_TEST

/* A chain that waits for its last member has already served the others. */
START_TEST(collectives_delay_only_who_depends)
{
    const LhTime step = HOP + 1 * US, late = 50 * US;
    Single s;

    for (uint32_t straggler = 0; straggler < 3; straggler++) {
        const LhTime finish[3][3] = { { late + step, late + 2 * step, late + 2 * step },
                                      { late + step, late + 2 * step, late + 2 * step },
                                      { step, late + step, late + step } };
        g_autoptr(LhSimResult) result = NULL;

        single_init(&s, LH_COLL_BROADCAST, first_ranks(3), 300000, straggler, late);
        result = play(&s, 3, LH_COLLECTIVES_RING, LH_NETWORK_FAIR);
        for (uint32_t r = 0; r < 3; r++)
            ck_assert_int_eq(result->ranks[r].finish_ps, finish[straggler][r]);
    }
    {
        g_autoptr(LhSimResult) shot = NULL, pairs = NULL;

        single_init(&s, LH_COLL_ALL_TO_ALL, first_ranks(3), 900000, 2, late);
        shot = play(&s, 3, LH_COLLECTIVES_RING, LH_NETWORK_FAIR);
        pairs = play(&s, 3, LH_COLLECTIVES_PAIRWISE, LH_NETWORK_FAIR);
        /* One-shot: 0 and 1 have already exchanged theirs; only rank 2's own two share a link. */
        ck_assert_int_eq(shot->makespan_ps, late + HOP + 2 * US);
        ck_assert_int_eq(shot->ranks[0].idle_ps[LH_IDLE_COMM], step + HOP + 2 * US);
        /* Step 1 waits for 2 -> 0 and 1 -> 2, step 2 for step 1. */
        ck_assert_int_eq(pairs->makespan_ps, late + 2 * step);
    }
}
END_TEST

/* Pairwise exchanges never run ahead: rank 0, done with rank 1, waits for rank 2, which is still
 * waiting for rank 3; that exchange is on the critical path. */
START_TEST(collectives_keep_pairs_in_step)
{
    const LhTime step = HOP + 1 * US, late = 50 * US;
    g_autoptr(LhSimResult) result = NULL;
    Single s;

    single_init(&s, LH_COLL_ALL_TO_ALL, first_ranks(4), 1200000, 3, late);
    result = play(&s, 4, LH_COLLECTIVES_PAIRWISE, LH_NETWORK_FAIR);
    ck_assert_int_eq(result->makespan_ps, late + 3 * step);
    ck_assert_int_eq(result->ranks[0].idle_ps[LH_IDLE_COMM], 4 * step);
    ck_assert_int_eq(result->ranks[0].idle_ps[LH_IDLE_IMBALANCE], late - step);
}
END_TEST

/* Two all-gathers over the same NICs get half of the bandwidth each; a closed form ignores that. */
START_TEST(collectives_share_links)
{
    Line lines[4];
    Script script = { .lines = lines, .count = 4 };

    for (uint32_t i = 0; i < 4; i++)
        lines[i] = (Line){ .rank = i % 2 * 8 + i / 2,
                           .kind = LH_OP_COLLECTIVE,
                           .ranks = { i / 2, 8, 2, 0, 1 },
                           .bytes = 125000 };
    for (uint32_t m = 0; m < G_N_ELEMENTS(models); m++) {
        g_autoptr(LhSimResult) result = NULL;
        World w;

        script_init(&w, &script, 16);
        w.params.collectives = models[m];
        result = world_run(&w);
        if (models[m] == LH_COLLECTIVES_CLOSED_FORM)
            ck_assert_int_eq(result->makespan_ps, 5 * US + 10 * US);
        else if (models[m] != LH_COLLECTIVES_NCCL)
            ck_assert_int_eq(result->makespan_ps, 5 * US + 2 * 10 * US);
        ck_assert(result->link_bytes[LH_TIER_NIC] == 2 * 2 * 2 * 125000);
        world_clear(&w);
    }
}
END_TEST

/* A collective and a message share a link. */
START_TEST(collectives_share_links_with_messages)
{
    Script script =
        SCRIPT({ .rank = 0, .kind = LH_OP_COLLECTIVE, .group = 2, .bytes = 3000000 },
               { .rank = 0,
                 .kind = LH_OP_EXCHANGE,
                 .notes = { { true, 2, 0, 3000000 } },
                 .stream = COMM2 },
               { .rank = 1, .kind = LH_OP_COLLECTIVE, .group = 2, .bytes = 3000000 },
               { .rank = 2, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 0, 3000000 } } });

    ck_assert_int_eq(script_makespan(&script, 3), HOP + 20 * US);
}
END_TEST

/* Rank 0 is late for the first of two gathers, which are on separate streams. It starts the
 * second one first, but that remains the second one for everybody. */
START_TEST(collectives_match_in_program_order)
{
    Script script = SCRIPT(
        { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 50 * US },
        { .rank = 0, .kind = LH_OP_COLLECTIVE, .group = 2, .bytes = 3000000, .after = { 1 } },
        { .rank = 0, .kind = LH_OP_COLLECTIVE, .group = 2, .bytes = 300000, .stream = COMM2 },
        { .rank = 1, .kind = LH_OP_COLLECTIVE, .group = 2, .bytes = 3000000 },
        { .rank = 1, .kind = LH_OP_COLLECTIVE, .group = 2, .bytes = 300000, .stream = COMM2 });
    g_autoptr(LhSimResult) result = NULL;
    World w;

    script_init(&w, &script, 2);
    result = world_run(&w);
    ck_assert_int_eq(result->makespan_ps, 50 * US + HOP + 10 * US);
    ck_assert_int_eq(result->ranks[1].idle_ps[LH_IDLE_COMM], HOP + 1 * US + HOP + 10 * US);
    world_clear(&w);
}
END_TEST

/* Several collectives in a row, and the SMs that a collective holds while it waits. */
START_TEST(collectives_hold_sms)
{
    Script script = SCRIPT({ .rank = 0, .kind = LH_OP_COLLECTIVE, .group = 2, .bytes = 3000000 },
                           { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 9 * US },
                           { .rank = 1, .kind = LH_OP_COLLECTIVE, .group = 2, .bytes = 3000000 });

    for (uint32_t m = 0; m < 2 * G_N_ELEMENTS(models); m++) {
        g_autoptr(LhSimResult) result = NULL;
        World w;

        script_init(&w, &script, 2);
        w.params.collectives = models[m / 2];
        /* computes at 3/4 in either case */
        w.topology.nvlink.ctas = m % 2 == 0 ? 27 : 0; /* of 108 */
        w.device.messages_hold = m % 2 == 0 ? 0 : 0.25;
        result = world_run(&w);
        ck_assert_int_eq(result->ranks[0].busy_ps, 12 * US);
        world_clear(&w);
    }
}
END_TEST

/* ---- what links carry ---- */

static void
check_tiers(const LhSimResult *result, uint32_t rank, uint64_t nvlink, uint64_t nic)
{
    ck_assert_uint_eq(result->ranks[rank].bytes_by_tier[LH_TIER_NVLINK], nvlink);
    ck_assert_uint_eq(result->ranks[rank].bytes_by_tier[LH_TIER_NIC], nic);
}

START_TEST(collectives_count_by_the_hops_they_take)
{
    for (uint32_t m = 0; m < G_N_ELEMENTS(models); m++) {
        g_autoptr(LhSimResult) gather = NULL, all_to_all = NULL;
        Single s;

        single_init(&s, LH_COLL_ALL_GATHER, first_ranks(16), 160000, 0, 0);
        gather = play(&s, 16, models[m], LH_NETWORK_FAIR);
        if (models[m] == LH_COLLECTIVES_DIRECT) {
            check_tiers(gather, 3, 7 * 160000, 8 * 160000);
            ck_assert(gather->link_bytes[LH_TIER_NIC] == 2 * 16 * 8 * 160000);
        } else {
            check_tiers(gather, 3, 15 * 160000, 0);
            check_tiers(gather, 7, 0, 15 * 160000);
            ck_assert(gather->link_bytes[LH_TIER_NIC] == 2 * 2 * 15 * 160000);
        }
        single_init(&s, LH_COLL_ALL_TO_ALL, first_ranks(16), 160000, 0, 0);
        all_to_all = play(&s, 16, models[m], LH_NETWORK_FAIR);
        for (uint32_t r = 0; r < 16; r++)
            check_tiers(all_to_all, r, 7 * 10000, 8 * 10000);
        ck_assert(all_to_all->link_bytes[LH_TIER_NIC] == 2 * 16 * 8 * 10000);
    }
}
END_TEST

/* Ranks 1, 3, 9, 11 of two nodes: two hops of the ring cross NICs. Rank 3's three pieces follow
 * each other without gaps (the last one is there in time), and so do rank 11's. */
START_TEST(collectives_follow_groups_with_outer_strides)
{
    const LhGroup group = { 1, 2, 2, 8, 2 };
    const LhTime nic = 96 * US / 10;
    g_autoptr(LhSimResult) result = NULL;
    Single s;

    single_init(&s, LH_COLL_ALL_GATHER, group, 120000, 0, 0);
    result = play(&s, 16, LH_COLLECTIVES_RING, LH_NETWORK_FAIR);
    check_tiers(result, 1, 3 * 120000, 0);
    check_tiers(result, 3, 0, 3 * 120000);
    check_tiers(result, 9, 3 * 120000, 0);
    ck_assert_int_eq(result->makespan_ps, 3 * nic + 5 * US);
}
END_TEST

/* 16 ranks on two nodes with one NIC each. One-shot keeps the NIC busy; pairwise does the
 * exchanges within nodes first, and each of the others adds its latency. */
START_TEST(collectives_differ_in_all_to_all)
{
    const LhTime nic_share = 8 * 800 * NS, nvlink_share = 33333; /* of 10,000 bytes, 8 at a time */
    g_autoptr(LhSimResult) shot = NULL, pairs = NULL;
    Single s;

    single_init(&s, LH_COLL_ALL_TO_ALL, first_ranks(16), 160000, 0, 0);
    shot = play(&s, 16, LH_COLLECTIVES_RING, LH_NETWORK_FAIR);
    pairs = play(&s, 16, LH_COLLECTIVES_PAIRWISE, LH_NETWORK_FAIR);
    ck_assert_int_eq(shot->makespan_ps, 8 * nic_share + 5 * US);
    ck_assert_int_eq(pairs->makespan_ps, 8 * (nic_share + 5 * US) + 7 * (nvlink_share + HOP));
}
END_TEST

/* More peers than the 64 allowed at once: 64, then the other 15. A late rank meanwhile occupies
 * one of the 64 places of every other rank, and determines the makespan. */
START_TEST(collectives_send_to_64_at_once)
{
    const uint32_t n = 80;
    const LhTime share = 10 * NS; /* 3,000 bytes */

    for (uint32_t late = 0; late < 2; late++) {
        g_autoptr(LhSimResult) result = NULL;
        Single s;
        World w;

        single_init(&s, LH_COLL_ALL_TO_ALL, first_ranks(n), n * UINT64_C(3000), 0,
                    late ? 50 * US : 0);
        script_init(&w, &s.script, n);
        w.topology.gpus_per_node = n;
        w.topology.nics_per_node = 0;
        result = world_run(&w);
        if (late)
            ck_assert_int_eq(result->makespan_ps, 50 * US + HOP + (n - 1) * share);
        else
            ck_assert_int_eq(result->makespan_ps, HOP + (n - 1) * share);
        for (uint32_t r = 0; r < n; r++)
            ck_assert_uint_eq(result->ranks[r].bytes_sent, (n - 1) * UINT64_C(3000));
        world_clear(&w);
    }
}
END_TEST

/* Where a collective runs, if different from the bench platform. */
typedef struct {
    uint32_t ranks, gpus;    /* per node, which has one NIC */
    double node_bytes_per_s; /* of its NVLink; 0: unchanged */
    LhCollectiveModel model;
    LhTime overhead_ps;
    double memory_bytes_per_s;
    uint64_t share; /* ranks that share one core; 0: one core each */
} Place;

static LhTime
makespan_at(Single *s, const Place *place)
{
    g_autoptr(LhSimResult) result = NULL;
    World w;

    script_init(&w, &s->script, place->ranks);
    w.params.collectives = place->model;
    w.topology.gpus_per_node = place->gpus;
    w.topology.nics_per_node = 1;
    w.topology.nic_overhead_ps = place->overhead_ps;
    if (place->node_bytes_per_s > 0) {
        w.topology.nvlink.bandwidth = place->node_bytes_per_s;
        w.topology.pcie.bandwidth = w.topology.nic.bandwidth; /* the route to the NIC */
    }
    w.device.memory_bandwidth = place->memory_bytes_per_s;
    w.device.memory_efficiency = 0.5;
    w.device.machine_cores = place->share > 0 ? 1 : 0;
    w.device.machine_ranks = place->share;
    result = world_run(&w);
    world_clear(&w);
    return result->makespan_ps;
}

/* Direct messages to other nodes are delayed by one overhead for each further message that the
 * rank sends there at the same time, at most 64. Messages within a node and those of rings are
 * not. */
START_TEST(messages_to_other_nodes_delay_each_other)
{
    const LhTime overhead = 300 * US;
    static const struct {
        LhCollectiveKind kind;
        LhGroup group;
        uint32_t gpus;
        LhCollectiveModel model;
        LhTime overheads;
        double node_bytes_per_s;
    } cases[] = {
        { LH_COLL_ALL_GATHER, { 0, 8, 4, 0, 1 }, 8, LH_COLLECTIVES_DIRECT, 2 },
        { LH_COLL_REDUCE_SCATTER, { 0, 8, 4, 0, 1 }, 8, LH_COLLECTIVES_DIRECT, 2 },
        { LH_COLL_ALL_REDUCE, { 0, 8, 4, 0, 1 }, 8, LH_COLLECTIVES_DIRECT, 4 },
        { LH_COLL_ALL_TO_ALL, { 0, 8, 4, 0, 1 }, 8, LH_COLLECTIVES_DIRECT, 2 },
        { LH_COLL_ALL_TO_ALL, { 0, 8, 4, 0, 1 }, 8, LH_COLLECTIVES_RING, 2 },
        { LH_COLL_ALL_GATHER, { 0, 1, 16, 0, 1 }, 8, LH_COLLECTIVES_DIRECT, 7 },
        { LH_COLL_ALL_GATHER, { 0, 1, 4, 0, 1 }, 2, LH_COLLECTIVES_DIRECT, 1 },
        /* Members of one node have fewer peers in the other than vice versa. */
        { LH_COLL_ALL_GATHER, { 0, 1, 3, 0, 1 }, 2, LH_COLLECTIVES_DIRECT, 1 },
        { LH_COLL_ALL_GATHER, { 0, 1, 6, 0, 1 }, 4, LH_COLLECTIVES_DIRECT, 3 },
        /* The messages within the node take longest. */
        { LH_COLL_ALL_GATHER, { 0, 1, 4, 0, 1 }, 2, LH_COLLECTIVES_DIRECT, 0, 1e6 },
        { LH_COLL_ALL_GATHER, { 0, 8, 2, 0, 1 }, 8, LH_COLLECTIVES_DIRECT, 0 },
        { LH_COLL_ALL_GATHER, { 0, 1, 8, 0, 1 }, 8, LH_COLLECTIVES_DIRECT, 0 },
        { LH_COLL_ALL_GATHER, { 0, 8, 4, 0, 1 }, 8, LH_COLLECTIVES_RING, 0 },
        { LH_COLL_ALL_TO_ALL, { 0, 8, 4, 0, 1 }, 8, LH_COLLECTIVES_PAIRWISE, 0 },
        { LH_COLL_ALL_TO_ALL, { 0, 1, 80, 0, 1 }, 1, LH_COLLECTIVES_DIRECT, 63 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        Place place = { .ranks = 128,
                        .gpus = cases[i].gpus,
                        .node_bytes_per_s = cases[i].node_bytes_per_s,
                        .model = cases[i].model,
                        .memory_bytes_per_s = INFINITY };
        LhTime without, with;
        Single s;

        single_init(&s, cases[i].kind, cases[i].group, 128000, 0, 0);
        without = makespan_at(&s, &place);
        place.overhead_ps = overhead;
        with = makespan_at(&s, &place);
        ck_assert_msg(with == without + cases[i].overheads * overhead,
                      "case %u: %" G_GINT64_FORMAT " without, %" G_GINT64_FORMAT " with", i,
                      without, with);
    }
}
END_TEST

/* Direct reductions add up when all slices have arrived: for 4 ranks, 4 slices are read and one
 * is written. */
START_TEST(direct_sums_take_the_time_of_memory)
{
    const LhTime once = 5 * 3024 * NS; /* 5 x 3,024,000 bytes at half of 2 TB/s */

    for (int model = LH_COLLECTIVES_RING; model <= LH_COLLECTIVES_DIRECT; model++) {
        for (int kind = LH_COLL_ALL_GATHER; kind < LH_COLL_KINDS; kind++) {
            const bool sums = model == LH_COLLECTIVES_DIRECT &&
                              (kind == LH_COLL_REDUCE_SCATTER || kind == LH_COLL_ALL_REDUCE);

            for (uint64_t share = 0; share <= 2; share++) {
                Place place = { .ranks = 4,
                                .gpus = 4,
                                .model = (LhCollectiveModel)model,
                                .memory_bytes_per_s = INFINITY,
                                .share = share };
                LhTime free, taken;
                Single s;

                single_init(&s, (LhCollectiveKind)kind, first_ranks(4), SHARD, 0, 0);
                free = makespan_at(&s, &place);
                place.memory_bytes_per_s = 2e12;
                taken = makespan_at(&s, &place);
                ck_assert_int_eq(taken - free, sums ? (LhTime)MAX(share, 1) * once : 0);
            }
        }
    }
}
END_TEST

/* Direct algorithm: rank 2 is late, the others already have their slices from each other. A sum
 * is complete when rank 2's two slices have arrived; then each sum goes to the other two ranks. */
START_TEST(direct_all_reduce_gathers_what_is_complete)
{
    g_autoptr(LhSimResult) result = NULL;
    Single s;

    single_init(&s, LH_COLL_ALL_REDUCE, first_ranks(3), SHARD, 2, 50 * US);
    result = play(&s, 3, LH_COLLECTIVES_DIRECT, LH_NETWORK_FAIR);
    ck_assert_int_eq(result->makespan_ps, 50 * US + 2 * (HOP + 2 * MOVE_NS * NS));
    for (uint32_t r = 0; r < 3; r++)
        ck_assert_uint_eq(result->ranks[r].bytes_sent, 4 * SHARD);
}
END_TEST

START_TEST(collectives_fail_with_their_links)
{
    for (uint32_t m = 0; m < G_N_ELEMENTS(models); m++)
        for (int kind = 0; kind < LH_COLL_KINDS; kind++) {
            Single s;
            World w;

            single_init(&s, (LhCollectiveKind)kind, first_ranks(16), SHARD, 0, 0);
            script_init(&w, &s.script, 16);
            w.params.collectives = models[m];
            add_fault(&w, LH_TIER_NIC, 0, 0);
            check_failure(&w, LH_ERROR_RUNTIME,
                          (const char *[]){ "cannot send to rank", "nic ", "node 0, index 0",
                                            "has failed", NULL });
        }
}
END_TEST

START_TEST(collectives_name_the_ranks_of_a_failed_link)
{
    Single s;
    World w;

    single_init(&s, LH_COLL_ALL_GATHER, first_ranks(16), SHARD, 0, 0);
    for (uint32_t closed = 0; closed < 2; closed++) {
        script_init(&w, &s.script, 16);
        w.params.collectives = closed ? LH_COLLECTIVES_CLOSED_FORM : LH_COLLECTIVES_RING;
        add_fault(&w, LH_TIER_NIC, 0, 0);
        check_failure(
            &w, LH_ERROR_RUNTIME,
            (const char *[]){ "rank 7 cannot send to rank 8", "nic up, node 0, index 0", NULL });
        script_init(&w, &s.script, 16);
        w.params.collectives = closed ? LH_COLLECTIVES_CLOSED_FORM : LH_COLLECTIVES_RING;
        w.topology.nics_per_node = 8;
        add_fault(&w, LH_TIER_NIC, 0, 0);
        /* By formula rank 0 is reported first; otherwise 0 and 8, the first ones of two nodes to
         * meet. */
        check_failure(&w, LH_ERROR_RUNTIME,
                      closed ? (const char *[]){ "rank 0 cannot send to rank 8",
                                                 "nic up, node 0, index 0", NULL }
                             : (const char *[]){ "rank 8 cannot send to rank 0",
                                                 "nic down, node 0, index 0", NULL });
    }
}
END_TEST

/* All members of a communicator call the same collectives in the same order. */
START_TEST(collectives_refuse_another_in_their_place)
{
    Script script = SCRIPT({ .rank = 0, .kind = LH_OP_COLLECTIVE, .group = 2, .bytes = SHARD },
                           { .rank = 1,
                             .kind = LH_OP_COLLECTIVE,
                             .collective = LH_COLL_ALL_REDUCE,
                             .group = 2,
                             .bytes = SHARD });

    for (uint32_t m = 0; m < G_N_ELEMENTS(models); m++) {
        World w;

        script_init(&w, &script, 2);
        w.params.collectives = models[m];
        check_failure(
            &w, LH_ERROR_RUNTIME,
            (const char *[]){ "op 0", "another rank calls a different collective", NULL });
    }
}
END_TEST

START_TEST(collectives_need_groups_of_ranks)
{
    /* Nonexistent ranks; a group without the rank itself; a duplicate rank. */
    static const LhGroup groups[] = { { 0, 1, 3, 0, 1 }, { 1, 1, 1, 0, 1 }, { 0, 1, 2, 9, 2 },
                                      { 0, 0, 2, 0, 1 }, { 0, 1, 1, 0, 2 }, { 0, 1, 3, 2, 2 } };

    for (uint32_t i = 0; i < G_N_ELEMENTS(groups); i++) {
        Script script =
            SCRIPT({ .rank = 0, .kind = LH_OP_COLLECTIVE, .ranks = groups[i], .bytes = SHARD });
        World w;

        script_init(&w, &script, i < 3 ? 2 : 8);
        check_failure(&w, LH_ERROR_INPUT, (const char *[]){ "rank 0, op 0", "its group", NULL });
    }
}
END_TEST

/* ---- size, determinism ---- */

/* A million hops; the state of a ring is a few words per rank. */
START_TEST(collectives_of_many_ranks_are_played)
{
    const uint32_t ranks = 1024;
    g_autofree Line *lines = g_new0(Line, ranks);
    Script script = { .lines = lines, .count = ranks };
    g_autoptr(LhSimResult) result = NULL;
    World w;

    for (uint32_t r = 0; r < ranks; r++)
        lines[r] = (Line){ .rank = r, .kind = LH_OP_COLLECTIVE, .group = ranks, .bytes = 125000 };
    script_init(&w, &script, ranks);
    result = world_run(&w);
    ck_assert_uint_eq(result->events, (uint64_t)ranks * (ranks - 1));
    ck_assert_int_eq(result->makespan_ps, (ranks - 1) * 10 * US + 5 * US);
    world_clear(&w);
}
END_TEST

/* ---- rounds of trees ---- */

#define EDGES 3

/* Sets the bit of each edge whose turn has come. */
static void
note_turn(void *data, uint32_t edge)
{
    *(uint32_t *)data |= 1u << edge;
}

/* A piece leaving @edge must start the turns of @edges (bits). */
static void
check_leave(LhTreeRounds *rounds, uint32_t edge, uint32_t edges)
{
    uint32_t told = 0;

    lh_tree_rounds_leave(rounds, edge, note_turn, &told);
    ck_assert_uint_eq(told, edges);
}

/* Three edges from node 0, whose one NIC has 6 GB/s. Edges 0 and 1 have two pieces each, from
 * rounds 0 and 1 on. Edge 2, of another tree, has one piece: in round 0 by the order, one later
 * in this collective. */
static LhTreeOrder *
three_edges(const LhNetwork *network)
{
    static const uint32_t firsts[EDGES] = { 0, 1, 0 };
    LhTreeOrder *order = lh_tree_order_new(EDGES, 2);

    for (uint32_t i = 0; i < EDGES; i++) {
        LhRoute route;

        lh_network_collective_route(network, i, 8 + i, &route);
        lh_tree_order_add(order, network, i, i / 2, &route, firsts[i]);
    }
    return order;
}

START_TEST(tree_rounds_follow_one_another)
{
    LhTreeOrder *order;
    LhTreeRounds *rounds;
    World w;

    world_init(&w, "bench-platform", NULL);
    w.topology.gpus_per_node = 8;
    w.topology.nics_per_node = 1;
    w.topology.nic.bandwidth = 6e9;
    ck_assert(lh_network_init(&w.network, &w.topology, 2, 16, NULL, NULL));
    order = three_edges(&w.network);
    rounds = lh_tree_rounds_new(order, (const LhTreeLoad[]){ { 2, 0 }, { 1, 1 } });
    ck_assert(lh_tree_rounds_may_start(rounds, 0, 0));
    ck_assert(!lh_tree_rounds_may_start(rounds, 1, 0) && !lh_tree_rounds_may_start(rounds, 2, 0));
    ck_assert_double_eq_tol(lh_tree_rounds_share(rounds, 0).bytes_per_s, 6e9, 1);
    ck_assert_uint_eq(lh_tree_rounds_share(rounds, 0).tiers, 1u << LH_TIER_NIC);
    check_leave(rounds, 0, 7);
    ck_assert(lh_tree_rounds_may_start(rounds, 0, 1) && lh_tree_rounds_may_start(rounds, 1, 0));
    ck_assert(lh_tree_rounds_may_start(rounds, 2, 0) && !lh_tree_rounds_may_start(rounds, 1, 1));
    for (uint32_t i = 0; i < EDGES; i++)
        ck_assert_double_eq_tol(lh_tree_rounds_share(rounds, i).bytes_per_s, 2e9, 1);
    check_leave(rounds, 2, 0);
    check_leave(rounds, 0, 0);
    ck_assert(!lh_tree_rounds_may_start(rounds, 1, 1));
    check_leave(rounds, 1, 2);
    ck_assert(lh_tree_rounds_may_start(rounds, 1, 1));
    ck_assert_double_eq_tol(lh_tree_rounds_share(rounds, 1).bytes_per_s, 6e9, 1);
    check_leave(rounds, 1, 0);
    lh_tree_rounds_free(rounds);
    lh_tree_order_free(order);
    world_clear(&w);
}
END_TEST

static char *
finishes(LhCollectiveModel model, LhNetworkModel network)
{
    Line lines[2 * 24];
    Script script = { .lines = lines, .count = 0 };
    GString *text = g_string_new(NULL);
    g_autoptr(LhSimResult) result = NULL;
    World w;

    /* Rows of 6 and columns of 4, on separate streams, with different sizes. */
    for (uint32_t r = 0; r < 24; r++) {
        lines[script.count++] = (Line){ .rank = r,
                                        .kind = LH_OP_COLLECTIVE,
                                        .collective = (LhCollectiveKind)(r / 6),
                                        .ranks = { r / 6 * 6, 1, 6, 0, 1 },
                                        .bytes = 1000000 * (r / 6 + 1) };
        lines[script.count++] = (Line){ .rank = r,
                                        .kind = LH_OP_COLLECTIVE,
                                        .collective = (LhCollectiveKind)(r % 6 % LH_COLL_KINDS),
                                        .ranks = { r % 6, 6, 4, 0, 1 },
                                        .bytes = 700000,
                                        .stream = COMM2 };
    }
    script_init(&w, &script, 24);
    w.topology.nics_per_node = 4;
    w.params.collectives = model;
    w.params.network_model = network;
    result = world_run(&w);
    for (uint32_t r = 0; r < 24; r++)
        g_string_append_printf(text, "%" G_GINT64_FORMAT " %" G_GINT64_FORMAT "\n",
                               result->ranks[r].finish_ps, result->ranks[r].comm_ps);
    world_clear(&w);
    return g_string_free(text, FALSE);
}

START_TEST(collectives_are_deterministic)
{
    g_autofree char *first = finishes(LH_COLLECTIVES_RING, LH_NETWORK_FAIR);

    for (uint32_t m = 0; m < G_N_ELEMENTS(models); m++)
        for (int network = LH_NETWORK_FAIR; network <= LH_NETWORK_FIFO; network++) {
            g_autofree char *once = finishes(models[m], (LhNetworkModel)network);
            g_autofree char *again = finishes(models[m], (LhNetworkModel)network);

            ck_assert_str_eq(once, again);
            if (network != LH_NETWORK_FAIR)
                ck_assert_str_ne(once, first);
        }
}
END_TEST

/* ---- NCCL's model ---- */

static LhNcclGroup *
nccl_group(World *w, const char *topology, uint32_t ranks)
{
    const LhGroup group = first_ranks(ranks);
    g_autoptr(GError) error = NULL;
    bool fits;

    world_init(w, topology, NULL);
    fits = lh_network_init(&w->network, &w->topology,
                           (ranks + (uint32_t)w->topology.gpus_per_node - 1) /
                               (uint32_t)w->topology.gpus_per_node,
                           ranks, NULL, &error);
    ck_assert_msg(fits, "%s", error != NULL ? error->message : "");
    return lh_nccl_group_new(&w->network, &w->device, &group);
}

#define MIB UINT64_C(1048576)

/* latency + bytes / bandwidth with the constants of NVIDIA/nccl v2.30.7, by hand. */
START_TEST(nccl_times_are_its_formulas)
{
    const struct {
        const char *topology;
        uint32_t ranks;
        LhCollectiveKind kind;
        uint64_t bytes; /* of the full vector */
        LhNcclChoice choice;
        double us;
    } cases[] = {
        /* 8.4 + 14 x 3.4; 240 x 8/14 */
        { "dgx-a100-80g",
          8,
          LH_COLL_ALL_REDUCE,
          64 * MIB,
          { LH_NCCL_RING, LH_NCCL_SIMPLE },
          56 + 67108864 / (240e3 * 8 / 14) },
        /* 6.6 + 14 x 0.6; min(87.7, 120) x 8/14 */
        { "dgx-a100-80g",
          8,
          LH_COLL_ALL_REDUCE,
          32768,
          { LH_NCCL_RING, LH_NCCL_LL },
          15 + 32768 / (87.7e3 * 8 / 14) },
        /* 14 + 7 x 1.9; 0.92 x 240 x 8/7 */
        { "dgx-a100-80g",
          8,
          LH_COLL_ALL_GATHER,
          4 * MIB,
          { LH_NCCL_RING, LH_NCCL_LL128 },
          27.3 + 4194304 / (220.8e3 * 8 / 7) },
        /* 8 NICs of 24; 8.4 + 14 x 6 + 14 */
        { "dgx-a100-80g",
          16,
          LH_COLL_ALL_GATHER,
          256 * MIB,
          { LH_NCCL_RING, LH_NCCL_SIMPLE },
          106.4 + 268435456 / (192e3 * 16 / 15) },
        /* Two nodes: trees are limited by the NICs. (8.4 + 28 x 6 + 2 x 14) x 1.4; 192 x 16/30 */
        { "dgx-a100-80g",
          16,
          LH_COLL_ALL_REDUCE,
          1024 * MIB,
          { LH_NCCL_RING, LH_NCCL_SIMPLE },
          204.4 * 1.4 + 1073741824 / (192e3 * 16 / 30) },
        /* Four nodes: (8.4 + 56 x 6 + 6 x 14) x 1.4; 192 x 32/62 */
        { "dgx-a100-80g",
          32,
          LH_COLL_ALL_REDUCE,
          1024 * MIB,
          { LH_NCCL_RING, LH_NCCL_SIMPLE },
          428.4 * 1.4 + 1073741824 / (192e3 * 32 / 62) },
        /* Four nodes of 8 NICs: 16 channels of 20, half of it x 0.9; 14 + 2 x (7 x 1.25 + 2 x 8.5)
         */
        { "hgx-b200",
          32,
          LH_COLL_ALL_REDUCE,
          8 * MIB,
          { LH_NCCL_TREE, LH_NCCL_LL128 },
          65.5 + 8388608 / (320e3 / 2 * 0.9) },
    };

    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        LhNcclChoice choice = { LH_NCCL_TREE, LH_NCCL_LL };
        World w;
        LhNcclGroup *group = nccl_group(&w, cases[i].topology, cases[i].ranks);
        const double us =
            1e6 * lh_nccl_seconds(group, cases[i].kind, cases[i].bytes / cases[i].ranks, &choice);

        ck_assert_double_eq_tol(us, cases[i].us, 1e-9 * cases[i].us);
        ck_assert_int_eq(choice.algorithm, cases[i].choice.algorithm);
        ck_assert_int_eq(choice.protocol, cases[i].choice.protocol);
        lh_nccl_group_free(group);
        world_clear(&w);
    }
}
END_TEST

/*
 * Measured on 8 A100 with NVSwitch (stas00/ml-engineering network/README.md, nccl-tests). NCCL uses
 * the model to choose an algorithm, not to predict its time: it is within 5 % for vectors from 1
 * GiB, up to 40 % too low for medium ones, and a third of the measured time for small ones.
 */
START_TEST(nccl_is_near_what_was_measured)
{
    static const struct {
        uint64_t bytes;
        double us, low, high; /* bounds of model / measured */
    } rows[] = {
        { 32768, 43.8, 0.3, 0.4 },       { 65536, 46.8, 0.3, 0.4 },
        { 131072, 51.8, 0.3, 0.4 },      { 262144, 61.4, 0.3, 0.4 },
        { 524288, 80.4, 0.3, 0.4 },      { MIB, 101.9, 0.3, 0.4 },
        { 4 * MIB, 101.5, 0.7, 0.75 },   { 8 * MIB, 133.5, 0.75, 0.85 },
        { 16 * MIB, 276.6, 0.6, 0.7 },   { 32 * MIB, 424, 0.65, 0.75 },
        { 64 * MIB, 685, 0.75, 0.85 },   { 128 * MIB, 1328, 0.75, 0.85 },
        { 256 * MIB, 2421, 0.8, 0.9 },   { 512 * MIB, 4218, 0.9, 1.0 },
        { 1024 * MIB, 8204, 0.95, 1.0 }, { 4096 * MIB, 32136, 0.95, 1.0 },
    };
    World w;
    LhNcclGroup *group = nccl_group(&w, "dgx-a100-80g", 8);

    for (uint32_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        const double us = 1e6 * lh_nccl_seconds(group, LH_COLL_ALL_REDUCE, rows[i].bytes / 8, NULL);

        ck_assert_msg(us > rows[i].low * rows[i].us && us < rows[i].high * rows[i].us,
                      "%" G_GUINT64_FORMAT " bytes: %.1f us, measured %.1f: %.3f", rows[i].bytes,
                      us, rows[i].us, us / rows[i].us);
    }
    lh_nccl_group_free(group);
    world_clear(&w);
}
END_TEST

/* Rings leave a node of 4 x A100 PCIe over one NIC and one pair of GPUs. */
START_TEST(nccl_knows_the_limit_of_a_pair)
{
    const LhGroup ranks = first_ranks(8);
    World w;
    LhNcclGroup *group = nccl_group(&w, "azure-nc96-a100", 8);

    ck_assert_double_eq_tol(group->bus_gbps, 5, 1e-9);
    lh_nccl_group_free(group);
    w.topology.nic.pair_collective = 3.5e9;
    ck_assert(lh_network_init(&w.network, &w.topology, 2, 8, NULL, NULL));
    group = lh_nccl_group_new(&w.network, &w.device, &ranks);
    ck_assert_double_eq_tol(group->bus_gbps, 3.5, 1e-9);
    lh_nccl_group_free(group);
    world_clear(&w);
}
END_TEST

/* Its time counts from the last arrival; an all-to-all is simulated as messages. */
START_TEST(nccl_decides_in_runs)
{
    World w;
    LhNcclGroup *group = nccl_group(&w, "bench-platform", 4);
    const double s = lh_nccl_seconds(group, LH_COLL_ALL_REDUCE, SHARD, NULL);
    g_autoptr(LhSimResult) reduce = NULL, all_to_all = NULL;
    Single one;

    single_init(&one, LH_COLL_ALL_REDUCE, first_ranks(4), SHARD, 1, 50 * US);
    reduce = play(&one, 4, LH_COLLECTIVES_NCCL, LH_NETWORK_FAIR);
    ck_assert_int_eq(reduce->makespan_ps, 50 * US + (LhTime)(s * 1e12 + 0.5));
    single_init(&one, LH_COLL_ALL_TO_ALL, first_ranks(4), SHARD, 0, 0);
    all_to_all = play(&one, 4, LH_COLLECTIVES_NCCL, LH_NETWORK_FAIR);
    ck_assert_int_eq(all_to_all->makespan_ps, HOP + 3 * MOVE_NS / 4 * NS);
    lh_nccl_group_free(group);
    world_clear(&w);
}
END_TEST

/* `auto` uses a node's measured times if there are any, and rings elsewhere. */
START_TEST(measured_times_decide_in_runs)
{
    static const struct {
        LhCollectiveKind kind;
        double us; /* 4 ranks of 1 MiB on hgx-h100 */
    } cases[] = { { LH_COLL_ALL_GATHER, 36.86 },
                  { LH_COLL_REDUCE_SCATTER, 32.94 },
                  { LH_COLL_ALL_REDUCE, 41.81 } };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(LhSimResult) result = NULL, forced = NULL;
        Single one;
        World w;

        single_init(&one, cases[i].kind, first_ranks(4), MIB, 1, 50 * US);
        script_init(&w, &one.script, 4);
        w.topology = *w.loaded_topology;
        ck_assert_ptr_null(w.topology.collective_times);
        lh_topology_free(w.loaded_topology);
        w.loaded_topology = lh_topology_load("hgx-h100", NULL);
        w.topology = *w.loaded_topology;
        w.params.collectives = LH_COLLECTIVES_AUTO;
        result = world_run(&w);
        ck_assert_int_eq(result->makespan_ps, 50 * US + (LhTime)(cases[i].us * 1e6 + 0.5));
        w.params.collectives = LH_COLLECTIVES_RING;
        forced = world_run(&w);
        ck_assert_int_ne(forced->makespan_ps, result->makespan_ps);
        for (uint32_t r = 0; r < 4; r++)
            ck_assert_uint_eq(result->ranks[r].bytes_sent, forced->ranks[r].bytes_sent);
        world_clear(&w);
    }
}
END_TEST

LH_TEST_MAIN("sim_collectives", collectives_alone_take_their_closed_forms,
             collectives_know_the_double_tree, collectives_keep_slow_links_busy,
             collectives_keep_to_the_limit_of_a_pair, rings_use_all_nics, rings_keep_pairs_together,
             rings_gain_by_another_nic, rings_carry_every_byte, rings_take_the_time_of_nccl,
             collectives_of_one_rank_cost_nothing, collectives_wait_for_stragglers,
             collectives_delay_only_who_depends, collectives_keep_pairs_in_step,
             collectives_share_links, collectives_share_links_with_messages,
             collectives_match_in_program_order, collectives_hold_sms,
             collectives_count_by_the_hops_they_take, collectives_follow_groups_with_outer_strides,
             collectives_differ_in_all_to_all, direct_all_reduce_gathers_what_is_complete,
             collectives_send_to_64_at_once, messages_to_other_nodes_delay_each_other,
             direct_sums_take_the_time_of_memory, collectives_fail_with_their_links,
             collectives_name_the_ranks_of_a_failed_link, collectives_need_groups_of_ranks,
             collectives_refuse_another_in_their_place, collectives_of_many_ranks_are_played,
             tree_rounds_follow_one_another, collectives_are_deterministic,
             nccl_times_are_its_formulas, nccl_is_near_what_was_measured,
             nccl_knows_the_limit_of_a_pair, nccl_decides_in_runs, measured_times_decide_in_runs)
