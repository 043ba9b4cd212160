/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of collectives within one node by the formulas of the table, for numbers of ranks that were
 * not measured.
 */
#pragma once

#include "sim/network/collectives/collective_table.h"

/* The row for @kind; NULL if there is none. */
const LhCollectiveLines *lh_collective_lines_find(const GArray *lines, LhCollectiveKind kind);

/* Seconds by formula, for any number of ranks from two on. Copies and short messages do not scale
 * with links. */
double lh_collective_lines_seconds(const LhCollectiveLines *row, uint64_t ranks, double bytes,
                                   LhLinkSlowdown slowdown);

/* The same; sets @floor_s to the part that does not depend on bytes: base and hops. */
double lh_collective_lines_parts(const LhCollectiveLines *row, uint64_t ranks, double bytes,
                                 LhLinkSlowdown slowdown, double *floor_s);
