/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparison of schedules on one cluster: the fastest, and its bottleneck.
 */
#pragma once

#include "compare/bottleneck.h"
#include "compare/compare_row.h"
#include "compare/memory_relief.h"

/* Options of a comparison. */
typedef struct {
    LhTask task;   /* jobs: simulations in parallel; 0: limited by cores and memory */
    double within; /* omit schedules slower than this x the shortest time, >= 1; 0: none */
    /* Called for each row that ran, in order of completion; on any thread, but never concurrently
     * with itself or the task's progress. NULL: not called. */
    void (*came)(void *data, const LhCompareRow *row);
    void *came_data;
    bool no_bound; /* skip the winner's bottleneck and the reliefs */
    /* A program to compare with the schedules, by its name; borrowed. NULL: none. */
    const LhProgram *also;
} LhCompareOptions;

typedef struct {
    GPtrArray *rows; /* of LhCompareRow *: rows that ran, by time, then the others in the order of
                        the table */
    guint fit_count; /* rows in state RAN; the first of them is the winner */
    LhBottleneck *bound; /* of the winner; NULL without one or with free communication */
    LhReliefs *reliefs; /* changes that help the row with the smallest peak memory, if none fits and
                           some are out of memory; else NULL */
    bool interrupted;   /* by the task's progress: some rows, or the bottleneck, are missing */
} LhComparison;

/* Simulates every schedule of the setup, several in parallel; the result does not depend on how
 * many. @options may be NULL. Caller frees. */
LhComparison *lh_compare(const LhSetup *setup, const LhCompareOptions *options, GError **error);
void lh_comparison_free(LhComparison *comparison);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhComparison, lh_comparison_free)

/* Among the rows out of memory, the first with the smallest peak; NULL: none. */
const LhCompareRow *lh_compare_least(const LhComparison *comparison);

/* Sets `error` and `tied` of the rows that ran, which are sorted by time. */
void lh_compare_tell_apart(const LhSetup *setup, const LhComparison *comparison);
