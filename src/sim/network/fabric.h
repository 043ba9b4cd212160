/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fabric: a tree of switches between nodes. Nodes are grouped under leaf switches, these groups
 * under further switches, and so on. The uplinks of a group are modelled as one trunk, as if
 * traffic were spread over them evenly; what is above the outermost groups is non-blocking.
 */
#pragma once

#include "sim/network/topology.h"

extern const LhField lh_fabric_level_fields[]; /* of an LhFabricLevel */

/* Sets the defaults of an LhFabricLevel. */
void lh_fabric_level_init(void *level);

/* Checks the rules of "fabric.levels" that go beyond single fields, then derives the numbers of the
 * trunks. */
bool lh_fabric_read_levels(const LhJson *json, LhTopology *topology, GError **error);

/* Number of levels with trunks, and one of them; innermost first. None except in a fat tree. */
uint32_t lh_fabric_levels_count(const LhTopology *topology);
LhFabricLevel lh_fabric_level(const LhTopology *topology, uint32_t level);

/* Oversubscription of a group of @level: bandwidth below over bandwidth above, product over all
 * levels up to it. */
double lh_fabric_oversubscription(const LhTopology *topology, uint32_t level);

/* Bandwidth of a trunk of @level, bytes/s in each direction. */
double lh_fabric_trunk(const LhTopology *topology, uint32_t level);
