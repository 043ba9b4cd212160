/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The links that a topology's collectives were measured on, as opposed to the links that it has.
 * The links of a file are those of the cluster; an edit, a fault or a what-if changes the time of a
 * collective, but not what was measured.
 */
#pragma once

#include "sim/network/collectives/collective_table.h"
#include "sim/network/network.h"
#include "sim/network/topology.h"

/* Resolves levels and memory of @on, at @path in @json, for @topology; false if something is
 * missing, or names something that does not exist. */
bool lh_measured_on_read(const LhJson *json, const char *path, LhMeasuredOn *on,
                         const LhTopology *topology, GError **error);

/* Resolves levels and memory of "measured_on" of the node and of rows in the file of @topology. */
bool lh_measured_read(const LhJson *json, LhTopology *topology, GError **error);

/*
 * Sets the links that rows and lines of @topology were measured on, for those that do not state
 * them: "measured_on" of the node, else the file's own links. Also computes their lower bounds and
 * everything that follows. Call again after any change of rows or of "measured_on", never after a
 * change of links.
 */
void lh_measured_bind(LhTopology *topology);

/* False if a row of @topology, at @path in @json, is faster than the links it was measured on
 * allow: one of the two is wrong. */
bool lh_measured_check(const LhJson *json, const char *path, const LhTopology *topology,
                       GError **error);

/* False if a row or line of @topology, whose file does not state the links, equals one of @from
 * that was measured on other links than @topology has: its times would be those of missing links.
 * The error states what to add to the file. */
bool lh_measured_check_copied(const LhJson *json, const LhTopology *topology,
                              const LhTopology *from, GError **error);

/* Sets *@reference to the topology with those links; it borrows everything from @topology. */
void lh_measured_topology(const LhTopology *topology, const LhMeasuredOn *on,
                          LhTopology *reference);

/*
 * For better knowledge of the same links: rows measured on the links of @before are now measured on
 * those of @topology. Times stay. Rows measured on other links keep those.
 */
void lh_measured_follow(LhTopology *topology, const LhTopology *before);

/* Whether some row of @network's topology was measured on other links than the node has, faults
 * included: how the protocols' time scales is then uncertain. */
bool lh_measured_is_scaled(const LhNetwork *network);
