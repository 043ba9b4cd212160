/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape of a cluster, found from message times between its ranks: which ranks share a host, the
 * bandwidth of hosts' memories and adapters, and which ranks share an adapter. It is limited to
 * what a topology file can describe. Method: docs/manual/validation.md, "A cluster".
 */
#pragma once

#include "base/task.h"
#include "scenario/profile.h"
#include "sim/cost/device.h"

/* Messages that some ranks send at the same time; the fields are those of LhFlowsProbe. */
typedef struct {
    const uint32_t *to;
    bool answered;
    uint64_t bytes;
    uint32_t rounds;
} LhClusterFlows;

typedef struct {
    uint32_t ranks;
    const char *const *hosts; /* [ranks]: the name of each rank's host */
    /* Fills in @seconds of each sending rank, with the same values in all processes. */
    bool (*measure)(void *data, const LhClusterFlows *flows, double *seconds, GError **error);
    void *data;
    /* Progress, reported before each kind of measurement. Its job count is ignored, and it cannot
     * end the measurement, since other processes take part. */
    LhTask task;
} LhClusterParams;

typedef struct {
    LhFlowsKind kind;
    uint32_t node, peer; /* for LH_FLOWS_ONE and LH_FLOWS_ALL; else 0 */
    uint64_t bytes;      /* of a message */
    double measured_s, fitted_s;
    bool holdout; /* not fitted, only compared */
} LhClusterPoint;

/* A line fitted to message times: alpha_s + bytes / bytes_per_s. */
typedef struct {
    double alpha_s, bytes_per_s;
    LhFitResiduals residuals;
} LhClusterLine;

typedef struct {
    uint32_t nodes, per_node; /* the ranks of a node are consecutive */
    char **hosts;             /* [nodes], NULL-terminated: their names */
    bool by_times;            /* all host names are equal; times decided the nodes */
    bool times_agree;         /* times alone give the same nodes */
    LhClusterLine memory;     /* per rank and direction; bytes_per_s 0: one rank per node */
    LhClusterLine nic;        /* per adapter and direction; bytes_per_s 0: one node */
    uint32_t nics;            /* adapters per node */
    double pair_bytes_per_s;  /* bandwidth of one rank alone if below that of an adapter; else 0 */
    double overhead_s;        /* see LhTopology.nic_overhead_ps */
    double *node_bytes_per_s; /* [nodes]: of each adapter of a slower node; 0: as nic */
    GArray *points;           /* of LhClusterPoint */
} LhCluster;

/*
 * Measures and finds the cluster. LH_ERROR_NO if a topology file cannot describe the result: hosts
 * with different numbers of ranks, ranks of a host that are not consecutive, or times that do not
 * grow with size. Caller frees.
 */
LhCluster *lh_cluster_find(const LhClusterParams *params, GError **error);
void lh_cluster_free(LhCluster *cluster);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhCluster, lh_cluster_free)

/* Whether the adapters of nodes @node < @peer are compared: all pairs of a small number of nodes,
 * else neighbours and opposite nodes. */
bool lh_cluster_compares(uint32_t nodes, uint32_t node, uint32_t peer);

/* Number of messages beyond the first that a rank has in flight to other nodes when all ranks send
 * to all; 0 if there is one node. */
uint32_t lh_cluster_further(const LhCluster *cluster);

/*
 * Estimates the overhead of a message from all-gathers over all ranks, adds it to the points'
 * fitted_s and appends them to the cluster's. On entry measured_s is the measured time, and
 * fitted_s the simulated time without overhead. Needs @count > 0 and lh_cluster_further() > 0.
 */
void lh_cluster_take_overhead(LhCluster *cluster, const LhClusterPoint *points, size_t count);
