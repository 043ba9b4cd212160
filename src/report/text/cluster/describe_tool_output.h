/* SPDX-License-Identifier: Apache-2.0 */
/* Output of topology: what the tools' files state of a cluster. */
#pragma once

#include "import/cluster/topology_from_tools.h"
#include "report/base/table.h"

/* Fields of a generated topology file and their provenance. Caller frees. */
LhTable *lh_describe_tool_output(const LhToolTopology *topology);
