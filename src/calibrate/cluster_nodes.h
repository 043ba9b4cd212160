/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which ranks of a cluster share a host: by their hosts' names, and by what messages between any
 * two of them take.
 */
#pragma once

#include "calibrate/cluster_flows.h"

/* Names decide where there are several; times are held against them. */
/* Fills in nodes, ranks of each and hosts of the cluster. LH_ERROR_NO: ranks are not spread evenly,
 * or not in a row. */
bool lh_cluster_nodes(LhClusterSearch *s, GError **error);
