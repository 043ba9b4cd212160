/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a collective of one node takes by the formulas of the table, for numbers of ranks that
 * nobody measured.
 */
#pragma once

#include "sim/network/collectives/collective_table.h"

/* The row for @kind; NULL if there is none. */
const LhCollectiveLines *lh_collective_lines_find(const GArray *lines, LhCollectiveKind kind);

/* Seconds by formula, for any number of ranks from two on. Copies and short messages go with no
 * link. */
double lh_collective_lines_seconds(const LhCollectiveLines *row, uint64_t ranks, double bytes,
                                   LhLinkSlowdown slowdown);

/* The same, and in @floor_s what of it no byte takes: base and hops. */
double lh_collective_lines_parts(const LhCollectiveLines *row, uint64_t ranks, double bytes,
                                 LhLinkSlowdown slowdown, double *floor_s);
