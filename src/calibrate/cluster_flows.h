/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timing of messages that several ranks of a cluster send at the same time.
 */
#pragma once

#include "calibrate/cluster_shape.h"

/* State of the search for a cluster's shape. */
typedef struct {
    const LhClusterParams *params;
    LhCluster *cluster;
    uint32_t *to; /* [ranks]: scratch space for flows */
} LhClusterSearch;

/* A sweep stops at the first size whose messages take at least this long. */
#define LH_CLUSTER_LONGEST_S 0.1

/* Reports what is measured next. */
void lh_cluster_tell(const LhClusterSearch *s, const char *what);

/* Measures @point and appends it to the points of the cluster. The number of rounds is chosen for a
 * fixed total time, given that the previous size took @last_s. */
bool lh_cluster_measure(LhClusterSearch *s, LhClusterPoint *point, double last_s, GError **error);

/* Measures the flows of @like at all sizes, until messages take LH_CLUSTER_LONGEST_S. */
bool lh_cluster_sweep(LhClusterSearch *s, LhClusterPoint like, GError **error);
