/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path of a run, op by op, in tables.
 */
#pragma once

#include "critical_path/critical.h"
#include "report/base/table.h"

/* What the path is made of: by resource, by phase, by rank; what waits how long; and what faster
 * calls, or single ops, save. Callers free the tables. */
LhTable *lh_describe_path_resources(const LhCritical *critical);
LhTable *lh_describe_path_phases(const LhCritical *critical);
LhTable *lh_describe_path_ranks(const LhCritical *critical);
LhTable *lh_describe_slack(const LhCritical *critical);
LhTable *lh_describe_faster_calls(const LhCritical *critical);
LhTable *lh_describe_faster_ops(const LhCritical *critical);

/* The ops with most of the path, of a run that cannot be played again; caller frees. */
LhTable *lh_describe_longest_ops(const LhCritical *critical);

/* All of it as rows of one table, for LH_FORMAT_CSV. Caller frees. */
LhTable *lh_critical_table(const LhCritical *critical);
