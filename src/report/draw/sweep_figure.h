/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sweep as a figure: of one field, the time of each schedule against it; of two, a map of which
 * schedule is fastest where, hatched where the next one is not told apart from it.
 */
#pragma once

#include "report/data/sweep_values.h"
#include "report/draw/figure.h"

/* LH_ERROR_USAGE if the fields of which @scenario lists several values make no figure. */
bool lh_sweep_figure_check(const LhScenario *scenario, GError **error);

/* Draws it; the sweep's scenario passed the check above. */
bool lh_sweep_figure(const LhSweep *sweep, LhFigureTo to, GError **error);
