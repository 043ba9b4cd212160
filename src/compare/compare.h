/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several schedules on one cluster: which is fastest, and what bounds it.
 */
#pragma once

#include "compare/bottleneck.h"
#include "compare/compare_row.h"
#include "compare/memory_relief.h"

/* How to compare. */
typedef struct {
    LhTask task;   /* jobs: simulations at once; 0: as the cores and the memory allow */
    double within; /* leave out what takes more than so many times the shortest time, >= 1; 0: none
                    */
    /* Called for each row that has run, as they come, on any thread but one at a time, nor beside
     * the task's progress; NULL: none. */
    void (*came)(void *data, const LhCompareRow *row);
    void *came_data;
    bool no_bound; /* neither what binds the winner nor what would help is asked */
    /* A program that is compared with the schedules, by its name; borrowed. NULL: none. */
    const LhProgram *also;
} LhCompareOptions;

typedef struct {
    GPtrArray *rows; /* of LhCompareRow *: those that ran by time, then the others in the order of
                        the table */
    guint fit_count; /* rows in state RAN; the first of them wins */
    LhBottleneck *bound; /* what binds the winner; NULL without one or with free communication */
    LhReliefs *reliefs;  /* what would help the row that needs least, if none fits and some do not;
                            else NULL */
    bool interrupted;    /* by the task's progress: some rows, or the bound, are missing */
} LhComparison;

/* Plays every schedule of the setup, several at once; the comparison is the same however many.
 * @options may be NULL. Caller frees. */
LhComparison *lh_compare(const LhSetup *setup, const LhCompareOptions *options, GError **error);
void lh_comparison_free(LhComparison *comparison);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhComparison, lh_comparison_free)

/* Of the rows that are out of memory the one that needs least, the first of equal ones; NULL: none.
 */
const LhCompareRow *lh_compare_least(const LhComparison *comparison);

/* Sets `error` and `tied` of the rows that ran, which are in order of time. */
void lh_compare_tell_apart(const LhSetup *setup, const LhComparison *comparison);
