/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A figure of one run: what each rank computes and sends, over time.
 */
#pragma once

#include "report/data/time_window.h"
#include "report/data/timeline.h"
#include "report/draw/figure.h"

/* What is drawn: a program as it was simulated, or as it ran. */
typedef struct {
    const LhSetup *setup;
    const char *name; /* of the row; borrowed */
    const LhProgram *program;
    const LhTimeline *timeline; /* sorted; of the ranks of the frame at least */
    LhTimeWindow *frame;        /* fitted to the run */
    LhTime makespan_ps;
    uint32_t last_rank; /* the one to finish last */
    double bubble;      /* the share of the time in which the mean rank does not compute */
} LhGantt;

/* The rank of a simulation that finishes last; of several, one that the frame has. */
uint32_t lh_gantt_last_rank(const LhSimResult *result, const LhTimeWindow *frame);

bool lh_gantt_draw(const LhGantt *gantt, LhFigureTo to, GError **error);
