/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lower bounds of collectives from links: by hand on shipped clusters, and against collectives
 * simulated as messages on otherwise idle random networks.
 */
#include "base/rng.h"
#include "run_tests.h"
#include "sim/network/collectives/collective_table.h"
#include "sim/network/collectives/collective_times.h"
#include "sim/network/link_bound.h"
#include "sim_single.h"

#include <math.h>

#define GIGA 1e9

/* The link-by-link listing begins with the bound. */
static void
check_loads(const LhNetwork *network, LhGroup group, LhCollectiveKind kind,
            LhLinkAlgorithm algorithm, double bound)
{
    g_autoptr(GArray) loads = lh_link_loads(network, &group, kind, algorithm);

    ck_assert_double_eq_tol(g_array_index(loads, LhLinkLoad, 0).s_per_byte, bound, 1e-12 * bound);
}

static double
bound_s_per_gb(const char *name, LhGroup group, LhCollectiveKind kind, LhLinkAlgorithm algorithm,
               const GArray *faults)
{
    g_autoptr(LhTopology) t = lh_topology_load(name, NULL);
    const uint64_t last = lh_group_member(&group, lh_group_size(&group) - 1);
    const uint32_t nodes = (uint32_t)(last / t->gpus_per_node + 1);
    LhNetwork network;
    double bound;

    ck_assert(
        lh_network_init(&network, t, nodes, nodes * (uint32_t)t->gpus_per_node, faults, NULL));
    bound = lh_link_bound_s_per_byte(&network, &group, kind, algorithm);
    if (isfinite(bound))
        check_loads(&network, group, kind, algorithm, bound);
    return GIGA * bound;
}

START_TEST(bounds_are_those_by_hand)
{
    static const LhGroup eight = { 0, 1, 8, 0, 1 }, four = { 0, 1, 4, 0, 1 };
    static const LhGroup sixteen = { 0, 1, 16, 0, 1 }, rail = { 0, 8, 2, 0, 1 };
    const struct {
        const char *topology;
        LhGroup group;
        LhCollectiveKind kind;
        LhLinkAlgorithm algorithm;
        double s_per_gb;
    } cases[] = {
        /* Every NVLink carries everything except the own part. */
        { "hgx-h100", eight, LH_COLL_ALL_GATHER, LH_ALGORITHM_DEFAULT, 7.0 / 8 / 371 },
        { "hgx-h100", eight, LH_COLL_REDUCE_SCATTER, LH_ALGORITHM_DEFAULT, 7.0 / 8 / 371 },
        { "hgx-h100", eight, LH_COLL_ALL_REDUCE, LH_ALGORITHM_DEFAULT, 2 * 7.0 / 8 / 371 },
        { "hgx-h100", eight, LH_COLL_ALL_TO_ALL, LH_ALGORITHM_DEFAULT, 7.0 / 8 / 371 },
        { "hgx-h100", eight, LH_COLL_BROADCAST, LH_ALGORITHM_DEFAULT, 1.0 / 371 },
        { "hgx-h100", eight, LH_COLL_ALL_REDUCE, LH_ALGORITHM_NVLS, 9.0 / 8 / 371 },
        { "hgx-h100", eight, LH_COLL_ALL_GATHER, LH_ALGORITHM_PAIRS, 7.0 / 8 / 371 },
        { "hgx-h100", eight, LH_COLL_ALL_REDUCE, LH_ALGORITHM_PAIRS, 2 * 7.0 / 8 / 371 },
        { "pcie-l40s", eight, LH_COLL_ALL_GATHER, LH_ALGORITHM_DEFAULT, 7.0 / 8 / 24 },
        /* NVLink joins two of the four: the ring has two hops over PCIe, and each GPU two peers
         * over PCIe. */
        { "azure-nc96-a100", four, LH_COLL_ALL_GATHER, LH_ALGORITHM_DEFAULT, 3.0 / 4 / 16 },
        { "azure-nc96-a100", four, LH_COLL_ALL_TO_ALL, LH_ALGORITHM_DEFAULT, 2.0 / 4 / 16 },
        /* Eight rings share the bandwidth of eight NICs, and of eight PCIe links. */
        { "hgx-h100", sixteen, LH_COLL_ALL_GATHER, LH_ALGORITHM_DEFAULT, 15.0 / 16 / 8 / 49 },
        /* Eight of the fifteen others are in the other node. */
        { "hgx-h100", sixteen, LH_COLL_ALL_TO_ALL, LH_ALGORITHM_DEFAULT, 8.0 / 16 / 49 },
        { "hgx-h100", rail, LH_COLL_ALL_GATHER, LH_ALGORITHM_DEFAULT, 1.0 / 2 / 49 },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const double found = bound_s_per_gb(cases[i].topology, cases[i].group, cases[i].kind,
                                            cases[i].algorithm, NULL);

        ck_assert_msg(fabs(found / cases[i].s_per_gb - 1) < 1e-12, "case %zu: %g, expected %g", i,
                      found, cases[i].s_per_gb);
    }
}
END_TEST

/* The slowest link of the routes used decides; other faults have no effect. */
START_TEST(bounds_know_faults)
{
    static const LhGroup sixteen = { 0, 1, 16, 0, 1 }, second = { 8, 1, 8, 0, 1 };
    static const LhCollectiveKind kinds[] = { LH_COLL_ALL_GATHER, LH_COLL_ALL_TO_ALL };

    for (size_t k = 0; k < G_N_ELEMENTS(kinds); k++) {
        const double sound =
            bound_s_per_gb("hgx-h100", second, kinds[k], LH_ALGORITHM_DEFAULT, NULL);

        for (uint32_t node = 0; node < 2; node++) {
            g_autoptr(GArray) faults = g_array_new(FALSE, TRUE, sizeof(LhLinkFault));
            const LhLinkFault slow = { LH_TIER_NVLINK, node, 0.25 };

            g_array_append_val(faults, slow);
            ck_assert_double_eq_tol(
                bound_s_per_gb("hgx-h100", second, kinds[k], LH_ALGORITHM_DEFAULT, faults),
                node == 1 ? 4 * sound : sound, 1e-12 * sound);
        }
        {
            g_autoptr(GArray) faults = g_array_new(FALSE, TRUE, sizeof(LhLinkFault));
            const LhLinkFault failed = { LH_TIER_NIC, 0, 0 };

            g_array_append_val(faults, failed);
            ck_assert(
                isinf(bound_s_per_gb("hgx-h100", sixteen, kinds[k], LH_ALGORITHM_DEFAULT, faults)));
        }
    }
}
END_TEST

/* ---- random networks ---- */

static uint64_t
below(uint64_t *drawn, uint64_t limit)
{
    return lh_rng_bits(39, (*drawn)++, 0) % limit;
}

static double
random_rate(uint64_t *drawn)
{
    return GIGA * (double)(1 + below(drawn, 400));
}

static void
randomise(uint64_t *drawn, LhTopology *t)
{
    static const LhScaleUp kinds[] = { LH_SCALE_UP_NONE, LH_SCALE_UP_SWITCH, LH_SCALE_UP_PAIRS };

    t->gpus_per_node = UINT64_C(2) << below(drawn, 3);
    t->scale_up = (int)kinds[below(drawn, 3)];
    t->nvlink.bandwidth = t->scale_up == LH_SCALE_UP_NONE ? 0 : random_rate(drawn);
    t->pcie = t->nic;
    t->pcie.bandwidth = random_rate(drawn);
    t->nics_per_node = UINT64_C(1) << below(drawn, 2);
    t->nic.bandwidth = random_rate(drawn);
    t->max_nodes = 0;
}

/* No simulated collective is faster than its bound; alone and with many bytes, rings in a node and
 * pairs are close to it. */
START_TEST(bounds_are_no_longer_than_what_is_played)
{
    uint64_t drawn = 0;
    unsigned near = 0;

    for (unsigned i = 0; i < 500; i++) {
        const LhCollectiveKind kind = (LhCollectiveKind)below(&drawn, LH_COLL_KINDS);
        const bool pairs = kind == LH_COLL_ALL_TO_ALL;
        g_autoptr(LhTopology) bench = lh_topology_load("bench-platform", NULL);
        g_autoptr(LhSimResult) result = NULL;
        LhTopology t = *bench;
        uint64_t shard = 100000 + below(&drawn, 100000000);
        double bound_s, played_s;
        uint32_t ranks;
        LhNetwork network;
        LhGroup group;
        Single s;
        World w;

        randomise(&drawn, &t);
        ranks = (uint32_t)t.gpus_per_node * (1 + (uint32_t)below(&drawn, 3));
        group = first_ranks(ranks);
        single_init(&s, kind, group, shard, 0, 0);
        script_init(&w, &s.script, ranks);
        w.topology = t;
        w.device.memory_bandwidth = INFINITY;
        w.params.collectives = pairs && i % 2 != 0 ? LH_COLLECTIVES_PAIRWISE : LH_COLLECTIVES_RING;
        ck_assert(
            lh_network_init(&network, &t, ranks / (uint32_t)t.gpus_per_node, ranks, NULL, NULL));
        bound_s = lh_link_bound_s_per_byte(&network, &group, kind, LH_ALGORITHM_DEFAULT) *
                  lh_collective_printed_bytes(kind, ranks, (double)shard);
        result = world_run(&w);
        played_s = (double)result->makespan_ps / (double)LH_PS_PER_S;
        world_clear(&w);
        ck_assert_msg(bound_s <= played_s * (1 + 1e-9), "case %u: %s on %u ranks: %g s, bound %g s",
                      i, lh_collective_names[kind], ranks, played_s, bound_s);
        near += bound_s > 0.5 * played_s;
    }
    ck_assert_uint_gt(near, 250);
}
END_TEST

LH_TEST_MAIN("link_bound", bounds_are_those_by_hand, bounds_know_faults,
             bounds_are_no_longer_than_what_is_played)
