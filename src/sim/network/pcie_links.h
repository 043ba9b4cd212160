/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The links of PCIe trees in a network: their ids, and the ones that a message crosses.
 */
#pragma once

#include "sim/network/network.h"

/* Fills in everything except `first`. */
void lh_pcie_links_init(LhPcieLinks *links, const LhTopology *topology);

/* The properties of link @id of a tree, without faults. */
LhLink lh_pcie_link(const LhNetwork *network, uint32_t id);

/* "socket 1 up, node 0", "memory up, node 0, index 3" of GPU 3, "memory, node 0"; caller frees. */
char *lh_pcie_link_name(const LhNetwork *network, uint32_t id);

/* Adds the links of the tree to @route, which has the links of both GPUs: they are inserted between
 * these. @directly: never through memory. */
void lh_pcie_route(const LhNetwork *network, bool directly, LhRoute *route);
