/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rates of messages within a node where measured collectives contradict the link rates, and the
 * notes and error bars for them (sim/network/sends.h, compare/time_range.h, compare/error_bar.h).
 */
#include "compare/compare.h"
#include "run_tests.h"
#include "sim/network/sends.h"

#include <math.h>
#include <string.h>

#define RATE 24e9

/* A node of 8 GPUs on 24 GB/s PCIe with these rows of measured times. */
static LhTopology *
box_with(const char *rows)
{
    g_autofree char *text = g_strdup_printf(
        "{\"schema\": \"longhaul.topology/2\", \"name\": \"box\", \"description\": \"A box.\", "
        "\"source\": \"test\", \"device\": \"l40s\", \"node\": {\"gpus\": 8, \"scale_up\": "
        "{\"kind\": \"none\"}, \"pcie\": {\"bandwidth\": \"24GB/s\", \"latency\": \"3us\", "
        "\"ctas\": 2, \"provenance\": \"datasheet\", \"source\": \"test\"}, \"measured_on\": "
        "{\"pcie\": {\"bandwidth\": \"24GB/s\", \"latency\": \"3us\"}}, \"collective_times\": "
        "[%s]}, \"max_nodes\": 1}",
        rows);
    g_autoptr(GError) error = NULL;
    LhTopology *topology = lh_topology_parse("box.json", text, strlen(text), &error);

    ck_assert_msg(topology != NULL, "%s", error != NULL ? error->message : "");
    return topology;
}

/* A row of 1 KiB and 64 MiB; the latter reaches @share of the rate that the links allow rings. */
static char *
row_of(const char *op, unsigned ranks, double share)
{
    const double moved = strcmp(op, "sendrecv") == 0     ? 1
                         : strcmp(op, "all-reduce") == 0 ? 2.0 * (ranks - 1) / ranks
                                                         : (ranks - 1.0) / ranks;

    return g_strdup_printf("{\"op\": \"%s\", \"ranks\": %u, \"bytes\": [1024, 67108864], \"us\": "
                           "[10, %.6f], \"provenance\": \"measured\", \"source\": \"test\"}",
                           op, ranks, 10 + moved * 67108864 / RATE * 1e6 / share);
}

static LhSends
sends_beside(const char *op, unsigned ranks, double share, uint64_t gpus)
{
    g_autofree char *row = row_of(op, ranks, share);
    g_autoptr(LhTopology) topology = box_with(row);
    LhSends sends = lh_sends_of(topology, LH_TIER_PCIE, gpus);

    ck_assert(lh_sends_of(topology, LH_TIER_NVLINK, gpus).share == 1);
    sends.row = NULL; /* freed */
    return sends;
}

/* Rings that reach most of the link rate do not affect messages. With slower rings the rate of
 * messages is assumed to be between the two. */
START_TEST(sends_are_between_links_and_rings)
{
    static const char *const rings[] = { "all-gather", "reduce-scatter", "all-reduce" };

    for (gsize i = 0; i < G_N_ELEMENTS(rings); i++) {
        LhSends sends = sends_beside(rings[i], 8, 0.61, 8);

        ck_assert(sends.share == 1 && sends.least == 1 && sends.most == 1);
        sends = sends_beside(rings[i], 8, 0.59, 8);
        ck_assert_double_eq_tol(sends.least, 0.59, 1e-6);
        ck_assert_double_eq_tol(sends.share, sqrt(0.59), 1e-6);
        ck_assert(sends.most == 1);
    }
    ck_assert(sends_beside("all-to-all", 8, 0.1, 8).share == 1); /* no ring */
}
END_TEST

/* Two GPUs form no ring; rows of two GPUs do not affect larger groups, nor vice versa. */
START_TEST(sends_of_two_are_their_own)
{
    ck_assert(sends_beside("all-gather", 2, 0.1, 8).share == 1);
    ck_assert(sends_beside("all-gather", 8, 0.1, 2).share == 1);
    ck_assert(sends_beside("all-gather", 8, 0.1, 3).share < 1);
}
END_TEST

/* Measured send/receive rows take precedence: for the same number of GPUs, the next larger, else
 * the largest, in any order of rows. Nothing is assumed then. */
START_TEST(sends_that_were_timed_hold)
{
    static const unsigned orders[][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
                                          { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
    g_autofree char *slow = row_of("all-gather", 8, 0.1), *two = row_of("sendrecv", 2, 0.9);
    g_autofree char *four = row_of("sendrecv", 4, 0.5), *six = row_of("sendrecv", 6, 0.4);
    const char *const rows[] = { two, four, six };
    const struct {
        uint64_t gpus;
        double share;
    } cases[] = { { 2, 0.9 }, { 3, 0.5 }, { 4, 0.5 }, { 5, 0.4 }, { 6, 0.4 }, { 8, 0.4 } };

    for (gsize i = 0; i < G_N_ELEMENTS(cases) * G_N_ELEMENTS(orders); i++) {
        const unsigned *order = orders[i / G_N_ELEMENTS(cases)];
        const uint64_t gpus = cases[i % G_N_ELEMENTS(cases)].gpus;
        g_autofree char *text =
            g_strjoin(", ", slow, rows[order[0]], rows[order[1]], rows[order[2]], NULL);
        g_autoptr(LhTopology) topology = box_with(text);
        const LhSends sends = lh_sends_of(topology, LH_TIER_PCIE, gpus);
        g_autoptr(GPtrArray) doubts = lh_measured_doubts(topology, gpus);

        ck_assert_double_eq_tol(sends.share, cases[i % G_N_ELEMENTS(cases)].share, 1e-6);
        ck_assert(sends.least == sends.share && sends.most == sends.share);
        ck_assert_uint_eq(doubts->len, 0);
    }
}
END_TEST

static char *
of_version(const char *row, const char *version)
{
    return g_strdup_printf("{\"nccl\": \"%s\", %s", version, row + 1);
}

/* Of several NCCL versions the first row counts; rings of more GPUs than take part are ignored. */
START_TEST(sends_heed_the_rows_that_hold)
{
    g_autofree char *good = row_of("all-gather", 8, 0.9), *bad = row_of("all-gather", 8, 0.1);
    g_autofree char *first = of_version(good, "2.1"), *second = of_version(bad, "2.2");
    g_autofree char *four = row_of("all-gather", 4, 0.9);
    g_autofree char *versions = g_strjoin(", ", first, second, NULL);
    g_autofree char *numbers = g_strjoin(", ", bad, four, NULL);
    g_autoptr(LhTopology) of_versions = box_with(versions);
    g_autoptr(LhTopology) of_numbers = box_with(numbers);

    ck_assert(lh_sends_of(of_versions, LH_TIER_PCIE, 8).share == 1);
    ck_assert(lh_sends_of(of_numbers, LH_TIER_PCIE, 4).share == 1);
    ck_assert_double_eq_tol(lh_sends_of(of_numbers, LH_TIER_PCIE, 8).least, 0.1, 1e-6);
}
END_TEST

/* The limit of a route scales with its present links, not with those at the time of the
 * measurement. */
START_TEST(sends_go_with_their_links)
{
    g_autofree char *row = row_of("all-gather", 8, 0.16);
    g_autoptr(LhTopology) topology = box_with(row);
    const LhLinkFault fault = { .tier = LH_TIER_PCIE, .node = 0, .factor = 0.5 };
    g_autoptr(GArray) faults = g_array_new(FALSE, FALSE, sizeof(LhLinkFault));
    LhNetwork network;
    LhRoute route;

    g_array_append_val(faults, fault);
    ck_assert(lh_network_init(&network, topology, 1, 8, NULL, NULL));
    lh_network_route(&network, 0, 5, &route);
    ck_assert(route.flow_bandwidth_bytes_per_s == 0);
    lh_sends_limit(&network, &route);
    ck_assert_double_eq_tol(route.flow_bandwidth_bytes_per_s / RATE, 0.4, 1e-6);
    ck_assert(lh_network_init(&network, topology, 1, 8, faults, NULL));
    lh_network_route(&network, 0, 5, &route);
    lh_sends_limit(&network, &route);
    ck_assert_double_eq_tol(route.flow_bandwidth_bytes_per_s / RATE, 0.2, 1e-6);
    topology->pcie.bandwidth *= 2;
    ck_assert(lh_network_init(&network, topology, 1, 8, NULL, NULL));
    lh_network_route(&network, 0, 5, &route);
    lh_sends_limit(&network, &route);
    ck_assert_double_eq_tol(route.flow_bandwidth_bytes_per_s / RATE, 0.8, 1e-6);
    ck_assert(lh_sends_assume(&network, true) && network.sends[LH_TIER_PCIE] == 1);
    ck_assert(lh_sends_assume(&network, false));
    ck_assert_double_eq_tol(network.sends[LH_TIER_PCIE], 0.16, 1e-6);
}
END_TEST

/* Notes on assumptions give the rates of hops, the stated link rate, and the measurement. */
START_TEST(sends_that_are_assumed_are_told)
{
    g_autofree char *row = row_of("all-gather", 8, 0.16);
    g_autoptr(LhTopology) topology = box_with(row);
    g_autoptr(GPtrArray) doubts = lh_measured_doubts(topology, 8);
    g_autoptr(GPtrArray) of_one = lh_measured_doubts(topology, 1);

    ck_assert_uint_eq(of_one->len, 0);
    ck_assert_uint_eq(doubts->len, 1);
    ck_assert_str_eq(g_ptr_array_index(doubts, 0),
                     "all-gather of 8 GPUs was measured at 3.8 GB/s per hop, but the bandwidth of "
                     "PCIe (datasheet) allows 24 GB/s: sends are assumed in between, at 9.6 GB/s, "
                     "with both as the error bar; to measure them, run sendrecv_perf -g 8");
}
END_TEST

/* With equal bytes per rank, a note appears if more GPUs are over 20 % faster than fewer; never
 * for small sizes, where protocols differ. */
START_TEST(times_that_fall_are_told)
{
    static const struct {
        guint64 bytes, us;
        guint told;
    } cases[] = { { 67108864, 8100, 0 }, { 67108864, 7900, 1 }, { 4194304, 7900, 0 } };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *rows = g_strdup_printf(
            "{\"op\": \"all-gather\", \"ranks\": 4, \"bytes\": [1024, %" G_GUINT64_FORMAT
            "], \"us\": [10, 10000], \"provenance\": \"measured\", \"source\": \"test\"}, "
            "{\"op\": \"all-gather\", \"ranks\": 8, \"bytes\": [1024, %" G_GUINT64_FORMAT
            "], \"us\": [10, %" G_GUINT64_FORMAT
            "], \"provenance\": \"measured\", \"source\": \"test\"}",
            cases[i].bytes, 2 * cases[i].bytes, cases[i].us);
        g_autoptr(LhTopology) topology = box_with(rows);
        g_autoptr(GPtrArray) doubts = lh_measured_doubts(topology, 8);
        guint told = 0;

        for (guint k = 0; k < doubts->len; k++)
            told += strstr(g_ptr_array_index(doubts, k), "less on 8 GPUs than on 4") != NULL;
        ck_assert_uint_eq(told, cases[i].told);
    }
}
END_TEST

/* The same assumption on messages applies to both of two runs. */
START_TEST(ends_tell_apart)
{
    LhErrorParts both = { { 0 } }, none = { { 0 } };

    both.part[LH_ERROR_SLOWER] = 2;
    both.part[LH_ERROR_FASTER] = 0.5;
    ck_assert_double_eq(lh_error_between(&both, &both), lh_error_between(&none, &none));
    ck_assert_double_eq(lh_error_between(&both, &none), 2);   /* the first may be this slow */
    ck_assert_double_eq(lh_error_between(&none, &both), 0.5); /* or the second as fast */
    ck_assert_int_eq(lh_error_between_most(&both, &none), LH_ERROR_SLOWER);
}
END_TEST

/* A run has a fastest and a slowest time if anything is assumed: sends beside slow rings, and
 * collectives on other links than they were measured on. */
START_TEST(runs_have_ends)
{
    static const struct {
        const char *members, *schedule;
        bool has_ends;
    } cases[] = {
        { "\"cluster\": \"pcie-l40s:1\"", "te-p2p", true },
        { "\"cluster\": \"pcie-l40s:1\"", "ulysses", false },
        { "\"cluster\": \"hgx-h100:1\"", "te-p2p", false },
        { "\"cluster\": \"hgx-h100:1\"", "ulysses", false },
        { "\"cluster\": \"hgx-h100:1\", \"link_fault\": [{\"tier\": \"nvlink\", \"node\": 0, "
          "\"factor\": 0.5}]",
          "ulysses", true },
        { "\"cluster\": \"hgx-h100:1\", \"link_fault\": [{\"tier\": \"nvlink\", \"node\": 0, "
          "\"factor\": 0.5}]",
          "te-p2p", false },
        { "\"cluster\": \"hgx-h100:1\", \"nvlink_rate\": \"100GB/s\"", "ulysses", true },
        { "\"cluster\": \"pcie-l40s:1\", \"ranks\": 2", "te-p2p", false },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text = g_strdup_printf(
            "{\"schema\": \"longhaul.scenario/1\", \"model\": \"llama-3-8b\", \"seq_length\": "
            "\"32K\", %s}",
            cases[i].members);
        g_autoptr(LhScenario) scenario = lh_scenario_parse("s.json", text, strlen(text), &error);
        g_autoptr(LhSetup) setup = scenario == NULL ? NULL : lh_setup_new(scenario, &error);
        g_autoptr(LhCompareRow) row = NULL;
        const LhSimResult *r;

        ck_assert_msg(setup != NULL, "%s", error != NULL ? error->message : "");
        row = lh_compare_run(setup, lh_schedule_find(cases[i].schedule, NULL), NULL);
        r = row->result;

        ck_assert_ptr_nonnull(r);
        ck_assert(r->fastest_ps <= r->makespan_ps && r->makespan_ps <= r->slowest_ps);
        ck_assert_msg((r->fastest_ps < r->slowest_ps) == cases[i].has_ends, "%s, %s",
                      cases[i].members, cases[i].schedule);
        ck_assert((row->time_error.above == row->time_error.below) == !cases[i].has_ends);
    }
}
END_TEST

LH_TEST_MAIN("sends", sends_are_between_links_and_rings, sends_of_two_are_their_own,
             sends_that_were_timed_hold, sends_heed_the_rows_that_hold, sends_go_with_their_links,
             sends_that_are_assumed_are_told, times_that_fall_are_told, ends_tell_apart,
             runs_have_ends)
