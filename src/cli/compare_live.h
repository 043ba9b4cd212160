/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a person sees of a comparison while it runs: on a terminal, the schedules that are done, as
 * they come, above the progress of the others; and the way to end it, Ctrl-C.
 */
#pragma once

#include "cli/progress.h"
#include "compare/compare.h"

typedef struct {
    LhProgressLine line;
    GString *rows; /* done, a line each; not shown yet, of those below */
    guint shown;   /* lines on the terminal */
} LhCompareLive;

/* From now on Ctrl-C asks the comparison to stop (interrupt.h). @seconds: as in
 * lh_progress_start(). */
void lh_compare_live_start(LhCompareLive *live, double seconds);

/* For LhCompareOptions.came, and of its task; @data is the LhCompareLive. */
void lh_compare_live_came(void *data, const LhCompareRow *row);
bool lh_compare_live_progress(void *data, const LhProgress *at);

/* Wipes what was shown. */
void lh_compare_live_end(LhCompareLive *live);

/* Compares with progress on a terminal, which takes about @seconds; whom @options tells is this.
 * Caller frees. */
LhComparison *lh_compare_live(const LhSetup *setup, const LhCompareOptions *options, double seconds,
                              GError **error);

/* If even the first row has failed, because of a failed link for example, none has run: its reason
 * is the error (LH_ERROR_RUNTIME). */
bool lh_compare_live_check(const LhComparison *comparison, GError **error);
