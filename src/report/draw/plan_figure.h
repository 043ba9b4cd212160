/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front of a plan as a figure: the time and the memory of the ways that no other one beats in
 * both, a line for each cluster, a shape for each policy of recomputation.
 */
#pragma once

#include "report/data/plan_values.h"
#include "report/draw/figure.h"

bool lh_plan_figure(const LhPlanAnswer *answer, LhFigureTo to, GError **error);
