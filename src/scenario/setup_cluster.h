/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster of a setup: loads its files, lays the profile over them, and determines the number of
 * ranks.
 */
#pragma once

#include "scenario/setup.h"

/* The error message if the scenario's changes of NICs and links are impossible on the cluster
 * @text, "NAME:NODES"; NULL if they are possible or the cluster does not exist. Caller frees. */
char *lh_setup_refusal_of_cluster(const LhScenario *scenario, const char *text);

/* Whether @text gives a number of nodes: "NAME:NODES". */
bool lh_setup_cluster_has_nodes(const char *text);

/* The model of collectives of @ranks ranks with @network_model: the scenario's, or the default.
 * Needs the setup's topology. */
LhCollectiveModel lh_setup_collectives(const LhSetup *setup, LhNetworkModel network_model,
                                       uint32_t ranks);

/* Loads the cluster and builds its network for the scenario's ranks. */
bool lh_setup_build_cluster(LhSetup *setup, uint32_t *ranks_out, GError **error);
