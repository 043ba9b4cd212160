/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Breakdown of the time of a run, as used by all tables and figures: compute, then the causes of
 * idle time.
 */
#pragma once

#include "compare/totals.h"

#define LH_TIME_PARTS (1 + LH_IDLE_PARTS)

/* Sums over ranks; they add up to ranks x makespan. */
void lh_time_breakdown(const LhTotals *totals, LhWide parts[LH_TIME_PARTS]);

/* "compute", or the cause of idle time: "imbalance", "nvlink", ... */
const char *lh_part_name(int part);

/* Whether the part is exposed communication; its name is that of the links. */
bool lh_part_is_exposed(int part);
