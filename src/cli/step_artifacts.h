/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repeats a run to record its timeline, its memory over time and its critical path.
 */
#pragma once

#include "report/page/report.h"

typedef struct {
    const LhSetup *setup;
    const LhSchedule *schedule; /* NULL: @program is not a schedule's */
    const LhProgram *program;   /* used without a schedule; must outlive the results */
    const LhSimResult *result;  /* result of the first run; borrowed */
    double seconds;             /* its estimated duration, for the progress line */
    const char *ranks; /* ranks in the timeline, as on the command line; NULL: all, or the first
                          LH_HTML_TIMELINE_RANKS_MAX */
    bool critical;     /* also record what the critical path needs */
} LhArtifacts;

/* Fills @run, which lh_report_run_clear() frees in either case. LH_ERROR_RUNTIME if the repeated
 * run fails, LH_ERROR_USAGE for ranks that do not exist. */
bool lh_artifacts_write(const LhArtifacts *look, LhReportRun *run, GError **error);

/* Whether the run is small enough to analyse its critical path. */
bool lh_artifacts_has_critical(const LhSimResult *result);

/* Cost of the analysis, in simulations of the run. */
int lh_artifacts_plays(bool critical);

/* Finds the critical path of a run recorded with @critical, on @jobs threads (0: one per core).
 * LH_ERROR_RUNTIME if it fails or is interrupted. Caller frees. */
LhCritical *lh_artifacts_critical(const LhSetup *setup, const LhReportRun *run, guint jobs,
                                  GError **error);
