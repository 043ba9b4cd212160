/*
 * A figure of a comparison: one bar a schedule, cut into where the time goes.
 */
#pragma once

#include "plan/compare.h"

/* Draws to @path (*.svg or *.png). Schedules that did not run are left out. */
bool lh_bars_draw(const LhSetup *setup, const LhComparison *comparison, const char *path,
                  GError **error);
