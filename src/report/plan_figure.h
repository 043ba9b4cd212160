/*
 * The front of a plan as a figure: the time and the memory of the ways that no other one beats in
 * both, a line for each cluster, a shape for each policy of recomputation.
 */
#pragma once

#include "report/figure.h"
#include "report/plan_values.h"

bool lh_plan_figure(const LhPlanAnswer *answer, LhFigureTo to, GError **error);
