/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live view of a comparison on a terminal: finished schedules as they complete, above the progress
 * line. Ctrl-C stops the comparison.
 */
#pragma once

#include "cli/progress.h"
#include "compare/compare.h"

typedef struct {
    LhProgressLine line;
    GString *rows; /* finished schedules not yet shown, a line each */
    guint shown;   /* lines on the terminal */
} LhCompareLive;

/* Starts the view; from now on Ctrl-C asks the comparison to stop (interrupt.h). @seconds: as in
 * lh_progress_start(). */
void lh_compare_live_start(LhCompareLive *live, double seconds);

/* Callbacks for LhCompareOptions.came and for its task; @data is the LhCompareLive. */
void lh_compare_live_came(void *data, const LhCompareRow *row);
bool lh_compare_live_progress(void *data, const LhProgress *at);

/* Clears the view. */
void lh_compare_live_end(LhCompareLive *live);

/* Runs lh_compare() with a live view, replacing the callbacks of @options; @seconds is its
 * estimated duration. Caller frees. */
LhComparison *lh_compare_live(const LhSetup *setup, const LhCompareOptions *options, double seconds,
                              GError **error);

/* Fails (LH_ERROR_RUNTIME) with the first row's reason if that row failed: then no schedule ran,
 * because of a failed link for example. */
bool lh_compare_live_check(const LhComparison *comparison, GError **error);
