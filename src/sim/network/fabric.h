/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Switches between nodes as a tree: groups of nodes under leaf switches, groups of these, and so
 * on. The uplinks of a group are one trunk, as if traffic were spread over them evenly; what is
 * above the outermost groups is non-blocking.
 */
#pragma once

#include "sim/network/topology.h"

extern const LhField lh_fabric_level_fields[]; /* of an LhFabricLevel */

/* Sets what a level is that says nothing. */
void lh_fabric_level_init(void *level);

/* Rules of "fabric.levels" that fields do not say, and then the numbers that trunks go by. */
bool lh_fabric_read_levels(const LhJson *json, LhTopology *topology, GError **error);

/* Levels that have trunks, innermost first, and one of them. None but in a fat tree. */
uint32_t lh_fabric_levels_count(const LhTopology *topology);
LhFabricLevel lh_fabric_level(const LhTopology *topology, uint32_t level);

/* Bytes/s of what are below a group of @level over what is above it, all levels together. */
double lh_fabric_oversubscription(const LhTopology *topology, uint32_t level);

/* Bytes/s of a trunk of @level, in each direction. */
double lh_fabric_trunk(const LhTopology *topology, uint32_t level);
