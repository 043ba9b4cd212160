/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A figure of a comparison: one bar a schedule, cut into where the time goes.
 */
#pragma once

#include "compare/compare.h"
#include "report/draw/figure.h"

/* Schedules that cannot run here are listed below the bars, with the reason. */
bool lh_bars_draw(const LhSetup *setup, const LhComparison *comparison, LhFigureTo to,
                  GError **error);
