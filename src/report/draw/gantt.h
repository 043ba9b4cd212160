/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gantt chart of one run: compute and communication of each rank over time.
 */
#pragma once

#include "report/data/time_window.h"
#include "report/data/timeline.h"
#include "report/draw/figure.h"

/* The run to draw, simulated or executed. */
typedef struct {
    const LhSetup *setup;
    const char *name; /* of the row; borrowed */
    const LhProgram *program;
    const LhTimeline *timeline; /* sorted; has at least the ranks of the frame */
    LhTimeWindow *frame;        /* fitted to the run */
    LhTime makespan_ps;
    uint32_t last_rank; /* last rank to finish */
    double bubble;      /* mean share of the time in which a rank does not compute */
} LhGantt;

/* Last rank to finish a simulation; among several, preferably one of the frame. */
uint32_t lh_gantt_last_rank(const LhSimResult *result, const LhTimeWindow *frame);

bool lh_gantt_draw(const LhGantt *gantt, LhFigureTo to, GError **error);
