/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of NCCL on a cluster, and logs held against them, reported. */
#pragma once

#include "collective_check/log_check.h"
#include "report/base/table.h"
#include "report/data/result_json.h"

#define LH_LOG_CHECK_LINKS 5 /* the most loaded ones that are shown */

/* A paragraph and a table for each run, with @links a table of its most loaded links, and what logs
 * come to. */
void lh_describe_log_check(const LhLogCheck *held, bool links, LhFormat format, GString *out);

/* All rows of all runs. Caller frees. */
LhTable *lh_log_check_table(const LhLogCheck *held);

/* longhaul.collective/1. */
void lh_log_check_json(const LhLogCheck *held, const LhStamp *stamp, GString *out);
