/*
 * What the files share that read topologies.
 */
#pragma once

#include "sim/network/topology.h"

/* topology_schema.c */

extern const LhField lh_topology_fields[]; /* of an LhTopology */

/* Of "schema", "node.scale_up.kind" and "fabric.kind"; each NULL-terminated. */
extern const char *const lh_topology_schemas[];
extern const char *const lh_topology_scale_ups[];
extern const char *const lh_topology_fabrics[];

/* topology_check.c */

/* Refuses a decoded topology whose node, NICs or fabric do not go together; completes the fabric
 * otherwise. */
bool lh_topology_check(const LhJson *json, LhTopology *topology, GError **error);

/* Which links collectives were measured on must be said of those that they go over, where the
 * format can say it. */
bool lh_topology_check_measured_on(const LhJson *json, const LhTopology *topology, GError **error);
