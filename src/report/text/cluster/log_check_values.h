/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations of NCCL on a cluster, and logs compared with them, for programs. Bandwidths are GB/s
 * of 10^9 bytes, as in nccl-tests: algbw is size over time, busbw the rate on the busiest link of
 * rings.
 */
#pragma once

#include "collective_check/log_check.h"
#include "report/base/table.h"
#include "report/data/result_json.h"

#define LH_LOG_CHECK_LINKS 5 /* maximum number of links shown */

/* All rows of all runs. Caller frees. */
LhTable *lh_log_check_table(const LhLogCheck *held);

/* Fields of the document longhaul.collective/1. */
extern const LhField lh_collective_fields[];

/* Appends the document. */
void lh_log_check_json(const LhLogCheck *held, const LhStamp *stamp, GString *out);

const LhLogCheckRun *lh_log_check_run(const LhLogCheck *held, guint index);
const LhLogCheckRow *lh_log_check_row(const LhLogCheckRun *run, guint index);
const LhLinkLoad *lh_log_check_load(const LhLogCheckRun *run, guint index);

/* GB/s. */
double lh_log_check_algbw(const LhLogCheckRow *row, double seconds);

/* busbw over algbw. */
double lh_log_check_bus_share(const LhLogCheckRun *run);

/* busbw that a link with this load allows, GB/s. */
double lh_log_check_busbw_allowed(const LhLogCheckRun *run, const LhLinkLoad *load);

/* "slow", "fast"; NULL: within the error bar, or no log. */
const char *lh_log_check_verdict(const LhLogCheckRow *row);

/* Name of the link or limit. Caller frees. */
char *lh_log_check_load_name(const LhLogCheckRun *run, const LhLinkLoad *load);
