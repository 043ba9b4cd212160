/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The links of PCIe trees in a network: where they are, and which of them a message crosses.
 */
#pragma once

#include "sim/network/network.h"

/* All but where they begin. */
void lh_pcie_links_init(LhPcieLinks *links, const LhTopology *topology);

/* The link with @id, which is of a tree, without faults. */
LhLink lh_pcie_link(const LhNetwork *network, uint32_t id);

/* "socket 1 up, node 0", "memory up, node 0, index 3" of GPU 3, "memory, node 0"; caller frees. */
char *lh_pcie_link_name(const LhNetwork *network, uint32_t id);

/* Puts what is crossed beside the links of both GPUs, which are @route, between them. @directly:
 * never through memory. */
void lh_pcie_route(const LhNetwork *network, bool directly, LhRoute *route);
