/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fits message times of a cluster by lines: alpha_s + bytes / bytes_per_s.
 */
#pragma once

#include "calibrate/cluster_shape.h"

/* Element of a set of kinds of flows. */
#define LH_FLOWS_BIT(kind) (1U << (kind))

/* Fits a line through all points of these kinds that are not held out. */
bool lh_cluster_fit(const LhCluster *c, unsigned kinds, LhClusterLine *line, GError **error);

/* Fills in the fitted time of every point and the worst relative error of the held-out points. */
void lh_cluster_judge(LhCluster *c);
