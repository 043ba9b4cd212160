/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan as a page: the fastest configuration, the others found, its timeline, critical paths of it
 * and the runner-up, and how to reproduce the plan.
 */
#pragma once

#include "report/data/plan_values.h"
#include "report/page/report.h"

/* A configuration that was simulated again. */
typedef struct {
    const LhSetup *setup;
    LhReportRun *run;
    const LhCritical *critical; /* NULL: its run is too large */
    guint point;                /* in the space of the best cluster */
} LhPlanLook;

typedef struct {
    const LhPlanQuery *query;
    const LhPlanAnswer *answer;
    const LhPlanWeights *weights;
    const LhStamp *stamp;
    const LhPlanLook *looks; /* the fastest configuration and the runner-up, if found */
    guint looks_count;
} LhPlanPage;

/* Appends the page. LH_ERROR_RUNTIME if a figure cannot be drawn. */
bool lh_plan_page(const LhPlanPage *page, GString *out, GError **error);
