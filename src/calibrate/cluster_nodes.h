/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which ranks of a cluster share a host, decided by host names and by message times between every
 * pair of ranks.
 */
#pragma once

#include "calibrate/cluster_flows.h"

/* Fills in the number of nodes, the ranks per node and the hosts of the cluster. If there are
 * several host names, they decide, and times are only compared with them; else times decide.
 * LH_ERROR_NO: ranks are not spread evenly over hosts, or those of a host are not consecutive. */
bool lh_cluster_nodes(LhClusterSearch *s, GError **error);
