/*
 * A plan as a page to hand on: how to train, what else was found, what the fastest way does when,
 * and how to repeat it.
 */
#pragma once

#include "report/plan_values.h"
#include "report/report.h"

typedef struct {
    const LhPlanQuery *query;
    const LhPlanAnswer *answer;
    const LhPlanWeights *weights;
    const LhStamp *stamp;
    const LhSetup *setup; /* of the fastest way; NULL: none was found */
    LhReportRun *run;     /* the fastest way, played again; NULL: none was found */
} LhPlanPage;

/* Appends the page. LH_ERROR_RUNTIME if a figure cannot be drawn. */
bool lh_plan_page(const LhPlanPage *page, GString *out, GError **error);
