/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a long plan shows while it goes on: how far it is, the fastest way so far, and each cluster
 * as soon as it is finished; and Ctrl-C, which ends it with what was found.
 */
#pragma once

#include "cli/command.h"
#include "cli/progress.h"
#include "report/text/describe_plan.h"

typedef struct {
    LhProgressLine line;
    const LhPlanQuery *query;
    const LhPlanWeights *weights;
    bool
        prints; /* clusters on standard output, in @format; else a line of each, if it takes long */
    LhFormat format;
    GError *failure; /* to print; NULL: none */
} LhPlanLive;

/* Result is printed in @to's format on standard output: clusters are, as they come. */
void lh_plan_live_start(LhPlanLive *live, const LhPlanQuery *query, const LhPlanWeights *weights,
                        const LhOutputOptions *to);
/* For the task of an LhPlanQuery, and LhPlanQuery.finished; @data is the LhPlanLive. */
bool lh_plan_live_progress(void *data, const LhProgress *at);
void lh_plan_live_finished(void *data, const LhPlanAnswer *answer, guint index);
/* False if something could not be printed, with @error unless that is NULL: it was set before. */
bool lh_plan_live_end(LhPlanLive *live, GError **error);
