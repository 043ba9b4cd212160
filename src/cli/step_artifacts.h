/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run once more, to be looked at closely: with its timeline and what it holds over time.
 */
#pragma once

#include "report/page/report.h"

typedef struct {
    const LhSetup *setup;
    const LhSchedule *schedule; /* NULL: that is no schedule's ... */
    const LhProgram *program;   /* ... but this; outlives what comes of it */
    const LhSimResult *result;  /* how it came out; borrowed */
    double seconds;             /* that it takes, for the progress line */
    const char *ranks;          /* that the timeline shows, as of an option; NULL: all, or the first
                                LH_HTML_TIMELINE_RANKS_MAX */
    bool critical;              /* with what its critical path takes */
} LhArtifacts;

/* Fills @run, which lh_report_run_clear() frees in either case. LH_ERROR_RUNTIME if it does not end
 * as before; LH_ERROR_USAGE for ranks that it does not have. */
bool lh_artifacts_write(const LhArtifacts *look, LhReportRun *run, GError **error);

/* Whether the critical path of a run is worth its time and memory. */
bool lh_artifacts_has_critical(const LhSimResult *result);

/* How many times as long as the run itself it takes to look at it so. */
int lh_artifacts_plays(bool critical);

/* What made the time of a run that was looked at with its critical path. LH_ERROR_RUNTIME if it
 * fails or is interrupted. Caller frees. */
LhCritical *lh_artifacts_critical(const LhSetup *setup, const LhReportRun *run, GError **error);
