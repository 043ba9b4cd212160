/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts that the time of a run is made of, as every table and figure has them: computing, then
 * the causes of idle time.
 */
#pragma once

#include "compare/totals.h"

#define LH_TIME_PARTS (1 + LH_IDLE_PARTS)

/* Sums over ranks; they add up to ranks x makespan. */
void lh_time_breakdown(const LhTotals *totals, LhWide parts[LH_TIME_PARTS]);

/* "compute", or the cause of idle time: "imbalance", "nvlink", ... */
const char *lh_part_name(int part);

/* Whether the part is exposed communication, which its name says the links of. */
bool lh_part_is_exposed(int part);
