/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan as a page to hand on: how to train, what else was found, what the fastest way does when,
 * what made its time and that of the runner-up, and how to repeat it.
 */
#pragma once

#include "report/data/plan_values.h"
#include "report/page/report.h"

/* A way that was played again. */
typedef struct {
    const LhSetup *setup;
    LhReportRun *run;
    const LhCritical *critical; /* NULL: its run is too large */
    guint point;                /* of the space of the best cluster */
} LhPlanLook;

typedef struct {
    const LhPlanQuery *query;
    const LhPlanAnswer *answer;
    const LhPlanWeights *weights;
    const LhStamp *stamp;
    const LhPlanLook
        *looks; /* at the fastest way and the one behind it, of those that were found */
    guint looks_count;
} LhPlanPage;

/* Appends the page. LH_ERROR_RUNTIME if a figure cannot be drawn. */
bool lh_plan_page(const LhPlanPage *page, GString *out, GError **error);
