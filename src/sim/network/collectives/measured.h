/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The links that a topology's collectives were timed on, beside those that it has. A file's links
 * are what a cluster has; an edit of them, a fault or a question of what if changes what a
 * collective takes, and not what was measured.
 */
#pragma once

#include "sim/network/collectives/collective_table.h"
#include "sim/network/network.h"
#include "sim/network/topology.h"

/* Finds what @on, at @path in @json, says of levels and of memory of @topology; false if it says
 * too little, or something of what is not there. */
bool lh_measured_on_read(const LhJson *json, const char *path, LhMeasuredOn *on,
                         const LhTopology *topology, GError **error);

/* Finds what "measured_on" of the node and of rows say of levels and of memory, as the file of
 * @topology has it. */
bool lh_measured_read(const LhJson *json, LhTopology *topology, GError **error);

/*
 * Says of all rows and lines of @topology which links they were measured on, those that do not say
 * it themselves: on those of "measured_on" of the node, else on the file's own. And what these
 * allow, with all that follows. To be called again after any change of rows or of what they were
 * measured on; never after a change of links.
 */
void lh_measured_bind(LhTopology *topology);

/* False if a row of @topology, at @path in @json, is faster than the links that it was measured on
 * allow: one of both is wrong then. */
bool lh_measured_check(const LhJson *json, const char *path, const LhTopology *topology,
                       GError **error);

/* False if a row or line of @topology, whose file does not say what these were measured on, is one
 * of
 * @from's, which was measured on other links than @topology has: times would be those of links that
 * are not there. The error has what to add to the file. */
bool lh_measured_check_copied(const LhJson *json, const LhTopology *topology,
                              const LhTopology *from, GError **error);

/* In *@reference the topology with those links; it borrows all of @topology. */
void lh_measured_topology(const LhTopology *topology, const LhMeasuredOn *on,
                          LhTopology *reference);

/*
 * Of rows that were measured on the very links that @before has: these turned out to be other ones,
 * those of @topology, since somebody knows better what these wires let through. Times stay. Rows
 * that were measured on other links keep these.
 */
void lh_measured_follow(LhTopology *topology, const LhTopology *before);

/* Whether rows of @network's topology were measured on other links than a node has as it is, with
 * its faults: what protocols take of them is then not known. */
bool lh_measured_is_scaled(const LhNetwork *network);
