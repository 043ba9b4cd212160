/* What tools told of a cluster, reported. */
#pragma once

#include "import/told_topology.h"
#include "report/table.h"

/* The fields of a topology file that was made, and where their values are from. Caller frees. */
LhTable *lh_describe_told(const LhToldTopology *topology);
