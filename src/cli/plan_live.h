/*
 * What a long plan shows on a terminal while it goes on: how far it is, and the fastest way so far;
 * and Ctrl-C, which ends it with what was found.
 */
#pragma once

#include "cli/progress.h"
#include "plan/plan.h"

typedef struct {
    LhProgressLine line;
    bool listens; /* to Ctrl-C */
} LhPlanLive;

void lh_plan_live_start(LhPlanLive *live);
/* The progress of an LhPlanQuery; @data is the LhPlanLive. */
bool lh_plan_live_progress(void *data, const LhPlanProgress *progress);
void lh_plan_live_end(LhPlanLive *live);
