/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which NICs of a node are those of its GPUs: the nearest ones.
 */
#pragma once

#include "import/cluster/node_shape.h"

/* Which NICs are as near to some GPU as any: the others carry no traffic of GPUs. A GPU whose
 * nearest ones are nearer to another GPU shares these. Where all NICs are as far from all GPUs, and
 * only somewhere in the machine or too many to share them evenly, nothing tells which count; a
 * single one does. Returns their number; caller frees @near, [nics].
 */
guint lh_tool_near(const LhToolShape *shape, bool **near);

/* Adds how many NICs there are for GPUs, which GPU has which, and which are left out. */
bool lh_tool_add_nics(LhToolReader *r, const LhToolShape *shape, guint line);
