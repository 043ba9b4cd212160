/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape of a cluster, from what messages between its ranks take: which ranks share a host, what
 * hosts' memories and adapters reach, and who shares an adapter. What it finds is what a topology
 * file can say. Method: docs/manual/validation.md, "A cluster".
 */
#pragma once

#include "base/task.h"
#include "scenario/profile.h"
#include "sim/cost/device.h"

/* Messages that some ranks send at the same time; as LhFlowsProbe, whose fields these are. */
typedef struct {
    const uint32_t *to;
    bool answered;
    uint64_t bytes;
    uint32_t rounds;
} LhClusterFlows;

typedef struct {
    uint32_t ranks;
    const char *const *hosts; /* [ranks]: the name of each rank's host */
    /* Fills in @seconds of each rank that sends, in all processes alike. */
    bool (*measure)(void *data, const LhClusterFlows *flows, double *seconds, GError **error);
    void *data;
    /* Told before each kind of measurement what it will be. Jobs are not read, and nothing ends
     * what others take part in. */
    LhTask task;
} LhClusterParams;

typedef struct {
    LhFlowsKind kind;
    uint32_t node, peer; /* of ONE and ALL; else 0 */
    uint64_t bytes;      /* of a message */
    double measured_s, fitted_s;
    bool holdout; /* judged only */
} LhClusterPoint;

/* A line through times of messages: alpha_s + bytes / bytes_per_s. */
typedef struct {
    double alpha_s, bytes_per_s;
    LhFitResiduals residuals;
} LhClusterLine;

typedef struct {
    uint32_t nodes, per_node; /* ranks of a node are in a row */
    char **hosts;             /* [nodes], NULL-terminated: their names */
    bool by_times;            /* names are all alike: nodes are what times say */
    bool times_agree;         /* times alone tell the same nodes apart */
    LhClusterLine memory;     /* of a rank, each way; bytes_per_s 0: a rank is alone on its node */
    LhClusterLine nic;        /* of an adapter, each way; bytes_per_s 0: there is one node */
    uint32_t nics;            /* of a node */
    double pair_bytes_per_s;  /* what a rank alone reaches, if less than an adapter; else 0 */
    double overhead_s;        /* as LhTopology.nic_overhead_ps */
    double *node_bytes_per_s; /* [nodes]: of each adapter of a node, where it is not as the others';
                                 else 0 */
    GArray *points;           /* of LhClusterPoint */
} LhCluster;

/*
 * Measures. LH_ERROR_NO if what it finds is no cluster that a topology file can describe: hosts
 * with more ranks than others, ranks that are not in a row, times that do not grow. Caller frees.
 */
LhCluster *lh_cluster_find(const LhClusterParams *params, GError **error);
void lh_cluster_free(LhCluster *cluster);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhCluster, lh_cluster_free)

/* Whether the adapters of nodes @node < @peer are measured together: all, if they are few; else
 * neighbours and opposites. */
bool lh_cluster_compares(uint32_t nodes, uint32_t node, uint32_t peer);

/* How many messages a rank has under way to other nodes beside one, where all send to all; 0 also
 * where there is one node. */
uint32_t lh_cluster_further(const LhCluster *cluster);

/*
 * Finds the overhead, and appends @points, by what all-gathers over all ranks took: measured_s, and
 * in fitted_s what the simulator says of them without it, to which it is added. At least one point,
 * and a further message.
 */
void lh_cluster_take_overhead(LhCluster *cluster, const LhClusterPoint *points, size_t count);
