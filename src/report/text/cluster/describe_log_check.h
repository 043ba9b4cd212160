/* Operations of NCCL on a cluster, and logs held against them, reported. */
#pragma once

#include "collective_check/log_check.h"
#include "report/base/table.h"
#include "report/data/result_json.h"

#define LH_HELD_LINKS 5 /* the most loaded ones that are shown */

/* A paragraph and a table for each run, with @links a table of its most loaded links, and what logs
 * come to. */
void lh_describe_held(const LhHeld *held, bool links, LhFormat format, GString *out);

/* All rows of all runs. Caller frees. */
LhTable *lh_held_table(const LhHeld *held);

/* longhaul.collective/1. */
void lh_held_json(const LhHeld *held, const LhStamp *stamp, GString *out);
