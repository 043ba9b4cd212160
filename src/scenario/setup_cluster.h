/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster of a setup: its files, the profile laid over them, and how many ranks it has.
 */
#pragma once

#include "scenario/setup.h"

/* Why the cluster @text, "NAME:NODES", cannot have what @scenario says of NICs and links, in the
 * words of the error; NULL: it can, or there is no such cluster. Caller frees. */
char *lh_setup_refusal_of_cluster(const LhScenario *scenario, const char *text);

/* Whether the cluster @text says how many nodes it has: "NAME:NODES". */
bool lh_setup_cluster_has_nodes(const char *text);

/* How collectives of @ranks ranks run under @network_model, as the scenario says or by default. The
 * setup's topology is there. */
LhCollectiveModel lh_setup_collectives(const LhSetup *setup, LhNetworkModel network_model,
                                       uint32_t ranks);

/* Loads the cluster and lays out its network for the ranks that the scenario asks for. */
bool lh_setup_build_cluster(LhSetup *setup, uint32_t *ranks_out, GError **error);
