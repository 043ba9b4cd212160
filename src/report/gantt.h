/*
 * A figure of one run: what each rank computes and sends, over time.
 */
#pragma once

#include "plan/compare.h"
#include "report/timeline.h"

#define LH_GANTT_RANKS_MAX 16

/* Draws the ranks below LH_GANTT_RANKS_MAX to @path (*.svg or *.png). @timeline is sorted. */
bool lh_gantt_draw(const LhSetup *setup, const LhCompareRow *row, const LhTimeline *timeline,
                   const char *path, GError **error);
