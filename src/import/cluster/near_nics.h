/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which NICs of a node serve its GPUs: the nearest ones.
 */
#pragma once

#include "import/cluster/node_shape.h"

/* Finds the NICs that are nearest to some GPU; others carry no GPU traffic. A GPU whose nearest
 * NICs are nearer to another GPU shares those. If all NICs are equally far from all GPUs, and
 * either only some path is known or they cannot be shared evenly, it is unknown which count; a
 * single NIC does count. Returns their number; caller frees @near, [nics]. */
guint lh_tool_near(const LhToolShape *shape, bool **near);

/* Adds the number of NICs that serve GPUs, the NIC of each GPU, and a note on those left out. */
bool lh_tool_add_nics(LhToolReader *r, const LhToolShape *shape, guint line);
