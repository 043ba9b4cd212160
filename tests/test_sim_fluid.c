/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings simulated as fluids compared with rings of pieces: on an idle network they take the same
 * time for any cluster, group, collective and size, and they share links with other messages.
 */
#include "base/rng.h"
#include "program/collective_semantics.h"
#include "run_tests.h"
#include "share.h"
#include "sim/lower_bound/lower_bound.h"
#include "sim/network/collectives/collective.h"
#include "sim_single.h"

#include <math.h>

#define CASES 500
/* Divides the number of slow cases: the remaining ones still detect missing link sharing. */
#define FEWER MIN(test_every(), 7)
#define CASES_OF_MANY 12
#define CASES_OF_LEAST 100
#define FEW_MEMBERS 96
#define FEW_RANKS 128
#define RANKS_MAX 1024

/* Rounding only. */
#define TOLERANCE 1e-5

/* Not in the lower bounds: all latencies but that of the fastest hop, and that several rings in
 * one flow may be slower than each alone. */
#define LEFT_OUT_PS (40 * US)
#define LEFT_OUT 0.02

/* ---- a random cluster and group ---- */

static const char *const clusters[] = { "bench-platform", "dgx-a100-80g",  "dfa-2node",
                                        "lasp-dgx",       "fat-tree-a100", "hgx-h100",
                                        "azure-nc96-a100" };

typedef struct {
    const char *cluster;
    double nic, nvlink, latency; /* factors */
    uint64_t nics_per_node;
    LhFabric fabric;
    LhCollectiveKind kind;
    LhGroup group;
    uint32_t ranks;
    uint64_t bytes;
} Case;

/* A log-uniform random number between @least and @most. */
static double
between(uint64_t seed, uint64_t what, double least, double most)
{
    return least * pow(most / least, lh_rng_uniform(seed, what, 0));
}

static uint32_t
below(uint64_t seed, uint64_t what, uint32_t limit)
{
    return (uint32_t)(lh_rng_bits(seed, what, 0) % limit);
}

static Case
some_case(uint64_t seed)
{
    const uint32_t stride = 1u << below(seed, 1, 4);
    const uint32_t most = MIN(FEW_MEMBERS, FEW_RANKS / stride);
    const uint32_t count = 2 + below(seed, 2, most - 1);

    return (Case){
        .cluster = clusters[below(seed, 3, G_N_ELEMENTS(clusters))],
        .nic = between(seed, 4, 0.5, 2),
        .nvlink = between(seed, 5, 0.5, 2),
        .latency = between(seed, 6, 0.5, 2),
        .nics_per_node = UINT64_C(1) << below(seed, 7, 4),
        .fabric = (LhFabric)below(seed, 8, 2),
        .kind = (LhCollectiveKind)below(seed, 9, LH_COLL_ALL_REDUCE + 1),
        .group = { below(seed, 10, FEW_RANKS - stride * (count - 1)), stride, count, 0, 1 },
        .ranks = FEW_RANKS,
        .bytes = (uint64_t)between(seed, 11, 1, 1e9),
    };
}

static void
scale(LhLinkClass *link, double bandwidth, double latency)
{
    link->bandwidth *= bandwidth;
    link->pair_p2p *= bandwidth;
    link->pair_collective *= bandwidth;
    link->latency_ps = (LhTime)((double)link->latency_ps * latency);
}

static void
apply(const Case *c, LhTopology *topology)
{
    scale(&topology->nic, c->nic, c->latency);
    scale(&topology->nvlink, c->nvlink, c->latency);
    topology->nics_per_node = MIN(c->nics_per_node, topology->gpus_per_node);
    topology->max_nodes = 0;
    if (topology->fabric != LH_FABRIC_FAT_TREE)
        topology->fabric = (int)c->fabric;
}

static LhSimResult *
play(const Case *c, LhCollectiveModel model)
{
    g_autoptr(LhTopology) topology = lh_topology_load(c->cluster, NULL);
    LhSimResult *result;
    Single s;
    World w;

    single_init(&s, c->kind, c->group, c->bytes, 0, 0);
    script_init(&w, &s.script, c->ranks);
    w.topology = *topology;
    apply(c, &w.topology);
    w.params.collectives = model;
    result = world_run(&w);
    world_clear(&w);
    return result;
}

/* ---- an idle network ---- */

/* Both models count the same bytes on the same links. */
static double
compare(const Case *c)
{
    g_autoptr(LhSimResult) ring = play(c, LH_COLLECTIVES_RING);
    g_autoptr(LhSimResult) fluid = play(c, LH_COLLECTIVES_FLUID);

    for (uint32_t r = 0; r < c->ranks; r++)
        ck_assert_mem_eq(ring->ranks[r].bytes_by_tier, fluid->ranks[r].bytes_by_tier,
                         sizeof(ring->ranks[r].bytes_by_tier));
    ck_assert_mem_eq(ring->link_bytes, fluid->link_bytes, sizeof(ring->link_bytes));
    ck_assert_uint_le(fluid->events, ring->events);
    return fabs((double)fluid->makespan_ps / (double)ring->makespan_ps - 1);
}

START_TEST(fluids_take_the_time_of_rings)
{
    for (uint64_t seed = 0; seed < CASES / FEWER; seed++) {
        const Case c = some_case(seed);
        const double error = compare(&c);

        ck_assert_msg(error <= TOLERANCE, "seed %u: %g", (unsigned)seed, error);
    }
}
END_TEST

/* The lower bound of each member's op is close to its simulated time. */
static void
check_least(const Case *c, uint64_t seed)
{
    g_autoptr(LhTopology) topology = lh_topology_load(c->cluster, NULL);
    g_autoptr(LhSimResult) result = NULL;
    LhLowerBoundCalls *known;
    Single s;
    World w;

    single_init(&s, c->kind, c->group, c->bytes, 0, 0);
    script_init(&w, &s.script, c->ranks);
    w.topology = *topology;
    apply(c, &w.topology);
    w.params.collectives = LH_COLLECTIVES_FLUID;
    result = world_run(&w);
    known = lh_lower_bound_calls_new(&w.params);
    for (uint32_t i = 0; i < c->group.count; i++) {
        g_autoptr(LhLowerBound) least = lh_lower_bound_new(&w.params, i % 2 == 0 ? known : NULL);
        const LhTime least_ps =
            lh_lower_bound_of(least, (uint32_t)lh_group_member(&c->group, i), true).path_ps;

        ck_assert_msg(least_ps <= result->makespan_ps &&
                          (double)(result->makespan_ps - least_ps) <
                              (double)LEFT_OUT_PS + LEFT_OUT * (double)result->makespan_ps,
                      "seed %u, member %u: lower bound %" G_GINT64_FORMAT
                      " ps, simulated %" G_GINT64_FORMAT,
                      (unsigned)seed, i, least_ps, result->makespan_ps);
    }
    lh_lower_bound_calls_free(known);
    world_clear(&w);
}

START_TEST(fluids_take_what_they_take_at_least)
{
    for (uint64_t seed = 0; seed < test_share(CASES_OF_LEAST); seed++) {
        const Case c = some_case(seed);

        check_least(&c, seed);
    }
}
END_TEST

START_TEST(fluids_take_the_time_of_one_ring)
{
    for (uint64_t seed = 0; seed < CASES / FEWER; seed++) {
        Case c = some_case(seed);

        c.nics_per_node = 1;
        ck_assert_double_le(compare(&c), TOLERANCE);
    }
}
END_TEST

/* Many members, of whole nodes or not, with enough bytes that pieces of several rings wait for
 * each other. */
static Case
large_case(uint64_t seed)
{
    Case c = some_case(seed);

    c.cluster = "hgx-h100";
    c.nics_per_node = 8;
    c.kind = LH_COLL_ALL_REDUCE;
    c.bytes = (uint64_t)between(seed, 12, 7e5, 2e6);
    c.ranks = RANKS_MAX;
    c.group = (LhGroup){ 8 * below(seed, 13, 40), 1, (uint32_t)between(seed, 14, 96, 400), 0, 1 };
    if (below(seed, 15, 2) > 0)
        c.group.base += below(seed, 16, 8);
    else
        c.group.count -= c.group.count % 16;
    return c;
}

START_TEST(fluids_take_the_time_of_long_rings)
{
    for (uint64_t seed = 0; seed < test_share(CASES_OF_MANY); seed++) {
        const Case c = large_case(seed);
        const double error = compare(&c);

        ck_assert_msg(error <= TOLERANCE, "seed %u: %g", (unsigned)seed, error);
    }
}
END_TEST

/* ---- waiting ---- */

/* Ranks 0 and 1, and 0 alone with rank 2, on the bench platform: both share rank 0's uplink. */
START_TEST(fluids_share_links_with_messages)
{
    Script script =
        SCRIPT({ .rank = 0, .kind = LH_OP_COLLECTIVE, .group = 2, .bytes = 3000000 },
               { .rank = 0,
                 .kind = LH_OP_EXCHANGE,
                 .notes = { { true, 2, 0, 3000000 } },
                 .stream = COMM2 },
               { .rank = 1, .kind = LH_OP_COLLECTIVE, .group = 2, .bytes = 3000000 },
               { .rank = 2, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 0, 3000000 } } });
    g_autoptr(LhSimResult) result = NULL;
    World w;

    script_init(&w, &script, 3);
    w.params.collectives = LH_COLLECTIVES_FLUID;
    result = world_run(&w);
    ck_assert_int_eq(result->makespan_ps, 2 * US + 20 * US);
    world_clear(&w);
}
END_TEST

/* Rank 2 of 3 is 50 us late: no byte moves before, and all end at the same time. */
START_TEST(fluids_start_with_the_last_member)
{
    const LhTime late = 50 * US, end = late + 2 * (2 * US + 10 * US);
    Script script = SCRIPT(
        { .rank = 0, .kind = LH_OP_COLLECTIVE, .group = 3, .bytes = 3000000 },
        { .rank = 1, .kind = LH_OP_COLLECTIVE, .group = 3, .bytes = 3000000 },
        { .rank = 2, .kind = LH_OP_COMPUTE, .time_ps = late },
        { .rank = 2, .kind = LH_OP_COLLECTIVE, .group = 3, .bytes = 3000000, .after = { 1 } });
    g_autoptr(LhSimResult) result = NULL;
    World w;

    script_init(&w, &script, 3);
    w.params.collectives = LH_COLLECTIVES_FLUID;
    result = world_run(&w);
    for (uint32_t r = 0; r < 3; r++) {
        ck_assert_int_eq(result->ranks[r].finish_ps, end);
        ck_assert_int_eq(result->ranks[r].idle_ps[LH_IDLE_COMM], end - late);
    }
    ck_assert_int_eq(result->ranks[0].idle_ps[LH_IDLE_IMBALANCE], late);
    ck_assert_uint_eq(result->events, 3 + 1);
    world_clear(&w);
}
END_TEST

/* Members far from the slow link wait for it; their waiting is charged to that link. */
START_TEST(fluids_end_together)
{
    const Case c = { .cluster = "bench-platform",
                     .nic = 1,
                     .nvlink = 1,
                     .latency = 1,
                     .nics_per_node = 1,
                     .group = { 0, 1, 16, 0, 1 },
                     .ranks = 128,
                     .bytes = 125000 };
    g_autoptr(LhSimResult) result = play(&c, LH_COLLECTIVES_FLUID);

    ck_assert_int_eq(result->makespan_ps, 15 * 10 * US + 5 * US);
    for (uint32_t r = 0; r < 16; r++)
        ck_assert_int_eq(result->ranks[r].finish_ps, result->makespan_ps);
    ck_assert_int_gt(result->ranks[4].idle_ps[LH_IDLE_COMM + LH_TIER_NIC], 140 * US);
}
END_TEST

/* ---- choice between the two ---- */

START_TEST(auto_is_rings_up_to_a_size)
{
    Case c = some_case(0);

    for (uint32_t more = 0; more < 2; more++) {
        g_autoptr(LhSimResult) chosen = NULL, same = NULL;

        c.group = (LhGroup){ 0, 1, LH_RING_MEMBERS_MAX + more, 0, 1 };
        chosen = play(&c, LH_COLLECTIVES_AUTO);
        same = play(&c, more ? LH_COLLECTIVES_FLUID : LH_COLLECTIVES_RING);
        ck_assert_uint_eq(chosen->events, same->events);
        ck_assert_int_eq(chosen->makespan_ps, same->makespan_ps);
    }
}
END_TEST

LH_TEST_MAIN("sim_fluid", fluids_take_the_time_of_rings, fluids_take_what_they_take_at_least,
             fluids_take_the_time_of_one_ring, fluids_take_the_time_of_long_rings,
             fluids_share_links_with_messages, fluids_start_with_the_last_member,
             fluids_end_together, auto_is_rings_up_to_a_size)
