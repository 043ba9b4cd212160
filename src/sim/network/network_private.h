/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files share that read topologies and make networks of them.
 */
#pragma once

#include "sim/network/network.h"

/* Switches on the way: a rail or leaf switch; two more for each level of trunks that is crossed. */
#define LH_SWITCHES_NEAR 1
#define LH_SWITCHES_OF_LEVEL 2

/* The level of a fault of the fabric. */
static inline uint32_t
lh_link_fault_level(const LhLinkFault *fault)
{
    return fault->part == LH_FAULT_OF_ALL ? 0 : (uint32_t)fault->part;
}

/* network_layout.c: gives each link of @network its id, whose topology, nodes, ranks, hosts and
 * faults are set. False with LH_ERROR_INPUT if the ranks do not fit, or a fault is of what is not
 * there. */
bool lh_network_lay_out(LhNetwork *network, GError **error);

/* topology_check.c */

/* Refuses a decoded topology whose node, NICs or fabric do not go together; completes the fabric
 * otherwise. */
bool lh_topology_check(const LhJson *json, LhTopology *topology, GError **error);

/* Which links collectives were measured on must be said of those that they go over, where the
 * format can say it. */
bool lh_topology_check_measured_on(const LhJson *json, const LhTopology *topology, GError **error);
