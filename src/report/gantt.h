/*
 * A figure of one run: what each rank computes and sends, over time.
 */
#pragma once

#include "report/timeline.h"

#define LH_GANTT_RANKS_MAX 16

/* What is drawn: a program as it was simulated, or as it ran. */
typedef struct {
    const LhProgram *program;
    const LhTimeline *timeline; /* sorted */
    LhTime makespan_ps;
    double bubble; /* the share of the time in which the mean rank does not compute */
} LhGantt;

/* Draws the ranks below LH_GANTT_RANKS_MAX to @path (*.svg or *.png). */
bool lh_gantt_draw(const LhGantt *gantt, const char *path, GError **error);
