/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages that some ranks of a cluster send at the same time, and what they take.
 */
#pragma once

#include "calibrate/cluster_shape.h"

/* A cluster that is being found. */
typedef struct {
    const LhClusterParams *params;
    LhCluster *cluster;
    uint32_t *to; /* [ranks]: room for flows */
} LhClusterSearch;

/* No larger messages than the first that takes so long. */
#define LH_CLUSTER_LONGEST_S 0.1

/* Says what is measured next. */
void lh_cluster_tell(const LhClusterSearch *s, const char *what);

/* Measures @point, in about as many rounds as there is time for after messages that took @last_s,
 * and appends it to those of the cluster. */
bool lh_cluster_measure(LhClusterSearch *s, LhClusterPoint *point, double last_s, GError **error);

/* All sizes up to those that take long, of the flows of @like. */
bool lh_cluster_sweep(LhClusterSearch *s, LhClusterPoint like, GError **error);
