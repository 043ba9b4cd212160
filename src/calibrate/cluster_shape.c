/* SPDX-License-Identifier: Apache-2.0 */
/* Every process takes the same decisions from the same numbers, so that all run the same
 * programs. */
#include "calibrate/cluster_shape.h"

#include "calibrate/cluster_flows.h"
#include "calibrate/cluster_lines.h"
#include "calibrate/cluster_nodes.h"
#include "measure/fit.h"
#include "sim/network/collectives/collective.h"

#include <math.h>

#define NODES_ALL_MAX 6    /* up to this many nodes, all pairs are measured */
#define NIC_TOLERANCE 0.15 /* adapters that differ by less count as equal */

/* ---- memory ---- */

static bool
find_memory(LhClusterSearch *s, GError **error)
{
    LhCluster *c = s->cluster;

    if (c->per_node == 1)
        return true;
    lh_cluster_tell(s, "messages in a node");
    return lh_cluster_sweep(s, (LhClusterPoint){ .kind = LH_FLOWS_NODE }, error) &&
           lh_cluster_fit(c, LH_FLOWS_BIT(LH_FLOWS_NODE), &c->memory, error);
}

/* ---- adapters ---- */

/* Sizes that adapters are compared with: one so large that latency hardly matters, and a smaller
 * one. */
#define LARGER_BYTES (UINT64_C(512) << 10)
#define SMALLER_BYTES (UINT64_C(128) << 10)

/* Time of a message of LARGER_BYTES when all ranks of two nodes exchange one. */
static bool
measure_nodes(LhClusterSearch *s, uint32_t node, uint32_t peer, double *taken_s, GError **error)
{
    LhClusterPoint larger = {
        .kind = LH_FLOWS_ALL, .node = node, .peer = peer, .bytes = LARGER_BYTES, .holdout = true
    };

    if (!lh_cluster_measure(s, &larger, LH_CLUSTER_LONGEST_S, error))
        return false;
    *taken_s = larger.measured_s;
    return true;
}

bool
lh_cluster_compares(uint32_t nodes, uint32_t node, uint32_t peer)
{
    const uint32_t distance = peer - node;

    return nodes <= NODES_ALL_MAX || distance == 1 || distance == nodes - 1 ||
           distance == nodes / 2;
}

/*
 * Fills @least_s with each node's shortest exchange time over its peers. @reference is the pair of
 * nodes with the shortest time of all.
 */
static bool
compare_nodes(LhClusterSearch *s, double *least_s, uint32_t *reference, GError **error)
{
    const uint32_t nodes = s->cluster->nodes;
    double best_s = INFINITY;

    lh_cluster_tell(s, "adapters of nodes");
    for (uint32_t n = 0; n < nodes; n++)
        least_s[n] = INFINITY;
    for (uint32_t n = 0; n < nodes; n++) {
        for (uint32_t m = n + 1; m < nodes; m++) {
            double taken_s;

            if (!lh_cluster_compares(nodes, n, m))
                continue;
            if (!measure_nodes(s, n, m, &taken_s, error))
                return false;
            least_s[n] = fmin(least_s[n], taken_s);
            least_s[m] = fmin(least_s[m], taken_s);
            if (taken_s < best_s) {
                best_s = taken_s;
                reference[0] = n;
                reference[1] = m;
            }
        }
    }
    return true;
}

/* Estimates the number of adapters of a node: bandwidth of all its ranks together over that of one
 * rank alone. */
static void
count_adapters(LhCluster *c, double together, double alone)
{
    const double ratio = together / alone;

    c->nics = 1;
    for (uint32_t d = 1; d <= c->per_node; d++) {
        if (c->per_node % d == 0 && fabs(ratio / d - 1) < NIC_TOLERANCE)
            c->nics = d;
    }
    if (fabs(ratio / c->nics - 1) >= NIC_TOLERANCE && ratio > 1)
        c->pair_bytes_per_s = alone;
}

/* Fits the line of an adapter on the fastest pair of nodes, @pair. */
static bool
fit_adapters(LhClusterSearch *s, const uint32_t *pair, GError **error)
{
    LhCluster *c = s->cluster;
    LhClusterPoint like = { .kind = LH_FLOWS_ONE, .node = pair[0], .peer = pair[1] };
    LhClusterLine alone, together;
    unsigned kinds = LH_FLOWS_BIT(LH_FLOWS_ONE);

    lh_cluster_tell(s, "messages between nodes, of one rank of each");
    if (!lh_cluster_sweep(s, like, error) || !lh_cluster_fit(c, kinds, &alone, error))
        return false;
    if (c->per_node > 1) {
        like.kind = LH_FLOWS_ALL;
        lh_cluster_tell(s, "messages between nodes, of all ranks of each");
        if (!lh_cluster_sweep(s, like, error) ||
            !lh_cluster_fit(c, LH_FLOWS_BIT(LH_FLOWS_ALL), &together, error))
            return false;
        count_adapters(c, together.bytes_per_s, alone.bytes_per_s);
        kinds =
            LH_FLOWS_BIT(LH_FLOWS_ALL) | (c->pair_bytes_per_s > 0 ? 0 : LH_FLOWS_BIT(LH_FLOWS_ONE));
    }
    return lh_cluster_fit(c, kinds, &c->nic, error);
}

/* Bandwidth of an adapter of a node whose exchange takes @least_s. At most half the time is
 * attributed to latency. */
static double
rate_of_pair(const LhCluster *c, double least_s)
{
    const double bytes = (double)LARGER_BYTES * c->per_node / MAX(c->nics, 1);

    return bytes / fmax(least_s - c->nic.alpha_s, least_s / 2);
}

/* Finds nodes whose adapters are slower than both the line and other nodes' adapters. The second
 * condition matters where latency dominates, which makes the rates of all pairs too low. */
static void
take_exceptions(LhCluster *c, const double *least_s)
{
    double usual = 0;

    for (uint32_t n = 0; n < c->nodes; n++)
        usual = fmax(usual, rate_of_pair(c, least_s[n]));
    usual = fmin(usual, c->nic.bytes_per_s);
    for (uint32_t n = 0; n < c->nodes; n++) {
        const double rate = rate_of_pair(c, least_s[n]);

        if (rate < (1 - NIC_TOLERANCE) * usual)
            c->node_bytes_per_s[n] = rate;
    }
}

/* Measures all nodes at once, each sending to the next: does the fabric between them add a
 * limit? */
static bool
check_cycle(LhClusterSearch *s, GError **error)
{
    LhClusterPoint smaller = { .kind = LH_FLOWS_CYCLE, .bytes = SMALLER_BYTES, .holdout = true };
    LhClusterPoint larger = smaller;

    larger.bytes = LARGER_BYTES;
    lh_cluster_tell(s, "messages between all nodes");
    return lh_cluster_measure(s, &smaller, LH_CLUSTER_LONGEST_S, error) &&
           lh_cluster_measure(s, &larger, smaller.measured_s, error);
}

static bool
find_adapters(LhClusterSearch *s, GError **error)
{
    LhCluster *c = s->cluster;
    g_autofree double *least_s = g_new(double, c->nodes);
    uint32_t pair[2] = { 0, 1 };

    c->node_bytes_per_s = g_new0(double, c->nodes);
    if (c->nodes == 1)
        return true;
    c->nics = 1;
    if (!compare_nodes(s, least_s, pair, error) || !fit_adapters(s, pair, error))
        return false;
    take_exceptions(c, least_s);
    return check_cycle(s, error);
}

/* ---- overhead of further messages ---- */

uint32_t
lh_cluster_further(const LhCluster *c)
{
    const uint32_t peers = (c->nodes - 1) * c->per_node;

    return peers == 0 ? 0 : MIN(peers, LH_ONE_SHOT_UNDER_WAY) - 1;
}

void
lh_cluster_take_overhead(LhCluster *c, const LhClusterPoint *points, size_t count)
{
    const double further = lh_cluster_further(c);
    g_autofree double *overheads_s = g_new(double, count);

    for (size_t i = 0; i < count; i++)
        overheads_s[i] = (points[i].measured_s - points[i].fitted_s) / further;
    c->overhead_s = fmax(lh_median(overheads_s, count), 0);
    for (size_t i = 0; i < count; i++) {
        LhClusterPoint point = points[i];

        point.fitted_s += further * c->overhead_s;
        g_array_append_val(c->points, point);
    }
}

/* ---- the whole ---- */

LhCluster *
lh_cluster_find(const LhClusterParams *params, GError **error)
{
    g_autoptr(LhCluster) c = g_new0(LhCluster, 1);
    g_autofree uint32_t *to = g_new(uint32_t, params->ranks);
    LhClusterSearch search = { params, c, to };

    g_assert(params->ranks >= 2);
    c->points = g_array_new(FALSE, FALSE, sizeof(LhClusterPoint));
    if (!lh_cluster_nodes(&search, error) || !find_memory(&search, error) ||
        !find_adapters(&search, error))
        return NULL;
    /* The path to an adapter includes memory: a longer latency of memory is noise of a busy
     * machine. */
    if (c->nodes > 1)
        c->memory.alpha_s = fmin(c->memory.alpha_s, c->nic.alpha_s);
    lh_cluster_judge(c);
    return g_steal_pointer(&c);
}

void
lh_cluster_free(LhCluster *c)
{
    if (c == NULL)
        return;
    g_strfreev(c->hosts);
    g_free(c->node_bytes_per_s);
    g_array_unref(c->points);
    g_free(c);
}
