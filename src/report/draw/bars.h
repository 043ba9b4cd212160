/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figure of a comparison: a stacked bar per schedule, its time by part.
 */
#pragma once

#include "compare/compare.h"
#include "report/draw/figure.h"

/* Draws the bars. Schedules that cannot run here are listed below, with the reason. */
bool lh_bars_draw(const LhSetup *setup, const LhComparison *comparison, LhFigureTo to,
                  GError **error);
