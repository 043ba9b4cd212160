/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figure of a sweep. With one field, curves of each schedule's time; with two, a map of the fastest
 * schedules, hatched where the next one is within the error bar.
 */
#pragma once

#include "report/data/sweep_values.h"
#include "report/draw/figure.h"

/* LH_ERROR_USAGE if the fields with several values in @scenario make no figure. */
bool lh_sweep_figure_check(const LhScenario *scenario, GError **error);

/* Draws the figure; the sweep's scenario has passed the check above. */
bool lh_sweep_figure(const LhSweep *sweep, LhFigureTo to, GError **error);
