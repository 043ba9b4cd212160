/*
 * A comparison as a page to hand on: the answer, the table, where the time goes, what the fastest
 * schedules do when, what they hold, what made the time, and how to repeat it.
 */
#pragma once

#include "plan/critical.h"
#include "report/gantt.h"
#include "report/memory_figure.h"

/* A row of the comparison that was played again, to be looked at closely. */
typedef struct {
    LhCompareRow *row;
    LhTimeline *timeline;
    LhFrame frame;
    LhMemoryEnvelope *envelope;
    uint32_t last_rank;
} LhReportRun;

typedef struct {
    const LhSetup *setup;
    const LhComparison *comparison;
    const LhStamp *stamp;
    LhReportRun *runs; /* the fastest first */
    guint runs_count;
    const LhCritical *critical; /* of the fastest; NULL: its run is too large */
} LhReport;

/* Appends the page. LH_ERROR_RUNTIME if a figure cannot be drawn. */
bool lh_report_html(const LhReport *report, GString *out, GError **error);
