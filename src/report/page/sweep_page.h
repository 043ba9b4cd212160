/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sweep as a page to hand on: which schedule is fastest where.
 */
#pragma once

#include "report/data/sweep_values.h"

/* Appends the page; @scenario is the question, whose figure is left out if it makes none.
 * LH_ERROR_RUNTIME if a figure cannot be drawn. */
bool lh_sweep_page(const LhScenario *scenario, const LhSweep *sweep, const LhStamp *stamp,
                   GString *out, GError **error);
