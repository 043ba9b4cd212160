/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of a topology file's fields: longhaul.topology/2.
 */
#pragma once

#include "base/json/field.h"

extern const LhField lh_topology_fields[]; /* of an LhTopology */

/* Of "schema", "node.scale_up.kind" and "fabric.kind"; each NULL-terminated. */
extern const char *const lh_topology_schemas[];
extern const char *const lh_topology_scale_ups[];
extern const char *const lh_topology_fabrics[];
