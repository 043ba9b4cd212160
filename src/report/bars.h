/*
 * A figure of a comparison: one bar a schedule, cut into where the time goes.
 */
#pragma once

#include "plan/compare.h"

/* Draws to @path, one that lh_figure_check_path() allows. Schedules that cannot run here are listed
 * below the bars, with the reason. */
bool lh_bars_draw(const LhSetup *setup, const LhComparison *comparison, const char *path,
                  GError **error);

/* Appends the figure to @svg. */
bool lh_bars_svg(const LhSetup *setup, const LhComparison *comparison, GString *svg,
                 GError **error);
