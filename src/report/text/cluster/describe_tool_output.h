/* SPDX-License-Identifier: Apache-2.0 */
/* What tools told of a cluster, reported. */
#pragma once

#include "import/cluster/topology_from_tools.h"
#include "report/base/table.h"

/* Fields of a generated topology file and their provenance. Caller frees. */
LhTable *lh_describe_tool_output(const LhToolTopology *topology);
