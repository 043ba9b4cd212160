/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovers a cluster from message times of a model of it: groups, adapters, rates, latencies; and
 * takes the result through its file into the simulator's network.
 */
#include "calibrate/cluster_shape.h"
#include "calibrate/cluster_topology.h"
#include "program/program.h"
#include "report/text/cluster/describe_machine.h"
#include "run_tests.h"
#include "sim/network/network.h"
#include "validate/slow_hosts.h"

#include <math.h>
#include <string.h>

#define NODES_MAX 8
#define RANKS_MAX 32
#define ALPHA_MEMORY_S 40e-6
#define ALPHA_NIC_S 250e-6
#define MEMORY_RATE 3e9

/* Parameters of the model that the times come from. */
typedef struct {
    uint32_t ranks, per_node, nics;
    double nic_rate;  /* bytes/s per adapter */
    double pair_rate; /* bytes/s of a single rank; 0: unlimited */
    uint32_t slow_node;
    double slow_rate; /* bytes/s of the slow node; 0: none */
    double noise;     /* relative, maximum */
    double alpha_s;   /* of adapters; 0: ALPHA_NIC_S */
    const char *hosts[RANKS_MAX];
    char names[RANKS_MAX][8];
    unsigned calls;
} Plant;

static double
rate_of(const Plant *p, uint32_t node)
{
    return p->slow_rate > 0 && node == p->slow_node ? p->slow_rate : p->nic_rate;
}

/* Duration of @r's flow at the rate of its narrowest adapter, shared evenly among its users. */
static double
flow_seconds(const Plant *p, const LhClusterFlows *f, uint32_t r)
{
    const uint32_t per_nic = p->per_node / p->nics, a = r / p->per_node, b = f->to[r] / p->per_node;
    double rate = p->pair_rate > 0 ? p->pair_rate : INFINITY;
    uint32_t out = 0, in = 0;

    if (a == b)
        return ALPHA_MEMORY_S + (double)f->bytes / MEMORY_RATE;
    for (uint32_t q = 0; q < p->ranks; q++) {
        if (f->to[q] >= LH_RANKS_MAX || q / p->per_node == f->to[q] / p->per_node)
            continue;
        out += q / per_nic == r / per_nic;
        in += f->to[q] / per_nic == f->to[r] / per_nic;
    }
    rate = fmin(rate, fmin(rate_of(p, a) / out, rate_of(p, b) / in));
    return (p->alpha_s > 0 ? p->alpha_s : ALPHA_NIC_S) + (double)f->bytes / rate;
}

static bool
measure(void *data, const LhClusterFlows *flows, double *seconds, GError **error)
{
    Plant *p = data;

    (void)error;
    p->calls++;
    for (uint32_t r = 0; r < p->ranks; r++) {
        const double wobble = 1 + p->noise * sin(12.9898 * (p->calls * p->ranks + r));

        seconds[r] = flows->to[r] < LH_RANKS_MAX ? flow_seconds(p, flows, r) * wobble : 0;
        if (flows->answered && flows->to[r] < LH_RANKS_MAX)
            seconds[r] += ALPHA_MEMORY_S;
    }
    return true;
}

/* Host names; one name for all if @named is false. */
static LhCluster *
find(Plant *p, bool named, GError **error)
{
    for (uint32_t r = 0; r < p->ranks; r++) {
        g_snprintf(p->names[r], sizeof(p->names[r]), "host%u", named ? r / p->per_node : 0);
        p->hosts[r] = p->names[r];
    }
    return lh_cluster_find(
        &(LhClusterParams){ .ranks = p->ranks, .hosts = p->hosts, .measure = measure, .data = p },
        error);
}

static LhTopology *
through_its_file(const LhCluster *c)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    LhTopology *topology;

    lh_cluster_write(c, "found", "a test", text);
    topology = lh_topology_parse("found.json", text->str, text->len, &error);
    ck_assert_msg(topology != NULL, "%s", error != NULL ? error->message : "");
    return topology;
}

static void
check_found(const Plant *p, const LhCluster *c, double tolerance)
{
    g_autoptr(LhTopology) t = through_its_file(c);
    const double access_s = p->per_node > 1 ? (double)t->nvlink.latency_ps : 0;

    ck_assert_int_eq(t->nic_overhead_ps, 0); /* fitted later, from collectives */
    ck_assert_uint_eq(c->nodes, p->ranks / p->per_node);
    ck_assert_uint_eq(c->per_node, p->per_node);
    ck_assert_uint_eq(t->gpus_per_node, p->per_node);
    ck_assert_uint_eq(t->nics_per_node, p->nics);
    ck_assert_double_eq_tol(t->nic.bandwidth / p->nic_rate, 1, tolerance);
    ck_assert_double_eq_tol((access_s + (double)t->nic.latency_ps) / (ALPHA_NIC_S * 1e12), 1,
                            4 * tolerance);
    if (p->per_node == 1)
        return;
    ck_assert_double_eq_tol(t->nvlink.bandwidth / MEMORY_RATE, 1, tolerance);
    ck_assert_double_eq_tol((double)t->nvlink.latency_ps / (ALPHA_MEMORY_S * 1e12), 1,
                            4 * tolerance);
}

START_TEST(cluster_is_found_again)
{
    static const Plant plants[] = {
        { .ranks = 4, .per_node = 2, .nics = 1, .nic_rate = 12e6 },
        { .ranks = 4, .per_node = 2, .nics = 2, .nic_rate = 120e6 },
        { .ranks = 4, .per_node = 1, .nics = 1, .nic_rate = 120e6 },
        { .ranks = 3, .per_node = 1, .nics = 1, .nic_rate = 1.2e9 },
        { .ranks = 32, .per_node = 4, .nics = 2, .nic_rate = 1.2e9 },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(plants); i++) {
        Plant exact = plants[i], noisy = plants[i];
        g_autoptr(LhCluster) c = find(&exact, true, NULL);
        g_autoptr(LhCluster) d = NULL;

        check_found(&plants[i], c, 0.01);
        ck_assert(!c->by_times);
        ck_assert(c->times_agree == (plants[i].per_node > 1));
        ck_assert_double_le(c->nic.residuals.worst, 0.01);
        ck_assert_double_le(c->nic.residuals.holdout, 0.01);
        noisy.noise = 0.01;
        d = find(&noisy, true, NULL);
        check_found(&plants[i], d, 0.05);
    }
}
END_TEST

/* Groups are recovered from times if all hosts have the same name. */
START_TEST(cluster_without_names)
{
    Plant p = { .ranks = 8, .per_node = 4, .nics = 1, .nic_rate = 120e6, .noise = 0.05 };
    Plant one = { .ranks = 4, .per_node = 4, .nics = 1, .nic_rate = 120e6, .noise = 0.05 };
    g_autoptr(LhCluster) c = find(&p, false, NULL);
    g_autoptr(LhCluster) d = find(&one, false, NULL);
    g_autoptr(LhTopology) t = through_its_file(d);

    ck_assert_uint_eq(c->nodes, 2);
    ck_assert(c->by_times);
    ck_assert_uint_eq(d->nodes, 1);
    ck_assert(!d->by_times);
    ck_assert_uint_eq(t->max_nodes, 1);
    ck_assert_uint_eq(t->nics_per_node, 0);
}
END_TEST

/* Two ranks share an adapter that neither saturates alone. */
START_TEST(cluster_one_rank_is_slower_than_an_adapter)
{
    Plant p = { .ranks = 4, .per_node = 2, .nics = 1, .nic_rate = 120e6, .pair_rate = 80e6 };
    g_autoptr(LhCluster) c = find(&p, true, NULL);
    g_autoptr(LhTopology) t = through_its_file(c);

    ck_assert_uint_eq(t->nics_per_node, 1);
    ck_assert_double_eq_tol(t->nic.bandwidth / 120e6, 1, 0.01);
    ck_assert_double_eq_tol(t->nic.pair_p2p / 80e6, 1, 0.01);
}
END_TEST

/* The file contains the overhead per message. */
START_TEST(cluster_file_has_the_overhead)
{
    Plant p = { .ranks = 4, .per_node = 1, .nics = 1, .nic_rate = 120e6 };
    g_autoptr(LhCluster) c = find(&p, true, NULL);
    g_autoptr(LhTopology) t = NULL;

    c->overhead_s = 350e-6;
    t = through_its_file(c);
    ck_assert_int_eq(t->nic_overhead_ps, 350000000);
}
END_TEST

/* Overhead: the median over sizes, divided by the concurrent messages beyond the first; at least
 * 0. */
START_TEST(cluster_overhead_is_found)
{
    static const struct {
        uint32_t nodes, per_node, further;
    } shapes[] = { { 1, 4, 0 }, { 2, 1, 0 }, { 2, 2, 1 }, { 4, 1, 2 }, { 16, 8, 63 } };

    for (unsigned i = 0; i < G_N_ELEMENTS(shapes); i++) {
        LhCluster c = { .nodes = shapes[i].nodes, .per_node = shapes[i].per_node };
        const double k = shapes[i].further;
        const LhClusterPoint points[] = {
            { .kind = LH_FLOWS_FAN, .measured_s = 1 + k * 300e-6, .fitted_s = 1 },
            { .kind = LH_FLOWS_FAN, .measured_s = 2 + k * 900e-6, .fitted_s = 2 },
            { .kind = LH_FLOWS_FAN, .measured_s = 3 - k * 100e-6, .fitted_s = 3 },
        };

        ck_assert_uint_eq(lh_cluster_further(&c), shapes[i].further);
        if (shapes[i].further == 0)
            continue;
        c.points = g_array_new(FALSE, FALSE, sizeof(LhClusterPoint));
        lh_cluster_take_overhead(&c, points, G_N_ELEMENTS(points));
        ck_assert_double_eq_tol(c.overhead_s, 300e-6, 1e-12);
        ck_assert_uint_eq(c.points->len, 3);
        ck_assert_double_eq_tol(g_array_index(c.points, LhClusterPoint, 1).fitted_s, 2 + k * 300e-6,
                                1e-12);
        lh_cluster_take_overhead(&c, &points[2], 1);
        ck_assert_double_eq(c.overhead_s, 0);
        g_array_unref(c.points);
    }
}
END_TEST

/* A slow adapter is named, and the simulator's network has it. */
START_TEST(cluster_slow_adapter)
{
    Plant p = {
        .ranks = 8, .per_node = 2, .nics = 1, .nic_rate = 120e6, .slow_node = 2, .slow_rate = 12e6
    };
    g_autoptr(LhCluster) c = find(&p, true, NULL);
    g_autoptr(LhTopology) t = through_its_file(c);
    LhNetwork network;
    LhRoute route;

    ck_assert_double_eq_tol(t->nic.bandwidth / 120e6, 1, 0.01);
    ck_assert_uint_eq(t->slower_nodes->len, 1);
    ck_assert_uint_eq(g_array_index(t->slower_nodes, LhSlowerNode, 0).node, 2);
    ck_assert_double_eq_tol(g_array_index(t->slower_nodes, LhSlowerNode, 0).bandwidth / 12e6, 1,
                            0.05);
    ck_assert(lh_network_init(&network, t, 4, 8, NULL, NULL));
    for (uint32_t to = 2; to < 8; to++) {
        lh_network_route(&network, 0, to, &route);
        ck_assert_double_eq_tol(
            lh_network_route_bandwidth(&network, &route) / (to / 2 == 2 ? 12e6 : 120e6), 1, 0.05);
        lh_network_route(&network, to, 0, &route);
        ck_assert_double_eq_tol(
            lh_network_route_bandwidth(&network, &route) / (to / 2 == 2 ? 12e6 : 120e6), 1, 0.05);
    }
}
END_TEST

/* At any position, with its real rate: the one that remains without the latency. */
START_TEST(cluster_slow_adapter_anywhere)
{
    for (uint32_t slow = 0; slow < 4; slow++) {
        Plant p = { .ranks = 4,
                    .per_node = 1,
                    .nics = 1,
                    .nic_rate = 120e6,
                    .slow_node = slow,
                    .slow_rate = 90e6 };
        g_autoptr(LhCluster) c = find(&p, true, NULL);

        for (uint32_t n = 0; n < 4; n++)
            ck_assert_double_eq_tol(c->node_bytes_per_s[n] / 90e6, n == slow ? 1 : 0, 0.01);
    }
}
END_TEST

/* Where latency dominates the times compared, only the slow adapter is named. */
START_TEST(cluster_slow_adapter_far_away)
{
    for (uint32_t slow = 0; slow <= 4; slow++) {
        Plant p = { .ranks = 4,
                    .per_node = 1,
                    .nics = 1,
                    .nic_rate = 120e6,
                    .slow_node = slow,
                    .slow_rate = 60e6,
                    .alpha_s = 6e-3 };
        g_autoptr(LhCluster) c = find(&p, true, NULL);

        ck_assert_double_eq_tol(c->nic.bytes_per_s / 120e6, 1, 0.01);
        for (uint32_t n = 0; n < 4; n++)
            ck_assert_double_eq_tol(c->node_bytes_per_s[n] / 60e6, n == slow ? 1 : 0, 0.01);
    }
}
END_TEST

static void
refuses(const char *const *hosts, uint32_t ranks, const char *words)
{
    Plant p = { .ranks = ranks, .per_node = 1, .nics = 1, .nic_rate = 120e6 };
    g_autoptr(GError) error = NULL;
    const LhClusterParams params = {
        .ranks = ranks, .hosts = hosts, .measure = measure, .data = &p
    };

    ck_assert_ptr_null(lh_cluster_find(&params, &error));
    ck_assert_msg(strstr(error->message, words) != NULL, "%s", error->message);
}

START_TEST(cluster_of_uneven_hosts)
{
    const char *const uneven[] = { "a", "a", "b" };
    const char *const mixed[] = { "a", "b", "a", "b" };

    refuses(uneven, 3, "must be spread evenly over the hosts");
    refuses(mixed, 4, "rank 2 is on a");
}
END_TEST

/* Ratios measured / predicted: of the kernels of each node, then of messages of pairs in order. */
static LhSlowHosts *
hosts_of(uint32_t nodes, const double *kernels, const double *messages)
{
    LhSlowHosts *hosts = g_new0(LhSlowHosts, 1);

    hosts->nodes = nodes;
    hosts->names = g_new0(char *, nodes + 1);
    hosts->times = g_array_new(FALSE, TRUE, sizeof(LhHostTimes));
    for (uint32_t n = 0; n < nodes; n++) {
        const LhHostTimes own = { .node = n, .peer = n };

        hosts->names[n] = g_strdup_printf("h%u", n);
        g_array_append_val(hosts->times, own);
        lh_slow_hosts_add_kernel(hosts, n, kernels[n], 0.5);
        lh_slow_hosts_add_kernel(hosts, n, kernels[n], 1.5);
    }
    for (uint32_t n = 0; n < nodes; n++) {
        for (uint32_t m = n + 1; m < nodes; m++) {
            const LhHostTimes pair = {
                .node = n, .peer = m, .measured_s = *messages++ * 0.1, .predicted_s = 0.1
            };

            g_array_append_val(hosts->times, pair);
        }
    }
    lh_slow_hosts_judge(hosts);
    return hosts;
}

/* Slow elements as text: "host N" for kernels, "network N" for adapters, "N-M" for other links. */
static char *
slow_of(const LhSlowHosts *hosts)
{
    GString *words = g_string_new(NULL);

    for (guint i = 0; i < hosts->times->len; i++) {
        const LhHostTimes *t = &g_array_index(hosts->times, LhHostTimes, i);

        if (t->node == t->peer && t->slow)
            g_string_append_printf(words, "host %u;", t->node);
        if (t->node == t->peer && lh_slow_hosts_adapter_is_slow(hosts, t->node))
            g_string_append_printf(words, "network %u;", t->node);
        if (t->node != t->peer && t->slow)
            g_string_append_printf(words, "%u-%u;", t->node, t->peer);
    }
    return g_string_free(words, FALSE);
}

START_TEST(cluster_slow_hosts_and_links)
{
    static const struct {
        uint32_t nodes;
        double kernels[4], messages[6];
        const char *slow;
    } cases[] = {
        { 3, { 1, 1, 1 }, { 1, 1.4, 0.3 }, "" },
        /* If all are slow, the constants are wrong or the machines are busy: no host is named. */
        { 3, { 9, 10, 9 }, { 1, 1, 1 }, "" },
        { 3, { 1, 1, 1.6 }, { 1, 1, 1 }, "host 2;" },
        { 2, { 3, 1 }, { 1 }, "host 0;" },
        { 3, { 1, 1, 1 }, { 9, 1, 9 }, "network 1;0-1;1-2;" },
        { 3, { 1, 1, 1 }, { 1, 1.6, 1 }, "0-2;" },
        { 3, { 1, 1, 1 }, { 2, 2, 2 }, "0-1;0-2;1-2;" },
        { 2, { 1, 1 }, { 2 }, "0-1;" },
        { 4, { 1, 1, 1, 7 }, { 1, 1, 4, 1, 5, 6 }, "host 3;network 3;0-3;1-3;2-3;" },
        { 4, { 1, 1, 1, 1 }, { 4, 1, 1, 1, 1, 4 }, "0-1;2-3;" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(LhSlowHosts) hosts =
            hosts_of(cases[i].nodes, cases[i].kernels, cases[i].messages);
        g_autofree char *slow = slow_of(hosts);

        ck_assert_str_eq(slow, cases[i].slow);
    }
}
END_TEST

START_TEST(cluster_words_of_slow_hosts)
{
    g_autoptr(LhSlowHosts) hosts =
        hosts_of(4, (double[]){ 1, 1, 1, 7 }, (double[]){ 1, 1.6, 4, 1, 5, 6 });
    g_autoptr(LhSlowHosts) quick = hosts_of(2, (double[]){ 1, 1 }, (double[]){ 1.4 });
    g_autoptr(LhTable) table = lh_describe_hosts(hosts);
    g_autoptr(GString) out = g_string_new(NULL);

    lh_describe_slow(hosts, out);
    ck_assert_str_eq(out->str,
                     "Slow: host h3: its kernels take 7 times as long as predicted, those of the "
                     "median host 1 times.\n"
                     "Slow: the network of host h3: its messages take 4 to 6 times as long as "
                     "predicted.\n"
                     "Slow: the link between hosts h0 and h2: a message takes 1.6 times as long "
                     "as predicted.\n");
    g_string_truncate(out, 0);
    lh_table_print(table, LH_FORMAT_CSV, out);
    ck_assert_msg(g_str_has_prefix(out->str, "host,what,measured_s,predicted_s,error,slow\n"
                                             "h0,kernels,2,2,0,-\n"),
                  "%s", out->str);
    ck_assert_msg(strstr(out->str, "h1,messages with h3,0.5,0.1,-0.8,YES\n") != NULL, "%s",
                  out->str);
    g_string_truncate(out, 0);
    lh_describe_slow(quick, out);
    ck_assert_str_eq(out->str,
                     "No host and no link takes more than 1.5 times as long as predicted.\n");
}
END_TEST

LH_TEST_MAIN("cluster", cluster_is_found_again, cluster_without_names,
             cluster_one_rank_is_slower_than_an_adapter, cluster_file_has_the_overhead,
             cluster_overhead_is_found, cluster_slow_adapter, cluster_slow_adapter_anywhere,
             cluster_slow_adapter_far_away, cluster_of_uneven_hosts, cluster_slow_hosts_and_links,
             cluster_words_of_slow_hosts)
