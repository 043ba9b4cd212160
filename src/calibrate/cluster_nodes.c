/* SPDX-License-Identifier: Apache-2.0 */
#include "calibrate/cluster_nodes.h"

#include "base/error.h"
#include "program/program.h"

#include <math.h>
#include <string.h>

#define APART_BYTES (32U << 10) /* distinguishes memory from networks; fits one packet */
#define APART_ROUNDS 5
#define APART_RATIO 1.5 /* least ratio between the times of two tiers */

/* The partner of @rank in @round: within ranks - 1 rounds each pair meets once (@ranks even). */
static uint32_t
partner(uint32_t rank, uint32_t round, uint32_t ranks)
{
    const uint32_t others = ranks - 1;

    if (rank == others)
        return (uint32_t)((uint64_t)round * (ranks / 2) % others);
    if ((2 * (uint64_t)rank) % others == round % others)
        return others;
    return (uint32_t)((round + 2 * (uint64_t)others - rank) % others);
}

/* Fills @apart_s[a * ranks + b] with the round-trip time of a message between a and b. */
static bool
measure_apart(LhClusterSearch *s, double *apart_s, GError **error)
{
    const uint32_t ranks = s->params->ranks, even = ranks + ranks % 2;
    g_autofree double *seconds = g_new(double, ranks);

    lh_cluster_tell(s, "which ranks share a host");
    for (uint32_t round = 0; round + 1 < even; round++) {
        const LhClusterFlows flows = { s->to, true, APART_BYTES, APART_ROUNDS };

        for (uint32_t r = 0; r < ranks; r++) {
            const uint32_t peer = partner(r, round, even);

            s->to[r] = peer < ranks && r < peer ? peer : LH_RANKS_MAX;
        }
        if (!s->params->measure(s->params->data, &flows, seconds, error))
            return false;
        for (uint32_t r = 0; r < ranks; r++) {
            if (s->to[r] < LH_RANKS_MAX)
                apart_s[r * ranks + s->to[r]] = apart_s[s->to[r] * ranks + r] = seconds[r];
        }
    }
    return true;
}

/* Whether @limit_s separates the nodes: ranks are closer than it exactly if they share a node. */
static bool
limit_tells(const double *apart_s, const uint32_t *node_of, uint32_t ranks, double limit_s)
{
    for (uint32_t a = 0; a < ranks; a++) {
        for (uint32_t b = a + 1; b < ranks; b++) {
            if ((apart_s[a * ranks + b] < limit_s) != (node_of[a] == node_of[b]))
                return false;
        }
    }
    return true;
}

/* Groups ranks: those within @limit_s of a group's first rank belong to it. */
static void
group_by_limit(const double *apart_s, uint32_t ranks, double limit_s, uint32_t *node_of)
{
    uint32_t nodes = 0;

    for (uint32_t a = 0; a < ranks; a++)
        node_of[a] = LH_RANKS_MAX;
    for (uint32_t a = 0; a < ranks; a++) {
        if (node_of[a] < LH_RANKS_MAX)
            continue;
        for (uint32_t b = a; b < ranks; b++) {
            if (node_of[b] == LH_RANKS_MAX && (a == b || apart_s[a * ranks + b] < limit_s))
                node_of[b] = nodes;
        }
        nodes++;
    }
}

static void
group_by_name(const LhClusterParams *p, uint32_t *node_of)
{
    uint32_t nodes = 0;

    for (uint32_t a = 0; a < p->ranks; a++) {
        uint32_t same = 0;

        while (strcmp(p->hosts[same], p->hosts[a]) != 0)
            same++;
        node_of[a] = same < a ? node_of[same] : nodes++;
    }
}

static int
ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Finds the gaps between pair times that may separate hosts from the network. @limits_s receives
 * one limit per gap, the widest gap first. Returns their number. */
static size_t
find_limits(const double *apart_s, uint32_t ranks, double *limits_s)
{
    g_autofree double *sorted = g_new(double, (size_t)ranks *ranks);
    g_autofree double *ratios = g_new(double, (size_t)ranks *ranks);
    size_t count = 0, found = 0;

    for (uint32_t a = 0; a < ranks; a++) {
        for (uint32_t b = a + 1; b < ranks; b++)
            sorted[count++] = apart_s[a * ranks + b];
    }
    qsort(sorted, count, sizeof(double), ascending);
    for (size_t i = 1; i < count; i++) {
        const double ratio = sorted[i] / sorted[i - 1];
        size_t at = found;

        if (ratio < APART_RATIO)
            continue;
        for (; at > 0 && ratios[at - 1] < ratio; at--) {
            ratios[at] = ratios[at - 1];
            limits_s[at] = limits_s[at - 1];
        }
        ratios[at] = ratio;
        limits_s[at] = sqrt(sorted[i] * sorted[i - 1]);
        found++;
    }
    return found;
}

/* The number of nodes if all have the same size and consecutive ranks; else 0. */
static uint32_t
count_nodes(const uint32_t *node_of, uint32_t ranks)
{
    const uint32_t nodes = node_of[ranks - 1] + 1;

    if (ranks % nodes != 0)
        return 0;
    for (uint32_t r = 0; r < ranks; r++) {
        if (node_of[r] != r / (ranks / nodes))
            return 0;
    }
    return nodes;
}

static bool
refuse_nodes(const LhClusterParams *p, const uint32_t *node_of, GError **error)
{
    uint32_t r = 1;

    while (r + 1 < p->ranks && node_of[r] <= node_of[r - 1] + 1 && node_of[r] >= node_of[r - 1])
        r++;
    g_set_error(error, LH_ERROR, LH_ERROR_NO,
                "the ranks must be spread evenly over the hosts, with consecutive ranks on each "
                "(rank %u is on %s): a topology file cannot describe other layouts; start equally "
                "many on every host, such as with mpirun --map-by ppr:2:node",
                r, p->hosts[r]);
    return false;
}

bool
lh_cluster_nodes(LhClusterSearch *s, GError **error)
{
    const LhClusterParams *p = s->params;
    LhCluster *c = s->cluster;
    g_autofree double *apart_s = g_new0(double, (size_t)p->ranks * p->ranks);
    g_autofree double *limits_s = g_new(double, (size_t)p->ranks * p->ranks);
    g_autofree uint32_t *node_of = g_new(uint32_t, p->ranks);
    size_t limits;

    group_by_name(p, node_of);
    if (!measure_apart(s, apart_s, error))
        return false;
    limits = find_limits(apart_s, p->ranks, limits_s);
    for (size_t i = 0; i < limits; i++)
        c->times_agree = c->times_agree || limit_tells(apart_s, node_of, p->ranks, limits_s[i]);
    c->nodes = count_nodes(node_of, p->ranks);
    if (c->nodes == 0)
        return refuse_nodes(p, node_of, error);
    for (size_t i = 0; c->nodes == 1 && i < limits; i++) {
        uint32_t nodes;

        group_by_limit(apart_s, p->ranks, limits_s[i], node_of);
        nodes = count_nodes(node_of, p->ranks);
        if (nodes == 0 || !limit_tells(apart_s, node_of, p->ranks, limits_s[i]))
            continue;
        c->nodes = nodes;
        c->by_times = c->times_agree = true;
    }
    c->per_node = p->ranks / c->nodes;
    c->hosts = g_new0(char *, c->nodes + 1);
    for (uint32_t n = 0; n < c->nodes; n++)
        c->hosts[n] = g_strdup(p->hosts[n * c->per_node]);
    return true;
}
