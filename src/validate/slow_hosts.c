/* SPDX-License-Identifier: Apache-2.0 */
#include "validate/slow_hosts.h"

#include "calibrate/cluster_shape.h"
#include "measure/fit.h"
#include "measure/measure_executor.h"
#include "program/program.h"

#define MESSAGE_BYTES (UINT64_C(512) << 10)
#define ROUNDS 5

static LhHostTimes *
times_at(const LhSlowHosts *hosts, guint index)
{
    return &g_array_index(hosts->times, LhHostTimes, index);
}

LhSlowHosts *
lh_slow_hosts_new(const LhProcesses *processes, const LhNetwork *network, GError **error)
{
    g_auto(GStrv) names = lh_processes_texts(processes, g_get_host_name(), error);
    LhSlowHosts *hosts;

    if (names == NULL)
        return NULL;
    hosts = g_new0(LhSlowHosts, 1);
    hosts->nodes = (processes->count + network->gpus_per_host - 1) / network->gpus_per_host;
    hosts->names = g_new0(char *, hosts->nodes + 1);
    hosts->times = g_array_new(FALSE, TRUE, sizeof(LhHostTimes));
    for (uint32_t n = 0; n < hosts->nodes; n++) {
        const LhHostTimes kernels = { .node = n, .peer = n };

        hosts->names[n] = g_strdup(names[n * network->gpus_per_host]);
        g_array_append_val(hosts->times, kernels);
    }
    return hosts;
}

void
lh_slow_hosts_free(LhSlowHosts *hosts)
{
    if (hosts == NULL)
        return;
    g_strfreev(hosts->names);
    g_array_unref(hosts->times);
    g_free(hosts);
}

void
lh_slow_hosts_add_kernel(LhSlowHosts *hosts, uint32_t node, double measured_s, double predicted_s)
{
    times_at(hosts, node)->measured_s += measured_s;
    times_at(hosts, node)->predicted_s += predicted_s;
}

/* Measures an exchange between the first ranks of two hosts, both directions at once. */
static bool
measure_pair(LhSlowHosts *hosts, LhHostTimes pair, const LhProcesses *processes,
             const LhBackend *backend, const LhNetwork *network, GError **error)
{
    const uint32_t a = pair.node * network->gpus_per_host, b = pair.peer * network->gpus_per_host;
    g_autofree uint32_t *to = g_new(uint32_t, processes->count);
    g_autofree double *seconds = g_new0(double, processes->count);
    const LhFlowsProbe probe = { .backend = backend,
                                 .ranks = processes->count,
                                 .to = to,
                                 .bytes = MESSAGE_BYTES,
                                 .rounds = ROUNDS };
    LhRoute route;

    for (uint32_t r = 0; r < processes->count; r++)
        to[r] = r == a ? b : r == b ? a : LH_RANKS_MAX;
    if (!lh_measure_flows(&probe, seconds, error))
        return false;
    lh_network_route(network, a, b, &route);
    pair.measured_s = (seconds[a] + seconds[b]) / 2;
    pair.predicted_s = (double)route.latency_ps / (double)LH_PS_PER_S +
                       (double)MESSAGE_BYTES / lh_network_route_bandwidth(network, &route);
    g_array_append_val(hosts->times, pair);
    return true;
}

bool
lh_slow_hosts_measure(LhSlowHosts *hosts, const LhProcesses *processes, const LhBackend *backend,
                      const LhNetwork *network, GError **error)
{
    for (uint32_t n = 0; n < hosts->nodes; n++) {
        for (uint32_t m = n + 1; m < hosts->nodes; m++) {
            const LhHostTimes pair = { .node = n, .peer = m };

            if (lh_cluster_compares(hosts->nodes, n, m) &&
                !measure_pair(hosts, pair, processes, backend, network, error))
                return false;
        }
    }
    return true;
}

/* measured / predicted; 0 if nothing was predicted. */
static double
ratio_of(const LhHostTimes *t)
{
    return t->predicted_s > 0 ? t->measured_s / t->predicted_s : 0;
}

/* The median ratio of hosts. Of two hosts the lower one is taken, since a median would let a slow
 * host raise its own standard. */
static double
usual_ratio(const LhSlowHosts *hosts)
{
    g_autofree double *ratios = g_new(double, hosts->nodes);
    uint32_t count = 0;

    for (uint32_t n = 0; n < hosts->nodes; n++)
        ratios[count++] = ratio_of(times_at(hosts, n));
    if (hosts->nodes == 2)
        return MIN(ratios[0], ratios[1]);
    return lh_median(ratios, count);
}

void
lh_slow_hosts_judge(LhSlowHosts *hosts)
{
    hosts->usual = usual_ratio(hosts);
    for (guint i = 0; i < hosts->times->len; i++) {
        LhHostTimes *t = times_at(hosts, i);
        const double standard = t->node == t->peer ? hosts->usual : 1;

        t->slow = ratio_of(t) > LH_HOSTS_SLOW * standard;
    }
}

bool
lh_slow_hosts_adapter_is_slow(const LhSlowHosts *hosts, uint32_t node)
{
    bool others_are_well = false, measured = false;

    for (guint i = hosts->nodes; i < hosts->times->len; i++) {
        const LhHostTimes *t = times_at(hosts, i);
        const bool its = t->node == node || t->peer == node;

        if (its && !t->slow)
            return false;
        measured = measured || its;
        others_are_well = others_are_well || (!its && !t->slow);
    }
    return measured && others_are_well;
}
