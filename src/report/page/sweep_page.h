/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sweep as a page: the fastest schedule at each point.
 */
#pragma once

#include "report/data/sweep_values.h"

/* Appends the page; @scenario lists the values. The figure is left out if they make none.
 * LH_ERROR_RUNTIME if a figure cannot be drawn. */
bool lh_sweep_page(const LhScenario *scenario, const LhSweep *sweep, const LhStamp *stamp,
                   GString *out, GError **error);
