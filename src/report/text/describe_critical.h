/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path of a run, op by op, in tables.
 */
#pragma once

#include "critical_path/critical.h"
#include "report/base/table.h"

/* Tables of the path by resource, phase and rank, of slack, and of savings of faster calls or
 * single ops. Caller frees. */
LhTable *lh_describe_path_resources(const LhCritical *critical);
LhTable *lh_describe_path_phases(const LhCritical *critical);
LhTable *lh_describe_path_ranks(const LhCritical *critical);
LhTable *lh_describe_slack(const LhCritical *critical);
LhTable *lh_describe_faster_calls(const LhCritical *critical);
LhTable *lh_describe_faster_ops(const LhCritical *critical);

/* Table of the ops with most time on the path, for a run that cannot be simulated again; caller
 * frees. */
LhTable *lh_describe_longest_ops(const LhCritical *critical);

/* All of these in one table, for LH_FORMAT_CSV. Caller frees. */
LhTable *lh_critical_table(const LhCritical *critical);
