/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is said of a simulated case and of each schedule in it, as fields for machines.
 */
#pragma once

#include "compare/error_bar.h"
#include "report/data/record.h"

/* What was simulated: cluster, model, shape, mask, pass, and how it was timed. Caller frees. */
LhRecord *lh_case_values(const LhSetup *setup);

/* Adds the numbers of links that a scenario may change: NICs of a node, rates, oversubscription;
 * none where the topology has no such link. */
void lh_add_links(LhRecord *values, const LhTopology *topology);

/* Adds error bars, of a time and of a peak that are good to @error; none where it is 0. */
void lh_add_time_bar(LhRecord *values, double seconds, LhTimeError error);
void lh_add_peak_bar(LhRecord *values, uint64_t bytes, double error);

/*
 * One schedule: its state, and if it ran, times, bytes, flops and memory. @best_ps is the makespan
 * of the fastest one that fits, 0 if there is none. Caller frees.
 */
LhRecord *lh_row_values(const LhSetup *setup, const LhCompareRow *row, LhTime best_ps);

/* The makespan of the winner; 0 if there is none. */
LhTime lh_best_ps(const LhComparison *comparison);

/* A line for each schedule, which says its case, too: for LH_FORMAT_CSV. Caller frees. */
LhTable *lh_result_table(const LhSetup *setup, const LhComparison *comparison);
