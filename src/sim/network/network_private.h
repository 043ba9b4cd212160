/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files that read topologies and build networks from them.
 */
#pragma once

#include "sim/network/network.h"

/* Switches on a route: one rail or leaf switch; two more for each level of trunks crossed. */
#define LH_SWITCHES_NEAR 1
#define LH_SWITCHES_OF_LEVEL 2

/* The level of a fault of the fabric. */
static inline uint32_t
lh_link_fault_level(const LhLinkFault *fault)
{
    return fault->part == LH_FAULT_OF_ALL ? 0 : (uint32_t)fault->part;
}

/* network_layout.c: assigns the link ids of @network, whose topology, nodes, ranks, hosts and
 * faults are set. False with LH_ERROR_INPUT if the ranks do not fit, or a fault names something
 * that does not exist. */
bool lh_network_lay_out(LhNetwork *network, GError **error);

/* topology_check.c */

/* Rejects a decoded topology whose node, NICs or fabric are inconsistent; completes the fabric
 * otherwise. */
bool lh_topology_check(const LhJson *json, LhTopology *topology, GError **error);

/* Requires "measured_on" for the links that measured collectives cross, where the format version
 * has it. */
bool lh_topology_check_measured_on(const LhJson *json, const LhTopology *topology, GError **error);
