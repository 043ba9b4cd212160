/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines through what messages of a cluster take: alpha_s + bytes / bytes_per_s.
 */
#pragma once

#include "calibrate/cluster_shape.h"

/* Of a set of kinds of flows. */
#define LH_FLOWS_BIT(kind) (1U << (kind))

/* The line through all points of these kinds that are not held out. */
bool lh_cluster_fit(const LhCluster *c, unsigned kinds, LhClusterLine *line, GError **error);

/* Fills in what the lines say of every point, and how far they are off where they were not fitted.
 */
void lh_cluster_judge(LhCluster *c);
