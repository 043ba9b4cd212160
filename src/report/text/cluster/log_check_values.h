/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations of NCCL on a cluster, and logs held against them, for machines. Bandwidths are GB/s of
 * 10^9 bytes, as nccl-tests has them: algbw is size over time, busbw what that stands for on the
 * busiest link of rings.
 */
#pragma once

#include "collective_check/log_check.h"
#include "report/base/table.h"
#include "report/data/result_json.h"

#define LH_LOG_CHECK_LINKS 5 /* the most loaded ones that are shown */

/* All rows of all runs. Caller frees. */
LhTable *lh_log_check_table(const LhLogCheck *held);

/* Of the document longhaul.collective/1. */
extern const LhField lh_collective_fields[];

/* Appends it. */
void lh_log_check_json(const LhLogCheck *held, const LhStamp *stamp, GString *out);

const LhLogCheckRun *lh_log_check_run(const LhLogCheck *held, guint index);
const LhLogCheckRow *lh_log_check_row(const LhLogCheckRun *run, guint index);
const LhLinkLoad *lh_log_check_load(const LhLogCheckRun *run, guint index);

/* GB/s. */
double lh_log_check_algbw(const LhLogCheckRow *row, double seconds);

/* busbw over algbw. */
double lh_log_check_bus_share(const LhLogCheckRun *run);

/* What busbw a link allows that is loaded so: GB/s. */
double lh_log_check_busbw_allowed(const LhLogCheckRun *run, const LhLinkLoad *load);

/* "slow", "fast"; NULL: within its bar, or there is no log. */
const char *lh_log_check_verdict(const LhLogCheckRow *row);

/* Caller frees. */
char *lh_log_check_load_name(const LhLogCheckRun *run, const LhLinkLoad *load);
