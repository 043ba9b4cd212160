/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A comparison as a page: the winner, the table, the breakdown of times, timeline and memory of the
 * fastest schedules, the critical path, and how to reproduce it.
 */
#pragma once

#include "critical_path/critical.h"
#include "report/draw/gantt.h"
#include "report/draw/html_timeline.h"
#include "report/draw/memory_figure.h"

/* A row that was simulated again for its timeline. */
typedef struct {
    LhCompareRow *row;
    LhHtmlTimeline *strips;
    LhTimeWindow frame;
    LhMemoryEnvelope *envelope;
    uint32_t last_rank;
} LhReportRun;

void lh_report_run_clear(LhReportRun *run);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(LhReportRun, lh_report_run_clear)

typedef struct {
    const LhSetup *setup;
    const LhComparison *comparison;
    const LhStamp *stamp;
    LhReportRun *runs; /* the fastest first */
    guint runs_count;
    const LhCritical *critical; /* of the fastest; NULL: its run is too large */
} LhReport;

/* Appends the section of one run; @name (letters, digits) is the prefix of its ids in the page.
 * LH_ERROR_RUNTIME as below. */
bool lh_report_run(const LhSetup *setup, const LhReportRun *run, const char *name,
                   const char *title, GString *out, GError **error);

/* Appends the critical path of a run with an explanation; without @critical, that it is left
 * out. */
void lh_report_critical(const LhCritical *critical, GString *out);

/* Appends the page. LH_ERROR_RUNTIME if a figure cannot be drawn. */
bool lh_report_html(const LhReport *report, GString *out, GError **error);
