/*
 * What the files share that make a network of a topology.
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
