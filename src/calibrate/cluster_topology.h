/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a cluster that was found as a topology file.
 */
#pragma once

#include "calibrate/cluster_shape.h"

/* Appends the longhaul.topology/2 document called @name; @source says how it was measured. */
void lh_cluster_write(const LhCluster *cluster, const char *name, const char *source, GString *out);
