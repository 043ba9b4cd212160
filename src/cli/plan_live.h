/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live view of a long plan: progress, the fastest configuration so far, and each cluster as soon as
 * it is finished. Ctrl-C ends the plan with what was found.
 */
#pragma once

#include "cli/command.h"
#include "cli/progress.h"
#include "report/text/describe_plan.h"

typedef struct {
    LhProgressLine line;
    const LhPlanQuery *query;
    const LhPlanWeights *weights;
    bool prints; /* print clusters to standard output in @format; else one line each, if the plan is
                    long */
    LhFormat format;
    GError *failure; /* first error of printing; NULL: none */
} LhPlanLive;

/* Starts the view. If the result goes to standard output in a format for people, clusters are
 * printed as they finish. */
void lh_plan_live_start(LhPlanLive *live, const LhPlanQuery *query, const LhPlanWeights *weights,
                        const LhOutputOptions *to);
/* Callbacks for the task of an LhPlanQuery and for LhPlanQuery.finished; @data is the
 * LhPlanLive. */
bool lh_plan_live_progress(void *data, const LhProgress *at);
void lh_plan_live_finished(void *data, const LhPlanAnswer *answer, guint index);
/* Ends the view. False if something could not be printed, with @error unless that is NULL because
 * it is already set. */
bool lh_plan_live_end(LhPlanLive *live, GError **error);
